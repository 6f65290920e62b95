"""Functions on dates and timestamps, which are in UTC."""

import re
from collections.abc import Mapping
from decimal import Decimal

from corollary.core.functors.catalog import FUNCTORS, functor_of_sql, read_time_format
from corollary.core.functors.spec import DAY, MOMENT, TEXT, TIME, WHOLE
from corollary.core.spark_times import SIZES
from corollary.core.types import (
    DATE,
    DURATION,
    MONTHS,
    NUMBER,
    SYMBOL,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Kind,
    Type,
    decimal,
    interval,
)
from corollary.frontends.sql.binder.functions.arguments import (
    SqlFunction,
    expressions_of,
    fitted,
    function_of,
    literal_text,
    numeric,
)
from corollary.frontends.sql.binder.values.common_types import (
    EPOCH,
    call,
    integer,
    is_untyped,
    sized,
)
from corollary.frontends.sql.binder.values.conversions import (
    amount_of,
    cast,
    convert,
    interval_of,
    to_decimal,
)
from corollary.frontends.sql.binder.values.intervals import interval_part
from corollary.frontends.sql.binder.values.operators import Site, attempt, rounded
from corollary.frontends.sql.query_tree import ConstantValue, Expression, FunctionCall
from corollary.sqlgen.templates import READ_PATTERNS, TIME_PATTERNS

_NUMBERS_APART = re.compile(r"[A-Za-z][\[\]]+[A-Za-z]")

PATTERNS_MAX = 16
"""The maximum number of patterns that one with optional sections stands for."""

_WEEKDAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
_UNITS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "year"),
    "QUARTER": "quarter",
    **dict.fromkeys(("MONTH", "MM", "MON"), "month"),
    "WEEK": "week",
    **dict.fromkeys(("DAY", "DD"), "day"),
    "HOUR": "hour",
    "MINUTE": "minute",
    "SECOND": "second",
    "MILLISECOND": "millisecond",
    "MICROSECOND": "microsecond",
}
_FRACTIONS = {"millisecond": 1000, "microsecond": 1}
"""Units of date_trunc, and the microseconds of those below a second."""


_NUMBER_OF_DAY = "(((year({0}) * 12 + month({0})) * 32) + day({0}))"
_IS_LATER = (
    "gt(microseconds_between(start_of_day({0}), {0}), microseconds_between(start_of_day({1}), {1}))"
)
_DAYS_APART = "days_between(to_date(a), to_date(b))"
_END = f"""add_days(b, if(gt({_DAYS_APART}, 0), if({_IS_LATER.format("a", "b")}, 0 - 1, 0),
    lt({_DAYS_APART}, 0), if({_IS_LATER.format("b", "a")}, 1, 0), 0))"""
_WHOLE_MONTHS = f"({_NUMBER_OF_DAY.format(_END)} - {_NUMBER_OF_DAY.format('a')}) / 32"
"""The whole months from a timestamp to another, as Java has them."""

_LAST_DAY = "day(add_months(add_days(start_of_year({0}), 30), month({0}) - 1))"
_MONTHS = "((year(a) - year(b)) * 12 + month(a) - month(b))"
_PARTS_OF_MONTHS = f"""(to_float({_MONTHS})
    + to_float((day(a) - day(b)) * 86400 + seconds_between(start_of_day(a), a)
    - seconds_between(start_of_day(b), b)) / 2678400.0)"""
_EIGHT_DIGITS = f"to_float(floor({_PARTS_OF_MONTHS} * 100000000.0 + 0.5)) / 100000000.0"
_MONTHS_BETWEEN = f"""if(eq(day(a), day(b)), to_float({_MONTHS}),
    lt(day(a), {_LAST_DAY.format("a")}), {{0}}, lt(day(b), {_LAST_DAY.format("b")}), {{0}},
    to_float({_MONTHS}))"""
"""The months from a date to another, a month having 31 days, with all digits or eight."""


def _seconds_with_fraction(arguments: list[Expression], site: Site) -> Expression:
    """`extract(SECOND FROM t)`: a decimal with microseconds."""
    moment = fitted(arguments[0], MOMENT, site)
    whole = call("second", (moment,), NUMBER, site.span)
    rest = call("microsecond", (moment,), NUMBER, site.span)
    million = integer(1_000_000)
    all_of_them = call("+", (call("*", (whole, million), NUMBER), rest), NUMBER, site.span)
    number = call("to_decimal", (all_of_them, integer(0)), decimal(8, 0), site.span)
    size = ConstantValue(Decimal("1000000.0"), decimal(8, 1))
    return call("divide", (number, size, integer(6)), decimal(8, 6), site.span)


def _unit(argument: Expression, site: Site, smallest: tuple[str, ...]) -> str:
    written = literal_text(argument, site)
    unit = _UNITS.get(written.upper())
    if unit is None or unit in smallest:
        known = ", ".join(sorted({u.upper() for u in _UNITS.values() if u not in smallest}))
        raise site.error("C1306", f"`{site.name}` does not know `{written}`.", f"units are {known}")
    return unit


def _truncated_day(arguments: list[Expression], site: Site) -> Expression:
    """`trunc(date, unit)`: a date."""
    unit = _unit(arguments[1], site, ("day", "hour", "minute", "second", *_FRACTIONS))
    return call(f"start_of_{unit}", (fitted(arguments[0], DAY, site),), DATE, site.span)


def _truncated_moment(arguments: list[Expression], site: Site) -> Expression:
    """`date_trunc(unit, timestamp)`: a timestamp."""
    unit = _unit(arguments[0], site, ())
    moment = fitted(arguments[1], MOMENT, site)
    second = call(
        f"start_of_{'second' if unit in _FRACTIONS else unit}", (moment,), TIMESTAMP, site.span
    )
    if unit not in _FRACTIONS:
        return second
    passed = call("microseconds_between", (second, moment), NUMBER, site.span)
    rest = call("rem", (passed, integer(_FRACTIONS[unit])), NUMBER, site.span)
    whole = call("-", (passed, rest), NUMBER, site.span)
    return call("add_microseconds", (second, whole), TIMESTAMP, site.span)


PARTS = {
    **dict.fromkeys(("YEAR", "Y", "YEARS", "YR", "YRS"), "year"),
    **dict.fromkeys(("QUARTER", "QTR"), "quarter"),
    **dict.fromkeys(("MONTH", "MON", "MONS", "MONTHS"), "month"),
    **dict.fromkeys(("WEEK", "W", "WEEKS"), "weekofyear"),
    **dict.fromkeys(("DAY", "D", "DAYS"), "day"),
    **dict.fromkeys(("DAYOFWEEK", "DOW"), "dayofweek"),
    **dict.fromkeys(("DAYOFWEEK_ISO", "DOW_ISO"), "weekday_iso"),
    "DOY": "dayofyear",
    "YEAROFWEEK": "yearofweek",
    **dict.fromkeys(("HOUR", "H", "HOURS", "HR", "HRS"), "hour"),
    **dict.fromkeys(("MINUTE", "M", "MIN", "MINS", "MINUTES"), "minute"),
    **dict.fromkeys(("SECOND", "S", "SEC", "SECONDS", "SECS"), "seconds_with_fraction"),
}
"""The parts that `extract` knows, and the functions that give them."""


def _epoch(value: Expression, site: Site) -> Expression:
    """`extract(EPOCH FROM t)`, as PostgreSQL has it: the seconds since 1970, or of an interval."""
    if value.type.is_date or value.type.is_symbol:
        value = fitted(value, MOMENT, site)
    number = call("to_decimal", (amount_of(value), integer(0)), decimal(19, 0), site.span)
    size = ConstantValue(Decimal("1000000.0"), decimal(8, 1))
    return call("divide", (number, size, integer(6)), decimal(19, 6), site.span)


def date_part(part: str, value: Expression, site: Site) -> Expression:
    """Return `extract(part FROM value)`."""
    if part.upper() == "EPOCH" and not value.type.is_months:
        return _epoch(value, site)
    name = PARTS.get(part.upper())
    is_clock = value.type.is_time_of_day
    if is_clock:
        value = interval_of(amount_of(value), interval("HOUR TO SECOND"), site.span)
    if name is not None and value.type.is_interval:
        field = interval_part(name.upper().removesuffix("S_WITH_FRACTION"), value, site)
        return sized(field, 32) if is_clock and field.type.is_number else field
    if name is None:
        message = f"`{part}` is not a part of a time that is known here."
        raise site.error("C1306", message, "write YEAR, MONTH, DAY, HOUR, MINUTE, SECOND …")
    spec = functor_of_sql(name)
    found = TIME_FUNCTIONS[name] if spec is None else function_of(spec)
    made = found.build([value], site)
    return sized(made, 32) if made.type.is_number else made


def _date_part(arguments: list[Expression], site: Site) -> Expression:
    return date_part(literal_text(arguments[0], site), arguments[1], site)


def time_format(pattern: str, patterns: Mapping[str, str], site: Site) -> str:
    """Return a pattern of Spark in the rule language: `yyyy-MM-dd` is `%Y-%m-%d`."""
    found = ""
    for match in re.finditer(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+", pattern):
        if match[2] is None:
            text = match[0] if match[1] is None else (match[1].replace("''", "'") or "'")
            found += text.replace("%", "%%")
        elif match[0] in patterns:
            found += patterns[match[0]]
        else:
            known = ", ".join(f"`{each}`" for each in patterns)
            raise site.error(
                "C1306", f"The pattern `{match[0]}` is not known here.", f"there are {known}"
            )
    return found


_ZONES = re.compile(r"^(?:[^']|'[^']*')*?[XxZzVO]")
"""Matches a pattern with a zone, which is not quoted."""


def time_formats(
    written: str, site: Site, patterns: Mapping[str, str] = TIME_PATTERNS
) -> list[str]:
    """Return a pattern with its optional sections, then without some: `yyyy[-MM]` is two."""
    found, around = [""], list[list[str]]()
    for part in re.findall(r"'(?:[^']|'')*'|[^\[\]'#{}]+|.", written):
        if part == "[":
            around.append(found)
            found = [""]
        elif part == "]" and around:
            before = around.pop()
            found = [one + other for one in before for other in (*found, "")]
            if len(found) > PATTERNS_MAX:
                message = f"The pattern `{written}` has too many optional sections."
                raise site.error("C1306", message, "write fewer of them")
        elif part in "]#{}":
            message = f"`{part}` has no meaning in the pattern `{written}`."
            raise site.error("C1306", message, "write text that stands for itself in quotes")
        else:
            found = [one + part for one in found]
    if around:
        message = f"An optional section of the pattern `{written}` has no end."
        raise site.error("C1306", message, "write `]` after it")
    return [time_format(each, patterns, site) for each in dict.fromkeys(found)]


def read_formats(functor: str, written: str, site: Site) -> list[str]:
    """Return a pattern of what is read with its optional sections, then without some."""
    formats = time_formats(written, site, READ_PATTERNS)
    try:
        if _NUMBERS_APART.search(written):
            raise ValueError("an optional section stands between numbers without a sign")
        for each in formats:
            read_time_format(functor, each)
    except ValueError as error:
        message = f"The pattern `{written}` cannot be read here: {error}."
        raise site.error("C1306", message, "write one such as `yyyy-MM-dd HH:mm:ss`") from None
    return formats


def _read(text: Expression, pattern: str, result: Type, site: Site) -> Expression:
    """Return a text as a date or timestamp by a format."""
    letters = {part[-1] for part in read_time_format("parse_time", pattern) if part[0] == "%"}
    operands = (text, ConstantValue(pattern, SYMBOL))
    if result.is_date and letters <= {*FUNCTORS["parse_date"].time_letters, "%"}:
        return call("parse_date", operands, DATE, site.span)
    found = call("parse_time", operands, TIMESTAMP, site.span)
    return call("to_date", (found,), DATE, site.span) if result.is_date else found


def time_to_char(arguments: list[Expression], site: Site) -> Expression:
    """`date_format(time, format)`."""
    pattern = time_formats(literal_text(arguments[1], site), site)[0]
    value = fitted(arguments[0], TIME, site)
    return call("format_time", (value, ConstantValue(pattern, SYMBOL)), SYMBOL, site.span)


def to_time(result: Type) -> SqlFunction:
    """Return `to_date` or `to_timestamp`, with a pattern or without."""
    parameter = DAY if result.is_date else MOMENT

    def build(arguments: list[Expression], site: Site) -> Expression:
        value = arguments[0]
        if len(arguments) > 1:
            text = fitted(value, TEXT, site)
            *tried, last = (
                _read(text, pattern, result, site)
                for pattern in read_formats("parse_time", literal_text(arguments[1], site), site)
            )
            if not tried:
                return last
            values = tuple(
                call("try", (each,), result.with_null(True), site.span) for each in tried
            )
            return FunctionCall("coalesce", (*values, last), last.type, site.span)
        if value.type.is_symbol and value.type.precision >= 0:
            return cast(value, result, 64) or value
        return fitted(value, parameter, site)

    return SqlFunction(1, 2, build)


def _next_day(arguments: list[Expression], site: Site) -> Expression:
    """`next_day(d, 'MON')`: the first such day of the week after d."""
    day, name = fitted(arguments[0], DAY, site), literal_text(arguments[1], site)
    names = [each for each in _WEEKDAYS if name.upper() in (each[:2], each[:3], each)]
    if not names:
        message = f"`{name}` is not a day of the week."
        raise site.error("C1306", message, "write `'MON'` or `'MONDAY'`")
    behind = 7 - 1 - _WEEKDAYS.index(names[0])
    number = call("weekday", (day,), NUMBER, site.span)
    passed = call("rem", (call("+", (number, integer(behind)), NUMBER), integer(7)), NUMBER)
    return call("add_days", (day, call("-", (integer(7), passed), NUMBER)), DATE, site.span)


def microseconds_of_seconds(seconds: Expression, site: Site) -> Expression:
    """Return a number of seconds, rounded to six digits after the point, as microseconds."""
    exact = to_decimal(numeric(seconds, site), 6, 16)
    size = ConstantValue(Decimal("1000000.0"), decimal(8, 1))
    micros = call("multiply", (exact, size, integer(0)), decimal(23, 0), site.span)
    return call("to_integer", (micros, integer(64)), NUMBER, site.span)


def _make_timestamp(arguments: list[Expression], site: Site) -> Expression:
    """`make_timestamp(year, month, day, hour, minute, seconds, zone)`."""
    *parts, seconds = arguments[:6]
    values = [
        *(fitted(each, WHOLE, site) for each in parts),
        microseconds_of_seconds(seconds, site),
    ]
    found = call("make_timestamp", tuple(values), TIMESTAMP, site.span)
    if len(arguments) == 6:
        return found
    return call("to_utc", (found, fitted(arguments[6], TEXT, site)), TIMESTAMP, site.span)


def _make_interval(sizes: tuple[int, ...], type_: Type) -> SqlFunction:
    """Return the function that adds up counts of units; seconds have fractions."""

    def build(arguments: list[Expression], site: Site) -> Expression:
        found: Expression = integer(0)
        for size, each in zip(sizes, arguments, strict=False):
            if size == SIZES["SECOND"]:
                exact = to_decimal(numeric(each, site), 6, 18)
                part = rounded("*", exact, integer(size), decimal(24, 0), site.span)
                part = call("to_integer", (part, integer(64)), NUMBER, site.span)
            else:
                count = call("to_integer", (fitted(each, WHOLE, site), integer(32)), NUMBER)
                part = call("*", (count, integer(size)), NUMBER, site.span)
            found = call("+", (found, part), NUMBER, site.span)
        return interval_of(found, type_, site.span)

    return SqlFunction(0, len(sizes), build)


def _unix_timestamp(arguments: list[Expression], site: Site) -> Expression:
    """`unix_timestamp(time, format)`: seconds, cut off toward 1970; the clock is refused."""
    if not arguments:
        reason = f"`{site.name}` without arguments is refused: it changes while nothing else does."
        raise site.error("C1311", reason, "write the time that it is to count to")
    if arguments[0].type.is_symbol:
        default = ConstantValue("yyyy-MM-dd HH:mm:ss", SYMBOL)
        arguments = [to_time(TIMESTAMP).build([*arguments, default][:2], site)]
    moment = fitted(arguments[0], MOMENT, site)
    return call("seconds_between", (ConstantValue(EPOCH, TIMESTAMP), moment), NUMBER, site.span)


def _from_unixtime(arguments: list[Expression], site: Site) -> Expression:
    count = fitted(arguments[0], WHOLE, site)
    moment = call("add_seconds", (ConstantValue(EPOCH, TIMESTAMP), count), TIMESTAMP, site.span)
    default = ConstantValue("yyyy-MM-dd HH:mm:ss", SYMBOL)
    return time_to_char([moment, *arguments[1:], default][:2], site)


def tried(function: SqlFunction, *, is_whole: bool = False) -> SqlFunction:
    """Return a function that is null where another one has no value, or all of it has none."""

    def build(arguments: list[Expression], site: Site) -> Expression:
        return attempt(function.build(arguments, site), [] if is_whole else arguments, site)

    return SqlFunction(function.least, function.most, build)


def without_zone(function: SqlFunction) -> SqlFunction:
    """Return the function whose timestamps have no zone: those in UTC."""

    def build(arguments: list[Expression], site: Site) -> Expression:
        if len(arguments) == 1 and not is_untyped(arguments[0]):
            found = cast(arguments[0], TIMESTAMP_NTZ, 64)
            if found is not None:
                return found
        return convert(function.build(arguments, site), TIMESTAMP_NTZ)

    return SqlFunction(function.least, min(function.most, 6), build)


def _to_local(arguments: list[Expression], site: Site) -> Expression:
    """`to_timestamp_ntz(text, pattern)`: what a clock shows, whatever zone follows."""
    if len(arguments) > 1 and _ZONES.search(literal_text(arguments[1], site)):
        message = "`to_timestamp_ntz` reads no zones here: Spark leaves them out."
        note = "take the zone off the text and the pattern, or write `to_timestamp`"
        raise site.error("C1306", message, note)
    return without_zone(to_time(TIMESTAMP)).build(arguments, site)


def _bucket(arguments: list[Expression], site: Site) -> Expression:
    """`time_bucket(size, t, origin)`: when the interval of this size begins in which t is."""
    size, moment = arguments[0], fitted(arguments[1], MOMENT, site)
    length = amount_of(size) if isinstance(size, ConstantValue) and size.type.is_interval else None
    count = length.value if isinstance(length, ConstantValue) else None
    if not isinstance(count, int) or count < 1:
        message = "`time_bucket` takes a literal interval that is above 0."
        raise site.error("C1306", message, "write `INTERVAL 15 MINUTES`, say")
    origin = fitted(arguments[2], MOMENT, site) if len(arguments) > 2 else None
    if size.type.logical_kind is Kind.MONTHS and origin is not None:
        message = "`time_bucket` of months begins with January 1970."
        raise site.error("C1311", message, "leave the origin out, or give the interval in days")
    values = [integer(count), moment, origin or ConstantValue(EPOCH, TIMESTAMP)]
    found = _BUCKET_FUNCTIONS[size.type.logical_kind].build(values, site)
    is_local = arguments[1].type.is_timestamp_ntz
    return convert(found, TIMESTAMP_NTZ) if is_local else found


def _converted(arguments: list[Expression], site: Site) -> Expression:
    """`convert_timezone(source, target, t)`; the source is UTC if it is left out."""
    *zones, moment = arguments
    if moment.type.is_symbol:  # its own zone does not matter
        moment = cast(moment, TIMESTAMP_NTZ, 64) or moment
    source, target = [ConstantValue("UTC", SYMBOL), *zones][-2:]
    return convert(_CONVERSION.build([source, target, moment], site), TIMESTAMP_NTZ)


def _today(_: list[Expression], site: Site) -> Expression:
    return FunctionCall("today", (), DATE, site.span)


MAKE_TIMESTAMP = SqlFunction(6, 7, _make_timestamp)

_CONVERSION = expressions_of(
    {"convert(a: symbol, b: symbol, t: timestamp)": "from_utc(to_utc(t, a), b)"}
)["convert"]
_PASSED_MONTHS = "((year(t) - 1970) * 12 + month(t) - 1)"
_BUCKETS = {
    Kind.MONTHS: f"add_months(o, {_PASSED_MONTHS} - (({_PASSED_MONTHS} % n) + n) % n)",
    Kind.DURATION: """
        add_microseconds(t, -(((microseconds_between(o, t) % n) + n) % n))""",
}
_BUCKET_FUNCTIONS = {
    kind: expressions_of({"bucket(n: number, t: timestamp, o: timestamp)": text})["bucket"]
    for kind, text in _BUCKETS.items()
}

TIME_FUNCTIONS: dict[str, SqlFunction] = {
    **expressions_of(
        {
            "dayofweek(d: time)": "rem(weekday(d), 7) + 1",
            "weekday(d: time)": "weekday(d) - 1",
            "date_add dateadd(d: date, days: number)": "add_days(d, days)",
            "date_sub(d: date, days: number)": "add_days(d, 0 - days)",
            "datediff date_diff(end: date, start: date)": "days_between(start, end)",
            "add_months(d: date, months: number)": "add_months(d, months)",
            # As many months after January 31, which is cut off to the last day.
            "last_day(d: date)": "add_months(add_days(start_of_year(d), 30), month(d) - 1)",
            "timestamp_seconds(n: number)": "add_seconds(EPOCH, n)",
            "timestamp_millis(n: number)": "add_microseconds(EPOCH, n * 1000)",
            "timestamp_micros(n: number)": "add_microseconds(EPOCH, n)",
            "unix_micros(t: timestamp)": "microseconds_between(EPOCH, t)",
            "unix_millis(t: timestamp)": """(microseconds_between(EPOCH, t)
                - ((microseconds_between(EPOCH, t) % 1000) + 1000) % 1000) / 1000""",
            "from_utc_timestamp(t: timestamp, zone: symbol)": "from_utc(t, zone)",
            "to_utc_timestamp(t: timestamp, zone: symbol)": "to_utc(t, zone)",
            "months_between(a: timestamp, b: timestamp)": _MONTHS_BETWEEN.format(_EIGHT_DIGITS),
            "months_between(a: timestamp, b: timestamp, is_rounded: bool)": f"""
                if(is_null(is_rounded), null_if(0.0, 0.0), is_rounded,
                {_MONTHS_BETWEEN.format(_EIGHT_DIGITS)},
                {_MONTHS_BETWEEN.format(_PARTS_OF_MONTHS)})""",
            "whole_months(a: timestamp, b: timestamp)": _WHOLE_MONTHS,
            "unix_date(d: date)": "days_between(EPOCH_DAY, d)",
            "date_from_unix_date(days: number)": "add_days(EPOCH_DAY, days)",
            "unix_seconds(t: timestamp)": "seconds_between(EPOCH, start_of_second(t))",
            "dayname(d: time)": "format_time(d, '%a')",
            "monthname(d: time)": "format_time(d, '%b')",
            # The text of the date is parsed, so that only real days pass; `show` is a word of SQL.
            "make_date(y: number, m: number, d: number)": """
                parse_day(cat(if(lt(y, 1000), lpad("show"(y), 4, '0'), "show"(y)), '-', "show"(m),
                '-', "show"(d)))""",
        }
    ),
    "seconds_with_fraction": SqlFunction(1, 1, _seconds_with_fraction),
    "trunc": SqlFunction(2, 2, _truncated_day),
    "date_trunc": SqlFunction(2, 2, _truncated_moment),
    "date_part": SqlFunction(2, 2, _date_part),
    "datepart": SqlFunction(2, 2, _date_part),
    "date_format": SqlFunction(2, 2, time_to_char),
    "to_date": to_time(DATE),
    **dict.fromkeys(("to_timestamp", "to_timestamp_ltz"), to_time(TIMESTAMP)),
    "try_to_date": tried(to_time(DATE)),
    "try_to_timestamp": tried(to_time(TIMESTAMP)),
    **dict.fromkeys(("make_timestamp", "make_timestamp_ltz"), MAKE_TIMESTAMP),
    **dict.fromkeys(("try_make_timestamp", "try_make_timestamp_ltz"), tried(MAKE_TIMESTAMP)),
    "to_timestamp_ntz": SqlFunction(1, 2, _to_local),
    "make_timestamp_ntz": without_zone(MAKE_TIMESTAMP),
    "try_make_timestamp_ntz": without_zone(tried(MAKE_TIMESTAMP)),
    **dict.fromkeys(("unix_timestamp", "to_unix_timestamp"), SqlFunction(0, 2, _unix_timestamp)),
    "from_unixtime": SqlFunction(1, 2, _from_unixtime),
    "next_day": SqlFunction(2, 2, _next_day),
    "time_bucket": SqlFunction(2, 3, _bucket),
    "convert_timezone": SqlFunction(2, 3, _converted),
    "make_dt_interval": _make_interval(tuple(SIZES.values())[2:], DURATION),
    "make_ym_interval": _make_interval(tuple(SIZES.values())[:2], MONTHS),
    **dict.fromkeys(("current_date", "curdate"), SqlFunction(0, 0, _today)),
}
"""The functions on dates and timestamps, by their names in Spark."""
