"""Exact sums of the values of groups, by vectors.

Integers are summed in two parts, of the upper and of the lower 32 bits: sum = high · 2^32 + low.

A float is an integer times 2^-1074, whose digits to the base 2^32 are all zero but for three
neighbours, those of its mantissa; the first of these is at the float's *place*. Digits are summed
place by place, then carried, and the number is rounded once, half to even. All of this is additive:
differences of digits can be summed as well.

| float | mantissa | place | digits from the place on |
|---|---|---|---|
| 1.5 | 3 · 2^51, 1022 = 31 · 32 + 30 bits above 2^-1074 | 31 | 0, 0, 3 · 2^17 |
| 2^-1074 | 1 | 0 | 1, 0, 0 |
"""

import math
import struct
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.values.native import NativeArray

DIGIT_BITS = 32
DIGIT_MASK = (1 << DIGIT_BITS) - 1

DIGITS_PER_FLOAT = 3
"""A mantissa has 53 bits, and begins anywhere in its first digit."""

MANTISSA_BITS = 53
LEAST_EXPONENT = 1074
"""Floats are multiples of two to minus this."""

_FLOAT, _BITS = struct.Struct("<d"), struct.Struct("<q")

Floats = npt.NDArray[np.float64]


def sum_integers(values: NativeArray, begins: Codes) -> tuple[Codes, Codes]:
    """Return the sums of groups as parts: high · 2^32 + low, with 0 ≤ low < 2^32.

    Neither part can overflow 64 bits below 2^31 values.
    """
    high = np.add.reduceat((values >> DIGIT_BITS).astype(np.int64), begins)
    low = np.add.reduceat((values & DIGIT_MASK).astype(np.int64), begins)
    high += low >> DIGIT_BITS
    low &= DIGIT_MASK
    return high, low


def float_digits(values: Floats) -> tuple[Codes, list[Codes]]:
    """Return the places of finite floats, and their digits from there on, with the float's sign.

    >>> places, digits = float_digits(np.array([1.5]))
    >>> int(places[0]), [int(digit[0]) >> 17 for digit in digits]
    (31, [0, 0, 3])
    """
    bits = np.ascontiguousarray(values).view(np.int64)
    exponent = bits >> (MANTISSA_BITS - 1) & 0x7FF
    mantissa = bits & ((1 << (MANTISSA_BITS - 1)) - 1)
    mantissa |= (exponent > 0).astype(np.int64) << (MANTISSA_BITS - 1)
    position = np.maximum(exponent, 1) - 1
    places, shift = position // DIGIT_BITS, position % DIGIT_BITS
    low = (mantissa & DIGIT_MASK) << shift
    high = ((mantissa >> DIGIT_BITS) << shift) + (low >> DIGIT_BITS)
    sign = np.where(bits < 0, -1, 1)
    digits = [(low & DIGIT_MASK) * sign, (high & DIGIT_MASK) * sign, (high >> DIGIT_BITS) * sign]
    return places, digits


def split_float(value: float) -> tuple[int, list[int]]:
    """Return the place of one finite float, and its digits from there on.

    >>> place, digits = split_float(-1.5)
    >>> place, [digit / 2**17 for digit in digits]
    (31, [0.0, 0.0, -3.0])
    """
    (bits,) = _BITS.unpack(_FLOAT.pack(value))
    exponent = bits >> (MANTISSA_BITS - 1) & 0x7FF
    mantissa = bits & ((1 << (MANTISSA_BITS - 1)) - 1)
    mantissa |= (exponent > 0) << (MANTISSA_BITS - 1)
    place, shift = divmod(max(exponent, 1) - 1, DIGIT_BITS)
    mantissa <<= shift
    sign = -1 if bits < 0 else 1
    return place, [
        (mantissa >> at * DIGIT_BITS & DIGIT_MASK) * sign for at in range(DIGITS_PER_FLOAT)
    ]


def join_digits(digits: Iterable[tuple[int, int]]) -> float:
    """Return the float nearest to the number that has some digits at places.

    >>> place, digits = split_float(0.1)
    >>> join_digits(enumerate(digits, place))
    0.1
    """
    total = sum(digit << place * DIGIT_BITS for place, digit in digits)
    try:
        return total / (1 << LEAST_EXPONENT)  # rounded half to even, as all quotients of integers
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def sum_floats(values: Floats, begins: Codes) -> Floats:
    """Return the correctly rounded sums of groups; infinities and NaN by IEEE, no -0.0."""
    is_finite = np.isfinite(values)
    has_special = not is_finite.all()
    finite = np.where(is_finite, values, 0.0) if has_special else values
    sums = round_digits(*_group_digits(finite, begins))
    if has_special:
        with np.errstate(invalid="ignore"):
            special = np.add.reduceat(np.where(is_finite, 0.0, values), begins)
        sums = np.where(special == 0, sums, special)
    return sums


def sum_twice(values: Floats, begins: Codes) -> tuple[Floats, Floats]:
    """Return the sums of groups of finite floats, correctly rounded, and what that leaves out.

    >>> sum_twice(np.array([1.0, 2.0**-80]), np.array([0]))[1].tolist() == [2.0**-80]
    True
    """
    totals, first = _group_digits(values, begins)
    sums = round_digits(totals, first)
    places, digits = float_digits(sums)
    rest = np.concatenate([totals, np.zeros((DIGITS_PER_FLOAT, len(begins)), np.int64)])
    for at, digit in enumerate(digits, -first):
        groups = digit.nonzero()[0]
        rest[places[groups] + at, groups] -= digit[groups]
    return sums, round_digits(rest, first)


def _group_digits(values: Floats, begins: Codes) -> tuple[Any, int]:
    return sum_digits(values, lambda digit: np.add.reduceat(digit, begins), len(begins))


def sum_digits(values: Floats, sums_of: Callable[[Codes], Codes], count: int) -> tuple[Any, int]:
    """Return a row for each place, from the one that is returned on, with sums of the digits there.

    Args:
        values: finite floats.
        sums_of: returns sums of some of the integers that it is given.
        count: how many.
    """
    places, digits = float_digits(values)
    first, last = int(places.min()), int(places.max())
    totals = np.zeros((last - first + DIGITS_PER_FLOAT, count), np.int64)
    for place in np.unique(places).tolist():
        own = places == place
        for at, digit in enumerate(digits):
            totals[place - first + at] += sums_of(np.where(own, digit, 0))
    return totals, first


def round_digits(digits: Any, first: int) -> Floats:
    """Return numbers as floats, rounded half to even.

    Args:
        digits: an array of a row for each place, from the `first` on, and a column for each number;
            digits may be of any size and sign.
        first: the place of the first row.
    """
    count = digits.shape[1]
    rows = [np.zeros(count, np.int64), np.zeros(count, np.int64)]  # below the first place
    rows += [row.copy() for row in digits]
    rows += [np.zeros(count, np.int64), np.zeros(count, np.int64)]
    is_negative = _carry(rows) < 0
    for row in rows:
        np.negative(row, where=is_negative, out=row)
    _carry(rows)
    matrix = np.stack(rows)
    # The first digit that is not 0, the two after it, and whether anything follows.
    top = len(rows) - 1 - np.argmax(matrix[::-1] != 0, axis=0)
    top = np.maximum(top, 2)
    columns = np.arange(count)
    one, two, three = (matrix[top - at, columns].astype(np.uint64) for at in range(3))
    before = np.cumsum(matrix != 0, axis=0)
    has_rest = (top > 2) & (before[np.maximum(top - 3, 0), columns] > 0)
    # 64 bits whose highest is set, unless the number is 0.
    length = _bit_length(one)
    gap = np.uint64(DIGIT_BITS) - length
    word = (one << np.uint64(DIGIT_BITS) | two) << gap | three >> length
    has_rest |= (three & ((np.uint64(1) << length) - np.uint64(1))) != 0
    mantissa = word >> np.uint64(64 - MANTISSA_BITS)
    rest = word & np.uint64((1 << (64 - MANTISSA_BITS)) - 1)
    half = np.uint64(1 << (63 - MANTISSA_BITS))
    mantissa += (rest > half) | ((rest == half) & (has_rest | (mantissa & np.uint64(1) > 0)))
    # Rows have two places below the first one; the word ends `gap` bits before its second digit.
    exponent = DIGIT_BITS * (top - 3 + first) - gap.astype(np.int64) - LEAST_EXPONENT
    exponent += 64 - MANTISSA_BITS
    with np.errstate(over="ignore"):
        result: Floats = np.ldexp(mantissa.astype(np.float64), exponent)
    return np.where(is_negative, -result, result)


def _carry(rows: list[Codes]) -> Codes:
    """Make all digits but the last non-negative and less than the base; return the last ones."""
    for low, high in pairwise(rows):
        high += low >> DIGIT_BITS
        low &= DIGIT_MASK
    return rows[-1]


def _bit_length(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the number of bits of integers below 2^32."""
    # These are floats without rounding, whose exponents are the numbers of bits.
    return np.frexp(values.astype(np.float64))[1].astype(np.uint64)
