"""Random expressions with nulls and faults: Spark SQL computes what the local engine computes."""

import random
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp

from corollary.core.logic import Condition, Expression
from corollary.core.printer import print_condition, print_term
from corollary.core.types import Kind
from corollary.engines.sql import nodes
from corollary.engines.sql.expressions import (
    LoweredExpression,
    lower_condition,
    lower_expression,
    type_of,
)
from corollary.engines.sql.spark_dialect import SPARK
from support.sql_expressions import (
    VARIABLES,
    Outcome,
    Rows,
    differences,
    local_truths,
    local_values,
    random_application,
    random_condition,
    random_expression,
    random_rows,
    shown,
)

pytestmark = pytest.mark.spark

SEED = 7
ROWS = 150
EXPRESSIONS = 30
Compared = Expression | Condition


def compare(spark: Any, compared: list[Compared], rows: Rows) -> None:
    """Compute all in one query, and compare with the local engine."""
    columns = {name: nodes.column(name, "t") for name in VARIABLES}
    items = [nodes.named(nodes.column("row", "t"), "row")]
    for number, each in enumerate(compared):
        if isinstance(each, Condition):
            lowered = lower_condition(each, columns, SPARK)
            value = nodes.is_true(lowered.value)
        else:
            lowered = lower_expression(each, columns, SPARK)
            value = lowered.value
        items.append(nodes.named(value, f"value{number}"))
        items.append(nodes.named(_fault(lowered), f"fault{number}"))
    found = _run(spark, nodes.select(items, nodes.table("sql_rows", "t")), rows)
    for number, each in enumerate(compared):
        missing = found[f"fault{number}"].to_pylist()
        values = found[f"value{number}"]
        if isinstance(each, Condition):
            truths = [a and not b for a, b in zip(values.to_pylist(), missing, strict=True)]
            theirs = Outcome([int(truth) for truth in truths], missing)
            ours, text = local_truths(each, rows), print_condition(each)
        else:
            codes = rows.dictionary.encode_arrow(values, type_of(each)).tolist()
            theirs = Outcome(codes, missing)
            ours, text = local_values(each, rows), print_term(each)
        for row in differences(ours, theirs, is_exact=True):
            pytest.fail(f"{text} for {shown(rows, row, list(VARIABLES))}")


def _fault(lowered: LoweredExpression) -> nodes.Node:
    return exp.Boolean(this=False) if lowered.fault is None else lowered.fault


def _run(spark: Any, query: exp.Select, rows: Rows) -> pa.Table:
    arrays = {
        name: rows.dictionary.decode_arrow(codes, VARIABLES[name])
        for name, codes in rows.codes.items()
        if VARIABLES[name].kind is not Kind.UNSIGNED  # Spark has no such type
    }
    table = pa.table({"row": pa.array(range(rows.count)), **arrays})
    frame = spark.createDataFrame(table)
    for name in arrays:
        frame = frame.withColumn(name, frame[name].cast(SPARK.type_name(VARIABLES[name])))
    frame.createOrReplaceTempView("sql_rows")
    try:
        return spark.sql(SPARK.text(query)).toArrow().sort_by("row")
    finally:
        spark.catalog.dropTempView("sql_rows")


def test_each_form(spark: Any) -> None:
    """Every functor that is handed over agrees in every row, by itself."""
    generator = random.Random(SEED)
    compared: list[Compared] = [
        random_application(generator, SPARK, name, kind, depth=1)
        for name, kind in sorted(SPARK.functors)
    ]
    compare(spark, compared, random_rows(generator, ROWS))


def test_expressions(spark: Any) -> None:
    """Nested expressions and conditions agree."""
    generator = random.Random(SEED)
    kinds = [kind for kind in Kind if kind is not Kind.UNSIGNED]
    compared: list[Compared] = [
        random_expression(generator, SPARK, generator.choice(kinds), depth=3)
        for _ in range(EXPRESSIONS)
    ]
    compared += [random_condition(generator, SPARK, depth=2) for _ in range(EXPRESSIONS)]
    compare(spark, compared, random_rows(generator, ROWS))
