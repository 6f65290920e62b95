"""Functions on symbols, conversions from and to text, `match` and `contains`, on arrays.

Arrow computes what it computes exactly as the language has it. Everything else is computed in
Python, once for each distinct value.
"""

import hashlib
import re
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import re2

from corollary.core.arrow_buffers import bool_values, fixed_array, fixed_values, text_scalar
from corollary.core.functors.times import DAY_MICROSECONDS
from corollary.core.types import Kind, Type
from corollary.core.values import format_value, parse_value
from corollary.engines.local.evaluation import decimals
from corollary.engines.local.evaluation.arithmetic import (
    FAILED_CONVERSION,
    IS_NULL,
    OVERFLOW,
    Faults,
    Operand,
    Result,
    to_float,
    to_integer,
)
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import Mask
from corollary.engines.local.storage.sorting import number_distinct
from corollary.engines.local.values import native
from corollary.engines.local.values.native import narrow_integers
from corollary.engines.local.values.texts import Texts

PLAIN_DECIMAL = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")

PLAIN_INTEGER = "^-?[0-9]{1,18}$"
"""Texts that Arrow reads as integers as the language does."""

FEW_ROWS = 64
"""Up to this many rows are computed one by one, which is faster than finding distinct values."""


def distinct_rows(columns: list[Any]) -> tuple[list[list[Any]], Codes | None]:
    """Return the distinct rows of some columns as Python values, and for each row its number."""
    found, rows = distinct_columns(columns)
    return [values.tolist() for values in found], rows


class NoValueError(Exception):
    """A function has no value; the message is the reason."""


def compute_rows(
    function: Callable[..., Any], operands: list[Operand]
) -> tuple[list[Any], Faults, Codes | None]:
    """Compute the distinct rows one by one.

    Returns:
        the results, None for null and where there is none, the faults of all rows, and for each row
        the number of its result.
    """
    columns, rows = distinct_rows([values for values, _ in operands])
    results: list[Any] = []
    places: dict[str, list[int]] = {}
    for row in zip(*columns, strict=True):
        reason = IS_NULL
        try:
            results.append(function(*row))
        except NoValueError as error:
            results.append(None)
            reason = str(error)
        if results[-1] is None:
            places.setdefault(reason, []).append(len(results) - 1)
    faults = []
    for reason, found in places.items():
        mask = np.zeros(len(results), np.bool_)
        mask[found] = True
        faults.append((spread_rows(mask, rows), reason))
    return results, faults, rows


def distinct_columns(columns: list[Any]) -> tuple[list[Any], Codes | None]:
    """Return the distinct rows of some columns, and for each row its number; few rows as they are.

    >>> distinct_columns([np.array([7, 7]), Texts.of(["a", "a"])])[1] is None
    True
    """
    if len(columns[0]) <= FEW_ROWS:
        return columns, None
    first, rows = _distinct(columns[0])
    found = [first]
    for values in columns[1:]:
        others, numbers = _distinct(values)
        size = len(others)
        pairs, rows = number_distinct(rows * size + numbers)
        found = [*(each[pairs // size] for each in found), others[pairs % size]]
    return found, rows


def _distinct(values: Any) -> tuple[Any, Codes]:
    """Return the distinct values of a column, and for each row the number of its value."""
    if isinstance(values, Texts):
        return values.distinct()
    if values.dtype == object:
        return np.unique(values, return_inverse=True)
    found, rows = number_distinct(values.view(np.int64))
    return found.view(values.dtype), rows


def spread_rows(results: Any, rows: Codes | None) -> Any:
    """Return the results of distinct rows for all rows."""
    return results if rows is None else results[rows]


def _cat(operands: list[Operand], type_: Type) -> Result:  # noqa: ARG001 - one shape for all
    arrays = [values.array for values, _ in operands]
    return Texts(pc.binary_join_element_wise(*arrays, text_scalar(""))), []


def _strlen(operands: list[Operand], type_: Type) -> Result:  # noqa: ARG001
    lengths = pc.utf8_length(operands[0][0].array)
    return fixed_values(lengths.cast(pa.int64()), np.int64), []


def _substr(operands: list[Operand], type_: Type) -> Result:  # noqa: ARG001
    texts, index, length = (values for values, _ in operands)
    if len(texts) > FEW_ROWS and texts.is_ascii:
        sizes = texts.byte_lengths()
        is_part = (index >= 0) & (index <= sizes) & (length >= 0)
        starts = np.where(is_part, index, 0)
        return texts.slice_bytes(
            starts, np.where(is_part, np.minimum(length, sizes - starts), 0)
        ), []
    columns, rows = distinct_rows([texts, index, length])
    parts = [_part(*row) for row in zip(*columns, strict=True)]
    return spread_rows(Texts.of(parts), rows), []


def _part(text: str, index: int, length: int) -> str:
    return text[index : index + length] if 0 <= index <= len(text) and length >= 0 else ""


def _ord(operands: list[Operand], type_: Type) -> Result:  # noqa: ARG001
    (texts,), rows = distinct_rows([operands[0][0]])
    digests = (hashlib.sha256(text.encode()).hexdigest() for text in texts)
    return spread_rows(np.array([int(digest[:15], 16) for digest in digests], np.int64), rows), []


def _to_string(operands: list[Operand], type_: Type) -> Result:  # noqa: ARG001
    ((values, source),) = operands
    match source.kind:
        case Kind.SYMBOL if not source.members:
            return values, []
        case Kind.NUMBER:
            return Texts(fixed_array(values, pa.int64()).cast(pa.large_string())), []
        case Kind.UNSIGNED:
            return Texts(fixed_array(values, pa.uint64()).cast(pa.large_string())), []
        case _:
            (found,), rows = distinct_rows([values])
            texts = [format_value(native.to_python(each, source), source) for each in found]
            return spread_rows(Texts.of(texts), rows), []


def _from_text(values: Texts, type_: Type) -> Result:
    """Parse symbols as values of a type; one that cannot be parsed is a failed conversion."""
    type_ = type_.with_null(False)
    if type_.kind in (Kind.NUMBER, Kind.UNSIGNED) and len(values) > FEW_ROWS:
        is_plain = bool_values(pc.match_substring_regex(values.array, PLAIN_INTEGER))
        if is_plain.all():
            numbers = fixed_values(values.array.cast(pa.int64()), np.int64)
            return to_integer([(numbers, Type(Kind.NUMBER))], type_)
    (texts,), rows = distinct_rows([values])
    parsed: list[Any] = []
    bad = np.zeros(len(texts), np.bool_)
    for index, text in enumerate(texts):
        try:
            parsed.append(native.from_python([parse_value(text, type_)], type_)[0])
        except ValueError:
            bad[index] = True
            parsed.append(0)
    result = spread_rows(np.array(parsed, native.dtype_of(type_.kind)), rows)
    bad = spread_rows(bad, rows)
    return result, [(bad, FAILED_CONVERSION)] if bad.any() else []


def _convert(numbers: Callable[..., Result]) -> Callable[[list[Operand], Type], Result]:
    def apply(operands: list[Operand], type_: Type) -> Result:
        if operands[0][1].is_symbol:
            return _from_text(operands[0][0], type_)
        return numbers(operands[:1], type_)

    return apply


def _exact(value: Any, source: Type) -> Decimal:
    """Return a float or a text without rounding; a text must be a plain decimal number."""
    if source.is_symbol and not PLAIN_DECIMAL.fullmatch(value):
        raise ValueError
    return Decimal(value)


def _to_decimal(operands: list[Operand], type_: Type) -> Result:
    values, source = operands[0]
    if source.kind not in (Kind.SYMBOL, Kind.FLOAT):
        scaled, too_large = decimals.to_decimals(values, source, type_)
        return scaled, [(too_large, OVERFLOW)] if too_large.any() else []
    (found,), rows = distinct_rows([values])
    numbers: list[int] = []
    faults: dict[str, Mask] = {}
    for index, each in enumerate(found):
        reason = ""
        number = 0
        try:
            numerator, denominator = _exact(each, source).as_integer_ratio()
            number = decimals.round_half_up(numerator * 10**type_.scale, denominator)
            if abs(number) >= 10**type_.precision:
                number, reason = 0, OVERFLOW
        except (ArithmeticError, ValueError):
            reason = FAILED_CONVERSION
        if reason:
            faults.setdefault(reason, np.zeros(len(found), np.bool_))[index] = True
        numbers.append(number)
    result = narrow_integers(np.array(numbers, object))
    return spread_rows(result, rows), [
        (spread_rows(mask, rows), why) for why, mask in faults.items()
    ]


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


def evaluate_constraint(operator: str, one: Texts, two: Texts) -> tuple[Mask, Faults]:
    """Return the rows in which `match(one, two)` or `contains(one, two)` holds, and the faults."""
    columns, rows = distinct_rows([one, two])
    pairs = list(zip(*columns, strict=True))
    if operator == "contains":
        holds = np.array([part in whole for part, whole in pairs], np.bool_)
        return spread_rows(holds, rows), []
    patterns = {text: _pattern(text) for text in set(columns[0])}
    bad = np.array([patterns[text] is None for text, _ in pairs], np.bool_)
    true = np.array(
        [
            patterns[text] is not None and patterns[text].fullmatch(subject) is not None
            for text, subject in pairs
        ],
        np.bool_,
    )
    return spread_rows(true, rows), [
        (spread_rows(bad, rows), "invalid pattern")
    ] if bad.any() else []


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
