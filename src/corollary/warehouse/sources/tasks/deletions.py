"""How many rows a large change deletes, counted in tasks: rows with the same key meet there."""

from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa

from corollary.core.arrow import expand_table
from corollary.core.engine import LocalTable, TableHandle, TaskPool
from corollary.core.program import Relation
from corollary.data_class import dataclass
from corollary.warehouse.copies import difference, row_difference
from corollary.warehouse.files.file_rows import StagingDirectory
from corollary.warehouse.sources.source import Rows
from corollary.warehouse.sources.tasks.staged_rows import (
    KeyPartitions,
    PieceWriter,
    RowPieces,
    read_pieces,
)


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
        row_difference if has_copies else difference,
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
