"""A relation in memory: the same tuples in several column orders, read in four states."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from corollary.core.states import State
from corollary.core.types import Type
from corollary.engines.local.storage.arrangement import Arrangement, Layer, Order, build_arrangement
from corollary.engines.local.storage.code_range import CodeRange, Codes
from corollary.engines.local.storage.layout import Layout, LayoutFamily, Mask, Row, Words
from corollary.engines.local.storage.remote_contents import RemoteContents
from corollary.engines.local.storage.rows import (
    LooseChange,
    Tuples,
    columns_of,
    matching,
    permutation,
)
from corollary.engines.local.storage.runs import (
    SAMPLE_TUPLES,
    SortedRun,
    compare_words,
    estimate_distinct_values,
    is_member,
    is_prefix_key,
    sort_distinct,
    subtract_words,
)

BITMAP_MIN_LOOKUPS = 1 << 10
"""Fewer lookups at once never build a bitmap, so that small transactions do not pay for one."""

BITMAP_MAX_BITS = 27
"""The maximum width of tuples in a table with a bitmap."""

BITMAP_BITS_PER_LOOKUP, BITMAP_BITS_PER_TUPLE = 256, 64
"""A bitmap has at most this many bits for each lookup so far, and for each tuple."""

DEFERRED_MIN_TUPLES, DEFERRED_FRACTION = 1 << 12, 4
"""An order that was not read while more tuples than this, and this fraction, changed is dropped."""

PARTIAL_MIN_TUPLES, PARTIAL_MAX_TUPLES = 1 << 16, 16
"""So many tuples are probed by fewer columns than are bound, where these leave so few."""

SCANNED_MAX_DISTINCT = 16
"""All tuples are read for one key of columns with fewer values."""

LOOSE_MAX_TUPLES = 256
"""An open change of more tuples than this is packed."""


class Table:
    """The tuples of one relation, coded and packed.

    An open change of few tuples is *loose*: two lists of rows, which are packed when somebody reads
    words. Words of an open change and loose rows are never there both. A table that may have tuples
    outside of this process has no loose change.

    Attributes:
        family: the tables that share its layout; words can be moved between them unchanged.
        primary_order: the order of the columns as declared; words are in this order unless stated.
        remote: what it has outside of this process, if it may have tuples there.
        distinct_estimates: estimates of the distinct values of its columns, if they were made.
    """

    __slots__ = (
        "_added",
        "_bitmap",
        "_estimated",
        "_layout",
        "_loose",
        "_main",
        "_old",
        "_others",
        "_removed",
        "_searched",
        "_wanted",
        "distinct_estimates",
        "family",
        "primary_order",
        "remote",
        "types",
    )

    def __init__(self, types: Sequence[Type], family: LayoutFamily | None = None) -> None:
        self.types = tuple(types)
        self.family = LayoutFamily(len(self.types)) if family is None else family.current
        assert self.family.layout is not None
        self._layout = self.family.layout
        self.primary_order: Order = tuple(range(len(self.types)))
        self._main = Arrangement(self.primary_order, self._layout)
        self._others: dict[Order, Arrangement] = {}
        self._old = self._added = self._removed = 0
        self._loose: LooseChange | None = None
        self._bitmap: Mask | None = None
        self._searched = 0
        self._estimated = 0
        self._wanted: dict[Order, None] = {}
        self.distinct_estimates: tuple[int, ...] = ()
        self.remote: RemoteContents | None = None

    @property
    def is_partitioned(self) -> bool:
        """Whether committed or added tuples are outside of this process."""
        return self.remote is not None and self.remote.is_held

    @property
    def layout(self) -> Layout:
        """The current layout; the tuples are repacked first if that of the family has changed."""
        if self._loose is not None:
            self._settle()
        if self.remote is not None:
            self.remote.make_room()
        if self.family.layout is not self._layout:
            self._repack()
        return self._layout

    def _repack(self) -> None:
        self.family = self.family.current
        assert self.family.layout is not None
        if self.family.layout == self._layout:
            self._layout = self.family.layout
            return
        if not self.family.layout.packs_like(self._layout):
            self._bitmap = None
        for other in self._others.values():
            if other.is_stale:
                other.catch_up(self._main)
            other.repack(self.family.layout.permute(other.order))
        self._main.repack(self.family.layout)
        self._layout = self.family.layout

    def share_layout(self, other: "Table") -> None:
        """Share one layout with another table from now on."""
        self.family.join(other.family)

    # --- reading -------------------------------------------------------------------------------

    def arrangement(self, order: Order) -> Arrangement:
        """Return the tuples sorted in an order, which is maintained from now on."""
        if self._loose is not None:
            self._settle()
        if self.remote is not None:
            self.remote.make_room()
        return self._arrangement(order)

    def _arrangement(self, order: Order) -> Arrangement:
        """Return an arrangement, without the rows of a loose change."""
        if self.family.layout is not self._layout:
            self._repack()
        if order == self.primary_order:
            return self._main
        other = self._others.get(order)
        if other is None:
            if self.remote is not None and self.remote.is_held:
                other = self.remote.arrange(order)
            else:
                other = build_arrangement(self._main, order)
            self._others[order] = other
        elif other.is_stale:
            other.catch_up(self._main)
        other.is_read = True
        return other

    @property
    def arrangements(self) -> list[Arrangement]:
        """The tuples in all orders that there are, perhaps not up to date."""
        return [self._main, *self._others.values()]

    def has_order(self, order: Order) -> bool:
        """Whether the tuples are sorted in an order."""
        return order == self.primary_order or order in self._others

    @property
    def known_orders(self) -> list[Order]:
        """The orders that probes need, as far as that is known."""
        return [self.primary_order, *self._others, *self._wanted]

    def want(self, order: Order) -> None:
        """Note an order that probes will need; the first one that does lets it be made."""
        self._wanted[order] = None

    def order_for(self, bound: tuple[int, ...]) -> Order:
        """Return an order whose first columns are the bound ones, one that exists if possible."""
        prefix = set(bound)
        for order in (self.primary_order, *self._others, *self._wanted):
            if set(order[: len(bound)]) == prefix:
                break
        else:
            order = (*bound, *(column for column in self.primary_order if column not in prefix))
        return order if self.remote is None else self.remote.order_for(order, bound)

    def probe_order(self, bound: tuple[int, ...], *, is_single: bool = False) -> tuple[Order, int]:
        """Return an order to probe in by some columns, and how many of them are its first.

        A large relation is not sorted once more for columns of which some, which are the first of
        an order that exists, leave few tuples; nor for one key with a good part of all tuples.
        Whoever probes compares the other columns.

        Args:
            bound: the columns, at least one.
            is_single: whether only one key is looked up.
        """
        order, size = self.order_for(bound), self.size(State.OLD)
        if self.has_order(order) or size < PARTIAL_MIN_TUPLES or self.is_partitioned:
            return order, len(bound)
        distinct, columns = self.distinct_values(), set(bound)
        if is_single and max(distinct[column] for column in bound) < SCANNED_MAX_DISTINCT:
            return self.primary_order, 0
        best = PARTIAL_MAX_TUPLES + 1, order, len(bound)
        for each in (self.primary_order, *self._others):
            lengths = range(1, len(each) + 1)
            length = sum(columns.issuperset(each[:length]) for length in lengths)
            if length:
                found = size // max(1, *(distinct[column] for column in each[:length]))
                best = min(best, (found, each, length))
        return best[1:]

    def tuples(self, state: State, order: Order | None = None) -> Words:
        """Return all tuples of a state as one sorted array."""
        while True:
            arrangement = self.arrangement(self.primary_order if order is None else order)
            layout, words = arrangement.layout, arrangement.words(state)
            # Values that have just passed may need a wider one: then all are packed again.
            if self.remote is None or self.arrangement(arrangement.order).layout is layout:
                return words

    def contents(self) -> Any:
        """Return all tuples of NEW as another table takes them."""
        if self.remote is not None and self.remote.is_held:
            return self.remote.contents()
        if self._loose is not None and not self._old:
            return self._loose.added
        return self.tuples(State.NEW)

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
        """Return for each tuple, packed in the current layout, whether it is in a state."""
        main = self.arrangement(self.primary_order)
        if state is State.NEW:
            if self._bitmap is None and len(words) >= BITMAP_MIN_LOOKUPS and self.size(state):
                self._make_bitmap(len(words))
            if self._bitmap is not None:
                return self._bitmap[words]
        return main.contains(words, state)

    def is_remote(self, state: State) -> bool:
        """Whether tuples of a state are outside of this process."""
        return self.remote is not None and self.remote.is_remote(state)

    def contains_codes(self, columns: Sequence[Codes], count: int, state: State) -> Mask:
        """Return for each tuple, of any codes, whether it is in a state."""
        overflow = self.layout.overflow_mask(columns)
        if overflow is None:
            return self.contains(self._layout.pack(columns, count), state)
        found = np.zeros(count, np.bool_)
        rows = (~overflow).nonzero()[0]
        fitting = [column[rows] for column in columns]
        found[rows] = self.contains(self._layout.pack(fitting, len(rows)), state)
        return found

    def is_key(self, length: int, state: State) -> bool:
        """Return whether no two tuples of a state agree in the first columns, as far as known."""
        if self.remote is not None and self.remote.is_held:
            return self.remote.is_key(length, state)
        return is_prefix_key(self.tuples(state), self.layout, length)

    def distinct_values(self) -> tuple[int, ...]:
        """Estimate the distinct values of the columns in NEW.

        Estimates of a large table, or of an index file, serve until its size has halved or doubled.
        """
        if self.remote is not None and self.remote.is_held:
            return self.remote.distinct_values()
        size = self.size(State.NEW)
        if 0 < self._estimated // 2 <= size <= 2 * self._estimated:
            return self.distinct_estimates
        found = estimate_distinct_values(self.tuples(State.NEW), self.layout)
        if size > SAMPLE_TUPLES:
            self.distinct_estimates, self._estimated = found, size
        return found

    @property
    def nbytes(self) -> int:
        """The size of its arrays in bytes."""
        bitmap = 0 if self._bitmap is None else self._bitmap.nbytes
        return bitmap + self._main.nbytes + sum(each.nbytes for each in self._others.values())

    # --- few tuples ----------------------------------------------------------------------------

    def rows(self, state: State) -> list[Row]:
        """Return all tuples of a state, which are few, as rows."""
        if self._loose is not None and self._is_loose(state):
            return self._loose.side(state)
        words = self.tuples(state)
        return [self._layout.unpack_row(word) for word in words.tolist()]

    def matching_rows(self, order: Order, key: Row, state: State, most: int) -> list[Row] | None:
        """Return the tuples of a state whose first columns in an order have these codes.

        Returns:
            Their codes in that order; None if they are more than `most`.
        """
        loose = self._loose
        if loose is None:
            return self._arrangement(order).matches(key, state, most)
        if self._is_loose(state):
            return matching(loose.side(state), order, key)
        found = self._arrangement(order).matches(key, State.OLD, most)
        if found is None or state is State.OLD:
            return found
        return loose.matching(found, order, key)

    def has_row(self, row: Row, state: State) -> bool:
        """Return whether a tuple is in a state."""
        return bool(self.matching_rows(self.primary_order, row, state, 1))

    def insert_rows(self, rows: list[Row]) -> None:
        """Add few tuples to NEW; those that it contains already have no effect."""
        loose = self._loosen(len(rows))
        if loose is None:
            self.insert(columns_of(rows, len(self.types)), len(rows))
            return
        self._make_room_for(rows)
        for row in rows:
            loose.insert(row, self.has_row)
        self._count(loose)

    def delete_rows(self, rows: list[Row]) -> None:
        """Remove few tuples from NEW; those that it does not contain have no effect."""
        loose = self._loosen(len(rows))
        if loose is None:
            self.delete(columns_of(rows, len(self.types)), len(rows))
            return
        for row in rows:
            loose.delete(row, self.has_row)
        self._count(loose)

    def loose_rows(self, sign: State) -> list[Row] | None:
        """Return the tuples of a side of a loose change; None if the change is packed."""
        return None if self._loose is None else self._loose.side(sign)

    def as_words(self, tuples: Tuples) -> Words:
        """Return tuples as words, sorted."""
        return self.pack_rows(tuples) if isinstance(tuples, list) else tuples

    def pack_rows(self, rows: Sequence[Row]) -> Words:
        """Return rows as words, sorted; the layout is made wide enough for them."""
        self._make_room_for(rows)
        return self.layout.pack_rows(rows)

    def _settle(self) -> None:
        """Pack the rows of a loose change."""
        loose, self._loose = self._loose, None
        assert loose is not None
        try:
            added, removed = self.pack_rows(loose.added), self.pack_rows(loose.removed)
        except BaseException:  # a file cannot be read
            self._loose = loose
            raise
        self._main.set_change(added, removed)
        for other in self._others.values():
            other.mark_stale(None, None)

    def _make_room_for(self, rows: Sequence[Row]) -> None:
        """Make the layout wide enough for rows of a loose change.

        When they are packed it must not change: somebody may have words in his hands.
        """
        self.family = self.family.current
        self.family.fit_rows(rows)

    def _loosen(self, count: int) -> LooseChange | None:
        """Return the loose change, to which some rows are added; None if it has to be packed."""
        if self.remote is not None:
            return None
        loose = self._loose
        if loose is None:
            is_open = self._added or self._removed or self._bitmap is not None
            if is_open or count > LOOSE_MAX_TUPLES:
                return None
            loose = self._loose = LooseChange([])
        elif len(loose) + count > LOOSE_MAX_TUPLES:
            return None
        return loose

    def _is_loose(self, state: State) -> bool:
        """Whether all tuples of a state are in the loose change, if there is one."""
        return state is not State.OLD and (state is not State.NEW or not self._old)

    def _count(self, loose: LooseChange) -> None:
        self._added, self._removed = len(loose.added), len(loose.removed)

    # --- bitmaps -------------------------------------------------------------------------------

    @property
    def has_bitmap(self) -> bool:
        """Whether lookups in NEW read a bitmap."""
        return self._bitmap is not None

    def _make_bitmap(self, lookups: int) -> None:
        """Build a bitmap of NEW if it is worth the time and not too large."""
        if self.is_partitioned:  # that would read all tuples
            return
        self._searched += lookups
        bits = self._layout.bits
        size = min(
            BITMAP_BITS_PER_LOOKUP * self._searched, BITMAP_BITS_PER_TUPLE * self.size(State.NEW)
        )
        if bits <= BITMAP_MAX_BITS and 1 << bits <= size:
            self._bitmap = np.zeros(1 << bits, np.bool_)
            self._bitmap[self.tuples(State.NEW)] = True

    def _forget_bitmap(self) -> None:
        self._bitmap = None
        self._searched = 0

    # --- writing -------------------------------------------------------------------------------

    def pack(self, columns: Sequence[Codes], count: int) -> Words:
        """Return codes as packed tuples in the primary order, neither sorted nor distinct."""
        return self.fit(columns, (None,) * len(columns)).pack(columns, count)

    def fit(self, columns: Sequence[Codes], bounds: Sequence[CodeRange | None]) -> Layout:
        """Return the layout, made wide enough for these columns; their ranges may be known."""
        self.family = self.family.current
        self.family.fit(columns, bounds)
        return self.layout

    def widen(self, columns: Sequence[CodeRange], growth: int = 0) -> None:
        """Make the columns hold some ranges, with more bits to grow for those that have to."""
        self.family = self.family.current
        self.family.widen(columns, growth)

    def set_change(self, added: Words, removed: Words) -> None:
        """Set the open change: sorted tuples not in OLD, and sorted tuples of OLD."""
        if self.family.layout is not self._layout:
            self._repack()
        self._forget_bitmap()
        self._open(added, removed)

    def _open(self, added: Words, removed: Words) -> None:
        if self.remote is not None:
            self.remote.drop_change()
        self._loose = None
        self._main.set_change(added, removed)
        self._added, self._removed = len(added), len(removed)
        for other in self._others.values():
            other.mark_stale(None, None)

    def remove(self, words: Tuples) -> None:
        """Remove tuples from NEW; some may be ADDED, new or after they were removed."""
        if self.remote is not None:
            words = self.remote.change(State.REMOVED, words)
        if isinstance(words, list):
            loose = self._loosen(len(words))
            if loose is not None:
                loose.remove(words)
                self._count(loose)
                return
            words = self.pack_rows(words)
        main = self.arrangement(self.primary_order)
        if not len(words):
            return
        if self._bitmap is not None:
            self._bitmap[words] = False
        if self._added:
            added = main.words(State.ADDED)
            self._open(subtract_words(added, words), main.removed)
            words = subtract_words(words, added)
        main.remove(words)
        self._removed += len(words)
        for other in self._others.values():
            other.mark_stale(None, words)

    def add(self, words: Tuples) -> None:
        """Add tuples that are not in NEW; some may have been removed before."""
        if self.remote is not None:
            words = self.remote.change(State.ADDED, words)
        if isinstance(words, list):
            loose = self._loosen(len(words))
            if loose is not None:
                self._make_room_for(words)
                loose.added.extend(words)
                self._count(loose)
                return
            words = self.pack_rows(words)
        main = self.arrangement(self.primary_order)
        if not len(words):
            return
        if self._bitmap is not None:
            self._bitmap[words] = True
        main.add(words)
        self._added += len(words)
        for other in self._others.values():
            other.mark_stale(words, None)

    def cancel_out(self) -> None:
        """Drop tuples that were removed and added again from both sides of the change."""
        if self._loose is not None:
            self._loose.cancel_out()
            self._count(self._loose)
            return
        main = self.arrangement(self.primary_order)
        removed = main.removed  # of a change that is elsewhere, none
        if not self._added or not len(removed):
            return
        added = main.words(State.ADDED)
        is_back = is_member(removed, added)
        if np.count_nonzero(is_back):
            self._open(subtract_words(added, removed), removed[~is_back])

    def prefetch(self) -> None:
        """Read all that `commit` may need, so that it cannot fail; all tuples are here."""
        if self.family.layout is not self._layout:
            self._repack()
        for arrangement in (self._main, *self._others.values()):
            if arrangement is self._main or arrangement.is_read:
                arrangement.prefetch(self._added, self._removed)

    def commit(self) -> None:
        """Make NEW the OLD; the change must be settled."""
        if self._loose is not None:
            self._commit_rows(self._loose)
            return
        if not self.has_change:
            return
        if self.remote is not None and self.remote.is_held:
            self.remote.commit()
            return
        main = self.arrangement(self.primary_order)
        for other in [*self._others.values()]:
            if other.is_read:
                if other.is_stale:
                    other.catch_up(main)
                other.commit()
            else:
                self._defer(other, main.words(State.ADDED), main.removed)
        main.commit()
        self._old += self._added - self._removed
        self._added = self._removed = 0

    def _commit_rows(self, loose: LooseChange) -> None:
        """Make NEW the OLD: pack a loose change in each order."""
        main = self._arrangement(self.primary_order)
        added, removed = main.layout.pack_rows(loose.added), main.layout.pack_rows(loose.removed)
        for order, other in [*self._others.items()]:
            if other.is_read:
                pack, permute = self._arrangement(order).layout.pack_rows, permutation(order)
                sides = ([*map(permute, rows)] for rows in (loose.added, loose.removed))
                other.fold(*map(pack, sides))
            else:
                self._defer(other, added, removed)
        main.fold(added, removed)
        self._old += self._added - self._removed
        self._added = self._removed = 0
        self._loose = None

    def _defer(self, other: Arrangement, added: Words, removed: Words) -> None:
        """Let an order that nobody has read wait for the next who does, or forget it."""
        if other.defer(added, removed) > max(DEFERRED_MIN_TUPLES, self._old // DEFERRED_FRACTION):
            del self._others[other.order]

    def rollback(self) -> None:
        """Discard the open change."""
        if self.family.layout is not self._layout:
            # Do not repack here: that may read a file, and fail; a rollback must not.
            self._bitmap = None
        if self._bitmap is not None:
            self._bitmap[self._main.words(State.ADDED)] = False
            self._bitmap[self._main.words(State.REMOVED)] = True
        self._open(self._layout.empty, self._layout.empty)
        if self.remote is not None:
            self.remote.end_rollback()

    def assign(self, words: Tuples) -> None:
        """Replace the contents by these tuples, as ADDED."""
        if self.remote is not None:
            if self.remote.assign(words):
                return
            words = self.as_words(words)
        is_closed = self._loose is not None or not self.has_change
        if isinstance(words, list) and not self._old and is_closed:
            self._make_room_for(words)
            self._loose = LooseChange(list(words))
            self._added, self._removed, self._estimated = len(words), 0, 0
            self._forget_bitmap()
            return
        self._loose = None
        words = self.as_words(words)
        self.arrangement(self.primary_order).reset(words)
        for other in self._others.values():
            other.reset(other.layout.empty)
            other.mark_stale(None, None)
        self._added = len(words)
        self._old = self._removed = self._estimated = 0
        self._forget_bitmap()

    def clear(self) -> None:
        """Remove all tuples, in every state."""
        if self._loose is not None and not self._old:
            self._loose = None
            self._added = self._removed = 0
        elif self._old or self._added or self._removed:
            self._loose = None
            self.assign(self.layout.empty)

    def extend(self, words: Tuples) -> None:
        """Commit, then add tuples that are not in NEW; ADDED is these and nothing else."""
        if self.remote is not None:
            self.remote.extend(words)
            return
        self.commit()
        self.add(words)

    def replace(self, words: Tuples) -> None:
        """Make NEW equal to the tuples given; the change becomes the difference from OLD."""
        if self.remote is not None and self.remote.replace(words):
            return
        self.set_change(*compare_words(self.as_words(words), self.tuples(State.OLD)))

    def insert(self, columns: Sequence[Codes], count: int) -> None:
        """Add tuples to NEW; those that it contains already have no effect."""
        words = sort_distinct(self.pack(columns, count))
        words = words[~self.contains(words, State.NEW)]
        if self._removed:
            removed = self._main.removed
            is_back = is_member(words, removed)
            if np.count_nonzero(is_back):
                if self._bitmap is not None:
                    self._bitmap[words[is_back]] = True
                self._open(self._main.words(State.ADDED), subtract_words(removed, words))
                words = words[~is_back]
        self.add(words)

    def delete(self, columns: Sequence[Codes], count: int) -> None:
        """Remove tuples from NEW; those that it does not contain have no effect."""
        fitting = self.layout.fitting(columns)
        words = sort_distinct(self._layout.pack(fitting, len(fitting[0]) if fitting else count))
        self.remove(words[self.contains(words, State.NEW)])

    def old_layers(self) -> dict[Order, list[Layer]]:
        """Return the layers of OLD in every order, packed in the current layout."""
        if self.family.layout is not self._layout:
            self._repack()
        orders = (self.primary_order, *self._others)
        return {order: self._arrangement(order).layers(State.OLD) for order in orders}

    def restore(
        self, before: Layout, runs: Mapping[Order, SortedRun], estimates: tuple[int, ...]
    ) -> None:
        """Replace the contents by tuples packed in some layout, as OLD, in these orders."""
        self.clear()
        self.widen(before.columns)
        self._others = {}
        layout = self.layout
        for order, run in runs.items():
            arrangement = Arrangement(order, before.permute(order))
            arrangement.runs = [run] if len(run) else []
            arrangement.repack(layout.permute(order))
            if order == self.primary_order:
                self._main = arrangement
            else:
                self._others[order] = arrangement
        self._old = self._estimated = len(runs[self.primary_order])
        self.distinct_estimates = estimates

    def resize(self, *, old: int = 0, added: int = 0, removed: int = 0) -> None:
        """Take the sizes that states have outside of this process."""
        self._old, self._added, self._removed, self._estimated = old, added, removed, 0
        self._forget_bitmap()

    def set_orders(self, orders: Iterable[Order]) -> None:
        """Have some orders beside the primary one, and no others; there are no tuples here."""
        layout = self.layout
        self._others = {
            order: Arrangement(order, layout.permute(order))
            for order in orders
            if order != self.primary_order
        }
