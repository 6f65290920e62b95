"""The tuples of a table in one column order: sorted runs, tombstones, and the open change.

OLD is the runs less their tombstones. A change is ADDED and REMOVED; NEW is a view over all of
them, so that making a state costs O(change). `commit` folds the change in: runs are merged
geometrically, tombstones applied when they have become many.

Invariants: runs are disjoint; tombstones are in some run; once settled, ADDED is not in OLD and
REMOVED is. Arrays never change, so whoever holds one may keep it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from corollary.core.states import State
from corollary.engines.local.layout import Layout, Mask, Words
from corollary.engines.local.runs import (
    SMALL,
    Run,
    SortedRun,
    append,
    is_member,
    merge,
    minus,
)

Order = tuple[int, ...]


class Layer(NamedTuple):
    """A run, less the tuples of some sorted arrays, none of them empty."""

    run: SortedRun
    absent: tuple[Words, ...] = ()

    def keep(self, words: Words) -> Mask | None:
        """Return which words of the run count, or None for all."""
        mask: Mask | None = None
        for absent in self.absent:
            found = ~is_member(words, absent)
            mask = found if mask is None else mask & found
        return mask


def words_of(layers: Sequence[Layer], layout: Layout) -> Words:
    """Return the tuples of disjoint layers as one sorted array."""
    kept = []
    for layer in layers:
        words = layer.run.words
        keep = layer.keep(words)
        kept.append(words if keep is None else words[keep])
    return merge(*kept) if kept else layout.nothing


class Arrangement:
    """One column order of a table.

    The primary order of a table is always up to date. The others follow when they are read:

    Attributes:
        is_late: whether the open change of the table has gone on since this order was read.
    """

    __slots__ = (
        "_cached",
        "_late_added",
        "_late_removed",
        "added",
        "is_late",
        "layout",
        "order",
        "removed",
        "runs",
        "tombstones",
    )

    def __init__(self, order: Order, layout: Layout) -> None:
        self.order = order
        self.layout = layout
        self._late_added: list[Words] | None = []
        self._late_removed: list[Words] = []
        self.is_late = False
        self.reset(layout.nothing)

    def reset(self, added: Words) -> None:
        """Hold nothing but these tuples, as ADDED."""
        self.runs: list[SortedRun] = []
        self.tombstones: Words = self.layout.nothing
        self.added: list[SortedRun] = [Run(added)] if len(added) else []
        self.removed: Words = self.layout.nothing
        self._cached: dict[State, list[Layer]] = {}

    # --- reading -------------------------------------------------------------------------------

    def layers(self, state: State) -> list[Layer]:
        """Return what makes up a state; no layer is empty."""
        known = self._cached.get(state)
        if known is None:
            known = self._cached[state] = self._layers(state)
        return known

    def _layers(self, state: State) -> list[Layer]:
        if state is State.ADDED:
            return [Layer(run) for run in self.added]
        if state is State.REMOVED:
            return [Layer(Run(self.removed))] if len(self.removed) else []
        gone = (self.tombstones,) if len(self.tombstones) else ()
        if state is State.OLD:
            return [Layer(run, gone) for run in self.runs]
        gone = (*gone, self.removed) if len(self.removed) else gone
        return [*(Layer(run, gone) for run in self.runs), *map(Layer, self.added)]

    def words(self, state: State) -> Words:
        """Return all tuples of a state as one sorted array."""
        return words_of(self.layers(state), self.layout)

    def contains(self, words: Words, state: State) -> Mask:
        """Return for each tuple whether it is there."""
        found: Mask | None = None
        for layer in self.layers(state):
            here = layer.run.contains(words)
            if layer.absent and np.count_nonzero(here):
                keep = layer.keep(words)
                assert keep is not None
                here &= keep
            found = here if found is None else found | here
        return np.zeros(len(words), np.bool_) if found is None else found

    @property
    def nbytes(self) -> int:
        """The bytes its arrays hold."""
        runs = sum(run.nbytes for run in (*self.runs, *self.added))
        return runs + self.removed.nbytes + self.tombstones.nbytes

    # --- writing -------------------------------------------------------------------------------

    def change(self, added: Words, removed: Words) -> None:
        """Set the open change."""
        self.added = [Run(added)] if len(added) else []
        self.removed = removed
        self._cached = {}

    def grow(self, words: Words) -> None:
        """Add tuples to the open change."""
        append(self.added, words)
        self._cached = {}

    def remove(self, words: Words) -> None:
        """Remove tuples in the open change."""
        self.removed = merge(self.removed, words)
        self._cached = {}

    def read_ahead(self, added: int, removed: int) -> None:
        """Read all that `commit` may need for a change of this size, so that it cannot fail."""
        held = sum(map(len, self.runs))
        is_purged = removed > 0 and 4 * (len(self.tombstones) + removed) > held
        behind = added
        for run in reversed(self.runs):
            if is_purged or (added and len(run) <= 2 * behind + SMALL):
                _ = run.words
            behind += len(run)

    def commit(self) -> None:
        """Fold the change into the runs."""
        if self.added:
            added = merge(*[run.words for run in self.added])
            if len(self.tombstones):
                revived = is_member(added, self.tombstones)
                if np.count_nonzero(revived):
                    self.tombstones = minus(self.tombstones, added)
                    added = added[~revived]
            if len(added):
                append(self.runs, added)
            self.added = []
        if len(self.removed):
            self.tombstones = merge(self.tombstones, self.removed)
            self.removed = self.layout.nothing
            if 4 * len(self.tombstones) > sum(map(len, self.runs)):
                kept = [minus(run.words, self.tombstones) for run in self.runs]
                self.runs = [Run(words) for words in kept if len(words)]
                self.tombstones = self.layout.nothing
        self._cached = {}

    # --- following the primary order -----------------------------------------------------------

    def sort(self, words: Words, primary: Layout) -> Words:
        """Return tuples packed in the primary order as this order packs and sorts them."""
        if not len(words):
            return self.layout.nothing
        columns = [primary.column(words, column) for column in self.order]
        packed = self.layout.pack(columns, len(words))
        return np.sort(packed) if len(words) > 1 else packed

    def be_late(self, added: Words | None, removed: Words | None) -> None:
        """Note how the change has gone on; two times None says that it is another one."""
        if added is not None and self._late_added is not None:
            self._late_added.append(added)
        elif removed is not None and self._late_added is not None:
            self._late_removed.append(removed)
        else:
            self._late_added = None
            self._late_removed = []
        self.is_late = True

    def catch_up(self, primary: "Arrangement") -> None:
        """Take over the change of the primary order."""
        if self._late_added is None:
            self.added = [Run(self.sort(run.words, primary.layout)) for run in primary.added]
            self.removed = self.sort(primary.removed, primary.layout)
        else:
            for words in self._late_added:
                append(self.added, self.sort(words, primary.layout))
            for words in self._late_removed:
                self.removed = merge(self.removed, self.sort(words, primary.layout))
        self._late_added, self._late_removed = [], []
        self._cached = {}
        self.is_late = False

    def repack(self, layout: Layout) -> None:
        """Pack all tuples in another layout of the same order; they stay sorted."""
        before = self.layout
        if before == layout:
            self.layout = layout
            return
        self.runs = [Run(layout.convert(run.words, before)) for run in self.runs]
        self.tombstones = layout.convert(self.tombstones, before)
        self.added = [Run(layout.convert(run.words, before)) for run in self.added]
        self.removed = layout.convert(self.removed, before)
        self.layout = layout
        self._cached = {}


def arranged(primary: Arrangement, order: Order) -> Arrangement:
    """Return the tuples of the primary order in another one."""
    made = Arrangement(order, primary.layout.permuted(order))
    made.runs = [Run(made.sort(run.words, primary.layout)) for run in primary.runs]
    made.tombstones = made.sort(primary.tombstones, primary.layout)
    made.be_late(None, None)
    made.catch_up(primary)
    return made
