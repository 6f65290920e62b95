"""Tuples that fill a relation are written once: as change, snapshot and published table."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import corollary
from corollary import fault
from corollary.core.arrow import to_python
from corollary.database.database import Database
from corollary.database.upkeep.backup import copy
from corollary.database.upkeep.erase import erase
from corollary.database.upkeep.repair import repair
from corollary.database.upkeep.retention import Retention, collect
from corollary.database.upkeep.status import status
from corollary.database.upkeep.verify import verify
from corollary.warehouse import warehouse
from corollary.warehouse.catalog.inventory import read_inventory
from corollary.warehouse.files import multi_file_table
from support.maintained_database import delete, insert
from support.warehouse_scenarios import loose_files, root_of, store_of

PROGRAM = """
.decl edge(x: number, name: symbol, weight: decimal(8,2)?)
.output edge
.decl named(name: symbol, x: number)
named(n, x) :- edge(x, n, _).
.output named
.decl count_of(x: unsigned)
.output count_of
"""
FILE_ROWS = 8
EDGES = [(at, f"name {at % 5}", None if at % 3 else at) for at in range(30)]
LATER = [(at, "later", at) for at in range(30, 34)]


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """A database with files of few rows, filled by its second commit, and published."""
    monkeypatch.setattr(warehouse, "INLINE_BYTES", 1)
    monkeypatch.setattr(warehouse, "FILE_MAX_ROWS", FILE_ROWS)
    with corollary.open(tmp_path / "w") as found:
        found.load(text=PROGRAM)
        with found.transaction(publish=True) as tx:
            tx.insert("edge", EDGES)
            tx.insert("count_of", [(1,), (2**64 - 1,)])
        assert tx.published is not None
        assert not tx.published.problems
        yield found


def snapshot_files(db: Database, relation: str, at: int = 2) -> list[Path]:
    """Return the files of the snapshot of a relation, without the list that names them."""
    found = store_of(db).warehouse.catalog.latest_snapshots(at)[relation]
    return multi_file_table.checked_files(root_of(db), found.path, found.checksum)


def table_files(db: Database, relation: str) -> list[Path]:
    directory = root_of(db) / "tables" / relation
    return sorted(directory / Path(each).name for each in table(db, relation).file_uris())


def table(db: Database, relation: str) -> DeltaTable:
    return DeltaTable(str(root_of(db) / "tables" / relation))


def published(db: Database, relation: str) -> list[Any]:
    return sorted(map(str, to_python(table(db, relation).to_pyarrow_table())))


def held(db: Database, relation: str) -> list[Any]:
    return sorted(map(str, db.relation(relation).rows()))


def inodes(paths: list[Path]) -> set[int]:
    return {path.stat().st_ino for path in paths}


def demand_sound(db: Database) -> None:
    assert not verify(store_of(db).warehouse).findings
    assert not loose_files(db)
    for relation in ("edge", "named"):
        assert published(db, relation) == held(db, relation)


def test_change_snapshot_and_table_are_one_file(db: Database) -> None:
    catalog = store_of(db).warehouse.catalog
    snapshots = catalog.latest_snapshots(2)
    for name in ("edge", "named", "count_of"):
        ((_, change),) = catalog.changes(1, 2, name)
        assert change.is_full
        assert (change.path, change.checksum) == (snapshots[name].path, snapshots[name].checksum)
    for name in ("edge", "named"):
        files = snapshot_files(db, name)
        assert len(files) == 4
        assert max(pq.read_metadata(each).num_rows for each in files) <= FILE_ROWS
        assert inodes(files) == inodes(table_files(db, name))
    # Delta has no unsigned integers: this table has a file of its own.
    assert not inodes(snapshot_files(db, "count_of")) & inodes(table_files(db, "count_of"))
    assert status(store_of(db).warehouse).bytes["tables"] < sum(
        path.stat().st_size for path in root_of(db).rglob("*.parquet")
    )
    demand_sound(db)


def test_bounds_come_with_the_file(db: Database) -> None:
    """Readers skip files by them, and so does the next publication."""
    actions = table(db, "edge").get_add_actions(flatten=True)
    found = {name: actions.column(name).to_pylist() for name in ("min.x", "max.x")}
    assert sorted(found["min.x"]) == [0, 7, 15, 22]
    assert sorted(found["max.x"]) == [6, 14, 21, 29]
    before = set(table_files(db, "edge"))
    with db.transaction(publish=True) as tx:
        tx.delete("edge", [EDGES[0]])
        tx.insert("edge", LATER)
    assert len(before - set(table_files(db, "edge"))) == 1
    demand_sound(db)


def test_the_past(db: Database) -> None:
    with db.transaction(publish=True) as tx:
        tx.delete("edge", EDGES[:20])
        tx.insert("edge", LATER)
    assert len(db.at(2).relation("edge")) == len(db.at(2).relation("named")) == 30
    assert len(db.at(1).relation("edge")) == 0
    for each in root_of(db).glob("data/*/index-*"):
        each.unlink()
    with corollary.open(root_of(db)) as again:
        assert held(again, "edge") == held(db, "edge")
        assert held(again.at(2), "named") == held(db.at(2), "named")


def test_gc_removes_a_file_with_its_last_row(db: Database) -> None:
    first = snapshot_files(db, "edge")
    insert(db, "edge", LATER, publish=True)
    store_of(db).fold(db._state)
    collect(store_of(db).warehouse)
    assert all(each.exists() for each in first)  # the change of commit 2, and its snapshot
    assert collect(store_of(db).warehouse, Retention(commits=1), is_dry=True).files > 0
    collect(store_of(db).warehouse, Retention(commits=1))
    assert not any(each.exists() for each in first)
    assert len(table_files(db, "edge")) == 5  # their other names
    demand_sound(db)


def test_a_fold_leaves_the_files_of_changes(db: Database) -> None:
    """Of many snapshots some are dropped, but not the file of one that is a change, too."""
    filled = snapshot_files(db, "edge")
    for rows in (LATER[:1], LATER[1:2]):
        insert(db, "edge", rows)
        store_of(db).fold(db._state)
    delete(db, "edge", db.relation("edge").rows())
    insert(db, "edge", EDGES[:20])  # fills it again: a change, and a snapshot
    again = snapshot_files(db, "edge", db.commits)
    for at in range(40, 48):
        insert(db, "edge", [(at, "x", None)])
        store_of(db).fold(db._state)
    assert all(each.exists() for each in (*filled, *again))
    commits = [each.commit for each in _snapshots(db, "edge")]
    assert len(commits) < 8
    assert len(db.at(6).relation("edge")) == 20
    db.publish()
    demand_sound(db)


def _snapshots(db: Database, relation: str) -> list[Any]:
    return read_inventory(store_of(db).warehouse.catalog).snapshots[relation]


def test_a_backup(db: Database, tmp_path: Path) -> None:
    copy(store_of(db).warehouse, tmp_path / "copy")
    shutil.rmtree(root_of(db) / "data")
    with corollary.open(tmp_path / "copy") as other:
        assert held(other, "edge") == held(db, "edge")
        other.publish()
        demand_sound(other)
        assert inodes(snapshot_files(other, "edge")) == inodes(table_files(other, "edge"))


def test_a_table_that_is_deleted(db: Database) -> None:
    shutil.rmtree(root_of(db) / "tables" / "edge")
    assert len(db.at(2).relation("edge")) == 30
    db.publish()
    demand_sound(db)
    assert inodes(snapshot_files(db, "edge")) == inodes(table_files(db, "edge"))


def test_a_table_whose_file_is_overwritten(db: Database) -> None:
    """The snapshot is damaged as well: that is found, and made again from the index."""
    store_of(db).fold(db._state)
    victim = table_files(db, "edge")[0]
    victim.write_bytes(victim.read_bytes()[:-8] + b"????????")
    found = verify(store_of(db).warehouse).findings
    assert {str(each.kind) for each in found} >= {"change", "snapshot"}
    assert all(each.is_repairable for each in found)
    assert not repair(store_of(db).warehouse).findings
    assert victim.stat().st_nlink < 3
    collect(store_of(db).warehouse)
    with corollary.open(root_of(db)) as again:
        assert held(again, "edge") == held(again.at(2), "edge")
        assert len(again.relation("edge")) == 30
        demand_sound(again)


def test_what_is_erased_is_in_no_file(db: Database) -> None:
    insert(db, "edge", [(99, "secret", 7)], publish=True)
    insert(db, "edge", LATER, publish=True)
    erase(db, ['edge(99, "secret", 7.00)'])
    for path in root_of(db).rglob("*.parquet"):
        assert "secret" not in str(pq.ParquetFile(path).read().to_pydict()), path
    for path in (each for each in root_of(db).rglob("*") if each.is_file()):
        assert b"secret" not in path.read_bytes(), path
    demand_sound(db)
    assert inodes(snapshot_files(db, "edge", db.commits)) == inodes(table_files(db, "edge"))


def test_a_file_system_without_links(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    shutil.rmtree(root_of(db) / "tables")
    db.publish()
    demand_sound(db)
    assert not inodes(snapshot_files(db, "edge")) & inodes(table_files(db, "edge"))


class Killed(BaseException):
    """What a test raises where a process would be killed."""


def test_a_publication_that_is_killed_after_the_links(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(root_of(db) / "tables")

    def die(point: str) -> None:
        if point == "before_publish":
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(fault, "hit", die)
        with pytest.raises(Killed):
            db.publish()
    db.publish()
    collect(store_of(db).warehouse)
    demand_sound(db)
    assert len(list((root_of(db) / "tables/edge").glob("*.parquet"))) == 4


def test_a_snapshot_that_is_damaged_is_not_published(db: Database) -> None:
    """What the engine holds is published instead."""
    shutil.rmtree(root_of(db) / "tables")
    victim = snapshot_files(db, "edge")[1]
    victim.write_bytes(victim.read_bytes()[:-8] + b"????????")
    db.publish()
    assert published(db, "edge") == held(db, "edge")
    assert victim.stat().st_nlink == 1


@pytest.mark.parametrize("file_rows", [FILE_ROWS, 1000])
def test_a_second_writer_does_not_let_the_tuples_of_the_first_be_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file_rows: int
) -> None:
    """The first one's part is what the relation was: its files get second names."""
    monkeypatch.setattr(warehouse, "INLINE_BYTES", 1)
    monkeypatch.setattr(warehouse, "FILE_MAX_ROWS", file_rows)
    (tmp_path / "edge.csv").write_text("".join(f"{at},n{at % 5}\n" for at in range(30)))
    program = tmp_path / "p.dl"
    program.write_text('.decl edge(x: number, name: symbol)\n.input edge(filename="edge.csv")\n')
    rows = {(at, f"n{at % 5}") for at in range(30)}
    with corollary.open(tmp_path / "w") as db:
        db.run(program, facts=tmp_path)
        insert(db, "edge", [(100, "more"), (3, "n3")])
        linked = [each for each in root_of(db).rglob("*.parquet") if each.stat().st_nlink > 1]
        assert len(linked) == 2 * -(-30 // file_rows)
    with corollary.open(tmp_path / "w") as db:
        assert set(db.relation("edge").rows()) == {*rows, (100, "more")}
        delete(db, "edge", [(3, "n3"), (4, "n4"), (100, "more")])
        assert set(db.relation("edge").rows()) == rows
        assert not verify(store_of(db).warehouse).findings
        store_of(db).fold(db._state)
        collect(store_of(db).warehouse, Retention(commits=1))
        assert not loose_files(db)
    with corollary.open(tmp_path / "w") as db:
        assert set(db.relation("edge").rows()) == rows
