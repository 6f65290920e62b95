"""Requests to an object store that fail, time out and are repeated: nothing lost, nothing twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest
from deltalake import DeltaTable

import corollary
from corollary.database.upkeep.retention import Retention, collect
from corollary.database.upkeep.verify import verify
from corollary.errors import CorollaryError, WarehouseError
from corollary.warehouse import warehouse as warehouses
from corollary.warehouse.files import object_store
from corollary.warehouse.files.object_path import ObjectPath
from corollary.warehouse.files.places import place_of
from support.maintained_database import closure, insert, opened, pairs, reopened
from support.postgresql_server import Server
from support.processes.faulty_store import FAULTS, FaultyStore, faulty_store
from support.processes.object_store_server import KEY, SECRET, ObjectStoreServer
from support.selection import examples
from support.warehouse_history import House
from support.warehouse_scenarios import loose_files, store_of

pytestmark = pytest.mark.integration


@pytest.fixture
def faulty(
    object_store_server: ObjectStoreServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FaultyStore]:
    """The object store behind a proxy; requests time out after a second."""
    monkeypatch.setattr(object_store, "REQUEST_TIMEOUT_SECONDS", 1.0)
    monkeypatch.setattr(object_store, "BACKOFF_SECONDS", 0.01)
    monkeypatch.setattr(object_store, "RETRY_PAUSES_SECONDS", (0.01, 0.05, 0.1, 0.1, 0.1))
    with faulty_store(object_store_server.url) as (store, url):
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        object_store.open_store.cache_clear()
        yield store
    object_store.open_store.cache_clear()


@pytest.fixture
def folder(object_store_server: ObjectStoreServer, faulty: FaultyStore) -> ObjectPath:
    """A place in the store."""
    found = place_of(object_store_server.place())
    assert isinstance(found, ObjectPath)
    return found


@pytest.fixture
def place(server: Server, object_store_server: ObjectStoreServer, faulty: FaultyStore) -> str:
    """A warehouse in the store."""
    return server.place(object_store_server.place())


@pytest.mark.matrix(6)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("method", ["PUT", "GET", "HEAD", "COPY", "LIST", "POST"])
def test_each_request_with_each_fault(
    folder: ObjectPath, faulty: FaultyStore, fault: str, method: str
) -> None:
    path, other = folder / "one", folder / "other"
    if method != "PUT":
        path.create(b"content")
    if method == "LIST":
        faulty.once(fault, "GET", "list-type")
    elif method == "COPY":
        faulty.once(fault, "PUT", f"{folder.key}/other")
    elif method == "POST":
        faulty.once(fault, "POST", "delete")
    else:
        faulty.once(fault, method, f"{folder.key}/one")
    match method:
        case "PUT":
            path.create(b"content")
        case "GET":
            assert path.read_bytes() == b"content"
        case "HEAD":
            assert path.stat().st_size == 7
        case "COPY":
            other.copy_from(path)
            assert other.read_bytes() == b"content"
        case "LIST":
            assert [each.name for each, _ in folder.entries()] == ["one"]
        case "POST":
            path.unlink()
            assert not path.exists()
    assert faulty.counts[fault] == 1
    if method != "POST":
        assert path.read_bytes() == b"content"


@pytest.mark.long
@pytest.mark.parametrize("seed", range(examples(1, 6)))
def test_a_history_with_faults(
    place: str, faulty: FaultyStore, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """What was committed is there, what failed is not; `gc` leaves nothing behind."""
    monkeypatch.setattr(warehouses, "INLINE_BYTES", 1)
    house = House(place, seed)
    faulty.at_random(seed, 0.15)
    for _ in range(6):
        try:
            house.change(2)
            house.fold()
        except CorollaryError:
            house.db.close()
            house.db = corollary.open(place)
            house.note()
    house.demand_past(1)
    with suppress(OSError):  # it may end at a fault, too
        collect(house.warehouse, Retention(commits=4))
    house.demand_past(house.db.commits - 3)
    faulty.choose = lambda _method, _path: None
    collect(house.warehouse, Retention())
    house.demand_sound()
    house.close()
    assert sum(faulty.counts[each] for each in FAULTS) > 5


@pytest.mark.matrix(3)
@pytest.mark.parametrize("fault", ["lost behind", "repeated", "refused"])
def test_a_version_whose_acknowledgement_is_lost(
    place: str, faulty: FaultyStore, fault: str
) -> None:
    """The next publication finds the version, or makes it: there is none twice."""
    program = f"{closure()}\n.output reach\n"
    with opened(program, place=place) as db:
        insert(db, "edge", pairs("ab"))
        db.publish()
        faulty.once(fault, "PUT", "00000000000000000001.json")
        insert(db, "edge", pairs("bc"))
        db.publish()
        db.publish()
        table = DeltaTable(str(store_of(db).warehouse.root / "tables" / "reach"))
        rows = table.to_pyarrow_table().to_pylist()
        assert sorted((row["x"], row["y"]) for row in rows) == pairs("ab ac bc")
        assert verify(store_of(db).warehouse).findings == []
    assert faulty.counts[fault] == 1


def test_a_store_that_is_gone(
    place: str, faulty: FaultyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transaction fails, nothing is changed, and no message has what is secret."""
    monkeypatch.setattr(warehouses, "INLINE_BYTES", 1)
    monkeypatch.setattr(object_store, "SERVER_RETRIES", 0)
    monkeypatch.setattr(object_store, "RETRY_PAUSES_SECONDS", (0.01,))
    object_store.open_store.cache_clear()
    with opened(closure(), place=place) as db:
        insert(db, "edge", pairs("ab"))
        for fault in ("refused", "lost before", "hangs before"):
            faulty.choose = lambda method, _path, fault=fault: fault if method == "PUT" else None
            with pytest.raises(WarehouseError, match="C0932") as caught:
                insert(db, "edge", pairs("bc"))
            error: BaseException | None = caught.value
            while error is not None:
                assert KEY not in str(error)
                assert SECRET not in str(error)
                error = error.__cause__ or error.__context__
            assert "nothing was changed" in str(caught.value)
            assert db.commits == 2
        faulty.choose = lambda _method, _path: None
        insert(db, "edge", pairs("bc"))
        collect(store_of(db).warehouse, Retention())
        assert loose_files(db) == set()
    with reopened("", place=place) as db:
        assert sorted(db.relation("reach").rows()) == pairs("ab ac bc")
