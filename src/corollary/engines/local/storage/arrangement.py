"""The tuples of a table in one column order: sorted runs, tombstones, and the open change.

OLD is the runs minus the tombstones. A change is ADDED and REMOVED; NEW is a view over all of
them, so that creating a state costs O(change). `commit` folds the change into the runs: these are
merged geometrically, tombstones are applied when there are many.

Invariants: runs are disjoint; every tombstone is in some run; once settled, ADDED and OLD are
disjoint and REMOVED is part of OLD. Arrays are never modified, so references to them stay valid.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from corollary.core.states import State
from corollary.engines.local.storage.code_range import CodeInterval
from corollary.engines.local.storage.layout import Layout, Mask, Row, Words
from corollary.engines.local.storage.runs import (
    SINGLE_RUN_MAX_WORDS,
    MemoryRun,
    SortedRun,
    append_run,
    has_word,
    is_member,
    merge_words,
    net_change,
    sort_distinct,
    subtract_words,
)
from corollary.engines.local.storage.sorting import sort_words

Order = tuple[int, ...]

PURGE_SHARE = 4
"""If more than this part of the tuples in runs has been removed, the runs are made anew."""


class Layer(NamedTuple):
    """A run without the tuples of some sorted arrays, none of them empty."""

    run: SortedRun
    excluded: tuple[Words, ...] = ()

    def present_mask(self, words: Words) -> Mask | None:
        """Return the mask of the words, all from the run, that the layer has; None for all."""
        mask: Mask | None = None
        for absent in self.excluded:
            present = ~is_member(words, absent)
            mask = present if mask is None else mask & present
        return mask

    def without_excluded(self, words: Words) -> Words:
        """Return those of some sorted words of the run that the layer has."""
        for absent in self.excluded:
            words = subtract_words(words, absent)
        return words

    def within(self, box: Mapping[int, CodeInterval], layout: Layout) -> Words:
        """Return the words whose codes, in a layout, are in the intervals of some columns.

        Of a run only those blocks are read that may hold such words by their first column.
        """
        first, last = 0, len(self.run)
        lead = box.get(0)
        if lead is not None and not lead.has_null:
            column = layout.columns[0]
            least, greatest = max(lead.least, column.base + 1), min(lead.greatest, column.last)
            if least > greatest:
                return layout.empty
            starts, ends = self.run.ranges(layout, [np.array([least, greatest])], 2)
            first, last = int(starts[0]), int(ends[1])
        words = self.run.slice(first, last)
        mask = self.present_mask(words)
        for at, (least, greatest, has_null) in box.items():
            codes = layout.unpack_column(words, at)
            inside = (codes >= least) & (codes <= greatest)
            if has_null:
                inside |= codes == 0
            mask = inside if mask is None else mask & inside
        return words if mask is None else words[mask]


def merge_layers(layers: Sequence[Layer], layout: Layout) -> Words:
    """Return the tuples of disjoint layers as one sorted array."""
    parts = [layer.without_excluded(layer.run.words) for layer in layers]
    return merge_words(*parts) if parts else layout.empty


class Arrangement:
    """One column order of a table.

    The primary order of a table is always up to date. The others are updated when they are read, so
    that a change costs nothing in orders that no pipeline reads, also when it is committed.

    Attributes:
        by_state: a run for each state, if the open change is outside of this process as well as
            what it changes; there are no other tuples then.
        is_stale: whether the table has changed since this order was updated.
        is_read: whether it was read since the last commit.
    """

    __slots__ = (
        "_cached",
        "_deferred",
        "_late_added",
        "_late_removed",
        "added",
        "by_state",
        "is_read",
        "is_stale",
        "layout",
        "order",
        "removed",
        "runs",
        "tombstones",
    )

    def __init__(self, order: Order, layout: Layout) -> None:
        self.order = order
        self.layout = layout
        self.is_read = False
        self.reset(layout.empty)

    def reset(self, added: Words) -> None:
        """Replace the contents by these tuples, as ADDED."""
        # What the open change has gained since the last update, None if it has been replaced.
        self._late_added: list[Words] | None = []
        self._late_removed: list[Words] = []
        self.is_stale = False
        self.by_state: Mapping[State, SortedRun] = {}
        self.runs: list[SortedRun] = []
        self.tombstones: Words = self.layout.empty
        self.added: list[SortedRun] = [MemoryRun(added)] if len(added) else []
        self.removed: Words = self.layout.empty
        self._deferred: tuple[list[Words], list[Words]] = ([], [])
        self._cached: dict[State, list[Layer]] = {}

    # --- reading -------------------------------------------------------------------------------

    def layers(self, state: State) -> list[Layer]:
        """Return the layers of a state, whose union it is; none is empty."""
        known = self._cached.get(state)
        if known is None:
            known = self._cached[state] = self._layers(state)
        return known

    def _layers(self, state: State) -> list[Layer]:
        if self.by_state:
            run = self.by_state[state]
            return [Layer(run)] if len(run) else []
        if state is State.ADDED:
            return [Layer(run) for run in self.added]
        if state is State.REMOVED:
            return [Layer(MemoryRun(self.removed))] if len(self.removed) else []
        absent = (self.tombstones,) if len(self.tombstones) else ()
        if state is State.OLD:
            return [Layer(run, absent) for run in self.runs]
        absent = (*absent, self.removed) if len(self.removed) else absent
        layers = [Layer(run, absent) for run in self.runs]
        if self._is_purged(len(self.removed)):  # once, instead of at each read and at the commit
            rest = [each.without_excluded(each.run.words) for each in layers]
            layers = [Layer(MemoryRun(words)) for words in rest if len(words)]
        return [*layers, *map(Layer, self.added)]

    def _is_purged(self, removed: int) -> bool:
        """Whether enough tuples have been removed for the others to be better kept apart."""
        if not removed or not all(run.is_here for run in self.runs):
            return False
        return PURGE_SHARE * (len(self.tombstones) + removed) > sum(map(len, self.runs))

    @property
    def staying_layers(self) -> list[Layer]:
        """The layers of the tuples that are in OLD and in NEW; none is empty."""
        layers = self.layers(State.NEW)
        return layers[: len(layers) - len(self.added)]

    def forget_layers(self) -> None:
        """Make the layers anew when they are next read: runs were replaced."""
        self._cached = {}

    def words(self, state: State) -> Words:
        """Return all tuples of a state as one sorted array."""
        return merge_layers(self.layers(state), self.layout)

    def contains(self, words: Words, state: State) -> Mask:
        """Return for each tuple whether it is in a state."""
        result: Mask | None = None
        for layer in self.layers(state):
            found = layer.run.contains(words)
            if layer.excluded and np.count_nonzero(found):
                mask = layer.present_mask(words)
                assert mask is not None
                found &= mask
            result = found if result is None else result | found
        return np.zeros(len(words), np.bool_) if result is None else result

    def matches(self, key: Row, state: State, most: int) -> list[Row] | None:
        """Return the tuples of a state, in this order, with these first codes; None for many."""
        bounds = self.layout.row_bounds(key)
        if bounds is None:
            return []
        found: list[Row] = []
        for layer in self.layers(state):
            place = layer.run.find(*bounds)
            if place is None:
                return None
            first, last = place
            if first == last:
                continue
            words = layer.run.slice(first, last)
            if last - first > most:  # most of them may be gone
                mask = layer.present_mask(words)
                if mask is None or np.count_nonzero(mask) > most:
                    return None
                words = words[mask]
            listed = words.tolist()
            for absent in layer.excluded:
                listed = [word for word in listed if not has_word(absent, word)]
            found += map(self.layout.unpack_row, listed)
        return found

    def within(self, boxes: Sequence[Mapping[int, CodeInterval]]) -> Words:
        """Return the tuples of NEW whose codes are in the intervals of one of several boxes."""
        found = [
            words
            for layer in self.layers(State.NEW)
            for box in boxes
            if len(words := layer.within(box, self.layout))
        ]
        return sort_distinct(np.concatenate(found)) if found else self.layout.empty

    def count_matches(self, words: Words, length: int, compared: Sequence[int]) -> int:
        """Return how many pairs of a word and a tuple of NEW agree in some columns.

        Args:
            words: of this order.
            length: how many first columns are looked up.
            compared: the positions of others, which are compared.
        """
        layout = self.layout
        keys = [layout.unpack_column(words, at) for at in range(length)]
        layers = self.layers(State.NEW)
        # What is excluded lies in one of the runs, so that its copies there are subtracted.
        absent = [MemoryRun(each) for each in (layers[0].excluded if layers else ())]
        count = 0
        for sign, runs in ((1, [each.run for each in layers]), (-1, absent)):
            for run in runs:
                starts, ends = run.ranges(layout, keys, len(words))
                sizes = ends - starts
                if not compared:
                    count += sign * int(sizes.sum())
                    continue
                rows = np.arange(len(words)).repeat(sizes)
                shift = starts - (sizes.cumsum() - sizes)
                found, wanted = run.take(np.arange(len(rows)) + shift[rows]), words[rows]
                is_equal = np.ones(len(rows), np.bool_)
                for at in compared:
                    is_equal &= layout.unpack_column(found, at) == layout.unpack_column(wanted, at)
                count += sign * int(np.count_nonzero(is_equal))
        return count

    @property
    def nbytes(self) -> int:
        """The size of its arrays in bytes."""
        runs = sum(run.nbytes for run in (*self.runs, *self.added, *self.by_state.values()))
        deferred = sum(words.nbytes for side in self._deferred for words in side)
        return runs + self.removed.nbytes + self.tombstones.nbytes + deferred

    # --- writing -------------------------------------------------------------------------------

    def set_change(self, added: Words, removed: Words) -> None:
        """Set the open change."""
        self.added = [MemoryRun(added)] if len(added) else []
        self.removed = removed
        self._cached = {}

    def add(self, words: Words) -> None:
        """Add tuples to the open change."""
        append_run(self.added, words)
        self._cached = {}

    def remove(self, words: Words) -> None:
        """Remove tuples in the open change."""
        self.removed = merge_words(self.removed, words)
        self._cached = {}

    def prefetch(self, added: int, removed: int) -> None:
        """Read all runs that `commit` may need for a change of this size, so that it cannot fail.

        The conditions are those of `commit` and `append`, or weaker.
        """
        if all(type(run) is MemoryRun for run in self.runs):
            return
        is_purged = self._is_purged(removed)
        later = added  # the tuples of all runs after this one: as many as could be merged with it
        for run in reversed(self.runs):
            if is_purged or (added and len(run) <= 2 * later + SINGLE_RUN_MAX_WORDS):
                _ = run.words
            later += len(run)

    def commit(self) -> None:
        """Fold the change into the runs."""
        added = merge_words(*[run.words for run in self.added]) if self.added else self.layout.empty
        removed = self.removed
        if self._is_purged(len(removed)):
            self.runs = [each.run for each in self.staying_layers]
            self.tombstones = removed = self.layout.empty
        self.added, self.removed = [], self.layout.empty
        self.fold(added, removed)

    def fold(self, added: Words, removed: Words) -> None:
        """Commit tuples of this order; there is no open change."""
        self.is_read = False
        if len(added) and len(self.tombstones):
            # A tuple under a tombstone is still in its run: runs would no longer be disjoint.
            revived = is_member(added, self.tombstones)
            if np.count_nonzero(revived):
                self.tombstones = subtract_words(self.tombstones, added)
                added = added[~revived]
        if len(removed):
            is_purged = self._is_purged(len(removed))
            self.tombstones = merge_words(self.tombstones, removed)
            if is_purged:
                rest = [subtract_words(run.words, self.tombstones) for run in self.runs]
                self.runs = [MemoryRun(words) for words in rest if len(words)]
                self.tombstones = self.layout.empty
        if len(added):
            append_run(self.runs, added)
        self._cached = {}

    # --- following the primary order -----------------------------------------------------------

    def sort_words(self, words: Words, primary: Layout) -> Words:
        """Return tuples of the primary order, packed and sorted in this order."""
        if not len(words):
            return self.layout.empty
        # Distances from the bases are moved, not codes: both layouts have the same bases.
        columns = [primary.plain.unpack_column(words, column) for column in self.order]
        return sort_words(self.layout.plain.pack(columns, len(words)))

    def mark_stale(self, added: Words | None, removed: Words | None) -> None:
        """Record tuples that the open change has gained; without any, that it was replaced."""
        if added is not None and self._late_added is not None:
            self._late_added.append(added)
        elif removed is not None and self._late_added is not None:
            self._late_removed.append(removed)
        else:
            self._late_added = None
            self._late_removed = []
        self.is_stale = True

    def defer(self, added: Words, removed: Words) -> int:
        """Commit tuples of the primary order, which are folded when this order is next read.

        Returns:
            How many tuples are to be folded.
        """
        self.added, self.removed = [], self.layout.empty
        self._late_added, self._late_removed = [], []
        for side, words in zip(self._deferred, (added, removed), strict=True):
            if len(words):
                side.append(words)
        self.is_stale = True
        return sum(len(words) for side in self._deferred for words in side)

    def _fold_deferred(self, primary: Layout) -> None:
        added, removed = net_change(*self._deferred, primary.empty)
        self.prefetch(len(added), len(removed))
        self._deferred = ([], [])
        self.fold(self.sort_words(added, primary), self.sort_words(removed, primary))

    def catch_up(self, primary: "Arrangement") -> None:
        """Update the runs and the open change from the primary order."""
        if any(self._deferred):
            self._fold_deferred(primary.layout)
        if self._late_added is None:
            self.added = [
                MemoryRun(self.sort_words(run.words, primary.layout)) for run in primary.added
            ]
            self.removed = self.sort_words(primary.removed, primary.layout)
        else:
            for words in self._late_added:
                append_run(self.added, self.sort_words(words, primary.layout))
            for words in self._late_removed:
                self.removed = merge_words(self.removed, self.sort_words(words, primary.layout))
        self._late_added, self._late_removed = [], []
        self._cached = {}
        self.is_stale = False

    def repack(self, layout: Layout) -> None:
        """Pack all tuples in another layout of the same order; they stay sorted."""
        before = self.layout
        self.runs = [run.repack(layout, before) for run in self.runs]
        self.tombstones = layout.convert(self.tombstones, before)
        self.added = [run.repack(layout, before) for run in self.added]
        self.removed = layout.convert(self.removed, before)
        self.by_state = {state: run.repack(layout, before) for state, run in self.by_state.items()}
        self.layout = layout
        self._cached = {}


def build_arrangement(primary: Arrangement, order: Order) -> Arrangement:
    """Return the tuples of the primary order in another one."""
    other = Arrangement(order, primary.layout.permute(order))
    other.runs = [MemoryRun(other.sort_words(run.words, primary.layout)) for run in primary.runs]
    other.tombstones = other.sort_words(primary.tombstones, primary.layout)
    other.mark_stale(None, None)
    other.catch_up(primary)
    return other
