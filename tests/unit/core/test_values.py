"""Texts of values: what is written is read back, and what is no value is refused in a sentence."""

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corollary.core.logic import Value
from corollary.core.types import (
    BOOL,
    DATE,
    FLOAT,
    NUMBER,
    SYMBOL,
    TIMESTAMP,
    UNSIGNED,
    Type,
    decimal,
)
from corollary.core.values import format_value, parse_value, quote_text
from support.generators.values import is_same, values

MONEY = decimal(12, 2)
TYPES = (
    SYMBOL,
    NUMBER,
    UNSIGNED,
    FLOAT,
    MONEY,
    decimal(18, 10),
    decimal(38, 10),
    decimal(3, 0),
    BOOL,
    DATE,
)


@given(st.data(), st.sampled_from((*TYPES, TIMESTAMP)))
def test_what_is_written_is_read_back(data: st.DataObject, type_: Type) -> None:
    value = data.draw(values(type_))
    read = parse_value(format_value(value, type_), type_)
    if isinstance(value, float) and math.isnan(value):
        assert is_same(read, math.nan)
    elif isinstance(value, float):
        assert is_same(read, value + 0.0)
    elif isinstance(value, Decimal):
        assert is_same(read, value or Decimal(0).scaleb(-type_.scale))
    else:
        assert is_same(read, value)


@pytest.mark.parametrize(
    ("value", "type_", "text"),
    [
        ("a b", SYMBOL, "a b"),
        (-7, NUMBER, "-7"),
        (1.0, FLOAT, "1.0"),
        (-0.0, FLOAT, "0.0"),
        (1e16, FLOAT, "1e+16"),
        (math.nan, FLOAT, "nan"),
        (-math.inf, FLOAT, "-inf"),
        (Decimal("12.5"), MONEY, "12.50"),
        (Decimal("-0.00"), MONEY, "0.00"),
        (Decimal("1E-10"), decimal(18, 10), "0.0000000001"),
        (True, BOOL, "true"),
        (date(26, 1, 2), DATE, "0026-01-02"),
        (datetime(2026, 11, 15, 8, tzinfo=UTC), TIMESTAMP, "2026-11-15T08:00:00Z"),
        (datetime(2026, 11, 15, 8, 0, 0, 5, UTC), TIMESTAMP, "2026-11-15T08:00:00.000005Z"),
        (
            datetime(2026, 11, 15, 8, tzinfo=timezone(timedelta(hours=2))),
            TIMESTAMP,
            "2026-11-15T06:00:00Z",
        ),
        (None, NUMBER.with_null(True), ""),
    ],
)
def test_text_of(value: Value, type_: Type, text: str) -> None:
    assert format_value(value, type_) == text


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        ("+7", NUMBER, 7),
        ("007", NUMBER, 7),
        ("0x1F", NUMBER, 31),
        ("-0b101", NUMBER, -5),
        ("-9223372036854775808", NUMBER, -(2**63)),
        ("0xffffffffffffffff", UNSIGNED, 2**64 - 1),
        ("1e5", FLOAT, 1e5),
        (".5", FLOAT, 0.5),
        ("5.", FLOAT, 5.0),
        ("-0.0", FLOAT, 0.0),
        ("NaN", FLOAT, math.nan),
        ("-nan", FLOAT, math.nan),
        ("-Infinity", FLOAT, -math.inf),
        ("1e-999", FLOAT, 0.0),
        ("12.5000", MONEY, Decimal("12.50")),
        ("-.5", MONEY, Decimal("-0.50")),
        ("-0", MONEY, Decimal("0.00")),
        ("9999999999.99", MONEY, Decimal("9999999999.99")),
        ("2026-11-15 08:00:00", TIMESTAMP, datetime(2026, 11, 15, 8, tzinfo=UTC)),
        ("2026-11-15T08:00:00.5+02:00", TIMESTAMP, datetime(2026, 11, 15, 6, 0, 0, 500000, UTC)),
        ("", SYMBOL, ""),
        ("", SYMBOL.with_null(True), None),
        ("", DATE.with_null(True), None),
    ],
)
def test_value_of(text: str, type_: Type, value: Value) -> None:
    assert is_same(parse_value(text, type_), value)


@pytest.mark.parametrize(
    ("text", "type_", "message"),
    [
        ("", NUMBER, "an empty field is not a number"),
        ("abc", NUMBER, "`abc` is not a number"),
        (" 1", NUMBER, "` 1` is not a number"),
        ("1_000", NUMBER, "`1_000` is not a number"),
        ("٣", NUMBER, "`٣` is not a number"),
        ("1.0", NUMBER, "`1.0` is not a number"),
        ("9223372036854775808", NUMBER, "`9223372036854775808` is out of range for number"),
        ("9" * 5000, NUMBER, f"`{'9' * 40}…` is out of range for number"),
        ("-1", UNSIGNED, "`-1` is out of range for unsigned"),
        ("x", UNSIGNED, "`x` is not an unsigned"),
        ("1e999", FLOAT, "`1e999` is out of range for float"),
        ("1,5", FLOAT, "`1,5` is not a float"),
        ("0x10", FLOAT, "`0x10` is not a float"),
        ("12.345", MONEY, "`12.345` has more digits after the point than decimal(12,2) holds"),
        ("12345678901.00", MONEY, "`12345678901.00` is out of range for decimal(12,2)"),
        ("1e2", MONEY, "`1e2` is not a decimal(12,2)"),
        (".", MONEY, "`.` is not a decimal(12,2)"),
        ("True", BOOL, "`True` is not a bool"),
        ("2026-02-30", DATE, "`2026-02-30` is not a date of the calendar"),
        ("2026-2-3", DATE, "`2026-2-3` is not a date"),
        ("20260203", DATE, "`20260203` is not a date"),
        ("2026-11-15", TIMESTAMP, "`2026-11-15` is not a timestamp"),
        ("2026-11-15T24:00:00Z", TIMESTAMP, "`2026-11-15T24:00:00Z` is not a timestamp"),
        ("2026-11-15T08:00:60Z", TIMESTAMP, "`2026-11-15T08:00:60Z` is not a time of the calendar"),
        (
            "0001-01-01T00:00:00+01:00",
            TIMESTAMP,
            "`0001-01-01T00:00:00+01:00` is not a time of the calendar",
        ),
    ],
)
def test_no_value(text: str, type_: Type, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_value(text, type_)
    assert str(caught.value) == message


@given(st.text(), st.sampled_from(TYPES))
def test_any_text_is_a_value_or_refused(text: str, type_: Type) -> None:
    try:
        value = parse_value(text, type_)
    except ValueError:
        return
    assert is_same(parse_value(format_value(value, type_), type_), value)


def test_shown_is_short_and_printable() -> None:
    assert quote_text("\x1b[31m\n") == "`\\x1b[31m\\n`"
    assert len(quote_text("é" * 10_000)) == 43
