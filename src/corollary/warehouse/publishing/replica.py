"""Replicas: relations that are kept in step outside of the warehouse, by what commits change.

A replica holds, with its rows, its *position*: the commit that it shows. Both change at once, so
that a process that is killed at any point leaves a replica that shows one commit, and the next one
goes on from there.

| stage | what holds after it |
|---|---|
| lock | no other process of this warehouse writes to the replica |
| position | the commit that the replica shows is known, and is one of this history |
| collect | the net change since then; or, if that is not known, that of the contents |
| apply | the rows and the position are changed, or nothing is |
| record | the catalog knows, too |

The change of a view with a new definition is a change as any other: it says what goes. Where the
history since a position is no longer kept, the replica is refreshed: made equal to the relation.
"""

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import Any, Protocol, Self

import pyarrow as pa

from corollary import fault
from corollary.core.program import Relation
from corollary.data_class import dataclass
from corollary.errors import WarehouseError
from corollary.warehouse.catalog.catalog import Catalog
from corollary.warehouse.catalog.catalog_rows import Commit
from corollary.warehouse.catalog.replica_records import ReplicaRecord, ReplicaRecords
from corollary.warehouse.copies import row_difference
from corollary.warehouse.publishing.delta_schema import columns_digest, published_schema
from corollary.warehouse.publishing.history import CopiesHistory, History
from corollary.warehouse.publishing.outputs import RECORD_INTERVAL_COMMITS, PublishedVersion
from corollary.warehouse.publishing.table_directory import TableDirectory
from corollary.warehouse.warehouse import RelationDelta


@dataclass(frozen=True, slots=True)
class ReplicaPosition:
    """What a replica says about itself.

    Attributes:
        warehouse: the id of the warehouse.
        commit: the commit that it shows.
        created: when that commit was made, which distinguishes it from one of the same number that
            was made after the warehouse was restored from a backup.
        columns: a digest of the names and types of its columns.
        rows: how many rows it has.
    """

    warehouse: str
    commit: int
    created: str
    columns: str
    rows: int

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Self:
        """Return a position of its fields, which may be texts."""
        said = fields["warehouse"], int(fields["commit"]), fields["created"], fields["columns"]
        return cls(*said, int(fields["rows"]))

    @property
    def fields(self) -> dict[str, Any]:
        """The fields, by their names."""
        return asdict(self)


class ReplicaSession(Protocol):
    """A replica that is open; nobody else of this warehouse writes to it."""

    def position(self, recorded: ReplicaPosition | None) -> ReplicaPosition | None:
        """Return the position; None if there is no such replica yet.

        Args:
            recorded: the last one, for a replica that may forget it.

        Raises:
            WarehouseError: `C0979`, what is there was not made here.
        """

    def apply(self, change: RelationDelta, position: ReplicaPosition) -> None:
        """Apply a change, and move to a position, all or nothing.

        Raises:
            WarehouseError: `C0979`, the rows are not as they were left.
        """

    def refresh(self, rows: pa.Table, position: ReplicaPosition) -> tuple[int, int]:
        """Hold just these rows, at a position; return how many came and went.

        A replica that is not there yet is made.
        """


class Replica(Protocol):
    """Where a relation is replicated to."""

    def open(self) -> AbstractContextManager[ReplicaSession]:
        """Open the replica.

        Raises:
            WarehouseError: `C0949`, it cannot be reached.
        """


class ReplicaOutput:
    """A replica that follows its relation.

    Args:
        relation: the relation.
        name: what the replica is known by.
        replica: where it is.
        tables: has the locks.
        catalog: of the warehouse.
        counts: for each relation with copies, the one that has its counts.
    """

    def __init__(
        self,
        relation: Relation,
        name: str,
        replica: Replica,
        tables: TableDirectory,
        *,
        catalog: Catalog,
        counts: Mapping[str, Relation],
    ) -> None:
        self.relation = relation
        self.name = name
        self._replica = replica
        self._catalog = catalog
        self._tables = tables
        self._counts = counts
        self._changed = counts.get(relation.name, relation).name
        self._records = ReplicaRecords(catalog)
        self._columns = columns_digest(published_schema(relation))

    def publish(self, commit: Commit, history: History) -> PublishedVersion | None:
        """Bring it forward to a commit; return what was done, if anything.

        Raises:
            WarehouseError: it cannot be written, or is not as it was left.
        """
        known = self._records.find(self.relation.name, self.name)
        recorded = _recorded_position(known)
        if known is not None and recorded is not None and self._is_up_to_date(known, recorded):
            if commit.number - known.commit_number >= RECORD_INTERVAL_COMMITS:
                self._record(commit.number, recorded)
            return None
        history = CopiesHistory(history, self._counts) if self._counts else history
        try:
            with self._tables.locked(self.relation.name, self.name):
                with self._replica.open() as opened:
                    made, done, shown = self._publish(opened, known, commit, history)
                fault.hit("after_publish")
                self._record(done, shown)
                return made
        except WarehouseError as error:
            new = ReplicaRecord(self.relation.name, self.name, self._changed)
            self._records.record_failure(known or new, error.diagnostics[0].message)
            raise

    def _is_up_to_date(self, known: ReplicaRecord, recorded: ReplicaPosition) -> bool:
        return (
            recorded.columns == self._columns
            and known.commit_number >= max(1, int(self._catalog.meta("oldest")))
            and not self._catalog.count_changing_commits(self._changed, known.commit_number)
        )

    def _publish(
        self,
        opened: ReplicaSession,
        known: ReplicaRecord | None,
        commit: Commit,
        history: History,
    ) -> tuple[PublishedVersion | None, int, ReplicaPosition]:
        """Return what was done, the commit up to which nothing lacks, and the position."""
        recorded = _recorded_position(known)
        held = opened.position(recorded)
        start, reason = self._start(held, known, recorded)
        if held is not None and start is not None and start >= commit.number:
            return None, start, held
        delta = None if start is None else self._change(start, commit, history)
        if start is not None and delta is None:
            reason = f"the changes after commit {start} are not kept any more"
        if delta is None or held is None:
            rows = history.content(self.relation, commit.number).table()
            position = self._position(commit, rows.num_rows)
            fault.hit("before_publish")
            added, removed = opened.refresh(rows, position)
        else:
            added, removed = delta.added.num_rows, delta.removed.num_rows
            if not added and not removed:
                return None, commit.number, held
            position = self._position(commit, held.rows + added - removed)
            fault.hit("before_publish")
            opened.apply(delta, position)
        made = PublishedVersion(
            *(self.relation.name, commit.number, commit.number, added, removed, 0),
            replica=self.name,
            reason=reason,
        )
        return made, commit.number, position

    def _start(
        self,
        held: ReplicaPosition | None,
        known: ReplicaRecord | None,
        recorded: ReplicaPosition | None,
    ) -> tuple[int | None, str]:
        """Return the commit after which changes are missing; None for all, and the reason."""
        if held is None:
            return None, "" if recorded is None else "it is not there"
        if held.warehouse != self._tables.warehouse:
            raise foreign_replica(self.name, "belongs to another warehouse")
        if held.columns != self._columns:
            return None, "its columns are others"
        commit, latest = self._catalog.find_commit(held.commit), self._catalog.latest_commit()
        is_future = latest is None or held.commit > latest.number
        if is_future or (commit is not None and repr(commit.created) != held.created):
            return None, f"it shows a commit {held.commit} that this warehouse does not have"
        if known is not None and recorded == held:
            return max(held.commit, known.commit_number), ""
        return held.commit, ""

    def _change(self, start: int, commit: Commit, history: History) -> RelationDelta | None:
        """Return the net change since a commit; None if it is not kept."""
        found = history.changes(self.relation, start, commit.number)
        if (found is not None and not found.is_full) or start < int(self._catalog.meta("oldest")):
            return found
        before, now = (history.content(self.relation, at).table() for at in (start, commit.number))
        if not self.relation.arity:
            size = now.num_rows - before.num_rows
            return RelationDelta(now.slice(0, max(size, 0)), before.slice(0, max(-size, 0)))
        return RelationDelta(*row_difference(before, now))

    def _position(self, commit: Commit, rows: int) -> ReplicaPosition:
        created = repr(commit.created)
        return ReplicaPosition(self._tables.warehouse, commit.number, created, self._columns, rows)

    def _record(self, commit: int, position: ReplicaPosition) -> None:
        text = json.dumps(position.fields)
        new = ReplicaRecord(self.relation.name, self.name, self._changed, commit, text)
        self._records.record(new)


def _recorded_position(known: ReplicaRecord | None) -> ReplicaPosition | None:
    if known is None or not known.position:
        return None
    return ReplicaPosition.of(json.loads(known.position))


def unreachable_replica(name: str, error: object) -> WarehouseError:
    """Return the error about a replica that cannot be reached or written now."""
    reason = (str(error).strip() or repr(error)).splitlines()[0].rstrip(".")
    return WarehouseError.of(
        "C0949",
        f"`{name}` cannot be brought forward: {reason}.",
        None,
        "nothing is lost: it catches up when it can be written again",
    )


def foreign_replica(name: str, what: str) -> WarehouseError:
    """Return the error about a replica that is not as this warehouse has left it."""
    return WarehouseError.of(
        "C0979",
        f"`{name}` {what}.",
        None,
        "undo that, or drop or rename it, so that it is made anew; the warehouse is unharmed",
    )
