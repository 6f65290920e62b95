"""Values as NumPy computes with them, from and to Python and Arrow.

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
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from corollary.core.types import Kind, Type

if TYPE_CHECKING:
    import pyarrow as pa

Native = npt.NDArray[Any]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_DAY = date(1970, 1, 1)
MICROSECOND = timedelta(microseconds=1)

DTYPES: dict[Kind, Any] = {
    Kind.SYMBOL: np.object_,
    Kind.UNSIGNED: np.uint64,
    Kind.FLOAT: np.float64,
}


def dtype_of(kind: Kind) -> Any:
    """Return the NumPy type that holds values of a kind."""
    return DTYPES.get(kind, np.int64)


def canonical(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return floats with a single NaN and without -0.0, so that equal values have equal bits."""
    result = values + 0.0
    result[np.isnan(result)] = np.nan
    return result


def from_python(values: Sequence[Any], type_: Type) -> Native:
    """Return Python values, none of them None, as an array."""
    match type_.kind:
        case Kind.SYMBOL:
            array = np.empty(len(values), object)
            array[:] = values
            return array
        case Kind.FLOAT:
            return canonical(np.array([float(value) for value in values], np.float64))
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
    """Return one native value in Python's clothes."""
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
    column: "pa.ChunkedArray", type_: Type
) -> tuple[Native, npt.NDArray[np.bool_] | None]:
    """Return an Arrow column that is not of symbols as an array, and where it is null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    nulls = column.is_null().to_numpy() if column.null_count else None
    match type_.kind:
        case Kind.DECIMAL:
            wide = pc.multiply(
                column.cast(pa.decimal128(38, type_.scale)),
                pa.scalar(Decimal(10) ** type_.scale, pa.decimal128(19, 0)),
            )
            integers = wide.cast(pa.decimal128(38, 0), safe=False).cast(pa.int64())
        case Kind.DATE:
            integers = column.cast(pa.date32()).cast(pa.int32()).cast(pa.int64())
        case Kind.TIMESTAMP:
            integers = column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
        case Kind.BOOL:
            integers = column.cast(pa.int8()).cast(pa.int64())
        case Kind.UNSIGNED:
            integers = column.cast(pa.uint64())
        case Kind.FLOAT:
            integers = column.cast(pa.float64())
        case _:
            integers = column.cast(pa.int64())
    if nulls is not None:
        integers = integers.fill_null(0)
    values = integers.to_numpy()
    return (canonical(values) if type_.kind is Kind.FLOAT else values), nulls


def to_arrow(values: Native, nulls: npt.NDArray[np.bool_], type_: Type) -> "pa.Array":
    """Return an array of native values as Arrow, null where `nulls` says so."""
    import pyarrow as pa

    mask = nulls if nulls.any() else None
    match type_.kind:
        case Kind.SYMBOL:
            return pa.array(values, pa.string(), mask=mask)
        case Kind.UNSIGNED:
            return pa.array(values, pa.uint64(), mask=mask)
        case Kind.FLOAT:
            return pa.array(values, pa.float64(), mask=mask, from_pandas=False)
        case Kind.BOOL:
            return pa.array(values.astype(np.bool_), pa.bool_(), mask=mask)
        case Kind.DATE:
            return pa.array(values.astype(np.int32), pa.int32(), mask=mask).cast(pa.date32())
        case Kind.TIMESTAMP:
            return pa.array(values, pa.int64(), mask=mask).cast(pa.timestamp("us", tz="UTC"))
        case Kind.DECIMAL:
            digits = [
                None if null else Decimal(value).scaleb(-type_.scale)
                for value, null in zip(values.tolist(), nulls.tolist(), strict=True)
            ]
            return pa.array(digits, pa.decimal128(max(type_.precision, 1), type_.scale))
        case _:
            return pa.array(values, pa.int64(), mask=mask)
