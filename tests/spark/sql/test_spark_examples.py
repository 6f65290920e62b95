"""The examples that Spark prints of its functions are views here: with its values and types.

They are read from the session. What is refused is counted by its reason; nothing may be wrong.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import corollary
from corollary.errors import EvaluationError, InputError
from support.figures import FIGURES
from support.sql.spark_values import edge_session, is_near

SORTED = "Spark's elements are in the order of rows, here they are sorted"
FIRST = "Spark takes the row that comes first, here it is the least one"
DIFFERENT = {
    "mode": "Spark takes any of the most frequent values",
    **dict.fromkeys(("array_agg", "collect_list"), SORTED),
    **dict.fromkeys(("any_value", "first", "first_value", "last", "last_value"), FIRST),
}
"""Functions whose examples may have other values, and why."""


class Example(NamedTuple):
    """A query that Spark shows for a function, and the group of functions that it is in."""

    function: str
    group: str
    query: str


def printed_examples(spark: Any) -> list[Example]:
    utilities = spark._jvm.org.apache.spark.sql.api.python.PythonSQLUtils
    return [
        Example(info.getName(), info.getGroup(), query)
        for info in utilities.listBuiltinFunctionInfos()
        for query in re.findall(r"^ *> (SELECT.*?);$", info.getExamples(), re.DOTALL | re.MULTILINE)
    ]


def answer_here(query: str) -> pa.Table | str:
    """Return the rows of a maintained view, or why it is refused; an empty text for an error."""
    with corollary.open(None, engine="local") as db:
        try:
            db.sql(f"CREATE MATERIALIZED VIEW example AS {query}")
            return db.sql("SELECT * FROM example").arrow()
        except EvaluationError:
            return ""
        except InputError as error:
            found = error.diagnostics[0]
            return f"{found.code} {re.sub('`[^`]*`', '…', found.message)}"


NO_ARROW = "an interval of months in Spark, which it does not hand over"


def answers_there(spark: Any, queries: Iterable[str]) -> dict[str, pa.Table | str | None]:
    """Return the answers of Spark, many of those without FROM at once; None for an error."""
    answers: dict[str, pa.Table | str | None] = {}
    alone = {query for query in queries if re.search(r"\bFROM\b", query, re.IGNORECASE)}
    together = [query for query in queries if query not in alone]
    for at in range(0, len(together), 40):
        part = together[at : at + 40]
        items = (f"struct({each.removeprefix('SELECT')})" for each in part)
        try:
            found = spark.sql(f"SELECT {', '.join(items)}").toArrow()
        except Exception:  # noqa: BLE001 - one of them fails, by any class of Spark's
            alone.update(part)
            continue
        for query, column in zip(part, found.columns, strict=True):
            fields = column.combine_chunks().flatten()
            answers[query] = pa.Table.from_arrays(fields, [str(n) for n in range(len(fields))])
    for query in alone:
        try:
            answers[query] = spark.sql(query).toArrow()
        except Exception as error:  # noqa: BLE001
            answers[query] = NO_ARROW if "FOR_ARROW_CONVERSION" in str(error) else None
    return answers


def type_text(type_: pa.DataType) -> str:
    """Return a type; all integers are alike, as texts are, and what may be null is not told."""
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return f"list of {type_text(type_.value_type)}"
    if pa.types.is_map(type_):
        return f"map of {type_text(type_.key_type)} to {type_text(type_.item_type)}"
    if pa.types.is_struct(type_):
        fields = (f"{field.name}: {type_text(field.type)}" for field in type_.fields)
        return f"struct of {', '.join(fields)}"
    if pa.types.is_integer(type_):
        return "integer"
    return "time" if pa.types.is_time(type_) else str(type_).removeprefix("large_")


def values_of(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column; the entries of maps are in the order of their keys."""
    values = column.to_pylist()
    is_map = pa.types.is_map(column.type)
    return [sorted(each, key=repr) if is_map and each else each for each in values]


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(zip(*map(values_of, table.columns), strict=True), key=repr)


def is_same(here: pa.Table, there: pa.Table) -> bool:
    """Whether two answers have the same types, and values but for the last digits of a float."""
    if list(map(type_text, here.schema.types)) != list(map(type_text, there.schema.types)):
        return False
    pairs = zip(rows_of(here), rows_of(there), strict=True)
    return here.num_rows == there.num_rows and all(
        is_near(one, other) for left, right in pairs for one, other in zip(left, right, strict=True)
    )


def test_examples_of_spark(spark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    session = edge_session(spark)
    examples = [each for each in printed_examples(session) if each.function not in DIFFERENT]
    here = {each.query: answer_here(each.query) for each in examples}
    known = [query for query, found in here.items() if not found or not isinstance(found, str)]
    there = answers_there(session, known)
    wrong, refused = [], Counter[str]()
    passed, all_of = Counter[str](), Counter[str]()
    for each in examples:
        found, wanted = here[each.query], there.get(each.query)
        all_of[each.group] += 1
        reason = wanted if isinstance(wanted, str) else found
        if isinstance(reason, str) and reason:
            refused[reason] += 1
        elif isinstance(found, str) != (wanted is None) or (
            wanted is not None and not is_same(found, wanted)
        ):
            wrong.append(f"{each.query}: {shown(found)} here, {shown(wanted)} in Spark")
        else:
            passed[each.group] += 1
    with capsys.disabled():
        print("\nexamples of Spark that views have here, by group, and those refused, by reason")
        for group, count in sorted(all_of.items()):
            print(f"  {passed[group]:4} of {count:4}  {group}")
        for reason, count in refused.most_common():
            print(f"  {count:4}  {reason}")
    FIGURES["examples of Spark"] += all_of.total()
    FIGURES["examples of Spark that pass"] += passed.total()
    assert not wrong, "\n".join(wrong)


def shown(answer: pa.Table | str | None) -> str:
    if not isinstance(answer, pa.Table):
        return "an error"
    types = ", ".join(map(type_text, answer.schema.types))
    return f"{[tuple(row.values()) for row in answer.to_pylist()]} ({types})"
