"""Phrases of messages: terms, types, choices, corrections."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from difflib import get_close_matches
from typing import Protocol, TypeVar, assert_never

from corollary.analysis.scopes import written_name
from corollary.core.functors.catalog import FUNCTORS
from corollary.core.functors.spec import ANY, Kinds
from corollary.core.logic import (
    AggregateTerm,
    Constant,
    Functor,
    Term,
    Variable,
    Wildcard,
    fold_term,
)
from corollary.core.program import Directive, Reaction
from corollary.core.types import NUMERIC, Kind
from corollary.errors import Diagnostic
from corollary.source import Span

INTEGER_LITERAL = NUMERIC
FRACTION_LITERAL: Kinds = frozenset({Kind.FLOAT, Kind.DECIMAL})
DATE_OR_TIMESTAMP: Kinds = frozenset({Kind.DATE, Kind.TIMESTAMP})

_QUOTE_MAX_CHARACTERS = 40


class _HasName(Protocol):
    @property
    def name(self) -> str: ...


Named = TypeVar("Named", bound=_HasName)
_CONVERSIONS = {spec.result: spec.name for spec in FUNCTORS.values() if spec.is_conversion}


def term_text(term: Term) -> str:
    """Return a term as the user wrote it, shortened where it is long.

    >>> term_text(Functor("+", (Variable("x"), Constant(1))))
    'x + 1'
    """
    return fold_term(term, _text)


def _text(term: Term, arguments: tuple[str, ...]) -> str:
    match term:
        case Variable(name=name):
            return written_name(name)
        case Wildcard():
            return "_"
        case Constant(value=value):
            return _source_text(term.span) or _literal_text(value)
        case Functor(name=name):
            return _source_text(term.span) or _call_text(name, arguments)
        case AggregateTerm(operator=operator, target=target):
            of = "" if target is None else f" {term_text(target)}"
            return _source_text(term.span) or f"{operator}{of} : {{…}}"
        case _:
            assert_never(term)


def _source_text(span: Span | None) -> str:
    if span is None or span.line != span.end_line:
        return ""
    if span.end_column - span.column > _QUOTE_MAX_CHARACTERS:
        return ""
    return span.file.line(span.line)[span.column - 1 : span.end_column - 1]


def _literal_text(value: object) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower().replace("none", "null")
    return f'"{value}"' if isinstance(value, str) else str(value)


def _call_text(name: str, arguments: Sequence[str]) -> str:
    if name == "neg":
        return f"-{arguments[0]}"
    if not name[0].isalpha() and len(arguments) == 2:
        left = "…" if len(arguments[0]) > _QUOTE_MAX_CHARACTERS else arguments[0]
        return f"{left} {name} {arguments[1]}"
    return f"{name}({', '.join(arguments)})"


def kinds_text(kinds: Kinds) -> str:
    """Return what a term is, as in "`x` is …"."""
    if kinds == FRACTION_LITERAL:
        return "a fraction"
    if kinds == INTEGER_LITERAL:
        return "numeric"
    if kinds == ANY:
        return "of any type"
    return one_of(f"`{kind}`" for kind in Kind if kind in kinds)


def one_of(words: Iterable[str]) -> str:
    """Return words as a choice.

    >>> one_of(["a", "b", "c"])
    'a, b or c'
    """
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def conversion_note(
    term: Term, known: Kinds, expected: Kinds, scale: int | None = None
) -> str | None:
    """Return a note how to convert a term to one of some kinds, if there is a way."""
    if isinstance(term, Constant):
        written = _as_literal(term, expected)
        return f"write `{written}`" if written else None
    for kind in (Kind.NUMBER, *Kind):
        functor = _CONVERSIONS.get(kind, "")
        if kind in expected and functor and not known.isdisjoint(FUNCTORS[functor].kinds(0)):
            digits = f", {2 if scale is None else scale}" if kind is Kind.DECIMAL else ""
            return f"convert it: `{functor}({term_text(term)}{digits})`"
    return None


def _as_literal(constant: Constant, expected: Kinds) -> str | None:
    """Return a literal as it would be written in another type."""
    text = term_text(constant)
    if Kind.SYMBOL in expected:
        return f'"{text[2:-1] if isinstance(constant.value, date) else text}"'
    if isinstance(constant.value, str):
        if len(expected) == 1 and expected <= DATE_OR_TIMESTAMP:
            return f"{'d' if Kind.DATE in expected else 't'}{text}"
        is_numeral = constant.value.removeprefix("-").isdecimal()
        return constant.value if is_numeral and expected <= NUMERIC else None
    return text.removesuffix("u") if text.endswith("u") and expected <= NUMERIC else None


def repeated(named: Iterable[Named]) -> Iterator[tuple[Named, Named]]:
    """Yield what has the name of an earlier one, each with the first of that name."""
    first: dict[str, Named] = {}
    for each in named:
        if first.setdefault(each.name, each) is not each:
            yield each, first[each.name]


def suggest_name(name: str, known: Iterable[str]) -> str | None:
    """Return a note with the known name that is most like an unknown one, if one is."""
    near = get_close_matches(name, [k for k in known if abs(len(k) - len(name)) <= 2], n=1)
    return f"did you mean `{near[0]}`?" if near else None


def invalid_parameter(user: Directive | Reaction, what: str, expected: str) -> Diagnostic:
    """Return the finding about a parameter whose value does not fit."""
    return Diagnostic("C0206", f"{what}.", user.span, f"write {expected}")


def related_spans(*related: tuple[Span | None, str]) -> tuple[tuple[Span, str], ...]:
    """Return the related spans of a diagnostic, without those whose span is unknown."""
    return tuple((span, remark) for span, remark in related if span is not None)
