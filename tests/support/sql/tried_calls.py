"""Calls of functions on rows of edge values: what they give here and in Spark."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp

import corollary
from corollary.core.types import Type
from corollary.frontends.sql.binder.functions.arguments import SqlFunction
from corollary.frontends.sql.binder.functions.table import FUNCTIONS
from corollary.frontends.sql.parse import text_of
from corollary.frontends.sql.query_tree import Expression, FunctionCall
from corollary.source import SourceFile
from support.query_text import parse_text
from support.sql.random_forms import declared, type_of
from support.sql.spark_values import (
    ALL_COLUMNS,
    KNOWN_DAYS,
    KNOWN_MOMENTS,
    ROUNDED,
    ULPS,
    ulps,
)

TRIED = "tried"
"""A function of the test: null where its argument has no value."""

TOGETHER = 25
"""How many calls one query has."""


class Outcome(Enum):
    """What a call gives beside values."""

    FAILED = "an error"
    OTHER_YEARS = "a year out of 1 to 9999"
    NOT_UTF8 = "a text of bytes that are no UTF-8"


FAILED, OTHER_YEARS, NOT_UTF8 = Outcome


Outcomes = dict[str, list[Any]]
"""What calls give in each row."""


def add_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the function of the test to those of SQL."""
    monkeypatch.setitem(FUNCTIONS, TRIED, SqlFunction(1, 1, _tried))


def _tried(arguments: list[Expression], site: Any) -> Expression:
    (value,) = arguments
    return FunctionCall("try", (value,), value.type.with_null(True), site.span)


def outcomes_here(rows: pa.Table, calls: Sequence[str]) -> Outcomes:
    """Return the values of calls in all rows; `FAILED` for an error."""
    found: Outcomes = {}
    columns = {of: each for of, each in ALL_COLUMNS.items() if each[3][0] in rows.column_names}
    with corollary.open(None, engine="local") as db:
        db.sql(f"CREATE TABLE edge (id BIGINT NOT NULL, {declared(columns)})")
        with db.transaction() as transaction:
            transaction.insert("edge", rows)
        for at in range(0, len(calls), TOGETHER):
            some = calls[at : at + TOGETHER]
            items = (f"{TRIED}({each}), {TRIED}(({each}) IS NULL)" for each in some)
            answer = db.sql(f"SELECT {', '.join(items)} FROM edge ORDER BY id").arrow()
            for call, *pair in zip(some, answer.columns[::2], answer.columns[1::2], strict=True):
                found[call] = [
                    value if known is not None else FAILED
                    for value, known in zip(*map(values_of, pair), strict=True)
                ]
    return found


def values_of(values: pa.ChunkedArray) -> list[Any]:
    """Return values as Python has them; the entries of maps are in the order of their keys.

    Dates and timestamps are numbers, `OTHER_YEARS` in years unknown here; texts whose bytes are no
    UTF-8, which Spark has, are `NOT_UTF8`.
    """
    if pa.types.is_date(values.type) or pa.types.is_timestamp(values.type):
        is_date = pa.types.is_date(values.type)
        known = KNOWN_DAYS if is_date else KNOWN_MOMENTS
        numbers = values.cast(pa.int32() if is_date else pa.int64()).to_pylist()
        return [each if each is None or each in known else OTHER_YEARS for each in numbers]
    try:
        found = values.to_pylist()
    except (UnicodeDecodeError, OverflowError):
        found = [_read(each) for each in values]
    is_map = pa.types.is_map(values.type)
    return [sorted(each) if is_map and isinstance(each, list) else each for each in found]


def _read(value: pa.Scalar) -> Any:
    try:
        return value.as_py()
    except UnicodeDecodeError:
        return NOT_UTF8
    except OverflowError:
        return OTHER_YEARS


# ----------------------------------------------------------------------------- compared with Spark


MAKES_MAP = re.compile(r"\bmap\(|map_concat|map_from|str_to_map|transform_keys|map_zip_with")


def outcomes_there(session: Any, calls: Sequence[str], here: Outcomes) -> Outcomes:
    """Return the values of calls in all rows in Spark; `FAILED` for an error.

    What Spark puts around the sum in `try_add` is put around each call: null where it fails.

    Args:
        session: of Spark, with the rows as a table.
        calls: the expressions.
        here: their values here: when Spark finds a key of a map twice, it can make no other map,
            so that of the rows without a map only the first is computed, and apart.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import functions
    from pyspark.sql.classic.column import Column

    spark_sql = session._jvm.org.apache.spark.sql
    catalyst, utilities = spark_sql.catalyst.expressions, spark_sql.classic.ExpressionUtils
    parser = session._jsparkSession.sessionState().sqlParser()

    def tried(call: str) -> Any:
        value = catalyst.KnownNullable(parser.parseExpression(call))
        one = functions.struct(Column(utilities.column(value)))._jc  # null where the call fails
        return Column(utilities.column(catalyst.TryEval(utilities.expression(one))))

    columns = []
    for call in calls:
        failed = [at for at, each in enumerate(here[call]) if each is FAILED]
        if failed and MAKES_MAP.search(call):
            number = functions.col("id")
            columns += [
                functions.when(number == failed[0], tried(call)),
                functions.when(~number.isin(failed), tried(call)),
            ]
        else:
            columns += [tried(call), functions.lit(None)]
    named = [column.alias(f"r{at}") for at, column in enumerate(columns)]
    frame = session.table("edge").select(named)
    try:
        found = frame.toArrow()
    except (PySparkException, Py4JError, ValueError):
        if len(calls) == 1:  # elements of no type, as in `array()`, which are not handed over
            return {calls[0]: [row.r0[0] for row in frame.collect()]}
        half = len(calls) // 2
        parts = (calls[:half], calls[half:])
        return {
            call: each
            for part in parts
            for call, each in outcomes_there(session, part, here).items()
        }
    outcomes = {}
    for call, *pair in zip(calls, found.columns[::2], found.columns[1::2], strict=True):
        one, other = (_tried_values(each) for each in pair)
        outcomes[call] = [
            each if each is not FAILED else rest for each, rest in zip(one, other, strict=True)
        ]
    return outcomes


def _tried_values(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_null(column.type):
        return [FAILED] * len(column)
    structs = column.combine_chunks()
    values = values_of(pa.chunked_array([structs.field(0)]))
    known = structs.is_valid().to_pylist()
    return [value if is_known else FAILED for is_known, value in zip(known, values, strict=True)]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a call that is a call itself, and those in it; of lambdas, the columns."""

    text: str
    operands: tuple[Part, ...]

    def texts(self) -> set[str]:
        """Return the texts of this part and of all in it."""
        return {self.text}.union(*(each.texts() for each in self.operands))


def part_of(call: str) -> Part:
    """Return a call as the parts that it is made of."""
    file = SourceFile("query.sql", f"SELECT {call} FROM edge")
    (node,) = parse_text(file).expressions
    return Part(call, _operands(node, file))


def _operands(node: exp.Expr, file: SourceFile) -> tuple[Part, ...]:
    found: list[Part] = []
    for each in node.iter_expressions():
        if isinstance(each, exp.DataType):
            continue
        if isinstance(each, exp.Lambda):
            lambdas = each.find_all(exp.Lambda)
            parameters = {name.name for part in lambdas for name in part.expressions}
            names = {part.name for part in each.find_all(exp.Column)} - parameters
            found += [Part(readable(name, type_), ()) for name in names if (type_ := type_of(name))]
            continue
        text, operands = text_of(each, file), _operands(each, file)
        type_ = type_of(text) if text else None
        found += operands if type_ is None else [Part(readable(text, type_), operands)]
    return tuple(found)


def readable(call: str, type_: Type) -> str:
    """Return a call, as a text if it is an interval of months, which Spark does not hand over."""
    return f"CAST({call} AS STRING)" if re.search("YEAR|MONTH", type_.spark_name) else call


@dataclass(frozen=True, slots=True)
class Difference:
    """A call that is not as in Spark in a row, by the smallest part of it that is not."""

    call: str
    part: str
    here: Any
    there: Any
    operands: dict[str, Any]
    """What the operands of the part are, here as in Spark."""

    def __str__(self) -> str:
        whole = "" if self.part == self.call else f", in {self.call}"
        return (
            f"{self.part}: {self.here!r} here, {self.there!r} in Spark for {self.operands}{whole}"
        )


def differences(session: Any, rows: pa.Table, calls: list[str]) -> list[Difference]:
    """Return what is not as in Spark, of each call in each row."""
    here = outcomes_here(rows, calls)
    there = outcomes_there(session, calls, here)
    wrong = {
        call: [at for at in range(rows.num_rows) if not _agree(call, at, here, there)]
        for call in calls
    }
    parts = {call: part_of(call) for call, found in wrong.items() if found}
    more = sorted({text for part in parts.values() for text in part.texts()} - here.keys())
    here |= outcomes_here(rows, more)
    there |= outcomes_there(session, more, here)
    return [_lowest(call, parts[call], at, here, there) for call in parts for at in wrong[call]]


def _agree(call: str, at: int, here: Outcomes, there: Outcomes) -> bool:
    one, other = here[call][at], there[call][at]
    if one is FAILED or other is FAILED:
        return one is other
    return ulps(one, other) <= (ULPS if call.partition("(")[0] in ROUNDED else 0)


def _lowest(call: str, part: Part, at: int, here: Outcomes, there: Outcomes) -> Difference:
    for operand in part.operands:
        if not _agree(operand.text, at, here, there):
            return _lowest(call, operand, at, here, there)
    operands = {each.text: there[each.text][at] for each in part.operands}
    return Difference(call, part.text, here[part.text][at], there[part.text][at], operands)
