"""Sorting with rows equals a stable argsort, for every width of keys; so do words of bytes."""

from bisect import bisect_left, bisect_right

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corollary.engines.local.storage.code_range import CodeRange
from corollary.engines.local.storage.layout import layout_of
from corollary.engines.local.storage.runs import (
    SORTED_SEARCH_MIN_WORDS,
    MemoryRun,
    compare_words,
    is_member,
    subtract_words,
)
from corollary.engines.local.storage.sorting import number_distinct, sort_with_rows, sort_words

KEYS = st.one_of(
    st.lists(st.integers(-3, 3)),
    st.lists(st.integers(-(2**63), 2**63 - 1)),
    st.lists(st.sampled_from((0, 2**61, 2**61 + 1, 2**62, -(2**61)))),
).map(lambda keys: np.array(keys, np.int64))


@given(KEYS)
def test_keys_are_sorted_with_their_rows(
    keys: "np.ndarray[tuple[int], np.dtype[np.int64]]",
) -> None:
    before = keys.copy()
    ordered, rows = sort_with_rows(keys)
    assert ordered.tolist() == sorted(keys.tolist())
    assert rows.tolist() == np.argsort(keys, kind="stable").tolist()
    assert sort_words(keys).tolist() == ordered.tolist()
    distinct, numbers = number_distinct(keys)
    assert distinct.tolist() == sorted(set(keys.tolist()))
    assert distinct[numbers].tolist() == keys.tolist()
    assert keys.tolist() == before.tolist()


ROWS = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 2**33), st.sampled_from((1, 2, 2**40))))
"""Packed into 1, 5 and 6 bytes: rows may agree in the first eight of twelve."""


@given(ROWS, ROWS)
def test_wide_words_are_sorted_and_searched(
    rows: list[tuple[int, int, int]], others: list[tuple[int, int, int]]
) -> None:
    layout = layout_of((CodeRange(0, 8), CodeRange(0, 40), CodeRange(0, 48)))
    known, wanted = sorted({(1, 1, 1), *rows, *others[::2]}), [(1, 1, 2), *others, *rows[:3]]
    given, asked = (
        [np.array(column, np.int64) for column in zip(*each, strict=True)]
        for each in (known[::-1], wanted)
    )
    words = sort_words(layout.pack(given, len(known)))
    assert [layout.unpack_row(word) for word in words.tolist()] == known
    found = is_member(layout.pack(asked, len(wanted)), words)
    assert found.tolist() == [row in known for row in wanted]
    other = np.unique(layout.pack(asked, len(wanted)))
    sides = [
        [layout.unpack_row(each) for each in one.tolist()] for one in compare_words(words, other)
    ]
    assert sides == [sorted({*known} - {*wanted}), sorted({*wanted} - {*known})]
    for length in (1, 2, 3):
        firsts, keys = ([row[:length] for row in each] for each in (known, wanted))
        first, last = MemoryRun(words).ranges(layout, asked[:length], len(wanted))
        ranges = zip(first.tolist(), last.tolist(), strict=True)
        expected = [(bisect_left(firsts, key), bisect_right(firsts, key)) for key in keys]
        assert [set(range(*each)) for each in ranges] == [set(range(*each)) for each in expected]


@pytest.mark.parametrize("greatest", [2**17, 2**62, 2**63 - 1])
def test_many_words_are_compared(greatest: int) -> None:
    random = np.random.default_rng(greatest % 1000)
    size = 2 * SORTED_SEARCH_MIN_WORDS
    both, one, other = (random.integers(0, greatest, size) for _ in range(3))
    words = np.unique([*both, *one, greatest])
    others = np.unique([*both, *other, greatest - 1])
    ours, theirs = {*words.tolist()}, {*others.tolist()}
    came, gone = compare_words(words, others)
    assert (came.tolist(), gone.tolist()) == (sorted(ours - theirs), sorted(theirs - ours))
    assert subtract_words(words, others).tolist() == came.tolist()
    assert is_member(words, others).tolist() == [each in theirs for each in words.tolist()]
