"""Random expressions with nulls and faults: Spark SQL computes what the local engine computes."""

import random
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp, parse_one

from corollary.core.logic import (
    Condition,
    Constant,
    Expression,
    Functor,
    Variable,
    subterms,
    type_of,
)
from corollary.core.pipeline import Compute
from corollary.core.printer import print_condition, print_term
from corollary.core.types import BOOL, PRIMITIVES, SYMBOL, Kind
from corollary.engines.spark.bulk.queries import SessionFunctions
from corollary.engines.spark.bulk.spark_columns import column_names, from_spark, tuples_to_spark
from corollary.engines.spark.session import private_session
from corollary.sqlgen.compiled import MARK, NotCompiled
from corollary.sqlgen.expressions import SqlExpression, lower_condition
from corollary.sqlgen.pipelines import compile_pipeline
from corollary.sqlgen.spark_dialect import SPARK
from support.selection import examples, seed_of_run
from support.sql.expressions import (
    ROW_TYPES,
    VARIABLES,
    Rows,
    aligns_decimals,
    applicable,
    as_pipeline,
    collect,
    differences,
    left_to_us,
    local_outcome,
    random_application,
    random_condition,
    random_expression,
    random_rows,
    shown,
)

SEED = seed_of_run()
ROWS = 150
EXPRESSIONS = examples(6, 15)
FORMS = examples(30, 1000)
"""How many functors that Spark has a form of, and has none of, at most: each is a query."""

DECIMAL_TRIES = examples(2, 6)
"""Decimals of all lengths need more tries than other kinds."""

Compared = Expression | Condition


def compare(spark: Any, compared: list[Compared], rows: Rows) -> None:
    """Compute all, one query each, and compare with the local engine."""
    arrays = [
        rows.dictionary.decode_arrow(codes, type_)
        for codes, type_ in zip(rows.columns, ROW_TYPES, strict=True)
    ]
    session = private_session(spark)
    functions = SessionFunctions(session)
    table = tuples_to_spark(pa.table(arrays, column_names(ROW_TYPES)), ROW_TYPES)
    session.createDataFrame(table).localCheckpoint().createOrReplaceTempView("t0")
    for each in compared:
        _compare(session, functions, each, rows)


def _compare(spark: Any, functions: SessionFunctions, compared: Compared, rows: Rows) -> None:
    pipeline, head = as_pipeline(compared)
    compiled = compile_pipeline(pipeline, {"rows": ROW_TYPES}, head, SPARK)
    is_condition = isinstance(compared, Condition)
    text = print_condition(compared) if is_condition else print_term(compared)
    assert not isinstance(compiled, NotCompiled), f"{text}: {compiled}"
    functions.register([compiled.query])
    found = spark.sql(SPARK.text(compiled.query)).toArrow()
    count = found.num_rows
    codes = [1] * count
    if isinstance(compared, Constant):  # it is not in the query
        codes = [rows.dictionary.encode_value(compared.value, type_of(compared))] * count
    elif not is_condition:
        codes = rows.dictionary.encode_arrow(
            from_spark(found["h1"], type_of(compared)), type_of(compared)
        ).tolist()
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
    forms = applicable(SPARK)
    compared: list[Compared] = [
        random_application(generator, SPARK, name, kind, depth=1)
        for name, kind in generator.sample(forms, min(FORMS, len(forms)))
        for _ in range(DECIMAL_TRIES if kind is Kind.DECIMAL else 1)
    ]
    compare(spark, compared, random_rows(generator, ROWS))


def test_functions_of_our_own(spark: Any) -> None:
    """What Spark has no form of is computed by the local engine's code, in Spark's tasks."""
    generator = random.Random(SEED)
    left = left_to_us(SPARK)
    compared: list[Compared] = [
        random_application(generator, SPARK, name, kind, depth=2)
        for name, kind in generator.sample(left, min(FORMS, len(left)))
    ]
    texts = [Variable(name, SYMBOL) for name in ("xsymbol", "ysymbol")]
    compared += [Condition(operator, *texts) for operator in ("match", "!match")]
    compare(spark, compared, random_rows(generator, ROWS))


def test_expressions(spark: Any) -> None:
    """Nested expressions and conditions agree."""
    generator = random.Random(SEED)
    compared: list[Compared] = [
        random_expression(generator, SPARK, generator.choice(PRIMITIVES), depth=3)
        for _ in range(EXPRESSIONS)
    ]
    compared += [random_condition(generator, SPARK, 2) for _ in range(EXPRESSIONS)]
    compare(spark, compared, random_rows(generator, ROWS))


def test_queries_of_many_layers_are_left_to_tasks() -> None:
    """Spark takes minutes for a hundred SELECTs within SELECTs, and its stack ends."""
    pipeline, head = as_pipeline(Functor("soundex", (Variable("xsymbol", SYMBOL),), SYMBOL))
    probe, compute = pipeline.stages
    results = tuple(Variable(f"r{at}", SYMBOL) for at in range(60))
    assert isinstance(compute, Compute)
    stages = (probe, *(replace(compute, variable=each) for each in results))
    wide = replace(pipeline, stages=stages, head=(pipeline.head[0], *results))
    types = (head[0], *(SYMBOL for _ in results))
    assert isinstance(compile_pipeline(wide, {"rows": ROW_TYPES}, types, SPARK), NotCompiled)


def test_a_test_is_an_operand_in_parentheses() -> None:
    """`or(x, y) != true` compares the disjunction, and not its second operand."""
    names = ("xbool", "ybool")
    values = {name: SqlExpression(exp.column(name), None, True, BOOL) for name in names}
    either = Functor("or", tuple(Variable(name, BOOL) for name in names), BOOL)
    lowered = lower_condition(Condition("!=", either, Constant(True, BOOL)), values, SPARK)
    (compared,) = parse_one(SPARK.text(lowered.value), dialect="spark").find_all(exp.NEQ)
    assert isinstance(compared.this.unnest(), exp.Or)
