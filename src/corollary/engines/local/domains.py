"""The values of one type and their codes.

Codes are stable: a value keeps its code for ever, so growing a domain never recodes a relation.
Small non-negative integers (`INLINE`) are coded by themselves; everything else is interned in the
order of arrival. Codes have no order of their own: comparisons decode.
"""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from corollary.core.types import Kind
from corollary.engines.local import native
from corollary.engines.local.layout import Codes

INLINE = 1 << 20
"""Three columns of numbers, some of them beyond this, still fit one word."""

FEW = 16
"""So few values are coded faster one by one."""

RECENT = 1 << 12
"""So many interned values are looked up in a dictionary before they are sorted in."""

Native = native.Native


class CodeDomain(Protocol):
    """The values of one type and their codes; null is code 0."""

    def encode(self, values: Native) -> Codes:
        """Return the codes of values, new ones interned."""

    def decode(self, codes: Codes) -> Native:
        """Return the values of codes; for null, anything."""

    @property
    def nbytes(self) -> int:
        """The bytes the domain holds."""


class _Growing:
    """An array that grows at its end, its capacity doubling."""

    __slots__ = ("_array", "count")

    def __init__(self, dtype: Any) -> None:
        self._array: npt.NDArray[Any] = np.empty(16, dtype)
        self.count = 0

    @property
    def array(self) -> npt.NDArray[Any]:
        """What it holds, perhaps with room behind."""
        return self._array

    def extend(self, values: Any) -> None:
        """Add values at the end."""
        count = self.count + len(values)
        if count > len(self._array):
            larger = np.empty(2 * count, self._array.dtype)
            larger[: self.count] = self._array[: self.count]
            self._array = larger
        self._array[self.count : count] = values
        self.count = count


class SymbolDomain:
    """Strings, interned through a dictionary."""

    def __init__(self) -> None:
        self._code_of: dict[str, int] = {}
        self._values = _Growing(object)
        self._values.extend([""])  # null
        self._characters = 0

    def encode(self, values: Native) -> Codes:
        """Return the codes of strings, new ones interned."""
        code_of = self._code_of
        get = code_of.get
        codes = np.fromiter((get(value, 0) for value in values), np.int64, len(values))
        unknown = (codes == 0).nonzero()[0]
        fresh: list[str] = []
        for index in unknown.tolist():
            value = values[index]
            code = get(value)
            if code is None:
                code = code_of[value] = self._values.count + len(fresh)
                fresh.append(value)
                self._characters += len(value)
            codes[index] = code
        self._values.extend(fresh)
        return codes

    def decode(self, codes: Codes) -> Native:
        """Return the strings of codes; the empty one for null."""
        return self._values.array[codes]

    @property
    def nbytes(self) -> int:
        """The bytes the strings take, roughly."""
        return self._characters + 150 * self._values.count


class NumericDomain:
    """Fixed-width values: small non-negative integers inline, the others interned.

    The interned values are looked up in a sorted array, with their codes beside it; those that came
    last in a dictionary, until there are enough of them to be worth a merge.
    """

    def __init__(self, dtype: Any, inline: int) -> None:
        self._dtype = np.dtype(dtype)
        self._inline = inline
        self._first = inline or 1
        self._values = _Growing(np.int64)
        self._sorted = np.empty(0, np.int64)
        self._codes = np.empty(0, np.int64)
        self._recent: dict[int, int] = {}

    def encode(self, values: Native) -> Codes:
        """Return the codes of values, new ones interned."""
        bits = np.ascontiguousarray(values, self._dtype).view(np.int64)
        inline = self._inline
        if len(bits) <= FEW:
            few = bits.tolist()
            return np.array(
                [bit + 1 if 0 <= bit < inline - 1 else self._code(bit) for bit in few], np.int64
            )
        if not inline:
            return self._intern(bits)
        is_inline = (bits >= 0) & (bits < inline - 1)
        if is_inline.all():
            return bits + 1
        codes = np.where(is_inline, bits + 1, 0)
        codes[~is_inline] = self._intern(bits[~is_inline])
        return codes

    def _code(self, bits: int) -> int:
        """Return the code of one value that is not inline."""
        code = self._recent.get(bits)
        if code is None:
            place = int(self._sorted.searchsorted(bits))
            if place < len(self._sorted) and self._sorted.item(place) == bits:
                return self._codes.item(place)
            code = self._recent[bits] = self._first + self._values.count
            self._values.extend([bits])
            if len(self._recent) > RECENT:
                self._sort_in()
        return code

    def _sort_in(self) -> None:
        """Merge the recent values into the sorted ones."""
        values = np.fromiter(self._recent, np.int64, len(self._recent))
        codes = np.fromiter(self._recent.values(), np.int64, len(self._recent))
        order = values.argsort()
        places = self._sorted.searchsorted(values[order])
        self._sorted = np.insert(self._sorted, places, values[order])
        self._codes = np.insert(self._codes, places, codes[order])
        self._recent = {}

    def _intern(self, bits: Codes) -> Codes:
        wanted, back = np.unique(bits, return_inverse=True)
        codes = self._look_up(wanted)
        unknown = (codes == 0).nonzero()[0]
        if len(unknown) <= RECENT:
            codes[unknown] = [self._code(bit) for bit in wanted[unknown].tolist()]
        else:
            self._sort_in()
            codes = self._look_up(wanted)
            fresh = (codes == 0).nonzero()[0]
            first = self._first + self._values.count
            codes[fresh] = np.arange(first, first + len(fresh))
            places = self._sorted.searchsorted(wanted[fresh])
            self._sorted = np.insert(self._sorted, places, wanted[fresh])
            self._codes = np.insert(self._codes, places, codes[fresh])
            self._values.extend(wanted[fresh])
        found: Codes = codes[back.ravel()]
        return found

    def _look_up(self, wanted: Codes) -> Codes:
        """Return the codes of values, 0 for those that are not among the sorted ones."""
        if not len(self._sorted):
            return np.zeros(len(wanted), np.int64)
        places = self._sorted.searchsorted(wanted)
        np.minimum(places, len(self._sorted) - 1, out=places)
        return np.where(self._sorted[places] == wanted, self._codes[places], 0)

    def decode(self, codes: Codes) -> Native:
        """Return the values of codes; for null, anything."""
        if not self._inline:
            bits = self._values.array[codes - self._first]
        elif self._values.count:
            interned = codes >= self._inline
            bits = codes - 1
            bits[interned] = self._values.array[codes[interned] - self._first]
        else:
            bits = codes - 1
        return bits.view(self._dtype)

    @property
    def nbytes(self) -> int:
        """The bytes the interned values take."""
        return 3 * 8 * self._values.count


def domain_of(kind: Kind) -> CodeDomain:
    """Return an empty domain for values of a kind."""
    match kind:
        case Kind.SYMBOL:
            return SymbolDomain()
        case Kind.FLOAT:
            return NumericDomain(np.float64, 0)
        case Kind.UNSIGNED:
            return NumericDomain(np.uint64, INLINE)
        case _:
            return NumericDomain(np.int64, INLINE)
