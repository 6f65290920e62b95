"""Sorted runs in a file, of which a probe decodes only the blocks that it touches.

The *head* of a tuple is its first columns, packed into one integer. Heads are stored as differences
between neighbours or, in a block where they are dense, as a bitmap; the other columns are stored as
they are. Differences are small because words are sorted; the columns after those that identify a
tuple (such as its rank) would only add noise to them. The first word of a block is its fence.
"""

from collections.abc import Iterator
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt

from corollary.data_class import dataclass
from corollary.engines.local.storage.blocks import Blocks, pack_columns, unpack_columns
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import NARROW_BITS, Layout, Mask, Words, layout_of
from corollary.engines.local.storage.runs import MemoryRun, is_member, sort_distinct
from corollary.engines.local.storage.sorting import first_mask, sort_with_rows

BLOCK_ROWS = 1 << 13
"""The number of tuples in a block."""

BITMAP_BITS_PER_HEAD = 8
"""Heads with at most this many bits of a bitmap for each are stored as one: smaller and faster."""

DECODE_ALL_RATIO = 4
"""All blocks are decoded once more than one in this many has been needed."""

Rows = npt.NDArray[np.int64] | slice


@dataclass(frozen=True, slots=True)
class StoredOrder:
    """The tuples of a relation in one order, as blocks.

    Attributes:
        head_columns: the number of columns in the head.
        fences: the first word of each block.
    """

    layout: Layout
    head_columns: int
    count: int
    fences: Words
    blocks: Blocks
    _heads: Codes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_heads", _heads(self.fences, self.layout, self.head_columns))

    def decode_block(self, number: int, into: Words) -> None:
        """Write the words of a block to an array of the same length.

        Raises:
            WarehouseError: the block is damaged.
        """
        layout, lead, count = self.layout.plain, self.head_columns, len(into)
        columns = len(layout.widths) - lead
        (steps, *rest), bits = unpack_columns(self.blocks.block(number), 1 + columns, count)
        heads = into if layout.is_narrow else np.empty(count, np.int64)
        # Narrow words are built in place: heads first, shifted, then the other columns.
        if len(bits):
            is_head = np.unpackbits(np.frombuffer(bits, np.uint8)).view(np.bool_)
            np.add(is_head.nonzero()[0], self._heads[number], out=heads)
        else:
            np.cumsum(steps, dtype=np.int64, out=heads)
            heads += self._heads[number]
        if not layout.is_narrow:
            first = layout_of(layout.columns[:lead]).unpack(heads)
            into[:] = layout.pack([*first, *(column.astype(np.int64) for column in rest)], count)
            return
        if rest:
            into <<= sum(layout.widths[lead:])
        for shift, column in zip(layout.shifts[lead:], rest, strict=True):
            into |= column.astype(np.int64) << shift if shift else column.astype(np.int64)


def store_order(words: Words, layout: Layout) -> StoredOrder:
    """Return sorted, distinct words as blocks."""
    lead = _lead(words, layout)
    heads = _heads(words, layout, lead)
    # Blocks hold distances from the bases, not codes: these are small.
    rest = [layout.plain.unpack_column(words, at) for at in range(lead, len(layout.widths))]
    blocks = []
    for start in range(0, len(words), BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        steps, bits = _differences(heads[part])
        blocks.append(pack_columns([steps, *(column[part] for column in rest)], bits))
    return StoredOrder(layout, lead, len(words), words[::BLOCK_ROWS].copy(), Blocks.of(blocks))


def _differences(heads: Codes) -> tuple[Codes, bytes]:
    """Return sorted integers as differences or, where they are dense and distinct, as a bitmap."""
    steps = np.diff(heads, prepend=heads[0])
    span = int(heads[-1] - heads[0]) + 1
    if span > BITMAP_BITS_PER_HEAD * len(heads) or not steps[1:].all():
        return steps, b""
    is_head = np.zeros(span, np.bool_)
    is_head[heads - heads[0]] = True
    return np.zeros(len(heads), np.int64), np.packbits(is_head).tobytes()


def _heads(words: Words, layout: Layout, lead: int) -> Codes:
    """Return the first columns as one integer."""
    if layout.is_narrow:
        return layout.prefix_keys(words, lead)
    plain = layout.plain
    columns = [plain.unpack_column(words, at) for at in range(lead)]
    return layout_of(plain.columns[:lead]).pack(columns, len(words))


def _lead(words: Words, layout: Layout) -> int:
    """Return the number of first columns that identify all tuples; at most what fits an int64."""
    lead = len(layout.widths)
    while sum(layout.widths[:lead]) > NARROW_BITS:
        lead -= 1
    while lead:
        prefix = layout.prefix_keys(words, lead - 1)
        if not (prefix[1:] != prefix[:-1]).all():
            break
        lead -= 1
    return lead


class StoredRun:
    """A run that is decoded block by block, as needed.

    Blocks are decoded into one array, of which only decoded parts are handed out; once all of it
    is decoded, it becomes a run in memory.

    Attributes:
        stored: the blocks.
    """

    __slots__ = ("_is_missing", "_run", "_words", "stored")

    is_here = True

    def __init__(self, stored: StoredOrder) -> None:
        self.stored = stored
        # The operating system gives memory to `np.empty` when a page is first written.
        self._words: Words = np.empty(stored.count, stored.layout.dtype)
        self._is_missing = np.ones(len(stored.blocks), np.bool_)
        self._run: MemoryRun | None = None

    def __len__(self) -> int:
        return self.stored.count

    @property
    def decoded_blocks(self) -> int:
        """The number of blocks that have been decoded."""
        return len(self._is_missing) - int(np.count_nonzero(self._is_missing))

    @property
    def words(self) -> Words:
        """All words, everything decoded."""
        return self._all().words

    @property
    def nbytes(self) -> int:
        """The size in bytes, the file included."""
        decoded = self.decoded_blocks * BLOCK_ROWS * self._words.itemsize
        memory = min(decoded, self._words.nbytes) if self._run is None else self._run.nbytes
        return memory + self.stored.blocks.nbytes + self.stored.fences.nbytes

    def slice(self, first: int, last: int) -> Words:
        """Return the words at the indices from the first to before the last."""
        if self._run is None:
            self._decode(np.arange(first // BLOCK_ROWS, -(-last // BLOCK_ROWS)))
        return self._words[first:last]

    def take(self, indices: npt.NDArray[Any]) -> Words:
        """Return the words at some indices."""
        if self._run is None:
            self._decode(indices // BLOCK_ROWS)
        found: Words = self._words[indices]
        return found

    def contains(self, needles: Words) -> Mask:
        """Return for each needle whether it is among the words."""
        if self._run is not None:
            return self._run.contains(needles)
        found = np.empty(len(needles), np.bool_)
        for rows, _, words in self._parts(needles):
            found[rows] = is_member(needles[rows], words)
        return found

    def ranges(self, layout: Layout, keys: list[Codes], count: int) -> tuple[Codes, Codes]:
        """Return for each key (values of the first columns) the slice of words that have it."""
        if self._run is not None:
            return self._run.ranges(layout, keys, count)
        if not keys:
            return np.zeros(count, np.int64), np.full(count, len(self), np.int64)
        low, high = layout.prefix_bounds(keys, count)
        return self._search(low, "left"), self._search(high, "right")

    def find(self, low: Any, high: Any) -> tuple[int, int]:
        """Return where the words from one to another are, both given as `tolist` gives them."""
        if self._run is not None:
            return self._run.find(low, high)
        bounds = np.array([low, high], self._words.dtype)
        first, last = self._search(bounds[:1], "left"), self._search(bounds[1:], "right")
        return int(first[0]), int(last[0])

    def repack(self, layout: Layout, before: Layout) -> "StoredRun | MemoryRun":
        """Return the run in another layout of the same order; its words stay sorted."""
        return self if layout.packs_like(before) else self._all().repack(layout, before)

    def _search(self, needles: Words, side: Any) -> Codes:
        indices = np.empty(len(needles), np.int64)
        for rows, first, words in self._parts(needles):
            indices[rows] = words.searchsorted(needles[rows], side)
            indices[rows] += first
        return indices

    def _parts(self, needles: Words) -> Iterator[tuple[Rows, int, Words]]:
        """Yield needles by the block that decides them, the index of its first word, its words."""
        if not len(needles):
            return
        # The last block whose fence is not above the needle; the first one for smaller needles.
        blocks = np.maximum(self.stored.fences.searchsorted(needles, "right") - 1, 0)
        self._decode(blocks)
        if self._run is not None:  # that was the last block
            yield slice(None), 0, self._words
            return
        ordered, order = sort_with_rows(blocks)
        starts = first_mask(ordered).nonzero()[0]
        numbers = ordered[starts].tolist()
        for number, rows in zip(numbers, np.split(order, starts[1:]), strict=True):
            first = number * BLOCK_ROWS
            yield rows, first, self._words[first : first + BLOCK_ROWS]

    def _decode(self, blocks: npt.NDArray[np.int64]) -> None:
        """Decode some blocks, or all once many have been needed."""
        missing = blocks[self._is_missing[blocks]]
        if not len(missing):
            return
        missing = sort_distinct(missing)
        if (self.decoded_blocks + len(missing)) * DECODE_ALL_RATIO > len(self._is_missing):
            self._all()
        else:
            self._fill(missing)

    def _all(self) -> MemoryRun:
        """Decode everything."""
        if self._run is None:
            self._fill(self._is_missing.nonzero()[0])
            self._run = MemoryRun(self._words)
        return self._run

    def _fill(self, numbers: npt.NDArray[np.int64]) -> None:
        for number in numbers.tolist():
            first = number * BLOCK_ROWS
            self.stored.decode_block(number, self._words[first : first + BLOCK_ROWS])
            self._is_missing[number] = False
