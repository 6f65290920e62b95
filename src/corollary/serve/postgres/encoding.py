"""Columns of Arrow tables as the bytes that clients read, in text and in binary, a column at once.

An encoded column is the bytes of all its values in a row, where each begins, and which are null.
"""

import base64
import json
from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow import single_array, to_stored_column
from corollary.core.arrow_buffers import bool_array, fixed_array
from corollary.core.functors.times import DAY_MICROSECONDS
from corollary.core.types import BINARY, TIMESTAMP
from corollary.core.values import format_value
from corollary.data_class import dataclass
from corollary.serve.postgres.messages import BINARY_FORMAT
from corollary.serve.postgres.wire_types import arrow_column_type

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]

EPOCH_DAYS = (date(2000, 1, 1) - date(1970, 1, 1)).days
"""PostgreSQL counts days and microseconds from 2000."""
EPOCH_MICROSECONDS = EPOCH_DAYS * DAY_MICROSECONDS
NUMERIC_BASE = 10_000
NUMERIC_DIGITS = 4
"""A group of the binary form of numerics has four decimal digits."""
NUMERIC_NEGATIVE = 0x4000


@dataclass(frozen=True, slots=True)
class EncodedColumn:
    """The values of a column as bytes.

    Attributes:
        data: the bytes of all values.
        lengths: how many bytes each value has; 0 for null.
        starts: where each value begins.
        is_null: which values are null; None if none is.
    """

    data: Bytes
    lengths: Integers
    starts: Integers
    is_null: npt.NDArray[np.bool_] | None


def encode_column(column: pa.ChunkedArray | pa.Array, format_: int, zone: str) -> EncodedColumn:
    """Return the values of a column in a format.

    Args:
        column: of an Arrow table.
        format_: text or binary.
        zone: the time zone that timestamps are written in.

    Raises:
        PgError: values of this type cannot be sent.
    """
    array = _as_one(column)
    arrow_column_type(array.type)  # refuses what has no type
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        return _encode_lists(array, format_, zone)
    if pa.types.is_struct(array.type) or pa.types.is_map(array.type):
        array = _json_texts(array)
    if pa.types.is_string_view(array.type) or array.type == pa.null():
        array = array.cast(pa.string())
    if array.type == pa.uint64():
        array = array.cast(pa.decimal128(20, 0))
    if format_ == BINARY_FORMAT:
        return _encode_binary(array)
    return _encoded_texts(text_column(array, zone))


def _as_one(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        found = column.combine_chunks()
        return found.chunk(0) if isinstance(found, pa.ChunkedArray) else found
    return column


def _json_texts(structs: pa.Array) -> pa.Array:
    rows = (_plain(row, structs.type) for row in structs.to_pylist())
    texts = [None if row is None else json.dumps(row, default=_shown) for row in rows]
    return pa.array(texts, pa.string())


def _plain(value: Any, type_: pa.DataType) -> Any:
    """Return a value of Arrow with maps as objects."""
    if value is None or not pa.types.is_nested(type_):
        return value
    if pa.types.is_map(type_):
        return {str(_shown(key)): _plain(each, type_.item_type) for key, each in value}
    if pa.types.is_struct(type_):
        return {field.name: _plain(value[field.name], field.type) for field in type_}
    return [_plain(each, type_.value_type) for each in value]


def _shown(value: Any) -> str:
    """Return a value that JSON has no own kind of as `value_to_json` does."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime) and value.tzinfo is not None:
        return format_value(value, TIMESTAMP)
    return value.isoformat() if isinstance(value, date) else str(value)


# --- text ---------------------------------------------------------------------------------------


def text_column(array: pa.Array, zone: str) -> pa.Array:
    """Return values as PostgreSQL writes them.

    >>> text_column(pa.array([True, None]), "UTC").to_pylist()
    ['t', None]
    """
    kind = array.type
    if pa.types.is_boolean(kind):
        return pc.if_else(array, "t", "f")
    if pa.types.is_floating(kind):
        text = pc.cast(array, pa.string())
        text = pc.if_else(pc.is_nan(array), "NaN", text)
        return pc.if_else(pc.is_inf(array), pc.if_else(pc.greater(array, 0), *_INFINITE), text)
    if pa.types.is_decimal(kind):
        return _decimal_text(array)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        digits = single_array(to_stored_column(pa.chunked_array([array]), BINARY).cast(pa.string()))
        return pc.binary_join_element_wise(r"\x", pc.ascii_lower(digits), "")
    if pa.types.is_timestamp(kind):
        return _timestamp_text(array, zone)
    if pa.types.is_time(kind):
        return pc.replace_substring_regex(array.cast(pa.string()), r"\.?0*$", "")
    if pa.types.is_duration(kind):
        return _interval_text(array)
    return array if pa.types.is_large_string(kind) else pc.cast(array, pa.string())


_INFINITE = ("Infinity", "-Infinity")


def _decimal_text(array: pa.Array) -> pa.Array:
    """Return decimals with all their digits; Arrow itself would write `1E-8`."""
    scale = array.type.scale
    whole_type = pa.decimal128(38, 0)
    if scale <= 0:
        return pc.cast(array.cast(whole_type), pa.string())
    unscaled = pa.Array.from_buffers(
        whole_type, len(array), array.buffers(), array.null_count, array.offset
    )
    text = pc.cast(unscaled, pa.string())
    sign = pc.if_else(pc.starts_with(text, "-"), "-", "")
    digits = pc.utf8_lpad(pc.utf8_ltrim(text, "-"), scale + 1, "0")
    whole = pc.utf8_slice_codeunits(digits, 0, -scale)
    fraction = pc.utf8_slice_codeunits(digits, -scale)
    return pc.binary_join_element_wise(pc.binary_join_element_wise(sign, whole, ""), fraction, ".")


def _timestamp_text(array: pa.Array, zone: str) -> pa.Array:
    if array.type.tz:
        local = array.cast(pa.timestamp("us", zone))
        text = pc.strftime(local, format="%Y-%m-%d %H:%M:%S%z")
        text = pc.replace_substring_regex(text, r"([+-]\d\d)00$", r"\1")
        text = pc.replace_substring_regex(text, r"([+-]\d\d)(\d\d)$", r"\1:\2")
        end = "([+-][0-9:]+)$"
    else:
        text = pc.strftime(array, format="%Y-%m-%d %H:%M:%S")
        end = "()$"
    text = pc.replace_substring_regex(text, rf"(\.[0-9]*[1-9])0+{end}", r"\1\2")
    return pc.replace_substring_regex(text, rf"\.0+{end}", r"\1")


def _interval_text(array: pa.Array) -> pa.Array:
    """Return intervals with days and a time, both of one sign: `-1 days -02:03:04.5`."""
    amounts = _values(array, pa.int64())
    days, rest = _days_and_rest(amounts)
    clock = fixed_array(np.abs(rest), pa.time64("us")).cast(pa.string())
    clock = pc.replace_substring_regex(clock, r"\.?0*$", "", max_replacements=1)
    sign = pc.if_else(bool_array(amounts < 0), "-", "")
    text = pc.binary_join_element_wise(sign, clock, "")
    words = fixed_array(days, pa.int64()).cast(pa.string())
    ending = pc.if_else(bool_array(days == 1), " day ", " days ")
    words = pc.binary_join_element_wise(words, ending, "")
    text = pc.if_else(bool_array(days == 0), text, pc.binary_join_element_wise(words, text, ""))
    return pc.if_else(array.is_valid(), text, pa.scalar(None, pa.string()))


def _days_and_rest(amounts: Integers) -> tuple[Integers, Integers]:
    """Return the days of microseconds and what is left, both with the sign of the amount."""
    rest = np.fmod(amounts, DAY_MICROSECONDS)
    return (amounts - rest) // DAY_MICROSECONDS, rest


def _encoded_texts(array: pa.Array) -> EncodedColumn:
    """Return texts as they are in the buffers of Arrow."""
    is_large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    _, offsets, data = array.buffers()
    kind = np.int64 if is_large else np.int32
    ends: Integers = np.zeros(1, np.int64)
    if len(array):
        stored = np.frombuffer(offsets, kind, len(array) + array.offset + 1)
        ends = stored[array.offset :].astype(np.int64)
    values = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    lengths, is_null = ends[1:] - ends[:-1], _nulls(array)
    if is_null is not None:
        lengths[is_null] = 0  # Arrow may keep a text where it says that there is none
    return EncodedColumn(values, lengths, ends[:-1], is_null)


def _nulls(array: pa.Array) -> npt.NDArray[np.bool_] | None:
    if not array.null_count:
        return None
    return np.asarray(pc.is_null(array).to_numpy(zero_copy_only=False), dtype=np.bool_)


# --- binary -------------------------------------------------------------------------------------


def _encode_binary(array: pa.Array) -> EncodedColumn:
    kind = array.type
    if pa.types.is_large_binary(kind) or pa.types.is_large_string(kind):
        return _encoded_texts(array)
    if pa.types.is_binary(kind) or pa.types.is_string(kind):
        return _encoded_texts(array)
    if pa.types.is_decimal(kind):
        return _encode_numerics(array)
    is_null = _nulls(array)
    big_endian: npt.NDArray[Any]
    if pa.types.is_boolean(kind):
        big_endian = _values(array, pa.uint8()).astype(">u1")
    elif pa.types.is_date(kind):
        days = _values(array, pa.int32())
        big_endian = (days - EPOCH_DAYS).astype(">i4")
    elif pa.types.is_timestamp(kind):
        moments = _values(array.cast(pa.timestamp("us", kind.tz)), pa.int64())
        big_endian = (moments - EPOCH_MICROSECONDS).astype(">i8")
    elif pa.types.is_time(kind):
        big_endian = _values(array, pa.int64()).astype(">i8")
    elif pa.types.is_duration(kind):
        days, rest = _days_and_rest(_values(array, pa.int64()))
        big_endian = np.zeros(len(array), np.dtype([("us", ">i8"), ("days", ">i4"), ("m", ">i4")]))
        big_endian["us"], big_endian["days"] = rest, days
    else:
        size = arrow_column_type(kind)[0].size
        wide = {pa.int8(): pa.int16(), pa.uint16(): pa.int32()}.get(kind, kind)
        values = _values(array, wide)
        big_endian = values.astype(f">{values.dtype.kind}{size}")
    return _encoded_fixed(big_endian, is_null)


def _values(array: pa.Array, type_: pa.DataType) -> npt.NDArray[Any]:
    """Return values as NumPy has them, zero for nulls."""
    filled = array.cast(type_)
    if array.null_count:
        filled = filled.fill_null(0)
    return np.asarray(filled.to_numpy(zero_copy_only=False))


def _encoded_fixed(
    values: npt.NDArray[Any], is_null: npt.NDArray[np.bool_] | None
) -> EncodedColumn:
    count, width = len(values), values.dtype.itemsize
    lengths = np.full(count, width, np.int64)
    if is_null is not None:
        lengths[is_null] = 0
    data = np.frombuffer(values.tobytes(), np.uint8)
    return EncodedColumn(data, lengths, np.arange(count, dtype=np.int64) * width, is_null)


def _encode_numerics(array: pa.Array) -> EncodedColumn:
    """Return decimals in groups of four digits, without the zeros before and after them.

    A value is: how many groups, the weight of the first one, the sign, the digits after the point
    that are shown, the groups; all as integers of two bytes.
    """
    scale = max(0, array.type.scale)
    is_null = _nulls(array)
    groups, is_negative = _numeric_groups(array.cast(pa.decimal128(38, scale)), scale)
    count, width = groups.shape
    nonzero = groups != 0
    has_any = nonzero.any(axis=1)
    first = np.where(has_any, nonzero.argmax(axis=1), 0)
    last = np.where(has_any, width - nonzero[:, ::-1].argmax(axis=1), 0)
    used = (last - first).astype(np.int64)
    after_point = -(-scale // NUMERIC_DIGITS)
    weight = np.where(has_any, width - after_point - 1 - first, 0)
    table = np.zeros((count, 4 + width), ">i2")
    table[:, 0] = used
    table[:, 1] = weight
    table[:, 2] = np.where(is_negative & has_any, NUMERIC_NEGATIVE, 0)
    table[:, 3] = scale
    # The groups in use are moved to the left; what is right of them is not sent.
    places = np.minimum(first[:, None] + np.arange(width), width - 1)
    table[:, 4:] = np.take_along_axis(groups, places, axis=1)
    lengths = 8 + 2 * used
    if is_null is not None:
        lengths[is_null] = 0
    starts = np.arange(count, dtype=np.int64) * (2 * (4 + width))
    return EncodedColumn(np.frombuffer(table.tobytes(), np.uint8), lengths, starts, is_null)


def _numeric_groups(array: pa.Array, scale: int) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """Return the groups of four digits of each decimal, highest first, and which are negative."""
    count = len(array)
    _, data = array.buffers()
    words = np.frombuffer(data, "<u8", 2 * (count + array.offset))[2 * array.offset :]
    words = words.reshape(count, 2)
    is_negative = (words[:, 1] >> np.uint64(63)).astype(np.bool_)
    low = np.where(is_negative, ~words[:, 0] + np.uint64(1), words[:, 0])
    carry = is_negative & (low == 0)
    high = np.where(is_negative, ~words[:, 1] + carry.astype(np.uint64), words[:, 1])
    half = np.uint64(0xFFFFFFFF)
    shift = np.uint64(32)
    # Five limbs of 32 bits, highest first: the topmost is room for the digits that fill a group.
    limbs = np.zeros((5, count), np.uint64)
    limbs[1], limbs[2] = high >> shift, high & half
    limbs[3], limbs[4] = low >> shift, low & half
    filling = np.uint64(10 ** (-scale % NUMERIC_DIGITS))
    over = np.zeros(count, np.uint64)
    for at in range(4, -1, -1):
        product = limbs[at] * filling + over
        limbs[at], over = product & half, product >> shift
    width = 11
    groups = np.zeros((count, width), np.int64)
    base = np.uint64(NUMERIC_BASE)
    for group in range(width - 1, -1, -1):
        rest = np.zeros(count, np.uint64)
        for at in range(5):
            value = (rest << shift) | limbs[at]
            limbs[at], rest = value // base, value % base
        groups[:, group] = rest
    return groups, is_negative


# --- lists: `pg_catalog` has some, relations have none ------------------------------------------


def _encode_lists(array: pa.Array, format_: int, zone: str) -> EncodedColumn:
    write: Callable[[Any], bytes] = _list_binary if format_ == BINARY_FORMAT else _list_text
    element_type = array.type.value_type
    oid = arrow_column_type(element_type)[0].oid
    encoded: list[bytes | None] = []
    for row in array:
        if not row.is_valid:
            encoded.append(None)
            continue
        column = encode_column(row.values, format_, zone)
        parts: list[bytes | None] = []
        for at, (start, length) in enumerate(zip(column.starts, column.lengths, strict=True)):
            is_null = column.is_null is not None and column.is_null[at]
            parts.append(None if is_null else column.data[start : start + length].tobytes())
        encoded.append(write((oid, parts)))
    lengths = np.array([len(each or b"") for each in encoded], np.int64)
    data = np.frombuffer(b"".join(each or b"" for each in encoded), np.uint8)
    starts = np.cumsum(lengths) - lengths
    nulls = np.array([each is None for each in encoded], np.bool_)
    return EncodedColumn(data, lengths, starts, nulls if nulls.any() else None)


def _list_text(given: tuple[int, Sequence[bytes | None]]) -> bytes:
    def quoted(part: bytes | None) -> bytes:
        if part is None:
            return b"NULL"
        if part and part.upper() != b"NULL" and not set(part) & set(b'{}",\\ \t\n\r\v\f'):
            return part
        return b'"' + part.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'

    return b"{" + b",".join(map(quoted, given[1])) + b"}"


def _list_binary(given: tuple[int, Sequence[bytes | None]]) -> bytes:
    oid, parts = given
    if not parts:
        return _int32(0, 0, oid)
    found = [_int32(1, any(each is None for each in parts), oid, len(parts), 1)]
    found += [_int32(-1) if each is None else _int32(len(each)) + each for each in parts]
    return b"".join(found)


def _int32(*values: int) -> bytes:
    return b"".join(int(each).to_bytes(4, "big", signed=each < 0) for each in values)
