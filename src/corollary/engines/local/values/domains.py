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
from corollary.engines.local.storage.code_range import (
    INTERNED_CODE,
    LAST_INLINE_CODE,
    ZERO_CODE,
    Codes,
)
from corollary.engines.local.storage.sorting import number_distinct, sort_with_rows
from corollary.engines.local.values.native import NativeArray

SCALAR_VALUES_MAX = 16
"""Up to this many values are encoded one by one, which is faster than the array operations."""

RECENT_VALUES_MAX = 1 << 12
"""The maximum number of interned values in a Python dictionary, before they are merged."""

BLOCK_ROWS = 1 << 13
"""The number of interned values in a block of a file."""

_INLINE_CODES = {"i": (1, LAST_INLINE_CODE), "u": (ZERO_CODE, LAST_INLINE_CODE), "f": (1, 0)}
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


class InternedValues:
    """Values of one width with their codes, in the order of arrival.

    They are looked up in a sorted array with their codes in a parallel one; the latest are in a
    Python dictionary, until there are enough to be worth a merge.

    Attributes:
        first: the code of the first value.
        values: by code.
        sorted: the values that are merged, sorted.
        codes: of the sorted values.
    """

    def __init__(self, dtype: npt.DTypeLike, first: int) -> None:
        self.first = first
        self.values = GrowingArray(dtype)
        self.sorted: npt.NDArray[Any] = np.empty(0, dtype)
        self.codes = np.empty(0, np.int64)
        self._recent: dict[Any, int] = {}

    @property
    def count(self) -> int:
        """The number of values."""
        return self.values.count

    def encode(self, values: npt.NDArray[Any]) -> Codes:
        """Return the codes of values, new ones interned."""
        unique, inverse = number_distinct(values)
        codes = self._look_up(unique)
        unknown = (codes == 0).nonzero()[0]
        if len(unknown) <= RECENT_VALUES_MAX:
            codes[unknown] = self._recent_codes(unique[unknown])
        else:
            # Some of the unknown values may be recent: merge these first, then look up again.
            self.merge_recent()
            codes = self._look_up(unique)
            unknown = (codes == 0).nonzero()[0]
            first = self.first + self.count
            codes[unknown] = np.arange(first, first + len(unknown))
            self._insert(unique[unknown], codes[unknown])
            self.values.extend(unique[unknown])
        result: Codes = codes[inverse]
        return result

    def _recent_codes(self, values: npt.NDArray[Any]) -> Codes:
        """Return the codes of distinct values that are not merged, new ones interned."""
        recent = self._recent
        codes = np.array([recent.get(value, 0) for value in values.tolist()], np.int64)
        unknown = (codes == 0).nonzero()[0]
        first, new = self.first + self.count, values[unknown]
        codes[unknown] = np.arange(first, first + len(new))
        recent.update(zip(new.tolist(), codes[unknown].tolist(), strict=True))
        self.values.extend(new)
        if len(recent) > RECENT_VALUES_MAX:
            self.merge_recent()
        return codes

    def code(self, value: Any) -> int:
        """Return the code of one value, as `tolist` gives it, interned if it is new."""
        code = self._recent.get(value)
        if code is None:
            index = int(self.sorted.searchsorted(value))
            if index < len(self.sorted) and self.sorted.item(index) == value:
                return self.codes.item(index)
            code = self._recent[value] = self.first + self.count
            self.values.extend([value])
            if len(self._recent) > RECENT_VALUES_MAX:
                self.merge_recent()
        return code

    def merge_recent(self) -> None:
        """Move all values to the sorted array."""
        values = np.array(list(self._recent), self.sorted.dtype)
        codes = np.fromiter(self._recent.values(), np.int64, len(self._recent))
        values, order = sort_with_rows(values)
        self._insert(values, codes[order])
        self._recent = {}

    def _insert(self, values: npt.NDArray[Any], codes: Codes) -> None:
        """Insert new values, sorted, into the sorted array."""
        indices = self.sorted.searchsorted(values)
        self.sorted = np.insert(self.sorted, indices, values)
        self.codes = np.insert(self.codes, indices, codes)

    def _look_up(self, values: npt.NDArray[Any]) -> Codes:
        """Return the codes of values, 0 for those that are not in the sorted array."""
        if not len(self.sorted):
            return np.zeros(len(values), np.int64)
        indices = self.sorted.searchsorted(values)
        np.minimum(indices, len(self.sorted) - 1, out=indices)
        return np.where(self.sorted[indices] == values, self.codes[indices], 0)

    def decode(self, codes: Codes) -> npt.NDArray[Any]:
        """Return the values of codes, an arbitrary one for null."""
        values: npt.NDArray[Any] = self.values.array[codes - self.first]
        return values

    def fill(self, ordered: npt.NDArray[Any], numbers: Codes) -> None:
        """Replace the contents by sorted values and their numbers in the order of arrival."""
        self.sorted, self.codes = ordered, numbers + self.first
        self.values = GrowingArray(ordered.dtype, len(ordered))
        self.values.array[numbers] = ordered
        self._recent = {}

    @property
    def nbytes(self) -> int:
        """The approximate size in bytes."""
        return (2 * self.sorted.dtype.itemsize + 8) * self.count


class NumericDomain:
    """Fixed-width values: all interned, or only those that cannot be their own codes.

    All values are handled as 64-bit patterns, so that one implementation serves signed, unsigned
    and float. Values of a file are decoded when the first one is needed.
    """

    def __init__(self, dtype: Any) -> None:
        self._dtype = np.dtype(dtype)
        # The codes of the least and the greatest inline value: none for floats.
        self._least, self._most = _INLINE_CODES[self._dtype.kind]
        self._interned = InternedValues(np.int64, INTERNED_CODE if self._most else 1)
        self._stored: tuple[Mapping[str, Any], Blocks] | None = None

    @property
    def is_ordered(self) -> bool:
        """Whether codes other than null are in the order of their values: none is interned."""
        return self._most > 0 and not self._has_interned

    @property
    def _interned_count(self) -> int:
        return self._interned.count if self._stored is None else int(self._stored[0]["count"])

    @property
    def _has_interned(self) -> bool:
        return self._interned_count > 0

    @property
    def code_bound(self) -> int:
        """The code of the next value that is interned; all codes are smaller."""
        return self._interned.first + self._interned_count

    @property
    def _loaded(self) -> InternedValues:
        """The interned values, those of a file decoded."""
        if self._stored is not None:
            self._load(*self._stored)
        return self._interned

    def encode(self, values: NativeArray) -> Codes:
        """Return the codes of values, new ones interned."""
        bits = np.ascontiguousarray(values, self._dtype).view(np.int64)
        least, most = self._least, self._most
        if len(bits) <= SCALAR_VALUES_MAX:
            codes = [bit + ZERO_CODE for bit in bits.tolist()]
            return np.array(
                [
                    code if least <= code <= most else self._loaded.code(code - ZERO_CODE)
                    for code in codes
                ],
                np.int64,
            )
        if not most:
            return self._loaded.encode(bits)
        inline = bits + ZERO_CODE  # modulo 2^64: what is too large turns negative
        if inline.min() >= least and inline.max() <= most:
            return inline
        interned = ((inline < least) | (inline > most)).nonzero()[0]
        inline[interned] = self._loaded.encode(bits[interned])
        return inline

    def decode(self, codes: Codes) -> NativeArray:
        """Return the values of codes, an arbitrary one for null."""
        if not self._most:
            return self._loaded.decode(codes).view(self._dtype)
        bits = codes - ZERO_CODE
        if self._has_interned:
            interned = (codes >= INTERNED_CODE).nonzero()[0]
            if len(interned):
                bits[interned] = self._loaded.decode(codes[interned])
        return bits.view(self._dtype)

    # --- stored values -------------------------------------------------------------------------

    def dump(self) -> tuple[dict[str, Any], list[Blocks]]:
        """Return the differences between the sorted interned values, and their numbers."""
        if self._stored is not None:
            header, blocks = self._stored
            return dict(header), [blocks]
        interned = self._interned
        interned.merge_recent()
        steps = np.diff(interned.sorted, prepend=interned.sorted[:1])
        starts = range(0, len(steps), BLOCK_ROWS)
        numbers = interned.codes - interned.first
        parts = [(steps[at : at + BLOCK_ROWS], numbers[at : at + BLOCK_ROWS]) for at in starts]
        header = {"count": len(steps), "least": interned.sorted[:1].tolist()}
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
        ordered = np.cumsum(steps)
        ordered += np.array(header["least"], np.int64)
        self._interned.fill(ordered, numbers)
        self._stored = None

    @property
    def nbytes(self) -> int:
        """The size of the interned values in bytes."""
        stored = 0 if self._stored is None else self._stored[1].nbytes
        return self._interned.nbytes + stored
