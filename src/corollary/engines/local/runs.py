"""Sorted arrays of packed tuples: set operations, and runs that are probed by binary search."""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from corollary.engines.local.layout import Codes, Layout, Mask, Words

SCATTERED = 1 << 14
"""From so many needles and words on it pays to look the needles up in order."""

DIRECTORY_BITS = 24
"""A directory (the start of every prefix) is never kept for wider prefixes."""

SMALL = 4096
"""Runs up to this size are one: copying so much costs less than searching another run."""


def distinct(words: Words) -> Words:
    """Return the words sorted, each once."""
    if len(words) < 2:
        return words
    words = words.copy()
    words.sort()
    fresh = np.empty(len(words), np.bool_)
    fresh[0] = True
    fresh[1:] = words[1:] != words[:-1]
    return words if np.count_nonzero(fresh) == len(fresh) else words[fresh]


def is_member(needles: Words, words: Words) -> Mask:
    """Return for each needle whether it is among the sorted words."""
    if not len(words):
        return np.zeros(len(needles), np.bool_)
    if len(needles) > SCATTERED and len(words) > SCATTERED and needles.dtype == np.int64:
        return _is_member_of_many(needles, words)
    found: Mask = words.take(words.searchsorted(needles), mode="clip") == needles
    return found


def _is_member_of_many(needles: Words, words: Words) -> Mask:
    """Return the same, needles in order: binary searches far apart miss every cache."""
    if (needles[1:] >= needles[:-1]).all():
        found: Mask = words.take(words.searchsorted(needles), mode="clip") == needles
        return found
    order = needles.argsort()
    ordered = needles[order]
    result = np.empty(len(needles), np.bool_)
    result[order] = words.take(words.searchsorted(ordered), mode="clip") == ordered
    return result


def merge(*runs: Words) -> Words:
    """Return the union of sorted, disjoint arrays, sorted."""
    filled = [run for run in runs if len(run)]
    if len(filled) < 2:
        return filled[0] if filled else runs[0]
    joined = np.concatenate(filled)
    joined.sort(kind="stable")  # merges what is sorted already
    return joined


def minus(words: Words, others: Words) -> Words:
    """Return the sorted words that are not among the sorted others."""
    if not len(words) or not len(others):
        return words
    return words[~is_member(words, others)]


class SortedRun(Protocol):
    """Sorted, distinct words, in memory or not."""

    def __len__(self) -> int:
        """Return their number."""

    @property
    def words(self) -> Words:
        """All of them; what probes them asks for less."""

    @property
    def nbytes(self) -> int:
        """The bytes it holds."""

    def slice(self, first: int, last: int) -> Words:
        """Return the words at the places from the first to before the last."""

    def take(self, places: npt.NDArray[Any]) -> Words:
        """Return the words at some places."""

    def contains(self, needles: Words) -> Mask:
        """Return for each needle whether it is among the words."""

    def ranges(self, layout: Layout, keys: list[Codes], count: int) -> tuple[Codes, Codes]:
        """Return for each key (values of the first columns) the slice of words that have it."""


class Run:
    """One sorted array and, once it has been searched enough, directories of its prefixes.

    A directory holds the start of every possible prefix, so that a probe is two gathers instead
    of two binary searches. It costs a search for every prefix, or one pass over everything, hence
    it is made when a like number of needles has been looked up.
    """

    __slots__ = ("_directories", "_searched", "words")

    def __init__(self, words: Words) -> None:
        self.words = words
        self._searched = 0
        self._directories: dict[int, npt.NDArray[np.int64]] = {}

    def __len__(self) -> int:
        return len(self.words)

    @property
    def nbytes(self) -> int:
        """The bytes it holds."""
        return self.words.nbytes + sum(each.nbytes for each in self._directories.values())

    def slice(self, first: int, last: int) -> Words:
        """Return the words at the places from the first to before the last."""
        return self.words[first:last]

    def take(self, places: npt.NDArray[Any]) -> Words:
        """Return the words at some places."""
        found: Words = self.words[places]
        return found

    def contains(self, needles: Words) -> Mask:
        """Return for each needle whether it is among the words."""
        return is_member(needles, self.words)

    def ranges(self, layout: Layout, keys: list[Codes], count: int) -> tuple[Codes, Codes]:
        """Return for each key (values of the first columns) the slice of words that have it."""
        length = len(keys)
        words = self.words
        if not length:
            return np.zeros(count, np.int64), np.full(count, len(words), np.int64)
        low, high = layout.bounds(keys, count)
        self._searched += count
        directory = self._directory(layout, length) if layout.is_narrow else None
        if directory is not None:
            key = layout.prefix(low, length)
            return directory[key], directory[key + 1]
        return words.searchsorted(low), words.searchsorted(high, "right")

    def _directory(self, layout: Layout, length: int) -> npt.NDArray[np.int64] | None:
        known = self._directories.get(length)
        if known is not None:
            return known
        rest = layout.shifts[length - 1]
        bits = layout.bits - rest
        size = 1 << bits
        has_few = size << 3 < len(self.words)
        cost = size if has_few else size + len(self.words)
        if bits > DIRECTORY_BITS or self._searched << 2 < cost:
            return None
        directory = np.zeros(size + 1, np.int64)
        if has_few:
            directory[:-1] = self.words.searchsorted(np.arange(size) << rest)
            directory[-1] = len(self.words)
        else:
            np.cumsum(np.bincount(self.words >> rest, minlength=size), out=directory[1:])
        self._directories[length] = directory
        return directory


def append(runs: list[SortedRun], words: Words) -> None:
    """Add a sorted array to disjoint runs; runs of like size merge, so that they stay few."""
    size = len(words)
    while runs and len(runs[-1]) <= max(2 * size, SMALL - size):
        words = merge(runs[-1].words, words)
        del runs[-1]
        size = len(words)
    runs.append(Run(words))
