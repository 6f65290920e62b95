"""Functions on symbols, conversions from and to text, `match` and `contains`, on arrays."""

import hashlib
import re
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np
import re2

from corollary.core.types import Kind, Type
from corollary.core.values import format_value, parse_value
from corollary.engines.local.evaluation.arithmetic import (
    FAILED_CONVERSION,
    OVERFLOW,
    Faults,
    Operand,
    Result,
    round_half_up,
    to_float,
    to_integer,
)
from corollary.engines.local.storage.layout import Mask
from corollary.engines.local.values import native
from corollary.engines.local.values.native import DECIMAL_BOUND, NativeArray

PLAIN_DECIMAL = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")


def _objects(values: list[str]) -> NativeArray:
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _cat(operands: list[Operand], type_: Type) -> Result:  # noqa: ARG001 - one shape for all
    rows = zip(*(values.tolist() for values, _ in operands), strict=True)
    return _objects(["".join(row) for row in rows]), []


def _strlen(operands: list[Operand], type_: Type) -> Result:  # noqa: ARG001
    return np.array([len(text) for text in operands[0][0].tolist()], np.int64), []


def _substr(operands: list[Operand], type_: Type) -> Result:  # noqa: ARG001
    rows = zip(*(values.tolist() for values, _ in operands), strict=True)
    return _objects([_part(*row) for row in rows]), []


def _part(text: str, index: int, length: int) -> str:
    return text[index : index + length] if 0 <= index <= len(text) and length >= 0 else ""


def _ord(operands: list[Operand], type_: Type) -> Result:  # noqa: ARG001
    digests = (hashlib.sha256(text.encode()).hexdigest() for text in operands[0][0].tolist())
    return np.array([int(digest[:15], 16) for digest in digests], np.int64), []


def _to_string(operands: list[Operand], type_: Type) -> Result:  # noqa: ARG001
    ((values, source),) = operands
    if source.kind is Kind.SYMBOL:
        return values, []
    listed = values.tolist()
    return _objects([format_value(native.to_python(each, source), source) for each in listed]), []


def _from_text(values: NativeArray, type_: Type) -> Result:
    """Parse symbols as values of a type; one that cannot be parsed is a failed conversion."""
    type_ = type_.with_null(False)
    parsed: list[Any] = []
    bad = np.zeros(len(values), np.bool_)
    for index, text in enumerate(values.tolist()):
        try:
            parsed.append(native.from_python([parse_value(text, type_)], type_)[0])
        except ValueError:
            bad[index] = True
            parsed.append(0)
    result = np.array(parsed, native.dtype_of(type_.kind))
    return result, [(bad, FAILED_CONVERSION)] if bad.any() else []


def _convert(numbers: Callable[..., Result]) -> Callable[[list[Operand], Type], Result]:
    def apply(operands: list[Operand], type_: Type) -> Result:
        if operands[0][1].kind is Kind.SYMBOL:
            return _from_text(operands[0][0], type_)
        return numbers(operands[:1], type_)

    return apply


def _exact(value: Any, source: Type) -> Decimal:
    """Return a native value without rounding; a symbol must be a plain decimal number."""
    if source.kind is Kind.SYMBOL and not PLAIN_DECIMAL.fullmatch(value):
        raise ValueError
    exact = Decimal(value)
    return exact.scaleb(-source.scale) if source.kind is Kind.DECIMAL else exact


def _to_decimal(operands: list[Operand], type_: Type) -> Result:
    values, source = operands[0]
    scaled: list[int] = []
    faults: dict[str, Mask] = {}
    for index, each in enumerate(values.tolist()):
        reason = ""
        number = 0
        try:
            numerator, denominator = _exact(each, source).as_integer_ratio()
            number = round_half_up(numerator * 10**type_.scale, denominator)
            if abs(number) >= DECIMAL_BOUND:
                number, reason = 0, OVERFLOW
        except (ArithmeticError, ValueError):
            reason = FAILED_CONVERSION
        if reason:
            faults.setdefault(reason, np.zeros(len(values), np.bool_))[index] = True
        scaled.append(number)
    return np.array(scaled, np.int64), [(mask, reason) for reason, mask in faults.items()]


DAY_MICROSECONDS = 86_400_000_000


def _to_date(operands: list[Operand], type_: Type) -> Result:
    values, source = operands[0]
    if source.kind is Kind.TIMESTAMP:
        return values // DAY_MICROSECONDS, []
    return _from_text(values, type_) if source.kind is Kind.SYMBOL else (values, [])


def _to_timestamp(operands: list[Operand], type_: Type) -> Result:
    values, source = operands[0]
    if source.kind is Kind.DATE:
        return values * DAY_MICROSECONDS, []
    return _from_text(values, type_) if source.kind is Kind.SYMBOL else (values, [])


@lru_cache(maxsize=1024)
def _pattern(text: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text, options)
    except re2.error:
        return None


def evaluate_constraint(operator: str, one: NativeArray, two: NativeArray) -> tuple[Mask, Faults]:
    """Return the rows in which `match(one, two)` or `contains(one, two)` holds, and the faults."""
    pairs = list(zip(one.tolist(), two.tolist(), strict=True))
    if operator == "contains":
        return np.array([part in whole for part, whole in pairs], np.bool_), []
    patterns = {text: _pattern(text) for text in set(one.tolist())}
    bad = np.array([patterns[text] is None for text, _ in pairs], np.bool_)
    true = np.array(
        [
            patterns[text] is not None and patterns[text].fullmatch(subject) is not None
            for text, subject in pairs
        ],
        np.bool_,
    )
    return true, [(bad, "invalid pattern")] if bad.any() else []


TEXT_FUNCTIONS: dict[str, Callable[[list[Operand], Type], Result]] = {
    "cat": _cat,
    "strlen": _strlen,
    "substr": _substr,
    "ord": _ord,
    "to_string": _to_string,
    "to_number": _convert(to_integer),
    "to_unsigned": _convert(to_integer),
    "to_float": _convert(to_float),
    "to_decimal": _to_decimal,
    "to_date": _to_date,
    "to_timestamp": _to_timestamp,
}
