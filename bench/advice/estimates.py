"""How far the advisor's estimates are from what is found: TPC-H, 26 queries over its eight tables.

For each query the estimated number of answers is compared with the real one: projections that keep
a key or not, references along one and two columns, constants, ranges, joins of many to many. The
error is a factor, and 1 is exact. The same for times: the floor of a call and the estimated
row-operations, at the seconds that one takes in the median of all other queries, against the median
of some runs.
"""

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

import corollary
from bench.figure import Figure
from bench.tpch.generator import TpchTables
from corollary.advisor.check.measurement import measure_floor
from corollary.advisor.cost.estimates import Estimator
from corollary.advisor.measured_sizes import measure_sizes
from corollary.advisor.model.candidates import SchemeClause
from corollary.advisor.model.scheme_reader import read_scheme
from corollary.advisor.model.shapes import NodeShapes
from corollary.database.database import Database, state_of

SCHEME = """
.decl region(r: number, name: symbol) key(r)
.decl nation(n: number, name: symbol, r: number) key(n)
.decl supplier(s: number, n: number) key(s)
.decl customer(c: number, n: number, segment: symbol) key(c)
.decl part(p: number, brand: symbol, size: number) key(p)
.decl partsupp(p: number, s: number, available: number) key(p, s)
.decl orders(o: number, c: number, day: date, priority: symbol) key(o)
.decl lineitem(o: number, line: number, p: number, s: number, flag: symbol, ship: date,
               mode: symbol) key(o, line)
"""
COLUMNS = {
    "region": ("r_regionkey", "r_name"),
    "nation": ("n_nationkey", "n_name", "n_regionkey"),
    "supplier": ("s_suppkey", "s_nationkey"),
    "customer": ("c_custkey", "c_nationkey", "c_mktsegment"),
    "part": ("p_partkey", "p_brand", "p_size"),
    "partsupp": ("ps_partkey", "ps_suppkey", "ps_availqty"),
    "orders": ("o_orderkey", "o_custkey", "o_orderdate", "o_orderpriority"),
    "lineitem": (
        "l_orderkey",
        "l_linenumber",
        "l_partkey",
        "l_suppkey",
        "l_returnflag",
        "l_shipdate",
        "l_shipmode",
    ),
}
QUERIES = {
    "keeps_key(o, c)": "orders(o, c, _, _)",
    "keeps_line(o, line)": "lineitem(o, line, _, _, _, _, _)",
    "buyers(c)": "orders(_, c, _, _)",
    "sold_parts(p)": "lineitem(_, _, p, _, _, _, _)",
    "flags(flag, mode)": "lineitem(_, _, _, _, flag, _, mode)",
    "supplied(p, s)": "lineitem(_, _, p, s, _, _, _)",
    "order_nation(o, n)": "orders(o, c, _, _), customer(c, n, _)",
    "nations_that_buy(n)": "orders(_, c, _, _), customer(c, n, _)",
    "regions_that_buy(r)": "orders(_, c, _, _), customer(c, n, _), nation(n, _, r)",
    "customers_of(c)": 'customer(c, n, _), nation(n, _, r), region(r, "ASIA")',
    "orders_of(o)": 'orders(o, c, _, _), customer(c, n, _), nation(n, _, r), region(r, "ASIA")',
    "builders(o)": 'orders(o, c, _, _), customer(c, _, "BUILDING")',
    "urgent(o, p)": 'orders(o, _, _, "1-URGENT"), lineitem(o, _, p, _, _, _, _)',
    "early(o)": 'orders(o, _, day, _), day < d"1993-01-01"',
    "late(o, line)": 'lineitem(o, line, _, _, _, ship, _), ship > d"1998-06-01"',
    "returned(c)": 'orders(o, c, _, _), lineitem(o, _, _, _, "R", _, _)',
    "trade(n, m)": "supplier(s, n), lineitem(o, _, _, s, _, _, _), orders(o, c, _, _), "
    "customer(c, m, _)",
    "local(o)": "supplier(s, n), lineitem(o, _, _, s, _, _, _), orders(o, c, _, _), "
    "customer(c, n, _)",
    "stock(o, line, a)": "lineitem(o, line, p, s, _, _, _), partsupp(p, s, a)",
    "brands(c, brand)": "orders(o, c, _, _), lineitem(o, _, p, _, _, _, _), part(p, brand, _)",
    "small(o)": "lineitem(o, _, p, _, _, _, _), part(p, _, size), size <= 5",
    "same_part(c, d)": "customer(c, 3, _), orders(o, c, _, _), lineitem(o, _, p, _, _, _, _), "
    "lineitem(u, _, p, _, _, _, _), orders(u, d, _, _), customer(d, 7, _)",
    "neighbours(c, d)": 'customer(c, n, "MACHINERY"), customer(d, n, "BUILDING")',
    "shipped(mode, r)": "lineitem(o, _, _, _, _, _, mode), orders(o, c, _, _), "
    "customer(c, n, _), nation(n, _, r)",
    "suppliers_of(s, brand)": "partsupp(p, s, _), part(p, brand, _)",
    "scarce(p)": "partsupp(p, _, a), a < 100",
}
WITHIN = 2.0
"""The factor that an estimate may be off."""


RUNS, SLOW_SECONDS = 3, 2.0
"""Timed runs of a query, after a first one; one that is slow is timed once."""
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True, slots=True)
class EstimateError:
    """What was estimated of a query and what was found: a number of answers, or seconds."""

    query: str
    estimated: float
    found: float

    @property
    def ratio(self) -> float:
        """The estimate by what was found."""
        return self.estimated / self.found

    @property
    def factor(self) -> float:
        """How many times too much or too little, at least 1."""
        return max(self.ratio, 1.0 / self.ratio)


def load(scale: float) -> Database:
    """Return a database with the tables and the queries."""
    types: dict[str, str] = {}
    for line in SCHEME.replace("\n               ", " ").splitlines():
        inside = line.partition("(")[2].partition(")")[0]
        for each in inside.split(", "):
            types.setdefault(*each.partition(": ")[::2])
    text = SCHEME
    types |= {"a": "number", "m": "number", "d": "number"}
    for head, body in QUERIES.items():
        name, _, names = head.rstrip(")").partition("(")
        typed = ", ".join(f"{each}: {types[each]}" for each in names.split(", "))
        text += f".decl {name}({typed}) virtual\n{head} :- {body}.\n"
    database = corollary.open(None, engine="local")
    database.load(text=text)
    tables = TpchTables(scale).tables
    with database.transaction() as transaction:
        for name, columns in COLUMNS.items():
            table = tables[name].select(columns)
            ours = state_of(database).writable_relation(name).columns
            transaction.insert(name, pa.table(dict(zip(ours, table.columns, strict=True))))
    return database


def compare(database: Database) -> Iterator[EstimateError]:
    """Yield the error of the number of answers of each query."""
    estimator, clauses = _estimator(database)
    for head, clause in clauses.items():
        estimated = estimator.estimate_clause(clause, clause.leaves).result.rows
        rows = database.query(head).num_rows
        yield EstimateError(head, max(1.0, estimated), max(1.0, float(rows)))


def compare_times(database: Database) -> Iterator[EstimateError]:
    """Yield the error of the expected time of each query."""
    estimator, clauses = _estimator(database)
    program = state_of(database).loaded.program
    floor = measure_floor(program, next(iter(QUERIES)).partition("(")[0])
    works = [estimator.estimate_clause(each, each.leaves).work for each in clauses.values()]
    times = [_seconds_of(database, head) for head in clauses]
    rates = [max(0.0, seconds - floor) / work for seconds, work in zip(times, works, strict=True)]
    for at, head in enumerate(clauses):
        rate = statistics.median([*rates[:at], *rates[at + 1 :]])
        yield EstimateError(head, floor + rate * works[at], times[at])


def _estimator(database: Database) -> tuple[Estimator, dict[str, SchemeClause]]:
    loaded = state_of(database).loaded
    scheme = read_scheme(loaded.program, loaded.checked, ())
    clauses = {head: scheme.clauses[head.partition("(")[0]][0] for head in QUERIES}
    return Estimator(scheme, NodeShapes(scheme), measure_sizes(database)), clauses


def _seconds_of(database: Database, goal: str) -> float:
    """Return the median time of a query."""
    times = []
    for _ in range(RUNS + 1):
        began = time.perf_counter()
        database.query(goal)
        times.append(time.perf_counter() - began)
        if times[-1] > SLOW_SECONDS:
            return times[-1]
    return statistics.median(times[1:])


def run(scale: float) -> Iterator[Figure]:
    """Yield the distribution of the errors; at scale 1 there are 600,000 line items."""
    with load(max(0.001, scale / 10)) as database:
        yield from _figures("estimate", list(compare(database)), WITHIN)
        yield from _figures("expected time", list(compare_times(database)), None)


def _figures(name: str, found: Sequence[EstimateError], limit: float | None) -> Iterator[Figure]:
    errors = sorted(found, key=lambda each: each.factor)
    factors = [each.factor for each in errors]
    ratios = sorted(each.ratio for each in errors)
    within = sum(each <= WITHIN for each in factors)
    worst = ", ".join(f"{each.query} {each.ratio:.2f}" for each in errors[-3:])
    shown = ", ".join(f"{100 * each:.0f} %: {_quantile(ratios, each):.2f}" for each in QUANTILES)
    about = f"by what was found, in quantiles: {shown}"
    yield Figure(f"{name}, median error", statistics.median(factors), "x", None, about)
    about = f"{within} of {len(factors)} within {WITHIN:g} x"
    yield Figure(f"{name}, 90 %", _quantile(factors, 0.9), "x", limit, about)
    yield Figure(f"{name}, worst", factors[-1], "x", None, worst)


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[round(share * (len(ordered) - 1))]
