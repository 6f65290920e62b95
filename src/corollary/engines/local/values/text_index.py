"""Finding texts among many by their hashes, without a Python object for each.

The hash of a text is computed from its bytes, eight at a time, for all texts of an array at once.
An index is the sorted hashes and, in parallel, the numbers of the texts. Different texts may have
equal hashes, so whoever finds a number compares the text as well.
"""

import zlib
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow_buffers import bool_values, index_array
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.sorting import sort_with_rows

HASH_BITS = 40
"""The width of a hash: a hundred million texts have but thousands of equal ones."""

HASHED_BYTES_MAX = 256
"""Texts up to this many bytes are hashed all at once, longer ones one by one."""

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio: multiplying by it spreads every bit over all higher ones."""

Hashes = npt.NDArray[np.uint64]


def hash_texts(texts: pa.Array) -> Codes:
    """Return the hashes of a `large_string` array without nulls."""
    count = len(texts)
    if not count:
        return np.empty(0, np.int64)
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int64, count + 1, 8 * texts.offset)
    first, last = ends.item(0), ends.item(-1)
    # Words are read beyond the end of the last text: there must be bytes.
    padded = np.zeros(last - first + 8, np.uint8)
    if last > first:
        padded[: last - first] = np.frombuffer(data, np.uint8, last - first, first)
    words = np.ndarray((last - first + 1,), "<u8", padded, strides=(1,))
    starts, lengths = ends[:-1] - first, np.diff(ends)
    hashes: Hashes = lengths.astype(np.uint64)
    for at in range(0, min(int(lengths.max()), HASHED_BYTES_MAX), 8):
        rows = (lengths > at).nonzero()[0]
        some = rows if len(rows) < count else slice(None)
        left = np.minimum(lengths[some] - at, 8)
        # What follows the text is shifted out of its last word.
        word = words[starts[some] + at] << (64 - 8 * left).astype(np.uint64)
        hashes[some] = _mix(hashes[some] ^ word)
    for row in (lengths > HASHED_BYTES_MAX).nonzero()[0].tolist():
        start = starts.item(row)
        checksum = zlib.crc32(padded[start : start + lengths.item(row)].tobytes())
        hashes[row : row + 1] = _mix(hashes[row : row + 1] ^ np.uint64(checksum))
    return (_mix(hashes) >> np.uint64(64 - HASH_BITS)).astype(np.int64)


def _mix(hashes: Hashes) -> Hashes:
    product = hashes * MULTIPLIER
    return product ^ (product >> np.uint64(32))


class TextIndex:
    """The numbers of texts by their hashes.

    Attributes:
        count: the texts with numbers below this are in it.
    """

    __slots__ = ("_hashes", "_numbers", "count")

    def __init__(self, hashes: Codes, numbers: Codes, count: int) -> None:
        self._hashes = hashes
        self._numbers = numbers
        self.count = count

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        return self._hashes.nbytes + self._numbers.nbytes

    def extend(self, texts: pa.Array) -> None:
        """Add texts, numbered from `count` on."""
        hashes, rows = sort_with_rows(hash_texts(texts))
        places = self._hashes.searchsorted(hashes)
        self._hashes = np.insert(self._hashes, places, hashes)
        self._numbers = np.insert(self._numbers, places, rows + self.count)
        self.count += len(texts)

    def find(self, texts: pa.Array, take: Callable[[Codes], pa.Array]) -> Codes:
        """Return the numbers of texts, 0 for those that are not in the index.

        Args:
            texts: a `large_string` array without nulls.
            take: returns the texts of numbers.
        """
        found = np.zeros(len(texts), np.int64)
        hashes = hash_texts(texts)
        at, end = self._hashes.searchsorted(hashes), self._hashes.searchsorted(hashes, "right")
        rows = (at < end).nonzero()[0]
        # Texts of equal hashes are compared one after the other, for all rows at once.
        while len(rows):
            numbers = self._numbers[at[rows]]
            asked = texts.take(index_array(rows))
            is_equal = bool_values(pc.equal(asked, take(numbers)))
            found[rows[is_equal]] = numbers[is_equal]
            rows = rows[~is_equal]
            at[rows] += 1
            rows = rows[at[rows] < end[rows]]
        return found
