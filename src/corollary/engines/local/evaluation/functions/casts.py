"""Conversions between texts and values in the manner of Spark SQL's `CAST`."""

import math
import re
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow_buffers import bool_values, fixed_array, fixed_values
from corollary.core.spark_times import (
    BLANKS,
    format_interval,
    read_day,
    read_interval,
    read_local,
    read_moment,
    read_time_of_day,
)
from corollary.core.types import Kind, Type
from corollary.core.values import format_value, read_float32, shortest_float32
from corollary.engines.local.evaluation.arithmetic import (
    FAILED_CONVERSION,
    OVERFLOW,
    Operand,
    Result,
)
from corollary.engines.local.evaluation.decimals import round_half_up
from corollary.engines.local.evaluation.functions.arrays import show_nested
from corollary.engines.local.evaluation.text_functions import (
    FEW_ROWS,
    PLAIN_INTEGER,
    distinct_rows,
    spread_rows,
)
from corollary.engines.local.values import native
from corollary.engines.local.values.texts import Texts

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


def _parse(
    read: Callable[[str, Type], Any], blanks: str = BLANKS
) -> Callable[[list[Operand], Type], Result]:
    """Return a function that reads distinct texts one by one, into native values."""

    def apply(operands: list[Operand], type_: Type) -> Result:
        (texts,), rows = distinct_rows([operands[0][0]])
        parsed: list[Any] = []
        bad = np.zeros(len(texts), np.bool_)
        for at, text in enumerate(texts):
            try:
                parsed.append(read(text.strip(blanks), type_))
            except (ValueError, OverflowError, ArithmeticError):
                bad[at] = True
                parsed.append(0)
        if type_.is_decimal:
            values = native.narrow_integers(np.array(parsed, object))
        else:
            values = np.array(parsed, native.dtype_of(type_.kind))
        bad = spread_rows(bad, rows)
        return spread_rows(values, rows), [(bad, FAILED_CONVERSION)] if bad.any() else []

    return apply


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
    texts = operands[0][0]
    if len(texts) > FEW_ROWS:
        is_plain = bool_values(pc.match_substring_regex(texts.array, PLAIN_INTEGER))
        if is_plain.all():
            return fixed_values(texts.array.cast(pa.int64()), np.int64), []
    return _parse_each_integer(operands, type_)


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


def _show(operands: list[Operand], type_: Type) -> Result:
    ((values, source),) = operands
    if source.members:
        return show_nested(values, source, lambda *each: _show([each], type_)[0]), []
    match source.logical_kind:
        case Kind.SYMBOL | Kind.RECORD | Kind.BINARY:
            return values, []
        case Kind.NUMBER:
            return Texts(fixed_array(values, pa.int64()).cast(pa.large_string())), []
        case _:
            (found,), rows = distinct_rows([values])
            return spread_rows(Texts.of([show_value(each, source) for each in found]), rows), []


def _within_bounds(operands: list[Operand], type_: Type) -> Result:
    low, high = type_.spec.bounds
    outside = (operands[0][0] < low) | (operands[0][0] > high)
    return operands[0][0], [(outside, OVERFLOW)] if outside.any() else []


def _format_interval(operands: list[Operand], type_: Type) -> Result:  # noqa: ARG001
    (amounts, _), (fields, _) = operands
    (found,), rows = distinct_rows([amounts])
    texts = [format_interval(int(each), str(fields[0])) for each in found]
    return spread_rows(Texts.of(texts), rows), []


CAST_FUNCTIONS: dict[str, Callable[[list[Operand], Type], Result]] = {
    "parse_integer": _parse_integer,
    "parse_float": _parse(_native(_float)),
    "parse_float32": _parse(_native(partial(_float, read=read_float32))),
    "parse_decimal": _parse(read_decimal),
    "parse_bool": _parse(_native(_read_bool)),
    "parse_day": _parse(_native(read_day)),
    "parse_moment": _parse(_native(read_moment)),
    "parse_local": _parse(_native(read_local)),
    "parse_time_of_day": _parse(_native(read_time_of_day), blanks=""),
    **dict.fromkeys(
        (
            "to_local",
            "from_local",
            "to_duration",
            "to_microseconds",
            "to_month_count",
            "time_to_micros",
        ),
        lambda operands, _: (operands[0][0], []),
    ),
    **dict.fromkeys(("to_months", "time_from_micros"), _within_bounds),
    "format_interval": _format_interval,
    "parse_interval": lambda operands, type_: _parse(
        lambda text, _: read_interval(text, str(operands[1][0][0]))
    )(operands, type_),
    "show": _show,
}
