"""Dates and timestamps as Spark SQL reads them, in literals and in `CAST`, and intervals as texts.

Intervals of years and months are numbers of months, those of days and times of microseconds. Which
fields a text has is said by the type, and by the literals of rules.
"""

import re
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from functools import cache, lru_cache

from corollary.core.types import MONTHS_RANGE, NUMBER_RANGE

BLANKS = "".join(map(chr, range(33)))
"""What may stand around a value: blanks and control characters."""

ZONE_HOURS_MAX = 18

_DAY = r"\+?([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T](.*))?)?)?"
_DATE = re.compile(_DAY, re.DOTALL)
_TIME_OF_DAY = re.compile(
    r"(?:T|[\0- ]*)([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?)?"
    r"[\0- ]*(?:([aApP])[mM])?[\0- ]*"
)
_CLOCK = re.compile(
    r"([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?(.*))?)?", re.DOTALL
)
_OFFSET = re.compile(
    r"(?:UTC|GMT|UT)?([+-])(?:([0-9]{1,2})(?::([0-9]{2}|[0-9]\Z)(?::([0-9]{2}))?)?"
    r"|([0-9]{2})([0-9]{2})([0-9]{2})?)"
)
_SHORT_NAMES = (
    "ACT=Australia/Darwin AET=Australia/Sydney AGT=America/Argentina/Buenos_Aires "
    "ART=Africa/Cairo AST=America/Anchorage BET=America/Sao_Paulo BST=Asia/Dhaka "
    "CAT=Africa/Harare CNT=America/St_Johns CST=America/Chicago CTT=Asia/Shanghai "
    "EAT=Africa/Addis_Ababa ECT=Europe/Paris EST=-05:00 GMT=+0 GMT+0=+0 GMT-0=+0 HST=-10:00 "
    "IET=America/Indiana/Indianapolis IST=Asia/Kolkata JST=Asia/Tokyo MIT=Pacific/Apia "
    "MST=-07:00 NET=Asia/Yerevan NST=Pacific/Auckland PLT=Asia/Karachi PNT=America/Phoenix "
    "PRT=America/Puerto_Rico PST=America/Los_Angeles SST=Pacific/Guadalcanal UT=+0 UTC=+0 "
    "VST=Asia/Ho_Chi_Minh Z=+0"
)
"""What short names of zones stand for in Java."""

_SHORT_ZONES = dict(each.split("=") for each in _SHORT_NAMES.split())
_NO_ZONES = {"Factory", "ROC", "localtime"}
"""Files of the database of zones that Java has not."""


def read_day(text: str) -> date:
    """Return the date of a text without blanks around it.

    >>> read_day("2026-1-5"), read_day("2026")
    (datetime.date(2026, 1, 5), datetime.date(2026, 1, 1))

    Raises:
        ValueError: it is none.
    """
    found = _DATE.fullmatch(text)
    if found is None:
        raise ValueError
    year, month, day = (int(each or 1) for each in found.groups()[:3])
    return date(year, month, day)


def read_moment(text: str) -> datetime:
    """Return the timestamp of a text without blanks around it; UTC if it has no offset.

    >>> read_moment("2026-01-05 8:00:00.5+02:00")
    datetime.datetime(2026, 1, 5, 6, 0, 0, 500000, tzinfo=datetime.timezone.utc)

    Raises:
        ValueError: it is none.
        OverflowError: it is out of the calendar.
    """
    return _read_zoned(text).astimezone(UTC)


def read_local(text: str) -> datetime:
    """Return the time of a text without blanks around it, whatever its offset is.

    >>> read_local("2026-01-05 8:00:00.5+02:00")
    datetime.datetime(2026, 1, 5, 8, 0, 0, 500000)
    """
    return _read_zoned(text).replace(tzinfo=None)


def read_time_of_day(text: str) -> time:
    """Return the time of a text, which may have blanks around it; more than six digits are cut off.

    >>> read_time_of_day("8:5"), read_time_of_day("12:34:56.5 am")
    (datetime.time(8, 5), datetime.time(0, 34, 56, 500000))

    Raises:
        ValueError: it is none.
    """
    found = _TIME_OF_DAY.fullmatch(text)
    if found is None:
        raise ValueError
    hour, minute, second = (int(each or 0) for each in found.groups()[:3])
    if found[5]:
        if not 1 <= hour <= 12:
            raise ValueError
        hour = hour % 12 + (12 if found[5] in "pP" else 0)
    return time(hour, minute, second, int((found[4] or "").ljust(6, "0")[:6]))


def _read_zoned(text: str) -> datetime:
    day = read_day(text)
    parts = _DATE.fullmatch(text)
    assert parts is not None
    if parts[4] is None:
        return datetime(day.year, day.month, day.day, tzinfo=UTC)
    found = _CLOCK.fullmatch(parts[4])
    if found is None:
        raise ValueError
    hour, minute, second = (int(each or 0) for each in found.groups()[:3])
    microsecond = int((found[4] or "").ljust(6, "0")[:6])
    zone = read_zone((found[5] or "").strip(BLANKS) or "Z")
    return datetime(day.year, day.month, day.day, hour, minute, second, microsecond, tzinfo=zone)


@lru_cache(1024)
def read_zone(name: str) -> tzinfo:
    """Return the zone of a name or an offset.

    >>> read_zone("Europe/Paris"), read_zone("GMT-3:30").utcoffset(None)
    (zoneinfo.ZoneInfo(key='Europe/Paris'), datetime.timedelta(days=-1, seconds=73800))

    Raises:
        ValueError: it is none.
    """
    name = _SHORT_ZONES.get(name, name)
    found = _OFFSET.fullmatch(name)
    if found is None:
        from zoneinfo import ZoneInfo

        if name not in _zone_names():
            raise ValueError
        return ZoneInfo(name)
    hours, minutes, seconds = (int(found[at] or found[at + 3] or 0) for at in (2, 3, 4))
    offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if offset > timedelta(hours=ZONE_HOURS_MAX) or minutes > 59 or seconds > 59:
        raise ValueError
    return timezone(-offset if found[1] == "-" else offset)


@cache
def _zone_names() -> set[str]:
    from zoneinfo import available_timezones

    return available_timezones() - _NO_ZONES


# --- intervals ---------------------------------------------------------------------------------

SIZES = {
    "YEAR": 12,
    "MONTH": 1,
    "DAY": 86_400_000_000,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
}
"""The months or microseconds of a field."""

_MARKS = {"MONTH": "-", "HOUR": " ", "MINUTE": ":", "SECOND": ":"}
"""What stands before a field that is not the first one."""


@cache
def names_of(fields: str) -> tuple[str, ...]:
    """Return the fields from the first to the last one.

    >>> names_of("DAY TO MINUTE")
    ('DAY', 'HOUR', 'MINUTE')
    """
    names = list(SIZES)
    first, _, last = fields.partition(" TO ")
    return tuple(names[names.index(first) : names.index(last or first) + 1])


def unit_of(fields: str) -> int:
    """Return the months or microseconds that all intervals with some fields have multiples of."""
    last = names_of(fields)[-1]
    return 1 if last == "SECOND" else SIZES[last]


def format_interval(amount: int, fields: str) -> str:
    """Return an interval as text.

    >>> format_interval(-15, "YEAR TO MONTH"), format_interval(1_500_000, "SECOND")
    ("INTERVAL '-1-3' YEAR TO MONTH", "INTERVAL '01.5' SECOND")
    """
    text, rest = "-" if amount < 0 else "", abs(amount)
    names = names_of(fields)
    for name in names:
        count, rest = divmod(rest, SIZES[name])
        width = 2 if name in ("HOUR", "MINUTE", "SECOND") else 1
        text += f"{_MARKS[name] if name != names[0] else ''}{count:0{width}}"
    if names[-1] == "SECOND" and rest:
        text += f".{rest:06}".rstrip("0")
    return f"INTERVAL '{text}' {fields}"


@cache
def _pattern(fields: str) -> re.Pattern[str]:
    names = names_of(fields)
    body = "([0-9]+)" + "".join(f"{_MARKS[name]}([0-9]{{1,2}})" for name in names[1:])
    if names[-1] == "SECOND":
        body += r"(?:\.([0-9]{1,9}))?"
    words = fields.replace(" ", r"\s+")
    return re.compile(rf"(?:INTERVAL\s+([+-])?')?([+-])?{body}(?:'\s+{words})?", re.IGNORECASE)


def read_interval(text: str, fields: str) -> int:
    """Return the months or microseconds of a text without blanks around it.

    >>> read_interval("1-3", "YEAR TO MONTH"), read_interval("interval -'1' second", "SECOND")
    (15, -1000000)

    Raises:
        ValueError: it is none.
        OverflowError: it is out of range.
    """
    found = _pattern(fields).fullmatch(text)
    if found is None or text[:1].isalpha() != text[-1:].isalpha():
        raise ValueError
    outer, inner, *counts = found.groups()
    names, amount = names_of(fields), 0
    for name, before, count in zip(names, (None, *names), counts, strict=False):
        if before is not None and int(count) >= SIZES[before] // SIZES[name]:
            raise ValueError
        amount += int(count) * SIZES[name]
    if names[-1] == "SECOND":
        amount += int((counts[-1] or "")[:6].ljust(6, "0"))
    amount *= (-1 if outer == "-" else 1) * (-1 if inner == "-" else 1)
    low, high = MONTHS_RANGE if names[-1] in ("YEAR", "MONTH") else NUMBER_RANGE
    if not low <= amount <= high:
        raise OverflowError
    return amount
