"""However often `corollary watch` is killed, every batch of a stream is done exactly once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.database.database import Database
from corollary.database.upkeep.verify import verify
from support.figures import FIGURES, KILLED
from support.streaming.stream_frames import PROGRAM, arrive, closure

pytestmark = pytest.mark.crash

BATCHES = int(os.environ.get("BATCHES", "200"))
KILLS = int(os.environ.get("KILLS", "14"))
POINTS = ("before_commit", "after_commit", "before_publish", "after_publish")
"""Where a process dies by itself; the other kills come from outside, at any moment."""
LONGEST = 0.5
"""Seconds at most between a line of the process and a kill from outside."""
WATCHED = PROGRAM.replace(
    ".decl link",
    '.input direct_link(IO=stream, filename="in", format=jsonl, op="op", max_files=1)\n.decl link',
)

Edge = tuple[str, str]


def events(chance: random.Random, held: set[Edge], number: int) -> list[tuple[str, Edge]]:
    """Events of a batch, of which none is without effect; a second time they would have others."""
    toggled = ("even", "odd")
    found = [("delete" if toggled in held else "insert", toggled)]
    found.append(("insert", (f"n{number}", f"n{number + 1}")))
    old = sorted(held - {toggled})
    if old and number % 3 == 0:
        found.append(("delete", chance.choice(old)))
    return found


def start(directory: Path, fault: str = "", *pace: str) -> subprocess.Popen[str]:
    arguments = ["network.dl", "--warehouse", "w", "--engine", "local", "--format", "json"]
    arguments += pace or ["--once"]
    return subprocess.Popen(
        [sys.executable, "-u", "-m", "corollary", "watch", *arguments],
        cwd=directory,
        env={**os.environ, "COROLLARY_FAULT": fault},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def said(process: subprocess.Popen[str], most: int | None = None) -> list[dict[str, Any]]:
    """What a process tells: so many lines, or all."""
    assert process.stdout is not None
    found = []
    while most is None or len(found) < most:
        line = process.stdout.readline()
        if not line.endswith("\n"):
            break
        found.append(json.loads(line))
    return found


def check_commits(db: Database, wanted: list[tuple[set[Edge], set[Edge]]]) -> None:
    """Check that the commits are the batches, in their order, and none is missing or done twice.

    If Spark is killed after it has noted the files of a batch, and before the batch itself, it puts
    these files and the next ones into one batch: a kill may make one commit of two batches.
    """
    assert 1 + BATCHES - KILLS <= db.commits <= 1 + BATCHES  # the first one is that of the program
    batches = iter(wanted)
    held: set[Edge] = set()
    for number in range(2, db.commits + 1):
        change = db.changes(number)["direct_link"]
        gained = {tuple(row.values()) for row in change.added.to_pylist()}
        lost = {tuple(row.values()) for row in change.removed.to_pylist()}
        assert not gained & held
        assert lost <= held
        after, expected = (held | gained) - lost, held
        while expected != after:
            added, removed = next(batches)  # none is left: the commit is no row of batches
            expected = (expected | added) - removed
        held = after
    assert list(batches) == []


def test_every_batch_is_done_once(tmp_path: Path) -> None:
    chance = random.Random(f"{BATCHES} {KILLS}")
    (tmp_path / "network.dl").write_text(WATCHED)
    held: set[Edge] = set()
    wanted: list[tuple[set[Edge], set[Edge]]] = []
    for number in range(BATCHES):
        batch = events(chance, held, number)
        rows = [{"op": op, "src": src, "dst": dst} for op, (src, dst) in batch]
        arrive(tmp_path / "in", f"{number:03}.jsonl", *rows, at=1_000_000 + number)
        added, removed = ({edge for op, edge in batch if op == o} for o in ("insert", "delete"))
        held = (held | added) - removed
        wanted.append((added, removed))

    died = committed = 0
    for number in range(KILLS):
        if number % 2:
            point = POINTS[number // 2 % len(POINTS)]
            with start(tmp_path, f"{point}:{chance.randint(2, 16)}") as process:
                told = said(process)
            assert process.returncode in (0, -signal.SIGKILL), told
        else:
            with start(tmp_path) as process:
                told = said(process, chance.randint(1, 12))
                time.sleep(chance.random() * LONGEST)
                os.killpg(process.pid, signal.SIGKILL)
        died += process.returncode == -signal.SIGKILL
        with corollary.open(tmp_path / "w", engine="local") as db:
            assert db.commits >= max([committed, *(each["commit"] or 0 for each in told)])
            committed = db.commits
    assert died >= KILLS // 2
    FIGURES.update({KILLED: died, "batches of a stream": BATCHES})

    with start(tmp_path) as process:
        told = said(process)
    assert process.returncode == 0
    with corollary.open(tmp_path / "w", engine="local") as db:
        assert set(db.relation("direct_link").rows()) == held
        assert set(db.relation("link").rows()) == closure(held)
        check_commits(db, wanted)
        assert db._store is not None
        assert verify(db._store.warehouse).findings == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_between_two_batches_when_asked(number: int, tmp_path: Path) -> None:
    (tmp_path / "network.dl").write_text(WATCHED)
    for at in range(20):
        arrive(tmp_path / "in", f"{at:02}.jsonl", {"op": "+", "src": f"n{at}", "dst": f"n{at + 1}"})
    with start(tmp_path, "", "--interval", "0.1") as process:
        assert len(said(process, 4)) == 4
        process.send_signal(number)
        rest = said(process)
    assert process.returncode == 0
    with corollary.open(tmp_path / "w", engine="local") as db:
        assert db.commits == 4 + len(rest)
    with start(tmp_path) as process:
        told = said(process)
    assert process.returncode == 0
    with corollary.open(tmp_path / "w", engine="local") as db:
        assert db.commits == 21
        assert set(db.relation("direct_link").rows()) == {(f"n{n}", f"n{n + 1}") for n in range(20)}
    assert [each["batch"] for each in told[1:]][-1] == 19
