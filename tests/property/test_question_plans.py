"""What is remembered by shape: the same answers, changes and errors as without remembering."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

import corollary
from corollary.core.engine import Limits
from corollary.database.database import state_of
from corollary.database.reading import shape_plans
from corollary.database.reading.shape_plans import ShapeCache
from corollary.errors import CorollaryError, LimitError
from support.selection import examples

PROGRAM = """
CREATE TABLE t (
  k INT PRIMARY KEY, a STRING, b BIGINT, d DECIMAL(10, 2), day DATE, f DOUBLE, o BOOLEAN
);
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
    "SELECT b - k * 2, 'z', y FROM (SELECT 1 AS y) JOIN t ON y = 1 WHERE k = {n}",
    "SELECT x + x, 5, NULL FROM bag WHERE y = {s}",
    "SELECT b * 9000000000000000000 FROM t WHERE k = {n}",
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
PLAIN = (
    "SELECT k FROM t WHERE day >= :day",
    "SELECT k, :f AS f FROM t WHERE f = :f AND day = :day",
    "SELECT k FROM t WHERE o = :o AND d > :d",
    "SELECT :o, k, k * :n - :n FROM t WHERE d = :d",
    "SELECT k, 'CAST(:moment AS DATE)' FROM t WHERE day <= CAST(:moment AS DATE)",
    "SELECT k, :moment FROM t WHERE day = CAST(:moment AS DATE)",
    "SELECT k, CAST(:moment AS TIMESTAMP), CAST(:moment AS DATE) FROM t WHERE k > 2",
)
"""Questions with parameters of all plain types."""
WRITES = (
    "INSERT INTO t VALUES ({key}, {s}, {n}, 2.5, DATE {day}, 1.5, true)",
    "INSERT INTO t (b, k) VALUES ({n}, {key}), ({n}, {key} + 1)",
    "INSERT INTO t (k, a, b) VALUES ({key}, 'it''s', NULL)",
    "INSERT INTO t VALUES ({key}, :text, :n, :d, :day, :f, :o)",
    "INSERT INTO t (day, k) VALUES (CAST(:moment AS DATE), {key})",
    "UPDATE t SET day = CAST(:moment AS DATE) WHERE k = {n}",
    "INSERT INTO bag VALUES ({n}, {s}), ({n}, NULL)",
    "INSERT INTO bag SELECT k, {s} FROM t WHERE k > {n}",
    "UPDATE t SET b = b + 1 WHERE k = {n}",
    "UPDATE t SET b = {n}, a = {s} WHERE k = {n}",
    "UPDATE t SET b = b * :n - k, day = DATE '2026-02-01', a = NULL WHERE k = {n}",
    "UPDATE bag SET x = x + 1 WHERE y = {s}",
    "UPDATE t SET b = b * :n - {n}, day = :day WHERE k > {n} AND a = {s}",
    "UPDATE t SET f = :f, o = :o, d = :d WHERE k = {n}",
    "UPDATE t SET k = k + {n} WHERE a = {s}",
    "UPDATE t SET a = {n} WHERE k = {n}",
    "UPDATE t SET k = NULL WHERE k = {n}",
    "UPDATE bag SET y = {s} WHERE x = {n}",
    "UPDATE t SET b = 1 / (k - {n})",
    "DELETE FROM t WHERE k = {n}",
    "DELETE FROM bag WHERE x = {n} AND y = {s}",
    "DELETE FROM t WHERE b > (SELECT max(x) FROM bag WHERE y = {s})",
    "DELETE FROM stored WHERE a = {s}",
    "UPDATE t SET missing = {n}",
)


def _constants(chance: random.Random) -> dict[str, str]:
    return {
        "n": str(chance.choice((-1, 0, 1, 2, 3, 5, 7, 99, 10**17))),
        "s": f"'{chance.choice(('a', 'b', '', 'é', 'x y'))}'",
        "day": f"'2026-01-0{chance.randrange(1, 5)}'",
    }


def _row(chance: random.Random, key: int) -> str:
    text = chance.choice(("'a'", "'b'", "NULL", "'é'"))
    day = f"DATE '2026-01-0{chance.randrange(1, 5)}'"
    flag = chance.choice(("true", "false", "NULL"))
    numbers = f"{chance.randrange(9)}, {chance.randrange(4)}"
    return f"({key}, {text}, {numbers}, {day}, {chance.randrange(3)} / 2, {flag})"


def _values(chance: random.Random) -> dict[str, Any]:
    return {
        "day": date(2026, 1, chance.randrange(1, 5)),
        "f": chance.choice((0.0, -0.0, 0.5, 1, float("nan"))),
        "d": chance.choice((Decimal("1.00"), Decimal(2), Decimal("1.555"), 3)),
        "o": chance.choice((True, False)),
        "n": chance.choice((1, 2, 10**18)),
        "text": chance.choice(("a", "é", None)),
        "moment": chance.choice(("2026-01-02", "2026-1-3", "2026-01", "2026-01-04 08:00", "x")),
    }


def _outcome(database: corollary.Database, text: str, values: dict[str, Any]) -> object:
    """Return an answer, with its order if it has one; or an error, with its place."""
    try:
        found = database.sql(text, **values)
    except CorollaryError as error:
        return str(error)
    rows = list(map(repr, found.rows()))
    return found.columns, found.shape.types, rows if found.is_ordered else sorted(rows)


class Shapes:
    """Remembers shapes in one database at a time, and counts what is recalled."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        recalled = ShapeCache.recall
        self.hits, self._is_on = 0, False

        def recall(shapes: ShapeCache, *given: Any, **options: Any) -> Any:
            found = recalled(shapes, *given, **options) if self._is_on else None
            self.hits += found is not None
            return found

        monkeypatch.setattr(ShapeCache, "recall", recall)

    @contextmanager
    def remembered(self) -> Iterator[None]:
        self._is_on = True
        yield
        self._is_on = False


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(examples(1, 40)))
def test_remembered_plans_answer_as_if_each_question_was_compiled(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    shapes = Shapes(monkeypatch)
    remembering = corollary.open(None, engine="local")
    compiling = corollary.open(None, engine="local")
    changes = [PROGRAM]
    few = chance.sample(SHAPES, 12)
    for step in range(60):
        for change in changes:
            for database in (remembering, compiling):
                database.sql(change)
        changes = []
        shape = chance.choice(few)
        text, values = shape.format(**_constants(chance)), {}
        if chance.random() < 0.1:
            text, values = PARAMETERS, {"least": chance.choice((1, 4, 2.5, None)), "text": "a"}
        elif chance.random() < 0.2:
            text, values = chance.choice(PLAIN), _values(chance)
        with shapes.remembered():
            found = _outcome(remembering, text, values)
        assert found == _outcome(compiling, text, values), text
        if chance.random() < 0.3:
            rows = ", ".join(_row(chance, 10 * step + at) for at in range(chance.randrange(1, 4)))
            changes.append(f"INSERT INTO t VALUES {rows}")
            changes.append(
                f"INSERT INTO bag VALUES ({10 * step}, 'a'), ({chance.randrange(5)}, 'b')"
            )
        if step == 40:
            changes.append("DROP VIEW computed; CREATE VIEW computed AS SELECT k, a AS y FROM t")
    assert shapes.hits > 3
    remembering.close()
    compiling.close()


def _write_outcome(database: corollary.Database, text: str, values: dict[str, Any]) -> object:
    try:
        done = database.sql(text, **values)
        found: object = {name: each.counts for name, each in done.changes.items()}
    except CorollaryError as error:
        found = str(error)
    rows = [
        sorted(map(repr, database.sql(f"SELECT * FROM {each}").rows()))
        for each in ("t", "bag", "stored")
    ]
    return found, rows


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(examples(1, 40)))
def test_remembered_writes_change_what_each_would_change_if_it_was_compiled(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    shapes = Shapes(monkeypatch)
    with corollary.open(None, engine="local") as one, corollary.open(None, engine="local") as two:
        for database in (one, two):
            database.sql(PROGRAM)
        for step in range(60):
            constants = _constants(chance)
            text = chance.choice(WRITES).format(**constants, key=step % 8)
            values = _values(chance) if ":" in text else {}
            with shapes.remembered():
                found = _write_outcome(one, text, values)
            assert found == _write_outcome(two, text, values), (text, values)
    assert shapes.hits > 5


def test_a_remembered_question_that_meets_a_limit_is_not_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with corollary.open(None, engine="local") as database:
        database.sql("CREATE TABLE t (k INT PRIMARY KEY, a INT)")
        with database.transaction() as transaction:
            transaction.insert("t", [(each, each % 2) for each in range(1000)])
        text = "SELECT x.k, y.k FROM t AS x JOIN t AS y ON x.a = y.a WHERE x.k < {}"
        for most in (1, 2):
            assert len(database.sql(text.format(most))) == 500 * most
        state, runs = state_of(database), 0
        engine_run = type(state.engine).run

        def run(*given: Any, **options: Any) -> object:
            nonlocal runs
            runs += 1
            return engine_run(*given, **options)

        monkeypatch.setattr(type(state.engine), "run", run)
        state.limits = Limits(tuples=10_000)
        with pytest.raises(LimitError):
            database.sql(text.format(1000))
        assert runs == 1


def test_the_shape_that_was_asked_longest_ago_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shape_plans, "SHAPES_MAX", 8)
    with corollary.open(None, engine="local") as database:
        database.sql("CREATE TABLE t (k INT PRIMARY KEY, a STRING); INSERT INTO t VALUES (1, 'a')")
        for number in range(18):
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


@pytest.mark.smoke
@pytest.mark.parametrize("seed", range(examples(1, 40)))
def test_remembered_goals_are_answered_as_if_each_was_compiled(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    shapes = Shapes(monkeypatch)
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
            with shapes.remembered():
                found = _goal_outcome(one, goal)
            assert found == _goal_outcome(two, goal), goal
    assert shapes.hits > 5
