"""Clauses as the advisor reads them, and candidates: the trees that the search builds from them.

| kind of literal | here |
|---|---|
| positive, not in the recursion of the head | a foldable `Literal` |
| in the recursion of the head, or with a function in it | `Pinned` with a literal: only joined |
| where null may join null (`:=`) | `Pinned` with a literal |
| negated, comparison | `Pinned`: a filter |
| simple comparison under `absorb` | `MovableComparison`: a candidate may absorb it |

The *significant* variables of a clause (`sig`) are those of its head and of pinned literals: a
candidate has to output them. Wherever the paper says "non-head variable", read "not in `sig`".

A *candidate* is a group of literals that became one literal; its leaves are literals of the input.
It keeps the variable names of its clause, so inlining its body is textual. A candidate made by the
disjunct phase has several bodies. A *summary* is a candidate with a row for each group, the values
of its variables, and with *measures*: sums, counts, minima, maxima over the assignments of its
body.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, fields, is_dataclass, replace
from enum import StrEnum
from itertools import product
from typing import Any, Union

from corollary.core.logic import (
    Atom,
    BodyItem,
    Comparison,
    Literal,
    Slot,
    Term,
    Variable,
    variable_names,
)
from corollary.core.types import Type
from corollary.data_class import dataclass

ANONYMOUS = "_•"
"""Prefix of the name of a variable that was written `_`."""


class PinReason(StrEnum):
    """Why a body item is pinned."""

    RECURSIVE = "recursive"
    NEGATED = "negated"
    FUNCTION = "function"
    COMPARISON = "comparison"
    AGGREGATE = "aggregate"
    NULL_JOIN = "null join"


@dataclass(frozen=True, slots=True)
class Pinned:
    """A body item that stays where it is.

    Attributes:
        item: as it is written.
        variables: all its variables.
        literal: what is joined, for a positive item; None for a filter.
    """

    item: BodyItem
    variables: frozenset[str]
    reason: PinReason
    literal: Literal | None = None


@dataclass(frozen=True, slots=True)
class MovableComparison:
    """A comparison that may move into a candidate (option `absorb`)."""

    item: Comparison
    variables: frozenset[str]


Leaf = Literal | MovableComparison
Node = Union[Literal, MovableComparison, "Candidate"]
Body = tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Measure:
    """What is aggregated: `sum`, `count`, `min` or `max` of a term over a body, and its type."""

    operator: str
    target: Term | None
    type: Type = field(compare=False)


@dataclass(frozen=True, slots=True)
class SchemeClause:
    """One head and one conjunction.

    Attributes:
        literals: the foldable literals, without duplicates.
        positions: where literals and pinned items are in the text, for printing.
        has_aggregate: whether the clause aggregates, so that nothing in it may be folded.
        is_null_safe: whether null joins null in it.
        measure: what is aggregated, if it is the body of an aggregate; its head has the keys.
    """

    head: Atom
    literals: tuple[Literal, ...]
    pinned: tuple[Pinned, ...] = ()
    comparisons: tuple[MovableComparison, ...] = ()
    has_aggregate: bool = False
    positions: dict[object, int] = field(default_factory=dict, compare=False, repr=False)
    is_null_safe: bool = False
    measure: Measure | None = None

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """Everything that may be folded."""
        return (*self.literals, *self.comparisons)

    @property
    def head_variables(self) -> frozenset[str]:
        """The variables of the head."""
        return frozenset(each.name for each in term_variables(self.head.arguments))

    @property
    def significant(self) -> frozenset[str]:
        """`sig`: the variables of the head and of pinned items."""
        return self.head_variables.union(*(each.variables for each in self.pinned))


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A new predicate: its variables in order, and its bodies.

    Attributes:
        carried: literals of the clause that were added as filters (they carry dependencies).
        general: the more general view whose use this is, if it is not a view itself.
        measures: of a summary, what it has for each group; None for a plain view.
    """

    variables: tuple[str, ...]
    bodies: tuple[Body, ...]
    carried: tuple[Literal, ...] = ()
    general: "ViewUse | None" = None
    measures: tuple[Measure, ...] | None = None

    @property
    def view(self) -> "Candidate":
        """The view that is stored: the general one, or the candidate itself."""
        return self if self.general is None else self.general.view

    @property
    def arguments(self) -> tuple[Slot, ...]:
        """The terms for the columns of the view, in the order of its variables."""
        if self.general is None:
            return tuple(Variable(name) for name in self.variables)
        return self.general.arguments

    @property
    def children(self) -> Iterator["Candidate"]:
        """The candidates in its bodies."""
        for body in self.bodies:
            for node in body:
                if isinstance(node, Candidate):
                    yield node

    def nodes(self) -> Iterator["Candidate"]:
        """Yield the candidate and all candidates below it."""
        yield self
        for child in self.children:
            yield from child.nodes()


@dataclass(frozen=True, slots=True)
class ViewUse:
    """A use of a view that other clauses share: a term for each of its variables.

    Attributes:
        measure: the measure of a summary that is aggregated further, in the view's variables.
    """

    view: Candidate
    arguments: tuple[Slot, ...]
    measure: Measure | None = None


@dataclass(frozen=True, slots=True, eq=False)
class FoldedClause:
    """A clause during and after stage 1: its nodes are equivalent to its literals.

    Attributes:
        start: its nodes before folding, if they were folded.
    """

    clause: SchemeClause
    nodes: Body
    start: Body | None = None

    @classmethod
    def unfolded(cls, clause: SchemeClause) -> "FoldedClause":
        """Return a clause with nothing folded."""
        return cls(clause, clause.leaves)

    def roots(self) -> list[Candidate]:
        """Return the candidates in the body: each is the root of a tree."""
        return [node for node in self.nodes if isinstance(node, Candidate)]

    def is_self_materialisation(self, node: Candidate) -> bool:
        """Whether a candidate is the whole clause, so that storing it stores the query."""
        is_all = len(self.nodes) == 1 and not self.clause.pinned
        is_all = is_all and len(node.arguments) == len(node.variables)
        return is_all and frozenset(node.variables) == self.clause.head_variables


# --- nodes ---------------------------------------------------------------------------------------


def variables_of(node: Node) -> frozenset[str]:
    """Return the variables that a node outputs to the rest of its clause."""
    if isinstance(node, Literal):
        return frozenset(variable_names(node))
    return frozenset(node.variables)


def output_variables(nodes: Iterable[Node]) -> frozenset[str]:
    """Return the variables that some nodes output."""
    return frozenset().union(*(variables_of(each) for each in nodes))


def in_order(nodes: Iterable[Node], selected: frozenset[str] | set[str]) -> tuple[str, ...]:
    """Return selected variables in the order in which nodes first mention them."""
    found: dict[str, None] = {}
    for node in nodes:
        if isinstance(node, Literal):
            names = [each.name for each in node.slots if isinstance(each, Variable)]
        elif isinstance(node, Candidate):
            names = list(node.variables)
        else:
            names = []
        found.update(dict.fromkeys(name for name in names if name in selected))
    return tuple(found)


def expand(node: Node) -> list[tuple[Leaf, ...]]:
    """Return the bodies of a node over the input; the bodies of unions multiply out."""
    if not isinstance(node, Candidate):
        return [(node,)]
    return [
        tuple(dict.fromkeys(leaf for part in choice for leaf in part))
        for body in node.bodies
        for choice in product(*map(expand, body))
    ]


def connected_components(nodes: Sequence[Node], significant: frozenset[str]) -> list[list[Node]]:
    """Return the nodes in groups that share no variable except significant ones."""
    groups: list[tuple[set[str], list[Node]]] = []
    for node in nodes:
        inner = set(variables_of(node) - significant)
        touched = [group for group in groups if group[0] & inner]
        members = [each for group in touched for each in group[1]]
        merged = (inner.union(*(group[0] for group in touched)), [*members, node])
        groups = [group for group in groups if group not in touched]
        groups.append(merged)
    order = {id(node): at for at, node in enumerate(nodes)}
    found = [sorted(group, key=lambda node: order[id(node)]) for _, group in groups]
    return sorted(found, key=lambda group: order[id(group[0])])


# --- parts of clauses ----------------------------------------------------------------------------


def term_variables(node: object) -> Iterator[Variable]:
    """Yield the variables anywhere in a part of a clause, left to right, with repetitions.

    >>> [each.name for each in term_variables((Variable("x"), Variable("y"), Variable("x")))]
    ['x', 'y', 'x']
    """
    if isinstance(node, Variable):
        yield node
    elif isinstance(node, tuple):
        for each in node:
            yield from term_variables(each)
    elif is_dataclass(node):
        # Fields that are not compared (spans, origins) are not part of the clause.
        for each in fields(node):
            if each.compare:
                yield from term_variables(getattr(node, each.name))


def substitute(node: Any, by: Mapping[str, Term]) -> Any:
    """Return a part of a clause with some variables replaced by terms."""
    return replace_parts(
        node, lambda part: by.get(part.name, part) if isinstance(part, Variable) else None
    )


def replace_parts(node: Any, replacement: Callable[[Any], Any]) -> Any:
    """Return a part of a clause with other parts in it, wherever a replacement is not None."""
    found = replacement(node)
    if found is not None:
        return found
    if isinstance(node, tuple):
        return tuple(replace_parts(each, replacement) for each in node)
    if is_dataclass(node) and not isinstance(node, type):
        parts = {each.name: getattr(node, each.name) for each in fields(node) if each.compare}
        return replace(
            node, **{name: replace_parts(part, replacement) for name, part in parts.items()}
        )
    return node


def as_atom(literal: Literal) -> Atom:
    """Return a literal as a body item of a program."""
    return Atom(literal.relation, literal.slots)
