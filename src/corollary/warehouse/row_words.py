"""One integer for each row of a table, by vectors: equal for equal rows, different for others.

Each column becomes codes from 0 to some range: integers less the least of them, texts by a
dictionary. A word is the number that has these codes as its digits. Where that would exceed 63
bits, the words so far are first replaced by their ranks.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow import canonical_floats, comparable_column, single_array
from corollary.core.arrow_buffers import index_array, true_mask

Words = npt.NDArray[np.int64]

_WORD_MAX = 2**63 - 1


def row_words(columns: Sequence[pa.ChunkedArray], rows: int) -> Words:
    """Return a word for each row; null equals null, NaN equals NaN, -0.0 equals 0.0.

    >>> row_words(
    ...     [pa.chunked_array([[1, 1, None]]), pa.chunked_array([["b", "b", "b"]])], 3
    ... ).tolist()
    [1, 1, 0]
    """
    words, bound = np.zeros(rows, np.int64), 1
    for column in columns:
        array = single_array(column)
        nulls = true_mask(pc.is_null(array)) if array.null_count else None
        for values in _integers(array):
            codes, count = _codes(values, nulls)
            if bound * count > _WORD_MAX:
                words, bound = _ranks(words)
            if bound * count > _WORD_MAX:
                codes, count = _ranks(codes)
            words, bound = words * count + codes, bound * count
    return words


def repeated_words(words: Words) -> Words:
    """Return the words that occur more than once, each once and in order."""
    steps = words[1:] > words[:-1]
    if steps.all():  # files are often sorted by their key
        return words[:0]
    ordered = np.sort(words)
    return np.unique(ordered[1:][ordered[1:] == ordered[:-1]])


def is_among(words: Words, others: Words) -> npt.NDArray[np.bool_]:
    """Return for each word whether it is one of others.

    >>> is_among(np.array([3, 1, 2]), np.array([1, 3])).tolist()
    [True, True, False]
    """
    return true_mask(pc.is_in(index_array(words), value_set=index_array(others)))


def _integers(array: pa.Array) -> list[npt.NDArray[np.int64]]:
    """Return the integers that stand for the values of a column; any ones for null."""
    if not len(array):
        return []
    array = single_array(comparable_column(pa.chunked_array([array])))
    kind = array.type
    if pa.types.is_boolean(kind):
        return [true_mask(array).astype(np.int64)]
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if is_text or pa.types.is_dictionary(kind):
        array = array.dictionary_encode().indices
    elif pa.types.is_floating(kind):
        # Of equal floats the bits are equal, too.
        array = canonical_floats(array)
    if pa.types.is_decimal128(kind):
        words = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)
        low, high = words[array.offset : array.offset + len(array)].T
        return [low.copy()] if ((low >> 63) == high).all() else [high.copy(), low.copy()]
    width = array.type.bit_width // 8
    values = np.frombuffer(array.buffers()[1], np.dtype(f"i{width}"))
    return [values[array.offset : array.offset + len(array)].astype(np.int64)]


def _codes(
    values: npt.NDArray[np.int64], nulls: npt.NDArray[np.bool_] | None
) -> tuple[npt.NDArray[np.int64], int]:
    """Return codes of integers from 0 on, and how many there may be; null is 0."""
    if nulls is not None:
        values = np.where(nulls, values[~nulls].min(initial=_WORD_MAX), values)
    least, most = int(values.min()), int(values.max())
    if most - least >= _WORD_MAX:
        values, count = _ranks(values)
        least, most = 0, count - 1
    codes = values - least
    if nulls is None:
        return codes, most - least + 1
    return np.where(nulls, 0, codes + 1), most - least + 2


def _ranks(values: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], int]:
    """Return the position of each value among the distinct ones, and how many these are."""
    distinct, ranks = np.unique(values, return_inverse=True)
    return ranks.reshape(-1), len(distinct)
