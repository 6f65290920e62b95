"""The history of a warehouse from Python: commits, feeds, the past, keys."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import corollary
from corollary.core.arrow import nullary_table
from corollary.database.database import Database
from corollary.errors import InputError, WarehouseError

CLOSURE = """\
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.decl pair(x: number, y: number) virtual
pair(x, y) :- path(y, x).
.decl flag()
"""


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with corollary.open(tmp_path / "warehouse") as found:
        found.load(text=CLOSURE)
        with found.transaction() as tx:
            tx.insert("edge", [(at, at + 1) for at in range(5)])
        yield found


def test_the_log_counts_without_reading(db: Database) -> None:
    with db.transaction(idempotency="k") as tx:
        tx.delete("edge", [(4, 5)])
        tx.add_rule("path(x, x) :- edge(x, _).")
    newest, second, first = db.log()
    assert (newest.number, newest.idempotency, newest.has_new_program) == (3, "k", True)
    assert newest.changes == {"edge": (0, 1), "path": (4, 5)}
    assert (second.changes, second.has_new_program) == ({"edge": (5, 0), "path": (15, 0)}, False)
    assert (first.changes, first.has_new_program) == ({}, True)
    assert first.at <= second.at <= newest.at <= datetime.now(UTC)
    assert [each.number for each in db.log(2)] == [3, 2]


def test_a_feed_is_a_table(db: Database) -> None:
    with db.transaction() as tx:
        tx.delete("edge", [(0, 1)])
        tx.insert("edge", [(9, 9)])
        tx.insert("flag", [()])
    ((relation, table),) = db.feed("edge", since=2)
    told = ("x", "y", "_change_type", "_commit_version", "_commit_timestamp")
    assert relation.columns == tuple(table.column_names) == told
    assert table.schema.field("_commit_timestamp").type == pa.timestamp("us", tz="UTC")
    at = db.log()[0].at
    assert [tuple(each.values()) for each in table.to_pylist()] == [
        (0, 1, "delete", 3, at),
        (9, 9, "insert", 3, at),
    ]
    assert [name.name for name, _ in db.feed(upto=2)] == ["edge", "path"]
    ((_, flags),) = db.feed("flag")
    assert flags.column_names == list(told[2:])
    assert list(db.feed("edge", since=3)) == []
    for wrong in ({"since": 7}, {"upto": 7}, {"since": -5}):
        with pytest.raises(WarehouseError, match="C0936"):
            db.feed(**wrong)
    with pytest.raises(InputError, match="C0975"):
        db.feed("pair")
    with pytest.raises(InputError, match="C0916"):
        db.feed("egde")
    with pytest.raises(InputError, match="C0918"):
        corollary.open().feed()


def test_a_look_at_the_past_leaves_the_present_alone(db: Database) -> None:
    with db.transaction(algorithm="epf") as tx:  # which keeps no ranks
        tx.delete("edge", [(4, 5)])
    with db.transaction() as tx:
        tx.add_rule("path(x, x) :- edge(x, _).")
    assert db._store is not None
    before = {name: value for name, value in vars(db._store).items() if name != "warehouse"}
    past = db.at(2)
    assert len(past.relation("path")) == 15
    assert vars(db._store).items() >= before.items()
    with past.transaction() as tx:
        tx.insert("edge", [(7, 8)])
    assert len(past.relation("path")) == 16
    assert db.commits == 4
    assert len(db.relation("path")) == 14


def test_a_transaction_of_a_known_key_does_nothing(db: Database, tmp_path: Path) -> None:
    def change(database: Database) -> corollary.database.transaction.Transaction:
        with database.transaction(idempotency="once") as tx:
            tx.delete("edge", [(4, 5)])
            tx.remove_rule("path(x, z) :- path(x, y), edge(y, z).")
        return tx

    first = change(db)
    with corollary.open(tmp_path / "warehouse") as other:
        second = change(other)
    assert (first.is_repeated, second.is_repeated) == (False, True)
    assert first.as_json() == second.as_json()
    assert db.log()[0].number == 3
    with db.transaction(idempotency="once", is_dry=True) as tx:
        tx.insert("edge", [("not", "checked")])
    assert (tx.is_repeated, tx.commit_number) == (True, 3)


def test_tables_without_columns_are_counted(db: Database) -> None:
    for operation, expected in (("insert", [()]), ("delete", [])):
        with db.transaction() as tx:
            getattr(tx, operation)("flag", nullary_table(1))
        assert db.relation("flag").rows() == expected
