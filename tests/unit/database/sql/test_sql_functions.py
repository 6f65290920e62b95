"""Functions that SQL defines: calls stand for their bodies."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.errors import InputError

FUNCTIONS = """
CREATE TABLE t (a INT, b STRING);
INSERT INTO t VALUES (1, 'x'), (2, 'y');
CREATE FUNCTION inc(x INT, by INT DEFAULT 1) RETURNS INT RETURN x + by;
CREATE FUNCTION twice(x INT) RETURNS BIGINT DETERMINISTIC RETURN inc(inc(twice.x));
"""


@pytest.fixture
def db() -> Iterator[corollary.Database]:
    with corollary.open(None, engine="local") as opened:
        opened.sql(FUNCTIONS)
        yield opened


def ask(db: Any, text: str) -> list[tuple[Any, ...]]:
    return sorted(db.sql(text).rows(), key=str)


def refusal(db: Any, text: str) -> str:
    with pytest.raises(InputError) as caught:
        db.sql(text)
    return str(caught.value)


def test_calls_stand_for_bodies(db: corollary.Database) -> None:
    question = "SELECT inc(a) AS i, INC(a, 5) AS j, inc(by => 3, x => a) AS k, twice(a) AS l FROM t"
    assert ask(db, question) == [(2, 6, 4, 3), (3, 7, 5, 4)]
    assert ask(db, "SELECT inc(max(a)) AS m FROM t GROUP BY b HAVING inc(max(a)) > 2") == [(3,)]
    assert ask(db, "SELECT inc('4') AS i") == [(5,)]
    db.sql("UPDATE t SET a = inc(a, 10) WHERE inc(a) = 2")
    assert ask(db, "SELECT a FROM t") == [(11,), (2,)]


def test_views_follow_their_functions(tmp_path: Path) -> None:
    with corollary.open(str(tmp_path / "w"), engine="local") as db:
        db.sql(FUNCTIONS)
        asked = "SELECT inc(a) AS i FROM t"
        assert ask(db, asked) == [(2,), (3,)]
        assert ask(db, asked) == [(2,), (3,)]
        db.sql("CREATE OR REPLACE FUNCTION inc(x INT, by INT DEFAULT 1) RETURNS INT RETURN x - by")
        assert ask(db, asked) == [(0,), (1,)]
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT twice(a) AS l FROM t")
        assert ask(db, "SELECT * FROM v") == [(-1,), (0,)]
        tx = db.sql("CREATE OR REPLACE FUNCTION inc(x INT) RETURNS INT RETURN x * 10")
        assert tx.changes["v"].counts == (2, 2)
    with corollary.open(str(tmp_path / "w"), engine="local") as db:
        db.sql("INSERT INTO t VALUES (3, 'z')")
        assert ask(db, "SELECT * FROM v") == [(100,), (200,), (300,)]
        assert "`v` reads it" in refusal(db, "DROP FUNCTION twice")
        assert "`twice` reads it" in refusal(db, "DROP FUNCTION inc")
        db.sql("DROP VIEW v; DROP FUNCTION twice; DROP FUNCTION inc")
        assert "C1305" in refusal(db, "SELECT inc(1) AS i")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("CREATE FUNCTION inc(x INT) RETURNS INT RETURN x", "C1371"),
        ("CREATE FUNCTION upper(x INT) RETURNS INT RETURN x", "C1371"),
        ("CREATE FUNCTION f(x INT) RETURNS INT RETURN y", "C1303"),
        ("CREATE FUNCTION f(x INT) RETURNS INT RETURN f(x)", "calls itself"),
        ("CREATE FUNCTION f(x INT) RETURNS INT RETURN (SELECT max(a) FROM t)", "write a view"),
        ("CREATE FUNCTION f(x INT) RETURNS INT RETURN sum(x)", "write a view"),
        ("CREATE FUNCTION f(x INT) RETURNS TABLE (a INT) RETURN SELECT 1", "write a view"),
        ("CREATE MATERIALIZED FUNCTION f(x INT) RETURNS INT RETURN x", "`VIEW`"),
        ("SELECT inc() AS i", "it is `inc(x INT, by INT)`"),
        ("SELECT inc(1, 2, 3) AS i", "C1306"),
        ("SELECT inc(1, x => 3) AS i", "C1306"),
        ("CREATE TABLE c (a INT CHECK (inc(a) > 0))", "C1305"),
        ("CREATE TABLE c (a INT DEFAULT inc(1))", "C1305"),
        ("DROP VIEW inc", "DROP FUNCTION inc"),
    ],
)
def test_refused(db: corollary.Database, text: str, said: str) -> None:
    assert said in refusal(db, text)
