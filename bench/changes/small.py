"""Small changes of the views that most people write: what they cost at least, and how that grows.

| figure | what is timed |
|---|---|
| `filter-sum insert`, … | one row in, one out, one changed, with this view stored |
| `… untouched views` | what views of another table add to one row |
| `batch of …` | so many rows in, and out again, through join, sum and count |
| `durable insert` | one row in a warehouse |

Figures are milliseconds of the processor, in memory, medians; beside them stand those on the clock,
and what it costs DuckDB and PostgreSQL to compute the view anew on the same rows, and Pathway to
maintain it, taken in turns; PostgreSQL and Pathway where they are installed.
"""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench import data
from bench.changes.pair import DELETE, INSERT, UPDATE, Cost, Edit, Pair, create
from bench.changes.pathway import PathwayPeer
from bench.changes.postgresql import PostgresqlPeer
from bench.figure import Figure

NAME = "small-changes"
ABOUT = "one row to 100,000 through SQL views, 1 to 500 untouched ones beside: ms of the processor"
ROWS, PRODUCTS, STORES = 300_000, 2000, 500
TABLES = """
CREATE TABLE product (id BIGINT PRIMARY KEY, category BIGINT NOT NULL);
CREATE TABLE sale (
    id BIGINT PRIMARY KEY, product BIGINT NOT NULL, store BIGINT NOT NULL, amount BIGINT NOT NULL);
CREATE TABLE store (id BIGINT PRIMARY KEY, region BIGINT NOT NULL);
"""
JOIN = "join-sum-count"
VIEWS = {
    "filter-sum": "SELECT store, sum(amount) AS total FROM sale WHERE amount > 5000 GROUP BY store",
    JOIN: "SELECT category, sum(amount) AS total, count(*) AS sales "
    "FROM sale JOIN product ON product = product.id GROUP BY category",
    "left-join": "SELECT sale.id, amount, category "
    "FROM sale LEFT JOIN product ON product = product.id AND category < 40",
}
BARS = {"filter-sum": 0.8, JOIN: 1.2, "left-join": 1.2}
BATCHES = {1: None, 10: None, 100: None, 1000: 4.0, 10_000: 15.0, 100_000: None}
"""Rows, and the milliseconds that they may take."""
UNTOUCHED = (1, 50, 500)
UNTOUCHED_BAR, DURABLE_BAR = 0.1, 3.0
ROUNDS = 25
VIEW = "answer"


def run(scale: float) -> Iterator[Figure]:
    """Yield the figures, as they are taken."""
    for figure in _figures(scale):
        yield figure if scale == 1 else replace(figure, bar=None)


def _figures(scale: float) -> Iterator[Figure]:
    rows, rounds = round(scale * ROWS), max(2, round(min(1, scale) * ROUNDS))
    tables = data.sales(rows, PRODUCTS, STORES)
    for name, query in VIEWS.items():
        with (
            Pair.open(TABLES + create(VIEW, query), tables) as pair,
            PostgresqlPeer.open(TABLES, tables, query) as postgresql,
            PathwayPeer.open(tables, name) as pathway,
        ):
            yield from _kinds(pair, (postgresql, pathway), name, query, _edits(rows, rounds))
    yield from _untouched(tables, rows, rounds, scale)
    with Pair.open(TABLES + create(VIEW, VIEWS[JOIN]), tables) as pair:
        yield from _batches(pair, rows, scale)
    with tempfile.TemporaryDirectory() as directory:
        statements = TABLES + create(VIEW, VIEWS[JOIN])
        with Pair.open(statements, tables, Path(directory) / "warehouse") as pair:
            costs = [pair.change(each) for each in _edits(rows, rounds) if each.kind == INSERT]
            yield _figure("durable insert", costs, DURABLE_BAR)


def _kinds(
    pair: Pair,
    peers: Sequence[PostgresqlPeer | PathwayPeer | str],
    name: str,
    query: str,
    edits: Sequence[Edit],
) -> Iterator[Figure]:
    """Yield the figures of one row, by kind of change."""
    costs: dict[str, list[Cost]] = {INSERT: [], UPDATE: [], DELETE: []}
    anew = []
    for edit in edits:
        costs[edit.kind].append(pair.change(edit))
        anew.append(pair.recompute(query))
        for peer in peers:
            if not isinstance(peer, str):
                peer.change(edit)
    answers = (("pathway", each.answer()) for each in peers if isinstance(each, PathwayPeer))
    wrong = pair.differences(VIEW, query, *answers)
    about = "; ".join([f"DuckDB anew {Cost.middle(anew)}", *map(str, peers)])
    for kind, found in costs.items():
        yield _figure(f"{name} {kind}", found, BARS[name], about, wrong)


def _untouched(tables: data.Relations, rows: int, rounds: int, scale: float) -> Iterator[Figure]:
    """Yield what untouched views add to one row, those of each number in turns with none."""
    numbers = [max(1, round(min(1, scale) * each)) for each in UNTOUCHED]
    statements = TABLES + create(VIEW, VIEWS[JOIN])
    for number in numbers:
        views = "".join(
            create(
                f"v{each}",
                f"SELECT region, count(*) AS n FROM store WHERE id > {each} GROUP BY region",
            )
            for each in range(number)
        )
        with (
            Pair.open(statements, tables) as none,
            Pair.open(statements + views, tables) as many,
        ):
            turns = [(none.change(each), many.change(each)) for each in _edits(rows, rounds)]
        base, cost = (Cost.middle(each) for each in zip(*turns, strict=True))
        bar = UNTOUCHED_BAR if number == UNTOUCHED[-1] else None
        added = 1000 * (cost.processor - base.processor)
        about = f"added to one row: {cost}, without them {base}"
        yield Figure(f"{number} untouched views", added, "ms", bar, about)


def _batches(pair: Pair, rows: int, scale: float) -> Iterator[Figure]:
    """Yield the figures of batches that come and go."""
    for size, bar in BATCHES.items():
        number = max(1, round(min(1, scale) * size))
        costs: dict[str, list[Cost]] = {INSERT: [], DELETE: []}
        anew = []
        for turn in range(max(3, ROUNDS // number)):
            batch = _sales(rows + turn * number, number)
            for kind, found in costs.items():
                found.append(pair.change(Edit(kind, "sale", batch)))
                anew.append(pair.recompute(VIEWS[JOIN]))
        wrong = pair.differences(VIEW, VIEWS[JOIN])
        about = f"DuckDB anew {Cost.middle(anew)}"
        for kind, found in costs.items():
            yield _figure(f"batch of {number:,} {kind}", found, bar, about, wrong)


def _edits(rows: int, rounds: int) -> list[Edit]:
    """Return rounds of changes of one row each: it comes, has another amount, and goes."""
    found = []
    for turn in range(rounds):
        row = _sales(rows + turn, 1)
        other = row.set_column(3, "amount", pa.array([9999]))
        found += [
            Edit(INSERT, "sale", row),
            Edit(UPDATE, "sale", other, old=row),
            Edit(DELETE, "sale", other),
        ]
    return found


def _sales(first: int, number: int) -> pa.Table:
    """Return new rows of `sale`."""
    random = np.random.default_rng(first)
    return pa.table(
        {
            "id": np.arange(first, first + number),
            "product": random.integers(0, PRODUCTS, number),
            "store": random.integers(0, STORES, number),
            "amount": random.integers(5001, 9999, number),
        }
    )


def _figure(
    name: str,
    costs: Sequence[Cost],
    bar: float | None,
    about: str = "",
    differences: tuple[str, ...] = (),
) -> Figure:
    middle = Cost.middle(costs)
    told = f"{1000 * middle.wall:.2f} ms on the clock" + (f"; {about}" if about else "")
    return Figure(name, 1000 * middle.processor, "ms", bar, told, differences=differences)
