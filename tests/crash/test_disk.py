"""Disks that are full, broken or read-only, and processes that may open no more files.

The transaction fails with a plain message, the warehouse stays as it was, and the next one works.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.database import warehouse_store
from corollary.errors import WarehouseError
from corollary.warehouse import warehouse
from support.command_line import cli
from support.comparison import comparable
from support.figures import FIGURES, KILLED, WHOLE
from support.maintained_database import closure, delete, insert, opened, reopened
from support.payload_check import check_payload
from support.processes import crash_sequence
from support.processes.crash_sequence import STEPS, states
from support.warehouse_scenarios import loose_files, store_of, stored

STRIDE = int(os.environ.get("STRIDE", "8"))
"""Of all system calls every so many-th is made to fail, or to kill."""

CLOSURE = closure(type_="number")
CHAIN = [(at, at + 1) for at in range(120)]


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A disk of 2 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(disk)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no disk can be mounted here")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def fill(disk: Path, left: int) -> Path:
    """Fill a disk up to so many bytes; return the file that does it."""
    found = os.statvfs(disk)
    filler = disk / "filler"
    filler.write_bytes(bytes(max(0, found.f_bavail * found.f_frsize - left)))
    return filler


@pytest.mark.parametrize("left", [0, 4_096, 16_384, 40_960])
@pytest.mark.parametrize("inline", [1, 1 << 20], ids=["files", "inline"])
def test_a_full_disk(small: Path, left: int, inline: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warehouse, "INLINE_BYTES", inline)
    db = opened(CLOSURE, place=str(small / "warehouse"))
    insert(db, "edge", CHAIN[:3])
    before, commits = stored(db), db.commits
    filler = fill(small, left)
    with pytest.raises(WarehouseError) as caught:
        insert(db, "edge", CHAIN)
    assert re.search("C0932|C0935", str(caught.value))
    assert re.search(r"No space left|disk is full", str(caught.value))
    assert (stored(db), db.commits) == (before, commits)
    with corollary.open(small / "warehouse", create=False) as other:
        assert stored(other) == before
    filler.unlink()
    insert(db, "edge", CHAIN[:4])
    assert loose_files(db) == set()
    db.close()
    with reopened("", place=str(small / "warehouse")) as db:
        assert len(db.relation("reach")) == 10
        check_payload(db)


def test_a_full_disk_behind_the_commit(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fold fails; the commit was made."""
    monkeypatch.setattr(warehouse_store, "FOLD_MAX_COMMITS", 1)
    db = opened(CLOSURE, place=str(small / "warehouse"))
    store, record = store_of(db), store_of(db).record

    def recorded(*arguments: Any) -> int:
        number = record(*arguments)
        fill(small, 4_096)
        return number

    monkeypatch.setattr(store, "record", recorded)
    tx = insert(db, "edge", CHAIN)
    assert tx.commit_number == db.commits == 2
    assert store._folded < 2
    assert loose_files(db) == set()
    monkeypatch.setattr(store, "record", record)
    (small / "filler").unlink()
    delete(db, "edge", CHAIN[:1])
    assert store._folded == 3
    db.close()


def test_gc_on_a_full_disk(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody needs goes first, for which nothing has to be written."""
    monkeypatch.setattr(warehouse, "INLINE_BYTES", 1)
    place = small / "warehouse"
    db = opened(CLOSURE, place=str(place))
    for edge in CHAIN[:4]:
        insert(db, "edge", [edge])
    before = stored(db)
    db.close()
    orphan = place / "data" / "lost" / "orphan.parquet"
    orphan.parent.mkdir()
    orphan.write_bytes(bytes(300_000))
    filler = fill(small, 0)
    with corollary.open(place, create=False) as db:
        assert stored(db) == before
        with pytest.raises(WarehouseError, match="the disk is full") as caught:
            insert(db, "edge", CHAIN[:9])
        assert "corollary gc" in str(caught.value)
    done = cli("gc", str(place), "--keep-commits", "1", "--format", "json")
    assert (done.exit_code, done.stderr) == (0, "")
    assert json.loads(done.stdout)["file_bytes"] >= 300_000
    assert not orphan.exists()
    filler.unlink()
    with corollary.open(place) as db:
        assert stored(db) == before
        insert(db, "edge", CHAIN[:9])


@pytest.mark.parametrize("has_log", [False, True], ids=["closed", "with the log of a writer"])
def test_a_disk_that_is_read_only(small: Path, has_log: bool) -> None:
    place, copy = small / "warehouse", small / "copy"
    db = opened(f"{CLOSURE}.output reach\n", place=str(place))
    insert(db, "edge", CHAIN[:3])
    db.publish()
    before = stored(db)
    if has_log:
        shutil.copytree(place, copy, ignore=shutil.ignore_patterns("*-shm"))
        assert (copy / "catalog.sqlite-wal").stat().st_size
        place = copy
    db.close()
    remount = ["mount", "-o", "remount,ro", str(small)]
    subprocess.run(remount, check=True)
    with pytest.raises(WarehouseError), corollary.open(small / "new") as db:
        db.load(text=".decl p(x: number)")
    for create in (False, True):
        with corollary.open(place, create=create) as db:
            assert stored(db) == before
            with pytest.raises(WarehouseError, match="C0932"):
                insert(db, "edge", CHAIN[:4])
            assert stored(db) == before
    target = small.parent / "reach.csv"
    for command in (
        ("query", str(place), "reach(0, y)"),
        ("log", str(place)),
        ("changes", str(place)),
        ("status", str(place)),
        ("verify", str(place)),
        ("export", str(place), "reach", "--to", str(target)),
    ):
        done = cli(*command)
        assert (done.exit_code, "error" in done.stderr) == (0, False), command
    assert len(target.read_text().splitlines()) >= 6
    subprocess.run([*remount[:2], "remount,rw", remount[-1]], check=True)
    with corollary.open(place) as db:
        insert(db, "edge", CHAIN[:4])
        assert len(db.relation("reach")) == 10


NO_FILES = """
import resource, os, sys
import corollary
from corollary.errors import CorollaryError
from corollary.warehouse import warehouse
place, left = sys.argv[1], int(sys.argv[2])
warehouse.INLINE_BYTES = 1
db = corollary.open(place)
with db.transaction() as tx:
    tx.insert("edge", [(50, 51)])
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
used = max(map(int, os.listdir("/proc/self/fd")))
resource.setrlimit(resource.RLIMIT_NOFILE, (used + left, hard))
try:
    with db.transaction() as tx:
        tx.insert("edge", [(60, 61)])
except CorollaryError as error:
    print(error)
    assert db.commits == 3, db.commits
try:
    other = corollary.open(place)
except CorollaryError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
with db.transaction() as tx:
    tx.insert("edge", [(60, 61), (70, 71)])
print("done", db.commits)
"""


@pytest.mark.parametrize("left", [1, 4])
def test_no_more_files(left: int, tmp_path: Path) -> None:
    with opened(CLOSURE, place=str(tmp_path)) as db:
        insert(db, "edge", CHAIN[:3])
    found = subprocess.run(
        [sys.executable, "-c", NO_FILES, str(tmp_path), str(left)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    assert "done" in found.stdout
    if left < 4:
        assert re.search(r"error\[C093[235]\]", found.stdout)
    with reopened("", place=str(tmp_path)) as db:
        assert len(db.relation("edge")) == 6
        assert loose_files(db) == set()


# ---------------------------------------------------------------------------- every system call


def traced(injection: str, command: str, place: Path) -> subprocess.CompletedProcess[str]:
    """Run the sequence of `crash_sequence.py`, with some system call made to fail or to kill."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    calls = injection.partition(":")[0]
    return subprocess.run(
        [
            *(strace, "-f", "-qq", "-o", "/dev/null", "-e", f"trace={calls}"),
            *("-e", f"inject={injection}"),
            *(sys.executable, crash_sequence.__file__, command, str(place)),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def demand(place: Path, acknowledged: int) -> int:
    """Assert that a warehouse is whole; return its last commit."""
    with reopened("", place=str(place)) as db:
        assert acknowledged <= db.commits <= acknowledged + 1
        wanted = states()[db.commits]
        assert stored(db) == {name: comparable(rows) for name, rows in wanted.items()}
        if db.commits:
            check_payload(db)
        FIGURES[WHOLE] += 1
        return db.commits


CALLS = {"fsync,fdatasync,rename,unlink,mkdir": 420, "pwrite64,write,ftruncate": 700}
"""System calls, and about how often the sequence makes them."""


@pytest.mark.crash
@pytest.mark.parametrize("calls", CALLS)
@pytest.mark.parametrize("offset", range(4))
def test_killed_at_a_system_call(calls: str, offset: int, tmp_path: Path) -> None:
    killed = 0
    for number in range(1 + offset * STRIDE, CALLS[calls], 4 * STRIDE):
        place = tmp_path / str(number)
        found = traced(f"{calls}:signal=KILL:when={number}", "run", place)
        killed += found.returncode != 0
        assert found.returncode in (0, -9, 137), found.stderr
        demand(place, max(map(int, re.findall(r"^\d$", found.stdout, re.MULTILINE)), default=0))
        crash_sequence.run(str(place), lambda _: None)
        demand(place, len(STEPS))
        shutil.rmtree(place)
    FIGURES[KILLED] += killed
    assert killed or offset  # the last ones are beyond the end


ERRORS = {
    "fsync,fdatasync": ("EIO", 270),
    "rename,mkdir,unlink": ("ENOSPC", 160),
    "pwrite64,ftruncate": ("ENOSPC", 450),
}


@pytest.mark.crash
@pytest.mark.parametrize("calls", ERRORS)
def test_a_system_call_fails(calls: str, tmp_path: Path) -> None:
    """The step fails with a message, or something behind it does; done again it goes through."""
    error, count = ERRORS[calls]
    said: list[Any] = []
    for number in range(1, count, STRIDE):
        place = tmp_path / str(number)
        found = traced(f"{calls}:error={error}:when={number}", "insist", place)
        assert found.returncode == 0, (number, found.stderr)
        said += re.findall(r"error\[(C\d+)\]", found.stderr)
        FIGURES["system calls that failed"] += 1
        demand(place, len(STEPS))
        shutil.rmtree(place)
    assert set(said) <= {"C0932", "C0933", "C0935"}
    assert said
