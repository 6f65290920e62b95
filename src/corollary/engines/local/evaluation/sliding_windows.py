"""Window functions after a change: only the rows that it may touch, of OLD and of NEW.

The body is arranged by partition, order and all other columns, so that rows near a changed row are
near its position. Two kinds of functions are computed from such a slice:

| functions | rows that are touched | rows that are read |
|---|---|---|
| `lag`, `lead`, frames of ROWS with two distances: they reach M rows | M around | 2M + 1 around |
| of the first N rows of a partition (`top`) | these, with the peers of the last | the same |

M around: of a row r that a change touches, let c be the changed row next to it. Between both are
only rows that stay, at most M, so r is as near to the position of c in OLD and in NEW. Rows that
are near in one state only are not touched, and left out.

A run of the arrangement has each of the nearest rows among its own nearest ones. Tombstones are
skipped by reading twice as far, until there are enough rows or the run ends.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from corollary.core.logic import Windowing
from corollary.core.plans import SlideWindow
from corollary.core.states import State
from corollary.core.windows import reach_of
from corollary.data_class import dataclass
from corollary.engines.local.evaluation.windows import top_rows, window_values
from corollary.engines.local.storage.arrangement import Arrangement, Layer
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import Mask, Words
from corollary.engines.local.storage.runs import MemoryRun, is_member, sort_distinct
from corollary.engines.local.storage.sorting import first_mask, sort_words
from corollary.engines.local.storage.table import Table
from corollary.engines.local.values.codes import Dictionary
from corollary.engines.local.values.symbols import SymbolDomain

Positions = npt.NDArray[np.int64]

SLICE_FRACTION = 4
"""A slice is at most one row in this many of the relation: beyond it, all is computed anew."""


@dataclass(frozen=True, slots=True)
class _Slice:
    """Rows of a state, in the order of the arrangement, and which of them may be touched."""

    words: Words
    is_touched: Mask


def slide_windows(
    step: SlideWindow, body: Table, now: Table, was: Table, dictionary: Dictionary
) -> bool:
    """Fill the tables of a step; return whether it was possible."""
    if body.is_partitioned or any(map(body.is_remote, State)):
        return False
    windowing = step.windowing
    is_ordered = [_is_ordered(body, at, dictionary) for at in range(len(body.types))]
    if not all(is_ordered[each.column] for each in windowing.order):
        return False
    arrangement = body.arrangement(step.order)
    if windowing.top is None:
        slices = _nearest(windowing, arrangement, body.size(State.OLD), all(is_ordered))
    else:
        slices = _first(windowing, arrangement, body.size(State.OLD), windowing.top[1])
    if slices is None:
        return False
    for table, part in zip((was, now), slices, strict=True):
        words, layout = part.words, arrangement.layout
        columns = [
            layout.unpack_column(words, step.order.index(at)) for at in range(len(body.types))
        ]
        values = window_values(windowing, columns, len(words), table.types, dictionary)
        touched = part.is_touched.nonzero()[0]
        rows = [column[touched] for column in (*columns, *values)]
        rows, count = top_rows(windowing, rows, len(touched), dictionary)
        table.assign(sort_words(table.pack(rows, count)))
    return True


def _is_ordered(body: Table, column: int, dictionary: Dictionary) -> bool:
    """Whether the codes of a column are in the order of its values."""
    domain = dictionary.domain(body.types[column])
    return not isinstance(domain, SymbolDomain) and domain.is_ordered


def _changed(arrangement: Arrangement) -> Words:
    """Return the rows that a change adds and removes."""
    states = (State.ADDED, State.REMOVED)
    return sort_distinct(np.concatenate([arrangement.words(state) for state in states]))


# --- rows near changed ones ----------------------------------------------------------------------


def _nearest(
    windowing: Windowing, arrangement: Arrangement, size: int, has_ordered_rows: bool
) -> tuple[_Slice, _Slice] | None:
    """Return the rows of OLD and NEW near changed ones."""
    reach = max(reach_of(each) or 0 for each in windowing.functions)
    changed, read = _changed(arrangement), 2 * reach + 1
    if SLICE_FRACTION * len(changed) * (2 * read + 1) > size:
        return None
    columns = [each.column for each in windowing.order]
    length = len({*windowing.partition, *columns})
    is_arranged = has_ordered_rows and not any(each.is_descending for each in windowing.order)
    found = []
    for state in (State.OLD, State.NEW):
        words = _around(arrangement, state, changed, read)
        at = words.searchsorted(changed)
        kept = _near(at, read, len(words)).nonzero()[0]
        near = _near(at, reach, len(words))[kept]
        words = words[kept]
        keys = arrangement.layout.prefix_keys(words, length)
        if not is_arranged and np.count_nonzero(~first_mask(keys)):
            return None  # rows are equal in the order, and arranged in another one
        found.append((words, near))
    (old, near_old), (new, near_new) = found
    stays = is_member(new, old[near_old]), is_member(old, new[near_new])
    came, gone = (arrangement.words(state) for state in (State.ADDED, State.REMOVED))
    return (
        _Slice(old, near_old & (stays[1] | is_member(old, gone))),
        _Slice(new, near_new & (stays[0] | is_member(new, came))),
    )


def _near(at: Positions, distance: int, count: int) -> Mask:
    """Return the positions that are at most so far from some of them."""
    changes = np.zeros(count + 1, np.int64)
    np.add.at(changes, np.maximum(at - distance, 0), 1)
    np.add.at(changes, np.minimum(at + distance + 1, count), -1)
    near: Mask = np.cumsum(changes)[:count] > 0
    return near


def _around(arrangement: Arrangement, state: State, words: Words, distance: int) -> Words:
    """Return rows of a state that include all that are at most so far from some positions."""
    layout = arrangement.layout
    keys = layout.unpack(words)
    found = [layout.empty]
    for layer in arrangement.layers(state):
        starts, _ = layer.run.ranges(layout, keys, len(words))
        ranges = _Ranges(
            starts, starts + 1, np.zeros_like(starts), np.full_like(starts, len(layer.run))
        )
        found.append(_widened(layer, ranges, distance, distance))
    return sort_distinct(np.concatenate(found))


@dataclass(frozen=True, slots=True)
class _Ranges:
    """Ranges of positions in a run, and how far each may be widened."""

    first: Positions
    last: Positions
    least: Positions
    most: Positions


def _widened(layer: Layer, ranges: _Ranges, before: int, after: int) -> Words:
    """Return the rows of ranges, and as many before and after them, tombstones not counted."""
    first, last, least, most = ranges.first, ranges.last, ranges.least, ranges.most
    far_before, far_after = np.full_like(first, before), np.full_like(last, after)
    while True:
        start, end = np.maximum(first - far_before, least), np.minimum(last + far_after, most)
        indices = _spans(start, np.maximum(start, end))
        words = layer.run.take(indices)
        mask = layer.present_mask(words)
        if mask is None:
            return words
        totals = np.concatenate([[0], np.cumsum(mask)])

        def count(one: Positions, two: Positions) -> Positions:
            found: Positions = (
                totals[indices.searchsorted(two)] - totals[indices.searchsorted(one)]  # noqa: B023
            )
            return found

        lacks_before = (count(start, np.maximum(first, start)) < before) & (start > least)
        lacks_after = (count(np.minimum(last, end), end) < after) & (end < most)
        if not (lacks_before.any() or lacks_after.any()):
            return words[mask]
        far_before[lacks_before] *= 2
        far_after[lacks_after] *= 2


def _spans(first: Positions, last: Positions) -> Positions:
    """Return the numbers of all ranges, each once, ascending."""
    order = first.argsort()
    first, last = first[order], np.maximum.accumulate(last[order])
    first[1:] = np.maximum(first[1:], last[:-1])  # without what the ranges before have
    sizes = last - first
    starts = np.repeat(first - np.cumsum(sizes) + sizes, sizes)
    numbers: Positions = starts + np.arange(len(starts))
    return numbers


# --- first rows ----------------------------------------------------------------------------------


def _first(
    windowing: Windowing, arrangement: Arrangement, size: int, most: int
) -> tuple[_Slice, _Slice] | None:
    """Return the first rows, in OLD and NEW, of the partitions with changed ones."""
    layout, changed = arrangement.layout, _changed(arrangement)
    length = len(windowing.partition)
    changed = changed[first_mask(layout.prefix_keys(changed, length))] if length else changed[:1]
    keys = [layout.unpack_column(changed, at) for at in range(length)]
    if SLICE_FRACTION * len(changed) * most > size:
        return None
    first = _FirstRows(windowing, arrangement, keys, len(changed), max(most, 1))
    return first.slice(State.OLD), first.slice(State.NEW)


@dataclass(frozen=True, slots=True)
class _FirstRows:
    """The first rows of some partitions; of a descending order, those are arranged last.

    Attributes:
        keys: the columns of the partitions.
        count: the number of partitions.
        most: how many rows of each are wanted.
    """

    windowing: Windowing
    arrangement: Arrangement
    keys: list[Codes]
    count: int
    most: int

    def slice(self, state: State) -> _Slice:
        """Return the rows of a state."""
        layout, layers = self.arrangement.layout, self.arrangement.layers(state)
        far = (self.most, 0) if self._is_last else (0, self.most)
        parts: list[Words] = [layout.empty]
        for layer in layers:
            starts, ends = layer.run.ranges(layout, self.keys, self.count)
            at = ends if self._is_last else starts
            parts.append(_widened(layer, _Ranges(at, at, starts, ends), *far))
        words = self._with_peers(sort_distinct(np.concatenate(parts)), layers)
        return _Slice(words, np.ones(len(words), np.bool_))

    @property
    def _is_last(self) -> bool:
        return any(each.is_descending for each in self.windowing.order)

    def _with_peers(self, words: Words, layers: Sequence[Layer]) -> Words:
        """Return rows with all that are equal in the order to the last one of their partition."""
        layout, windowing = self.arrangement.layout, self.windowing
        starts, ends = MemoryRun(words).ranges(layout, self.keys, self.count)
        at = ends - self.most if self._is_last else starts + self.most - 1
        border = words[at[ends - starts >= self.most]]
        if not len(border):
            return words
        width = len({*windowing.partition, *(each.column for each in windowing.order)})
        peers = [layout.unpack_column(border, at) for at in range(width)]
        parts = [words]
        for layer in layers:
            first, last = layer.run.ranges(layout, peers, len(border))
            parts.append(_widened(layer, _Ranges(first, last, first, last), 0, 0))
        return sort_distinct(np.concatenate(parts))
