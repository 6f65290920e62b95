"""Sorting integers together with the rows that they stand in, and finding the distinct ones."""

from typing import Any

import numpy as np
import numpy.typing as npt

from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import NARROW_BITS, Mask, Words

MANY_TIES = 16
"""If more than one of this many words has the first bits of another, eight bytes are compared."""


def is_sorted(keys: npt.NDArray[np.integer[Any]]) -> bool:
    """Return whether keys are sorted already."""
    return bool((keys[1:] >= keys[:-1]).all())


def sort_words(words: Words) -> Words:
    """Return words sorted; those that are sorted already cost one pass."""
    if len(words) < 2:
        return words
    if words.dtype != np.int64:
        return _sort_wide(words)
    return words if is_sorted(words) else np.sort(words)


def leads_of(words: Words) -> npt.NDArray[np.uint64]:
    """Return the first eight bytes of wide words, as integers that sort as these do."""
    return bytes_at(words, 0)


def bytes_at(words: Words, first: int) -> npt.NDArray[np.uint64]:
    """Return eight bytes of wide words from the first of them on, as integers."""
    raw = np.ascontiguousarray(words).view(np.uint8)
    return np.ndarray((len(words),), ">u8", raw, first, (words.dtype.itemsize,)).astype(np.uint64)


def _sort_wide(words: Words) -> Words:
    """Return words of more than eight bytes sorted: by these first, then those that agree in them.

    Integers are sorted four times as fast as words of bytes, and again twice as fast where as many
    bits as fit beside the number of a row tell most words apart.
    """
    leads = leads_of(words)
    keys: npt.NDArray[Any] = leads
    is_moved = not is_sorted(leads)
    if is_moved:
        shift = np.uint64(len(words).bit_length() + 1)
        keys, order = sort_with_rows((leads >> shift).view(np.int64))
        if MANY_TIES * np.count_nonzero(keys[1:] == keys[:-1]) > len(keys):
            order = leads.argsort()
            keys = leads[order]
        words = words[order]
    tied = np.zeros(len(words), np.bool_)
    tied[1:] = keys[1:] == keys[:-1]
    if np.count_nonzero(tied):
        tied[:-1] |= tied[1:]
        words = words if is_moved else words.copy()
        words[tied] = np.sort(words[tied])
    return words


def sort_with_rows(keys: Codes) -> tuple[Codes, Codes]:
    """Return keys sorted, and for each the row where it stood; equal keys stay in their order.

    Keys and rows are sorted as one integer where both fit: that takes half the time of `argsort`.

    >>> sort_with_rows(np.array([30, -10, 20, -10]))
    (array([-10, -10,  20,  30]), array([1, 3, 2, 0]))
    """
    count = len(keys)
    rows = np.arange(count)
    if is_sorted(keys):
        return keys, rows
    bits = count.bit_length()
    least = int(keys.min()) if keys.dtype == np.int64 else None
    if least is None or (int(keys.max()) - least).bit_length() + bits > NARROW_BITS:
        order = keys.argsort(kind="stable")
        return keys[order], order
    words = keys - least
    words <<= bits
    words |= rows
    words.sort()
    rows = words & ((1 << bits) - 1)
    words >>= bits
    words += least
    return words, rows


def first_mask(words: Words) -> Mask:
    """Return for sorted words, or keys, the mask of those that differ from the one before."""
    mask = np.empty(len(words), np.bool_)
    mask[:1] = True
    mask[1:] = words[1:] != words[:-1]
    return mask


def number_distinct(keys: Codes) -> tuple[Codes, Codes]:
    """Return the distinct keys, sorted, and for each key its number among them.

    >>> number_distinct(np.array([30, -10, 20, -10]))
    (array([-10,  20,  30]), array([2, 0, 1, 0]))
    """
    ordered, rows = sort_with_rows(keys)
    is_first = first_mask(ordered)
    numbers = np.empty(len(keys), np.int64)
    numbers[rows] = np.cumsum(is_first) - 1
    return ordered[is_first], numbers
