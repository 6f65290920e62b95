"""Expressions computed by DuckDB: a pipeline that reads rows and computes, compiled and run."""

from corollary.core.arrow_buffers import bool_values
from corollary.core.logic import Condition, Constant, Expression, type_of
from corollary.core.states import State
from corollary.engines.local.bulk.columns import encode_columns, read_columns
from corollary.engines.local.bulk.connection import run_query
from corollary.engines.local.storage.table import Table
from corollary.sqlgen.compiled import MARK, CompiledQuery, NotCompiled
from corollary.sqlgen.duckdb_dialect import DUCKDB
from corollary.sqlgen.pipelines import compile_pipeline
from support.sql.expressions import ROW_TYPES, Outcome, Rows, as_pipeline, collect


def duckdb_outcome(compared: Expression | Condition, rows: Rows) -> Outcome | NotCompiled:
    """Return what DuckDB computes in each row."""
    pipeline, head = as_pipeline(compared)

    def encode(constant: Constant) -> int:
        return rows.dictionary.encode_value(constant.value, type_of(constant))

    compiled = compile_pipeline(pipeline, {"rows": ROW_TYPES}, head, DUCKDB, encode)
    return compiled if isinstance(compiled, NotCompiled) else _run(compiled, rows)


def _run(compiled: CompiledQuery, rows: Rows) -> Outcome:
    table = Table(ROW_TYPES)
    table.insert(rows.columns, rows.count)
    tables = {
        each.name: read_columns(table, State.NEW, each.columns, rows.dictionary)
        for each in compiled.inputs
    }
    assert not compiled.fault_queries
    found: list[tuple[int, int, bool]] = []
    for batch in run_query(DUCKDB.text(compiled.query), tables, lambda: None):
        numbers, *values = encode_columns(batch, compiled.outputs, rows.dictionary)
        marks = bool_values(batch.column(MARK)).tolist() if compiled.has_mark else []
        marks = marks or [False] * batch.num_rows
        codes = values[0].tolist() if values else [1] * batch.num_rows
        found += zip(rows.decode_numbers(numbers), codes, marks, strict=True)
    return collect(found, rows)
