"""Window functions after a change: the rows that come, go, or have other values.

The body is arranged by partition, order and all other columns. Let S be the rows that stay, then

    OLD = S ∪ REMOVED,   NEW = S ∪ ADDED

A *slice* has all changed rows, and of S those that decide whether a value changes. With it OLD and
NEW hold the same rows of S, at positions that are known: two vectors of values are compared.

| functions | rows of S in the slice |
|---|---|
| `lag`, `lead`, `ROWS` between two distances: they reach M rows | 2M + 1 around a changed row |
| running ones: they see the rows before and the peers | from the peers of the first changed row |
| all others | those of the partitions with changed rows |

M around: of a row r that a change touches, let c be the changed row next to it. Between both are at
most M rows of S, in OLD and in NEW; as many are between r and each row that it sees.

Running ones: what lies before the slice is a number of rows, or of different values, and a sum: all
are differences of totals that stand beside a run.

Of the first N rows of partitions (`top`), the slices of OLD and NEW are these rows, with the peers
of the last; they hold other rows of S each, and are compared as sets. A changed row that comes
after those of OLD changes nothing.

Rows are arranged as windows order them as far as codes are in the order of their values, and the
direction is the same. From there on they are *peers* here: slices end with whole peers, and those
are sorted.

A run of the arrangement has each of the nearest rows among its own nearest ones. Tombstones are
skipped by reading farther, until there are enough rows or the run ends.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from corollary.core.logic import Windowing
from corollary.core.plans import CompareWindows
from corollary.core.states import State
from corollary.core.windows import is_running, reach_of, sees_rows_before
from corollary.data_class import dataclass
from corollary.engines.local.evaluation import windows
from corollary.engines.local.storage.arrangement import Arrangement, Layer, merge_layers
from corollary.engines.local.storage.code_range import ZERO_CODE, CodeRange, Codes, range_of_code
from corollary.engines.local.storage.layout import NARROW_BITS, Mask, Words
from corollary.engines.local.storage.runs import (
    MemoryRun,
    SortedRun,
    compare_words,
    merge_words,
    sort_distinct,
)
from corollary.engines.local.storage.sorting import first_mask, sort_words
from corollary.engines.local.storage.table import Table
from corollary.engines.local.values.codes import Dictionary
from corollary.engines.local.values.symbols import SymbolDomain

Positions = npt.NDArray[np.int64]

NULL_RANGE = range_of_code(0)

FARTHER = 8
"""How many times as far is read where tombstones leave too few rows."""


def compare_windows(
    step: CompareWindows, body: Table, added: Table, removed: Table, dictionary: Dictionary
) -> bool:
    """Fill the tables of a step; return whether it was possible."""
    if body.is_partitioned or any(map(body.is_remote, State)):
        return False
    windowing = step.windowing
    comparison = _Comparison(windowing, body, step.order, step.columns, dictionary, added, removed)
    if windowing.top is not None and sees_rows_before(windowing):
        comparison.compare_first(max(windowing.top[1], 1))
    else:
        comparison.compare()
    return True


def _is_ordered(body: Table, column: int, dictionary: Dictionary) -> bool:
    """Whether the codes of a column are in the order of its values."""
    domain = dictionary.domain(body.types[column])
    return not isinstance(domain, SymbolDomain) and domain.is_ordered


@dataclass(frozen=True)
class _Comparison:
    """OLD and NEW of a body, and the tables of the rows that differ."""

    windowing: Windowing
    body: Table
    order: tuple[int, ...]
    columns: tuple[int, ...]
    dictionary: Dictionary
    added: Table
    removed: Table

    @cached_property
    def arrangement(self) -> Arrangement:
        """The body in the order of the windows."""
        return self.body.arrangement(self.order)

    @cached_property
    def arranged(self) -> windows.Arranged:
        """How far rows are arranged as the windows order them."""
        body, windowing = self.body, self.windowing
        is_ordered = [_is_ordered(body, at, self.dictionary) for at in range(len(body.types))]
        columns = list(windowing.partition)
        further = [each for each in windowing.order if each.column not in columns]
        is_descending = bool(further) and further[0].is_descending
        for each in further:
            # Null is the least value.
            is_least = each.nulls_first != is_descending or not body.types[each.column].nullable
            if each.is_descending != is_descending or not is_least or not is_ordered[each.column]:
                break
            columns += [each.column] if each.column not in columns else []
        return windows.Arranged(
            self.arrangement.layout,
            self.order,
            len(columns),
            is_whole=len(columns) == len({*windowing.partition, *(e.column for e in further)}),
            is_descending=is_descending,
            has_ordered_rows=all(is_ordered),
        )

    @cached_property
    def changed(self) -> Words:
        """The rows that the change adds and removes."""
        states = (State.ADDED, State.REMOVED)
        return sort_distinct(np.concatenate([self.arrangement.words(state) for state in states]))

    def _keys(self, words: Words, length: int) -> list[Codes]:
        layout = self.arrangement.layout
        return [layout.unpack_column(words, at) for at in range(length)]

    # --- rows of both states ---------------------------------------------------------------------

    def compare(self) -> None:
        """Compare the values of rows that stay; others come or go."""
        functions = self.windowing.functions
        before: windows.Before | None = None
        if all(reach_of(each) is not None for each in functions):
            stays = self._near(2 * max(reach_of(each) or 0 for each in functions) + 1)
        else:
            stays, before = self._partitions()
        gone, came = (self.arrangement.words(each) for each in (State.REMOVED, State.ADDED))
        old, new = _State.of(stays, gone), _State.of(stays, came)
        was, now = (self._values(each.words, before) for each in (old, new))
        is_changed = np.zeros(len(stays), np.bool_)
        for one, other in zip(was, now, strict=True):
            is_changed |= one[old.kept] != other[new.kept]
        there, here = (windows.is_top(self.windowing, each, self.dictionary) for each in (was, now))
        if there is not None and here is not None:
            is_changed |= there[old.kept] != here[new.kept]
        for state, values, mask, table in (
            (old, was, there, self.removed),
            (new, now, here, self.added),
        ):
            is_found = np.ones(len(state.words), np.bool_)
            is_found[state.kept] = is_changed
            if mask is not None:
                is_found &= mask
            self._fill(table, state.words, values, is_found)

    def _values(self, words: Words, before: windows.Before | None) -> list[Codes]:
        """Return the values of rows in the order of the arrangement."""
        return windows.arranged_values(
            self.windowing, words, self.arranged, self.added.types, self.dictionary, before=before
        )

    def _fill(self, table: Table, words: Words, values: list[Codes], mask: Mask) -> None:
        """Make a table of those rows in a mask, with their values."""
        rows = mask.nonzero()[0]
        packed = self._pack(table, words[rows], [value[rows] for value in values])
        table.assign(sort_words(packed))

    def _pack(self, table: Table, words: Words, values: list[Codes]) -> Words:
        """Return rows with their values, as a table has them."""
        layout, is_read = self.arrangement.layout, {*self.columns}.__contains__
        null, columns = np.zeros(len(words), np.int64), []
        ranges: list[CodeRange | None] = []
        for column in range(len(self.order)):
            at = self.order.index(column)
            columns.append(layout.unpack_column(words, at) if is_read(column) else null)
            ranges.append(layout.columns[at] if is_read(column) else NULL_RANGE)
        columns += values
        ranges += [None for _ in values]
        return table.fit(columns, ranges).pack(columns, len(words))

    def _near(self, distance: int) -> Words:
        """Return the rows that stay and have so few others between them and a changed row."""
        arranged, layout, changed = self.arranged, self.arrangement.layout, self.changed
        length = len(self.order) if arranged.is_complete else arranged.length
        if 4 * distance * len(changed) > self.body.size(State.NEW):
            return merge_layers(self.arrangement.staying_layers, layout)  # most of them
        keys = self._keys(changed, length)
        partitions = keys[: len(self.windowing.partition)]
        parts = [layout.empty]
        for layer in self.arrangement.staying_layers:
            ranges = _Ranges(
                *layer.run.ranges(layout, keys, len(changed)),
                *layer.run.ranges(layout, partitions, len(changed)),
            )
            parts.append(_widened(layer, ranges, distance, distance))
        words = sort_distinct(np.concatenate(parts))
        if arranged.is_complete:
            return words
        return self._with_peers(words, self.arrangement.staying_layers)

    def _with_peers(self, words: Words, layers: Sequence[Layer]) -> Words:
        """Return rows of layers with all their peers."""
        layout, length = self.arrangement.layout, self.arranged.length
        one_of_each = words[first_mask(layout.prefix_keys(words, length))] if length else words[:1]
        keys = self._keys(one_of_each, length)
        parts = [layout.empty]
        for layer in layers:
            first, last = layer.run.ranges(layout, keys, len(one_of_each))
            parts.append(_widened(layer, _Ranges(first, last, first, last), 0, 0))
        return sort_distinct(np.concatenate(parts))

    # --- partitions ------------------------------------------------------------------------------

    def _leads(self, changed: Words) -> Words:
        """Return of each partition with changed rows the first of these in the windows' order."""
        length = len(self.windowing.partition)
        keys = self.arrangement.layout.prefix_keys(changed, length)
        is_first = first_mask(keys)
        if self.arranged.is_descending:
            is_first = np.roll(is_first, -1)  # the last of each
        return changed[is_first]

    def _partitions(self) -> tuple[Words, windows.Before | None]:
        """Return the rows that stay in partitions, from where values may change, and their totals.

        There are no totals before them where these are all rows of the partitions.
        """
        layout, layers = self.arrangement.layout, self.arrangement.staying_layers
        leads = self._leads(self.changed)
        count, is_last = len(leads), self.arranged.is_descending
        keys = self._keys(leads, self.arranged.length)
        partitions = keys[: len(self.windowing.partition)]
        before = None
        if all(is_running(each) for each in self.windowing.functions):
            before = self._before(leads, keys)
        parts = [layout.empty]
        for layer in layers:
            first, last = layer.run.ranges(layout, partitions, count)
            if before is not None:
                start, end = layer.run.ranges(layout, keys, count)
                first, last = (first, end) if is_last else (start, last)
            parts.append(_widened(layer, _Ranges(first, last, first, last), 0, 0))
        return merge_words(*parts), before

    def _before(self, leads: Words, keys: list[Codes]) -> windows.Before | None:
        """Return the totals of the rows before the first changed ones; None if there are none."""
        layout, count = self.arrangement.layout, len(leads)
        functions = self.windowing.functions
        wanted = {(function.name, at) for function in functions for at in function.arguments}
        layers = self.arrangement.staying_layers
        excluded = layers[0].excluded if layers else ()
        runs = [(layer.run, 1) for layer in layers]
        runs += [(MemoryRun(words), -1) for words in excluded]
        rows = np.zeros(count, np.int64)
        totals = {each: np.zeros(count, np.int64) for each in wanted}
        for run, sign in runs:
            first, last = self._range_before(run, keys, count)
            rows += sign * (last - first)
            for name, at in wanted:
                running = self._running_totals(run, name, at)
                if running is None:
                    return None
                totals[name, at] += sign * (running[last] - running[first])
        width, values = len(self.windowing.partition), None
        if any(each.name == "dense_rank" for each in functions):
            values = self._values_before(leads, keys, runs)
            if values is None:
                return None
        return windows.Before(layout.prefix_keys(leads, width), rows, totals, values)

    def _range_before(
        self, run: SortedRun, keys: list[Codes], count: int
    ) -> tuple[Positions, Positions]:
        """Return where the rows of partitions are in a run that come before some keys."""
        layout = self.arrangement.layout
        first, last = run.ranges(layout, keys[: len(self.windowing.partition)], count)
        start, end = run.ranges(layout, keys, count)
        return (end, last) if self.arranged.is_descending else (first, start)

    def _values_before(
        self, leads: Words, keys: list[Codes], runs: Sequence[tuple[SortedRun, int]]
    ) -> Positions | None:
        """Return how many different values of the order come before the first changed rows.

        They are counted in the largest run. A value that others have, rows that are gone among
        them, is in that run or not, and among the rows that stay or not.
        """
        layout, count = self.arrangement.layout, len(leads)
        width, length = len(self.windowing.partition), self.arranged.length
        here = [(run, sign) for run, sign in runs if isinstance(run, MemoryRun)]
        if not self.arranged.is_whole or len(here) < len(runs):
            return None
        if not here:
            return np.zeros(count, np.int64)
        base = max((run for run, sign in here if sign > 0), key=len)
        first, last = self._range_before(base, keys, count)
        known = base.running_totals.get("dense_rank")
        if known is None:
            is_first = first_mask(layout.prefix_keys(base.words, length))
            known = base.running_totals["dense_rank"] = np.append(0, np.cumsum(is_first))
        found: Positions = known[last] - known[first]
        others = [
            run.take(_spans(*self._range_before(run, keys, count)))
            for run, _ in here
            if run is not base
        ]
        words = sort_distinct(np.concatenate([layout.empty, *others]))
        if not len(words):
            return found
        words = words[first_mask(layout.prefix_keys(words, length))]
        values, staying = self._keys(words, length), np.zeros(len(words), np.int64)
        for run, sign in here:
            start, end = run.ranges(layout, values, len(words))
            staying += sign * (end - start)
        start, end = base.ranges(layout, values, len(words))
        partitions = layout.prefix_keys(leads, width)
        numbers = partitions.searchsorted(layout.prefix_keys(words, width))
        np.add.at(found, numbers, (staying > 0).astype(np.int64) - (end > start))
        return found

    def _running_totals(self, run: SortedRun, name: str, column: int) -> Positions | None:
        """Return the sums over all rows of a run before each; None if they have no bound."""
        if not isinstance(run, MemoryRun):
            return None
        known = run.running_totals.get((name, column))
        if known is not None:
            return known
        layout, at = self.arrangement.layout, self.order.index(column)
        least, most = layout.columns[at].base - ZERO_CODE, layout.columns[at].last - ZERO_CODE
        if name == "sum" and not (
            _is_ordered(self.body, column, self.dictionary)
            and Dictionary.has_integers(self.body.types[column])
            and max(abs(least), abs(most)) * len(run) < 1 << NARROW_BITS
        ):
            return None
        codes = layout.unpack_column(run.words, at)
        is_present = codes != 0
        values = np.where(is_present, codes - ZERO_CODE, 0) if name == "sum" else is_present
        totals = np.zeros(len(run) + 1, np.int64)
        np.cumsum(values, out=totals[1:])
        run.running_totals[name, column] = totals
        return totals

    # --- first rows ------------------------------------------------------------------------------

    def compare_first(self, most: int) -> None:
        """Compare the first rows of the partitions with changed ones, as sets."""
        leads = self._leads(self.changed)
        first = self._first(State.OLD, most, leads)
        is_after = self._comes_after(first, most)
        if is_after.all():
            for table in (self.removed, self.added):
                table.assign(table.layout.empty)
            return
        if is_after.any():
            leads = self._leads(self.changed[~is_after])
            first = self._first(State.OLD, most, leads)
        rows, values = [], []
        for words in (first, self._first(State.NEW, most, leads)):
            found = self._values(words, None)
            mask = windows.is_top(self.windowing, found, self.dictionary)
            assert mask is not None
            rows.append(words[mask])
            values.append([value[mask] for value in found])
        # Packed together: a layout may have to grow for the rows of one state.
        both = [np.concatenate(each) for each in zip(*values, strict=True)]
        packed = self._pack(self.added, np.concatenate(rows), both)
        count = len(rows[0])
        gone, came = compare_words(sort_words(packed[:count]), sort_words(packed[count:]))
        self.removed.assign(gone)
        self.added.assign(came)

    def _comes_after(self, first: Words, most: int) -> Mask:
        """Return the mask of the changed rows that come after the first ones of OLD, and peers."""
        layout, changed, length = self.arrangement.layout, self.changed, self.arranged.length
        partitions = self._keys(changed, len(self.windowing.partition))
        starts, ends = MemoryRun(first).ranges(layout, partitions, len(changed))
        at = first.searchsorted(changed)
        is_last = self.arranged.is_descending
        mask: Mask = (ends - starts >= most) & (at == (starts if is_last else ends))
        rows = mask.nonzero()[0]
        ones, others = first[(starts if is_last else ends - 1)[rows]], changed[rows]
        mask[rows] = layout.prefix_keys(ones, length) != layout.prefix_keys(others, length)
        return mask

    def _first(self, state: State, most: int, leads: Words) -> Words:
        """Return the first rows of partitions in a state; of a descending order, the last ones."""
        layout, layers = self.arrangement.layout, self.arrangement.layers(state)
        is_last, count = self.arranged.is_descending, len(leads)
        partitions = self._keys(leads, len(self.windowing.partition))
        far = (most, 0) if is_last else (0, most)
        parts = [layout.empty]
        for layer in layers:
            starts, ends = layer.run.ranges(layout, partitions, count)
            at = ends if is_last else starts
            parts.append(_widened(layer, _Ranges(at, at, starts, ends), *far))
        words = sort_distinct(np.concatenate(parts))
        starts, ends = MemoryRun(words).ranges(layout, partitions, count)
        at = ends - most if is_last else starts + most - 1
        border = words[at[ends - starts >= most]]
        if not len(border):
            return words
        # Each layer has given `most`: of all of them, others are the first ones.
        nearest = (np.maximum(starts, at), ends) if is_last else (starts, np.minimum(ends, at + 1))
        words = words[_spans(*nearest)]
        return sort_distinct(np.concatenate([words, self._with_peers(border, layers)]))


@dataclass(frozen=True, slots=True)
class _State:
    """The rows of a slice in a state.

    Attributes:
        kept: the positions of those that stay.
    """

    words: Words
    kept: Positions

    @classmethod
    def of(cls, stays: Words, others: Words) -> "_State":
        """Return rows that stay together with others; both are sorted."""
        at = stays.searchsorted(others) + np.arange(len(others))
        is_kept = np.ones(len(stays) + len(others), np.bool_)
        is_kept[at] = False
        kept = is_kept.nonzero()[0]
        words = np.empty(len(is_kept), stays.dtype)
        words[at], words[kept] = others, stays
        return cls(words, kept)


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
        if len(first) == 1 and not (before or after):
            return layer.without_excluded(layer.run.slice(int(start[0]), int(end[0])))
        if len(first) == 1:
            indices = np.arange(int(start[0]), int(end[0]))
            words = layer.run.slice(int(start[0]), int(end[0]))
        else:
            indices = _spans(start, np.maximum(start, end))
            words = layer.run.take(indices)
        mask = layer.present_mask(words)
        if mask is None:
            return words
        if not (before or after):
            return words.take(mask.nonzero()[0])
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
        far_before[lacks_before] *= FARTHER
        far_after[lacks_after] *= FARTHER


def _spans(first: Positions, last: Positions) -> Positions:
    """Return the numbers of all ranges, each once, ascending."""
    order = first.argsort()
    first, last = first[order], np.maximum.accumulate(last[order])
    first[1:] = np.maximum(first[1:], last[:-1])  # without what the ranges before have
    sizes = last - first
    starts = np.repeat(first - np.cumsum(sizes) + sizes, sizes)
    numbers: Positions = starts + np.arange(len(starts))
    return numbers
