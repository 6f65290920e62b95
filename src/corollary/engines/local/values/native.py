"""Native values: those that NumPy computes with, from and to Python and Arrow.

| type | NumPy |
|---|---|
| symbol | object (str) |
| number | int64 |
| unsigned | uint64 |
| float | float64, one NaN, no -0.0 |
| decimal(p,s) | int64, the value times 10^s |
| bool | int64, 0 or 1 |
| date | int64, days since 1970 |
| timestamp | int64, microseconds since 1970 |
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.core.arrow import arrow_type
from corollary.core.types import Kind, Type

NativeArray = npt.NDArray[Any]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_DAY = date(1970, 1, 1)
MICROSECOND = timedelta(microseconds=1)

HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio: multiplying by it spreads neighbours over all high bits."""

DECIMAL_BOUND = 10**18
"""The integers behind decimals are smaller: precision up to 18 fits an int64."""

INTEGER_BOUNDS = dict.fromkeys(Kind, (-(2**63), 2**63 - 1)) | {
    Kind.UNSIGNED: (0, 2**64 - 1),
    Kind.DECIMAL: (1 - DECIMAL_BOUND, DECIMAL_BOUND - 1),
}
"""The least and the greatest integer for values of a kind that is represented by integers."""

DTYPES: dict[Kind, Any] = {
    Kind.SYMBOL: np.object_,
    Kind.UNSIGNED: np.uint64,
    Kind.FLOAT: np.float64,
}


def dtype_of(kind: Kind) -> Any:
    """Return the NumPy type that holds values of a kind."""
    return DTYPES.get(kind, np.int64)


def filler_values(count: int, type_: Type) -> NativeArray:
    """Return values to fill the rows that have none."""
    values = np.zeros(count, dtype_of(type_.kind))
    if type_.kind is Kind.SYMBOL:
        values[:] = ""
    return values


def canonical_floats(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return floats with a single NaN and without -0.0, so that equal values have equal bits."""
    result = values + 0.0  # -0.0 + 0.0 is 0.0
    result[np.isnan(result)] = np.nan
    return result


def from_python(values: Sequence[Any], type_: Type) -> NativeArray:
    """Return Python values, none of them None, as an array."""
    match type_.kind:
        case Kind.SYMBOL:
            array = np.empty(len(values), object)
            array[:] = values
            return array
        case Kind.FLOAT:
            return canonical_floats(np.array([float(value) for value in values], np.float64))
        case Kind.UNSIGNED:
            return np.array([int(value) for value in values], np.uint64)
        case Kind.DECIMAL:
            return np.array([_scaled(value, type_.scale) for value in values], np.int64)
        case Kind.DATE:
            return np.array([(value - EPOCH_DAY).days for value in values], np.int64)
        case Kind.TIMESTAMP:
            return np.array([(value - EPOCH) // MICROSECOND for value in values], np.int64)
        case Kind.NUMBER | Kind.BOOL:
            return np.array([int(value) for value in values], np.int64)


def _scaled(value: Any, scale: int) -> int:
    return int(Decimal(value).scaleb(scale).to_integral_exact())


def to_python(value: Any, type_: Type) -> Any:
    """Return one native value as a Python object."""
    match type_.kind:
        case Kind.SYMBOL:
            return value
        case Kind.FLOAT:
            return float(value)
        case Kind.BOOL:
            return bool(value)
        case Kind.DECIMAL:
            return Decimal(int(value)).scaleb(-type_.scale)
        case Kind.DATE:
            return EPOCH_DAY + timedelta(days=int(value))
        case Kind.TIMESTAMP:
            return EPOCH + timedelta(microseconds=int(value))
        case Kind.NUMBER | Kind.UNSIGNED:
            return int(value)


def from_arrow(
    column: pa.ChunkedArray, type_: Type
) -> tuple[NativeArray, npt.NDArray[np.bool_] | None]:
    """Return an Arrow column as an array, and the mask of its nulls, None if there are none."""
    nulls = column.is_null().to_numpy() if column.null_count else None
    column = column.cast(arrow_type(type_))
    match type_.kind:
        case Kind.DECIMAL:
            return _unscaled(column.combine_chunks()), nulls
        case Kind.DATE:
            column = column.cast(pa.int32()).cast(pa.int64())
        case Kind.TIMESTAMP:
            column = column.cast(pa.int64())
        case Kind.BOOL:
            column = column.cast(pa.int8()).cast(pa.int64())
        case _:
            pass
    nothing = "" if type_.kind is Kind.SYMBOL else 0
    values = (column if nulls is None else column.fill_null(nothing)).to_numpy()
    return (canonical_floats(values) if type_.kind is Kind.FLOAT else values), nulls


def _unscaled(array: pa.Array) -> npt.NDArray[np.int64]:
    """Return the integers behind decimals: the low 64 of 128 bits, as none has over 18 digits."""
    if not len(array):
        return np.empty(0, np.int64)
    words = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)
    return words[array.offset : array.offset + len(array), 0].copy()


def to_arrow(values: NativeArray, nulls: npt.NDArray[np.bool_], type_: Type) -> pa.Array:
    """Return native values as an Arrow array, with the nulls of a mask."""
    mask = nulls if nulls.any() else None
    target = arrow_type(type_)
    match type_.kind:
        case Kind.BOOL:
            return pa.array(values.astype(np.bool_), target, mask=mask)
        case Kind.DATE:
            return pa.array(values.astype(np.int32), pa.int32(), mask=mask).cast(target)
        case Kind.TIMESTAMP:
            return pa.array(values, pa.int64(), mask=mask).cast(target)
        case Kind.DECIMAL:
            # Arrow's decimals have 128 bits: the high word is the sign of the low one.
            words = np.stack([values, values >> np.int64(63)], axis=1)
            valid = None if mask is None else np.packbits(~mask, bitorder="little").tobytes()
            buffers = [
                None if valid is None else pa.py_buffer(valid),
                pa.py_buffer(words.tobytes()),
            ]
            return pa.Array.from_buffers(target, len(values), buffers)
        case _:
            return pa.array(values, target, mask=mask, from_pandas=False)


def partition_of(
    values: NativeArray, nulls: npt.NDArray[np.bool_] | None, type_: Type, partitions: int
) -> npt.NDArray[np.int64]:
    """Return the partition of each value, the same in every process; null is in the first.

    >>> from corollary.core.types import NUMBER
    >>> partition_of(np.array([1, 2, 3, 4]), None, NUMBER, 2).tolist()
    [1, 0, 1, 0]
    """
    if type_.kind is Kind.SYMBOL:
        keys = np.fromiter((crc32(each.encode()) for each in values), np.uint64, len(values))
    else:
        keys = values.view(np.uint64)
    # Fibonacci hashing: the high 24 bits of the product, scaled to the number of partitions.
    hashes = (keys * HASH_MULTIPLIER) >> np.uint64(40)
    result = ((hashes * np.uint64(partitions)) >> np.uint64(24)).astype(np.int64)
    if nulls is not None:
        result[nulls] = 0
    return result
