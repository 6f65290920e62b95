"""Functors of dates and timestamps.

DuckDB has them as days and microseconds since 1970; its calendar is Gregorian for all years, as
ours is. Months are added by our own code.
"""

from collections.abc import Iterable
from functools import partial

from corollary.core.functors.spec import FunctorSpec, Monotone, computed, define

SECOND_MICROSECONDS = 1_000_000
DAY_SECONDS = 86_400
DAY_MICROSECONDS = DAY_SECONDS * SECOND_MICROSECONDS
LEAST_DAY, LAST_DAY = -719_162, 2_932_896
"""The first day of the year 1, and the last one of the year 9999."""

CLOCK_PARTS = {
    "hour": (3600 * SECOND_MICROSECONDS, 24),
    "minute": (60 * SECOND_MICROSECONDS, 60),
    "second": (SECOND_MICROSECONDS, 60),
    "microsecond": (1, SECOND_MICROSECONDS),
}
"""How many microseconds a unit has, and how many of it make the next larger one."""

_define = partial(define, section="times")
_EPOCH = "CAST('1970-01-01' AS DATE)"


def _long(value: int) -> str:
    return f"CAST('{value}' AS BIGINT)"


def _passed(unit: int, name: str = "t") -> str:
    """Return how much of a unit has passed: remainders are negative before 1970."""
    rest = f"({name} % {_long(unit)})"
    return f"({rest} + (CAST({rest} < {_long(0)} AS BIGINT) * {_long(unit)}))"


def day_number(name: str) -> str:
    """Return the day of a timestamp of some name."""
    return f"(({name} - {_passed(DAY_MICROSECONDS, name)}) DIV {_long(DAY_MICROSECONDS)})"


_DAYS = {
    "duckdb date": f"({_EPOCH} + CAST(t AS INT))",
    "duckdb timestamp": f"({_EPOCH} + CAST({day_number('t')} AS INT))",
}
"""Dates and timestamps as a DATE of DuckDB."""


def _day_part(function: str) -> dict[str, str]:
    return {kind: f"CAST({function}({day}) AS BIGINT)" for kind, day in _DAYS.items()}


def _adding(kind: str, unit: int, size: int) -> dict[str, str]:
    """Return the template of a sum, which has no value where it leaves the calendar.

    Args:
        kind: what is added to.
        unit: what is added.
        size: the length of a day.
    """
    # Twice TRY: DuckDB computes a part that two expressions share outside of a TRY around it.
    value = f"TRY(t + TRY(n * {_long(unit)}))"
    is_inside = f"{value} >= {_long(LEAST_DAY * size)} AND {value} < {_long((LAST_DAY + 1) * size)}"
    return {f"duckdb {kind}": f"CASE WHEN {is_inside} THEN {value} END"}


def _start_of(unit: str) -> dict[str, str]:
    starts = {
        kind: f"CAST(CAST(DATE_TRUNC('{unit}', {day}) AS DATE) - {_EPOCH} AS BIGINT)"
        for kind, day in _DAYS.items()
    }
    starts["duckdb timestamp"] += f" * {_long(DAY_MICROSECONDS)}"
    return starts


def times() -> Iterable[FunctorSpec]:
    """Yield the functions of dates and timestamps."""
    for name, doc, sql_names, duckdb, readable in (
        ("year", "the year", "year", "YEAR", "year(t)"),
        ("quarter", "1 to 4", "quarter", "QUARTER", "quarter(t)"),
        ("month", "1 to 12", "month", "MONTH", "month(t)"),
        ("day", "the day of the month", "day dayofmonth", "DAY", "day(t)"),
        ("week_year", "the year that the week belongs to", "yearofweek", "ISOYEAR", {}),
        (
            "week",
            "the week by ISO 8601: weeks begin on Monday, and week 1 has the first Thursday",
            "weekofyear",
            "WEEK",
            "weekofyear(t)",
        ),
        (
            "weekday",
            "1 (Monday) to 7 (Sunday)",
            "weekday_iso",
            "ISODOW",
            {"duckdb": "isodow(t)", "spark": "weekday(t) + 1"},
        ),
        ("day_of_year", "1 to 366", "dayofyear", "DAYOFYEAR", "dayofyear(t)"),
    ):
        yield _define(
            f"{name}(t: time) -> number",
            doc,
            sql_names=sql_names,
            readable=readable,
            exact=_day_part(duckdb),
        )
    for name, (unit, count) in CLOCK_PARTS.items():
        in_sql = "" if name == "microsecond" else name
        yield _define(
            f"{name}(t: timestamp) -> number",
            f"0 to {count - 1}",
            sql_names=in_sql,
            readable={"": f"{name}(t)"} if in_sql else {},
            exact={"duckdb": f"{_passed(unit * count)} DIV {_long(unit)}"},
        )
    yield _define(
        "days_between(a: date, b: date) -> number",
        "the days from `a` to `b`, negative if `b` is earlier",
        readable={"duckdb": "date_diff('day', a, b)", "spark": "datediff(b, a)"},
        exact={"duckdb": f"(b - a) DIV {_long(1)}"},
    )
    for name, doc, unit, whole in (
        ("seconds_between", "whole seconds (cut off toward zero)", 1_000_000, "({}) DIV 1000000"),
        ("microseconds_between", "the microseconds", 1, "{}"),
    ):
        yield _define(
            f"{name}(a: timestamp, b: timestamp) -> number",
            f"{doc} from `a` to `b`",
            readable={
                "duckdb": whole.format("epoch_us(b) - epoch_us(a)"),
                "spark": whole.format("unix_micros(b) - unix_micros(a)"),
            },
            exact={"duckdb": f"(b - a) DIV {_long(unit)}"},
        )
    adding = partial(_define, is_fallible=True, is_expanding=True)
    yield adding(
        "add_days(t: time, n: number) -> first",
        "the same type, `n` days later",
        monotone=Monotone.ALL,
        readable={"duckdb": "t + to_days(n)", "spark": "t + make_interval(0, 0, 0, n)"},
        exact=_adding("date", 1, 1) | _adding("timestamp", DAY_MICROSECONDS, DAY_MICROSECONDS),
    )
    yield adding(
        "add_months(t: time, n: number) -> first",
        "the same type; a month that is too short gives its last day: a month after January 31 is"
        " February 28 or 29",
        readable={"duckdb": "t + to_months(n)", "spark": "t + make_interval(0, n)"},
    )
    yield adding(
        "add_seconds(t: timestamp, n: number) -> first",
        "the timestamp `n` seconds later",
        monotone=Monotone.ALL,
        readable={"duckdb": "t + to_seconds(n)", "spark": "t + make_interval(0, 0, 0, 0, 0, 0, n)"},
        exact=_adding("timestamp", SECOND_MICROSECONDS, DAY_MICROSECONDS),
    )
    yield adding(
        "add_microseconds(t: timestamp, n: number) -> first",
        "the timestamp `n` microseconds later",
        monotone=Monotone.ALL,
        exact=_adding("timestamp", 1, DAY_MICROSECONDS),
    )
    yield computed(
        "make_timestamp(y: number, m: number, d: number, h: number, min: number, us: number)"
        " -> timestamp",
        "the timestamp of a year, month, day, hour, minute and the microseconds after it, which"
        " are at most those of a minute",
        "CASE WHEN us >= 0 AND us <= 60000000 AND h <= 23 AND y >= 1 AND y <= 9999"
        " THEN TRY(EPOCH_US(MAKE_TIMESTAMP(y, m, d, h, min, 0)) + us) END",
        section="clocks",
        sql_names="",
        is_fallible=True,
    )
    for name, doc in (("from_utc", "the clock of a zone"), ("to_utc", "UTC")):
        yield define(
            f"{name}(t: timestamp, zone: symbol) -> timestamp",
            f"the time by {doc}"
            + (" for one of UTC" if name == "from_utc" else " for one of a zone"),
            section="clocks",
            is_fallible=True,
        )
    for name in ("year", "quarter", "month", "week"):
        yield _define(
            f"start_of_{name}(t: time) -> first",
            "the same type: the first day, at midnight",
            readable=f"date_trunc('{name}', t)",
            exact=_start_of(name),
        )
    units = {"day": DAY_MICROSECONDS, **{name: size for name, (size, _) in CLOCK_PARTS.items()}}
    for name in ("day", "hour", "minute", "second"):
        yield _define(
            f"start_of_{name}(t: timestamp) -> first",
            "the timestamp at which it begins",
            readable=f"date_trunc('{name}', t)",
            exact={"duckdb": f"t - {_passed(units[name])}"},
        )
    yield _define(
        "format_time(t: time, format: symbol) -> symbol",
        "the text in this format",
        time_letters="YymdHIkKMSfpjquGVaAbB",
    )
    parsing = partial(_define, is_fallible=True)
    yield parsing(
        "parse_date(s: symbol, format: symbol) -> date",
        "the date that is written in this format",
        time_letters="YymdjbB",
    )
    yield parsing(
        "parse_time(s: symbol, format: symbol) -> timestamp",
        "the timestamp that is written in this format",
        time_letters="YymdHIkKMSfpjbBz",
    )
