"""The values of the grammar's rules that are not yet nodes of a program."""

from collections.abc import Sequence
from typing import NamedTuple

from corollary.core import program
from corollary.core.logic import Clause, QueryPlan
from corollary.errors import Diagnostic
from corollary.frontends.datalog.lexer import Lexeme
from corollary.source import Span


class SpannedName(NamedTuple):
    """A name and its span."""

    name: str
    span: Span


class ComponentName(NamedTuple):
    """`Graph` or `Graph<Node, Weight>`."""

    name: str
    arguments: tuple[SpannedName, ...]
    span: Span


class ComponentDefinition(NamedTuple):
    """`.comp Graph<Node> : Base<Node> { … }`.

    Attributes:
        head: its name and parameters.
        bases: the components that it extends.
        body: what is between the braces.
    """

    head: ComponentName
    bases: tuple[ComponentName, ...]
    body: tuple[Lexeme, ...] = ()


class ComponentInstance(NamedTuple):
    """`.init roads = Graph<City>`."""

    name: SpannedName
    component: ComponentName
    span: Span


class Override(NamedTuple):
    """`.override path`: the rules that bases have for it do not count."""

    relation: SpannedName


class WrittenPlan(NamedTuple):
    """`.plan 0:(2,1)`, which belongs to the rule before it."""

    orders: QueryPlan
    span: Span


Item = (
    program.TypeDeclaration
    | program.Declaration
    | program.FunctorDeclaration
    | program.FunctionalDependency
    | program.Directive
    | program.Reaction
    | program.Pragma
    | Clause
    | ComponentDefinition
    | ComponentInstance
    | Override
    | WrittenPlan
    | Diagnostic
)
"""An item of a program, or a warning."""


class ChoiceDomains(NamedTuple):
    """`choice-domain x, (x, y)`: the columns of each domain."""

    domains: tuple[tuple[str, ...], ...]
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
