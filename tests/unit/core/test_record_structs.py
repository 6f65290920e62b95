"""Records as Arrow structs, both ways."""

import pyarrow as pa
import pytest

import corollary
from corollary.errors import InputError

PROGRAM = """
.type Point = [x: number, y: number]
.type Line = [from: Point, to: Point, name: symbol]
.type Shape = Circle {at: Point, r: float} | Nothing {}
.type List = [head: number, tail: List]
.decl line(l: Line)
.decl shape(n: number, s: Shape)
.decl numbers(l: List)
"""
LINES = [{"l": {"from": {"x": 1, "y": 2}, "to": None, "name": "a, b]"}}, {"l": None}]
SHAPES = [
    {
        "n": 1,
        "s": {"branch": "Circle", "Circle": {"at": {"x": 0, "y": 0}, "r": 1.5}, "Nothing": None},
    },
    {"n": 2, "s": {"branch": "Nothing", "Circle": None, "Nothing": {}}},
]


@pytest.fixture
def database() -> corollary.Database:
    db = corollary.open(None, engine="local")
    db.load(text=PROGRAM)
    with db.transaction() as tx:
        tx.insert("line", [(((1, 2), None, "a, b]"),), (None,)])
        tx.insert("shape", [(1, ("Circle", (0, 0), 1.5)), (2, ("Nothing",))])
        tx.insert("numbers", [((1, (2, None)),)])
    return db


def test_structs_of_records(database: corollary.Database) -> None:
    lines = database.relation("line").arrow(records="struct").to_pylist()
    assert sorted(lines, key=str, reverse=True) == sorted(LINES, key=str, reverse=True)
    shapes = database.relation("shape").arrow(records="struct").sort_by("n")
    assert shapes.to_pylist() == SHAPES


def test_structs_are_read_back(database: corollary.Database) -> None:
    before = {name: set(database.relation(name).rows()) for name in ("line", "shape")}
    structs = {name: database.relation(name).arrow(records="struct") for name in before}
    for name, table in structs.items():
        with database.transaction() as tx:
            tx.delete(name, table)
        assert not database.relation(name).rows()
        with database.transaction() as tx:
            tx.insert(name, table)
        assert set(database.relation(name).rows()) == before[name]


def test_what_has_no_structs(database: corollary.Database) -> None:
    with pytest.raises(InputError, match="C0822"):
        database.relation("numbers").arrow(records="struct")
    with pytest.raises(InputError, match="C0924"):
        database.relation("line").arrow(records="tuples")
    wrong = pa.table({"l": [{"from": {"x": 1, "y": "two"}, "to": None, "name": "n"}]})
    with pytest.raises(InputError, match="Row 1 of the table does not fit the column `l`"):
        database.transaction().insert("line", wrong)
