"""Values at the edges of the types of SQL, and how values are compared with those of Spark."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from corollary.core.types import Kind
from support.selection import seed_of_run

ROWS = 160
ULPS = 3
ROUNDED = {
    "exp", "expm1", "ln", "log", "log2", "log10", "log1p",
    "power", "pow", "cbrt", "hypot", "sinh", "cosh", "tanh",
    "asinh", "acosh", "atanh", "sin", "cos", "tan", "cot", "sec", "csc", "asin", "acos", "atan",
    "atan2",
}  # fmt: skip
"""Functions whose last digit depends on the machine in Spark, and by how much."""

DIFFERENT = {
    "log": "a base of 1 has no logarithm here",
    "width_bucket": "a range that is too wide has no parts here",
    **dict.fromkeys(("like", "ilike"), "a pattern that ends with a backslash is an error in Spark"),
    **dict.fromkeys(("from_utc_timestamp", "to_utc_timestamp"), "zones are not texts of any kind"),
    **dict.fromkeys(("bit_get", "getbit"), "an INT has 32 places in Spark"),
    **dict.fromkeys(("format_number", "repeat", "space"), "Spark makes a text of two gigabytes"),
    "overlay": "Spark computes with places that wrap around",
    "initcap": "words end at blanks here",
    "chr": "Spark has a text of the character 0",
    "char": "Spark has a text of the character 0",
}
"""Functions that are known to differ from Spark, and why."""

TEXTS = (
    *("", " ", "a", "Z", "abc", "aXbXc", "Robert", "añ😀", "a,b,,c", "7", "-1.50", "a\nb", "it's"),
    *(
        "%41+b",
        "%4",
        "http://a.b/c?d=e f#g",
        "79927398713",
        "ff",
        "-7FFFFFFFFFFFFFFF",
        "  12 ",
        "ß",
    ),
    *(
        "aaaa",
        "aa",
        "Tymczak",
        "Pfister",
        "ÄÖ",
        "ab" * 40,
        "99999999999999999999",
        "'",
        "\\",
        "[",
        "_%",
        '{"a": [1.50, {"b": null}], "a": 2}',
        "['x', {'a': 7}] 1",
    ),
)
INTS = (0, 1, -1, 2, 3, 5, 7, -7, 10, 16, 20, 21, 31, 36, 63, 224, 256, 2**31 - 1, -(2**31))
LONGS = (*INTS, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 10**15 + 7, -123456789)
FLOATS = (
    *(0.0, 1.0, -1.0, 0.1, -2.5, 0.5, 1.5, 2.5, 2.675, 1e16, 1e-5, 5e-324, 1e308, -1e308, 1e22),
    *(float("inf"), float("-inf"), float("nan"), 3.141592653589793, 0.7, 12345.6789, 1234567.125),
)
DECIMALS = tuple(map(Decimal, ("0.00", "0.01", "-0.05", "1.25", "-1.35", "9999999999.99", "12.50")))
DAYS = (
    *(date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29), date(2026, 11, 15)),
    *(
        date(2023, 2, 28),
        date(2024, 1, 31),
        date(2024, 12, 31),
        date(9999, 12, 31),
        date(1900, 3, 1),
    ),
)
KNOWN_DAYS = range(-719_162, 2_932_897)
"""The days of the years that there are here: 1 to 9999."""
KNOWN_MOMENTS = range(KNOWN_DAYS.start * 86_400_000_000, KNOWN_DAYS.stop * 86_400_000_000)
MOMENTS = (
    *(datetime(each.year, each.month, each.day, 8, 5, 30, 500, tzinfo=UTC) for each in DAYS),
    datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    *(datetime(2024, 3, 31, hour, 30, tzinfo=UTC) for hour in range(4)),
    *(datetime(2024, 10, 27, hour, 30, tzinfo=UTC) for hour in range(4)),
    datetime(2024, 2, 29, tzinfo=UTC),
)
SINGLES = (
    *(0.0, 1.0, -1.0, 0.1, -2.5, 2.675, 0.7, 1e-5, 12345.678, 16777216.0, -3.4028234663852886e38),
    *(float("inf"), float("-inf"), float("nan"), 2.0**-149, 1e10),
)
BYTES = (b"", b"a", b"az", b"\x00", b"\xff\xfe", b"abc" * 9, "é".encode(), b"-12")
MONTHS = (0, 1, -1, 12, 13, -25, 2**31 - 1, -(2**31))
SPANS = (*map(timedelta, (0, 1, -1, 400)), timedelta(0, -1), timedelta(1, 7265, 123456))
CLOCKS = (time(), time(8, 5), time(12, 34, 56, 500_000), time(23, 59, 59, 999_999), time(13))
COLUMNS: dict[str, tuple[str, pa.DataType, tuple[Any, ...], str]] = {
    "STRING": ("STRING", pa.string(), TEXTS, "stu"),
    "INT": ("INT", pa.int32(), INTS, "ijk"),
    "BIGINT": ("BIGINT", pa.int64(), LONGS, "lmn"),
    "DOUBLE": ("DOUBLE", pa.float64(), FLOATS, "xyz"),
    "FLOAT": ("FLOAT", pa.float32(), SINGLES, "h"),
    "DECIMAL": ("DECIMAL(12,2)", pa.decimal128(12, 2), DECIMALS, "pqr"),
    "BOOLEAN": ("BOOLEAN", pa.bool_(), (True, False), "abc"),
    "DATE": ("DATE", pa.date32(), DAYS, "def"),
    "TIME": ("TIME", pa.time64("us"), CLOCKS, "o"),
    "TIMESTAMP": ("TIMESTAMP", pa.timestamp("us", "UTC"), MOMENTS, "vwg"),
}
NESTED: dict[str, tuple[str, pa.DataType, tuple[Any, ...], tuple[str, ...]]] = {
    "BINARY": ("BINARY", pa.binary(), BYTES, ("b1", "b2")),
    "TIMESTAMP_NTZ": (
        "TIMESTAMP_NTZ",
        pa.timestamp("us"),
        tuple(each.replace(tzinfo=None) for each in MOMENTS),
        ("n1", "n2"),
    ),
    "MONTHS": ("INTERVAL YEAR TO MONTH", pa.int32(), MONTHS, ("y1", "y2")),
    "SPAN": ("INTERVAL DAY TO SECOND", pa.duration("us"), SPANS, ("d1", "d2")),
    "TINYINT": ("TINYINT", pa.int8(), (0, 1, -1, 7, 127, -128), ("i1", "i2")),
    "SMALLINT": ("SMALLINT", pa.int16(), (0, 1, -1, 300, 32767, -32768), ("h1", "h2")),
    "NUMBERS": (
        "ARRAY<BIGINT>",
        pa.list_(pa.int64()),
        ([], [1], [None], [3, 1, None, 2], [7, 7, -1], [2**63 - 1, 0]),
        ("a1", "a2"),
    ),
    "WORDS": (
        "ARRAY<STRING>",
        pa.list_(pa.string()),
        ([], ["a"], [None, ""], ["b", "a", "b"], ["é", " ", "7", None]),
        ("w1", "w2"),
    ),
    "PAIR": (
        "STRUCT<n: BIGINT, t: STRING>",
        pa.struct([("n", pa.int64()), ("t", pa.string())]),
        tuple({"n": n, "t": t} for n in (None, 0, 5, -7) for t in (None, "", "a")),
        ("p1", "p2"),
    ),
    "MAP": (
        "MAP<STRING, BIGINT>",
        pa.map_(pa.string(), pa.int64()),
        ([], [("a", 1)], [("a", None), ("b", 2)], [("", 0), ("7", 7), ("é", -1)]),
        ("m1", "m2"),
    ),
}
"""The columns of a table beside those above: of types that other functions take."""

ALL_COLUMNS = {**COLUMNS, **NESTED}
OF_KIND = {
    Kind.SYMBOL: "STRING",
    Kind.NUMBER: "INT",
    Kind.FLOAT: "DOUBLE",
    Kind.FLOAT32: "FLOAT",
    Kind.DECIMAL: "DECIMAL",
    Kind.BOOL: "BOOLEAN",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
    Kind.TIME_OF_DAY: "TIME",
}


def edge_rows(columns_of: Mapping[str, Any] = COLUMNS) -> pa.Table:
    """Return rows of values from the edges of the types of some columns."""
    dice = random.Random(seed_of_run())
    columns = {"id": pa.array(range(ROWS), pa.int64())}
    for _, type_, values, names in columns_of.values():
        for name in names:
            drawn = [None if dice.random() < 0.08 else dice.choice(values) for _ in range(ROWS)]
            columns[name] = pa.array(drawn, type_)
    return pa.table(columns)


def edge_session(spark: Any, rows: pa.Table | None = None) -> Any:
    """Return a session as views mean it, with the rows as its table `edge`."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.ansi.enabled", "true")
    session.conf.set("spark.sql.timeType.enabled", "true")
    # What two expressions share would be computed outside both, and fail there.
    session.conf.set("spark.sql.subexpressionElimination.enabled", "false")
    session.conf.set("spark.sql.alwaysInlineCommonExpr", "true")
    if rows is not None:
        frame = session.createDataFrame(rows)
        months = {*NESTED["MONTHS"][3]} & {*rows.column_names}
        made = {name: f"make_ym_interval(0, {name}) AS {name}" for name in months}
        for name in {*NESTED["TIMESTAMP_NTZ"][3]} & {*rows.column_names}:
            made[name] = f"CAST({name} AS TIMESTAMP_NTZ) AS {name}"
        items = [made.get(name, name) for name in rows.column_names]
        frame.selectExpr(*items).createOrReplaceTempView("edge")
    return session


def ulps(one: Any, other: Any) -> float:
    """Return how many floats lie between two; none between what is no number."""
    if not isinstance(one, float) or not isinstance(other, float) or not math.isfinite(other):
        return 0.0 if comparable(one) == comparable(other) else math.inf
    return abs(one - other) / math.ulp(other)


def comparable(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [comparable(each) for each in value]
    if isinstance(value, dict):
        return [comparable(each) for each in value.items()]
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack(">d", value + 0.0)
    if isinstance(value, datetime):
        since = value.replace(tzinfo=value.tzinfo or UTC) - datetime(1970, 1, 1, tzinfo=UTC)
        return since // timedelta(microseconds=1)
    if isinstance(value, date):
        return value.toordinal() - date(1970, 1, 1).toordinal()
    return value


def is_near(one: Any, other: Any) -> bool:
    """Whether two values are the same, but for the last digits of a float."""
    if isinstance(one, float) and isinstance(other, float):
        return ulps(one, other) <= ULPS or math.isclose(one, other, rel_tol=1e-14)
    return bool(comparable(one) == comparable(other))
