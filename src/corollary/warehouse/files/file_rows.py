"""Tuples in Parquet files that all processes see: what tasks have read, and large snapshots.

The process that holds a handle on them reads none of them, unless it is asked for a table.
"""

import secrets
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Generic

import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow import empty_table, schema_of
from corollary.core.engine import MapResult, Portion, TableHandle, TaskPool, slice_table
from corollary.core.program import Relation
from corollary.data_class import dataclass
from corollary.warehouse.files import durable_files
from corollary.warehouse.files.parquet_encoding import from_parquet
from corollary.warehouse.files.places import Place, place_of, remove_tree


@dataclass(frozen=True, slots=True)
class RowsFile:
    """A Parquet file of tuples.

    Attributes:
        root: the directory that its path is relative to.
        path: of the file.
        rows: how many tuples it has.
        checksum: of its bytes, which is compared when it is read.
        change_type: of a file of changes, which of its rows are read.
    """

    root: Place
    path: str
    rows: int
    checksum: str
    change_type: str | None = None

    def read(self, relation: Relation) -> pa.Table:
        """Return its tuples.

        Raises:
            WarehouseError: it is missing, or not what was written.
        """
        table = from_parquet(durable_files.read(self.root, self.path, self.checksum))
        if self.change_type is not None:
            last = table.num_columns - 1
            sought = durable_files.change_scalar(self.change_type)
            table = table.filter(pc.equal(table.column(last), sought)).remove_column(last)
        # By position: columns may have got other names since.
        return table.rename_columns(list(relation.columns)).cast(schema_of(relation))


class StagingDirectory:
    """A new place for files that tasks write; it is removed when nobody refers to it."""

    def __init__(self, tasks: TaskPool) -> None:
        self.path = place_of(tasks.directory) / f"staged-{secrets.token_hex(16)}"
        if isinstance(self.path, Path):
            self.path.mkdir()
        weakref.finalize(self, _remove_staged, self.path)


def _remove_staged(path: Place) -> None:
    with suppress(OSError):  # all that an engine has written goes with it
        remove_tree(path)


@dataclass(frozen=True, slots=True, eq=False)
class FileRows:
    """The tuples of files as one handle; they may be in several of them.

    Attributes:
        relation: whose tuples they are; it has columns.
        files: where they are.
        tasks: runs the work that is done on them.
        directory: of the files, if they are removed with the last handle on them.
        count: how many tuples they are, if files have other rows as well.
    """

    relation: Relation
    files: Sequence[RowsFile]
    tasks: TaskPool
    directory: "StagingDirectory | None" = None
    count: int | None = None

    def __len__(self) -> int:
        return sum(each.rows for each in self.files) if self.count is None else self.count

    @property
    def is_distributed(self) -> bool:
        """True: they are not in this process."""
        return True

    def table(self) -> pa.Table:
        """Return the tuples."""
        return pa.concat_tables(
            [empty_table(self.relation), *(each.read(self.relation) for each in self.files)]
        )

    def slices(self, max_rows: int) -> Iterator[pa.Table]:
        """Yield the tuples in tables that are not too large."""
        if not self.files:
            yield empty_table(self.relation)
        for each in self.files:
            yield from slice_table(each.read(self.relation), max_rows)

    def map_partitions(self, function: Callable[[pa.Table], MapResult]) -> list[MapResult]:
        """Return the results of a function for the tuples of each file."""
        use = UseOfRows(self.relation, function)
        return self.tasks.run(f"use {self.relation.name}", use, self.files)

    def portions(self) -> Sequence[Portion]:
        """Return what yields the tuples of each file; a change without any needs none."""
        return [partial(_read_rows, each, self.relation) for each in self.files if len(self)]


@dataclass(frozen=True, slots=True)
class UseOfRows(Generic[MapResult]):
    """Applies a function to the tuples of a file, in a task."""

    relation: Relation
    function: Callable[[pa.Table], MapResult]

    def __call__(self, file: RowsFile) -> MapResult:
        """Return the result for a file."""
        return self.function(file.read(self.relation))


def _read_rows(file: RowsFile, relation: Relation) -> Iterator[pa.Table]:
    yield file.read(relation)


def table_of(rows: pa.Table | TableHandle) -> pa.Table:
    """Return rows as a table in this process."""
    return rows if isinstance(rows, pa.Table) else rows.table()
