"""Code domains: the values of one type and their codes.

Codes are stable: a value keeps its code forever, so that a growing domain never recodes a relation.
A small non-negative integer is its own code plus 1; everything else is interned in the order of
arrival. The order of codes means nothing: comparisons decode.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from corollary.engines.local.storage.blocks import Blocks, pack_columns, unpack_columns
from corollary.engines.local.storage.layout import Codes
from corollary.engines.local.values.native import NativeArray

INLINE_CODES = 1 << 20
"""Integers below this are their own codes: three columns with some larger ones fit one word."""

SCALAR_VALUES_MAX = 16
"""Up to this many values are encoded one by one, which is faster than the array operations."""

RECENT_VALUES_MAX = 1 << 12
"""The maximum number of interned values in a Python dictionary, before they are merged."""

BLOCK_ROWS = 1 << 13
"""The number of interned values in a block of a file."""


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


class CodeDomain(Protocol):
    """The values of one type and their codes; null is code 0."""

    def encode(self, values: NativeArray) -> Codes:
        """Return the codes of values, new ones interned."""

    def decode(self, codes: Codes) -> NativeArray:
        """Return the values of codes, an arbitrary one for null."""

    @property
    def is_ordered(self) -> bool:
        """Whether codes other than null are in the order of their values."""

    @property
    def nbytes(self) -> int:
        """The size in bytes."""

    def dump(self) -> tuple[dict[str, Any], list[Blocks]]:
        """Return the domain as a header and parts of a file."""

    def restore(self, header: Mapping[str, Any], blocks: list[Blocks]) -> None:
        """Replace the contents by a header and parts of a file."""


class NumericDomain:
    """Fixed-width values: small non-negative integers inline, the others interned.

    Interned values are looked up in a sorted array with their codes in a parallel one; the latest
    are in a Python dictionary, until there are enough to be worth a merge. All values are handled
    as 64-bit patterns, so that one implementation serves signed, unsigned and float. Values of a
    file are decoded when the first one is needed.
    """

    def __init__(self, dtype: Any, inline: int) -> None:
        self._dtype = np.dtype(dtype)
        self._inline = inline
        self._first = inline or 1
        self._values = GrowingArray(np.int64)
        self._sorted = np.empty(0, np.int64)
        self._codes = np.empty(0, np.int64)
        self._recent: dict[int, int] = {}
        self._stored: tuple[Mapping[str, Any], Blocks] | None = None

    @property
    def is_ordered(self) -> bool:
        """Whether codes other than null are in the order of their values: none is interned."""
        count = self._values.count if self._stored is None else self._stored[0]["count"]
        return self._inline > 0 and not count

    def encode(self, values: NativeArray) -> Codes:
        """Return the codes of values, new ones interned."""
        bits = np.ascontiguousarray(values, self._dtype).view(np.int64)
        inline = self._inline
        if len(bits) <= SCALAR_VALUES_MAX:
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
        order = values.argsort()
        self._insert(values[order], codes[order])
        self._recent = {}

    def _insert(self, values: Codes, codes: Codes) -> None:
        """Insert new values, sorted, into the sorted array."""
        indices = self._sorted.searchsorted(values)
        self._sorted = np.insert(self._sorted, indices, values)
        self._codes = np.insert(self._codes, indices, codes)

    def _intern(self, bits: Codes) -> Codes:
        if self._stored is not None:
            self._load(*self._stored)
        unique, inverse = np.unique(bits, return_inverse=True)
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
        result: Codes = codes[inverse.ravel()]
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
        if not self._inline:
            return self._interned(codes).view(self._dtype)
        bits = codes - 1
        if self._values.count or self._stored is not None:
            interned = (codes >= self._inline).nonzero()[0]
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
        """Return the differences between the sorted interned values, and their codes."""
        if self._stored is not None:
            header, blocks = self._stored
            return dict(header), [blocks]
        self._merge_recent()
        steps = np.diff(self._sorted, prepend=self._sorted[:1])
        starts = range(0, len(steps), BLOCK_ROWS)
        parts = [(steps[at : at + BLOCK_ROWS], self._codes[at : at + BLOCK_ROWS]) for at in starts]
        header = {"count": len(steps), "least": self._sorted[:1].tolist()}
        return header, [Blocks.of([pack_columns(part) for part in parts])]

    def restore(self, header: Mapping[str, Any], blocks: list[Blocks]) -> None:
        """Replace the contents by a header and parts of a file, to be decoded when needed."""
        self._stored = (header, blocks[0])

    def _load(self, header: Mapping[str, Any], blocks: Blocks) -> None:
        """Decode the values of a file."""
        count = header["count"]
        steps, codes = np.empty(count, np.int64), np.empty(count, np.int64)
        for number in range(len(blocks)):
            part = slice(number * BLOCK_ROWS, (number + 1) * BLOCK_ROWS)
            columns, _ = unpack_columns(blocks.block(number), 2, len(steps[part]))
            steps[part], codes[part] = columns
        self._sorted = np.cumsum(steps)
        self._sorted += np.array(header["least"], np.int64)
        self._codes = codes
        self._values = GrowingArray(np.int64, count)
        self._values.array[codes - self._first] = self._sorted
        self._recent = {}
        self._stored = None

    @property
    def nbytes(self) -> int:
        """The size of the interned values in bytes."""
        stored = 0 if self._stored is None else self._stored[1].nbytes
        return 3 * 8 * self._values.count + stored
