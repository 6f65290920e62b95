"""Values of all types from texts of JSON, and as such, as Spark's `from_json` and `to_json`.

What does not fit its type is null, and so is an array or a map that it is in; other fields of a
struct stay. Of what is no JSON, all is null.
"""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import field
from datetime import timedelta
from functools import lru_cache
from math import isfinite
from typing import Any

import pyarrow as pa

from corollary.core.arrow import arrow_type, to_stored_column
from corollary.core.arrow_buffers import EPOCH, EPOCH_DAY, python_array
from corollary.core.functors.json_reading import NoJsonError, read_json
from corollary.core.spark_times import (
    BLANKS,
    read_day,
    read_interval,
    read_local,
    read_moment,
    read_time_of_day,
)
from corollary.core.types import SYMBOL, Kind, Type, type_from_json
from corollary.core.values import decimal_value, from_stored, read_float32
from corollary.data_class import dataclass
from corollary.engines.local.evaluation.functions import json_texts
from corollary.engines.local.evaluation.functions.arrays import show_nested
from corollary.engines.local.evaluation.functions.casts import read_decimal, show_value
from corollary.engines.local.evaluation.functions.maps import KEY_TWICE
from corollary.engines.local.evaluation.kernels import (
    FAILED_CONVERSION,
    Kernel,
    NoValueError,
    Operand,
    Result,
    compute_rows,
    each_typed_row,
    spread_rows,
)
from corollary.engines.local.evaluation.times import TIME_FUNCTIONS
from corollary.engines.local.values import native
from corollary.engines.local.values.texts import Texts

_NUMBERS = dict.fromkeys(("+INF", "+Infinity", "Infinity"), "inf") | {
    **dict.fromkeys(("-INF", "-Infinity"), "-inf"),
    "NaN": "nan",
}
"""Strings that are numbers."""
_DAYS = re.compile("[+-]?[0-9]{1,3}")
_ZONE = re.compile("[ T].*[A-Za-z+-]", re.DOTALL)
_SIGN = "[A-Za-z0-9+/]"
_BASE64 = re.compile(rf"(?:[\0-\x20]*{_SIGN}{{2}}(?:{_SIGN}{{2}}|{_SIGN}=|==))*[\0-\x20]*")


class _MisfitError(Exception):
    """A value does not fit its type."""


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads values; `lost` has a member as soon as one did not fit."""

    options: Mapping[str, Any]
    lost: list[bool] = field(default_factory=list)

    def read(self, value: Any, type_: Type) -> Any:
        """Return a value of JSON as one of a type."""
        if value is None:
            return None
        if type_.members:
            return self._nested(value, type_)
        try:
            found = self._scalar(value, type_)
        except (ValueError, OverflowError, ArithmeticError):
            found = None
        if found is None:
            raise _MisfitError
        return found

    def _nested(self, value: Any, type_: Type) -> Any:
        if type_.element is not None and isinstance(value, list):
            return [self.read(each, type_.element) for each in value]
        if type_.is_array or not isinstance(value, tuple):
            raise _MisfitError
        if type_.is_map:
            entries = [(_as_text(k), self.read(x, type_.members[1][1])) for k, x in value]
            if len(dict(entries)) < len(entries):
                raise NoValueError(KEY_TWICE)
            return entries
        found = dict.fromkeys((name for name, _ in type_.members), None)
        types = dict(type_.members)
        for name, each in value:
            if name in types:
                try:
                    found[name] = self.read(each, types[name])
                except _MisfitError:
                    self.lost.append(True)
        return found

    def _scalar(self, value: Any, type_: Type) -> Any:
        """Return a value without members; None if it does not fit."""
        kind = type_.logical_kind
        match value:
            case str() if kind is Kind.SYMBOL:
                return _as_text(value)
            case _ if kind is Kind.SYMBOL:
                return json_texts.checked_text(json_texts.write_json(value, json_texts.WIDE))
            case bool():
                return value if kind is Kind.BOOL else None
            case bytes():
                return _number(value, type_)
            case str() if kind is Kind.BINARY:
                return _binary(value)
            case str() if value:
                return self._text(value, type_)
            case _:
                return None

    def _text(self, text: str, type_: Type) -> Any:
        option = type_.spec.json_option
        if option in self.options:
            return _in_formats(text, self.options[option], type_)
        match type_.logical_kind:
            case Kind.FLOAT | Kind.FLOAT32:
                return float(_NUMBERS[text]) if text in _NUMBERS else None
            case Kind.DECIMAL:
                return decimal_value(read_decimal(text.replace(",", ""), type_), type_.scale)
            case Kind.DATE:
                if _DAYS.fullmatch(text):  # as it was in the first versions of Spark
                    return EPOCH_DAY + timedelta(days=int(text))
                return read_day(text.strip(BLANKS))
            case Kind.TIMESTAMP:
                return read_moment(text.strip(BLANKS))
            case Kind.TIMESTAMP_NTZ:
                return None if _ZONE.search(text) else read_local(text.strip(BLANKS))
            case Kind.TIME_OF_DAY:
                return read_time_of_day(text)
            case Kind.DURATION | Kind.MONTHS:
                return from_stored(read_interval(text.strip(BLANKS), type_.fields), type_)
            case _:
                return None


def _as_text(value: str) -> str:
    """Return a string; half of a surrogate pair becomes a question mark, as in Java."""
    return json_texts.checked_text(value.encode(errors="replace").decode())


def _number(digits: bytes, type_: Type) -> Any:
    """Return a number; None if it does not fit."""
    written = digits.written if isinstance(digits, json_texts.Fraction) else digits.decode()
    is_whole = not isinstance(digits, json_texts.Fraction)
    match type_.logical_kind:
        case Kind.NUMBER if is_whole:
            value, bits = int(written), type_.precision
            highest = 255 if bits == 8 else 2 ** (bits - 1) - 1  # as Jackson reads a byte
            fits = -(2 ** (bits - 1)) <= value <= highest
            return (value - 256 if bits == 8 and value > 127 else value) if fits else None
        case Kind.FLOAT:
            return float(written)
        case Kind.FLOAT32:
            return read_float32(written)
        case Kind.DECIMAL if isfinite(float(written)) or digits[:1] != b'"':
            return decimal_value(read_decimal(written, type_), type_.scale)
        case Kind.TIMESTAMP if is_whole:
            return EPOCH + timedelta(seconds=int(written))
        case _:
            return None


def _binary(text: str) -> bytes | None:
    if not _BASE64.fullmatch(text):
        return None
    digits = "".join(each for each in text if each > " ")
    return b"".join(b64decode(digits[at : at + 4]) for at in range(0, len(digits), 4))


def _in_formats(text: str, formats: list[str], type_: Type) -> Any:
    """Return a time in the first format that fits."""
    functor = "parse_date" if type_.is_date else "parse_time"
    for each in formats:
        operands = [(Texts.of([text]), type_), (Texts.of([each]), type_)]
        values, faults = TIME_FUNCTIONS[functor](operands, type_)
        if not faults:
            return native.to_python(values[0], type_)
    return None


@lru_cache(maxsize=256)
def _target(schema: str, options: str) -> tuple[Type, Mapping[str, Any]]:
    return type_from_json(json.loads(schema)), json.loads(options)


def _from_json(text: str, type_: Type, options: Mapping[str, Any]) -> Any:
    """Return the value of a text, null where there is no word."""
    if not text.strip(" \t\r\n"):
        return None
    reader, found = _Reader(options), None
    try:
        value = read_json(text, json_texts.EXACT_DECODER)
        if type_.element is not None and type_.element.is_struct and isinstance(value, tuple):
            value = [value]
        found = reader.read(value, type_)
    except (_MisfitError, NoJsonError):
        pass
    if found is None or reader.lost:
        if options["mode"] == "FAILFAST":
            raise NoValueError(FAILED_CONVERSION)
        corrupt = options.get("corrupt")
        if type_.is_struct:
            found = {**(found or dict.fromkeys((name for name, _ in type_.members), None))}
            found |= {corrupt: text} if corrupt else {}
    elif options.get("corrupt"):
        found[options["corrupt"]] = None
    return found


def _read(operands: list[Operand], type_: Type) -> Result:
    texts, schemas, options = (values for values, _ in operands)
    if not len(texts):
        return native.filler_values(0, type_), []
    target = _target(schemas[0], options[0])
    read = json_texts.or_null(lambda text: _from_json(text, *target))
    found, faults, rows = compute_rows(read, operands[:1])
    column = pa.chunked_array([python_array(found, arrow_type(target[0]))])
    values, _ = native.from_arrow(to_stored_column(column, target[0]), target[0].stored)
    return spread_rows(values, rows), faults


# --- values as JSON ---------------------------------------------------------------------------


def _written(values: Any, type_: Type, options: Mapping[str, Any]) -> Texts:
    """Return values of a type as JSON."""
    if type_.members:
        names = [f"{json_texts.write_json(name, json_texts.SPECIAL)}:" for name, _ in type_.members]
        return show_nested(
            values,
            type_,
            lambda inner, kind: _written(inner, kind, options),
            names,
            keeps_nulls="keeps_nulls" in options,
        )
    option = type_.spec.json_option
    if option in options:
        operands = [(values, type_), (Texts.of(options[option]).repeat(len(values)), type_)]
        values, type_ = TIME_FUNCTIONS["format_time"](operands, SYMBOL)[0], SYMBOL
    texts: Texts = _write_each([(values, type_)], SYMBOL)[0]
    return texts


def _write_value(type_: Type, stored: Any) -> str:
    value = native.to_python(stored, type_)
    match type_.logical_kind:
        case Kind.SYMBOL:
            text = value
        case Kind.BINARY:
            text = b64encode(value).decode()
        case Kind.FLOAT | Kind.FLOAT32 if isfinite(value):
            return show_value(stored, type_)
        case Kind.TIMESTAMP | Kind.TIMESTAMP_NTZ:
            moment = value.replace(tzinfo=None).isoformat("T", "milliseconds")
            text = moment if type_.is_timestamp_ntz else f"{moment}Z"
        case Kind.BOOL:
            return "true" if value else "false"
        case Kind.NUMBER | Kind.UNSIGNED | Kind.DECIMAL:
            return str(value)
        case _:
            text = show_value(stored, type_)
    return json_texts.write_json(text, json_texts.SPECIAL)


_write_each = each_typed_row(_write_value)


def _write(operands: list[Operand], type_: Type) -> Result:  # noqa: ARG001
    options = json.loads(operands[1][0][0]) if len(operands) > 1 and len(operands[0][0]) else {}
    return _written(*operands[0], options), []


JSON_VALUE_FUNCTIONS: Mapping[str, Kernel] = {
    "from_json": _read,
    "to_json": _write,
}
"""Functors of texts of JSON for values of all types."""
