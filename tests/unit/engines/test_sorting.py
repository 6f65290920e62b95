"""Sorting with rows equals a stable argsort, for every width of keys; so do words of bytes."""

from bisect import bisect_left, bisect_right

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corollary.engines.local.storage.code_range import CodeRange
from corollary.engines.local.storage.layout import layout_of
from corollary.engines.local.storage.runs import MemoryRun, is_member
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
    for length in (1, 2, 3):
        firsts, keys = ([row[:length] for row in each] for each in (known, wanted))
        first, last = MemoryRun(words).ranges(layout, asked[:length], len(wanted))
        ranges = zip(first.tolist(), last.tolist(), strict=True)
        expected = [(bisect_left(firsts, key), bisect_right(firsts, key)) for key in keys]
        assert [set(range(*each)) for each in ranges] == [set(range(*each)) for each in expected]
