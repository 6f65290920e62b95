"""TPC-H's 22 queries as maintained views: first evaluation and refresh against DuckDB.

All tables are in memory, without views. Then each view in turn is made (its first evaluation),
goes three times through both refresh functions (RF1 inserts orders with their lines, RF2 deletes
others), is compared with DuckDB's answer, and is dropped. Figures are ratios of processor time:
ours to that of DuckDB's query on the same data, which is what refreshing by recomputation would
cost. The first refresh makes plans and orders that the others, the steady ones, find made. A
refresh includes what changing the tables costs, which is shown first, without a view.
"""

import math
import statistics
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

import corollary
from bench.data import Relations
from bench.figure import Figure
from bench.tpch.generator import TpchTables
from bench.tpch.views import duckdb_query, statement, tables_text, view_queries
from corollary.database.database import Database

NAME = "tpch"
ABOUT = (
    "TPC-H's 22 queries as views: first evaluation, refresh (RF1, RF2), against DuckDB's queries"
)
THREADS = 2
REFRESHES = 3
AHEAD_BAR, MEDIAN_BAR = 22, 0.3
DIGITS = 4
NUMBERS = int | float | Decimal
"""Of averages and quotients that are compared: DuckDB has doubles where Spark has decimals."""


def run(scale: float) -> Iterator[Figure]:
    """Yield the figures, as they are taken."""
    made = TpchTables(scale)
    with corollary.open(None, engine="local") as database, duckdb.connect() as connection:
        connection.execute(f"SET threads = {THREADS}")
        database.sql(tables_text())
        loaded = _seconds(lambda: _change(database, made.tables, "insert"))
        rows = sum(table.num_rows for table in made.tables.values())
        yield Figure("load", loaded, "s", None, f"{rows:,} rows, scale {scale:g}")
        base = min(_refresh(database, made) for _ in range(REFRESHES))
        yield Figure("refresh, no view", base, "s", None, f"{2 * made.refreshed:,} orders")
        steady = []
        for name, query in view_queries(scale).items():
            for figure in _figures(database, connection, made, name, query):
                yield figure
            steady.append(figure.value)
    bars = (AHEAD_BAR, MEDIAN_BAR) if scale == 1 else (None, None)
    ahead = sum(ratio < 1 for ratio in steady)
    about = f"of {len(steady)} steady refreshes, ahead of DuckDB's query"
    yield Figure("ahead", ahead, "", bars[0], about, is_floor=True)
    yield Figure("median", statistics.median(steady), "×", bars[1], "of steady refreshes")


def _figures(
    database: Database,
    connection: duckdb.DuckDBPyConnection,
    made: TpchTables,
    name: str,
    query: str,
) -> Iterator[Figure]:
    """Yield the figures of one query, that of a steady refresh last."""
    first = _seconds(lambda: database.sql(statement(name, query)))
    refresh, *others = (_refresh(database, made) for _ in range(REFRESHES))
    steady = min(others)
    for table, rows in made.tables.items():
        connection.register(table, rows)
    text = duckdb_query(query)
    theirs = _seconds(lambda: connection.sql(text).to_arrow_table())
    wrong = _differences(database.relation(name).arrow(), connection.sql(text).to_arrow_table())
    database.sql(f"DROP VIEW {name}")
    about = f"{first:.2f} s; DuckDB {theirs:.3f} s"
    yield Figure(f"{name} first", first / theirs, "×", None, about, differences=wrong)
    about = f"{refresh:.3f} s, {refresh / steady:.1f} × a steady one"
    yield Figure(f"{name} first refresh", refresh / theirs, "×", None, about)
    yield Figure(f"{name} refresh", steady / theirs, "×", None, f"{steady:.3f} s")


def _refresh(database: Database, made: TpchTables) -> float:
    """Make both refreshes; return the seconds they take, without those of making the rows."""
    new = made.new_orders()
    seconds = _seconds(lambda: _change(database, new, "insert"))
    old = made.old_orders()
    return seconds + _seconds(lambda: _change(database, old, "delete"))


def _change(database: Database, rows: Relations, verb: str) -> None:
    with database.transaction() as transaction:
        for name, table in rows.items():
            getattr(transaction, verb)(name, table)


def _differences(found: pa.Table, expected: pa.Table) -> tuple[str, ...]:
    """Say how answers differ; means may, in last digits that DuckDB computes as floats."""
    ours, theirs = _in_order(found), _in_order(expected)
    pairs = zip(ours, theirs, strict=False)
    unlike = [pair for pair in pairs if not all(map(_is_same, *pair))]
    if len(ours) == len(theirs) and not unlike:
        return ()
    return (f"{len(ours)} and {len(theirs)} rows, such as {unlike[:1]}",)


def _in_order(table: pa.Table) -> list[tuple[Any, ...]]:
    rows = (tuple(row.values()) for row in table.to_pylist())
    return sorted(rows, key=lambda row: tuple(map(_text, row)))


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, NUMBERS) and isinstance(other, NUMBERS):
        return math.isclose(one, other, rel_tol=1e-12, abs_tol=10**-DIGITS)
    return bool(one == other)


def _text(value: Any) -> str:
    return f"{float(value):.{DIGITS}f}" if isinstance(value, NUMBERS) else str(value)


def _seconds(action: Callable[[], object]) -> float:
    began = time.process_time()
    action()
    return time.process_time() - began
