"""The columns of relations in Spark: names, types, and the way from and to Arrow.

| type         | Spark          | why                                                  |
|--------------|----------------|------------------------------------------------------|
| symbol       | STRING         | compared by bytes, which is the order of code points |
| number       | BIGINT         |                                                      |
| unsigned     | DECIMAL(20,0)  | Spark has no unsigned integers                       |
| float        | DOUBLE         | no -0.0, one NaN                                     |
| decimal(p,s) | DECIMAL(38,s)  | what is computed may have all 38 digits              |
| bool         | BOOLEAN        |                                                      |
| date         | DATE           |                                                      |
| timestamp    | TIMESTAMP      | the session's zone is UTC                            |

A relation without columns has one in Spark, `unit`, that is always true.
"""

from collections.abc import Sequence

import pyarrow as pa

from corollary.core import arrow
from corollary.core.types import BOOL, DECIMAL_MAX_DIGITS, Kind, Type
from corollary.engines.spark.frames import UNSIGNED_TYPE

UNIT = "unit"
FAULT = "fault"
"""The number of the pipeline that has met an expression without a value; null in other rows."""

SQL = {
    Kind.SYMBOL: "STRING",
    Kind.NUMBER: "BIGINT",
    Kind.UNSIGNED: "DECIMAL(20, 0)",
    Kind.FLOAT: "DOUBLE",
    Kind.BOOL: "BOOLEAN",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
}


def sql_type(type_: Type) -> str:
    """Return the type of a column as SQL names it.

    >>> sql_type(Type(Kind.DECIMAL, precision=12, scale=2))
    'DECIMAL(38, 2)'
    """
    if type_.kind is Kind.DECIMAL:
        return f"DECIMAL({DECIMAL_MAX_DIGITS}, {type_.scale})"
    return SQL[type_.kind]


def held_type(type_: Type) -> pa.DataType:
    """Return the type of a column as Spark gives and takes it in Arrow."""
    if type_.kind is Kind.UNSIGNED:
        return UNSIGNED_TYPE
    if type_.kind is Kind.DECIMAL:
        return pa.decimal128(DECIMAL_MAX_DIGITS, type_.scale)
    return arrow.arrow_type(type_)


def names_of(types: Sequence[Type]) -> list[str]:
    """Return the names of the columns in Spark."""
    return [f"c{at}" for at in range(len(types))] or [UNIT]


def held_types(types: Sequence[Type]) -> Sequence[Type]:
    """Return the types of the columns in Spark."""
    return types or (BOOL,)


def schema_of(types: Sequence[Type]) -> pa.Schema:
    """Return the schema of a relation as Spark holds it."""
    pairs = zip(names_of(types), held_types(types), strict=True)
    return pa.schema([(name, held_type(type_)) for name, type_ in pairs])


def ddl_of(types: Sequence[Type]) -> str:
    """Return the schema of a relation as SQL names it."""
    pairs = zip(names_of(types), held_types(types), strict=True)
    return ", ".join(f"{name} {sql_type(type_)}" for name, type_ in pairs)


def to_held(table: pa.Table, types: Sequence[Type]) -> pa.Table:
    """Return tuples as Spark holds them."""
    if not types:
        return pa.table({UNIT: pa.array([True] * table.num_rows)})
    columns = [
        held_column(column, type_) for column, type_ in zip(table.columns, types, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema_of(types))


def held_column(column: pa.ChunkedArray | pa.Array, type_: Type) -> pa.ChunkedArray | pa.Array:
    """Return a column as Spark holds it."""
    if type_.kind is Kind.FLOAT:
        return arrow.canonical_floats(column.cast(pa.float64()))
    return column.cast(held_type(type_))


def from_held(table: pa.Table, types: Sequence[Type], names: Sequence[str]) -> pa.Table:
    """Return the tuples of a relation as everybody else holds them."""
    if not types:
        return arrow.nullary_table(table.num_rows)
    columns = [
        plain_column(column, type_) for column, type_ in zip(table.columns, types, strict=True)
    ]
    return pa.Table.from_arrays(columns, names=list(names))


def plain_column(column: pa.ChunkedArray | pa.Array, type_: Type) -> pa.ChunkedArray | pa.Array:
    """Return a column as everybody else holds it."""
    target = arrow.arrow_type(type_)
    if type_.kind is Kind.DECIMAL and column.type.precision > target.precision:
        return column.cast(target, safe=False)
    if type_.kind is Kind.FLOAT:
        return arrow.canonical_floats(column)
    return column if column.type == target else column.cast(target)
