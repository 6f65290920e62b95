"""Random expressions over all types have the types, the values and the errors of Spark.

Functions are called with whatever the binder takes; what Spark itself refuses is left out.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from pyspark.errors import AnalysisException

import corollary
from corollary.core.engine import BULK_VARIABLE, BulkMode
from corollary.frontends.sql.binder.functions.table import INTERNAL, function_names
from support.figures import FIGURES
from support.paths import REPOSITORY
from support.selection import sampled, seed_of_run
from support.sql.named_differences import NAMED, name_of
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

TOGETHER = 250
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


@pytest.mark.parametrize("at", sampled(range(0, EXPRESSIONS, TOGETHER), EXPRESSIONS // TOGETHER))
def test_random_expressions(spark: Any, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    add_tried(monkeypatch)
    is_bulk = at // TOGETHER % 10 == 9
    monkeypatch.setenv(BULK_VARIABLE, BulkMode.ALWAYS if is_bulk else BulkMode.NEVER)
    rows = edge_rows(ALL_COLUMNS).slice(0, 60)
    session = edge_session(spark, rows)
    calls, wrong = calls_of_both(session, drawn(at))
    found = differences(session, rows, calls)
    wrong += [str(each) for each in found if name_of(each) is None]
    FIGURES["expressions of all types"] += len(calls)
    FIGURES["values of expressions of all types"] += len(calls) * rows.num_rows
    FIGURES["values of them that differ as docs/sql.md says"] += len(found)
    assert wrong == []


def test_differences_are_those_of_the_documentation(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_tried(monkeypatch)
    rows = edge_rows(ALL_COLUMNS)
    found = differences(edge_session(spark, rows), rows, [each.example for each in NAMED])
    assert {(each.call, name_of(each)) for each in found} == {
        *((each.example, each.told) for each in NAMED),
        *OTHER_NAMES,
    }
    text = (REPOSITORY / "docs" / "sql.md").read_text("utf-8")
    _, _, table = text.partition("| what differs | here | in Spark |\n")
    told = [line.split(" | ")[0].removeprefix("| ") for line in table.split("\n\n")[0].splitlines()]
    assert told[1:] == [*(each.told for each in NAMED), MEANS]


OTHER_NAMES = {
    ("i IN (s, i)", "an operand without a value after a null"),
    ("CAST(- x AS STRING)", "a `DOUBLE` as a text"),
}
"""What else differs in the examples."""

MEANS = "`avg` of `BIGINT`s beyond 2^53"


def test_means_of_large_integers(spark: Any) -> None:
    """The sum is exact here; Spark's is that of doubles."""
    query = "SELECT avg(x) AS x FROM VALUES (9007199254740993), (1), (1), (1) AS v(x)"
    with corollary.open(None, engine="local") as db:
        assert db.sql(query).rows() == [((2**53 + 1 + 3) / 4,)]
    (found,) = edge_session(spark).sql(query).collect()[0]
    assert found == 2.0**51 + 0.5


def drawn(at: int) -> list[str]:
    """Return the expressions of a test, by the number of the first."""
    dice = random.Random(f"{seed_of_run()} {at}")
    names = dice.sample(sorted({*function_names()} - NOT_DRAWN), 60)
    forms = dice.sample(signature_forms(dice, names), 2200)
    return random_calls(dice, forms_of(dice, [*forms, *dice.sample(OPERATORS, 200)]), TOGETHER)


def calls_of_both(session: Any, calls: list[str]) -> tuple[list[str], list[str]]:
    """Return the expressions that Spark takes, too, and those that have another type there."""
    both, wrong = [], []
    for call in calls:
        try:
            (field,) = session.sql(f"SELECT {call} FROM edge").schema.fields
        except AnalysisException:
            continue
        both.append(call)
        there, here = field.dataType.simpleString(), type_of(call)
        is_untyped = "void" in there  # `array()`: nothing is without a type here
        if here is not None and not is_untyped and short(here.spark_name) != short(there):
            wrong.append(f"{call}: {here.spark_name} here, {there} in Spark")
    return both, wrong


def short(name: str) -> str:
    """Return the name of a type as Spark writes it."""
    return name.lower().replace("`", "").replace(", ", ",").replace(": ", ":")
