"""Code domains: the values of one type and their codes.

Codes are stable: a value keeps its code forever, so that a growing domain never recodes a relation.
An integer below 2^61 is its own code, but for a constant; everything else is interned in the order
of arrival (`storage/code_range.py` has the table). So the codes of integers are in the order of
their values as long as none of them is interned, and only then comparisons need not decode.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from corollary.engines.local.storage.blocks import Blocks, pack_columns, unpack_columns
from corollary.engines.local.storage.code_range import INTERNED_CODE, ZERO_CODE, Codes
from corollary.engines.local.storage.sorting import number_distinct, sort_with_rows
from corollary.engines.local.values.native import NativeArray

SCALAR_VALUES_MAX = 16
"""Up to this many values are encoded one by one, which is faster than the array operations."""

RECENT_VALUES_MAX = 1 << 12
"""The maximum number of interned values in a Python dictionary, before they are merged."""

BLOCK_ROWS = 1 << 13
"""The number of interned values in a block of a file."""

_INLINE_CODES = {"i": (1, 1 << 62), "u": (ZERO_CODE, 1 << 62), "f": (1, 0)}
"""The codes of the least and the greatest value that are their own codes, by kind of array."""


class GrowingArray:
    """An array that grows at its end.

    Attributes:
        array: the values, then unused capacity.
        count: the number of values.
    """

    __slots__ = ("array", "count")

    def __init__(self, dtype: Any, count: int = 0) -> None:
        self.array: npt.NDArray[Any] = np.empty(count + count // 8 + 16, dtype)
        self.count = count

    def extend(self, values: Any) -> None:
        """Add values at the end."""
        count = self.count + len(values)
        if count > len(self.array):
            larger = np.empty(2 * count, self.array.dtype)
            larger[: self.count] = self.array[: self.count]
            self.array = larger
        self.array[self.count : count] = values
        self.count = count


class NumericDomain:
    """Fixed-width values: all interned, or only those that cannot be their own codes.

    Interned values are looked up in a sorted array with their codes in a parallel one; the latest
    are in a Python dictionary, until there are enough to be worth a merge. All values are handled
    as 64-bit patterns, so that one implementation serves signed, unsigned and float. Values of a
    file are decoded when the first one is needed.
    """

    def __init__(self, dtype: Any) -> None:
        self._dtype = np.dtype(dtype)
        # The codes of the least and the greatest inline value: none for floats.
        self._least, self._most = _INLINE_CODES[self._dtype.kind]
        self._first = INTERNED_CODE if self._most else 1
        self._values = GrowingArray(np.int64)
        self._sorted = np.empty(0, np.int64)
        self._codes = np.empty(0, np.int64)
        self._recent: dict[int, int] = {}
        self._stored: tuple[Mapping[str, Any], Blocks] | None = None

    @property
    def is_ordered(self) -> bool:
        """Whether codes other than null are in the order of their values: none is interned."""
        return self._most > 0 and not self._has_interned

    @property
    def _has_interned(self) -> bool:
        count = self._values.count if self._stored is None else self._stored[0]["count"]
        return bool(count)

    def encode(self, values: NativeArray) -> Codes:
        """Return the codes of values, new ones interned."""
        bits = np.ascontiguousarray(values, self._dtype).view(np.int64)
        least, most = self._least, self._most
        if len(bits) <= SCALAR_VALUES_MAX:
            codes = [bit + ZERO_CODE for bit in bits.tolist()]
            return np.array(
                [code if least <= code <= most else self._code(code - ZERO_CODE) for code in codes],
                np.int64,
            )
        if not most:
            return self._intern(bits)
        inline = bits + ZERO_CODE  # modulo 2^64: what is too large turns negative
        if inline.min() >= least and inline.max() <= most:
            return inline
        interned = ((inline < least) | (inline > most)).nonzero()[0]
        inline[interned] = self._intern(bits[interned])
        return inline

    def _code(self, bits: int) -> int:
        """Return the code of one value that is not inline."""
        if self._stored is not None:
            self._load(*self._stored)
        code = self._recent.get(bits)
        if code is None:
            index = int(self._sorted.searchsorted(bits))
            if index < len(self._sorted) and self._sorted.item(index) == bits:
                return self._codes.item(index)
            code = self._recent[bits] = self._first + self._values.count
            self._values.extend([bits])
            if len(self._recent) > RECENT_VALUES_MAX:
                self._merge_recent()
        return code

    def _merge_recent(self) -> None:
        values = np.fromiter(self._recent, np.int64, len(self._recent))
        codes = np.fromiter(self._recent.values(), np.int64, len(self._recent))
        values, order = sort_with_rows(values)
        self._insert(values, codes[order])
        self._recent = {}

    def _insert(self, values: Codes, codes: Codes) -> None:
        """Insert new values, sorted, into the sorted array."""
        indices = self._sorted.searchsorted(values)
        self._sorted = np.insert(self._sorted, indices, values)
        self._codes = np.insert(self._codes, indices, codes)

    def _intern(self, bits: Codes) -> Codes:
        if self._stored is not None:
            self._load(*self._stored)
        unique, inverse = number_distinct(bits)
        codes = self._look_up(unique)
        unknown = (codes == 0).nonzero()[0]
        if len(unknown) <= RECENT_VALUES_MAX:
            codes[unknown] = [self._code(bit) for bit in unique[unknown].tolist()]
        else:
            # Some of the unknown values may be recent: merge these first, then look up again.
            self._merge_recent()
            codes = self._look_up(unique)
            unknown = (codes == 0).nonzero()[0]
            first = self._first + self._values.count
            codes[unknown] = np.arange(first, first + len(unknown))
            self._insert(unique[unknown], codes[unknown])
            self._values.extend(unique[unknown])
        result: Codes = codes[inverse]
        return result

    def _look_up(self, values: Codes) -> Codes:
        """Return the codes of values, 0 for those that are not in the sorted array."""
        if not len(self._sorted):
            return np.zeros(len(values), np.int64)
        indices = self._sorted.searchsorted(values)
        np.minimum(indices, len(self._sorted) - 1, out=indices)
        return np.where(self._sorted[indices] == values, self._codes[indices], 0)

    def decode(self, codes: Codes) -> NativeArray:
        """Return the values of codes, an arbitrary one for null."""
        if not self._most:
            return self._interned(codes).view(self._dtype)
        bits = codes - ZERO_CODE
        if self._has_interned:
            interned = (codes >= INTERNED_CODE).nonzero()[0]
            if len(interned):
                bits[interned] = self._interned(codes[interned])
        return bits.view(self._dtype)

    def _interned(self, codes: Codes) -> Codes:
        """Return the values of codes that are not inline."""
        if self._stored is not None:
            self._load(*self._stored)
        values: Codes = self._values.array[codes - self._first]
        return values

    # --- stored values -------------------------------------------------------------------------

    def dump(self) -> tuple[dict[str, Any], list[Blocks]]:
        """Return the differences between the sorted interned values, and their numbers."""
        if self._stored is not None:
            header, blocks = self._stored
            return dict(header), [blocks]
        self._merge_recent()
        steps = np.diff(self._sorted, prepend=self._sorted[:1])
        starts = range(0, len(steps), BLOCK_ROWS)
        numbers = self._codes - self._first
        parts = [(steps[at : at + BLOCK_ROWS], numbers[at : at + BLOCK_ROWS]) for at in starts]
        header = {"count": len(steps), "least": self._sorted[:1].tolist()}
        return header, [Blocks.of([pack_columns(part) for part in parts])]

    def restore(self, header: Mapping[str, Any], blocks: list[Blocks]) -> None:
        """Replace the contents by a header and parts of a file, to be decoded when needed."""
        self._stored = (header, blocks[0])

    def _load(self, header: Mapping[str, Any], blocks: Blocks) -> None:
        """Decode the values of a file."""
        count = header["count"]
        steps, numbers = np.empty(count, np.int64), np.empty(count, np.int64)
        for number in range(len(blocks)):
            part = slice(number * BLOCK_ROWS, (number + 1) * BLOCK_ROWS)
            columns, _ = unpack_columns(blocks.block(number), 2, len(steps[part]))
            steps[part], numbers[part] = columns
        self._sorted = np.cumsum(steps)
        self._sorted += np.array(header["least"], np.int64)
        self._codes = numbers + self._first
        self._values = GrowingArray(np.int64, count)
        self._values.array[numbers] = self._sorted
        self._recent = {}
        self._stored = None

    @property
    def nbytes(self) -> int:
        """The size of the interned values in bytes."""
        stored = 0 if self._stored is None else self._stored[1].nbytes
        return 3 * 8 * self._values.count + stored
