"""Running totals: what is kept of a group so that a changed tuple need not aggregate it anew.

All totals are sums over the assignments of a group, so that a change is added to them.

| operator | of | columns after the keys |
|---|---|---|
| `count`, `sum` | integers, decimals | n, the number of assignments; the words of each exact sum |
| `mean` | integers, decimals | n, the number of assignments with a term; the words |
| `sum`, `mean` | floats | place, digit; a row for each place, one of which holds n |

**Words.** A value v of 64 bits is v₁·2³² + v₀ with 0 ≤ v₀ < 2³². Its sum is kept as Σv₁ and Σv₀,
neither of which can overflow 64 bits below 2³¹ assignments. A value of 128 bits has four words.

**Digits.** A float is a multiple of 2⁻¹⁰⁷⁴. Value·2¹⁰⁷⁴ is an integer of at most 2,098 bits, of
which at most 53 in a row count: three digits of 32 bits, each with the sign of the value, say them.
The sum of the digits at each place is exact, and is rounded once, when the total is read.
"""

from collections.abc import Sequence
from enum import IntEnum

from corollary.core.types import Type

WORD_BITS = 32
"""The number of bits of a word of an integer, and of a digit of a float."""

FLOAT_PLACES = 67
"""The number of places of digits: those of the largest float, and one for carries."""


class SpecialPlace(IntEnum):
    """The places of `a•digits` that hold counts instead of digits."""

    NAN = FLOAT_PLACES
    INFINITY = FLOAT_PLACES + 1
    NEGATIVE_INFINITY = FLOAT_PLACES + 2
    COUNT = FLOAT_PLACES + 3


ALL_PLACES = FLOAT_PLACES + len(SpecialPlace)
"""The number of places that rows of `a•digits` may have."""


def word_count(type_: Type) -> int:
    """Return the number of words of a value of a type that is represented by integers.

    >>> from corollary.core.types import NUMBER, decimal
    >>> word_count(NUMBER), word_count(decimal(38, 2))
    (2, 4)
    """
    return 4 if type_.is_long_decimal else 2


def word_slices(values: Sequence[int], terms: Sequence[Type]) -> dict[int | None, slice]:
    """Return where the words of aggregated columns are among the totals; None: where n is.

    >>> from corollary.core.types import NUMBER
    >>> word_slices([3, 5], [NUMBER, NUMBER])
    {None: slice(0, 1, None), 3: slice(1, 3, None), 5: slice(3, 5, None)}
    """
    found: dict[int | None, slice] = {None: slice(0, 1)}
    last = 1
    for at, term in zip(values, terms, strict=True):
        found[at] = slice(last, last := last + word_count(term))
    return found


def total_columns(terms: Sequence[Type]) -> tuple[str, ...]:
    """Return the names of the columns that totals of columns with some types have after the keys.

    >>> from corollary.core.types import NUMBER
    >>> total_columns([NUMBER, NUMBER])
    ('n', 'word1', 'word0', 'value2word1', 'value2word0')
    """
    if any(term.is_float for term in terms):
        return ("place", "digit")
    return (
        "n",
        *(
            f"{f'value{number}' if number > 1 else ''}word{at}"
            for number, term in enumerate(terms, 1)
            for at in reversed(range(word_count(term)))
        ),
    )
