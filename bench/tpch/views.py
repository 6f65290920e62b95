"""The views of TPC-H (`tables.sql`, `views.sql`) and the same queries for DuckDB."""

import re
from functools import cache
from pathlib import Path

import sqlglot

from bench.data import Relations

FOLDER = Path(__file__).parent
HEAD = re.compile(r"CREATE MATERIALIZED VIEW (\w+) AS\s")
QUANTITY = 300
"""What an order must have more of to be large (query 18)."""


@cache
def tables_text() -> str:
    """Return the statements that make the tables."""
    return (FOLDER / "tables.sql").read_text("utf-8")


def view_queries(scale: float, quantity: int = QUANTITY) -> dict[str, str]:
    """Return the queries by the names of their views, with the parameters for a scale."""
    text = (FOLDER / "views.sql").read_text("utf-8")
    text = text.replace("{fraction}", f"{0.0001 / scale:.10f}").replace("{quantity}", str(quantity))
    found = {}
    for block in text.split("\n\n"):
        if head := HEAD.search(block):
            found[head[1]] = block[head.end() :].strip().removesuffix(";")
    return found


def statement(name: str, query: str) -> str:
    """Return the statement that makes a view."""
    return f"CREATE MATERIALIZED VIEW {name} AS\n{query};"


def duckdb_query(query: str) -> str:
    """Return a query as DuckDB says it."""
    return sqlglot.transpile(query, read="spark", write="duckdb")[0]


def tables_read(query: str, tables: Relations) -> list[str]:
    """Return the tables that a query reads."""
    tree = sqlglot.parse_one(query, read="spark")
    names = {each.name for each in tree.find_all(sqlglot.exp.Table)}
    return [name for name in tables if name in names]
