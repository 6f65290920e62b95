"""What the publisher needs of the warehouse: net changes between commits, and whole contents.

| history | answers from |
|---|---|
| `StoredHistory` | snapshots and changes in the warehouse |
| `RecentHistory` | the last commits, which are still in memory; another history for the rest |
| `CopiesHistory` | the counts of relations with copies, in another history |

A change is effective: it adds tuples that are not there and removes tuples that are. So the signs
of a tuple, summed over consecutive changes, are +1 (it was added), 0 or −1 (it was removed), and
over a snapshot and all changes since 1 or 0. Null equals null and NaN equals NaN in groups, as in
relations.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow import group_rows, nullary_table, schema_of
from corollary.core.engine import LocalTable, TableHandle, TaskPool
from corollary.core.program import Relation
from corollary.data_class import dataclass
from corollary.errors import Diagnostic, WarehouseError
from corollary.warehouse.consistent_read import read_consistently
from corollary.warehouse.copies import CopiesHandle, difference_of_copies
from corollary.warehouse.files.multi_file_table import checked_files
from corollary.warehouse.files.places import Place
from corollary.warehouse.warehouse import ChangeHandles, RelationDelta, Warehouse

_SIGN = "sign"


class History(Protocol):
    """The history of a warehouse, as far as it is kept."""

    def changes(self, relation: Relation, after: int, upto: int) -> RelationDelta | None:
        """Return the net change of a relation by the commits after one and up to another.

        No change is two tables without rows; None means that the change is unknown: the commits
        are no longer kept, one of them recorded all tuples instead of a change, or the relation
        had columns of other types then.
        """

    def distributed_change(self, relation: Relation, after: int, upto: int) -> ChangeHandles | None:
        """Return a net change of many tuples, which are outside of this process.

        None means that there is none, or that it is not known as one: then `changes` returns it.
        """

    def content(self, relation: Relation, at: int) -> TableHandle:
        """Return all tuples that a relation had at a commit."""

    def snapshot_files(self, relation: Relation, at: int) -> list[Place] | None:
        """Return Parquet files that hold just the tuples that a relation had at a commit.

        None means that there are none. The caller may link to the files, which are never modified.
        """

    def tasks_for(self, relation: Relation) -> TaskPool | None:
        """Return where the files of a relation are read and written; None for this process."""


@dataclass(frozen=True, slots=True)
class StoredHistory:
    """The history that the warehouse stores.

    Attributes:
        tasks: where files of relations are read and written; None for this process.
    """

    warehouse: Warehouse
    tasks: TaskPool | None = None

    def changes(self, relation: Relation, after: int, upto: int) -> RelationDelta | None:
        """Return the net change of a relation by some commits."""
        catalog = self.warehouse.catalog
        return read_consistently(catalog, lambda: self._changes(relation, after, upto))

    def _changes(self, relation: Relation, after: int, upto: int) -> RelationDelta | None:
        catalog = self.warehouse.catalog
        if after < int(catalog.meta("oldest")):
            return None
        stored = catalog.changes(after, upto, relation.name)
        rows = sum(each.added + each.removed for _, each in stored)
        if self.tasks is not None and relation.types and self.tasks.is_large(rows):
            return None  # too many for this process
        deltas = [self.warehouse.read_change(each) for _, each in stored]
        if any(each.is_full or not _has_types(each.added, relation) for each in deltas):
            return None
        return net_delta(deltas, relation)

    def distributed_change(self, relation: Relation, after: int, upto: int) -> ChangeHandles | None:
        """Return the change of a single commit, if it is large."""
        catalog = self.warehouse.catalog
        if after < int(catalog.meta("oldest")):
            return None
        stored = [each for _, each in catalog.changes(after, upto, relation.name)]
        if len(stored) != 1 or stored[0].is_full:
            return None
        return self.warehouse.change_handles(stored[0], relation, self.tasks)

    def content(self, relation: Relation, at: int) -> TableHandle:
        """Return all tuples that a relation had at a commit.

        Changes from a time when it had columns of other types do not count.
        """
        relevant: list[RelationDelta] = []
        for each in read_consistently(self.warehouse.catalog, lambda: self._deltas(relation, at)):
            if each.is_full or not _has_types(each.added, relation):
                relevant = []
            if _has_types(each.added, relation):
                relevant.append(each)
        state = net_delta(relevant, relation)
        if state.removed.num_rows:
            raise _does_not_add_up(relation)
        return LocalTable(state.added)

    def _deltas(self, relation: Relation, at: int) -> list[RelationDelta]:
        stored = self.warehouse.recorded_content(relation.name, at)
        return [self.warehouse.read_change(each) for each in stored]

    def snapshot_files(self, relation: Relation, at: int) -> list[Place] | None:
        """Return the files of the latest snapshot, if nothing has changed since.

        Raises:
            WarehouseError: one is damaged.
        """
        return read_consistently(self.warehouse.catalog, lambda: self._files(relation.name, at))

    def _files(self, name: str, at: int) -> list[Place] | None:
        catalog = self.warehouse.catalog
        found = catalog.latest_snapshots(at).get(name)
        if found is None or catalog.changes(found.commit, at, name):
            return None
        return checked_files(self.warehouse.root, found.path, found.checksum, self.tasks)

    def tasks_for(self, relation: Relation) -> TaskPool | None:  # noqa: ARG002
        """Return where files are read and written."""
        return self.tasks


@dataclass(frozen=True, slots=True)
class RecentHistory:
    """The last commits, whose changes are still in memory and need not be read.

    Attributes:
        after: the commit before them.
        upto: the last one.
        net_change: returns their net change of a relation by name; None for no change.
        current_content: returns all current tuples of a relation by name.
        fallback: the history that answers everything else.
    """

    after: int
    upto: int
    net_change: Callable[[str], ChangeHandles | None]
    current_content: Callable[[str], TableHandle]
    fallback: History

    def changes(self, relation: Relation, after: int, upto: int) -> RelationDelta | None:
        """Return the net change of a relation by some commits."""
        if upto != self.upto or after > self.after:
            return self.fallback.changes(relation, after, upto)
        change = self.net_change(relation.name)
        if change is not None and (change.is_full or change.is_distributed):
            return None
        recent = None if change is None else change.delta()
        if after == self.after:
            return net_delta([], relation) if recent is None else recent
        earlier = self.fallback.changes(relation, after, self.after)
        if earlier is None or recent is None:
            return earlier
        return net_delta([earlier, recent], relation)

    def distributed_change(self, relation: Relation, after: int, upto: int) -> ChangeHandles | None:
        """Return the net change of some commits, if it is large."""
        if (after, upto) == (self.after, self.upto):
            found = self.net_change(relation.name)
            is_large = found is not None and found.is_distributed and not found.is_full
            return found if is_large else None
        return self.fallback.distributed_change(relation, after, upto)

    def content(self, relation: Relation, at: int) -> TableHandle:
        """Return all tuples that a relation had at a commit."""
        return (
            self.current_content(relation.name)
            if at == self.upto
            else self.fallback.content(relation, at)
        )

    def snapshot_files(self, relation: Relation, at: int) -> list[Place] | None:
        """Return Parquet files that hold just the tuples that a relation had at a commit."""
        return self.fallback.snapshot_files(relation, at)

    def tasks_for(self, relation: Relation) -> TaskPool | None:
        """Return where the files of a relation are read and written.

        That is where its tuples are.
        """
        is_distributed = self.current_content(relation.name).is_distributed
        return self.fallback.tasks_for(relation) if is_distributed else None


@dataclass(frozen=True, slots=True)
class CopiesHistory:
    """A history in which relations with copies have them, of one that has their counts.

    Attributes:
        counted: the history of the counts, and of all other relations.
        counts: for each relation with copies, the one that has its counts.
    """

    counted: History
    counts: Mapping[str, Relation]

    def changes(self, relation: Relation, after: int, upto: int) -> RelationDelta | None:
        """Return the net change of a relation by some commits."""
        counts = self.counts.get(relation.name, relation)
        found = self.counted.changes(counts, after, upto)
        if counts is relation or found is None:
            return found
        return RelationDelta(*difference_of_copies(found.added, found.removed), found.is_full)

    def distributed_change(self, relation: Relation, after: int, upto: int) -> ChangeHandles | None:
        """Return a large change; of copies, it is not known as one."""
        if relation.name in self.counts:
            return None
        return self.counted.distributed_change(relation, after, upto)

    def content(self, relation: Relation, at: int) -> TableHandle:
        """Return all tuples that a relation had at a commit."""
        counts = self.counts.get(relation.name, relation)
        found = self.counted.content(counts, at)
        return found if counts is relation else CopiesHandle(found)

    def snapshot_files(self, relation: Relation, at: int) -> list[Place] | None:
        """Return Parquet files that hold just the tuples of a relation; none has copies."""
        return None if relation.name in self.counts else self.counted.snapshot_files(relation, at)

    def tasks_for(self, relation: Relation) -> TaskPool | None:
        """Return where the files of a relation are read and written; here, if it has copies."""
        return None if relation.name in self.counts else self.counted.tasks_for(relation)


def net_delta(deltas: Sequence[RelationDelta], relation: Relation) -> RelationDelta:
    """Return consecutive changes of a relation as one.

    Raises:
        WarehouseError: `C0941`, they cannot be consecutive.
    """
    if len(deltas) == 1:
        return deltas[0]
    if not relation.arity:
        total = sum(each.added.num_rows - each.removed.num_rows for each in deltas)
        if abs(total) > 1:
            raise _does_not_add_up(relation)
        return RelationDelta(nullary_table(max(total, 0)), nullary_table(max(-total, 0)))
    schema = schema_of(relation)
    keys = [f"key{at}" for at in range(relation.arity)]
    signed = [
        _signed(table, keys, sign)
        for each in deltas
        for table, sign in ((each.added, 1), (each.removed, -1))
    ]
    sums = pa.concat_tables([_signed(schema.empty_table(), keys, 1), *signed])
    sums = group_rows(sums, keys, [(_SIGN, "sum")])
    sign = sums.column(f"{_SIGN}_sum")
    if pc.any(pc.greater(pc.abs(sign), 1)).as_py():
        raise _does_not_add_up(relation)
    added, removed = (sums.filter(pc.equal(sign, one)).select(keys) for one in (1, -1))
    return RelationDelta(
        *(pa.Table.from_arrays(each.columns, schema=schema) for each in (added, removed))
    )


def _signed(table: pa.Table, keys: list[str], sign: int) -> pa.Table:
    signs = pa.repeat(pa.scalar(sign, pa.int8()), table.num_rows)
    # Without the schema: tables that differ in nullability only could not be concatenated.
    return pa.table([*table.columns, signs], [*keys, _SIGN])


def _has_types(table: pa.Table, relation: Relation) -> bool:
    return bool(table.schema.types == schema_of(relation).types)


def _does_not_add_up(relation: Relation) -> WarehouseError:
    text = (
        f"The history of `{relation.name}` does not add up: a tuple came twice, or went without "
        "being there."
    )
    cure = "run `corollary verify` to see what is left of the warehouse"
    return WarehouseError([Diagnostic("C0941", text, None, cure)])
