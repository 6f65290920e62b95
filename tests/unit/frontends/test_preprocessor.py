"""The built-in preprocessor: what it expands, and where it says that things stand."""

import math
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from corollary.core.printer import print_clause
from corollary.errors import InputError
from corollary.frontends.datalog import parse, parse_file
from corollary.frontends.datalog.preprocessor import Preprocessor
from corollary.source import SourceFile


def expand(text: str) -> str:
    preprocessor = Preprocessor(None)
    expanded = preprocessor.run(SourceFile("program.dl", text))
    assert not preprocessor.diagnostics
    return " ".join(expanded.text.split())


def clauses(text: str) -> list[str]:
    return [print_clause(clause) for clause in parse(SourceFile("program.dl", text)).clauses]


def complaints(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        parse(SourceFile("program.dl", text))
    return [f"{found.code} {found.span} {found.message}" for found in caught.value.diagnostics]


# --- comments -------------------------------------------------------------------------------------


def test_comments_become_blanks() -> None:
    assert expand("p(1). // one\n/* two\n */ p(/**/2).") == "p(1). p( 2)."


def test_strings_and_quoted_names_are_untouched() -> None:
    text = '#define a b\np("a // a /* a", "\\"a", `a`, a).'
    assert expand(text) == 'p("a // a /* a", "\\"a", `a`, b ).'


# --- macros ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#define N 5\np(N).", "p( 5 )."),
        ("#define N 5\n#undef N\np(N).", "p(N)."),
        ("#define N 5\n#define N 6\np(N, NN).", "p( 6 , NN)."),
        ("#define EMPTY\np(EMPTY 1).", "p( 1)."),
        ("#define A B\n#define B 7\np(A).", "p( 7 )."),
        ("#define A A + 1\np(A).", "p( A + 1 )."),
        ("#define A B\n#define B A\np(A, B).", "p( A , B )."),
        ("#define F(a, b) a + b * a\np(F(x, cat(y, z))).", "p( x + cat(y, z) * x )."),
        ("#define F(a) a\np(F, F (1)).", "p(F, 1 )."),
        ("#define F() 1\np(F()).", "p( 1 )."),
        ("#define F(a) (a)\np(F(F(1))).", "p( ((1)) )."),
        ("#define F(a) a\nF(\n p(1)\n ).", "p(1) ."),
        ("#define F(a) a /* a */ + 1 // a\np(F(2)).", "p( 2 + 1 )."),
        ('#define F(a) cat(a, "a")\np(F(x)).', 'p( cat(x, "a") ).'),
        ("#define F(a) rel_ ## a(x) :- a ## 1(x).\nF(q)", "rel_q(x) :- q1(x)."),
        ("#define F(a) #a\np(F(x + 1)).", 'p( "x + 1" ).'),
        ("#define F(a) \\\n  p(a). \\\n  q(a).\nF(1)", "p(1). q(1)."),
        ("#define u 8\np(7u, 0xu).", "p(7u, 0xu)."),
    ],
)
def test_macros(text: str, expected: str) -> None:
    assert expand(text) == expected


def test_macros_in_programs() -> None:
    text = "#define LIMIT 10\n#define SMALL(x) x < LIMIT\np(x) :- q(x), SMALL(x + 1)."
    assert clauses(text) == ["p(x) :- q(x), x + 1 < 10."]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("#define F(a) a\np(F(1, 2)).", "C0105 program.dl:2:3 The macro `F` takes 1 argument,"),
        ("#define F(a, b) a\np(F(1)).", "C0105 program.dl:2:3 The macro `F` takes 2 arguments,"),
        ("#define F(a) a\np(F(1.", "C0105 program.dl:2:3 The brackets of this macro's arguments"),
        ("#define F(1) a", "C0105 program.dl:1:1 The parameters of the macro `F` must be names."),
        ("#define", "C0105 program.dl:1:1 The name of a macro and what it stands for"),
        ("#undef", "C0105 program.dl:1:1 The name of a macro is expected here."),
        ("#pragma 1", "C0105 program.dl:1:1 The preprocessor does not know `#pragma`."),
        ("p(1). /* a", "C0101 program.dl:1:7 This comment is never closed."),
        ("/*/ p(1).", "C0101 program.dl:1:1 This comment is never closed."),
    ],
)
def test_bad_directives(text: str, complaint: str) -> None:
    (found,) = complaints(text)
    assert found.startswith(complaint)


@pytest.mark.parametrize(
    "body",
    [
        lambda i: f"#define A{i} A{i - 1} A{i - 1}\n",
        lambda i: f"#define A{i} A{i - 1}\n",
    ],
)
def test_expansion_is_bounded(body) -> None:  # type: ignore[no-untyped-def]
    text = "#define A0 x\n" + "".join(body(i) for i in range(1, 500)) + "p(A499)."
    (found,) = complaints(text)
    assert found.startswith("C0105 program.dl:501:3 The macro")


def test_arguments_may_not_nest_too_deeply() -> None:
    (found,) = complaints(f"#define F(a) a\np({'F(' * 2_000}1{')' * 2_000}).")
    assert "expands too deeply" in found


# --- conditions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#ifdef A\np(1).\n#endif\nq(1).", ["q(1)."]),
        ("#ifndef A\np(1).\n#endif\nq(1).", ["p(1).", "q(1)."]),
        ("#define A\n#ifdef A\np(1).\n#else\np(2).\n#endif", ["p(1)."]),
        ("#ifdef A\np(1).\n#else\np(2).\n#endif", ["p(2)."]),
        ("#ifdef A\n#ifndef A\np(1).\n#else\np(2).\n#endif\n#else\np(3).\n#endif", ["p(3)."]),
        ("#ifdef A\n#define B 1\n#include <x>\nthis ( is no program\n#endif\np(B).", ["p(B)."]),
        ("#ifdef A\n/* \n#endif\n */\np(1).\n#endif\nq(1).", ["q(1)."]),
        ("#if 0\np(1).\n#elif 1\np(2).\n#elif 1\np(3).\n#else\np(4).\n#endif", ["p(2)."]),
        ("#if 1\np(1).\n#elif 1 / 0\np(2).\n#else\np(4).\n#endif", ["p(1)."]),
        ("#if 0\n#if )\n#elif (\n#else\np(1).\n#endif\n#else\np(2).\n#endif", ["p(2)."]),
        ("#define A 3\n#if defined A && A >= 3 && !defined(B)\np(A).\n#endif", ["p(3)."]),
        ("#define F(x) x * 2\n#if F(2) + 1 == 5\np(1).\n#endif", ["p(1)."]),
        ('# 1 "file.dl"\n#\np(1).', ["p(1)."]),
    ],
)
def test_conditions(text: str, expected: list[str]) -> None:
    assert clauses(text) == expected


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("#ifdef A\n", "C0105 program.dl:1:1"),
        ("p(1).\n#endif", "C0105 program.dl:2:1"),
        ("#else", "C0105 program.dl:1:1"),
        ("#ifdef A\n#else\n#else\n#endif", "C0105 program.dl:3:1"),
        ("#if 0\n#else\n#elif 1\n#endif", "C0105 program.dl:3:1"),
        ("#elif 1", "C0105 program.dl:1:1"),
        ("#if\n#endif", "C0105 program.dl:1:1"),
        ("#if 1 +\n#endif", "C0105 program.dl:1:1"),
        ("#if (1\n#endif", "C0105 program.dl:1:1"),
        ("#if 1 2\n#endif", "C0105 program.dl:1:1"),
        ("#if 1.5\n#endif", "C0105 program.dl:1:1"),
        ("#if 1 % 0\n#endif", "C0105 program.dl:1:1"),
        ("#if 1 << 64\n#endif", "C0105 program.dl:1:1"),
        ("#if 09\n#endif", "C0105 program.dl:1:1"),
        ("#if " + "(" * 5000 + "1\n#endif", "C0105 program.dl:1:1"),
        ("#ifdef\n#endif", "C0105 program.dl:1:1"),
    ],
)
def test_bad_conditions(text: str, place: str) -> None:
    (found,) = complaints(text)
    assert found.startswith(place)


# --- places ---------------------------------------------------------------------------------------


def test_errors_behind_comments_and_directives_keep_their_place() -> None:
    assert complaints("/* a\n */ #ifdef\np(1)) .")[0].startswith("C0101 program.dl:2:5")
    assert complaints("#define A 1\n/* a */ p(1)) .")[0].startswith("C0101 program.dl:2:13")


def test_an_error_in_an_expansion_stands_at_the_invocation() -> None:
    with pytest.raises(InputError) as caught:
        parse(SourceFile("program.dl", "#define BAD )(\np(1, BAD, 2)."))
    span = caught.value.diagnostics[0].span
    assert span is not None
    assert (span.line, span.column, span.end_line, span.end_column) == (2, 6, 2, 9)


def test_what_stands_behind_an_expansion_keeps_its_place() -> None:
    text = "#define LONG_NAME 1\np(LONG_NAME, 99999999999999999999, LONG_NAME)."
    assert complaints(text)[0].startswith("C0103 program.dl:2:14")


# --- includes -------------------------------------------------------------------------------------


def write(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder / next(iter(files))


def test_includes(tmp_path: Path) -> None:
    main = write(
        tmp_path,
        {
            "main.dl": '#include "lib/one.dl"\n.include "two.dl"\np(N).\n',
            "lib/one.dl": '#define N 1\n#include "../two.dl"\np(2).',
            "two.dl": "p(3).",
        },
    )
    program = parse_file(main)
    assert [print_clause(clause) for clause in program.clauses] == [
        "p(3).",
        "p(2).",
        "p(3).",
        "p(1).",
    ]
    assert [Path(source.name).name for source in program.sources] == ["main.dl", "one.dl", "two.dl"]
    span = program.clauses[1].span
    assert span is not None
    assert (Path(span.file.name).name, span.line) == ("one.dl", 3)


def test_include_through_a_function() -> None:
    files = {"a.dl": "p(1)."}
    program = parse(
        SourceFile("main.dl", '#include "a.dl"\n'), lambda name, _: SourceFile(name, files[name])
    )
    assert len(program.clauses) == 1


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({"a.dl": '#include "b.dl"', "b.dl": '#include "a.dl"'}, "includes itself: "),
        ({"a.dl": '#include "a.dl"'}, "includes itself: "),
        ({"a.dl": '\n#include "b.dl"'}, "cannot be read: no such file or directory."),
        ({"a.dl": '#include "../b.dl"'}, "lies outside the directory"),
        ({"a.dl": '#include "/etc/passwd"'}, "lies outside the directory"),
        ({"a.dl": "#include <b.dl>", "b.dl": ""}, "The library has no file `b.dl`."),
        ({"a.dl": "#include <../errors.py>"}, "The library has no file `../errors.py`."),
        ({"a.dl": ".include b"}, "The name of a file in double quotes"),
        ({"a.dl": '#include "."'}, "cannot be read: is a directory."),
    ],
)
def test_bad_includes(files: Mapping[str, str], complaint: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        parse_file(write(tmp_path, files))
    (found,) = caught.value.diagnostics
    assert found.code == "C0104"
    assert complaint in found.message
    assert found.span is not None


def test_links_do_not_lead_out(tmp_path: Path) -> None:
    write(tmp_path, {"secret.dl": "p(1).", "root/main.dl": '#include "link.dl"'})
    (tmp_path / "root" / "link.dl").symlink_to(tmp_path / "secret.dl")
    with pytest.raises(InputError, match="lies outside"):
        parse_file(tmp_path / "root" / "main.dl")
    assert len(parse_file(tmp_path / "root" / "main.dl", root=tmp_path).clauses) == 1


def test_the_library_is_there_for_text_without_files() -> None:
    program = parse(SourceFile("<query>", "#include <fraud_rings.dl>\n#include <components.dl>\n"))
    assert [each.name for each in program.sources] == [
        "<query>",
        "<fraud_rings.dl>",
        "<components.dl>",
    ]


def test_no_file_can_be_included_without_a_function() -> None:
    assert complaints('#include "a.dl"') == ["C0104 program.dl:1:1 No file can be included here."]


# --- conditions of #if ---------------------------------------------------------------------------

NUMBERS = st.tuples(st.integers(0, 9).map(str), st.none()).map(lambda each: (each[0], int(each[0])))


def combined(parts: tuple[tuple[str, int], str, tuple[str, int]]) -> tuple[str, int]:
    """Return the text of an operation in brackets, and its value by Python."""
    (left, first), sign, (right, second) = parts
    meaning = {
        "&&": lambda: bool(first and second),
        "||": lambda: bool(first or second),
        "/": lambda: math.trunc(Fraction(first, second)),
        "%": lambda: int(math.fmod(first, second)),
    }
    try:
        value = meaning[sign]() if sign in meaning else eval(f"({first}) {sign} ({second})")
    except (ZeroDivisionError, ValueError):
        return left, first
    return f"({left} {sign} {right})", int(value)


OPERATORS = ["+", "-", "*", "/", "%", "<", ">", "<=", ">=", "==", "!=", "&", "|", "^", "&&", "||"]


@given(
    st.recursive(
        NUMBERS, lambda each: st.tuples(each, st.sampled_from(OPERATORS), each).map(combined)
    )
)
def test_conditions_have_their_value(made: tuple[str, int]) -> None:
    text, value = made
    assume(abs(value) < 1 << 60)
    assert (
        expand(f"#if {text} == {value}\nyes\n#else\nno\n#endif".replace("== -", "== 0 - ")) == "yes"
    )


@pytest.mark.parametrize(
    "condition",
    [
        "1 + 2 * 3 == 7",
        "10 - 4 - 3 == 3",
        "1 || 1 / 0",
        "!(0 && 1 / 0)",
        "0 ? 1 / 0 : 1",
        "1 ? 0 ? 0 : 1 : 0",
        "-7 / 2 == -3 && -7 % 2 == -1",
        "0x10 == 16 && 010 == 8 && 0b11 == 3 && 7UL == 7",
        "~0 == -1 && 1 << 3 == 8 && -8 >> 1 == -4",
        "1 | 2 ^ 3 & 4",
        "2 > 1 == 1",
        "unknown == 0",
    ],
)
def test_conditions_bind_as_in_c(condition: str) -> None:
    assert expand(f"#if {condition}\nyes\n#endif") == "yes"
