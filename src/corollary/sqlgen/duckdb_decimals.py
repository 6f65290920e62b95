"""Decimals in DuckDB: integers of 64 bits where these suffice, else of 128 bits.

DuckDB's own decimals fail early: a product of two (18,2) is a (18,4), and a quotient is a double.
What has more than 128 bits on the way is null, and so are results with too many digits.
"""

from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal

from sqlglot import exp

from corollary.core.arrow_buffers import EPOCH, EPOCH_DAY, MICROSECOND
from corollary.core.logic import Value
from corollary.core.totals import WORD_BITS
from corollary.core.types import DECIMAL_MAX_DIGITS, SHORT_DECIMAL_DIGITS, Kind, Type
from corollary.core.values import canonical_float, unscaled_integer
from corollary.sqlgen import nodes
from corollary.sqlgen.dialect import NotExactError, SqlTemplate, can_overflow, extreme, most_digits
from corollary.sqlgen.nodes import Node, OperatorKind

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
    if type_.logical is not None:
        from corollary.core.arrow import store_value

        value = store_value(value, type_)
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


ZERO = nodes.integer(0, HUGEINT)

HUGEINT_MAX = 2**127 - 1
LIMB_BITS = 64
"""The number of bits of each half of an integer of 128 bits."""

SPLIT_SCALE_MAX = DECIMAL_MAX_DIGITS // 2
"""The product of two fractions of this many digits fits into 128 bits."""

Truncated = tuple[Node, Node]
"""The quotient and the remainder of a division, both with the sign of the dividend."""


def unit(digits: int, type_: str = HUGEINT) -> Node:
    """Return 10^digits."""
    return nodes.integer(10**digits, type_)


def _huge(value: Node) -> Node:
    return nodes.cast(value, HUGEINT)


def _integer_type(digits: int) -> str:
    """Return the type of integers with this many digits, and sums of two of them."""
    return BIGINT if digits <= SHORT_DECIMAL_DIGITS else HUGEINT


def _scaled(value: Node, type_: Type, scale: int) -> Node:
    """Return a decimal as an integer for a larger scale, null if it does not fit 128 bits."""
    digits = type_.precision + scale - type_.scale
    name = _integer_type(digits)
    made = nodes.cast(value, name)
    if scale == type_.scale:
        return made
    made = nodes.binary(exp.Mul, made, unit(scale - type_.scale, name))
    return made if digits <= DECIMAL_MAX_DIGITS else attempt(made)


def within_digits(value: Node, digits: int, result: Type) -> Node:
    """Return an integer as one behind decimals, null if it has too many digits.

    Args:
        value: the integer.
        digits: how many it can have at most.
        result: how many it may have.
    """
    made = nodes.cast(value, type_name(result))
    if digits <= result.precision:
        return made
    bound = nodes.integer(10**result.precision - 1, HUGEINT)
    return nodes.case((nodes.binary(exp.LTE, nodes.call("ABS", value), bound), made))


def _overflowing(name: str) -> Callable[[Sequence[Type], Type], bool]:
    def test(types: Sequence[Type], result: Type) -> bool:
        return can_overflow(name, types, result)

    return test


def sum_of_decimals(name: str, kind: OperatorKind) -> SqlTemplate:
    """Return the form of `+` and `-`: both operands with the scale of the result."""

    def lower(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:
        one, two = (
            _scaled(value, type_, result.scale)
            for value, type_ in zip(arguments, types, strict=True)
        )
        digits = most_digits(name, types, result.scale)
        made = nodes.binary(kind, one, two)
        return within_digits(
            made if digits <= DECIMAL_MAX_DIGITS else attempt(made), digits, result
        )

    return SqlTemplate(lower, is_fallible=True, can_fail=_overflowing(name))


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


def _lower_product(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:
    """The product has the sum of both scales; what the result has not is rounded away.

    64 bits suffice for most products, and are several times faster than 128.
    """
    arguments, types = arguments[:2], types[:2]
    scale = sum(type_.scale for type_ in types) - result.scale
    if scale < 0:
        raise NotExactError(f"`multiply` to {result} has no exact form in SQL")
    raw_digits = sum(type_.precision for type_ in types)
    digits = most_digits("*", types, result.scale)
    if raw_digits <= SHORT_DECIMAL_DIGITS:
        product = nodes.binary(exp.Mul, *arguments)
        return within_digits(_rounded(product, scale, BIGINT), digits, result)
    huge = nodes.binary(exp.Mul, *map(_huge, arguments))
    if raw_digits < DECIMAL_MAX_DIGITS:
        wide = _rounded(huge, scale, HUGEINT)
    else:
        wide = attempt(_rounded(huge, scale, HUGEINT))
        if 0 < scale <= SPLIT_SCALE_MAX:
            exact = attempt(_split_product(arguments, scale))
            wide = nodes.case((nodes.is_present(wide), wide), default=exact)
    wide = within_digits(wide, digits, result)
    short = attempt(nodes.binary(exp.Mul, *(nodes.try_cast(each, BIGINT) for each in arguments)))
    narrow = attempt(_rounded(short, scale, BIGINT))
    bound = nodes.integer(10 ** min(SHORT_DECIMAL_DIGITS, result.precision) - 1, BIGINT)
    fits = nodes.binary(exp.LTE, nodes.call("ABS", narrow), bound)
    return nodes.case((fits, nodes.cast(narrow, type_name(result))), default=wide)


def _is_wide_product(types: Sequence[Type], result: Type) -> bool:  # noqa: ARG001
    return sum(type_.precision for type_ in types[:2]) >= DECIMAL_MAX_DIGITS


product_of_decimals = SqlTemplate(_lower_product, is_fallible=True, can_fail=_is_wide_product)


def _truncated(value: Node, digits: int) -> Truncated:
    """Return the parts of an integer before and behind its last digits."""
    whole, huge = unit(digits), _huge(value)
    return nodes.binary(exp.IntDiv, huge, whole), nodes.binary(exp.Mod, huge, whole)


def _split_product(arguments: Sequence[Node], scale: int) -> Node:
    """Return a product without its last digits, rounded; it raises where that has over 128 bits.

    With a = a₁·u + a₀ and b = b₁·u + b₀ for u = 10^scale, a·b/u is a₁·b + a₀·b₁ + a₀·b₀/u. All of
    these have one sign, so that none of them is larger than the result.
    """
    _, b = arguments
    (a1, a0), (b1, b0) = (_truncated(each, scale) for each in arguments)
    rest = _rounded(nodes.binary(exp.Mul, a0, b0), scale, HUGEINT)
    upper = nodes.binary(
        exp.Add, nodes.binary(exp.Mul, a1, _huge(b)), nodes.binary(exp.Mul, a0, b1)
    )
    return nodes.binary(exp.Add, upper, rest)


def quotient_of_decimals(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:
    """Return the quotient, rounded half away from zero: a·10^digits / b.

    Where a·10^digits has over 128 bits, it is (a // b)·10^digits + (a % b)·10^digits / b.
    """
    digits = result.scale - types[0].scale + types[1].scale
    if digits > DECIMAL_MAX_DIGITS:
        raise NotExactError(f"`/` of {types[0]} and {types[1]} has no exact form in SQL")
    most = types[0].precision + digits
    name = _integer_type(max(most, types[1].precision))
    power = unit(digits, name)
    dividend, divisor = (nodes.call("ABS", nodes.cast(each, name)) for each in arguments)
    divisor = nodes.call("NULLIF", divisor, nodes.integer(0, name))
    quotient = _nearest(nodes.binary(exp.Mul, dividend, power), divisor, name)
    if most >= DECIMAL_MAX_DIGITS:
        quotient = attempt(quotient)
        whole = nodes.binary(exp.Mul, nodes.binary(exp.IntDiv, dividend, divisor), power)
        rest = nodes.binary(exp.Mul, nodes.binary(exp.Mod, dividend, divisor), power)
        exact = attempt(nodes.binary(exp.Add, whole, _nearest(rest, divisor, name)))
        quotient = nodes.case((nodes.is_present(quotient), quotient), default=exact)
    is_negative = nodes.binary(exp.NEQ, *map(_is_negative, arguments, types))
    negative = nodes.binary(exp.Sub, nodes.integer(0, name), quotient)
    signed = nodes.case((is_negative, negative), default=quotient)
    return within_digits(signed, most_digits("/", types, result.scale), result)


def _is_negative(value: Node, type_: Type) -> Node:
    return nodes.binary(exp.LT, value, nodes.integer(0, type_name(type_)))


def _nearest(dividend: Node, divisor: Node, name: str) -> Node:
    """Return a quotient of two integers, neither of them negative, rounded half up."""
    half = nodes.binary(exp.IntDiv, divisor, nodes.integer(2, name))
    return nodes.binary(exp.IntDiv, nodes.binary(exp.Add, dividend, half), divisor)


def extreme_decimal(is_larger: bool) -> SqlTemplate:
    """Return the form of `min` and `max`, which may not fit the scale of the result."""
    name = "max" if is_larger else "min"
    plain = extreme(is_larger).lower

    def lower(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:
        aligned = [
            _scaled(value, type_, result.scale)
            for value, type_ in zip(arguments, types, strict=True)
        ]
        digits = most_digits(name, types, result.scale)
        return within_digits(plain(aligned, types, result), digits, result)

    return SqlTemplate(lower, is_fallible=True, can_fail=_overflowing(name))


def negate_decimal(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    """Return the value with the other sign; the bounds are symmetric."""
    zero = nodes.integer(0, type_name(result))
    return nodes.binary(exp.Sub, zero, arguments[0])


def _lower_to_decimal(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:
    digits = result.scale - types[0].scale
    most = most_digits("to_decimal", types, result.scale)
    name = _integer_type(most - min(digits, 0))
    value = nodes.cast(arguments[0], name)
    if digits < 0:
        return within_digits(_rounded(value, -digits, name), most, result)
    if digits:
        value = nodes.binary(exp.Mul, value, unit(digits, name))
        value = value if most <= DECIMAL_MAX_DIGITS else attempt(value)
    return within_digits(value, most, result)


to_decimal = SqlTemplate(_lower_to_decimal, is_fallible=True, can_fail=_overflowing("to_decimal"))
"""Numbers with the scale of the result, rounded half away from zero."""


def _literal(node: Node) -> int:
    """Return the value of an argument that is a literal."""
    return int(node.this.this)


def _lower_rounded(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:
    value, digits = arguments[0], types[0].scale - _literal(arguments[1])
    if digits <= 0:
        return nodes.cast(value, type_name(result))
    if digits > DECIMAL_MAX_DIGITS:
        raise NotExactError(f"`round_to` of {types[0]} has no exact form in SQL")
    name = _integer_type(types[0].precision + 1)
    rounded = _rounded(nodes.cast(value, name), digits, name)
    made = nodes.binary(exp.Mul, rounded, unit(digits, name))
    most = types[0].precision + 1
    return within_digits(made if most <= DECIMAL_MAX_DIGITS else attempt(made), most, result)


round_decimal = SqlTemplate(_lower_rounded, is_fallible=True, can_fail=_overflowing("round_to"))
"""Decimals with fewer digits that are not 0, rounded half away from zero."""


def _lower_fitted(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:
    return within_digits(arguments[0], types[0].precision, result)


fit_decimal = SqlTemplate(_lower_fitted, is_fallible=True, can_fail=_overflowing("fit"))
"""Decimals with no more digits than the result may have."""


def absolute_decimal(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    """Return the value without its sign."""
    return nodes.cast(nodes.call("ABS", arguments[0]), type_name(result))


def _whole_part(value: Node, type_: Type) -> Node:
    """Return a decimal cut off at its point."""
    if not type_.scale:
        return value
    name = type_name(type_)
    if type_.scale > SHORT_DECIMAL_DIGITS:
        value, name = _huge(value), HUGEINT
    return nodes.binary(exp.IntDiv, value, unit(type_.scale, name))


def decimal_to(name: str) -> SqlTemplate:
    """Return the form of a conversion to integers of an SQL type; fractions are cut off."""

    def lower(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
        return nodes.try_cast(_whole_part(arguments[0], types[0]), name)

    return SqlTemplate(lower, is_fallible=True)


def decimal_to_float(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    """One correctly rounded division, where the integer is a float without rounding."""
    (value,), (type_,) = arguments, types
    if type_.scale > EXACT_FLOAT_DIGITS:
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
    """Return two values with one scale, so that they compare as they did."""
    if not one_type.is_decimal or one_type.scale == two_type.scale:
        return one, two
    scale = max(one_type.scale, two_type.scale)
    return _comparable(one, one_type, scale), _comparable(two, two_type, scale)


def _comparable(value: Node, type_: Type, scale: int) -> Node:
    """Return a decimal with a larger scale, or an integer that is larger than all decimals."""
    made = _scaled(value, type_, scale)
    if type_.precision + scale - type_.scale <= DECIMAL_MAX_DIGITS:
        return made
    most, least = (nodes.integer(each, HUGEINT) for each in (HUGEINT_MAX, -HUGEINT_MAX))
    beyond = nodes.case((_is_negative(value, type_), least), (nodes.is_present(value), most))
    return nodes.call("COALESCE", made, beyond)


def total_of_decimals(value: Node, source: Type) -> Node:
    """Return a sum of 128 bits, null for none; one with too many digits is larger than decimals.

    Integers of 128 bits are summed in two parts, neither of which can overflow.
    """
    if type_name(source) != HUGEINT:
        return nodes.call("SUM", value)
    high = nodes.call("SUM", nodes.cast(_shifted(value, LIMB_BITS), BIGINT))
    mask = nodes.integer((1 << LIMB_BITS) - 1, HUGEINT)
    low = nodes.call("SUM", nodes.cast(nodes.binary(exp.BitwiseAnd, _huge(value), mask), "UBIGINT"))
    # A sum that is a decimal has a smaller upper part; one beyond it must not overflow, either.
    most = 6 * 10**18
    inside = nodes.call(
        "LEAST",
        nodes.call("GREATEST", high, nodes.integer(-most, HUGEINT)),
        nodes.integer(most, HUGEINT),
    )
    # `LEAST` passes over null.
    upper = nodes.case((nodes.is_present(high), inside))
    return nodes.binary(
        exp.Add, nodes.binary(exp.Mul, upper, nodes.integer(1 << LIMB_BITS, HUGEINT)), low
    )


def _shifted(value: Node, bits: int) -> Node:
    """Return an integer of 128 bits without its last ones."""
    if not bits:
        return _huge(value)
    return nodes.binary(exp.BitwiseRightShift, _huge(value), exp.Literal.number(bits))


def words_of_long_decimals(value: Node, count: int) -> list[Node]:
    """Return the sums of the words of integers of 128 bits, the upper ones first."""
    mask = nodes.integer((1 << WORD_BITS) - 1, HUGEINT)
    parts = [_shifted(value, WORD_BITS * at) for at in reversed(range(count))]
    # The first word has the sign.
    words = [parts[0], *(nodes.binary(exp.BitwiseAnd, each, mask) for each in parts[1:])]
    sums = (nodes.call("SUM", nodes.cast(each, BIGINT)) for each in words)
    return [nodes.cast(nodes.call("COALESCE", each, ZERO), BIGINT) for each in sums]
