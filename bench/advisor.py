"""What advice is worth: the paper's airlines with a million services, before and after.

| figure | how it is taken |
|---|---|
| expected speed-up | rows handled before and after, as the advisor estimates them |
| speed-up | the same query in turns on the original and on the advised program; medians |
| rows expected, rows | of the new view |
| build | the transaction that stores the view |
| a change | random changes of one tuple each, with the view to maintain; median |
| exact | the view against its recomputation, after every quarter of the changes |
| clauses | the advisor's own time for programs of many clauses and literals |
| star | 20 queries on a star: nothing stored, every query stored, views that queries share |
| estimate | the answers expected of queries over the tables of TPC-H, and those found |
"""

import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

import corollary
from bench.advice import estimates, large_programs, star
from bench.figure import Figure
from corollary.advisor.advice import Advice
from corollary.advisor.check.verification import find_differing_views
from corollary.advisor.consultation import consult
from corollary.database.database import Database, state_of

NAME = "advisor"
ABOUT = "airlines that serve two connected airports, 1,000,000 services"
PROGRAM = """
.decl services(airline: number, airport: number)
.decl connection(from: number, to: number)
.decl base(airline: number, airport: number)
.decl view(airline: number, base: number) virtual
view(a, b) :- services(a, p1), services(a, p2), connection(p1, p2), base(a, b).
"""
AIRLINES, AIRPORTS, SERVED, CONNECTIONS, BASES = 20_000, 2_000, 50, 2_500, 3
CHANGES = 1_000
RUNS = 3
GOAL = "view(a, b)"


def run(scale: float) -> Iterator[Figure]:
    """Yield the figures, as they are taken."""
    with tempfile.TemporaryDirectory() as directory:
        original = corollary.open(None, engine="local")
        lasting = corollary.open(Path(directory) / "warehouse", engine="local")
        for database in (original, lasting):
            database.load(text=PROGRAM)
            fill(database, scale)
        consultation = consult(lasting, ["view"])
        advice = consultation.advice
        began = time.perf_counter()
        consultation.apply()
        build = time.perf_counter() - began
        yield from _speed(advice, original, lasting)
        yield Figure("build", build, "s", None, "the commit that stores the view and the program")
        yield from _changes(lasting, advice, max(8, int(CHANGES * min(1.0, scale))))
    yield from estimates.run(scale)
    yield from large_programs.run(scale)
    yield from star.run(scale)


def fill(database: Database, scale: float) -> None:
    """Write random data; at scale 1 there are a million services."""
    dice = np.random.default_rng(1)
    airlines, airports = max(20, int(AIRLINES * scale)), max(200, int(AIRPORTS * scale))
    served = [dice.choice(airports, SERVED, replace=False) for _ in range(airlines)]
    tables = {
        "services": (np.repeat(np.arange(airlines), SERVED), np.concatenate(served)),
        "connection": tuple(dice.integers(0, airports, (2, max(8, int(CONNECTIONS * scale))))),
        "base": (
            np.repeat(np.arange(airlines), BASES),
            dice.integers(0, airports, airlines * BASES),
        ),
    }
    with database.transaction() as transaction:
        for name, (left, right) in tables.items():
            columns = state_of(database).writable_relation(name).columns
            transaction.insert(name, pa.table(dict(zip(columns, (left, right), strict=True))))


def _speed(advice: Advice, original: Database, changed: Database) -> Iterator[Figure]:
    times: tuple[list[float], list[float]] = ([], [])
    answers: list[set[tuple[object, ...]]] = []
    for turn in range(RUNS + 1):
        for side, database in zip(times, (original, changed), strict=True):
            began = time.perf_counter()
            found = database.query(GOAL)
            side.append(time.perf_counter() - began)
            if not turn:
                answers.append(set(zip(*(c.to_pylist() for c in found.columns), strict=True)))
    wrong = () if answers[0] == answers[1] else ("the answers differ",)
    before, after = (statistics.median(side[1:]) for side in times)
    work = advice.queries["view"].work
    assert work is not None
    (view,) = advice.views.values()
    assert view.estimate is not None
    expected = f"{work[0]:,.0f} -> {work[1]:,.0f} row-ops, N^3 -> N^2"
    yield Figure("expected speed-up", work[0] / work[1], "x", None, expected)
    about = f"{1000 * before:.1f} -> {1000 * after:.1f} ms, {len(answers[0]):,} answers"
    yield Figure("speed-up", before / after, "x", 5.0, about, is_floor=True, differences=wrong)
    yield Figure("rows expected", view.estimate.rows, "", None, "of the new view")
    yield Figure("rows", state_of(changed).engine.size(view.name), "", None, "of the new view")


def _changes(database: Database, advice: Advice, count: int) -> Iterator[Figure]:
    """Change random tuples one at a time, and compare the view with its recomputation."""
    dice = random.Random(1)
    names = ("services", "connection", "base")
    rows = {
        name: list(
            zip(*(c.to_pylist() for c in database.relation(name).arrow().columns), strict=True)
        )
        for name in names
    }
    times: list[float] = []
    wrong: list[str] = []
    flips = 0
    for number in range(1, count + 1):
        name = dice.choice(names)
        verb, row = "delete", dice.choice(rows[name])
        if dice.random() < 0.5:
            verb, row = "insert", (dice.choice(rows[name])[0], dice.choice(rows[name])[1])
        began = time.perf_counter()
        with database.transaction() as transaction:
            getattr(transaction, verb)(name, [row])
        times.append(time.perf_counter() - began)
        flips += any(sum(transaction.changes[view].counts) for view in advice.views)
        if number % max(1, count // 4) == 0:
            wrong += find_differing_views(database, advice.views)
    about = f"median of {count:,} commits, {flips} of them changed the view"
    yield Figure("a change", 1000 * statistics.median(times), "ms", None, about)
    exact = f"differences in 4 comparisons during {count:,} changes"
    yield Figure("exact", float(len(wrong)), "", 0.0, exact, differences=tuple(wrong))
