"""A table equals Python sets, whatever is done to it while its domains grow."""

from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from corollary.core.states import State
from corollary.core.types import FLOAT, NUMBER, SYMBOL, UNSIGNED, Type
from corollary.engines.local.codes import INLINE, Dictionary
from corollary.engines.local.layout import Words
from corollary.engines.local.runs import distinct
from corollary.engines.local.table import Order, Table

Row = tuple[Any, ...]

# Small numbers need 3 bits, a large one 21: four columns of numbers turn wide with the first.
SCHEMAS: tuple[tuple[Type, ...], ...] = (
    (),
    (NUMBER,),
    (NUMBER, NUMBER),
    (SYMBOL, NUMBER.with_null(True)),
    (NUMBER, NUMBER, NUMBER, NUMBER),
    (UNSIGNED, SYMBOL, NUMBER, FLOAT, UNSIGNED),
    (NUMBER,) * 9,
)
LARGE = (INLINE - 1, INLINE, -1, 2**63 - 1, -(2**63))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "number": st.one_of(st.integers(0, 3), st.sampled_from((4, 100, *LARGE))),
    "unsigned": st.one_of(st.integers(0, 3), st.sampled_from((INLINE, 2**64 - 1))),
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
        self.table = Table(types, self.codes)
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
        return distinct(self.table.pack(columns, len(listed)))

    def decoded(self, words: Words, order: Order) -> list[Row]:
        layout = self.table.layout.permuted(order)
        found: dict[int, list[Any]] = {}
        for at, column in enumerate(order):
            codes = layout.column(words, at)
            found[column] = self.codes.decode_arrow(codes, self.types[column]).to_pylist()
        if not order:
            return [()] * len(words)
        return list(zip(*(found[column] for column in sorted(found)), strict=True))

    # --- writing -------------------------------------------------------------------------------

    @precondition(lambda self: not self.table.is_marked)
    @rule(data=st.data())
    def insert(self, data: st.DataObject) -> None:
        rows = list(self.rows(data, self.old | self.added))
        self.table.insert(self.columns(rows * 2), 2 * len(rows))
        self.added |= set(rows) - self.old
        self.removed -= set(rows)

    @precondition(lambda self: not self.table.is_marked)
    @rule(data=st.data())
    def change(self, data: st.DataObject) -> None:
        added = self.rows(data, set()) - self.old
        removed = self.rows(data, self.old) & self.old
        self.columns(list(added))  # values are coded first: both arrays need one layout
        self.table.change(self.words(added), self.words(removed))
        self.added, self.removed = added, removed

    @precondition(lambda self: not self.table.is_marked)
    @rule(data=st.data())
    def assign(self, data: st.DataObject) -> None:
        rows = self.rows(data, self.old, max_size=12)
        self.table.assign(self.words(rows))
        self.old, self.added, self.removed = set(), rows, set()

    @precondition(lambda self: not self.table.is_marked)
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
        self.table.mark()
        bits = sum(self.table.layout.widths)
        assert self.table.is_marked == (bits <= 27)

    @rule(values=st.lists(VALUES["number"], min_size=1, max_size=3), word=st.text(max_size=3))
    def grow(self, values: list[int], word: str) -> None:
        """New values elsewhere in the program: the table must be repacked before its next use."""
        self.codes.encode_python(values, NUMBER)
        self.codes.encode_python([word], SYMBOL)

    # --- reading -------------------------------------------------------------------------------

    @rule(data=st.data(), state=st.sampled_from(STATES))
    def read_in_some_order(self, data: st.DataObject, state: State) -> None:
        order = tuple(data.draw(st.permutations(range(len(self.types)))))
        words = self.table.words(state, order)
        assert np.array_equal(words, np.sort(words))
        rows = self.decoded(words, order)
        assert len(rows) == len(set(rows))
        assert set(rows) == self.state(state)

    @rule(data=st.data(), state=st.sampled_from(STATES))
    def look_up(self, data: st.DataObject, state: State) -> None:
        rows = list(self.rows(data, self.old | self.added | self.removed, max_size=8))
        columns = self.columns(rows)
        found = self.table.contains(self.table.pack(columns, len(rows)), state)
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
        layers = self.table.layers(state, order)
        layout = self.table.layout.permuted(order)
        keys = [columns[column] for column in order[: len(bound)]]
        found: list[list[Row]] = [[] for _ in rows]
        for layer in layers:
            start, end = layer.run.ranges(layout, keys, len(rows))
            for at in range(len(rows)):
                words = layer.run.words[start[at] : end[at]]
                keep = layer.keep(words)
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


TableMachine.TestCase.settings = settings(max_examples=80, stateful_step_count=25)
TestTable = TableMachine.TestCase


def test_a_table_turns_wide_in_mid_flight() -> None:
    codes = Dictionary()
    table = Table((NUMBER,) * 4, codes)

    def insert(*rows: Row) -> None:
        columns = [codes.encode_python((row[at] for row in rows), NUMBER) for at in range(4)]
        table.insert(columns, len(rows))

    insert((1, 2, 3, 4), (5, 6, 7, 8))
    table.commit()
    table.layers(State.NEW, (3, 2, 1, 0))
    table.mark()
    assert table.is_marked
    assert table.layout.is_narrow
    insert((-1, -2, -3, -4))
    assert not table.layout.is_narrow
    assert not table.is_marked
    assert [table.size(state) for state in (State.OLD, State.NEW)] == [2, 3]
    last = table.layout.permuted((3, 2, 1, 0)).column(table.words(State.NEW, (3, 2, 1, 0)), 0)
    assert sorted(codes.decode(last, NUMBER).tolist()) == [-4, 4, 8]


def test_runs_are_few_and_tombstones_are_dropped() -> None:
    codes = Dictionary()
    table = Table((NUMBER,), codes)
    for start in range(0, 512, 8):
        table.insert([codes.encode_python(range(start, start + 8), NUMBER)], 8)
        table.commit()
    assert len(table.layers(State.OLD, (0,))) <= 7
    everything = table.words(State.OLD)
    none = everything[:0]
    table.change(none, everything[::2])
    assert table.size(State.NEW) == 256
    table.commit()
    assert all(
        not len(absent) for layer in table.layers(State.OLD, (0,)) for absent in layer.absent
    )
    table.change(everything[::2][:3], none)
    table.commit()
    assert table.size(State.OLD) == 259


@pytest.mark.parametrize("width", [1, 4])
def test_what_was_removed_can_come_back(width: int) -> None:
    codes = Dictionary()
    table = Table((NUMBER,) * width, codes)
    columns = [codes.encode_python([-1, -2, -3, -4, -5], NUMBER)] * width
    table.insert(columns, 5)
    table.commit()
    everything = table.words(State.OLD)
    for _ in range(3):
        table.change(everything[:0], everything[1:2])
        table.commit()
        assert table.contains(everything, State.OLD).tolist() == [True, False, True, True, True]
        table.insert(columns, 5)
        assert table.size(State.ADDED) == 1
        table.commit()
        assert table.size(State.OLD) == 5
