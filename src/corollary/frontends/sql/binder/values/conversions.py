"""Conversions of values between types: by themselves, and by `CAST`."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from math import isfinite
from sys import float_info

from corollary.core.functors.lambdas import lambda_name
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
    SYMBOL,
    TIME_OF_DAY,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Kind,
    Type,
    array_of,
    decimal,
    is_same,
    nested,
    struct_of,
)
from corollary.core.values import from_stored, to_float32, to_stored
from corollary.frontends.sql.binder.values.common_types import (
    DIGITS_OF_BITS,
    EPOCH,
    NUMBER_DIGITS,
    WIDE,
    as_known,
    bits_of,
    call,
    column_type,
    constant,
    decimal_of,
    fits_bits,
    integer,
    is_untyped,
    sized,
)
from corollary.frontends.sql.binder.values.literals import is_epoch
from corollary.frontends.sql.query_tree import (
    ConstantValue,
    Expression,
    FunctionCall,
    UnknownValue,
)
from corollary.source import Span


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
    """Return an array with elements of another type, as it is if these cannot be converted."""
    element, held = type_.element, array.type.element
    assert element is not None
    if held is None:
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
            return call("array_repeat", (typed_null(element), size), type_, array.span)
        case _:
            is_alike = held.domain == element.domain and held.logical is element.logical
            if is_alike and not held.members and (held.bits or 64) <= (element.bits or 64):
                return replace(array, type=type_)
            of_each = change(parameter("x", held), element)
            return array if of_each is None else for_each(array, "x", of_each)
    made = [change(each, element) for each in parts]
    if None in made:
        return array
    found = tuple(each for each in made if each is not None)
    if all(isinstance(each, ConstantValue) for each in found):
        constants = tuple(each.value for each in found if isinstance(each, ConstantValue))
        return ConstantValue(constants, type_.with_null(False), array.span)
    return FunctionCall("array", found, type_.with_null(False), array.span)


def parameter(name: str, type_: Type) -> FunctionCall:
    """Return a parameter of a lambda; an element of an array may be null."""
    return FunctionCall(lambda_name((name,)), (), type_.with_null(True))


def for_each(array: Expression, name: str, body: Expression) -> Expression:
    """Return the array of what a body with a parameter is for each element."""
    applied = FunctionCall(lambda_name((name,)), (body,), body.type)
    type_ = array_of(body.type).with_null(array.type.nullable)
    return FunctionCall("transform", (array, applied), type_, array.span)


def map_with(
    given: Expression, type_: Type, change: Callable[[Expression, Type], Expression | None]
) -> Expression | None:
    """Return a map with keys and values of other types, if its arrays can be converted."""
    if not given.type.is_map and not is_untyped(given):
        return None
    if isinstance(given, ConstantValue):
        return ConstantValue(None, type_.with_null(True), given.span)
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
        parts += [constant(name, SYMBOL), typed_null(each.type) if is_null else each]
    return FunctionCall("struct", tuple(parts), type_, span)


def typed_null(type_: Type) -> Expression:
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
            if len(wide.as_tuple().digits) <= DECIMAL_MAX_DIGITS:
                return ConstantValue(wide, decimal(precision, scale), expression.span)
    if expression.type.is_float32:
        expression = convert(expression, FLOAT)
    functor, result = "to_decimal", decimal(precision, scale)
    if expression.type.is_float:
        functor, expression = "parse_decimal", call("show", (expression,), SYMBOL, expression.span)
    return call(functor, (expression, integer(scale)), result, expression.span)


# --- casts -------------------------------------------------------------------------------------


Wrap = Callable[[Expression, Expression], Expression]


def cast(
    expression: Expression, target: Type, bits: int, wrap: Wrap | None = None
) -> Expression | None:
    """Return a value converted as `CAST` does; None if the types cannot be converted.

    Args:
        expression: the value.
        target: the type asked for.
        bits: the size of the integer asked for.
        wrap: changes the conversion of a value without members, which is given too: `TRY_CAST`.
    """
    found = _cast(expression, target, bits, wrap)
    is_single = not (expression.type.members and target.members)
    if wrap is None or found is None or found is expression or not is_single:
        return found
    return wrap(found, expression)


def _cast(expression: Expression, target: Type, bits: int, wrap: Wrap | None) -> Expression | None:
    if is_untyped(expression):
        return convert(expression, replace(target, bits=bits) if target.is_number else target)
    if expression.type.is_float32 and not (target.is_symbol or target.is_float32):
        expression = convert(expression, FLOAT)
    span = expression.span
    kind = expression.type.logical_kind
    match target.logical_kind:
        case Kind.SYMBOL | Kind.RECORD:
            return _to_text(expression)
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
            if kind is Kind.TIMESTAMP:
                exact = call("to_float", (_micros_since_1970(expression),), FLOAT, span)
                return call("/", (exact, constant(1e6, FLOAT)), FLOAT, span)
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
            return _cast_members(expression, target, wrap)
        case Kind.UNSIGNED:
            return None


def _to_text(expression: Expression) -> Expression | None:
    type_, span = expression.type, expression.span
    if type_.is_binary:
        return call("from_utf8", (expression,), SYMBOL, span)
    if type_.is_interval:
        fields = constant(type_.fields, SYMBOL)
        return call("format_interval", (amount_of(expression), fields), SYMBOL, span)
    if type_.is_symbol and type_.record is None:
        return expression
    shown = _cast_members(expression, _shown(type_), None) if type_.members else expression
    return None if shown is None else call("show", (shown,), SYMBOL, span)


def _shown(type_: Type) -> Type:
    """Return a type with texts for bytes inside, which are shown as such."""
    if not type_.members:
        return SYMBOL if type_.is_binary else type_
    return nested(type_.logical_kind, [(name, _shown(each)) for name, each in type_.members])


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
        case Kind.TIMESTAMP:
            seconds = cast(expression, FLOAT, 64)
            return None if seconds is None else _to_float32(seconds)
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


def _cast_members(expression: Expression, target: Type, wrap: Wrap | None) -> Expression | None:
    def change(each: Expression, type_: Type) -> Expression | None:
        return cast(each, type_, type_.bits or 64, wrap)

    if target.is_struct:
        return _with_fields(expression, target, change)
    if target.is_map:
        key = expression.type.members[0][1] if expression.type.is_map else None
        if wrap is not None and key is not None and not is_same(key, target.members[0][1]):
            return None  # a key would be null
        return map_with(expression, target, change)
    if not (expression.type.is_array or is_untyped(expression)):
        return None
    made = _with_elements(expression, target, change)
    return made if made.type.element == target.element else None


def amount_of(value: Expression) -> Expression:
    """Return the months or microseconds of an interval, or those of a time."""
    if isinstance(value, ConstantValue) and not value.type.is_timestamp:
        return ConstantValue(to_stored(value.value), NUMBER.with_null(value.type.nullable))
    if isinstance(value, FunctionCall) and value.functor == "to_duration":
        return value.arguments[0]
    if value.type.is_timestamp:
        return _micros_since_1970(value)
    functor = "time_to_micros" if value.type.is_time_of_day else "to_microseconds"
    functor = "to_month_count" if value.type.is_months else functor
    return call(functor, (value,), NUMBER, value.span)


def _micros_since_1970(moment: Expression) -> Expression:
    both = (constant(EPOCH, TIMESTAMP), moment)
    return call("microseconds_between", both, NUMBER, moment.span)


def interval_of(amount: Expression, type_: Type, span: Span | None = None) -> Expression:
    """Return the interval of so many months or microseconds."""
    plain, is_months = type_.with_null(False), type_.is_months
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
        is_literal = isinstance(expression, ConstantValue) and is_epoch(expression.value)
        if is_literal and target.is_time:
            return _to_time(constant(EPOCH, TIMESTAMP), target)
        return call(_TIME_READERS[target.logical_kind], (expression,), result, span)
    if kind is Kind.NUMBER and target.is_timestamp:
        return call("add_seconds", (constant(EPOCH, TIMESTAMP), expression), TIMESTAMP, span)
    if kind in (Kind.FLOAT, Kind.DECIMAL) and target.is_timestamp:  # cut off toward 1970
        if kind is Kind.FLOAT:
            product = call("*", (expression, constant(1e6, FLOAT)), FLOAT, span)
        else:
            size, scale = constant(Decimal("1000000.0"), decimal(8, 1)), expression.type.scale
            type_ = decimal(DECIMAL_MAX_DIGITS, scale)
            product = call("multiply", (expression, size, integer(scale)), type_, span)
        micros = call("to_integer", (product, integer(64)), NUMBER, span)
        return call("add_microseconds", (constant(EPOCH, TIMESTAMP), micros), TIMESTAMP, span)
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
        case Kind.DURATION | Kind.MONTHS | Kind.TIME_OF_DAY | Kind.TIMESTAMP:
            if not expression.type.is_interval or expression.type.fields.endswith("SECOND"):
                exact = to_decimal(amount_of(expression), 0, NUMBER_DIGITS)
                both = (exact, constant(Decimal("1000000.0"), decimal(8, 1)), integer(6))
                return _to_fitting_decimal(call("divide", both, decimal(25, 6), span), target)
            return _to_fitting_decimal(_last_fields(expression), target)
        case _:
            return None
    fitting = call("fit", (found, integer(target.precision)), result, span)
    if not expression.type.is_float:
        return fitting
    # What is not finite is null, as in Spark.
    bounds = (("le", float_info.max), ("ge", -float_info.max))
    tests = [call(name, (expression, constant(each, FLOAT)), BOOL, span) for name, each in bounds]
    nothing = ConstantValue(None, result.with_null(True), span)
    chosen = (call("and", tuple(tests), BOOL, span), fitting, nothing)
    return FunctionCall("if", chosen, nothing.type, span)


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
