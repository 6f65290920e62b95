"""Functors without code of their own: DuckDB computes their templates, for the distinct rows.

The same template is what bulk steps hand over, so that both compute the same.
"""

import os
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from corollary.core.arrow_buffers import NUMPY_TYPES, fixed_array, fixed_values, null_mask
from corollary.core.functors.catalog import FUNCTORS
from corollary.core.functors.spec import find_template
from corollary.core.types import Type
from corollary.engines.local.evaluation.kernels import (
    Operand,
    Result,
    distinct_columns,
    spread_rows,
)
from corollary.engines.local.values.native import dtype_of
from corollary.engines.local.values.texts import Texts

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

TABLE = "arguments"
NO_VALUE = "arguments out of range"


@lru_cache(maxsize=1)
def _database(_process: int) -> "DuckDBPyConnection":
    """Return the database of a process: its threads do not survive a fork."""
    import duckdb

    options: dict[str, str | bool | int | float | list[str]] = {
        "threads": 1,
        "python_enable_replacements": "false",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "enable_external_access": "false",
    }
    return duckdb.connect(config=options)


@lru_cache(maxsize=256)
def _query(name: str, types: tuple[Type, ...], result: Type) -> str:
    """Return the query of a functor over a table of its arguments."""
    from corollary.sqlgen import nodes
    from corollary.sqlgen.duckdb_dialect import DUCKDB

    arguments = [nodes.column(f"c{at}", TABLE) for at in range(len(types))]
    value = DUCKDB.form(name, types[0]).lower(arguments, types, result)
    text = nodes.cast(value, DUCKDB.type_name(result))
    return DUCKDB.text(nodes.select([text], nodes.table(TABLE, TABLE)))


def _compute(name: str, operands: list[Operand], type_: Type) -> Result:
    columns, rows = distinct_columns([values for values, _ in operands])
    if not len(columns[0]):
        return (Texts.of([]) if type_.is_symbol else np.zeros(0, dtype_of(type_.kind))), []
    arrays = [
        values.array
        if isinstance(values, Texts)
        else fixed_array(values, pa.from_numpy_dtype(values.dtype))
        for values in columns
    ]
    connection = _database(os.getpid()).cursor()
    connection.register(TABLE, pa.table(arrays, [f"c{at}" for at in range(len(arrays))]))
    query = _query(name, tuple(kind.with_null(False) for _, kind in operands), type_)
    found = connection.sql(query).to_arrow_table().column(0).combine_chunks()
    missing = null_mask(found)
    made: Any
    if type_.is_symbol:
        made = Texts(found.cast(pa.large_string()).fill_null(""))
    else:
        made = fixed_values(found, NUMPY_TYPES[found.type]).astype(dtype_of(type_.kind))
    faults = [] if missing is None else [(spread_rows(missing, rows), NO_VALUE)]
    return spread_rows(made, rows), faults


TEMPLATE_FUNCTIONS = {
    name: partial(_compute, name)
    for name, spec in FUNCTORS.items()
    if spec.section and all(find_template(spec.exact, "duckdb", kind) for kind in spec.kinds(0))
}
"""The functors that have a template, whatever their first argument is."""
