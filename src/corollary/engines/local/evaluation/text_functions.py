"""Functions on symbols, conversions from and to text, `match` and `contains`, on arrays.

Arrow computes what it computes exactly as the language has it. Everything else is computed in
Python, once for each distinct value.
"""

import hashlib
import re
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import re2

from corollary.core.arrow_buffers import bool_values, fixed_values, text_scalar
from corollary.core.functors.times import DAY_MICROSECONDS
from corollary.core.types import NUMBER, SYMBOL, Kind, Type
from corollary.core.values import format_value, parse_value
from corollary.engines.local.evaluation import decimals
from corollary.engines.local.evaluation.arithmetic import to_float, to_integer
from corollary.engines.local.evaluation.kernels import (
    FAILED_CONVERSION,
    FEW_ROWS,
    OVERFLOW,
    Faults,
    Kernel,
    NoValueError,
    Operand,
    Result,
    compute_rows,
    each_row,
    each_text,
    each_typed_row,
    faults_of,
    on_values,
    spread_rows,
)
from corollary.engines.local.storage.layout import Mask
from corollary.engines.local.values import native
from corollary.engines.local.values.native import NativeArray
from corollary.engines.local.values.texts import Texts

PLAIN_DECIMAL = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")

PLAIN_INTEGER = "^-?[0-9]{1,18}$"
"""Texts that Arrow reads as integers as the language does."""


def plain_integers(texts: Texts) -> NativeArray | None:
    """Return the integers of texts, if there are many and Arrow reads them as the language does."""
    if len(texts) <= FEW_ROWS:
        return None
    is_plain = bool_values(pc.match_substring_regex(texts.array, PLAIN_INTEGER))
    return fixed_values(texts.array.cast(pa.int64()), np.int64) if is_plain.all() else None


def _cat(*texts: Texts) -> Texts:
    return Texts(pc.binary_join_element_wise(*(each.array for each in texts), text_scalar("")))


def _strlen(texts: Texts) -> NativeArray:
    return fixed_values(pc.utf8_length(texts.array).cast(pa.int64()), np.int64)


def _substr(operands: list[Operand], type_: Type) -> Result:
    texts, index, length = (values for values, _ in operands)
    if len(texts) > FEW_ROWS and texts.is_ascii:
        sizes = texts.byte_lengths()
        is_part = (index >= 0) & (index <= sizes) & (length >= 0)
        starts = np.where(is_part, index, 0)
        return texts.slice_bytes(
            starts, np.where(is_part, np.minimum(length, sizes - starts), 0)
        ), []
    return each_row(_part)(operands, type_)


def _part(text: str, index: int, length: int) -> str:
    return text[index : index + length] if 0 <= index <= len(text) and length >= 0 else ""


def _ord(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest()[:15], 16)


def to_text(operands: list[Operand], type_: Type) -> Result:
    """Return values as texts, as in output files."""
    ((values, source),) = operands
    match source.kind:
        case Kind.SYMBOL if not source.members:
            return values, []
        case Kind.NUMBER | Kind.UNSIGNED:
            return Texts(native.to_arrow(values, None, source.stored).cast(pa.large_string())), []
        case _:
            return _format_each(operands, type_)


_format_each = each_typed_row(
    lambda source, value: format_value(native.to_python(value, source), source)
)
_parse_each = each_text(
    lambda text, type_: native.from_python([parse_value(text, type_)], type_)[0]
)


def _from_text(values: Texts, type_: Type) -> Result:
    """Parse symbols as values of a type; one that cannot be parsed is a failed conversion."""
    type_ = type_.with_null(False)
    numbers = plain_integers(values) if type_.is_integral else None
    if numbers is not None:
        return to_integer([(numbers, NUMBER)], type_)
    return _parse_each([(values, SYMBOL)], type_)


def _convert(numbers: Kernel) -> Kernel:
    def apply(operands: list[Operand], type_: Type) -> Result:
        if operands[0][1].is_symbol:
            return _from_text(operands[0][0], type_)
        return numbers(operands[:1], type_)

    return apply


def _to_decimal(operands: list[Operand], type_: Type) -> Result:
    values, source = operands[0]
    if source.kind not in (Kind.SYMBOL, Kind.FLOAT):
        scaled, too_large = decimals.to_decimals(values, source, type_)
        return scaled, faults_of(too_large, OVERFLOW)

    def exact(value: Any) -> int:
        """Return a float or a text without rounding; a text must be a plain decimal number."""
        if source.is_symbol and not PLAIN_DECIMAL.fullmatch(value):
            raise NoValueError(FAILED_CONVERSION)
        try:
            numerator, denominator = Decimal(value).as_integer_ratio()
        except (ArithmeticError, ValueError):  # infinities, and NaN
            raise NoValueError(FAILED_CONVERSION) from None
        number = decimals.round_half_up(numerator * 10**type_.scale, denominator)
        if abs(number) >= 10**type_.precision:
            raise NoValueError(OVERFLOW)
        return number

    return each_row(exact)(operands[:1], type_)


def _to_date(operands: list[Operand], type_: Type) -> Result:
    values, source = operands[0]
    if source.is_timestamp:
        return values // DAY_MICROSECONDS, []
    return _from_text(values, type_) if source.is_symbol else (values, [])


def _to_timestamp(operands: list[Operand], type_: Type) -> Result:
    values, source = operands[0]
    if source.is_date:
        return values * DAY_MICROSECONDS, []
    return _from_text(values, type_) if source.is_symbol else (values, [])


@lru_cache(maxsize=1024)
def _pattern(text: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text, options)
    except re2.error:
        return None


def _matches(pattern: str, text: str) -> bool:
    compiled = _pattern(pattern)
    if compiled is None:
        raise NoValueError("invalid pattern")
    return compiled.fullmatch(text) is not None


def evaluate_constraint(operator: str, one: Texts, two: Texts) -> tuple[Mask, Faults]:
    """Return the rows in which `match(one, two)` or `contains(one, two)` holds, and the faults."""
    holds = _matches if operator == "match" else lambda part, whole: part in whole
    found, faults, rows = compute_rows(holds, [(one, SYMBOL), (two, SYMBOL)])
    return spread_rows(np.array([bool(each) for each in found], np.bool_), rows), faults


TEXT_FUNCTIONS: dict[str, Kernel] = {
    "cat": on_values(_cat),
    "strlen": on_values(_strlen),
    "substr": _substr,
    "ord": each_row(_ord),
    "to_string": to_text,
    "to_number": _convert(to_integer),
    "to_unsigned": _convert(to_integer),
    "to_float": _convert(to_float),
    "to_decimal": _to_decimal,
    "to_date": _to_date,
    "to_timestamp": _to_timestamp,
}
