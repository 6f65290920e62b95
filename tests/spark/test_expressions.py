"""Expressions as SQL: the same values as the local engine, and none in the same rows."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from corollary.core.functors import CHECKED_SUM, FUNCTORS, PARTITION_OF, TIME_FORMATS, result_type
from corollary.core.logic import NEGATED_OPERATORS, Condition, Constant, Functor, Variable
from corollary.core.types import (
    BOOL,
    DATE,
    FLOAT,
    NUMBER,
    SYMBOL,
    TIMESTAMP,
    UNSIGNED,
    Kind,
    Type,
    decimal,
)
from corollary.engines.local.evaluation import expressions as local
from corollary.engines.local.evaluation.value_vector import dense_mask
from corollary.engines.local.values.codes import Dictionary
from corollary.engines.spark.sql import sql
from corollary.engines.spark.sql.columns import schema_of, to_held
from corollary.engines.spark.sql.engine import SparkEngine
from corollary.engines.spark.sql.expressions import (
    CALLED,
    LoweredExpression,
    lower,
    lower_condition,
)
from support.selection import sampled
from support.sql.expressions import literal_choices

pytestmark = pytest.mark.spark

VALUES: dict[Type, list[Any]] = {
    NUMBER: [0, 1, -1, 2, -7, 63, 2**62, 2**63 - 1, -(2**63), None],
    UNSIGNED: [0, 1, 2, 63, 2**63, 2**64 - 1, None],
    FLOAT: [0.0, 1.0, -2.5, 1e308, 5e-324, math.inf, -math.inf, math.nan, None],
    decimal(18, 2): [Decimal("0.00"), Decimal("1.25"), Decimal("-9999999999999999.99"), None],
    decimal(38, 2): [
        *(Decimal("0.00"), Decimal("0.05"), Decimal("92233720368547758.08")),
        *(Decimal(f"{sign}{'9' * 36}.99") for sign in ("", "-")),
        None,
    ],
    SYMBOL: ["", "a", "ß😀", "a\\'\n", "12", "-3.5", "a.*", "(", "2026-11-15", None],
    DATE: [date(1, 1, 1), date(2026, 11, 15), None],
    TIMESTAMP: [
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(2026, 11, 15, 8, 0, 0, 7, tzinfo=UTC),
        None,
    ],
}


def functors(type_: Type) -> list[Functor]:
    """Every functor that takes one or two values of a type (and numbers behind them)."""
    found = []
    for name, signature in FUNCTORS.items():
        if name in (
            PARTITION_OF,
            CHECKED_SUM,
            "range",
            "to_decimal",
        ) or type_.kind not in signature.kinds(0):
            continue
        arguments = _arguments(name, type_)
        digits = [each.value for each in arguments if isinstance(each, Constant)]
        scale = next((each for each in digits if isinstance(each, int)), 0)
        types = [each.type for each in arguments]
        found.append(Functor(name, arguments, result_type(name, types, scale)))
    if type_.kind in FUNCTORS["to_decimal"].kinds(0):
        two = Constant(2, NUMBER)
        found.append(Functor("to_decimal", (Variable("x", type_), two), decimal(18, 2)))
    inner = [each for each in found if each.type == type_ and len(each.arguments) == 2][:3]
    return found + [Functor(each.name, (each, each.arguments[1]), type_) for each in inner]


def _arguments(name: str, type_: Type) -> tuple[Any, ...]:
    """The arguments of a functor: variables of a type, and constants where it takes others."""
    signature = FUNCTORS[name]
    x, y = Variable("x", type_), Variable("y", type_)
    made: list[Any] = []
    for at in range(signature.min_arguments):
        kinds = signature.kinds(at, signature.min_arguments)
        literals = literal_choices(name, at)
        if name in TIME_FORMATS and at == 1:
            made.append(Constant("%Y-%m-%d", SYMBOL))
        elif literals:
            value = literals[-1]
            made.append(Constant(value, SYMBOL if isinstance(value, str) else NUMBER))
        elif type_.kind in kinds:
            made.append(y if made else x)
        elif Kind.BOOL in kinds:
            made.append(Functor("lt", (x, y), BOOL.with_null(True)))
        else:
            made.append(Constant("a", SYMBOL) if Kind.SYMBOL in kinds else Constant(2, NUMBER))
    return tuple(made)


def conditions(type_: Type) -> list[Condition]:
    """Every comparison of two values of a type."""
    x, y = Variable("x", type_), Variable("y", type_)
    texts = type_ == SYMBOL
    names = [name for name in NEGATED_OPERATORS if texts or not name.lstrip("!").isalpha()]
    return [Condition(name, x, y) for name in (*names, "is")]


def evaluated(
    engine: SparkEngine, rows: pa.Table, type_: Type, lowered: list[LoweredExpression]
) -> pa.Table:
    """The values and faults of lowered expressions over a table."""
    tuples = engine.pieces.of_table(to_held(rows, (type_, type_)), (type_, type_))
    inner, nodes = sql.columns_of((type_, type_), "f"), []
    for at, each in enumerate(lowered):
        value, fault = each.value, each.fault or sql.exp.Boolean(this=False)
        if each.call is not None:
            inner.append(sql.named(each.call, f"{CALLED}{at}"))
            value, fault = (renamed(node, f"{CALLED}{at}") for node in (value, fault))
        nodes += [sql.named(value, f"v{at}"), sql.named(fault, f"f{at}")]
    source = sql.of(sql.select(inner, sql.of(tuples.query(), "f")), "f")
    return engine.pieces.fetch(sql.select([sql.exp.Star(), *nodes], source), "test", rows.num_rows)


def renamed(node: Any, name: str) -> Any:
    node = node.copy()
    for column in node.find_all(sql.exp.Column):
        if column.name == CALLED:
            column.set("this", sql.exp.to_identifier(name, quoted=True))
    return node


@pytest.mark.parametrize("type_", sampled(VALUES, 4), ids=str)
def test_sql_and_the_local_engine_agree(type_: Type, spark: Any) -> None:
    engine = SparkEngine(spark)
    nullable = type_.with_null(True)
    pairs = list(product(VALUES[type_], repeat=2))
    columns = [[pair[at] for pair in pairs] for at in (0, 1)]
    plain = pa.table(
        {f"c{at}": pa.array(each, local_type(type_)) for at, each in enumerate(columns)}
    )
    scope = {name: (sql.column(f"c{at}", "f"), nullable) for at, name in enumerate("xy")}
    functions = engine._functions
    made, tests = functors(type_), conditions(type_)
    lowered = [lower(each, scope, functions) for each in made]
    lowered += [lower_condition(each, scope, functions) for each in tests]
    found = evaluated(engine, plain, type_, lowered)

    codes = Dictionary()
    read = [found.column(f"c{at}").cast(schema_of((type_, type_)).field(at).type) for at in (0, 1)]
    frame = {
        name: codes.encode_arrow(column.cast(local_type(type_)), nullable)
        for name, column in zip("xy", read, strict=True)
    }
    for at, each in enumerate(made):
        batch = local.evaluate(each, frame, len(pairs), codes)
        faulty = dense_mask(batch.fault_mask, len(pairs))
        nulls = dense_mask(batch.nulls, len(pairs)) | faulty
        assert found[f"f{at}"].to_pylist() == faulty.tolist(), each
        values = codes.decode_arrow(codes.encode(batch.values, nulls, batch.type), batch.type)
        assert list(map(repr, values.to_pylist())) == list(
            map(repr, found[f"v{at}"].cast(values.type).to_pylist())
        ), each
    for at, test in enumerate(tests, len(made)):
        verdict = local.evaluate_condition(test, frame, len(pairs), codes)
        faults = [any(mask[row] for mask, _ in verdict.faults) for row in range(len(pairs))]
        assert found[f"f{at}"].to_pylist() == faults, test
        true = [
            bool(value) and not fault
            for value, fault in zip(found[f"v{at}"].to_pylist(), faults, strict=True)
        ]
        assert true == verdict.true.tolist(), test
    engine.close()


def local_type(type_: Type) -> pa.DataType:
    from corollary.core.arrow import arrow_type

    return arrow_type(type_)
