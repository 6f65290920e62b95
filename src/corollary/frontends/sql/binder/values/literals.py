"""Literals: numbers, texts, dates, timestamps; and values that are given for parameters."""

import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite

from sqlglot import exp

from corollary.core.logic import Value
from corollary.core.spark_times import BLANKS, read_day, read_local, read_moment, read_time_of_day
from corollary.core.types import (
    BINARY,
    BOOL,
    DATE,
    DECIMAL_MAX_DIGITS,
    DURATION,
    FLOAT,
    NUMBER,
    NUMBER_RANGE,
    SYMBOL,
    TIME_OF_DAY,
    TIMESTAMP,
    Kind,
    Type,
    decimal,
)
from corollary.core.values import is_encodable, is_value, read_float32
from corollary.frontends.sql.binder.session import UNTYPED, BindingSession
from corollary.frontends.sql.query_tree import ConstantValue, Expression
from corollary.source import Span

_NUMBER = re.compile(r"[0-9]+|(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SIGNED = re.compile(f"[+-]?(?:{_NUMBER.pattern})")


def number_literal(text: str, node: exp.Expr, session: BindingSession) -> ConstantValue:
    """Return the value of `7`, `1.5` (a decimal) or `1e3` (a double)."""
    span = session.span(node)
    if _NUMBER.fullmatch(text) is None or len(text) > 400:
        raise session.error(
            "C1309", f"`{text[:40]}` is not a number.", node, "write digits, as in `1.5`"
        )
    if "e" in text.lower():
        return double_literal(text, node, session)
    if "." not in text:
        value = int(text)
        if value <= NUMBER_RANGE[1]:
            return ConstantValue(value, NUMBER, span)
    return decimal_literal(text, node, session)


def double_literal(
    text: str, node: exp.Expr, session: BindingSession, type_: Type = FLOAT
) -> ConstantValue:
    """Return the value of `1e3`, `2D` or `1.5F`."""
    value = read_float32(text) if type_.is_float32 else float(text)
    if value in (float("inf"), float("-inf")):
        message = f"`{text[:40]}` is out of the range of {type_.spark_name}."
        raise session.error("C1309", message, node, "write a smaller exponent")
    return ConstantValue(value, type_, session.span(node))


def decimal_literal(text: str, node: exp.Expr, session: BindingSession) -> ConstantValue:
    """Return the value of `1.50`, a decimal of three digits."""
    found = _decimal_value(Decimal(text), session.span(node))
    if found is None:
        message = f"`{text[:50]}` has more than {DECIMAL_MAX_DIGITS} digits."
        raise session.error(
            "C1309", message, node, "write it with an exponent, `1e0`, for a DOUBLE"
        )
    return found


def text_literal(text: str, node: exp.Expr, session: BindingSession) -> ConstantValue:
    """Return a text."""
    if not is_encodable(text):
        message = "The text has a NUL or half a surrogate pair, which are not characters."
        raise session.error("C1309", message, node, "leave the character out")
    return ConstantValue(text, SYMBOL, session.span(node))


def binary_literal(text: str, node: exp.Expr, session: BindingSession) -> ConstantValue:
    """Return the value of `X'617A'`; the first of an odd number of digits is a byte."""
    try:
        value = bytes.fromhex(f"0{text}" if len(text) % 2 else text)
    except ValueError:
        message = f"`{text[:40]}` has other characters than hexadecimal digits."
        raise session.error("C1309", message, node, "write it as in `X'617A'`") from None
    return ConstantValue(value, BINARY, session.span(node))


def read_time(text: str, type_: Type) -> date | time | None:
    """Return the date, timestamp or time of a text in Spark's manner; None if it is none.

    >>> read_time("2026-1-5", DATE), read_time("2026-02-30", DATE), read_time("epoch", DATE)
    (datetime.date(2026, 1, 5), None, datetime.date(1970, 1, 1))
    """
    try:
        if type_.is_time_of_day:
            return read_time_of_day(text)
        read = read_local if type_.is_timestamp_ntz else read_moment
        day = "1970-01-01" if is_epoch(text) else text.strip(BLANKS)
        return (read_day if type_.is_date else read)(day)
    except (ValueError, OverflowError):
        return None


def is_epoch(text: object) -> bool:
    """Whether a literal is the word for the first day, or moment, of 1970."""
    return isinstance(text, str) and text.strip(BLANKS).lower() == "epoch"


def read_value(text: str, type_: Type) -> Value:
    """Return the value of a type that a text stands for; None if it does not.

    >>> read_value(" 7 ", NUMBER), read_value("7.5", NUMBER), read_value("7.5", FLOAT)
    (7, None, 7.5)
    """
    match type_.logical_kind:
        case Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMP_NTZ | Kind.TIME_OF_DAY:
            return read_time(text, type_)
        case Kind.NUMBER if _SIGNED.fullmatch(text.strip()) and text.strip().lstrip("+-").isdigit():
            value = int(text)
            return value if NUMBER_RANGE[0] <= value <= NUMBER_RANGE[1] else None
        case Kind.FLOAT if _SIGNED.fullmatch(text.strip()) and isfinite(float(text)):
            return float(text)
        case _:
            return None


def value_literal(value: object, span: Span | None) -> Expression | None:
    """Return a value of Python as a literal; None if it has no type here."""
    match value:
        case None:
            return ConstantValue(None, UNTYPED, span)
        case bool():
            return ConstantValue(value, BOOL, span)
        case int():
            if NUMBER_RANGE[0] <= value <= NUMBER_RANGE[1]:
                return ConstantValue(value, NUMBER, span)
            digits = len(str(abs(value)))
            if digits > DECIMAL_MAX_DIGITS:
                return None
            return ConstantValue(Decimal(value), decimal(digits, 0), span)
        case float():
            return ConstantValue(value, FLOAT, span)
        case Decimal():
            return _decimal_value(value, span)
        case str():
            return ConstantValue(value, SYMBOL, span) if is_encodable(value) else None
        case bytes():
            return ConstantValue(value, BINARY, span)
        case datetime():
            at = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
            return ConstantValue(at.astimezone(UTC), TIMESTAMP, span)
        case date():
            return ConstantValue(value, DATE, span)
        case time() if value.tzinfo is None:
            return ConstantValue(value, TIME_OF_DAY, span)
        case timedelta():
            return ConstantValue(value, DURATION, span) if is_value(value, DURATION) else None
        case _:
            return None


def _decimal_value(value: Decimal, span: Span | None) -> ConstantValue | None:
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or value.adjusted() > DECIMAL_MAX_DIGITS:
        return None
    scale = max(0, -exponent)
    if scale > DECIMAL_MAX_DIGITS:
        return None
    plain = Decimal(int(value)) if exponent > 0 else value
    precision = max(len("".join(map(str, plain.as_tuple().digits)).lstrip("0")), scale, 1)
    if precision > DECIMAL_MAX_DIGITS:
        return None
    return ConstantValue(plain, decimal(precision, scale), span)
