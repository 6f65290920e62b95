"""Matches a query against a document directly, for questions of the kind "what if".

Views are maintained by the rules of `program`. The tests of usefulness and the vectors of
`single_answer` ask about many small changes that never happen; here each costs one walk over the
document, children first, and changes nothing. The tables are those of the rules: `here` is pos,
`within` is in; without functions, they are sure and sin.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, assert_never

from corollary.documents.answers.unknown import NO_ROWS, UNIT_ROWS, Tuples, encode_label, join
from corollary.documents.queries.pattern import Axis
from corollary.documents.queries.shape import FixedLabel, Fork, Group, Node, QueryShape, Root
from corollary.documents.trees.forest import NodeKind

CallResults = Callable[[Node, str], Tuples]
"""What a function can bring for a query node: rows over its columns."""


class Tree(Protocol):
    """What is matched: nodes by number, parents with smaller numbers than their children."""

    @property
    def root(self) -> int:
        """The number of the root."""

    @property
    def labels(self) -> Mapping[int, str]:
        """The label of each node; the name of a call."""

    @property
    def kinds(self) -> Mapping[int, NodeKind]:
        """What each node is."""

    @property
    def children(self) -> Mapping[int, list[int]]:
        """The children of each node."""


@dataclass(frozen=True, slots=True)
class MatchTables:
    """For each document node, the rows of the query nodes that match there, and in range below."""

    here: Mapping[int, Mapping[int, Tuples]]
    within: Mapping[int, Mapping[int, Tuples]]


def no_results(node: Node, function: str) -> Tuples:
    """Return that no function brings anything: what matches then, matches surely."""
    del node, function
    return NO_ROWS


def match_tables(tree: Tree, shape: QueryShape, results: CallResults = no_results) -> MatchTables:
    """Return what matches where."""
    nodes = [*shape.nodes()][::-1]  # the lower ones first
    here: dict[int, dict[int, Tuples]] = {}
    within: dict[int, dict[int, Tuples]] = {}
    for number in sorted(tree.labels, reverse=True):
        if tree.kinds[number] is NodeKind.FUNCTION:
            found = {
                node.number: results(node, tree.labels[number])
                for node in nodes
                if node.axis is not None
            }
            here[number] = {node: rows for node, rows in found.items() if rows}
            within[number] = {}
            continue
        within[number] = _range_of(nodes, tree.children[number], here, within)
        here[number] = {}
        for node in nodes:
            if node.axis is not None or number == tree.root:
                rows = _match(node, tree, number, within[number])
                if rows:
                    here[number][node.number] = rows
    return MatchTables(here, within)


def _range_of(
    nodes: list[Node],
    children: list[int],
    here: Mapping[int, Mapping[int, Tuples]],
    within: Mapping[int, Mapping[int, Tuples]],
) -> dict[int, Tuples]:
    """Return the rows of all query nodes that match in range of a document node."""
    found: dict[int, set[tuple[str, ...]]] = {}
    deep = {node.number for node in nodes if node.axis is Axis.DESCENDANT}
    for child in children:
        for node, rows in here[child].items():
            found.setdefault(node, set()).update(rows)
        for node, rows in within[child].items():
            if node in deep:
                found.setdefault(node, set()).update(rows)
    return {node: frozenset(rows) for node, rows in found.items()}


def _match(node: Node, tree: Tree, number: int, within: Mapping[int, Tuples]) -> Tuples:
    """Return the rows of a query node at a document node."""
    if not passes_test(node, tree, number):
        return NO_ROWS
    rows = UNIT_ROWS if node.carried is None else frozenset({(encode_label(tree.labels[number]),)})
    rows = _match_group(node.group, rows, within)
    last = node.group.prefixes[-1]
    if last == node.columns:
        return rows
    kept = [last.index(name) for name in node.columns]
    return frozenset(tuple(row[at] for at in kept) for row in rows)


def passes_test(node: Node, tree: Tree, number: int) -> bool:
    """Whether a data node has the label and the kind that a query node asks for."""
    kind = tree.kinds[number]
    if kind is NodeKind.FUNCTION or node.kind not in (None, kind):
        return False
    return node.label is None or node.label == tree.labels[number]


def _match_group(group: Group, rows: Tuples, within: Mapping[int, Tuples]) -> Tuples:
    """Return the rows of a group, beginning with those of its first prefix."""
    for at, branch in enumerate(group.branches):
        match branch:
            case Node(columns=columns):
                more = within.get(branch.number, NO_ROWS)
            case Fork(columns=columns, alternatives=alternatives):
                more = NO_ROWS.union(
                    *(_match_group(each, UNIT_ROWS, within) for each in alternatives)
                )
            case _:
                assert_never(branch)
        rows = join(rows, group.prefixes[at], more, columns, group.prefixes[at + 1])
        if not rows:
            break
    return rows


def in_range(tree: Tree, tables: MatchTables, node: Node, number: int) -> Iterator[int]:
    """Yield the nodes below another one at which tables say that a query node matches."""
    stack = list(tree.children[number])
    while stack:
        child = stack.pop()
        if node.number in tables.here[child]:
            yield child
        if node.axis is Axis.DESCENDANT and node.number in tables.within[child]:
            stack += tree.children[child]


def evaluate(tree: Tree, shape: QueryShape, results: CallResults = no_results) -> Tuples:
    """Return what a query answers, or may answer, on a document, in the order of the outputs."""
    tables = match_tables(tree, shape, results)
    found: set[tuple[str, ...]] = set()
    for root in shape.roots:
        for row in tables.here[tree.root].get(root.node.number, ()):
            found.add(answer_of(root, dict(zip(root.node.columns, row, strict=True))))
    return frozenset(found)


def answer_of(root: Root, row: Mapping[str, str]) -> tuple[str, ...]:
    """Return the answer that a row of a root's columns makes."""
    return tuple(
        encode_label(each.label) if isinstance(each, FixedLabel) else row[each]
        for each in root.outputs
    )
