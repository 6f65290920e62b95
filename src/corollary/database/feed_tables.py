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

A follower reads the feed of a relation commit by commit, whichever process makes the commits, and
keeps the number of the last one that it has seen: whoever stores that number goes on from there
later. Grants are looked up each time.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow import arrow_type, single_array, sort_rows
from corollary.core.arrow_buffers import fixed_values
from corollary.core.engine import LocalTable, TableHandle
from corollary.core.program import Relation
from corollary.core.records.record_structs import TEXT
from corollary.core.types import NUMBER, SYMBOL, TIMESTAMP
from corollary.data_class import dataclass
from corollary.database.arguments import checked
from corollary.database.engines import SparkFrames
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


@dataclass(frozen=True, slots=True, repr=False)
class RelationFeed:
    """What commits have changed in a relation, as long as it had the same columns.

    Attributes:
        relation: with the columns of a feed.
    """

    relation: Relation
    _changes: Sequence[RecordedChange]
    _warehouse: WarehouseCatalog
    _kept: Callable[[RecordedChange], tuple[TableHandle, TableHandle]]
    """Returns what a change has added and removed; tasks read what is large."""
    _frames: SparkFrames

    def __repr__(self) -> str:
        numbers = [each.commit.number for each in self._changes]
        return f"<Feed of {self.relation.name}: commits {numbers[0]} to {numbers[-1]}>"

    def arrow(self) -> pa.Table:
        """Return the changes as an Arrow table, in the order of commits."""
        return feed_table(self._warehouse, self._changes)

    def pandas(self) -> Any:
        """Return the changes as a pandas frame, in the order of commits."""
        return self.arrow().to_pandas()

    @checked(view=str, records=str)
    def spark(self, view: str | None = None, records: str = TEXT) -> Any:
        """Return the changes as a Spark frame; `view` names a temp view of it.

        Many tuples are read by tasks, from the files of their commits.
        """
        width = len(self.relation.columns) - len(COMMIT_COLUMNS)
        shape = replace(
            self.relation, columns=self.relation.columns[:width], types=self.relation.types[:width]
        )
        parts = [
            (rows, _commit_values(kind, each.commit))
            for each in self._changes
            for kind, rows in self._sides(each)
        ]
        return self._frames.create_frame(parts, shape, view, records)

    def _sides(self, change: RecordedChange) -> Iterator[tuple[str, TableHandle]]:
        """Yield tuples of a change, and what has become of them."""
        if change.emptied is not None:
            files = Warehouse(self._warehouse.root, self._warehouse.catalog)
            yield DELETE, LocalTable(_content(files, change, *change.emptied))
        elif change.stored is None:
            yield UNWATCHED, LocalTable(unknown_row(change.relation))
        else:
            yield from zip((INSERT, DELETE), self._kept(change), strict=True)


def feed_shape_of(changes: Sequence[RecordedChange]) -> Relation:
    """Return the relation of changes, which have equal columns, with those of a feed."""
    relation = changes[0].relation
    return feed_columns(relation, has_gaps=any(each.is_gap for each in changes))


def feed_columns(relation: Relation, *, has_gaps: bool) -> Relation:
    """Return a relation with the columns of a feed; with gaps, those of tuples may be null."""
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
    for name, value in _commit_values(kind, commit).items():
        column = pa.repeat(value, count)
        rows = rows.append_column(name, column) if rows.num_columns else pa.table({name: column})
    return rows


def _commit_values(kind: str, commit: Commit) -> dict[str, pa.Scalar]:
    """Return the columns of a feed that follow those of the tuples of a change."""
    values = zip(COMMIT_COLUMNS.items(), (kind, commit.number, commit.time), strict=True)
    return {name: pa.scalar(value, arrow_type(type_)) for (name, type_), value in values}


POLL_SECONDS = 0.2
"""The time between two looks at the catalog while a follower waits."""


@dataclass(frozen=True, slots=True)
class FollowedChange:
    """What one commit has changed in a relation.

    Attributes:
        commit: its number.
        at: when it was made.
        relation: the relation as it is declared then.
        added: the tuples that it has gained.
        removed: those that it has lost.
        is_known: False if the relation is virtual and the commit has not watched it, or has given
            it other columns: nobody knows what has changed, so read it anew.
    """

    commit: int
    at: datetime
    relation: Relation
    added: pa.Table
    removed: pa.Table
    is_known: bool = True


class Follower:
    """Returns the changes of a relation, commit by commit.

    Args:
        relation: its name.
        since: the last commit that is known already.
        latest: returns the number of the last commit.
        read: returns the feed of the relation, after one commit and up to another.

    Attributes:
        relation: its name.
        commit: the last commit that it has seen.
    """

    def __init__(
        self,
        relation: str,
        since: int,
        latest: Callable[[], int],
        read: Callable[[int, int], Iterator[tuple[Relation, pa.Table]]],
    ) -> None:
        self.relation = relation
        self.commit = since
        self._latest = latest
        self._read = read

    def __repr__(self) -> str:
        return f"<Follower of {self.relation}: commit {self.commit}>"

    def poll(self) -> list[FollowedChange]:
        """Return what the commits since the last call have changed, in their order.

        Raises:
            AccessError: the relation is not granted any more.
            WarehouseError: not all these commits are kept; begin anew.
        """
        latest = self._latest()
        if latest <= self.commit:
            return []
        found = [
            each
            for fed, table in self._read(self.commit, latest)
            for each in changes_by_commit(fed, table)
        ]
        self.commit = latest
        return found

    def wait(self, seconds: float | None = None) -> list[FollowedChange]:
        """Return the next changes, as soon as there are some.

        Args:
            seconds: how long to wait for them; then the list is empty. For ever if not given.
        """
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            found = self.poll()
            left = POLL_SECONDS if end is None else end - time.monotonic()
            if found or left <= 0:
                return found
            time.sleep(min(left, POLL_SECONDS))


def changes_by_commit(fed: Relation, table: pa.Table) -> Iterator[FollowedChange]:
    """Yield the changes of a feed's table, whose rows are in the order of commits."""
    width = len(fed.columns) - len(COMMIT_COLUMNS)
    relation = replace(fed, columns=fed.columns[:width], types=fed.types[:width])
    kinds, versions, times = table.columns[width:]
    numbers = fixed_values(single_array(versions), np.int64)
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))
    for start, stop in zip(starts, [*starts[1:], len(numbers)], strict=True):
        kind = kinds.slice(start, stop - start)
        rows = table.slice(start, stop - start)
        added, removed = (
            rows.filter(pc.equal(kind, sign)).select(list(range(width)))
            for sign in (INSERT, DELETE)
        )
        is_known = not pc.any(pc.equal(kind, UNWATCHED)).as_py()
        at = times[start].as_py()
        yield FollowedChange(int(numbers[start]), at, relation, added, removed, is_known)
