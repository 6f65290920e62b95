"""How a tuple of codes is packed into one sortable word.

A column has a range of codes (`code_range`), and a code of it is packed as its distance d from the
base of the range, 0 for null. A tuple whose column widths sum to at most 63 bits is one int64,
`(d0 << w1 | d1) << w2 | d2 …`; a wider one is a string of bytes, most significant first. Either
way the words sort as the tuples of codes do, and the tuples with a bound prefix are a range of
words.

Tables whose tuples are moved into each other or compared share a layout, through a `LayoutFamily`.
Each column has the range of all codes that one of these tables has held. A table notices when it
is used that the layout has changed, and repacks. Ranges never shrink and have at most 63 bits, so
a table repacks a few dozen times at most.
"""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from corollary.data_class import dataclass
from corollary.engines.local.storage.code_range import GROWTH_BITS, CodeRange, Codes, range_of

Words = npt.NDArray[Any]
"""Packed tuples: int64, or void of the layout's number of bytes."""
Mask = npt.NDArray[np.bool_]

Row = tuple[int, ...]
"""The codes of one tuple. Few tuples are faster to handle one by one than as words."""

WORD_BYTES = 8
"""The number of bytes of an int64."""

NARROW_BITS = 63
"""The maximum width of a tuple in an int64: the sign bit stays 0, so that words sort as numbers."""


_NO_CODES = CodeRange()


def _scalar(value: int) -> Codes:
    """Return an integer as a 0-d array: operations with an array then skip converting it."""
    return np.array(value, np.int64)


@dataclass(frozen=True)
class Layout:
    """The ranges of the columns, in the order in which they are packed."""

    columns: tuple[CodeRange, ...]

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """The widths of the columns in bits."""
        return tuple(column.width for column in self.columns)

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
    def plain(self) -> "Layout":
        """The layout that unpacks distances instead of codes."""
        return layout_of(tuple(CodeRange(0, width) for width in self.widths))

    @cached_property
    def _steps(self) -> tuple[tuple[Codes | None, Codes | None], ...]:
        """For each column the shift and the mask to extract it, None where not needed."""
        return tuple(
            (_scalar(shift) if shift else None, _scalar((1 << width) - 1) if at else None)
            for at, (width, shift) in enumerate(zip(self.widths, self.shifts, strict=True))
        )

    @cached_property
    def _bases(self) -> tuple[Codes | None, ...]:
        """For each column its base, None for 0."""
        return tuple(_scalar(column.base) if column.base else None for column in self.columns)

    @cached_property
    def _has_hole(self) -> tuple[bool, ...]:
        """For each column whether null is not where its distance from the base would be."""
        return tuple(column.has_null and column.base > 0 for column in self.columns)

    @cached_property
    def _packed_bases(self) -> tuple[Codes | None, ...]:
        """For each length of a prefix, what its bases alone are packed to, None for 0."""
        total = 0
        result: list[Codes | None] = [None]
        for column, shift in zip(self.columns, self.shifts, strict=True):
            total += column.base << shift
            # Words are computed modulo 2^64: only the sum of all columns has to fit.
            wrapped = (total + (1 << 63)) % (1 << 64) - (1 << 63)
            result.append(_scalar(wrapped) if wrapped else None)
        return tuple(result)

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
        steps, bases = self._steps, self._packed_bases[len(columns)]
        shift = steps[0][0]
        codes = self._without_null(columns[0], 0)
        if shift is None:
            return np.ascontiguousarray(codes) if bases is None else codes - bases
        words = codes << shift
        for at in range(1, len(columns)):
            shift = steps[at][0]
            codes = self._without_null(columns[at], at)
            words += codes if shift is None else codes << shift
        if bases is not None:
            words -= bases
        return words

    def _without_null(self, codes: Codes, index: int) -> Codes:
        """Return codes of a column such that all are at their distance from the base."""
        if not self._has_hole[index]:
            return codes
        return np.where(codes == 0, _scalar(self.columns[index].base), codes)

    def _bytes(self, columns: Sequence[Codes], count: int, fill: int) -> npt.NDArray[np.uint8]:
        """Return the first columns as big-endian bytes, one row per tuple, the rest filled.

        Eight bytes of all tuples are made at a time, the last eight perhaps a second time.
        """
        size = self._ends[-1]
        matrix = np.empty((count, size), np.uint8)
        if not count:
            return matrix
        starts, distances = (0, *self._ends), []
        for index, column in enumerate(columns):
            base, codes = self._bases[index], self._without_null(column, index)
            distances.append(codes if base is None else codes - base)
        chunk, shifted = np.empty(count, np.int64), np.empty(count, np.int64)
        for first in {*range(0, size - WORD_BYTES, WORD_BYTES), size - WORD_BYTES}:
            last = first + WORD_BYTES
            rest = max(0, last - max(first, starts[len(columns)]))  # bytes without a column
            filled = (1 << 8 * rest) - 1 if rest < WORD_BYTES else -1
            chunk.fill(filled if fill else 0)
            for at, codes in enumerate(distances):
                if starts[at] < last and self._ends[at] > first:
                    shift = 8 * (last - self._ends[at])
                    move = np.left_shift if shift >= 0 else np.right_shift
                    move(codes, abs(shift), out=shifted)
                    chunk |= shifted
            np.ndarray((count,), ">i8", matrix, first, (size,))[:] = chunk
        return matrix

    def unpack_column(self, words: Words, index: int) -> Codes:
        """Return the codes of one column of packed tuples."""
        base = self._bases[index]
        distances = self._distances(words, index)
        if base is None:
            return distances
        codes = np.add(distances, base, out=None if distances is words else distances)
        if self._has_hole[index]:
            codes[codes == base] = 0
        return codes

    def _distances(self, words: Words, index: int) -> Codes:
        """Return the distances of one column from its base, in an array that may be modified.

        It is the array of the words itself where they are nothing else.
        """
        if self.is_narrow:
            shift, mask = self._steps[index]
            if shift is None:
                narrow: Codes = words if mask is None else words & mask
                return narrow
            narrow = words >> shift
            if mask is not None:
                narrow &= mask
            return narrow
        return self._wide_distances(words, index)

    def _wide_distances(self, words: Words, index: int) -> Codes:
        """Return the distances of one column of wide tuples: eight bytes that have it, masked."""
        if not len(words):
            return np.empty(0, np.int64)
        size, end = self._ends[-1], self._ends[index]
        first = max(end - WORD_BYTES, 0)  # a wide tuple has eight bytes at least
        raw = np.ascontiguousarray(words).view(np.uint8)
        distances = np.ndarray((len(words),), ">i8", raw, first, (size,)).astype(np.int64)
        if rest := 8 * (first + WORD_BYTES - end):
            distances >>= _scalar(rest)
        distances &= _scalar((1 << self.widths[index]) - 1)
        return distances

    def unpack(self, words: Words) -> list[Codes]:
        """Return the codes of all columns."""
        return [self.unpack_column(words, index) for index in range(len(self.widths))]

    def overflow_mask(self, columns: Sequence[Codes]) -> Mask | None:
        """Return the mask of tuples with a code outside of its column's range, None for none."""
        mask: Mask | None = None
        for index, column in enumerate(columns):
            base, width, has_null = self.columns[index]
            if not base:
                outside = (column >> width) != 0
            else:
                # Unsigned, so that codes before the range are large; the base itself is before it.
                outside = (column - (base + 1)).view(np.uint64) >= np.uint64((1 << width) - 1)
                if has_null:
                    outside &= column != 0
            if np.count_nonzero(outside):
                mask = outside if mask is None else mask | outside
        return mask

    def fitting(self, columns: Sequence[Codes]) -> list[Codes]:
        """Return the rows whose codes are in the ranges of their columns: no tuple has others."""
        overflow = self.overflow_mask(columns)
        return list(columns) if overflow is None else [codes[~overflow] for codes in columns]

    # --- single tuples -------------------------------------------------------------------------

    @cached_property
    def _fields(self) -> tuple[tuple[int, int, int, int], ...]:
        """For each column the base, the last code, the shift, and the mask of its distances."""
        return tuple(
            (column.base, column.last, shift, (1 << width) - 1)
            for column, width, shift in zip(self.columns, self.widths, self.shifts, strict=True)
        )

    @cached_property
    def _places(self) -> tuple[slice, ...]:
        """For each column of a wide tuple, its bytes."""
        return tuple(slice(*each) for each in pairwise((0, *self._ends)))

    def holds_row(self, row: Row) -> bool:
        """Return whether all codes of a tuple are in the ranges of its columns."""
        for code, (base, last, has_null) in zip(row, self._bounds, strict=True):
            if not (base < code <= last if code else has_null):
                return False
        return True

    @cached_property
    def _bounds(self) -> tuple[tuple[int, int, bool], ...]:
        """For each column the base, the last code, and whether it may be null."""
        return tuple((column.base, column.last, column.has_null) for column in self.columns)

    def pack_row(self, row: Row) -> Any:
        """Return a tuple whose codes are in range as `Words.tolist` has it."""
        if self.is_narrow:
            word = 0
            for code, (base, _, shift, _) in zip(row, self._fields, strict=True):
                if code:
                    word |= (code - base) << shift
            return word
        return self._row_bytes(row)

    def _row_bytes(self, row: Row) -> bytes:
        """Return the first columns of a wide tuple."""
        return b"".join(
            [
                (code - column.base if code else 0).to_bytes((column.width + 7) // 8, "big")
                for code, column in zip(row, self.columns, strict=False)
            ]
        )

    def pack_rows(self, rows: Sequence[Row]) -> Words:
        """Return tuples whose codes are in range, packed and sorted."""
        packed = sorted([self.pack_row(row) for row in rows])
        if self.is_narrow:
            return np.array(packed, np.int64)
        return np.frombuffer(b"".join(packed), self.dtype) if packed else self.empty

    def unpack_row(self, word: Any) -> Row:
        """Return the codes of a tuple as `Words.tolist` has it."""
        if self.is_narrow:
            return tuple(
                [
                    distance + base if (distance := word >> shift & mask) else 0
                    for base, _, shift, mask in self._fields
                ]
            )
        distances = [int.from_bytes(word[each], "big") for each in self._places]
        return tuple(
            [
                distance + column.base if distance else 0
                for distance, column in zip(distances, self.columns, strict=True)
            ]
        )

    def row_bounds(self, key: Row) -> tuple[Any, Any] | None:
        """Return the least and the greatest word with these first codes; None if there is none."""
        low = 0
        for code, (base, last, shift, _) in zip(key, self._fields, strict=False):
            if base < code <= last:
                low |= (code - base) << shift
            elif code:
                return None
        if self.is_narrow:
            rest = self.shifts[len(key) - 1] if key else self.bits
            return low, low | (1 << rest) - 1
        first = self._row_bytes(key)
        rest = self._ends[-1] - len(first)
        return first + bytes(rest), first + b"\xff" * rest

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

    def prefix_bytes(self, length: int) -> int:
        """Return the number of bytes that the first columns of a wide tuple have."""
        return self._ends[length - 1]

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
        return layout_of(tuple([self.columns[column] for column in order]))

    def packs_like(self, other: "Layout") -> bool:
        """Return whether tuples have the same words in both; only one may have a null."""
        return all(one[:2] == two[:2] for one, two in zip(self.columns, other.columns, strict=True))

    def convert(self, words: Words, before: "Layout") -> Words:
        """Repack tuples of another layout whose codes fit this one; sorted ones stay sorted."""
        if before is self:
            return words
        if not len(words):
            return self.empty
        if self.packs_like(before):
            return words
        return self.pack(before.unpack(words), len(words))

    def append_column(self, shorter: "Layout", words: Words, code: int) -> Words:
        """Return tuples of a layout without the last column, with one code as last column."""
        *columns, last = self.columns
        if self.is_narrow and tuple(columns) == shorter.columns:
            return words << _scalar(last.width) | _scalar(code - last.base if code else 0)
        codes = np.full(len(words), code, np.int64)
        return self.pack([*shorter.unpack(words), codes], len(words))


@lru_cache(maxsize=4096)
def layout_of(columns: tuple[CodeRange, ...]) -> Layout:
    """Return the layout for these ranges, one object for equal ones: tables compare by `is`."""
    return Layout(columns)


class LayoutFamily:
    """The layout that some tables share.

    Attributes:
        layout: the current layout; None once the family has been merged into another.
        successor: the family that this one has been merged into.
    """

    __slots__ = ("layout", "successor")

    def __init__(self, arity: int) -> None:
        self.layout: Layout | None = layout_of((CodeRange(),) * arity)
        self.successor: LayoutFamily | None = None

    @property
    def current(self) -> "LayoutFamily":
        """The family that this one has been merged into, or itself."""
        last = self
        while last.successor is not None:
            last = last.successor
        family = self
        while family.successor is not None:  # the next look has a shorter way
            family.successor, family = last, family.successor
        return last

    def join(self, other: "LayoutFamily") -> None:
        """Merge another family into this one."""
        one, two = self.current, other.current
        if one is not two:
            assert two.layout is not None
            one.widen(two.layout.columns)
            two.layout, two.successor = None, one

    def widen(self, columns: Sequence[CodeRange], growth: int = 0) -> None:
        """Make the ranges include others; those that have to grow get some bits more to do so."""
        assert self.layout is not None
        wider = _extended(self.layout.columns, columns, growth)
        if growth and sum(column.width for column in wider) > NARROW_BITS:
            wider = _extended(self.layout.columns, columns)  # narrow words are worth more
        if wider != self.layout.columns:
            self.layout = layout_of(wider)

    def fit(self, columns: Sequence[Codes], bounds: Sequence[CodeRange | None]) -> None:
        """Make the ranges include codes whose ranges are part of the bounds, if known.

        A bound may be far too large. It is trusted as long as a tuple stays narrow, since looking
        at the codes costs a pass over each column; after that the codes decide.
        """
        assert self.layout is not None
        known = self.layout.columns
        for column, codes, bound in zip(known, columns, bounds, strict=True):
            if not (column.holds(codes) if bound is None else column.includes(bound)):
                break
        else:
            return
        found = [
            _NO_CODES if bound is not None else range_of(codes)
            for codes, bound in zip(columns, bounds, strict=True)
        ]
        trusted = [_NO_CODES if bound is None else bound for bound in bounds]
        if sum(each.width for each in _extended(_extended(known, trusted), found)) > NARROW_BITS:
            found = [range_of(codes) for codes in columns]
        else:
            self.widen(trusted)  # a bound has the room of its own table to grow
        self.widen(found, GROWTH_BITS)

    def fit_rows(self, rows: Sequence[Row]) -> None:
        """Make the ranges include the codes of few tuples."""
        assert self.layout is not None
        if not all(map(self.layout.holds_row, rows)):
            self.fit(list(np.array(rows, np.int64).T), (None,) * len(rows[0]))


def _extended(
    columns: Sequence[CodeRange], others: Sequence[CodeRange], growth: int = 0
) -> tuple[CodeRange, ...]:
    return tuple(
        [column.extend(other, growth) for column, other in zip(columns, others, strict=True)]
    )
