"""The state of a warehouse at a glance, and what is said of a place that is none."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import corollary
from corollary.cli.commands.upkeep.status import _lines
from corollary.database.intake.pipeline import Inputs, run
from corollary.database.program.loaded_program import read_programs
from corollary.database.upkeep.retention import Retention, collect
from corollary.database.upkeep.status import status
from corollary.database.upkeep.verify import verify
from corollary.errors import WarehouseError
from corollary.warehouse.catalog.inventory import relation_sizes
from corollary.warehouse.files import durable_files
from corollary.warehouse.warehouse import Warehouse
from support.warehouse_history import House

NOBODY = 65534


def test_status(place: str) -> None:
    house = House(place, 4)
    house.change(6)
    house.fold()
    folded = house.db.commits
    house.db.publish()
    house.change(4)
    house.warehouse.catalog.insert_intent()
    durable_files.write(house.root, "data/nobody/0.parquet", b"loose")
    found = status(house.warehouse)
    told = found.as_json()
    last = house.db.commits
    assert told["commits"]["first"] == 1
    assert told["commits"]["last"] == last
    assert told["index"]["commit"] == folded
    assert told["index"]["commits_since"] == last - folded
    assert told["index"]["tuples_since"] > 0
    assert told["relations"]["edge"] == {"kind": "base", "tuples": len(house.seen[last]["edge"])}
    assert told["relations"]["path"] == {"kind": "derived", "tuples": len(house.seen[last]["path"])}
    assert told["published"]["path"]["commit"] == folded
    assert told["bytes"]["loose"] == 5
    assert told["bytes"]["index"] > 0
    assert told["bytes"]["tables"] > 0
    assert (told["bytes"]["catalog"] > 0) == house.warehouse.catalog.is_file
    assert len(told["intents"]) == 1
    assert told["outbox"] == {"waiting": 0, "oldest": None, "error": None}
    house.close()


@pytest.mark.slow
def test_sizes_without_a_look_at_the_data(tmp_path: Path) -> None:
    house = House(str(tmp_path / "warehouse"), 6)
    for act in (house.fold, None, house.fold, None):
        house.change(4)
        if act is not None:
            act()
        found = relation_sizes(house.warehouse.catalog)
        for name, rows in house.seen[house.db.commits].items():
            assert found.get(name, 0) == len(rows), name
    collect(house.warehouse, Retention(commits=2))
    found = relation_sizes(house.warehouse.catalog)
    for name, rows in house.seen[house.db.commits].items():
        assert found.get(name, 0) == len(rows), name
    house.close()


def test_sources_and_virtual_relations(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(
        ".decl p(x: number)\n.input p\n.decl v(x: number) virtual\nv(x) :- p(x).\n.output p\n"
    )
    (tmp_path / "p.facts").write_text("1\n2\n")
    with corollary.open(str(tmp_path / "warehouse")) as db:
        run(db, read_programs([tmp_path / "p.dl"]), Inputs(tmp_path))
        assert db._store is not None
        told = status(db._store.warehouse).as_json()
        assert told["relations"]["v"] == {"kind": "virtual", "tuples": None}
        (source,) = told["sources"].values()
        assert source["relation"] == "p"
        assert source["commit"] == 1
        assert source["read"].endswith("Z")
        assert told["published"] == {"p": {"commit": 1, "lag": 0, "is_output": True}}


def test_a_table_that_is_no_longer_published(tmp_path: Path) -> None:
    text = ".decl p(x: number)\n"
    with corollary.open(str(tmp_path / "warehouse")) as db:
        assert db._store is not None
        warehouse = db._store.warehouse
        db.load(text=text + ".output p\np(1).\n")
        db.publish()
        db.load(text=text + "p(2).\n")
        assert db.publish() is None
        told = status(warehouse)
        assert told.as_json()["published"] == {"p": {"commit": 1, "lag": 1, "is_output": False}}
        assert [line for line in _lines(told) if "no longer published" in line]
        table = warehouse.root / "tables" / "p"
        assert DeltaTable(str(table)).to_pyarrow_table().to_pydict() == {"x": [1]}
        shutil.rmtree(table)
        report = verify(warehouse)
        assert (report.tables, report.findings) == (0, [])
        db.load(text=text + ".output p\np(3).\n")
        assert db.publish() is not None
        assert DeltaTable(str(table)).to_pyarrow_table().to_pydict() == {"x": [3]}
        report = verify(warehouse)
        assert (report.tables, report.findings) == (1, [])


def test_without_a_commit(place: str) -> None:
    with corollary.open(place) as db:
        assert db._store is not None
        told = status(db._store.warehouse).as_json()
    assert told["commits"] == {"first": None, "last": None, "at": None}
    assert told["relations"] == {}


# --- places that are no warehouse ----------------------------------------------------------------


def create_empty(place: Any) -> None:
    """Create a warehouse without a commit, as a writer does that dies then."""
    with closing(Warehouse.open(place)) as found:
        found.catalog.insert_intent()


def refused(place: Any, *, create: bool = False) -> str:
    with pytest.raises(WarehouseError) as raised:
        Warehouse.open(place, create=create).catalog.insert_intent()
    assert all(each.note for each in raised.value.diagnostics)
    return str(raised.value)


def test_nothing_there(tmp_path: Path) -> None:
    assert "C0930" in refused(tmp_path / "nothing")
    assert "corollary run PROGRAM --warehouse" in refused(tmp_path)
    create_empty(tmp_path / "warehouse")
    assert "did you mean `warehouse`?" in refused(tmp_path / "warehuose")
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("create", [False, True])
def test_a_file(tmp_path: Path, create: bool) -> None:
    (tmp_path / "file").write_text("")
    assert ("C0932" if create else "C0930") in refused(tmp_path / "file", create=create)
    assert "name a directory" in refused(tmp_path / "file" / "below", create=True)


@pytest.mark.parametrize("create", [False, True])
def test_no_database(tmp_path: Path, create: bool) -> None:
    (tmp_path / "catalog.sqlite").write_bytes(b"this is no database, for sure" * 99)
    said = refused(tmp_path, create=create)
    assert "C0934" in said
    assert "corollary restore" in said


@pytest.mark.parametrize("create", [False, True])
def test_the_database_of_another_program(tmp_path: Path, create: bool) -> None:
    connection = sqlite3.connect(tmp_path / "catalog.sqlite")
    connection.execute("create table bookmarks (url text)")
    connection.commit()
    said = refused(tmp_path, create=create)
    assert "C0930" in said
    assert "`bookmarks`" in said
    assert "choose another directory" in said
    tables = connection.execute("select name from sqlite_master").fetchall()
    assert tables == [("bookmarks",)]
    connection.close()


def test_an_empty_database(tmp_path: Path) -> None:
    (tmp_path / "catalog.sqlite").touch()
    assert "C0930" in refused(tmp_path)
    create_empty(tmp_path)
    Warehouse.open(tmp_path, create=False).close()


@pytest.mark.parametrize("create", [False, True])
def test_another_format(place: str, create: bool) -> None:
    found = Warehouse.open(place)
    with found.catalog.write_transaction() as connection:
        found.catalog.replace_meta(connection, "format", "99")
    found.close()
    said = refused(place, create=create)
    assert "C0931" in said
    assert "format 99" in said


@pytest.mark.parametrize("offset", [100, 5000, 20_000, 50_000])
def test_a_damaged_catalog(tmp_path: Path, offset: int) -> None:
    house = House(str(tmp_path / "warehouse"))
    house.change(3)
    house.close()
    path = tmp_path / "warehouse" / "catalog.sqlite"
    data = bytearray(path.read_bytes())
    data[offset : offset + 4000] = random.Random(offset).randbytes(4000)
    path.write_bytes(bytes(data))
    assert codes_of(tmp_path / "warehouse") & {"C0930", "C0934", "C0968"}


def test_a_catalog_with_a_damaged_definition(tmp_path: Path) -> None:
    """SQLite keeps the names of columns as text, which nothing checks."""
    House(str(tmp_path / "warehouse")).close()
    with closing(sqlite3.connect(tmp_path / "warehouse" / "catalog.sqlite")) as catalog:
        catalog.execute("PRAGMA writable_schema = ON")
        changed = "UPDATE sqlite_master SET sql = replace(sql, 'text TEXT', 'uext TEXT')"
        catalog.execute(changed)
        catalog.commit()
    assert codes_of(tmp_path / "warehouse") == {"C0934"}


def codes_of(place: Path) -> set[str]:
    """Return what opening a warehouse, or else verifying it, has to say."""
    try:
        found = Warehouse.open(place, create=False)
        codes = {each.code for each in verify(found).findings}
        found.close()
    except WarehouseError as error:
        return {each.code for each in error.diagnostics}
    return codes


def test_no_place(tmp_path: Path) -> None:
    assert "C0930" in refused("mysql://host/name?data=x")
    assert "C0930" in refused("postgresql://host/name")


def test_no_server(tmp_path: Path) -> None:
    place = f"postgresql://me:secret@127.0.0.1:1/none?data={tmp_path}"
    said = refused(place)
    assert "C0935" in said
    assert "secret" not in said


@pytest.fixture
def as_nobody() -> Iterator[Path]:
    """A directory that a user without any rights looks at."""
    if os.geteuid():
        pytest.skip("only root can become somebody else")
    root = Path(tempfile.mkdtemp())
    root.chmod(0o755)
    try:
        yield root
    finally:
        os.seteuid(0)
        shutil.rmtree(root)


def test_a_directory_that_cannot_be_read(as_nobody: Path) -> None:
    create_empty(as_nobody / "warehouse")
    (as_nobody / "warehouse").chmod(0o700)
    os.seteuid(NOBODY)
    said = refused(as_nobody / "warehouse")
    assert "C0933" in said
    assert "check its permissions" in said


def test_a_directory_that_cannot_be_written(as_nobody: Path) -> None:
    create_empty(as_nobody / "warehouse")
    os.seteuid(NOBODY)
    for create in (False, True):
        with closing(Warehouse.open(as_nobody / "warehouse", create=create)) as found:
            assert found.catalog.latest_commit() is None
            row = {"name": "note", "value": "none"}
            with (
                pytest.raises(WarehouseError, match="C0932") as caught,
                found.catalog.write_transaction() as connection,
            ):
                connection.insert("corollary_meta", [row])
            assert "permissions" in str(caught.value)
    assert "C0932" in refused(as_nobody / "new", create=True)


def test_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, *_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(Path, "mkdir", full)
    assert "make room on the disk" in refused(tmp_path / "new", create=True)
