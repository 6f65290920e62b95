"""How DuckDB holds our values.

| type | SQL type |
|---|---|
| symbol | VARCHAR |
| number, bool, date, timestamp | BIGINT: 0 or 1, days, microseconds |
| unsigned | UBIGINT |
| float | DOUBLE |
| decimal(p,s) | BIGINT up to 18 digits, else HUGEINT: the value times 10^s |
"""

from datetime import date, datetime
from decimal import Decimal

from sqlglot import exp

from corollary.core.arrow_buffers import EPOCH, EPOCH_DAY, MICROSECOND
from corollary.core.logic import Value
from corollary.core.types import Kind, Type
from corollary.core.values import canonical_float, unscaled_integer
from corollary.engines.sql import nodes
from corollary.engines.sql.nodes import Node

BIGINT, UBIGINT, HUGEINT, DOUBLE, VARCHAR = "BIGINT", "UBIGINT", "INT128", "DOUBLE", "VARCHAR"

EXACT_FLOAT_MAX = 2**53
"""Integers up to this are floats without rounding…"""

EXACT_FLOAT_DIGITS = 22
"""…and powers of ten with this many zeros."""


def type_name(type_: Type) -> str:
    """Return the SQL type that holds the values of a type."""
    return HUGEINT if type_.is_long_decimal else type_.spec.computed


def constant(value: Value, type_: Type) -> Node:
    """Return a value of a type."""
    name = type_name(type_)
    if value is None:
        return nodes.cast(exp.Null(), name)
    match type_.kind:
        case Kind.SYMBOL:
            return nodes.string(str(value))
        case Kind.FLOAT:
            assert isinstance(value, int | float | Decimal)
            return nodes.cast(nodes.string(repr(canonical_float(float(value)))), DOUBLE)
        case Kind.DECIMAL:
            assert isinstance(value, int | Decimal)
            return nodes.integer(unscaled_integer(value, type_.scale), name)
        case Kind.DATE:
            assert isinstance(value, date)
            return nodes.integer((value - EPOCH_DAY).days, name)
        case Kind.TIMESTAMP:
            assert isinstance(value, datetime)
            return nodes.integer((value - EPOCH) // MICROSECOND, name)
        case _:
            assert isinstance(value, int)
            return nodes.integer(int(value), name)


def attempt(value: Node) -> Node:
    """Return a value, null where computing it raises."""
    return nodes.call("TRY", value)
