"""Variances, covariances and higher moments of groups, exact but for one rounding at the end.

    d = x − r,   S_k = Σ w·d^k,   n = Σ w
    M₂ = n·S₂ − S₁²,   M₃ = n²·S₃ − 3n·S₁·S₂ + 2·S₁³,
    M₄ = n³·S₄ − 4n²·S₁·S₃ + 6n·S₁²·S₂ − 3·S₁⁴,   M_xy = n·S_xy − S_x·S_y

Moments do not depend on r, which is a number of few digits near the mean: then the sums do not
cancel out, and those of integers stay integers. All numbers are pairs of floats, whose sum has more
than 100 bits, and sums over a group are exact (`exact_sums.py`), so that they do not depend on an
order of its rows. Groups are scaled by powers of two first, so that nothing is too large on the
way. One infinity or NaN in a group, and its moments are NaN.

| aggregate | value |
|---|---|
| `var_pop`, `var_samp` | M₂ / n², M₂ / (n·(n − 1)); their roots are the deviations |
| `skewness`, `kurtosis` | M₃ / M₂^1.5, M₄ / M₂² − 3 |
| `covar_pop`, `covar_samp` | M_xy / n², M_xy / (n·(n − 1)) |
| `corr`, `regr_r2` | M_xy / √(M_xx·M_yy), its square |
| `regr_slope`, `regr_intercept` | M_xy / M_xx, mean of y − slope · mean of x |
| `regr_sxx`, `regr_sxy`, `regr_syy` | M_xx / n, M_xy / n, M_yy / n |
"""

from typing import Any

import numpy as np

from corollary.data_class import dataclass
from corollary.engines.local.evaluation.aggregation.exact_sums import Floats, sum_twice
from corollary.engines.local.evaluation.float_pairs import (
    Pair,
    negative,
    over,
    plus,
    root,
    times,
    two_product,
    two_sum,
)
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import Mask

_GRID_BITS = 10
"""The number r has this many bits below the spread of the values."""


def single_moment(operator: str, values: Floats, weights: Codes, begins: Codes) -> tuple[Any, Mask]:
    """Return a moment of each group of values, and the mask of those that are null.

    >>> single_moment("var_pop", np.array([1.0, 2.0, 4.0]), np.ones(3, int), np.array([0]))[0] * 9
    array([14.])
    """
    column = _Centred.of(values, weights, begins)
    count, square = column.count, column.moment(column)
    scale = 2 * column.exponents
    with np.errstate(all="ignore"):
        match operator:
            case "var_pop" | "stddev_pop":
                result, is_null = over(square, two_product(count, count)), count < 1
            case "var_samp" | "stddev_samp":
                result, is_null = over(square, two_product(count, count - 1)), count < 2
            case _:
                moment = column.third_moment() if operator == "skewness" else column.fourth_moment()
                factor = root(square) if operator == "skewness" else square
                result, scale = over(moment, times(square, factor)), 0 * scale
                is_null = (square[0] == 0) & ~column.is_special
                if operator == "kurtosis":
                    result = plus(result, (-3.0, 0.0))
        if operator.startswith("stddev"):
            result, scale = root(result), column.exponents
        return column.rounded(result, scale), is_null


def double_moment(
    operator: str, columns: tuple[Floats, Floats], weights: Codes, begins: Codes
) -> tuple[Any, Mask]:
    """Return a moment of each group of pairs: of y first, as in `regr_slope(y, x)`."""
    y, x = (_Centred.of(each, weights, begins) for each in columns)
    count, product = x.count, x.moment(y)
    xx, yy, scale = x.moment(x), y.moment(y), x.exponents + y.exponents
    is_null = np.zeros(len(count), np.bool_)
    with np.errstate(all="ignore"):
        match operator:
            case "covar_pop":
                result = over(product, two_product(count, count))
            case "covar_samp":
                result, is_null = over(product, two_product(count, count - 1)), count < 2
            case "corr":
                result, scale = over(product, root(times(xx, yy))), 0 * scale
                is_null = (xx[0] == 0) | (yy[0] == 0)
            case "regr_r2":
                result, scale = over(times(product, product), times(xx, yy)), 0 * scale
                is_flat = yy[0] == 0
                result = np.where(is_flat, 1.0, result[0]), np.where(is_flat, 0.0, result[1])
                is_null = xx[0] == 0
            case "regr_slope":
                result, is_null, scale = over(product, xx), xx[0] == 0, y.exponents - x.exponents
            case "regr_intercept":
                slope_part = times(over(product, xx), x.mean())
                result, scale = plus(y.mean(), negative(slope_part)), y.exponents
                is_null = xx[0] == 0
            case _:
                one = {"regr_sxx": xx, "regr_sxy": product, "regr_syy": yy}[operator]
                result = over(one, (count, 0.0))
                own = {"regr_sxx": 2 * x.exponents, "regr_syy": 2 * y.exponents}
                scale = own.get(operator, scale)
        is_special = x.is_special | y.is_special
        values = np.where(is_special, np.nan, x.rounded(result, scale))
        return values, is_null & ~(is_special & (count > 1))


@dataclass(frozen=True, slots=True)
class _Centred:
    """A column of groups, each times a power of two and less a number near its mean.

    Attributes:
        differences: what is left of each row.
        centres: what each group lost.
        exponents: of the powers that groups were divided by.
        is_special: which groups have an infinity or NaN.
        count: the sum of the weights of each group.
    """

    differences: Pair
    centres: Floats
    exponents: Codes
    is_special: Mask
    count: Floats
    weights: Floats | None
    begins: Codes

    @classmethod
    def of(cls, values: Floats, weights: Codes, begins: Codes) -> "_Centred":
        """Return the column of values."""
        sizes = np.diff(np.append(begins, len(values)))
        owners = np.repeat(np.arange(len(begins)), sizes)
        is_special = np.logical_or.reduceat(~np.isfinite(values), begins)
        finite = np.where(is_special[owners], 0.0, values)
        exponents = np.frexp(np.maximum.reduceat(abs(finite), begins))[1].astype(np.int64)
        scaled = np.ldexp(finite, -exponents[owners])
        count = np.add.reduceat(weights, begins).astype(np.float64)
        factors = None if (weights == 1).all() else weights.astype(np.float64)
        least, most = np.minimum.reduceat(scaled, begins), np.maximum.reduceat(scaled, begins)
        mean = over(_weighted_sum((scaled, np.zeros(1)), factors, begins), (count, 0.0))[0]
        bits = _GRID_BITS - np.frexp(most - least)[1]
        coarse = np.ldexp(np.rint(np.ldexp(mean, bits)), -bits)
        centres = np.where(least == most, most, coarse)
        differences = two_sum(scaled, -centres[owners])
        return cls(differences, centres, exponents, is_special, count, factors, begins)

    def sum_of(self, numbers: Pair) -> Pair:
        """Return Σ w·z."""
        return _weighted_sum(numbers, self.weights, self.begins)

    def moment(self, other: "_Centred") -> Pair:
        """Return M_xy, or M₂ of a column and itself."""
        own, product = self.sum_of(self.differences), times(self.differences, other.differences)
        others = own if other is self else self.sum_of(other.differences)
        scaled = times(self.sum_of(product), (self.count, 0.0))
        return plus(scaled, negative(times(own, others)))

    def third_moment(self) -> Pair:
        """Return M₃."""
        n, one, two, three, _ = self._power_sums(3)
        found = plus(times(n, three), negative(times((3.0, 0.0), times(one, two))))
        return plus(times(n, found), times((2.0, 0.0), times(one, times(one, one))))

    def fourth_moment(self) -> Pair:
        """Return M₄."""
        n, one, two, three, four = self._power_sums(4)
        square = times(one, one)
        found = plus(times(n, four), negative(times((4.0, 0.0), times(one, three))))
        found = plus(times(n, found), times((6.0, 0.0), times(square, two)))
        return plus(times(n, found), negative(times((3.0, 0.0), times(square, square))))

    def _power_sums(self, most: int) -> list[Pair]:
        powers = [self.differences]
        while len(powers) < most:
            powers.append(times(powers[-1], self.differences))
        sums = [self.sum_of(each) for each in powers]
        return [(self.count, 0.0), *sums, *([(0.0, 0.0)] * (4 - most))]

    def mean(self) -> Pair:
        """Return the scaled means."""
        return plus((self.centres, 0.0), over(self.sum_of(self.differences), (self.count, 0.0)))

    def rounded(self, result: Pair, scale: Codes) -> Floats:
        """Return results times powers of two; NaN where a value was special."""
        values = np.ldexp(result[0] + result[1], scale) + 0.0
        return np.where(self.is_special, np.nan, values)


def _weighted_sum(numbers: Pair, weights: Floats | None, begins: Codes) -> Pair:
    parts = numbers
    if weights is not None:
        parts = tuple(part for each in numbers for part in two_product(each, weights))
    used = [each for each in parts if each.any()] or [parts[0]]
    return sum_twice(np.stack(used, axis=1).ravel(), begins * len(used))
