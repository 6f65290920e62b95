"""Whatever the text is, the parser accepts it or says what is wrong with it."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corollary.errors import Diagnostic, InputError, render
from corollary.frontends.datalog import parse, parse_clause, parse_file, parse_goal
from corollary.source import SourceFile
from support.selection import examples

WORDS = """
. , ; : :- ( ) { } [ ] ? | -> <: = != < <= > >= ! + - * / % ^ @ @old @new $ _ & ~ ' ` # \\
.decl .type .fd .input .output .limitsize .alert .abort .plan .pragma .comp .init .include
#include #define #undef #ifdef #ifndef #else #endif // /* */ " "a" "" d"2026-11-15" t"x" d"x"
p q x y ?x `a_b` link.base not key virtual eqrel inline choice-domain overridable
number symbol decimal(12,2) 1 0 -5 0xff 0b1 7u 12.50 1e5 1e999 99999999999999999999
true false null nil count sum min max mean cat strlen band bnot lnot as autoinc match contains
"""
TOKENS = [*WORDS.split(), "\n", "\t", "\0"]

PROGRAM = """\
#define N 5
#define F(a, b) a < b + N
.type A <: symbol
.decl p(x: number, y: A?) key(x) virtual // a comment
.fd p(x -> y)
.input p(filename="p.csv", n=5)
p(1, "a"). p(-2, null).
q(x), r(x) :- p(x, _), !s(x), (F(x, 1) ; x = count : { p(x, y) }), match("a.*", y).
+t(x) :- -p(x, y), p@old(x, y), z = sum x * 2 : { q(x) } + min(1, 2), d"2026-11-15" < d.
.alert t "lost {x}"
.output q, r
/* the end */
"""


def complaints(read: Callable[[], object]) -> tuple[Diagnostic, ...]:
    """Returns what the parser says of a text: nothing if it accepts it."""
    try:
        read()
    except InputError as error:
        return error.diagnostics
    return ()


def survives(text: str) -> None:
    source = SourceFile("program.dl", text)
    lines = text.count("\n") + 1
    for found in complaints(lambda: parse(source, lambda name, _: SourceFile(name, "p(1)."))):
        assert found.code in ("C0101", "C0102", "C0103", "C0104", "C0105")
        assert found.span is not None
        assert found.span.file is not source or 1 <= found.span.line <= lines
        assert render(found)
    complaints(lambda: parse_goal(text))
    complaints(lambda: parse_clause(text))


@given(st.text(max_size=60))
@settings(max_examples=examples(25, 300))
def test_any_text(text: str) -> None:
    survives(text)


@given(st.text(alphabet="().,:-!<=>@#$`\"'\\/* \n\tpx_01de{}[]?|+^%&", max_size=40))
@settings(max_examples=examples(25, 300))
def test_any_signs(text: str) -> None:
    survives(text)


@given(st.lists(st.sampled_from(TOKENS), max_size=40), st.sampled_from(["", " ", "\n"]))
@settings(max_examples=examples(25, 300))
def test_any_tokens(tokens: list[str], separator: str) -> None:
    survives(separator.join(tokens))


@given(st.integers(), st.integers(1, 6))
@settings(max_examples=examples(25, 300))
def test_any_mutation(seed: int, number: int) -> None:
    chance = random.Random(seed)
    text = PROGRAM
    for _ in range(number):
        start = chance.randrange(len(text) + 1)
        end = min(len(text), start + chance.randrange(8))
        patch = chance.choice(["", " ", text[end : end + 9], chance.choice(TOKENS)])
        text = text[:start] + patch + text[end:]
    survives(text)


@given(data=st.binary(max_size=60))
@settings(max_examples=examples(25, 100))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    file: Path = tmp_path_factory.mktemp("fuzz") / "program.dl"
    file.write_bytes(data)
    complaints(lambda: parse_file(file))


def test_the_program_itself_is_accepted() -> None:
    assert len(parse(SourceFile("program.dl", PROGRAM)).clauses) == 4
