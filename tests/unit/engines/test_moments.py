"""Moments of groups against exact arithmetic: correctly rounded, whatever the order of the rows."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from corollary.engines.local.evaluation.aggregation.moments import double_moment, single_moment
from support.selection import examples

NUMBERS = st.one_of(
    st.integers(-9, 9).map(float),
    st.floats(-1e6, 1e6),
    st.sampled_from([0.1, 0.2, 1e9 + 0.25, 1e9 + 0.5, 2.0**53, -1e150, 1e-150]),
)
ROWS = st.lists(st.tuples(NUMBERS, NUMBERS, st.integers(1, 3)), min_size=1, max_size=8)
DIGITS = 400
"""Enough for the square roots of fractions of these numbers."""


def power_sums(rows: list[tuple[float, float, int]]) -> dict[str, Any]:
    """Return the exact moments about the mean: n, and sums of products of differences."""
    n = sum(w for _, _, w in rows)
    x = [(Fraction(a), w) for a, _, w in rows]
    y = [(Fraction(b), w) for _, b, w in rows]
    mx, my = (sum(a * w for a, w in each) / n for each in (x, y))
    product = sum((a - mx) * (b - my) * w for (a, w), (b, _) in zip(x, y, strict=True))
    found: dict[str, Any] = {f"m{k}": sum((a - mx) ** k * w for a, w in x) for k in (2, 3, 4)}
    return (
        found
        | {"n": n, "xy": product, "yy": sum((b - my) ** 2 * w for b, w in y)}
        | {
            "mx": mx,
            "my": my,
        }
    )


def expected(operator: str, rows: list[tuple[float, float, int]]) -> Decimal | None:
    """Return a moment of x, or of y and x."""
    of = power_sums(rows)
    n, xx, yy, xy = of["n"], of["m2"], of["yy"], of["xy"]
    is_flat = xx == 0
    exact: dict[str, Any] = {
        "var_pop": lambda: xx / n,
        "var_samp": lambda: None if n < 2 else xx / (n - 1),
        "stddev_pop": lambda: root(xx / n),
        "stddev_samp": lambda: None if n < 2 else root(xx / (n - 1)),
        "skewness": lambda: None if is_flat else number(of["m3"]) / root(xx**3 / n),
        "kurtosis": lambda: None if is_flat else n * of["m4"] / xx**2 - 3,
        "covar_pop": lambda: xy / n,
        "covar_samp": lambda: None if n < 2 else xy / (n - 1),
        "corr": lambda: None if is_flat or yy == 0 else number(xy) / root(xx * yy),
        "regr_r2": lambda: None if is_flat else 1 if yy == 0 else xy**2 / (xx * yy),
        "regr_slope": lambda: None if is_flat else xy / xx,
        "regr_intercept": lambda: None if is_flat else of["my"] - xy / xx * of["mx"],
        "regr_sxx": lambda: xx,
        "regr_sxy": lambda: xy,
        "regr_syy": lambda: yy,
    }
    found = exact[operator]()
    return found if found is None or isinstance(found, Decimal) else number(found)


def number(value: Fraction | int) -> Decimal:
    return Decimal(Fraction(value).numerator) / Decimal(Fraction(value).denominator)


def root(value: Fraction) -> Decimal:
    return number(value).sqrt()


SINGLE = ("var_pop", "var_samp", "stddev_pop", "stddev_samp", "skewness", "kurtosis")
DOUBLE = ("covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept", "regr_r2")
SUMS = ("regr_sxx", "regr_sxy", "regr_syy")


@settings(max_examples=examples(1, 300), deadline=None)
@given(st.lists(ROWS, min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_moments_are_correctly_rounded_in_any_order(groups: Any, random: Any) -> None:
    shuffled = [random.sample(rows, len(rows)) for rows in groups]
    begins = np.cumsum([0, *map(len, shuffled)])[:-1]
    x, y, weights = (np.array(each) for each in zip(*chain(*shuffled), strict=True))
    for operator in (*SINGLE, *DOUBLE, *SUMS):
        if operator in SINGLE:
            values, is_null = single_moment(operator, x, weights, begins)
        else:
            values, is_null = double_moment(operator, (y, x), weights, begins)
        for rows, value, null in zip(groups, values.tolist(), is_null.tolist(), strict=True):
            with localcontext(prec=DIGITS):
                wanted = expected(operator, rows)
                assert null == (wanted is None), operator
                if wanted is not None:
                    close = bound(operator, rows, wanted)
                    assert value == as_float(wanted) or abs(Decimal(value) - wanted) <= close


def as_float(value: Decimal) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def bound(operator: str, rows: Any, wanted: Decimal) -> Decimal:
    """Return the largest difference: half a unit, or what is left where terms cancel out."""
    half = abs(wanted) * Decimal(2) ** -53 * (1 + Decimal(2) ** -30) + Decimal(2) ** -1074
    if operator in ("skewness", "kurtosis", "corr", "regr_r2"):
        return half + Decimal(2) ** -80
    if operator in ("covar_pop", "covar_samp", "regr_sxy", "regr_slope", "regr_intercept"):
        largest = [Decimal(max(abs(row[at]) for row in rows)) for at in (0, 1)]
        of = power_sums(rows)
        scale: Decimal = largest[0] * largest[1] * of["n"]
        if operator in ("regr_slope", "regr_intercept"):
            scale = scale / number(of["m2"]) * (1 + largest[0])
        return half + scale * Decimal(2) ** -80
    return half


def test_what_is_not_finite_is_not_a_number() -> None:
    values = np.array([1.0, math.inf, 2.0, 2.0])
    found, is_null = single_moment("var_pop", values, np.ones(4, np.int64), np.array([0, 2]))
    assert math.isnan(found[0])
    assert found[1] == 0.0
    assert not is_null.any()
