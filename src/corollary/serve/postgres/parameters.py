"""The values that clients bind to parameters, from text and binary."""

import re
import struct
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from corollary.core.values import iso_moment
from corollary.serve.postgres import wire_types as wire
from corollary.serve.postgres.encoding import NUMERIC_BASE, NUMERIC_DIGITS, NUMERIC_NEGATIVE
from corollary.serve.postgres.messages import BINARY_FORMAT, FieldReader, decode_text, format_of
from corollary.serve.postgres.problems import PgError, not_supported

Scalar = bool | int | float | Decimal | str | bytes | date | datetime | time | timedelta
ParameterValue = Scalar | list[Scalar | None] | None

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_TEXTS = frozenset(
    {
        each.oid
        for each in (
            *(wire.TEXT, wire.VARCHAR, wire.BPCHAR, wire.NAME, wire.CHAR, wire.UNKNOWN),
            wire.JSON,
        )
    }
)
TRUE_TEXTS = frozenset({"t", "true", "y", "yes", "on", "1"})
FALSE_TEXTS = frozenset({"f", "false", "n", "no", "off", "0"})
_INTEGERS = {
    wire.INT2.oid: "!h",
    wire.INT4.oid: "!i",
    wire.INT8.oid: "!q",
    wire.OID.oid: "!I",
    wire.REGCLASS.oid: "!I",
}
_FLOATS = {wire.FLOAT4.oid: "!f", wire.FLOAT8.oid: "!d"}
_SHORT_OFFSET = re.compile(r"[+-]\d\d$")
_LIST_ITEM = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|([^,{}"\\]*))\s*(,|$)', re.DOTALL)


def decode_parameters(
    values: Sequence[bytes | None], oids: Sequence[int], formats: Sequence[int]
) -> list[ParameterValue]:
    """Return the values of all parameters of a statement.

    Raises:
        PgError: one is not a value of its type.
    """
    return [
        decode_parameter(value, oid, format_of(formats, at))
        for at, (value, oid) in enumerate(zip(values, oids, strict=True))
    ]


def decode_parameter(data: bytes | None, oid: int, format_: int) -> ParameterValue:
    """Return the value of a parameter.

    Raises:
        PgError: it is not a value of its type, or the type is not known.
    """
    if data is None:
        return None
    element = wire.BY_ARRAY.get(oid)
    if element is not None:
        if format_ == BINARY_FORMAT:
            return _list_of_binary(data)
        return _list_of_text(decode_text(data), element)
    if oid not in wire.BY_OID:
        raise not_supported(
            f"Parameters of the type with the number {oid} are not supported.",
            "pass numbers, texts, dates, timestamps or booleans",
        )
    type_, is_binary = wire.BY_OID[oid], format_ == BINARY_FORMAT
    if oid in _TEXTS:
        return decode_text(data)
    if oid not in _READERS:
        how = " in binary" if is_binary else ""
        raise not_supported(f"Parameters of type {type_.sql_name} are not supported{how}.")
    of_text, of_binary = _READERS[oid]
    try:
        return of_binary(data) if is_binary else of_text(decode_text(data).strip())
    except (ValueError, struct.error, InvalidOperation, OverflowError):
        shown = "a binary value" if is_binary else f"`{data[:40].decode('utf-8')}`"
        message = f"The value of a parameter, {shown}, is not of type {type_.sql_name}."
        raise PgError("22P02", message) from None


def _bool(text: str) -> bool:
    if text.lower() not in TRUE_TEXTS | FALSE_TEXTS:
        raise ValueError(text)
    return text.lower() in TRUE_TEXTS


def _integer(form: str) -> Callable[[str], int]:
    def read(text: str) -> int:
        value = int(text)
        struct.pack(form, value)  # checks the range
        return value

    return read


def _bytes(text: str) -> bytes:
    if not text.startswith("\\x"):
        raise not_supported("Parameters of type bytea are not supported.")
    return bytes.fromhex(text[2:])


def _unpack(form: str) -> Callable[[bytes], Any]:
    return lambda data: struct.unpack(form, data)[0]


def _moment(text: str) -> datetime:
    """Return a timestamp; without an offset it is in UTC.

    >>> _moment("2026-01-05 08:00:00+02")
    datetime.datetime(2026, 1, 5, 6, 0, tzinfo=datetime.timezone.utc)
    """
    completed = f"{text}:00" if _SHORT_OFFSET.search(text[10:]) else text
    return iso_moment(completed)


_CLOCK = re.compile(r"([+-]?)(\d+):(\d\d)(?::(\d\d(?:\.\d{1,6})?))?")
_AMOUNT = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*([a-z]+)")
_AMOUNTS = {"day": 86_400, "hour": 3_600, "min": 60, "minute": 60, "sec": 1, "second": 1}


def _duration(text: str) -> timedelta:
    """Return an interval of days and less.

    >>> _duration("1 day -02:00:00"), _duration("0 years 0 mons 0 days 3 hours 0 mins 1.5 secs")
    (datetime.timedelta(seconds=79200), datetime.timedelta(seconds=10801, microseconds=500000))
    """
    found = timedelta()
    for amount, unit in _AMOUNT.findall(_CLOCK.sub("", text.lower())):
        if float(amount):
            found += timedelta(seconds=float(amount) * _duration_unit(unit.removesuffix("s")))
    for sign, hours, minutes, seconds in _CLOCK.findall(text):
        clock = timedelta(hours=int(hours), minutes=int(minutes), seconds=float(seconds or 0))
        found += -clock if sign == "-" else clock
    return found


def _duration_unit(unit: str) -> int:
    if unit not in _AMOUNTS:
        raise not_supported("Intervals of months are not supported as parameters.")
    return _AMOUNTS[unit]


def _duration_of_binary(data: bytes) -> timedelta:
    microseconds, days, months = struct.unpack("!qii", data)
    if months:
        raise not_supported("Intervals of months are not supported as parameters.")
    return timedelta(days=days, microseconds=microseconds)


def _time_of_text(text: str) -> time:
    """Return a time of a day; its zone does not count."""
    return time.fromisoformat(text).replace(tzinfo=None)


def _time_of_binary(data: bytes) -> time:
    return (_EPOCH + timedelta(microseconds=_unpack("!q")(data))).time()


def _numeric_of_binary(data: bytes) -> Decimal:
    """Return a numeric; see `encoding._encode_numerics`."""
    count, weight, sign, scale = struct.unpack_from("!HhHH", data)
    if sign not in (0, NUMERIC_NEGATIVE):
        raise ValueError(sign)  # NaN and the infinities have no decimal here
    groups = struct.unpack(f"!{count}H", data[8:])
    value = 0
    for group in groups:
        value = value * NUMERIC_BASE + group
    exponent = (weight - count + 1) * NUMERIC_DIGITS
    digits = Decimal((sign != 0, tuple(map(int, str(value))), exponent))
    return digits.quantize(Decimal(1).scaleb(-scale)) if scale else digits.quantize(Decimal(1))


_MOMENT = _moment, lambda data: _EPOCH + timedelta(microseconds=_unpack("!q")(data))
_READERS: Mapping[int, tuple[Callable[[str], Scalar], Callable[[bytes], Scalar]]] = {
    **{oid: (_integer(form), _unpack(form)) for oid, form in _INTEGERS.items()},
    **{oid: (float, _unpack(form)) for oid, form in _FLOATS.items()},
    **dict.fromkeys((wire.TIMESTAMP.oid, wire.TIMESTAMPTZ.oid), _MOMENT),
    wire.BOOL.oid: (_bool, _unpack("!?")),
    wire.NUMERIC.oid: (Decimal, _numeric_of_binary),
    wire.DATE.oid: (
        lambda text: date.fromisoformat(text[:10]),
        lambda data: _EPOCH.date() + timedelta(days=_unpack("!i")(data)),
    ),
    wire.BYTEA.oid: (_bytes, bytes),
    wire.TIME.oid: (_time_of_text, _time_of_binary),
    wire.INTERVAL.oid: (_duration, _duration_of_binary),
    wire.UUID.oid: (
        lambda text: str(uuid.UUID(text)),
        lambda data: str(uuid.UUID(bytes=bytes(data))),
    ),
    wire.JSONB.oid: (str, lambda data: decode_text(data[1:])),
}
"""How values are read from text, and from binary; all others are texts."""


# --- lists --------------------------------------------------------------------------------------


def _list_of_text(text: str, element: wire.WireType) -> list[Scalar | None]:
    """Return the elements of `{1,2}`, a list without lists inside."""
    inner = text.strip()
    if not (inner.startswith("{") and inner.endswith("}")):
        raise PgError("22P02", "A list is written as in `{1,2}`.")
    inner = inner[1:-1]
    found: list[Scalar | None] = []
    at = 0
    while not inner.isspace() and inner:
        item = _LIST_ITEM.match(inner, at)
        if item is None:
            raise PgError("22P02", "A list is written as in `{1,2}`, without lists inside.")
        quoted, plain, separator = item.groups()
        if quoted is None and plain.strip().upper() == "NULL":
            found.append(None)
        else:
            value = plain.strip() if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
            decoded = decode_parameter(value.encode(), element.oid, 0)
            assert not isinstance(decoded, list)
            found.append(decoded)
        at = item.end()
        if not separator:
            break
    return found


def _list_of_binary(data: bytes) -> list[Scalar | None]:
    fields = FieldReader(data)
    dimensions, _, oid = fields.int32(), fields.int32(), fields.oid()
    if dimensions == 0:
        return []
    if dimensions != 1:
        raise not_supported("Lists of lists are not supported.")
    count, _ = fields.int32(), fields.int32()
    found: list[Scalar | None] = []
    for _ in range(count):
        value = decode_parameter(fields.sized(), oid, BINARY_FORMAT)
        assert not isinstance(value, list)
        found.append(value)
    return found
