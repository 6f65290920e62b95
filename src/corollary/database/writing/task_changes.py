"""Large changes meet the tuples that are there, in tasks: by key, or as counts of copies.

Both are written as pieces, one for each partition of the key or of the rows, and a task for each
partition puts its pieces together. So all of a relation is read, where its tuples are.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from corollary.core.arrow import empty_table
from corollary.core.arrow_buffers import bool_array, index_array
from corollary.core.engine import Engine, LocalTable, TableHandle, TaskPool
from corollary.core.program import Relation
from corollary.core.states import State
from corollary.data_class import dataclass
from corollary.warehouse import copies
from corollary.warehouse.files.durable_files import from_arrow_stream
from corollary.warehouse.files.file_rows import FileRows, RowsFile, StagingDirectory
from corollary.warehouse.files.places import Place
from corollary.warehouse.row_words import is_among, row_words
from corollary.warehouse.sources.source import Rows
from corollary.warehouse.sources.tasks.staged_rows import (
    KeyPartitions,
    PieceWriter,
    RowPieces,
    read_pieces,
    write_rows,
)


def find_keys(
    tasks: TaskPool, relation: Relation, held: TableHandle, keys: TableHandle, key: Sequence[str]
) -> Rows:
    """Return the tuples that have the values of others in the columns of a key.

    Args:
        tasks: where they are found.
        relation: whose tuples they are.
        held: its tuples.
        keys: have the columns of the key, and perhaps others.
        key: the names of columns.
    """
    if not len(held):
        return empty_table(relation)
    positions = tuple(map(relation.columns.index, key))
    types = tuple(relation.types[at] for at in positions)
    sought = replace(relation, columns=tuple(key), types=types)
    count = tasks.partition_count(len(held) + len(keys))
    directory, pieces = StagingDirectory(tasks), StagingDirectory(tasks)
    there, given = (
        rows.map_partitions(
            PieceWriter(pieces.path, KeyPartitions(shape, columns, count, tasks.partitions_of))
        )
        for rows, shape, columns in (
            (held, relation, positions),
            (keys, sought, tuple(range(len(key)))),
        )
    )
    find = KeyMatch(directory.path, relation, sought, there, given)
    found = tasks.run(f"find keys of {relation.name}", find, range(count))
    return rows_in(tasks, relation, directory, found)


@dataclass(frozen=True, slots=True)
class KeyMatch:
    """Finds the tuples of a partition that have one of some keys, in a task."""

    root: Place
    relation: Relation
    sought: Relation
    held: Sequence[RowPieces]
    keys: Sequence[RowPieces]

    def __call__(self, partition: int) -> RowsFile | None:
        """Return the file of the tuples; None if there are none."""
        keys = read_pieces(self.keys, partition, self.sought)
        rows = read_pieces(self.held, partition, self.relation)
        both = pa.concat_tables([keys, rows.select(list(self.sought.columns)).cast(keys.schema)])
        words = row_words(both.columns, both.num_rows)
        is_sought = is_among(words[keys.num_rows :], words[: keys.num_rows])
        return (
            write_rows(self.root, rows.filter(bool_array(is_sought))) if is_sought.any() else None
        )


def change_counts(
    engine: Engine,
    target: str | None,
    shape: Relation,
    operations: Sequence[tuple[State, TableHandle]],
    others: Sequence[TableHandle] = (),
) -> TableHandle:
    """Change the counts of copies of a relation.

    Args:
        engine: of the relation.
        target: its name; None if it has no tuples, and gets none.
        shape: the relation of counts, with its columns.
        operations: rows to add and to remove, in order, with or without counts.
        others: relations of counts.

    Returns:
        The rows of which no copy is left for a delete, and which others have.
    """
    tasks = engine.tasks
    assert tasks is not None
    held = [] if target is None else [engine.handle(target)]
    given = [(sign, rows) for sign, rows in operations if len(rows)]
    count = tasks.partition_count(sum(map(len, (*held, *(rows for _, rows in given)))))
    directory, pieces = StagingDirectory(tasks), StagingDirectory(tasks)
    columns = tuple(range(shape.arity - 1))
    write = CountWriter(
        PieceWriter(pieces.path, KeyPartitions(shape, columns, count, tasks.partitions_of))
    )
    change = CountsOfPieces(
        directory.path,
        shape,
        [piece for each in held if len(each) for piece in each.map_partitions(write)],
        [(sign, rows.map_partitions(write)) for sign, rows in given],
        [piece for each in others if len(each) for piece in each.map_partitions(write)],
    )
    found = tasks.run(f"count copies of {shape.name}", change, range(count))
    removed, added, kept = (
        rows_in(tasks, relation, directory, [each[at] for each in found])
        for at, relation in enumerate((shape, shape, _without_counts(shape)))
    )
    if target is not None:
        copies.apply_counts(engine, target, (removed, added))
    return LocalTable(kept) if isinstance(kept, pa.Table) else kept


def _without_counts(shape: Relation) -> Relation:
    return replace(shape, columns=shape.columns[:-1], types=shape.types[:-1])


@dataclass(frozen=True, slots=True)
class CountWriter:
    """Writes rows with counts as pieces; a row without one is a copy."""

    write: PieceWriter

    def __call__(self, rows: pa.Table) -> RowPieces:
        """Write some rows."""
        shape = self.write.partitions.relation
        if rows.num_columns < shape.arity:
            return self.write(copies.with_counts(rows, np.ones(rows.num_rows, np.int64), shape))
        return self.write(rows.rename_columns(list(shape.columns)))


@dataclass(frozen=True, slots=True)
class CountsOfPieces:
    """Changes the counts of the rows in a partition, in a task."""

    root: Place
    shape: Relation
    held: Sequence[RowPieces]
    operations: Sequence[tuple[State, Sequence[RowPieces]]]
    others: Sequence[RowPieces]

    def __call__(self, partition: int) -> tuple[RowsFile | None, ...]:
        """Return the files of counts before and after, and of the rows that only others have.

        Raises:
            InputError: `C0976`, there are too many copies.
        """
        shape = self.shape
        given = [(sign, read_pieces(pieces, partition, shape)) for sign, pieces in self.operations]
        change = copies.CountChange.of([(State.ADDED, empty_table(shape)), *given])
        had = copies.known_counts(change.rows, read_pieces(self.held, partition, shape))
        has = change.counts(had, shape)
        missing = change.missing(had, has)
        there = copies.known_counts(missing, read_pieces(self.others, partition, shape))
        kept = missing.take(index_array(np.flatnonzero(there)))
        return tuple(
            write_rows(self.root, each) if each.num_rows else None
            for each in (*copies.change_of_counts(change.rows, had, has, shape), kept)
        )


def rows_in(
    tasks: TaskPool,
    relation: Relation,
    directory: StagingDirectory,
    staged: Sequence[RowsFile | bytes | None],
) -> Rows:
    """Return the rows that tasks have written or sent; a table where they are few."""
    here = [from_arrow_stream(each) for each in staged if isinstance(each, bytes)]
    files = [each for each in staged if isinstance(each, RowsFile)]
    if tasks.is_large(sum(each.num_rows for each in here) + sum(each.rows for each in files)):
        files += [write_rows(directory.path, each) for each in here]
        return FileRows(relation, files, tasks, directory)
    return pa.concat_tables([FileRows(relation, files, tasks).table(), *here])
