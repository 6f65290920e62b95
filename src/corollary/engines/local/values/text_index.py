"""Finding texts among many by their hashes, without a Python object for each.

The hash of a text is computed from its bytes, eight at a time, for all texts of an array at once.
An index is sorted hashes and, in parallel, the numbers of the texts. Different texts may have
equal hashes, so whoever finds a number compares the text as well.
"""

import zlib
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow_buffers import LOW_BITS, bool_values, index_array
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.sorting import sort_with_rows

HASH_BITS = 40
"""The width of a hash: a hundred million texts have but thousands of equal ones."""

HASHED_BYTES_MAX = 256
"""Texts up to this many bytes are hashed all at once, longer ones one by one."""

PLAIN_MULTIPLIER = 0x9E3779B97F4A7C15
MULTIPLIER = np.uint64(PLAIN_MULTIPLIER)
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


def hash_text(text: bytes) -> int:
    """Return the hash of one text, as `hash_texts` does.

    >>> from corollary.core.arrow_buffers import string_array
    >>> hash_text(b"a text") == hash_texts(string_array(["a text"])).item()
    True
    """
    result = len(text)
    for at in range(0, min(len(text), HASHED_BYTES_MAX), 8):
        word = text[at : at + 8]
        result = _mix_one(result ^ int.from_bytes(word, "little") << 8 * (8 - len(word)))
    if len(text) > HASHED_BYTES_MAX:
        result = _mix_one(result ^ zlib.crc32(text))
    return _mix_one(result) >> 64 - HASH_BITS


def _mix_one(number: int) -> int:
    product = number * PLAIN_MULTIPLIER & LOW_BITS
    return product ^ product >> 32


def _mix(hashes: Hashes) -> Hashes:
    product = hashes * MULTIPLIER
    return product ^ (product >> np.uint64(32))


class TextIndex:
    """The numbers of texts by their hashes, in a few runs, each sorted.

    Attributes:
        count: the texts with numbers below this are in it.
    """

    __slots__ = ("_runs", "count")

    def __init__(
        self, count: int, hashes: Codes | None = None, numbers: Codes | None = None
    ) -> None:
        self.count = count
        self._runs: list[tuple[Codes, Codes]] = []
        if hashes is not None and numbers is not None and len(hashes):
            self._runs.append((hashes, numbers))

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        return sum(hashes.nbytes + numbers.nbytes for hashes, numbers in self._runs)

    def extend(self, texts: pa.Array) -> None:
        """Add texts, numbered from `count` on; runs of similar size are merged."""
        hashes, rows = sort_with_rows(hash_texts(texts))
        numbers = rows + self.count
        while self._runs and len(self._runs[-1][0]) <= 2 * len(hashes):
            others, their_numbers = self._runs.pop()
            hashes, rows = sort_with_rows(np.concatenate([others, hashes]))
            numbers = np.concatenate([their_numbers, numbers])[rows]
        self._runs.append((hashes, numbers))
        self.count += len(texts)

    def candidates(self, wanted: int) -> Iterator[int]:
        """Yield the numbers of the texts that have a hash."""
        for hashes, numbers in self._runs:
            at = int(hashes.searchsorted(wanted))
            while at < len(hashes) and hashes.item(at) == wanted:
                yield numbers.item(at)
                at += 1

    def find(self, texts: pa.Array, take: Callable[[Codes], pa.Array]) -> Codes:
        """Return the numbers of texts, 0 for those that are not in the index.

        Args:
            texts: a `large_string` array without nulls.
            take: returns the texts of numbers.
        """
        found = np.zeros(len(texts), np.int64)
        # Sorted: searches that jump far miss every cache.
        every, order = sort_with_rows(hash_texts(texts))
        for hashes, numbers in self._runs:
            wanted, rows, at = every, order, hashes.searchsorted(every)
            # Texts of equal hashes are compared one after the other, for all rows at once.
            while True:
                is_hit = hashes.take(at, mode="clip") == wanted
                is_hit &= at < len(hashes)
                wanted, rows, at = wanted[is_hit], rows[is_hit], at[is_hit]
                if not len(rows):
                    break
                candidates = numbers[at]
                sought = texts.take(index_array(rows))
                is_equal = bool_values(pc.equal(sought, take(candidates)))
                found[rows[is_equal]] = candidates[is_equal]
                wanted, rows, at = (each[~is_equal] for each in (wanted, rows, at + 1))
        return found
