"""Native values: those that NumPy and Arrow compute with, from and to Python and Arrow.

| type | NumPy |
|---|---|
| symbol | `Texts`: an Arrow array |
| number | int64 |
| unsigned | uint64 |
| float | float64, one NaN, no -0.0 |
| decimal(p,s) | int64, the value times 10^s; object (int) if one does not fit |
| bool | int64, 0 or 1 |
| date | int64, days since 1970 |
| timestamp | int64, microseconds since 1970 |
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core import arrow, arrow_buffers
from corollary.core.types import TYPE_SPECS, Kind, Type
from corollary.core.values import decimal_value, unscaled_integer
from corollary.engines.local.values.texts import Texts

NativeArray = npt.NDArray[Any]
Values = NativeArray | Texts
Keys = npt.NDArray[np.uint64]


_NULL_TEXT = pa.nulls(1, pa.large_string())[0]
_NO_TEXT = arrow_buffers.text_scalar("")

HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio: multiplying by it spreads neighbours over all high bits."""

_DTYPES: dict[Kind, Any] = {kind: np.dtype(spec.native).type for kind, spec in TYPE_SPECS.items()}


def dtype_of(kind: Kind) -> Any:
    """Return the NumPy type that holds values of a kind."""
    return _DTYPES[kind]


def filler_values(count: int, type_: Type) -> Values:
    """Return values to fill the rows that have none."""
    if type_.kind is Kind.SYMBOL:
        return Texts.of([""]).repeat(count)
    return np.zeros(count, dtype_of(type_.kind))


def scatter_values(values: Values, mask: npt.NDArray[np.bool_]) -> Values:
    """Return values in the rows of a mask, and any in all others."""
    if isinstance(values, Texts):
        return values.scatter(mask)
    result = np.zeros(len(mask), values.dtype)
    result[mask] = values
    return result


def canonical_floats(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return floats with a single NaN and without -0.0, so that equal values have equal bits."""
    with np.errstate(invalid="ignore"):  # a null may have any bits
        result = values + 0.0  # -0.0 + 0.0 is 0.0
    result[np.isnan(result)] = np.nan
    return result


def narrow_integers(values: NativeArray) -> NativeArray:
    """Return Python's integers as int64 if all of them, and their opposites, fit."""
    if values.dtype != object:
        return values
    if not len(values):
        return values.astype(np.int64)
    fits = values.min() > -(2**63) and values.max() < 2**63
    return values.astype(np.int64) if fits else values


def from_python(values: Sequence[Any], type_: Type) -> Any:
    """Return Python values, none of them None, as an array."""
    if type_.logical is not None:
        values = [arrow.store_value(value, type_) for value in values]
    match type_.kind:
        case Kind.SYMBOL | Kind.RECORD:
            return Texts.of(values)
        case Kind.FLOAT:
            return canonical_floats(np.array([float(value) for value in values], np.float64))
        case Kind.UNSIGNED:
            return np.array([int(value) for value in values], np.uint64)
        case Kind.DECIMAL:
            integers = [unscaled_integer(value, type_.scale) for value in values]
            return narrow_integers(np.array(integers, object))
        case Kind.DATE:
            return np.array([(value - arrow_buffers.EPOCH_DAY).days for value in values], np.int64)
        case Kind.TIMESTAMP:
            return np.array(
                [(value - arrow_buffers.EPOCH) // arrow_buffers.MICROSECOND for value in values],
                np.int64,
            )
        case Kind.NUMBER | Kind.BOOL:
            return np.array([int(value) for value in values], np.int64)
        case _:
            raise AssertionError(f"{type_.kind} is not stored as such")


def to_python(value: Any, type_: Type) -> Any:
    """Return one native value as a Python object."""
    if type_.logical is not None:
        return arrow.load_value(to_python(value, type_.stored), type_)
    match type_.kind:
        case Kind.SYMBOL | Kind.RECORD:
            return value
        case Kind.FLOAT:
            return float(value)
        case Kind.BOOL:
            return bool(value)
        case Kind.DECIMAL:
            return decimal_value(int(value), type_.scale)
        case Kind.DATE:
            return arrow_buffers.EPOCH_DAY + timedelta(days=int(value))
        case Kind.TIMESTAMP:
            return arrow_buffers.EPOCH + timedelta(microseconds=int(value))
        case Kind.NUMBER | Kind.UNSIGNED:
            return int(value)
        case _:
            raise AssertionError(f"{type_.kind} is not stored as such")


def from_arrow(column: pa.ChunkedArray, type_: Type) -> tuple[Any, npt.NDArray[np.bool_] | None]:
    """Return an Arrow column as an array, and the mask of its nulls, None if there are none."""
    target = pa.large_string() if type_.kind is Kind.SYMBOL else arrow.arrow_type(type_.stored)
    array = arrow.to_stored_column(column, type_).cast(target).combine_chunks()
    nulls = arrow_buffers.null_mask(array)
    match type_.kind:
        case Kind.SYMBOL | Kind.RECORD:
            return Texts(array.fill_null(_NO_TEXT)), nulls
        case Kind.DECIMAL:
            return arrow_buffers.decimal_integers(array), nulls
        case Kind.DATE:
            return arrow_buffers.fixed_values(array, np.int32).astype(np.int64), nulls
        case Kind.BOOL:
            return arrow_buffers.bool_values(array).astype(np.int64), nulls
        case Kind.FLOAT:
            return canonical_floats(arrow_buffers.fixed_values(array, np.float64)), nulls
        case _:
            return arrow_buffers.fixed_values(array, dtype_of(type_.kind)), nulls


def to_arrow(values: Any, nulls: npt.NDArray[np.bool_] | None, type_: Type) -> pa.Array:
    """Return native values as an Arrow array, with the nulls of a mask, if there are any."""
    if type_.logical is not None:
        return arrow.from_stored_column(to_arrow(values, nulls, type_.stored), type_)
    target = arrow.arrow_type(type_)
    if isinstance(values, Texts):
        is_text = None if nulls is None else arrow_buffers.bool_array(~nulls)
        array = values.array if is_text is None else pc.if_else(is_text, values.array, _NULL_TEXT)
        return array.cast(target)
    match type_.kind:
        case Kind.BOOL:
            return arrow_buffers.bool_array(values != 0, nulls)
        case Kind.DATE:
            return arrow_buffers.fixed_array(values.astype(np.int32), target, nulls)
        case Kind.DECIMAL:
            is_wide = values.dtype == object
            words = (
                arrow_buffers.words_of_integers(values)
                if is_wide
                else arrow_buffers.narrow_words(values)
            )
            return arrow_buffers.fixed_array(words, target, nulls)
        case _:
            return arrow_buffers.fixed_array(values, target, nulls)


def partition_keys(values: Values, nulls: npt.NDArray[np.bool_] | None) -> Keys:
    """Return the integer of each value, the bits of a float, the CRC-32 of a text; null is 0.

    They are the same in every process. Equal values have equal keys, different ones nearly always
    different ones.
    """
    if isinstance(values, Texts):
        texts, rows = values.distinct()
        checksums = (crc32(each.encode()) for each in texts.tolist())
        keys = np.fromiter(checksums, np.uint64, len(texts))[rows]
    elif values.dtype == object:
        keys = (values & arrow_buffers.LOW_BITS).astype(np.uint64)
    else:
        keys = values.view(np.uint64)
    return keys if nulls is None else np.where(nulls, np.uint64(0), keys)


def mix_keys(columns: Sequence[Keys]) -> Keys:
    """Return one key for the keys of several columns."""
    mixed, *others = columns
    for keys in others:
        product = mixed * HASH_MULTIPLIER
        mixed = product ^ (product >> np.uint64(32)) ^ keys
    return mixed


def place_keys(keys: Keys, partitions: int | npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the partition of each key; that of null, which is 0, is the first."""
    # Fibonacci hashing: the high 24 bits of the product, scaled to the number of partitions.
    hashes = (keys * HASH_MULTIPLIER) >> np.uint64(40)
    counts = np.asarray(partitions).astype(np.uint64)
    return ((hashes * counts) >> np.uint64(24)).astype(np.int64)


def partition_of(
    values: Values, nulls: npt.NDArray[np.bool_] | None, partitions: int | npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the partition of each value, the same in every process; null is in the first.

    >>> partition_of(np.array([1, 2, 3, 4]), None, 2).tolist()
    [1, 0, 1, 0]
    """
    return place_keys(partition_keys(values, nulls), partitions)
