"""Conversions between texts and values in the manner of Spark SQL's `CAST`."""

import math
import re
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

from corollary.core import spark_times
from corollary.core.types import Kind, Type
from corollary.core.values import format_value, read_float32, shortest_float32
from corollary.engines.local.evaluation.decimals import round_half_up
from corollary.engines.local.evaluation.functions.arrays import show_nested
from corollary.engines.local.evaluation.kernels import (
    OVERFLOW,
    Kernel,
    Operand,
    Result,
    each_row,
    each_text,
    each_typed_row,
    faults_of,
    on_values,
)
from corollary.engines.local.evaluation.text_functions import plain_integers, to_text
from corollary.engines.local.values import native

DECIMAL_EXPONENT_MAX = 999
"""No decimal has more digits; a larger exponent makes it 0 or too large."""

_INTEGER = re.compile("[+-]?[0-9]+")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_HEXADECIMAL = re.compile(
    r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+"
)
_SPECIAL = re.compile("[+-]?(?:inf|infinity|nan)", re.IGNORECASE | re.ASCII)
_BOOLS = {
    **dict.fromkeys(("t", "true", "y", "yes", "1"), True),
    **dict.fromkeys(("f", "false", "n", "no", "0"), False),
}


def _integer(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError
    digits = text.lstrip("+-").lstrip("0") or "0"
    # No 64-bit value has more digits; converting a text of megabytes would take long.
    value = int(digits) if len(digits) <= 20 else 2**64
    value = -value if text.startswith("-") else value
    if not -(2**63) <= value < 2**63:
        raise ValueError
    return value


def _float(text: str, read: Callable[[str], float] = float) -> float:
    # Java takes `1.5f` and `0x1.8p0`, too.
    number = text[:-1] if text[-1:].lower() in ("f", "d") else text
    if _FLOAT.fullmatch(number):
        return read(number)
    if _HEXADECIMAL.fullmatch(number):
        return read(repr(float.fromhex(number)))
    if not _SPECIAL.fullmatch(text):
        raise ValueError
    return read(text)


def _decimal(text: str, scale: int, precision: int) -> int:
    if not _FLOAT.fullmatch(text):
        raise ValueError
    exact = Decimal(text)
    if exact.adjusted() > DECIMAL_EXPONENT_MAX and exact:
        raise ValueError
    if exact.adjusted() < -DECIMAL_EXPONENT_MAX or not exact:
        return 0
    numerator, denominator = exact.as_integer_ratio()
    value = round_half_up(numerator * 10**scale, denominator)
    if abs(value) >= 10**precision:
        raise ValueError
    return value


def _parse(read: Callable[[str, Type], Any], blanks: str = spark_times.BLANKS) -> Kernel:
    return each_text(lambda text, type_: read(text.strip(blanks), type_))


def _native(read: Callable[[str], Any]) -> Callable[[str, Type], Any]:
    def apply(text: str, type_: Type) -> Any:
        return native.from_python([read(text)], type_)[0]

    return apply


def read_decimal(text: str, type_: Type) -> int:
    """Return the decimal of a text as an integer; ValueError if there is none of the type."""
    return _decimal(text, type_.scale, type_.precision)


def _read_bool(text: str) -> bool:
    word = _BOOLS.get(text.lower())
    if word is None:
        raise ValueError
    return word


_parse_each_integer = _parse(_native(_integer))


def _parse_integer(operands: list[Operand], type_: Type) -> Result:
    numbers = plain_integers(operands[0][0])
    return _parse_each_integer(operands, type_) if numbers is None else (numbers, [])


def show_float(value: float) -> str:
    """Return a float as Java writes it.

    >>> [show_float(each) for each in (1.0, 1e7, 0.001, -1.5e-5, float("inf"))]
    ['1.0', '1.0E7', '0.001', '-1.5E-5', 'Infinity']
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if 1e-3 <= abs(value) < 1e7 or value == 0.0:
        return f"{Decimal(repr(value)):f}"
    # Digits as Python has them: the fewest that mean this float.
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).rstrip("0")
    power = len(digits) - 1 + exponent
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{power}"


def _without_zeros(text: str) -> str:
    return text.rstrip("0") if "." in text else text


def show_value(value: Any, type_: Type) -> str:
    """Return a native value as a text."""
    if type_.is_time_of_day:
        return _without_zeros(native.to_python(value, type_).isoformat())
    if type_.is_float32:
        return show_float(shortest_float32(float(value)))
    match type_.kind:
        case Kind.FLOAT:
            return show_float(float(value))
        case Kind.TIMESTAMP:
            moment = native.to_python(value, type_)
            return _without_zeros(moment.replace(tzinfo=None).isoformat(" "))
        case _:
            return format_value(native.to_python(value, type_), type_)


_show_each = each_typed_row(lambda source, value: show_value(value, source))


def _show(operands: list[Operand], type_: Type) -> Result:
    ((values, source),) = operands
    if source.members:
        return show_nested(values, source, lambda *each: _show([each], type_)[0]), []
    match source.logical_kind:
        case Kind.SYMBOL | Kind.RECORD | Kind.BINARY:
            return values, []
        case Kind.NUMBER:
            return to_text(operands, type_)
        case _:
            return _show_each(operands, type_)


def _within_bounds(operands: list[Operand], type_: Type) -> Result:
    low, high = type_.spec.bounds
    return operands[0][0], faults_of((operands[0][0] < low) | (operands[0][0] > high), OVERFLOW)


CAST_FUNCTIONS: dict[str, Kernel] = {
    "parse_integer": _parse_integer,
    "parse_float": _parse(_native(_float)),
    "parse_float32": _parse(_native(partial(_float, read=read_float32))),
    "parse_decimal": _parse(read_decimal),
    "parse_bool": _parse(_native(_read_bool)),
    "parse_day": _parse(_native(spark_times.read_day)),
    "parse_moment": _parse(_native(spark_times.read_moment)),
    "parse_local": _parse(_native(spark_times.read_local)),
    "parse_time_of_day": _parse(_native(spark_times.read_time_of_day), blanks=""),
    **dict.fromkeys(
        (
            "to_local",
            "from_local",
            "to_duration",
            "to_microseconds",
            "to_month_count",
            "time_to_micros",
        ),
        on_values(lambda values: values),
    ),
    **dict.fromkeys(("to_months", "time_from_micros"), _within_bounds),
    "format_interval": each_row(spark_times.format_interval),
    "parse_interval": lambda operands, type_: _parse(
        lambda text, _: spark_times.read_interval(text, str(operands[1][0][0]))
    )(operands, type_),
    "show": _show,
}
