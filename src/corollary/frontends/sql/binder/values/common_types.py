"""Types of several values together.

Spark's ANSI rules: numbers widen (integer, decimal, double), dates become timestamps; text beside
another type becomes that one, beside integers BIGINT and beside other numbers DOUBLE. An INT has 10
digits as a decimal, a BIGINT 20, a literal as many as it is written with.
"""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Context

from corollary.core.logic import Value
from corollary.core.spark_times import SIZES, names_of
from corollary.core.types import (
    DECIMAL_MAX_DIGITS,
    FLOAT,
    NUMBER,
    SQL_NUMERIC,
    SYMBOL,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Kind,
    Type,
    array_of,
    decimal,
    interval,
    is_same,
    map_of,
    struct_of,
)
from corollary.frontends.sql.binder.session import UNTYPED
from corollary.frontends.sql.query_tree import (
    ConstantValue,
    Expression,
    FunctionCall,
    UnknownValue,
)
from corollary.source import Span

NUMBER_DIGITS = 20
"""The digits of an integer as a decimal."""
DIGITS_OF_BITS = {8: 3, 16: 5, 32: 10, 64: NUMBER_DIGITS}
"""Those of one with so many bits."""
WIDE = Context(prec=100)
"""No literal has more digits."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def is_untyped(expression: Expression) -> bool:
    """Whether an expression is a `NULL` without a type."""
    return expression.type.precision < 0


def as_known(expression: Expression) -> Expression:
    """Return an expression; one of PostgreSQL's type `unknown` is a text if nothing says more."""
    return expression.as_type(SYMBOL) if isinstance(expression, UnknownValue) else expression


def constant(value: Value, type_: Type, span: Span | None = None) -> ConstantValue:
    """Return a constant."""
    return ConstantValue(value, type_, span)


def integer(value: int, span: Span | None = None) -> ConstantValue:
    """Return an integer constant."""
    return ConstantValue(value, NUMBER, span)


def call(
    functor: str, arguments: tuple[Expression, ...], type_: Type, span: Span | None = None
) -> FunctionCall:
    """Return a functor that is null where an argument is."""
    nullable = any(argument.type.nullable for argument in arguments)
    return FunctionCall(functor, arguments, type_.with_null(nullable), span)


def decimal_of(expression: Expression) -> Type:
    """Return the decimal type that holds the values of an integer or decimal."""
    literal = _integer_literal(expression)
    return _as_decimal(expression.type) if literal is None else decimal(len(str(abs(literal))), 0)


def _integer_literal(expression: Expression) -> int | None:
    """Return an integer that is written, and not cast: its digits are those of the text."""
    if expression.type.is_number and not expression.type.precision:
        value = expression.value if isinstance(expression, ConstantValue) else None
        return value if isinstance(value, int) else None
    return None


def bits_of(expression: Expression) -> int:
    """Return the bits of an integer; a literal is an INT if it fits."""
    literal = expression.value if isinstance(expression, ConstantValue) else None
    return expression.type.bits or (32 if fits_bits(literal, 32) else 64)


def sized(expression: Expression, bits: int) -> Expression:
    """Return an integer whose values are known to have so many bits."""
    return replace(expression, type=replace(expression.type, bits=bits))


def column_type(expression: Expression) -> Type:
    """Return the type of a column with the values of an expression: literals are INT or BIGINT."""
    type_ = expression.type
    if not type_.is_number:
        return type_
    return replace(type_, bits=bits_of(expression), precision=0)


def wider(left: Type, right: Type, *, by_name: bool = True) -> Type | None:
    """Return the type of values of either type; None if there is none, or other names of fields.

    >>> str(wider(decimal(5, 2), decimal(4, 3)))
    'decimal(6,3)'
    """
    nullable = left.nullable or right.nullable
    if left.precision < 0:
        return right.with_null(True)
    if right.precision < 0:
        return left.with_null(True)
    kinds = {left.logical_kind, right.logical_kind}
    if kinds <= SQL_NUMERIC:
        return _wider_number(left, right).with_null(nullable)
    if left.element is not None and right.element is not None:
        element = wider(left.element, right.element, by_name=by_name)
        return None if element is None else array_of(element).with_null(nullable)
    if left.is_struct and right.is_struct:
        return _wider_struct(left, right, by_name=by_name)
    if left.is_map and right.is_map:
        key, value = (
            wider(one, other, by_name=by_name)
            for (_, one), (_, other) in zip(left.members, right.members, strict=True)
        )
        return map_of(key, value).with_null(nullable) if key and value else None
    if len(kinds) == 1:
        return (_wider_interval(left, right) if left.is_interval else left).with_null(nullable)
    if left.is_time and right.is_time:
        has_zone = Kind.TIMESTAMP in kinds
        return (TIMESTAMP if has_zone else TIMESTAMP_NTZ).with_null(nullable)
    if Kind.SYMBOL in kinds:
        other = _read_type(right if left.is_symbol else left)
        return None if other is None else other.with_null(nullable)
    return None


def _read_type(beside: Type) -> Type | None:
    """Return the type that texts are read as beside values of another type."""
    match beside.logical_kind:
        case Kind.NUMBER:
            return NUMBER
        case Kind.FLOAT | Kind.FLOAT32 | Kind.DECIMAL:
            return FLOAT
        case (
            Kind.BOOL
            | Kind.DATE
            | Kind.TIMESTAMP
            | Kind.TIMESTAMP_NTZ
            | Kind.BINARY
            | Kind.TIME_OF_DAY
        ):
            return beside
        case Kind.SYMBOL | Kind.UNSIGNED | Kind.RECORD | Kind.DURATION | Kind.MONTHS:
            return None
        case Kind.ARRAY | Kind.STRUCT | Kind.MAP:
            return None


def _wider_struct(left: Type, right: Type, *, by_name: bool) -> Type | None:
    """Return a struct with wider fields; those with other names have to have the same types."""
    if len(left.members) != len(right.members):
        return None
    found: list[tuple[str, Type]] = []
    for (name, one), (other_name, other) in zip(left.members, right.members, strict=True):
        both = wider(one, other, by_name=by_name)
        is_named = name.lower() == other_name.lower()
        if both is None or not (is_named or (not by_name and is_same(one, other))):
            return None
        found.append((name, both))
    return struct_of(found).with_null(left.nullable or right.nullable)


def _wider_interval(left: Type, right: Type) -> Type:
    """Return the type with the fields from the first to the last of both."""
    both = {*names_of(left.fields), *names_of(right.fields)}
    names = [each for each in SIZES if each in both]
    return interval(" TO ".join(dict.fromkeys((names[0], names[-1]))))


def _wider_number(left: Type, right: Type) -> Type:
    if left.logical_kind is right.logical_kind and not left.is_decimal:
        return replace(left, bits=max(left.bits or 64, right.bits or 64) if left.is_number else 0)
    if Kind.FLOAT in (left.kind, right.kind):
        return FLOAT
    one, other = _as_decimal(left), _as_decimal(right)
    scale = max(one.scale, other.scale)
    before = max(one.precision - one.scale, other.precision - other.scale)
    # Digits before the point are kept, other than in arithmetic.
    return decimal(
        min(DECIMAL_MAX_DIGITS, before + scale), max(0, min(scale, DECIMAL_MAX_DIGITS - before))
    )


def _as_decimal(type_: Type) -> Type:
    return type_ if type_.is_decimal else decimal(DIGITS_OF_BITS[type_.bits or 64], 0)


def common_type(
    expressions: list[Expression], *, reads_texts: bool = True, by_name: bool = True
) -> Type | None:
    """Return the type that all values can be converted to; None if there is none.

    Args:
        expressions: the values.
        reads_texts: whether texts beside other values are read as such.
        by_name: whether fields of structs must have the same names.
    """
    texts = [each for each in expressions if each.type.is_symbol and not is_untyped(each)]
    if texts and not reads_texts and not all(each.type.is_symbol for each in expressions):
        return None
    found: Type = UNTYPED
    for each in (*texts, *(each for each in expressions if each not in texts)):  # as Spark does
        both = wider(found, column_type(each), by_name=by_name)
        if both is None:
            return None
        found = both
    is_nullable = any(each.type.nullable for each in expressions)
    return found if found.precision < 0 else found.with_null(is_nullable)


def fits_bits(value: Value, bits: int) -> bool:
    """Whether a value is an integer of so many bits."""
    return isinstance(value, int) and -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)
