"""Intervals: literals that are added to dates and timestamps; they are no values of their own."""

import calendar
import re
from datetime import date, timedelta

from sqlglot import exp

from corollary.core.types import DATE, TIMESTAMP, TIMESTAMP_NTZ
from corollary.data_class import dataclass
from corollary.frontends.sql.binder.session import BindingSession, type_name
from corollary.frontends.sql.binder.values.conversions import call, convert, integer, is_untyped
from corollary.frontends.sql.binder.values.operators import Site, unfit
from corollary.frontends.sql.query_tree import ConstantValue, Expression

_MONTHS = {"year": 12, "quarter": 3, "month": 1}
_DAYS = {"week": 7, "day": 1}
_MICROSECONDS = {
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1000,
    "microsecond": 1,
}
_SECOND = 1_000_000
_PART = re.compile(r"\s*([+-]?)\s*([0-9]+)(?:\.([0-9]{1,6}))?\s*([A-Za-z]+)")
_NUMBER = re.compile(r"\s*([+-]?)([0-9]+)(?:\.([0-9]{1,6}))?\s*")
_YEAR_TO_MONTH = re.compile(r"\s*([+-]?)([0-9]+)-([0-9]{1,2})\s*")
_DAY_TO_SECOND = re.compile(
    r"\s*([+-]?)(?:([0-9]+)\s+)?([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]{1,6}))?)?\s*"
)


@dataclass(frozen=True, slots=True)
class Interval:
    """Months, days and microseconds; `has_time` if it was written with hours or less."""

    months: int = 0
    days: int = 0
    microseconds: int = 0
    has_time: bool = False

    def __add__(self, other: "Interval") -> "Interval":
        return Interval(
            self.months + other.months,
            self.days + other.days,
            self.microseconds + other.microseconds,
            self.has_time or other.has_time,
        )

    def __neg__(self) -> "Interval":
        return Interval(-self.months, -self.days, -self.microseconds, self.has_time)


def find_interval(node: exp.Expr, session: BindingSession) -> Interval | None:
    """Return the interval that a node is; None if it is none."""
    match node:
        case exp.Paren():
            return find_interval(node.this, session)
        case exp.Neg():
            inner = find_interval(node.this, session)
            return None if inner is None else -inner
        case exp.Add() | exp.Sub():
            right = find_interval(node.args["expression"], session)
            left = None if right is None else find_interval(node.this, session)
            if left is None or right is None:
                return None
            return left + (right if isinstance(node, exp.Add) else -right)
        case exp.Interval():
            return _read(node, session)
        case _:
            return None


def _read(node: exp.Interval, session: BindingSession) -> Interval:
    session.check(node, "this", "unit")
    value, unit = node.this, node.args.get("unit")
    sign = 1
    if isinstance(value, exp.Neg):
        value, sign = value.this, -1
    found = None
    if isinstance(value, exp.Literal):
        if isinstance(unit, exp.IntervalSpan):
            found = _span(value.this, unit.this.name.lower(), unit.args["expression"].name.lower())
        elif unit is None:
            found = _several(value.this)
        else:
            found = _one(value.this, unit.name)
    if found is None:
        message = "This is not an interval that is known here."
        note = "write a literal, such as `INTERVAL 3 DAYS` or `INTERVAL '1-6' YEAR TO MONTH`"
        raise session.error("C1319", message, node, note)
    return found if sign > 0 else -found


def _one(text: str, unit: str) -> Interval | None:
    found = _NUMBER.fullmatch(text)
    if found is None:
        return _several(f"{text} {unit}") if not text.strip()[:1].isalpha() else None
    return _amount(found[1], found[2], found[3], unit)


def _several(text: str) -> Interval | None:
    total, at = Interval(), 0
    text = text.strip().removeprefix("interval ").removeprefix("INTERVAL ")
    while at < len(text):
        part = _PART.match(text, at)
        amount = part and _amount(part[1], part[2], part[3], part[4])
        if part is None or amount is None:
            return None
        total, at = total + amount, part.end()
        if not text[at:].strip():
            break
    return total if text else None


def _amount(sign: str, whole: str, fraction: str | None, unit: str) -> Interval | None:
    """Return a number of units; only seconds have fractions."""
    word = unit.lower().removesuffix("s")
    number = int(whole) * (-1 if sign == "-" else 1)
    if fraction is not None and word != "second":
        return None
    if word in _MONTHS:
        return Interval(months=number * _MONTHS[word])
    if word in _DAYS:
        return Interval(days=number * _DAYS[word])
    if word in _MICROSECONDS:
        rest = int((fraction or "").ljust(6, "0")) * (-1 if sign == "-" else 1)
        return Interval(microseconds=number * _MICROSECONDS[word] + rest, has_time=True)
    return None


def _span(text: str, first: str, last: str) -> Interval | None:
    months = _YEAR_TO_MONTH.fullmatch(text)
    if months and (first, last) == ("year", "month"):
        found = Interval(months=int(months[2]) * 12 + int(months[3]))
        return -found if months[1] == "-" else found
    time = _DAY_TO_SECOND.fullmatch(text)
    if time and first == "day" and last in ("minute", "second") and time[2] is not None:
        seconds = int(time[3]) * 3600 + int(time[4]) * 60 + int(time[5] or 0)
        rest = int((time[6] or "").ljust(6, "0"))
        found = Interval(0, int(time[2]), seconds * _SECOND + rest, True)
        return -found if time[1] == "-" else found
    return None


def moved(value: Expression, interval: Interval, is_minus: bool, site: Site) -> Expression:
    """Return a date or timestamp and an interval together."""
    if value.type.is_timestamp_ntz:
        found = moved(convert(value, TIMESTAMP), interval, is_minus, site)
        return convert(found, TIMESTAMP_NTZ)
    step = -interval if is_minus else interval
    if is_untyped(value):
        value = convert(value, TIMESTAMP)
    if value.type.is_symbol:
        raise unfit(site, value, DATE)
    if not value.type.is_time:
        message = f"An interval cannot be added to {type_name(value.type)}."
        raise site.error("C1319", message, "add it to a date or timestamp")
    if step.microseconds % _SECOND:
        message = "Parts of seconds cannot be added."
        raise site.error("C1319", message, "add whole seconds")
    if step.has_time:
        value = convert(value, TIMESTAMP)
    if isinstance(value, ConstantValue) and isinstance(value.value, date):
        day = _moved_constant(value.value, step)
        if day is not None:
            return ConstantValue(day, value.type, site.span)
    plain = DATE if value.type.is_date else TIMESTAMP
    for functor, amount in (
        ("add_months", step.months),
        ("add_days", step.days),
        ("add_seconds", step.microseconds // _SECOND),
    ):
        if amount:
            value = call(functor, (value, integer(amount)), plain, site.span)
    return value


def _moved_constant(day: date, step: Interval) -> date | None:
    """Return a date or timestamp and an interval together; None outside of the calendar.

    >>> _moved_constant(date(2024, 1, 31), Interval(months=1))
    datetime.date(2024, 2, 29)
    """
    year, month = divmod(day.year * 12 + day.month - 1 + step.months, 12)
    if not date.min.year <= year <= date.max.year:
        return None
    last = calendar.monthrange(year, month + 1)[1]
    try:
        added = timedelta(step.days, microseconds=step.microseconds)
        return day.replace(year, month + 1, min(day.day, last)) + added
    except OverflowError:
        return None
