"""The upkeep of relations with copies: other columns, erasure, copies of warehouses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

import corollary
from corollary.core.printer import print_program
from corollary.database.database import Database, warehouse_of
from corollary.database.program.column_mapping import Alteration
from corollary.database.upkeep.alter import alter
from corollary.database.upkeep.erase import erase
from corollary.database.upkeep.status import status
from corollary.database.upkeep.verify import verify
from corollary.errors import InputError

PROGRAM = """\
.decl u(a: number, b: symbol?) bag
u(1, "text").
.decl seen(a: number)
seen(a) :- u(a, _).
.decl often(b: symbol?, n: number)
often(b, n) := u.rows(_, b, n), n > 1.
.output u
"""


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with corollary.open(tmp_path / "warehouse", engine="local") as database:
        database.load(text=PROGRAM)
        with database.transaction(publish=True) as tx:
            tx.insert("u", [(1, "text"), (2, "x"), (2, "x"), (2, "y"), (3, None), (3, None)])
        yield database


def rows(db: Database, name: str = "u") -> Counter[object]:
    return Counter(db.relation(name).rows())


def check(db: Database) -> None:
    warehouse = warehouse_of(db)
    assert warehouse is not None
    assert not verify(warehouse).findings


def test_a_column_is_added(db: Database) -> None:
    result = alter(db, Alteration("u", add=("copies: number",), values={"copies": "7"}))
    assert (result.before, result.after) == (7, 7)
    assert result.declaration == ".decl u(a: number, b: symbol?, copies: number) bag"
    assert rows(db) == {(1, "text", 7): 2, (2, "x", 7): 2, (2, "y", 7): 1, (3, None, 7): 2}
    assert db.relation("u.rows").shape.columns == ("a", "b", "copies", "copies2")
    assert 'u(1, "text", 7).' in print_program(db.program)
    assert "u.rows(_, b, _, n)" in print_program(db.program)
    with db.transaction() as tx:
        tx.delete("u", [(1, "text", 7), (2, "x", 7)])
    assert rows(db) == {(1, "text", 7): 1, (2, "x", 7): 1, (2, "y", 7): 1, (3, None, 7): 2}
    check(db)


def test_a_column_is_renamed_and_history_stays(db: Database) -> None:
    before = rows(db)
    alter(db, Alteration("u", rename={"a": "id"}))
    assert db.relation("u").shape.columns == ("id", "b")
    assert rows(db) == before
    assert db.at(2).relation("u").shape.columns == ("a", "b")
    db.publish()
    table = DeltaTable(str(warehouse_path(db) / "tables" / "u")).to_pyarrow_table()
    assert Counter(zip(*(each.to_pylist() for each in table.columns), strict=True)) == before
    check(db)


def warehouse_path(db: Database) -> Path:
    warehouse = warehouse_of(db)
    assert warehouse is not None
    return warehouse.root


def test_rows_that_become_equal_add_up(db: Database) -> None:
    with pytest.raises(InputError, match="uses `b`"):
        alter(db, Alteration("u", drop=("b",)))
    db.load(text=PROGRAM.replace("often(b, n) := u.rows(_, b, n), n > 1.", ""))
    result = alter(db, Alteration("u", drop=("b",)))
    assert (result.before, result.after) == (7, 7)
    assert rows(db) == {(1,): 2, (2,): 3, (3,): 2}
    check(db)


def test_counts_are_not_altered(db: Database) -> None:
    with pytest.raises(InputError, match="alter the bag itself"):
        alter(db, Alteration("u.rows", add=("c: number?",)))


def test_all_copies_are_erased(db: Database) -> None:
    result = erase(db, ['u(2, "x")'])
    assert result.tuples == 2
    assert rows(db) == {(1, "text"): 2, (2, "y"): 1, (3, None): 2}
    with pytest.raises(InputError, match="comes from the program text"):
        erase(db, ['u(1, "text")'])
    check(db)


def test_the_status_says_what_is_a_bag(db: Database) -> None:
    warehouse = warehouse_of(db)
    assert warehouse is not None
    found = status(warehouse)
    kinds = {each.name: (each.kind, each.tuples, each.copies) for each in found.relations}
    assert kinds["u"] == ("base", 4, True)
    assert "u.rows" not in kinds
    assert [(each.relation, each.lag) for each in found.tables] == [("u", 0)]
    with db.transaction() as tx:
        tx.insert("u", [(9, "z")])
    assert status(warehouse).tables[0].lag == 1
