"""Goals: any body of a rule, in order and up to a limit, as the oracle answers them."""

from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.core.arrow import to_python
from corollary.core.recorder import CountingRecorder
from corollary.database.database import Database
from corollary.database.intake.evaluate_once import QueriedProgram
from corollary.database.program.goals import read_goal
from corollary.database.writing.inputs import FileLocations
from corollary.errors import AccessError, InputError
from corollary.frontends.datalog.parser import parse
from corollary.maintain.goal_evaluation import solve
from corollary.source import SourceFile
from oracles import evaluation
from support.comparison import LIMITS, prepared

PROGRAM = """
.decl station(name: symbol)
.decl direct(src: symbol, dst: symbol)
.decl blocked(name: symbol)
.decl size(name: symbol, n: number?)
.decl link(src: symbol, dst: symbol)
link(x, y) :- direct(x, y).
link(x, y) :- link(x, z), direct(z, y).
.decl reach(src: symbol, dst: symbol) virtual
reach(x, y) :- link(x, y), !blocked(y).
lost(x) :- -station(x).
.alert lost "{x}"
"""
FACTS: dict[str, list[tuple[Any, ...]]] = {
    "station": [("a",), ("b",), ("c",), ("d",), ("e",)],
    "direct": [("a", "b"), ("b", "c"), ("c", "d"), ("e", "a")],
    "blocked": [("c",)],
    "size": [("a", 3), ("b", None), ("c", 0), ("d", 3)],
}
GOALS = [
    ('link("a", y), y != "b", !blocked(y)', {"y": "symbol"}),
    ("n = count : { link(x, _) }, station(x)", {"n": "number", "x": "symbol"}),
    ("reach(x, y), size(y, n), n > 1", {"x": "symbol", "y": "symbol", "n": "number"}),
    ('reach("a", y), size(y, n)', {"y": "symbol", "n": "number?"}),
    ('link("a", y) ; direct(y, "a")', {"y": "symbol"}),
    ('link(x, y), x = "e", (y = "a" ; blocked(y))', {"x": "symbol", "y": "symbol"}),
    ("size(x, n), size(y, n), x < y", {"x": "symbol", "n": "number", "y": "symbol"}),
    ('link(cat("a", ""), y)', {"y": "symbol"}),
    ("station(x), t = sum n : { size(_, n) }", {"x": "symbol", "t": "number"}),
    ('m = max n : { link("a", y), size(y, n) }', {"m": "number"}),
    ("k = 2 ^ 10, x = range(0, 3)", {"k": "number", "x": "number"}),
    ("station(x), !link(x, _)", {"x": "symbol"}),
    ('!blocked("a")', {}),
    ('blocked("a") ; blocked("c")', {}),
    ("false", {}),
    ("size(x, n), n = null", {"x": "symbol", "n": "number?"}),
    (
        "station(x), n = count : { link(x, y), m = count : { link(y, _) }, m > 1 }",
        {"x": "symbol", "n": "number"},
    ),
]


def filled(place: Path | None = None) -> Database:
    database = corollary.open(place, engine="local")
    database.load(text=PROGRAM)
    with database.transaction() as transaction:
        for name, rows in FACTS.items():
            transaction.insert(name, rows)
    return database


def by_oracle(goal: str, columns: dict[str, str]) -> set[tuple[Any, ...]]:
    declared = ", ".join(f"{name}: {type_}" for name, type_ in columns.items())
    asked = f".decl asked({declared})\nasked({', '.join(columns)}) :- {goal}.\n"
    return set(evaluation.evaluate(PROGRAM + asked, FACTS)["asked"])


@pytest.fixture(scope="module")
def db() -> Database:
    return filled()


@pytest.mark.parametrize(("goal", "columns"), GOALS)
def test_any_body_is_a_goal(db: Database, goal: str, columns: dict[str, str]) -> None:
    answers = db.query(goal)
    assert answers.column_names == list(columns)
    rows = to_python(answers)
    assert len(rows) == len(set(rows))
    assert set(rows) == by_oracle(goal, columns)


@pytest.mark.parametrize(("goal", "columns"), GOALS)
def test_programs_answer_the_same(goal: str, columns: dict[str, str]) -> None:
    loaded, engine = prepared(PROGRAM, FACTS)
    asked = read_goal(loaded, goal)
    engine.declare({asked.answers.name: asked.answers})
    engine.run(solve(asked.program, asked.literal, engine.statistics()), CountingRecorder(), LIMITS)
    assert set(to_python(engine.read(asked.answers.name))) == by_oracle(goal, columns)


def test_a_program_answers_question_after_question() -> None:
    text = (
        ".decl e(x: number, y: number)\ne(1, 2). e(2, 3).\n.decl p(x: number, y: number)\n"
        "p(x, y) :- e(x, y).\np(x, z) :- p(x, y), e(y, z).\n"
    )
    with QueriedProgram(parse(SourceFile("p.dl", text)), FileLocations()) as program:
        for start, reached in ((1, [2, 3]), (2, [3]), (1, [2, 3])):  # the same shape thrice
            assert sorted(to_python(program.query(f"p({start}, y)"))) == [(y,) for y in reached]
            found = program.sql(f"SELECT y FROM p WHERE x = {start} ORDER BY y").rows()
            assert found == [(y,) for y in reached]
        assert sorted(program.relation("p").rows()) == [(1, 2), (1, 3), (2, 3)]
        assert len(program.relation("e")) == 2


def test_an_earlier_commit_answers_too(tmp_path: Path) -> None:
    with filled(tmp_path / "w") as db:
        before = db.commits
        with db.transaction() as tx:
            tx.insert("blocked", [("d",)])
        goal = 'reach("a", y), n = count : { direct(y, _) }'
        assert set(to_python(db.query(goal))) == {("b", 1)}
        assert set(to_python(db.at(before).query(goal))) == {("b", 1), ("d", 0)}


@pytest.mark.parametrize(
    "condition", ['link("n3", y), y != "n4"', 'link(x, y), x = "n3", y != "n4"']
)
@pytest.mark.parametrize("storage", ["", "virtual"])
def test_values_are_pushed_in(condition: str, storage: str) -> None:
    text = f"""
        .decl direct(src: symbol, dst: symbol)
        .decl link(src: symbol, dst: symbol) {storage}
        link(x, y) :- direct(x, y).
        link(x, y) :- link(x, z), direct(z, y).
    """
    edges = [(f"n{at}", f"n{at + 1}") for at in range(200)]
    loaded, engine = prepared(text, {"direct": edges})
    asked = read_goal(loaded, condition)
    engine.declare({asked.answers.name: asked.answers})
    plan = solve(asked.program, asked.literal, engine.statistics())
    engine.run(plan, CountingRecorder(), LIMITS)
    assert len(to_python(engine.read(asked.answers.name))) == 196
    # The closure of everything would have 20,100 tuples: the answers of all calls have 197.
    found = [name for name in plan.types if name.startswith("link^") and name.endswith("answers")]
    assert found == ["link^bf•answers"]


def test_order_and_limit(db: Database) -> None:
    goal = "size(x, n)"
    assert to_python(db.query(goal, order="n desc")) == [("a", 3), ("d", 3), ("c", 0), ("b", None)]
    assert to_python(db.query(goal, order=["n", "x desc"])) == [
        ("b", None),
        ("c", 0),
        ("d", 3),
        ("a", 3),
    ]
    assert to_python(db.query(goal, limit=2)) == [("a", 3), ("b", None)]
    assert to_python(db.query(goal, order=["x DESC"], limit=1)) == [("d", 3)]
    assert to_python(db.query(goal, limit=0)) == []
    assert to_python(db.query("`n desc` = 1", order="n desc")) == [(1,)]
    for wrong in ({"order": "z"}, {"order": "n down"}, {"limit": -1}):
        with pytest.raises(InputError, match="C0906"):
            db.query(goal, **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("goal", "code"),
    [
        ("-station(x)", "C0903"),
        ("station(x), !link@old(x, _)", "C0903"),
        ("station(x), lost(x)", "C0902"),
        ("n = count : { lost(_) }", "C0902"),
        ("select * from station", "C0904"),
        (" SELECT name FROM station WHERE name > 'a'", "C0904"),
        ("with s as (select 1) select * from s", "C0904"),
        ("station(x) ; link(x, y)", "C0905"),
        ("x < 3", "C0403"),
        ("station(x), !link(x, y)", "C0402"),
    ],
)
def test_goals_that_mean_nothing(db: Database, goal: str, code: str) -> None:
    with pytest.raises(InputError, match=code):
        db.query(goal)


def test_a_relation_may_have_a_name_of_sql() -> None:
    db = corollary.open(None, engine="local")
    db.load(text=".decl select(x: number) .decl goal(x: number) select(1). goal(2).")
    assert to_python(db.query("select (x), goal(y)")) == [(1, 2)]


def test_a_goal_with_an_error_names_itself(db: Database) -> None:
    with pytest.raises(InputError, match=r"division by zero in the rule `goal\(n, x, y\)"):
        db.query("size(_, n), x = n, y = 1 / n, n = 0")


def test_readers_see_what_was_granted_and_no_more() -> None:
    with filled() as db:
        db.grant("alice", "reach", "station")
        alice = db.reader("alice")
        assert set(to_python(alice.query('reach("a", y), station(y), y != "b"'))) == {("d",)}
        for hidden in (
            "reach(x, y), blocked(y)",
            "station(x), !blocked(x)",
            "station(x), n = count : { blocked(_) }",
            "n = sum m : { station(x), k = count : { size(x, _) }, m = k }",
            "station(x) ; blocked(x)",
            "station(x), !nowhere(x)",
        ):
            with pytest.raises(AccessError, match="C1040"):
                alice.query(hidden)
        with pytest.raises(AccessError, match="C1042") as caught:
            alice.query("reach(x, y), n = 1 / 0")
        assert "blocked" not in str(caught.value)
