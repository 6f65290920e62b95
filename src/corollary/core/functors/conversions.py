"""Functors that convert values, and those that no user writes."""

from collections.abc import Iterable
from functools import partial

from corollary.core.functors.holistic import ARGUMENTS
from corollary.core.functors.spec import Digits, FunctorSpec, Monotone, Nullness, Word, define
from corollary.core.functors.times import day_number
from corollary.core.records.record_terms import BRANCH_OF, FIELD_OF, RECORD_OF
from corollary.core.types import DECIMAL_MAX_DIGITS, INTERVAL_FIELDS, Kind
from corollary.core.windows import WINDOW

COUNTER = "autoinc"
"""A function without arguments: the number of an assignment, from 0."""

CHECKED_SUM = "•sum"
"""The value of a sum that was read; it fails where the sum was too large. No user writes it."""

CAST = "as"
"""`as(x, Type)`: the name of the type is a constant, as text. Inference replaces it."""

SINGLE = "•single"
"""A float in single precision. No user writes it."""

AS_NUMBER, AS_UNSIGNED, AS_FLOAT = "•as_number", "•as_unsigned", "•as_float"
SAME_BITS = {Kind.NUMBER: AS_NUMBER, Kind.UNSIGNED: AS_UNSIGNED, Kind.FLOAT: AS_FLOAT}
"""The value of another type with the same bits: `as(x, number)`."""

SINGLE_OF_BITS, BITS_OF_SINGLE = "•single_of_bits", "•bits_of_single"
"""The float of single precision with the 32 bits of a `number`, and the reverse."""

PARTITION_OF = "•share"
"""The number of the partition of a value, which may be null. No user writes it."""

_SCALES = range(DECIMAL_MAX_DIGITS + 1)
_CAST = "CAST(x AS RESULT)"
_EPOCH_DAY = "CAST('1970-01-01' AS DATE) + CAST(x AS INT)"
_TEXTS = {
    "duckdb symbol": "x",
    "duckdb number unsigned": "CAST(x AS VARCHAR)",
    "duckdb bool": "CASE WHEN x = CAST('0' AS BIGINT) THEN 'false'"
    " WHEN x <> CAST('0' AS BIGINT) THEN 'true' END",
    "duckdb date": f"CAST({_EPOCH_DAY} AS VARCHAR)",
}


_SINGLE = "CAST(CAST(x AS FLOAT) AS DOUBLE)"
_TOO_LARGE = f"""ABS(x) < CAST('3.4028235677973366e38' AS DOUBLE) THEN {_SINGLE}
    WHEN ISNAN(x) THEN x
    WHEN x < CAST('0' AS DOUBLE) THEN CAST('-Infinity' AS DOUBLE)
    WHEN x IS NOT NULL THEN CAST('Infinity' AS DOUBLE)"""


def conversions() -> Iterable[FunctorSpec]:
    """Yield the conversions between all types."""
    base = partial(
        define, section="conversions", is_reserved=True, is_fallible=True, is_conversion=True
    )
    number = partial(base, monotone=Monotone.FIRST)
    yield number(
        "to_number(x: convertible) -> number",
        "a text must be an integer (`-7`, `0x1f`, `0b101`); a fraction is cut off",
        aliases="utoi ftoi",
        readable={
            "number unsigned bool": _CAST,
            "duckdb float decimal": "CAST(trunc(x) AS RESULT)",
            "spark float decimal": _CAST,
        },
        exact={
            "number": "x",
            "duckdb bool": "x",
            "duckdb unsigned": "TRY_CAST(x AS BIGINT)",
            "spark bool": "CAST(x AS BIGINT)",
        },
    )
    yield number(
        "to_unsigned(x: convertible) -> unsigned",
        "the same",
        aliases="itou ftou",
        readable={"number unsigned bool": _CAST},
        exact={"duckdb unsigned": "x", "duckdb number bool": "TRY_CAST(x AS UBIGINT)"},
    )
    yield number(
        "to_float(x: convertible|float32) -> float",
        "the nearest float",
        aliases="itof utof",
        readable=_CAST,
        exact={
            "float float32": "x",
            "number": "CAST(x AS DOUBLE)",
            "duckdb unsigned bool": "CAST(x AS DOUBLE)",
        },
    )
    yield base(
        "to_string(x: any) -> symbol",
        "as in output files",
        is_fallible=False,
        readable={"number unsigned bool date": _CAST},
        exact=_TEXTS
        | {
            # A NaN may have a sign, which DuckDB would show.
            "duckdb float": "CASE WHEN ISNAN(x) THEN 'nan' ELSE CAST(x AS VARCHAR) END",
            "spark symbol": "x",
            "spark number bool date": "CAST(x AS STRING)",
        },
    )
    yield number(
        "to_decimal(x: numeric|symbol, scale: number) -> decimal",
        "rounds half away from zero; the scale is a literal",
        scale_at=1,
        literals={1: _SCALES},
        digits=Digits.RESCALED,
        readable={"symbol number unsigned decimal": _CAST},
        exact={"spark number decimal": "TRY_CAST(x AS RESULT)"},
    )
    yield base(
        "to_date(x: symbol|timestamp) -> date",
        "the day, as it is written or in UTC",
        readable=_CAST,
        exact={"duckdb timestamp": day_number("x")},
    )
    yield base(
        "to_timestamp(x: symbol|date) -> timestamp",
        "the moment, as it is written, or the beginning of the day",
        readable=_CAST,
        exact={"duckdb date": "x * CAST('86400000000' AS BIGINT)"},
    )


def stored_alike() -> Iterable[FunctorSpec]:
    """Yield the conversions between types that are stored alike."""
    base = partial(define, section="conversions")
    yield base(
        "to_local(t: timestamp) -> timestamp_ntz", "the time in UTC without its zone", exact="t"
    )
    yield base(
        "from_local(t: timestamp_ntz) -> timestamp", "the time taken to be in UTC", exact="t"
    )
    yield base(
        "to_duration(n: number) -> duration", "the interval of so many microseconds", exact="n"
    )
    yield base("to_microseconds(d: duration) -> number", "the microseconds of it", exact="d")
    yield base(
        "to_months(n: number) -> months",
        "the interval of so many months, a number of 32 bits",
        is_fallible=True,
        exact="CASE WHEN n >= CAST('-2147483648' AS BIGINT) AND n <= 2147483647 THEN n END",
    )
    yield base("to_month_count(m: months) -> number", "the number of months", exact="m")
    yield base(
        "time_from_micros(n: number) -> time_of_day",
        "the time of so many microseconds after midnight",
        is_fallible=True,
        sql_names="time_from_micros",
        exact="CASE WHEN n >= CAST('0' AS BIGINT) AND n < CAST('86400000000' AS BIGINT) THEN n END",
    )
    yield base(
        "time_to_micros(t: time_of_day) -> number",
        "the microseconds from midnight to it",
        sql_names="time_to_micros",
        exact="t",
    )
    yield base(
        "to_float32(x: number|float) -> float32",
        "the nearest float of 32 bits; infinite for one that is too large",
        exact={"number": _SINGLE, "float": f"CASE WHEN {_TOO_LARGE} END"},
    )


def casts() -> Iterable[FunctorSpec]:
    """Yield the conversions between texts and values in the manner of Spark SQL's `CAST`."""
    base = partial(define, section="casts", is_fallible=True)
    yield base(
        "parse_integer(s: symbol) -> number",
        "a `number`: `+7`, `007`; nothing hexadecimal, no fraction",
    )
    yield base(
        "parse_float(s: symbol) -> float",
        "a `float`: `1e5`, `.5`, `1.5f`, `0x1p3`, `inf`, `NaN`; a number that is too large is"
        " infinite",
    )
    yield base(
        "parse_float32(s: symbol) -> float32", "a `float32`, rounded once from the digits of a text"
    )
    yield base(
        "parse_bool(s: symbol) -> bool",
        "a `bool`: `t` `true` `y` `yes` `1`, `f` `false` `n` `no` `0`, in any case",
    )
    yield base(
        "parse_day(s: symbol) -> date",
        "a `date`: `2026`, `2026-11`, `2026-1-5`; a time after it does not matter",
    )
    yield base(
        "parse_moment(s: symbol) -> timestamp",
        "a `timestamp`: the same with `8:5` or `08:05:00.25`, and behind seconds a zone: `Z`,"
        " `+01:00`, `Europe/Paris`; without one it is UTC",
    )
    yield base(
        "parse_local(s: symbol) -> timestamp_ntz",
        "a `timestamp_ntz`: as a `timestamp`, whose zone does not matter",
    )
    yield base(
        "parse_time_of_day(s: symbol) -> time_of_day",
        "a `time_of_day`: `8:5`, `08:05:00.25`, `8:05 PM`",
    )
    yield base(
        "parse_decimal(s: symbol, scale: number) -> decimal",
        "a decimal: `1e2`, `.5`; more digits are rounded half away from zero; the scale is a"
        " literal",
        scale_at=1,
        literals={1: _SCALES},
    )
    yield base(
        "show(x: any) -> symbol",
        "a text: `1.0E10`, `2026-11-16 08:05:00.25`, a decimal with all its digits",
        is_fallible=False,
        exact=_TEXTS,
    )


_INTERVAL_FIELDS = tuple(each for fields in INTERVAL_FIELDS.values() for each in fields)


def intervals() -> Iterable[FunctorSpec]:
    """Yield the conversions between intervals and texts, with the fields of a literal."""
    base = partial(define, section="casts")
    yield base(
        "format_interval(n: number, fields: symbol) -> symbol",
        "months or microseconds as a text: `INTERVAL '1-3' YEAR TO MONTH`; the fields are a"
        " literal",
        literals={1: _INTERVAL_FIELDS},
    )
    yield base(
        "parse_interval(s: symbol, fields: symbol) -> number",
        "the months or microseconds of a text: `1-3`, `INTERVAL '1 02:03:04.5' DAY TO SECOND`; the"
        " fields are a literal",
        is_fallible=True,
        literals={1: _INTERVAL_FIELDS},
    )


def internal() -> Iterable[FunctorSpec]:
    """Yield the functors that passes make, or take out."""
    yield define(f"{RECORD_OF}(branch: symbol, fields?: any, …) -> record")
    yield define(
        f"{FIELD_OF}(x: record, branch: symbol, n: number) -> record", nullness=Nullness.ALWAYS
    )
    yield define(f"{BRANCH_OF}(x: record) -> symbol")
    yield define(f"{CHECKED_SUM}(x: numeric)", is_fallible=True, readable="x", exact="x")
    yield define(f"{COUNTER}() -> number", is_reserved=True)
    yield define(f"{WINDOW}(text: symbol, values?: any, …)", nullness=Nullness.ALWAYS)
    yield define(f"{ARGUMENTS}(values: any, …)", nullness=Nullness.ALWAYS)
    yield define(f"{CAST}(x: any, type: symbol) -> first", is_reserved=True)
    yield define(f"{SINGLE}(x: float) -> float", is_fallible=True, word=Word.CLOSED)
    yield define(f"{SINGLE_OF_BITS}(x: number) -> float", word=Word.CLOSED)
    yield define(f"{BITS_OF_SINGLE}(x: float) -> number", word=Word.CLOSED)
    for kind, name in SAME_BITS.items():
        yield define(f"{name}(x: countable) -> {kind}")
    yield define(f"{PARTITION_OF}(x: any, shares: number) -> number")
