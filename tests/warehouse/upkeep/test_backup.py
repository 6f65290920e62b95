"""Copies of a warehouse are one state of it, whole or not there."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import corollary
from corollary.database.upkeep import backup
from corollary.database.upkeep.backup import copy
from corollary.database.upkeep.erase import erase
from corollary.database.upkeep.retention import Retention, collect
from corollary.database.upkeep.verify import verify
from corollary.errors import ConflictError, WarehouseError
from corollary.warehouse import warehouse
from corollary.warehouse.catalog import catalog as catalogs
from corollary.warehouse.catalog.retention import list_intents
from corollary.warehouse.files import durable_files
from corollary.warehouse.warehouse import Warehouse
from support.warehouse_history import House, state

if TYPE_CHECKING:
    from support.postgresql_server import Server


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    monkeypatch.setattr(warehouse, "INLINE_BYTES", 600)
    found = House(str(tmp_path / "warehouse"), 2)
    found.change(5)
    found.fold()
    found.change(3)
    found.db.publish()
    yield found
    found.close()


def demand_copy(house: House, place: str) -> None:
    """Demand that a copy answers as the original did, and can be gone on with."""
    with corollary.open(place, create=False) as db:
        for number, seen in house.seen.items():
            if number <= db.commits:
                assert state(db.at(number)) == seen, number
        assert db._store is not None
        assert not verify(db._store.warehouse).findings
        with db.transaction() as tx:
            tx.insert("edge", [("copied", "on")])
        assert tx.commit_number == db.commits
        db.publish()
        assert not verify(db._store.warehouse).findings


@pytest.mark.slow
def test_a_backup_and_back(house: House, tmp_path: Path) -> None:
    house.warehouse.catalog.insert_intent()
    copied = copy(house.warehouse, tmp_path / "backups" / "today")
    assert copied.commit == house.db.commits
    assert copied.oldest == 1
    assert copied.files
    assert copied.bytes
    kept = Warehouse.open(tmp_path / "backups" / "today", create=False)
    restored = copy(kept, tmp_path / "again")
    kept.close()
    assert restored == copied
    assert sorted(each.name for each in (tmp_path / "again").iterdir()) == [
        "catalog.sqlite",
        "data",
    ]
    demand_copy(house, str(tmp_path / "again"))


@pytest.mark.integration
def test_there_and_back_on_postgresql(house: House, server: Server, tmp_path: Path) -> None:
    there = server.place(tmp_path / "there")
    copy(house.warehouse, there)
    with pytest.raises(WarehouseError, match="holds a warehouse already"):
        copy(house.warehouse, there.replace("/there", "/elsewhere"))
    on_server = Warehouse.open(there, create=False)
    copy(on_server, tmp_path / "back")
    on_server.close()
    demand_copy(house, str(tmp_path / "back"))
    demand_copy(house, there)


def test_while_others_commit(house: House, tmp_path: Path) -> None:
    stop = threading.Event()

    def commit() -> None:
        with corollary.open(house.place) as db:
            number = 0
            while not stop.is_set():
                number += 1
                with db.transaction() as tx:
                    tx.insert("edge", [(f"n{number}", "a")])

    other = threading.Thread(target=commit)
    other.start()
    try:
        copied = [copy(house.warehouse, tmp_path / f"copy{at}") for at in range(3)]
    finally:
        stop.set()
        other.join()
    assert copied[0].commit <= copied[-1].commit
    for at, each in enumerate(copied):
        with corollary.open(str(tmp_path / f"copy{at}"), create=False) as db:
            assert db.commits == each.commit
            assert state(db) == state(house.db.at(each.commit))


@pytest.mark.slow
def test_while_gc_takes_files_away(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, once = backup._copy_file, [True]

    def meanwhile(source: Path, target: Path, checksum: str) -> int:
        if once:
            once.clear()
            collect(house.warehouse, Retention(commits=1))
        return real(source, target, checksum)

    monkeypatch.setattr(backup, "_copy_file", meanwhile)
    copied = copy(house.warehouse, tmp_path / "copy")
    assert copied.oldest == 1, "gc leaves all files alone while they are copied"
    demand_copy(house, str(tmp_path / "copy"))
    assert collect(house.warehouse).files
    house.demand_sound()


def test_an_erasure_does_not_wait(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, once = backup._copy_file, [True]

    def meanwhile(source: Path, target: Path, checksum: str) -> int:
        if once:
            once.clear()
            erase(house.db, ['node("a", 1)'])
            house.note()
        return real(source, target, checksum)

    monkeypatch.setattr(backup, "_copy_file", meanwhile)
    copied = copy(house.warehouse, tmp_path / "copy")
    assert copied.oldest == copied.commit == house.db.commits
    with corollary.open(str(tmp_path / "copy"), create=False) as db:
        assert state(db) == house.seen[house.db.commits]


def test_a_long_copy_shows_signs_of_life(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogs, "BEAT_SECONDS", 0.0)
    real, beats = backup._copy_file, set()

    def watched(source: Path, target: Path, checksum: str) -> int:
        beats.update(each.heartbeat for each in list_intents(house.warehouse.catalog))
        return real(source, target, checksum)

    monkeypatch.setattr(backup, "_copy_file", watched)
    assert len(beats) <= copy(house.warehouse, tmp_path / "copy").files
    assert len(beats) > 1
    assert not list_intents(house.warehouse.catalog)


def test_when_files_vanish_all_the_time(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(source: Path, target: Path, checksum: str) -> int:
        raise WarehouseError.damaged(source)

    monkeypatch.setattr(backup, "_copy_file", gone)
    monkeypatch.setattr(backup, "_referenced_files", iter_once(backup._referenced_files))
    with pytest.raises(ConflictError, match="nothing was copied"):
        copy(house.warehouse, tmp_path / "copy")


def iter_once(real: Any) -> Any:
    """Return what names the files of a copy, but none of the original."""

    def named(catalog: Any) -> Any:
        return real(catalog) if "unfinished" in catalog.location else iter(())

    return named


def test_damage_is_not_copied(house: House, tmp_path: Path) -> None:
    file = next(house.root.glob("data/*/snapshot-0.parquet"))
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    with pytest.raises(WarehouseError, match="C0934") as raised:
        copy(house.warehouse, tmp_path / "copy")
    assert file.name in str(raised.value)
    assert not list((tmp_path / "copy").iterdir())
    file.unlink()
    with pytest.raises(WarehouseError, match="C0933"):
        copy(house.warehouse, tmp_path / "copy")


def test_refused_places(house: House, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "letter").write_text("dear")
    file = tmp_path / "file"
    file.write_text("")
    for place, message in (
        (full, "is not empty"),
        (house.root, "is in the warehouse itself"),
        (house.root / "data" / "copy", "is in the warehouse itself"),
        ("mysql://host/name", "C0930"),
        (file, "cannot be read"),
    ):
        with pytest.raises(WarehouseError, match=message):
            copy(house.warehouse, place)
    assert [each.name for each in full.iterdir()] == ["letter"]


def test_an_empty_warehouse(place: str, tmp_path: Path) -> None:
    with corollary.open(place) as db:
        assert db._store is not None
        assert copy(db._store.warehouse, tmp_path / "copy").commit == 0
    with corollary.open(str(tmp_path / "copy"), create=False) as db:
        assert db.commits == 0


COPY = """
import os, signal, sys
from corollary.database.upkeep import backup
from corollary.warehouse.warehouse import Warehouse
real = backup._copy_file
left = [3]
def dying(*arguments):
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*arguments)
backup._copy_file = dying
backup.copy(Warehouse.open(sys.argv[1], create=False), sys.argv[2])
"""


@pytest.mark.integration
def test_killed_half_way(house: House, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    command = [sys.executable, "-c", COPY, house.place, str(target)]
    assert subprocess.run(command, check=False, env=os.environ).returncode == -9
    with pytest.raises(WarehouseError, match="C0933"):
        Warehouse.open(target, create=False)
    copy(house.warehouse, target)
    demand_copy(house, str(target))


def test_disk_full(house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(root: Path, name: str, data: bytes) -> str:
        raise WarehouseError.cannot_write(root / name, OSError(28, "No space left on device"))

    monkeypatch.setattr(durable_files, "write", full)
    with pytest.raises(WarehouseError, match="make room"):
        copy(house.warehouse, tmp_path / "copy")
    assert not list((tmp_path / "copy").iterdir())
