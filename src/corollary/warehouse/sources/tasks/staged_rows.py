"""What becomes of the rows that tasks have read: files of rows, or pieces of them by key.

Without a key, a task writes its rows to a file. With one, rows with the same key have to meet: a
task writes its rows as *pieces*, one for each partition of the keys, to one file, and the tasks of
a second job each put the pieces of a partition together and resolve its keys.

How many rows a large change deletes is counted in the same way.
"""

import secrets
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from corollary.core.arrow import empty_table, expand_table, schema_of
from corollary.core.arrow_buffers import index_array
from corollary.core.engine import LocalTable, PartitionsOf, TableHandle, TaskPool
from corollary.core.program import Directive, Relation
from corollary.core.states import State
from corollary.data_class import dataclass
from corollary.warehouse import copies
from corollary.warehouse.files.durable_files import checksum_of
from corollary.warehouse.files.file_rows import FileRows, RowsFile, StagingDirectory
from corollary.warehouse.files.object_path import ObjectPath
from corollary.warehouse.files.parquet_encoding import to_parquet
from corollary.warehouse.files.places import Place
from corollary.warehouse.sources.source import Rows
from corollary.warehouse.sources.source_keys import SourceKey, resolve_keys

_MIX = 0x9E3779B9
_COLUMN_PARTITIONS = 1 << 16
"""The partitions of each column, from which those of several columns are made."""


@dataclass(frozen=True, slots=True)
class KeyPartitions:
    """Which partition a row belongs to, by the values of some columns.

    Attributes:
        columns: rows that agree in these are in the same partition.
        count: how many partitions there are.
        partitions_of: the same for one column.
    """

    relation: Relation
    columns: tuple[int, ...]
    count: int
    partitions_of: PartitionsOf

    def split(self, rows: pa.Table) -> list[pa.Table]:
        """Return the rows of each partition."""
        numbers = np.zeros(rows.num_rows, np.int64)
        for at in self.columns:
            found = self.partitions_of(rows, self.relation, at, _COLUMN_PARTITIONS)
            numbers = (numbers * _MIX + found) % (1 << 31)
        # In as few bits as they need: small integers are sorted by their digits.
        numbers = ((numbers * _MIX >> 15) % self.count).astype(np.min_scalar_type(self.count))
        order = np.argsort(numbers, kind="stable")
        rows = rows.take(index_array(order))
        bounds = np.searchsorted(numbers[order], np.arange(self.count + 1)).tolist()
        return [rows.slice(start, end - start) for start, end in pairwise(bounds)]


@dataclass(frozen=True, slots=True)
class RowPieces:
    """A file with a piece of rows for each partition, in the order of the partitions."""

    place: Place
    rows: int

    def piece(self, partition: int) -> pa.Table:
        """Return the piece of a partition."""
        with self._open() as file:
            return pa.Table.from_batches([pa.ipc.open_file(file).get_batch(partition)])

    def _open(self) -> pa.NativeFile:
        if isinstance(self.place, ObjectPath):  # only the piece is read
            return pa.PythonFile(self.place.open(), mode="r")
        return pa.memory_map(str(self.place))

    def read(self, partition: int, relation: Relation) -> pa.Table:
        """Return the piece of a partition as rows of a relation."""
        return self.piece(partition).cast(schema_of(relation))


@dataclass(frozen=True, slots=True)
class PieceWriter:
    """Writes rows as pieces; it is pickled, and called in the process that has the rows."""

    root: Place
    partitions: KeyPartitions

    def __call__(self, rows: pa.Table) -> RowPieces:
        """Write some rows."""
        relation = self.partitions.relation
        rows = expand_table(rows.select(list(relation.columns)), relation).cast(schema_of(relation))
        return write_pieces(self.root, self.partitions, rows)


@dataclass(frozen=True, slots=True)
class KeyResolver:
    """Puts the pieces of a partition together, with one row for each key, in a task."""

    root: Place
    relation: Relation
    key: SourceKey
    directive: Directive
    pieces: Sequence[RowPieces]

    def __call__(self, partition: int) -> RowsFile | None:
        """Return the file with the rows of a partition; None if there are none.

        Raises:
            ConstraintError: `C0954`, rows are in conflict.
        """
        rows = read_pieces(self.pieces, partition, self.relation)
        rows = resolve_keys(rows, self.key, self.relation, self.directive)
        return write_rows(self.root, rows) if rows.num_rows else None


@dataclass(frozen=True, slots=True)
class PieceComparison:
    """Compares the rows of a partition now with those that were there before, in a task."""

    root: Place
    relation: Relation
    before: Sequence[RowPieces]
    now: Sequence[RowPieces]
    has_copies: bool = False

    def __call__(self, partition: int) -> tuple[RowsFile | None, RowsFile | None]:
        """Return the files of added and of removed rows of a partition, with counts of copies."""
        before = read_pieces(self.before, partition, self.relation)
        now = read_pieces(self.now, partition, self.relation)
        compare = copies.counted_difference if self.has_copies else copies.difference
        added, removed = (
            write_rows(self.root, each) if each.num_rows else None for each in compare(before, now)
        )
        return added, removed


@dataclass(frozen=True, slots=True)
class CountComparison:
    """Compares the counts of copies of a partition with those that they replace, in a task."""

    root: Place
    relation: Relation
    added: Sequence[RowPieces]
    removed: Sequence[RowPieces]

    def __call__(self, partition: int) -> tuple[RowsFile | None, ...]:
        """Return the files of the rows of which copies went and came, with how many."""
        added, removed = (
            read_pieces(each, partition, self.relation) for each in (self.added, self.removed)
        )
        change = copies.CountChange.of([(State.ADDED, added), (State.REMOVED, removed)])
        went, came = (np.maximum(each, 0) for each in (-change.delta, change.delta))
        return tuple(
            write_rows(self.root, each) if each.num_rows else None
            for each in copies.change_of_counts(change.rows, went, came, self.relation)
        )


def compare_counts(
    tasks: TaskPool, relation: Relation, added: TableHandle, removed: TableHandle
) -> tuple[TableHandle, TableHandle]:
    """Return the copies that came and went, when some counts of a relation replace others."""
    count = tasks.partition_count(len(added) + len(removed))
    columns = tuple(range(relation.arity - 1))
    directory, pieces = StagingDirectory(tasks), StagingDirectory(tasks)
    write = PieceWriter(pieces.path, KeyPartitions(relation, columns, count, tasks.partitions_of))
    sides = (each.map_partitions(write) for each in (added, removed))
    compare = CountComparison(directory.path, relation, *sides)
    found = tasks.run(f"compare copies of {relation.name}", compare, range(count))
    went, came = (
        copies.CopiesHandle(FileRows(relation, [each for each in side if each], tasks, directory))
        for side in zip(*found, strict=True)
    )
    return came, went


def read_pieces(pieces: Sequence[RowPieces], partition: int, relation: Relation) -> pa.Table:
    """Return the rows of a partition."""
    tables = [each.read(partition, relation) for each in pieces]
    return pa.concat_tables([empty_table(relation), *tables])


def write_pieces(root: Place, partitions: KeyPartitions, rows: pa.Table) -> RowPieces:
    """Write the columns of a relation, perhaps with others behind them, as pieces."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_file(sink, rows.schema, options=options) as writer:
        for piece in partitions.split(rows):
            (batch,) = piece.combine_chunks().to_batches() or [_empty_batch(rows.schema)]
            writer.write_batch(batch)
    place = root / f"pieces-{secrets.token_hex(16)}.arrow"
    place.write_bytes(sink.getvalue())
    return RowPieces(place, rows.num_rows)


def write_rows(root: Place, rows: pa.Table) -> RowsFile:
    """Write rows to a new file in a directory."""
    name = f"rows-{secrets.token_hex(16)}.parquet"
    data = to_parquet(rows)
    (root / name).write_bytes(data)
    return RowsFile(root, name, rows.num_rows, checksum_of(data))


def _empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    return pa.record_batch([pa.nulls(0, each.type) for each in schema], schema=schema)


def count_deleted(
    relation: Relation,
    key: Sequence[str],
    tasks: TaskPool,
    *,
    removed: Rows,
    added: Iterable[Rows],
    present: TableHandle | None = None,
    has_copies: bool = False,
) -> int:
    """Return how many removed rows are there, and do not come back; by key, if there is one.

    Args:
        relation: which has columns.
        key: the names of columns.
        tasks: where they are counted.
        removed: the rows to be removed.
        added: those to be added.
        present: those that are there; None if all that are removed are.
        has_copies: whether equal rows are copies, which count one by one; then there is no key.
    """
    names = list(key or relation.columns)
    columns = tuple(relation.columns.index(each) for each in names)
    now = [_handle(each, relation) for each in added]
    gone = _handle(removed, relation)
    count = tasks.partition_count(len(gone) + sum(map(len, now)))
    directory = StagingDirectory(tasks)
    write = PieceWriter(
        directory.path, KeyPartitions(relation, columns, count, tasks.partitions_of)
    )
    counting = DeletionCount(
        relation,
        tuple(names),
        gone.map_partitions(write),
        [piece for each in now for piece in each.map_partitions(write)],
        None if present is None else present.map_partitions(write),
        copies.row_difference if has_copies else copies.difference,
    )
    return sum(tasks.run(f"count what {relation.name} loses", counting, range(count)))


@dataclass(frozen=True, slots=True)
class DeletionCount:
    """Counts the deleted rows of a partition, in a task."""

    relation: Relation
    key: tuple[str, ...]
    removed: Sequence[RowPieces]
    added: Sequence[RowPieces]
    present: Sequence[RowPieces] | None
    compare: Callable[[pa.Table, pa.Table], tuple[pa.Table, pa.Table]]

    def __call__(self, partition: int) -> int:
        """Return how many there are."""
        gone = read_pieces(self.removed, partition, self.relation)
        if self.present is not None:
            there = read_pieces(self.present, partition, self.relation)
            less = self.compare(there, gone)[0]  # of what is removed, what is not there
            gone = self.compare(less, gone)[0]
        now = read_pieces(self.added, partition, self.relation)
        columns = list(self.key)
        return int(self.compare(now.select(columns), gone.select(columns))[0].num_rows)


def _handle(rows: Rows, relation: Relation) -> TableHandle:
    return LocalTable(expand_table(rows, relation)) if isinstance(rows, pa.Table) else rows
