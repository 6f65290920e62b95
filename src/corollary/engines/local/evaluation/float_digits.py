"""Exact sums of floats: their digits by place, and the float nearest to the sum of digits.

A finite float is ±m·2^(s − 1074) with an integer m < 2⁵³ and 0 ≤ s ≤ 2045. The digits of 32 bits of
m·2^s are at the places s div 32 and the two after it, each with the sign of the float.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from corollary.core.totals import ALL_PLACES, FLOAT_PLACES, WORD_BITS, SpecialPlace

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

DIGIT_MASK = (1 << WORD_BITS) - 1
FRACTION_BITS = 52
MANTISSA_BITS = FRACTION_BITS + 1
EXPONENT_MASK = 0x7FF
LEAST_EXPONENT = -1074
"""The least positive float is 2 to this."""

CHUNK_GROUPS = 1 << 14
"""The number of groups whose digits are in memory as a matrix at a time."""


@dataclass(frozen=True, slots=True)
class DigitRows:
    """Some rows with a digit each, and the place of the digit."""

    rows: Integers
    places: Integers
    digits: Integers


def split_digits(values: Floats) -> list[DigitRows]:
    """Return the digits of floats that are not 0, and a 1 at its place for each NaN and infinity.

    >>> [each.digits.tolist() for each in split_digits(np.array([-(2.0**-1042), 1e-323]))]
    [[0, 2], [-1, 0], [0, 0]]
    """
    bits = np.ascontiguousarray(values).view(np.int64)
    exponents = (bits >> FRACTION_BITS) & EXPONENT_MASK
    found = _special_rows(values, exponents == EXPONENT_MASK)
    (rows,) = np.nonzero(exponents != EXPONENT_MASK)
    bits, exponents = bits[rows], exponents[rows]
    is_normal = exponents != 0
    mantissas = bits & ((1 << FRACTION_BITS) - 1)
    mantissas |= is_normal.astype(np.int64) << FRACTION_BITS
    shifts = exponents - is_normal
    signs = np.where(bits < 0, -1, 1)
    places, offsets = shifts // WORD_BITS, shifts % WORD_BITS
    # Below 2⁶³: the lower word moved by at most 31 bits; the upper one has 21 bits.
    lower = (mantissas & DIGIT_MASK) << offsets
    upper = ((mantissas >> WORD_BITS) << offsets) + (lower >> WORD_BITS)
    digits = (lower & DIGIT_MASK, upper & DIGIT_MASK, upper >> WORD_BITS)
    three = [DigitRows(rows, places + at, signs * digit) for at, digit in enumerate(digits)]
    return [*three, *found]


def _special_rows(values: Floats, is_special: npt.NDArray[np.bool_]) -> list[DigitRows]:
    if not is_special.any():
        return []
    tests = {
        SpecialPlace.NAN: np.isnan(values),
        SpecialPlace.INFINITY: values == np.inf,
        SpecialPlace.NEGATIVE_INFINITY: values == -np.inf,
    }
    found = [(place, np.flatnonzero(test)) for place, test in tests.items()]
    return [
        DigitRows(rows, np.full(len(rows), place, np.int64), np.ones(len(rows), np.int64))
        for place, rows in found
    ]


def join_digits(owners: Integers, places: Integers, digits: Integers, groups: int) -> Floats:
    """Return the float nearest to each group's sum of digits; ties go to the even one.

    Args:
        owners: the group of each row, ascending.
        places: the place of each row; a group has at most one row for a place.
        digits: the sum of digits at that place.
        groups: the number of groups.
    """
    results = np.empty(groups, np.float64)
    for first in range(0, groups, CHUNK_GROUPS):
        size = min(CHUNK_GROUPS, groups - first)
        low, high = np.searchsorted(owners, [first, first + size])
        part = slice(low, high)
        matrix = np.zeros((ALL_PLACES, size), np.int64)
        matrix[places[part], owners[part] - first] = digits[part]
        results[first : first + size] = _round(matrix)
    return results


def _round(matrix: Integers) -> Floats:
    """Return the floats nearest to columns of digits, the least significant first."""
    digits = matrix[:FLOAT_PLACES]
    is_negative = _carry(digits) < 0
    if is_negative.any():
        digits[:, is_negative] *= -1
        _carry(digits)
    is_set = digits != 0
    top = FLOAT_PLACES - 1 - is_set[::-1].argmax(axis=0)
    columns = np.arange(digits.shape[1])
    first, second, third = (
        np.where(top >= at, digits[np.maximum(top - at, 0), columns], 0) for at in range(3)
    )
    # The first digit and the 64 bits after it have at least the 54 bits that decide, except for
    # whether anything follows them.
    width = np.frexp(first.astype(np.float64))[1].astype(np.int64)
    after = second.astype(np.uint64) << np.uint64(WORD_BITS) | third.astype(np.uint64)
    dropped = (64 - MANTISSA_BITS + width).astype(np.uint64)
    mantissa = first << (MANTISSA_BITS - width) | (after >> dropped).astype(np.int64)
    rest = after & ((np.uint64(1) << dropped) - np.uint64(1))
    half = np.uint64(1) << (dropped - np.uint64(1))
    has_more = is_set.argmax(axis=0) < top - 2
    is_odd = (mantissa & 1) == 1
    mantissa += (rest > half) | ((rest == half) & (has_more | is_odd))
    exponent = top * WORD_BITS + width - MANTISSA_BITS + LEAST_EXPONENT
    with np.errstate(over="ignore"):
        results = np.ldexp(mantissa.astype(np.float64), exponent.astype(np.int32))
    return _with_specials(np.where(is_negative, -results, results), matrix)


def _carry(digits: Integers) -> Integers:
    """Bring all digits but the last to 0 … 2³² − 1, in place; return the last: it has the sign."""
    carry = np.zeros(digits.shape[1], np.int64)
    for at in range(len(digits) - 1):
        digit = digits[at] + carry
        digits[at] = digit & DIGIT_MASK
        carry = digit >> WORD_BITS
    digits[-1] += carry
    last: Integers = digits[-1]
    return last


def _with_specials(sums: Floats, matrix: Integers) -> Floats:
    """Return the sums with those of groups that have a NaN or an infinity, by IEEE."""
    nan, plus, minus = (matrix[place] > 0 for place in list(SpecialPlace)[:3])
    sums[plus], sums[minus] = np.inf, -np.inf
    sums[nan | (plus & minus)] = np.nan
    return sums
