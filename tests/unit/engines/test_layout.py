"""Packed tuples sort as tuples of codes do, and a bound prefix is a range of words."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corollary.engines.local.storage.layout import Codes, Layout, layout_of

Rows = list[tuple[int, ...]]

narrow_widths = st.lists(st.integers(1, 63), max_size=9).map(
    lambda widths: [each for at, each in enumerate(widths) if sum(widths[: at + 1]) <= 63]
)
wide_widths = st.lists(st.integers(1, 63), min_size=2, max_size=9).filter(lambda w: sum(w) > 63)


def codes_of(width: int) -> st.SearchStrategy[int]:
    """Codes of a width, often the smallest and the all-ones one."""
    top = (1 << width) - 1
    return st.one_of(st.sampled_from([0, 1, top - 1, top]), st.integers(0, top))


@st.composite
def packed(draw: st.DrawFn) -> tuple[Layout, Rows]:
    """Draws a layout, narrow or wide, and tuples of codes that fit it, some of them twice."""
    widths = tuple(draw(st.one_of(narrow_widths, wide_widths)))
    rows = draw(st.lists(st.tuples(*map(codes_of, widths)), max_size=12))
    return layout_of(widths), rows + rows[:2]


def columns_of(rows: Rows, arity: int) -> list[Codes]:
    return [np.array([row[at] for row in rows], np.int64) for at in range(arity)]


def in_order(words: Sequence[object]) -> list[int]:
    return np.argsort(np.asarray(words), kind="stable").tolist()


@settings(max_examples=60)
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


@settings(max_examples=60)
@given(packed())
def test_words_sort_as_tuples_do(case: tuple[Layout, Rows]) -> None:
    layout, rows = case
    words = layout.pack(columns_of(rows, len(layout.widths)), len(rows))
    assert in_order(words) == sorted(range(len(rows)), key=rows.__getitem__)
    for one, row in zip(words, rows, strict=True):
        equal = [other == row for other in rows]
        assert (words == one).tolist() == equal


@settings(max_examples=60)
@given(packed(), st.data())
def test_a_prefix_is_a_range_of_words(case: tuple[Layout, Rows], data: st.DataObject) -> None:
    layout, rows = case
    arity = len(layout.widths)
    length = data.draw(st.integers(0, arity))
    words = np.sort(layout.pack(columns_of(rows, arity), len(rows)))
    keys = [row[:length] for row in rows]
    keys += data.draw(st.lists(st.tuples(*map(codes_of, layout.widths[:length])), max_size=4))
    low, high = layout.prefix_bounds(columns_of(keys, length), len(keys))
    start = np.searchsorted(words, low, side="left")
    end = np.searchsorted(words, high, side="right")
    ordered = sorted(rows)
    for key, first, last in zip(keys, start.tolist(), end.tolist(), strict=True):
        assert ordered[first:last] == [row for row in ordered if row[:length] == key]


@settings(max_examples=60)
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


@settings(max_examples=60)
@given(packed(), st.data())
def test_permuted_layouts_hold_the_same_tuples(
    case: tuple[Layout, Rows], data: st.DataObject
) -> None:
    layout, rows = case
    order = tuple(data.draw(st.permutations(range(len(layout.widths)))))
    permuted = layout.permute(order)
    assert permuted.widths == tuple(layout.widths[at] for at in order)
    assert permuted.is_narrow == layout.is_narrow
    turned = [tuple(row[at] for at in order) for row in rows]
    words = permuted.pack(columns_of(turned, len(order)), len(rows))
    assert in_order(words) == sorted(range(len(rows)), key=turned.__getitem__)


@pytest.mark.parametrize(
    "widths", [(31, 32), (1, 62), (63,), (32, 32), (63, 63), (1, 63), (8,) * 9]
)
def test_the_all_ones_prefix_has_an_upper_bound(widths: tuple[int, ...]) -> None:
    layout = layout_of(widths)
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
    assert layout_of((31, 32)).is_narrow
    assert not layout_of((32, 32)).is_narrow
    assert layout_of((31, 32)).dtype == np.int64
    assert layout_of((9, 55)).dtype == np.dtype((np.void, 9))
    assert layout_of((1, 2)) is layout_of((1, 2))
    assert layout_of((3, 4, 5)).shifts == (9, 5, 0)


def test_no_columns_make_one_tuple() -> None:
    layout = layout_of(())
    assert layout.is_narrow
    assert layout.pack([], 3).tolist() == [0, 0, 0]
    assert layout.unpack(layout.pack([], 3)) == []
    low, high = layout.prefix_bounds([], 2)
    assert (low.tolist(), high.tolist()) == ([0, 0], [0, 0])
    assert layout.prefix_keys(layout.pack([], 2), 0).tolist() == [0, 0]
