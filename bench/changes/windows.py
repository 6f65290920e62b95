"""Ten window and group views over 300,000 rows, against DuckDB computing them anew.

Each view has a process of its own, which is stopped at a limit of time or memory: a view that does
not end is a figure too. Figures are ratios of processor time: the first evaluation, one row, and a
thousand rows, each to DuckDB's query on the same rows, taken in turns. The process has kept the
view over half of the rows before, enough for DuckDB to compute in bulk: what is loaded once is no
cost of the view.
"""

import math
import multiprocessing
import resource
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from bench.changes.pair import DELETE, INSERT, Cost, Edit, Pair, create
from bench.figure import Figure

NAME = "windows"
ABOUT = "ten window and group views, 300,000 rows: first, one row, 1,000 rows, by DuckDB's query"
ROWS, WIDTH = 300_000, 100
"""Rows of `event`, and how many of them a group has."""
LIMIT_SECONDS, LIMIT_BYTES = 60.0, 6 << 30
ROUNDS = 5
VIEW = "answer"
TABLES = """
CREATE TABLE event (
    id BIGINT PRIMARY KEY, team BIGINT NOT NULL, day BIGINT NOT NULL, value BIGINT NOT NULL);
CREATE TABLE team (id BIGINT PRIMARY KEY, region BIGINT NOT NULL);
"""
VIEWS = {
    "aggregates": "SELECT team, count(*) AS events, sum(value) AS total, min(value) AS least, "
    "max(value) AS most, count(DISTINCT day) AS days FROM event GROUP BY team",
    "join": "SELECT region, sum(value) AS total, count(*) AS events "
    "FROM event JOIN team ON team = team.id GROUP BY region",
    "top 3": "SELECT team, id, value FROM (SELECT team, id, value, row_number() OVER "
    "(PARTITION BY team ORDER BY value DESC, id) AS place FROM event) AS t WHERE place <= 3",
    "lag": "SELECT id, value - lag(value) OVER (PARTITION BY team ORDER BY day, id) AS gain "
    "FROM event",
    "running": "SELECT id, sum(value) OVER (PARTITION BY team ORDER BY day, id "
    "ROWS UNBOUNDED PRECEDING) AS total FROM event",
    "moving": "SELECT id, sum(value) OVER (PARTITION BY team ORDER BY day, id "
    "ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) AS total FROM event",
    "share": "SELECT id, value, sum(value) OVER (PARTITION BY team) AS total FROM event",
    "rank": "SELECT id, rank() OVER (PARTITION BY team ORDER BY value DESC) AS place FROM event",
    "global rank": "SELECT id, rank() OVER (ORDER BY value DESC) AS place FROM event",
    "top 10": "SELECT id, value FROM event ORDER BY value DESC, id LIMIT 10",
}
LARGE = frozenset({"global rank"})
"""Where one row changes much of the answer."""


class Bars(NamedTuple):
    """What may be taken at most, as multiples of DuckDB's query."""

    first: float
    row: float
    thousand: float


BARS, LARGE_BARS = Bars(5, 0.15, 0.5), Bars(5, 1.2, 1.2)


def run(scale: float) -> Iterator[Figure]:
    """Yield the figures, as they are taken."""
    for name in VIEWS:
        for figure in _limited(name, scale):
            yield figure if scale == 1 else replace(figure, bar=None)


def _limited(name: str, scale: float) -> Iterator[Figure]:
    """Yield the figures of a view from a process of its own, and what stopped it."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(name, scale, sender), daemon=True)
    process.start()
    sender.close()
    try:
        while receiver.poll(LIMIT_SECONDS):
            figure = receiver.recv()
            if figure is None:
                return
            yield figure
        yield Figure(name, math.inf, "×", None, f"does not end within {LIMIT_SECONDS:g} s")
    except EOFError:
        process.join()
        about = f"ends with {process.exitcode}, with at most {LIMIT_BYTES >> 30} GiB"
        yield Figure(name, math.inf, "×", None, about)
    finally:
        process.kill()
        process.join()


def _measure(name: str, scale: float, sender: "Connection[Figure | None, None]") -> None:
    """Send the figures of one view, and None at the end."""
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT_BYTES, LIMIT_BYTES))
    rows, query = round(scale * ROWS), VIEWS[name]
    bars = LARGE_BARS if name in LARGE else BARS
    teams = max(1, rows // WIDTH)
    few = max(WIDTH, rows // 2)
    with Pair.open(TABLES, _tables(few)) as pair:
        pair.database.sql(create(VIEW, query))
        pair.change(Edit(INSERT, "event", _events(few, WIDTH, teams)))
        pair.recompute(query)
    with Pair.open(TABLES, _tables(rows)) as pair:
        first = Cost.of(lambda: pair.database.sql(create(VIEW, query)))
        sender.send(_figure(f"{name} first", [first], [pair.recompute(query)], bars.first))
        for label, number, bar in (
            ("one row", 1, bars.row),
            ("1,000 rows", max(1, round(min(1, scale) * 1000)), bars.thousand),
        ):
            ours, theirs = [], []
            wrong: list[str] = []
            for turn in range(ROUNDS):
                batch = _events(rows + turn * number, number, teams)
                for kind in (INSERT, DELETE):
                    ours.append(pair.change(Edit(kind, "event", batch)))
                    theirs.append(pair.recompute(query))
                    wrong += pair.differences(VIEW, query) if turn == 0 else ()
            figure = _figure(f"{name} {label}", ours, theirs, bar)
            sender.send(replace(figure, differences=tuple(wrong)))
    sender.send(None)


def _figure(name: str, ours: list[Cost], theirs: list[Cost], bar: float) -> Figure:
    one, other = Cost.middle(ours), Cost.middle(theirs)
    ratio = one.processor / other.processor
    return Figure(name, ratio, "×", bar, f"{one}; DuckDB anew {other}")


def _tables(rows: int) -> dict[str, pa.Table]:
    """Return the tables, with so many rows of `event`."""
    teams = max(1, rows // WIDTH)
    team = pa.table({"id": np.arange(teams), "region": np.arange(teams) % 50})
    return {"team": team, "event": _events(0, rows, teams)}


def _events(first: int, number: int, teams: int) -> pa.Table:
    """Return rows of `event`."""
    random = np.random.default_rng(first)
    return pa.table(
        {
            "id": np.arange(first, first + number),
            "team": random.integers(0, teams, number),
            "day": random.integers(0, 1000, number),
            "value": random.integers(0, 1_000_000, number),
        }
    )
