"""A warehouse: a directory of immutable files, and the catalog that says what they mean.

The state of a relation at a commit is its latest snapshot not after it, and the changes since. So
OLD and NEW, time travel and the audit log are one mechanism, and a commit costs what it changes. A
change that fills an empty relation is a snapshot too: both rows of the catalog name the same file.

Files are written first, under an *intent* in the catalog, then all of them are synced; one catalog
transaction then removes the intent and references the files. A crash before it leaves orphan files,
which `gc` removes; a crash after it loses nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from corollary import fault
from corollary.core.arrow import nullary_table
from corollary.core.engine import PARTITION_SEPARATOR, FileOrigin, LocalTable, TableHandle, TaskPool
from corollary.core.program import Relation
from corollary.data_class import dataclass
from corollary.errors import CorollaryError, WarehouseError
from corollary.warehouse.catalog import catalog_rows
from corollary.warehouse.catalog.retention import drop_superseded_folds
from corollary.warehouse.files import durable_files, multi_file_table
from corollary.warehouse.files.durable_files import FileBatch
from corollary.warehouse.files.file_rows import FileRows
from corollary.warehouse.files.multi_file_table import FILE_MAX_ROWS
from corollary.warehouse.files.object_path import ObjectPath
from corollary.warehouse.files.places import Place
from corollary.warehouse.partition_index import keep_files
from corollary.warehouse.warehouse_catalog import DATA_DIRECTORY, WarehouseCatalog

INDEX_PREFIX = "index-"
INLINE_BYTES = 1 << 16
"""The maximum size of a change that is stored in the catalog itself."""
INLINE_MAX_ROWS = 1 << 13
"""A change of more tuples is not even tried to be that small."""


@dataclass(frozen=True, slots=True)
class RelationDelta:
    """The tuples inserted into a relation and those deleted; or, if full, all that it holds now."""

    added: pa.Table
    removed: pa.Table
    is_full: bool = False

    @property
    def rows(self) -> int:
        """The number of tuples, added or removed."""
        return int(self.added.num_rows + self.removed.num_rows)


@dataclass(frozen=True, slots=True)
class ChangeHandles:
    """A change as handles on its tuples, which are decoded when they are written.

    Attributes:
        added: the tuples inserted; if full, all that the relation holds now.
        removed: the tuples deleted, if any.
        is_full: whether it holds all tuples, and replaces what was there before.
        is_snapshot: whether the file of a full change is a snapshot of the relation too.
        is_published: whether a published table may reference the files.
        copy_of: a relation that held the same tuples before the commit; its files may serve.
    """

    added: TableHandle
    removed: TableHandle | None = None
    is_full: bool = False
    is_snapshot: bool = False
    is_published: bool = False
    copy_of: str | None = None

    @classmethod
    def of(cls, delta: RelationDelta) -> "ChangeHandles":
        """Return a change whose tuples are decoded already."""
        return cls(LocalTable(delta.added), LocalTable(delta.removed), delta.is_full)

    @property
    def counts(self) -> tuple[int, int]:
        """How many tuples are added and removed."""
        return len(self.added), 0 if self.removed is None else len(self.removed)

    @property
    def rows(self) -> int:
        """The number of tuples, added or removed."""
        return sum(self.counts)

    def delta(self) -> RelationDelta:
        """Return the tuples."""
        added = self.added.table()
        removed = added.slice(0, 0) if self.removed is None else self.removed.table()
        return RelationDelta(added, removed, self.is_full)

    def table(self) -> pa.Table:
        """Return the rows of its file."""
        found = [make_rows(handle.table()) for handle, make_rows in self.contents()]
        if len(found) == 1:
            return found[0]
        return pa.concat_tables(found or [durable_files.inserted_rows(self.added.table())])

    @property
    def is_distributed(self) -> bool:
        """Whether tuples of it are outside of this process, too many to fetch."""
        sides = (self.added,) if self.removed is None else (self.added, self.removed)
        return any(each.is_distributed for each in sides)

    def contents(self) -> Iterator[tuple[TableHandle, Callable[[pa.Table], pa.Table]]]:
        """Yield handles on its tuples, with what makes the rows of its files of them."""
        if self.is_full:
            yield self.added, durable_files.full_rows
            return
        if len(self.added):
            yield self.added, durable_files.inserted_rows
        if self.removed is not None and len(self.removed):
            yield self.removed, durable_files.deleted_rows

    def slices(self) -> Iterator[pa.Table]:
        """Yield the rows of its files, those of added tuples first."""
        if self.is_full:
            yield from self.added.slices(FILE_MAX_ROWS)
        elif self.rows <= FILE_MAX_ROWS:
            yield self.table()
        else:
            yield from map(durable_files.inserted_rows, self.added.slices(FILE_MAX_ROWS))
            if self.removed is not None and len(self.removed):
                yield from map(durable_files.deleted_rows, self.removed.slices(FILE_MAX_ROWS))


class Warehouse(WarehouseCatalog):
    """Reads and writes the files of a warehouse."""

    # --- reading -------------------------------------------------------------------------------

    def recorded_content(self, relation: str, number: int) -> list[catalog_rows.StoredChange]:
        """Return what a relation is made of at a commit: its snapshot as a change, and all since.

        Raises:
            WarehouseError: the commit is no longer kept.
        """
        self.commit_at(number)
        found = self.catalog.latest_snapshots(number).get(relation)
        if found is None:
            return [each for _, each in self.catalog.changes(0, number, relation)]
        first = catalog_rows.StoredChange(
            relation, found.rows, 0, True, found.checksum, None, found.path
        )
        return [first, *(each for _, each in self.catalog.changes(found.commit, number, relation))]

    def read_index(self, number: int) -> tuple[int, dict[str, pa.Buffer], dict[str, Place]]:
        """Return the commit of the latest index not after a commit, and its files, memory-mapped.

        Files that tasks have written are returned as places, for `restore_index`.

        No index counts as the index of commit 0: a missing one is rebuilt from the data files. The
        blocks of an index have checksums of their own, which the engine compares.
        """
        found = self.catalog.latest_index(number)
        if found is None:
            return 0, {}, {}
        commit, listed = found
        own: dict[str, Place] = {}
        paths: dict[str, Place] = {}
        for path in (self.root / each.path for each in listed):
            name = path.name.removeprefix(INDEX_PREFIX)
            if PARTITION_SEPARATOR in name:
                paths[name] = path
            else:
                own[name] = path
        try:
            buffers = list(durable_files.memory_map_several(list(own.values())))
        except WarehouseError:
            if all(each.exists() for each in own.values()):
                raise
            return 0, {}, {}
        # Whether objects exist is seen when they are fetched.
        if not all(each.exists() for each in paths.values() if isinstance(each, Path)):
            return 0, {}, {}
        return commit, dict(zip(own, buffers, strict=True)), paths

    def read_snapshot(self, stored: catalog_rows.StoredSnapshot) -> pa.Table:
        """Return the tuples of a snapshot."""
        return _nullary(
            multi_file_table.read_table(self.root, stored.path, stored.checksum), stored.rows
        )

    def snapshot_rows(
        self, stored: catalog_rows.StoredSnapshot, relation: Relation, tasks: TaskPool | None
    ) -> pa.Table | TableHandle:
        """Return the tuples of a snapshot; a handle if they are too many for this process."""
        if tasks is None or not relation.types or not tasks.is_large(stored.rows):
            return self.read_snapshot(stored)
        files = multi_file_table.table_files(self.root, stored.path, stored.rows, stored.checksum)
        return FileRows(relation, files, tasks)

    def full_change_rows(
        self, stored: catalog_rows.StoredChange, relation: Relation, tasks: TaskPool | None
    ) -> pa.Table | TableHandle:
        """Return all tuples that a change has given to a relation, in the same way."""
        is_large = tasks is not None and relation.types and tasks.is_large(stored.added)
        if tasks is None or stored.path is None or not is_large:
            return self.read_change(stored).added
        files = multi_file_table.table_files(self.root, stored.path, stored.added, stored.checksum)
        return FileRows(relation, files, tasks)

    def change_handles(
        self, stored: catalog_rows.StoredChange, relation: Relation, tasks: TaskPool | None
    ) -> ChangeHandles | None:
        """Return a change that is not full as handles, None if it is not too large to be read."""
        rows = stored.added + stored.removed
        is_large = tasks is not None and relation.types and tasks.is_large(rows)
        if tasks is None or stored.path is None or not is_large:
            return None
        files = multi_file_table.table_files(self.root, stored.path, rows, stored.checksum)
        added, removed = (
            FileRows(
                relation,
                [replace(each, change_type=change_type) for each in files],
                tasks,
                count=count,
            )
            for change_type, count in (
                (durable_files.INSERT, stored.added),
                (durable_files.DELETE, stored.removed),
            )
        )
        return ChangeHandles(added, removed)

    def read_change(self, stored: catalog_rows.StoredChange) -> RelationDelta:
        """Return the tuples that a commit inserted into a relation and deleted from it."""
        return read_change(self.root, stored)

    # --- writing -------------------------------------------------------------------------------

    def commit(
        self, new: catalog_rows.NewCommit, changes: Mapping[str, RelationDelta | ChangeHandles]
    ) -> int:
        """Make a transaction durable; return the number of its commit.

        Large changes are written into files under an intent; small ones go into the catalog.

        Raises:
            ConflictError: another commit has the same parent.
            WarehouseError: something cannot be written.
        """
        handles = {
            name: each if isinstance(each, ChangeHandles) else ChangeHandles.of(each)
            for name, each in changes.items()
        }
        inline = {name: _packed(each) for name, each in handles.items()}
        intent = self.catalog.insert_intent() if None in inline.values() else None
        beat = None if intent is None else self.catalog.heartbeat(intent)
        files = FileBatch(self.root, beat)
        is_requested = False
        try:
            stored = [
                _inline_change(name, each, data)
                if (data := inline[name]) is not None
                else self._write_change(
                    files, f"{DATA_DIRECTORY}/{intent}/{at}", name, each, new.parent
                )
                for at, (name, each) in enumerate(handles.items())
            ]
            files.sync()
            fault.hit("after_data_files")
            snapshots = [
                catalog_rows.StoredSnapshot(
                    each.relation, new.parent + 1, each.added, each.path, each.checksum
                )
                for each in stored
                if each.path is not None and each.is_full and handles[each.relation].is_snapshot
            ]
            # From here on the commit may exist even if the call fails, so that `abandon` has to
            # ask the catalog before it removes files.
            is_requested = True
            return self.catalog.commit(replace(new, changes=stored, snapshots=snapshots), intent)
        except BaseException:
            if intent is not None:
                self.abandon(intent, is_certain=not is_requested)
            raise

    def _write_change(
        self, files: FileBatch, path: str, relation: str, change: ChangeHandles, parent: int
    ) -> catalog_rows.StoredChange:
        """Write a change into a file, or into several; return the row of the catalog."""
        written = self._link_snapshot(files, path, change, parent)
        written = written or self._link_rows(files, path, change)
        if written is None and change.is_distributed:
            written = multi_file_table.write_distributed(
                files, path, change.contents(), has_statistics=change.is_published
            )
        path, checksum = written or multi_file_table.write_table(
            files, path, change.slices(), has_statistics=change.is_published
        )
        return catalog_rows.StoredChange(
            relation, *change.counts, change.is_full, checksum, None, path
        )

    def _link_snapshot(
        self, files: FileBatch, path: str, change: ChangeHandles, parent: int
    ) -> tuple[str, str] | None:
        """Take over the files of a snapshot with the tuples of a change; None if there is none."""
        if change.copy_of is None:
            return None
        found = self.catalog.latest_snapshots(parent).get(change.copy_of)
        if found is None or found.rows != len(change.added):
            return None
        if self.catalog.changes(found.commit, parent, change.copy_of):
            return None
        try:
            return multi_file_table.link_table(files, found.path, found.checksum, path)
        except WarehouseError:
            return None  # damaged, or just replaced by another fold

    def _link_rows(
        self, files: FileBatch, path: str, change: ChangeHandles
    ) -> tuple[str, str] | None:
        """Take over the Parquet files that tasks have read the rows of a change into, if any.

        Those that a published table may reference have statistics, and are written.
        """
        rows = change.added
        if not isinstance(rows, FileRows) or not change.is_full or change.is_published:
            return None
        roots = (self.root, *(each.root for each in rows.files))
        if rows.count is not None or not all(isinstance(each, Path) for each in roots):
            return None
        try:
            return multi_file_table.link_rows(files, rows, path)
        except WarehouseError:
            return None  # this process does not see them

    def write_fold(
        self,
        number: int,
        relations: Iterable[tuple[str, ChangeHandles]],
        index: Iterable[tuple[str, bytes | Path | FileOrigin]],
        tasks: TaskPool | None = None,
    ) -> None:
        """Write snapshots of relations, given as full changes, and an engine's index of them.

        Files of the index that tasks have written get a second name; the tasks compute their
        checksums. In an object store, tasks put them there, unless the last index has them.

        They hold nothing that the changes do not, and only make reading faster; so it does no harm
        if another process has written them too.
        """
        intent = self.catalog.insert_intent()
        files = FileBatch(self.root, self.catalog.heartbeat(intent))
        is_requested = False
        try:
            snapshots, indexes = [], []
            for at, (relation, tuples) in enumerate(relations):
                path = f"{DATA_DIRECTORY}/{intent}/snapshot-{at}"
                made = self._write_change(files, path, relation, tuples, number)
                assert made.path is not None
                snapshots.append(
                    catalog_rows.StoredSnapshot(
                        relation, number, made.added, made.path, made.checksum
                    )
                )
                fault.hit("during_snapshot")
            elsewhere: dict[str, Place] = {}
            for name, data in index:
                path = f"{DATA_DIRECTORY}/{intent}/{INDEX_PREFIX}{name}"
                if isinstance(data, Path | ObjectPath):
                    elsewhere[path] = data
                else:
                    indexes.append(catalog_rows.StoredIndex(path, files.write(path, data)))
            indexes += keep_files(files, elsewhere, tasks, self._indexed_files(number))
            files.sync()
            is_requested = True
            is_recorded = self.catalog.record_fold(number, snapshots, indexes, intent)
        except BaseException:
            self.abandon(intent, is_certain=not is_requested)
            raise
        if not is_recorded:
            self.abandon(intent, is_certain=True)
            return
        fault.hit("after_snapshot")
        # Rows first, files afterwards: a crash in between leaves orphans, never dangling rows.
        superseded = drop_superseded_folds(self.catalog, number)
        if isinstance(self.root, ObjectPath):
            return  # only `gc` deletes objects
        for path, _ in multi_file_table.expand_lists(self.root, dict.fromkeys(superseded, "")):
            with suppress(OSError):  # `gc` finds what stays
                (self.root / path).unlink(missing_ok=True)

    def has_partitions(self, number: int) -> bool:
        """Whether the latest index not after a commit has files that tasks have written."""
        return bool(self._indexed_files(number))

    def _indexed_files(self, number: int) -> dict[str, catalog_rows.StoredIndex]:
        """Return by name the files that tasks have written for the latest index."""
        found = self.catalog.latest_index(number)
        listed = () if found is None else found[1]
        by_name = {each.path.rpartition("/")[2]: each for each in listed}
        return {name: each for name, each in by_name.items() if PARTITION_SEPARATOR in name}

    def abandon(self, intent: str, *, is_certain: bool = False) -> None:
        """Remove the intent of a transaction that failed, and its files.

        A commit that seems to have failed may have succeeded all the same (an interrupt, a broken
        connection): its intent is gone then, and its files stay. What cannot be removed now is
        left to `gc`.

        Args:
            intent: of the transaction.
            is_certain: whether the commit was never requested, or the catalog has refused it.
        """
        with suppress(CorollaryError, OSError):
            if is_certain:
                self._remove(intent)
            if self.catalog.delete_intent(intent):
                self._remove(intent)

    def _remove(self, intent: str) -> None:
        """Remove the directory of a transaction's files; objects are left to `gc`.

        A request that seems to have failed may put its object later, when nobody looks any more.
        """
        if isinstance(self.root, ObjectPath):
            return
        directory = self.root / DATA_DIRECTORY / intent
        if directory.exists():
            for file in directory.iterdir():
                file.unlink(missing_ok=True)
            directory.rmdir()


def read_change(root: Place, stored: catalog_rows.StoredChange) -> RelationDelta:
    """Return the tuples of a change, given the place of the warehouse.

    Raises:
        WarehouseError: the file is missing or damaged.
    """
    place: object = f"the change of {stored.relation} in the catalog"
    if stored.inline is not None:
        if _row_checksum(stored) != stored.checksum:
            raise WarehouseError.damaged(place)
        table = durable_files.from_arrow_stream(stored.inline)
    elif stored.path is not None:
        place = root / stored.path
        table = multi_file_table.read_table(root, stored.path, stored.checksum)
    else:
        raise WarehouseError.damaged(place)
    if stored.is_full:
        every = _nullary(table, stored.added)
        delta = RelationDelta(every, every.slice(0, 0), is_full=True)
    else:
        last = table.num_columns - 1  # by position: the relation may have a column of its name
        rest = table.remove_column(last)
        if stored.inline is not None and table.num_rows == stored.added + stored.removed:
            # The catalog has the added ones first, and the checksum is right.
            sides = rest.slice(0, stored.added), rest.slice(stored.added)
        else:
            insert = durable_files.change_scalar(durable_files.INSERT)
            mask = pc.equal(table.column(last), insert)
            sides = rest.filter(mask), rest.filter(pc.invert(mask))
        delta = RelationDelta(_nullary(sides[0], stored.added), _nullary(sides[1], stored.removed))
    if (delta.added.num_rows, delta.removed.num_rows) != (stored.added, stored.removed):
        raise WarehouseError.damaged(place)
    return delta


def _row_checksum(stored: catalog_rows.StoredChange) -> str:
    """Return the checksum of a change in the catalog: of its tuples and of its row.

    It is defined for damaged rows too, even those with values of other types: SQLite does not
    enforce the types of columns.
    """
    row = (stored.relation, stored.added, stored.removed, bool(stored.is_full))
    data = stored.inline if isinstance(stored.inline, bytes) else b""
    return durable_files.checksum_of(repr(row).encode("utf-8", "backslashreplace") + data)


def _packed(change: ChangeHandles) -> bytes | None:
    """Return a change as an Arrow stream; None if it is too large for the catalog."""
    if change.is_distributed or change.rows > INLINE_MAX_ROWS:
        return None
    data = durable_files.to_arrow_stream(change.table())
    return data if len(data) <= INLINE_BYTES else None


def _inline_change(relation: str, change: ChangeHandles, data: bytes) -> catalog_rows.StoredChange:
    """Return the row of a change that the catalog holds itself."""
    row = catalog_rows.StoredChange(relation, *change.counts, change.is_full, "", data, None)
    return replace(row, checksum=_row_checksum(row))


def _nullary(table: pa.Table, rows: int) -> pa.Table:
    return table if table.num_columns else nullary_table(rows)
