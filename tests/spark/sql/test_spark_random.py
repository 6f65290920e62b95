"""Random expressions over all types have the types, the values and the errors of Spark.

Functions are called with whatever the binder takes; what Spark itself refuses is left out.
"""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from corollary.core.engine import BULK_VARIABLE, BulkMode
from corollary.frontends.sql.binder.functions.table import INTERNAL, function_names
from support.figures import FIGURES
from support.selection import sampled, seed_of_run
from support.sql.random_forms import (
    COMPARISONS,
    forms_of,
    of_types,
    random_calls,
    signature_forms,
    type_of,
)
from support.sql.spark_values import ALL_COLUMNS, DIFFERENT, ROUNDED, edge_rows, edge_session
from support.sql.tried_calls import add_tried, differences

TOGETHER = 100
"""How many expressions one test compares."""

EXPRESSIONS = 10_000
TYPES = tuple(ALL_COLUMNS)
SIMPLE = tuple(of for of in TYPES if of != "MAP")
WHOLE = ("INT", "BIGINT", "SMALLINT", "TINYINT")
NOT_DRAWN = {
    *(*INTERNAL, *DIFFERENT, *ROUNDED, "degrees", "radians", "rint", "curdate", "current_date"),
    *("map_keys", "map_values", "map_entries", "to_json"),  # the order of the entries of maps
    *("lpad", "rpad", "array_repeat", "sequence"),  # too much for a value
    *("current_date", "getbit", "bit_get"),
}
"""Functions that differ by what docs/sql.md says, which others would make much of."""

TARGETS = (
    *("STRING", "INT", "BIGINT", "SMALLINT", "TINYINT", "DOUBLE", "FLOAT", "DECIMAL(12,2)", "DATE"),
    *("BOOLEAN", "TIMESTAMP", "TIMESTAMP_NTZ", "BINARY", "TIME", "INTERVAL DAY TO SECOND"),
    *("INTERVAL YEAR TO MONTH", "ARRAY<BIGINT>", "ARRAY<STRING>"),
)
OPERATORS = (
    *(f"({{{a}}} {sign} {{{b}}})" for a in TYPES for b in TYPES for sign in "+-*/%"),
    *(f"({{{a}}} {sign} {{{b}}})" for a in WHOLE for b in WHOLE for sign in ("&", "|", "^", "DIV")),
    *(f"(- {{{of}}})" for of in TYPES),
    *(f"(~ {{{of}}})" for of in WHOLE),
    *(
        f"{way}({{{of}}} AS {target})"
        for way in ("CAST", "try_cast")
        for of in TYPES
        for target in TARGETS
    ),
    *(
        f"{name}({{{a}}}, {{{b}}})"
        for name in ("nullif", "array", "coalesce")
        for a in TYPES
        for b in TYPES
    ),
    *(f"if({{BOOLEAN}}, {{{a}}}, {{{b}}})" for a in TYPES for b in TYPES),
    *(f"({{{a}}} IN ({{{b}}}, {{{a}}}))" for a in SIMPLE for b in SIMPLE),
    *of_types(COMPARISONS, SIMPLE),
    *(
        f"extract({part} FROM {{{of}}})"
        for part in ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
        for of in ("DATE", "TIME", "TIMESTAMP", "TIMESTAMP_NTZ", "MONTHS", "SPAN")
    ),
    *("({PAIR}).n", "({PAIR}).t", "named_struct('n', {BIGINT}, 't', {STRING})", "{MAP}[{STRING}]"),
    *(
        "{NUMBERS}[{INT}]",
        "filter({WORDS}, (x, i) -> i < {INT})",
        "forall({WORDS}, x -> x = {STRING})",
    ),
    *("transform({NUMBERS}, (x, i) -> x * i)", "zip_with({NUMBERS}, {NUMBERS}, (x, y) -> x + y)"),
    *("aggregate({NUMBERS}, {BIGINT}, (a, x) -> a + x)", "exists({NUMBERS}, x -> x > {BIGINT})"),
    *("flatten(array({NUMBERS}, {NUMBERS}))", "map_filter({MAP}, (k, v) -> v > {BIGINT})"),
    *("regexp_replace({STRING}, '[a-c]+', {STRING})", "regexp_extract({STRING}, '([a-z])(.)', 2)"),
    *("split({STRING}, 'b', {INT})", "next_day({DATE}, 'MO')", "trunc({DATE}, 'QUARTER')"),
    *("date_trunc('MONTH', {TIMESTAMP})", "date_trunc('WEEK', {TIMESTAMP_NTZ})"),
    *("time_trunc('HOUR', {TIME})", "time_diff('MINUTE', {TIME}, {TIME})"),
    "make_timestamp({INT}, {TINYINT}, {TINYINT}, {TINYINT}, {TINYINT}, {DECIMAL})",
)


NAMED = {
    r'cannot be cast to "INT"': "texts and BIGINTs where Spark has an INT",
    r"(?i)(date|time|unix|month|year|\b[defvwg]\b|'n[12]').*(: None here|a value here)": "years",
    r"(: None|no value) here, -?inf in Spark": "a DOUBLE that gets too large",
    r"(?i)E-324|[1-9]{3}[0-9]*E[0-9]": "the fewest digits of a text",
    r"\\x00": "no text has the character 0",
    r"'[hxyz]': '-?0\.0'": "there is one zero",
    r"(struct|array|map|nvl2)\(.*: no value here": "Spark does not compute what follows a null",
}
"""What a line tells of differences that docs/sql.md names, and which."""


@pytest.mark.parametrize("at", sampled(range(0, EXPRESSIONS, TOGETHER), EXPRESSIONS // TOGETHER))
def test_random_expressions(spark: Any, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    add_tried(monkeypatch)
    is_bulk = at // TOGETHER % 10 == 9
    monkeypatch.setenv(BULK_VARIABLE, BulkMode.ALWAYS if is_bulk else BulkMode.NEVER)
    dice = random.Random(f"{seed_of_run()} {at}")
    names = dice.sample(sorted({*function_names()} - NOT_DRAWN), 40)
    forms = forms_of(dice, [*signature_forms(dice, names), *dice.sample(OPERATORS, 200)])
    rows = edge_rows(ALL_COLUMNS).slice(0, 60)
    session = edge_session(spark, rows)
    calls, wrong = [], []
    for call in random_calls(dice, forms, TOGETHER):
        try:
            (field,) = session.sql(f"SELECT {call} FROM edge").schema.fields
        except AnalysisException:
            continue
        calls.append(call)
        there, here = field.dataType.simpleString(), type_of(call)
        is_untyped = "void" in there  # `array()`: nothing is without a type here
        if here is not None and not is_untyped and short(here.spark_name) != short(there):
            wrong.append(f"{call}: {here.spark_name} here, {there} in Spark")
    found = differences(session, rows, calls, 10)
    named = [line for line in found if any(re.search(each, line) for each in NAMED)]
    FIGURES["expressions of all types"] += len(calls)
    FIGURES["expressions of all types that differ as docs/sql.md says"] += len(named)
    assert wrong + [line for line in found if line not in named] == []


def short(name: str) -> str:
    """Return the name of a type as Spark writes it."""
    return name.lower().replace("`", "").replace(", ", ",").replace(": ", ":")
