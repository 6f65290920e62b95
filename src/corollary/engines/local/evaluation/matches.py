"""The join kernel: which tuples of a layer match which rows of a frame."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from corollary.core.states import State
from corollary.engines.local.storage.arrangement import Arrangement, Layer
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import Layout, Mask, Words
from corollary.engines.local.storage.runs import sort_distinct

JOIN_BATCH_ROWS = 1 << 21
"""The maximum number of rows in a batch of a join's output."""

LIST_SUM_MAX = 16
"""Up to this many numbers are added faster as a list than as an array."""

Rows = npt.NDArray[np.int64]
MatchedRows = tuple[Rows | None, Words]
"""For each match the row of the frame (None: all belong to its only row), and the tuples."""


class Matches(NamedTuple):
    """For each row of a frame the slice of a layer's run that matches it.

    Attributes:
        start, sizes: of the slice of each row; tuples that the layer excludes are included.
        total: the sum of the sizes.
    """

    layer: Layer
    start: Codes
    sizes: Codes
    total: int

    def gather(self) -> MatchedRows:
        """Return all matches at once."""
        if len(self.sizes) == 1:
            first = self.start.item(0)
            return self._present(None, self.layer.run.slice(first, first + self.total))
        if np.count_nonzero(self.sizes) == self.total:  # at most one match per row
            rows = self.sizes.nonzero()[0]
            return self._present(rows, self.layer.run.take(self.start[rows]))
        # Match number i of the output, of row r, is word number i + shift[r] of the run.
        rows = np.arange(len(self.sizes)).repeat(self.sizes)
        shift = self.start - (self.sizes.cumsum() - self.sizes)
        return self._present(rows, self.layer.run.take(np.arange(self.total) + shift[rows]))

    def batches(self) -> Iterator[MatchedRows]:
        """Yield the matches in batches."""
        if self.total <= JOIN_BATCH_ROWS:
            yield self.gather()
            return
        ends = self.sizes.cumsum()
        shift = self.start - (ends - self.sizes)
        for low in range(0, self.total, JOIN_BATCH_ROWS):
            high = min(low + JOIN_BATCH_ROWS, self.total)
            if len(self.sizes) == 1:
                first = self.start.item(0)
                yield self._present(None, self.layer.run.slice(first + low, first + high))
                continue
            # The rows with matches between low and high; the first and last may be cut.
            first = int(np.searchsorted(ends, low, side="right"))
            last = int(np.searchsorted(ends, high, side="left")) + 1
            cut = np.minimum(ends[first:last], high)
            cut = np.diff(np.maximum(np.concatenate([[low], cut]), low))
            rows = np.repeat(np.arange(first, last), cut)
            yield self._present(rows, self.layer.run.take(np.arange(low, high) + shift[rows]))

    def _present(self, rows: Rows | None, words: Words) -> MatchedRows:
        """Return matches without the tuples that the layer excludes."""
        mask = self.layer.present_mask(words) if self.layer.excluded else None
        if mask is None:
            return rows, words
        return (None if rows is None else rows[mask]), words[mask]


def find_matches(layer: Layer, layout: Layout, keys: list[Codes], count: int) -> Matches:
    """Return the tuples that match keys, the codes of the layout's first columns."""
    start, end = layer.run.ranges(layout, keys, count)
    sizes = end - start
    total = sum(sizes.tolist()) if count <= LIST_SUM_MAX else int(sizes.sum())
    return Matches(layer, start, sizes, total)


def concatenate_matches(found: list[Matches]) -> MatchedRows:
    """Return the matches of several layers in one array."""
    rows, words = [], []
    for each in found:
        some_rows, some_words = each.gather()
        rows.append(np.zeros(len(some_words), np.int64) if some_rows is None else some_rows)
        words.append(some_words)
    return np.concatenate(rows), np.concatenate(words)


def agreeing_words(
    arrangement: Arrangement, codes: Mapping[int, Codes], count: int, length: int
) -> Words:
    """Return the tuples of NEW that agree with a row of codes, each once.

    Args:
        arrangement: of the tuples.
        codes: of the rows, by column.
        count: of the rows.
        length: how many first columns of the order are looked up; others are compared.
    """
    layout, order = arrangement.layout, arrangement.order
    keys = [codes[column] for column in order[:length]]
    overflow = layout.overflow_mask(keys)
    if overflow is not None:  # such a code is in no tuple, and cannot be packed
        codes = {column: each[~overflow] for column, each in codes.items()}
        keys, count = [each[~overflow] for each in keys], int(np.count_nonzero(~overflow))
    found = [find_matches(each, layout, keys, count) for each in arrangement.layers(State.NEW)]
    found = [each for each in found if each.total]
    if not found:
        return layout.empty
    rows, words = found[0].gather() if len(found) == 1 else concatenate_matches(found)
    for at, column in enumerate(order[length:], length):
        if column in codes:
            wanted = codes[column] if rows is None else codes[column][rows]
            is_equal = layout.unpack_column(words, at) == wanted
            rows, words = None if rows is None else rows[is_equal], words[is_equal]
    return words if count == 1 else sort_distinct(words)


def match_mask(layers: list[Layer], layout: Layout, keys: list[Codes], count: int) -> Mask:
    """Return the mask of rows with a match in layers that exclude no tuples."""
    result: Mask | None = None
    for layer in layers:
        start, end = layer.run.ranges(layout, keys, count)
        found = end > start
        result = found if result is None else result | found
    assert result is not None
    return result
