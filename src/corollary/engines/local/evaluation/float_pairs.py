"""Numbers of about 100 bits as sums of two floats.

See Dekker, A floating-point technique for extending the available precision (1971): nothing is
needed but `+`, `-` and `*` of IEEE 754.

| here | there |
|---|---|
| `Pair` (high, low) | a double-length number z + zz |
| `two_sum`, `two_product` | the exact sum and product of two floats |
"""

from typing import Any

import numpy as np

Pair = tuple[Any, Any]
"""Numbers as sums of two floats, the second at most half a unit in the last place of the first."""

_SPLITTER = 2.0**27 + 1


def two_sum(one: Any, two: Any) -> Pair:
    """Return the exact sum of two floats."""
    total = one + two
    part = total - one
    return total, (one - (total - part)) + (two - part)


def two_product(one: Any, two: Any) -> Pair:
    """Return the exact product of two floats."""
    product = one * two
    (a, b), (c, d) = _split(one), _split(two)
    return product, b * d - (((product - a * c) - b * c) - a * d)


def _split(number: Any) -> Pair:
    upper = _SPLITTER * number
    upper = upper - (upper - number)
    return upper, number - upper


def plus(one: Pair, two: Pair) -> Pair:
    """Return the sum of two pairs; what cancels out loses no digits."""
    total, rest = two_sum(one[0], two[0])
    lower, least = two_sum(one[1], two[1])
    total, rest = two_sum(total, rest + lower)
    return two_sum(total, rest + least)


def negative(one: Pair) -> Pair:
    """Return a pair with the other sign."""
    return -one[0], -one[1]


def times(one: Pair, two: Pair) -> Pair:
    """Return the product of two pairs."""
    product, rest = two_product(one[0], two[0])
    return two_sum(product, rest + (one[0] * two[1] + one[1] * two[0]))


def over(one: Pair, two: Pair) -> Pair:
    """Return the quotient of two pairs."""
    first = one[0] / two[0]
    rest = plus(one, negative(times((first, 0.0), two)))
    second = rest[0] / two[0]
    rest = plus(rest, negative(times((second, 0.0), two)))
    total, lower = two_sum(first, second)
    return two_sum(total, lower + rest[0] / two[0])


def root(one: Pair) -> Pair:
    """Return the square root of a pair."""
    first = np.sqrt(one[0])
    rest = plus(one, negative(two_product(first, first)))
    is_zero = first == 0
    return two_sum(first, np.where(is_zero, 0.0, rest[0] / np.where(is_zero, 1.0, 2 * first)))
