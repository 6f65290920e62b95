"""Functors of dates and timestamps for the oracle, by Python's `datetime` alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

MONTHS = "January February March April May June July August September October November December"
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
CLOCK = ("day", "hour", "minute", "second")


def moved(value: date, days: int = 0, microseconds: int = 0) -> date:
    """The value some time later; a date cannot leave the years 1 to 9999."""
    if abs(days) > 10**7 or abs(microseconds) > 10**18:
        raise OverflowError("too far")
    return value + timedelta(days, 0, microseconds)


def add_months(value: date, count: int) -> date:
    number = value.year * 12 + value.month - 1 + count
    year, month = number // 12, number % 12 + 1
    for day in (value.day, 30, 29, 28):
        if day <= value.day:
            try:
                return value.replace(year=year, month=month, day=day)
            except ValueError:
                if not 1 <= year <= 9999:
                    raise
    raise AssertionError("every month has 28 days")


def between(one: datetime, two: datetime, unit: int) -> int:
    apart = (two - one) // timedelta(microseconds=1)
    return apart // unit if apart >= 0 else -(-apart // unit)


def start(value: date, **fields: int) -> date:
    if isinstance(value, datetime):
        return value.replace(hour=0, minute=0, second=0, microsecond=0, **fields)  # type: ignore[arg-type]
    return value.replace(**fields)


def start_of_week(value: date) -> date:
    return start(value - timedelta(value.weekday()))


def format_time(value: date, form: str) -> str:
    moment = value if isinstance(value, datetime) else datetime.combine(value, datetime.min.time())
    iso = moment.isocalendar()
    written = {
        "Y": f"{moment.year:04}", "m": f"{moment.month:02}", "d": f"{moment.day:02}",
        "H": f"{moment.hour:02}", "M": f"{moment.minute:02}", "S": f"{moment.second:02}",
        "f": f"{moment.microsecond:06}", "j": f"{moment.timetuple().tm_yday:03}",
        "u": str(iso.weekday), "G": f"{iso.year:04}", "V": f"{iso.week:02}", "%": "%",
        "A": WEEKDAYS.split()[moment.weekday()], "a": WEEKDAYS.split()[moment.weekday()][:3],
        "B": MONTHS.split()[moment.month - 1], "b": MONTHS.split()[moment.month - 1][:3],
    }  # fmt: skip
    return re.sub("%(.)", lambda found: written[found[1]], expanded(form))


def expanded(form: str) -> str:
    longer = {"%F": "%Y-%m-%d", "%T": "%H:%M:%S"}
    return re.sub("%.", lambda found: longer.get(found[0], found[0]), form)


def parse_time(text: str, form: str) -> datetime:
    pieces = re.findall("%.|[^%]", expanded(form), re.DOTALL)
    names = [name.lower() for name in MONTHS.split()]
    digits = dict.fromkeys("mdHMS", "[0-9]{1,2}") | {"Y": "[0-9]{4}", "f": "[0-9]{1,6}"}
    digits |= {"j": "[0-9]{1,3}", "b": "[A-Za-z]{3}", "B": "[A-Za-z]+"}
    pattern = "".join(
        f"(?P<{piece[1]}>{digits[piece[1]]})" if piece[0] == "%" and piece != "%%"
        else re.escape(piece[-1])
        for piece in pieces
    )  # fmt: skip
    found = re.fullmatch(pattern, text)
    if found is None:
        raise ValueError(f"{text!r} is not of the form {form!r}")
    read = found.groupdict()
    month = int(read.get("m", 1))
    if "b" in read:
        month = [name[:3] for name in names].index(read["b"].lower()) + 1
    if "B" in read:
        month = names.index(read["B"].lower()) + 1
    clock = [int(read.get(letter, 0)) for letter in "HMS"]
    moment = datetime(
        int(read["Y"]), month, int(read.get("d", 1)), *clock, int(read.get("f", "0").ljust(6, "0")),
        tzinfo=UTC,
    )  # fmt: skip
    if "j" in read:
        day = date(moment.year, 1, 1) + timedelta(int(read["j"]) - 1)
        if day.year != moment.year:
            raise ValueError(f"the year {moment.year} has no day {read['j']}")
        moment = datetime.combine(day, moment.timetz())
    return moment


FUNCTORS: dict[str, Callable[..., Any]] = {
    "year": lambda d: d.year,
    "quarter": lambda d: (d.month + 2) // 3,
    "month": lambda d: d.month,
    "day": lambda d: d.day,
    "week_year": lambda d: d.isocalendar().year,
    "week": lambda d: d.isocalendar().week,
    "weekday": lambda d: d.isoweekday(),
    "day_of_year": lambda d: d.timetuple().tm_yday,
    "hour": lambda t: t.hour,
    "minute": lambda t: t.minute,
    "second": lambda t: t.second,
    "microsecond": lambda t: t.microsecond,
    "days_between": lambda one, two: (two - one).days,
    "seconds_between": lambda one, two: between(one, two, 10**6),
    "microseconds_between": lambda one, two: between(one, two, 1),
    "add_days": lambda d, n: moved(d, days=n),
    "add_months": add_months,
    "add_seconds": lambda t, n: moved(t, microseconds=n * 10**6),
    "add_microseconds": lambda t, n: moved(t, microseconds=n),
    "start_of_year": lambda d: start(d, month=1, day=1),
    "start_of_quarter": lambda d: start(d, month=(d.month - 1) // 3 * 3 + 1, day=1),
    "start_of_month": lambda d: start(d, day=1),
    "start_of_week": start_of_week,
    "start_of_day": start,
    "start_of_hour": lambda t: t.replace(minute=0, second=0, microsecond=0),
    "start_of_minute": lambda t: t.replace(second=0, microsecond=0),
    "start_of_second": lambda t: t.replace(microsecond=0),
    "format_time": format_time,
    "parse_date": lambda text, form: parse_time(text, form).date(),
    "parse_time": parse_time,
}
NUMBERS = tuple(FUNCTORS)[:15]
BINARY = frozenset(
    name for name in FUNCTORS if name.startswith(("add_", "parse_", "format_")) or "between" in name
)
LIKE_FIRST = frozenset(name for name in FUNCTORS if name.startswith(("add_", "start_of_")))
OF_DAYS = frozenset(
    (*NUMBERS[:8], "add_days", "add_months", "start_of_year", "start_of_quarter", "start_of_month",
     "start_of_week", "format_time")
)  # fmt: skip
