"""Sums of large groups: a thousand changed rows should cost the same whatever the groups' sizes.

A million rows in memory, in groups of 100 and of 100,000, and a view with `count`, `sum`, `mean`,
`min` and `max` of each group. A transaction deletes 500 rows and inserts 500 others; the figure is
a ratio of medians on the clock, and the view is compared with DuckDB's at the end.
"""

import statistics
import time
from collections.abc import Iterator

import duckdb
import numpy as np
import pyarrow as pa

import corollary
from bench.data import SEED
from bench.figure import Figure
from bench.measure import difference, in_order

NAME = "totals"
ABOUT = "1,000,000 rows in groups, 1,000 of them changed: count, sum, mean, min, max"
ROWS, CHANGED = 1_000_000, 1_000
SMALL, LARGE = 100, 100_000
TRANSACTIONS = 5
BAR = 2.0
PROGRAM = """
.decl entry(id: number, account: number, amount: number) key(id)
.decl total(account: number, entries: number, total: number, average: float, least: number,
    most: number)
total(g, n, t, a, l, m) :-
    entry(_, g, _),
    n = count : { entry(_, g, _) }, t = sum x : { entry(_, g, x) }, a = mean x : { entry(_, g, x) },
    l = min x : { entry(_, g, x) }, m = max x : { entry(_, g, x) }.
"""
SQL = """
SELECT account, count(*), sum(amount)::BIGINT, avg(amount), min(amount), max(amount)
FROM entry GROUP BY ALL
"""


def run(scale: float) -> Iterator[Figure]:
    """Yield the figures, as they are taken."""
    rows = max(4 * CHANGED, round(ROWS * scale))
    (small, few), (large, many) = (_seconds(rows, each) for each in (SMALL, LARGE))
    about = (
        f"groups of {LARGE:,}: {1_000 * large:.1f} ms; of {SMALL:,}: {1_000 * small:.1f} ms"
        f" for {CHANGED:,} changed rows"
    )
    bar = BAR if scale == 1 else None
    yield Figure("large groups", large / small, "×", bar, about, differences=(*few, *many))


def _seconds(rows: int, size: int) -> tuple[float, tuple[str, ...]]:
    """Return what a transaction takes when groups have a size, and what is wrong at the end."""
    random = np.random.default_rng(SEED)
    groups = max(1, rows // size)
    half = CHANGED // 2

    def entries(first: int, count: int) -> pa.Table:
        ids = np.arange(first, first + count)
        amount = random.integers(0, 1_000_000, count)
        return pa.table({"id": ids, "account": random.integers(0, groups, count), "amount": amount})

    now = entries(0, rows)
    times = []
    with corollary.open(None, engine="local") as database:
        database.load(text=PROGRAM)
        with database.transaction() as transaction:
            transaction.insert("entry", now)
        for number in range(TRANSACTIONS):
            gone, fresh = now.slice(0, half), entries(rows + number * half, half)
            now = pa.concat_tables([now.slice(half), fresh])
            began = time.perf_counter()
            with database.transaction() as transaction:
                transaction.delete("entry", gone)
                transaction.insert("entry", fresh)
            times.append(time.perf_counter() - began)
        found = database.relation("total").arrow()
    with duckdb.connect() as connection:
        connection.register("entry", now)
        expected = connection.sql(SQL).to_arrow_table()
    wrong = difference("corollary", in_order(found), "duckdb", expected)
    return statistics.median(times), tuple(wrong)
