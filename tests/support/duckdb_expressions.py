"""Expressions computed by DuckDB, on columns of values."""

import numpy as np
import pyarrow as pa
from sqlglot import exp

from corollary.core.logic import Condition, Expression
from corollary.core.types import Kind
from corollary.engines.local.bulk.columns import array_of, encode_columns, truths_of
from corollary.engines.local.bulk.connection import run_query
from corollary.engines.local.storage.layout import Mask
from corollary.engines.sql import nodes
from corollary.engines.sql.compiled import Form, OutputColumn
from corollary.engines.sql.duckdb_dialect import DUCKDB
from corollary.engines.sql.expressions import (
    LoweredExpression,
    lower_condition,
    lower_expression,
    type_of,
)
from support.sql_expressions import VARIABLES, Outcome, Rows


def duckdb_values(expression: Expression, rows: Rows) -> Outcome:
    """Return what DuckDB computes."""
    lowered = lower_expression(expression, _columns(), DUCKDB)
    batch, missing = _run(lowered, rows)
    output = OutputColumn(type_of(expression), Form.VALUE)
    codes = encode_columns(batch.select(["value"]), [output], rows.dictionary)[0]
    return Outcome(np.where(missing, 0, codes).tolist(), missing.tolist())


def duckdb_truths(condition: Condition, rows: Rows) -> Outcome:
    """Return in which rows DuckDB holds a condition for true."""
    lowered = lower_condition(condition, _columns(), DUCKDB)
    truth = nodes.is_true(lowered.value)
    batch, missing = _run(LoweredExpression(truth, lowered.fault, False), rows)
    truths = truths_of(batch.column("value")) & ~missing
    return Outcome(truths.astype(np.int64).tolist(), missing.tolist())


def _columns() -> dict[str, nodes.Node]:
    return {name: nodes.column(name, "t") for name in VARIABLES}


def _run(lowered: LoweredExpression, rows: Rows) -> tuple[pa.RecordBatch, Mask]:
    """Return the values in the order of the rows, and where there are none."""
    fault = exp.Boolean(this=False) if lowered.fault is None else lowered.fault
    items = [
        nodes.named(nodes.column("row", "t"), "row"),
        nodes.named(lowered.value, "value"),
        nodes.named(fault, "fault"),
    ]
    query = nodes.select(items, nodes.table("rows", "t"))
    query.set("order", exp.Order(expressions=[exp.Ordered(this=nodes.column("row", "t"))]))
    arrays = {"row": array_of(np.arange(rows.count))}
    used = {each.name for each in query.find_all(exp.Column)}
    for name, codes in rows.codes.items():
        if name not in used:
            continue
        type_ = VARIABLES[name]
        arrays[name] = (
            rows.dictionary.decode_arrow(codes, type_)
            if type_.kind is Kind.SYMBOL
            else array_of(rows.dictionary.decode(codes, type_), codes == 0)
        )
    table = pa.Table.from_arrays(list(arrays.values()), names=list(arrays))
    (batch,) = run_query(DUCKDB.text(query), {"rows": table}, lambda: None)
    return batch, truths_of(batch.column("fault"))
