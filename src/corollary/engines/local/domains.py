"""The values of one type and their codes.

Codes are stable: a value keeps its code for ever, so growing a domain never recodes a relation.
Small non-negative integers (`INLINE`) are coded by themselves; everything else is interned in the
order of arrival. Codes have no order of their own: comparisons decode.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from corollary.core.types import Kind
from corollary.engines.local import native
from corollary.engines.local.blocks import Blocks
from corollary.engines.local.growing import Growing
from corollary.engines.local.layout import Codes
from corollary.engines.local.packing import pack, unpack
from corollary.engines.local.symbols import SymbolDomain

INLINE = 1 << 20
"""Three columns of numbers, some of them beyond this, still fit one word."""

FEW = 16
"""So few values are coded faster one by one."""

RECENT = 1 << 12
"""So many interned values are looked up in a dictionary before they are sorted in."""

BLOCK = 1 << 13
"""The interned values of a block, when they are saved."""

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

    def saved(self) -> tuple[dict[str, Any], list[Blocks]]:
        """Return what makes the domain again: a header, and parts of a file."""

    def restore(self, header: Mapping[str, Any], blocks: list[Blocks]) -> None:
        """Become what was saved."""


class NumericDomain:
    """Fixed-width values: small non-negative integers inline, the others interned.

    The interned values are looked up in a sorted array, with their codes beside it; those that came
    last in a dictionary, until there are enough of them to be worth a merge. Values that were saved
    stay where they are stored until one is asked for.
    """

    def __init__(self, dtype: Any, inline: int) -> None:
        self._dtype = np.dtype(dtype)
        self._inline = inline
        self._first = inline or 1
        self._values = Growing(np.int64)
        self._sorted = np.empty(0, np.int64)
        self._codes = np.empty(0, np.int64)
        self._recent: dict[int, int] = {}
        self._stored: tuple[Mapping[str, Any], Blocks] | None = None

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
        if self._stored is not None:
            self._load(*self._stored)
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
        if self._stored is not None:
            self._load(*self._stored)
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

    def saved(self) -> tuple[dict[str, Any], list[Blocks]]:
        """Return the interned values, sorted, as differences, with their codes."""
        if self._stored is not None:
            header, blocks = self._stored
            return dict(header), [blocks]
        self._sort_in()
        steps = np.diff(self._sorted, prepend=self._sorted[:1])
        starts = range(0, len(steps), BLOCK)
        parts = [(steps[at : at + BLOCK], self._codes[at : at + BLOCK]) for at in starts]
        header = {"count": len(steps), "least": self._sorted[:1].tolist()}
        return header, [Blocks.of([pack(part) for part in parts])]

    def restore(self, header: Mapping[str, Any], blocks: list[Blocks]) -> None:
        """Become what was saved."""
        self._stored = (header, blocks[0])

    def _load(self, header: Mapping[str, Any], blocks: Blocks) -> None:
        """Take in what is stored."""
        count = header["count"]
        steps, codes = np.empty(count, np.int64), np.empty(count, np.int64)
        for number in range(len(blocks)):
            part = slice(number * BLOCK, (number + 1) * BLOCK)
            columns, _ = unpack(blocks.block(number), 2, len(steps[part]))
            steps[part], codes[part] = columns
        self._sorted = np.cumsum(steps)
        self._sorted += np.array(header["least"], np.int64)
        self._codes = codes
        self._values = Growing(np.int64, count)
        self._values.array[codes - self._first] = self._sorted
        self._recent = {}
        self._stored = None

    @property
    def nbytes(self) -> int:
        """The bytes the interned values take."""
        stored = 0 if self._stored is None else self._stored[1].nbytes
        return 3 * 8 * self._values.count + stored


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
