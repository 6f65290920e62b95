"""Window functions of relations in partitions, by Spark SQL: as DuckDB computes them."""

from __future__ import annotations

import random
import re
from collections import Counter
from contextlib import closing
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

import corollary
from corollary.engines.spark.bulk import queries, steps
from corollary.engines.spark.relation import files as partition_files
from corollary.maintain import choose
from support.spark.in_process_partitions import forbid_collecting

if TYPE_CHECKING:
    from collections.abc import Iterable

    from corollary.core.plans import Window
    from corollary.database.database import Database

TABLE = """CREATE TABLE t (s VARCHAR(9), k BIGINT PRIMARY KEY, a INT NOT NULL, b BIGINT, f DOUBLE,
    x DECIMAL(12,2), d DATE)"""

TIES = "b DESC[ NULLS LAST, s NULLS FIRST, k]"
"""The order of ties, which is written out for DuckDB only, is in brackets."""

VALUES = (
    "ROW_NUMBER() OVER line",
    "RANK() OVER ranks",
    "DENSE_RANK() OVER ranks",
    "LAG(s, 2) OVER line",
    "LEAD(b, 1, k) OVER line",
    "COUNT(*) OVER ranks",
    "COUNT(f) OVER ranks",
    "SUM(b) OVER ranks",
    "SUM(x) OVER (line ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING)",
    "SUM(b) OVER (line ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)",
    "MIN(f) OVER (line ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING)",
    "MAX(s) OVER (ranks RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    "FIRST_VALUE(s) OVER line",
    "LAST_VALUE(k) OVER (line ROWS BETWEEN 1 PRECEDING AND 5 FOLLOWING)",
    "NTH_VALUE(d, 3) OVER (line ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING)",
)
WINDOWS = (
    f"WINDOW line AS (PARTITION BY a ORDER BY {TIES}),"
    " ranks AS (PARTITION BY a ORDER BY b DESC[ NULLS LAST])"
)
EVERY = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
VIEWS = {
    "partitions": f"SELECT k, {', '.join(f'{each} AS v{at}' for at, each in enumerate(VALUES))}"
    f" FROM t {WINDOWS}",
    "last_peer": "SELECT k, LAST_VALUE(k) OVER ([[PARTITION BY a ORDER BY b]]"
    f"[PARTITION BY a, b ORDER BY s NULLS FIRST, k {EVERY}]) AS v FROM t",
    "third": "SELECT k, [[NTH_VALUE(k, 3) OVER (PARTITION BY a ORDER BY b)]]"
    "[CASE WHEN COUNT(*) OVER (PARTITION BY a ORDER BY b NULLS FIRST) >= 3 THEN NTH_VALUE(k, 3)"
    f" OVER (PARTITION BY a ORDER BY b NULLS FIRST, s NULLS FIRST, k {EVERY}) END] AS v FROM t",
    "floats": "SELECT k, SUM(f) OVER (PARTITION BY a ORDER BY b[ NULLS FIRST]) AS one, LAG(s) OVER"
    " (PARTITION BY a ORDER BY b[ NULLS FIRST, s NULLS FIRST, k]) AS two FROM t",
    "all_rows": "SELECT k, LAG(k) OVER (ORDER BY s[ NULLS FIRST, k]) AS one,"
    " SUM(b) OVER (ORDER BY s[ NULLS FIRST]) AS two, MIN(d) OVER (ORDER BY s[ NULLS FIRST] RANGE"
    " BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS three FROM t WHERE a <> 2",
    "by_own_code": "SELECT k, [[LAG(s) IGNORE NULLS]][LAG(s IGNORE NULLS)] OVER line AS one,"
    " BIT_XOR(b) OVER ranks AS two, MEDIAN(f) OVER (PARTITION BY a) AS three, COUNT(*) OVER"
    " (PARTITION BY a ORDER BY b[ NULLS FIRST] RANGE BETWEEN 3 PRECEDING AND CURRENT ROW) AS four"
    f" FROM t {WINDOWS}",
    "first_rows": f"SELECT k, n FROM (SELECT k, ROW_NUMBER() OVER (PARTITION BY a ORDER BY {TIES})"
    " AS n FROM t) r WHERE n <= 20",
}


def ours(view: str) -> str:
    return re.sub(r"\[.*?\]", "", re.sub(r"\[\[(.*?)\]\]", r"\1", view, flags=re.DOTALL))


def theirs(view: str) -> str:
    return re.sub(r"[\[\]]", "", re.sub(r"\[\[.*?\]\]", "", view, flags=re.DOTALL))


def row(key: int, chance: random.Random) -> tuple[Any, ...]:
    return (
        chance.choice((None, "", "Z", "a", "ß", "\uffff", "\U0001f600")),
        key,
        chance.randrange(8),
        chance.choice((None, -1, 0, 1, 2**52)),
        chance.choice((None, 0.5, -2.25, float("inf"))),
        chance.choice((None, Decimal("3.25"), Decimal("-100.01"))),
        chance.choice((None, date(2024, 2, 28) + timedelta(chance.randrange(3)))),
    )


def check(db: Database, names: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> None:
    with closing(duckdb.connect()) as judge:
        judge.execute(TABLE)
        judge.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?)", list(rows))
        for name in names:
            expected = Counter(judge.execute(theirs(VIEWS[name])).fetchall())
            assert Counter(db.relation(name).rows()) == expected, name


def test_windows_of_partitioned_relations(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """First evaluation and changes; no relation is read on the driver, few rows are looked up."""
    computed: list[str] = []
    window = steps.SparkSteps.window

    def recorded(self: steps.SparkSteps, step: Window, context: Any) -> Any:
        found = window(self, step, context)
        computed.extend([step.windowing.relation] if found is not None else [])
        return found

    monkeypatch.setattr(steps.SparkSteps, "window", recorded)
    monkeypatch.setattr(steps, "BULK_MIN_TUPLES", 10)
    for module in (steps, choose):
        monkeypatch.setattr(module, "BULK_MIN_FRAME_ROWS", 100)
    monkeypatch.setattr(queries, "COLLECTED_MAX_TUPLES", 20)
    monkeypatch.setattr(partition_files, "FOLD_MIN_TUPLES", 1)
    chance = random.Random(11)
    rows = {key: row(key, chance) for key in range(300)}

    def define(names: Iterable[str]) -> None:
        with monkeypatch.context() as patch:
            forbid_collecting(patch)
            for name in names:
                db.sql(f"CREATE MATERIALIZED VIEW {name} AS {ours(VIEWS[name])}")
        check(db, names, rows.values())

    with corollary.open(None, spark=spark, placement="partitions") as db:
        db.sql(TABLE)
        with db.transaction() as tx:
            tx.insert("t", list(rows.values()))
        changed = ("partitions", "all_rows")
        define(changed)
        # Without `partition by`, all is computed anew; with it, many partitions before and after.
        for count, by_query in ((1, {"all_rows": 1}), (100, {"all_rows": 1, "partitions": 2})):
            new = {key: row(key, chance) for key in range(count * 1000, count * 1001)}
            computed.clear()
            with monkeypatch.context() as patch, db.transaction() as tx:
                forbid_collecting(patch)
                tx.delete("t", [rows.pop(key) for key in chance.sample(sorted(rows), count)])
                tx.insert("t", list(new.values()))
                tx.commit()
            assert Counter(computed) == {f"{name}.window1": n for name, n in by_query.items()}
            rows |= new
            check(db, changed, rows.values())
        define([name for name in VIEWS if name not in changed])
