"""Matches a query against a document directly, for questions of the kind "what if".

The rules of `program` are what views are maintained by. The tests of usefulness and the vectors of
`once` ask about many small changes that never happen; here each costs one walk over the document,
children first, and leaves nothing behind. The tables are those of the rules: `here` is pos,
`within` is in; without functions, they are sure and sin.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, assert_never

from corollary.documents.forest import Kind
from corollary.documents.pattern import Axis
from corollary.documents.shape import Constant, Fork, Group, Node, Root, Shape
from corollary.documents.tuples import NOTHING, YES, Tuples, join
from corollary.documents.unknown import stored

Brings = Callable[[Node, str], Tuples]
"""What a function can bring for a query node: rows over its columns."""


class Tree(Protocol):
    """What is matched: nodes by number, parents with smaller numbers than their children."""

    @property
    def root(self) -> int:
        """The number of the root."""

    @property
    def label(self) -> Mapping[int, str]:
        """The label of each node; the name of a call."""

    @property
    def kind(self) -> Mapping[int, Kind]:
        """What each node is."""

    @property
    def below(self) -> Mapping[int, list[int]]:
        """The children of each node."""


@dataclass(frozen=True, slots=True)
class Tables:
    """For each document node, the rows of the query nodes that match there, and in range below."""

    here: Mapping[int, Mapping[int, Tuples]]
    within: Mapping[int, Mapping[int, Tuples]]


def bring_nothing(node: Node, function: str) -> Tuples:
    """Return that no function brings anything: what matches then, matches surely."""
    del node, function
    return NOTHING


def tables_of(tree: Tree, shape: Shape, brings: Brings = bring_nothing) -> Tables:
    """Return what matches where."""
    nodes = [*shape.nodes()][::-1]
    here: dict[int, dict[int, Tuples]] = {}
    within: dict[int, dict[int, Tuples]] = {}
    for number in sorted(tree.label, reverse=True):
        if tree.kind[number] is Kind.FUNCTION:
            found = {
                node.number: brings(node, tree.label[number])
                for node in nodes
                if node.axis is not None
            }
            here[number] = {node: rows for node, rows in found.items() if rows}
            within[number] = {}
            continue
        within[number] = _range_of(nodes, tree.below[number], here, within)
        here[number] = {}
        for node in nodes:
            if node.axis is not None or number == tree.root:
                rows = match(node, tree, number, within[number])
                if rows:
                    here[number][node.number] = rows
    return Tables(here, within)


def _range_of(
    nodes: list[Node],
    below: list[int],
    here: Mapping[int, Mapping[int, Tuples]],
    within: Mapping[int, Mapping[int, Tuples]],
) -> dict[int, Tuples]:
    """Return the rows of all query nodes that match in range of a document node."""
    found: dict[int, set[tuple[str, ...]]] = {}
    deep = {node.number for node in nodes if node.axis is Axis.DESCENDANT}
    for child in below:
        for node, rows in here[child].items():
            found.setdefault(node, set()).update(rows)
        for node, rows in within[child].items():
            if node in deep:
                found.setdefault(node, set()).update(rows)
    return {node: frozenset(rows) for node, rows in found.items()}


def match(node: Node, tree: Tree, number: int, within: Mapping[int, Tuples]) -> Tuples:
    """Return the rows of a query node at a document node."""
    if not fits(node, tree, number):
        return NOTHING
    rows = YES if node.carried is None else frozenset({(stored(tree.label[number]),)})
    rows = match_group(node.group, rows, within)
    last = node.group.prefixes[-1]
    if last == node.columns:
        return rows
    kept = [last.index(name) for name in node.columns]
    return frozenset(tuple(row[at] for at in kept) for row in rows)


def fits(node: Node, tree: Tree, number: int) -> bool:
    """Whether a data node has the label and the kind that a query node asks for."""
    if tree.kind[number] is Kind.FUNCTION or (node.is_text and tree.kind[number] is not Kind.TEXT):
        return False
    return node.label is None or node.label == tree.label[number]


def match_group(group: Group, rows: Tuples, within: Mapping[int, Tuples]) -> Tuples:
    """Return the rows of a group, beginning with those of its first prefix."""
    for at, branch in enumerate(group.branches):
        match branch:
            case Node(columns=columns):
                more = within.get(branch.number, NOTHING)
            case Fork(columns=columns, alternatives=alternatives):
                more = NOTHING.union(*(match_group(each, YES, within) for each in alternatives))
            case _:
                assert_never(branch)
        rows = join(rows, group.prefixes[at], more, columns, group.prefixes[at + 1])
        if not rows:
            break
    return rows


def answers_of(tree: Tree, shape: Shape, tables: Tables) -> Tuples:
    """Return the answers that tables say, in the order of the outputs."""
    found: set[tuple[str, ...]] = set()
    for root in shape.roots:
        for row in tables.here[tree.root].get(root.node.number, ()):
            found.add(answer_of(root, dict(zip(root.node.columns, row, strict=True))))
    return frozenset(found)


def answer_of(root: Root, row: Mapping[str, str]) -> tuple[str, ...]:
    """Return the answer that a row of a root's columns makes."""
    return tuple(
        stored(each.label) if isinstance(each, Constant) else row[each] for each in root.outputs
    )


def answers(tree: Tree, shape: Shape, brings: Brings = bring_nothing) -> Tuples:
    """Return what a query answers, or may answer, on a document."""
    return answers_of(tree, shape, tables_of(tree, shape, brings))
