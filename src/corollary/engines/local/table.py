"""A relation in memory: the same tuples in several column orders, read in four states."""

from collections.abc import Mapping, Sequence

import numpy as np

from corollary.core.states import State
from corollary.core.types import Type
from corollary.engines.local.arrangement import Arrangement, Layer, Order, arranged
from corollary.engines.local.family import Family
from corollary.engines.local.layout import Codes, Layout, Mask, Words, layout_of
from corollary.engines.local.runs import SortedRun, distinct, is_member, minus
from corollary.engines.local.spread import spread

MANY = 1 << 10
"""Fewer tuples are looked up by binary search, so that small transactions never make a bitmap."""

BITMAP_BITS = 27
"""Up to this width a table marks its tuples in a bitmap."""

BITMAP_WORTH = 256
"""A bitmap is made when one in so many of its marks has been asked for..."""

BITMAP_SPARSE = 64
"""…and one in so many is set."""


class Table:
    """The tuples of one relation, coded and packed.

    Attributes:
        family: the tables that share its layout; words may be moved among them as they are.
        primary: the order of the columns as declared; words are in this order where none is named.
        spread: estimates of the distinct values of its columns, for a restored table.
    """

    __slots__ = (
        "_added",
        "_bitmap",
        "_layout",
        "_main",
        "_old",
        "_others",
        "_removed",
        "_restored",
        "_searched",
        "family",
        "primary",
        "spread",
        "types",
    )

    def __init__(self, types: Sequence[Type], family: Family | None = None) -> None:
        self.types = tuple(types)
        self.family = Family(len(self.types)) if family is None else family.current
        assert self.family.layout is not None
        self._layout = self.family.layout
        self.primary: Order = tuple(range(len(self.types)))
        self._main = Arrangement(self.primary, self._layout)
        self._others: dict[Order, Arrangement] = {}
        self._old = self._added = self._removed = 0
        self._bitmap: Mask | None = None
        self._searched = 0
        self._restored = 0
        self.spread: tuple[int, ...] = ()

    @property
    def layout(self) -> Layout:
        """How its tuples are packed now; they are repacked when the family has outgrown it."""
        if self.family.layout is not self._layout:
            self._repack()
        return self._layout

    def _repack(self) -> None:
        self.family = self.family.current
        assert self.family.layout is not None
        if self.family.layout == self._layout:
            self._layout = self.family.layout
            return
        for other in self._others.values():
            if other.is_late:
                other.catch_up(self._main)
            other.repack(self.family.layout.permuted(other.order))
        self._main.repack(self.family.layout)
        self._layout = self.family.layout
        self._bitmap = None

    def join(self, other: "Table") -> None:
        """Share one layout with another table from now on."""
        self.family.join(other.family)

    # --- reading -------------------------------------------------------------------------------

    def arrangement(self, order: Order) -> Arrangement:
        """Return the tuples sorted in an order, which is kept from now on."""
        if self.family.layout is not self._layout:
            self._repack()
        if order == self.primary:
            return self._main
        other = self._others.get(order)
        if other is None:
            other = self._others[order] = arranged(self._main, order)
        elif other.is_late:
            other.catch_up(self._main)
        return other

    def order_for(self, bound: tuple[int, ...]) -> Order:
        """Return an order whose first columns are the bound ones, a kept one if there is any."""
        wanted = set(bound)
        for order in (self.primary, *self._others):
            if set(order[: len(bound)]) == wanted:
                return order
        return (*bound, *(column for column in self.primary if column not in wanted))

    def words(self, state: State, order: Order | None = None) -> Words:
        """Return all tuples of a state as one sorted array."""
        return self.arrangement(self.primary if order is None else order).words(state)

    def size(self, state: State) -> int:
        """Return the number of tuples of a state."""
        if state is State.ADDED:
            return self._added
        if state is State.REMOVED:
            return self._removed
        return self._old if state is State.OLD else self._old + self._added - self._removed

    @property
    def has_change(self) -> bool:
        """Whether there is an open change."""
        return self._added > 0 or self._removed > 0

    def contains(self, words: Words, state: State) -> Mask:
        """Return for each tuple, packed as the layout is now, whether it is there."""
        main = self.arrangement(self.primary)
        if state is State.NEW:
            if self._bitmap is None and len(words) >= MANY and self.size(state):
                self._make_bitmap(len(words))
            if self._bitmap is not None:
                return self._bitmap[words]
        return main.contains(words, state)

    def look_up(self, columns: Sequence[Codes], count: int, state: State) -> Mask:
        """Return for each tuple of codes whether it is there; they need not fit the layout."""
        outside = self.layout.misfits(columns)
        if outside is None:
            return self.contains(self._layout.pack(columns, count), state)
        found = np.zeros(count, np.bool_)
        inside = (~outside).nonzero()[0]
        fitting = [column[inside] for column in columns]
        found[inside] = self.contains(self._layout.pack(fitting, len(inside)), state)
        return found

    def distinct_values(self) -> tuple[int, ...]:
        """Estimate the distinct values of the columns in NEW; what was saved serves for a while."""
        if 0 < self._restored // 2 <= self.size(State.NEW) <= 2 * self._restored:
            return self.spread
        return spread(self.words(State.NEW), self.layout)

    @property
    def nbytes(self) -> int:
        """The bytes its arrays hold."""
        bitmap = 0 if self._bitmap is None else self._bitmap.nbytes
        return bitmap + self._main.nbytes + sum(each.nbytes for each in self._others.values())

    # --- bitmaps -------------------------------------------------------------------------------

    @property
    def is_marked(self) -> bool:
        """Whether looking up a tuple is one look into a bitmap."""
        return self._bitmap is not None

    def _make_bitmap(self, wanted: int) -> None:
        """Mark the tuples of NEW, once it is worth the time and unless it takes much memory."""
        self._searched += wanted
        bits = self._layout.bits
        size = min(BITMAP_WORTH * self._searched, BITMAP_SPARSE * self.size(State.NEW))
        if bits <= BITMAP_BITS and 1 << bits <= size:
            self._bitmap = np.zeros(1 << bits, np.bool_)
            self._bitmap[self.words(State.NEW)] = True

    def _forget_bitmap(self) -> None:
        self._bitmap = None
        self._searched = 0

    # --- writing -------------------------------------------------------------------------------

    def pack(self, columns: Sequence[Codes], count: int) -> Words:
        """Return codes as packed tuples in the primary order, neither sorted nor distinct."""
        return self.fit(columns, (None,) * len(columns)).pack(columns, count)

    def fit(self, columns: Sequence[Codes], bounds: Sequence[int | None]) -> Layout:
        """Return the layout, wide enough for these columns, whose widths may be known."""
        self.family = self.family.current
        self.family.fit(columns, bounds)
        return self.layout

    def widen(self, widths: Sequence[int]) -> None:
        """Make the columns at least so wide."""
        self.family = self.family.current
        self.family.require(widths)

    def change(self, added: Words, removed: Words) -> None:
        """Set the open change: sorted tuples not in OLD, and sorted tuples of OLD."""
        if self.family.layout is not self._layout:
            self._repack()
        self._forget_bitmap()
        self._open(added, removed)

    def _open(self, added: Words, removed: Words) -> None:
        self._main.change(added, removed)
        self._added, self._removed = len(added), len(removed)
        for other in self._others.values():
            other.be_late(None, None)

    def remove(self, words: Words) -> None:
        """Take sorted tuples of OLD out of NEW; those that came back once go again."""
        main = self.arrangement(self.primary)
        if not len(words):
            return
        if self._bitmap is not None:
            self._bitmap[words] = False
        if self._added:
            self._open(minus(main.words(State.ADDED), words), main.removed)
            words = minus(words, main.removed)
        main.remove(words)
        self._removed += len(words)
        for other in self._others.values():
            other.be_late(None, words)

    def grow(self, words: Words) -> None:
        """Add sorted tuples that are not in NEW; some may have been removed before."""
        main = self.arrangement(self.primary)
        if not len(words):
            return
        if self._bitmap is not None:
            self._bitmap[words] = True
        main.grow(words)
        self._added += len(words)
        for other in self._others.values():
            other.be_late(words, None)

    def settle(self) -> None:
        """Strike what was removed and came back from both sides of the change."""
        main = self.arrangement(self.primary)
        if not self._added or not self._removed:
            return
        added, removed = main.words(State.ADDED), main.removed
        back = is_member(removed, added)
        if np.count_nonzero(back):
            self._open(minus(added, removed), removed[~back])

    def read_ahead(self) -> None:
        """Read all that `commit` may need, so that it cannot fail."""
        if self.family.layout is not self._layout:
            self._repack()
        for kept in (self._main, *self._others.values()):
            kept.read_ahead(self._added, self._removed)

    def commit(self) -> None:
        """Make NEW the OLD; the change must be settled."""
        main = self.arrangement(self.primary)
        if not self.has_change:
            return
        for other in self._others.values():
            if other.is_late:
                other.catch_up(main)
            other.commit()
        main.commit()
        self._old += self._added - self._removed
        self._added = self._removed = 0

    def rollback(self) -> None:
        """Forget the open change."""
        if self.family.layout is not self._layout:
            self._bitmap = None  # repacking is for later: it may read a file, and fail
        if self._bitmap is not None:
            self._bitmap[self._main.words(State.ADDED)] = False
            self._bitmap[self._main.words(State.REMOVED)] = True
        self._open(self._layout.nothing, self._layout.nothing)

    def assign(self, words: Words) -> None:
        """Hold just these sorted tuples, as ADDED."""
        self.arrangement(self.primary).reset(words)
        for other in self._others.values():
            other.reset(other.layout.nothing)
            other.be_late(None, None)
        self._added = len(words)
        self._old = self._removed = self._restored = 0
        self._forget_bitmap()

    def clear(self) -> None:
        """Hold nothing."""
        if self._old or self._added or self._removed:
            self.assign(self.layout.nothing)

    def extend(self, words: Words) -> None:
        """Commit, then add sorted tuples that are not there: they are ADDED until the next time."""
        self.commit()
        self.grow(words)

    def replace(self, words: Words) -> None:
        """Make NEW equal to the sorted tuples given, by the change that leads there from OLD."""
        old = self.words(State.OLD)
        self.change(minus(words, old), minus(old, words))

    def insert(self, columns: Sequence[Codes], count: int) -> None:
        """Add tuples to NEW, those already there excepted."""
        words = distinct(self.pack(columns, count))
        words = words[~self.contains(words, State.NEW)]
        if self._removed:
            removed = self._main.removed
            back = is_member(words, removed)
            if np.count_nonzero(back):
                if self._bitmap is not None:
                    self._bitmap[words[back]] = True
                self._open(self._main.words(State.ADDED), minus(removed, words))
                words = words[~back]
        self.grow(words)

    def delete(self, columns: Sequence[Codes], count: int) -> None:
        """Take tuples out of NEW, those not there excepted."""
        outside = self.layout.misfits(columns)
        if outside is not None:
            inside = (~outside).nonzero()[0]
            columns, count = [column[inside] for column in columns], len(inside)
        words = distinct(self._layout.pack(columns, count))
        words = words[self.contains(words, State.NEW)]
        if len(words) and self._added:
            added = self._main.words(State.ADDED)
            if self._bitmap is not None:
                self._bitmap[words] = False
            self._open(minus(added, words), self._main.removed)
            words = minus(words, added)
        self.remove(words)

    def saved(self) -> dict[Order, list[Layer]]:
        """Return what makes up OLD in every order that is kept, packed as the layout is now."""
        if self.family.layout is not self._layout:
            self._repack()
        kept = (self._main, *self._others.values())
        return {each.order: each.layers(State.OLD) for each in kept}

    def restore(
        self, widths: Sequence[int], runs: Mapping[Order, SortedRun], estimates: tuple[int, ...]
    ) -> None:
        """Hold tuples that were packed with some widths, as OLD, in these orders."""
        self.clear()
        self.widen(widths)
        self._others = {}
        before, layout = layout_of(tuple(widths)), self.layout
        for order, run in runs.items():
            kept = Arrangement(order, before.permuted(order))
            kept.runs = [run] if len(run) else []
            kept.repack(layout.permuted(order))
            if order == self.primary:
                self._main = kept
            else:
                self._others[order] = kept
        self._old = self._restored = len(runs[self.primary])
        self.spread = estimates

    def copy(self, other: "Table") -> None:
        """Hold what another table of the same types has in NEW, as OLD."""
        self.widen(other.layout.widths)
        self.assign(self.layout.convert(other.words(State.NEW), other.layout))
        self.commit()
