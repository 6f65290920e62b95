"""How messages speak of terms, types and places."""

from collections.abc import Iterable
from datetime import date
from difflib import get_close_matches
from typing import assert_never

from corollary.analysis.scopes import plain
from corollary.core.functors import ANY, Kinds
from corollary.core.terms import Aggregate, Constant, Functor, Term, Variable, Wildcard
from corollary.core.types import NUMERIC, Kind
from corollary.source import Span

INTEGER_LITERAL = NUMERIC
FRACTION_LITERAL: Kinds = frozenset({Kind.FLOAT, Kind.DECIMAL})
DATED: Kinds = frozenset({Kind.DATE, Kind.TIMESTAMP})

_LONGEST = 40
_CONVERSIONS = {
    Kind.SYMBOL: "to_string",
    Kind.NUMBER: "to_number",
    Kind.UNSIGNED: "to_unsigned",
    Kind.FLOAT: "to_float",
    Kind.DECIMAL: "to_decimal",
    Kind.DATE: "to_date",
    Kind.TIMESTAMP: "to_timestamp",
}


def text_of(term: Term) -> str:
    """Return a term as the user wrote it, or its gist where it is long.

    >>> text_of(Functor("+", (Variable("x"), Constant(1))))
    'x + 1'
    """
    match term:
        case Variable(name=name):
            return plain(name)
        case Wildcard():
            return "_"
        case Constant(value=value):
            return _source(term.span) or _literal(value)
        case Functor(name=name, arguments=arguments):
            return _source(term.span) or _application(name, [text_of(a) for a in arguments])
        case Aggregate(operator=operator, target=target):
            of = "" if target is None else f" {text_of(target)}"
            return _source(term.span) or f"{operator}{of} : {{…}}"
        case _:
            assert_never(term)


def _source(span: Span | None) -> str:
    if span is None or span.line != span.end_line or span.end_column - span.column > _LONGEST:
        return ""
    return span.file.line(span.line)[span.column - 1 : span.end_column - 1]


def _literal(value: object) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower().replace("none", "null")
    return f'"{value}"' if isinstance(value, str) else str(value)


def _application(name: str, arguments: list[str]) -> str:
    if name == "neg":
        return f"-{arguments[0]}"
    if not name[0].isalpha() and len(arguments) == 2:
        return f"{arguments[0]} {name} {arguments[1]}"
    return f"{name}({', '.join(arguments)})"


def phrase(kinds: Kinds) -> str:
    """Return what a term is, as in "`x` is …"."""
    if kinds == FRACTION_LITERAL:
        return "a fraction"
    if kinds == INTEGER_LITERAL:
        return "numeric"
    if kinds == ANY:
        return "of any type"
    return alternatives(f"`{kind}`" for kind in Kind if kind in kinds)


def alternatives(words: Iterable[str]) -> str:
    """Return words as a choice.

    >>> alternatives(["a", "b", "c"])
    'a, b or c'
    """
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def conversion(term: Term, wanted: Kinds) -> str | None:
    """Return a note that names the functor to convert a term with, if there is one."""
    if isinstance(term, Constant):
        written = _literal_of(term, wanted)
        return f"write `{written}`" if written else None
    for kind in (Kind.NUMBER, *Kind):
        if kind in wanted and kind in _CONVERSIONS:
            digits = ", scale" if kind is Kind.DECIMAL else ""
            return f"convert it: `{_CONVERSIONS[kind]}({text_of(term)}{digits})`"
    return None


def _literal_of(constant: Constant, wanted: Kinds) -> str | None:
    """Return a literal as it would be written in another type."""
    text = text_of(constant)
    if Kind.SYMBOL in wanted:
        return f'"{text[2:-1] if isinstance(constant.value, date) else text}"'
    if isinstance(constant.value, str):
        if len(wanted) == 1 and wanted <= DATED:
            return f"{'d' if Kind.DATE in wanted else 't'}{text}"
        is_numeral = constant.value.removeprefix("-").isdecimal()
        return constant.value if is_numeral and wanted <= NUMERIC else None
    return text.removesuffix("u") if text.endswith("u") and wanted <= NUMERIC else None


def suggestion(name: str, known: Iterable[str]) -> str | None:
    """Return a note with the known name nearest to one that is not, if one is near."""
    near = get_close_matches(name, [k for k in known if abs(len(k) - len(name)) <= 2], n=1)
    return f"did you mean `{near[0]}`?" if near else None


def places(*related: tuple[Span | None, str]) -> tuple[tuple[Span, str], ...]:
    """Return the related places that are known."""
    return tuple((span, remark) for span, remark in related if span is not None)
