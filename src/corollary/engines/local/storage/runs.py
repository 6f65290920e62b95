"""Sorted arrays of packed tuples: set operations, and runs that are probed by binary search."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import NARROW_BITS, WORD_BYTES, Layout, Mask, Words
from corollary.engines.local.storage.sorting import (
    bytes_at,
    first_mask,
    is_sorted,
    leads_of,
    sort_with_rows,
    sort_words,
)

SORTED_SEARCH_MIN_WORDS = 1 << 14
"""With more needles and more words than this, sorting the needles before searching pays."""

WIDE_SEARCH_SHARE = 16
"""Needles in words of bytes are searched for by their first bytes if they are more than one in so
many of the words: reading the first bytes of all takes a pass, a search of integers a quarter."""

FEW_SHARE = 8
"""Words that are fewer than the others by this factor are searched for in them."""

DIRECTORY_MAX_BITS = 24
"""The maximum width of a prefix that has a directory (the start of every prefix)."""

MERGE_SHARE = 4
"""Sorted words are merged with at most this many times as many: half the time of searching."""

SINGLE_RUN_MAX_WORDS = 4096
"""Runs that fit in this size together are merged: copying costs less than probing two runs."""

SCATTER = 2654435761
"""A multiplier whose products are spread evenly."""

SAMPLE_TUPLES = 1 << 15
"""The approximate number of tuples from which distinct values are estimated."""


def sort_distinct(words: Words) -> Words:
    """Return the words sorted, each once."""
    # Sorting and comparing neighbours is faster than `np.unique`, which imports `numpy.ma`, too.
    if len(words) < 2:
        return words
    words = sort_words(words)
    is_first = first_mask(words)
    return words if np.count_nonzero(is_first) == len(is_first) else words[is_first]


def is_member(needles: Words, words: Words) -> Mask:
    """Return for each needle whether it is among the sorted words."""
    if not len(words):
        return np.zeros(len(needles), np.bool_)
    is_large = (
        len(needles) > SORTED_SEARCH_MIN_WORDS
        and len(words) > SORTED_SEARCH_MIN_WORDS
        and needles.dtype == np.int64
    )
    if (
        is_large
        and MERGE_SHARE * len(needles) > len(words)
        and bool((needles[1:] > needles[:-1]).all())
        and _can_tag(needles, words)
    ):
        return _is_merged(needles, words)
    if is_large and not is_sorted(needles):
        # Sort the needles first: binary searches that jump far miss every cache.
        ordered, rows = sort_with_rows(needles)
        result = np.empty(len(needles), np.bool_)
        result[rows] = _find(ordered, words)[0]
        return result
    return _find(needles, words)[0]


def _is_merged(needles: Words, words: Words) -> Mask:
    """Return for each of sorted, distinct needles whether it is among the sorted words."""
    merged = _merge_tagged(words, needles)
    found = np.zeros(len(merged), np.bool_)
    np.equal(merged[1:] ^ merged[:-1], 1, out=found[1:])
    return found.take((merged & 1).nonzero()[0])


def _can_tag(*runs: Words) -> bool:
    """Whether sorted, filled arrays of words have a bit to spare."""
    return all(run.dtype == np.int64 and run[-1] >> (NARROW_BITS - 1) == 0 for run in runs)


def _merge_tagged(words: Words, others: Words) -> Words:
    """Return two sorted arrays merged, 2w for a word w of the first, 2w + 1 for one of the other.

    So a word of both stands beside itself, and differs in the last bit only.
    """
    merged = np.concatenate((words, others))
    merged <<= 1
    merged[len(words) :] |= 1
    merged.sort(kind="stable")
    return merged


def _find(needles: Words, words: Words) -> tuple[Mask, Codes]:
    """Return for each needle whether it is among the sorted words, and its index among them."""
    if words.dtype != np.int64 and len(needles) * WIDE_SEARCH_SHARE > len(words):
        return _find_wide(needles, words)
    # Clip: a needle above all words gets the index after the last one.
    at = words.searchsorted(needles)
    return words.take(at, mode="clip") == needles, at


def _find_wide(needles: Words, words: Words) -> tuple[Mask, Codes]:
    """Return the same of sorted words of bytes, eight bytes at a time."""
    leads, wanted = leads_of(words), leads_of(needles)
    at = leads.searchsorted(wanted)
    found: Mask = leads.take(at, mode="clip") == wanted
    tied = (found & (leads.take(at + 1, mode="clip") == wanted) & (at + 1 < len(leads))).nonzero()[
        0
    ]
    last = words.dtype.itemsize - WORD_BYTES
    for first in {*range(WORD_BYTES, last, WORD_BYTES), last}:
        found &= bytes_at(words, first).take(at, mode="clip") == bytes_at(needles, first)
    if len(tied):
        rest = needles[tied]
        at[tied] = words.searchsorted(rest)
        found[tied] = words.take(at[tied], mode="clip") == rest
    return found, at


def _wide_ranges(
    words: Words, low: Words, high: Words, layout: Layout, length: int
) -> tuple[Codes, Codes]:
    """Return the slices of sorted words of bytes from low to high ones, by their first bytes.

    Low and high ones have the same number of first columns, and differ in nothing else.
    """
    leads = leads_of(words)
    first, last = leads.searchsorted(leads_of(low)), leads.searchsorted(leads_of(high), "right")
    if layout.prefix_bytes(length) <= WORD_BYTES:
        return first, last
    sizes = last - first
    single, several = (sizes == 1).nonzero()[0], (sizes > 1).nonzero()[0]
    found, wanted = (
        layout.prefix_keys(each, length) for each in (words[first[single]], low[single])
    )
    # Where a key that is not there would stand counts, too: windows number rows by it.
    searched = np.concatenate((single[found != wanted], several))
    first[searched] = words.searchsorted(low[searched])
    last[searched] = words.searchsorted(high[searched], "right")
    return first, last


def has_word(words: Words, word: Any) -> bool:
    """Return whether a word, given as `tolist` gives it, is among the sorted words."""
    at = int(words.searchsorted(word if type(word) is int else np.void(word)))
    return at < len(words) and bool(words.item(at) == word)


def merge_words(*runs: Words) -> Words:
    """Return the words of sorted arrays, sorted; one that is in several of them, several times."""
    filled = [run for run in runs if len(run)]
    if len(filled) < 2:
        return filled[0] if filled else runs[0]
    if len(filled) == 2 and len(filled[1]) == 1:  # most often, and quick
        words, single = filled
        at = int(words.searchsorted(single)[0])
        return np.concatenate((words[:at], single, words[at:]))
    joined = np.concatenate(filled)
    joined.sort(kind="stable")  # timsort: merges the sorted parts in linear time
    return joined


def subtract_words(words: Words, others: Words) -> Words:
    """Return the sorted words without the sorted others."""
    if not len(words) or not len(others):
        return words
    if len(others) > len(words) // FEW_SHARE:
        return words.take((~is_member(words, others)).nonzero()[0])
    at = words.searchsorted(others)
    is_left = np.ones(len(words), np.bool_)
    is_left[at[words.take(at, mode="clip") == others]] = False
    return words[is_left]


def compare_words(words: Words, others: Words) -> tuple[Words, Words]:
    """Return what only the first of two sorted, distinct arrays has, and what only the second has.

    >>> compare_words(np.array([1, 2, 4]), np.array([2, 3]))
    (array([1, 4]), array([3]))
    """
    if not len(words) or not len(others):
        return words, others
    if not _can_tag(words, others):
        found, at = _find(words, others)
        is_left = np.ones(len(others), np.bool_)
        is_left[at[found]] = False
        return words[~found], others[is_left]
    # Merged, a word of both stands beside itself: a third of the time of two searches.
    merged = _merge_tagged(words, others)
    differs = (merged[1:] ^ merged[:-1]) != 1
    is_single = np.ones(len(merged), np.bool_)
    is_single[1:] &= differs
    is_single[:-1] &= differs
    singles = merged.take(is_single.nonzero()[0])
    is_other = (singles & 1).astype(np.bool_)
    singles >>= 1
    return singles[~is_other], singles[is_other]


def net_change(
    added: Sequence[Words], removed: Sequence[Words], empty: Words
) -> tuple[Words, Words]:
    """Return what several changes, each of sorted words, have added and removed in the end.

    A word is added and removed by turns, so that it is changed if it occurs an odd number of times.

    >>> one, two = np.array([1, 2]), np.array([2, 3])
    >>> net_change([one, two], [np.array([2]), np.array([3])], np.array([]))
    (array([1, 2]), array([], dtype=int64))
    """
    if len(added) < 2 and len(removed) < 2 and not (added and removed):
        return (added[0] if added else empty), (removed[0] if removed else empty)
    merged = merge_words(*added, *removed)
    starts = first_mask(merged).nonzero()[0]
    changed = merged[starts[np.diff(starts, append=len(merged)) % 2 == 1]]
    times = []
    for words in (merge_words(empty, *added), merge_words(empty, *removed)):
        first, last = words.searchsorted(changed), words.searchsorted(changed, "right")
        times.append(last - first)
    is_added = times[0] > times[1]
    return changed[is_added], changed[~is_added]


class PendingProbe(Protocol):
    """Keys that a run outside of this process was not asked for yet."""

    @property
    def keys(self) -> Words:
        """The keys, each once."""

    @property
    def expected_tuples(self) -> int:
        """The estimated number of tuples that the answer has."""

    def fetch_with(self, others: "Sequence[PendingProbe]") -> None:
        """Fetch the tuples of these keys, and those of others, by one request."""


class SortedRun(Protocol):
    """Sorted, distinct words, in memory or in a file."""

    @property
    def is_here(self) -> bool:
        """Whether this process can read all words as they are, to merge them with others."""

    def __len__(self) -> int:
        """Return the number of words."""

    @property
    def words(self) -> Words:
        """All words; a run of a file is read as a whole, which probing avoids."""

    @property
    def nbytes(self) -> int:
        """The size in bytes."""

    def slice(self, first: int, last: int) -> Words:
        """Return the words at the indices from the first to before the last."""

    def take(self, indices: npt.NDArray[Any]) -> Words:
        """Return the words at some indices."""

    def contains(self, needles: Words) -> Mask:
        """Return for each needle whether it is among the words."""

    def ranges(self, layout: Layout, keys: list[Codes], count: int) -> tuple[Codes, Codes]:
        """Return for each key (values of the first columns) the slice of words that have it."""

    def find(self, low: Any, high: Any) -> tuple[int, int] | None:
        """Return where the words from one to another are, both given as `tolist` gives them.

        Returns:
            The slice; None if only many words at once can be searched for.
        """

    def repack(self, layout: Layout, before: Layout) -> "SortedRun":
        """Return the run in another layout of the same order; its words stay sorted."""


class MemoryRun:
    """One sorted array in memory and, once it has been searched enough, directories of prefixes.

    A directory holds the start of every possible prefix, so that a probe is two gathers instead
    of two binary searches. Building it costs a search for every prefix, or one pass over all words;
    it is built when a comparable number of needles has been searched for.

    Attributes:
        running_totals: sums of columns over all words before each, for whom asks for them again.
    """

    __slots__ = ("_directories", "_searched", "running_totals", "words")

    is_here = True

    def __init__(self, words: Words) -> None:
        self.words = words
        self._searched = 0
        self._directories: dict[int, npt.NDArray[np.int64]] = {}
        self.running_totals: dict[Any, npt.NDArray[np.int64]] = {}

    def __len__(self) -> int:
        return len(self.words)

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        beside = (*self._directories.values(), *self.running_totals.values())
        return self.words.nbytes + sum(each.nbytes for each in beside)

    def slice(self, first: int, last: int) -> Words:
        """Return the words at the indices from the first to before the last."""
        return self.words[first:last]

    def take(self, indices: npt.NDArray[Any]) -> Words:
        """Return the words at some indices."""
        found: Words = self.words[indices]
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
        low, high = layout.prefix_bounds(keys, count)
        self._searched += count
        directory = self._directory(layout, length) if layout.is_narrow else None
        if directory is not None:
            key = layout.prefix_keys(low, length)
            return directory[key], directory[key + 1]
        if not layout.is_narrow and count * WIDE_SEARCH_SHARE > len(words):
            return _wide_ranges(words, low, high, layout, length)
        return words.searchsorted(low), words.searchsorted(high, "right")

    def find(self, low: Any, high: Any) -> tuple[int, int]:
        """Return where the words from one to another are, both given as `tolist` gives them."""
        words = self.words
        is_narrow = type(low) is int
        size, first = len(words), int(words.searchsorted(low if is_narrow else np.void(low)))
        if first == size or words.item(first) > high:
            return first, first
        last = first + 1
        if low == high or last == size or words.item(last) > high:
            return first, last
        return first, int(words.searchsorted(high if is_narrow else np.void(high), "right"))

    def repack(self, layout: Layout, before: Layout) -> "MemoryRun":
        """Return the run in another layout of the same order; its words stay sorted."""
        return self if layout.packs_like(before) else MemoryRun(layout.convert(self.words, before))

    def _directory(self, layout: Layout, length: int) -> npt.NDArray[np.int64] | None:
        known = self._directories.get(length)
        if known is not None:
            return known
        rest = layout.shifts[length - 1]
        bits = layout.bits - rest
        size = 1 << bits
        has_few_prefixes = size << 3 < len(self.words)
        cost = size if has_few_prefixes else size + len(self.words)
        if bits > DIRECTORY_MAX_BITS or self._searched << 2 < cost:
            return None
        directory = np.zeros(size + 1, np.int64)
        if has_few_prefixes:
            directory[:-1] = self.words.searchsorted(np.arange(size) << rest)
            directory[-1] = len(self.words)
        else:
            np.cumsum(np.bincount(self.words >> rest, minlength=size), out=directory[1:])
        self._directories[length] = directory
        return directory


def append_run(runs: list[SortedRun], words: Words) -> None:
    """Add a sorted array to disjoint runs; runs of similar size are merged, so that they stay few.

    Sizes more than halve from run to run, so there are O(log n) runs, and a word is copied
    O(log n) times in all.
    """
    size = len(words)
    while runs and runs[-1].is_here and len(runs[-1]) <= max(2 * size, SINGLE_RUN_MAX_WORDS - size):
        words = merge_words(runs[-1].words, words)
        del runs[-1]
        size = len(words)
    runs.append(MemoryRun(words))


def is_prefix_key(words: Words, layout: Layout, length: int) -> bool:
    """Return whether no two of the sorted words agree in the first columns."""
    if layout.is_narrow:
        keys = layout.prefix_keys(words, length)
        return not np.count_nonzero(keys[1:] == keys[:-1])
    # Words of bytes are slow to compare: look at the columns instead.
    rows: Codes | None = None
    for at in reversed(range(length)):
        codes = layout.unpack_column(words, at)
        if rows is None:
            rows = (codes[1:] == codes[:-1]).nonzero()[0]
        else:
            rows = rows[codes[rows + 1] == codes[rows]]
        if not len(rows):
            return True
    return False


def estimate_distinct_values(words: Words, layout: Layout) -> tuple[int, ...]:
    """Return estimates of the number of distinct values of every column, of sorted words.

    The first column is sorted: it has as many values as neighbours that differ in it, and one.
    """
    size = len(words)
    if not size or not layout.widths:
        return (0,) * len(layout.widths)
    step = 1 + size // SAMPLE_TUPLES
    at = np.arange((size - 1) // step)
    at = at * step + (at * SCATTER >> 8) % step  # groups of equal size must not be met in step
    differ = layout.unpack_column(words[at], 0) != layout.unpack_column(words[at + 1], 0)
    first = 1 + round(np.count_nonzero(differ) * (size - 1) / max(1, len(at)))
    leads, *others = layout.unpack(words[::step])
    first = max(first, int(np.count_nonzero(first_mask(leads))))
    return (first, *(_distinct_values(column, size) for column in others))


def _distinct_values(sample: Codes, size: int) -> int:
    """Estimate the distinct values of a column from a sample.

    The GEE estimator of Charikar et al. (PODS 2000): √(n/r) · f₁ + Σ_{j>1} f_j, where f_j is the
    number of values that occur j times in the sample.
    """
    _, counts = np.unique(sample, return_counts=True)
    once = int(np.count_nonzero(counts == 1))
    scale = (size / len(sample)) ** 0.5
    return int(scale * once) + len(counts) - once
