"""The nodes of one document: a tree that only grows, until parts of it are collected.

Numbers grow with time, and a parent is there before its children; so a walk over falling numbers
sees children first.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from corollary.documents.forest import ROOT, Forest, Kind, Row


class Placed(NamedTuple):
    """A node with its number and that of its parent, as it is stored."""

    number: int
    parent: int
    label: str
    kind: Kind


class Nodes:
    """A document as a tree of numbered nodes.

    Attributes:
        root: the number of the root.
        parent, label, kind, below: of each node, the number of its parent, …, its children.
        calls: for each function name the nodes that are calls of it.
    """

    def __init__(self, forest: Forest, numbers: Iterator[int]) -> None:
        self.parent: dict[int, int] = {}
        self.label: dict[int, str] = {}
        self.kind: dict[int, Kind] = {}
        self.below: dict[int, list[int]] = {}
        self.calls: dict[str, list[int]] = {}
        self.root = -1
        self.placed = self._graft(ROOT, forest, numbers)
        """What was there in the beginning."""
        self.root = self.placed[0].number

    def __len__(self) -> int:
        return len(self.parent)

    def add(self, function: str, forest: Forest, numbers: Iterator[int]) -> list[Placed]:
        """Insert a copy of every tree beside every call of a function; return the new nodes."""
        made: list[Placed] = []
        for call in tuple(self.calls.get(function, ())):
            made += self._graft(self.parent[call], forest, numbers)
        return made

    def _graft(self, parent: int, forest: Forest, numbers: Iterator[int]) -> list[Placed]:
        made: list[Placed] = []
        for row in forest:
            above = parent if row.parent == ROOT else made[row.parent].number
            placed = Placed(next(numbers), above, row.label, row.kind)
            made.append(placed)
            self.parent[placed.number] = above
            self.label[placed.number] = row.label
            self.kind[placed.number] = row.kind
            self.below[placed.number] = []
            if above != ROOT:
                self.below[above].append(placed.number)
            if row.kind is Kind.FUNCTION:
                self.calls.setdefault(row.label, []).append(placed.number)
        return made

    def keep(self, kept: set[int]) -> list[Placed]:
        """Drop all nodes but some, which hold the parents of each of them; return what has gone."""
        gone = [
            Placed(number, self.parent[number], self.label[number], self.kind[number])
            for number in self.parent
            if number not in kept
        ]
        for each in gone:
            del self.parent[each.number], self.label[each.number]
            del self.kind[each.number], self.below[each.number]
        for number, below in self.below.items():
            if any(child not in kept for child in below):
                self.below[number] = [child for child in below if child in kept]
        for name in {each.label for each in gone if each.kind is Kind.FUNCTION}:
            self.calls[name] = [call for call in self.calls[name] if call in kept]
        return gone

    def ancestors(self, numbers: Iterable[int]) -> set[int]:
        """Return some nodes and everything above them."""
        found: set[int] = set()
        for number in numbers:
            while number != ROOT and number not in found:
                found.add(number)
                number = self.parent[number]
        return found

    def forest(self) -> Forest:
        """Return the document as it is now."""
        places: dict[int, int] = {ROOT: ROOT}
        rows: list[Row] = []
        stack = [self.root]
        while stack:
            number = stack.pop()
            places[number] = len(rows)
            rows.append(Row(places[self.parent[number]], self.label[number], self.kind[number]))
            stack += reversed(self.below[number])
        return rows
