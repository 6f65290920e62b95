"""The Datalog parser, construct by construct."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from corollary.analysis.traverse import atom_uses, clause_terms
from corollary.core.logic import (
    AggregateTerm,
    Atom,
    BodyItem,
    Clause,
    Comparison,
    Constant,
    Disjunction,
    Functor,
    Negation,
    Term,
    Truth,
    Value,
    Variable,
    Wildcard,
    subterms,
    variables_of,
)
from corollary.core.printer import print_clause, print_program
from corollary.core.program import (
    Column,
    Declaration,
    Directive,
    FunctionalDependency,
    Pragma,
    Program,
    Reaction,
    TypeDeclaration,
    TypeName,
)
from corollary.core.states import State
from corollary.core.syntax import is_bare_name, is_bare_relation
from corollary.core.types import UNSIGNED
from corollary.errors import InputError
from corollary.frontends.datalog import parse, parse_clause, parse_file, parse_goal
from corollary.source import SourceFile

x, y, z = Variable("x"), Variable("y"), Variable("z")
SYMBOL, NUMBER = TypeName("symbol"), TypeName("number")


def read(text: str) -> Program:
    return parse(SourceFile("program.dl", text))


def body(text: str) -> tuple[BodyItem, ...]:
    return parse_clause(f"h() :- {text}.").body


def term(text: str) -> Term:
    (comparison,) = body(f"h = {text}")
    assert isinstance(comparison, Comparison)
    return comparison.right


def value(text: str) -> Value:
    constant = term(text)
    assert isinstance(constant, Constant)
    return constant.value


def p(*arguments: Term) -> Atom:
    return Atom("p", arguments)


def q(*arguments: Term) -> Atom:
    return Atom("q", arguments)


def functor(name: str, *arguments: Term) -> Functor:
    return Functor(name, arguments)


# --- declarations ---------------------------------------------------------------------------------


def test_declaration() -> None:
    (found,) = read(".decl p(a: symbol, b: number?, c: decimal(12, 2)?, d: Price)").declarations
    assert found == Declaration(
        "p",
        (
            Column("a", SYMBOL),
            Column("b", TypeName("number", nullable=True)),
            Column("c", TypeName("decimal", (12, 2), nullable=True)),
            Column("d", TypeName("Price")),
        ),
    )


def test_several_relations_in_one_declaration() -> None:
    found = read(".decl p, q(a: symbol) key(a) virtual").declarations
    columns = (Column("a", SYMBOL),)
    assert found == tuple(Declaration(name, columns, ("a",), "virtual") for name in "pq")


def test_qualifiers() -> None:
    (found,) = read(".decl p(a: number, b: number) btree eqrel stored inline").declarations
    assert (found.storage, found.hints, found.is_equivalence) == (
        "stored",
        ("btree", "inline"),
        True,
    )


def test_old_qualifiers_are_directives() -> None:
    found = read(".decl p(a: number) input output").directives
    assert found == (Directive("input", "p"), Directive("output", "p"))


def test_nullary_relation() -> None:
    program = read(".decl p()\np(). p() :- p().")
    assert program.declarations == (Declaration("p", ()),)
    assert program.clauses == (Clause((p(),)), Clause((p(),), (p(),)))


@pytest.mark.parametrize(
    "clause", ["key(1).", "key(x) :- q(x).", "inline(1).", "virtual(x), q(x)."]
)
def test_words_of_qualifiers_may_name_relations(clause: str) -> None:
    program = read(f".decl p(a: number)\n{clause}")
    assert len(program.clauses) == 1
    assert program.declarations == (Declaration("p", (Column("a", NUMBER),)),)


def test_reserved_words_may_name_columns() -> None:
    (found,) = read(".decl p(count: number, min: number) key(min)").declarations
    assert [column.name for column in found.columns] == ["count", "min"]
    assert found.key == ("min",)


def test_types() -> None:
    found = read(".type A <: symbol\n.type B = A | C\n.type D\n.number_type E").types
    assert found == (
        TypeDeclaration("A", (SYMBOL,), True),
        TypeDeclaration("B", (TypeName("A"), TypeName("C")), False),
        TypeDeclaration("D", (SYMBOL,), True),
        TypeDeclaration("E", (NUMBER,), True),
    )


def test_dependency() -> None:
    found = read(".fd m(a, b -> c, d)").dependencies
    assert found == (FunctionalDependency("m", ("a", "b"), ("c", "d")),)


# --- directives -----------------------------------------------------------------------------------


def test_directives() -> None:
    program = read(
        '.input p(filename="a.csv", delimiter=",", IO=file, headers=true, columns="0:2")\n'
        ".output p, q\n.printsize p\n.limitsize p(n=5)"
    )
    parameters = (
        ("filename", "a.csv"),
        ("delimiter", ","),
        ("IO", "file"),
        ("headers", "true"),
        ("columns", "0:2"),
    )
    assert program.directives == (
        Directive("input", "p", parameters),
        Directive("output", "p"),
        Directive("output", "q"),
        Directive("printsize", "p"),
        Directive("limitsize", "p", (("n", "5"),)),
    )


def test_parameters_belong_to_all_relations_of_a_directive() -> None:
    found = read('.input p, q(delimiter=";")').directives
    assert [directive.parameter("delimiter") for directive in found] == [";", ";"]


def test_reactions() -> None:
    found = read('.alert e "lost {x}"\n.abort `my rel` "no"').reactions
    assert found == (Reaction("alert", "e", "lost {x}"), Reaction("abort", "my rel", "no"))
    (found,) = read('.alert e "lost" (IO=jsonlines, filename="a.jsonl")\np(1).').reactions
    pairs = (("IO", "jsonlines"), ("filename", "a.jsonl"))
    assert found == Reaction("alert", "e", "lost", pairs)
    assert found.parameter("IO") == "jsonlines"


def test_plan_and_pragma_are_accepted() -> None:
    program = read('p(x) :- q(x), r(x).\n.plan 0:(2,1), 1:(1,2)\n.pragma "a" "b"\np(1).')
    assert len(program.clauses) == 2
    assert program.clauses[0].plan == ((0, (2, 1)), (1, (1, 2)))
    assert program.pragmas == (Pragma("a", "b"),)
    assert parse(SourceFile("printed", print_program(program))) == program


def test_an_empty_text_is_an_empty_program() -> None:
    assert read("") == read(" \n// nothing\n/* at all */") == Program()


# --- clauses --------------------------------------------------------------------------------------


def test_facts_and_rules() -> None:
    assert read("p(1). q(x) :- p(x), q(x).").clauses == (
        Clause((p(Constant(1)),)),
        Clause((q(x),), (p(x), q(x))),
    )


def test_several_heads() -> None:
    assert parse_clause("p(x), q(y) :- p(y).").heads == (p(x), q(y))


def test_clauses_need_no_white_space_between_them() -> None:
    assert len(read("p(1).q(2).p(x):-q(x).q(x):-x=1.").clauses) == 4


def test_disjunction() -> None:
    assert body("p(x) ; q(x), p(y)") == (Disjunction(((p(x),), (q(x), p(y)))),)
    assert body("p(x), (q(x) ; p(y))") == (p(x), Disjunction(((q(x),), (p(y),))))
    assert body("(p(x), q(x)), p(y)") == (p(x), q(x), p(y))


def test_negation() -> None:
    assert body("!p(x), !!q(x)") == (Negation(p(x)), q(x))
    assert body("!(p(x), q(x))") == (Disjunction(((Negation(p(x)),), (Negation(q(x)),))),)
    assert body("!(p(x) ; x < y)") == (Negation(p(x)), Comparison(">=", x, y))
    assert body("!(p(x) ; q(x), !p(y))") == (
        Negation(p(x)),
        Disjunction(((Negation(q(x)),), (p(y),))),
    )
    assert body("!true, !false") == (Truth(False), Truth(True))


@pytest.mark.parametrize(
    ("operator", "negated"),
    [("=", "!="), ("!=", "="), ("<", ">="), ("<=", ">"), (">", "<="), (">=", "<")],
)
def test_comparisons(operator: str, negated: str) -> None:
    assert body(f"x {operator} y") == (Comparison(operator, x, y),)
    assert body(f"!(x {operator} y)") == body(f"!x {operator} y") == (Comparison(negated, x, y),)


def test_constraints() -> None:
    assert body('match("a.*", x)') == (Comparison("match", Constant("a.*"), x),)
    assert body("contains(x, y)") == (Comparison("contains", x, y),)
    assert body("!match(x, y), !contains(x, y)") == (
        Comparison("!match", x, y),
        Comparison("!contains", x, y),
    )


def test_truth() -> None:
    assert body("true, (false), ((true))") == (Truth(True), Truth(False), Truth(True))
    assert body("true = x") == (Comparison("=", Constant(True), x),)


def test_brackets_of_terms_and_of_bodies() -> None:
    assert body("(x) < y") == body("(x < y)") == body("((x) < (y))") == (Comparison("<", x, y),)


# --- active rules ---------------------------------------------------------------------------------


def test_delta_literals_and_states() -> None:
    assert body("+p(x), -p(x), p@old(x), q@new(x)") == (
        Atom("p", (x,), "+"),
        Atom("p", (x,), "-"),
        Atom("p", (x,), state=State.OLD),
        Atom("q", (x,), state=State.NEW),
    )
    assert body("!+p(x), -x < y") == (
        Negation(Atom("p", (x,), "+")),
        Comparison("<", functor("neg", x), y),
    )


def test_triggers() -> None:
    program = read(".output q\n+p(x) :- q(x).\n-p(x) :- q(x).")
    assert [clause.heads[0].sign for clause in program.clauses] == ["+", "-"]


# --- terms ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7", 7),
        ("-7", -7),
        ("0xfF", 255),
        ("0b101", 5),
        ("-9223372036854775808", -(2**63)),
        ("18446744073709551615", 2**64 - 1),
        ("12.50", Decimal("12.50")),
        ("-0.5", Decimal("-0.5")),
        ("1.5e-3", Decimal("1.5e-3")),
        ("2e10", Decimal("2e10")),
        (r'"a \"b\" \\ \n\t\r\u00e9 // /* é"', 'a "b" \\ \n\t\ré // /* é'),
        ('""', ""),
        ("true", True),
        ("false", False),
        ("null", None),
        ('d"2026-11-15"', date(2026, 11, 15)),
        ('t"2026-11-15T08:00:00Z"', datetime(2026, 11, 15, 8, tzinfo=UTC)),
        ('t"2026-11-15T09:30:00.25+01:00"', datetime(2026, 11, 15, 8, 30, 0, 250000, tzinfo=UTC)),
        ('t"2026-11-15 08:00"', datetime(2026, 11, 15, 8, tzinfo=UTC)),
    ],
)
def test_literals(text: str, expected: Value) -> None:
    assert value(text) == expected
    assert type(value(text)) is type(expected)


def test_unsigned_literals() -> None:
    assert term("7u") == Constant(7, UNSIGNED)
    assert term("0x10u") == Constant(16, UNSIGNED)


def test_fractions_keep_their_digits() -> None:
    assert term("12.50") != term("12.5")


def asked_atom(text: str) -> Atom:
    (item,) = parse_goal(text)
    assert isinstance(item, Atom)
    return item


def test_names() -> None:
    assert asked_atom("p(_, ?x, _y, `a b`, `x\\`y`)").arguments == (
        Wildcard(),
        Variable("?x"),
        Variable("_y"),
        Variable("a b"),
        Variable("x`y"),
    )
    assert asked_atom("link.base(x)") == Atom("link.base", (x,))
    assert asked_atom("`count`(x)") == Atom("count", (x,))


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("x + y * z", "x + (y * z)"),
        ("x - y - z", "(x - y) - z"),
        ("x ^ y ^ z", "x ^ (y ^ z)"),
        ("-x ^ y", "-(x ^ y)"),
        ("x ^ -y ^ z", "x ^ (-(y ^ z))"),
        ("x ^ -y * z", "(x ^ (-y)) * z"),
        ("-x * y", "(-x) * y"),
        ("bnot x + y", "(bnot x) + y"),
        ("lnot x land y", "(lnot x) land y"),
        ("x + y bshl z", "(x + y) bshl z"),
        ("x band y bshr z", "x band (y bshr z)"),
        ("x bor y bxor z band w", "x bor (y bxor (z band w))"),
        ("x lor y lxor z land w bor v", "x lor (y lxor (z land (w bor v)))"),
        ("x % y / z", "(x % y) / z"),
        ("x - -y", "x - (-y)"),
    ],
)
def test_precedence(text: str, same: str) -> None:
    assert term(text) == term(same)


def test_a_minus_sign_belongs_to_its_number() -> None:
    assert term("x -5") == functor("-", x, Constant(5))
    assert term("x - -5") == functor("-", x, Constant(-5))
    assert term("2 ^ -1") == functor("^", Constant(2), Constant(-1))
    assert term("-5 ^ 2") == functor("neg", functor("^", Constant(5), Constant(2)))
    assert term("-(5)") == functor("neg", Constant(5))


def test_functions() -> None:
    assert term("cat(x, y)") == functor("cat", x, y)
    assert term("substr(x, 0, 1)") == functor("substr", x, Constant(0), Constant(1))
    assert term("min(x, y, z)") == functor("min", x, y, z)
    assert term("range(1, 5)") == functor("range", Constant(1), Constant(5))
    assert term("to_decimal(x, 2)") == functor("to_decimal", x, Constant(2))


def test_aggregates() -> None:
    assert term("count : { p(_) }") == AggregateTerm("count", None, (p(Wildcard()),))
    assert term("count : p(x)") == AggregateTerm("count", None, (p(x),))
    assert term("sum x * 2 : { p(x), x > y }") == AggregateTerm(
        "sum", functor("*", x, Constant(2)), (p(x), Comparison(">", x, y))
    )
    assert term("max (x + y) * 2 : { p(x) ; q(x) }") == AggregateTerm(
        "max",
        functor("*", functor("+", x, y), Constant(2)),
        (Disjunction(((p(x),), (q(x),))),),
    )
    assert term("1 + mean x : { p(x) } + 1") == term("(1 + (mean x : { p(x) })) + 1")
    nested = AggregateTerm("count", None, (q(x),))
    assert term("sum y : { p(x), y = count : { q(x) } }") == AggregateTerm(
        "sum", y, (p(x), Comparison("=", y, nested))
    )


# --- spans ----------------------------------------------------------------------------------------


def test_every_node_has_a_span() -> None:
    text = "p(x) :-\n  q(x, -1), !r(x), (x < y + 1 ; s@old(y))."
    (clause,) = read(text).clauses
    places = {}
    for name, node in {
        "clause": clause,
        "head": clause.heads[0],
        "q": clause.body[0],
        "negation": clause.body[1],
        "disjunction": clause.body[2],
        "minus": clause.body[0].arguments[1],  # type: ignore[union-attr]
    }.items():
        span = node.span
        assert span is not None
        places[name] = (span.line, span.column, span.end_line, span.end_column)
    assert places == {
        "clause": (1, 1, 2, 43),
        "head": (1, 1, 1, 5),
        "q": (2, 3, 2, 11),
        "negation": (2, 13, 2, 18),
        "disjunction": (2, 20, 2, 42),
        "minus": (2, 8, 2, 10),
    }


# --- goals and clauses ----------------------------------------------------------------------------


@pytest.mark.parametrize("text", ['link("a", y)', ' link("a", y). ', 'link("a", y)?'])
def test_goals(text: str) -> None:
    assert asked_atom(text) == Atom("link", (Constant("a"), y))


@pytest.mark.parametrize("text", ["", "p", "p(x) :- q(x).", "p(x). q(x).", "p(x),"])
def test_what_is_no_goal(text: str) -> None:
    with pytest.raises(InputError):
        parse_goal(text)


@pytest.mark.parametrize(
    "text", ["p(x), q(x)", "!p(x)", "n = count : { p(_) }", "p(x) ; q(x)", "x = range(0, 3)?"]
)
def test_a_goal_is_a_body(text: str) -> None:
    goal = text.removesuffix("?")
    assert parse_goal(text) == parse_goal(f"{goal}.") == body(goal)


def test_a_clause_may_lack_its_full_stop() -> None:
    assert parse_clause("p(x) :- q(x)") == parse_clause("p(x) :- q(x).")


@pytest.mark.parametrize(
    "text", ["", ".decl p(x: number)", "p(1). p(2).", "p(1) p(2)", ".plan 0:(1)"]
)
def test_what_is_no_clause(text: str) -> None:
    with pytest.raises(InputError):
        parse_clause(text)


# --- errors ---------------------------------------------------------------------------------------


def errors(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        read(text)
    return [f"{found.code} {found.span}" for found in caught.value.diagnostics]


def test_several_errors_are_found_at_once() -> None:
    text = (
        "p(x) :- q(x)) .\np(1).\np(x) :- x == 1.\n.decl q(x)\n"
        ".decl r(x: number)\np(99999999999999999999)."
    )
    assert errors(text) == [
        "C0101 program.dl:1:13",
        "C0101 program.dl:3:12",
        "C0101 program.dl:4:10",
        "C0103 program.dl:6:3",
    ]


def test_reading_goes_on_at_the_next_line_where_a_full_stop_is_missing() -> None:
    assert errors("p(1)\nq(1) :- .\n") == ["C0101 program.dl:2:1", "C0101 program.dl:2:9"]


@pytest.mark.parametrize("opening", ["(", "!(", "-", "count : { ", "bnot ", "!", "min(1, "])
def test_deep_nesting_is_refused(opening: str) -> None:
    assert len(errors(f"p(x) :- x = {opening * 10_000}1.")) == 1


def test_long_sums_are_not_nested() -> None:
    (clause,) = read(f"p(x) :- x = {' + '.join(['y'] * 5_000)}.").clauses
    (equation,) = clause.body
    assert isinstance(equation, Comparison)
    assert len(list(variables_of(equation.right))) == 5_000


def test_long_powers_are_refused_as_too_deep() -> None:
    with pytest.raises(InputError, match="levels deep"):
        read(f"p(x) :- x = {' ^ '.join(['y'] * 5_000)}.")


def test_long_lists_are_no_problem() -> None:
    assert len(body(", ".join(["p(x)"] * 2_000))) == 2_000
    assert len(asked_atom(f"p({', '.join(['1'] * 2_000)})").arguments) == 2_000


# --- files ----------------------------------------------------------------------------------------


def test_files(tmp_path: Path) -> None:
    file = tmp_path / "program.dl"
    file.write_bytes(b"\xef\xbb\xbfp(1).\r\np(2).\r\n")
    program = parse_file(file)
    assert [clause.span.line for clause in program.clauses if clause.span] == [1, 2]
    assert [source.name for source in program.sources] == [str(file)]


def test_bad_files(tmp_path: Path) -> None:
    file = tmp_path / "program.dl"
    file.write_bytes(b"p(1).\np(\xff).")
    with pytest.raises(InputError, match=r"C0101.*not UTF-8 text \(byte 8, line 2\)"):
        parse_file(file)
    file.write_bytes(b"p(1).\0")
    with pytest.raises(InputError, match="NUL"):
        parse_file(file)
    with pytest.raises(InputError, match="C0104"):
        parse_file(tmp_path / "missing.dl")


# --- letters of any script ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["größe", "Δx", "名前", "हिन्दी", "название", "_é", "x٣"])
def test_names_of_any_script(name: str) -> None:
    assert asked_atom(f"{name}(?{name}, {name})") == Atom(
        name, (Variable(f"?{name}"), Variable(name))
    )
    assert asked_atom(f"{name}.{name}(1)").relation == f"{name}.{name}"
    assert is_bare_name(name)
    assert is_bare_relation(f"{name}.{name}")


def test_an_accent_may_be_a_character_of_its_own() -> None:
    assert asked_atom("cafe\u0301(x)") == asked_atom("caf\u00e9(x)")
    assert not is_bare_name("cafe\u0301")
    assert asked_atom("`cafe\u0301`(x)").relation == "cafe\u0301"


@pytest.mark.parametrize("text", ["p(x²)", "p(☂)", "p(x) ∧ q(x)", "p(٣)", "p(\u0301x)"])
def test_what_is_no_letter(text: str) -> None:
    with pytest.raises(InputError, match="does not belong here"):
        parse_goal(text)


def test_macros_leave_other_names_alone() -> None:
    read = parse(
        SourceFile("m.dl", "#define x 7\n#define F(y) p(éy, yé, y)\nF(x) :- q(x, éx, xé).")
    )
    assert read.clauses == parse(SourceFile("m.dl", "p(éy, yé, 7) :- q(7, éx, xé).")).clauses


# --- names of functions that are not reserved -----------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "p(x) :- e(x), year(x) = 3.",
        "p(x) :- e(x), 3 = year(x).",
        "p(x) :- e(x), -year(x) < 3.",
        "p(x) :- e(x), 1 + year(x) * 2 < 3.",
        "p(x) :- e(x), (year(x)) = 3.",
        "p(x) :- e(x), ((year(x) + 1)) = 3.",
        "p(year(x)) :- e(x).",
        "p(x) :- e((year(x))), y = min(1, year(x)).",
        "p(x) :- e(x), !(year(x) = 3).",
        "p(x) :- n = sum year(x) : { e(x), year(x) > 3 }.",
        "p(x) :- n = max (year(x)) : { e(x) ; year(x) != 4 }.",
        'p(x) :- e(x), match("a", format_time(x, "%Y")).',
        "p(x) :- e(x), x band year(x) = 1.",
        "p(x) :- e(x), y = bnot year(x).",
    ],
)
def test_calls_of_functions_that_are_not_reserved(text: str) -> None:
    (clause,) = parse(SourceFile("p.dl", text)).clauses
    assert "year" not in {use.atom.relation for use in atom_uses(clause)}
    assert parse(SourceFile("p.dl", print_clause(clause))).clauses == (clause,)


@pytest.mark.parametrize(
    "text",
    [
        "year(x) :- e(x).",
        "p(x), year(x) :- e(x).",
        "p(x) :- year(x).",
        "p(x) :- year(x), x = 3.",
        "p(x) :- !year(x).",
        "p(x) :- (year(x) ; e(x)).",
        "p(x) :- ((year(x))).",
        "e(x) :- +year(x), -year(x), year@old(x).",
        "+year(x) :- +e(x).",
        ".output p\n+year(x) :- +e(x).",
        ".decl year(x: number)\n-year(x), p(x) :- -e(x).",
        "p(n) :- n = count : year(_).",
        "p(n) :- n = count : year(_) + 1.",
        "p(n) :- n = sum x : { year(x), month(x) }.",
        "p(year) :- year(year), year < day, day = month + 1.",
        '.input year(filename="x")\n.fd year(day -> hour)\nyear(1, 2).',
    ],
)
def test_relations_and_variables_with_names_of_functions(text: str) -> None:
    read = parse(SourceFile("p.dl", text))
    found = [
        part
        for clause in read.clauses
        for term, _ in clause_terms(clause)
        for part in subterms(term)
        if isinstance(part, Functor) and part.name == "year"
    ]
    assert not found
    printed = "\n".join(map(print_clause, read.clauses))
    assert parse(SourceFile("p.dl", printed)).clauses == read.clauses


def test_columns_and_goals_with_names_of_functions() -> None:
    read = parse(SourceFile("p.dl", ".decl day(day: date, year: number) key(day)"))
    assert [column.name for column in read.declarations[0].columns] == ["day", "year"]
    assert asked_atom("day(day, year)").relation == "day"
    assert not any(isinstance(item, Atom) for item in parse_goal('year(d"2026-11-16") = x'))
