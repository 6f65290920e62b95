"""The types that clients see: their numbers (OIDs), names and sizes.

| type of Corollary | PostgreSQL |
|---|---|
| symbol | text |
| number | int8 |
| unsigned | numeric(20, 0) |
| float | float8 |
| decimal(p, s) | numeric(p, s) |
| bool, date | bool, date |
| timestamp | timestamptz |

`pg_catalog` has some more: int2, int4, oid, lists.
"""

import pyarrow as pa

from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.serve.postgres.problems import not_supported


@dataclass(frozen=True, slots=True)
class WireType:
    """A type of PostgreSQL.

    Attributes:
        oid: its number.
        name: as `pg_type` has it.
        sql_name: as SQL writes it.
        size: the bytes of a value; -1 if it varies.
        array: the number of the type of lists of it; 0 if there is none.
        category: what kind it is, as `pg_type.typcategory` says.
    """

    oid: int
    name: str
    sql_name: str
    size: int
    array: int = 0
    category: str = "U"


BOOL = WireType(16, "bool", "boolean", 1, 1000, "B")
BYTEA = WireType(17, "bytea", "bytea", -1, 1001)
CHAR = WireType(18, "char", '"char"', 1, 1002, "Z")
NAME = WireType(19, "name", "name", 64, 1003, "S")
INT8 = WireType(20, "int8", "bigint", 8, 1016, "N")
INT2 = WireType(21, "int2", "smallint", 2, 1005, "N")
INT4 = WireType(23, "int4", "integer", 4, 1007, "N")
REGPROC = WireType(24, "regproc", "regproc", 4, 1008, "N")
TEXT = WireType(25, "text", "text", -1, 1009, "S")
JSON = WireType(114, "json", "json", -1, 199)
OID = WireType(26, "oid", "oid", 4, 1028, "N")
FLOAT4 = WireType(700, "float4", "real", 4, 1021, "N")
FLOAT8 = WireType(701, "float8", "double precision", 8, 1022, "N")
UNKNOWN = WireType(705, "unknown", "unknown", -2, 0, "X")
BPCHAR = WireType(1042, "bpchar", "character", -1, 1014, "S")
VARCHAR = WireType(1043, "varchar", "character varying", -1, 1015, "S")
DATE = WireType(1082, "date", "date", 4, 1182, "D")
TIME = WireType(1083, "time", "time without time zone", 8, 1183, "D")
TIMESTAMP = WireType(1114, "timestamp", "timestamp without time zone", 8, 1115, "D")
TIMESTAMPTZ = WireType(1184, "timestamptz", "timestamp with time zone", 8, 1185, "D")
INTERVAL = WireType(1186, "interval", "interval", 16, 1187, "T")
NUMERIC = WireType(1700, "numeric", "numeric", -1, 1231, "N")
REGCLASS = WireType(2205, "regclass", "regclass", 4, 2210, "N")
UUID = WireType(2950, "uuid", "uuid", 16, 2951)
JSONB = WireType(3802, "jsonb", "jsonb", -1, 3807)

SCALAR_TYPES = (
    *(BOOL, BYTEA, CHAR, NAME, INT8, INT2, INT4, REGPROC, TEXT, OID, FLOAT4, FLOAT8, UNKNOWN),
    *(JSON, BPCHAR, VARCHAR, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, INTERVAL, NUMERIC, REGCLASS),
    *(UUID, JSONB),
)
BY_OID = {each.oid: each for each in SCALAR_TYPES}
BY_NAME = {each.name: each for each in SCALAR_TYPES}
BY_ARRAY = {each.array: each for each in SCALAR_TYPES if each.array}
UNSIGNED_DIGITS = 20


def array_of(element: WireType) -> WireType:
    """Return the type of lists of a type."""
    return WireType(element.array, f"_{element.name}", f"{element.sql_name}[]", -1, 0, category="A")


def numeric_modifier(precision: int, scale: int) -> int:
    """Return the digits of a numeric as `atttypmod` says them.

    >>> numeric_modifier(12, 2)
    786438
    """
    return (precision << 16 | scale) + 4


def column_type(type_: Type) -> tuple[WireType, int]:
    """Return the type and modifier of a column of a relation."""
    if type_.element is not None:
        return array_of(column_type(type_.element)[0]), -1
    found = BY_NAME[type_.spec.postgres]
    if found is not NUMERIC:
        return found, -1
    precision = UNSIGNED_DIGITS if type_.is_unsigned else type_.precision
    return found, numeric_modifier(precision, type_.scale)


_BY_ARROW: dict[pa.DataType, WireType] = {
    pa.bool_(): BOOL,
    pa.int8(): INT2,
    pa.int16(): INT2,
    pa.int32(): INT4,
    pa.int64(): INT8,
    pa.uint16(): INT4,
    pa.uint32(): OID,
    pa.float32(): FLOAT4,
    pa.float64(): FLOAT8,
    pa.string(): TEXT,
    pa.large_string(): TEXT,
    pa.string_view(): TEXT,
    pa.binary(): BYTEA,
    pa.large_binary(): BYTEA,
    pa.date32(): DATE,
    pa.time64("us"): TIME,
    pa.duration("us"): INTERVAL,
    pa.null(): TEXT,
}


def arrow_column_type(type_: pa.DataType) -> tuple[WireType, int]:
    """Return the type and modifier of a column of an Arrow table.

    Raises:
        PgError: there is none.

    >>> arrow_column_type(pa.decimal128(12, 2))[0].name
    'numeric'
    """
    found = _BY_ARROW.get(type_)
    if found is not None:
        return found, -1
    if pa.types.is_decimal(type_):
        return NUMERIC, numeric_modifier(type_.precision, type_.scale)
    if type_ == pa.uint64():
        return NUMERIC, numeric_modifier(UNSIGNED_DIGITS, 0)
    if pa.types.is_timestamp(type_):
        return (TIMESTAMPTZ if type_.tz else TIMESTAMP), -1
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return array_of(arrow_column_type(type_.value_type)[0]), -1
    if pa.types.is_struct(type_) or pa.types.is_map(type_):
        return JSON, -1
    raise not_supported(f"A value of the type `{type_}` cannot be sent.")
