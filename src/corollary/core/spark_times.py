"""Dates and timestamps as Spark SQL reads them, in literals and in `CAST`."""

import re
from datetime import UTC, date, datetime, timedelta, timezone

BLANKS = "".join(map(chr, range(33)))
"""What may stand around a value: blanks and control characters."""

ZONE_HOURS_MAX = 18

_DAY = r"\+?([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T](.*))?)?)?"
_DATE = re.compile(_DAY, re.DOTALL)
_CLOCK = re.compile(
    r"([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]*))?)?)?"
    r" *(?:Z|UTC|GMT|(?:UTC|GMT)?([+-])([0-9]{1,2})(?::([0-9]{2})(?::([0-9]{2}))?)?)?"
)


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
    zone = _zone(found[5], *(int(each or 0) for each in found.groups()[5:]))
    return datetime(day.year, day.month, day.day, hour, minute, second, microsecond, tzinfo=zone)


def _zone(sign: str | None, hours: int, minutes: int, seconds: int) -> timezone:
    offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if offset > timedelta(hours=ZONE_HOURS_MAX) or minutes > 59 or seconds > 59:
        raise ValueError
    return timezone(-offset if sign == "-" else offset)
