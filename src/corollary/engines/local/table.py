"""A relation in memory: sorted runs per column order, read in four states.

OLD is the runs less their tombstones. A change is two small arrays, ADDED and REMOVED; NEW is a
view over all of them, so that making a state costs O(change). `commit` folds the change in:
runs are merged geometrically, tombstones applied when they have become many.

Invariants: runs are disjoint; tombstones are in some run; ADDED is not in OLD, REMOVED is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from corollary.core.states import State
from corollary.core.types import Type
from corollary.engines.local.codes import Dictionary
from corollary.engines.local.layout import Codes, Layout, Words
from corollary.engines.local.runs import Mask, Run, append, distinct, is_member, merge, minus

Order = tuple[int, ...]

BITMAP_BITS = 27
"""Up to this width a table that grows round by round marks its tuples in a bitmap."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A run, less the tuples of some sorted arrays."""

    run: Run
    absent: tuple[Words, ...] = ()

    def keep(self, words: Words) -> Mask | None:
        """Return which words of the run count, or None for all."""
        mask: Mask | None = None
        for absent in self.absent:
            if len(absent):
                found = ~is_member(words, absent)
                mask = found if mask is None else mask & found
        return mask


def words_of(layers: Sequence[Layer], layout: Layout) -> Words:
    """Return the tuples of disjoint layers as one sorted array."""
    kept = []
    for layer in layers:
        keep = layer.keep(layer.run.words)
        kept.append(layer.run.words if keep is None else layer.run.words[keep])
    return merge(*kept) if kept else np.empty(0, layout.dtype)


@dataclass(slots=True)
class _Sorted:
    """One column order of a table: its committed runs and tombstones, and the open change."""

    runs: list[Run]
    tombstones: Words
    added: list[Run]
    removed: Run

    def layers(self, state: State) -> list[Layer]:
        """Return what makes up a state."""
        match state:
            case State.ADDED:
                return [Layer(run) for run in self.added]
            case State.REMOVED:
                return [Layer(self.removed)]
            case State.OLD:
                return [Layer(run, (self.tombstones,)) for run in self.runs]
            case State.NEW:
                gone = (self.tombstones, self.removed.words)
                return [
                    *(Layer(run, gone) for run in self.runs),
                    *(Layer(run) for run in self.added),
                ]

    def mapped(self, change: Callable[[Words], Words]) -> "_Sorted":
        """Return the same with every array changed."""
        return _Sorted(
            [Run(change(run.words)) for run in self.runs],
            change(self.tombstones),
            [Run(change(run.words)) for run in self.added],
            Run(change(self.removed.words)),
        )

    def commit(self) -> None:
        """Fold the change into the runs."""
        added = merge(*(run.words for run in self.added)) if self.added else self.tombstones[:0]
        revived = is_member(added, self.tombstones)
        if revived.any():
            self.tombstones = minus(self.tombstones, added[revived])
            added = added[~revived]
        if len(self.removed):
            self.tombstones = merge(self.tombstones, self.removed.words)
        if len(added):
            append(self.runs, added)
        if 4 * len(self.tombstones) > sum(map(len, self.runs)):
            self.runs = [Run(minus(run.words, self.tombstones)) for run in self.runs]
            self.tombstones = self.tombstones[:0]


class Table:
    """The tuples of one relation, coded and packed."""

    def __init__(self, types: Sequence[Type], dictionary: Dictionary) -> None:
        self.types = tuple(types)
        self._dictionary = dictionary
        self._layout = dictionary.layout(self.types)
        self.primary: Order = tuple(range(len(self.types)))
        self._orders: dict[Order, _Sorted] = {self.primary: self._empty()}
        self._bitmap: Mask | None = None

    def _empty(self) -> _Sorted:
        none = np.empty(0, self._layout.dtype)
        return _Sorted([], none, [], Run(none))

    @property
    def layout(self) -> Layout:
        """How its tuples are packed now; the tuples are repacked when a domain has outgrown it."""
        current = self._dictionary.layout(self.types)
        if current is not self._layout:
            self._repack(current)
        return self._layout

    def _repack(self, new: Layout) -> None:
        old = self._layout
        self._layout = new
        is_marked, self._bitmap = self.is_marked, None
        for order, kept in self._orders.items():
            before, after = old.permuted(order), new.permuted(order)

            def again(words: Words, before: Layout = before, after: Layout = after) -> Words:
                return after.pack(before.columns(words), len(words))

            self._orders[order] = kept.mapped(again)
        if is_marked:
            self.mark()

    # --- reading -------------------------------------------------------------------------------

    def layers(self, state: State, order: Order) -> list[Layer]:
        """Return what makes up a state, sorted in an order, which is kept from now on."""
        assert self.layout is self._layout
        if order not in self._orders:
            primary = self._orders[self.primary]
            self._orders[order] = primary.mapped(lambda words: self._sorted(words, order))
        return [layer for layer in self._orders[order].layers(state) if len(layer.run)]

    def _sorted(self, words: Words, order: Order) -> Words:
        """Return tuples packed in the primary order as another order packs and sorts them."""
        if order == self.primary:
            return words
        columns = [self._layout.column(words, column) for column in order]
        return np.sort(self._layout.permuted(order).pack(columns, len(words)))

    def order_for(self, bound: tuple[int, ...]) -> Order:
        """Return an order whose first columns are the bound ones, a kept one if there is any."""
        wanted = set(bound)
        for order in self._orders:
            if set(order[: len(bound)]) == wanted:
                return order
        return (*bound, *(column for column in self.primary if column not in wanted))

    def words(self, state: State, order: Order | None = None) -> Words:
        """Return all tuples of a state as one sorted array."""
        return words_of(self.layers(state, order or self.primary), self.layout)

    def size(self, state: State) -> int:
        """Return the number of tuples of a state."""
        primary = self._orders[self.primary]
        match state:
            case State.ADDED:
                return sum(map(len, primary.added))
            case State.REMOVED:
                return len(primary.removed)
            case State.OLD:
                return sum(map(len, primary.runs)) - len(primary.tombstones)
            case State.NEW:
                return self.size(State.OLD) + self.size(State.ADDED) - len(primary.removed)

    def contains(self, words: Words, state: State) -> Mask:
        """Return for each tuple, packed as the layout is now, whether it is there."""
        assert self.layout is self._layout
        if self._bitmap is not None and state is State.NEW:
            return self._bitmap[words]
        found = np.zeros(len(words), np.bool_)
        for layer in self.layers(state, self.primary):
            here = is_member(words, layer.run.words)
            keep = layer.keep(words)
            found |= here if keep is None else here & keep
        return found

    @property
    def nbytes(self) -> int:
        """The bytes its arrays hold."""
        bitmap = 0 if self._bitmap is None else self._bitmap.nbytes
        return bitmap + sum(
            run.nbytes
            for kept in self._orders.values()
            for run in (*kept.runs, *kept.added, kept.removed)
        )

    # --- writing -------------------------------------------------------------------------------

    def pack(self, columns: Sequence[Codes], count: int) -> Words:
        """Return codes as packed tuples in the primary order, neither sorted nor distinct."""
        return self.layout.pack(columns, count)

    def change(self, added: Words, removed: Words) -> None:
        """Set the open change: sorted tuples not in OLD, and sorted tuples of OLD."""
        self._bitmap = None
        self._open(added, removed)

    def _open(self, added: Words, removed: Words) -> None:
        assert self.layout is self._layout
        for order, kept in self._orders.items():
            kept.added = [Run(self._sorted(added, order))] if len(added) else []
            kept.removed = Run(self._sorted(removed, order))

    def remove(self, words: Words) -> None:
        """Take sorted tuples of OLD out of NEW; those that came back once go again."""
        assert self.layout is self._layout
        if not len(words):
            return
        self._bitmap = None
        if self.size(State.ADDED):
            self._open(minus(self.words(State.ADDED), words), self.words(State.REMOVED))
            words = minus(words, self.words(State.REMOVED))
        for order, kept in self._orders.items():
            kept.removed = Run(merge(kept.removed.words, self._sorted(words, order)))

    def grow(self, words: Words) -> None:
        """Add sorted tuples that are not in NEW; some may have been removed before."""
        assert self.layout is self._layout
        if self._bitmap is not None:
            self._bitmap[words] = True
        if len(words):
            for order, kept in self._orders.items():
                append(kept.added, self._sorted(words, order))

    def settle(self) -> None:
        """Strike what was removed and came back from both sides of the change."""
        added, removed = self.words(State.ADDED), self.words(State.REMOVED)
        back = is_member(removed, added)
        if back.any():
            self.change(minus(added, removed), removed[~back])

    @property
    def has_change(self) -> bool:
        """Whether there is an open change."""
        primary = self._orders[self.primary]
        return bool(primary.added) or len(primary.removed) > 0

    def commit(self) -> None:
        """Make NEW the OLD; the change must be settled."""
        self.extend(np.empty(0, self.layout.dtype))

    def rollback(self) -> None:
        """Forget the open change."""
        none = np.empty(0, self.layout.dtype)
        self.change(none, none)

    def assign(self, words: Words) -> None:
        """Hold just these sorted tuples, as ADDED."""
        self._orders = {order: self._empty() for order in self._orders}
        self.change(words, np.empty(0, self.layout.dtype))

    def clear(self) -> None:
        """Hold nothing."""
        primary = self._orders[self.primary]
        if self.has_change or primary.runs or self._bitmap is not None:
            self.assign(np.empty(0, self.layout.dtype))

    def extend(self, words: Words) -> None:
        """Commit, then add sorted tuples that are not there: they are ADDED until the next time."""
        assert self.layout is self._layout
        if self._bitmap is not None:
            self._bitmap[words] = True
        for kept in self._orders.values():
            kept.commit()
        self._open(words, np.empty(0, self._layout.dtype))

    @property
    def is_marked(self) -> bool:
        """Whether looking up a tuple is one look into a bitmap."""
        return self._bitmap is not None

    def mark(self) -> None:
        """Keep a bitmap of the tuples from now on, where tuples are narrow enough for one."""
        layout = self.layout
        bits = sum(layout.widths)
        if self._bitmap is None and layout.is_narrow and bits <= BITMAP_BITS:
            self._bitmap = np.zeros(1 << bits, np.bool_)
            self._bitmap[self.words(State.NEW)] = True

    def replace(self, words: Words) -> None:
        """Make NEW equal to the sorted tuples given, by the change that leads there from OLD."""
        old = self.words(State.OLD)
        self.change(minus(words, old), minus(old, words))

    def insert(self, columns: Sequence[Codes], count: int) -> None:
        """Add tuples to NEW, those already there excepted."""
        words = distinct(self.pack(columns, count))
        words = words[~self.contains(words, State.NEW)]
        removed = self.words(State.REMOVED)
        if len(removed):
            back = is_member(words, removed)
            if back.any():
                self.change(self.words(State.ADDED), minus(removed, words))
                words = words[~back]
        self.grow(words)

    def delete(self, columns: Sequence[Codes], count: int) -> None:
        """Take tuples out of NEW, those not there excepted."""
        words = distinct(self.pack(columns, count))
        words = words[self.contains(words, State.NEW)]
        if len(words) and self.size(State.ADDED):
            added = self.words(State.ADDED)
            self.change(minus(added, words), self.words(State.REMOVED))
            words = minus(words, added)
        self.remove(words)

    def copy(self, other: "Table") -> None:
        """Hold what another table of the same types has in NEW, as OLD."""
        self.assign(other.words(State.NEW))
        self.commit()
