"""Aggregates over joins as one query: what is computed together, and what falls back."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import sqlglot
from sqlglot import exp

import corollary
from corollary.core.engine import BulkMode, Limits
from corollary.core.plans import Derive
from corollary.core.recorder import CountingRecorder
from corollary.core.statistics import Statistics
from corollary.database.database import state_of
from corollary.database.program.loaded_program import load_program
from corollary.engines.local.bulk.distinct_rows import has_distinct_rows
from corollary.engines.local.bulk.fusion import find_fused_steps
from corollary.engines.local.engine import LocalEngine
from corollary.errors import EvaluationError
from corollary.frontends.datalog.parser import parse
from corollary.maintain.algorithms import seminaive
from corollary.source import SourceFile
from corollary.sqlgen import nodes
from corollary.sqlgen.duckdb_dialect import write_duckdb
from support.selection import examples

SALES = """
.decl sale(id: number, product: number, amount: number?, weight: unsigned)
.decl product(id: number, category: symbol)
.decl line(id: number, category: symbol, amount: number?, weight: unsigned)
line(i, c, a, w) :- sale(i, p, a, w), product(p, c).
.decl answer(category: symbol, total: number, lines: number, mean: float, least: number,
    most: number, weight: unsigned)
answer(c, t, n, m, l, g, w) :-
    line(_, c, _, _),
    t = sum a : { line(_, c, a, _) },
    n = count : { line(_, c, _, _) },
    m = mean a : { line(_, c, a, _) },
    l = min a : { line(_, c, a, _) },
    g = max a : { line(_, c, a, _) },
    w = sum v : { line(_, c, _, v) }.
"""


class QueryRecorder(CountingRecorder):
    """Counts queries, and the tuples of working relations."""

    def __init__(self) -> None:
        super().__init__()
        self.queries = 0
        self.sizes: dict[str, int] = {}

    def bulk(self) -> None:
        """Count a query."""
        self.queries += 1

    def step(self, step: Any, size: int, read: int) -> None:
        """Note the size of a result."""
        super().step(step, size, read)
        self.sizes[step.target] = size


def evaluate(
    text: str, facts: Mapping[str, Any], mode: BulkMode, asked: str = "answer"
) -> tuple[list[tuple[object, ...]], QueryRecorder]:
    """Return the relation that is asked for, and what was recorded."""
    program = load_program(parse(SourceFile("test", text))).normal
    engine = LocalEngine(mode)
    engine.declare(program.relations)
    for name, rows in facts.items():
        engine.insert(name, rows)
    recorder = QueryRecorder()
    plan = seminaive.plan_program(program, engine.statistics(), asked={asked})
    engine.run(plan, recorder, Limits())
    columns = engine.read(asked).columns
    found = sorted(zip(*(column.to_pylist() for column in columns), strict=True))
    return found, recorder


def sales(count: int) -> dict[str, list[tuple[object, ...]]]:
    random = np.random.default_rng(1)
    amounts = random.integers(-(2**40), 2**40, count).tolist()
    return {
        "sale": [
            (at, at % 7, None if at % 11 == 0 else amount, 2**63 + at if at < 1 else at)
            for at, amount in enumerate(amounts)
        ],
        "product": [(at, f"c{at % 3}") for at in range(7)],
    }


def test_all_aggregates_of_a_join_are_one_query() -> None:
    facts = sales(500)
    expected, _ = evaluate(SALES, facts, BulkMode.NEVER)
    found, recorder = evaluate(SALES, facts, BulkMode.ALWAYS)
    assert found == expected
    assert len(found) == 3
    assert recorder.sizes["line•rows"] == 0, "the join is not made"
    assert recorder.queries == 2, "one for the groups, one for the answer"


def test_rows_that_may_be_equal_are_made_distinct() -> None:
    """`line` has no key of `sale`: two sales may give the same line."""
    text = """
    .decl sale(id: number, product: number, amount: number)
    .decl line(product: number, amount: number)
    line(p, a) :- sale(_, p, a).
    .decl answer(product: number, total: number, lines: number)
    answer(p, t, n) :- line(p, _), t = sum a : { line(p, a) }, n = count : { line(p, _) }.
    """
    facts = {"sale": [(1, 1, 5), (2, 1, 5), (3, 1, 6), (4, 2, 5)]}
    for mode in BulkMode:
        found, _ = evaluate(text, facts, mode)
        assert found == [(1, 11, 2), (2, 5, 1)]


def test_keys_say_that_rows_are_distinct() -> None:
    text = """
    .decl sale(id: number, product: number, amount: number)
    .decl product(id: number, category: number, name: symbol)
    .decl line(id: number, category: number)
    line(i, c) :- sale(i, p, _), product(p, c, _).
    """
    program = load_program(parse(SourceFile("test", text))).normal
    plan = seminaive.plan_program(program, Statistics())
    steps = (step for steps in plan.procedures.values() for step in steps)
    (pipeline,) = next(each for each in steps if isinstance(each, Derive)).pipelines
    for products, expected in (
        ([(1, 1, "a"), (2, 1, "a")], True),
        ([(1, 1, "a"), (1, 1, "b")], False),
    ):
        engine = LocalEngine(BulkMode.NEVER)
        engine.declare(program.relations)
        engine.insert("sale", [(1, 1, 1), (2, 1, 1)])
        engine.insert("product", products)
        assert has_distinct_rows(pipeline, engine._tables) is expected


def test_a_key_can_be_aggregated() -> None:
    text = """
    .decl sale(id: number, product: symbol)
    .decl line(id: number, product: symbol)
    line(i, p) :- sale(i, p), i > 0.
    .decl answer(product: symbol, best: symbol, total: number)
    answer(p, b, t) :- line(_, p), b = max p : { line(_, p) }, t = sum i : { line(i, p) }.
    """
    facts = {"sale": [(1, "a"), (2, "a"), (3, "b")]}
    for mode in BulkMode:
        assert evaluate(text, facts, mode)[0] == [("a", "a", 3), ("b", "b", 3)]


def test_a_missing_value_in_the_rows_is_judged() -> None:
    text = """
    .decl sale(id: number, amount: number)
    .decl line(id: number, amount: number)
    line(i, 10 / a) :- sale(i, a).
    .decl answer(total: number)
    answer(t) :- t = sum a : { line(_, a) }.
    """
    said = []
    for mode in BulkMode:
        with pytest.raises(EvaluationError) as raised:
            evaluate(text, {"sale": [(1, 5), (2, 0)]}, mode)
        said.append(str(raised.value))
    assert len(set(said)) == 1
    fine = text.replace("sale(i, a).", "sale(i, a), a != 0.")
    for mode in BulkMode:
        assert evaluate(fine, {"sale": [(1, 5), (2, 0)]}, mode)[0] == [(2,)]


def test_a_mean_that_is_not_exact_is_computed_here() -> None:
    text = """
    .decl sale(id: number, amount: number)
    .decl line(id: number, amount: number)
    line(i, a) :- sale(i, a), i > 0.
    .decl answer(mean: float, lines: number)
    answer(m, n) :- m = mean a : { line(_, a) }, n = count : { line(_, _) }.
    """
    facts = {"sale": [(at, 2**62 + at) for at in range(1, 4)]}
    expected, _ = evaluate(text, facts, BulkMode.NEVER)
    found, recorder = evaluate(text, facts, BulkMode.ALWAYS)
    assert found == expected
    assert recorder.sizes["line•rows"] == 0


JOINS = """
.decl item(id: number, order: number?, kind: symbol)
.decl orders(id: number?, customer: symbol, day: number)
.decl customer(id: symbol, nation: number, segment: symbol)
.decl supplier(kind: symbol, nation: number)
.decl line(id: number, day: number, nation: number)
line(i, d, n) :- item(i, o, k), orders(o, c, d), customer(c, n, "s1"), supplier(k, n), d != 3.
.decl answer(nation: number, days: number, lines: number)
answer(n, s, c) :- line(_, _, n), s = sum d : { line(_, d, n) }, c = count : { line(_, _, n) }.
"""


@pytest.mark.parametrize("seed", range(examples(3, 8)))
@pytest.mark.parametrize("is_key", [True, False])
def test_joins_by_lookup_are_joins(seed: int, *, is_key: bool) -> None:
    """Keys that are missing, null, outside of the range, or not unique; constants; two ways."""
    random = np.random.default_rng(seed)

    def number(below: int) -> int:
        return int(random.integers(below))

    orders = [(None if at == 5 else at * 3, f"c{number(6)}", number(5)) for at in range(20)]
    customers = [(f"c{at}", number(2), f"s{number(2)}") for at in range(5)]
    if not is_key:
        orders += [(at * 3, f"c{number(6)}", 9) for at in range(4)]
        customers += [("c1", 7, "s1"), ("c2", 0, "s1")]
    facts = {
        "item": [
            (at, None if at % 9 == 0 else number(90) - 10, f"k{number(4)}") for at in range(300)
        ],
        "orders": orders,
        "customer": customers,
        "supplier": [("k0", 0), ("k1", 1), ("k2", 0)] + ([] if is_key else [("k0", 1)]),
    }
    expected, _ = evaluate(JOINS, facts, BulkMode.NEVER)
    found, recorder = evaluate(JOINS, facts, BulkMode.ALWAYS)
    assert found == expected
    assert recorder.sizes["line•rows"] == 0


def test_what_is_asked_for_is_stored() -> None:
    found, recorder = evaluate(SALES, sales(20), BulkMode.ALWAYS, "line")
    assert len(found) == 20
    assert "line•rows" not in recorder.sizes


@pytest.mark.slow
def test_totals_of_a_join_are_the_same_in_all_modes() -> None:
    program = """
    .decl sale(id: number, product: number, amount: number?, price: unsigned)
    .decl product(id: number, category: symbol)
    .decl total(category: symbol, amount: number, price: unsigned, mean: float)
    total(c, a, p, m) :- product(_, c),
        a = sum x : { sale(i, q, x, _), product(q, c) },
        p = sum y : { sale(i, q, _, y), product(q, c) },
        m = mean x : { sale(i, q, x, _), product(q, c) }.
    """
    rows = sales(200)
    found = []
    for mode in BulkMode:
        with corollary.open(None, bulk=str(mode)) as database:
            database.load(text=program)
            with database.transaction() as transaction:
                transaction.insert("sale", rows["sale"][1:])
                transaction.insert("product", rows["product"])
            before = database.query("total(c, a, p, m)").to_pylist()
            with database.transaction() as transaction:
                transaction.delete("sale", rows["sale"][5:60])
            found.append((before, database.query("total(c, a, p, m)").to_pylist()))
    assert found[0] == found[1] == found[2]
    assert found[0][0] != found[0][1]


def test_a_relation_that_is_stored_is_not_fused() -> None:
    program = load_program(parse(SourceFile("test", SALES))).normal
    plan = seminaive.plan_program(program, Statistics(), asked={"answer"})
    fused = find_fused_steps(plan)
    assert list(fused.derivations) == ["line•rows"]
    assert {len(batch) for batch in fused.batches.values()} == {4}
    stored = find_fused_steps(seminaive.plan_program(program, Statistics()))
    assert not stored.derivations


@pytest.mark.parametrize(
    ("values", "fused"),
    [
        ("SUM(amount) AS amount", "total.aggregate1•assignments"),
        ("SUM(amount) AS amount, MAX(amount) AS most", "total.aggregate1•rows"),
    ],
)
def test_what_a_large_change_falls_back_to_is_one_query(values: str, fused: str) -> None:
    with corollary.open(None) as database:
        database.sql(
            "CREATE TABLE sale (product BIGINT, amount BIGINT);"
            "CREATE TABLE product (id BIGINT PRIMARY KEY, category STRING);"
            f"CREATE MATERIALIZED VIEW total AS SELECT category, {values}"
            " FROM sale JOIN product ON product = product.id GROUP BY category;"
        )
        state = state_of(database)
        plan = state.planner.plan_few(state.planned_program, ["sale.rows"])
    assert list(find_fused_steps(plan).derivations) == [fused]


def test_the_text_for_duckdb_is_what_sqlglot_would_write() -> None:
    one, two = nodes.column('a"b', "t"), nodes.column("c", "t")
    operators = [exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.BitwiseAnd]
    operators += [exp.BitwiseOr, exp.BitwiseXor, exp.DPipe, exp.EQ, exp.NEQ, exp.LT, exp.LTE]
    operators += [exp.GT, exp.GTE, exp.NullSafeEQ]
    items = [nodes.binary(each, one, two) for each in operators]
    items += [
        nodes.case((nodes.is_null(one), two), default=nodes.string("it's")),
        nodes.case((nodes.is_present(one), nodes.integer(-5, "INT128"))),
        nodes.try_cast(one, "UBIGINT"),
        nodes.call("COUNT", exp.Star()),
        nodes.cast(exp.Null(), "DOUBLE"),
        exp.Paren(this=exp.BitwiseNot(this=exp.Paren(this=one))),
    ]
    named = [nodes.named(each, f"x{at}") for at, each in enumerate(items)]
    inner = nodes.select(named, nodes.table("t0", "t"), nodes.negated(nodes.is_true(one)))
    inner.set("distinct", exp.Distinct())
    nodes.joined(inner, nodes.table("t1", "u"), nodes.every(one, two), "", "SEMI")
    nodes.joined(inner, nodes.table("t2", "v"), None, "", "CROSS")
    query = nodes.select([one], nodes.subquery(inner, "s"), nodes.any_of([one, two]), [one, two])
    query.set("having", exp.Having(this=exp.Boolean(this=True)))
    query.set("limit", exp.Limit(expression=exp.Literal.number(1)))
    written = write_duckdb(query)
    assert sqlglot.parse_one(written, dialect="duckdb").sql("duckdb") == query.sql("duckdb")
