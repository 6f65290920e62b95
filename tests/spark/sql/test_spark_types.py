"""The types of columns of SQL queries are those that Spark gives them, and so are their values.

Spark analyses the queries of `tests/cases/sql_trees`, and evaluates every function in them. Its
integers are all `number` here; a decimal has the same digits, which decide how values are rounded.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException
from sqlglot import exp

import corollary
from corollary.core.types import Kind
from corollary.errors import EvaluationError
from corollary.frontends.sql.parse import text_of
from corollary.frontends.sql.query_tree import output_columns
from corollary.source import SourceFile
from support.paths import REPOSITORY
from support.query_text import DECLARATIONS, bind_text, parse_text
from support.sql.spark_values import is_near

pytestmark = [pytest.mark.spark, pytest.mark.long]

VIEWS = (
    (
        "CREATE OR REPLACE TEMP VIEW t AS SELECT CAST(1 AS BIGINT) k, CAST(2 AS BIGINT) a, 'x' s, "
        "DATE '2026-01-31' d, CAST(1.25 AS DECIMAL(12, 2)) m, CAST(0.5 AS DOUBLE) f, "
        "TIMESTAMP '2026-01-31 08:00:00' ts, true b"
    ),
    "CREATE OR REPLACE TEMP VIEW u AS SELECT CAST(1 AS BIGINT) a, CAST(2 AS BIGINT) c, 'x' w",
    "CREATE OR REPLACE TEMP VIEW edge AS SELECT 'x' x, 'y' y",
)
moment = partial(datetime, tzinfo=UTC)
NAMES = ("functions", "grouping", "windows", "select", "set_operations", "joins", "subqueries")
UNKNOWN_TO_SPARK = (
    *(" big", ":k"),  # a type that Spark has not; parameters are given in another way
    "date_sub(d, k)",  # every integer is a BIGINT here
    "group by (a, k)",
    *("> all (select", "x = t.s", "(select max(c) from u where u.a = t.a) from t group by a"),
)
OTHER_VALUES = ("current_date", "curdate")
NO_ERROR = ("map(s, k)['a']", "map(s, k).a", "size(map(s, k))")
"""Errors here, where Spark has a value: its optimiser makes no map, and finds no null key."""

ROWS = [
    (
        1,
        2,
        "abc",
        date(2026, 1, 31),
        Decimal("1.25"),
        0.5,
        moment(2026, 1, 31, 8, 5, 7, 250_000),
        True,
    ),
    (2, None, None, date(2024, 2, 29), Decimal("-7.55"), -2.5, None, False),
    (
        3,
        -5,
        "a!%x,y",
        date(1999, 12, 31),
        Decimal("0.00"),
        3.75,
        moment(1969, 12, 31, 23, 59, 59),
        True,
    ),
    (4, 0, " Ab É ", date(2026, 11, 16), Decimal("99.99"), 1e10, moment(2026, 11, 16), False),
    (5, 7, "12", date(2000, 1, 1), Decimal("12345678.90"), -0.125, moment(1900, 3, 1, 12), True),
]
SCHEMA = "k bigint, a bigint, s string, d date, m decimal(12,2), f double, ts timestamp, b boolean"
TYPES = (
    "tinyint",
    "bigint",
    "double",
    "float",
    "time",
    "decimal(5, 2)",
    "boolean",
    "date",
    "timestamp",
)
TEXTS = (
    *(
        "s",
        "'12'",
        "' -7 '",
        "'1e2'",
        "'1.235'",
        "'-0.005'",
        "'999.995'",
        "'yes'",
        "'F'",
        "'2026-1-5'",
    ),
    *(
        "'2026'",
        "'2026-02-30'",
        "'2026-01-05 08:00:00.123+02:00'",
        "'2026-01-05T8:5'",
        "'NaN'",
        "'1.5f'",
        "'2D'",
        "'0x1p3'",
        "''",
    ),
)


def queries(*names: str) -> list[str]:
    """Returns the queries of some cases; those of functions one column at a time."""
    folder = REPOSITORY / "tests" / "cases" / "sql_trees"
    found: list[str] = []
    for name in names:
        for query in (folder / f"{name}.sql").read_text("utf-8").strip().split("\n\n"):
            found += columns_of(query) if name == "functions" else [query]
    return [query for query in found if not any(part in query for part in UNKNOWN_TO_SPARK)]


def columns_of(query: str) -> list[str]:
    """Returns one query for each column of a SELECT from `t`, or the query itself."""
    file = SourceFile("query.sql", query)
    tree = parse_text(file)
    if not query.endswith(" from t") or not isinstance(tree, exp.Select):
        return [query]
    return [f"select {text_of(each, file)} from t" for each in tree.expressions]


def test_functions_have_the_values_of_spark(spark: Any) -> None:
    """Each on rows with and without null; where one of both has no value, neither has."""
    rows = [(*row[:6], row[6] and row[6].replace(tzinfo=None), row[7]) for row in ROWS]
    spark.createDataFrame(rows, SCHEMA).createOrReplaceTempView("t")
    expressions = [
        text
        for query in queries("functions")
        if query.endswith(" from t") and not any(part in query for part in OTHER_VALUES)
        for text in readable(query.removeprefix("select ").removesuffix(" from t"))
    ] + [f"try_cast({text} as {type_})" for text in TEXTS for type_ in TYPES]
    with corollary.open(None, engine="local") as database:
        database.load(text=DECLARATIONS)
        with database.transaction() as transaction:
            transaction.insert("t", ROWS)
        own = {each: own_values(database, each) for each in expressions}
    sound = [each for each, values in own.items() if values is not None]
    there = spark.sql(f"select {', '.join(sound)} from t order by k").collect()
    found = {each: [plain(row[at]) for row in there] for at, each in enumerate(sound)}
    pairs = {each: (own[each], found[each]) for each in sound}
    unequal = [f"{each}: {pair}" for each, pair in pairs.items() if not is_same(*pair)]
    assert not unequal, "\n".join(unequal)
    missing = [each for each, values in own.items() if values is None and each not in NO_ERROR]
    assert [each for each in missing if not fails(spark, each)] == []


def fails(spark: Any, expression: str) -> bool:
    """Whether Spark has an error in some row."""
    try:
        spark.sql(f"select {expression} from t").collect()
    except PySparkException:
        return True
    return False


def readable(expression: str) -> list[str]:
    """Returns an expression, unless it is several; months, which PySpark has not, as a text."""
    columns = output_columns(bind_text(f"select {expression} from t"))
    if len(columns) > 1:
        return []
    is_months = columns[0].type.logical is Kind.MONTHS
    return [f"cast({expression} as string)" if is_months else expression]


def own_values(database: Any, expression: str) -> list[object] | None:
    """Returns the values of an expression; None if it has none for some row."""
    try:
        rows = database.sql(f"select {expression}, k from t order by k").rows()
    except EvaluationError:
        return None
    return [plain(row[0]) for row in rows]


def plain(value: object) -> object:
    """Returns a value in which only what matters is compared: NaN is itself, times are in UTC."""
    if isinstance(value, dict):
        return sorted([plain(key), plain(each)] for key, each in value.items())
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat()
    return str(value) if isinstance(value, Decimal | bool) else value


def is_same(one: object, other: object) -> bool:
    """Whether values are the same, but for the last digits of floats."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    return is_near(one, other)


def test_types_are_those_of_spark(spark: Any) -> None:
    for view in VIEWS:
        spark.sql(view)
    wrong = []
    for query in queries(*NAMES):
        own = [column.type.spark_name.lower() for column in output_columns(bind_text(query))]
        try:
            fields = spark.sql(query).schema.fields
        except AnalysisException as error:
            wrong.append(f"{query}: {error}")
            continue
        there = [each.dataType.simpleString() for each in fields]
        there = ["string" if name == "void" else name for name in there]
        own = [re.sub(r"([,:]) |`", r"\1", name) for name in own]  # of nested types
        if own != there:
            wrong.append(f"{query}: {own}, but Spark has {there}")
    assert not wrong, "\n".join(wrong)
