"""Random expressions with nulls and faults: Spark SQL computes what the local engine computes."""

import random
import re
from typing import Any

import pyarrow as pa
import pytest

from corollary.core.logic import Condition, Constant, Expression, Functor, subterms
from corollary.core.printer import print_condition, print_term
from corollary.core.types import Kind
from corollary.engines.sql.compiled import MARK, Form, NotCompiled
from corollary.engines.sql.expressions import type_of
from corollary.engines.sql.pipelines import compile_pipeline
from corollary.engines.sql.spark_dialect import SPARK
from support.selection import examples
from support.sql.expressions import (
    ROW_TYPES,
    VARIABLES,
    Rows,
    aligns_decimals,
    applicable,
    as_pipeline,
    collect,
    differences,
    local_outcome,
    random_application,
    random_condition,
    random_expression,
    random_rows,
    shown,
)

pytestmark = pytest.mark.spark

SEED = 7
ROWS = 150
EXPRESSIONS = 15
KINDS = tuple(kind for kind in Kind if kind is not Kind.UNSIGNED)
"""Spark has no unsigned numbers."""

REFUSED = r"of decimal.* has no exact form|decimal.* have no exact comparison"
"""What is not handed over: decimals that have more than 38 digits on the way."""

DECIMAL_TRIES = examples(2, 6)
"""Decimals of all lengths need more tries than other kinds."""

Compared = Expression | Condition


def compare(spark: Any, compared: list[Compared], rows: Rows) -> None:
    """Compute all, one query each, and compare with the local engine."""
    arrays = {
        f"{Form.VALUE}{at}": rows.dictionary.decode_arrow(codes, type_)
        for at, (codes, type_) in enumerate(zip(rows.columns, ROW_TYPES, strict=True))
        if type_.kind in KINDS
    }
    frame = spark.createDataFrame(pa.table(arrays))
    types = {name: SPARK.type_name(ROW_TYPES[int(name[1:])]) for name in arrays}
    typed = frame.select([frame[name].cast(type_).alias(name) for name, type_ in types.items()])
    typed.localCheckpoint().createOrReplaceTempView("t0")
    try:
        for each in compared:
            _compare(spark, each, rows)
    finally:
        spark.catalog.dropTempView("t0")


def _compare(spark: Any, compared: Compared, rows: Rows) -> None:
    pipeline, head = as_pipeline(compared)
    compiled = compile_pipeline(pipeline, {"rows": ROW_TYPES}, head, SPARK)
    is_condition = isinstance(compared, Condition)
    text = print_condition(compared) if is_condition else print_term(compared)
    if isinstance(compiled, NotCompiled):
        assert re.search(REFUSED, compiled.reason), f"{text}: {compiled}"
        return
    found = spark.sql(SPARK.text(compiled.query)).toArrow()
    count = found.num_rows
    codes = [1] * count
    if isinstance(compared, Constant):  # it is not in the query
        codes = [rows.dictionary.encode_value(compared.value, type_of(compared))] * count
    elif not is_condition:
        codes = rows.dictionary.encode_arrow(found["h1"], type_of(compared)).tolist()
    marks = found[MARK].to_pylist() if compiled.has_mark else [False] * count
    theirs = collect(zip(found["h0"].to_pylist(), codes, marks, strict=True), rows)
    sides = (compared.left, compared.right) if isinstance(compared, Condition) else (compared,)
    parts = (part for side in sides for part in subterms(side) if isinstance(part, Functor))
    is_exact = not any(map(aligns_decimals, parts))
    for row in differences(local_outcome(compared, rows), theirs, is_exact=is_exact):
        pytest.fail(f"{text} for {shown(rows, row, list(VARIABLES))}")


def test_each_form(spark: Any) -> None:
    """Every functor that is handed over agrees in every row, by itself."""
    generator = random.Random(SEED)
    compared: list[Compared] = [
        random_application(generator, SPARK, name, kind, depth=1)
        for name, kind in applicable(SPARK)
        for _ in range(DECIMAL_TRIES if kind is Kind.DECIMAL else 1)
    ]
    compare(spark, compared, random_rows(generator, ROWS))


def test_expressions(spark: Any) -> None:
    """Nested expressions and conditions agree."""
    generator = random.Random(SEED)
    compared: list[Compared] = [
        random_expression(generator, SPARK, generator.choice(KINDS), depth=3)
        for _ in range(EXPRESSIONS)
    ]
    compared += [random_condition(generator, SPARK, 2, KINDS) for _ in range(EXPRESSIONS)]
    compare(spark, compared, random_rows(generator, ROWS))
