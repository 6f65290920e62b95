"""Layered drawings: boxes on layers, edges that lead upwards.

Reference: K. Sugiyama, S. Tagawa, M. Toda, "Methods for visual understanding of hierarchical system
structures", IEEE Transactions on Systems, Man, and Cybernetics 11(2), 1981.

An edge over several layers has a bend on each of them, so that it passes between the boxes. Sweeps
order each layer by the barycentres of its neighbours; ties are broken by keys, so that the same
graph is always drawn alike. A layer that is too wide has several rows. Rows are centred, then boxes
move towards what they are connected to.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import field
from itertools import pairwise

from corollary.data_class import dataclass


@dataclass(slots=True, eq=False)
class Box:
    """A box, or the bend of an edge on a layer that it passes.

    Attributes:
        key: breaks ties.
        layer: 0 is the lowest one.
        group: boxes of the same group stay together; -1 for none.
        above: what it is connected to on the next layer.
        below: the same on the layer below.
        x: of its centre.
        y: of its upper edge.
    """

    key: tuple[int, ...]
    layer: int
    width: float
    group: int = -1
    above: list["Box"] = field(default_factory=list)
    below: list["Box"] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0

    @property
    def left(self) -> float:
        """The x of its left edge."""
        return self.x - self.width / 2


@dataclass(frozen=True, slots=True)
class Spacing:
    """Sizes and distances of a layered drawing.

    Attributes:
        box: the height of boxes.
        gap: between the boxes of a row.
        bend: the room that a bend needs.
        left, top: of the first box.
        layer: between two layers.
        row: between two rows of a layer.
        narrowest: the least width of the rows.
        widest: the width from which on a layer has several rows.
    """

    box: float
    gap: float
    bend: float
    left: float
    top: float
    layer: float = 58.0
    row: float = 20.0
    narrowest: float = 0.0
    widest: float = math.inf


class LayeredLayout:
    """A layered drawing: `add` boxes, `connect` them, then `arrange`.

    Attributes:
        layers: the boxes and bends of each layer, in their order.
        rows: those of each layer, row by row, after `arrange`.
        width: that all rows need.
        bottom: the y of the lower edge of the lowest boxes.
    """

    def __init__(self, spacing: Spacing) -> None:
        self._spacing = spacing
        self.layers: list[list[Box]] = []
        self.rows: list[list[list[Box]]] = []
        self.width = spacing.narrowest
        self.bottom = spacing.top

    def add(self, key: int, layer: int, width: float, group: int = -1) -> Box:
        """Add a box."""
        return self._add(Box((key,), layer, width, group))

    def connect(self, lower: Box, upper: Box) -> list[Box]:
        """Connect two boxes; return what the edge goes through, upwards: boxes and new bends."""
        key, bend = (*upper.key, *lower.key), self._spacing.bend
        layers = range(lower.layer + 1, upper.layer)
        way = [lower, *(self._add(Box(key, layer, bend)) for layer in layers), upper]
        for one, other in pairwise(way):
            if one.layer < other.layer:
                one.above.append(other)
                other.below.append(one)
        return way

    def _add(self, box: Box) -> Box:
        while len(self.layers) <= box.layer:
            self.layers.append([])
        self.layers[box.layer].append(box)
        return box

    def arrange(self, sweeps: int = 2, pulls: int = 0) -> None:
        """Give every box its x and y.

        Args:
            sweeps: how often layers are ordered: down, up, down again …
            pulls: how often boxes move towards what they are connected to.
        """
        for layer in self.layers:
            layer.sort(key=lambda box: box.key)
        for sweep in range(sweeps):
            is_up = sweep % 2 == 1
            layers = self.layers if is_up else self.layers[::-1]
            for other, layer in pairwise(layers):
                _sort_by_neighbours(layer, other, is_up=is_up)
        self.rows = [self._wrap(layer) for layer in self.layers]
        rows = [row for layer in self.rows for row in layer]
        self.width = max([self.width, *map(self._width_of, rows)])
        for row in rows:
            x = self._spacing.left + (self.width - self._width_of(row)) / 2
            for box in row:
                box.x = x + box.width / 2
                x += box.width + self._spacing.gap
        for _ in range(pulls):
            for row in rows:
                self._pull(row)
        self._stack()

    def _wrap(self, layer: Iterable[Box]) -> list[list[Box]]:
        """Return the rows of a layer: one, or as many as it needs; none if it is empty."""
        rows: list[list[Box]] = []
        for box in layer:
            if not rows or self._width_of([*rows[-1], box]) > self._spacing.widest:
                rows.append([])
            rows[-1].append(box)
        return rows

    def _width_of(self, row: Sequence[Box]) -> float:
        gap = self._spacing.gap
        return sum(box.width + gap for box in row) - gap if row else 0.0

    def _pull(self, row: Sequence[Box]) -> None:
        """Move the boxes of a row to their neighbours; none passes another or leaves the room."""
        spacing = self._spacing
        for at, box in enumerate(row):
            near = [each.x for each in (*box.above, *box.below)]
            low, high = spacing.left, spacing.left + self.width
            if at:
                low = row[at - 1].x + row[at - 1].width / 2 + spacing.gap
            if at + 1 < len(row):
                high = row[at + 1].left - spacing.gap
            low, high = low + box.width / 2, high - box.width / 2
            if near and low <= high:
                box.x = max(low, min(high, sum(near) / len(near)))

    def _stack(self) -> None:
        """Put the rows below each other, the highest layer on top."""
        spacing, y = self._spacing, self._spacing.top
        for layer in reversed(self.rows):
            for row in layer:
                for box in row:
                    box.y = y
                self.bottom = y + spacing.box
                y += spacing.box + spacing.row
            y += spacing.layer - spacing.row if layer else 0


def _sort_by_neighbours(layer: list[Box], other: Sequence[Box], *, is_up: bool) -> None:
    """Sort a layer by the mean position of the neighbours on another; groups stay together."""
    positions = {id(box): at for at, box in enumerate(other)}

    def mean(at: int, box: Box) -> float:
        near = [positions[id(each)] for each in (box.below if is_up else box.above)]
        return sum(near) / len(near) if near else float(at)

    means = {id(box): mean(at, box) for at, box in enumerate(layer)}
    groups: dict[int, list[float]] = {}
    for box in layer:
        if box.group >= 0:
            groups.setdefault(box.group, []).append(means[id(box)])

    def key(box: Box) -> tuple[float, int, float, tuple[int, ...]]:
        members = groups.get(box.group, [means[id(box)]])
        return sum(members) / len(members), box.group, means[id(box)], box.key

    layer.sort(key=key)
