"""Feeds of changes as tables, with the columns of the change feeds of Delta and Spark.

| column              | holds                                              |
|---------------------|----------------------------------------------------|
| those of the tuples | a tuple that was inserted or deleted               |
| `_change_type`      | `insert` or `delete`                               |
| `_commit_version`   | the number of the commit                           |
| `_commit_timestamp` | when it was made, in UTC                           |
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa

from corollary.core.arrow import arrow_type, sort_rows
from corollary.core.program import Relation
from corollary.core.types import NUMBER, SYMBOL, TIMESTAMP
from corollary.warehouse.catalog.catalog_rows import Commit, StoredChange
from corollary.warehouse.files.durable_files import CHANGE_COLUMN, DELETE, INSERT
from corollary.warehouse.warehouse import Warehouse
from corollary.warehouse.warehouse_catalog import WarehouseCatalog

COMMIT_COLUMNS = {CHANGE_COLUMN: SYMBOL, "_commit_version": NUMBER, "_commit_timestamp": TIMESTAMP}
"""The columns of a feed that follow those of the tuples."""


def feed_columns(relation: Relation) -> Relation:
    """Return a relation with the columns of its feed."""
    columns = (*relation.columns, *COMMIT_COLUMNS)
    return replace(relation, columns=columns, types=(*relation.types, *COMMIT_COLUMNS.values()))


def feed_table(
    warehouse: WarehouseCatalog, changes: Iterable[tuple[Commit, StoredChange]]
) -> pa.Table:
    """Return the rows of changes that have the same columns."""
    files = Warehouse(warehouse.root, warehouse.catalog)
    tables = [table for commit, stored in changes for table in _rows(files, commit, stored)]
    return pa.concat_tables(tables)


def _rows(warehouse: Warehouse, commit: Commit, stored: StoredChange) -> Iterator[pa.Table]:
    """Yield the rows of one change: deleted tuples, then inserted ones."""
    delta = warehouse.read_change(stored)
    for kind, tuples in ((DELETE, delta.removed), (INSERT, delta.added)):
        rows = sort_rows(tuples)
        for value, (name, type_) in zip(
            (kind, commit.number, commit.time), COMMIT_COLUMNS.items(), strict=True
        ):
            column = pa.repeat(pa.scalar(value, arrow_type(type_)), tuples.num_rows)
            rows = (
                rows.append_column(name, column) if rows.num_columns else pa.table({name: column})
            )
        yield rows
