"""Calls of functions on rows of edge values: what they give here, with errors as a value."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import corollary
from corollary.frontends.sql.binder.functions.arguments import SqlFunction
from corollary.frontends.sql.binder.functions.table import FUNCTIONS
from corollary.frontends.sql.query_tree import Expression, FunctionCall
from support.sql.random_forms import declared
from support.sql.spark_values import ALL_COLUMNS

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
    """Return values of Spark; dates and timestamps, also those that Python has not, as numbers."""
    if pa.types.is_date(values.type):
        return values.cast(pa.int32())
    return values.cast(pa.int64()) if pa.types.is_timestamp(values.type) else values
