"""Canonical trees, the least that a function can bring for a pattern, and documents with them."""

from collections import ChainMap
from collections.abc import Iterator, Mapping
from itertools import count

from corollary.documents.answers.matching import nodes_in
from corollary.documents.answers.scenarios import Scenario
from corollary.documents.answers.unknown import Unknown, decode_label
from corollary.documents.queries.pattern import Axis
from corollary.documents.queries.shape import ConjunctivePattern, Node, QueryShape
from corollary.documents.trees.document_tree import DocumentTree
from corollary.documents.trees.forest import ROOT, ForestNode, NodeKind

Canonical = Mapping[str, list[ForestNode]]
"""For each function what it brings."""


def star_length(shape: QueryShape) -> int:
    """Return the greatest number of `*` on a path of `/` edges of a query."""

    def longest(node: Node, before: int) -> int:
        here = (before if node.axis is Axis.CHILD else 0) + (node.label is None)
        return max((here, *(longest(each, here) for each in nodes_in(node.group))))

    return max((longest(root.node, 0) for root in shape.roots), default=0)


def canonical(scenario: Scenario, lengths: tuple[int, ...], nodes: DocumentTree) -> Canonical:
    """Return what each function of a scenario brings, with chains of these lengths."""
    labels = {
        name: label
        for name, each in scenario.labels
        if not isinstance(label := decode_label(each), Unknown)
    }
    fresh = fresh_labels(set(nodes.labels.values()))
    chains = iter(lengths)
    found: dict[str, list[ForestNode]] = {}
    contributions = sorted(scenario.contributions, key=lambda each: (each[0].node.number, each[1]))
    for pattern, function in contributions:
        rows = found.setdefault(function, [])
        _grow(pattern, rows, ROOT, chains=chains, labels=labels, fresh=fresh)
    return found


def _grow(
    pattern: ConjunctivePattern,
    rows: list[ForestNode],
    parent: int,
    *,
    chains: Iterator[int],
    labels: dict[str, str],
    fresh: Iterator[str],
) -> None:
    node = pattern.node
    if node.axis is Axis.DESCENDANT:
        for _ in range(next(chains)):
            rows.append(ForestNode(parent, next(fresh)))
            parent = len(rows) - 1
    label = node.label
    if label is None and node.carried is not None:
        label = labels.setdefault(node.carried, next(fresh))
    here = len(rows)
    kind = node.kind or NodeKind.ELEMENT
    rows.append(ForestNode(parent, next(fresh) if label is None else label, kind))
    for each in pattern.children:
        _grow(each, rows, here, chains=chains, labels=labels, fresh=fresh)


def fresh_labels(taken: set[str]) -> Iterator[str]:
    """Yield labels that occur neither in the document nor, because of the blank, in a query."""
    return (label for at in count() if (label := f"new {at}") not in taken)


class Overlay:
    """A document as it would be after an update, without changing it.

    Attributes:
        grown: the new nodes, and everything above them.
        origins: for each new node the call beside which it would come.
    """

    def __init__(self, nodes: DocumentTree, trees: Canonical) -> None:
        self.root = nodes.root
        grown: list[int] = []
        labels: dict[int, str] = {}
        kinds: dict[int, NodeKind] = {}
        children: dict[int, list[int]] = {}
        self.origins: dict[int, int] = {}
        numbers = count(max(nodes.labels) + 1)
        for function, rows in trees.items():
            for call in nodes.calls.get(function, ()):
                above = nodes.parents[call]
                grown.append(above)
                added: list[int] = []
                for row in rows:
                    number = next(numbers)
                    added.append(number)
                    grown.append(number)
                    labels[number], kinds[number], children[number] = row.label, row.kind, []
                    self.origins[number] = call
                    parent = above if row.parent == ROOT else added[row.parent]
                    if parent not in children:  # the document's own list stays as it is
                        children[parent] = list(nodes.children[parent])
                    children[parent].append(number)
        self.labels = ChainMap(labels, nodes.labels)
        self.kinds = ChainMap(kinds, nodes.kinds)
        self.children = ChainMap(children, nodes.children)
        self._nodes = nodes
        known = [number for number in grown if number in nodes.parents]
        self.grown = nodes.ancestors(known).union(grown)

    def arrival_of(self, number: int) -> str:
        """Return the time at which a node came, or would come."""
        return self._nodes.arrival_of(number)
