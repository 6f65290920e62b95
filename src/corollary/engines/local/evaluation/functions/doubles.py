"""Functions of floats by one kernel for all engines: exp, log, powers, trigonometry.

Libraries differ in the last digit, and so do processors. Here a value is computed with about 100
bits, as the sum of two floats, and rounded once: what comes out is the nearest float, but for one
value in 2^40 or so.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from corollary.core.types import Type
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
from corollary.engines.local.evaluation.kernels import Kernel, Operand, Result

Floats = npt.NDArray[np.float64]
LN2: Pair = (0.6931471805599453, 2.3190468138462996e-17)
LN10: Pair = (2.302585092994046, -2.1707562233822494e-16)
HALF_PI: Pair = (1.5707963267948966, 6.123233995736766e-17)
HALF_PI_REST = -1.4973849048591698e-33
"""What the pair lacks of half of pi."""

HALVINGS = 9
LARGE_ANGLE = 1e5
"""Larger angles are reduced by integers."""


def _scaled(one: Pair, factor: Any) -> Pair:
    """Return a pair times a power of two."""
    return one[0] * factor, one[1] * factor


# --- exponentials and logarithms -----------------------------------------------------------------


def _expm1_of_small(one: Pair) -> Pair:
    """Return exp(x) - 1 for |x| < 0.4: a series for a part of x, doubled again and again."""
    small = _scaled(one, 0.5**HALVINGS)
    found: Pair = (np.zeros_like(one[0]), np.zeros_like(one[0]))
    for divisor in range(9, 0, -1):  # (((x/9 + 1) x/8 + 1) …) x
        part = times(small, over((1.0, 0.0), (float(divisor), 0.0)))
        found = times(plus(found, (1.0, 0.0)), part)
    for _ in range(HALVINGS):
        found = plus(_scaled(found, 2.0), times(found, found))
    return found


def _reduced(one: Pair) -> tuple[Pair, Any]:
    """Return x - k ln 2, which is small, and k."""
    count = np.rint(one[0] / LN2[0])
    return plus(one, negative(times(LN2, (count, 0.0)))), count


def _exp(one: Pair) -> tuple[Pair, Any]:
    """Return a pair, and the power of two that it is to be multiplied by."""
    rest, count = _reduced(one)
    return plus(_expm1_of_small(rest), (1.0, 0.0)), count.astype(np.int64)


def _rounded(one: Pair, power: Any = 0) -> Floats:
    """Return the float of a pair times a power of two; below the normal ones it is rounded once."""
    # Adding the low part to the last digit that remains keeps a tie from being rounded twice.
    half = np.clip(power, -1000, 1000)
    high = np.ldexp(one[0], half)
    is_small = np.abs(high) < 2.0**-960
    with_sticky = np.where(is_small & (one[1] != 0), np.nextafter(one[0], one[0] + one[1]), one[0])
    found: Floats = np.ldexp(np.ldexp(with_sticky, half), power - half) + 0.0
    return found


def _log1p(one: Pair) -> Pair:
    """Return log(1 + x) by a step of Newton's method from a float that is nearly it."""
    first = np.log1p(one[0])
    rest, count = _reduced((first, np.zeros_like(first)))
    power = np.ldexp(1.0, count.astype(np.int64))
    grown = _scaled(plus(_expm1_of_small(rest), (np.where(count == 0, 0.0, 1.0), 0.0)), power)
    grown = plus(grown, (np.where(count == 0, 0.0, -1.0), 0.0))
    step = over(plus(one, negative(grown)), plus(grown, (1.0, 0.0)))
    return plus((first, 0.0), plus(step, _scaled(times(step, step), -0.5)))


def _log(values: Any) -> Pair:
    """Return the logarithms of positive floats."""
    part, power = np.frexp(values)
    is_low = part < 0.7071067811865476
    part, power = np.where(is_low, part * 2, part), power - is_low
    return plus(times(LN2, (power.astype(np.float64), 0.0)), _log1p((part - 1.0, 0.0 * part)))


def _logarithm(base: Pair | None) -> Callable[[Floats], Floats]:
    def apply(values: Floats) -> Floats:
        is_plain = np.isfinite(values) & (values > 0)
        found = _log(np.where(is_plain, values, 1.0))
        made = _rounded(found if base is None else over(found, base))
        special = np.where(values == 0, -np.inf, np.where(values > 0, values, np.nan))
        return np.where(is_plain, made, special)

    return apply


def _log1p_values(values: Floats) -> Floats:
    is_plain = np.isfinite(values) & (values > -1) & (np.abs(values) > 1e-300)
    safe = np.where(is_plain, values, 0.5)
    is_large = safe > 1e15  # 1 is lost, and x is not small
    made = np.where(is_large, 0.0, _rounded(_log1p((np.where(is_large, 0.5, safe), 0.0 * safe))))
    exact = plus(_log(np.abs(safe)), (1.0 / safe, 0.0))
    special = np.where(values == -1, -np.inf, np.where(values < -1, np.nan, values))
    return np.where(is_plain, np.where(is_large, _rounded(exact), made), special)


def _exp_values(values: Floats) -> Floats:
    return _rounded(*_exp((np.clip(np.nan_to_num(values), -800.0, 800.0), 0.0)))


def _expm1_pair(values: Floats) -> Pair:
    """Return exp(x) - 1 for |x| <= 700."""
    rest, count = _reduced((values, 0.0 * values))
    small, power = _expm1_of_small(rest), np.ldexp(1.0, count.astype(np.int64))
    return plus(_scaled(small, power), two_sum(power, -1.0))


def _expm1_values(values: Floats) -> Floats:
    made = _rounded(_expm1_pair(np.clip(np.nan_to_num(values), -700.0, 700.0)))
    return np.where(
        values > 700, _exp_values(values), np.where(np.abs(values) < 1e-300, values, made)
    )


def _power_values(base: Floats, exponent: Floats) -> Floats:
    """Return powers as Java has them: 1 to the power of NaN or infinity is NaN."""
    with np.errstate(all="ignore"):
        first = np.power(base, exponent)
    is_plain = np.isfinite(base) & np.isfinite(exponent) & (base != 0) & (exponent != 0)
    is_plain &= ~np.isnan(first)
    size = np.where(is_plain, np.abs(base), 1.0)
    log = _log(size)
    factor = np.clip(np.where(is_plain, exponent, 0.0), -1e20, 1e20)
    product = times(log, (factor, 0.0 * factor))
    is_bounded = np.abs(product[0]) < 800.0
    made = _rounded(
        *_exp((np.where(is_bounded, product[0], 0.0), np.where(is_bounded, product[1], 0.0)))
    )
    made = np.where(is_bounded, made, np.where(product[0] > 0, np.inf, 0.0))
    is_open = np.isnan(exponent) | (np.isinf(exponent) & (np.abs(base) == 1.0))
    return np.where(is_open, np.nan, np.where(is_plain, np.copysign(made, first), first))


def _cbrt_values(values: Floats) -> Floats:
    part, power = np.frexp(np.where(np.isfinite(values), values, 0.0))
    third = power // 3
    scaled = np.ldexp(part, power - 3 * third)
    first = np.cbrt(scaled)
    square = two_product(first, first)
    rest = plus((scaled, 0.0), negative(times(square, (first, 0.0))))
    step = np.where(first == 0, 0.0, rest[0] / (3 * np.where(first == 0, 1.0, square[0])))
    return np.where(np.isfinite(values), np.ldexp(first + step, third), values)


def _hypot_values(one: Floats, other: Floats) -> Floats:
    largest = np.maximum(np.abs(one), np.abs(other))
    _, power = np.frexp(np.where(np.isfinite(largest), largest, 1.0))
    a, b = (np.ldexp(np.where(np.isfinite(each), each, 1.0), -power) for each in (one, other))
    found = _rounded(root(plus(two_product(a, a), two_product(b, b))), power)
    is_infinite = np.isinf(one) | np.isinf(other)
    return np.where(is_infinite, np.inf, np.where(np.isnan(largest), np.nan, found))


def _hyperbolic(
    combine: Callable[[Pair, Pair], Pair], far: Callable[[Floats], Floats], *, is_even: bool = False
) -> Callable[[Floats], Floats]:
    """Return a function of exp(x) - 1 and of exp(-x) - 1, given it for large x, too."""

    def apply(values: Floats) -> Floats:
        size = np.abs(values)
        grown = _expm1_pair(np.where(size <= 300, size, 0.0))
        shrunk = negative(over(grown, plus(grown, (1.0, 0.0))))
        made = np.where(size <= 300, _rounded(combine(grown, shrunk)), far(size))
        return made if is_even else np.where(size < 1e-150, values, np.copysign(made, values))

    return apply


def _half_exp(values: Floats) -> Floats:
    pair, power = _exp((np.minimum(np.nan_to_num(values), 800.0), 0.0))
    return np.where(np.isnan(values), np.nan, _rounded(pair, power - 1))


def _area(values: Floats, argument: Callable[[Floats], Pair], largest: float) -> Floats:
    """Return log(1 + t) of a function t of |x|, with the sign of x; log(2 |x|) for large ones."""
    size = np.abs(values)
    near = _rounded(_log1p(argument(np.where(size < largest, size, 0.5))))
    far = _rounded(plus(_log(np.where(size >= largest, np.minimum(size, 1.7e308), 1.0)), LN2))
    made = np.where(size < largest, near, far)
    made = np.where(np.isfinite(values), np.copysign(made, values), values)
    return np.where(size < 1e-150, values, made)


def _asinh_values(values: Floats) -> Floats:
    def argument(size: Floats) -> Pair:
        square = two_product(size, size)
        divisor = plus(root(plus(square, (1.0, 0.0))), (1.0, 0.0))
        return plus((size, 0.0), over(square, divisor))

    return _area(values, argument, 1e10)


def _acosh_values(values: Floats) -> Floats:
    def argument(size: Floats) -> Pair:
        more = two_sum(np.maximum(size, 1.0), -1.0)
        return plus(more, root(plus(_scaled(more, 2.0), times(more, more))))

    return np.where(values < 1, np.nan, _area(values, argument, 1e10))


def _atanh_values(values: Floats) -> Floats:
    is_inside = np.abs(values) < 1
    safe = np.where(is_inside & (np.abs(values) > 1e-150), values, 0.5)
    found = _log1p(over((2 * safe, 0.0 * safe), two_sum(1.0, -safe)))
    made = np.where(np.abs(values) > 1e-150, _rounded(_scaled(found, 0.5)), values)
    edge = np.where(np.abs(values) == 1, np.copysign(np.inf, values), np.nan)
    return np.where(is_inside, made, edge)


# --- trigonometry --------------------------------------------------------------------------------


@cache
def _half_pi() -> Fraction:
    """Return half of pi with enough digits for the largest angle, by Machin's formula."""
    unit = 10**400

    def arctangent(inverse: int) -> int:
        term = total = unit // inverse
        place = 1
        while term:
            term //= -(inverse**2)
            place += 2
            total += term // place
        return total

    return Fraction(8 * arctangent(5) - 2 * arctangent(239), unit)


def _reduce_large(value: float) -> tuple[float, float, int]:
    """Return a large angle modulo half of pi, and how often that is in it, modulo 4."""
    quarter, angle = _half_pi(), Fraction(value)
    count = round(angle / quarter)
    rest = angle - count * quarter
    high = float(rest)
    return high, float(rest - Fraction(high)), count % 4


def _reduce_angle(values: Floats) -> tuple[Pair, Any]:
    """Return angles modulo half of pi, and how often that is in them, modulo 4."""
    safe = np.where(np.abs(values) <= LARGE_ANGLE, values, 0.0)
    count = np.rint(safe / HALF_PI[0])
    whole = times(HALF_PI, (count, 0.0))
    high, low = plus(plus((safe, 0.0), negative(whole)), (-count * HALF_PI_REST, 0.0))
    quarter = count.astype(np.int64) % 4
    for at in np.flatnonzero((np.abs(values) > LARGE_ANGLE) & np.isfinite(values)):
        high[at], low[at], quarter[at] = _reduce_large(float(values[at]))
    return (high, low), quarter


def _series(square: Pair, first: int) -> Pair:
    """Return 1 - x²/(n+1)(n+2) + …, which is sin(x)/x for n = 1 and cos(x) for n = 0."""
    found: Pair = (np.ones_like(square[0]), np.zeros_like(square[0]))
    for place in range(first + 26, first, -2):
        part = times(square, over((-1.0, 0.0), (float(place * (place - 1)), 0.0)))
        found = plus((1.0, 0.0), times(found, part))
    return found


def _sine_and_cosine(values: Floats) -> tuple[Pair, Pair]:
    angle, quarter = _reduce_angle(values)
    square = times(angle, angle)
    sine, cosine = times(angle, _series(square, 1)), _series(square, 0)
    is_odd = quarter % 2 == 1
    one = tuple(np.where(is_odd, c, s) for s, c in zip(sine, cosine, strict=True))
    two = tuple(np.where(is_odd, s, c) for s, c in zip(sine, cosine, strict=True))
    signs = np.where(quarter >= 2, -1.0, 1.0), np.where((quarter == 1) | (quarter == 2), -1.0, 1.0)
    return _scaled((one[0], one[1]), signs[0]), _scaled((two[0], two[1]), signs[1])


def _of_angle(
    combine: Callable[[Pair, Pair], Pair], tiny: Callable[[Floats], Any]
) -> Callable[[Floats], Floats]:
    """Return a function of the sine and the cosine, given it for tiny angles, too."""

    def apply(values: Floats) -> Floats:
        made = _rounded(combine(*_sine_and_cosine(values)))
        made = np.where(np.abs(values) < 1e-150, tiny(values), made)
        return np.where(np.isfinite(values), made, np.nan)

    return apply


def _angle(height: Pair, width: Pair) -> Floats:
    """Return the angle of a point: a float that is nearly it, and how far that is off."""
    first = np.arctan2(height[0], width[0])
    sine, cosine = _sine_and_cosine(first)
    across = plus(times(height, cosine), negative(times(width, sine)))
    along = plus(times(width, cosine), times(height, sine))
    found: Floats = np.where(along[0] > 0, first + across[0] / along[0], first)
    return found


def _atan2_values(height: Floats, width: Floats) -> Floats:
    first = np.arctan2(height + 0.0, width + 0.0)
    is_plain = np.isfinite(height) & np.isfinite(width) & (height != 0)
    _, power = np.frexp(np.where(is_plain, np.maximum(np.abs(height), np.abs(width)), 1.0))
    up, along = (np.ldexp(np.where(is_plain, each, 1.0), -power) for each in (height, width))
    is_plain &= np.abs(up) > 1e-150
    return np.where(is_plain, _angle((up, 0.0 * up), (along, 0.0 * along)), first)


def _asin_values(values: Floats) -> Floats:
    safe = np.where(np.abs(values) <= 1, values, 0.0)
    made = _angle((safe, 0.0 * safe), root(times(two_sum(1.0, -safe), two_sum(1.0, safe))))
    made = np.where(np.abs(safe) < 1e-150, safe, made)
    return np.where(np.abs(values) <= 1, made, np.nan)


def _acos_values(values: Floats) -> Floats:
    safe = np.where(np.abs(values) <= 1, values, 0.0)
    height = root(times(two_sum(1.0, -safe), two_sum(1.0, safe)))
    return np.where(np.abs(values) <= 1, _angle(height, (safe, 0.0 * safe)), np.nan)


def _inverse(one: Pair) -> Pair:
    return over((np.ones_like(one[0]), np.zeros_like(one[0])), one)


LEAST_ARGUMENTS = {"ln": 0.0, "log2": 0.0, "log10": 0.0, "log1p": -1.0}
"""The logarithms are of larger numbers."""


def _kernel(name: str) -> Kernel:
    def apply(operands: list[Operand], type_: Type) -> Result:  # noqa: ARG001 - one shape for all
        arguments = [values for values, _ in operands]
        undefined = arguments[0] <= LEAST_ARGUMENTS.get(name, -np.inf)
        with np.errstate(all="ignore"):
            found = FUNCTIONS[name](*arguments)
        if name not in LEAST_ARGUMENTS or not undefined.any():
            return found, []
        return found, [(undefined, "undefined logarithm")]

    return apply


FUNCTIONS: dict[str, Callable[..., Floats]] = {
    "exp": lambda values: np.where(np.isnan(values), values, _exp_values(values)),
    "expm1": lambda values: np.where(np.isnan(values), values, _expm1_values(values)),
    "ln": _logarithm(None),
    "log2": _logarithm(LN2),
    "log10": _logarithm(LN10),
    "log1p": _log1p_values,
    "power": _power_values,
    "cbrt": _cbrt_values,
    "hypot": _hypot_values,
    "sinh": _hyperbolic(
        lambda grown, shrunk: _scaled(plus(grown, negative(shrunk)), 0.5),
        _half_exp,
    ),
    "cosh": _hyperbolic(
        lambda grown, shrunk: plus(_scaled(plus(grown, shrunk), 0.5), (1.0, 0.0)),
        _half_exp,
        is_even=True,
    ),
    "tanh": _hyperbolic(
        lambda grown, shrunk: over(
            plus(grown, negative(shrunk)), plus(plus(grown, shrunk), (2.0, 0.0))
        ),
        np.sign,
    ),
    "asinh": _asinh_values,
    "acosh": _acosh_values,
    "atanh": _atanh_values,
    "sin": _of_angle(lambda sine, _: sine, lambda angle: angle),
    "cos": _of_angle(lambda _, cosine: cosine, np.ones_like),
    "tan": _of_angle(over, lambda angle: angle),
    "cot": _of_angle(lambda sine, cosine: over(cosine, sine), lambda angle: 1.0 / angle),
    "sec": _of_angle(lambda _, cosine: _inverse(cosine), np.ones_like),
    "csc": _of_angle(lambda sine, _: _inverse(sine), lambda angle: 1.0 / angle),
    "asin": _asin_values,
    "acos": _acos_values,
    "atan": lambda values: _atan2_values(values, np.ones_like(values)),
    "atan2": _atan2_values,
}
DOUBLE_FUNCTIONS = {name: _kernel(name) for name in FUNCTIONS}
