"""What the methods that build programs hand to each other."""

from collections.abc import Sequence
from typing import NamedTuple

from corollary.core.program import Declaration, Dependency, Directive, Reaction, TypeDeclaration
from corollary.core.rules import Clause
from corollary.errors import Diagnostic
from corollary.frontends.datalog.lexer import Lexeme
from corollary.source import Span

Item = TypeDeclaration | Declaration | Dependency | Directive | Reaction | Clause | Diagnostic
"""What a program consists of, and warnings."""


class Named(NamedTuple):
    """A name and where it stands."""

    name: str
    span: Span


class Listed(NamedTuple):
    """What stands between brackets, and where."""

    items: tuple[object, ...]
    span: Span


def listed(children: Sequence[object]) -> Listed:
    """Return the children of a rule that begins and ends with a bracket."""
    start, *items, end = children
    assert isinstance(start, Lexeme)
    assert isinstance(end, Lexeme)
    return Listed(tuple(items), cover(start.span, end.span))


def cover(first: Span | None, last: Span | None) -> Span:
    """Return the span from one to another; where they are in two files, the first."""
    assert first is not None
    assert last is not None
    return first.to(last) if first.file is last.file else first
