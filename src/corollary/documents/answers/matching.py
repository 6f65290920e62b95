"""Matches a query against a document directly, for questions of the kind "what if".

Views are maintained by the rules of `program`. The tests of usefulness and `single_answer` ask
about changes that never happen. Here each costs one walk over the document, children first, or only
over what is new and above it, and changes nothing. The tables are those of the rules: `here` is
pos, `within` is in; without functions, they are sure and sin.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Protocol, assert_never

from corollary.data_class import dataclass
from corollary.documents.answers.unknown import (
    NO_ROWS,
    UNIT_ROWS,
    UNKNOWN,
    EncodedRow,
    Tuples,
    decode_label,
    encode_label,
    encode_one_of,
    join,
)
from corollary.documents.queries.pattern import Axis
from corollary.documents.queries.shape import FixedLabel, Fork, Group, Node, QueryShape, Root
from corollary.documents.trees.forest import NodeKind
from corollary.documents.types.constraints import LabelledTree
from corollary.engines.budget import WorkBudget


class RowAlgebra:
    """How rows are made, joined and projected: rows of labels and unknowns, and nothing besides."""

    @property
    def unit(self) -> Tuples:
        """The one row without columns."""
        return UNIT_ROWS

    def of_row(self, row: EncodedRow) -> Tuples:
        """Return a row as the only one."""
        return frozenset({row})

    def join(
        self,
        left: Tuples,
        left_columns: Sequence[str],
        right: Tuples,
        right_columns: Sequence[str],
        columns: Sequence[str],
    ) -> Tuples:
        """Return the natural join of two sets of rows, with some of its columns."""
        return join(left, left_columns, right, right_columns, columns)

    def project(self, rows: Tuples, positions: Sequence[int]) -> Tuples:
        """Return rows with some of their columns."""
        return frozenset(tuple(row[at] for at in positions) for row in rows)


PLAIN = RowAlgebra()
CallResults = Callable[[Node, str], Tuples]
"""What a function can bring for a query node: rows over its columns."""


class Tree(LabelledTree, Protocol):
    """What is matched: parents have smaller numbers than their children."""

    def arrival_of(self, number: int) -> str:
        """Return the time at which a node came."""


@dataclass(frozen=True, slots=True)
class MatchTables:
    """For each document node, the rows of the query nodes that match there, and in range below."""

    here: Mapping[int, Mapping[int, Tuples]]
    within: Mapping[int, Mapping[int, Tuples]]


def no_results(node: Node, function: str) -> Tuples:
    """Return that no function brings anything: what matches then, matches surely."""
    del node, function
    return NO_ROWS


def match_tables(
    tree: Tree,
    shape: QueryShape,
    results: CallResults = no_results,
    *,
    algebra: RowAlgebra = PLAIN,
    budget: WorkBudget | None = None,
) -> MatchTables:
    """Return what matches where."""
    nodes = [*shape.nodes()]
    deep = frozenset(node.number for node in nodes if node.axis is Axis.DESCENDANT)
    tests = _tests(nodes)
    here: dict[int, dict[int, Tuples]] = {}
    within: dict[int, dict[int, Tuples]] = {}
    brought: dict[str, dict[int, Tuples]] = {}
    for number in sorted(tree.labels, reverse=True):
        if tree.kinds[number] is NodeKind.FUNCTION:
            name = tree.labels[number]
            if name not in brought:
                found = {node.number: results(node, name) for node in nodes if node.axis}
                brought[name] = {node: rows for node, rows in found.items() if rows}
            here[number], within[number] = brought[name], {}
            continue
        within[number] = _range_of(deep, tree.children[number], here, within)
        here[number] = _matches(tests, tree, number, within[number], algebra)
        if budget is not None:
            budget.spend(1 + sum(map(len, here[number].values())))
    return MatchTables(here, within)


def match_added(tree: Tree, shape: QueryShape, before: MatchTables, added: Iterable[int]) -> Tuples:
    """Return what a query answers surely on a document that has grown.

    Matches only grow with it, and they grow only at new nodes and above them.

    Args:
        tree: the document as it is then.
        shape: the query.
        before: what matched surely where, without the new nodes.
        added: the new nodes and everything above them.
    """
    nodes = [*shape.nodes()]
    deep = {node.number for node in nodes if node.axis is Axis.DESCENDANT}
    tests = _tests(nodes)
    here: dict[int, Mapping[int, Tuples]] = {}
    within: dict[int, dict[int, Tuples]] = {}
    above: dict[int, list[int]] = {}  # new nodes, and those that have grown, by their parents
    changed = sorted(added, reverse=True)
    known = set(changed)
    for number in changed:
        for child in tree.children[number]:
            if child in known:
                above.setdefault(number, []).append(child)
    for number in changed:
        found = dict(before.within.get(number, {}))
        for child in above.get(number, ()):
            for rows_of, is_own in ((here[child], True), (within[child], False)):
                for node, rows in rows_of.items():
                    if is_own or node in deep:
                        found[node] = found[node] | rows if node in found else rows
        within[number] = found
        here[number] = _matches(tests, tree, number, found, PLAIN)
    return answers_at(shape, here[tree.root])


_Tests = Mapping[str | None, list[Node]]
"""The query nodes that may match a label; those for None match any other."""


def _tests(nodes: Sequence[Node]) -> _Tests:
    labels = {node.label for node in nodes}
    return {
        label: [each for each in nodes if each.label in (None, label)] for label in {*labels, None}
    }


def _matches(
    tests: _Tests, tree: Tree, number: int, within: Mapping[int, Tuples], algebra: RowAlgebra
) -> dict[int, Tuples]:
    """Return the rows of all query nodes that match at a document node."""
    if tree.kinds[number] is NodeKind.FUNCTION:
        return {}
    found = {}
    label = tree.labels[number]
    for node in tests.get(label, tests[None]):
        if node.axis is not None or number == tree.root:
            rows = _match(node, tree, number, within, algebra)
            if rows:
                found[node.number] = rows
    return found


def _range_of(
    deep: frozenset[int],
    children: list[int],
    here: Mapping[int, Mapping[int, Tuples]],
    within: Mapping[int, Mapping[int, Tuples]],
) -> dict[int, Tuples]:
    """Return the rows of all query nodes that match in range of a document node."""
    if len(children) == 1 and not deep:
        return dict(here[children[0]])
    found: dict[int, set[tuple[str, ...]]] = {}
    for child in children:
        for node, rows in here[child].items():
            found.setdefault(node, set()).update(rows)
        for node, rows in within[child].items():
            if node in deep:
                found.setdefault(node, set()).update(rows)
    return {node: frozenset(rows) for node, rows in found.items()}


def _match(
    node: Node, tree: Tree, number: int, within: Mapping[int, Tuples], algebra: RowAlgebra
) -> Tuples:
    """Return the rows of a query node at a document node."""
    if not passes_test(node, tree, number):
        return NO_ROWS
    rows = algebra.unit
    if node.group.prefixes[0]:
        arrival = "" if node.arrival is None else encode_label(tree.arrival_of(number))
        rows = algebra.of_row(node.own_row(encode_label(tree.labels[number]), arrival))
    rows = match_group(node.group, rows, within, algebra)
    last = node.group.prefixes[-1]
    if last == node.columns:
        return rows
    return algebra.project(rows, [last.index(name) for name in node.columns])


def passes_test(node: Node, tree: Tree, number: int) -> bool:
    """Whether a data node has the label and the kind that a query node asks for."""
    kind = tree.kinds[number]
    if kind is NodeKind.FUNCTION or node.kind not in (None, kind):
        return False
    return node.label is None or node.label == tree.labels[number]


def match_group(
    group: Group, rows: Tuples, within: Mapping[int, Tuples], algebra: RowAlgebra
) -> Tuples:
    """Return the rows of a group, beginning with those of its first prefix."""
    for at, branch in enumerate(group.branches):
        match branch:
            case Node(columns=columns):
                more = within.get(branch.number, NO_ROWS)
            case Fork(columns=columns, alternatives=alternatives):
                more = NO_ROWS.union(
                    *(match_group(each, algebra.unit, within, algebra) for each in alternatives)
                )
            case _:
                assert_never(branch)
        rows = algebra.join(rows, group.prefixes[at], more, columns, group.prefixes[at + 1])
        if not rows:
            break
    return rows


def nodes_in(group: Group) -> Iterator[Node]:
    """Yield the query nodes of a group's branches and of their alternatives, not those below."""
    for branch in group.branches:
        match branch:
            case Node():
                yield branch
            case Fork(alternatives=alternatives):
                for alternative in alternatives:
                    yield from nodes_in(alternative)
            case _:
                assert_never(branch)


def match_new(
    node: Node, rows: Tuples, results: Callable[[Node], Tuples], algebra: RowAlgebra = PLAIN
) -> Tuples:
    """Return the rows of a query node at a new node.

    Args:
        node: the query node.
        rows: of the new node itself.
        results: what matches further query nodes below it.
        algebra: of the rows.
    """
    within = {each.number: results(each) for each in nodes_in(node.group)}
    found = match_group(node.group, rows, within, algebra)
    last = node.group.prefixes[-1]
    return algebra.project(found, [last.index(name) for name in node.columns])


@cache  # for each query node above, everything below would be computed again
def call_results(node: Node) -> Tuples:
    """Return brought(c): the rows of all matches of a query node by new nodes only.

    A new node with a label in the query is known by it; any other is `?`. Where two labels of a
    class meet, there is no such match; a fork has those of all its alternatives.
    """
    return _results(node, UNKNOWN if node.label is None else encode_label(node.label))


def call_results_from(node: Node, roots: frozenset[str]) -> Tuples:
    """Return the rows of matches by new nodes whose own label is one of some."""
    if not roots or node.label is not None:
        return call_results(node) if node.label in roots else NO_ROWS
    return _results(node, encode_one_of(map(encode_label, roots)))


def _results(node: Node, label: str) -> Tuples:
    # When the node comes is not known, either.
    return match_new(node, frozenset({node.own_row(label, UNKNOWN)}), call_results)


def in_range(tree: Tree, tables: MatchTables, node: Node, number: int) -> Iterator[int]:
    """Yield the nodes below another one at which tables say that a query node matches."""
    stack = list(tree.children[number])
    while stack:
        child = stack.pop()
        if node.number in tables.here[child]:
            yield child
        if node.axis is Axis.DESCENDANT and node.number in tables.within[child]:
            stack += tree.children[child]


def answers_at(shape: QueryShape, at_root: Mapping[int, Tuples]) -> Tuples:
    """Return the answers that rows at the root make, in the order of the outputs."""
    return frozenset(
        answer_of(root, values)
        for root in shape.roots
        for row in at_root.get(root.node.number, ())
        if may_hold(root, values := dict(zip(root.node.columns, row, strict=True)))
    )


def may_hold(root: Root, row: Mapping[str, str]) -> bool:
    """Whether the comparisons of a query hold for labels, or may hold for those unknown."""
    if not root.conditions:
        return True
    return root.conditions.may_hold({name: _known(row[name]) for name in root.conditions.classes})


def must_hold(root: Root, row: Mapping[str, str]) -> bool:
    """Whether the comparisons of a query hold for labels that are all known."""
    return root.conditions.must_hold({name: row[name] for name in root.conditions.classes})


def _known(symbol: str) -> str | None:
    label = decode_label(symbol)
    return label if isinstance(label, str) else None


def answer_of(root: Root, row: Mapping[str, str]) -> tuple[str, ...]:
    """Return the answer that a row of a root's columns makes."""
    return tuple(
        encode_label(each.label) if isinstance(each, FixedLabel) else row[each]
        for each in root.outputs
    )
