"""Strings of a file: looked up by number and by value without reading all of them.

They are stored in blocks in the order of their numbers. A second list of blocks is the permutation
that sorts them, with the first string of each block as its fence: searching for a value decodes
one block of the permutation and the strings that a binary search in it compares. The string
numbered 0 stands for null and is never found.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corollary.engines.local.storage.blocks import Blocks, pack_columns, unpack_columns
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.runs import sort_distinct

BLOCK_ROWS = 1 << 9
"""The number of strings in a block."""

SORTED_BLOCK_ROWS = 1 << 13
"""The number of entries in a block of the permutation."""

DECODE_ALL_RATIO = 2
"""All blocks are decoded when more than one in this many is read."""

Offsets = npt.NDArray[np.int64]
Text = tuple[Offsets, memoryview]
"""The offsets of strings (one more than strings, the first is 0), and their bytes."""


@dataclass(slots=True)
class StoredStrings:
    """Numbered strings.

    Attributes:
        texts: the blocks of the strings.
        permutation: the blocks of their numbers, in the order of the strings.
        fences: one block: the first string of each block of the permutation.
    """

    count: int
    texts: Blocks
    permutation: Blocks
    fences: Blocks
    _texts: dict[int, Text] = field(default_factory=dict, init=False, repr=False)
    _sorted: dict[int, list[int]] = field(default_factory=dict, init=False, repr=False)
    _fences: list[bytes] | None = field(default=None, init=False, repr=False)
    _whole: Text | None = field(default=None, init=False, repr=False)

    def __len__(self) -> int:
        return self.count

    @property
    def nbytes(self) -> int:
        """The size in bytes, the file included."""
        parts = (self.texts, self.permutation, self.fences)
        texts = [*self._texts.values(), *([] if self._whole is None else [self._whole])]
        decoded = sum(ends.nbytes + len(text) for ends, text in texts)
        return sum(part.nbytes for part in parts) + decoded

    @property
    def decoded_blocks(self) -> int:
        """The number of blocks of strings that have been decoded."""
        return len(self._texts) if self._whole is None else len(self.texts)

    # --- by number -----------------------------------------------------------------------------

    def read_all(self) -> pa.Array:
        """Return all strings."""
        if self._whole is None:
            self._whole = _join_texts([self._text(number) for number in range(len(self.texts))])
            self._texts = {}
        return _to_array(self._whole)

    def take(self, numbers: Codes) -> pa.Array:
        """Return the strings of some numbers."""
        blocks = numbers // BLOCK_ROWS
        distinct = sort_distinct(blocks)
        if self._whole is not None or len(distinct) * DECODE_ALL_RATIO > len(self.texts):
            return self.read_all().take(pa.array(numbers))
        strings = _to_array(_join_texts([self._text(number) for number in distinct.tolist()]))
        # Only these blocks are joined: the n-th of them begins at n * BLOCK.
        return strings.take(
            pa.array(numbers - (blocks - distinct.searchsorted(blocks)) * BLOCK_ROWS)
        )

    def _text(self, number: int) -> Text:
        known = self._texts.get(number)
        if known is None:
            count = min(BLOCK_ROWS, self.count - number * BLOCK_ROWS)
            known = self._texts[number] = _unpack_text(self.texts.block(number), count)
        return known

    def _bytes(self, number: int) -> bytes:
        """Return one string."""
        if self._whole is None:
            (ends, text), at = self._text(number // BLOCK_ROWS), number % BLOCK_ROWS
        else:
            (ends, text), at = self._whole, number
        return bytes(text[ends.item(at) : ends.item(at + 1)])

    # --- by value ------------------------------------------------------------------------------

    def find(self, values: Iterable[str]) -> dict[str, int]:
        """Return the numbers of those values that are stored."""
        if self._fences is None:
            ends, text = _unpack_text(self.fences.block(0), len(self.permutation))
            self._fences = [bytes(text[start:end]) for start, end in pairwise(ends.tolist())]
        found = {}
        for value in values:
            needle = value.encode("utf-8", "surrogatepass")
            block = bisect_right(self._fences, needle) - 1
            if block >= 0:
                numbers = self._numbers(block)
                at = bisect_left(numbers, needle, key=self._bytes)
                if at < len(numbers) and self._bytes(numbers[at]) == needle:
                    found[value] = numbers[at]
        return found

    def _numbers(self, block: int) -> list[int]:
        known = self._sorted.get(block)
        if known is None:
            count = min(SORTED_BLOCK_ROWS, self.count - 1 - block * SORTED_BLOCK_ROWS)
            (numbers,), _ = unpack_columns(self.permutation.block(block), 1, count)
            known = self._sorted[block] = numbers.tolist()
        return known


def store_strings(strings: pa.Array) -> StoredStrings:
    """Return a `large_string` array as blocks."""
    count = len(strings)
    texts = [
        _pack_text(strings[start : start + BLOCK_ROWS]) for start in range(0, count, BLOCK_ROWS)
    ]
    order = 1 + pc.array_sort_indices(strings[1:]).to_numpy().astype(np.int64)
    starts = range(0, count - 1, SORTED_BLOCK_ROWS)
    permutation = [pack_columns([order[start : start + SORTED_BLOCK_ROWS]]) for start in starts]
    fences = _pack_text(strings.take(pa.array(order[::SORTED_BLOCK_ROWS])))
    parts = (Blocks.of(blocks) for blocks in (texts, permutation, [fences]))
    return StoredStrings(count, *parts)


def _pack_text(strings: pa.Array) -> bytes:
    """Return a slice of an array as a block: the lengths, then the bytes."""
    if not len(strings):
        return pack_columns([np.empty(0, np.int64)])
    _, offsets, text = strings.buffers()
    ends = np.frombuffer(offsets, np.int64, len(strings) + 1, 8 * strings.offset)
    return pack_columns([np.diff(ends)], memoryview(text)[ends.item(0) : ends.item(-1)].tobytes())


def _unpack_text(block: memoryview, count: int) -> Text:
    (lengths,), text = unpack_columns(block, 1, count)
    ends = np.zeros(count + 1, np.int64)
    np.cumsum(lengths, dtype=np.int64, out=ends[1:])
    return ends, text


def _join_texts(texts: list[Text]) -> Text:
    """Return the texts of several blocks as one."""
    ends = [np.zeros(1, np.int64)]
    total = 0
    for each, text in texts:
        ends.append(each[1:] + total)
        total += len(text)
    return np.concatenate(ends), memoryview(b"".join(text for _, text in texts))


def _to_array(text: Text) -> pa.Array:
    ends, data = text
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_string(), len(ends) - 1, buffers)
