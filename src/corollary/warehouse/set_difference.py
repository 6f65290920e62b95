"""Differences of relations as sets, by hashing all columns at once.

Null equals null, NaN equals NaN, -0.0 equals 0.0; how often a row occurs does not matter.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow import canonical_floats, nullary_table

_SIDE = "side"
"""The column for the table that a row is from; the others are numbered, so no name clashes."""


def difference(before: pa.Table, now: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the rows that only the second table has, and those that only the first has, each once.

    >>> came, went = difference(pa.table({"x": [1, 2, 2]}), pa.table({"x": [2, 3, 3]}))
    >>> came["x"].to_pylist(), went["x"].to_pylist()
    ([3], [1])
    """
    if not now.num_columns:
        had, has = before.num_rows > 0, now.num_rows > 0
        return nullary_table(has and not had), nullary_table(had and not has)
    both = pa.concat_tables([_marked(before, now.schema, 0), _marked(now, now.schema, 1)])
    names = both.column_names[:-1]
    # A group is in both tables if its sides are 0 and 1, else in one only.
    sides = both.group_by(names).aggregate([(_SIDE, "min"), (_SIDE, "max")])
    came = sides.filter(pc.equal(sides[f"{_SIDE}_min"], 1))
    went = sides.filter(pc.equal(sides[f"{_SIDE}_max"], 0))
    return _unmarked(came, names, now.schema), _unmarked(went, names, now.schema)


def minus(left: pa.Table, right: pa.Table) -> pa.Table:
    """Return the rows of the left table that the right one does not have, each once."""
    return difference(right, left)[0]


def distinct(table: pa.Table) -> pa.Table:
    """Return the rows of a table, each once."""
    return minus(table, table.slice(0, 0))


def _marked(table: pa.Table, schema: pa.Schema, side: int) -> pa.Table:
    columns = [
        canonical_floats(column) if pa.types.is_floating(column.type) else column
        for column in table.cast(schema).columns
    ]
    sides = pa.array(np.full(table.num_rows, side, np.int8))
    return pa.table([*columns, sides], [*map(str, range(len(columns))), _SIDE])


def _unmarked(table: pa.Table, names: list[str], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_arrays(table.select(names).columns, schema=schema)
