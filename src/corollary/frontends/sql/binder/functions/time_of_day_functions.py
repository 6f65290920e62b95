"""Functions on times of the day, `TIME`, which are computed as microseconds after midnight."""

from functools import partial

from corollary.core.functors.spec import DAY, TEXT, WHOLE
from corollary.core.spark_times import SIZES
from corollary.core.types import NUMBER, SYMBOL, TIME_OF_DAY, TIMESTAMP, decimal
from corollary.frontends.sql.binder.functions.arguments import (
    SqlFunction,
    expressions_of,
    fitted,
    literal_text,
)
from corollary.frontends.sql.binder.functions.time_functions import (
    date_part,
    microseconds_of_seconds,
    to_time,
    tried,
    without_zone,
)
from corollary.frontends.sql.binder.values.common_types import call, constant, integer, sized
from corollary.frontends.sql.binder.values.conversions import amount_of, cast, convert
from corollary.frontends.sql.binder.values.operators import Site, unfit
from corollary.frontends.sql.query_tree import Expression, FunctionCall

_KIND = frozenset({TIME_OF_DAY.logical_kind})
_UNITS = {
    **{unit: SIZES[unit] for unit in ("HOUR", "MINUTE", "SECOND")},
    "MILLISECOND": 1000,
    "MICROSECOND": 1,
}
_DATE = "yyyy-MM-dd "


def _time_of(amount: Expression, site: Site) -> FunctionCall:
    return call("time_from_micros", (amount,), TIME_OF_DAY, site.span)


def _times(one: Expression, count: int) -> Expression:
    return call("*", (one, integer(count)), NUMBER, one.span)


def _parsed(arguments: list[Expression], site: Site) -> Expression:
    """`to_time(text, pattern)`: one without a year is read behind a date."""
    text = arguments[0]
    if not text.type.is_symbol:
        raise unfit(site, text, SYMBOL)
    if len(arguments) == 1:
        return convert(text, TIME_OF_DAY)
    pattern = literal_text(arguments[1], site)
    if "y" not in pattern:
        text = call("cat", (constant("1970-01-01 ", SYMBOL), text), SYMBOL, site.span)
        pattern = _DATE + pattern
    moment = to_time(TIMESTAMP).build([text, constant(pattern, SYMBOL)], site)
    found = cast(moment, TIME_OF_DAY, 64)
    assert found is not None
    return found


def _made(arguments: list[Expression], site: Site) -> Expression:
    """`make_time(hour, minute, second)`; a part is in range if as much of a day is a time."""
    hour, minute = (fitted(each, WHOLE, site) for each in arguments[:2])
    second = microseconds_of_seconds(arguments[2], site)
    total = amount_of(_time_of(_times(hour, SIZES["HOUR"]), site))
    for part, parts in ((_times(minute, SIZES["MINUTE"]), 24), (second, 24 * 60)):
        checked = amount_of(_time_of(_times(part, parts), site))
        fitting = call("/", (checked, integer(parts)), NUMBER, site.span)
        total = call("+", (total, fitting), NUMBER, site.span)
    return _time_of(total, site)


def _from_seconds(arguments: list[Expression], site: Site) -> Expression:
    """`time_from_seconds(n)` of an integer or a decimal with six digits after the point."""
    seconds = arguments[0]
    if seconds.type.is_number or (seconds.type.is_decimal and seconds.type.scale <= 6):
        return _time_of(microseconds_of_seconds(seconds, site), site)
    raise unfit(site, seconds, decimal(14, 6))


def _unit(argument: Expression, site: Site) -> int:
    written = literal_text(argument, site)
    if written.upper() not in _UNITS:
        note = f"units are {', '.join(_UNITS)}"
        raise site.error("C1306", f"`{site.name}` does not know `{written}`.", note)
    return _UNITS[written.upper()]


def _difference(arguments: list[Expression], site: Site) -> Expression:
    """`time_diff(unit, start, end)`: whole units, cut off toward zero."""
    start, end = (amount_of(fitted(each, _KIND, site)) for each in arguments[1:])
    passed = call("-", (end, start), NUMBER, site.span)
    return call("/", (passed, integer(_unit(arguments[0], site))), NUMBER, site.span)


def _truncated(arguments: list[Expression], site: Site) -> Expression:
    """`time_trunc(unit, time)`."""
    amount = amount_of(fitted(arguments[1], _KIND, site))
    rest = call("rem", (amount, integer(_unit(arguments[0], site))), NUMBER, site.span)
    return _time_of(call("-", (amount, rest), NUMBER, site.span), site)


def _to_seconds(arguments: list[Expression], site: Site) -> Expression:
    found = cast(fitted(arguments[0], _KIND, site), decimal(14, 6), 64)
    assert found is not None
    return found


def _part(name: str, arguments: list[Expression], site: Site) -> Expression:
    return date_part(name, arguments[0], site)


def _second(arguments: list[Expression], site: Site) -> Expression:
    whole = call("/", (amount_of(arguments[0]), integer(SIZES["SECOND"])), NUMBER, site.span)
    return sized(call("rem", (whole, integer(60)), NUMBER, site.span), 32)


def _moment(arguments: list[Expression], site: Site) -> Expression:
    """`make_timestamp(date, time, zone)`."""
    day, clock = fitted(arguments[0], DAY, site), fitted(arguments[1], _KIND, site)
    both = (convert(day, TIMESTAMP), amount_of(clock))
    found = call("add_microseconds", both, TIMESTAMP, site.span)
    if len(arguments) == 2:
        return found
    return call("to_utc", (found, fitted(arguments[2], TEXT, site)), TIMESTAMP, site.span)


_TO_TIME, _MOMENT = SqlFunction(1, 2, _parsed), SqlFunction(2, 3, _moment)
_TRIED_MOMENT = tried(_MOMENT, is_whole=True)

CLOCK_FUNCTIONS: dict[str, SqlFunction] = {
    "to_time": _TO_TIME,
    "try_to_time": tried(_TO_TIME, is_whole=True),
    "make_time": SqlFunction(3, 3, _made),
    "time_diff": SqlFunction(3, 3, _difference),
    "time_trunc": SqlFunction(2, 2, _truncated),
    "time_from_seconds": SqlFunction(1, 1, _from_seconds),
    "time_to_seconds": SqlFunction(1, 1, _to_seconds),
    **expressions_of(
        {
            "time_from_millis(n: number)": "time_from_micros(n * 1000)",
            "time_from_micros(n: number)": "time_from_micros(n)",
            "time_to_millis(t: time_of_day)": "time_to_micros(t) / 1000",
            "time_to_micros(t: time_of_day)": "time_to_micros(t)",
        }
    ),
}
"""The functions that give or take nothing else, by their names in Spark."""

TIME_OF_DAY_FUNCTIONS: dict[str, SqlFunction] = {
    "hour": SqlFunction(1, 1, partial(_part, "HOUR")),
    "minute": SqlFunction(1, 1, partial(_part, "MINUTE")),
    "second": SqlFunction(1, 1, _second),
    **dict.fromkeys(("make_timestamp", "make_timestamp_ltz"), _MOMENT),
    **dict.fromkeys(("try_make_timestamp", "try_make_timestamp_ltz"), _TRIED_MOMENT),
    "make_timestamp_ntz": without_zone(_MOMENT),
    "try_make_timestamp_ntz": without_zone(_TRIED_MOMENT),
}
"""What functions are where an argument is a time of the day."""
