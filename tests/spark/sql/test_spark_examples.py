"""The examples that Spark prints of its functions are views here: with its values and types.

They are read from the session. What is refused is counted by its reason; nothing may be wrong.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest

import corollary
from corollary.errors import EvaluationError, InputError
from corollary.frontends.sql.binder.aggregates import AGGREGATES
from corollary.frontends.sql.binder.functions.table import (
    FUNCTIONS_OF_MAPS,
    JSON_FUNCTIONS,
    function_names,
    refusal_of,
)
from corollary.frontends.sql.binder.lambdas import MAP_LAMBDAS
from corollary.frontends.sql.binder.special_calls import SPECIAL_CALLS
from corollary.frontends.sql.binder.windows import WINDOW_FUNCTIONS
from support.figures import FIGURES
from support.paths import REPOSITORY
from support.sql.spark_examples import DIFFERENT, is_same, printed_examples, shown
from support.sql.spark_values import edge_session


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
        print("\nexamples of Spark that are refused, by reason")
        for reason, count in refused.most_common():
            print(f"  {count:4}  {reason}")
    FIGURES["examples of Spark"] += all_of.total()
    FIGURES["examples of Spark that pass"] += passed.total()
    assert not wrong, "\n".join(wrong)
    table = "\n".join(table_of_groups(session, passed, all_of))
    assert table in (REPOSITORY / "docs" / "sql.md").read_text("utf-8"), table


def table_of_groups(session: Any, passed: Counter[str], all_of: Counter[str]) -> list[str]:
    """Return the lines of docs/sql.md: the functions and examples of each group of Spark."""
    known, refused = Counter[str](), Counter[str]()
    for name, group in sorted(functions_of(session).items()):
        if name in KNOWN:
            known[group] += 1
        else:
            assert refusal_of(name), f"{name} is neither known nor refused"
            refused[group] += 1
    lines = [
        "| functions of Spark | maintained | refused | examples | maintained, as in Spark |",
        "|---|---|---|---|---|",
    ]
    for group in sorted({*known, *refused}):
        name = group.removesuffix("_funcs").replace("_", " ")
        counts = (known[group], refused[group], all_of[group], passed[group])
        lines.append(f"| {name} | {' | '.join(map(str, counts))} |")
    totals = (each.total() for each in (known, refused, all_of, passed))
    return [*lines, f"| all | {' | '.join(map(str, totals))} |"]


def functions_of(session: Any) -> dict[str, str]:
    """Return the functions that Spark lists, each with its group."""
    utilities = session._jvm.org.apache.spark.sql.api.python.PythonSQLUtils
    return {info.getName(): info.getGroup() for info in utilities.listBuiltinFunctionInfos()}


KNOWN = {
    *(*function_names(), *SPECIAL_CALLS, *AGGREGATES, *WINDOW_FUNCTIONS, *MAP_LAMBDAS),
    *(*JSON_FUNCTIONS, *FUNCTIONS_OF_MAPS),
    *("explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer"),
    *("stack", "range", "window", "session_window", "and", "or", "not", "between", "in", "case"),
    *("when", "cast", "extract", "if", "!", "!=", "<>", "=", "==", "<=>", "<", "<=", ">", ">="),
    *("+", "-", "*", "/", "%", "&", "|", "^", "~", "||", "<<", ">>", ">>>"),
}
"""The functions, and what Spark lists as such: operators, generators, parts of clauses."""
