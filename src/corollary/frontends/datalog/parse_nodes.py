"""The values of the grammar's rules that are not yet nodes of a program."""

from collections.abc import Sequence
from typing import NamedTuple

from corollary.core import program
from corollary.core.logic import Clause
from corollary.errors import Diagnostic
from corollary.frontends.datalog.lexer import Lexeme
from corollary.source import Span

Item = (
    program.TypeDeclaration
    | program.Declaration
    | program.FunctionalDependency
    | program.Directive
    | program.Reaction
    | Clause
    | Diagnostic
)
"""An item of a program, or a warning."""


class SpannedName(NamedTuple):
    """A name and its span."""

    name: str
    span: Span


class BracketedList(NamedTuple):
    """The values between brackets, and the span of both brackets."""

    items: tuple[object, ...]
    span: Span


def bracketed_list(children: Sequence[object]) -> BracketedList:
    """Return the children of a rule that begins and ends with a bracket."""
    start, *items, end = children
    assert isinstance(start, Lexeme)
    assert isinstance(end, Lexeme)
    return BracketedList(tuple(items), span_between(start.span, end.span))


def span_between(first: Span | None, last: Span | None) -> Span:
    """Return the span from one to another; the first one if they are in two files."""
    assert first is not None
    assert last is not None
    return first.to(last) if first.file is last.file else first
