"""Patterns in the form that is compiled to rules: numbered, joins as columns.

| symbol of the paper and the specification | name here                                       |
|-------------------------------------------|-------------------------------------------------|
| query node p, its subquery sub(p)         | `Node`, with everything below it                |
| edge into p: `/` or `//`                  | `Node.axis`                                     |
| P_j*, the classes of joined variables     | columns, named after one variable of the class  |
| keep(p)                                   | `Node.columns`, `Fork.columns`                  |
| benjamin, cadets of p                     | `Group.branches`, in order                      |

A *group* is what has to hold at one document node: all its branches. A *fork* is a branch with
alternatives, each a group at the same document node. `Group.prefixes[i]` are the columns that are
known, and still needed, once the first i branches have matched.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from itertools import product
from typing import assert_never

from corollary.data_class import dataclass
from corollary.documents.queries.comparisons import Conditions
from corollary.documents.queries.pattern import Axis
from corollary.documents.trees.forest import NodeKind
from corollary.source import Span

Columns = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """A query node.

    Attributes:
        number: its own, in preorder.
        axis: how it is reached from the node above; None for a root.
        label: what a node has to be labelled; None for any label.
        kind: of leaves, what matches has to be; None for anything.
        carried: the class whose value its label is, if anybody asks for that.
        columns: the classes that matter outside its subtree.
        group: what has to hold below.
        arrival: the class whose value is the time at which it came, if anybody asks for that.
    """

    number: int
    axis: Axis | None
    label: str | None
    kind: NodeKind | None
    carried: str | None
    columns: Columns
    group: "Group"
    span: Span | None = field(default=None, compare=False, repr=False)
    arrival: str | None = None

    def own_row(self, label: str, arrival: str) -> tuple[str, ...]:
        """Return the row of the classes of its own: those of its group's first prefix."""
        return tuple(label if each == self.carried else arrival for each in self.group.prefixes[0])


@dataclass(frozen=True, slots=True)
class Fork:
    """A branch with alternatives, of which one has to match."""

    number: int
    columns: Columns
    alternatives: tuple["Group", ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Branches that all have to match at one document node; those of a node have its number."""

    number: int
    branches: tuple["Node | Fork", ...]
    prefixes: tuple[Columns, ...]


@dataclass(frozen=True, slots=True)
class FixedLabel:
    """An output whose label is known beforehand."""

    label: str


@dataclass(frozen=True, slots=True)
class Root:
    """One of the alternatives of a query: where it begins, and what makes an answer of it.

    Attributes:
        node: what matches the root of a document.
        outputs: of an answer, classes or labels.
        conditions: what has to hold between the labels of classes, all of which it carries.
    """

    node: Node
    outputs: tuple[str | FixedLabel, ...]
    conditions: Conditions = field(default_factory=Conditions)


@dataclass(frozen=True, slots=True)
class QueryShape:
    """A query in the form that is compiled to rules; without roots, nothing ever matches.

    Attributes:
        roots: the alternatives.
        outputs: the variables that make an answer.
        key: the positions of those outputs that no two answers have alike; none without a promise.
    """

    roots: tuple[Root, ...]
    outputs: Columns
    key: tuple[int, ...] = ()

    @property
    def has_conditions(self) -> bool:
        """Whether labels are compared by more than equality."""
        return any(root.conditions for root in self.roots)

    @property
    def has_times(self) -> bool:
        """Whether arrivals matter, or what time it is."""
        return self.is_windowed or any(node.arrival is not None for node in self.nodes())

    @property
    def is_windowed(self) -> bool:
        """Whether answers depend on what time it is, so that they may come and go with it."""
        return any(root.conditions.is_windowed for root in self.roots)

    def at(self, clock: float) -> "QueryShape":
        """Return the query as it is asked at a time."""
        if not self.has_times:
            return self
        roots = (replace(each, conditions=each.conditions.at(clock)) for each in self.roots)
        return replace(self, roots=tuple(roots))

    @property
    def is_boolean(self) -> bool:
        """Whether answers are yes or no."""
        return not self.outputs

    def nodes(self) -> Iterator[Node]:
        """Yield all query nodes in preorder."""
        for root in self.roots:
            yield root.node
            yield from (part for part in parts_of(root.node.group) if isinstance(part, Node))


def parts_of(group: Group) -> Iterator[Node | Fork | Group]:
    """Yield the branches of a group and everything in them: nodes, forks, alternatives."""
    for branch in group.branches:
        yield branch
        match branch:
            case Node():
                yield from parts_of(branch.group)
            case Fork(alternatives=alternatives):
                for alternative in alternatives:
                    yield alternative
                    yield from parts_of(alternative)
            case _:
                assert_never(branch)


# --- conjunctive patterns: without forks, alternatives are patterns of their own -----------------


@dataclass(frozen=True, slots=True)
class ConjunctivePattern:
    """A query node without forks below it."""

    node: Node
    children: tuple["ConjunctivePattern", ...]

    @property
    def label(self) -> str | None:
        """The label that a node has to have."""
        return self.node.label

    def nodes(self) -> Iterator[Node]:
        """Yield its nodes in preorder."""
        yield self.node
        for each in self.children:
            yield from each.nodes()


def expand_alternatives(node: Node) -> list[ConjunctivePattern]:
    """Return the conjunctive patterns that a node with everything below it stands for."""
    return [ConjunctivePattern(node, children) for children in _expand(node.group)]


def _expand(group: Group) -> list[tuple[ConjunctivePattern, ...]]:
    options: list[list[tuple[ConjunctivePattern, ...]]] = []
    for branch in group.branches:
        match branch:
            case Node():
                options.append([(each,) for each in expand_alternatives(branch)])
            case Fork(alternatives=alternatives):
                options.append([each for one in alternatives for each in _expand(one)])
            case _:
                assert_never(branch)
    return [tuple(each for part in parts for each in part) for parts in product(*options)]


def classes_in(pattern: ConjunctivePattern) -> Iterator[str]:
    """Return the classes whose labels a pattern gives."""
    return (each.carried for each in pattern.nodes() if each.carried is not None)


def fixed_labels_in(pattern: ConjunctivePattern) -> Iterator[tuple[str, str]]:
    """Yield the classes of a pattern that have a label in the query, with the label."""
    for each in pattern.nodes():
        if each.carried is not None and each.label is not None:
            yield each.carried, each.label


def labels_in(pattern: ConjunctivePattern) -> Iterator[str]:
    """Return the labels that a pattern asks for."""
    return (each.label for each in pattern.nodes() if each.label is not None)


def with_labels(
    pattern: ConjunctivePattern, labels: Mapping[str, str]
) -> ConjunctivePattern | None:
    """Return a pattern that asks for the labels of classes; None if it asks for others."""
    node = pattern.node
    label = node.label
    if node.carried is not None and node.carried in labels:
        if label not in (None, labels[node.carried]):
            return None
        label = labels[node.carried]
    children = []
    for each in pattern.children:
        found = with_labels(each, labels)
        if found is None:
            return None
        children.append(found)
    return ConjunctivePattern(replace(node, label=label), tuple(children))
