"""Types of columns and expressions."""

from dataclasses import dataclass, replace
from enum import StrEnum


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


Domain = tuple[Kind, int]
"""A kind and the scale of its decimals."""


@dataclass(frozen=True, slots=True)
class Type:
    """A primitive type, whether null is a value of it, and the digits of a decimal.

    >>> str(Type(Kind.DECIMAL, precision=12, scale=2, nullable=True))
    'decimal(12,2)?'
    """

    kind: Kind
    nullable: bool = False
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        digits = f"({self.precision},{self.scale})" if self.kind is Kind.DECIMAL else ""
        return f"{self.kind}{digits}{'?' if self.nullable else ''}"

    @property
    def domain(self) -> Domain:
        """The set of values that codes of this type encode; equal domains can be joined."""
        return (self.kind, self.scale)

    @property
    def is_long_decimal(self) -> bool:
        """Whether the integers behind values may not fit 64 bits."""
        return self.kind is Kind.DECIMAL and self.precision > SHORT_DECIMAL_DIGITS

    def with_null(self, nullable: bool) -> "Type":
        """Return the type with or without null."""
        return self if self.nullable == nullable else replace(self, nullable=nullable)


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
