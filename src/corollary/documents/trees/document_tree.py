"""The nodes of one document: a tree that only grows, until parts of it are collected.

Numbers grow with time, and a parent is there before its children; so a walk over falling numbers
sees children first.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from corollary.documents.trees.forest import ROOT, Forest, ForestNode, NodeKind


class StoredNode(NamedTuple):
    """A node with its number and that of its parent, as it is stored."""

    number: int
    parent: int
    label: str
    kind: NodeKind


class DocumentTree:
    """A document as a tree of numbered nodes.

    Attributes:
        root: the number of the root.
        parents, labels, kinds, children: by the number of a node.
        calls: for each function name the nodes that are calls of it.
        initial: the nodes that were there in the beginning.
    """

    def __init__(self, forest: Forest, numbers: Iterator[int]) -> None:
        self.parents: dict[int, int] = {}
        self.labels: dict[int, str] = {}
        self.kinds: dict[int, NodeKind] = {}
        self.children: dict[int, list[int]] = {}
        self.calls: dict[str, list[int]] = {}
        self.root = -1
        self.initial = self._graft(ROOT, forest, numbers)
        self.root = self.initial[0].number

    def __len__(self) -> int:
        return len(self.parents)

    def insert(self, function: str, forest: Forest, numbers: Iterator[int]) -> list[StoredNode]:
        """Insert a copy of every tree beside every call of a function; return the new nodes."""
        added: list[StoredNode] = []
        for call in tuple(self.calls.get(function, ())):
            added += self._graft(self.parents[call], forest, numbers)
        return added

    def _graft(self, parent: int, forest: Forest, numbers: Iterator[int]) -> list[StoredNode]:
        added: list[StoredNode] = []
        for row in forest:
            above = parent if row.parent == ROOT else added[row.parent].number
            node = StoredNode(next(numbers), above, row.label, row.kind)
            added.append(node)
            self.parents[node.number] = above
            self.labels[node.number] = row.label
            self.kinds[node.number] = row.kind
            self.children[node.number] = []
            if above != ROOT:
                self.children[above].append(node.number)
            if row.kind is NodeKind.FUNCTION:
                self.calls.setdefault(row.label, []).append(node.number)
        return added

    def retain(self, kept: set[int]) -> list[StoredNode]:
        """Drop all nodes but some, which include all their parents; return what is dropped."""
        dropped = [
            StoredNode(number, self.parents[number], self.labels[number], self.kinds[number])
            for number in self.parents
            if number not in kept
        ]
        for each in dropped:
            del self.parents[each.number], self.labels[each.number]
            del self.kinds[each.number], self.children[each.number]
        for number, children in self.children.items():
            if any(child not in kept for child in children):
                self.children[number] = [child for child in children if child in kept]
        for name in {each.label for each in dropped if each.kind is NodeKind.FUNCTION}:
            self.calls[name] = [call for call in self.calls[name] if call in kept]
        return dropped

    def ancestors(self, numbers: Iterable[int]) -> set[int]:
        """Return some nodes and everything above them."""
        found: set[int] = set()
        for number in numbers:
            while number != ROOT and number not in found:
                found.add(number)
                number = self.parents[number]
        return found

    def forest(self) -> Forest:
        """Return the document as it is now."""
        places: dict[int, int] = {ROOT: ROOT}
        rows: list[ForestNode] = []
        stack = [self.root]
        while stack:
            number = stack.pop()
            places[number] = len(rows)
            rows.append(
                ForestNode(places[self.parents[number]], self.labels[number], self.kinds[number])
            )
            stack += reversed(self.children[number])
        return rows
