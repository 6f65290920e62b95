"""The codes that a column of a layout holds: a range, and perhaps null.

The codes of one domain are these (`values/domains.py` has the domains):

| code | value |
|---|---|
| 0 | null |
| v + 2^61 + 1 | the integer v, for -2^61 ≤ v < 2^61 |
| from 2^62 + 2 on | integers outside of that, interned |
| from 2^62 + 2^61 on | decimals whose integers do not fit 64 bits, interned |
| 1, 2, … | symbols and floats, all of them interned |

A column holds the codes of a range as distances from its *base*, the code before the first one; the
distance 0 is null. So ids, dates and prices are as narrow as they differ, wherever they begin.
"""

from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int64]

ZERO_CODE: Final = (1 << 61) + 1
"""The code of the integer 0."""

LAST_INLINE_CODE: Final = 1 << 62
"""The last code of integers that are their own codes."""

INTERNED_CODE: Final = (1 << 62) + 2
"""The first code of integers that are not their own codes."""

WIDE_CODE: Final = (1 << 62) + (1 << 61)
"""The first code of integers that do not fit 64 bits."""

CODE_BITS: Final = 63

GROWTH_BITS: Final = 2
"""A range that has to grow gets room for four times its codes: ids grow, and grow again."""


class CodeInterval(NamedTuple):
    """Codes from a least to a greatest one, and null if `has_null`."""

    least: int
    greatest: int
    has_null: bool


class CodeRange(NamedTuple):
    """Codes from `base` + 1 to `base` + 2^`width` - 1, and null if `has_null`.

    A width of 0 is a range without codes: that of a column which has held none so far.
    """

    base: int = 0
    width: int = 0
    has_null: bool = False

    @property
    def last(self) -> int:
        """The last code; there is none from 2^63 on."""
        return min(self.base + (1 << self.width), 1 << CODE_BITS) - 1

    def includes(self, other: "CodeRange") -> bool:
        """Return whether all codes of another range are in this one."""
        if other == self:  # most often, and quick
            return True
        if other.has_null and not self.has_null:
            return False
        return not other.width or (other.base >= self.base and other.last <= self.last)

    def holds(self, codes: Codes) -> bool:
        """Return whether some codes are in this range.

        >>> CodeRange(10, 3).holds(np.array([11, 17])), CodeRange(10, 3).holds(np.array([0, 11]))
        (True, False)
        """
        if not len(codes):
            return True
        # As functions of NumPy, minimum and maximum take twice as long for few codes.
        if self.base < np.minimum.reduce(codes) and np.maximum.reduce(codes) <= self.last:
            return True
        return self.has_null and self.includes(range_of(codes))

    def extend(self, other: "CodeRange", growth: int = 0) -> "CodeRange":
        """Return a range with the codes of both, with room to grow if the range was not empty.

        >>> CodeRange(10, 3).extend(CodeRange(20, 1))
        CodeRange(base=10, width=4, has_null=False)
        """
        has_null = self.has_null or other.has_null
        if self.includes(other) or not other.width:
            return self if self.has_null == has_null else self._replace(has_null=has_null)
        if not self.width:
            return other if other.has_null == has_null else other._replace(has_null=has_null)
        first, last = min(self.base, other.base) + 1, max(self.last, other.last)
        return _place(first, last, growth, other.base < self.base, has_null)


def _place(first: int, last: int, growth: int, is_down: bool, has_null: bool) -> CodeRange:
    """Return a range that has some codes, and room where it has grown or may be expected to."""
    width = min((last - first + 1).bit_length() + growth, CODE_BITS)
    # Beginning at zero, or at the first symbol, is worth a lot and often costs no bit.
    zero = ZERO_CODE - 1 if last >= ZERO_CODE >> 1 else 0
    base = first - 1
    if base > zero and (last - zero).bit_length() <= width:
        base = zero
    elif is_down:
        base = max(last + 1 - (1 << width), 0)
    return CodeRange(base, width, has_null)


def code_range(first: int, last: int) -> CodeRange:
    """Return the range from one code to another, neither of them null.

    >>> code_range(ZERO_CODE + 5, ZERO_CODE + 12) == CodeRange(ZERO_CODE - 1, 4)
    True
    >>> code_range(ZERO_CODE + 500, ZERO_CODE + 502) == CodeRange(ZERO_CODE + 499, 2)
    True
    """
    return _place(first, last, 0, is_down=False, has_null=False)


def range_of(codes: Codes) -> CodeRange:
    """Return the range of some codes."""
    if not len(codes):
        return CodeRange()
    if len(codes) == 1:
        return range_of_code(codes.item())
    first = int(codes.min())
    if first:
        return code_range(first, int(codes.max()))
    codes = codes[codes != 0]
    if not len(codes):
        return CodeRange(has_null=True)
    return code_range(int(codes.min()), int(codes.max()))._replace(has_null=True)


@lru_cache(maxsize=1024)
def range_of_code(code: int) -> CodeRange:
    """Return the range of one code."""
    return code_range(code, code) if code else CodeRange(has_null=True)
