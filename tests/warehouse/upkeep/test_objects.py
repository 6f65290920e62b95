"""Upkeep of warehouses in an object store: damage, copies, published tables, what is removed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import corollary
from corollary.database.upkeep.backup import UNFINISHED, copy
from corollary.database.upkeep.erase import erase
from corollary.database.upkeep.retention import Retention, collect
from corollary.database.upkeep.status import status
from corollary.database.upkeep.verify import repair, verify
from corollary.errors import WarehouseError
from corollary.warehouse import warehouse as warehouses
from corollary.warehouse.files import durable_files
from corollary.warehouse.files.object_path import ObjectPath
from corollary.warehouse.publishing.publisher import Publisher
from corollary.warehouse.warehouse import Warehouse
from corollary.warehouse.warehouse_catalog import parse_location
from support.postgresql_server import Server
from support.processes.object_store_server import ObjectStoreServer
from support.warehouse_history import House, state

pytestmark = pytest.mark.integration

Harm = Callable[[ObjectPath], object]


@pytest.fixture
def places(server: Server, object_store_server: ObjectStoreServer) -> Callable[[], str]:
    """A function that returns the place of a new warehouse in the store."""
    return lambda: server.place(object_store_server.place())


@pytest.fixture
def house(places: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    """A warehouse with a past, folded and published."""
    monkeypatch.setattr(warehouses, "INLINE_BYTES", 1)
    found = House(places(), 1)
    found.change(3)
    found.fold()
    found.change(2)
    found.db.publish()
    yield found
    found.close()


def root(house: House) -> ObjectPath:
    assert isinstance(house.root, ObjectPath)
    return house.root


def flip(path: ObjectPath) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(bytes(data))


def lose(path: ObjectPath) -> None:
    path.unlink()


@pytest.mark.matrix(4)
@pytest.mark.parametrize("harm", [flip, lose])
@pytest.mark.parametrize(
    "pattern",
    ["data/*/snapshot-*", "data/*/index-*", "tables/path/*.parquet", "tables/path/*/*0.json"],
)
def test_what_is_damaged_is_found_and_rebuilt(house: House, pattern: str, harm: Harm) -> None:
    paths = list(root(house).glob(pattern))
    assert paths
    for path in paths:
        harm(path)
    found = verify(house.warehouse)
    # A file of a table is checked by its size, and by its rows: a flipped byte may be in neither.
    assert found.findings or (harm is flip and pattern.startswith("tables"))
    mended = repair(house.warehouse)
    assert not mended.findings, "\n".join(map(str, mended.findings))
    house.db.publish()
    house.demand_past(1)
    collect(house.warehouse, Retention())
    house.demand_sound()


@pytest.mark.long
def test_a_copy_to_a_directory_and_back(
    house: House, places: Callable[[], str], tmp_path: Path
) -> None:
    copied = copy(house.warehouse, tmp_path / "copy")
    assert copied.files
    kept = Warehouse.open(tmp_path / "copy", create=False)
    again = places()
    assert copy(kept, again) == copied
    kept.close()
    other = places()
    assert copy(house.warehouse, other) == copied
    for place in (str(tmp_path / "copy"), again, other):
        with corollary.open(place, create=False) as db:
            for number, seen in house.seen.items():
                assert state(db.at(number)) == seen, number
            assert db._store is not None
            assert not verify(db._store.warehouse).findings
            assert not (db._store.warehouse.root / UNFINISHED).exists()
            with db.transaction() as tx:
                tx.insert("edge", [("copied", "on")])
            assert tx.commit_number == db.commits
            db.publish()


def test_a_copy_that_is_interrupted(
    house: House, places: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is left if it can be helped; and what is left is no obstacle."""
    fresh = places()
    target = parse_location(fresh)[0]
    assert isinstance(target, ObjectPath)
    write = durable_files.write

    def interrupted(*arguments: Any) -> str:
        write(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(durable_files, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            copy(house.warehouse, fresh)
    assert list(target.entries()) == []
    (target / UNFINISHED).write_bytes(b"")  # as a process leaves it that was killed
    (target / "data/1/0.parquet").write_bytes(b"half")
    copy(house.warehouse, fresh)
    with corollary.open(fresh, create=False) as db:
        assert state(db) == house.seen[house.db.commits]
        assert db._store is not None
        assert not (target / "data/1/0.parquet").exists()


def test_places_that_are_refused(house: House, places: Callable[[], str]) -> None:
    inside = places().partition("?")[0] + f"?data={root(house) / 'data' / 'copy'}"
    with pytest.raises(WarehouseError, match="in the warehouse itself"):
        copy(house.warehouse, inside)
    full = places().partition("?")[0] + f"?data={root(house).parent}"
    with pytest.raises(WarehouseError, match="is not empty"):
        copy(house.warehouse, full)


def test_superseded_objects_go_with_gc(house: House) -> None:
    house.change(3)
    house.fold()
    house.db.publish()
    collected = collect(house.warehouse, Retention(commits=1))
    assert collected.files
    Publisher(house.root, house.warehouse.catalog).clean(0)
    table = DeltaTable(str(house.root / "tables/path"))
    held = {uri.rpartition("/")[2] for uri in table.file_uris()}
    assert {each.name for each in root(house).glob("tables/path/*.parquet")} == held
    house.demand_past(house.db.commits)
    house.demand_sound()


def test_the_status_counts_bytes(house: House) -> None:
    found = status(house.warehouse)
    assert found.bytes["snapshots"] > 0
    assert found.bytes["index"] > 0
    assert found.bytes["tables"] > 0
    assert found.bytes["loose"] == 0


def test_a_published_table(house: House) -> None:
    def shown() -> list[tuple[str, str]]:
        table = DeltaTable(str(house.root / "tables/path")).to_pyarrow_table()
        return sorted((row["x"], row["y"]) for row in table.to_pylist())

    assert shown() == sorted(house.db.relation("path").rows())
    for _ in range(3):
        house.change(1)
        house.db.publish()
        assert shown() == sorted(house.db.relation("path").rows())
    write_deltalake(
        str(house.root / "tables/path"), pa.table({"x": ["!"], "y": ["!"]}), mode="append"
    )
    assert "by another writer" in str(verify(house.warehouse).findings)
    assert not repair(house.warehouse).findings
    assert shown() == sorted(house.db.relation("path").rows())


def test_a_change_data_feed(places: Callable[[], str]) -> None:
    with corollary.open(places(), engine="local") as db:
        db.load(text='.decl p(x: number)\n.output p(change_data_feed="true")\n')
        with db.transaction() as tx:
            tx.insert("p", [(1,), (2,)])
        db.publish()
        with db.transaction() as tx:
            tx.insert("p", [(3,)])
            tx.delete("p", [(1,)])
        db.publish()
        assert db._store is not None
        warehouse = db._store.warehouse
        collect(warehouse, Retention())
        feed = DeltaTable(str(warehouse.root / "tables/p")).load_cdf()
        rows = pa.RecordBatchReader.from_stream(feed).read_all().to_pylist()
        found = sorted((e["_commit_version"], e["_change_type"], e["x"]) for e in rows)
        assert found == [(0, "insert", 1), (0, "insert", 2), (1, "delete", 1), (1, "insert", 3)]
        assert not verify(warehouse).findings


def test_what_is_erased_is_in_no_object(house: House) -> None:
    with house.db.transaction() as tx:
        tx.insert("edge", [("secret-of-mine", "a")])
    house.db.publish()
    erase(house.db, ['edge("secret-of-mine", "a")'])
    for path, _ in root(house).entries():
        assert b"secret-of-mine" not in path.read_bytes(), path
    assert not verify(house.warehouse).findings
