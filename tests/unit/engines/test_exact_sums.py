"""Sums of floats are those of fractions, rounded once; sums of integers are exact."""

import math
from fractions import Fraction
from itertools import accumulate

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from corollary.core.types import FLOAT, NUMBER, UNSIGNED
from corollary.engines.local.evaluation.aggregation.aggregates import sum_groups
from corollary.engines.local.evaluation.aggregation.exact_sums import (
    float_digits,
    join_digits,
    split_float,
    sum_floats,
)
from support.selection import examples

GREATEST = 1.7976931348623157e308
EDGES = (0.0, 1.0, -1.0, 5e-324, -5e-324, GREATEST, -GREATEST, 2.0**53, 1 + 2.0**-52, 2.0**-1022)
FLOATS = st.one_of(st.floats(allow_nan=False), st.sampled_from(EDGES), st.floats(-1, 1))


def exact_sum(values: list[float]) -> float:
    special = [value for value in values if not math.isfinite(value)]
    if special:
        return sum(special)
    total = sum(map(Fraction, values))
    try:
        return float(total) + 0.0
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def starts(groups: list[list[float]] | list[list[int]]) -> list[int]:
    return list(accumulate(map(len, groups[:-1]), initial=0))


@given(st.lists(st.lists(FLOATS, min_size=1, max_size=7), min_size=1, max_size=5))
@settings(max_examples=examples(25, 3000))
def test_floats(groups: list[list[float]]) -> None:
    for turned in (groups, [group + [-value for value in group[1:]] for group in groups]):
        values = np.array([value for group in turned for value in group])
        found = sum_floats(values, np.array(starts(turned))).tolist()
        assert list(map(repr, found)) == [repr(exact_sum(group)) for group in turned]


@given(st.lists(FLOATS.filter(math.isfinite), min_size=1, max_size=7))
@settings(max_examples=examples(25, 3000))
def test_floats_one_by_one(values: list[float]) -> None:
    places, columns = float_digits(np.array(values))
    split = [split_float(value) for value in values]
    assert [each for each, _ in split] == places.tolist()
    assert [digits for _, digits in split] == [list(each) for each in zip(*columns, strict=True)]
    digits = [pair for place, each in split for pair in enumerate(each, place)]
    assert repr(join_digits(digits)) == repr(exact_sum(values))


def test_nan_and_infinities() -> None:
    values = np.array([math.inf, 1.0, math.inf, -math.inf, math.nan, 2.0, -0.0])
    found = sum_floats(values, np.array([0, 2, 4, 6])).tolist()
    assert list(map(repr, found)) == ["inf", "nan", "nan", "0.0"]
    assert sum_groups(values, np.array([0]), None, FLOAT, FLOAT)[1] is None


@given(
    st.lists(
        st.lists(
            st.one_of(
                st.integers(-(2**63), 2**63 - 1),
                st.sampled_from((-(2**63), 2**63 - 1, 2**32, -1, 2**31)),
            ),
            min_size=1,
        ),
        min_size=1,
    )
)
def test_integers(groups: list[list[int]]) -> None:
    begins = np.array(starts(groups))
    for type_, dtype, low, high in (
        (NUMBER, np.int64, -(2**63), 2**63 - 1),
        (UNSIGNED, np.uint64, 0, 2**64 - 1),
    ):
        turned = [[value % 2**64 for value in group] if low == 0 else group for group in groups]
        values = np.array([value for group in turned for value in group], dtype)
        sums, too_large = sum_groups(values, begins, None, type_, type_)
        wanted = [sum(group) for group in turned]
        assert too_large.tolist() == [not low <= total <= high for total in wanted]
        assert sums[~too_large].tolist() == [total for total in wanted if low <= total <= high]
