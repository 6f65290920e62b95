"""Casts between all types have the values of Spark, and its errors, for values at their edges.

A year out of 1 to 9999 is an error here, and not compared.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import cycle, islice
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

from support.figures import FIGURES
from support.sql.random_forms import type_of
from support.sql.spark_values import (
    ALL_COLUMNS,
    comparable,
    edge_session,
)
from support.sql.tried_calls import FAILED, OTHER_YEARS, add_tried, outcomes_here, values_of

pytestmark = pytest.mark.long

TEXTS = (
    *("12", " -7 ", "1e2", "1.235", "-0.005", "999.995", "yes", "F", "t", "2026-1-5", "2026", "0"),
    *("2026-02-30", "2026-01-05 08:00:00.123+02:00", "2026-01-05T8:5", "NaN", "1.5f", "2D", "-Inf"),
    *("0x1p3", "128", "-32769", "2147483648", "9223372036854775808", "99999999999.995", "12:34:56"),
    *("8:5", "24:00:00", "23:59:59.9999999", "1-2", "-0-11", "INTERVAL '1-2' YEAR TO MONTH"),
    *(
        "1 02:03:04.5",
        "-0 00:00:00.000001",
        "INTERVAL '3 04:05:06' DAY TO SECOND",
        "1 2",
        "infinity",
    ),
)
TARGETS = (
    *("STRING", "BINARY", "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE"),
    *("DECIMAL(12,2)", "DECIMAL(3,0)", "DECIMAL(38,18)", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ"),
    *("TIME", "INTERVAL YEAR TO MONTH", "INTERVAL MONTH", "INTERVAL DAY TO SECOND"),
    *("INTERVAL HOUR", "ARRAY<INT>", "ARRAY<STRING>", "STRUCT<x: INT, y: STRING>"),
    "MAP<STRING, STRING>",
)
VALUES = {of: column[2] for of, column in ALL_COLUMNS.items()}
VALUES["STRING"] = (*VALUES["STRING"], *TEXTS)
ROWS = max(map(len, VALUES.values())) + 1


def every_value() -> pa.Table:
    """Return rows in which each value of each type is there, and null."""
    columns = {"id": pa.array(range(ROWS), pa.int64())}
    for of, (_, type_, _, names) in ALL_COLUMNS.items():
        values = [None, *islice(cycle(VALUES[of]), ROWS - 1)]
        columns |= dict.fromkeys(names, pa.array(values, type_))
    return pa.table(columns)


def taken_there(session: Any, cast: str) -> str | None:
    """Return the type of a cast in Spark; None if it refuses it."""
    try:
        return str(session.sql(f"SELECT {cast} FROM edge").schema.fields[0].dataType)
    except AnalysisException:
        return None


def kind_of(of: str, target: str, value: Any = None, theirs: Any = None) -> str | None:
    """Return which of the differences that are known a cast is, if one."""
    if of == "TIME" and target.startswith("TIMESTAMP"):
        return "Spark takes the day of today for a TIME"
    if of == "STRING" and target.startswith("TIMESTAMP") and re.match(r"\d+:", value or ""):
        return "Spark takes the day of today for a text without one"
    if target.startswith("DECIMAL") and isinstance(value, float) and not math.isfinite(value):
        return "null in both, and no error"
    if of in {"DOUBLE", "FLOAT"} and target == "STRING" and value and float(theirs) == value:
        return "Java 17 does not write the fewest digits"
    if of == "BINARY" and target == "STRING" and "\0" in (theirs or ""):
        return "no text has the character 0"
    return None


def test_casts_are_those_of_spark(
    spark: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_tried(monkeypatch)
    rows = every_value()
    session = edge_session(spark, rows)
    casts = {
        f"CAST({column[3][0]} AS {target})": (of, target)
        for of, column in ALL_COLUMNS.items()
        for target in TARGETS
    }
    known = {cast: (type_of(cast), taken_there(session, cast)) for cast in casts}
    wrong = [
        f"{cast}: taken {'here' if mine else 'by Spark'} alone"
        for cast, (mine, theirs) in known.items()
        if (mine is None) != (theirs is None) and not kind_of(*casts[cast])
    ]
    both = [cast for cast, (mine, theirs) in known.items() if mine and theirs]
    # What Spark does not hand over is compared as a text.
    texts = {
        cast: f"CAST({cast} AS STRING)" if re.search("YEAR|MONTH", casts[cast][1]) else cast
        for cast in both
    }
    here = outcomes_here(rows, [*texts.values()])
    tries = [texts[cast].replace(cast, f"TRY_{cast}") for cast in both]
    tries = [f"try_validate_utf8({each})" if "(b1 AS STRING)" in each else each for each in tries]
    items = ", ".join(f"{each} AS c{at}" for at, each in enumerate(tries))
    there = session.sql(f"SELECT {items} FROM edge ORDER BY id").toArrow()
    compared, kinds = 0, Counter[str]()
    for number, cast in enumerate(both):
        of, target = casts[cast]
        given = values_of(rows[ALL_COLUMNS[of][3][0]])
        for value, mine, theirs in zip(
            given, here[texts[cast]], values_of(there[f"c{number}"]), strict=True
        ):
            compared += 1
            has_lost = repr(theirs).count("None") > repr(value).count("None")
            has_lost |= theirs is OTHER_YEARS
            is_same = has_lost if mine is FAILED else comparable(mine) == comparable(theirs)
            if mine is not FAILED and has_lost:
                is_same = False
            if kind := None if is_same else kind_of(of, target, value, theirs):
                kinds[kind] += 1
            elif not is_same:
                shown = "an error" if mine is FAILED else repr(mine)
                wrong.append(f"{cast} of {value!r}: {shown} here, {theirs!r} in Spark")
    with capsys.disabled():
        print(f"\n{compared} casts of {len(both)} pairs of types, {kinds.total()} known to differ")
        for kind, count in kinds.most_common():
            print(f"  {count:4}  {kind}")
    FIGURES["casts"] += compared
    assert wrong == [], "\n".join(wrong)
