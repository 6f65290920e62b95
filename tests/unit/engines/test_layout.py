"""Packed tuples sort as tuples of codes do, and a bound prefix is a range of words."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corollary.engines.local.storage.code_range import (
    INTERNED_CODE,
    ZERO_CODE,
    CodeRange,
    Codes,
    code_range,
    range_of,
)
from corollary.engines.local.storage.layout import Layout, LayoutFamily, layout_of
from support.selection import examples

Rows = list[tuple[int, ...]]

narrow_widths = st.lists(st.integers(1, 63), max_size=9).map(
    lambda widths: [each for at, each in enumerate(widths) if sum(widths[: at + 1]) <= 63]
)
wide_widths = st.lists(st.integers(1, 63), min_size=2, max_size=9).filter(lambda w: sum(w) > 63)


def plain(*widths: int) -> Layout:
    """A layout whose columns begin at the first code."""
    return layout_of(tuple(CodeRange(0, width) for width in widths))


def codes_of(column: CodeRange) -> st.SearchStrategy[int]:
    """Codes of a column, often the smallest and the all-ones one."""
    first, last = column.base + 1, column.last
    null = [0] if column.has_null else []
    edges = st.sampled_from([*null, first, min(first + 1, last), max(last - 1, first), last])
    return st.one_of(edges, st.integers(first, last))


@st.composite
def ranges(draw: st.DrawFn, width: int) -> CodeRange:
    """Draws a range of codes of some width, with or without null."""
    most = (1 << 63) - (1 << width)
    bases = [base for base in (0, ZERO_CODE - 1, INTERNED_CODE, most) if base <= most]
    base = draw(st.one_of(st.sampled_from(bases), st.integers(0, most)))
    return CodeRange(base, width, draw(st.booleans()))


@st.composite
def packed(draw: st.DrawFn) -> tuple[Layout, Rows]:
    """Draws a layout, narrow or wide, and tuples of codes that fit it, some of them twice."""
    widths = draw(st.one_of(narrow_widths, wide_widths))
    columns = tuple(draw(ranges(width)) for width in widths)
    rows = draw(st.lists(st.tuples(*map(codes_of, columns)), max_size=12))
    return layout_of(columns), rows + rows[:2]


def columns_of(rows: Rows, arity: int) -> list[Codes]:
    return [np.array([row[at] for row in rows], np.int64) for at in range(arity)]


def in_order(words: Sequence[object]) -> list[int]:
    return np.argsort(np.asarray(words), kind="stable").tolist()


@settings(max_examples=examples(25, 60))
@given(packed())
def test_columns_come_back(case: tuple[Layout, Rows]) -> None:
    layout, rows = case
    words = layout.pack(columns_of(rows, len(layout.widths)), len(rows))
    assert words.dtype == layout.dtype
    assert len(words) == len(rows)
    back = layout.unpack(words)
    assert list(zip(*(each.tolist() for each in back), strict=True)) == (rows if back else [])
    for at, column in enumerate(back):
        assert column.dtype == np.int64
        assert layout.unpack_column(words, at).tolist() == column.tolist()


@settings(max_examples=examples(25, 60))
@given(packed())
def test_words_sort_as_tuples_do(case: tuple[Layout, Rows]) -> None:
    layout, rows = case
    words = layout.pack(columns_of(rows, len(layout.widths)), len(rows))
    assert in_order(words) == sorted(range(len(rows)), key=rows.__getitem__)
    for one, row in zip(words, rows, strict=True):
        equal = [other == row for other in rows]
        assert (words == one).tolist() == equal


@settings(max_examples=examples(25, 60))
@given(packed(), st.data())
def test_a_prefix_is_a_range_of_words(case: tuple[Layout, Rows], data: st.DataObject) -> None:
    layout, rows = case
    arity = len(layout.widths)
    length = data.draw(st.integers(0, arity))
    words = np.sort(layout.pack(columns_of(rows, arity), len(rows)))
    keys = [row[:length] for row in rows]
    keys += data.draw(st.lists(st.tuples(*map(codes_of, layout.columns[:length])), max_size=4))
    low, high = layout.prefix_bounds(columns_of(keys, length), len(keys))
    start = np.searchsorted(words, low, side="left")
    end = np.searchsorted(words, high, side="right")
    ordered = sorted(rows)
    for key, first, last in zip(keys, start.tolist(), end.tolist(), strict=True):
        assert ordered[first:last] == [row for row in ordered if row[:length] == key]


@settings(max_examples=examples(25, 60))
@given(packed(), st.data())
def test_prefixes_are_equal_where_columns_are(
    case: tuple[Layout, Rows], data: st.DataObject
) -> None:
    layout, rows = case
    arity = len(layout.widths)
    length = data.draw(st.integers(0, arity))
    rows = sorted(rows)
    prefix = layout.prefix_keys(layout.pack(columns_of(rows, arity), len(rows)), length)
    same = [one[:length] == two[:length] for one, two in pairwise(rows)]
    assert (prefix[1:] == prefix[:-1]).tolist() == same
    assert in_order(prefix) == list(range(len(rows)))


@settings(max_examples=examples(25, 60))
@given(packed(), st.data())
def test_permuted_layouts_hold_the_same_tuples(
    case: tuple[Layout, Rows], data: st.DataObject
) -> None:
    layout, rows = case
    order = tuple(data.draw(st.permutations(range(len(layout.widths)))))
    permuted = layout.permute(order)
    assert permuted.columns == tuple(layout.columns[at] for at in order)
    assert permuted.is_narrow == layout.is_narrow
    turned = [tuple(row[at] for at in order) for row in rows]
    words = permuted.pack(columns_of(turned, len(order)), len(rows))
    assert in_order(words) == sorted(range(len(rows)), key=turned.__getitem__)


@pytest.mark.parametrize(
    "widths", [(31, 32), (1, 62), (63,), (32, 32), (63, 63), (1, 63), (8,) * 9]
)
def test_the_all_ones_prefix_has_an_upper_bound(widths: tuple[int, ...]) -> None:
    layout = plain(*widths)
    top = tuple((1 << width) - 1 for width in widths)
    rows = [tuple(0 for _ in widths), (*top[:-1], 0), top]
    words = np.sort(layout.pack(columns_of(rows, len(widths)), len(rows)))
    for length in range(len(widths) + 1):
        low, high = layout.prefix_bounds(columns_of([top[:length]], length), 1)
        found = np.searchsorted(words, low, "left")[0], np.searchsorted(words, high, "right")[0]
        ordered = sorted(rows)
        wanted = [at for at, row in enumerate(ordered) if row[:length] == top[:length]]
        assert found == (wanted[0], wanted[-1] + 1)


def test_a_tuple_fits_one_word_up_to_63_bits() -> None:
    assert plain(31, 32).is_narrow
    assert not plain(32, 32).is_narrow
    assert plain(31, 32).dtype == np.int64
    assert plain(9, 55).dtype == np.dtype((np.void, 9))
    assert plain(1, 2) is plain(1, 2)
    assert plain(3, 4, 5).shifts == (9, 5, 0)


def test_no_columns_make_one_tuple() -> None:
    layout = layout_of(())
    assert layout.is_narrow
    assert layout.pack([], 3).tolist() == [0, 0, 0]
    assert layout.unpack(layout.pack([], 3)) == []
    low, high = layout.prefix_bounds([], 2)
    assert (low.tolist(), high.tolist()) == ([0, 0], [0, 0])
    assert layout.prefix_keys(layout.pack([], 2), 0).tolist() == [0, 0]


# ------------------------------------------------------------------------------------------- ranges

ANY_CODE = st.one_of(
    st.sampled_from([1, 2, ZERO_CODE - 1, ZERO_CODE, ZERO_CODE + 1, 1 << 62, INTERNED_CODE]),
    st.integers(0, 1000).map(lambda code: ZERO_CODE + code),
    st.integers(1, (1 << 63) - 1),
)
ANY_CODES = st.lists(st.one_of(ANY_CODE, st.just(0)), max_size=5)


@given(packed(), ANY_CODES)
def test_what_is_outside_of_a_range_is_noticed(case: tuple[Layout, Rows], codes: list[int]) -> None:
    layout, _ = case
    for at, column in enumerate(layout.columns):
        alone = layout_of((column,))
        fits = [
            column.base < code <= column.last
            or (code == 0 and (column.has_null or not column.base))
            for code in codes
        ]
        mask = alone.overflow_mask([np.array(codes, np.int64)])
        assert (mask is None) == all(fits), (at, column)
        assert mask is None or (~mask).tolist() == fits


@given(st.lists(ANY_CODES, min_size=1, max_size=6), st.integers(0, 2))
def test_a_range_grows_to_what_it_is_given(batches: list[list[int]], growth: int) -> None:
    """Words of every stage stay sorted and come back, however the range has grown since."""
    column = CodeRange()
    words, before, seen = np.empty(0, np.int64), layout_of((column,)), set[int]()
    repacked = 0
    for codes in batches:
        array = np.array(codes, np.int64)
        assert column.extend(range_of(array)).includes(range_of(array))
        wider = column.extend(range_of(array), growth)
        assert wider.includes(column)
        assert wider.includes(range_of(array))
        assert wider.base >= 0
        assert wider.width <= 63
        repacked += wider[:2] != column[:2]
        column, layout = wider, layout_of((wider,))
        words = layout.convert(words, before)
        words = np.unique(np.concatenate([words, layout.pack([array], len(array))]))
        before = layout
        seen |= set(codes)
        assert layout.unpack(words)[0].tolist() == sorted(seen)
    assert repacked <= len(batches)


def test_ranges_begin_where_values_may_be_expected() -> None:
    assert code_range(ZERO_CODE + 1, ZERO_CODE + 1000) == CodeRange(ZERO_CODE - 1, 10)
    assert code_range(ZERO_CODE + 20_000, ZERO_CODE + 20_300) == CodeRange(ZERO_CODE + 19_999, 9)
    assert code_range(ZERO_CODE - 3, ZERO_CODE + 3) == CodeRange(ZERO_CODE - 4, 3)
    assert code_range(7, 8) == CodeRange(6, 2)
    assert code_range(5, 8) == CodeRange(0, 4)._replace(base=4, width=3)
    whole = code_range(1, (1 << 63) - 1)
    assert whole == CodeRange(0, 63)


def test_growing_ids_repack_seldom() -> None:
    family = LayoutFamily(1)
    seen = set()
    for last in range(1, 100_000, 37):
        family.fit([np.array([ZERO_CODE + last])], (None,))
        seen.add(family.layout)
    assert len(seen) <= 10
    for first in range(0, 100_000, 37):
        family.fit([np.array([ZERO_CODE - first])], (None,))
        seen.add(family.layout)
    assert len(seen) <= 14


@given(packed())
def test_rows_are_packed_as_columns_are(case: tuple[Layout, Rows]) -> None:
    layout, rows = case
    columns = columns_of(rows, len(layout.columns))
    words = layout.pack(columns, len(rows))
    assert all(map(layout.holds_row, rows))
    assert [layout.pack_row(row) for row in rows] == words.tolist()
    assert [layout.unpack_row(word) for word in words.tolist()] == rows
    assert layout.pack_rows(rows).tolist() == sorted(words.tolist())
    for row in rows:
        for length in range(1, len(row) + 1):
            key = [np.array([code]) for code in row[:length]]
            low, high = layout.prefix_bounds(key, 1)
            assert layout.row_bounds(row[:length]) == (low.tolist()[0], high.tolist()[0])
