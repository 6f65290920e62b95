"""Runaway programs stop at their limit, quickly, and the message names the limit and the rule."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import corollary
from corollary.core import engine as core_engine
from corollary.core.arrow import to_python
from corollary.core.engine import Limits
from corollary.core.recorder import CountingRecorder
from corollary.database.program.goals import read_goal
from corollary.database.program.loaded_program import LoadedProgram
from corollary.engines.local.engine import LocalEngine
from corollary.errors import LimitError
from corollary.maintain.algorithms import seminaive
from corollary.maintain.goal_evaluation import solve
from support.comparison import Rows, comparable, prepared

COUNTER = """
.decl start(x: number)
.decl n(x: number)
n(x) :- start(x).
n(x + 1) :- n(x).
"""
DOUBLING = """
.decl start(x: symbol)
.decl s(x: symbol)
s(x) :- start(x).
s(cat(x, x)) :- s(x).
"""
PRODUCT = """
.decl a(x: number)
.decl p(x: number, y: number, z: number)
p(x, y, z) :- a(x), a(y), a(z).
"""
MANY = {"a": [(at,) for at in range(300)]}
SECONDS = 60.0


@contextmanager
def stopped(*words: str) -> Iterator[None]:
    """Expect a LimitError whose message has these words, soon."""
    began = time.process_time()
    with pytest.raises(LimitError) as caught:
        yield
    assert time.process_time() - began < SECONDS
    message = str(caught.value)
    assert all(word in message for word in words), message
    assert caught.value.exit_code == 5


def run(loaded: LoadedProgram, engine: LocalEngine, **limits: Any) -> CountingRecorder:
    tally = CountingRecorder()
    plan = seminaive.plan_program(loaded.normal, engine.statistics())
    engine.run(plan, tally, Limits(**limits))
    return tally


def assert_usable(text: str, facts: Rows, engine: LocalEngine) -> None:
    """The base facts are as before, and another program runs on the same engine."""
    for name, rows in facts.items():
        assert comparable(to_python(engine.read(name))) == comparable(rows)
    other, _ = prepared(
        ".decl other(x: number)\n.decl twice(x: number)\ntwice(2 * x) :- other(x).", {}
    )
    engine.declare(other.normal.relations)
    engine.insert("other", [(1,), (2,)])
    run(other, engine)
    assert comparable(to_python(engine.read("twice"))) == comparable([(2,), (4,)])


CASES = (
    pytest.param(COUNTER, {"start": [(0,)]}, {"rounds": 10}, "10 rounds", "n(x + 1) :- n(x)"),
    pytest.param(COUNTER, {"start": [(0,)]}, {"tuples": 500}, "500 tuples", "n(x + 1) :- n(x)"),
    pytest.param(COUNTER, {"start": [(0,)]}, {"seconds": 0.2}, "0.2 seconds", "n(x + 1) :- n(x)"),
    pytest.param(
        COUNTER, {"start": [(-5,)]}, {"memory": 50_000}, "50000 bytes", "n(x + 1) :- n(x)"
    ),
    pytest.param(DOUBLING, {"start": [("ab",)]}, {"rounds": 9}, "9 rounds", "s(cat(x, x)) :- s(x)"),
    pytest.param(
        DOUBLING, {"start": [("ab",)]}, {"memory": 10**7}, "10000000 bytes", "s(cat(x, x)) :- s(x)"
    ),
    pytest.param(DOUBLING, {"start": [("ab",)]}, {"tuples": 9}, "9 tuples", "s(cat(x, x))"),
    pytest.param(PRODUCT, MANY, {"tuples": 10**5}, "100000 tuples", "a(x), a(y), a(z)"),
    pytest.param(PRODUCT, MANY, {"memory": 10**6}, "1000000 bytes", "a(x), a(y), a(z)"),
    pytest.param(PRODUCT, MANY, {"seconds": 0.05}, "0.05 seconds", "a(x), a(y), a(z)"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "facts", "limits", "limit", "rule"), CASES)
def test_evaluation(text: str, facts: Rows, limits: dict[str, Any], limit: str, rule: str) -> None:
    loaded, engine = prepared(text, facts)
    (option,) = limits
    with stopped(limit, rule, f"--limit-{option}"):
        run(loaded, engine, **limits)
    assert_usable(text, facts, engine)


@pytest.mark.parametrize(
    ("text", "facts", "goal", "limits", "limit"),
    [
        (COUNTER, {"start": [(0,)]}, "n(x)", {"rounds": 10}, "10 rounds"),
        (COUNTER, {"start": [(0,)]}, "n(-1)", {"tuples": 500}, "500 tuples"),
        (DOUBLING, {"start": [("ab",)]}, "s(x)", {"memory": 10**6}, "1000000 bytes"),
        (PRODUCT, MANY, "p(x, y, z)", {"tuples": 1000}, "1000 tuples"),
    ],
)
def test_goals(text: str, facts: Rows, goal: str, limits: dict[str, Any], limit: str) -> None:
    loaded, engine = prepared(text, facts)
    asked = read_goal(loaded, goal)
    answers = asked.answers
    engine.declare({answers.name: answers})
    plan = solve(asked.program, asked.literal, engine.statistics())
    with stopped(limit):
        engine.run(plan, CountingRecorder(), Limits(**limits))
    assert_usable(text, facts, engine)


def test_enough_is_enough() -> None:
    text = COUNTER.replace("n(x).", "n(x), x < 50.")
    loaded, engine = prepared(text, {"start": [(0,)]})
    tally = run(loaded, engine, rounds=51, tuples=200, seconds=30, memory=10**7)
    assert engine.size("n") == 51
    assert tally.rounds["n"] == 51
    _, again = prepared(text, {"start": [(0,)]})
    with stopped("50 rounds"):
        run(loaded, again, rounds=50)


def test_all_relations_together_count() -> None:
    text = """
    .decl a(x: number)
    .decl p(x: number, y: number)
    .decl q(x: number, y: number)
    .decl r(x: number, y: number)
    p(x, y) :- a(x), a(y).
    q(x, y) :- a(x), a(y), x < 250.
    r(x, y) :- a(x), a(y), x > 50.
    """
    loaded, engine = prepared(text, MANY)
    with stopped("100000 tuples"):
        run(loaded, engine, tuples=100_000)


def test_symbols_count_as_memory_in_rules_without_recursion() -> None:
    text = """
    .decl a(x: symbol)
    .decl p(x: symbol)
    p(cat(x, y)) :- a(x), a(y).
    """
    facts = {"a": [(f"{at:03}" + 500 * "x",) for at in range(100)]}
    loaded, engine = prepared(text, facts)
    with stopped("1000000 bytes", "p(cat(x, y)) :- a(x), a(y)"):
        run(loaded, engine, memory=1_000_000)
    assert_usable(text, facts, engine)


def test_a_wide_range_stops() -> None:
    text = ".decl r(x: number)\nr(x) :- x = range(0, 3000000).\n"
    loaded, engine = prepared(text, {})
    with stopped("1000 tuples", "r(x) :- x = range(0, 3000000)"):
        run(loaded, engine, tuples=1000)


def test_a_lower_stratum_is_as_before_too() -> None:
    text = COUNTER + ".decl first(x: number)\nfirst(x) :- start(x).\n"
    text = text.replace("n(x) :- start(x).", "n(x) :- first(x).")
    loaded, engine = prepared(text, {"start": [(0,)]})
    with stopped("5 rounds"):
        run(loaded, engine, rounds=5)
    assert engine.size("n") == 0
    assert engine.size("first") == 0


def test_limitsize_stops_without_an_error() -> None:
    loaded, engine = prepared(COUNTER + ".limitsize n(n=20)\n", {"start": [(0,)]})
    run(loaded, engine, rounds=1000)
    assert 20 <= engine.size("n") <= 22


@pytest.mark.parametrize(
    "values", ["range(0, 1000000000000)", "range(0.0, 20000000000000000.0, 0.5)"]
)
def test_an_endless_range_stops(values: str) -> None:
    kind = "float" if "." in values else "number"
    loaded, engine = prepared(f".decl r(x: {kind})\nr(x) :- x = {values}.\n", {})
    with stopped("100000 tuples"):
        run(loaded, engine, tuples=100_000)


# --- recursion in SQL ----------------------------------------------------------------------------

EDGES = "CREATE TABLE e (a INT, b INT);"
COUNTED = """
WITH RECURSIVE d(a, n) AS (SELECT 1, 0 UNION SELECT e.b, d.n + 1 FROM e JOIN d ON e.a = d.a)
SELECT a, n FROM d
"""
REACHED = """
WITH RECURSIVE d(a) AS (SELECT 1 UNION SELECT e.b FROM e JOIN d ON e.a = d.a) SELECT a FROM d
"""
NUMBERS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION SELECT x + 1 FROM n {}) SELECT COUNT(*) FROM n"
GROWING = """
WITH RECURSIVE n(x) AS (
  SELECT 1 UNION SELECT 2 * x FROM n UNION SELECT 2 * x + 1 FROM n
) SELECT COUNT(*) FROM n
"""


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default bounds of recursion in SQL, made small."""
    monkeypatch.setattr(core_engine, "RECURSION_MAX_ROUNDS", 200)
    monkeypatch.setattr(core_engine, "RECURSION_MAX_TUPLES", 1000)


def test_the_default_bound_leaves_room() -> None:
    assert core_engine.RECURSION_MAX_ROUNDS > 2 * 10_000


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("kind", ["MATERIALIZED VIEW", "VIEW"])
def test_a_recursion_in_sql_is_bounded(kind: str) -> None:
    with corollary.open(None, engine="local") as db:
        db.sql(f"{EDGES} CREATE {kind} r AS {COUNTED}")
        with db.transaction() as tx:
            tx.insert("e", [(at, at + 1) for at in range(1, 190)])
        assert db.sql("SELECT MAX(n) FROM r").rows() == [(189,)]
        commits = db.commits
        with stopped("200 rounds for a recursion that makes new values", "WHERE n < 1000"):
            db.sql("INSERT INTO e VALUES (190, 1)")
            db.sql("SELECT MAX(n) FROM r")
        assert db.commits == commits + (kind == "VIEW")


@pytest.mark.usefixtures("few")
def test_what_is_bounded_by_itself_goes_on() -> None:
    with corollary.open(None, engine="local") as db:
        assert db.sql(NUMBERS.format("WHERE x < 500")).rows() == [(500,)]
        with stopped("200 rounds"):
            db.sql(NUMBERS.format(""))
        with stopped("1,000 tuples"):
            db.sql(GROWING)
        db.sql(f"{EDGES} CREATE VIEW far AS {REACHED}")
        with db.transaction() as tx:
            tx.insert("e", [(at, at + 1) for at in range(1, 400)])
        assert db.sql("SELECT COUNT(*) FROM far").rows() == [(400,)]


@pytest.mark.usefixtures("few")
def test_a_limit_of_the_user_counts_instead() -> None:
    limits = Limits(rounds=300)
    with corollary.open(None, engine="local", limits=limits) as db, stopped("300 rounds"):
        db.sql(NUMBERS.format(""))
