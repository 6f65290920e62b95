"""Constraints on a document beside its type: keys and inclusions.

| written                                    | means                                              |
|--------------------------------------------|----------------------------------------------------|
| `key shop/order (number)`                  | no two orders have a number in common              |
| `key shop/order (shop, number)`            | no two have both in common                         |
| `key shop/code (.)`                        | no two codes have a value in common                |
| `shop/order/customer in shop/customer/id`  | each customer of an order is the id of a customer  |

A path begins at the root, or in the parentheses of a key below the node; `.` is the node itself.
The *values* of a path are the labels of the children of the nodes at its end: the number of
`order[number["7"]]` is 7. A node without a value for a path agrees with no other.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Protocol

from corollary.data_class import dataclass
from corollary.documents.trees.forest import NodeKind

LabelPath = tuple[str, ...]
"""Labels, from a node down."""


class LabelledTree(Protocol):
    """The nodes of a document by number."""

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
class DocumentKey:
    """No two nodes at a path have a value in common for each of some paths below them."""

    nodes: LabelPath
    fields: tuple[LabelPath, ...]

    def __str__(self) -> str:
        return f"key {_text(self.nodes)} ({', '.join(map(_text, self.fields))})"

    def agreeing_nodes(self, tree: LabelledTree) -> Iterator[tuple[int, int]]:
        """Yield pairs of nodes that agree; of many that agree, each with the first one."""
        first: dict[tuple[str, ...], int] = {}
        for number in nodes_at(tree, self.nodes):
            several = [values_below(tree, [number], field) for field in self.fields]
            for values in product(*several):
                known = first.setdefault(values, number)
                if known != number:
                    yield known, number


@dataclass(frozen=True, slots=True)
class ValueInclusion:
    """Each value of a path is one of another path."""

    source: LabelPath
    target: LabelPath

    def __str__(self) -> str:
        return f"{_text(self.source)} in {_text(self.target)}"

    def missing_values(self, tree: LabelledTree) -> list[str]:
        """Return the values that are not where they have to be, too."""
        found = values_of(tree, self.target)
        return [each for each in values_of(tree, self.source) if each not in found]


DocumentConstraint = DocumentKey | ValueInclusion


def nodes_at(tree: LabelledTree, path: LabelPath) -> list[int]:
    """Return the data nodes at a path from the root."""
    if tree.labels[tree.root] != path[0]:
        return []
    return _below(tree, [tree.root], path[1:])


def values_of(tree: LabelledTree, path: LabelPath) -> dict[str, None]:
    """Return the values of a path from the root, each once."""
    return _labels_below(tree, nodes_at(tree, path))


def values_below(tree: LabelledTree, nodes: Iterable[int], path: LabelPath) -> dict[str, None]:
    """Return the values of a path below some nodes, each once."""
    return _labels_below(tree, _below(tree, nodes, path))


def constrained_values(
    tree: LabelledTree, constraints: Iterable[DocumentConstraint]
) -> dict[str, None]:
    """Return all values in a document that constraints are about."""
    found: dict[str, None] = {}
    for each in constraints:
        match each:
            case DocumentKey(nodes=nodes, fields=fields):
                for field in fields:
                    found |= values_of(tree, (*nodes, *field))
            case ValueInclusion(source=source, target=target):
                found |= values_of(tree, source) | values_of(tree, target)
    return found


def _below(tree: LabelledTree, nodes: Iterable[int], path: LabelPath) -> list[int]:
    found = list(nodes)
    for label in path:
        found = [
            child
            for number in found
            for child in tree.children[number]
            if tree.labels[child] == label and tree.kinds[child] is not NodeKind.FUNCTION
        ]
    return found


def _labels_below(tree: LabelledTree, nodes: Iterable[int]) -> dict[str, None]:
    return {
        tree.labels[child]: None
        for number in nodes
        for child in tree.children[number]
        if tree.kinds[child] is not NodeKind.FUNCTION
    }


def _text(path: LabelPath) -> str:
    return "/".join(path) or "."
