"""How a tuple of codes is packed into one sortable word.

A tuple whose column widths sum to at most 63 bits is one int64, `(c0 << w1 | c1) << w2 | c2 …`;
a wider one is a string of bytes, most significant first. Either way the words sort as the tuples
of codes do, and the tuples with a bound prefix are a range of words.

Tables whose tuples are moved into each other or compared share a layout, through a `LayoutFamily`.
Each column is as wide as the largest code that one of these tables has held. A table notices when
it is used that the layout has changed, and repacks. Widths never shrink and have at most 63 bits,
so a table repacks a few dozen times at most.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int64]
Words = npt.NDArray[Any]
"""Packed tuples: int64, or void of the layout's number of bytes."""
Mask = npt.NDArray[np.bool_]

NARROW_BITS = 63
"""The maximum width of a tuple in an int64: the sign bit stays 0, so that words sort as numbers."""


def _scalar(value: int) -> Codes:
    """Return an integer as a 0-d array: operations with an array then skip converting it."""
    return np.array(value, np.int64)


@dataclass(frozen=True)
class Layout:
    """The widths in bits of the columns, in the order in which they are packed."""

    widths: tuple[int, ...]

    @cached_property
    def bits(self) -> int:
        """The width of a tuple in bits."""
        return sum(self.widths)

    @cached_property
    def is_narrow(self) -> bool:
        """Whether a tuple fits in one int64."""
        return self.bits <= NARROW_BITS

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The type of a packed tuple."""
        return np.dtype(np.int64) if self.is_narrow else np.dtype((np.void, self._ends[-1]))

    @cached_property
    def empty(self) -> Words:
        """An array of no tuples."""
        return np.empty(0, self.dtype)

    @cached_property
    def shifts(self) -> tuple[int, ...]:
        """For each column, the number of bits to its right."""
        total = self.bits
        result = []
        for width in self.widths:
            total -= width
            result.append(total)
        return tuple(result)

    @cached_property
    def _steps(self) -> tuple[tuple[Codes | None, Codes | None], ...]:
        """For each column the shift and the mask to extract it, None where not needed."""
        return tuple(
            (
                _scalar(shift) if shift else None,
                _scalar((1 << width) - 1) if at else None,
            )
            for at, (width, shift) in enumerate(zip(self.widths, self.shifts, strict=True))
        )

    @cached_property
    def _rests(self) -> tuple[tuple[Codes, Codes], ...]:
        """For each length of a prefix, the number of bits after it, and a word of all of them."""
        rests = (self.bits, *self.shifts)
        return tuple((_scalar(rest), _scalar((1 << rest) - 1)) for rest in rests)

    @cached_property
    def _ends(self) -> tuple[int, ...]:
        """For each column of a wide tuple, the byte after its last one."""
        end = 0
        result = []
        for width in self.widths:
            end += (width + 7) // 8
            result.append(end)
        return tuple(result)

    # --- packing -------------------------------------------------------------------------------

    def pack(self, columns: Sequence[Codes], count: int) -> Words:
        """Return `count` tuples, given by columns in this layout's order, packed."""
        if self.is_narrow:
            return self._pack_narrow(columns, count)
        return self._bytes(columns, count, 0).view(self.dtype).ravel()

    def _pack_narrow(self, columns: Sequence[Codes], count: int) -> Codes:
        """Pack the first columns, with 0 for the others."""
        if not columns:
            return np.zeros(count, np.int64)
        steps = self._steps
        shift = steps[0][0]
        if shift is None:
            return np.ascontiguousarray(columns[0])
        words = columns[0] << shift
        for at in range(1, len(columns)):
            shift = steps[at][0]
            words |= columns[at] if shift is None else columns[at] << shift
        return words

    def _bytes(self, columns: Sequence[Codes], count: int, fill: int) -> npt.NDArray[np.uint8]:
        """Return the first columns as big-endian bytes, one row per tuple, the rest filled."""
        matrix = np.full((count, self._ends[-1]), fill, np.uint8)
        for index, column in enumerate(columns):
            end = self._ends[index]
            start = self._ends[index - 1] if index else 0
            big_endian = column.astype(">i8").view(np.uint8).reshape(count, 8)
            matrix[:, start:end] = big_endian[:, 8 - (end - start) :]
        return matrix

    def unpack_column(self, words: Words, index: int) -> Codes:
        """Return the codes of one column of packed tuples."""
        if self.is_narrow:
            shift, mask = self._steps[index]
            codes: Codes = words if shift is None else words >> shift
            return codes if mask is None else codes & mask
        end = self._ends[index]
        start = self._ends[index - 1] if index else 0
        matrix = np.ascontiguousarray(words).view(np.uint8).reshape(len(words), self._ends[-1])
        padded = np.zeros((len(words), 8), np.uint8)
        padded[:, 8 - (end - start) :] = matrix[:, start:end]
        return padded.view(">i8").ravel().astype(np.int64)

    def unpack(self, words: Words) -> list[Codes]:
        """Return the codes of all columns."""
        return [self.unpack_column(words, index) for index in range(len(self.widths))]

    def overflow_mask(self, columns: Sequence[Codes]) -> Mask | None:
        """Return the mask of tuples with a code that is too large for its column, None for none."""
        mask: Mask | None = None
        for column, width in zip(columns, self.widths, strict=False):
            outside = (column >> width) != 0
            if np.count_nonzero(outside):
                mask = outside if mask is None else mask | outside
        return mask

    # --- prefixes ------------------------------------------------------------------------------

    def prefix_keys(self, words: Words, length: int) -> Words:
        """Return keys that are equal where the first columns are equal, and sort as they do."""
        if self.is_narrow:
            shifted: Words = words >> self._rests[length][0]
            return shifted
        if not length:
            return np.zeros(len(words), np.int64)
        end = self._ends[length - 1]
        matrix = np.ascontiguousarray(words).view(np.uint8).reshape(len(words), self._ends[-1])
        matrix = matrix[:, :end]
        return np.ascontiguousarray(matrix).view((np.void, end)).ravel()

    def prefix_bounds(self, columns: Sequence[Codes], count: int) -> tuple[Words, Words]:
        """Return the least and the greatest word with these values in the first columns.

        The greatest word has all other bits set: the least word of the next key would not do, as
        adding 1 to a prefix of all ones overflows.
        """
        if self.is_narrow:
            low = self._pack_narrow(columns, count)
            return low, low | self._rests[len(columns)][1]
        low_bytes, high_bytes = (self._bytes(columns, count, fill) for fill in (0x00, 0xFF))
        return low_bytes.view(self.dtype).ravel(), high_bytes.view(self.dtype).ravel()

    # --- other layouts -------------------------------------------------------------------------

    def permute(self, order: tuple[int, ...]) -> "Layout":
        """Return the layout of the same tuples with the columns in another order."""
        return layout_of(tuple([self.widths[column] for column in order]))

    def convert(self, words: Words, before: "Layout") -> Words:
        """Repack tuples of another layout whose codes fit this one; sorted ones stay sorted."""
        if before is self:
            return words
        if not len(words):
            return self.empty
        return self.pack(before.unpack(words), len(words))

    def append_column(self, shorter: "Layout", words: Words, code: int) -> Words:
        """Return tuples of a layout without the last column, with one code as last column."""
        if self.is_narrow and self.widths[:-1] == shorter.widths:
            return words << _scalar(self.widths[-1]) | _scalar(code)
        last = np.full(len(words), code, np.int64)
        return self.pack([*shorter.unpack(words), last], len(words))


@lru_cache(maxsize=4096)
def layout_of(widths: tuple[int, ...]) -> Layout:
    """Return the layout for these widths, one object for equal widths: tables compare by `is`."""
    return Layout(widths)


def width_of(codes: Codes) -> int:
    """Return the number of bits of the largest code."""
    return int(codes.max()).bit_length() if len(codes) else 0


class LayoutFamily:
    """The layout that some tables share.

    Attributes:
        layout: the current layout; None once the family has been merged into another.
        successor: the family that this one has been merged into.
    """

    __slots__ = ("layout", "successor")

    def __init__(self, arity: int) -> None:
        self.layout: Layout | None = layout_of((1,) * arity)
        self.successor: LayoutFamily | None = None

    @property
    def current(self) -> "LayoutFamily":
        """The family that this one has been merged into, or itself."""
        family = self
        while family.successor is not None:
            family = family.successor
        return family

    def join(self, other: "LayoutFamily") -> None:
        """Merge another family into this one."""
        one, two = self.current, other.current
        if one is not two:
            assert two.layout is not None
            one.widen(two.layout.widths)
            two.layout, two.successor = None, one

    def widen(self, widths: Sequence[int]) -> None:
        """Make the columns at least as wide as given."""
        assert self.layout is not None
        wider = tuple(map(max, self.layout.widths, widths))
        if wider != self.layout.widths:
            self.layout = layout_of(wider)

    def fit(self, columns: Sequence[Codes], bounds: Sequence[int | None]) -> None:
        """Make the columns wide enough for codes whose widths are at most the bounds, if known.

        A bound may be far too large. It is trusted as long as a tuple stays narrow, since looking
        at the codes costs a pass over each column; after that the codes decide.
        """
        assert self.layout is not None
        widths = self.layout.widths
        for at, bound in enumerate(bounds):
            if bound is None or bound > widths[at]:
                break
        else:
            return
        needed = [
            width_of(codes) if bound is None else bound
            for codes, bound in zip(columns, bounds, strict=True)
        ]
        if sum(map(max, widths, needed)) > NARROW_BITS:
            needed = [width_of(codes) for codes in columns]
        self.widen(needed)
