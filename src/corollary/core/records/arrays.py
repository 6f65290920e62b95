r"""Arrays, structs and maps as texts that have an order: what is stored of them, and compared.

The text of an array has one piece for each element, and `\x01` after each. The piece of null is
empty; that of a text is a quotation mark and the text, in which `\x02\x03` stands for `\x01` and
`\x02\x04` for `\x02`; that of a number is its bits in hexadecimal digits, such that they have the
order of the numbers. So arrays are compared element by element, null is the least element, and an
array comes before those that it begins. The text of several arrays one after the other is that of
their concatenation. The text of a struct has the pieces of its fields in the same way, that of a
map those of its entries in the order of keys: the key, then the value.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow_buffers import (
    Mask,
    bool_array,
    decimal_words,
    fixed_array,
    fixed_values,
    index_array,
    null_mask,
    text_scalar,
)

END = "\x01"
"""What ends the piece of an element."""

MARK = '"'
"""What the piece of a text begins with."""

ESCAPES = (("\x02", "\x02\x04"), ("\x01", "\x02\x03"))

Offsets = npt.NDArray[np.int64]

_NOTHING = text_scalar("")
_NULL = pa.nulls(1, pa.large_string())[0]
_SIGN = np.uint64(1 << 63)
_DIGITS = np.frombuffer(b"0123456789ABCDEF", np.uint8)
_DIGIT_VALUES = np.zeros(256, np.uint8)
_DIGIT_VALUES[_DIGITS] = np.arange(16)


def to_pieces(values: pa.Array) -> pa.Array:
    """Return the pieces of stored values."""
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        texts = values.cast(pa.large_string())
        for sign, written in ESCAPES:
            texts = pc.replace_substring(texts, sign, written)
        return pc.binary_join_element_wise(text_scalar(MARK), texts, _NOTHING).fill_null(_NOTHING)
    words = _words(values)
    bits = np.ascontiguousarray(words.astype(">u8")).view(np.uint8)
    digits = hex_digits(bits)
    nulls = null_mask(values)
    sizes = np.full(len(words), digits.shape[1], np.int64)
    if nulls is not None:
        sizes[nulls], digits = 0, digits[~nulls]
    return _texts(offsets_of(sizes), digits)


def from_pieces(pieces: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return the stored values of pieces, in the Arrow type of what is stored."""
    sizes = fixed_values(pc.binary_length(pieces).cast(pa.int64()), np.int64)
    nulls: Mask = sizes == 0
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        texts = pc.utf8_slice_codeunits(pieces, 1)
        for sign, written in reversed(ESCAPES):
            texts = pc.replace_substring(texts, written, sign)
        return pc.if_else(bool_array(~nulls), texts, _NULL).cast(type_)
    width = 4 if pa.types.is_decimal(type_) else 2
    bits = np.zeros((len(sizes), 4 * width), np.uint8)
    bits[~nulls] = hex_bytes(contents(pieces)[1]).reshape(-1, 4 * width)
    words = bits.view(">u8").astype(np.uint64)
    return _numbers(words, type_, nulls)


def join_pieces(offsets: Offsets, pieces: pa.Array) -> pa.Array:
    """Return the texts of arrays, given where the pieces of each begin."""
    if not len(pieces):
        return pa.nulls(len(offsets) - 1, pa.large_string()).fill_null(_NOTHING)
    ended = pc.binary_join_element_wise(pieces, _NOTHING, text_scalar(END))
    lists = pa.LargeListArray.from_arrays(index_array(offsets), ended)
    return pc.binary_join(lists, _NOTHING)


def split_pieces(texts: pa.Array) -> tuple[Offsets, pa.Array]:
    r"""Return where the pieces of each array begin, and all of them.

    >>> offsets, pieces = split_pieces(pa.array(['"a\x01\x01', ""], pa.large_string()))
    >>> offsets.tolist(), pieces.to_pylist()
    ([0, 2, 2], ['"a', ''])
    """
    found = pc.split_pattern(texts, END)
    offsets = fixed_values(found.offsets.cast(pa.int64()), np.int64)
    # Nothing follows the last end.
    is_piece = np.ones(int(offsets[-1] - offsets[0]), np.bool_)
    is_piece[offsets[1:] - offsets[0] - 1] = False
    pieces = found.flatten().take(index_array(np.flatnonzero(is_piece)))
    return offsets - offsets[0] - np.arange(len(offsets)), pieces


def join_fields(pieces: Sequence[pa.Array]) -> pa.Array:
    """Return the texts of structs, given the pieces of each field."""
    return pc.binary_join_element_wise(*pieces, _NOTHING, text_scalar(END))


def split_fields(texts: pa.Array, count: int) -> list[pa.Array]:
    """Return the pieces of each field of structs; those of null, or of no text, are empty."""
    texts = texts.cast(pa.large_string()).fill_null(_NOTHING)
    pieces = split_pieces(pc.if_else(pc.equal(texts, _NOTHING), text_scalar(END * count), texts))[1]
    return [pieces.take(index_array(np.arange(at, len(pieces), count))) for at in range(count)]


def join_entries(offsets: Offsets, keys: pa.Array, values: pa.Array) -> pa.Array:
    """Return the texts of maps, given where the entries of each begin, and their pieces."""
    owners = index_array(owners_of(offsets))
    sort_keys = [("owner", "ascending"), ("key", "ascending")]
    order = pc.sort_indices(pa.table({"owner": owners, "key": keys}), sort_keys=sort_keys)
    places = fixed_values(order.cast(pa.int64()), np.int64)
    both = np.stack([places, places + len(keys)], axis=1).ravel()
    return join_pieces(2 * offsets, pa.concat_arrays([keys, values]).take(index_array(both)))


def split_entries(texts: pa.Array) -> tuple[Offsets, pa.Array, pa.Array]:
    """Return where the entries of each map begin, and the pieces of their keys and values."""
    offsets, pieces = split_pieces(texts)
    keys = np.arange(0, len(pieces), 2)
    return offsets // 2, pieces.take(index_array(keys)), pieces.take(index_array(keys + 1))


def offsets_of(sizes: npt.NDArray[np.int64]) -> Offsets:
    """Return where parts of some sizes begin, and where the last one ends."""
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def owners_of(offsets: Offsets) -> npt.NDArray[np.int64]:
    """Return for each element the number of the part that it is in, given where parts begin."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def contents(array: pa.Array) -> tuple[Offsets, npt.NDArray[np.uint8]]:
    """Return where each value of an array begins, and all of them one after the other."""
    _, ends, data = array.buffers()
    offsets = np.frombuffer(ends, np.int64)[array.offset : array.offset + len(array) + 1]
    bounds = slice(int(offsets[0]), int(offsets[-1]))
    return offsets - offsets[0], np.frombuffer(data or b"", np.uint8)[bounds]


def hex_digits(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return two hexadecimal digits for each byte, along the last axis."""
    pairs = np.stack([_DIGITS[data >> 4], _DIGITS[data & 15]], axis=-1)
    return pairs.reshape(*data.shape[:-1], 2 * data.shape[-1])


def hex_bytes(digits: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the bytes of hexadecimal digits."""
    high, low = _DIGIT_VALUES[digits].reshape(-1, 2).T
    return 16 * high + low


def _texts(offsets: Offsets, data: npt.NDArray[np.uint8]) -> pa.Array:
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.large_string(), len(offsets) - 1, buffers)


def _words(values: pa.Array) -> npt.NDArray[np.uint64]:
    """Return words of 64 bits that have the order of numbers, the highest first."""
    type_ = values.type
    if pa.types.is_decimal(type_):
        return decimal_words(values).view(np.uint64)[:, ::-1] ^ np.array([_SIGN, 0], np.uint64)
    if pa.types.is_floating(type_):
        floats = fixed_values(values.cast(pa.float64()), np.float64) + 0.0
        floats[np.isnan(floats)] = np.nan
        bits = floats.view(np.uint64)
        return np.where(bits & _SIGN, ~bits, bits | _SIGN).reshape(-1, 1)
    if pa.types.is_uint64(type_):
        return fixed_values(values, np.uint64).reshape(-1, 1)
    if pa.types.is_boolean(type_) or pa.types.is_date(type_):
        values = values.cast(pa.int32())
    return (fixed_values(values.cast(pa.int64()), np.uint64) ^ _SIGN).reshape(-1, 1)


def _numbers(words: npt.NDArray[np.uint64], type_: pa.DataType, nulls: Mask) -> pa.Array:
    if pa.types.is_decimal(type_):
        pairs = (words ^ np.array([_SIGN, 0], np.uint64))[:, ::-1]
        return fixed_array(np.ascontiguousarray(pairs).view(np.int64), type_, nulls)
    column: npt.NDArray[Any] = words[:, 0]
    if pa.types.is_floating(type_):
        bits = np.where(column & _SIGN, column ^ _SIGN, ~column)
        return fixed_array(bits.view(np.float64), type_, nulls)
    if pa.types.is_uint64(type_):
        return fixed_array(column, type_, nulls)
    found = fixed_array((column ^ _SIGN).view(np.int64), pa.int64(), nulls)
    is_small = pa.types.is_boolean(type_) or pa.types.is_date(type_)
    return (found.cast(pa.int32()) if is_small else found).cast(type_)
