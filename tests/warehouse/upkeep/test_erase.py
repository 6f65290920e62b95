"""Erasure: no byte of an erased value is left in any file."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import corollary
from corollary.database.database import Database
from corollary.database.intake.pipeline import Inputs, run
from corollary.database.program.loaded_program import read_programs
from corollary.database.upkeep import erase as erasing
from corollary.database.upkeep.erase import erase
from corollary.database.upkeep.verify import verify
from corollary.errors import InputError, WarehouseError
from corollary.warehouse import warehouse
from support.warehouse_history import state

PROGRAM = """\
.decl person(id: number, name: symbol, city: symbol?)
.decl knows(x: number, y: number)
.decl friend(x: symbol, y: symbol)
friend(a, b) :- knows(x, y), person(x, a, _), person(y, b, _).
friend(a, c) :- friend(a, b), friend(b, c).
.decl greeting(text: symbol)
greeting(cat("hello ", a)) :- person(_, a, _).
.output friend
.output greeting
"""
SECRET = "Zq" + secrets.token_hex(16)
"""Random, so that no compression can hide it."""


def store_of(db: Database) -> Any:
    assert db._store is not None
    return db._store


INLINE_BYTES = {"inline": 1 << 16, "files": 1}
"""Where changes stand: in the catalog, or in files."""


def build(place: Path) -> None:
    """Make a warehouse with a fold, published tables, and changes since."""
    with corollary.open(str(place)) as database:
        database.load(text=PROGRAM)
        with database.transaction() as tx:
            tx.insert("person", [(1, "ann", "a"), (2, "bob", None), (3, SECRET, "b")])
            tx.insert("knows", [(1, 3), (3, 2), (2, 1)])
        database.publish()
        store_of(database).fold(database._state)
        with database.transaction() as tx:
            tx.insert("person", [(4, "dan", "a")])
            tx.insert("knows", [(4, 3)])
        database.publish(tx)


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a warehouse of each kind, to be copied."""
    root = tmp_path_factory.mktemp("templates")
    for kind, most in INLINE_BYTES.items():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(warehouse, "INLINE_BYTES", most)
            build(root / kind)
    return root


@pytest.fixture(params=INLINE_BYTES)
def db(
    templates: Path, tmp_path: Path, monkeypatch: Any, request: pytest.FixtureRequest
) -> Iterator[Database]:
    monkeypatch.setattr(warehouse, "INLINE_BYTES", INLINE_BYTES[request.param])
    shutil.copytree(templates / request.param, tmp_path / "warehouse")
    with corollary.open(str(tmp_path / "warehouse")) as database:
        yield database


def places_of(value: str, root: Path) -> list[str]:
    """Return the files that have a value."""
    wanted = value.encode()
    return [
        str(path.relative_to(root))
        for path in sorted(root.rglob("*"))
        if path.is_file() and wanted in path.read_bytes()
    ]


def test_nothing_is_left(db: Database, tmp_path: Path) -> None:
    root = tmp_path / "warehouse"
    kinds = {place.partition("/")[0] for place in places_of(SECRET, root)}
    assert kinds >= {"data", "tables"}
    erased = erase(db, [f'person(3, "{SECRET}", "b")'])
    assert erased.tuples == 1
    assert not erased.remaining
    assert places_of(SECRET, root) == []
    assert SECRET not in repr(state(db))
    assert not verify(store_of(db).warehouse).findings
    assert [each.number for each in db.log()] == [erased.commit]
    with pytest.raises(WarehouseError, match="no longer kept"):
        db.at(2)
    shown = DeltaTable(str(root / "tables" / "friend")).to_pyarrow_table()
    assert shown.num_rows == len(db.relation("friend"))


def test_it_stays_away(db: Database, tmp_path: Path) -> None:
    """Neither this process nor another that had the value in memory writes it again."""
    root = tmp_path / "warehouse"
    other = corollary.open(str(root))
    assert SECRET in repr(state(other))
    erase(db, [f'person(3, "{SECRET}", "b")'])
    for each in (db, other):
        with each.transaction() as tx:
            tx.insert("person", [(5, "eve", None)] if each is db else [(6, "fay", None)])
        store_of(each).fold(each._state)
        each.publish()
    assert places_of(SECRET, root) == []
    assert state(other) == state(corollary.open(str(root)))
    other.close()


def test_what_was_deleted_before(db: Database, tmp_path: Path) -> None:
    with db.transaction() as tx:
        tx.delete("person", [(3, SECRET, "b")])
    db.publish(tx)
    erased = erase(db, [f'person(3, "{SECRET}", "b")'])
    assert erased.tuples == 0
    assert places_of(SECRET, tmp_path / "warehouse") == []


def test_several_and_what_others_still_have(db: Database) -> None:
    erased = erase(db, ['person(1, "ann", "a").', "knows(1, 3). knows(2, 1)"])
    assert erased.tuples == 3
    assert erased.remaining == {"`a`": ("person",)}
    assert erased.as_json()["still"] == {"`a`": ["person"]}
    assert sorted(db.relation("knows").rows()) == [(3, 2), (4, 3)]


def test_cut_short_and_done_again(db: Database, tmp_path: Path, monkeypatch: Any) -> None:
    class Killed(BaseException):
        pass

    def die(*_: Any) -> None:
        raise Killed

    stages = (
        (erasing, "_drop_history"),
        (erasing, "remove_files"),
        (erasing, "_republish"),
        (erasing.retention, "rewrite_catalog"),
    )
    for module, stage in stages:
        with monkeypatch.context() as patch:
            patch.setattr(module, stage, die)
            with pytest.raises(Killed):
                erase(db, [f'person(3, "{SECRET}", "b")'])
        assert not verify(store_of(db).warehouse).findings
    erase(db, [f'person(3, "{SECRET}", "b")'])
    assert places_of(SECRET, tmp_path / "warehouse") == []


def test_others_commit_and_fold_meanwhile(db: Database, tmp_path: Path, monkeypatch: Any) -> None:
    root = tmp_path / "warehouse"
    other = corollary.open(str(root))
    real, times = erasing.force_restore, []

    def meanwhile(*arguments: Any, **more: Any) -> int:
        times.append(1)
        if len(times) == 1:
            with other.transaction() as tx:
                tx.insert("person", [(7, "gus", None)])
        if len(times) == 2:
            other.refresh()
            store_of(other).fold(other._state)  # with the value in its dictionary
        return real(*arguments, **more)

    monkeypatch.setattr(erasing, "force_restore", meanwhile)
    erase(db, [f'person(3, "{SECRET}", "b")'])
    assert len(times) == 3
    assert places_of(SECRET, root) == []
    assert (7, "gus", None) in db.relation("person").rows()
    assert not verify(store_of(db).warehouse).findings
    other.close()


def test_writers_under_way_are_given_up(db: Database, tmp_path: Path) -> None:
    catalog = store_of(db).warehouse.catalog
    intent = catalog.insert_intent()
    left = tmp_path / "warehouse" / "data" / intent / "0.parquet"
    left.parent.mkdir()
    left.write_text(SECRET)
    erase(db, [f'person(3, "{SECRET}", "b")'])
    assert not left.exists()


@pytest.mark.integration
def test_on_postgresql(server: Any, tmp_path: Path) -> None:
    with corollary.open(server.place(tmp_path / "files")) as database:
        database.load(text=PROGRAM)
        with database.transaction() as tx:
            tx.insert("person", [(3, SECRET, "b")])
        erase(database, [f'person(3, "{SECRET}", "b")'])
        with store_of(database).warehouse.catalog.read_transaction() as connection:
            rows = connection.rows("SELECT * FROM corollary_changes")
        assert SECRET not in repr(rows)
        assert places_of(SECRET, tmp_path) == []


# --- what cannot be erased -----------------------------------------------------------------------


def test_what_the_text_says(tmp_path: Path) -> None:
    with corollary.open(str(tmp_path / "warehouse")) as database:
        database.load(text=PROGRAM + 'person(9, "ian", null).')
        before = database.commits
        with pytest.raises(InputError, match=r"C0961.*`ian`.*the program text"):
            erase(database, ['person(9, "ian", null)'])
        assert database.commits == before


def test_what_a_source_says(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(
        ".decl p(x: symbol)\n.input p\n.decl q(x: symbol)\nq(x) :- p(x).\n"
    )
    (tmp_path / "p.facts").write_text("kim\nlea\n")
    with corollary.open(str(tmp_path / "warehouse")) as database:
        program = read_programs([tmp_path / "p.dl"])
        run(database, program, Inputs(tmp_path))
        with pytest.raises(InputError, match=r"C0961(.|\n)*p\.facts(.|\n)*remove it there"):
            erase(database, ['p("kim")'])
        (tmp_path / "p.facts").write_text("lea\n")
        run(database, program, Inputs(tmp_path))
        assert erase(database, ['p("kim")']).tuples == 0
        assert places_of("kim", tmp_path / "warehouse") == []
        assert state(database)["q"] == [("lea",)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("friend(1, 2)", "C0915"),
        ("perso(1)", "C0916"),
        ("person(x, y, z)", "C0"),
        ("", "C0919"),
        ("person(1)", "C0"),
    ],
)
def test_what_is_no_tuple(db: Database, text: str, code: str) -> None:
    before = db.commits
    with pytest.raises(InputError, match=code):
        erase(db, [text])
    assert db.commits == before
