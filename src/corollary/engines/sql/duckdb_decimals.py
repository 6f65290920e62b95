"""Decimals in DuckDB: integers of 64 bits where these suffice, else of 128 bits.

DuckDB's own decimals fail early: a product of two (18,2) is a (18,4), and a quotient is a double.
"""

from collections.abc import Sequence

from sqlglot import exp

from corollary.core.types import DECIMAL_MAX_DIGITS, Kind, Type
from corollary.engines.sql import nodes
from corollary.engines.sql.arithmetic_forms import extreme
from corollary.engines.sql.dialect import FunctorForm, NotExactError
from corollary.engines.sql.duckdb_types import (
    BIGINT,
    BIGINT_DIGITS,
    DOUBLE,
    EXACT_FLOAT_MAX,
    HUGEINT,
    HUGEINT_DIGITS,
    VARCHAR,
    attempt,
    type_name,
)
from corollary.engines.sql.nodes import Node, OperatorKind

ZERO = nodes.integer(0, HUGEINT)


def unit(digits: int) -> Node:
    """Return 10^digits."""
    return nodes.integer(10**digits, HUGEINT)


def _huge(value: Node) -> Node:
    return nodes.cast(value, HUGEINT)


def scaled(value: Node, type_: Type, scale: int) -> Node:
    """Return a decimal as an integer of 128 bits for a larger scale, null if it does not fit."""
    digits = scale - type_.scale
    if not digits:
        return _huge(value)
    return attempt(nodes.binary(exp.Mul, _huge(value), unit(digits)))


def within_bounds(value: Node, result: Type) -> Node:
    """Return an integer as one behind decimals, null if it has too many digits."""
    bound = nodes.integer(10**DECIMAL_MAX_DIGITS - 1, HUGEINT)
    test = nodes.binary(exp.LTE, nodes.call("ABS", value), bound)
    return nodes.case((test, nodes.cast(value, type_name(result))))


def sum_of_decimals(kind: OperatorKind) -> FunctorForm:
    """Return the form of `+` and `-`: both operands with the scale of the result."""

    def lower(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:
        one, two = (
            scaled(value, type_, result.scale)
            for value, type_ in zip(arguments, types, strict=True)
        )
        return within_bounds(attempt(nodes.binary(kind, one, two)), result)

    return FunctorForm(lower, is_fallible=True)


def _rounded(value: Node, digits: int, type_: str) -> Node:
    """Return an integer divided by 10^digits, rounded half away from zero."""
    if not digits:
        return value
    whole, half = nodes.integer(10**digits, type_), nodes.integer(10**digits // 2, type_)
    is_negative = nodes.binary(exp.LT, value, nodes.integer(0, type_))
    return nodes.case(
        (is_negative, nodes.binary(exp.IntDiv, nodes.binary(exp.Sub, value, half), whole)),
        default=nodes.binary(exp.IntDiv, nodes.binary(exp.Add, value, half), whole),
    )


def product_of_decimals(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:
    """The product has the sum of both scales; the smaller of them is rounded away.

    64 bits suffice for most products, and are several times faster than 128.
    """
    digits = min(type_.scale for type_ in types)
    huge = attempt(nodes.binary(exp.Mul, *map(_huge, arguments)))
    wide = within_bounds(attempt(_rounded(huge, digits, HUGEINT)), result)
    if any(type_name(type_) == HUGEINT for type_ in types):
        return wide
    short = attempt(nodes.binary(exp.Mul, *arguments))
    narrow = attempt(_rounded(short, digits, BIGINT))
    bound = nodes.integer(10**BIGINT_DIGITS - 1, BIGINT)
    fits = nodes.binary(exp.LTE, nodes.call("ABS", narrow), bound)
    return nodes.case((fits, nodes.cast(narrow, type_name(result))), default=wide)


def quotient_of_decimals(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:
    """Return the quotient, rounded half away from zero."""
    numerator = scaled(arguments[0], types[0], 2 * result.scale)
    divisor = nodes.call("NULLIF", scaled(arguments[1], types[1], result.scale), ZERO)
    dividend, size = nodes.call("ABS", numerator), nodes.call("ABS", divisor)
    half = nodes.binary(exp.IntDiv, size, nodes.integer(2, HUGEINT))
    quotient = nodes.binary(exp.IntDiv, nodes.binary(exp.Add, dividend, half), size)
    is_negative = nodes.binary(
        exp.NEQ,
        nodes.binary(exp.LT, numerator, ZERO),
        nodes.binary(exp.LT, divisor, ZERO),
    )
    signed = nodes.case((is_negative, nodes.binary(exp.Sub, ZERO, quotient)), default=quotient)
    return within_bounds(attempt(signed), result)


def extreme_decimal(is_larger: bool) -> FunctorForm:
    """Return the form of `min` and `max`, which may not fit the scale of the result."""
    plain = extreme(is_larger).lower

    def lower(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:
        aligned = [
            scaled(value, type_, result.scale)
            for value, type_ in zip(arguments, types, strict=True)
        ]
        return within_bounds(plain(aligned, types, result), result)

    return FunctorForm(lower, is_fallible=True)


def negate_decimal(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    """Return the value with the other sign; the bounds are symmetric."""
    zero = nodes.integer(0, type_name(result))
    return nodes.binary(exp.Sub, zero, arguments[0])


def to_decimal(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:
    """Return a number with the scale of the result, rounded half away from zero."""
    digits = result.scale - (types[0].scale if types[0].kind is Kind.DECIMAL else 0)
    value = _huge(arguments[0])
    if digits < 0:
        return within_bounds(attempt(_rounded(value, -digits, HUGEINT)), result)
    if digits:
        value = attempt(nodes.binary(exp.Mul, value, unit(digits)))
    return within_bounds(value, result)


def _whole_part(value: Node, type_: Type) -> Node:
    """Return a decimal cut off at its point, as an integer of 128 bits."""
    return nodes.binary(exp.IntDiv, _huge(value), unit(type_.scale))


def decimal_to(name: str) -> FunctorForm:
    """Return the form of a conversion to integers of an SQL type; fractions are cut off."""

    def lower(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
        return nodes.try_cast(_whole_part(arguments[0], types[0]), name)

    return FunctorForm(lower, is_fallible=True)


def decimal_to_float(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    """One correctly rounded division, where the integer is a float without rounding."""
    (value,), (type_,) = arguments, types
    if type_.scale > 22:  # 10^22 is the largest power of ten that is a float
        raise NotExactError(f"`to_float` of {type_} has no exact form in SQL")
    size = nodes.call("ABS", value)
    is_exact = nodes.binary(exp.LTE, size, nodes.integer(EXACT_FLOAT_MAX, type_name(type_)))
    power = nodes.cast(nodes.string(f"1e{type_.scale}"), DOUBLE)
    return nodes.case((is_exact, nodes.binary(exp.Div, nodes.cast(value, DOUBLE), power)))


def decimal_text(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    """Return the digits, as many after the point as the scale says."""
    (value,), (type_,) = arguments, types
    size = nodes.call("ABS", _huge(value))
    sign = nodes.case(
        (nodes.binary(exp.LT, value, ZERO), nodes.string("-")), default=nodes.string("")
    )
    whole = nodes.cast(nodes.binary(exp.IntDiv, size, unit(type_.scale)), VARCHAR)
    text = nodes.binary(exp.DPipe, sign, whole)
    if type_.scale:
        rest = nodes.cast(nodes.binary(exp.Mod, size, unit(type_.scale)), VARCHAR)
        digits = nodes.call("LPAD", rest, exp.Literal.number(type_.scale), nodes.string("0"))
        text = nodes.binary(exp.DPipe, nodes.binary(exp.DPipe, text, nodes.string(".")), digits)
    return text


def align(one: Node, one_type: Type, two: Node, two_type: Type) -> tuple[Node, Node]:
    """Return two values with one scale."""
    if one_type.kind is not Kind.DECIMAL or one_type.scale == two_type.scale:
        return one, two
    scale = max(one_type.scale, two_type.scale)
    for type_ in (one_type, two_type):
        if type_.precision + scale - type_.scale > HUGEINT_DIGITS:
            raise NotExactError(f"{one_type} and {two_type} have no exact comparison in SQL")
    return scaled(one, one_type, scale), scaled(two, two_type, scale)
