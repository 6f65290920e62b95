"""What the rows of a file are: tuples that came or went, or all that there are."""

import pyarrow as pa

CHANGE = "_change_type"
"""The column that tells the tuples that came from those that went."""
INSERT, DELETE = "insert", "delete"


def as_it_is(table: pa.Table) -> pa.Table:
    """Return all tuples of a relation as a file has them."""
    return table


def came(table: pa.Table) -> pa.Table:
    """Return tuples that came as a file has them."""
    return _of_kind(table, INSERT)


def went(table: pa.Table) -> pa.Table:
    """Return tuples that went as a file has them."""
    return _of_kind(table, DELETE)


def _of_kind(table: pa.Table, kind: str) -> pa.Table:
    kinds = pa.repeat(kind, table.num_rows)
    return table.append_column(CHANGE, kinds) if table.num_columns else pa.table({CHANGE: kinds})
