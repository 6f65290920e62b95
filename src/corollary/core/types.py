"""Types of columns and expressions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any

from corollary.data_class import dataclass


class Kind(StrEnum):
    """The primitive types."""

    SYMBOL = "symbol"
    NUMBER = "number"
    UNSIGNED = "unsigned"
    FLOAT = "float"
    FLOAT32 = "float32"
    DECIMAL = "decimal"
    BOOL = "bool"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMP_NTZ = "timestamp_ntz"
    BINARY = "binary"
    DURATION = "duration"
    MONTHS = "months"
    TIME_OF_DAY = "time_of_day"
    ARRAY = "array"
    """An array of values of one type, any of which may be null: `[number]`."""
    STRUCT = "struct"
    """Values with names, any of which may be null: `{a: number, b: symbol}`."""
    MAP = "map"
    """Keys, none of them twice, and a value or null for each: `{symbol -> number}`."""
    RECORD = "record"
    """What type inference takes records for; a `Type` of them is SYMBOL, as they are stored."""


NESTED = frozenset({Kind.ARRAY, Kind.STRUCT, Kind.MAP})
"""The kinds of values that consist of others, the members."""

PRIMITIVES = tuple(kind for kind in Kind if kind is not Kind.RECORD and kind not in NESTED)
"""The kinds that columns can have by name."""

NUMBER_RANGE = (-(2**63), 2**63 - 1)
UNSIGNED_RANGE = (0, 2**64 - 1)

SHORT_DECIMAL_DIGITS = 18
"""The number of decimal digits that always fit into 64 bits…"""

DECIMAL_MAX_DIGITS = 38
"""…and into 128 bits."""

MIN_CUT_SCALE = 6
"""The digits after the point that remain when a decimal has more digits than there can be."""

DECIMAL_BOUND = 10**DECIMAL_MAX_DIGITS
"""The integers behind decimals are smaller."""

MONTHS_RANGE = (-(2**31), 2**31 - 1)


@dataclass(frozen=True, slots=True)
class TypeSpec:
    """What the values of a kind are elsewhere.

    Attributes:
        python: their classes in Python, the usual one first.
        arrow: their Arrow type, by its alias; two have parameters (`core/arrow.py`).
        native: the NumPy type of the numbers behind them; texts are in Arrow arrays.
        spark: their type in Spark SQL, whose dialect our SQL is; `{0}` is the `Type`.
        duckdb: their type in DuckDB, for people.
        computed: the type in which DuckDB computes with them; decimals with more digits than 64
            bits hold are of 128 bits.
        sqlite: the type of a column in tables of SQLite.
        postgres: their type on the wire of PostgreSQL.
        json_option: the option of Spark's JSON that says how they are written.
        bounds: the least and the greatest integer behind them.
        stored: the kind as which engines store and compute them, if it is another one. Its order is
            theirs (`core/values.py`).
    """

    python: tuple[Any, ...]
    arrow: str
    native: str = "int64"
    spark: str = "BIGINT"
    duckdb: str = "BIGINT"
    computed: str = "BIGINT"
    sqlite: str = "INTEGER"
    postgres: str = "int8"
    json_option: str = ""
    bounds: tuple[int, int] = NUMBER_RANGE
    stored: Kind | None = None


_TEXT = TypeSpec(
    (str,), "string", spark="STRING", duckdb="TEXT", computed="VARCHAR", postgres="text"
)
_DECIMAL = "DECIMAL({0.precision},{0.scale})"
_INTERVAL = "INTERVAL {0.fields}"
TYPE_SPECS: Mapping[Kind, TypeSpec] = {
    Kind.SYMBOL: _TEXT,
    Kind.NUMBER: TypeSpec((int,), "int64"),
    Kind.UNSIGNED: TypeSpec(
        (int,),
        "uint64",
        "uint64",
        "DECIMAL(20,0)",
        "UBIGINT",
        "UBIGINT",
        postgres="numeric",
        bounds=UNSIGNED_RANGE,
    ),
    Kind.FLOAT: TypeSpec(
        (float, int), "double", "float64", "DOUBLE", "DOUBLE", "DOUBLE", "REAL", "float8"
    ),
    Kind.FLOAT32: TypeSpec(
        (float, int),
        "float",
        "float32",
        "FLOAT",
        "FLOAT",
        sqlite="REAL",
        postgres="float4",
        stored=Kind.FLOAT,
    ),
    Kind.DECIMAL: TypeSpec(
        (Decimal, int),
        "decimal128",
        spark=_DECIMAL,
        duckdb=_DECIMAL,
        sqlite="TEXT",
        postgres="numeric",
        bounds=(1 - DECIMAL_BOUND, DECIMAL_BOUND - 1),
    ),
    Kind.BOOL: TypeSpec((bool,), "bool", spark="BOOLEAN", duckdb="BOOLEAN", postgres="bool"),
    Kind.DATE: TypeSpec(
        (date,),
        "date32",
        spark="DATE",
        duckdb="DATE",
        sqlite="TEXT",
        postgres="date",
        json_option="dateFormat",
    ),
    Kind.TIMESTAMP: TypeSpec(
        (datetime,),
        "timestamp",
        spark="TIMESTAMP",
        duckdb="TIMESTAMP",
        sqlite="TEXT",
        postgres="timestamptz",
        json_option="timestampFormat",
    ),
    Kind.TIMESTAMP_NTZ: TypeSpec(
        (datetime,),
        "timestamp_ntz",
        spark="TIMESTAMP_NTZ",
        duckdb="TIMESTAMP",
        sqlite="TEXT",
        postgres="timestamp",
        json_option="timestampNTZFormat",
        stored=Kind.TIMESTAMP,
    ),
    Kind.BINARY: TypeSpec(
        (bytes,),
        "binary",
        spark="BINARY",
        duckdb="BLOB",
        computed="VARCHAR",
        sqlite="BLOB",
        postgres="bytea",
        stored=Kind.SYMBOL,
    ),
    Kind.DURATION: TypeSpec(
        (timedelta,), "duration[us]", spark=_INTERVAL, postgres="interval", stored=Kind.NUMBER
    ),
    Kind.MONTHS: TypeSpec(
        (int,),
        "int32",
        spark=_INTERVAL,
        postgres="int4",
        bounds=MONTHS_RANGE,
        stored=Kind.NUMBER,
    ),
    Kind.TIME_OF_DAY: TypeSpec(
        (time,),
        "time64[us]",
        spark="TIME(6)",
        duckdb="TIME",
        sqlite="TEXT",
        postgres="time",
        bounds=(0, 86_399_999_999),
        stored=Kind.NUMBER,
    ),
    Kind.ARRAY: TypeSpec(
        (tuple, list),
        "list",
        spark="ARRAY<{0.element.spark_name}>",
        duckdb="{0.element.duckdb_name}[]",
        computed="VARCHAR",
        sqlite="TEXT",
        postgres="text",
        stored=Kind.SYMBOL,
    ),
    Kind.STRUCT: TypeSpec(
        (tuple, list, dict),
        "struct",
        spark="STRUCT<{0.named_spark_types}>",
        duckdb="STRUCT({0.named_duckdb_types})",
        computed="VARCHAR",
        sqlite="TEXT",
        postgres="json",
        stored=Kind.SYMBOL,
    ),
    Kind.MAP: TypeSpec(
        (tuple, list, dict),
        "map",
        spark="MAP<{0.members[0][1].spark_name}, {0.members[1][1].spark_name}>",
        duckdb="MAP({0.members[0][1].duckdb_name}, {0.members[1][1].duckdb_name})",
        computed="VARCHAR",
        sqlite="TEXT",
        postgres="json",
        stored=Kind.SYMBOL,
    ),
    Kind.RECORD: _TEXT,
}
"""What is known of each kind; what is computed of values is in `core/values.py` and in engines."""

INTERVAL_FIELDS: Mapping[Kind, tuple[str, ...]] = {
    Kind.DURATION: (
        *("DAY TO SECOND", "DAY", "DAY TO HOUR", "DAY TO MINUTE", "HOUR", "HOUR TO MINUTE"),
        *("HOUR TO SECOND", "MINUTE", "MINUTE TO SECOND", "SECOND"),
    ),
    Kind.MONTHS: ("YEAR TO MONTH", "YEAR", "MONTH"),
}
"""The fields with which intervals are written; the precision of a type is its place here."""


INTEGER_NAMES = {8: "TINYINT", 16: "SMALLINT", 32: "INT"}
"""The types of SQL whose integers have fewer bits than a `number`."""

Domain = tuple[Kind, int]
"""A kind and the scale of its decimals."""


class _IsKind:
    """Whether the values of a type, null apart, are of a kind."""

    __slots__ = ("_kind",)

    def __init__(self, kind: Kind) -> None:
        self._kind = kind

    def __get__(self, type_: "Type", _owner: object = None) -> bool:
        return (type_.logical or type_.kind) is self._kind


@dataclass(frozen=True, slots=True)
class Type:
    """A primitive type, whether null is a value of it, and the digits of a decimal.

    The precision of an interval says its fields; all values are of each.

    >>> str(Type(Kind.DECIMAL, precision=12, scale=2, nullable=True))
    'decimal(12,2)?'

    Attributes:
        record: the record type whose values the symbols are. Types are compared by what is stored:
            which records may be joined is the business of type inference.
        logical: the kind of the values where `kind` is merely as what they are stored.
        bits: the width of an integer in SQL; 0 for that of the rule language, 64. It says what the
            values can be, and not how they are stored, so that types do not differ by it.
        members: the names and types of what the values consist of: of the fields of a struct, or of
            the element of an array, or the key and value of a map. Any may be null but keys.

    >>> Type(Kind.BINARY).kind, str(Type(Kind.BINARY))
    (<Kind.SYMBOL: 'symbol'>, 'binary')
    >>> str(array_of(array_of(Type(Kind.NUMBER))))
    '[[number]]'
    >>> str(struct_of([("a", Type(Kind.NUMBER)), ("b", Type(Kind.SYMBOL))]))
    '{a: number, b: symbol}'
    """

    kind: Kind
    nullable: bool = False
    precision: int = 0
    scale: int = 0
    record: "RecordType | None" = field(default=None, compare=False, repr=False)
    logical: Kind | None = field(default=None, repr=False)
    bits: int = field(default=0, compare=False, repr=False)
    members: "tuple[tuple[str, Type], ...]" = field(default=(), repr=False)

    is_symbol = _IsKind(Kind.SYMBOL)
    is_number = _IsKind(Kind.NUMBER)
    is_unsigned = _IsKind(Kind.UNSIGNED)
    is_float = _IsKind(Kind.FLOAT)
    is_float32 = _IsKind(Kind.FLOAT32)
    is_decimal = _IsKind(Kind.DECIMAL)
    is_bool = _IsKind(Kind.BOOL)
    is_date = _IsKind(Kind.DATE)
    is_timestamp = _IsKind(Kind.TIMESTAMP)
    is_timestamp_ntz = _IsKind(Kind.TIMESTAMP_NTZ)
    is_binary = _IsKind(Kind.BINARY)
    is_months = _IsKind(Kind.MONTHS)
    is_time_of_day = _IsKind(Kind.TIME_OF_DAY)
    is_array = _IsKind(Kind.ARRAY)
    is_struct = _IsKind(Kind.STRUCT)
    is_map = _IsKind(Kind.MAP)

    def __post_init__(self) -> None:
        stored = TYPE_SPECS[self.kind].stored
        if stored is not None:
            object.__setattr__(self, "logical", self.kind)
            object.__setattr__(self, "kind", stored)

    def __str__(self) -> str:
        if self.record is not None:
            return f"{self.record.name}{'?' if self.nullable else ''}"
        if self.members:
            named = ", ".join(f"{name}: {each.with_null(False)}" for name, each in self.members)
            if self.is_map:
                key, value = (each.with_null(False) for _, each in self.members)
                named = f"{key} -> {value}"
            shown = f"{{{named}}}" if self.element is None else f"[{self.element.with_null(False)}]"
            return f"{shown}{'?' if self.nullable else ''}"
        digits = f"({self.precision},{self.scale})" if self.has_digits else ""
        return f"{self.inferred_kind}{digits}{'?' if self.nullable else ''}"

    @property
    def domain(self) -> Domain:
        """The set of values that codes of this type encode; equal domains can be joined."""
        return (self.kind, self.scale)

    @property
    def inferred_kind(self) -> Kind:
        """The kind as type inference sees it."""
        return self.logical_kind if self.record is None else Kind.RECORD

    @property
    def stored(self) -> "Type":
        """The type as which engines store and compute the values."""
        if self.logical is None:
            return replace(self, bits=0) if self.bits else self
        return replace(self, logical=None, precision=0, members=())

    @property
    def element(self) -> "Type | None":
        """The type of the elements of an array; None for others."""
        return self.members[0][1] if self.is_array else None

    @property
    def logical_kind(self) -> Kind:
        """The kind of the values outside engines; records are texts there, too."""
        return self.logical or self.kind

    @property
    def spec(self) -> TypeSpec:
        """What its values are elsewhere."""
        return TYPE_SPECS[self.logical_kind]

    @property
    def spark_name(self) -> str:
        """The type in Spark SQL."""
        return INTEGER_NAMES.get(self.bits) or self.spec.spark.format(self)

    @property
    def fields(self) -> str:
        """The fields of an interval: `DAY TO SECOND`."""
        return INTERVAL_FIELDS[self.logical_kind][self.precision]

    @property
    def duckdb_name(self) -> str:
        """The type in DuckDB, for people."""
        return self.spec.duckdb.format(self)

    @property
    def catalog_name(self) -> str:
        """The type as Spark describes a column."""
        if self.precision < 0:
            return "void"
        if self.is_struct:
            fields = (f"{name}:{each.catalog_name}" for name, each in self.members)
            return f"struct<{','.join(fields)}>"
        if self.element is not None:
            return f"array<{self.element.catalog_name}>"
        if self.is_map:
            return f"map<{','.join(each.catalog_name for _, each in self.members)}>"
        return "unsigned" if self.is_unsigned else self.spark_name.lower()

    @property
    def named_spark_types(self) -> str:
        """The fields of a struct in Spark SQL."""
        return ", ".join(f"{_quoted(name)}: {each.spark_name}" for name, each in self.members)

    @property
    def named_duckdb_types(self) -> str:
        """The fields of a struct in DuckDB."""
        return ", ".join(f'"{name}" {each.duckdb_name}' for name, each in self.members)

    @property
    def as_json(self) -> list[Any]:
        """The type in JSON; `type_from_json` is the other direction."""
        words = [str(self.logical_kind), self.nullable, self.precision, self.scale]
        return [*words, *([name, each.as_json] for name, each in self.members)]

    @property
    def is_interval(self) -> bool:
        """Whether it is `duration` or `months`, null or not."""
        return self.logical in INTERVAL_FIELDS

    @property
    def has_digits(self) -> bool:
        """Whether numbers belong to its name: those of a decimal, or what says fields."""
        return self.is_decimal or (self.is_interval and self.precision > 0)

    @property
    def has_maps(self) -> bool:
        """Whether it is a map, or has any inside, so that SQL does not compare its values."""
        return self.is_map or any(each.has_maps for _, each in self.members)

    @property
    def stores_texts(self) -> bool:
        """Whether the values are stored as texts: those of `symbol`, bytes and nested ones."""
        return self.kind is Kind.SYMBOL

    @property
    def stores_floats(self) -> bool:
        """Whether the values are stored as floats of 64 bits."""
        return self.kind is Kind.FLOAT

    @property
    def is_integral(self) -> bool:
        """Whether it is `number` or `unsigned`."""
        return self.logical_kind in (Kind.NUMBER, Kind.UNSIGNED)

    @property
    def is_time(self) -> bool:
        """Whether it is `date`, `timestamp` or `timestamp_ntz`."""
        return self.kind in (Kind.DATE, Kind.TIMESTAMP)

    @property
    def is_long_decimal(self) -> bool:
        """Whether the integers behind values may not fit 64 bits."""
        return self.kind is Kind.DECIMAL and self.precision > SHORT_DECIMAL_DIGITS

    def with_null(self, nullable: bool) -> "Type":
        """Return the type with or without null."""
        return self if self.nullable == nullable else replace(self, nullable=nullable)


@dataclass(frozen=True, slots=True)
class Branch:
    """A way to make a value of a record type: its name and its fields.

    Attributes:
        name: of a branch of an algebraic data type; `[]` for that of a record.
    """

    name: str
    fields: tuple[str, ...]
    types: tuple[Type, ...]


class RecordType:
    """A declared record type or algebraic data type; fields may have the type itself.

    Two are equal if their names and all declarations that they depend on are.

    Attributes:
        name: of the declared type.
        definition: the declarations of all types that its values consist of.
        branches: by name, in the order of the declaration; a record has one.
    """

    __slots__ = ("branches", "definition", "name")

    def __init__(self, name: str, definition: str) -> None:
        self.name = name
        self.definition = definition
        # Filled once all types of a program exist: types may refer to each other.
        self.branches: Mapping[str, Branch] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RecordType) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def __repr__(self) -> str:
        return f"RecordType({self.name})"

    @property
    def _identity(self) -> tuple[str, str]:
        return (self.name, self.definition)

    @property
    def is_algebraic(self) -> bool:
        """Whether it has named branches; if not, `nil` is a value of it."""
        return PLAIN_BRANCH not in self.branches


PLAIN_BRANCH = "[]"
"""The name of the only branch of a record type."""

NIL = "nil"

SYMBOL = Type(Kind.SYMBOL)
NUMBER = Type(Kind.NUMBER)
INT = Type(Kind.NUMBER, bits=32)
INTEGERS = {f"int{bits}": Type(Kind.NUMBER, bits=bits) for bits in INTEGER_NAMES}
"""The types of integers of SQL, which are numbers to rules."""
UNSIGNED = Type(Kind.UNSIGNED)
FLOAT = Type(Kind.FLOAT)
FLOAT32 = Type(Kind.FLOAT32)
BOOL = Type(Kind.BOOL)
DATE = Type(Kind.DATE)
TIMESTAMP = Type(Kind.TIMESTAMP)
TIMESTAMP_NTZ = Type(Kind.TIMESTAMP_NTZ)
BINARY = Type(Kind.BINARY)
DURATION = Type(Kind.DURATION)
MONTHS = Type(Kind.MONTHS)
TIME_OF_DAY = Type(Kind.TIME_OF_DAY)

NUMERIC = frozenset({Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT, Kind.DECIMAL})
SQL_NUMERIC = NUMERIC | {Kind.FLOAT32}
"""The kinds that are numbers in SQL; rules compute with floats of 32 bits as floats."""


def array_of(element: Type) -> Type:
    """Return the type of arrays of values of a type."""
    return nested(Kind.ARRAY, [("element", element)])


def struct_of(fields: Iterable[tuple[str, Type]]) -> Type:
    """Return the type of structs with some fields."""
    return nested(Kind.STRUCT, fields)


def map_of(key: Type, value: Type) -> Type:
    """Return the type of maps from some keys to some values."""
    return nested(Kind.MAP, [("key", key), ("value", value)])


def nested(kind: Kind, members: Iterable[tuple[str, Type]]) -> Type:
    """Return a type whose values consist of others; the digits of literals do not matter inside."""
    return Type(
        kind,
        members=tuple(
            (name, replace(each, nullable=True, precision=_kept_precision(each)))
            for name, each in members
        ),
    )


def is_same(one: Type, other: Type) -> bool:
    """Whether the values of a type are those of another one, which has room for their bits."""
    has_room = not one.is_number or (one.bits or 64) <= (other.bits or 64)
    has_room = has_room and (not one.is_decimal or one.precision <= other.precision)
    digits = other.precision if one.is_decimal else one.precision
    alike = replace(one, precision=digits, nullable=other.nullable, members=other.members)
    return (
        has_room
        and alike == other
        and len(one.members) == len(other.members)
        and all(
            name == other_name and is_same(each, wanted)
            for (name, each), (other_name, wanted) in zip(one.members, other.members, strict=True)
        )
    )


def _kept_precision(type_: Type) -> int:
    return type_.precision if type_.has_digits else min(type_.precision, 0)


def _quoted(name: str) -> str:
    return name if name.isidentifier() else f"`{name.replace('`', '``')}`"


def type_from_json(values: Sequence[Any]) -> Type:
    """Return the type that `Type.as_json` wrote."""
    kind, nullable, precision, scale, *members = values
    named = tuple((name, type_from_json(each)) for name, each in members)
    return Type(Kind(kind), nullable, precision, scale, members=named)


def decimal(precision: int, scale: int) -> Type:
    """Return the type of decimals with `precision` digits, `scale` of them after the point."""
    return Type(Kind.DECIMAL, precision=precision, scale=scale)


def cut(precision: int, scale: int) -> Type:
    """Return a decimal type; with too many digits, some after the point are given up.

    >>> str(cut(40, 10)), str(cut(50, 4))
    ('decimal(38,8)', 'decimal(38,4)')
    """
    if precision > DECIMAL_MAX_DIGITS:
        scale = max(scale - (precision - DECIMAL_MAX_DIGITS), min(scale, MIN_CUT_SCALE))
        precision = DECIMAL_MAX_DIGITS
    return decimal(precision, scale)


def interval(fields: str) -> Type:
    """Return the type of intervals with some fields.

    >>> interval("MONTH").spark_name
    'INTERVAL MONTH'
    """
    kind = Kind.MONTHS if fields in INTERVAL_FIELDS[Kind.MONTHS] else Kind.DURATION
    return Type(kind, precision=INTERVAL_FIELDS[kind].index(fields))


def is_wider(was: Type, now: Type) -> bool:
    """Whether each value of a type that is not null is one of another type, exactly.

    >>> is_wider(NUMBER, decimal(20, 1)), is_wider(decimal(20, 1), NUMBER), is_wider(NUMBER, FLOAT)
    (True, False, False)
    """
    if was.with_null(True) == now.with_null(True):
        return True
    kinds = was.logical_kind, now.logical_kind
    if kinds == (Kind.NUMBER, Kind.FLOAT):
        return 0 < was.bits <= _FLOAT_BITS
    if now.logical_kind is Kind.DECIMAL and was.logical_kind in (Kind.NUMBER, Kind.DECIMAL):
        digits = _DIGITS[was.bits or 64] if was.logical_kind is Kind.NUMBER else was.precision
        return now.scale >= was.scale and now.precision - now.scale >= digits - was.scale
    return kinds in ((Kind.FLOAT32, Kind.FLOAT), (Kind.DATE, Kind.TIMESTAMP_NTZ))


_FLOAT_BITS = 32
"""A `float` holds integers of so many bits exactly."""
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
"""How many decimal digits integers have, by their bits."""
