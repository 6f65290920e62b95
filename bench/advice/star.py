"""Views shared between queries: a star schema, and 20 queries on it, then 20 that aggregate.

The queries that aggregate are the same joins with the sum, the number or the maximum of amounts for
each group. Three databases with the same sales: nothing stored, every query stored, and what the
advisor stores for the workload as a whole. For each, in one run:

| figure | what it is |
|---|---|
| views | the number of stored views |
| space | their bytes |
| hour | the seconds of an hour's work: all queries at their frequencies, and the commits |
"""

import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import corollary
from bench.figure import Figure
from corollary.advisor import inputs
from corollary.advisor.advice import Advice
from corollary.advisor.advise import advise
from corollary.advisor.apply import reformulate
from corollary.advisor.measured_sizes import measure_sizes
from corollary.advisor.model.scheme import Options, SelectionMode
from corollary.advisor.model.scheme_reader import read_scheme
from corollary.core.program import Program
from corollary.database.database import Database, state_of

SALES = 200_000
SCHEME = """
.decl sales(k: number, c: number, p: number, d: number, s: number, a: number) key(k)
.decl customer(c: number, city: number, region: symbol) key(c)
.decl product(p: number, brand: number, category: symbol) key(p)
.decl day(d: number, month: number, year: number) key(d)
.decl store(s: number, town: number) key(s)
"""
QUERIES = (
    ("region_category(r, g)", "sales(_, c, p, _, _, _), customer(c, _, r), product(p, _, g)"),
    ("city_category(x, g)", "sales(_, c, p, _, _, _), customer(c, x, _), product(p, _, g)"),
    ("asian_brands(b)", 'sales(_, c, p, _, _, _), customer(c, _, "asia"), product(p, b, _)'),
    ("city_brands(x, b)", "sales(_, c, p, _, _, _), customer(c, x, _), product(p, b, _)"),
    ("toy_cities(x)", 'sales(_, c, p, _, _, _), customer(c, x, _), product(p, _, "toys")'),
    ("region_year(r, y)", "sales(_, c, _, d, _, _), customer(c, _, r), day(d, _, y)"),
    ("city_month(x, m)", "sales(_, c, _, d, _, _), customer(c, x, _), day(d, m, _)"),
    ("cities_of_2024(x)", "sales(_, c, _, d, _, _), customer(c, x, _), day(d, _, 2024)"),
    ("european_months(m, y)", 'sales(_, c, _, d, _, _), customer(c, _, "europe"), day(d, m, y)'),
    ("city_year(x, y)", "sales(_, c, _, d, _, _), customer(c, x, _), day(d, _, y)"),
    ("category_year(g, y)", "sales(_, _, p, d, _, _), product(p, _, g), day(d, _, y)"),
    ("brand_month(b, m)", "sales(_, _, p, d, _, _), product(p, b, _), day(d, m, _)"),
    ("brands_of_2023(b)", "sales(_, _, p, d, _, _), product(p, b, _), day(d, _, 2023)"),
    ("food_months(m, y)", 'sales(_, _, p, d, _, _), product(p, _, "food"), day(d, m, y)'),
    ("brand_year(b, y)", "sales(_, _, p, d, _, _), product(p, b, _), day(d, _, y)"),
    ("town_category(t, g)", "sales(_, _, p, _, s, _), store(s, t), product(p, _, g)"),
    ("town_brands(t, b)", "sales(_, _, p, _, s, _), store(s, t), product(p, b, _)"),
    ("towns_with_books(t)", 'sales(_, _, p, _, s, _), store(s, t), product(p, _, "books")'),
    ("town_region(t, r)", "sales(_, c, _, _, s, _), store(s, t), customer(c, _, r)"),
    ("town_city(t, x)", "sales(_, c, _, _, s, _), store(s, t), customer(c, x, _)"),
)
AGGREGATES = ("sum a", "count", "max a")
"""In turns."""
TYPES = {"r": "symbol", "g": "symbol"}
REGIONS = ("africa", "america", "asia", "europe")
CATEGORIES = ("books", "clothes", "food", "garden", "toys")
FREQUENCIES = (60.0, 20.0, 6.0)
"""Queries per hour, in turns."""
UPDATES = {"sales": 2000.0}
COMMITS_PER_HOUR = 20
"""Each with a part of the updates."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one way to store views takes."""

    views: int
    bytes: float
    query_seconds: float
    commit_seconds: float
    answers: Mapping[str, frozenset[object]]

    @property
    def hour_seconds(self) -> float:
        """The seconds of an hour's work."""
        return self.query_seconds + self.commit_seconds


def heads(*, aggregates: bool) -> list[str]:
    """Return the goals of the workload."""
    return [head.replace(")", ", v)") if aggregates else head for head, _ in QUERIES]


def program_text(storage: str, *, aggregates: bool = False) -> str:
    """Return the program with its queries `virtual` or `stored`.

    A query that aggregates reads the rows of its join from a virtual relation.
    """
    text = SCHEME
    for number, (head, body) in enumerate(QUERIES):
        name, _, names = head.rstrip(")").partition("(")
        groups = names.split(", ")
        columns = ", ".join(f"{each}: {TYPES.get(each, 'number')}" for each in groups)
        if not aggregates:
            text += f".decl {name}({columns}) {storage}\n{head} :- {body}.\n"
            continue
        joined = body.replace("sales(_", "sales(k").replace("_)", "a)", 1)
        aggregate = AGGREGATES[number % 3]
        term = "a" if aggregate.endswith("a") else "_"
        text += f".decl {name}_rows({columns}, k: number, a: number) virtual\n"
        text += f"{name}_rows({names}, k, a) :- {joined}.\n"
        rows = f"{name}_rows({names}, _, {term})"
        text += f".decl {name}({columns}, v: number) {storage}\n{name}({names}, v) :- "
        text += f"{name}_rows({names}, _, _), v = {aggregate} : {{ {rows} }}.\n"
    return text


def tables(sales: int) -> dict[str, pa.Table]:
    """Return random rows of the star."""
    dice = np.random.default_rng(1)
    customers, products, days, stores = max(20, sales // 50), max(20, sales // 200), 730, 40
    key = np.arange(customers)
    product = np.arange(products)
    day = np.arange(days)
    found = {
        "customer": (key, key % 50, np.array(REGIONS)[key % 50 % 4]),
        "product": (product, product % 40, np.array(CATEGORIES)[product % 40 % 5]),
        "day": (day, day // 30 % 12 + 1, 2023 + day // 365),
        "store": (np.arange(stores), np.arange(stores) % 15),
        "sales": (
            np.arange(sales),
            *(dice.integers(0, n, sales) for n in (customers, products, days, stores, 1000)),
        ),
    }
    return {
        name: pa.table({f"c{at}": each for at, each in enumerate(columns)})
        for name, columns in found.items()
    }


def load(text: str, data: dict[str, pa.Table]) -> Database:
    """Return a database with a program and the rows."""
    database = corollary.open(None, engine="local")
    database.load(text=text)
    with database.transaction() as transaction:
        for name, table in data.items():
            columns = state_of(database).writable_relation(name).columns
            transaction.insert(name, table.rename_columns(columns))
    return database


def advised(database: Database) -> tuple[Advice, Program]:
    """Return the advice for the workload, and the program that follows it."""
    loaded = state_of(database).loaded
    names = [head.partition("(")[0] for head, _ in QUERIES]
    frequencies = {name: FREQUENCIES[at % 3] for at, name in enumerate(names)}
    queries = inputs.parse_queries(names, loaded.normal, frequencies)
    options = Options(
        SelectionMode.BUDGET,
        partial_clusters=True,
        updates=UPDATES,
        commits_per_hour=COMMITS_PER_HOUR,
    )
    scheme = read_scheme(loaded.program, loaded.checked, queries)
    advice = advise(scheme, options, measure_sizes(database))
    return advice, reformulate(loaded.checked, loaded.program, advice)


def outcome(database: Database, views: list[str], goals: list[str], sales: int) -> Outcome:
    """Measure one way to store views."""
    engine = state_of(database).engine
    queried, answers = 0.0, {}
    for at, head in enumerate(goals):
        times = []
        found = database.query(head)
        for _ in range(3):
            began = time.perf_counter()
            database.query(head)
            times.append(time.perf_counter() - began)
        queried += FREQUENCIES[at % 3] * min(times)
        answers[head] = frozenset(zip(*(c.to_pylist() for c in found.columns), strict=True))
    dice = random.Random(2)
    times = []
    for number in range(3):
        rows = [
            (sales + 1000 * number + at, dice.randrange(20), dice.randrange(20), at, at % 40, at)
            for at in range(int(UPDATES["sales"] / COMMITS_PER_HOUR))
        ]
        began = time.perf_counter()
        with database.transaction() as transaction:
            transaction.insert("sales", rows)
        times.append(time.perf_counter() - began)
    size = sum(engine.read(name).nbytes for name in views)
    return Outcome(len(views), float(size), queried, COMMITS_PER_HOUR * min(times), answers)


def compare(sales: int, *, aggregates: bool = False) -> tuple[Outcome, Outcome, Outcome, Advice]:
    """Return what nothing, every query and the advised views take, and the advice."""
    data, goals = tables(sales), heads(aggregates=aggregates)
    names = [head.partition("(")[0] for head in goals]
    virtual = program_text("virtual", aggregates=aggregates)
    with load(virtual, data) as plain:
        advice, after = advised(plain)
        nothing = outcome(plain, [], goals, sales)
    with load(program_text("stored", aggregates=aggregates), data) as every:
        each = outcome(every, names, goals, sales)
    with load(virtual, data) as shared:
        transaction = shared.transaction()
        transaction.set_program(after)
        transaction.commit()
        best = outcome(shared, list(advice.views), goals, sales)
    return nothing, each, best, advice


def run(scale: float) -> Iterator[Figure]:
    """Yield the figures; at scale 1 there are 200,000 sales."""
    for name, aggregates in (("star", False), ("star sums", True)):
        sales = max(2000, int(SALES * scale))
        yield from _figures(name, *compare(sales, aggregates=aggregates)[:3])


def _figures(name: str, nothing: Outcome, each: Outcome, best: Outcome) -> Iterator[Figure]:
    wrong = tuple(
        f"{goal}: {way} differs"
        for goal in nothing.answers
        for way, found in (("every query stored", each), ("shared views", best))
        if found.answers[goal] != nothing.answers[goal]
    )
    about = f"{each.views} with every query stored"
    yield Figure(f"{name}: views", best.views, "", each.views - 1, about, differences=wrong)
    about = f"{each.bytes / 1000:.0f} kB with every query stored"
    yield Figure(f"{name}: space", best.bytes / 1000, "kB", None, about)
    about = f"{each.commit_seconds:.2f} s with every query stored, {COMMITS_PER_HOUR} commits"
    yield Figure(f"{name}: upkeep", best.commit_seconds, "s", each.commit_seconds, about)
    about = f"nothing stored {nothing.hour_seconds:.2f} s, every query {each.hour_seconds:.2f} s"
    yield Figure(f"{name}: an hour", best.hour_seconds, "s", None, about)
