"""Words of integers: split, summed and joined, they are the exact sum."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corollary.core.totals import word_count
from corollary.core.types import NUMBER, UNSIGNED, Type, decimal
from corollary.engines.local.evaluation.aggregation import totals
from support.selection import examples

LONG = decimal(38, 2)
RANGES = {
    NUMBER: (-(2**63), 2**63 - 1),
    UNSIGNED: (0, 2**64 - 1),
    decimal(18, 2): (-(10**18), 10**18),
    LONG: (-(10**38), 10**38),
}


def integers(type_: Type) -> st.SearchStrategy[list[int]]:
    least, most = RANGES[type_]
    edges = (least, most, 0, 1, 2**31, 2**32 - 1, 2**62, min(most, 2**63), -1, -(2**32))
    known = st.sampled_from([each for each in edges if least <= each <= most])
    return st.lists(st.one_of(known, st.integers(least, most)), min_size=1, max_size=9)


def columns(values: list[int], type_: Type) -> list[np.ndarray]:
    """Return the words of the sum, each as an array of one."""
    is_wide = any(not -(2**63) <= each < 2**63 for each in values) and type_ is not UNSIGNED
    dtype = object if is_wide else np.uint64 if type_ is UNSIGNED else np.int64
    words = totals.split_words(np.array(values, dtype), type_)
    assert len(words) == word_count(type_)
    assert all(0 <= each < 2**32 for word in words[1:] for each in word.tolist())
    return [np.add.reduceat(word, [0]) for word in words]


@pytest.mark.parametrize("type_", RANGES, ids=str)
def test_words_are_the_sum(type_: Type) -> None:
    least, most = type_.spec.bounds

    @given(integers(type_))
    @settings(max_examples=examples(25, 2000))
    def run(values: list[int]) -> None:
        words = columns(values, type_)
        assert totals.join_exactly(words) == [sum(values)]
        found, too_large = totals.join_words(words, type_)
        fits = least <= sum(values) <= most
        assert (too_large is None) == fits
        if fits:
            assert int(found[0]) == sum(values)

    run()


@pytest.mark.parametrize("type_", RANGES, ids=str)
def test_means_are_rounded_once(type_: Type) -> None:
    @given(integers(type_))
    @settings(max_examples=examples(25, 2000))
    def run(values: list[int]) -> None:
        (mean,) = totals.mean_of_words(
            columns(values, type_), np.array([len(values)]), type_.scale
        ).tolist()
        assert mean == sum(values) / (len(values) * 10**type_.scale)

    run()


def test_a_mean_of_decimals() -> None:
    words = totals.split_words(np.array([int(Decimal("-0.01").scaleb(2)), 2]), decimal(18, 2))
    sums = [np.add.reduceat(word, [0]) for word in words]
    assert totals.mean_of_words(sums, np.array([2]), 2).tolist() == [0.005]
