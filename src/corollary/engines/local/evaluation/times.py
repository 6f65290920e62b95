"""Functions of dates and timestamps, on arrays: days and microseconds since 1970, in UTC.

The calendar is NumPy's, which is Gregorian for all years, as Python's is. Years go from 1 to 9999:
what would be outside overflows.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, timedelta, tzinfo
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow_buffers import EPOCH, fixed_array, fixed_values, text_scalar
from corollary.core.functors.catalog import read_time_format
from corollary.core.functors.times import (
    CLOCK_PARTS,
    DAY_MICROSECONDS,
    DAY_SECONDS,
    LAST_DAY,
    LEAST_DAY,
    SECOND_MICROSECONDS,
)
from corollary.core.spark_times import read_zone
from corollary.core.types import Type
from corollary.engines.local.evaluation.kernels import (
    FAILED_CONVERSION,
    OVERFLOW,
    Kernel,
    Operand,
    Result,
    faults_of,
    on_values,
)
from corollary.engines.local.storage.layout import Mask
from corollary.engines.local.values.native import NativeArray
from corollary.engines.local.values.texts import Texts

ADDED_MAX = {
    "add_days": LAST_DAY - LEAST_DAY + 1,
    "add_months": 12 * 9999,
    "add_seconds": (LAST_DAY - LEAST_DAY + 1) * DAY_SECONDS,
    "add_microseconds": (LAST_DAY - LEAST_DAY + 1) * DAY_MICROSECONDS,
}
"""Whoever adds more leaves the calendar."""

OFFSET_MAX_MINUTES = 18 * 60
"""The farthest that the clock of a zone is from UTC."""

MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


# --- the calendar ------------------------------------------------------------------------------


def _split(values: NativeArray, type_: Type) -> tuple[NativeArray, NativeArray]:
    """Return the days of dates or timestamps, and the microseconds since midnight."""
    if type_.is_date:
        return values, np.zeros(len(values), np.int64)
    days = values // DAY_MICROSECONDS
    return days, values - days * DAY_MICROSECONDS


def _join(days: NativeArray, clock: NativeArray, type_: Type) -> NativeArray:
    return days if type_.is_date else days * DAY_MICROSECONDS + clock


def _months(days: NativeArray) -> NativeArray:
    """Return the months of days, counted from January 1970."""
    found: NativeArray = days.view("M8[D]").astype("M8[M]").view(np.int64)
    return found


def _first_days(months: NativeArray) -> NativeArray:
    """Return the first days of months."""
    found: NativeArray = months.view("M8[M]").astype("M8[D]").view(np.int64)
    return found


def _year(days: NativeArray) -> NativeArray:
    return _months(days) // 12 + 1970


def _day(days: NativeArray) -> NativeArray:
    return days - _first_days(_months(days)) + 1


def _monday(days: NativeArray) -> NativeArray:
    monday: NativeArray = days - (days + 3) % 7  # the first day of 1970 was a Thursday
    return monday


def _day_of_year(days: NativeArray) -> NativeArray:
    months = _months(days)
    return days - _first_days(months - months % 12) + 1


DAY_PARTS: Mapping[str, Callable[[NativeArray], NativeArray]] = {
    "year": _year,
    "quarter": lambda days: _months(days) % 12 // 3 + 1,
    "month": lambda days: _months(days) % 12 + 1,
    "day": _day,
    "week_year": lambda days: _year(_monday(days) + 3),
    "week": lambda days: (_day_of_year(_monday(days) + 3) - 1) // 7 + 1,
    "weekday": lambda days: (days + 3) % 7 + 1,
    "day_of_year": _day_of_year,
}


def _part(name: str, days: NativeArray, clock: NativeArray) -> NativeArray:
    if name in DAY_PARTS:
        return DAY_PARTS[name](days)
    unit, count = CLOCK_PARTS[name]
    return clock // unit % count


def _part_of(name: str) -> Kernel:
    def apply(operands: list[Operand], type_: Type) -> Result:  # noqa: ARG001 - one shape for all
        return _part(name, *_split(*operands[0])), []

    return apply


# --- differences, sums, starts -----------------------------------------------------------------


def _between(unit: int) -> Kernel:
    def between(one: NativeArray, two: NativeArray) -> NativeArray:
        apart = two - one
        found: NativeArray = np.sign(apart) * (np.abs(apart) // unit)
        return found

    return on_values(between)


def _within_calendar(days: NativeArray, clock: NativeArray, type_: Type) -> Result:
    outside = (days < LEAST_DAY) | (days > LAST_DAY)
    if not outside.any():
        return _join(days, clock, type_), []
    return _join(np.where(outside, 0, days), clock, type_), [(outside, OVERFLOW)]


def _added(name: str, operands: list[Operand]) -> tuple[NativeArray, NativeArray, NativeArray]:
    """Return the days, the clock and what is added, cut off where it leaves the calendar anyway."""
    days, clock = _split(*operands[0])
    return days, clock, np.clip(operands[1][0], -ADDED_MAX[name], ADDED_MAX[name])


def _add_days(operands: list[Operand], type_: Type) -> Result:
    days, clock, count = _added("add_days", operands)
    return _within_calendar(days + count, clock, type_)


def _add_months(operands: list[Operand], type_: Type) -> Result:
    """The day stays, but for the end of a shorter month."""
    days, clock, count = _added("add_months", operands)
    months = _months(days) + count
    first = _first_days(months)
    last = _first_days(months + 1) - 1
    return _within_calendar(np.minimum(first + _day(days) - 1, last), clock, type_)


def _add_units(name: str, unit: int, operands: list[Operand], type_: Type) -> Result:
    """Add units of so many microseconds."""
    days, clock, count = _added(name, operands)
    a_day = DAY_MICROSECONDS // unit
    total = clock + count % a_day * unit
    days = days + count // a_day + total // DAY_MICROSECONDS
    return _within_calendar(days, total % DAY_MICROSECONDS, type_)


def _offsets(moments: NativeArray, zone: tzinfo) -> NativeArray:
    """Return by how many microseconds the clock of a zone is ahead of UTC at some moments."""
    # Arrow does not know what happens behind the last change that a file of a zone lists.
    days, places = np.unique(moments // DAY_MICROSECONDS, return_inverse=True)
    before, after = (_each_offset((days + more) * DAY_MICROSECONDS, zone) for more in (0, 1))
    found, is_changing = before[places], (before != after)[places]
    found[is_changing] = _each_offset(moments[is_changing], zone)
    return found


def _each_offset(moments: NativeArray, zone: tzinfo) -> NativeArray:
    least, most = (day * DAY_MICROSECONDS for day in (LEAST_DAY + 2, LAST_DAY - 2))
    clipped = np.clip(moments, least, most)
    clocks = ((EPOCH + timedelta(microseconds=each)).astimezone(zone) for each in clipped.tolist())
    ahead = (clock.replace(tzinfo=UTC) - clock for clock in clocks)
    return np.array([each // timedelta(microseconds=1) for each in ahead], np.int64)


def _to_utc(clock: NativeArray, zone: tzinfo) -> NativeArray:
    """Return UTC; a time that comes twice is the first, one that is skipped as much later."""
    before = _offsets(clock - DAY_MICROSECONDS, zone)
    after = _offsets(clock + DAY_MICROSECONDS, zone)
    is_after = (_offsets(clock - before, zone) != before) & (_offsets(clock - after, zone) == after)
    return clock - np.where(is_after, after, before)


def _by_zone(convert: Callable[[NativeArray, tzinfo], NativeArray]) -> Kernel:
    def apply(operands: list[Operand], type_: Type) -> Result:
        (values, _), (zones, _) = operands
        result, unknown = np.zeros_like(values), np.zeros(len(values), np.bool_)
        names, numbers = zones.distinct()
        for at, zone in enumerate(names.tolist()):
            rows = np.flatnonzero(numbers == at)
            try:
                result[rows] = convert(values[rows], read_zone(zone))
            except ValueError:
                unknown[rows] = True
        days, clock = _split(result, type_)
        found, faults = _within_calendar(days, clock, type_)
        return found, faults + faults_of(unknown, "unknown time zone")

    return apply


def _start_of_months(count: int) -> Kernel:
    def apply(operands: list[Operand], type_: Type) -> Result:
        days, clock = _split(*operands[0])
        months = _months(days)
        return _join(_first_days(months - months % count), np.zeros_like(clock), type_), []

    return apply


def _start_of_week(operands: list[Operand], type_: Type) -> Result:
    days, clock = _split(*operands[0])
    return _join(_monday(days), np.zeros_like(clock), type_), []


def _start_of_unit(unit: int) -> Kernel:
    return on_values(lambda values: values - values % unit)


# --- formats -----------------------------------------------------------------------------------

_DIGITS = {
    "Y": ("year", 4),
    "m": ("month", 2),
    "d": ("day", 2),
    "H": ("hour", 2),
    "M": ("minute", 2),
    "S": ("second", 2),
    "f": ("microsecond", 6),
    "j": ("day_of_year", 3),
    "u": ("weekday", 1),
    "G": ("week_year", 4),
    "V": ("week", 2),
    "q": ("quarter", 1),
}
"""The part that a directive writes as digits, and how many there are."""

_HOURS: Mapping[str, Callable[[NativeArray], NativeArray]] = {
    "I": lambda hours: (hours - 1) % 12 + 1,
    "k": lambda hours: (hours - 1) % 24 + 1,
    "K": lambda hours: hours % 12,
}
"""Other numbers of hours, by their directives: 1 to 12, 1 to 24, 0 to 11."""

_NAMES = {
    "a": ("weekday", tuple(name[:3] for name in WEEKDAYS)),
    "A": ("weekday", WEEKDAYS),
    "b": ("month", tuple(name[:3] for name in MONTHS)),
    "B": ("month", MONTHS),
}


def _format_time(operands: list[Operand], type_: Type) -> Result:  # noqa: ARG001
    values, source = operands[0]
    if not len(values):
        return Texts.of([]), []
    days, clock = _split(values, source)
    parts = [
        _written(part, days, clock) for part in read_time_format("format_time", _format(operands))
    ]
    if not any(isinstance(part, pa.Array) for part in parts):
        return Texts.of(["".join(map(str, parts))] * len(values)), []
    return Texts(pc.binary_join_element_wise(*parts, text_scalar(""))), []


def _format(operands: list[Operand]) -> str:
    """Return the format, which is the same literal in all rows."""
    return str(operands[1][0][0])


def _written(part: str, days: NativeArray, clock: NativeArray) -> Any:
    if not part.startswith("%"):
        return text_scalar(part)
    if part[1] == "%":
        return text_scalar("%")
    letter = part[-1]
    if letter == "p":
        afternoon = fixed_array(_part("hour", days, clock) // 12, pa.int64())
        return pa.array(("AM", "PM"), pa.large_string()).take(afternoon)
    if letter in _HOURS:
        return _padded(_HOURS[letter](_part("hour", days, clock)), part, 2)
    if letter == "y":
        return _padded(_part("year", days, clock) % 100, part, 2)
    if letter == "f":
        digits = _padded(_part("microsecond", days, clock), "%f", 6)
        return pc.utf8_slice_codeunits(pc.ascii_rpad(digits, 9, "0"), 0, _width(part, 6))
    if letter in _DIGITS:
        name, width = _DIGITS[letter]
        return _padded(_part(name, days, clock), part, width)
    name, names = _NAMES[letter]
    numbers = fixed_array(_part(name, days, clock) - 1, pa.int64())
    return pa.array(names, pa.large_string()).take(numbers)


def _width(part: str, usual: int) -> int:
    return int(part[1]) if len(part) > 2 else usual


def _padded(numbers: NativeArray, part: str, usual: int) -> pa.Array:
    digits = fixed_array(numbers, pa.int64()).cast(pa.large_string())
    return pc.ascii_lpad(digits, _width(part, usual), "0")


_READ = {
    **dict.fromkeys("mdHIkKMS", "[0-9]{1,2}"),
    "y": "[0-9]{2}",
    "p": "am|pm",
    "Y": "[0-9]{4}",
    "f": "[0-9]{1,6}",
    "j": "[0-9]{1,3}",
    "b": f"(?i:{'|'.join(name[:3] for name in MONTHS)})",
    "B": f"(?i:{'|'.join(MONTHS)})",
}


_READ_SIZED = {
    **dict.fromkeys(("%3Y",), "[0-9]{3,18}"),
    "%4Y": "[0-9]{4}",
    "%2j": "[0-9]{2,3}",
    "%3j": "[0-9]{3}",
    "%1z": "Z|[+-][0-9]{2}(?:[0-9]{2})?",
    "%2z": "Z|[+-][0-9]{4}",
    "%3z": "Z|[+-][0-9]{2}:[0-9]{2}",
    "%4z": "[+-][0-9]{4}",
}
"""What directives with a number of digits read; others read any number of them, or that many."""


def _read_pattern(part: str) -> str:
    if len(part) == 2:
        return _READ.get(part[1], _READ_SIZED["%1z"])
    if part[2] == "f":
        return f"[0-9]{{1,{part[1]}}}"
    any_length = "[0-9]{1,18}"
    return _READ_SIZED.get(part, any_length if part[1] == "1" else f"[0-9]{{{part[1]}}}")


@lru_cache(maxsize=256)
def _pattern(name: str, text: str) -> tuple[str, tuple[str, ...]]:
    """Return the regular expression of a format, and the directives in it."""
    pattern, letters = "", list[str]()
    for part in read_time_format(name, text):
        if not part.startswith("%") or part == "%%":
            literal = "%" if part == "%%" else part
            pattern += "".join(rf"\x{{{ord(each):x}}}" for each in literal)
        else:
            pattern += f"(?P<{part[-1]}>{_read_pattern(part)})"
            letters.append(part[-1])
    return f"^(?i:{pattern})$", tuple(letters)


def _parse(name: str) -> Kernel:
    def apply(operands: list[Operand], type_: Type) -> Result:
        texts: Texts = operands[0][0]
        if not len(texts):
            return np.zeros(0, np.int64), []
        pattern, letters = _pattern(name, _format(operands))
        found = pc.extract_regex(texts.array, pattern)
        is_read = ~fixed_values(found.is_null().cast(pa.int8()), np.int8).astype(np.bool_)
        read = {letter: _number(found.field(letter), letter, is_read) for letter in letters}
        days, clock, is_valid = _composed(read, len(texts))
        bad = ~(is_read & is_valid)
        values = _join(np.where(bad, 0, days), np.where(bad, 0, clock), type_)
        return values, faults_of(bad, FAILED_CONVERSION)

    return apply


def _number(texts: pa.Array, letter: str, is_read: Mask) -> NativeArray:
    """Return the numbers that a directive has read, 0 where the format does not match."""
    if letter in "bB":
        short = pc.ascii_lower(pc.utf8_slice_codeunits(texts, 0, 3))
        known = pa.array([name[:3].lower() for name in MONTHS], short.type)
        numbers = (
            fixed_values(pc.index_in(short, known).fill_null(-1).cast(pa.int64()), np.int64) + 1
        )
    elif letter == "p":
        numbers = fixed_values(
            pc.starts_with(texts, "p", ignore_case=True).cast(pa.int8()), np.int8
        )
        return np.where(is_read, numbers, 0).astype(np.int64)
    elif letter == "z":
        return _offset(texts, is_read)
    else:
        if letter == "f":
            texts = pc.utf8_slice_codeunits(pc.ascii_rpad(texts, 6, "0"), 0, 6)
        # Where nothing was read the text is null or empty.
        digits = pc.if_else(pa.array(is_read), texts, "0")
        numbers = fixed_values(digits.cast(pa.int64()), np.int64)
    return np.where(is_read, numbers, 0)


def _composed(read: Mapping[str, NativeArray], count: int) -> tuple[NativeArray, NativeArray, Mask]:
    """Return days and clocks of what was read, and which of them are in the calendar."""
    ones, zeros = np.ones(count, np.int64), np.zeros(count, np.int64)
    year = read["Y"] if "Y" in read else read.get("y", -30 * ones) + 2000
    month = next((read[letter] for letter in "mbB" if letter in read), ones)
    is_valid = (year >= 1) & (year <= 9999) & (month >= 1) & (month <= 12)
    months = np.where(is_valid, (year - 1970) * 12 + month - 1, 0)
    span = 12 if "j" in read else 1
    first, after = _first_days(months), _first_days(months + span)
    days = first + read.get("j", read.get("d", ones)) - 1
    is_valid &= (days >= first) & (days < after)
    hour, is_hour = _hour(read, zeros)
    is_valid &= is_hour
    clock = zeros
    for letter in "HMSf":
        unit, most = CLOCK_PARTS[_DIGITS[letter][0]]
        value = hour if letter == "H" else read.get(letter, zeros)
        is_valid &= value < most
        clock = clock + np.where(is_valid, value, 0) * unit
    if "z" in read:
        ahead = read["z"]
        is_valid &= np.abs(ahead) <= OFFSET_MAX_MINUTES
        clock = clock - ahead * (DAY_MICROSECONDS // (24 * 60))
        days, clock = days + clock // DAY_MICROSECONDS, clock % DAY_MICROSECONDS
        is_valid &= (days >= LEAST_DAY) & (days <= LAST_DAY)
    return days, clock, is_valid


def _hour(read: Mapping[str, NativeArray], zeros: NativeArray) -> tuple[NativeArray, Mask]:
    """Return the hour of the day, and where what was read is one."""
    letter = next((each for each in "HIkK" if each in read), None)
    is_late = read.get("p")
    if letter is None:
        return zeros if is_late is None else 12 * is_late, zeros == 0
    number = read[letter]
    least, most = {"H": (0, 23), "k": (1, 24), "I": (1, 12), "K": (0, 11)}[letter]
    is_valid = (number >= least) & (number <= most)
    if letter in "Hk":
        hour = number % 24
        return hour, is_valid if is_late is None else is_valid & (hour // 12 == is_late)
    return number % 12 + (0 if is_late is None else 12 * is_late), is_valid


def _offset(texts: pa.Array, is_read: Mask) -> NativeArray:
    """Return by how many minutes clocks are ahead of UTC, too many for what is no offset."""
    minutes = np.zeros(len(texts), np.int64)
    found, numbers = Texts(texts.cast(pa.large_string()).fill_null("")).distinct()
    for at, text in enumerate(found.tolist()):
        digits = text[1:].replace(":", "")
        if digits:
            hours, rest = int(digits[:2]), int(digits[2:] or 0)
            ahead = hours * 60 + rest if rest < 60 else OFFSET_MAX_MINUTES + 1
            minutes[numbers == at] = -ahead if text[0] == "-" else ahead
    return np.where(is_read, minutes, 0)


TIME_FUNCTIONS: dict[str, Kernel] = {
    **{name: _part_of(name) for name in (*DAY_PARTS, *CLOCK_PARTS)},
    "days_between": _between(1),
    "seconds_between": _between(SECOND_MICROSECONDS),
    "microseconds_between": _between(1),
    "add_days": _add_days,
    "add_months": _add_months,
    "add_seconds": partial(_add_units, "add_seconds", SECOND_MICROSECONDS),
    "add_microseconds": partial(_add_units, "add_microseconds", 1),
    "start_of_year": _start_of_months(12),
    "start_of_quarter": _start_of_months(3),
    "start_of_month": _start_of_months(1),
    "start_of_week": _start_of_week,
    "start_of_day": _start_of_unit(DAY_MICROSECONDS),
    **{
        f"start_of_{name}": _start_of_unit(CLOCK_PARTS[name][0])
        for name in ("hour", "minute", "second")
    },
    "format_time": _format_time,
    "parse_date": _parse("parse_date"),
    "parse_time": _parse("parse_time"),
}
ZONE_FUNCTIONS: dict[str, Kernel] = {
    "from_utc": _by_zone(lambda moments, zone: moments + _offsets(moments, zone)),
    "to_utc": _by_zone(_to_utc),
}
