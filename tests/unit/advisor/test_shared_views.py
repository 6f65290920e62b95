"""Views that queries share: found, used soundly, and worth more than storing each query."""

from __future__ import annotations

import random
from collections import Counter

import pytest

import corollary
from bench.advice import star
from corollary.advisor.advise import advise
from corollary.advisor.apply import reformulate
from corollary.advisor.check import verification
from corollary.advisor.check.scratch_database import read_base_tables
from corollary.advisor.inputs import read_sql_log
from corollary.advisor.measured_sizes import measure_sizes
from corollary.advisor.model.candidates import Candidate, FoldedClause
from corollary.advisor.model.canonical import CanonicalForms
from corollary.advisor.model.scheme import Options, WorkloadQuery
from corollary.advisor.model.scheme_reader import read_scheme
from corollary.advisor.render.json import advised_sql
from corollary.advisor.search.shared_views import merge, pattern_of, shared_views, uses_of
from corollary.analysis.check import check
from corollary.source import SourceFile
from support.advice.workload_obligations import judge_choice, judge_uses
from support.cases.advisor import advice_for, scheme_of
from support.generators.advisor_workloads import aggregate_workload, workload
from support.selection import examples

STAR = """
.decl sales(p: number, d: number) .decl product(p: number, c: symbol)
.decl day(d: number, y: number)
.decl a(c: symbol) virtual
a(C) :- sales(P, D), product(P, C), day(D, 1997).
.decl b(c: symbol, y: number) virtual
b(G, Y) :- sales(A, B), product(A, G), day(B, Y).
"""


LOG = """
SELECT city, SUM(a) AS s, COUNT(*) AS n, MAX(p) FROM sales JOIN customer USING (c) GROUP BY city;
SELECT region, COUNT(a), AVG(p) FROM sales JOIN customer USING (c) WHERE p > 3 GROUP BY region;
SELECT SUM(p), COUNT(a) FROM sales JOIN customer USING (c);
SELECT city, region, MIN(p) FROM sales JOIN customer USING (c) GROUP BY city, region;
"""


def test_two_queries_are_merged_into_one_view() -> None:
    clauses = [scheme_of(STAR, ()).clauses[name][0] for name in ("a", "b")]
    found = merge(*map(pattern_of, clauses))
    assert found is not None
    assert len(found.literals) == 3
    view = found.as_view()
    assert len(view.variables) == 2  # the category, and the year that one query gives
    for clause, constants in zip(clauses, (1, 0), strict=True):
        (use,) = uses_of(view, clause)
        assert sum(not hasattr(each, "name") for each in use.arguments) == constants


@pytest.mark.slow
def test_random_workloads_answer_as_before() -> None:
    counts: Counter[str] = Counter()
    for seed in range(examples(25, 200)):
        made = workload(seed)
        judge_uses(made, counts)
        judge_choice(made, counts)
    assert counts["uses"] > 25, counts
    assert counts["shared"] > 1, counts


@pytest.mark.slow
def test_on_a_star_shared_views_are_fewer_than_queries() -> None:
    with star.load(star.program_text("virtual"), star.tables(20_000)) as database:
        advice, _ = star.advised(database)
    assert all(each.is_applicable for each in advice.queries.values())
    assert len(advice.views) <= len(star.QUERIES) // 2
    readers = Counter(view for each in advice.queries.values() for view in each.views)
    assert max(readers.values()) >= 4
    before = sum(each.work[0] for each in advice.queries.values() if each.work)
    after = sum(each.work[1] for each in advice.queries.values() if each.work)
    assert after < before / 10


@pytest.mark.slow
def test_aggregates_are_computed_from_summaries_that_they_share() -> None:
    text, goals = star.program_text("virtual", aggregates=True), star.heads(aggregates=True)[:5]
    with star.load(text, star.tables(20_000)) as database:
        before = [sorted(database.query(goal).to_pylist(), key=repr) for goal in goals]
        advice, after = star.advised(database)
        with database.transaction() as transaction:
            transaction.set_program(after)
        assert [sorted(database.query(goal).to_pylist(), key=repr) for goal in goals] == before
    assert all(each.is_applicable for each in advice.queries.values())
    assert len(advice.views) <= len(star.QUERIES) // 2
    assert all(view.rows is not None for view in advice.views.values())


@pytest.mark.slow
def test_a_log_of_sql_that_aggregates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Null keys, null terms, filters, a total without groups; copies, changes and random data."""
    with corollary.open(None, engine="local") as database:
        database.sql("CREATE TABLE sales (k INT PRIMARY KEY, c INT, p INT NOT NULL, a INT)")
        database.sql("CREATE TABLE customer (c INT PRIMARY KEY, city STRING, region STRING)")
        dice = random.Random(1)
        with database.transaction() as transaction:
            sales = [(k, dice.choice((None, 1, 2, 3)), k % 7, k % 5 or None) for k in range(200)]
            transaction.insert("sales", sales)
            rows = [(1, "oslo", "north"), (2, "rome", "south"), (3, None, "south")]
            transaction.insert("customer", rows)
        log = read_sql_log(SourceFile("log.sql", LOG), database.program)
        checked = check(log.program)
        queries = [WorkloadQuery(each.relation, frequency=100.0) for each in log.queries]
        scheme = read_scheme(log.program, checked, queries)
        options = Options(selection="budget", partial_clusters=True, updates={"sales": 1.0})
        advice = advise(scheme, options, measure_sizes(database))
        after = reformulate(checked, log.program, advice)
        tables = read_base_tables(database)
    shared = [name for name, view in advice.views.items() if view.rows is not None]
    readers = Counter(view for each in advice.predicates.values() for view in each.views)
    assert max(readers[name] for name in shared) >= 2
    monkeypatch.setattr(verification, "RANDOM_DATABASES", 3)
    results = list(verification.verify(advice, log.program, after, tables))
    assert all(each.is_fine for each in results), results
    statements = advised_sql(advice, after)
    for name in shared:
        assert f"CREATE MATERIALIZED VIEW {name} AS" in statements[name]["spark"]
        assert f"CREATE TABLE {name} AS" in statements[name]["duckdb"]
        assert f"{name}.each" in statements[name]["duckdb"]


def test_a_log_with_joins_of_null_is_left_alone() -> None:
    text = ".decl r(x: number?) .decl q(x: number?) virtual q(x) := r(x), r(x)."
    text += " .decl p(x: number?, n: number) virtual p(x, n) := r(x), n = count : { r(x), r(x) }."
    assert not advice_for(text, ["q", "p"]).is_applicable


@pytest.mark.slow
def test_random_aggregates_answer_as_before() -> None:
    counts: Counter[str] = Counter()
    for seed in range(examples(12, 150)):
        for commits in (0.0, 60.0):
            judge_choice(aggregate_workload(seed), counts, commits)
    assert counts["summaries"] > 12, counts
    assert counts["shared summaries"] > 0, counts


def test_a_view_that_is_only_used_keeps_its_form() -> None:
    clauses = [scheme_of(STAR, ()).clauses[name][0] for name in ("a", "b")]
    forms = CanonicalForms()
    (key, view), *_ = shared_views(clauses, forms, lambda _: True).items()
    (use,) = uses_of(view, clauses[0])
    assert isinstance(use, Candidate)
    assert forms.key(use) == key
    assert not FoldedClause(clauses[0], (use,)).is_self_materialisation(use)
