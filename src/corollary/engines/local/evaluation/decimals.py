"""Arithmetic of decimals: exact, with 64-bit integers wherever these are enough.

The integers of decimals are an array of int64 or, where one does not fit, of Python's integers;
so are results. NumPy's operators compute with both, only the latter are slow. Rows are told apart
by the size of what they compute: a few large values do not slow down the others.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from corollary.core.arrow_buffers import LEAST_INTEGER
from corollary.core.types import DECIMAL_BOUND, Type
from corollary.engines.local.storage.layout import Mask
from corollary.engines.local.values.native import NativeArray, narrow_integers

SMALL_BITS = 62
"""Integers of fewer bits can be added, doubled or negated as int64."""

EXACT_FLOAT_DIGITS = 22
"""Powers of ten up to this one are floats without rounding."""

Operand = tuple[Any, Type]


def round_half_up(numerator: int, denominator: int) -> int:
    """Return the quotient of two integers, rounded half away from zero.

    >>> round_half_up(25, 10), round_half_up(-25, 10), round_half_up(24, 10)
    (3, -3, 2)
    """
    sign = -1 if (numerator < 0) != (denominator < 0) else 1
    quotient, rest = divmod(abs(numerator), abs(denominator))
    return sign * (quotient + (2 * rest >= abs(denominator)))


def rescale(values: NativeArray, digits: int) -> NativeArray:
    """Return integers times a power of ten."""
    if not digits:
        return values
    unit = 10**digits
    small = 1 << SMALL_BITS
    if values.dtype != object and unit < small and unit * _magnitude(values) < small:
        values = values.astype(np.int64)
        values *= unit
        return values
    values = values.astype(object)
    values *= unit
    return values


def round_units(values: NativeArray, unit: int) -> NativeArray:
    """Return integers divided by a power of ten, rounded half away from zero.

    >>> round_units(np.array([25, -25, 24]), 10)
    array([ 3, -3,  2])
    """
    if unit == 1:
        return values
    quotient, rest = _divided(values, unit)
    quotient += rest >= unit - rest
    return np.where(values < 0, -quotient, quotient)


def _divided(values: NativeArray, unit: int) -> tuple[NativeArray, NativeArray]:
    """Return the absolute values of integers divided by a power of ten, and the rests."""
    sizes = abs(values.astype(object) if unit >= 1 << SMALL_BITS else values)
    return sizes // unit, sizes % unit


def compute(name: str, operands: list[Operand], scale: int) -> tuple[NativeArray, Mask, Mask]:
    """Return sums, differences, products or quotients of some scale.

    Returns:
        the values, the mask of those that are too large, and that of divisions by zero.
    """
    one, two = (rescale(values, scale - type_.scale) for values, type_ in operands)
    zero = np.zeros(len(one), np.bool_)
    unit = 10**scale
    if name == "/":
        zero = np.asarray(two == 0, np.bool_)
        two = np.where(zero, 1, two)
        values = _split(_divide(unit), one, two, 4 * unit)
    elif name == "*":
        values = _split(lambda a, b: round_units(a * b, unit), one, two, two)
    else:
        values = _join(one, two, np.add if name == "+" else np.subtract)
    return (*bounded(values), zero)


def product(one: NativeArray, two: NativeArray, digits: int) -> NativeArray:
    """Return products of integers without their last digits, rounded half away from zero.

    >>> product(np.array([15, 25]), np.array([3, -3]), 1)
    array([ 5, -8])
    """
    one = rescale(one, max(-digits, 0))
    unit = 10 ** max(digits, 0)
    return _split(lambda a, b: round_units(a * b, unit), one, two, two)


def quotient(one: NativeArray, two: NativeArray, digits: int) -> NativeArray:
    """Return quotients of integers with more digits, or fewer, rounded half away from zero.

    >>> quotient(np.array([1, -1]), np.array([3, 8]), 2)
    array([ 33, -13])
    """
    two = rescale(two, max(-digits, 0))
    unit = 10 ** max(digits, 0)
    return _split(_divide(unit), one, two, 4 * unit)


def bounded(values: NativeArray, bound: int = DECIMAL_BOUND) -> tuple[NativeArray, Mask]:
    """Return values, and the mask of those that have too many digits for a decimal."""
    if values.dtype != object and _magnitude(values) < bound:
        return values, np.zeros(len(values), np.bool_)
    too_large = np.asarray(abs(values) >= bound, np.bool_)
    return narrow_integers(np.where(too_large, 0, values)), too_large


def _divide(unit: int) -> Callable[..., Any]:
    def apply(one: NativeArray, two: NativeArray) -> Any:
        sign = np.where((one < 0) != (two < 0), -1, 1)
        divisor = abs(two)
        return sign * ((2 * abs(one) * unit + divisor) // (2 * divisor))

    return apply


def _join(one: NativeArray, two: NativeArray, function: Any) -> NativeArray:
    """Apply a sum or difference, which int64 has room for if both operands are small."""
    small = 1 << SMALL_BITS
    is_small = object not in (one.dtype, two.dtype)
    if not is_small or max(_magnitude(one), _magnitude(two)) >= small:
        one, two = one.astype(object), two.astype(object)
    result: NativeArray = function(one, two)
    return narrow_integers(result)


def _split(
    function: Callable[..., Any], one: NativeArray, two: NativeArray, factor: NativeArray | int
) -> NativeArray:
    """Apply a function with int64 where one times a factor is small, and two is; else exactly."""
    small = 1 << (SMALL_BITS - 1)
    largest = factor if isinstance(factor, int) else _magnitude(factor)
    is_plain = object not in (one.dtype, two.dtype)
    if isinstance(factor, int):
        is_plain &= factor < small
    if is_plain and _magnitude(two) < small and _magnitude(one) * largest < small:
        plain: NativeArray = function(one, two)
        return plain
    # As floats, which is quick; their rounding is far below the room that is left.
    size = abs(two.astype(np.float64))
    product = abs(one.astype(np.float64)) * (float(factor) if isinstance(factor, int) else size)
    is_small = (product < small) & (size < small) & is_plain
    values = np.zeros(len(one), np.int64)
    if is_small.any():
        values[is_small] = function(one[is_small], two[is_small])
    rest = ~is_small
    large = narrow_integers(function(one[rest].astype(object), two[rest].astype(object)))
    if large.dtype == object:
        values = values.astype(object)
    values[rest] = large
    return values


def align(operands: list[Operand], scale: int) -> list[NativeArray]:
    """Return the integers of decimals in one scale."""
    return [rescale(values, scale - type_.scale) for values, type_ in operands]


def to_integers(values: NativeArray, scale: int) -> NativeArray:
    """Return decimals without their fractions."""
    quotient, _ = _divided(values, 10**scale)
    return narrow_integers(np.where(values < 0, -quotient, quotient))


def to_floats(values: NativeArray, scale: int) -> NativeArray:
    """Return decimals as floats, correctly rounded."""
    if values.dtype != object and scale <= EXACT_FLOAT_DIGITS:
        is_exact = abs(values) < 1 << 53
        result = values / 10.0**scale
        if is_exact.all():
            return result
        rest = (~is_exact).nonzero()[0]
    else:
        result, rest = np.empty(len(values), np.float64), np.arange(len(values))
    # The quotient of two integers is correctly rounded in Python.
    result[rest] = [each / 10**scale for each in values[rest].tolist()]
    return result


def to_decimals(values: NativeArray, source: Type, target: Type) -> tuple[NativeArray, Mask]:
    """Return numbers as decimals of a type, and the mask of those that are too large."""
    scale, bound = target.scale, 10**target.precision
    if values.dtype == np.uint64 or (values.dtype == np.int64 and (values == LEAST_INTEGER).any()):
        values = narrow_integers(values.astype(object))
    before = source.scale if source.is_decimal else 0
    if before > scale:
        return bounded(narrow_integers(round_units(values, 10 ** (before - scale))), bound)
    return bounded(narrow_integers(rescale(values, scale - before)), bound)


def _magnitude(values: NativeArray) -> int:
    """Return the largest absolute value."""
    return max(abs(int(values.min())), abs(int(values.max()))) if len(values) else 0
