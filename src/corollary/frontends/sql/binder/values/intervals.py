"""Intervals: their literals and parts, and arithmetic with them and with dates and timestamps.

An interval is computed by its number of months or microseconds, so that all of it is arithmetic of
integers. Those of years and months do not mix with those of days and times.
"""

import calendar
import re
from dataclasses import replace
from datetime import date, timedelta

from sqlglot import exp

from corollary.core import types
from corollary.core.spark_times import SIZES, names_of, read_interval
from corollary.frontends.sql.binder.session import BindingSession, type_name
from corollary.frontends.sql.binder.values.common_types import (
    call,
    fits_bits,
    integer,
    is_untyped,
    sized,
    wider,
)
from corollary.frontends.sql.binder.values.conversions import amount_of, convert, interval_of
from corollary.frontends.sql.binder.values.operators import (
    SIGNS,
    Site,
    aligned,
    arithmetic,
    mismatch,
    negative,
    rounded,
    unfit,
)
from corollary.frontends.sql.query_tree import ConstantValue, Expression, UnknownValue

_UNITS = {
    **{name: (name, 1) for name in SIZES},
    "QUARTER": ("MONTH", 3),
    "WEEK": ("DAY", 7),
    "MILLISECOND": ("SECOND", 1000),
    "MICROSECOND": ("SECOND", 1_000_000),
}
"""For each unit of literals the field that it is of; so many of those make it, or of it these."""

_PART = re.compile(r"\s*([+-]?)\s*([0-9]+)(?:\.([0-9]{1,9}))?\s*([A-Za-z]+)\s*")
_NUMBER = re.compile(r"\s*([+-]?)([0-9]+)(?:\.([0-9]{1,9}))?\s*")

_Amount = tuple[int, types.Type]
"""Months or microseconds, and the type."""


def interval_literal(node: exp.Interval, session: BindingSession) -> ConstantValue:
    """Return the value of `INTERVAL '1' DAY`; several units are a sum of such."""
    session.check(node, "this", "unit")
    value, unit = node.this, node.args.get("unit")
    sign = 1
    if isinstance(value, exp.Neg):
        value, sign = value.this, -1
    found = None
    if isinstance(value, exp.Literal):
        if isinstance(unit, exp.IntervalSpan):
            fields = f"{unit.this.name} TO {unit.args['expression'].name}".upper()
            found = _span(value.this, fields)
        elif unit is None:
            found = _several(value.this)
        else:
            part = _NUMBER.fullmatch(value.this)
            found = part and _one(part[1], part[2], part[3], unit.name)
    constant = None
    if found:
        made = interval_of(integer(sign * found[0]), found[1], session.span(node))
        constant = made if isinstance(made, ConstantValue) else None
    if constant is None:
        message = "This is not an interval that is known here."
        note = "write a literal, such as `INTERVAL 3 DAYS` or `INTERVAL '1-6' YEAR TO MONTH`"
        raise session.error("C1319", message, node, note)
    return constant


def _span(text: str, fields: str) -> _Amount | None:
    try:
        return read_interval(text.strip(), fields), types.interval(fields)
    except (ValueError, OverflowError):
        return None


def _several(text: str) -> _Amount | None:
    """Return the sum of the parts of `1 day 2 hours`."""
    total: _Amount | None = None
    at, text = 0, text.strip().removeprefix("interval ").removeprefix("INTERVAL ")
    while at < len(text):
        part = _PART.match(text, at)
        found = part and _one(part[1], part[2], part[3], part[4])
        if not part or not found:
            return None
        type_ = found[1] if total is None else wider(total[1], found[1])
        if type_ is None:
            return None
        total, at = ((total[0] if total else 0) + found[0], type_), part.end()
    return total


def microseconds_of(text: str) -> int | None:
    """Return the microseconds of `1 hour 30 minutes`; None for months and other texts.

    >>> microseconds_of("1 second"), microseconds_of("1 month")
    (1000000, None)
    """
    found = _several(text)
    return found[0] if found is not None and wider(found[1], types.DURATION) else None


def _one(sign: str, whole: str, fraction: str | None, unit: str) -> _Amount | None:
    """Return a number of units; only seconds have fractions."""
    word = unit.upper().removesuffix("S")
    if word not in _UNITS or (fraction is not None and word != "SECOND"):
        return None
    field, count = _UNITS[word]
    size = SIZES[field] // count if field == "SECOND" else SIZES[field] * count
    amount = int(whole) * size + int((fraction or "")[:6].ljust(6, "0"))
    return -amount if sign == "-" else amount, types.interval(field)


# --- arithmetic --------------------------------------------------------------------------------


def combine(sign: str, left: Expression, right: Expression, site: Site) -> Expression:
    """Return `left sign right` of numbers, intervals, dates and timestamps."""
    if left.type.is_time and isinstance(right, UnknownValue) and sign == "-":
        right = right.as_type(left.type)  # as PostgreSQL does, which has no days without a type
    if left.type.is_interval or right.type.is_interval:
        return _with_interval(sign, left, right, site)
    common = wider(left.type, right.type)
    if sign == "-" and common is not None and common.is_time_of_day:
        both = [amount_of(each) for each in aligned((left, right), site, SIGNS[sign])]
        return _sum(sign, both[0], both[1], types.interval("HOUR TO SECOND"), site)
    if sign in "+-" and left.type.is_time:
        return (
            _difference(left, right, site) if right.type.is_time else _days(sign, left, right, site)
        )
    if sign == "+" and right.type.is_date:
        return _days(sign, right, left, site)
    return arithmetic(sign, left, right, site)


def _with_interval(sign: str, left: Expression, right: Expression, site: Site) -> Expression:
    if sign in "*/":
        if sign == "*" and right.type.is_interval:
            left, right = right, left
        is_number = right.type.logical_kind in types.SQL_NUMERIC or right.type.is_symbol
        if left.type.is_interval and is_number:
            return scaled(sign, left, right, site)
    elif sign in "+-":
        both = [left, right]
        if sign == "+" and left.type.is_interval:
            both = [right, left]
        value, step = both
        if step.type.is_interval and not value.type.is_interval:
            return moved(value, step, sign == "-", site)
        type_ = wider(left.type, right.type)
        if type_ is not None and type_.is_interval:
            return _sum(sign, amount_of(left), amount_of(right), type_, site)
        if right.type.is_time:
            message = "Nothing can be taken away from an interval but an interval."
            raise site.error("C1319", message, "write the date or timestamp first")
    elif (type_ := wider(left.type, right.type)) and type_.is_interval and sign == "DIV":
        return call("/", (amount_of(left), amount_of(right)), types.NUMBER, site.span)
    raise mismatch(site, (left, right), SIGNS.get(sign, f"`{sign}`"))


def _sum(
    sign: str, left: Expression, right: Expression, type_: types.Type, site: Site
) -> Expression:
    found: Expression = call(sign, (left, right), types.NUMBER, site.span)
    if isinstance(left, ConstantValue) and isinstance(right, ConstantValue):
        one, two = left.value, right.value
        if isinstance(one, int) and isinstance(two, int):  # the parts of a literal are a sum
            value = one + two if sign == "+" else one - two
            found = integer(value) if fits_bits(value, 64) else found
    return interval_of(found, type_, site.span)


def scaled(sign: str, value: Expression, factor: Expression, site: Site) -> Expression:
    """Return an interval times or by a number, rounded half away from zero, with all fields."""
    amount, span = amount_of(value), site.span
    if factor.type.is_symbol:
        factor = convert(factor, types.NUMBER if is_untyped(factor) else types.FLOAT)
    if factor.type.stores_floats:
        factor = convert(factor, types.FLOAT)
        found: Expression = call(sign, (convert(amount, types.FLOAT), factor), types.FLOAT, span)
        found = call("round_to", (found, integer(0)), types.FLOAT, span)
    elif sign == "/" or not factor.type.is_number:
        found = rounded(sign, amount, factor, types.decimal(38, 0), span)
    else:
        found = call(sign, (amount, factor), types.NUMBER, span)
    if not found.type.is_number:
        found = call("to_integer", (found, integer(64)), types.NUMBER, span)
    return interval_of(found, replace(value.type, precision=0), span)


def _difference(left: Expression, right: Expression, site: Site) -> Expression:
    """Return the time from one date or timestamp to another."""
    if left.type.is_date and right.type.is_date:
        days = call("days_between", (right, left), types.NUMBER, site.span)
        amount = call("*", (days, integer(SIZES["DAY"])), types.NUMBER, site.span)
        return interval_of(amount, types.interval("DAY"), site.span)
    both = (convert(right, types.TIMESTAMP), convert(left, types.TIMESTAMP))
    return interval_of(
        call("microseconds_between", both, types.NUMBER, site.span), types.DURATION, site.span
    )


def _days(sign: str, day: Expression, other: Expression, site: Site) -> Expression:
    """Return a date and a number of days together."""
    if day.type.is_date and (other.type.is_number or is_untyped(other)):
        other = convert(other, types.NUMBER.with_null(other.type.nullable))
        days = other if sign == "+" else negative(sized(other, 64), site)  # of -128 as TINYINT
        return call("add_days", (day, days), types.DATE, site.span)
    message = f"{type_name(day.type)} and {type_name(other.type)} cannot be added or subtracted."
    raise site.error("C1319", message, "add an interval, as in `x + INTERVAL 1 DAY`")


def moved(value: Expression, step: Expression, is_minus: bool, site: Site) -> Expression:
    """Return a date or timestamp and an interval together."""
    if value.type.is_timestamp_ntz:
        found = moved(convert(value, types.TIMESTAMP), step, is_minus, site)
        return convert(found, types.TIMESTAMP_NTZ)
    if value.type.is_time_of_day and step.type.logical is not types.MONTHS.logical:
        amounts = (amount_of(value), amount_of(step))
        found = call("-" if is_minus else "+", amounts, types.NUMBER, site.span)
        return call("time_from_micros", (found,), types.TIME_OF_DAY, site.span)
    if is_untyped(value):
        value = convert(value, types.TIMESTAMP)
    if value.type.is_symbol:
        raise unfit(site, value, types.DATE)
    if not value.type.is_time:
        message = f"An interval cannot be added to {type_name(value.type)}."
        raise site.error("C1319", message, "add it to a date or timestamp")
    is_days, is_months = step.type.fields == "DAY", step.type.logical is types.MONTHS.logical
    if not is_days and not is_months:
        value = convert(value, types.TIMESTAMP)
    amount = amount_of(step)
    if is_minus:
        amount = negative(amount, site)
    plain = types.DATE if value.type.is_date else types.TIMESTAMP
    if not isinstance(amount, ConstantValue) or not isinstance(amount.value, int):
        if is_months:
            return call("add_months", (value, amount), plain, site.span)
        if is_days:
            amount = call("/", (amount, integer(SIZES["DAY"])), types.NUMBER, site.span)
            return call("add_days", (value, amount), plain, site.span)
        return call("add_microseconds", (value, amount), plain, site.span)
    count = amount.value
    if isinstance(value, ConstantValue) and isinstance(value.value, date):
        day = _moved_constant(value.value, count, is_months)
        if day is not None:
            return ConstantValue(day, value.type, site.span)
    for functor, size in (
        *([("add_months", 1)] if is_months else []),
        *(("add_days", SIZES["DAY"]), ("add_seconds", SIZES["SECOND"]), ("add_microseconds", 1)),
    ):
        if count % size == 0:
            return call(functor, (value, integer(count // size)), plain, site.span)
    raise AssertionError("every number is a multiple of 1")


def _moved_constant(day: date, count: int, is_months: bool) -> date | None:
    """Return a date or timestamp some months or microseconds later; None outside of the calendar.

    >>> _moved_constant(date(2024, 1, 31), 1, True)
    datetime.date(2024, 2, 29)
    """
    try:
        if not is_months:
            return day + timedelta(microseconds=count)
        year, month = divmod(day.year * 12 + day.month - 1 + count, 12)
        last = calendar.monthrange(year, month + 1)[1]
        return day.replace(year, month + 1, min(day.day, last))
    except (OverflowError, ValueError):
        return None


def interval_part(name: str, value: Expression, site: Site) -> Expression:
    """Return `extract(name FROM value)` of an interval: what larger fields leave of it."""
    names = names_of(value.type.fields)
    if name not in names:
        message = f"{type_name(value.type)} has no field {name}."
        raise site.error("C1306", message, f"it has {', '.join(names)}")
    found, larger = amount_of(value), {"MONTH": "YEAR", "HOUR": "DAY", "MINUTE": "HOUR"}
    if name not in ("YEAR", "DAY"):
        size = SIZES[larger.get(name, "MINUTE")]
        found = call("rem", (found, integer(size)), types.NUMBER, site.span)
    if name == "SECOND":
        return rounded("/", found, integer(SIZES[name]), types.decimal(8, 6), site.span)
    whole = call("/", (found, integer(SIZES[name])), types.NUMBER, site.span)
    return sized(whole, 32 if name in ("YEAR", "DAY") else 8)
