"""Questions that are answered by remembered plans: the same answers and errors as without them."""

import random
from collections import Counter
from typing import Any

import pytest

import corollary
from corollary.database.access.goal_plans import GoalPlans
from corollary.database.sql.question_plans import SHAPES_MAX, QuestionPlans
from corollary.errors import CorollaryError
from support.selection import examples

PROGRAM = """
CREATE TABLE t (k INT PRIMARY KEY, a STRING, b BIGINT, d DECIMAL(10, 2), day DATE);
CREATE TABLE bag (x INT, y STRING);
CREATE MATERIALIZED VIEW stored AS SELECT a, sum(b) AS s, count(*) AS n FROM t GROUP BY a;
CREATE VIEW computed AS SELECT t.k, bag.y FROM t JOIN bag ON t.k = bag.x;
"""
SHAPES = (
    "SELECT * FROM t WHERE k = {n}",
    "SELECT a, b FROM t WHERE a = {s} ORDER BY b DESC, k LIMIT 2",
    "SELECT k FROM t WHERE {n} <= k AND a <> {s}",
    "SELECT b, k FROM t WHERE k = {n} AND a = {s} AND b >= {n}",
    "SELECT y FROM bag WHERE x = {n}",
    "SELECT DISTINCT y FROM bag WHERE x = {n} OR y = {s}",
    "SELECT s, n FROM stored WHERE a = {s}",
    "SELECT * FROM computed WHERE k = {n}",
    "SELECT count(*) AS c, max(b) FROM t WHERE b < {n} GROUP BY a HAVING count(*) > {n}",
    "SELECT x FROM bag WHERE EXISTS (SELECT 1 FROM t WHERE t.k = bag.x AND a = {s})",
    "SELECT x FROM bag WHERE x NOT IN (SELECT k FROM t WHERE b > {n})",
    "SELECT t.k, y FROM t LEFT JOIN bag ON k = x AND y = {s} WHERE b >= {n}",
    "SELECT a, rank() OVER (ORDER BY b) FROM t WHERE k > {n}",
    "SELECT a FROM t WHERE k = {n} UNION ALL SELECT y FROM bag WHERE x = {n}",
    "WITH few AS (SELECT k, a FROM t WHERE k < {n}) SELECT few.*, y FROM few JOIN bag ON k = x",
    "SELECT k, k = {n}, 'a = 1' FROM t WHERE a >= {s}",
    "SELECT (SELECT max(x) FROM bag WHERE y = {s}) FROM t WHERE k = {n}",
    "SELECT k FROM t WHERE d = {n}",
    "SELECT k FROM t WHERE day >= {day}",
    "SELECT k FROM t WHERE k BETWEEN {n} AND 7 AND NOT (a = {s})",
    "SELECT k FROM t WHERE k = {s}",
    "SELECT b / k FROM t WHERE b / (k - 3) >= {n}",
    "SELECT k FROM t WHERE missing = {n}",
    "SELECT k FROM t WHERE k = {n} AND",
    "SELECT k -- = 1\n FROM t WHERE k = {n}",
    "SELECT k, y FROM t, bag WHERE k = x",
    "SELECT {n}, a FROM t WHERE k = {n}",
    "VALUES ({n})",
)
PARAMETERS = "SELECT k, a FROM t WHERE k >= :least AND a = :text"


def _constants(chance: random.Random) -> dict[str, str]:
    return {
        "n": str(chance.choice((-1, 0, 1, 2, 3, 5, 7, 99, 10**17))),
        "s": f"'{chance.choice(('a', 'b', '', 'é', 'x y'))}'",
        "day": f"'2026-01-0{chance.randrange(1, 5)}'",
    }


def _row(chance: random.Random, key: int) -> str:
    text = chance.choice(("'a'", "'b'", "NULL", "'é'"))
    day = f"DATE '2026-01-0{chance.randrange(1, 5)}'"
    return f"({key}, {text}, {chance.randrange(9)}, {chance.randrange(4)}, {day})"


def _outcome(database: corollary.Database, text: str, values: dict[str, Any]) -> object:
    """Return an answer, with its order if it has one; or an error, with its place."""
    try:
        found = database.sql(text, **values)
    except CorollaryError as error:
        return str(error)
    rows = found.rows()
    return found.columns, found.shape.types, rows if found.is_ordered else Counter(rows)


@pytest.mark.parametrize("seed", range(examples(3, 40)))
def test_remembered_plans_answer_as_if_each_question_was_compiled(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    recalled = QuestionPlans.answer
    remembering = corollary.open(None, engine="local")
    compiling = corollary.open(None, engine="local")
    hits, is_remembering = 0, False

    def answer(plans: QuestionPlans, *given: Any) -> Any:
        nonlocal hits
        found = recalled(plans, *given) if is_remembering else None
        hits += found is not None
        return found

    monkeypatch.setattr(QuestionPlans, "answer", answer)
    changes = [PROGRAM]
    for step in range(60):
        for change in changes:
            for database in (remembering, compiling):
                database.sql(change)
        changes = []
        shape = chance.choice(SHAPES)
        text, values = shape.format(**_constants(chance)), {}
        if chance.random() < 0.1:
            text, values = PARAMETERS, {"least": chance.choice((1, 4, 2.5, None)), "text": "a"}
        is_remembering = True
        found = _outcome(remembering, text, values)
        is_remembering = False
        assert found == _outcome(compiling, text, values), text
        if chance.random() < 0.3:
            rows = ", ".join(_row(chance, 10 * step + at) for at in range(chance.randrange(1, 4)))
            changes.append(f"INSERT INTO t VALUES {rows}")
            changes.append(
                f"INSERT INTO bag VALUES ({10 * step}, 'a'), ({chance.randrange(5)}, 'b')"
            )
        if step == 40:
            changes.append("DROP VIEW computed; CREATE VIEW computed AS SELECT k, a AS y FROM t")
    assert hits > 5
    remembering.close()
    compiling.close()


def test_the_shape_that_was_asked_longest_ago_is_forgotten() -> None:
    with corollary.open(None, engine="local") as database:
        database.sql("CREATE TABLE t (k INT PRIMARY KEY, a STRING); INSERT INTO t VALUES (1, 'a')")
        for number in range(SHAPES_MAX + 10):
            for key in (1, 2):
                text = f"SELECT a AS a{number} FROM t WHERE k + 0 = k AND k <= {key} GROUP BY a"
                assert database.sql(text).rows() == [("a",)]


GOAL_PROGRAM = """
.decl edge(x: symbol, n: number?)
.decl bag(x: symbol) bag
.decl reach(x: symbol, n: number) virtual
reach(x, n) :- edge(x, n), n = n.
reach(x, n) :- reach(x, m), edge(_, n), n = m + 1.
.decl share(n: number, q: number) virtual
share(n, q) :- edge(_, n), n = n, q = 12 / n.
"""
GOALS = (
    "edge({s}, y)",
    "edge(x, {n})",
    "edge({s}, {n})",
    "edge(_, n)",
    "edge(x, x)",
    "edge({n}, y)",
    "bag({s})",
    "bag(x)",
    "reach({s}, n)",
    "reach(x, {n})",
    "share({n}, q)",
    "share(n, {n})",
    "missing({n})",
    "edge({s})",
    "edge({s}, n), n > {n}",
)


def _goal_outcome(database: corollary.Database, goal: str) -> object:
    try:
        found = database.query(goal)
    except CorollaryError as error:
        return str(error)
    return found.schema, sorted(map(repr, found.to_pylist())), found.num_rows


@pytest.mark.parametrize("seed", range(examples(3, 40)))
def test_remembered_goals_are_answered_as_if_each_was_compiled(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    recalled = GoalPlans.recall
    is_remembering, hits = True, 0

    def recall(plans: GoalPlans, *given: Any) -> Any:
        nonlocal hits
        found = recalled(plans, *given) if is_remembering else None
        hits += found is not None
        return found

    monkeypatch.setattr(GoalPlans, "recall", recall)
    with corollary.open(None, engine="local") as one, corollary.open(None, engine="local") as two:
        for database in (one, two):
            database.load(text=GOAL_PROGRAM)
        for _ in range(60):
            if chance.random() < 0.2:
                row = chance.choice("abé"), chance.choice((0, 1, 2, 3, None))
                for database in (one, two):
                    with database.transaction() as transaction:
                        transaction.insert("edge", [row])
                        transaction.insert("bag", [row[:1]])
            text, number = f'"{chance.choice("abé")}"', chance.choice((-1, 0, 1, 2, 7))
            goal = chance.choice(GOALS).format(s=text, n=number)
            is_remembering = True
            found = _goal_outcome(one, goal)
            is_remembering = False
            assert found == _goal_outcome(two, goal), goal
    assert hits > 5
