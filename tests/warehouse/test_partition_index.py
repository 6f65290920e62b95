"""Index files of partitions in an object store: kept there, fetched by tasks, part of upkeep."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.core.engine import PARTITION_SEPARATOR
from corollary.database.database import Database
from corollary.database.upkeep.backup import copy
from corollary.database.upkeep.retention import Retention, collect
from corollary.database.upkeep.verify import verify
from corollary.engines.spark.relation import source
from corollary.engines.spark.relation.shared_files import CACHE_VARIABLE, ORIGINS
from corollary.errors import WarehouseError
from corollary.warehouse import partition_index
from corollary.warehouse.files.object_path import ObjectPath
from corollary.warehouse.files.places import files_below
from corollary.warehouse.warehouse import Warehouse
from support.postgresql_server import Server
from support.processes.object_store_server import ObjectStoreServer
from support.spark.in_process_partitions import InProcess, share_out
from support.warehouse_scenarios import loose_files, store_of

pytestmark = pytest.mark.integration

PROGRAM = """
.decl sale(shop: number, item: symbol, pieces: number)
.decl sold(item: symbol, pieces: number)
sold(i, n) :- sale(_, i, _), n = sum p : { sale(_, i, p) }.
"""
SALES = [(shop, f"item {item}", shop + item) for shop in range(20) for item in range(5)]


@pytest.fixture
def place(
    server: Server, object_store_server: ObjectStoreServer, monkeypatch: pytest.MonkeyPatch
) -> str:
    share_out(monkeypatch, "partitions")
    return server.place(object_store_server.place())


def sums(rows: list[tuple[int, str, int]]) -> set[tuple[Any, ...]]:
    found: dict[str, int] = {}
    for _, item, pieces in rows:
        found[item] = found.get(item, 0) + pieces
    return set(found.items())


def fill(place: str) -> None:
    """A warehouse with an index, and a change since."""
    with corollary.open(place) as db:
        db.load(text=PROGRAM)
        with db.transaction() as tx:
            tx.insert("sale", SALES[:-1])
        store_of(db).fold(db._state)
        with db.transaction() as tx:
            tx.insert("sale", SALES[-1:])


def partition_objects(db: Database) -> list[ObjectPath]:
    root = store_of(db).warehouse.root
    assert isinstance(root, ObjectPath)
    return [root / each.name for each in files_below(root) if PARTITION_SEPARATOR in each.name]


@pytest.fixture
def no_snapshots(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is opened inside must not read snapshots: the index has all that they have."""
    read = Warehouse.snapshot_rows

    def refuse(*given: Any) -> Any:
        assert given[-1] is None, "tasks read a snapshot"
        return read(*given)  # `verify` has an engine without tasks

    with monkeypatch.context() as patch:
        patch.setattr(Warehouse, "snapshot_rows", refuse)
        yield


def check(db: Database) -> None:
    assert set(db.relation("sale").rows()) == set(SALES)
    assert set(db.relation("sold").rows()) == sums(SALES)
    assert db._state.engine.is_partitioned("sale")  # type: ignore[attr-defined]


@pytest.mark.usefixtures("no_snapshots")
def test_partitions_are_fetched_and_not_made_anew(place: str) -> None:
    fill(place)
    with corollary.open(place) as db:
        assert partition_objects(db)
        check(db)
        with db.transaction() as tx:
            tx.delete("sale", SALES[:3])
        assert set(db.relation("sold").rows()) == sums(SALES[3:])
        store_of(db).fold(db._state)
    with corollary.open(place) as db:
        assert set(db.relation("sale").rows()) == set(SALES[3:])
        assert not verify(store_of(db).warehouse).findings


def fetched(db: Database) -> tuple[int, int]:
    """How many files and directories of partitions were fetched, and how many could be."""
    root = Path(db._state.engine.partition_place.root)  # type: ignore[attr-defined]
    names = json.loads((root / ORIGINS).read_text())
    return sum((root / each).exists() for each in names), len(names)


@pytest.mark.usefixtures("no_snapshots")
def test_objects_are_fetched_when_something_is_looked_up(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the partitions that are not asked, nothing; and a fold puts none of them again."""
    monkeypatch.setattr(source, "BUILD_MIN_TUPLES", 1)  # each partition has files of its own
    fill(place)
    with corollary.open(place) as db:
        before, every = fetched(db)
        assert before < every  # the change since the index has looked up its tuples
        assert db.query("sale(3, item, _)").num_rows == 5
        found = fetched(db)[0]
        assert before <= found <= before + 1
        objects = set(partition_objects(db))
        store_of(db).fold(db._state)
        added = set(partition_objects(db)) - objects
        assert 0 < len(added) < len(objects)
    monkeypatch.setenv(CACHE_VARIABLE, "1")
    with corollary.open(place) as db:
        assert {db.query(f"sale({shop}, i, _)").num_rows for shop in range(20)} == {5}
        assert fetched(db)[0] == 1
        check(db)
        assert not verify(store_of(db).warehouse).findings


@pytest.mark.usefixtures("no_snapshots")
def test_upkeep(place: str, server: Server, object_store_server: ObjectStoreServer) -> None:
    """`gc` keeps what is named, `verify` reads it, a backup has it."""
    fill(place)
    with corollary.open(place) as db:
        warehouse = store_of(db).warehouse
        collect(warehouse, Retention())
        assert not verify(warehouse).findings
        assert not loose_files(db)
        target = server.place(object_store_server.place())
        copy(warehouse, target)
    with corollary.open(target) as db:
        assert partition_objects(db)
        check(db)


def test_an_object_that_is_lost_or_damaged(place: str) -> None:
    """Then the snapshots tell the same, and `verify` says what is wrong."""
    fill(place)
    for harm in ("damage", "lose"):
        with corollary.open(place) as db:
            each = partition_objects(db)[0]
        data = bytearray(each.read_bytes())
        data[len(data) // 2] ^= 0xFF
        each.write_bytes(bytes(data)) if harm == "damage" else each.unlink()
        with corollary.open(place) as db:
            found = verify(store_of(db).warehouse).findings
            assert any(each.name in str(finding) for finding in found)
            if harm == "lose":
                check(db)


def test_a_fold_that_fails_midway(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was put is an orphan, which `gc` removes; the warehouse is as it was."""
    put, done = partition_index.put_object, []

    def fail(item: tuple[ObjectPath, Path]) -> str:
        if len(done) == 3:
            raise WarehouseError.cannot_write(item[0], OSError(5, "the request failed"))
        done.append(item[0])
        return put(item)

    with corollary.open(place) as db:
        db.load(text=PROGRAM)
        with db.transaction() as tx:
            tx.insert("sale", SALES)
        with monkeypatch.context() as patch:
            patch.setattr(partition_index, "put_object", fail)
            patch.setattr(
                InProcess, "_run_tasks", lambda _, task, some, __: list(map(task, some.values()))
            )
            with pytest.raises(WarehouseError, match="C0932"):
                store_of(db).fold(db._state)
        assert all(each.exists() for each in done)
    with corollary.open(place) as db:
        check(db)
        assert loose_files(db)
        collect(store_of(db).warehouse, Retention())
        assert not any(each.exists() for each in done)
        check(db)
