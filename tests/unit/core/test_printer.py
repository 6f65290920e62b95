"""What is printed parses back to the same program."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corollary.core.logic import (
    NEGATED_OPERATORS,
    Accumulator,
    AggregateTerm,
    Aggregation,
    Atom,
    BodyItem,
    Clause,
    Comparison,
    Condition,
    Constant,
    Disjunction,
    Functor,
    Literal,
    Negation,
    Origin,
    Rule,
    Term,
    Truth,
    Variable,
    Wildcard,
    subterms,
)
from corollary.core.printer import (
    print_clause,
    print_condition,
    print_literal,
    print_program,
    print_rule,
    print_term,
)
from corollary.core.program import (
    Column,
    Declaration,
    Directive,
    FunctionalDependency,
    NormalProgram,
    Program,
    Reaction,
    Relation,
    TypeDeclaration,
    TypeName,
)
from corollary.core.states import State
from corollary.core.syntax import FUNCTIONS, HINTS, PRECEDENCE, PREFIXES, RESERVED
from corollary.core.types import NUMBER, SYMBOL, UNSIGNED
from corollary.explain.normal_form import print_aggregation, print_normal
from corollary.frontends.datalog import parse, parse_clause
from corollary.source import SourceFile
from support.selection import examples


def read(text: str) -> Program:
    return parse(SourceFile("program.dl", text))


# --- random programs ------------------------------------------------------------------------------

characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
plain = st.from_regex(r"\A\??[A-Za-z][A-Za-z0-9_]{0,3}\Z")
names = st.one_of(
    plain,
    st.sampled_from(sorted(RESERVED | {"_", "key", "not", "virtual", "d", "t", "_x"})),
    st.text(characters, min_size=1, max_size=4),
)
relations = st.one_of(names, st.sampled_from(["link.base", "h.aggregate1", "a.b.c"]))
texts = st.text(characters, max_size=6)

fractions = st.one_of(
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9),
    st.sampled_from([Decimal(text) for text in ("1E+300", "-1.50", "0.0", "-0.0", "1E-7", "100")]),
).filter(lambda value: abs(value.adjusted()) < 300)
constants: st.SearchStrategy[Constant] = st.one_of(
    st.builds(Constant, st.integers(-(2**63), 2**64 - 1)),
    st.builds(Constant, st.integers(0, 2**64 - 1), st.just(UNSIGNED)),
    st.builds(Constant, fractions),
    st.builds(Constant, texts),
    st.builds(Constant, st.booleans()),
    st.builds(Constant, st.none()),
    st.builds(Constant, st.dates()),
    st.builds(Constant, st.datetimes(timezones=st.just(UTC)).map(lambda at: at.replace(fold=0))),
)
leaves: st.SearchStrategy[Term] = st.one_of(
    st.builds(Variable, names), st.builds(Wildcard), constants
)


OPERATORS = [*NEGATED_OPERATORS, "is"]


@st.composite
def some_terms(draw: st.DrawFn, depth: int) -> Term:
    """Draws terms, nested at most so deeply."""
    form = draw(st.sampled_from(["leaf", "infix", "prefix", "call", "extreme", "aggregate"]))
    below = some_terms(depth - 1)
    if depth == 0 or form == "leaf":
        return draw(leaves)
    if form == "infix":
        return Functor(draw(st.sampled_from(sorted(PRECEDENCE))), (draw(below), draw(below)))
    if form == "prefix":
        return Functor(draw(st.sampled_from(sorted(PREFIXES))), (draw(below),))
    if form == "call":
        arguments = tuple(draw(st.lists(below, max_size=3)))
        return Functor(draw(st.sampled_from(FUNCTIONS)), arguments)
    if form == "extreme":
        arguments = tuple(draw(st.lists(below, min_size=2, max_size=3)))
        return Functor(draw(st.sampled_from(["min", "max"])), arguments)
    operator = draw(st.sampled_from(["count", "sum", "min", "max", "mean"]))
    target = None if operator == "count" else draw(below)
    return AggregateTerm(operator, target, draw(some_bodies(depth - 1)))


@st.composite
def some_atoms(draw: st.DrawFn, depth: int, is_head: bool = False) -> Atom:
    """Draws atoms with a sign or a state, heads without state."""
    sign = draw(st.sampled_from(["", "", "+", "-"]))
    states = [None] if sign or is_head else [None, State.OLD, State.NEW]
    arguments = tuple(draw(st.lists(some_terms(depth), max_size=3)))
    return Atom(draw(relations), arguments, sign, draw(st.sampled_from(states)))


@st.composite
def some_bodies(draw: st.DrawFn, depth: int) -> tuple[BodyItem, ...]:
    """Draws conjunctions of one to three items."""
    return tuple(draw(st.lists(some_items(depth), min_size=1, max_size=3)))


@st.composite
def some_items(draw: st.DrawFn, depth: int) -> BodyItem:
    """Draws literals and disjunctions."""
    form = draw(st.sampled_from(["atom", "negation", "comparison", "truth", "disjunction"]))
    if form == "atom":
        return draw(some_atoms(depth))
    if form == "negation":
        return Negation(draw(some_atoms(depth)))
    if form == "comparison":
        operator = draw(st.sampled_from(OPERATORS))
        return Comparison(operator, draw(some_terms(depth)), draw(some_terms(depth)))
    if form == "truth" or depth == 0:
        return Truth(draw(st.booleans()))
    alternatives = draw(st.lists(some_bodies(depth - 1), min_size=2, max_size=3))
    return Disjunction(tuple(alternatives))


@st.composite
def some_clauses(draw: st.DrawFn) -> Clause:
    """Draws facts and rules; a clause with an aggregate in its head has a body, written or not."""
    heads = draw(st.lists(some_atoms(2, is_head=True), min_size=1, max_size=2))
    parts = [part for head in heads for term in head.arguments for part in subterms(term)]
    has_aggregate = any(isinstance(part, AggregateTerm) for part in parts)
    nothing = (Truth(True),) if has_aggregate else ()
    body = draw(st.one_of(st.just(nothing), some_bodies(2)))
    return Clause(tuple(heads), body, is_null_safe=bool(body) and draw(st.booleans()))


type_names = st.builds(
    TypeName,
    relations,
    st.one_of(st.none(), st.tuples(st.integers(0, 18), st.integers(0, 18))),
    st.booleans(),
)
columns = st.builds(Column, names, type_names)
some_names = st.lists(names, min_size=1, max_size=3).map(tuple)
declarations = st.builds(
    Declaration,
    relations,
    st.lists(columns, max_size=3).map(tuple),
    st.one_of(st.just(()), some_names),
    st.sampled_from(["", "stored", "virtual"]),
    st.lists(st.sampled_from(HINTS), max_size=2).map(tuple),
    st.booleans(),
)
types = st.one_of(
    st.builds(TypeDeclaration, relations, st.tuples(type_names), st.just(True)),
    st.builds(
        TypeDeclaration,
        relations,
        st.lists(type_names, min_size=1, max_size=3).map(tuple),
        st.just(False),
    ),
)
parameters = st.lists(
    st.tuples(names, st.one_of(texts, st.sampled_from(["true", "5", "007", "-1"]))), max_size=3
).map(tuple)
directives = st.builds(
    Directive,
    st.sampled_from(["input", "output", "printsize", "limitsize"]),
    relations,
    parameters,
)
programs = st.builds(
    Program,
    st.lists(types, max_size=2).map(tuple),
    st.lists(declarations, max_size=2).map(tuple),
    st.lists(st.builds(FunctionalDependency, relations, some_names, some_names), max_size=2).map(
        tuple
    ),
    st.lists(some_clauses(), max_size=3).map(tuple),
    st.lists(directives, max_size=2).map(tuple),
    st.lists(
        st.builds(Reaction, st.sampled_from(["alert", "abort"]), relations, texts, parameters),
        max_size=2,
    ).map(tuple),
)


@pytest.mark.slow
@given(programs)
@settings(max_examples=examples(25, 100))
def test_programs_survive_printing(program: Program) -> None:
    assert read(print_program(program)) == program


@pytest.mark.slow
@given(some_clauses())
@settings(max_examples=examples(25, 150))
def test_clauses_survive_printing(clause: Clause) -> None:
    text = print_clause(clause)
    assert parse_clause(text) == clause
    assert print_clause(parse_clause(text)) == text


# --- text -----------------------------------------------------------------------------------------

PROGRAM = """\
.type Station <: symbol
.type Place = Station | City

.decl direct_link(src: Station, dst: Station)
.decl price(item: symbol, net: decimal(12,2), valid: date, note: symbol?) key(item) virtual
.decl same(x: number, y: number) eqrel brie

.fd price(item, valid -> net)

.input direct_link(filename="links.csv", delimiter=",", headers=true)
.limitsize price(n=1000)

direct_link("a", "b").
p(1, 7u, -2, 12.50, 1.5e-9, true, null, d"2026-11-15", t"2026-11-15T08:00:00Z", "a\\"\\n").
link(x, y), reach(y) :- link(x, z), direct_link(z, y).
p(x) :- q(x) ; r(x), !s(x, _).
p(x) :- (q(x) ; r(x)), x != 3, match("a.*", y), !contains("b", y), false.
p(n) :- n = count : { q(x) ; r(x) } + 2 * sum x + 1 : { q(x), x > -1 }.
p(-x ^ 2 + (-x) ^ 2 - (y - z) * bnot w band min(x, y, 3)) :- q(x, y, z, w).
+reorder(p, n) :- shortage(p), -part(p, have), stock@new(p, n), h.keys1(p), `my rel`(n).

.alert shortage "only {n} of {p}"
"""


def test_formatting_is_stable() -> None:
    printed = print_program(read(PROGRAM))
    assert printed == PROGRAM


@given(st.lists(st.sampled_from(PROGRAM.splitlines()), max_size=12))
@settings(max_examples=examples(20, 50))
def test_text_survives_printing(lines: list[str]) -> None:
    program = read("\n".join(lines))
    assert read(print_program(program)) == program


@pytest.mark.parametrize(
    "text",
    [
        "x + y * z",
        "(x + y) * z",
        "x - (y - z)",
        "x ^ y ^ z",
        "(x ^ y) ^ z",
        "x ^ (-y)",
        "(-5) ^ x",
        "-5 ^ x",
        "-(5)",
        "-(x + y)",
        "x lor y land (z lor w)",
        "lnot (x land y)",
        "bnot -1",
        "-x",
        "--x",
    ],
)
def test_brackets_are_few(text: str) -> None:
    (comparison,) = parse_clause(f"p() :- h = {text}.").body
    assert isinstance(comparison, Comparison)
    assert print_term(comparison.right) == text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1e300, "1e300"),
        (-0.5, "-0.5"),
        (1.0, "1.0"),
        (float("inf"), 'to_float("inf")'),
        (float("-inf"), 'to_float("-inf")'),
        (float("nan"), 'to_float("nan")'),
        (Decimal(100), "100e0"),
        (date(1, 2, 3), 'd"0001-02-03"'),
        (datetime(2026, 11, 15, 8, 0, 0, 5, tzinfo=UTC), 't"2026-11-15T08:00:00.000005Z"'),
    ],
)
def test_values(value: float | Decimal | date, expected: str) -> None:
    assert print_term(Constant(value)) == expected


# --- normal form ----------------------------------------------------------------------------------

x, y = Variable("x"), Variable("y")
ORIGIN = Origin("")


def test_normal_rules() -> None:
    rule = Rule(
        Literal("p", (x, Constant(1))),
        (Literal("q.some1", (x, Wildcard())), Literal("r", (x,), negated=True)),
        (Condition("is", y, Functor("+", (x, Constant(1)))), Condition("match", Constant("a"), x)),
        ORIGIN,
    )
    text = 'p(x, 1) :- q.some1(x, _), !r(x), y = x + 1, match("a", x).'
    assert print_rule(rule) == text
    assert print_literal(Literal("p", (x,), sign="+")) == "+p(x)"
    assert print_literal(Literal("p", (x,), state=State.OLD)) == "p@old(x)"
    assert print_condition(Condition("!match", x, y)) == "!match(x, y)"


def test_normal_program() -> None:
    relations = {
        "edge": Relation("edge", ("x", "y"), (NUMBER, SYMBOL), is_derived=False),
        "h": Relation("h", ("x", "n"), (NUMBER, NUMBER), is_derived=True, is_virtual=True),
        "total": Relation("total", ("n",), (NUMBER,), is_derived=True),
    }
    counted = Aggregation("h", "edge", (0,), (Accumulator("count", None),), ORIGIN)
    summed = Aggregation("total", "h", (), (Accumulator("sum", 1),), ORIGIN)
    facts = {"edge": ((1, "a"),)}
    program = NormalProgram(relations, (), (counted, summed), facts)
    text = """\
.decl edge(x: number, y: symbol)
.decl h(x: number, n: number) virtual
.decl total(n: number)

edge(1, "a").

h(x, n) :- edge(x, _), n = count : { edge(x, y) }.
total(n) :- h(_, _), n = sum n2 : { h(x, n2) }.
"""
    assert print_normal(program) == text
    assert read(text).clauses
    assert print_aggregation(counted, relations) in text
