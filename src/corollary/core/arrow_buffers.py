"""NumPy and Python values to Arrow and back, by buffers.

The functions of pyarrow that do the same (`pa.array`, `pa.scalar`, `to_numpy`) import pandas where
it is installed, which takes longer than most queries. Whatever handles many values uses these
instead; none of them copies what it need not copy.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.core.values import field_values, pairs_of, to_stored, unscaled_integer

Mask = npt.NDArray[np.bool_]

DecimalWords = npt.NDArray[np.int64]
"""The integers behind decimals: a row for each, with the low and the high 64 bits."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_DAY = date(1970, 1, 1)
MICROSECOND = timedelta(microseconds=1)
LOW_BITS = (1 << 64) - 1
LEAST_INTEGER = -(1 << 63)

NUMPY_TYPES: dict[pa.DataType, Any] = {
    pa.int8(): np.int8,
    pa.int32(): np.int32,
    pa.int64(): np.int64,
    pa.uint64(): np.uint64,
    pa.float32(): np.float32,
    pa.float64(): np.float64,
}
"""The NumPy types of numbers."""


def fixed_array(
    values: npt.NDArray[Any], type_: pa.DataType, nulls: Mask | None = None
) -> pa.Array:
    """Return values of the width of an Arrow type as an array of it.

    >>> fixed_array(np.array([1, 2]), pa.int64(), np.array([False, True])).to_pylist()
    [1, None]
    """
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(type_, len(values), [_validity(nulls), data])


def bool_array(values: Mask, nulls: Mask | None = None) -> pa.Array:
    """Return a mask as an Arrow array.

    >>> bool_array(np.array([True, False])).to_pylist()
    [True, False]
    """
    data = pa.py_buffer(np.packbits(values, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(values), [_validity(nulls), data])


def index_array(values: npt.NDArray[np.int64], nulls: Mask | None = None) -> pa.Array:
    """Return indices as an Arrow array, for `take`."""
    return fixed_array(values, pa.int64(), nulls)


def string_array(texts: Sequence[str | None], type_: pa.DataType | None = None) -> pa.Array:
    """Return Python strings as an array of `large_string`, or of `string`.

    >>> string_array(["a", None, "bc"]).to_pylist()
    ['a', None, 'bc']
    """
    pieces = ["" if text is None else text for text in texts]
    data = "".join(pieces).encode()
    is_ascii = len(data) == sum(map(len, pieces))
    lengths = map(len, pieces if is_ascii else (piece.encode() for piece in pieces))
    ends = np.fromiter(accumulate(lengths, initial=0), np.int64, len(pieces) + 1)
    nulls = np.array([text is None for text in texts], np.bool_) if None in texts else None
    buffers = [_validity(nulls), pa.py_buffer(ends), pa.py_buffer(data)]
    array = pa.Array.from_buffers(pa.large_string(), len(pieces), buffers)
    return array if type_ is None else array.cast(type_)


def python_array(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """Return Python values of the type of a column, None for null.

    >>> from decimal import Decimal
    >>> python_array([Decimal("-1.5"), None], pa.decimal128(5, 2)).to_pylist()
    [Decimal('-1.50'), None]
    """
    if pa.types.is_string(type_):
        return string_array(values, type_)
    if pa.types.is_binary(type_):
        return pa.array(values, type_)
    nulls = np.array([value is None for value in values], np.bool_)
    present = [value for value in values if value is not None]
    if pa.types.is_list(type_):
        ends = accumulate((len(value or ()) for value in values), initial=0)
        inner = python_array([each for value in present for each in value], type_.value_type)
        return list_array(np.fromiter(ends, np.int64), inner, nulls).cast(type_)
    if pa.types.is_map(type_):
        maps = [pairs_of(value or ()) for value in values]
        starts = np.fromiter(accumulate(map(len, maps), initial=0), np.int64)
        keys, items = (
            python_array([entry[at] for entries in maps for entry in entries], inner)
            for at, inner in enumerate((type_.key_type, type_.item_type))
        )
        return map_array(starts, keys, items, nulls)
    if pa.types.is_struct(type_):
        names = [field.name for field in type_]
        rows = [field_values(value or {}, names) for value in values]
        fields = [
            python_array([row[at] for row in rows], field.type) for at, field in enumerate(type_)
        ]
        return pa.StructArray.from_arrays(fields, fields=list(type_), mask=bool_array(nulls))
    if pa.types.is_boolean(type_):
        found: npt.NDArray[Any] = np.array(present, np.bool_)
    elif pa.types.is_date(type_):
        found = np.array([(value - EPOCH_DAY).days for value in present], np.int32)
    elif pa.types.is_timestamp(type_):
        start = EPOCH if type_.tz else EPOCH.replace(tzinfo=None)
        found = np.array([(value - start) // MICROSECOND for value in present], np.int64)
    elif pa.types.is_time(type_):
        found = np.array([to_stored(value) for value in present], np.int64)
    elif pa.types.is_duration(type_):
        found = np.array([value // MICROSECOND for value in present], np.int64)
    elif pa.types.is_decimal(type_):
        integers = [unscaled_integer(value, type_.scale) for value in present]
        found = words_of_integers(np.array(integers, object))
    else:
        found = np.array(present, NUMPY_TYPES[type_])
    if len(present) < len(values):
        whole = np.zeros((len(values), *found.shape[1:]), found.dtype)
        whole[~nulls] = found
        found = whole
    return bool_array(found, nulls) if found.dtype == np.bool_ else fixed_array(found, type_, nulls)


def list_array(
    offsets: npt.NDArray[np.int64], values: pa.Array, nulls: Mask | None = None
) -> pa.Array:
    """Return lists, given where each of them begins among all values.

    >>> list_array(np.array([0, 2, 2]), fixed_array(np.array([1, 2]), pa.int64())).to_pylist()
    [[1, 2], []]
    """
    buffers = [_validity(nulls), pa.py_buffer(np.ascontiguousarray(offsets))]
    type_ = pa.large_list(values.type)
    return pa.Array.from_buffers(type_, len(offsets) - 1, buffers, children=[values])


def map_array(
    offsets: npt.NDArray[np.int64], keys: pa.Array, values: pa.Array, nulls: Mask | None = None
) -> pa.Array:
    """Return maps, given where the entries of each of them begin among all keys and values.

    >>> keys, values = string_array(["a"], pa.string()), fixed_array(np.array([1]), pa.int64())
    >>> map_array(np.array([0, 1, 1]), keys, values).to_pylist()
    [[('a', 1)], []]
    """
    fields = [pa.field("key", keys.type, nullable=False), pa.field("value", values.type)]
    entries = pa.StructArray.from_arrays([keys, values], fields=fields)
    buffers = [_validity(nulls), pa.py_buffer(offsets.astype(np.int32))]
    type_ = pa.map_(keys.type, values.type)
    return pa.Array.from_buffers(type_, len(offsets) - 1, buffers, children=[entries])


def words_of_integers(integers: npt.NDArray[Any]) -> DecimalWords:
    """Return Python's integers, those behind decimals, as Arrow has them: low and high 64 bits.

    >>> words_of_integers(np.array([5, -(1 << 64)], object)).tolist()
    [[5, 0], [0, -1]]
    """
    low = (integers & LOW_BITS).astype(np.uint64).view(np.int64)
    return np.stack([low, (integers >> 64).astype(np.int64)], axis=1)


def integers_of_words(words: DecimalWords) -> npt.NDArray[Any]:
    """Return words as Python's integers.

    >>> integers_of_words(np.array([[5, 0], [0, -1]]))
    array([5, -18446744073709551616], dtype=object)
    """
    low = np.ascontiguousarray(words[:, 0]).view(np.uint64)
    integers: npt.NDArray[Any] = (words[:, 1].astype(object) << 64) | low.astype(object)
    return integers


def narrow_words(values: npt.NDArray[np.int64]) -> DecimalWords:
    """Return integers of 64 bits as words: the high one is the sign of the low one."""
    return np.stack([values, values >> np.int64(63)], axis=1)


def wide_mask(words: DecimalWords) -> Mask:
    """Return the mask of integers that do not fit 64 bits, or whose opposites do not."""
    low, high = words[:, 0], words[:, 1]
    mask: Mask = (high != low >> np.int64(63)) | (low == LEAST_INTEGER)
    return mask


def text_scalar(text: str) -> pa.Scalar:
    """Return a string as a scalar of `large_string`, an argument of Arrow's functions."""
    return string_array([text])[0]


def number_scalar(value: int) -> pa.Scalar:
    """Return an integer as a scalar of `int64`, an argument of Arrow's functions."""
    return fixed_array(np.array([value], np.int64), pa.int64())[0]


def decimal_words(array: pa.Array) -> DecimalWords:
    """Return the words of the integers behind decimals; those of null are arbitrary."""
    return fixed_values(array, np.dtype((np.int64, 2)))


def decimal_integers(array: pa.Array) -> npt.NDArray[Any]:
    """Return the integers behind decimals, int64 if all fit, else of Python; any for null.

    >>> decimal_integers(fixed_array(narrow_words(np.array([5, -1])), pa.decimal128(38, 2)))
    array([ 5, -1])
    """
    words = decimal_words(array)
    is_wide = wide_mask(words)
    nulls = null_mask(array)
    if nulls is not None:
        is_wide &= ~nulls
    return integers_of_words(words) if is_wide.any() else words[:, 0]


def fixed_values(array: pa.Array, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return the values of an array of fixed width, of which those that are null are arbitrary.

    >>> fixed_values(fixed_array(np.array([1, 2, 3]), pa.int64())[1:], np.int64)
    array([2, 3])
    """
    width = np.dtype(dtype).itemsize
    data = array.buffers()[1]
    if data is None:
        return np.empty(0, dtype)
    return np.frombuffer(data, dtype, len(array), width * array.offset)


def bool_values(array: pa.Array) -> Mask:
    """Return the values of a bool array as a mask; those that are null are arbitrary.

    >>> bool_values(bool_array(np.array([True, False, True]))[1:])
    array([False,  True])
    """
    return _bits(array.buffers()[1], array.offset, len(array))


def true_mask(array: pa.Array) -> Mask:
    """Return the mask of the values of a bool array that are true, not null.

    >>> true_mask(pa.array([True, None, False]))
    array([ True, False, False])
    """
    nulls = null_mask(array)
    return bool_values(array) if nulls is None else bool_values(array) & ~nulls


def null_mask(array: pa.Array) -> Mask | None:
    """Return the mask of an array's nulls, None if there are none."""
    if not array.null_count:
        return None
    valid = array.buffers()[0]
    if valid is None:  # of the type `null`
        return np.ones(len(array), np.bool_)
    return ~_bits(valid, array.offset, len(array))


def _bits(data: pa.Buffer | None, offset: int, count: int) -> Mask:
    if data is None:
        return np.zeros(count, np.bool_)
    first = offset // 8
    packed = np.frombuffer(data, np.uint8, (offset + count + 7) // 8 - first, first)
    start = offset - 8 * first
    return np.unpackbits(packed, bitorder="little")[start : start + count].view(np.bool_)


def _validity(nulls: Mask | None) -> pa.Buffer | None:
    if nulls is None or not np.count_nonzero(nulls):
        return None
    return pa.py_buffer(np.packbits(~nulls, bitorder="little"))
