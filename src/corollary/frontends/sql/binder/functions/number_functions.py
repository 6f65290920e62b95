"""Functions on numbers, and those that choose among values."""

from dataclasses import replace
from functools import partial

from corollary.core.functors.lambdas import lambda_name
from corollary.core.functors.spec import WHOLE
from corollary.core.types import (
    BOOL,
    DECIMAL_MAX_DIGITS,
    FLOAT,
    FLOAT32,
    NUMBER,
    SQL_NUMERIC,
    SYMBOL,
    TIMESTAMP,
    Kind,
    Type,
    decimal,
)
from corollary.frontends.sql.binder.functions.arguments import (
    MANY,
    SqlFunction,
    expressions_of,
    fitted,
    literal_integer,
    numeric,
    plain,
)
from corollary.frontends.sql.binder.session import type_name
from corollary.frontends.sql.binder.values.common_types import (
    DIGITS_OF_BITS,
    bits_of,
    call,
    common_type,
    integer,
    is_untyped,
    sized,
)
from corollary.frontends.sql.binder.values.conversions import (
    amount_of,
    cast,
    convert,
    field,
    interval_of,
    parameter,
    to_decimal,
    within,
    zero_of,
)
from corollary.frontends.sql.binder.values.intervals import combine
from corollary.frontends.sql.binder.values.operators import (
    Site,
    aligned,
    arithmetic,
    attempt,
    check_comparable,
    choose,
    compare,
    negate,
    negative,
)
from corollary.frontends.sql.query_tree import ConstantValue, Expression, FunctionCall

# --- numbers -----------------------------------------------------------------------------------


def _of_singles(function: SqlFunction, operands: int = 1) -> SqlFunction:
    """Return a function that gives a FLOAT where its operands are such."""

    def build(arguments: list[Expression], site: Site) -> Expression:
        found = function.build(arguments, site)
        is_single = all(each.type.is_float32 for each in arguments[:operands])
        return convert(found, FLOAT32) if is_single else found

    return replace(function, build=build)


def _absolute(arguments: list[Expression], site: Site) -> Expression:
    value = arguments[0]
    if value.type.is_interval:
        return interval_of(_absolute([amount_of(value)], site), value.type, site.span)
    value = numeric(value, site)
    found = call("abs", (value,), replace(value.type, nullable=False, bits=0), site.span)
    return within(found, bits_of(value)) if value.type.is_number else found


def _sign(arguments: list[Expression], site: Site) -> Expression:
    value = arguments[0]
    value = amount_of(value) if value.type.is_interval else numeric(value, site)
    value = convert(value, FLOAT)
    if isinstance(value, ConstantValue) and isinstance(value.value, float):
        return ConstantValue(float((value.value > 0) - (value.value < 0)), FLOAT, site.span)
    return call("sign", (value,), FLOAT, site.span)


def _round(functor: str) -> SqlFunction:
    """Return `round(x, digits)` and its like; a decimal keeps as many digits as are asked for."""

    def build(arguments: list[Expression], site: Site) -> Expression:
        value = numeric(arguments[0], site)
        digits = literal_integer(arguments[1], site) if len(arguments) > 1 else 0
        type_ = value.type
        if type_.is_number and digits >= 0:
            return value
        if not type_.is_decimal:
            found = call(functor, (value, integer(digits)), plain(type_), site.span)
            return within(sized(found, 0), bits_of(value)) if type_.is_number else found
        if digits < -DECIMAL_MAX_DIGITS:
            message = f"A decimal has at most {DECIMAL_MAX_DIGITS} digits before the point."
            raise site.error("C1306", message, f"write at least {-DECIMAL_MAX_DIGITS}")
        before = type_.precision - type_.scale + 1
        scale = max(0, min(type_.scale, digits))
        precision = min(DECIMAL_MAX_DIGITS, max(before, 1 - digits) + scale)
        result = decimal(precision, scale)
        if digits < 0 or (functor != "round_to" and digits < type_.scale):
            wide = min(DECIMAL_MAX_DIGITS, precision - scale + type_.scale)
            value = call(functor, (value, integer(digits)), decimal(wide, type_.scale), site.span)
        rounded = to_decimal(value, scale, precision)
        return cast(rounded, result, 64) or rounded

    return SqlFunction(1, 2, build)


def _whole(functor: str) -> SqlFunction:
    """Return `floor` or `ceil`: a decimal stays one, without digits after the point."""

    def build(arguments: list[Expression], site: Site) -> Expression:
        value = numeric(arguments[0], site)
        type_ = value.type
        if len(arguments) > 1:
            if not type_.is_decimal:
                double = decimal(14, 7) if arguments[0].type.is_float32 else decimal(30, 15)
                whole = decimal(DIGITS_OF_BITS[bits_of(value)], 0)
                exact = whole if type_.is_number else double
                value = cast(value, exact, 64) or value
            return _round(f"{functor}_to").build([value, arguments[1]], site)
        if type_.is_number:
            return sized(value, 64)
        if type_.is_decimal and type_.scale == 0:
            return value
        found = call(functor, (value,), NUMBER, site.span)
        if type_.is_decimal:
            return to_decimal(found, 0, min(38, type_.precision - type_.scale + 1))
        return found

    return SqlFunction(1, 2, build)


def _int_of(value: Expression) -> Expression:
    """Return a text or a number as an `INT`."""
    return cast(value, NUMBER, 32) or value


def _shift(functor: str) -> SqlFunction:
    """Return a shift: in 32 bits if the number has them, or fewer."""

    def build(arguments: list[Expression], site: Site) -> Expression:
        value, count = (
            fitted(_int_of(each) if each.type.is_symbol else each, WHOLE, site)
            for each in arguments
        )
        count = count if bits_of(count) <= 32 else _int_of(count)
        shift = partial(call, type_=NUMBER, span=site.span)
        if bits_of(value) > 32:
            return shift(functor, (value, count))
        count, half = shift("band", (count, integer(31))), integer(32)
        if functor == "bshru":
            value = shift("band", (value, integer(2**32 - 1)))
        found = shift(functor, (value, count))
        return sized(shift("bshr", (shift("bshl", (found, half)), half)), 32)

    return SqlFunction(2, 2, build)


def _operator(sign: str, *, is_try: bool = False) -> SqlFunction:
    def build(arguments: list[Expression], site: Site) -> Expression:
        found = combine(sign, arguments[0], arguments[1], site)
        if not is_try:
            return found
        are_numbers = all(each.type.logical_kind in SQL_NUMERIC for each in arguments)
        # Spark tries all of it where an operand is no number, and else the sum alone.
        order = arguments[::-1] if sign in "/%" else arguments  # a divisor is looked at first
        return attempt(found, order if are_numbers else [], site)

    return SqlFunction(2, 2, build)


def _positive_rest(arguments: list[Expression], site: Site) -> Expression:
    """`pmod(a, b)`: the rest, moved into the range of b where it is negative."""
    rest = arithmetic("%", arguments[0], arguments[1], site)
    whole = sized(rest, max(32, bits_of(rest))) if rest.type.is_number else rest
    again = arithmetic("%", arithmetic("+", whole, arguments[1], site), arguments[1], site)
    if rest.type.is_decimal:
        again = to_decimal(again, rest.type.scale, rest.type.precision)
    below = call("lt", (rest, zero_of(rest.type)), BOOL, site.span)
    return choose([(below, again)], rest, rest.type, site.span)


def _negative(arguments: list[Expression], site: Site) -> Expression:
    return negative(arguments[0], site)


def _positive(arguments: list[Expression], site: Site) -> Expression:
    type_ = arguments[0].type
    if type_.is_interval or type_.is_float32:
        return arguments[0]
    if type_.logical_kind not in SQL_NUMERIC and not type_.is_symbol:
        message = f"`+` does not take {type_name(type_)}."
        raise site.error("C1307", message, "leave it out")
    return numeric(arguments[0], replace(site, name="+"))


# --- choices -----------------------------------------------------------------------------------


def _widest(arguments: list[Expression], site: Site) -> tuple[tuple[Expression, ...], Type | None]:
    """Return the arguments in the type that they have together; None if all are `NULL`."""
    values = aligned(arguments, site, f"`{site.name}`")
    type_ = common_type(list(values))
    return values, None if type_ is None or type_.precision < 0 else plain(type_)


def _first_known(arguments: list[Expression], site: Site) -> Expression:
    values, type_ = _widest(arguments, site)
    if type_ is None or len(values) == 1:
        return values[0]
    is_nullable = all(value.type.nullable for value in values)
    return FunctionCall("coalesce", values, type_.with_null(is_nullable), site.span)


def _extreme(functor: str) -> SqlFunction:
    def build(arguments: list[Expression], site: Site) -> Expression:
        values, type_ = _widest(arguments, site)
        if type_ is None:
            return values[0]
        check_comparable(type_, site)
        is_nullable = all(value.type.nullable for value in values)
        return FunctionCall(functor, values, type_.with_null(is_nullable), site.span)

    return SqlFunction(2, MANY, build)


def _null_if(arguments: list[Expression], site: Site) -> Expression:
    """`nullif(a, b)`, whose type is that of `a`, though they are compared in a wider one."""
    left, right = arguments
    if is_untyped(left):
        return left
    if left.type.is_number:
        left = sized(left, bits_of(left))
    both = aligned((left, right), site, "`nullif`", by_name=False)
    if both[0] is left:
        return FunctionCall("null_if", both, left.type.with_null(True), site.span)
    test = compare("eq", left, right, site)
    nothing = ConstantValue(None, left.type.with_null(True), site.span)
    return choose([(test, nothing)], left, left.type, site.span)


def _if_known(arguments: list[Expression], site: Site) -> Expression:
    """`nvl2(x, if not null, if null)`."""
    test = _is_null(arguments[:1], site)
    (known, unknown), type_ = _widest(arguments[1:], site)
    if type_ is None:
        return known
    return choose([(test, unknown)], known, type_, site.span)


def _is_null(arguments: list[Expression], site: Site) -> Expression:
    value = arguments[0]
    if is_untyped(value):
        value = convert(value, SYMBOL)
    return FunctionCall("is_null", (value,), BOOL, site.span)


def _is_not_null(arguments: list[Expression], site: Site) -> Expression:
    return negate(_is_null(arguments, site), site.span)


def _same(arguments: list[Expression], site: Site) -> Expression:
    return compare("same", arguments[0], arguments[1], site)


def _zero_if_null(arguments: list[Expression], site: Site) -> Expression:
    return _first_known([arguments[0], integer(0)], site)


def _null_if_zero(arguments: list[Expression], site: Site) -> Expression:
    value = arguments[0]
    is_kept = value.type.is_float32 or value.type.is_symbol
    return _null_if([value if is_kept else numeric(value, site), integer(0)], site)


def _decode(arguments: list[Expression], site: Site) -> Expression:
    """`decode(x, search, result, …, default)`: null is found by null."""
    value, *rest = arguments
    pairs = list(zip(rest[0::2], rest[1::2], strict=False))
    default = rest[-1] if len(rest) % 2 else ConstantValue(None, SYMBOL.with_null(True))
    tests = [compare("same", value, search, site) for search, _ in pairs]
    results, type_ = _widest([result for _, result in pairs] + [default], site)
    if type_ is None:
        return results[0]
    return choose(list(zip(tests, results, strict=False)), results[-1], type_, site.span)


def _type_name(arguments: list[Expression], site: Site) -> Expression:
    """`typeof(x)`: the name of its type, which is known before."""
    (value,) = arguments
    type_ = value.type
    if type_.is_number:
        type_ = replace(type_, bits=bits_of(value))
    return ConstantValue(type_.catalog_name, SYMBOL, site.span)


def _hash(functor: str) -> SqlFunction:
    """Return the function that hashes its arguments one on top of the other, from 42."""

    def build(arguments: list[Expression], site: Site) -> Expression:
        found: Expression = integer(42)
        for argument in arguments:
            found = _on_top(functor, argument, found, site)
        return found

    return SqlFunction(1, MANY, build)


def _on_top(functor: str, value: Expression, seed: Expression, site: Site) -> Expression:
    """Return the hash of a value on top of another; nulls leave that as it is."""
    if is_untyped(value):
        return seed
    type_ = value.type
    if type_.is_struct:
        for at in range(len(type_.members)):
            seed = _on_top(functor, field(value, at), seed, site)
        return seed
    if type_.element is not None:
        if type_.element.precision < 0:  # of nulls
            return seed
        names = parameter("h", NUMBER), parameter("x", type_.element)
        inside = _on_top(functor, names[1], names[0], site)
        merge = FunctionCall(lambda_name(("h", "x")), (inside,), NUMBER)
        made = FunctionCall("reduce", (value, seed, merge), NUMBER.with_null(True), site.span)
        return FunctionCall("coalesce", (made, seed), NUMBER, site.span)
    hashed, width = _hashed(value, site)
    return FunctionCall(functor, (hashed, seed, integer(width)), NUMBER, site.span)


def _hashed(value: Expression, site: Site) -> tuple[Expression, int]:
    """Return what is hashed of a value, and how many bytes it has; 0 for any number."""
    type_ = value.type
    if type_.is_interval:
        return amount_of(value), 4 if type_.is_months else 8
    if type_.is_unsigned:
        value = to_decimal(value, 0, 20)
    elif type_.is_timestamp_ntz:
        value = convert(value, TIMESTAMP)
    type_ = value.type
    match type_.logical_kind:
        case Kind.NUMBER:
            return value, 4 if bits_of(value) <= 32 else 8
        case Kind.BOOL | Kind.DATE:
            return value, 4
        case Kind.FLOAT | Kind.TIMESTAMP:
            return value, 8
        case Kind.FLOAT32:
            return convert(value, FLOAT), 4
        case Kind.TIME_OF_DAY:
            return call("*", (amount_of(value), integer(1000)), NUMBER), 8
        case Kind.DECIMAL:
            return value, 0 if type_.is_long_decimal else 8
        case Kind.SYMBOL | Kind.BINARY:
            return value, 0
        case _:
            message = f"`{site.name}` of {type_name(type_)} is refused: maps have no order."
            raise site.error("C1311", message, "hash `map_entries(m)`")


NUMBER_FUNCTIONS: dict[str, SqlFunction] = {
    "abs": _of_singles(SqlFunction(1, 1, _absolute)),
    "sign": SqlFunction(1, 1, _sign),
    "signum": SqlFunction(1, 1, _sign),
    **expressions_of(
        {
            "factorial(n: number)": "try(factorial(n))",
            "width_bucket(x: float, low: float, high: float, n: number)": """
                try(width_bucket(x, low, high, n))""",
            "sqrt(x: float)": "if(lt(x, 0.0), NAN, sqrt(x))",
            **{f"{name}(x: float)": f"try({name}(x))" for name in ("ln", "log2", "log10", "log1p")},
            "log(x: float)": "try(ln(x))",
            "log(base: float, x: float)": "try(ln(x) / ln(base))",
            "isnan(x: float)": "same(x, NAN)",
            "e()": "2.718281828459045",
            "pi()": "3.141592653589793",
            "bitmap_bit_position(n: number)": """
                if(gt(n, 0), (n - 1) % 32768, 0 - n % 32768)""",
            "bitmap_bucket_number(n: number)": """
                if(gt(n, 0), (n - 1) / 32768 + 1, n / 32768)""",
        }
    ),
    "nanvl": _of_singles(
        expressions_of({"nanvl(x: float, y: float)": "if(same(x, NAN), y, x)"})["nanvl"], 2
    ),
    "shiftleft": _shift("bshl"),
    "shiftright": _shift("bshr"),
    "shiftrightunsigned": _shift("bshru"),
    "round": _of_singles(_round("round_to")),
    "bround": _of_singles(_round("round_even")),
    "floor": _whole("floor"),
    "ceil": _whole("ceil"),
    "ceiling": _whole("ceil"),
    "mod": _operator("%"),
    "div": _operator("DIV"),
    "positive": SqlFunction(1, 1, _positive),
    "pmod": SqlFunction(2, 2, _positive_rest),
    "hash": _hash("murmur3"),
    "xxhash64": _hash("xxhash64"),
    "typeof": SqlFunction(1, 1, _type_name),
    "negative": SqlFunction(1, 1, _negative),
    "try_add": _operator("+", is_try=True),
    "try_subtract": _operator("-", is_try=True),
    "try_multiply": _operator("*", is_try=True),
    "try_divide": _operator("/", is_try=True),
    "try_mod": _operator("%", is_try=True),
    "coalesce": SqlFunction(1, MANY, _first_known),
    "nvl": SqlFunction(2, 2, _first_known),
    "ifnull": SqlFunction(2, 2, _first_known),
    "nvl2": SqlFunction(3, 3, _if_known),
    "nullif": SqlFunction(2, 2, _null_if),
    "greatest": _extreme("greatest"),
    "least": _extreme("least"),
    "isnull": SqlFunction(1, 1, _is_null),
    "isnotnull": SqlFunction(1, 1, _is_not_null),
    "equal_null": SqlFunction(2, 2, _same),
    "zeroifnull": SqlFunction(1, 1, _zero_if_null),
    "nullifzero": SqlFunction(1, 1, _null_if_zero),
    "decode": SqlFunction(3, MANY, _decode),
}
"""The functions on numbers and choices, by their names in Spark."""
