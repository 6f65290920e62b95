"""The parts of the advisor, one by one: arities, exponents, phases, programs of every kind."""

from __future__ import annotations

import pytest

from corollary.advisor.advice import Advice, global_exponents
from corollary.advisor.advise import advise
from corollary.advisor.check.verification import is_equivalent
from corollary.advisor.cost.relation_sizes import RelationSizes
from corollary.advisor.model.scheme import Options, Scheme, SchemeRelation, WorkloadQuery
from corollary.advisor.model.shapes import NodeShapes, effective_arity, paper_arity
from corollary.advisor.render.text import report
from corollary.core.printer import print_clause, print_declaration
from corollary.frontends.datalog.parser import parse_clause
from oracles import evaluation
from support.cases.advisor import advice_for, changed_program, checked_of, degrees, scheme_of

AIRLINE = """
.decl services(a: symbol, p: symbol)
.decl connection(p: symbol, q: symbol)
.decl base(a: symbol, p: symbol)
.decl view(a: symbol, p: symbol) virtual
view(A, B) :- services(A, P1), services(A, P2), connection(P1, P2), base(A, B).
"""
BEST = Options(selection="minimal", partial_clusters=True)


def relation(text: str, name: str) -> SchemeRelation:
    return scheme_of(text, ()).relations[name]


def rewritten(advice: Advice, name: str) -> list[str]:
    return [print_clause(each) for each in advice.predicates[name].rewritten]


def rules(advice: Advice) -> list[str]:
    return [print_clause(each) for view in advice.views.values() for each in view.clauses]


# --- arities and exponents -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fds", "arity", "paper"),
    [
        ("", 3, 3),
        (".fd r(a -> b)", 2, 2),
        (".fd r(a -> b) .fd r(b -> a)", 2, 1),
        (".fd r(a, b -> c) .fd r(c -> b)", 2, 1),
        (".fd r(a -> b, c)", 1, 1),
        (".fd r(a -> a)", 3, 3),
    ],
)
def test_effective_arity_is_the_smallest_key(fds: str, arity: int, paper: int) -> None:
    text = f".decl r(a: number, b: number, c: number) {fds}"
    form = relation(text, "r")
    assert effective_arity(form, NodeShapes(scheme_of(text, ()))) == arity
    assert paper_arity(form) == paper


def test_given_arguments_lower_the_exponent() -> None:
    for bound, before, after in ((set(), 3, 2), ({0}, 2, 1), ({1}, 3, 1)):
        advice = advise(scheme_of(AIRLINE, [WorkloadQuery("view", frozenset(bound))]))
        found = advice.queries["view"]
        assert (found.before.left_deep, found.after.left_deep) == (before, after)


def test_a_computed_head_variable_stands_for_its_inputs() -> None:
    text = """
    .decl a(x: number, y: number) .decl q(x: number, z: number) virtual
    q(x, z) :- a(x, y), a(y, w), z = y + w.
    """
    found = advice_for(text, ["q"]).queries["q"]
    assert found.before.left_deep == 3
    assert found.reason == "opaque literal pins variables w, y"


def test_long_bodies_are_ordered_greedily() -> None:
    body = ", ".join(f"e(X{at}, X{at + 1})" for at in range(18))
    text = f".decl e(x: number, y: number) .decl q(x: number) virtual q(X0) :- {body}."
    advice = advice_for(text, ["q"], Options(selection="minimal"))
    assert not advice.queries["q"].before.is_exact
    assert advice.queries["q"].before.left_deep >= 2


# --- stage 1 -------------------------------------------------------------------------------------


def test_a_subsumed_clause_goes() -> None:
    text = """
    .decl a(x: number, u: number) .decl b(x: number) .decl q(x: number) virtual
    q(X) :- a(X, U). q(Y) :- a(Y, V), b(Y).
    """
    advice = advice_for(text, ["q"])
    assert len(rewritten(advice, "q")) == 1
    assert degrees(advice) == [1]


def test_two_clauses_gain_together_what_none_gains_alone() -> None:
    text = """
    .decl s(x: number, y: number) .decl d(x: number, y: number)
    .decl t(x: number, y: number) .decl f(x: number, y: number)
    .decl q(x: number, y: number) virtual
    q(X, Y) :- s(X, U), s(X, V), d(U, V), f(X, Y).
    q(X, Y) :- t(X, U), t(V, X), d(V, U), f(Y, X).
    """
    for selection in ("paper", "minimal"):
        advice = advice_for(text, ["q"], Options(selection=selection))
        assert degrees(advice) == [1, 1]


def test_an_argument_that_a_remainder_lacks_is_bound_by_a_common_literal() -> None:
    text = """
    .decl c(x: number, y: number) .decl a(y: number, z: number) .decl b(z: number)
    .decl q(x: number, z: number) virtual
    q(X, Z) :- c(X, Y), a(Y, Z), b(Z).
    q(X, Z) :- c(X, Y), b(Z), a(Z, Z).
    """
    facts = {
        "c": [(1, 2), (3, 4)],
        "a": [(2, 5), (5, 5), (4, 6)],
        "b": [(5,), (6,), (7,)],
    }
    advice = advice_for(text, ["q"], BEST)
    changed = changed_program(text, advice)
    assert evaluation.evaluate(changed, facts)["q"] == evaluation.evaluate(text, facts)["q"]


def test_a_literal_outside_carries_its_dependency_into_a_candidate() -> None:
    text = """
    .decl a(x: number, u: number) .decl b(u: number, y: number) .decl c(u: number, z: number)
    .decl k(x: number, y: number, z: number) .fd k(x -> y, z)
    .decl q(x: number, y: number, z: number) virtual
    q(X, Y, Z) :- a(X, U), b(U, Y), c(U, Z), k(X, Y, Z).
    """
    limited = Options(scope="used")
    assert advice_for(text, ["q"], limited).queries["q"].before.left_deep == 2
    wide = text.replace("k(X, Y, Z).", "k(X, Y, Z), a(X, W), a(W, Z).")
    found = advice_for(wide, ["q"], Options(partial_clusters=True, scope="used"))
    plain = advice_for(wide, ["q"], limited)
    assert found.queries["q"].after.left_deep <= plain.queries["q"].after.left_deep


# --- sharing -------------------------------------------------------------------------------------


def test_queries_share_a_view_whatever_its_names() -> None:
    text = AIRLINE + (
        ".decl other(p: symbol, q: symbol) virtual "
        "other(Z, Y) :- connection(L, K), services(Y, K), connection(Z, Y), services(Y, L)."
    )
    advice = advice_for(text, ["view", "other"], BEST)
    assert list(advice.views) == ["mv_view_1"]
    assert rewritten(advice, "other") == ["other(Z, Y) :- mv_view_1(Y), connection(Z, Y)."]


def test_a_view_that_is_stored_already_is_used() -> None:
    text = AIRLINE + (
        ".decl served(x: symbol) stored "
        "served(X) :- connection(K, L), services(X, L), services(X, K)."
    )
    advice = advice_for(text, ["view"], BEST)
    assert not advice.views
    assert rewritten(advice, "view") == ["view(A, B) :- served(A), base(A, B)."]


@pytest.mark.parametrize("storage", ["stored", ""])
@pytest.mark.parametrize("more", ["", ', X != "a"', ", !base(X, X)"])
def test_a_view_is_used_only_if_it_says_the_same(storage: str, more: str) -> None:
    text = AIRLINE + (
        f".decl served(x: symbol) {storage} "
        f"served(X) :- connection(K, L), services(X, L), services(X, K){more}."
    )
    advice = advice_for(text, ["view"], BEST)
    assert ("served" in advice.queries["view"].views) == (not more)


def test_two_queries_that_are_alike_do_not_read_each_other() -> None:
    text = """
    .decl e(x: number, y: number)
    .decl a(x: number, y: number) .decl b(x: number, y: number)
    a(X, Y) :- e(X, Z), e(Z, Y). b(U, V) :- e(U, W), e(W, V).
    """
    advice = advice_for(text, ["a", "b"], BEST)
    assert rewritten(advice, "a") == ["a(X, Y) :- mv_a_1(X, Y)."]
    assert rewritten(advice, "b") == ["b(U, V) :- mv_a_1(U, V)."]


def test_derived_predicates_that_are_still_read_are_advised_on() -> None:
    text = AIRLINE + (
        ".decl top(a: symbol, p: symbol) virtual top(A, B) :- view(A, B), connection(B, A)."
    )
    advice = advice_for(text, ["top"])
    assert not advice.queries["top"].is_applicable
    assert advice.predicates["view"].is_applicable
    assert advice.is_applicable
    assert global_exponents(advice, "top") == (3, 2)
    assert any("in all  N^3 -> N^2" in line for line in report(advice))


def test_rewriting_is_enough_where_storing_gains_nothing_more() -> None:
    text = """
    .decl w(x: number) .decl s(x: number, y: number) .decl r(x: number, y: number)
    .decl q(x: number, y: number, z: number) virtual
    q(X, Y, Z) :- r(X, T), w(T), s(Y, W), r(Z, W).
    """
    advice = advice_for(text, ["q"], BEST)
    (view,) = advice.views.values()
    assert view.is_virtual
    assert advice.queries["q"].virtual_after == advice.queries["q"].after.left_deep
    changed = changed_program(text, advice)
    assert ".decl mv_q_1(X: number) virtual inline" in changed
    assert not advice_for(changed, ["q"], BEST).is_applicable


# --- programs of every kind ----------------------------------------------------------------------


def test_several_heads_disjunctions_and_wildcards() -> None:
    text = """
    .type A <: symbol
    .decl s(a: A, p: symbol) .decl d(p: symbol, q: symbol) .decl b(a: A, x: number, y: number)
    .decl q(a: A, x: number) virtual .decl r(a: A) virtual
    q(a, x), r(a) :- s(a, p1), s(a, p2), (d(p1, p2) ; d(p2, p1)), b(a, x, _).
    """
    advice = advice_for(text, ["q", "r"], BEST)
    assert advice.is_applicable
    changed = changed_program(text, advice)
    assert all("A" in print_declaration(each) for each in checked_of(changed).program.declarations
               if each.name.startswith("mv_") and each.columns)  # fmt: skip
    facts = {
        "s": [("u", "m"), ("u", "n"), ("v", "m")],
        "d": [("n", "m"), ("m", "k")],
        "b": [("u", 1, 2), ("v", 3, 4)],
    }
    before, after = evaluation.evaluate(text, facts), evaluation.evaluate(changed, facts)
    assert all(before[name] == after[name] for name in ("q", "r"))


def test_aggregates_functions_and_recursion_are_left_alone() -> None:
    text = """
    .decl e(x: number, y: number)
    .decl n(x: number, c: number) virtual n(x, c) :- e(x, _), c = count : { e(x, _) }.
    .decl f(x: number) virtual f(x) :- e(x, y), e(y + 1, x).
    .decl t(x: number, y: number) virtual t(x, y) :- e(x, y). t(x, z) :- t(x, y), e(y, z).
    """
    advice = advice_for(text, ["n", "f", "t"], BEST)
    assert advice.queries["n"].reason == "aggregate"
    assert advice.queries["t"].reason == "recursive literal pinned"
    assert "y" in str(advice.queries["f"].reason)
    assert not advice.is_applicable


def test_null_is_kept_as_it_was() -> None:
    text = """
    .decl s(a: symbol?, p: symbol) .decl d(p: symbol, q: symbol) .decl b(x: number)
    .decl q(a: symbol?, x: number) virtual
    q(a, x) :- s(a, p), d(p, r), d(r, k), d(k, p), b(x).
    """
    advice = advice_for(text, ["q"], BEST)
    changed = changed_program(text, advice)
    assert ".decl mv_q_1(a: symbol?)" in changed
    facts = {"s": [(None, "m"), ("u", "n")], "d": [("m", "m"), ("k", "m")], "b": [(1,)]}
    assert evaluation.evaluate(changed, facts)["q"] == {(None, 1)}
    assert evaluation.evaluate(text, facts)["q"] == {(None, 1)}


def test_an_unknown_query_and_one_without_rules() -> None:
    advice = advice_for(AIRLINE, ["base"])
    assert advice.queries["base"].reason == "it has no rules"


# --- equivalence ---------------------------------------------------------------------------------


def test_equivalence_tells_the_slip_of_the_paper() -> None:
    original = [parse_clause("v(A, B) :- s(A, P), s(A, Q), d(P, Q), b(A, B).", "test")]
    after = [parse_clause("v(A, B) :- sds(A), b(A, B).", "test")]
    right = parse_clause("sds(X) :- s(X, P), s(X, Q), d(P, Q).", "test")
    wrong = parse_clause("sds(X) :- s(X, P), s(P, Q), d(P, Q).", "test")
    assert is_equivalent(original, after, {"sds": [right]})
    assert not is_equivalent(original, after, {"sds": [wrong]})


def test_equivalence_of_unions_filters_and_wildcards() -> None:
    one = [parse_clause("v(A) :- s(A, _), !t(A), A < 3.", "test")]
    same = [parse_clause("v(B) :- A < 3, !t(A), s(A, C), A = B.", "test")]
    assert not is_equivalent(one, same, {})  # the equation is not interpreted
    assert is_equivalent(one, [parse_clause("v(B) :- B < 3, !t(B), s(B, C).", "test")], {})
    union = [parse_clause("v(A) :- u(A), w(A).", "test")]
    parts = {"u": [parse_clause("u(X) :- s(X, Y).", "test"), parse_clause("u(X) :- t(X).", "test")]}
    plain = [parse_clause(f"v(A) :- {each}, w(A).", "test") for each in ("s(A, B)", "t(A)")]
    assert is_equivalent(plain, union, parts)
    assert not is_equivalent(plain[:1], union, parts)


# --- real sizes ----------------------------------------------------------------------------------

STAR = """
.decl e(x: number, y: number) .decl f(x: number)
.decl q(x: number, y: number) virtual
q(X, Y) :- e(Z, X), e(Z, Y), f(Y).
"""


def sized(scheme: Scheme, options: Options, rows: dict[str, tuple[int, tuple[int, ...]]]) -> Advice:
    sizes = RelationSizes(
        {name: each for name, (each, _) in rows.items()},
        {name: each for name, (_, each) in rows.items()},
        row_bytes=dict.fromkeys(rows, 16.0),
    )
    return advise(scheme, options, sizes)


def test_a_star_is_refused_by_its_size() -> None:
    scheme = scheme_of(STAR, ["q"])
    assert advise(scheme, BEST).queries["q"].is_applicable
    star = {"e": (10_000, (1, 10_000)), "f": (100, (100,))}
    found = sized(scheme, BEST, star)
    assert not found.queries["q"].is_applicable
    assert any("bytes" in each.reason for each in found.rejected)
    flat = {"e": (10_000, (10_000, 10_000)), "f": (100, (100,))}
    assert sized(scheme, BEST, flat).queries["q"].is_applicable


def test_a_gain_in_rows_alone_is_worth_a_view() -> None:
    text = """
    .decl a(x: number, y: number) .decl b(x: number, y: number)
    .decl q(x: number, y: number) virtual
    q(X, Y) :- a(X, Y), b(X, Y).
    """
    scheme = scheme_of(text, ["q"])
    assert not advise(scheme, BEST).is_applicable
    rows = {"a": (100_000, (1_000, 50_000)), "b": (100_000, (50_000, 1_000))}
    found = sized(scheme, BEST, rows)
    work = found.queries["q"].work
    assert work is not None
    assert found.queries["q"].is_applicable
    assert work[0] > 1.3 * work[1]


WORKLOAD = (
    AIRLINE
    + """
.decl pairs(p: symbol, q: symbol) virtual
pairs(P, Q) :- services(A, P), base(A, Q), connection(P, K), connection(K, Q).
"""
)
ROWS = {
    "services": (100_000, (2_000, 500)),
    "connection": (2_000, (500, 500)),
    "base": (4_000, (2_000, 500)),
}


def workload(options: Options, frequency: float = 10.0) -> Advice:
    queries = [
        WorkloadQuery("view", frequency=frequency),
        WorkloadQuery("pairs", frequency=frequency),
    ]
    return sized(scheme_of(WORKLOAD, queries), options, ROWS)


def test_the_workload_pays_for_what_it_uses() -> None:
    rich = workload(Options(selection="budget", partial_clusters=True, budget_bytes=1e9))
    assert rich.is_applicable
    poor = workload(Options(selection="budget", partial_clusters=True, budget_bytes=0.0))
    assert not poor.is_applicable
    assert sum(each.estimate.bytes for each in rich.views.values() if each.estimate) <= 1e9


def test_upkeep_may_cost_more_than_queries_gain() -> None:
    busy = Options(
        selection="budget",
        partial_clusters=True,
        updates={"services": 1e7, "connection": 1e7, "base": 1e7},
    )
    assert not workload(busy, frequency=0.01).is_applicable
    quiet = Options(selection="budget", partial_clusters=True, updates={"services": 1.0})
    assert workload(quiet, frequency=100.0).is_applicable
