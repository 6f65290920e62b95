"""Calls of functions on rows of edge values: what they give here and in Spark."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import sqlglot
from sqlglot import exp

import corollary
from corollary.frontends.sql.binder.functions.arguments import SqlFunction
from corollary.frontends.sql.binder.functions.table import FUNCTIONS
from corollary.frontends.sql.query_tree import Expression, FunctionCall
from support.sql.random_forms import declared
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

FAILED = object()
"""What a call gives that fails."""


def add_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the function of the test to those of SQL."""
    monkeypatch.setitem(FUNCTIONS, TRIED, SqlFunction(1, 1, _tried))


def _tried(arguments: list[Expression], site: Any) -> Expression:
    (value,) = arguments
    return FunctionCall("try", (value,), value.type.with_null(True), site.span)


def outcomes_here(rows: pa.Table, calls: list[str]) -> dict[str, list[Any]]:
    """Return the values of calls in all rows; `FAILED` for an error."""
    found: dict[str, list[Any]] = {}
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
    """Return values as Python has them; the entries of maps are in the order of their keys."""
    found = plain(values).to_pylist()
    return [each and sorted(each) for each in found] if pa.types.is_map(values.type) else found


def plain(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values of Spark; dates and timestamps as numbers, null in years unknown here."""
    if pa.types.is_date(values.type):
        return within(values.cast(pa.int32()), KNOWN_DAYS)
    if pa.types.is_timestamp(values.type):
        return within(values.cast(pa.int64()), KNOWN_MOMENTS)
    return values


def within(values: pa.ChunkedArray, known: range) -> pa.ChunkedArray:
    is_known = pc.and_(pc.greater_equal(values, known.start), pc.less(values, known.stop))
    return pc.if_else(is_known, values, pa.scalar(None, values.type))


# ----------------------------------------------------------------------------- compared with Spark

OF_TIME = re.compile(r"\b[defvwg]\b|\b[ny][12]\b|date|time|unix", re.IGNORECASE)
"""What is computed of dates and timestamps; Spark has more years than there are here."""

LAZY = re.compile(r" (?:AND|OR|IN|BETWEEN) |try_", re.IGNORECASE)
"""What may be decided here by an operand that follows one without a value."""


def outcomes_there(session: Any, failed: dict[str, list[int]]) -> dict[str, list[Any]]:
    """Return the values of calls in Spark, without the rows that fail here."""
    calls = list(failed)
    items = [
        f"CASE WHEN id NOT IN ({', '.join(map(str, [-1, *failed[call]]))}) THEN {call} END AS r{at}"
        for at, call in enumerate(calls)
    ]
    frame = session.sql(f"SELECT {', '.join(items)} FROM edge ORDER BY id")
    try:
        found = frame.toArrow()
    except ValueError:  # Arrow refuses elements of no type that are never null, as in `array()`
        if len(calls) > 1:
            raise
        found = pa.table({"r0": pa.array([each.r0 for each in frame.collect()])})
    columns = [found[f"r{at}"] for at in range(len(calls))]
    return {call: values_of(each) for call, each in zip(calls, columns, strict=True)}


def answered_there(
    session: Any, failed: dict[str, list[int]]
) -> tuple[dict[str, list[Any]], dict[str, str]]:
    """Return the values of calls in Spark, and the errors of those that have none."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        return outcomes_there(session, failed), {}
    except (PySparkException, Py4JError, ValueError) as error:
        if len(failed) == 1:
            return {}, dict.fromkeys(failed, str(error)[:300])
    calls, half = list(failed), len(failed) // 2
    one, other = (
        answered_there(session, {call: failed[call] for call in part})
        for part in (calls[:half], calls[half:])
    )
    return one[0] | other[0], one[1] | other[1]


def is_folded(call: str) -> bool:
    """Whether Spark does not compute a condition, as both sides of it are equal."""
    parts = sqlglot.parse_one(call, read="spark").find_all(exp.If)
    return any(each.args["true"] == each.args.get("false") for each in parts)


def differences(session: Any, rows: pa.Table, calls: list[str], proved: int) -> list[str]:
    """Return what is not as in Spark, a line for each call.

    Args:
        session: of Spark, with the rows as a table.
        rows: what the calls are applied to.
        calls: the expressions.
        proved: of how many that fail here Spark is asked whether they do there, each by a query.
    """
    here = outcomes_here(rows, calls)
    failed = {call: [at for at, each in enumerate(here[call]) if each is FAILED] for call in calls}
    there, errors = answered_there(session, failed)
    lines = [
        f"{call}: a value here, but Spark: {error}"
        for call, error in errors.items()
        if not LAZY.search(call)
    ]

    def shown(call: str, at: int) -> dict[str, Any]:
        return {
            name: str(rows[name][at])
            for name in re.findall(r"\b[a-z]\d?\b", call)
            if name in rows.column_names
        }

    for call in there:
        near = ULPS if call.partition("(")[0] in ROUNDED else 0
        for at, (one, other) in enumerate(zip(here[call], there[call], strict=True)):
            if one is not FAILED and ulps(one, other) > near:
                lines.append(f"{call}: {one!r} here, {other!r} in Spark for {shown(call, at)}")
                break
    for call in [call for call in there if failed[call] and not OF_TIME.search(call)][:proved]:
        at = failed[call][0]
        others = [each for each in range(rows.num_rows) if each != at]
        found, _ = answered_there(session, {call: others})
        # Spark does not compute what follows a null.
        if call in found and found[call][at] is not None and not is_folded(call):
            lines.append(f"{call}: no value here, {found[call][at]} in Spark for {shown(call, at)}")
    return lines
