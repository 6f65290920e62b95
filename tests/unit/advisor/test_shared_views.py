"""Views that queries share: found, used soundly, and worth more than storing each query."""

from __future__ import annotations

from collections import Counter

from bench.advice import star
from corollary.advisor.model.candidates import Candidate, FoldedClause
from corollary.advisor.model.canonical import CanonicalForms
from corollary.advisor.search.shared_views import merge, pattern_of, shared_views, uses_of
from support.advice.workload_obligations import judge_choice, judge_uses
from support.cases.advisor import scheme_of
from support.generators.advisor_workloads import workload
from support.selection import examples

STAR = """
.decl sales(p: number, d: number) .decl product(p: number, c: symbol)
.decl day(d: number, y: number)
.decl a(c: symbol) virtual
a(C) :- sales(P, D), product(P, C), day(D, 1997).
.decl b(c: symbol, y: number) virtual
b(G, Y) :- sales(A, B), product(A, G), day(B, Y).
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


def test_random_workloads_answer_as_before() -> None:
    counts: Counter[str] = Counter()
    for seed in range(examples(25, 200)):
        made = workload(seed)
        judge_uses(made, counts)
        judge_choice(made, counts)
    assert counts["uses"] > 25, counts
    assert counts["shared"] > 1, counts


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


def test_a_view_that_is_only_used_keeps_its_form() -> None:
    clauses = [scheme_of(STAR, ()).clauses[name][0] for name in ("a", "b")]
    forms = CanonicalForms()
    (key, view), *_ = shared_views(clauses, forms, lambda _: True).items()
    (use,) = uses_of(view, clauses[0])
    assert isinstance(use, Candidate)
    assert forms.key(use) == key
    assert not FoldedClause(clauses[0], (use,)).is_self_materialisation(use)
