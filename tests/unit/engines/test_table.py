"""A table equals Python sets, whatever is done to it while its domains grow."""

from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from corollary.core.states import State
from corollary.core.types import FLOAT, NUMBER, SYMBOL, UNSIGNED, Type
from corollary.engines.local.engine import copy_tuples, has_match
from corollary.engines.local.storage.arrangement import Order
from corollary.engines.local.storage.code_range import ZERO_CODE, CodeRange
from corollary.engines.local.storage.layout import Words
from corollary.engines.local.storage.rows import columns_of
from corollary.engines.local.storage.runs import sort_distinct
from corollary.engines.local.storage.table import (
    BITMAP_BITS_PER_LOOKUP,
    BITMAP_BITS_PER_TUPLE,
    BITMAP_MAX_BITS,
    BITMAP_MIN_LOOKUPS,
    Table,
)
from corollary.engines.local.values.codes import Dictionary
from support.selection import examples

Row = tuple[Any, ...]

# Small numbers need 3 bits, a large one 20 and more: four columns of numbers soon turn wide.
SCHEMAS: tuple[tuple[Type, ...], ...] = (
    (),
    (NUMBER,),
    (NUMBER, NUMBER),
    (SYMBOL, NUMBER.with_null(True)),
    (NUMBER, NUMBER, NUMBER, NUMBER),
    (UNSIGNED, SYMBOL, NUMBER, FLOAT, UNSIGNED),
    (NUMBER,) * 9,
)
LARGE = (2**20, 2**61 - 1, 2**61, -1, -(2**20), -(2**61), -(2**61) - 1, 2**63 - 1, -(2**63))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "number": st.one_of(st.integers(0, 3), st.sampled_from((4, 100, *LARGE))),
    "unsigned": st.one_of(st.integers(0, 3), st.sampled_from((2**40, 2**61, 2**64 - 1))),
    "symbol": st.sampled_from(("", "a", "b", "é", "a\0")),
    "float": st.sampled_from((0.0, 1.5, float("inf"), -2.0)),
}
STATES = tuple(State)


class TableMachine(RuleBasedStateMachine):
    """A table beside three sets: OLD, ADDED, REMOVED."""

    @initialize(types=st.sampled_from(SCHEMAS))
    def begin(self, types: tuple[Type, ...]) -> None:
        self.types = types
        self.codes = Dictionary()
        self.table = Table(types)
        self.partner = Table(types)
        self.old: set[Row] = set()
        self.added: set[Row] = set()
        self.removed: set[Row] = set()

    # --- the model -----------------------------------------------------------------------------

    def state(self, state: State) -> set[Row]:
        new = self.old - self.removed | self.added
        return {
            State.OLD: self.old,
            State.NEW: new,
            State.ADDED: self.added,
            State.REMOVED: self.removed,
        }[state]

    def rows(self, data: st.DataObject, known: set[Row], max_size: int = 6) -> set[Row]:
        """Draw rows, about half of them known ones."""
        fresh = st.tuples(
            *(
                st.one_of(VALUES[type_.kind], st.none()) if type_.nullable else VALUES[type_.kind]
                for type_ in self.types
            )
        )
        listed = sorted(known, key=repr)
        either = st.one_of(fresh, st.sampled_from(listed)) if listed else fresh
        return data.draw(st.sets(either, max_size=max_size))

    def columns(self, rows: list[Row]) -> list[Any]:
        return [
            self.codes.encode_python((row[at] for row in rows), type_)
            for at, type_ in enumerate(self.types)
        ]

    def words(self, rows: set[Row]) -> Words:
        listed = list(rows)
        columns = self.columns(listed)
        return sort_distinct(self.table.pack(columns, len(listed)))

    def decoded(self, words: Words, order: Order) -> list[Row]:
        layout = self.table.layout.permute(order)
        found: dict[int, list[Any]] = {}
        for at, column in enumerate(order):
            codes = layout.unpack_column(words, at)
            found[column] = self.codes.decode_arrow(codes, self.types[column]).to_pylist()
        if not order:
            return [()] * len(words)
        return list(zip(*(found[column] for column in sorted(found)), strict=True))

    # --- writing -------------------------------------------------------------------------------

    @rule(data=st.data())
    def insert(self, data: st.DataObject) -> None:
        rows = list(self.rows(data, self.old | self.added))
        self.table.insert(self.columns(rows * 2), 2 * len(rows))
        self.added |= set(rows) - self.old
        self.removed -= set(rows)

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        rows = list(self.rows(data, self.old | self.added))
        self.table.delete(self.columns(rows * 2), 2 * len(rows))
        self.removed |= self.old & set(rows)
        self.added -= set(rows)

    @rule(data=st.data())
    def remove_grow_and_settle(self, data: st.DataObject) -> None:
        """NEW is right at every moment, though ADDED and REMOVED overlap in between."""
        settled = {state: self.state(state) for state in STATES}
        new = set(settled[State.NEW])
        for at in range(3):
            gone = self.rows(data, self.old) & self.old & new
            self.table.remove(self.words(gone))
            new -= gone
            if at == 1:
                self.table.cancel_out()
            back = self.rows(data, gone | self.removed, max_size=4) - new
            self.table.add(self.words(back))
            new |= back
            assert self.table.size(State.NEW) == len(new)
            assert set(self.decoded(self.table.tuples(State.NEW), self.table.primary_order)) == new
        self.table.cancel_out()
        self.added, self.removed = new - self.old, self.old - new

    @rule()
    def rollback(self) -> None:
        self.table.rollback()
        self.added, self.removed = set(), set()

    @rule()
    def copy(self) -> None:
        """Back and forth through a table that may or may not share the layout."""
        copy_tuples(self.table, self.partner)
        assert self.partner.size(State.OLD) == self.partner.size(State.NEW)
        copy_tuples(self.partner, self.table)
        self.old, self.added, self.removed = self.state(State.NEW), set(), set()

    @rule()
    def join(self) -> None:
        self.partner.share_layout(self.table)
        assert self.partner.layout is self.table.layout

    @rule(data=st.data())
    def change(self, data: st.DataObject) -> None:
        added = self.rows(data, set()) - self.old
        removed = self.rows(data, self.old) & self.old
        self.words(added)  # both arrays need one layout
        self.table.set_change(self.words(added), self.words(removed))
        self.added, self.removed = added, removed

    @rule(data=st.data())
    def assign(self, data: st.DataObject) -> None:
        rows = self.rows(data, self.old, max_size=12)
        self.table.assign(self.words(rows))
        self.old, self.added, self.removed = set(), rows, set()

    @rule(data=st.data())
    def replace(self, data: st.DataObject) -> None:
        rows = self.rows(data, self.old, max_size=12)
        self.table.replace(self.words(rows))
        self.added, self.removed = rows - self.old, self.old - rows

    @rule(data=st.data())
    def extend(self, data: st.DataObject) -> None:
        before = self.state(State.NEW)
        rows = self.rows(data, set()) - before
        self.table.extend(self.words(rows))
        self.old, self.added, self.removed = before, rows, set()

    @rule()
    def commit(self) -> None:
        self.table.commit()
        self.old, self.added, self.removed = self.state(State.NEW), set(), set()

    @rule()
    def mark(self) -> None:
        """Look up so much that a bitmap is worth while; it must be right from then on."""
        bits = self.table.layout.bits
        words = self.table.tuples(State.NEW)
        needles = max(
            BITMAP_MIN_LOOKUPS, 1 + (1 << min(bits, BITMAP_MAX_BITS)) // BITMAP_BITS_PER_LOOKUP
        )
        self.table.contains(np.zeros(needles, words.dtype), State.NEW)
        if bits <= BITMAP_MAX_BITS and 1 << bits <= BITMAP_BITS_PER_TUPLE * len(words):
            assert self.table.has_bitmap

    @rule(data=st.data())
    def elsewhere(self, data: st.DataObject) -> None:
        """A table of the family gets larger codes: all must be repacked before their next use."""
        rows = list(self.rows(data, set(), max_size=2))
        self.partner.insert(self.columns(rows), len(rows))

    @rule(data=st.data())
    def look_for_what_cannot_be_there(self, data: st.DataObject) -> None:
        """Codes outside of a column's range are just not there, and do not widen it."""
        layout = self.table.layout
        rows = [row for row in self.rows(data, self.old) if self.types]
        columns = self.columns(rows)
        for column in columns[:1]:
            first = layout.columns[0]
            outside = [code for code in (first.base, first.last + 1) if 0 < code < 1 << 63]
            if not outside:
                return
            column[:] = data.draw(st.sampled_from(outside))
        assert not self.table.contains_codes(columns, len(rows), State.NEW).any()
        self.table.delete(columns, len(rows))
        assert self.table.layout is layout

    # --- reading -------------------------------------------------------------------------------

    @rule(data=st.data(), state=st.sampled_from(STATES))
    def read_in_some_order(self, data: st.DataObject, state: State) -> None:
        order = tuple(data.draw(st.permutations(range(len(self.types)))))
        words = self.table.tuples(state, order)
        assert np.array_equal(words, np.sort(words))
        rows = self.decoded(words, order)
        assert len(rows) == len(set(rows))
        assert set(rows) == self.state(state)

    @rule(data=st.data(), state=st.sampled_from(STATES))
    def look_up(self, data: st.DataObject, state: State) -> None:
        rows = list(self.rows(data, self.old | self.added | self.removed, max_size=8))
        columns = self.columns(rows)
        found = self.table.contains_codes(columns, len(rows), state)
        assert found.tolist() == [row in self.state(state) for row in rows]

    @rule(data=st.data(), state=st.sampled_from(STATES))
    def probe(self, data: st.DataObject, state: State) -> None:
        bound = tuple(
            sorted(
                data.draw(st.sets(st.sampled_from(range(len(self.types))))) if self.types else ()
            )
        )
        order = self.table.order_for(bound)
        assert sorted(order) == list(range(len(self.types)))
        assert set(order[: len(bound)]) == set(bound)
        rows = list(self.rows(data, self.old | self.added, max_size=3))
        columns = self.columns(rows)
        self.table.pack(columns, len(rows))
        layers = self.table.arrangement(order).layers(state)
        layout = self.table.layout.permute(order)
        keys = [columns[column] for column in order[: len(bound)]]
        found: list[list[Row]] = [[] for _ in rows]
        for layer in layers:
            start, end = layer.run.ranges(layout, keys, len(rows))
            for at in range(len(rows)):
                words = layer.run.words[start[at] : end[at]]
                keep = layer.present_mask(words)
                found[at] += self.decoded(words if keep is None else words[keep], order)
        for row, matches in zip(rows, found, strict=True):
            wanted = [
                each
                for each in self.state(state)
                if all(each[column] == row[column] for column in bound)
            ]
            assert sorted(matches, key=repr) == sorted(wanted, key=repr)

    @invariant()
    def sizes_agree(self) -> None:
        if hasattr(self, "table"):
            for state in STATES:
                assert self.table.size(state) == len(self.state(state))
            assert self.table.nbytes >= 8 * self.table.size(State.NEW)


TableMachine.TestCase.settings = settings(max_examples=examples(10, 80), stateful_step_count=25)
TestTable = TableMachine.TestCase


def test_a_table_turns_wide_in_mid_flight() -> None:
    codes = Dictionary()
    table = Table((NUMBER,) * 4)

    def insert(*rows: Row) -> None:
        columns = [codes.encode_python((row[at] for row in rows), NUMBER) for at in range(4)]
        table.insert(columns, len(rows))

    insert(*product((0, 1, 2), repeat=4))
    table.commit()
    table.arrangement((3, 2, 1, 0))
    table.contains(table.tuples(State.NEW)[np.zeros(BITMAP_MIN_LOOKUPS, np.int64)], State.NEW)
    assert table.has_bitmap
    assert table.layout.is_narrow
    insert((-(2**40), -(2**41), -(2**42), -(2**43)))
    assert not table.layout.is_narrow
    assert not table.has_bitmap
    assert [table.size(state) for state in (State.OLD, State.NEW)] == [81, 82]
    last = table.layout.permute((3, 2, 1, 0)).unpack_column(
        table.tuples(State.NEW, (3, 2, 1, 0)), 0
    )
    assert set(codes.decode(last, NUMBER).tolist()) == {-(2**43), 0, 1, 2}


def test_few_rows_do_not_change_the_layout_of_words_that_somebody_has() -> None:
    target, source = Table((NUMBER, NUMBER)), Table((NUMBER, NUMBER))
    target.share_layout(source)
    codes = ZERO_CODE + np.arange(40)
    source.assign(source.pack([codes, codes], 40))
    target.add([(ZERO_CODE + 7, ZERO_CODE + 10**9)])  # too large for the layout, and not packed yet
    words = source.contents()
    target.add(words)
    assert target.rows(State.NEW)[:2] == [(ZERO_CODE, ZERO_CODE), (ZERO_CODE + 1, ZERO_CODE + 1)]
    assert not source.contains(words, State.OLD).any()
    assert source.contains(source.contents(), State.NEW).all()


def test_runs_are_few_and_tombstones_are_dropped() -> None:
    codes = Dictionary()
    table = Table((NUMBER,))
    for start in range(0, 512, 8):
        table.insert([codes.encode_python(range(start, start + 8), NUMBER)], 8)
        table.commit()
    assert len(table.arrangement((0,)).layers(State.OLD)) <= 7
    everything = table.tuples(State.OLD)
    none = everything[:0]
    table.set_change(none, everything[::2])
    assert table.size(State.NEW) == 256
    table.commit()
    assert not any(layer.excluded for layer in table.arrangement((0,)).layers(State.OLD))
    table.set_change(everything[::2][:3], none)
    table.commit()
    assert table.size(State.OLD) == 259


@pytest.mark.parametrize("spread", [1, 2**59])  # words of integers, words of bytes
@pytest.mark.parametrize("few", [True, False])
def test_an_order_that_nobody_reads_follows_later(spread: int, *, few: bool) -> None:
    random, table = Random(7), Table((NUMBER, NUMBER))
    order, held = (1, 0), set[Row]()
    table.arrangement(order)
    for commit in range(60):
        rows = {(ZERO_CODE + spread * random.randrange(6), ZERO_CODE + n) for n in range(4)}
        gone, came = {row for row in rows & held if random.random() < 0.7}, rows - held
        if few:
            table.delete_rows(sorted(gone))
            table.insert_rows(sorted(came))
        else:
            table.delete(columns_of(sorted(gone), 2), len(gone))
            table.insert(columns_of(sorted(came), 2), len(came))
        held = held - gone | came
        table.commit()
        if commit % 7 == 6:
            assert table.arrangement(order).matches((), State.OLD, 999) == sorted(
                (second, first) for first, second in held
            )


@pytest.mark.parametrize("few", [True, False])
def test_a_key_is_checked_without_an_order_of_its_own(
    monkeypatch: pytest.MonkeyPatch, *, few: bool
) -> None:
    monkeypatch.setattr("corollary.engines.local.storage.table.PARTIAL_MIN_TUPLES", 1)
    table, codes = Table((NUMBER,) * 3), ZERO_CODE + np.arange(60)
    table.insert([codes // 3, ZERO_CODE + codes % 2, ZERO_CODE + codes % 3], 60)
    table.commit()
    for last, is_there in ((ZERO_CODE + 1, True), (ZERO_CODE + 7, False)):
        row = (int(codes[5]) // 3, ZERO_CODE + 9, last)  # three tuples have its first column
        if few:
            table.insert_rows([row])
        else:
            table.insert(columns_of([row], 3), 1)
        assert has_match(table, (0, 2)) is is_there
        table.rollback()
    assert [*table.old_layers()] == [(0, 1, 2)]


@pytest.mark.parametrize("size", [1, 4, 20_000, 100_000])
def test_values_of_the_first_column_are_counted_by_neighbours(size: int) -> None:
    table, rows = Table((NUMBER, NUMBER)), np.arange(100_000)
    table.insert([ZERO_CODE + rows // size, ZERO_CODE + rows], len(rows))
    table.commit()
    assert table.distinct_values()[0] == pytest.approx(100_000 // size, rel=0.02)


def test_an_order_that_nobody_reads_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corollary.engines.local.storage.table.DEFERRED_MIN_TUPLES", 10)
    table = Table((NUMBER, NUMBER))
    table.arrangement((1, 0))
    for number in range(12):
        table.insert_rows([(ZERO_CODE + number, ZERO_CODE)])
        table.commit()
    assert [*table.old_layers()] == [(0, 1)]
    assert len(table.arrangement((1, 0)).words(State.OLD)) == 12


@pytest.mark.parametrize("width", [1, 4])
def test_what_was_removed_can_come_back(width: int) -> None:
    codes = Dictionary()
    table = Table((NUMBER,) * width)
    columns = [codes.encode_python([-1, -2, -3, -4, -5], NUMBER)] * width
    table.insert(columns, 5)
    table.commit()
    everything = table.tuples(State.OLD)
    for _ in range(3):
        table.set_change(everything[:0], everything[1:2])
        table.commit()
        assert table.contains(everything, State.OLD).tolist() == [True, False, True, True, True]
        table.insert(columns, 5)
        assert table.size(State.ADDED) == 1
        table.commit()
        assert table.size(State.OLD) == 5


def test_ranges_belong_to_tables() -> None:
    codes = Dictionary()
    small, large = Table((NUMBER, NUMBER)), Table((NUMBER, NUMBER))
    for table, values in ((large, [0, 2**40]), (small, [0, 6])):
        table.insert([codes.encode_python(values, NUMBER), codes.encode_python([0, 1], NUMBER)], 2)
    zero = ZERO_CODE - 1
    assert small.layout.columns == (CodeRange(zero, 3), CodeRange(zero, 2))
    assert large.layout.columns == (CodeRange(zero, 41), CodeRange(zero, 2))
    linked = Table((NUMBER, NUMBER))
    linked.share_layout(small)
    small.share_layout(large)
    assert linked.layout is small.layout is large.layout
    assert linked.layout.widths == (41, 2)
    words = linked.pack([codes.encode_python([6], NUMBER), codes.encode_python([1], NUMBER)], 1)
    assert small.contains(words, State.NEW).all()


def test_a_range_is_believed_while_tuples_are_narrow() -> None:
    table = Table((NUMBER,) * 3)
    columns = [np.array([5, 8], np.int64)] * 3
    some, many = CodeRange(0, 20), CodeRange(0, 40)
    assert table.fit(columns, (some, None, some)).columns == (some, CodeRange(4, 3), some)
    assert table.fit(columns, (many, some, some)).columns == (some, CodeRange(4, 3), some)


def test_a_null_changes_no_word() -> None:
    """A column learns of its first null; tuples that are there need not be packed anew."""
    codes = Dictionary()
    table = Table((NUMBER.with_null(True), NUMBER))
    table.insert([codes.encode_python(range(7), NUMBER)] * 2, 7)
    table.commit()
    before = table.tuples(State.OLD)
    (run,) = table.arrangement((0, 1)).runs
    table.insert([codes.encode_python([None], NUMBER), codes.encode_python([3], NUMBER)], 1)
    assert table.arrangement((0, 1)).runs == [run]
    assert np.array_equal(table.tuples(State.OLD), before)
    assert [each.has_null for each in table.layout.columns] == [True, False]
    first, second = table.layout.unpack(table.tuples(State.NEW))
    assert codes.decode_arrow(first, NUMBER).to_pylist() == [None, *range(7)]
    assert codes.decode_arrow(second, NUMBER).to_pylist() == [3, *range(7)]


@pytest.mark.parametrize("first", [50, 5000])
def test_probes_find_the_same_with_and_without_a_directory(first: int) -> None:
    """Few long groups or many short ones: a directory is made in one way or the other."""
    rng = np.random.default_rng(3)
    table = Table((NUMBER, NUMBER))
    table.insert([rng.integers(1, first, 20_000), rng.integers(1, 1000, 20_000)], 20_000)
    table.commit()
    kept = table.arrangement((0, 1))
    (run,) = [layer.run for layer in kept.layers(State.OLD)]
    values = kept.layout.unpack_column(run.words, 0)
    column = kept.layout.columns[0]
    keys = [np.arange(column.base, column.last + 1)]
    expected = [np.searchsorted(values, keys[0], side) for side in ("left", "right")]
    before = run.nbytes
    for _ in range(50):
        found = run.ranges(kept.layout, keys, len(keys[0]))
        assert all(map(np.array_equal, found, expected))
    assert run.nbytes > before
