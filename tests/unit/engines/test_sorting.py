"""Sorting with rows equals a stable argsort, for every width of keys."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

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
