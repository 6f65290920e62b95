"""Values as text and as JSON, and back: the reference for the vectorised paths of the engines.

| type      | text written                    | also read                                       |
|-----------|---------------------------------|-------------------------------------------------|
| symbol    | itself                          |                                                 |
| number    | `-7`                            | `+7`, `007`, `0x1f`, `0b101`                    |
| unsigned  | `7`                             | the same                                        |
| float     | `1.0`, `1e+16`, `nan`, `-inf`   | `1e5`, `.5`, `1.`, `+1.0`, `Infinity`           |
| float32   | the same, of the fewest digits  |                                                 |
|           | that mean it: `0.1`             |                                                 |
| decimal   | `12.50` (all digits of scale)   | fewer digits, more zeros                        |
| bool      | `true`, `false`                 |                                                 |
| date      | `2026-11-15`                    |                                                 |
| timestamp | `2026-11-15T08:00:00Z`, with    | a space for the `T`, one to six digits after    |
|           | `.ffffff` where not zero        | the point, `+02:00`; without a zone it is UTC   |
| timestamp_ntz | the same without `Z`        | the same, without a zone                        |
| binary    | `617A`, hexadecimal             | `617a`                                          |
| duration, | `INTERVAL '1-3' YEAR TO MONTH`, | the same without words: `1-3`                   |
| months    | with the fields of the type     |                                                 |
| time_of_day | `08:05:00`, with `.ffffff` where not zero | one to six digits after the point |
| [T]       | `[1,null,"a"]`, as JSON         |                                                 |
| {a: T}    | `{"a":1,"b":null}`, as JSON     | fields in another order, without those of null  |
| {K -> V}  | `{"a":1,"b":null}`, as JSON,    | keys in another order                           |
|           | with keys as their texts        |                                                 |

Null is the empty text in a nullable column. In JSON binary values are in Base64, as Spark has them.

Values of logical types are stored, compared and computed as those of another kind, so that each of
these is implemented once. Arrow tables, Python and the terms of rules have the values themselves;
the dictionary and the queries of DuckDB and Spark have the stored ones.

| type   | stored as | the stored value                                                   |
|--------|-----------|--------------------------------------------------------------------|
| timestamp_ntz | timestamp | the moment at which clocks in UTC show it |
| float32 | float   | itself                                                             |
| binary | symbol    | its bytes as hexadecimal digits, which have the order of the bytes |
| duration | number  | its microseconds                                                   |
| months | number    | the number of months, which Arrow and Python have, too             |
| time_of_day | number | its microseconds                                               |
| [T], {a: T}, {K -> V} | symbol | a text that has an order (`core/records/arrays.py`)     |
"""

import base64
import binascii
import json
import math
import re
import struct
from array import array
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, assert_never

from corollary.core.logic import Value
from corollary.core.records.record_text import ScalarText, parse_record
from corollary.core.records.record_values import record_from_python, record_to_json
from corollary.core.spark_times import format_interval, read_interval, unit_of
from corollary.core.types import DATE, NUMBER_RANGE, UNSIGNED_RANGE, Kind, RecordType, Type

QUOTED_MAX_CHARS = 40
"""The maximum number of characters of a value in a message."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_INTEGER = re.compile(r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|([0-9]+))")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SPECIAL_FLOAT = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE | re.ASCII)
_DECIMAL = re.compile(r"([+-]?)(?=\.?[0-9])([0-9]*)(?:\.([0-9]*))?")
_HEXADECIMAL = re.compile(r"(?:[0-9a-fA-F]{2})*")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_CLOCK = re.compile(r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?")
_TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]((?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2})"
    r"(?:\.([0-9]{1,6}))?(Z|[+-][0-9]{2}:[0-9]{2})?"
)


def format_value(value: Value, type_: Type) -> str:
    """Return the text of a value of the type; null is the empty text.

    >>> format_value(Decimal("12.5"), Type(Kind.DECIMAL, precision=12, scale=2))
    '12.50'
    """
    if value is None:
        return ""
    match type_.logical_kind:
        case Kind.SYMBOL | Kind.NUMBER | Kind.UNSIGNED | Kind.RECORD:
            return str(value)
        case Kind.FLOAT:
            assert isinstance(value, int | float | Decimal)
            return repr(canonical_float(float(value)))
        case Kind.FLOAT32:
            assert isinstance(value, int | float | Decimal)
            return repr(canonical_float(shortest_float32(float(value))))
        case Kind.DECIMAL:
            assert isinstance(value, int | Decimal)
            return f"{Decimal(value) or Decimal(0):.{type_.scale}f}"
        case Kind.BOOL:
            return "true" if value else "false"
        case Kind.DATE:
            assert isinstance(value, date)
            return value.isoformat()
        case Kind.TIMESTAMP:
            assert isinstance(value, datetime)
            return value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
        case Kind.TIMESTAMP_NTZ | Kind.TIME_OF_DAY:
            assert isinstance(value, datetime | time)
            return value.isoformat()
        case Kind.BINARY:
            assert isinstance(value, bytes)
            return value.hex().upper()
        case Kind.DURATION | Kind.MONTHS:
            return format_interval(to_stored(value), type_.fields)
        case Kind.ARRAY | Kind.STRUCT | Kind.MAP:
            shown = value_to_json(value, type_)
            return json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
        case _:
            assert_never(type_.logical_kind)


def parse_value(text: str, type_: Type) -> Value:
    """Return the value of a text; the empty text is null in a nullable type.

    >>> parse_value("0x1f", Type(Kind.NUMBER))
    31

    Raises:
        ValueError: the text is not a value of the type; the message is for users.
    """
    if not text and type_.nullable:
        return None
    match type_.logical_kind:
        case Kind.SYMBOL | Kind.RECORD:
            return text if type_.record is None else _record(text, type_.record)
        case Kind.NUMBER:
            return _integer(text, type_, NUMBER_RANGE)
        case Kind.UNSIGNED:
            return _integer(text, type_, UNSIGNED_RANGE)
        case Kind.FLOAT | Kind.FLOAT32:
            return _float(text, type_)
        case Kind.DECIMAL:
            return _decimal(text, type_)
        case Kind.BOOL:
            if text not in {"true", "false"}:
                raise ValueError(_no_value(text, type_))
            return text == "true"
        case Kind.DATE:
            return parse_date(text)
        case Kind.TIMESTAMP:
            return _timestamp(text, type_)
        case Kind.TIMESTAMP_NTZ:
            if text.endswith("Z") or text[-6:-5] in ("+", "-"):
                raise ValueError(_no_value(text, type_))
            return _timestamp(text, type_).replace(tzinfo=None)
        case Kind.TIME_OF_DAY:
            return _time_of_day(text, type_)
        case Kind.BINARY:
            if not _HEXADECIMAL.fullmatch(text):
                raise ValueError(_no_value(text, type_))
            return bytes.fromhex(text)
        case Kind.DURATION | Kind.MONTHS:
            return _interval(text, type_)
        case Kind.ARRAY | Kind.STRUCT | Kind.MAP:
            return _nested(text, type_)
        case _:
            assert_never(type_.logical_kind)


SCALARS = ScalarText(format_value, parse_value)
"""How the fields of records are written and read."""


def canonical_float(value: float) -> float:
    """Return the one representative of the floats that we hold equal: 0.0 for -0.0, one NaN."""
    # Adding 0.0 turns -0.0 into 0.0 and changes no other value.
    return math.nan if math.isnan(value) else value + 0.0


def to_float32(value: float) -> float:
    """Return the nearest float of 32 bits, which is infinite for one that is too large.

    >>> to_float32(0.1), to_float32(1e39)
    (0.10000000149011612, inf)
    """
    return array("f", [value])[0]


def read_float32(text: str) -> float:
    """Return the float of 32 bits that is nearest to the number of a text.

    >>> text = "1.00000017881393432617187499"  # less than half way between two of them
    >>> read_float32(text), to_float32(float(text))
    (1.0000001192092896, 1.000000238418579)
    """
    value = float(text)
    if not math.isfinite(value):
        return value
    # Of the two floats around the number, the one whose last bit is set: rounded once more, it
    # becomes what the number would.
    exact, is_odd = Decimal(text), struct.pack("<d", value)[0] & 1
    if exact != Decimal(value) and not is_odd:
        value = math.nextafter(value, math.inf if exact > Decimal(value) else -math.inf)
    return to_float32(value)


def shortest_float32(value: float) -> float:
    """Return the float whose digits are the fewest that mean one of 32 bits, as Java has them.

    >>> shortest_float32(to_float32(0.1)), shortest_float32(to_float32(1e-45))
    (0.1, 1.4e-45)
    """
    from numpy import float32  # commands that show no values go without NumPy

    two_digits = float(f"{value:.1e}")
    return two_digits if to_float32(two_digits) == value else float(str(float32(value)))


def decimal_value(integer: int, scale: int) -> Decimal:
    """Return the decimal of some scale with an integer behind it.

    >>> decimal_value(-1250, 2)
    Decimal('-12.50')
    """
    # `scaleb` would round to the digits of the context.
    return Decimal(f"{integer}e-{scale}")


def unscaled_integer(value: int | Decimal, scale: int) -> int:
    """Return the integer behind a decimal that has no more digits after the point than the scale.

    >>> unscaled_integer(Decimal("-12.5"), 2)
    -1250
    """
    numerator, denominator = value.as_integer_ratio()
    return int(numerator * 10**scale // denominator)


def is_decimal(value: Decimal, type_: Type) -> bool:
    """Whether a type has a value, without rounding.

    >>> money = Type(Kind.DECIMAL, precision=5, scale=2)
    >>> [is_decimal(Decimal(each), money) for each in ("1.500", "1.505", "1e3", "nan")]
    [True, False, False, False]
    """
    if not value.is_finite():
        return False
    _, digits, exponent = value.as_tuple()
    zeros = next((at for at, digit in enumerate(reversed(digits)) if digit), None)
    if zeros is None:
        return True
    assert isinstance(exponent, int)
    has_fraction = exponent + zeros >= -type_.scale
    return has_fraction and value.adjusted() < type_.precision - type_.scale


def format_row(row: Iterable[Value], types: Iterable[Type]) -> str:
    """Return a tuple as messages show it.

    >>> format_row((1, None), (Type(Kind.NUMBER), Type(Kind.SYMBOL, nullable=True)))
    '(`1`, null)'
    """
    values = (
        "null" if value is None else quote_text(format_value(value, type_))
        for value, type_ in zip(row, types, strict=True)
    )
    return f"({', '.join(values)})"


def comparable_row(row: Iterable[Value]) -> tuple[tuple[str, str], ...]:
    """Return a tuple in which NaN equals itself, and 1 is not `true`.

    >>> comparable_row((1, float("nan"))) == comparable_row((1, float("nan")))
    True
    """
    return tuple((type(value).__name__, repr(value)) for value in row)


def is_encodable(text: str) -> bool:
    r"""Whether a string can be stored and written: it is UTF-8 and has no NUL character.

    >>> is_encodable("\N{GRINNING FACE}"), is_encodable("\ud83d"), is_encodable("\0")
    (True, False, False)
    """
    return "\0" not in text and (text.isascii() or _SURROGATE.search(text) is None)


def is_value(value: Any, type_: Type) -> bool:
    """Whether a Python value is one of a type, as it is: nothing is rounded or converted."""
    if value is None:
        return type_.nullable
    if isinstance(value, bool) and not type_.is_bool:
        return False
    if isinstance(value, datetime) and type_.is_date:
        return False
    if not isinstance(value, type_.spec.python):
        return False
    match type_.logical_kind:
        case Kind.SYMBOL:
            return is_encodable(value)
        case Kind.NUMBER | Kind.UNSIGNED:
            low, high = type_.spec.bounds
            return low <= int(value) <= high
        case Kind.DURATION | Kind.MONTHS:
            low, high = type_.spec.bounds
            amount = to_stored(value)
            return low <= amount <= high and not amount % unit_of(type_.fields)
        case Kind.DECIMAL:
            return is_decimal(Decimal(value), type_)
        case Kind.FLOAT32:  # one that is no float of 32 bits is rounded
            return math.isfinite(to_float32(value)) or not math.isfinite(value)
        case Kind.TIMESTAMP:
            return getattr(value, "tzinfo", None) is not None
        case Kind.TIMESTAMP_NTZ | Kind.TIME_OF_DAY:
            return getattr(value, "tzinfo", None) is None
        case Kind.ARRAY:
            assert type_.element is not None
            return all(is_value(each, type_.element) for each in value)
        case Kind.MAP:
            return _is_map(value, type_)
        case Kind.STRUCT:
            names = [name for name, _ in type_.members]
            is_fitting = set(value) <= {*names} if isinstance(value, dict) else True
            parts = field_values(value, names)
            is_fitting = is_fitting and len(parts) == len(names)
            return is_fitting and all(
                is_value(each, type_) for each, (_, type_) in zip(parts, type_.members, strict=True)
            )
        case _:
            return True


def _is_map(value: Any, type_: Type) -> bool:
    (_, key), (_, held) = type_.members
    pairs = pairs_of(value)
    return all(
        isinstance(pair, tuple | list)
        and len(pair) == 2
        and pair[0] is not None
        and is_value(pair[0], key)
        and is_value(pair[1], held)
        for pair in pairs
    ) and not has_key_twice(pairs)


def pairs_of(value: Any) -> Sequence[Any]:
    """Return the entries of a map, which may be a dictionary."""
    return list(value.items()) if isinstance(value, dict) else value


def has_key_twice(pairs: Sequence[Any]) -> bool:
    """Whether entries of a map have one key twice."""
    return len({repr(key) for key, _ in pairs}) < len(pairs)


def field_values(value: Any, names: Sequence[str]) -> Sequence[Any]:
    """Return the values of the fields of a struct; those that a dictionary has not are null.

    >>> field_values({"b": 2}, ["a", "b"]), field_values((1, 2), ["a", "b"])
    ([None, 2], (1, 2))
    """
    return [value.get(name) for name in names] if isinstance(value, dict) else value


def to_stored(value: Any) -> Any:
    """Return a value of Python as it is stored.

    >>> to_stored(b"az"), from_stored("617A", Type(Kind.BINARY))
    ('617A', b'az')
    """
    if isinstance(value, datetime):
        return value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    if isinstance(value, time):
        value = datetime.combine(date.min, value) - datetime.min  # noqa: DTZ901 - of no zone
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    return value.hex().upper() if isinstance(value, bytes) else value


def from_stored(value: Any, type_: Type) -> Any:
    """Return a stored value as Python has it."""
    if value is None or type_.logical is None:
        return value
    match type_.logical:
        case Kind.BINARY:
            return bytes.fromhex(value)
        case Kind.TIMESTAMP_NTZ:
            return value.replace(tzinfo=None)
        case Kind.DURATION:
            return timedelta(microseconds=value)
        case Kind.TIME_OF_DAY:
            return (datetime.min + timedelta(microseconds=value)).time()  # noqa: DTZ901 - of no zone
        case _:
            return value


def quote_text(text: str) -> str:
    r"""Quote a text for a message: in backquotes, clipped, and printable.

    >>> quote_text("a" * 50) == "`" + "a" * 40 + "…`", quote_text("a\0")
    (True, '`a\\x00`')
    """
    clipped = text if len(text) <= QUOTED_MAX_CHARS else text[:QUOTED_MAX_CHARS] + "…"
    printable = (c if c.isprintable() else ascii(c)[1:-1] for c in clipped)
    return f"`{''.join(printable)}`"


def _no_value(text: str, type_: Type) -> str:
    subject = quote_text(text) if text else "an empty field"
    article = "an" if type_.is_unsigned else "a"
    return f"{subject} is not {article} {type_.with_null(False)}"


def _out_of_range(text: str, type_: Type) -> str:
    return f"{quote_text(text)} is out of range for {type_.with_null(False)}"


def _record(text: str, record: RecordType) -> str:
    try:
        return parse_record(text, record, SCALARS)
    except ValueError as error:
        raise ValueError(f"{quote_text(text) if text else 'an empty field'} {error}") from None


def _nested(text: str, type_: Type) -> Value:
    try:
        return value_from_json(json.loads(text), type_)
    except json.JSONDecodeError:
        raise ValueError(_no_value(text, type_)) from None


def _integer(text: str, type_: Type, bounds: tuple[int, int]) -> int:
    found = _INTEGER.fullmatch(text)
    if found is None:
        raise ValueError(_no_value(text, type_))
    sign, hexadecimal, binary, plain = found.groups()
    digits, base = (hexadecimal, 16) if hexadecimal else (binary, 2) if binary else (plain, 10)
    digits = digits.lstrip("0") or "0"
    # No 64-bit value has more digits; converting a text of megabytes would take long.
    value = int(sign + digits, base) if len(digits) <= 64 else 2**64
    if not bounds[0] <= value <= bounds[1]:
        raise ValueError(_out_of_range(text, type_))
    return value


def _float(text: str, type_: Type) -> float:
    if _SPECIAL_FLOAT.fullmatch(text):
        return canonical_float(float(text))
    if not _FLOAT.fullmatch(text):
        raise ValueError(_no_value(text, type_))
    value = read_float32(text) if type_.is_float32 else float(text)
    if math.isinf(value):
        raise ValueError(_out_of_range(text, type_))
    return canonical_float(value)


def _decimal(text: str, type_: Type) -> Decimal:
    found = _DECIMAL.fullmatch(text)
    if found is None:
        raise ValueError(_no_value(text, type_))
    sign, whole, fraction = found[1], found[2].lstrip("0"), (found[3] or "").rstrip("0")
    if len(fraction) > type_.scale:
        raise ValueError(
            f"{quote_text(text)} has more digits after the point than "
            f"{type_.with_null(False)} holds"
        )
    if len(whole) > type_.precision - type_.scale:
        raise ValueError(_out_of_range(text, type_))
    return decimal_value(int(f"{sign}0{whole}{fraction.ljust(type_.scale, '0')}"), type_.scale)


def parse_date(text: str) -> date:
    """Return the date of a text such as `2026-11-15`."""
    if not _DATE.fullmatch(text):
        raise ValueError(_no_value(text, DATE))
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{quote_text(text)} is not a date of the calendar") from None


def iso_moment(text: str) -> datetime:
    """Return the point in time of a text in ISO 8601, in UTC, as it is without an offset.

    >>> iso_moment("2026-11-15 09:00+01:00")
    datetime.datetime(2026, 11, 15, 8, 0, tzinfo=datetime.timezone.utc)
    """
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _timestamp(text: str, type_: Type) -> datetime:
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        raise ValueError(_no_value(text, type_))
    day, time, fraction, zone = found.groups(default="")
    try:
        return iso_moment(f"{day}T{time}.{fraction:0<6}{zone}")
    except (ValueError, OverflowError):
        raise ValueError(f"{quote_text(text)} is not a time of the calendar") from None


def _time_of_day(text: str, type_: Type) -> time:
    if not _CLOCK.fullmatch(text):
        raise ValueError(_no_value(text, type_))
    return time.fromisoformat(text)


def _interval(text: str, type_: Type) -> Value:
    try:
        return from_stored(read_interval(text, type_.fields), type_)  # type: ignore[no-any-return]
    except ValueError:
        raise ValueError(_no_value(text, type_)) from None
    except OverflowError:
        raise ValueError(_out_of_range(text, type_)) from None


def parse_base64(text: str) -> bytes:
    """Return the bytes of a text in Base64, in which JSON has them."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"{quote_text(text)} is not a binary value in Base64") from None


def value_to_json(value: Value, type_: Type) -> Any:
    """Return a value for JSON: numbers, booleans and null as such, records as arrays and objects.

    All others are text.

    >>> (
    ...     value_to_json(Decimal("12.5"), Type(Kind.DECIMAL, precision=12, scale=2)),
    ...     value_to_json(7, Type(Kind.NUMBER)),
    ... )
    ('12.50', 7)
    """
    if isinstance(value, str) and type_.record is not None:
        return record_to_json(value, type_.record, SCALARS, value_to_json)
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, tuple | list) and type_.element is not None:
        return [value_to_json(each, type_.element) for each in value]
    if type_.is_struct:
        parts = field_values(value, [name for name, _ in type_.members])
        named = zip(type_.members, parts, strict=True)
        return {name: value_to_json(each, inner) for (name, inner), each in named}
    if type_.is_map:
        (_, kind), (_, held) = type_.members
        return {format_value(key, kind): value_to_json(x, held) for key, x in pairs_of(value)}
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if type_.is_float32 and isinstance(value, float):
        value = shortest_float32(value)
    is_number = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    return value if is_number and not type_.is_interval else format_value(value, type_)


def value_from_json(value: Any, type_: Type) -> Value:
    """Return the value of the JSON that `value_to_json` makes.

    >>> value_from_json("2026-11-15", Type(Kind.DATE))
    datetime.date(2026, 11, 15)
    """
    if type_.record is not None:
        return record_from_python(value, type_.record, SCALARS, value_from_json)
    if isinstance(value, str) and type_.is_binary:
        return parse_base64(value)
    if isinstance(value, list) and type_.element is not None:
        element = type_.element
        return tuple(value_from_json(each, element) for each in value)
    if isinstance(value, dict) and type_.is_map:
        (_, kind), (_, held) = type_.members
        pairs = [(parse_value(key, kind.with_null(False)), x) for key, x in value.items()]
        if not has_key_twice(pairs):
            return tuple((key, value_from_json(x, held)) for key, x in pairs)
    if isinstance(value, list | dict) and type_.is_struct:
        parts = field_values(value, [name for name, _ in type_.members])
        if len(parts) == len(type_.members):
            named = zip(type_.members, parts, strict=True)
            return tuple(value_from_json(each, inner) for (_, inner), each in named)
    if isinstance(value, str) and not type_.is_symbol:
        return parse_value(value, type_)
    if type_.kind is Kind.FLOAT and value is not None:  # JSON has 1 for 1.0
        return to_float32(value) if type_.is_float32 else float(value)
    found: Value = value
    return found
