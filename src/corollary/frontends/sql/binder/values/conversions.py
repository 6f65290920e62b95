"""Types of several values together, and conversions between types: by themselves, and by `CAST`.

Spark's ANSI rules: numbers widen (integer, decimal, double), dates become timestamps; text beside
another type becomes that one, beside integers BIGINT and beside other numbers DOUBLE. An INT has 10
digits as a decimal, a BIGINT 20, a literal as many as it is written with.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal
from math import isfinite

from corollary.core.logic import Value
from corollary.core.spark_times import SIZES, names_of, unit_of
from corollary.core.types import (
    BINARY,
    BOOL,
    DATE,
    DECIMAL_MAX_DIGITS,
    FLOAT,
    FLOAT32,
    NUMBER,
    NUMERIC,
    SQL_NUMERIC,
    SYMBOL,
    TIME_OF_DAY,
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
from corollary.core.values import from_stored, to_float32, to_stored
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


def convert(expression: Expression, type_: Type) -> Expression:
    """Return an expression as a value of a wider type, as `common_type` gives it.

    An integer must have the bits of the type, which a recursive column has from its first branch.
    """
    found = expression.type
    if isinstance(expression, UnknownValue):
        return expression.as_type(type_)
    if is_untyped(expression):
        return ConstantValue(None, type_.with_null(True), expression.span)
    if type_.element is not None:
        return _with_elements(expression, type_, convert)
    if type_.is_struct:
        made = _with_fields(expression, type_, convert)
        assert made is not None, f"{found} never becomes {type_} by itself"
        return made
    if type_.is_map:
        return map_with(expression, type_, convert) or expression
    if found.domain == type_.domain and found.logical is type_.logical:
        if found.is_interval and found.fields != type_.fields:
            return interval_of(amount_of(expression), type_, expression.span)
        is_wider = found.is_number and bits_of(expression) > (type_.bits or 64)
        return within(expression, type_.bits) if is_wider else expression
    if found.is_symbol or type_.is_float32:
        read = cast(expression, type_, 64)
        assert read is not None, f"{found} never becomes {type_} by itself"
        return read
    span = expression.span
    match type_.logical_kind:
        case Kind.FLOAT:
            if isinstance(expression, ConstantValue) and expression.value is not None:
                return ConstantValue(float(expression.value), FLOAT, span)  # type: ignore[arg-type]
            return call("to_float", (expression,), FLOAT, span)
        case Kind.DECIMAL:
            return to_decimal(expression, type_.scale, type_.precision)
        case Kind.TIMESTAMP_NTZ:
            return call("to_local", (convert(expression, TIMESTAMP),), TIMESTAMP_NTZ, span)
        case Kind.TIMESTAMP:
            if found.is_timestamp_ntz:
                return call("from_local", (expression,), TIMESTAMP, span)
            if isinstance(expression, ConstantValue) and isinstance(expression.value, date):
                midnight = datetime.combine(expression.value, time(), UTC)
                return ConstantValue(midnight, TIMESTAMP, span)
            return call("to_timestamp", (expression,), TIMESTAMP, span)
        case Kind.SYMBOL:
            text = cast(expression, SYMBOL, 64)
            assert text is not None
            return text
        case _:
            raise AssertionError(f"{found} never becomes {type_} by itself")


def _with_elements(
    array: Expression, type_: Type, change: Callable[[Expression, Type], Expression | None]
) -> Expression:
    """Return an array with elements of another type if it is written with them, else as it is."""
    element, held = type_.element, array.type.element
    assert element is not None
    if held is None or held == element:
        return array
    if is_same(held, element):
        return replace(array, type=type_)
    parts: tuple[Expression, ...] = ()
    match array:
        case ConstantValue(value=tuple(values)):
            parts = tuple(ConstantValue(each, held.with_null(each is None)) for each in values)
        case FunctionCall(functor="array"):
            parts = array.arguments
        case _ if held.precision < 0:  # all elements are null
            size = call("size", (array,), NUMBER)
            return call("array_repeat", (_typed_null(element), size), type_, array.span)
        case _:
            is_alike = held.domain == element.domain and held.logical is element.logical
            return replace(array, type=type_) if is_alike and not held.members else array
    made = [change(each, element) for each in parts]
    if None in made:
        return array
    found = tuple(each for each in made if each is not None)
    if all(isinstance(each, ConstantValue) for each in found):
        constants = tuple(each.value for each in found if isinstance(each, ConstantValue))
        return ConstantValue(constants, type_.with_null(False), array.span)
    return FunctionCall("array", found, type_.with_null(False), array.span)


def map_with(
    given: Expression, type_: Type, change: Callable[[Expression, Type], Expression | None]
) -> Expression | None:
    """Return a map with keys and values of other types, if its arrays can be converted."""
    if isinstance(given, ConstantValue):
        return ConstantValue(None, type_.with_null(True), given.span)
    if not given.type.is_map:
        return None
    if is_same(given.type, type_):
        return replace(given, type=type_.with_null(given.type.nullable))
    parts: list[Expression] = []
    for at, (_, wanted) in enumerate(type_.members):
        if isinstance(given, FunctionCall) and given.functor == "map_from_arrays":
            array = given.arguments[at]
        else:
            functor, held = ("map_keys", "map_values")[at], given.type.members[at][1]
            array = call(functor, (given,), array_of(held), given.span)
        made = change(array, array_of(wanted).with_null(array.type.nullable))
        if made is None or not is_same(made.type, array_of(wanted)):
            return None
        parts.append(made)
    return call("map_from_arrays", tuple(parts), type_, given.span)


def _with_fields(
    struct: Expression, type_: Type, change: Callable[[Expression, Type], Expression | None]
) -> Expression | None:
    """Return a struct with fields of other types and names, by their places."""
    if not struct.type.is_struct or len(struct.type.members) != len(type_.members):
        return None
    if is_same(struct.type, type_):
        return replace(struct, type=type_.with_null(struct.type.nullable))
    parts = [field(struct, at) for at in range(len(type_.members))]
    named: list[tuple[str, Expression]] = []
    for part, (name, wanted) in zip(parts, type_.members, strict=True):
        made = change(part, wanted)
        if made is None:
            return None
        named.append((name, made))
    found = replace(make_struct(named, struct.span), type=type_.with_null(False))
    if not struct.type.nullable:
        return found
    nothing = ConstantValue(None, type_.with_null(True), struct.span)
    if isinstance(struct, ConstantValue):
        return nothing if struct.value is None else found
    is_null = FunctionCall("is_null", (struct,), BOOL, struct.span)
    return FunctionCall("if", (is_null, nothing, found), nothing.type, struct.span)


def make_struct(named: Sequence[tuple[str, Expression]], span: Span | None) -> Expression:
    """Return the struct of values with names."""
    values = [as_known(each) for _, each in named]
    names = [name for name, _ in named]
    type_ = struct_of(zip(names, map(column_type, values), strict=True))
    if all(isinstance(each, ConstantValue) for each in values):
        constants = tuple(each.value for each in values if isinstance(each, ConstantValue))
        return ConstantValue(constants, type_, span)
    parts: list[Expression] = []
    for name, each in zip(names, values, strict=True):
        is_null = isinstance(each, ConstantValue) and each.value is None
        parts += [constant(name, SYMBOL), _typed_null(each.type) if is_null else each]
    return FunctionCall("struct", tuple(parts), type_, span)


def _typed_null(type_: Type) -> Expression:
    """Return a null of which rules know the type: the first element of an array without any."""
    nothing = ConstantValue((), array_of(type_))
    return FunctionCall("get", (nothing, integer(0)), type_.with_null(True))


def field(struct: Expression, at: int) -> Expression:
    """Return a field of a struct by its place; of one that is written, it is what is there."""
    name, type_ = struct.type.members[at]
    match struct:
        case ConstantValue(value=None):
            return ConstantValue(None, type_, struct.span)
        case ConstantValue(value=tuple(values)):
            return ConstantValue(values[at], type_.with_null(values[at] is None), struct.span)
        case FunctionCall(functor="struct"):
            return struct.arguments[2 * at + 1]
        case _:
            return FunctionCall("field", (struct, constant(name, SYMBOL)), type_, struct.span)


def to_decimal(expression: Expression, scale: int, precision: int) -> Expression:
    """Return a number as a decimal with a scale; nothing is checked.

    A float is rounded as the decimal that it is written as.
    """
    if expression.type.is_decimal and expression.type.scale == scale:
        return expression
    if isinstance(expression, ConstantValue) and isinstance(expression.value, int | Decimal):
        value = Decimal(expression.value)
        exponent = value.as_tuple().exponent
        if isinstance(exponent, int) and -exponent <= scale:
            wide = value.quantize(Decimal(1).scaleb(-scale), context=WIDE)
            return ConstantValue(wide, decimal(precision, scale), expression.span)
    if expression.type.is_float32:
        expression = convert(expression, FLOAT)
    functor, result = "to_decimal", decimal(precision, scale)
    if expression.type.is_float:
        functor, expression = "parse_decimal", call("show", (expression,), SYMBOL, expression.span)
    return call(functor, (expression, integer(scale)), result, expression.span)


# --- casts -------------------------------------------------------------------------------------


def cast(expression: Expression, target: Type, bits: int) -> Expression | None:
    """Return a value converted as `CAST` does; None if the types cannot be converted.

    Args:
        expression: the value.
        target: the type asked for.
        bits: the size of the integer asked for.
    """
    if is_untyped(expression):
        return convert(expression, replace(target, bits=bits) if target.is_number else target)
    if expression.type.is_float32 and not (target.is_symbol or target.is_float32):
        expression = convert(expression, FLOAT)
    span = expression.span
    kind = expression.type.logical_kind
    match target.logical_kind:
        case Kind.SYMBOL | Kind.RECORD:
            if kind is Kind.BINARY:
                return call("from_utf8", (expression,), SYMBOL, span)
            if expression.type.is_interval:
                fields = constant(expression.type.fields, SYMBOL)
                return call("format_interval", (amount_of(expression), fields), SYMBOL, span)
            is_text = kind is Kind.SYMBOL and expression.type.record is None
            return expression if is_text else call("show", (expression,), SYMBOL, span)
        case Kind.NUMBER:
            found = _to_integer(expression, bits)
            if isinstance(found, ConstantValue):  # not a literal any more, whose digits count
                found = replace(found, type=replace(found.type, precision=DIGITS_OF_BITS[bits]))
            return None if found is None else sized(found, bits)
        case Kind.DECIMAL:
            return _to_fitting_decimal(expression, target)
        case Kind.FLOAT:
            if kind is Kind.SYMBOL:
                return call("parse_float", (expression,), FLOAT, span)
            if kind is Kind.FLOAT:
                return expression
            is_number = kind in NUMERIC or kind is Kind.BOOL
            return call("to_float", (expression,), FLOAT, span) if is_number else None
        case Kind.FLOAT32:
            return _to_float32(expression)
        case Kind.BOOL:
            return _to_bool(expression)
        case Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMP_NTZ | Kind.TIME_OF_DAY:
            return _to_time(expression, target)
        case Kind.BINARY:
            if kind is Kind.SYMBOL and expression.type.record is None:
                return _to_binary(expression)
            return expression if kind is Kind.BINARY else None
        case Kind.DURATION | Kind.MONTHS:
            return _to_interval(expression, target)
        case Kind.ARRAY | Kind.STRUCT | Kind.MAP:
            return _cast_members(expression, target)
        case Kind.UNSIGNED:
            return None


def _to_float32(expression: Expression) -> Expression | None:
    """Return a value as a float of 32 bits, rounded once; a decimal by its text."""
    span = expression.span
    match expression.type.logical_kind:
        case Kind.FLOAT32:
            return expression
        case Kind.SYMBOL:
            return call("parse_float32", (expression,), FLOAT32, span)
        case Kind.DECIMAL | Kind.UNSIGNED:
            return _to_float32(call("show", (expression,), SYMBOL, span))
        case Kind.BOOL:
            return _to_float32(call("to_number", (expression,), NUMBER, span))
        case Kind.NUMBER | Kind.FLOAT:
            if isinstance(expression, ConstantValue) and isinstance(expression.value, float):
                value = to_float32(expression.value)
                if isfinite(value):
                    return ConstantValue(value, FLOAT32, span)
            return call("to_float32", (expression,), FLOAT32, span)
        case _:
            return None


def _cast_members(expression: Expression, target: Type) -> Expression | None:
    if target.is_struct:
        return _with_fields(
            expression, target, lambda each, type_: cast(each, type_, type_.bits or 64)
        )
    if target.is_map:
        return map_with(expression, target, lambda each, type_: cast(each, type_, 64))
    made = _with_elements(expression, target, lambda each, type_: cast(each, type_, 64))
    return made if made.type.element == target.element else None


def amount_of(value: Expression) -> Expression:
    """Return the months or microseconds of an interval, or those of a time of the day."""
    if isinstance(value, ConstantValue):
        return ConstantValue(to_stored(value.value), NUMBER.with_null(value.type.nullable))
    if isinstance(value, FunctionCall) and value.functor == "to_duration":
        return value.arguments[0]
    functor = "time_to_micros" if value.type.is_time_of_day else "to_microseconds"
    functor = "to_month_count" if value.type.logical is Kind.MONTHS else functor
    return call(functor, (value,), NUMBER, value.span)


def interval_of(amount: Expression, type_: Type, span: Span | None = None) -> Expression:
    """Return the interval of so many months or microseconds."""
    plain, is_months = type_.with_null(False), type_.logical is Kind.MONTHS
    if isinstance(amount, ConstantValue):
        value = amount.value
        if value is None or fits_bits(value, 32 if is_months else 64):
            return ConstantValue(from_stored(value, plain), plain.with_null(value is None), span)
    return call("to_months" if is_months else "to_duration", (amount,), plain, span)


def _to_interval(expression: Expression, target: Type) -> Expression | None:
    """Return a text, an interval or a number of the last field as an interval."""
    span, unit = expression.span, unit_of(target.fields)
    size = integer(SIZES[names_of(target.fields)[-1]])
    match expression.type.logical_kind:
        case Kind.SYMBOL:
            fields = constant(target.fields, SYMBOL)
            amount: Expression = call("parse_interval", (expression, fields), NUMBER, span)
        case kind if kind is target.logical_kind:
            amount = amount_of(expression)
            if unit > unit_of(expression.type.fields):
                rest = call("rem", (amount, integer(unit)), NUMBER, span)
                amount = call("-", (amount, rest), NUMBER, span)
        case Kind.NUMBER:
            amount = call("*", (expression, size), NUMBER, span)
        case Kind.DECIMAL:
            both = (expression, to_decimal(size, 1, 20), integer(0))
            product = call("multiply", both, decimal(DECIMAL_MAX_DIGITS, 0), span)
            amount = call("to_integer", (product, integer(64)), NUMBER, span)
        case _:
            return None
    return interval_of(amount, target, span)


def _last_fields(value: Expression) -> Expression:
    """Return how many of its last field an interval or time has, cut off toward zero."""
    last = "SECOND" if value.type.is_time_of_day else names_of(value.type.fields)[-1]
    return call("/", (amount_of(value), integer(SIZES[last])), NUMBER, value.span)


_TIME_READERS = {
    Kind.DATE: "parse_day",
    Kind.TIMESTAMP: "parse_moment",
    Kind.TIMESTAMP_NTZ: "parse_local",
    Kind.TIME_OF_DAY: "parse_time_of_day",
}


def _to_time(expression: Expression, target: Type) -> Expression | None:
    span, kind, result = expression.span, expression.type.logical_kind, target.with_null(False)
    if kind is target.logical_kind:
        return expression
    if kind is Kind.SYMBOL:
        return call(_TIME_READERS[target.logical_kind], (expression,), result, span)
    if kind is Kind.NUMBER and target.is_timestamp:
        return call("add_seconds", (constant(EPOCH, TIMESTAMP), expression), TIMESTAMP, span)
    if not expression.type.is_time:
        return None
    if target.is_time_of_day:
        if expression.type.is_date:
            return None
        moment = convert(expression, TIMESTAMP)
        both = (call("start_of_day", (moment,), TIMESTAMP, span), moment)
        amount = call("microseconds_between", both, NUMBER, span)
        return call("time_from_micros", (amount,), TIME_OF_DAY, span)
    if target.is_date:
        return call("to_date", (convert(expression, TIMESTAMP),), DATE, span)
    return convert(expression, result)


def _to_binary(text: Expression) -> Expression:
    """Return the bytes of a text in UTF-8."""
    if isinstance(text, ConstantValue) and isinstance(text.value, str):
        return ConstantValue(text.value.encode(), BINARY, text.span)
    return call("to_utf8", (text,), BINARY, text.span)


def _to_integer(expression: Expression, bits: int) -> Expression | None:
    span, found = expression.span, expression
    match expression.type.logical_kind:
        case Kind.SYMBOL | Kind.RECORD:
            found = call("parse_integer", (expression,), NUMBER, span)
        case Kind.NUMBER:
            pass
        case Kind.BOOL:
            return call("to_number", (expression,), NUMBER, span)
        case Kind.FLOAT | Kind.DECIMAL | Kind.UNSIGNED:
            return call("to_integer", (expression, integer(bits)), NUMBER, span)
        case Kind.TIMESTAMP:
            second = call("start_of_second", (expression,), TIMESTAMP, span)
            start = constant(EPOCH, TIMESTAMP)
            found = call("seconds_between", (start, second), NUMBER, span)
        case Kind.DURATION | Kind.MONTHS | Kind.TIME_OF_DAY:
            found = _last_fields(expression)
        case Kind.DATE | Kind.TIMESTAMP_NTZ | Kind.BINARY | Kind.FLOAT32:
            return None
        case Kind.ARRAY | Kind.STRUCT | Kind.MAP:
            return None
    return within(found, bits)


def within(found: Expression, bits: int) -> Expression:
    """Return an integer that must have so many bits; there is no value where it does not."""
    if bits_of(found) > bits and not (
        isinstance(found, ConstantValue) and fits_bits(found.value, bits)
    ):
        found = call("to_integer", (found, integer(bits)), NUMBER, found.span)
    return sized(found, bits)


def fits_bits(value: Value, bits: int) -> bool:
    """Whether a value is an integer of so many bits."""
    return isinstance(value, int) and -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)


def _to_fitting_decimal(expression: Expression, target: Type) -> Expression | None:
    span = expression.span
    digits = integer(target.scale)
    result, found = replace(target, nullable=False), expression
    match expression.type.logical_kind:
        case Kind.SYMBOL | Kind.RECORD:
            found = call("parse_decimal", (expression, digits), result, span)
        case Kind.BOOL:
            number = call("to_number", (expression,), NUMBER, span)
            found = call("to_decimal", (number, digits), result, span)
        case Kind.NUMBER | Kind.UNSIGNED | Kind.FLOAT | Kind.DECIMAL:
            found = to_decimal(expression, target.scale, target.precision)
            if not expression.type.is_float and _always_fits(expression, target):
                return replace(found, type=result.with_null(found.type.nullable))
        case Kind.DURATION | Kind.MONTHS | Kind.TIME_OF_DAY:
            if expression.type.is_time_of_day or expression.type.fields.endswith("SECOND"):
                exact = to_decimal(amount_of(expression), 0, NUMBER_DIGITS)
                both = (exact, constant(Decimal("1000000.0"), decimal(8, 1)), integer(6))
                return _to_fitting_decimal(call("divide", both, decimal(25, 6), span), target)
            return _to_fitting_decimal(_last_fields(expression), target)
        case _:
            return None
    return call("fit", (found, integer(target.precision)), result, span)


def _always_fits(expression: Expression, target: Type) -> bool:
    own = decimal_of(expression)
    before, there = own.precision - own.scale, target.precision - target.scale
    return there > before or (there == before and target.scale >= own.scale)


def _to_bool(expression: Expression) -> Expression | None:
    span, type_ = expression.span, expression.type
    match type_.logical_kind:
        case Kind.BOOL:
            return expression
        case Kind.SYMBOL | Kind.RECORD:
            return call("parse_bool", (expression,), BOOL, span)
        case Kind.NUMBER | Kind.UNSIGNED | Kind.FLOAT | Kind.DECIMAL:
            zero = zero_of(type_)
            return call("ne", (expression, zero), BOOL, span)
        case _:
            return None


def zero_of(type_: Type) -> ConstantValue:
    """Return zero in a numeric type."""
    plain = replace(type_, nullable=False)
    if type_.kind is Kind.FLOAT:
        return ConstantValue(0.0, plain)
    if type_.is_decimal:
        return ConstantValue(Decimal(0).scaleb(-type_.scale, WIDE), plain)
    return ConstantValue(0, plain)
