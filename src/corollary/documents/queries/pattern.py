"""Tree patterns: the queries on documents, as they are written.

A pattern node tests the label of a document node; edges lead to further nodes below it. Its
*branches* all have to match: an edge, or a choice of which one alternative has to. A query is a
union of patterns, each with a root of its own, with equalities between variables and outputs.
"""

from collections.abc import Iterator
from dataclasses import field
from enum import StrEnum
from typing import assert_never

from corollary.data_class import dataclass
from corollary.documents.queries.comparisons import Conditions
from corollary.documents.trees.forest import NodeKind
from corollary.source import SourceFile, Span


class Axis(StrEnum):
    """How a node is found from its parent in the pattern."""

    CHILD = "/"
    DESCENDANT = "//"


@dataclass(frozen=True, slots=True)
class PatternNode:
    """`a$x[…]`: a test, perhaps a variable, and what has to stand below.

    Attributes:
        label: the label that a node has to have; None for any (`*`).
        kind: what matches has to be (`text()`, `number()`, `literal()`); None for anything.
        variable: what the label is called, if it matters elsewhere.
        branches: all of them have to match.
        arrival: what the time is called at which the node came, if it matters.
    """

    label: str | None
    variable: str | None = None
    branches: tuple["Branch", ...] = ()
    kind: NodeKind | None = None
    span: Span | None = field(default=None, compare=False, repr=False)
    arrival: str | None = None

    @property
    def names(self) -> frozenset[str]:
        """The variables of its label and of its arrival."""
        return frozenset(name for name in (self.variable, self.arrival) if name is not None)


@dataclass(frozen=True, slots=True)
class Edge:
    """A node below another one, as a child or as any descendant."""

    axis: Axis
    node: PatternNode


@dataclass(frozen=True, slots=True)
class OrBranch:
    """`[a or b and c]`: all branches of at least one alternative match."""

    alternatives: tuple[tuple["Branch", ...], ...]
    span: Span | None = field(default=None, compare=False, repr=False)


Branch = Edge | OrBranch


@dataclass(frozen=True, slots=True)
class DocumentQuery:
    """`pattern | pattern where $v = $w return $v, $u key $v`.

    Attributes:
        roots: the alternatives, each matching the root of the document.
        equalities: pairs of variables whose labels have to be equal.
        conditions: what else has to hold between the labels of variables.
        outputs: the variables that make an answer; none for a Boolean query.
        key: the outputs that no two answers have alike; none if nothing is promised.
        source: the text of the query.
    """

    roots: tuple[PatternNode, ...]
    equalities: tuple[tuple[str, str], ...]
    conditions: Conditions
    outputs: tuple[str, ...]
    key: tuple[str, ...]
    source: SourceFile

    def __str__(self) -> str:
        return self.source.text

    @property
    def is_joint(self) -> bool:
        """Whether it is over several documents, by `doc(…)` or `collection()`."""
        return any(root.kind is NodeKind.COLLECTION for root in self.roots)

    @property
    def documents(self) -> dict[str, Span | None]:
        """The documents that it names, with the first span of each."""
        found: dict[str, Span | None] = {}
        for node in self._sources():
            if node.label is not None:
                found.setdefault(node.label, node.span)
        return found

    @property
    def has_any_document(self) -> bool:
        """Whether it is over any document that there is, by `collection()`."""
        return any(node.label is None for node in self._sources())

    def _sources(self) -> Iterator[PatternNode]:
        for root in self.roots if self.is_joint else ():
            yield from (each.node for each in root.branches if isinstance(each, Edge))


def nodes_below(branches: tuple[Branch, ...]) -> Iterator[PatternNode]:
    """Yield the nodes of branches in preorder, choices included."""
    for branch in branches:
        match branch:
            case Edge(node=node):
                yield from nodes_of(node)
            case OrBranch(alternatives=alternatives):
                for alternative in alternatives:
                    yield from nodes_below(alternative)
            case _:
                assert_never(branch)


def nodes_of(node: PatternNode) -> Iterator[PatternNode]:
    """Yield the nodes of a pattern in preorder."""
    yield node
    yield from nodes_below(node.branches)


def variables_in(branches: tuple[Branch, ...]) -> frozenset[str]:
    """Return the variables that occur in branches."""
    return frozenset(name for node in nodes_below(branches) for name in node.names)


def bound_in(node: PatternNode) -> frozenset[str]:
    """Return the variables that every match of a pattern binds."""
    return node.names | _bound_below(node.branches)


def _bound_below(branches: tuple[Branch, ...]) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for branch in branches:
        match branch:
            case Edge(node=node):
                found |= bound_in(node)
            case OrBranch(alternatives=alternatives):
                found |= frozenset.intersection(*map(_bound_below, alternatives))
            case _:
                assert_never(branch)
    return found
