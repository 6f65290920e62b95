"""Feeds of changes as tables, with the columns of the change feeds of Delta and Spark.

| column              | holds                                              |
|---------------------|----------------------------------------------------|
| those of the tuples | a tuple that was inserted or deleted               |
| `_change_type`      | `insert`, `delete`, or `unwatched`: see below      |
| `_commit_version`   | the number of the commit                           |
| `_commit_timestamp` | when it was made, in UTC                           |

The changes of a virtual relation are recorded by the commits that watch it. For any other commit
its feed has a row of nulls that says `unwatched`: nobody knows what has changed. A commit that
gives a stored relation other columns, makes it virtual or drops it, deletes all tuples with the old
ones: the rows of a feed, applied in order, give the relation. For a virtual relation that gets
other columns it is `unwatched`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa

from corollary.core.arrow import arrow_type, sort_rows
from corollary.core.program import Relation
from corollary.core.types import NUMBER, SYMBOL, TIMESTAMP
from corollary.warehouse.catalog.catalog_rows import Commit, StoredChange
from corollary.warehouse.files.durable_files import CHANGE_COLUMN, DELETE, INSERT
from corollary.warehouse.publishing.history import StoredHistory
from corollary.warehouse.warehouse import Warehouse
from corollary.warehouse.warehouse_catalog import WarehouseCatalog

COMMIT_COLUMNS = {CHANGE_COLUMN: SYMBOL, "_commit_version": NUMBER, "_commit_timestamp": TIMESTAMP}
"""The columns of a feed that follow those of the tuples."""


UNWATCHED = "unwatched"
"""The kind of change of a virtual relation in a commit that has not watched it."""


def feed_columns(relation: Relation, *, has_gaps: bool = False) -> Relation:
    """Return a relation with the columns of its feed; with gaps, those of tuples may be null."""
    columns = (*relation.columns, *COMMIT_COLUMNS)
    types = tuple(each.with_null(True) for each in relation.types) if has_gaps else relation.types
    return replace(relation, columns=columns, types=(*types, *COMMIT_COLUMNS.values()))


def feed_table(
    warehouse: WarehouseCatalog,
    relation: Relation,
    changes: Iterable[tuple[Commit, StoredChange | int | None]],
) -> pa.Table:
    """Return the rows of changes that have the columns of a relation.

    Args:
        warehouse: has the changes.
        relation: has the columns.
        changes: each with the commit that made it. A number is a commit, all tuples of which are
            gone; None is not watched.
    """
    files = Warehouse(warehouse.root, warehouse.catalog)
    tables: list[pa.Table] = []
    for commit, stored in changes:
        if stored is None:
            tables.append(_with_commit(_unknown_row(relation), UNWATCHED, commit))
        elif isinstance(stored, int):
            gone = StoredHistory(files).content(relation, stored).table()
            if relation.columns:
                gone = sort_rows(pa.table(gone.columns, list(relation.columns)))
            tables.append(_with_commit(gone, DELETE, commit, gone.num_rows))
        else:
            tables += _rows(files, commit, stored)
    return pa.concat_tables(tables)


def _unknown_row(relation: Relation) -> pa.Table:
    """Return a row of nulls, as the tuple of a commit that has not watched a relation."""
    columns = zip(relation.columns, relation.types, strict=True)
    return pa.table({name: pa.nulls(1, arrow_type(type_)) for name, type_ in columns})


def _rows(warehouse: Warehouse, commit: Commit, stored: StoredChange) -> Iterator[pa.Table]:
    """Yield the rows of one change: deleted tuples, then inserted ones."""
    delta = warehouse.read_change(stored)
    for kind, tuples in ((DELETE, delta.removed), (INSERT, delta.added)):
        yield _with_commit(sort_rows(tuples), kind, commit, tuples.num_rows)


def _with_commit(rows: pa.Table, kind: str, commit: Commit, count: int = 1) -> pa.Table:
    """Return rows with the columns of a feed."""
    for value, (name, type_) in zip(
        (kind, commit.number, commit.time), COMMIT_COLUMNS.items(), strict=True
    ):
        column = pa.repeat(pa.scalar(value, arrow_type(type_)), count)
        rows = rows.append_column(name, column) if rows.num_columns else pa.table({name: column})
    return rows
