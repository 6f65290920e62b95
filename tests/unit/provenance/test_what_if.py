"""What if a base tuple was not there, or was: dry runs."""

import pytest

import corollary
from corollary.provenance.trials import what_if

PROGRAM = """
.decl cable(x: number, y: number)
cable(1, 2). cable(2, 3).
.decl link(x: number, y: number)
link(x, y) :- cable(x, y).
link(x, z) :- link(x, y), cable(y, z).
.decl note(x: number) bag
note(1). note(1). note(2).
.decl noted(x: number)
noted(x) :- note(x).
.decl loop(x: number)
loop(x) :- link(x, x).
.abort loop "a loop at {x}"
"""


@pytest.fixture
def database() -> corollary.Database:
    db = corollary.open(None)
    db.load(text=PROGRAM)
    return db


def changes(db: corollary.Database, fact: str) -> dict[str, tuple[list[object], list[object]]]:
    found = what_if(db, fact).as_json(100)["changes"]
    return {name: (each["added"], each["removed"]) for name, each in found.items()}


def test_what_is_there_is_deleted_whoever_asserts_it(database: corollary.Database) -> None:
    assert changes(database, "cable(2, 3)") == {
        "cable": ([], [[2, 3]]),
        "link": ([], [[1, 3], [2, 3]]),
    }
    with database.transaction() as tx:
        tx.insert("cable", [(2, 3)])
    assert changes(database, "cable(2, 3)")["link"] == ([], [[1, 3], [2, 3]])
    assert len(database.relation("cable")) == 2


def test_what_is_not_there_is_inserted(database: corollary.Database) -> None:
    assert changes(database, "cable(3, 4)")["link"] == ([[1, 4], [2, 4], [3, 4]], [])


def test_one_copy_is_deleted(database: corollary.Database) -> None:
    assert changes(database, "note(1)") == {"note": ([], [[1]])}
    assert changes(database, "note(2)") == {"note": ([], [[2]]), "noted": ([], [[2]])}


def test_constraints_are_reported(database: corollary.Database) -> None:
    plan = what_if(database, "cable(3, 1)").plan
    assert plan is not None
    assert {each.code for each in plan.constraints} == {"C1051"}
    assert database.commits == 1


def test_only_base_tuples(database: corollary.Database) -> None:
    with pytest.raises(corollary.InputError, match="C0915"):
        what_if(database, "link(1, 2)")
    with pytest.raises(corollary.InputError, match="C0919"):
        what_if(database, "cable(x, y) :- link(x, y)")
