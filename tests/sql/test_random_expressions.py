"""Random expressions of SQL are what DuckDB computes, where it means the same by them."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import duckdb
import pytest
import sqlglot

from corollary.core.engine import BULK_VARIABLE, BulkMode
from support.selection import examples, sampled, seed_of_run
from support.sql.random_forms import COMPARISONS, Forms, forms_of, of_types, random_calls
from support.sql.spark_values import ALL_COLUMNS, ROWS, comparable, edge_rows
from support.sql.tried_calls import FAILED, OTHER_YEARS, add_tried, outcomes_here, values_of

TOGETHER = 100
"""How many expressions one test computes."""

EXPRESSIONS = examples(100, 10_000)
TYPES = (
    *("STRING", "INT", "BIGINT", "DOUBLE", "DECIMAL", "BOOLEAN", "DATE", "TIME", "TIMESTAMP_NTZ"),
    *("BINARY", "TINYINT", "SMALLINT", "NUMBERS", "WORDS"),
)
ANY = (
    *("coalesce({0}, {0})", "nullif({0}, {0})", "if({BOOLEAN}, {0}, {0})"),
    "CASE WHEN {BOOLEAN} THEN {0} WHEN {BOOLEAN} THEN {0} END",
    *("get(filter(array({0}, {0}), each -> each IS NOT NULL), 0)", "nvl2({0}, {0}, {0})"),
)
ORDERED = ("greatest({0}, {0})", "least({0}, {0})", *COMPARISONS[:-2])
"""Not of lists, of which DuckDB has those that begin with null last."""

OWN = (
    *("({BOOLEAN} AND {BOOLEAN})", "({BOOLEAN} OR {BOOLEAN})", "(NOT {BOOLEAN})"),
    *(f"({{{of}}} {sign} {{{of}}})" for of in ("BIGINT", "INT", "SMALLINT") for sign in "+-*"),
    *(f"({{{of}}} {sign} {{{of}}})" for of in ("BIGINT", "INT") for sign in "%&|"),
    *(
        "(- {BIGINT})",
        "abs({BIGINT})",
        "abs({INT})",
        "bit_count({BIGINT})",
        "CAST({INT} AS BIGINT)",
    ),
    *("CAST({INT} AS BIGINT)", "try_cast({BIGINT} AS INT)"),
    *("try_cast({INT} AS SMALLINT)", "try_cast({INT} AS TINYINT)"),
    *("(- {DOUBLE})", "abs({DOUBLE})", "CAST({BIGINT} AS DOUBLE)", "({DOUBLE} * 0.5D)"),
    *("CAST({DECIMAL} AS DOUBLE)", "abs({DECIMAL})"),
    *("({DECIMAL} + {DECIMAL})", "({DECIMAL} - {DECIMAL})", "({DECIMAL} > {INT})"),
    *("({STRING} || {STRING})", "lower({STRING})", "length({STRING})"),
    *("replace({STRING}, {STRING}, {STRING})", "reverse({STRING})", "concat_ws('-', {STRING})"),
    *("contains({STRING}, {STRING})", "startswith({STRING}, {STRING})", "hex({BINARY})"),
    *("CAST({INT} AS STRING)", "CAST({DECIMAL} AS STRING)", "CAST({DATE} AS STRING)"),
    *("CAST({BOOLEAN} AS STRING)", "md5({STRING})", "ascii({STRING})", "repeat({STRING}, 2)"),
    *("last_day({DATE})", "({DATE} + {TINYINT})", "datediff({DATE}, {DATE})", "year({DATE})"),
    *("month({DATE})", "dayofyear({DATE})", "quarter({DATE})"),
    *("CAST({DATE} AS TIMESTAMP_NTZ)", "CAST({TIMESTAMP_NTZ} AS DATE)", "hour({TIMESTAMP_NTZ})"),
    *("date_trunc('HOUR', {TIMESTAMP_NTZ})", "minute({TIME})", "hour({TIME})"),
    *("transform({NUMBERS}, each -> each & {BIGINT})", "array({BIGINT}, {BIGINT})"),
    *("filter({NUMBERS}, each -> each > {BIGINT})", "size({NUMBERS})", "array({STRING}, {STRING})"),
    *("transform({WORDS}, each -> each || {STRING})", "array_append({WORDS}, {STRING})"),
    *("get({NUMBERS}, 1)", "get({WORDS}, 0)"),
)
"""What is the same in both; most functions differ for values at the edges of their types."""


@cache
def forms_of_run() -> Forms:
    columns = {of: ALL_COLUMNS[of] for of in TYPES}
    forms = [*of_types(ANY, columns), *of_types(ORDERED, TYPES[:-2]), *OWN]
    return forms_of(random.Random(seed_of_run()), forms)


@pytest.mark.slow
@pytest.mark.parametrize("at", sampled(range(0, EXPRESSIONS, TOGETHER), 1))
def test_random_expressions_are_those_of_duckdb(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    add_tried(monkeypatch)
    monkeypatch.setenv(BULK_VARIABLE, BulkMode.ALWAYS if at // TOGETHER % 2 else BulkMode.NEVER)
    rows = edge_rows(ALL_COLUMNS)
    calls = random_calls(random.Random(f"{seed_of_run()} {at}"), forms_of_run(), TOGETHER)
    here = outcomes_here(rows, calls)
    wrong, compared = [], 0
    with duckdb.connect() as other:
        other.execute("SET TimeZone = 'UTC'")
        other.execute("CREATE MACRO get(a, i) AS a[i + 1]")
        other.register("edge", rows)
        for call in calls:
            compared += 1
            for row, (one, theirs) in enumerate(
                zip(here[call], outcomes(other, call), strict=True)
            ):
                is_known = FAILED not in (one, theirs) and theirs is not OTHER_YEARS
                if is_known and comparable(one) != comparable(theirs):
                    wrong.append(f"{call}: {one!r} here, {theirs!r} in DuckDB, row {row}")
                    break
    assert wrong == []
    assert compared > TOGETHER / 2


def outcomes(other: duckdb.DuckDBPyConnection, call: str) -> list[Any]:
    """Return what DuckDB computes; `FAILED` for an error."""
    text = sqlglot.transpile(call, read="spark", write="duckdb")[0]
    query = f"SELECT TRY({text}) AS x, TRY(({text}) IS NULL) AS known FROM edge ORDER BY id"
    try:
        found = other.sql(query).to_arrow_table()
    except (duckdb.OutOfRangeException, duckdb.InvalidInputException):  # in a list, TRY has no hold
        return [FAILED] * ROWS
    pairs = zip(*map(values_of, found.columns), strict=True)
    return [value if known is not None else FAILED for value, known in pairs]
