"""INSERT … ON CONFLICT and RETURNING, compared with DuckDB."""

from __future__ import annotations

import random

import duckdb
import pytest

import corollary
from corollary.errors import InputError
from support.selection import sampled, seed_of_run

TABLES = """CREATE TABLE t (a INT, b INT, n INT, s STRING DEFAULT 'd', PRIMARY KEY (a, b));
INSERT INTO t (a, b, n) VALUES (1, 1, 10), (1, 2, 20), (2, 1, 30)"""


@pytest.fixture
def db() -> corollary.Database:
    """A database with a table."""
    made = corollary.open(None, engine="local")
    made.sql(TABLES)
    return made


def _statement(dice: random.Random) -> str:
    keys = dice.sample([(a, b) for a in (1, 2, 3) for b in (1, 2)], dice.randint(1, 3))
    rows = ", ".join(f"({a}, {b}, {dice.randint(1, 9)})" for a, b in keys)
    source = dice.choice((f"VALUES {rows}", f"SELECT * FROM (VALUES {rows}) AS v(x, y, z)"))
    action = dice.choice(
        [
            "(b, a) DO NOTHING",
            "DO NOTHING",
            "(a, b) DO UPDATE SET n = excluded.n",
            "(a, b) DO UPDATE SET n = t.n + excluded.n, s = excluded.s",
            "(a, b) DO UPDATE SET n = excluded.n, s = 'u' WHERE t.n > excluded.n",
        ]
    )
    return f"INSERT INTO t (a, b, n) {source} ON CONFLICT {action} RETURNING *"


@pytest.mark.parametrize("seed", sampled(range(40), 6))
def test_conflicts_are_solved_as_elsewhere(db: corollary.Database, seed: int) -> None:
    dice = random.Random(f"{seed_of_run()} {seed}")
    with duckdb.connect() as judge:
        judge.execute(TABLES)
        for _ in range(3):
            text = _statement(dice)
            returned = db.sql(text).returned
            expected = judge.execute(text).fetchall()
            assert sorted(map(tuple, map(dict.values, returned.to_pylist()))) == sorted(expected)
            rows = judge.execute("SELECT * FROM t").fetchall()
            assert sorted(db.sql("SELECT * FROM t").rows()) == sorted(rows), text


@pytest.mark.parametrize(
    ("text", "returned"),
    [
        ("INSERT INTO t VALUES (5, 5, 5, 'x') RETURNING a, n AS m", [{"a": 5, "m": 5}]),
        ("UPDATE t SET n = n + 1 WHERE b = 2 RETURNING t.n", [{"n": 21}]),
        ("DELETE FROM t AS x WHERE x.n = 30 RETURNING s, a", [{"s": "d", "a": 2}]),
        ("DELETE FROM t WHERE false RETURNING a", []),
        (
            (
                "INSERT INTO t AS x VALUES (1, 1, 1, 'x') ON CONFLICT (a, b) DO UPDATE"
                " SET n = x.n - 1, s = DEFAULT RETURNING n, s"
            ),
            [{"n": 9, "s": "d"}],
        ),
        (
            "INSERT INTO t VALUES (7, 7, 3, 'c'), (7, 7, 1, '') ON CONFLICT DO NOTHING RETURNING n",
            [{"n": 3}],
        ),
        (
            (
                "INSERT INTO t SELECT 7, 7, v.n, 's' FROM (VALUES (3), (1)) AS v(n)"
                " ON CONFLICT (a, b) DO NOTHING RETURNING n"
            ),
            [{"n": 1}],
        ),
    ],
)
def test_rows_are_returned_as_they_are_written(
    db: corollary.Database, text: str, returned: list[dict[str, object]]
) -> None:
    assert db.sql(text).returned.to_pylist() == returned


def test_copies_are_returned(db: corollary.Database) -> None:
    db.sql("CREATE TABLE bag (x INT)")
    text = "INSERT INTO bag VALUES (1), (1) ON CONFLICT DO NOTHING RETURNING x"
    assert db.sql(text).returned.to_pylist() == [{"x": 1}] * 2
    assert db.sql("DELETE FROM bag RETURNING *").returned.to_pylist() == [{"x": 1}] * 2


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("INSERT INTO t VALUES (1, 1, 1, '') ON CONFLICT (a) DO NOTHING", "C1384"),
        ("INSERT INTO t VALUES (1, 1, 1, '') ON CONFLICT (z) DO NOTHING", "C1367"),
        ("INSERT INTO t VALUES (1, 1, 1, '') ON CONFLICT ON CONSTRAINT k DO NOTHING", "C1363"),
        ("INSERT INTO t VALUES (1, 1, 1, '') ON CONFLICT (a, b) DO UPDATE SET n = n", "C1304"),
        ("INSERT OVERWRITE t VALUES (1, 1, 1, '') ON CONFLICT DO NOTHING", "C1361"),
        (
            (
                "INSERT INTO t VALUES (1, 1, 1, ''), (1, 1, 2, '') ON CONFLICT (a, b) DO UPDATE"
                " SET n = excluded.n"
            ),
            "C1374",
        ),
        ("UPDATE t SET n = 1 RETURNING n + 1", "C1363"),
        ("DELETE FROM t RETURNING z", "C1367"),
        (
            (
                "CREATE TRIGGER g AFTER INSERT ON t FOR EACH STATEMENT"
                " INSERT INTO t SELECT * FROM t ON CONFLICT DO NOTHING"
            ),
            "C1365",
        ),
    ],
)
def test_refusals(db: corollary.Database, text: str, code: str) -> None:
    before = sorted(db.sql("SELECT * FROM t").rows())
    with pytest.raises(InputError) as caught:
        db.sql(text)
    assert caught.value.diagnostics[0].code == code
    assert sorted(db.sql("SELECT * FROM t").rows()) == before
