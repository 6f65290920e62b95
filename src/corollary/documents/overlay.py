"""A document with what functions might bring, without changing it."""

from collections import ChainMap
from itertools import count

from corollary.documents.canonical import Canonical
from corollary.documents.forest import ROOT, Kind
from corollary.documents.nodes import Nodes


class Overlay:
    """A document as it would be after an update, for as long as somebody asks.

    Args:
        nodes: the document; it stays as it is.
        trees: what functions bring.
    """

    def __init__(self, nodes: Nodes, trees: Canonical) -> None:
        self.root = nodes.root
        labels: dict[int, str] = {}
        kinds: dict[int, Kind] = {}
        below: dict[int, list[int]] = {}
        numbers = count(max(nodes.label) + 1)
        for function, rows in trees.items():
            for call in nodes.calls.get(function, ()):
                above = nodes.parent[call]
                made: list[int] = []
                for row in rows:
                    number = next(numbers)
                    made.append(number)
                    labels[number], kinds[number], below[number] = row.label, row.kind, []
                    parent = above if row.parent == ROOT else made[row.parent]
                    if parent not in below:
                        below[parent] = list(nodes.below[parent])
                    below[parent].append(number)
        self.label = ChainMap(labels, nodes.label)
        self.kind = ChainMap(kinds, nodes.kind)
        self.below = ChainMap(below, nodes.below)
