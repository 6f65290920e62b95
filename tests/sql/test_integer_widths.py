"""Integers of SQL have their bits: what Spark's ANSI mode answers and refuses, tried there."""

from __future__ import annotations

import pytest

import corollary
from corollary.errors import EvaluationError
from corollary.frontends.sql.statements.kept_texts import recompile

TABLES = "CREATE TABLE t (k INT PRIMARY KEY, b BIGINT, s SMALLINT, y TINYINT)"
ROW = "INSERT INTO t VALUES (2147483647, 2147483647, 32767, 127)"
ANSWERS = {
    "b + 1": (2147483648, "BIGINT"),
    "k + 1L": (2147483648, "BIGINT"),
    "k - 1": (2147483646, "INT"),
    "s + 1": (32768, "INT"),
    "y - s": (-32640, "SMALLINT"),
    "k DIV -1": (-2147483647, "BIGINT"),
    "y % 3": (1, "INT"),
    "try_add(k, 1)": (None, "INT"),
    "try_multiply(k, k)": (None, "INT"),
    "shiftleft(k, 33)": (-2, "INT"),
    "coalesce(y, s)": (127, "SMALLINT"),
    "CASE WHEN k > 0 THEN k ELSE b END": (2147483647, "BIGINT"),
    "k * CAST(2 AS BIGINT)": (4294967294, "BIGINT"),
    "length('abc') + y": (130, "INT"),
    "array(k, b)[0] + 1": (2147483648, "BIGINT"),
    "map(1, k, 2, b)[1] + 1": (2147483648, "BIGINT"),
    "bitmap_bucket_number(k) * bitmap_bucket_number(k)": (4294967296, "BIGINT"),
}
OVERFLOWS = (
    *("k + 1", "k * 2", "y + y", "-(-k - 1)", "abs(-k - 1)", "round(k, -1)", "s * s"),
    "-(CAST(-9223372036854775808 AS BIGINT))",
)


@pytest.mark.parametrize("kind", ["VIEW", "MATERIALIZED VIEW"])
def test_values_and_types_are_those_of_spark(kind: str) -> None:
    listed = ", ".join(f"{each} AS c{at}" for at, each in enumerate(ANSWERS))
    with corollary.open(None, engine="local") as database:
        database.sql(f"{TABLES}; CREATE {kind} v AS SELECT {listed} FROM t; {ROW}")
        answer = database.sql("SELECT * FROM v")
        types = [each.spark_name for each in answer.shape.types]
        found = dict(zip(ANSWERS, zip(*answer.rows(), types, strict=True), strict=True))
        assert found == ANSWERS
        total = database.sql("SELECT sum(k) + sum(k), max(k) FROM t")
        assert total.rows() == [(4294967294, 2147483647)]


@pytest.mark.parametrize("bulk", ["never", "always"])
def test_what_does_not_fit_is_refused(bulk: str) -> None:
    with corollary.open(None, engine="local", bulk=bulk) as database:
        database.sql(TABLES)
        for at, each in enumerate(OVERFLOWS):
            database.sql(f"CREATE MATERIALIZED VIEW v{at} AS SELECT {each} AS x FROM t")
            with pytest.raises(EvaluationError, match="Overflow"):
                database.sql(ROW)
            database.sql(f"DROP VIEW v{at}")


def test_a_recursive_column_has_the_bits_of_its_first_branch() -> None:
    query = "WITH RECURSIVE r(n) AS (SELECT {} UNION SELECT n * 1000 FROM r WHERE n < 3000000000) "
    query += "SELECT max(n) FROM r"
    with corollary.open(None, engine="local") as database:
        assert database.sql(query.format("7L")).rows() == [(7_000_000_000,)]
        with pytest.raises(EvaluationError, match="Overflow"):
            database.sql(query.format("7"))


def test_statements_of_an_earlier_version_are_compiled_anew() -> None:
    text = """
        .decl t(k: number, x: number?) key(k)
        .decl v(k: number, y: number?) stored
        .decl w(k: number) stored
        .sql t(text="CREATE TABLE t (k INT PRIMARY KEY, x INT)")
        .sql v(text="CREATE MATERIALIZED VIEW v AS SELECT k, x + 1 AS y FROM t")
        .sql w(text="CREATE MATERIALIZED VIEW w AS SELECT k FROM t")
        v(k, x + 1) := t(k, x).
        w(k) := t(k, _).
    """
    with corollary.open(None, engine="local") as database:
        database.load(text=text)
        database.sql("INSERT INTO t VALUES (1, 2147483647)")
        with pytest.raises(EvaluationError, match="Overflow"), database.transaction() as refused:
            refused.edit(recompile)
        assert database.sql("SELECT y FROM v").rows() == [(2147483648,)]
        database.sql("UPDATE t SET x = 1")
        with database.transaction() as transaction:
            transaction.edit(recompile)
        assert [each.relation for each in transaction.plan if each.relation in "vw"] == ["v"]
        assert [each.spark_name for each in database.sql("SELECT * FROM v").shape.types] == [
            "INT",
            "INT",
        ]
