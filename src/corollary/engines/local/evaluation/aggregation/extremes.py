"""The least or the greatest value of a group: the first or last of its tuples in an order.

Where the codes of a column are in the order of their values, and the tuples are sorted by group and
value, one word of each layer is read for a group, not the group. Other columns (symbols, floats)
are probed as usual, and the values compared afterwards.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from corollary.core.pipeline import Extreme, Probe
from corollary.engines.local.evaluation.frames import (
    EMPTY_FRAME,
    Frame,
    VariableScope,
    overflow_mask,
)
from corollary.engines.local.evaluation.stages import ProbeStage
from corollary.engines.local.storage.arrangement import Layer, Order
from corollary.engines.local.storage.layout import Layout, Words
from corollary.engines.local.storage.table import Table

Indices = npt.NDArray[np.int64]

WINDOW_GROWTH = 4
"""Each time nothing but removed tuples is found, this many times as many are looked at."""

WINDOW_MAX_WORDS = 1 << 12


class ExtremeStage(ProbeStage):
    """Joins rows with a match that has the least or the greatest value of a column."""

    def __init__(
        self,
        stage: Probe,
        scope: VariableScope,
        known: frozenset[str],
        needed: frozenset[str],
        is_bag: bool,
    ) -> None:
        super().__init__(stage, scope, known, needed, is_bag)
        assert stage.extreme is not None
        self._extreme: Extreme = stage.extreme

    def _choose_order(self, table: Table) -> tuple[Order, int]:
        bound = self.probe.bound
        return _extreme_order(table, bound, self._extreme.column), len(bound)

    def apply(self, frame: Frame) -> Frame | Iterator[Frame]:
        """Return the rows joined with an extreme match; with all, if codes have no order."""
        table = self.tables[self._relation]
        order = self.order_in(table)
        type_ = table.types[self._extreme.column]
        if not self._scope.dictionary.domain(type_).is_ordered:
            return super().apply(frame)
        arrangement = table.arrangement(order)
        layout = arrangement.layout
        keys = [operand.column(frame) for operand in self._keys]
        overflow = overflow_mask(self._keys, keys, layout) if keys else None
        if overflow is not None:
            frame = frame.select(~overflow)
            keys = [operand.column(frame) for operand in self._keys]
        if not frame.count:
            return EMPTY_FRAME
        found: list[tuple[Indices, Words]] = []
        for layer in arrangement.layers(self._state):
            first, last = layer.run.ranges(layout, keys, frame.count)
            if type_.nullable:
                first = _skip_null(layer, layout, len(keys), first, last)
            sizes = last - first
            if self._extreme.is_greatest:
                found += _first_present(layer, last - 1, sizes, -1)
            else:
                found += _first_present(layer, first, sizes, 1)
        if not found:
            return EMPTY_FRAME
        rows, words = (np.concatenate(each) for each in zip(*found, strict=True))
        return self._join(frame, (rows, words), layout)


def _extreme_order(table: Table, bound: tuple[int, ...], column: int) -> Order:
    """Return an order of the bound columns, then the column, one that exists if possible."""
    for columns in (bound, (*bound, column)):
        order = table.order_for(columns)
        if set(order[: len(bound)]) == set(bound) and order[len(bound)] == column:
            return order
    others = (each for each in table.primary_order if each not in (*bound, column))
    return (*bound, column, *others)


def _skip_null(
    layer: Layer, layout: Layout, position: int, first: Indices, last: Indices
) -> Indices:
    """Return where the words of each slice begin that are not null at a position: null is least."""
    low, high = first.copy(), last.copy()
    while len(rows := (low < high).nonzero()[0]):  # a binary search for all slices at once
        middle = (low[rows] + high[rows]) >> 1
        is_null = layout.unpack_column(layer.run.take(middle), position) == 0
        low[rows] = np.where(is_null, middle + 1, low[rows])
        high[rows] = np.where(is_null, high[rows], middle)
    return low


def _first_present(
    layer: Layer, start: Indices, sizes: Indices, step: int
) -> Iterator[tuple[Indices, Words]]:
    """Yield rows, each with the first word that the layer has, of those from a start on.

    Args:
        layer: perhaps without some of the words of its run.
        start: the index of the first word of each row.
        sizes: how many words each row has.
        step: whether these are the following (1) or the preceding (-1) ones.
    """
    rows = sizes.nonzero()[0]
    skipped, window = 0, 1
    while len(rows):
        offsets = skipped + np.arange(window)
        is_inside = offsets < sizes[rows, None]
        places = start[rows, None] + step * np.minimum(offsets, sizes[rows, None] - 1)
        words = layer.run.take(places.ravel())
        mask = layer.present_mask(words)
        is_present = is_inside if mask is None else is_inside & mask.reshape(is_inside.shape)
        is_found = is_present.any(axis=1)
        chosen = np.arange(len(rows)) * window + is_present.argmax(axis=1)
        yield rows[is_found], words[chosen[is_found]]
        skipped += window
        rows = rows[~is_found & (sizes[rows] > skipped)]
        window = min(WINDOW_GROWTH * window, WINDOW_MAX_WORDS)
