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


def test_answers_of_goals_have_structs(database: corollary.Database) -> None:
    answers = database.query("shape(n, s), n < 2", records="struct")
    assert answers.to_pylist() == SHAPES[:1]
    (row,) = database.query("line([p, _, name])", records="struct", limit=1).to_pylist()
    assert row == {"p": {"x": 1, "y": 2}, "name": "a, b]"}
    with pytest.raises(InputError, match="C0822"):
        database.query("numbers(l)", records="struct")


def test_structs_of_a_type_that_contains_itself(database: corollary.Database) -> None:
    tail = {"head": 2, "tail": {"head": 3, "tail": None}}
    given = pa.table({"l": [{"head": 1, "tail": tail}, {"head": 9, "tail": None}, None]})
    assert given.schema.field("l").type.field("tail").type.field("tail").type.num_fields == 2
    with database.transaction() as tx:
        tx.insert("numbers", given)
    assert set(database.relation("numbers").rows()) == {
        ((1, (2, None)),),
        ((1, (2, (3, None))),),
        ((9, None),),
        (None,),
    }


def test_structs_that_do_not_fit(database: corollary.Database) -> None:
    for rows, words in (
        ([{"branch": "Circle", "Circle": None}], "no struct for the branch `Circle`"),
        ([{"branch": "Square", "Circle": {"at": None, "r": 1.0}}], "names no branch of `Shape`"),
        ([{"branch": "Circle", "Circle": {"at": {"x": 1, "y": None}, "r": 1.0}}], "the field `y`"),
        ([{"branch": "Circle", "Circle": {"at": {"x": "1", "y": 2}, "r": 1.0}}], "a `string`"),
    ):
        table = pa.table({"n": [1], "s": rows})
        with pytest.raises(InputError, match=words):
            database.transaction().insert("shape", table)


def test_many_structs_are_converted_at_once(database: corollary.Database) -> None:
    count = 20_000
    points = [{"x": n % 100, "y": -n % 7} for n in range(count)]
    texts = ["a", 'b "c"', "d, e", " f]", "g\\h"]
    given = [
        {"from": points[n], "to": None if n % 3 else points[-n], "name": texts[n % 5]}
        for n in range(count)
    ]
    with database.transaction() as tx:
        tx.insert("line", pa.table({"l": given}))
    expected = {
        (tuple(each["from"].values()), each["to"] and tuple(each["to"].values()), each["name"])
        for each in given
    }
    assert {row for (row,) in database.relation("line").rows()} >= expected
