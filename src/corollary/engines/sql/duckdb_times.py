"""Dates and timestamps in DuckDB, where they are days and microseconds since 1970.

Its calendar is Gregorian for all years, as ours is. Months are added by our own code.
"""

from collections.abc import Sequence

from sqlglot import exp

from corollary.core.types import Kind, Type
from corollary.engines.sql import nodes
from corollary.engines.sql.dialect import FunctorForm, Lowering
from corollary.engines.sql.duckdb_types import BIGINT, attempt
from corollary.engines.sql.nodes import Node

SECOND_MICROSECONDS = 1_000_000
DAY_MICROSECONDS = 86_400 * SECOND_MICROSECONDS
LEAST_DAY, LAST_DAY = -719_162, 2_932_896
"""The first day of the year 1, and the last one of the year 9999."""

_DAY_PARTS = {
    "year": "YEAR",
    "quarter": "QUARTER",
    "month": "MONTH",
    "day": "DAY",
    "week_year": "ISOYEAR",
    "week": "WEEK",
    "weekday": "ISODOW",
    "day_of_year": "DAYOFYEAR",
}
_CLOCK_PARTS = {
    "hour": (3600 * SECOND_MICROSECONDS, 24),
    "minute": (60 * SECOND_MICROSECONDS, 60),
    "second": (SECOND_MICROSECONDS, 60),
    "microsecond": (1, SECOND_MICROSECONDS),
}


def _big(value: int) -> Node:
    return nodes.integer(value, BIGINT)


def _rest(value: Node, unit: int) -> Node:
    """Return how much of a unit has passed: remainders are negative before 1970."""
    rest = nodes.binary(exp.Mod, value, _big(unit))
    is_before = nodes.cast(nodes.binary(exp.LT, rest, _big(0)), BIGINT)
    return nodes.binary(exp.Add, rest, nodes.binary(exp.Mul, is_before, _big(unit)))


def day_number(value: Node, type_: Type) -> Node:
    """Return the day of a date or a timestamp."""
    if type_.kind is Kind.DATE:
        return value
    whole = nodes.binary(exp.Sub, value, _rest(value, DAY_MICROSECONDS))
    return nodes.binary(exp.IntDiv, whole, _big(DAY_MICROSECONDS))


def day_of(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    """Return the day of a timestamp."""
    return day_number(arguments[0], types[0])


def midnight_of(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
    """Return the timestamp at which a day begins."""
    return nodes.binary(exp.Mul, arguments[0], _big(DAY_MICROSECONDS))


def _epoch() -> Node:
    return nodes.cast(nodes.string("1970-01-01"), "DATE")


def calendar_day(value: Node, type_: Type) -> Node:
    """Return the day of a date or a timestamp as a DATE."""
    return nodes.binary(exp.Add, _epoch(), nodes.cast(day_number(value, type_), "INT"))


def _day_part(name: str) -> Lowering:
    def lower(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
        return nodes.cast(nodes.call(name, calendar_day(arguments[0], types[0])), BIGINT)

    return lower


def _clock_part(unit: int, count: int) -> Lowering:
    def lower(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
        return nodes.binary(exp.IntDiv, _rest(arguments[0], unit * count), _big(unit))

    return lower


def _between(unit: int) -> Lowering:
    def lower(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
        apart = nodes.binary(exp.Sub, arguments[1], arguments[0])
        return nodes.binary(exp.IntDiv, apart, _big(unit))

    return lower


def _adding(unit: int) -> Lowering:
    """What leaves the calendar has no value."""

    def lower(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
        size = 1 if types[0].kind is Kind.DATE else DAY_MICROSECONDS
        step = unit // DAY_MICROSECONDS if size == 1 else unit
        # Twice TRY: DuckDB computes a part that two expressions share outside of a TRY around it.
        added = attempt(nodes.binary(exp.Mul, arguments[1], _big(step)))
        value = attempt(nodes.binary(exp.Add, arguments[0], added))
        is_inside = nodes.every(
            [
                nodes.binary(exp.GTE, value, _big(LEAST_DAY * size)),
                nodes.binary(exp.LT, value, _big((LAST_DAY + 1) * size)),
            ]
        )
        assert is_inside is not None
        return nodes.case((is_inside, value))

    return lower


def _start_of(unit: str) -> Lowering:
    def lower(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:
        start = nodes.call("DATE_TRUNC", nodes.string(unit), calendar_day(arguments[0], types[0]))
        days = nodes.cast(nodes.binary(exp.Sub, nodes.cast(start, "DATE"), _epoch()), BIGINT)
        return days if types[0].kind is Kind.DATE else midnight_of([days], types, result)

    return lower


def _start_of_unit(unit: int) -> Lowering:
    def lower(arguments: Sequence[Node], types: Sequence[Type], result: Type) -> Node:  # noqa: ARG001
        return nodes.binary(exp.Sub, arguments[0], _rest(arguments[0], unit))

    return lower


_DAYS = (Kind.DATE, Kind.TIMESTAMP)
_CLOCK_UNITS = {"day": DAY_MICROSECONDS, **{name: unit for name, (unit, _) in _CLOCK_PARTS.items()}}

TIME_FORMS: dict[tuple[str, Kind], FunctorForm] = {
    **{
        (name, kind): FunctorForm(_day_part(function))
        for name, function in _DAY_PARTS.items()
        for kind in _DAYS
    },
    **{
        (name, Kind.TIMESTAMP): FunctorForm(_clock_part(*units))
        for name, units in _CLOCK_PARTS.items()
    },
    ("days_between", Kind.DATE): FunctorForm(_between(1)),
    ("seconds_between", Kind.TIMESTAMP): FunctorForm(_between(SECOND_MICROSECONDS)),
    ("microseconds_between", Kind.TIMESTAMP): FunctorForm(_between(1)),
    **{
        ("add_days", kind): FunctorForm(_adding(DAY_MICROSECONDS), is_fallible=True)
        for kind in _DAYS
    },
    ("add_seconds", Kind.TIMESTAMP): FunctorForm(_adding(SECOND_MICROSECONDS), is_fallible=True),
    **{
        (f"start_of_{unit}", kind): FunctorForm(_start_of(unit))
        for unit in ("year", "quarter", "month", "week")
        for kind in _DAYS
    },
    **{
        (f"start_of_{unit}", Kind.TIMESTAMP): FunctorForm(_start_of_unit(_CLOCK_UNITS[unit]))
        for unit in ("day", "hour", "minute", "second")
    },
}
