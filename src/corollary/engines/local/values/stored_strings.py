"""Strings of a file: looked up by number and by value without reading all of them.

They are stored in blocks in the order of their numbers. A second list of blocks has their sorted
hashes, each with the number of its string, and the first hash of each block as its fence: searching
for a value decodes one of these blocks, and a block of strings for each one of an equal hash. The
string numbered 0 stands for null and is never found.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import field
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.core.arrow_buffers import index_array
from corollary.data_class import dataclass
from corollary.engines.local.storage.blocks import Blocks, pack_columns, unpack_columns
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.sorting import number_distinct, sort_with_rows
from corollary.engines.local.values.text_index import TextIndex, hash_text, hash_texts

BLOCK_ROWS = 1 << 9
"""The number of strings in a block."""

HASH_BLOCK_ROWS = 1 << 13
"""The number of hashes in a block."""

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
        hashes: the blocks of their hashes, as differences, and of their numbers.
        fences: one block: the first hash of each block of hashes.
    """

    count: int
    texts: Blocks
    hashes: Blocks
    fences: Blocks
    _texts: dict[int, Text] = field(default_factory=dict, init=False, repr=False)
    _hashes: dict[int, tuple[Codes, Codes]] = field(default_factory=dict, init=False, repr=False)
    _fences: list[int] | None = field(default=None, init=False, repr=False)
    _whole: Text | None = field(default=None, init=False, repr=False)

    def __len__(self) -> int:
        return self.count

    @property
    def nbytes(self) -> int:
        """The size in bytes, the file included."""
        parts = (self.texts, self.hashes, self.fences)
        texts = [*self._texts.values(), *([] if self._whole is None else [self._whole])]
        decoded = sum(ends.nbytes + len(text) for ends, text in texts)
        decoded += sum(each.nbytes for block in self._hashes.values() for each in block)
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
        distinct, places = number_distinct(blocks)
        if self._whole is not None or len(distinct) * DECODE_ALL_RATIO > len(self.texts):
            return self.read_all().take(index_array(numbers))
        strings = _to_array(_join_texts([self._text(number) for number in distinct.tolist()]))
        # Only these blocks are joined: the n-th of them begins at n * BLOCK.
        return strings.take(index_array(numbers - (blocks - places) * BLOCK_ROWS))

    def _text(self, number: int) -> Text:
        known = self._texts.get(number)
        if known is None:
            count = min(BLOCK_ROWS, self.count - number * BLOCK_ROWS)
            known = self._texts[number] = _unpack_text(self.texts.block(number), count)
        return known

    def bytes_of(self, number: int) -> bytes:
        """Return one string."""
        if self._whole is None:
            (ends, text), at = self._text(number // BLOCK_ROWS), number % BLOCK_ROWS
        else:
            (ends, text), at = self._whole, number
        return bytes(text[ends.item(at) : ends.item(at + 1)])

    # --- by value ------------------------------------------------------------------------------

    def find(self, values: Sequence[str]) -> dict[str, int]:
        """Return the numbers of those values that are stored."""
        if self._fences is None:
            (fences,), _ = unpack_columns(self.fences.block(0), 1, len(self.hashes))
            self._fences = fences.tolist()
        found = {}
        for value in values:
            needle = value.encode()
            wanted = hash_text(needle)
            # Equal hashes may begin in the block before the first fence that is not below.
            first = max(bisect_left(self._fences, wanted) - 1, 0)
            for block in range(first, bisect_right(self._fences, wanted)):
                known, numbers = self._hash_block(block)
                for at in range(*np.searchsorted(known, [wanted, wanted + 1]).tolist()):
                    number = numbers.item(at)
                    if self.bytes_of(number) == needle:
                        found[value] = number
        return found

    def _hash_block(self, block: int) -> tuple[Codes, Codes]:
        """Return the hashes of a block, sorted, and the numbers of their strings."""
        known = self._hashes.get(block)
        if known is None:
            known = self._hashes[block] = self._read_hashes(block)
        return known

    def _read_hashes(self, block: int) -> tuple[Codes, Codes]:
        count = min(HASH_BLOCK_ROWS, self.count - 1 - block * HASH_BLOCK_ROWS)
        (steps, numbers), _ = unpack_columns(self.hashes.block(block), 2, count)
        return np.cumsum(steps, dtype=np.int64), numbers.astype(np.int64)

    def read_index(self) -> TextIndex:
        """Return the index of all strings."""
        return TextIndex(self.count, *self.sorted_hashes())

    def sorted_hashes(self) -> tuple[Codes, Codes]:
        """Return the hashes of all strings, sorted, and the numbers of these."""
        blocks = [self._read_hashes(block) for block in range(len(self.hashes))]
        nothing = np.empty(0, np.int64)
        hashes, numbers = (
            np.concatenate([nothing, *parts])
            for parts in (zip(*blocks, strict=True) if blocks else ((), ()))
        )
        return hashes, numbers

    def append(self, strings: pa.Array) -> "StoredStrings":
        """Return these strings and more of them, a `large_string` array; full blocks stay."""
        full = self.count // BLOCK_ROWS
        if self.count % BLOCK_ROWS:
            last = pa.concat_arrays([_to_array(self._text_apart(full)), strings])
        else:
            last = strings
        hashes, numbers = self.sorted_hashes()
        new = np.arange(self.count, self.count + len(strings))
        hashes, rows = sort_with_rows(np.concatenate([hashes, hash_texts(strings)]))
        numbers = np.concatenate([numbers, new])[rows]
        texts = self.texts.first(full).append(_pack_texts(last))
        return StoredStrings(self.count + len(strings), texts, *_pack_hashes(hashes, numbers))

    def _text_apart(self, number: int) -> Text:
        """Return a block of strings, which is not kept."""
        return _unpack_text(self.texts.block(number), self.count - number * BLOCK_ROWS)


def store_strings(strings: pa.Array) -> StoredStrings:
    """Return a `large_string` array as blocks."""
    hashes, rows = sort_with_rows(hash_texts(strings[1:]))
    rows += 1
    texts = Blocks.of(_pack_texts(strings))
    return StoredStrings(len(strings), texts, *_pack_hashes(hashes, rows))


def _pack_hashes(hashes: Codes, numbers: Codes) -> tuple[Blocks, Blocks]:
    """Return sorted hashes with the numbers of their strings as blocks, and their fences."""
    starts = range(0, len(hashes), HASH_BLOCK_ROWS)
    parts = [slice(start, start + HASH_BLOCK_ROWS) for start in starts]
    blocks = [pack_columns([_differences(hashes[part]), numbers[part]]) for part in parts]
    return Blocks.of(blocks), Blocks.of([pack_columns([hashes[::HASH_BLOCK_ROWS]])])


def _differences(hashes: Codes) -> Codes:
    """Return the differences between neighbours, the first one whole."""
    return np.diff(hashes, prepend=0)


def _pack_texts(strings: pa.Array) -> list[bytes]:
    """Return the blocks of an array: of each the lengths, then the bytes."""
    if not len(strings):
        return []
    _, offsets, text = strings.buffers()
    ends = np.frombuffer(offsets, np.int64, len(strings) + 1, 8 * strings.offset)
    lengths = np.diff(ends).view(np.uint64)
    view = memoryview(text) if text is not None else memoryview(b"")
    bounds = [*ends[:-1:BLOCK_ROWS].tolist(), ends.item(-1)]
    return [
        pack_columns([lengths[BLOCK_ROWS * at : BLOCK_ROWS * (at + 1)]], view[start:end])
        for at, (start, end) in enumerate(pairwise(bounds))
    ]


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
