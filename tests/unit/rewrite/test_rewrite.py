"""From programs to their normal form: golden pairs for each pass, and the same meaning."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from corollary.core.printer import print_rule
from corollary.core.program import NormalProgram
from corollary.database.program.loaded_program import load_program
from corollary.explain.normal_form import print_normal
from corollary.frontends.datalog.parser import parse
from corollary.rewrite.clauses.disjunctions import alternatives
from corollary.source import SourceFile
from support.comparison import oracle_result, package_result
from support.generators.programs import Case, programs
from support.selection import examples

BASE = """\
.decl p(x: number, y: number)
.decl q(x: number)
.decl s(x: number, v: number?)
"""
FACTS = {
    "p": [(1, 2), (2, 2), (2, 3), (3, 1), (-1, 1)],
    "q": [(1,), (2,), (4,)],
    "s": [(1, None), (2, 5), (3, 5)],
}
PAIRS = (
    pytest.param(
        """\
.decl h(x: number)
h(x) :- q(x), (p(x, _) ; p(_, x), x > 1 ; false), true.
""",
        """\
.decl h(x: number)

h(x) :- q(x), p(x, _).
h(x) :- q(x), p(_, x), x > 1.
""",
        id="disjunctions, true and false",
    ),
    pytest.param(
        """\
.decl h(x: number)
.decl g(x: number)
h(x), g(x + 1) :- q(x).
""",
        """\
.decl h(x: number)
.decl g(x: number)

h(x) :- q(x).
g(_1) :- q(x), _1 = x + 1.
""",
        id="several heads",
    ),
    pytest.param(
        """\
.decl h(x: number, n: number)
h(x, n) :- q(x), n = count : { p(x, _) }.
""",
        """\
.decl h(x: number, n: number)
.decl h.aggregate1(x: number, n: number)
.decl h.aggregate1.some1(x: number)

h(x, n) :- q(x), h.aggregate1(x, n).
h(x, n) :- q(x), !h.aggregate1.some1(x), n = 0.
h.aggregate1.some1(x) :- h.aggregate1(x, _).
h.aggregate1(x, n) :- p(x, _), n = count : { p(x, y) }.
""",
        id="count aggregates its relation directly, with a rule for zero",
    ),
    pytest.param(
        """\
.decl h(x: number, n: number)
h(x, n) :- q(x), n = max y : { p(x, y) }.
""",
        """\
.decl h(x: number, n: number)
.decl h.aggregate1(x: number, n: number)

h(x, n) :- q(x), h.aggregate1(x, n).
h.aggregate1(x, n) :- p(x, _), n = max y : { p(x, y) }.
""",
        id="max has no rule for zero",
    ),
    pytest.param(
        """\
.decl h(x: number, n: number)
h(x, n) :- q(x), n = sum y * 2 : { p(x, y), q(y) }.
""",
        """\
.decl h(x: number, n: number)
.decl h.keys1(x: number)
.decl h.body1(x: number, y: number, value: number) virtual
.decl h.aggregate1(x: number, n: number)
.decl h.aggregate1.some1(x: number)

h(x, n) :- q(x), h.aggregate1(x, _1), n = _1.
h(x, n) :- q(x), !h.aggregate1.some1(x), n = 0.
h.body1(x, y, _2) :- h.keys1(x), p(x, y), q(y), _2 = y * 2.
h.keys1(x) :- q(x).
h.aggregate1.some1(x) :- h.aggregate1(x, _).
h.aggregate1(x, n) :- h.body1(x, _, _), n = sum value : { h.body1(x, y, value) }.
""",
        id="an expression needs a body, and keys as it may fail",
    ),
    pytest.param(
        """\
.decl h(x: number, n: number)
h(x, n) :- q(x), n = count : { p(y, _), y < x }.
""",
        """\
.decl h(x: number, n: number)
.decl h.keys1(x: number)
.decl h.body1(x: number, y: number, _1: number) virtual
.decl h.aggregate1(x: number, n: number)
.decl h.aggregate1.some1(x: number)

h(x, n) :- q(x), h.aggregate1(x, n).
h(x, n) :- q(x), !h.aggregate1.some1(x), n = 0.
h.body1(x, y, _1) :- h.keys1(x), p(y, _1), y < x.
h.keys1(x) :- q(x).
h.aggregate1.some1(x) :- h.aggregate1(x, _).
h.aggregate1(x, n) :- h.body1(x, _, _), n = count : { h.body1(x, y, _1) }.
""",
        id="a comparison with the outside needs keys",
    ),
    pytest.param(
        """\
.decl h(x: number, n: number)
h(x, n) :- q(x), n = max y : { p(x, y), q(y) }.
""",
        """\
.decl h(x: number, n: number)
.decl h.body1(x: number, y: number) virtual
.decl h.aggregate1(x: number, n: number)

h(x, n) :- q(x), h.aggregate1(x, n).
h.body1(x, y) :- p(x, y), q(y).
h.aggregate1(x, n) :- h.body1(x, _), n = max y : { h.body1(x, y) }.
""",
        id="a conjunction needs a body only",
    ),
    pytest.param(
        """\
.decl h(n: number)
h(n) :- n = min x : { q(x) }.
""",
        """\
.decl h(n: number)
.decl h.aggregate1(n: number)

h(n) :- h.aggregate1(n).
h.aggregate1(n) :- q(_), n = min x : { q(x) }.
""",
        id="an aggregate without keys",
    ),
    pytest.param(
        """\
.decl h(x: number, m: number)
h(x, m) :- q(x), m = max n : { p(x, y), n = count : { p(y, _) } }.
""",
        """\
.decl h(x: number, m: number)
.decl h.body1(x: number, y: number, n: number)
.decl h.aggregate1(x: number, m: number)
.decl h.body1.aggregate1(y: number, n: number)
.decl h.body1.aggregate1.some1(y: number)

h(x, m) :- q(x), h.aggregate1(x, m).
h.body1(x, y, n) :- p(x, y), h.body1.aggregate1(y, n).
h.body1(x, y, n) :- p(x, y), !h.body1.aggregate1.some1(y), n = 0.
h.body1.aggregate1.some1(y) :- h.body1.aggregate1(y, _).
h.aggregate1(x, m) :- h.body1(x, _, _), m = max n : { h.body1(x, y, n) }.
h.body1.aggregate1(y, n) :- p(y, _), n = count : { p(y, y2) }.
""",
        id="aggregates in aggregates",
    ),
    pytest.param(
        """\
.decl h(x: number)
h(x) :- q(x), !p(x, _), !p(_, x), !p(x, 1).
""",
        """\
.decl h(x: number)
.decl p.some1(x: number)
.decl p.some2(y: number)

h(x) :- q(x), !p.some1(x), !p.some2(x), !p(x, 1).
p.some1(x) :- p(x, _).
p.some2(y) :- p(_, y).
""",
        id="negated literals are projected",
    ),
    pytest.param(
        """\
.decl h(x: number, v: number)
h(x, v) :- s(x, v), s(_, v).
""",
        """\
.decl h(x: number, v: number)

h(x, v) :- s(x, v), s(_, v), v = v.
""",
        id="a nullable variable in two places is tested",
    ),
    pytest.param(
        """\
.decl h(x: number, v: number?)
h(x, v) :- s(x, v), p(x, _).
""",
        """\
.decl h(x: number, v: number?)

h(x, v) :- s(x, v), p(x, _).
""",
        id="a nullable variable in one place is not",
    ),
    pytest.param(
        """\
.decl e(x: number, y: number) eqrel
e(x, y) :- p(x, y).
""",
        """\
.decl e(x: number, y: number)
.decl e.seed(x: number, y: number)

e.seed(x, y) :- p(x, y).
e(x, x) :- e.seed(x, _).
e(x, x) :- e.seed(_, x).
e(x, z) :- e(x, y), e.seed(y, z).
e(x, z) :- e(x, y), e.seed(z, y).
""",
        id="equivalences",
    ),
    pytest.param(
        """\
.decl h(x: number)
h(1). h(-2).
h(x) :- q(x).
""",
        """\
.decl h(x: number)
.decl h.base(x: number)

h.base(1).
h.base(-2).

h(x) :- q(x).
h(x) :- h.base(x).
""",
        id="facts beside rules become a base part",
    ),
    pytest.param(
        """\
.decl h(x: number)
h(x * 2) :- q(x + 1), p(-1, x), !q(x / 2).
""",
        """\
.decl h(x: number)

h(_3) :- q(_1), p(-1, x), !q(_2), _1 = x + 1, _2 = x / 2, _3 = x * 2.
""",
        id="expressions move out of atoms",
    ),
)


def normal(text: str) -> NormalProgram:
    return load_program(parse(SourceFile("rewrite.dl", text))).normal


@pytest.mark.parametrize(("text", "expected"), PAIRS)
def test_normal_forms(text: str, expected: str) -> None:
    assert print_normal(normal(BASE + text)) == BASE + expected


@pytest.mark.parametrize(("text", "expected"), PAIRS)
def test_normal_forms_say_the_same(text: str, expected: str) -> None:
    wanted = oracle_result(BASE + text, FACTS)
    assert isinstance(wanted, dict)
    assert package_result(BASE + text, FACTS) == wanted
    again = package_result(BASE + expected, FACTS)
    assert isinstance(again, dict)
    assert {name: again[name] for name in wanted} == wanted


@pytest.mark.parametrize(("text", "expected"), PAIRS)
def test_normal_forms_know_their_clause(text: str, expected: str) -> None:
    for rule in normal(BASE + text).rules:
        assert rule.origin.text
        assert rule.origin.span is not None or rule.origin.passes == ("bases",)
        if "." in rule.head.relation:
            assert rule.origin.passes


def test_names_of_internal_relations_are_not_declared() -> None:
    program = normal(BASE + ".decl h(x: number)\nh(x) :- q(x), !p(x, _).\n")
    assert not program.relations["p.some1"].is_declared
    assert program.relations["p.some1"].is_derived
    assert program.relations["h"].is_declared


def test_equal_projections_are_made_once() -> None:
    rules = "h(x) :- q(x), !p(x, _). h(x) :- s(x, _), !p(x, _), !p(_, x)."
    program = normal(BASE + ".decl h(x: number)\n" + rules)
    assert [name for name in program.relations if ".some" in name] == ["p.some1", "p.some2"]


def test_an_aggregate_in_alternatives_is_lifted_once() -> None:
    rule = "h(x, n) :- (q(x) ; p(_, x)), n = count : { p(x, _) }."
    program = normal(BASE + ".decl h(x: number, n: number)\n" + rule)
    assert len(program.aggregations) == 1
    assert sum(rule.head.relation == "h" for rule in program.rules) == 4


def test_aggregates_of_the_same_groups_are_one_relation() -> None:
    rules = """
    .decl h(x: number, n: number, s: number, m: number)
    h(x, n, s, m) :- q(x), n = count : { p(x, y), q(y) }, s = sum z : { p(x, z), q(z) },
        m = max y : { p(x, y), q(y) }.
    .decl k(n: number, s: number)
    k(n, s) :- n = sum y : { p(_, y) }, s = sum y : { p(_, y) }.
    """
    text = print_normal(normal(BASE + rules))
    # Of four alternatives for empty groups one is left: in the others `max` has no value.
    assert [line for line in text.splitlines() if line.startswith("h(")] == [
        "h(x, n, s, m) :- q(x), h.aggregate1(x, n, _1, m), s = _1.",
    ]
    assert text.count("h.body1(x, y) :-") == 1
    assert "h.body2" not in text
    assert "k(n, s) :- k.aggregate1(_1), n = _1, s = _2, _2 = _1." in text


def test_what_an_aggregate_implies_is_not_asked_again() -> None:
    rules = """
    .decl h(x: number, n: number)
    .decl k(v: number?, n: number)
    h(x, n) :- p(x, _), n = count : { p(x, _) }.
    h(x, n) :- p(x, y), y > 1, n = count : { p(x, _) }.
    k(v, n) :- s(_, v), n = sum x : { s(x, v) }.
    """
    text = print_normal(normal(BASE + rules))
    assert "h(x, n) :- h.aggregate1(x, n)." in text
    # This one does not only ask for the group.
    assert "h(x, n) :- p(x, y), h.aggregate2(x, n), y > 1." in text
    assert "k(v, n) :- k.aggregate1(v, _1), n = _1, v = v." in text  # null has no group to read
    assert ".some" not in text


def test_what_a_conjunction_implies_is_not_asked_again() -> None:
    rules = """
    .decl h(x: number, n: number)
    h(x, n) :- p(x, _), n = sum y : { p(x, y), q(y) }.
    h(x, n) :- p(x, 7), n = sum y : { p(x, y), q(y) }.
    h(x, n) :- p(_, x), n = sum y : { p(x, y), q(y) }.
    h(x, n) :- p(x, _), n = max y : { (p(x, y) ; p(y, x)), q(y) }.
    """
    text = print_normal(normal(BASE + rules))
    assert "h(x, n) :- h.aggregate1(x, _1), n = _1." in text
    assert "h(x, n) :- p(x, _), !h.aggregate1.some1(x), n = 0." in text  # no q for any of them
    assert "h(x, n) :- p(x, 7), h.aggregate2(x, _1), n = _1." in text
    assert "h(x, n) :- p(_, x), h.aggregate3(x, _1), n = _1." in text
    assert "h(x, n) :- p(x, _), h.aggregate4(x, n)." in text  # not in both alternatives


def test_a_bag_is_the_projection_of_its_counts() -> None:
    found = normal(
        """.decl u(a: number, b: symbol?) bag
        u(1, "x"). u(2, null). u(1, "x"). u.rows(2, null, 2).
        .decl total(a: number, n: number)
        total(a, n) :- u(a, _), n = sum c : { u.rows(a, _, c) }.
        """
    )
    assert found.bags == found.bases == {"u": "u.rows"}
    assert found.facts == {"u.rows": ((1, "x", 2), (2, None, 3))}
    assert found.relations["u"].is_virtual
    assert found.relations["u.rows"].is_stored
    assert [print_rule(rule) for rule in found.rules] == [
        "u(a, b) := u.rows(a, b, _).",
        "total(a, n) :- total.aggregate1(a, _1), n = _1.",
    ]


def test_nested_disjunctions_multiply() -> None:
    text = ".decl q(x: number)\n.decl h(x: number)\n"
    text += "h(x) :- (q(x) ; q(x), (q(x) ; q(x))), (q(x) ; q(x))."
    (clause,) = parse(SourceFile("rewrite.dl", text)).clauses
    assert [len(items) for items in alternatives(clause.body)] == [2, 2, 3, 3, 3, 3]


def test_nulls_do_not_become_keys_that_are_not_nullable() -> None:
    text = """
    .decl b(x: number?, y: number)
    .decl q(x: number)
    .decl h(x: number, n: number)
    h(x, n) :- q(x), n = max y : { b(x, y), y > 0 }.
    """
    program = normal(text)
    assert normal(print_normal(program)).relations.keys() >= program.relations.keys()


@pytest.mark.parametrize(
    "rule",
    [
        "h(x, n) :- (q(x) ; p(x, _)), n = count : { p(y, _), y < x }.",
        "h(x, n) :- (p(x, _) ; q(x)), n = count : { p(y, _), y < x }.",
        "h(x, n) :- p(x, y), (x > 9 ; y != 0), n = min k + 1 : { q(k) }.",
        "h(x, n) :- p(x, y), (x > 9 ; y != 0), n = sum k / x : { q(k) }.",
    ],
)
def test_keys_come_from_every_alternative(rule: str) -> None:
    text = f"{BASE}.decl h(x: number, n: number)\n{rule}\n"
    wanted = oracle_result(text, FACTS)
    assert isinstance(wanted, dict)
    assert wanted["h"]
    assert package_result(text, FACTS) == wanted


def test_assignments_of_alternatives_are_apart() -> None:
    """In the first alternative `v` has no value, which is not the value null of the second."""
    text = BASE + ".decl h(n: number)\nh(n) :- n = count : { q(x) ; s(x, v) }.\n"
    facts = {"q": [(1,)], "s": [(1, None), (1, 2)]}
    assert package_result(text, facts) == oracle_result(text, facts)


def test_keys_that_are_not_null_outside() -> None:
    """In a rule where null joins null, a key that is tested outside is not null inside either."""
    text = (
        BASE
        + ".decl h(x: number, m: number)\n"
        + "h(v, m) := s(_, v), v > 0, m = max n : { s(w, v), n = count : { p(w, _) } }.\n"
    )
    facts = {"p": [(1, 1), (1, 2), (2, 2)], "s": [(1, None), (1, 2), (2, 2), (2, 0)]}
    wanted = oracle_result(text, facts)
    assert wanted == package_result(text, facts)
    found = package_result(print_normal(normal(text)), facts)
    assert isinstance(found, dict)
    assert isinstance(wanted, dict)
    assert found["h"] == wanted["h"]


@pytest.mark.slow
def test_printed_normal_forms_evaluate_to_the_same() -> None:
    tally: Counter[str] = Counter()

    # Shrinking whole programs takes minutes.
    phases = (Phase.explicit, Phase.generate)

    @settings(
        max_examples=examples(15, 50),
        suppress_health_check=list(HealthCheck),
        database=None,
        phases=phases,
    )
    @given(programs())
    def compared(case: Case) -> None:
        program = normal(case.text)
        printed = print_normal(program)
        tally["all"] += 1
        again = normal(printed)
        assert set(program.relations) <= set(again.relations)
        wanted = package_result(case.text, case.facts)
        found = package_result(printed, case.facts)
        if isinstance(wanted, str) or isinstance(found, str):
            assert found == wanted, printed
            tally["raised"] += 1
            return
        assert {name: found[name] for name in wanted} == wanted, printed

    compared()
    assert tally["raised"] <= tally["all"] / 4, tally
