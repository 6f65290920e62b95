"""Sorted arrays of packed tuples: set operations, and runs that are probed by binary search."""

from typing import Any

import numpy as np
import numpy.typing as npt

from corollary.engines.local.layout import Codes, Layout, Words

Mask = npt.NDArray[np.bool_]

DIRECTORY_BITS = 26
"""A directory (the start of every prefix) is never kept for wider prefixes."""


def distinct(words: Words) -> Words:
    """Return the words sorted, each once."""
    if len(words) < 2:
        return words
    words = np.sort(words)
    fresh = np.empty(len(words), np.bool_)
    fresh[0] = True
    fresh[1:] = words[1:] != words[:-1]
    return words if fresh.all() else words[fresh]


def is_member(needles: Words, words: Words) -> Mask:
    """Return for each needle whether it is among the sorted words."""
    if not len(words):
        return np.zeros(len(needles), np.bool_)
    places = np.searchsorted(words, needles)
    np.minimum(places, len(words) - 1, out=places)
    found: Mask = words[places] == needles
    return found


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


class Run:
    """One sorted array and, once it has been searched enough, directories of its prefixes.

    A directory holds the start of every possible prefix, so that a probe is two gathers instead
    of two binary searches. It costs one pass, hence it is made when as many needles have been
    looked up as that pass is long.
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

    def ranges(self, layout: Layout, keys: list[Codes], count: int) -> tuple[Any, Any]:
        """Return for each key (values of the first columns) the slice of words that have it."""
        length = len(keys)
        if not length:
            return np.zeros(count, np.int64), np.full(count, len(self.words), np.int64)
        bits = sum(layout.widths[:length])
        if layout.is_narrow and bits <= DIRECTORY_BITS:
            directory = self._directory(layout, length, bits, count)
            if directory is not None:
                rest = layout.shifts[length - 1]
                key = layout.bounds(keys, count)[0] >> rest
                return directory[key], directory[key + 1]
        low, high = layout.bounds(keys, count)
        start = np.searchsorted(self.words, low, side="left")
        if length == len(layout.widths):
            places = np.minimum(start, len(self.words) - 1)
            return start, start + (self.words[places] == low if len(self.words) else 0)
        return start, np.searchsorted(self.words, high, side="right")

    def _directory(
        self, layout: Layout, length: int, bits: int, count: int
    ) -> npt.NDArray[np.int64] | None:
        known = self._directories.get(length)
        if known is not None:
            return known
        self._searched += count
        if self._searched < (len(self.words) + (1 << bits)) // 4:
            return None
        sizes = np.bincount(self.words >> layout.shifts[length - 1], minlength=1 << bits)
        directory = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=directory[1:])
        self._directories[length] = directory
        return directory


def append(runs: list[Run], words: Words) -> None:
    """Add a sorted array to disjoint runs; runs of like size merge, so that they stay few."""
    runs.append(Run(words))
    while len(runs) > 1 and len(runs[-2]) <= 2 * len(runs[-1]):
        last = runs.pop()
        runs[-1] = Run(merge(runs[-1].words, last.words))
