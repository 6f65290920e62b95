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
from corollary.warehouse.catalog.catalog_rows import Commit, RecordedChange, StoredChange
from corollary.warehouse.copies import difference_of_copies
from corollary.warehouse.files.durable_files import CHANGE_COLUMN, DELETE, INSERT
from corollary.warehouse.publishing.history import StoredHistory
from corollary.warehouse.warehouse import RelationDelta, Warehouse
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


def feed_table(warehouse: WarehouseCatalog, changes: Iterable[RecordedChange]) -> pa.Table:
    """Return the rows of changes of relations with the same columns."""
    files = Warehouse(warehouse.root, warehouse.catalog)
    tables: list[pa.Table] = []
    for each in changes:
        if each.emptied is not None:
            gone = _content(files, each, *each.emptied)
            tables.append(with_commit(gone, DELETE, each.commit, gone.num_rows))
        elif each.stored is None:
            tables.append(with_commit(unknown_row(each.relation), UNWATCHED, each.commit))
        else:
            tables += _rows(files, each, each.stored)
    return pa.concat_tables(tables)


def _content(
    warehouse: Warehouse, change: RecordedChange, recorded: Relation, number: int
) -> pa.Table:
    """Return all rows that a relation had at a commit."""
    rows = StoredHistory(warehouse).content(recorded, number).table()
    if not recorded.columns:
        return rows
    rows = pa.table(rows.columns, list(recorded.columns))
    if change.is_of_counts:
        _, rows = difference_of_copies(rows.slice(0, 0), rows)
    return sort_rows(rows)


def unknown_row(relation: Relation) -> pa.Table:
    """Return a row of nulls, as the tuple of a commit that has not watched a relation."""
    columns = zip(relation.columns, relation.types, strict=True)
    return pa.table({name: pa.nulls(1, arrow_type(type_)) for name, type_ in columns})


def _rows(warehouse: Warehouse, change: RecordedChange, stored: StoredChange) -> Iterator[pa.Table]:
    """Yield the rows of one change: deleted tuples, then inserted ones."""
    removed, added = change_sides(warehouse.read_change(stored), change)
    for kind, tuples in ((DELETE, removed), (INSERT, added)):
        yield with_commit(sort_rows(tuples), kind, change.commit, tuples.num_rows)


def change_sides(delta: RelationDelta, change: RecordedChange) -> tuple[pa.Table, pa.Table]:
    """Return the deleted and the inserted tuples of a change; of counts, the copies."""
    if not change.is_of_counts:
        return delta.removed, delta.added
    added, removed = difference_of_copies(delta.added, delta.removed)
    return removed, added


def with_commit(rows: pa.Table, kind: str, commit: Commit, count: int = 1) -> pa.Table:
    """Return rows with the columns of a feed."""
    for value, (name, type_) in zip(
        (kind, commit.number, commit.time), COMMIT_COLUMNS.items(), strict=True
    ):
        column = pa.repeat(pa.scalar(value, arrow_type(type_)), count)
        rows = rows.append_column(name, column) if rows.num_columns else pa.table({name: column})
    return rows
