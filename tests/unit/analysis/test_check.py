"""Types that inference finds, programs that must pass without a word, and big programs."""

from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise

import pytest

from corollary.analysis.check import CheckedProgram, check, diagnose
from corollary.analysis.traverse import clause_terms
from corollary.core.logic import (
    AggregateTerm,
    Atom,
    Clause,
    Comparison,
    Constant,
    Functor,
    Negation,
    Term,
    Variable,
    subterms,
)
from corollary.core.program import Column, Declaration, Directive, Program, TypeName
from corollary.core.types import FLOAT, NUMBER, SYMBOL, UNSIGNED, Type, decimal
from corollary.errors import InputError, render
from corollary.frontends.datalog.parser import parse
from corollary.source import SourceFile
from support.selection import examples


def checked(text: str) -> CheckedProgram:
    return check(parse(SourceFile("program.dl", text)))


def all_terms(clause: Clause) -> Iterator[Term]:
    for term, _ in clause_terms(clause):
        yield from subterms(term)


def types_in(text: str, number: int = -1) -> dict[str, Type | None]:
    """Return the types of a clause's variables by name, of its functors and aggregates too."""
    found: dict[str, Type | None] = {}
    for term in all_terms(checked(text).program.clauses[number]):
        match term:
            case Variable(name=name, type=type_) | Functor(name=name, type=type_):
                found[name] = type_
            case AggregateTerm(operator=name, type=type_):
                found[name] = type_
            case _:
                pass
    return found


def constants_in(text: str, number: int = -1) -> list[tuple[object, str]]:
    clause = checked(text).program.clauses[number]
    return [(t.value, str(t.type)) for t in all_terms(clause) if isinstance(t, Constant)]


TABLE = """
.decl t(n: number, u: unsigned, f: float, d: decimal(12, 2), s: symbol, x: symbol?)
.input t
.decl r(n: number) .output r
"""


def test_types_come_from_columns() -> None:
    found = types_in(TABLE + "r(n) :- t(n, u, f, d, s, x), u > 0, f > 0, d > 0, x != s.")
    assert found == {
        "n": NUMBER,
        "u": UNSIGNED,
        "f": FLOAT,
        "d": decimal(12, 2),
        "s": SYMBOL,
        "x": SYMBOL,
    }


def test_literals_take_the_type_of_their_place() -> None:
    assert constants_in(TABLE + 't(5, 5, 5, 5, "5", null).') == [
        (5, "number"),
        (5, "unsigned"),
        (5.0, "float"),
        (Decimal("5.00"), "decimal(12,2)"),
        ("5", "symbol"),
        (None, "symbol?"),
    ]
    assert constants_in(TABLE + 't(-1, 7u, -0.0, -2.5, "", "a").') == [
        (-1, "number"),
        (7, "unsigned"),
        (0.0, "float"),
        (Decimal("-2.50"), "decimal(12,2)"),
        ("", "symbol"),
        ("a", "symbol"),
    ]
    assert str(constants_in(TABLE + 't(1, 1, -0.0, -0.00, "", "a").')[2:4]) == (
        "[(0.0, 'float'), (Decimal('0.00'), 'decimal(12,2)')]"
    )


def test_literals_take_the_type_of_the_other_side() -> None:
    rule = "r(n) :- t(n, u, f, d, _, _), u < 5, f >= 2, 1.5 < d, d != 1.234, n > y, y = 3."
    assert constants_in(TABLE + rule) == [
        (5, "unsigned"),
        (2.0, "float"),
        (Decimal("1.50"), "decimal(38,2)"),
        (Decimal("1.234"), "decimal(38,3)"),
        (3, "number"),
    ]


def test_literals_take_the_type_of_the_other_operand() -> None:
    rule = "r(n) :- t(n, u, f, d, _, _), u + 5 > 0, f * 2 > 0, d * 1.1 > 0, 2 * d = d."
    assert constants_in(TABLE + rule) == [
        (5, "unsigned"),
        (0, "unsigned"),
        (2.0, "float"),
        (0.0, "float"),
        (Decimal("1.1"), "decimal(38,1)"),
        (Decimal("0.00"), "decimal(38,2)"),
        (Decimal(2), "decimal(38,0)"),
    ]


def test_literals_alone_are_numbers_and_floats() -> None:
    rule = 'r(n) :- t(n, _, _, _, _, _), 1 < 2, 1.5 < 2, to_string(3) != "3".'
    assert constants_in(TABLE + rule) == [
        (1, "number"),
        (2, "number"),
        (1.5, "float"),
        (2.0, "float"),
        (3, "number"),
        ("3", "symbol"),
    ]


def test_types_of_functors() -> None:
    rule = (
        "r(strlen(a)) :- t(n, _, f, d, s, _), a = cat(s, to_string(n)), b = to_float(n) / f, "
        "c = to_decimal(b, 3), e = d + c, e > 0, g = max(n, 3) band 7, g > 0."
    )
    found = types_in(TABLE + rule)
    assert {name: str(found[name]) for name in "abceg"} == {
        "a": "symbol",
        "b": "float",
        "c": "decimal(38,3)",
        "e": "decimal(38,3)",
        "g": "number",
    }
    assert (found["strlen"], found["band"], found["/"]) == (NUMBER, NUMBER, FLOAT)


def test_types_of_aggregates() -> None:
    rule = (
        "r(n) :- n = count : { t(_, _, _, _, _, _) }, a = sum d : { t(_, _, _, d, _, _) }, "
        "b = mean m : { t(m, _, _, _, _, _) }, c = max s : { t(_, _, _, _, s, _) }, "
        'a > 0, b > 0, c != "".'
    )
    found = types_in(TABLE + rule)
    assert {name: str(found[name]) for name in ("n", "sum", "b", "c", "max")} == {
        "n": "number",
        "sum": "decimal(38,2)",
        "b": "float",
        "c": "symbol",
        "max": "symbol",
    }


def test_local_variables_of_aggregates_are_their_own() -> None:
    text = TABLE + (
        "r(a + b) :- a = count : { t(x, _, _, _, _, _), x > 0 }, "
        'b = count : { t(_, _, _, _, x, _), x != "" }.'
    )
    clause = checked(text).program.clauses[-1]
    found = [t for t in all_terms(clause) if isinstance(t, Variable) and t.name == "x"]
    assert [variable.type for variable in found] == [NUMBER, NUMBER, SYMBOL, SYMBOL]


def test_variables_of_alternatives_are_their_own() -> None:
    text = TABLE + 'r(n) :- (t(n, x, _, _, _, _), x > 0 ; t(n, _, _, _, x, _), x = "a").'
    clause = checked(text).program.clauses[-1]
    found = [t for t in all_terms(clause) if isinstance(t, Variable) and t.name == "x"]
    assert [variable.type for variable in found] == [UNSIGNED, UNSIGNED, SYMBOL, SYMBOL]


def test_nulls_are_tested_by_a_second_position_or_a_comparison() -> None:
    output = ".decl q(x: symbol?) .output q "
    assert types_in(TABLE + output + "q(x) :- t(_, _, _, _, _, x).")["x"] == SYMBOL.with_null(True)
    for rule in (
        "q(x) :- t(_, _, _, _, _, x), t(_, _, _, _, x, _).",
        "q(x) :- t(_, _, _, _, x, x).",
        "q(x) :- t(_, _, _, _, _, x), x = x.",
        "q(x) :- t(_, _, _, _, _, x), !t(_, _, _, _, _, x).",
        "q(x) :- t(_, _, _, _, _, x), 0 < count : { t(_, _, _, _, _, x) }.",
        'q(x) :- (t(_, _, _, _, x, _) ; t(_, _, _, _, _, x), contains("a", x)).',
    ):
        assert types_in(TABLE + output + rule)["x"] == SYMBOL
    weak = "q(x) :- (t(_, _, _, _, x, _) ; t(_, _, _, _, _, x))."
    assert types_in(TABLE + output + weak)["x"] == SYMBOL.with_null(True)
    computed = types_in(TABLE + output + 'q(cat(x, "!")) :- t(_, _, _, _, _, x).')
    assert computed["cat"] == SYMBOL.with_null(True)


def test_signatures() -> None:
    found = checked(
        """
        .decl link(src: symbol, dst: symbol?) .input link
        .decl reach(x: symbol) virtual
        reach(x) :- link(x, _).
        .decl same(a: symbol, b: symbol) eqrel .output same
        .decl log(x: symbol)
        lost(x, 1, x, y, 2.5) :- -link(x, y), reach@old(x).
        twice(a) :- lost(a, _, a, _, _).
        +log(x) :- twice(x).
        """
    ).signatures
    assert list(found) == ["link", "reach", "same", "log", "lost", "twice"]
    lost = found["lost"]
    assert lost.columns == ("x", "c2", "c3", "y", "c5")
    assert [str(t) for t in lost.types] == ["symbol", "number", "symbol", "symbol?", "float"]
    assert lost.declaration is None
    assert [name for name, s in found.items() if s.is_event] == ["lost", "twice"]
    assert [name for name, s in found.items() if s.is_derived] == [
        "reach",
        "same",
        "lost",
        "twice",
    ]


def test_types_of_event_columns_come_from_all_rules() -> None:
    found = checked(
        """
        .decl p(x: float, d: decimal(9, 3)) .input p
        e(1, 2) :- +p(_, _).
        e(x, d) :- -p(x, d), f(x, d).
        f(a, b) :- e(a, b).
        .alert e "{c1}"
        """
    )
    assert found.signatures["f"].types == (FLOAT, decimal(9, 3))
    assert [t.value for t in all_terms(found.program.clauses[0]) if isinstance(t, Constant)] == [
        1.0,
        Decimal("2.000"),
    ]


ACCEPTED = {
    "closure": """
        .type Station <: symbol
        .decl direct(src: Station, dst: Station)
        .input direct(filename="links.csv", delimiter=",")
        .decl link(src: Station, dst: Station)
        link(x, y) :- direct(x, y).
        link(x, y) :- link(x, z), direct(z, y).
        .output link
        .printsize link
        .limitsize link(n=1000)
    """,
    "mutual recursion": """
        .decl next(x: number, y: number) .input next
        .decl even(x: number) .output even
        .decl odd(x: number)
        even(0).
        odd(y) :- even(x), next(x, y).
        even(y) :- odd(x), next(x, y).
    """,
    "negation": """
        .decl node(x: symbol) .decl edge(x: symbol, y: symbol) .input node, edge
        .decl sink(x: symbol) .output sink
        sink(x) :- node(x), !edge(x, _).
        .decl apart(x: symbol, y: symbol) .output apart
        apart(x, y) :- node(x), node(y), !(edge(x, y) ; edge(y, x)), x != y.
    """,
    "aggregates": """
        .decl sale(shop: symbol, item: symbol, n: number) .input sale
        .decl total(shop: symbol, n: number, best: number, items: number, average: float)
        total(s, n, b, c, a) :- sale(s, _, _), n = sum k : { sale(s, _, k) },
            b = max k : { sale(s, _, k) }, c = count : { sale(s, _, _) },
            a = mean k : { sale(s, _, k) }.
        .output total
    """,
    "nested aggregates": """
        .decl sale(shop: symbol, n: number) .input sale
        .decl best(n: number) .output best
        best(n) :- n = max m : { sale(s, _), m = sum k : { sale(s, k) } }.
        .decl all(n: number) .output all
        all(count : { sale(_, _) }) :- true.
    """,
    "aggregate over an atom": """
        .decl p(x: number) .input p
        .decl q(n: number) .output q
        q(n) :- n = count : p(_).
        q(n) :- n = sum x : p(x), n > min x : p(x).
    """,
    "disjunction": """
        .decl a(x: number) .decl b(y: number) .input a, b
        .decl q(x: number, y: number) .output q
        q(x, y) :- (a(x) ; b(y)), x = y.
        q(x, 1) :- (a(x), x > 1 ; b(x), (x < 5 ; x = 7)) ; x = 3.
        q(x, n) :- a(x), (n = 1 ; n = count : { b(y), y < x }).
    """,
    "several heads": """
        .decl a(x: number, y: number) .input a
        .decl b(x: number) .decl c(y: number) .output b, c
        b(x), c(y) :- a(x, y).
    """,
    "equalities": """
        .decl a(x: number) .input a
        .decl q(x: number, y: number, s: symbol) .output q
        q(x, y, s) :- s = cat(t, "!"), t = to_string(y), y = z + 1, z = x, a(x).
        q(x, x, "") :- x = 5.
        q(x, y, "") :- a(x), y = range(0, x), y % 2 = 0.
        q(x, y, "") :- a(x), range(0, x, 2) = y.
    """,
    "functors": """
        .decl a(x: number, u: unsigned, f: float, s: symbol) .input a
        .decl q(x: number, u: unsigned, f: float, s: symbol) .output q
        q(-x ^ 2 - 0x10 / 3 % 2, u bshl 2 bor 0b1, f * 2 + 1.5, substr(s, 0, x)) :- a(x, u, f, s).
        q(bnot x band lnot x, max(u, 1, 2), min(f, 0.5), cat(s, "a", s)) :- a(x, u, f, s).
        q(ord(s), to_unsigned(x), to_float(u), to_string(f)) :- a(x, u, f, s).
        q(to_number(s), u, f, s) :- a(_, u, f, s), match("[0-9]+", s), !contains("00", s).
        q(x land 1 lor 0 lxor 1, u bshru 1, -f, s) :- a(x, u, f, s), strlen(s) > x.
    """,
    "dates and truths": """
        .decl price(item: symbol, net: decimal(12, 2), from: date, seen: timestamp, ok: bool)
        price("a", 12.50, d"2026-11-15", t"2026-11-15T08:00:00Z", true).
        .decl q(item: symbol, day: date, at: timestamp) .output q
        q(i, to_date(t), to_timestamp(d)) :- price(i, n, d, t, true), n >= 10, d > d"2026-01-01".
        q("x", d, t) :- price(_, _, d, t, ok), ok != false, to_date("2026-11-15") = d.
    """,
    "decimals": """
        .decl price(item: symbol, net: decimal(12, 2), rate: decimal(5, 4)) .input price
        .decl gross(item: symbol, total: decimal(14, 2)) .output gross
        gross(i, to_decimal(n * (1 + r), 2)) :- price(i, n, r), n > 0, n < 1000000.5, r <= n.
        gross("all", s) :- s = sum n : { price(_, n, _) }.
        gross(i, n * 1.1 + 2) :- price(i, n, _), n = 5.
    """,
    "nulls": """
        .decl note(id: number, text: symbol?) .input note
        .decl copy(id: number, text: symbol?) .output copy
        copy(i, t) :- note(i, t).
        copy(i, null) :- note(i, "x").
        .decl bare(id: number) .output bare
        bare(i) :- note(i, null).
        .decl full(id: number, text: symbol) .output full
        full(i, t) :- note(i, t), t = t.
        full(i, t) :- note(i, t), note(_, t).
    """,
    "keys and dependencies": """
        .decl account(id: number, owner: symbol, limit: float) key(id)
        .fd account(owner -> limit)
        .decl m(a: number, b: number, c: number) key(a, b) stored
        m(a, b, a) :- account(a, _, _), account(b, _, _).
        .fd m(a, b -> c)
    """,
    "equivalence": """
        .decl pair(a: symbol, b: symbol) .input pair
        .decl same(a: symbol, b: symbol) eqrel
        same(x, y) :- pair(x, y).
        .decl class(x: symbol, least: symbol) .output class
        class(x, m) :- same(x, _), m = min y : { same(x, y) }.
    """,
    "nullary": """
        .decl p(x: number) .input p
        .decl any() .decl none() .output any, none
        any() :- p(_).
        none() :- !any().
    """,
    "events": """
        .decl link(x: symbol, y: symbol) .input link
        .decl reach(x: symbol, y: symbol) virtual
        reach(x, y) :- link(x, y).
        reach(x, y) :- reach(x, z), link(z, y).
        lost(x, y) :- -reach(x, y).
        was(x) :- -link(x, y), link@old(y, x), !link@new(y, x).
        chain(x, y) :- lost(x, y).
        chain(x, y) :- chain(x, z), lost(z, y), !gained(x).
        gained(x) :- +reach(x, _).
        many(n) :- n = count : { -link(_, _) }, n > 10.
        .alert lost "lost {x} -> {y}"
        .alert chain "chain {x} {{not a column}} {y}"
        .abort was "{x}"
        .abort many "{n}"
    """,
    "triggers": """
        .decl part(p: symbol, n: number) .decl batch(p: symbol, n: number) .input part, batch
        .decl delivered(p: symbol) .decl pending(p: symbol) .decl reorder(p: symbol, n: number)
        shortage(p) :- +part(p, have), batch@new(p, need), have <= need.
        +reorder(p, n), +pending(p) :- shortage(p), batch(p, n).
        -pending(p) :- +delivered(p).
        .alert part "{p}: {n}"
    """,
    "declared events": """
        .decl salary(e: symbol, s: decimal(9, 2)) key(e) .input salary
        .decl large_raise(e: symbol, by: decimal(9, 2))
        large_raise(e, a - b) :- -salary(e, b), +salary(e, a), a >= b * 1.1.
        .alert large_raise "{e} by {by}"
    """,
    "constraints on relations": """
        .decl account(id: number, balance: decimal(12, 2)) .input account
        .decl overdrawn(id: number)
        overdrawn(i) :- account(i, b), b < 0.
        .abort overdrawn "account {id} would be negative"
    """,
    "bounded recursion": """
        .decl edge(x: symbol, y: symbol) .input edge
        .decl walk(x: symbol, y: symbol, n: number) .output walk
        walk(x, y, 1) :- edge(x, y).
        walk(x, y, n + 1) :- walk(x, z, n), edge(z, y), n < 5.
        .decl allowed(n: number) .input allowed
        .decl up(n: number) .output up
        up(0).
        up(m) :- up(n), m = n + 1, allowed(m).
        up(n + 1) :- up(n), allowed(n).
        up(max(n, m)) :- up(n), up(m).
        .decl rev(s: symbol, k: number, t: symbol) .output rev
        rev(s, 0, "") :- edge(s, _).
        rev(s, k + 1, cat(substr(s, k, 1), t)) :- rev(s, k, t), k < strlen(s).
        rev(s, strlen(s), cat(s, s)) :- rev(s, _, _).
    """,
    "types": """
        .type Id <: number
        .type User <: Id
        .type Name = symbol
        .type Code <: Name
        .type Any = Name | Code
        .decl user(i: User, n: Name, c: Code) .input user
        .decl all(i: Id, n: Any, m: symbol) .output all
        all(i, n, c) :- user(i, n, c).
        all(i, c, c) :- user(i, _, c), all(i, c, _).
    """,
    "hints": """
        .decl a(x: number) brie .input a
        .decl b(x: number) inline
        b(x) :- a(x).
        .decl c(x: number) btree .output c
        c(x) :- b(x), a(x).
        .plan 0: (2, 1)
    """,
    "directives": """
        .decl a(x: number, y: number)
        .input a(IO=file, filename="a.csv", delimiter=";", headers=true, columns="2:0")
        .input a(IO=stdin, rfc4180=true, compress=false)
        .output a(IO=stdout)
        .output a(filename="b.csv", columns="1:0")
    """,
    "facts": """
        .decl p(x: number, y: symbol?, z: float) .output p
        p(1 + 2, "a", 1). p(-9223372036854775808, null, -1e3). p(0xff, cat("a", "b"), 2.5 * 2).
    """,
    "underscores": """
        .decl p(x: number, y: number) .input p
        .decl q(x: number) .output q
        q(x) :- p(x, _unused), p(_, x), 1 < count : { p(_x, _) }.
        q(1) :- false.
    """,
}


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_good_programs_pass_without_a_word(text: str) -> None:
    found = diagnose(parse(SourceFile("program.dl", text)))
    assert not found, "\n".join(render(finding) for finding in found)
    program = check(parse(SourceFile("program.dl", text))).program
    for clause in program.clauses:
        for term in all_terms(clause):
            if isinstance(term, Variable | Constant | Functor | AggregateTerm):
                assert term.type is not None


def test_all_errors_are_raised_at_once_in_the_order_of_the_text() -> None:
    text = """
        .decl p(x: number, y: Nothing)
        .decl q(x: number, y: symbol) .output q
        q(x, 5) :- p(x, _), !q(y, "a").
        q(x, y) :- r(x), z < 3.
        .alert s "{x}"
    """
    with pytest.raises(InputError) as raised:
        checked(text)
    found = raised.value.diagnostics
    assert [finding.code for finding in found] == [
        "C0214",
        "C0301",
        "C0501",
        "C0402",
        "C0401",
        "C0201",
        "C0403",
        "C0201",
    ]
    lines = [finding.span.line for finding in found if finding.span]
    assert lines == sorted(lines)


def test_files_are_reported_in_the_order_they_were_given() -> None:
    one = parse(SourceFile("b.dl", "\n\np(x) :- q(x)."))
    two = parse(SourceFile("a.dl", "p(x) :- r(x)."))
    found = diagnose(one + two)
    assert [str(finding.span) for finding in found] == ["b.dl:3:1", "b.dl:3:9", "a.dl:1:9"]


def test_equal_texts_are_told_apart_by_name() -> None:
    program = parse(SourceFile("a.dl", "p(x) :- p(x).")) + parse(SourceFile("b.dl", "q(1)."))
    assert [str(finding.span) for finding in diagnose(program)] == ["a.dl:1:1", "b.dl:1:1"]


def test_programs_without_places_are_checked_too() -> None:
    x = Variable("x")
    program = Program(
        declarations=(Declaration("p", (Column("x", TypeName("number")),)),),
        clauses=(
            Clause((Atom("p", (x,)),), (Comparison("<", x, Functor("frob", (x,))),)),
            Clause((Atom("p", (Constant("a"),)),), (Negation(Atom("q", (x,))),)),
        ),
    )
    found = diagnose(program)
    assert {finding.code for finding in found} == {
        "C0201",
        "C0203",
        "C0301",
        "C0401",
        "C0402",
        "C0701",
    }
    assert all(render(finding) for finding in found)


def chain(size: int) -> Program:
    """A program of `size` relations, each read by the next."""
    x, y = Variable("x"), Variable("y")
    columns = (Column("x", TypeName("symbol")), Column("y", TypeName("number")))
    names = [f"r{number}" for number in range(size)]
    rules = [
        Clause(
            (Atom(upper, (x, Functor("+", (y, Constant(1))))),),
            (Atom(lower, (x, y)), Negation(Atom(names[0], (x, y)))),
        )
        for lower, upper in pairwise(names)
    ]
    return Program(
        declarations=tuple(Declaration(name, columns) for name in names),
        clauses=tuple(rules),
        directives=(Directive("input", names[0]), Directive("output", names[-1])),
    )


@pytest.mark.slow
def test_big_programs_are_checked() -> None:
    assert not check(chain(examples(2_000, 20_000))).warnings


def test_wide_bodies_are_checked() -> None:
    count = 500
    names = [Variable(f"x{number}") for number in range(count)]
    body = [Comparison("=", a, b) for a, b in pairwise(names)]
    clause = Clause((Atom("p", (names[0],)),), (*body, Atom("q", (names[-1],))))
    column = (Column("x", TypeName("number")),)
    program = Program(
        declarations=(Declaration("p", column), Declaration("q", column)),
        clauses=(clause,),
        directives=(Directive("output", "p"),),
    )
    assert not check(program).warnings


@pytest.mark.slow
def test_events_spread_without_recursion() -> None:
    x = Variable("x")
    first = Clause((Atom("e0", (x,)),), (Atom("p", (x,), "+"),))
    rest = [
        Clause((Atom(f"e{n + 1}", (x,)),), (Atom(f"e{n}", (x,)),)) for n in reversed(range(3000))
    ]
    program = Program(
        declarations=(Declaration("p", (Column("x", TypeName("date", nullable=True)),)),),
        clauses=(*rest, first),
    )
    found = check(program).signatures["e3000"]
    assert found.is_event
    assert str(found.types[0]) == "date?"
