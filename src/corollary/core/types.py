"""Types of columns and expressions."""

from collections.abc import Mapping
from dataclasses import field, replace
from enum import StrEnum

from corollary.data_class import dataclass


class Kind(StrEnum):
    """The primitive types."""

    SYMBOL = "symbol"
    NUMBER = "number"
    UNSIGNED = "unsigned"
    FLOAT = "float"
    DECIMAL = "decimal"
    BOOL = "bool"
    DATE = "date"
    TIMESTAMP = "timestamp"
    RECORD = "record"
    """What type inference takes records for; a `Type` of them is SYMBOL, as they are stored."""


PRIMITIVES = tuple(kind for kind in Kind if kind is not Kind.RECORD)
"""The kinds that columns can have by name."""

Domain = tuple[Kind, int]
"""A kind and the scale of its decimals."""


@dataclass(frozen=True, slots=True)
class Type:
    """A primitive type, whether null is a value of it, and the digits of a decimal.

    >>> str(Type(Kind.DECIMAL, precision=12, scale=2, nullable=True))
    'decimal(12,2)?'

    Attributes:
        record: the record type whose values the symbols are. Types are compared by what is stored:
            which records may be joined is the business of type inference.
    """

    kind: Kind
    nullable: bool = False
    precision: int = 0
    scale: int = 0
    record: "RecordType | None" = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        if self.record is not None:
            return f"{self.record.name}{'?' if self.nullable else ''}"
        digits = f"({self.precision},{self.scale})" if self.kind is Kind.DECIMAL else ""
        return f"{self.kind}{digits}{'?' if self.nullable else ''}"

    @property
    def domain(self) -> Domain:
        """The set of values that codes of this type encode; equal domains can be joined."""
        return (self.kind, self.scale)

    @property
    def inferred_kind(self) -> Kind:
        """The kind as type inference sees it."""
        return self.kind if self.record is None else Kind.RECORD

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
UNSIGNED = Type(Kind.UNSIGNED)
FLOAT = Type(Kind.FLOAT)
BOOL = Type(Kind.BOOL)
DATE = Type(Kind.DATE)
TIMESTAMP = Type(Kind.TIMESTAMP)

NUMERIC = frozenset({Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT, Kind.DECIMAL})
SHORT_DECIMAL_DIGITS = 18
"""The number of decimal digits that always fit into 64 bits…"""

DECIMAL_MAX_DIGITS = 38
"""…and into 128 bits."""


def decimal(precision: int, scale: int) -> Type:
    """Return the type of decimals with `precision` digits, `scale` of them after the point."""
    return Type(Kind.DECIMAL, precision=precision, scale=scale)
