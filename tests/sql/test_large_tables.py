"""Views and questions over tables with rows enough for bulk work by default, beside DuckDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import corollary
from corollary.core.engine import BULK_MIN_TUPLES

ORDERS = BULK_MIN_TUPLES + 5_000
CUSTOMERS = 40_000
TABLES = """
CREATE TABLE orders (id INT PRIMARY KEY, cust INT, amount INT);
CREATE TABLE customer (id INT PRIMARY KEY, region INT);
CREATE TABLE region (id INT PRIMARY KEY, boss INT);
CREATE TABLE visit (cust INT, day INT);
"""
QUERIES = {
    "unmatched": "SELECT COUNT(*) AS c FROM orders o LEFT JOIN customer c ON o.cust = c.id "
    "WHERE c.id IS NULL",
    "chain": "SELECT r.boss, COUNT(*) AS n, COUNT(c.id) AS m, SUM(o.amount) AS s FROM orders o "
    "LEFT JOIN customer c ON o.cust = c.id LEFT JOIN region r ON c.region = r.id GROUP BY r.boss",
    "sales": "SELECT region, SUM(amount) AS s, COUNT(*) AS n FROM orders o "
    "JOIN customer c ON o.cust = c.id GROUP BY region",
    "visits": "SELECT day, COUNT(*) AS n, COUNT(cust) AS m FROM visit GROUP BY day "
    "HAVING COUNT(*) > 5",
    "no_visit": "SELECT SUM(amount) AS s FROM orders "
    "WHERE cust NOT IN (SELECT cust FROM visit WHERE cust > 10)",
    "sets": "SELECT region, boss, COUNT(*) AS n FROM customer JOIN region ON region = region.id "
    "GROUP BY ROLLUP (region, boss)",
    "computed": "SELECT DISTINCT amount * 2 + 1 AS x FROM orders "
    "WHERE amount % 3 = 1 AND cust IS NOT NULL",
}
"""Each has few rows."""


def _column(values: Any, nulls: Any = None) -> pa.Array:
    return pa.array(np.asarray(values, np.int32), mask=nulls)


def _tables() -> dict[str, pa.Table]:
    orders, customers = np.arange(ORDERS), np.arange(CUSTOMERS)
    return {
        "orders": pa.table(
            {
                "id": _column(orders),
                "cust": _column(orders * 7 % 50_000, orders % 11 == 0),
                "amount": _column(orders % 97, orders % 13 == 0),
            }
        ),
        "customer": pa.table(
            {"id": _column(customers), "region": _column(customers % 40, customers % 17 == 0)}
        ),
        "region": pa.table({"id": _column(range(30)), "boss": _column(np.arange(30) % 7)}),
        "visit": pa.table(
            {
                "cust": _column(orders % 20_000, orders % 20_000 < 10),
                "day": _column(orders // 2 % 50),
            }
        ),
    }


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    return _tables()


@pytest.fixture(scope="module")
def database(tables: dict[str, pa.Table]) -> Iterator[corollary.Database]:
    with corollary.open(None, engine="local", bulk="auto") as opened:
        opened.sql(TABLES)
        for name, query in QUERIES.items():
            opened.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        with opened.transaction() as transaction:
            for name, table in tables.items():
                transaction.insert(name, table)
        assert "bulk" in {each.placement for each in transaction.stats.values()}
        yield opened


@pytest.fixture(scope="module")
def judge(tables: dict[str, pa.Table]) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        yield connection


@pytest.mark.parametrize("name", QUERIES)
def test_view_and_question_agree_with_duckdb(
    database: corollary.Database, judge: duckdb.DuckDBPyConnection, name: str
) -> None:
    expected = Counter(judge.execute(QUERIES[name]).fetchall())
    assert expected
    assert Counter(database.relation(name).rows()) == expected
    assert Counter(database.sql(QUERIES[name]).rows()) == expected
    database.sql(f"CREATE MATERIALIZED VIEW late_{name} AS {QUERIES[name]}")
    assert Counter(database.relation(f"late_{name}").rows()) == expected
