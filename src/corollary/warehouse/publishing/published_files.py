"""The data files of a published table: sorted, immutable, of bounded size, and few.

The first files of a table are those of a snapshot of the relation, under a second name (a hard
link), if its columns are the same in both. Removed tuples are looked for in the files whose bounds
they are within, and only the files that contain some are rewritten. Added tuples make a new file.
Files of similar size are merged when there are many of them (a tier has up to 16; its files are
within a factor of 16), so that a tuple is written about once per tier, and a table of n tuples has
about n / 100,000 + 64 files.
"""

import itertools
import secrets
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corollary.core.arrow import sort_by_columns
from corollary.core.arrow_buffers import bool_array, bool_values, index_array, string_array
from corollary.core.engine import TableHandle, TaskPool, slice_table
from corollary.core.program import Relation
from corollary.data_class import dataclass
from corollary.warehouse.copies import match_copies, row_difference
from corollary.warehouse.files import durable_files
from corollary.warehouse.files.column_bounds import rows_within, statistics_of
from corollary.warehouse.files.durable_files import CHANGE_COLUMN
from corollary.warehouse.files.multi_file_table import FILE_MAX_ROWS
from corollary.warehouse.files.parquet_encoding import from_parquet, statistics_in, to_parquet
from corollary.warehouse.files.places import Place
from corollary.warehouse.publishing.checked_log import TableDefect, TableFinding, table_error
from corollary.warehouse.publishing.delta_schema import published_rows, published_schema
from corollary.warehouse.row_words import row_words

REWRITTEN_MIN_FILES = 16
"""So many files that may have one of the removed rows are rewritten by tasks, if there are any."""
TIER_MAX_FILES = 16
"""The maximum number of files in a tier, and the ratio of their sizes."""
CHANGE_DATA_DIRECTORY = "_change_data"
"""The folder of files that say what versions changed."""
_SORT_COLUMNS = 4
"""The number of columns by which the rows of a file are sorted."""


@dataclass(frozen=True, slots=True)
class PublishedFile:
    """A file that the log references.

    Attributes:
        low: the minimum of each column by name; high and nulls likewise.
    """

    path: str
    size: int
    rows: int
    low: Any = field(repr=False, compare=False)
    high: Any = field(repr=False, compare=False)
    nulls: Any = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file that is written, and that no version references yet."""

    path: str
    size: int
    rows: int
    statistics: str


@dataclass(frozen=True, slots=True)
class FileReplacement:
    """Files that replace others.

    Attributes:
        change_data: files with the rows that this inserts and deletes, where those of the table do
            not tell: some rows of an old file are in a new one.
    """

    new: list[NewFile]
    old: list[PublishedFile]
    change_data: list[NewFile] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PublishedFileWriter:
    """Writes tuples into files; it is pickled, and called in the processes that have the tuples.

    Attributes:
        kind: that of the change which the tuples are; empty for rows of the table.
    """

    directory: Place
    owner: str
    relation: Relation
    kind: str = ""

    def __call__(self, tuples: pa.Table) -> list[NewFile] | None:
        """Write some tuples; return None if this process does not see the directory."""
        if isinstance(self.directory, Path) and not self.directory.is_dir():
            return None
        schema = published_schema(self.relation)
        data = PublishedFiles(self.directory, self.owner, self.relation.name, schema)
        rows = published_rows(tuples, self.relation)
        written = data.write_change_data({self.kind: rows}) if self.kind else data.write(rows)
        data.sync()
        return written


@dataclass(frozen=True, slots=True)
class FileRewriter:
    """Rewrites files without some rows; it is pickled, and called in tasks."""

    directory: Place
    owner: str
    relation: str
    schema: pa.Schema

    def __call__(self, sought: tuple[PublishedFile, bytes]) -> tuple[int, list[NewFile]]:
        """Return how many of the rows a file has, and the files that replace it then."""
        file, rows = sought
        data = PublishedFiles(self.directory, self.owner, self.relation, self.schema)
        exchange, found = data.rewrite_without([file], durable_files.from_arrow_stream(rows))
        data.sync()
        return found, exchange.new


class PublishedFiles:
    """Reads and writes the data files of one table.

    Args:
        directory: where the table is.
        owner: the prefix of the names of our files.
        relation: the relation that the table shows.
        schema: the columns of the table.
    """

    def __init__(self, directory: Place, owner: str, relation: str, schema: pa.Schema) -> None:
        self._directory = directory
        self._relation = relation
        self._schema = schema
        self._owner = owner
        self._prefix = f"{owner}-{secrets.token_hex(8)}"
        self._number = itertools.count()
        self._files = durable_files.FileBatch(directory)

    def write(self, rows: pa.Table, *, is_sorted: bool = False) -> list[NewFile]:
        """Write rows into files, sorted."""
        if not rows.num_rows:
            return []
        if not is_sorted and not _is_ascending(rows.column(0)):
            rows = sort_by_columns(rows, rows.column_names[:_SORT_COLUMNS])
        return [self._write_file(each) for each in slice_table(rows, FILE_MAX_ROWS)]

    def write_change_data(self, changes: Mapping[str, pa.Table]) -> list[NewFile]:
        """Write rows that were inserted or deleted, by the kind of their change."""
        parts = [
            rows.append_column(CHANGE_COLUMN, string_array([kind] * rows.num_rows))
            for kind, rows in changes.items()
            if rows.num_rows
        ]
        if not parts:
            return []
        portions = slice_table(pa.concat_tables(parts), FILE_MAX_ROWS)
        return [self._write_file(each, f"{CHANGE_DATA_DIRECTORY}/") for each in portions]

    def link(self, sources: Sequence[Place]) -> list[NewFile] | None:
        """Take over files of the warehouse; None if their columns are not those of the table."""
        footers = [_parquet_file(each).metadata for each in sources]
        schemas = [each.schema.to_arrow_schema() for each in footers]
        if any((e.names, e.types) != (self._schema.names, self._schema.types) for e in schemas):
            return None
        linked: list[NewFile] = []
        for source, footer in zip(sources, footers, strict=True):
            if not footer.num_rows:
                continue
            name = self._next_name()
            self._files.link(source, name)
            statistics = statistics_in(footer.metadata)
            if statistics is None:  # the relation was not published when its snapshot was taken
                statistics = statistics_of(from_parquet(durable_files.memory_map(source)))
            linked.append(NewFile(name, source.stat().st_size, footer.num_rows, statistics))
        return linked

    def sync(self) -> None:
        """Sync all new files to the disk, before a version may reference them."""
        self._files.sync()

    def write_distributed(
        self, tuples: TableHandle, relation: Relation, kind: str = ""
    ) -> list[NewFile] | None:
        """Write tuples in the processes that have them; None if the files are not visible here."""
        durable_files.make_directory(self._directory)
        use = PublishedFileWriter(self._directory.absolute(), self._owner, relation, kind)
        parts = tuples.map_partitions(use)
        found = [file for part in parts for file in part or ()]
        is_seen = [durable_files.has_size(self._directory / each.path, each.size) for each in found]
        return found if all(is_seen) and None not in parts else None

    def _write_file(self, rows: pa.Table, folder: str = "") -> NewFile:
        name = f"{folder}{self._next_name()}"
        statistics = statistics_of(rows)
        data = to_parquet(rows, statistics)
        self._files.write(name, data)
        return NewFile(name, data.size, rows.num_rows, statistics)

    def _next_name(self) -> str:
        return f"{self._prefix}-{next(self._number)}.parquet"

    def read(self, file: PublishedFile) -> pa.Table:
        """Return the rows of a file.

        Raises:
            WarehouseError: it is missing or damaged.
        """
        return self._read(file, None)

    def _read(self, file: PublishedFile, columns: list[str] | None) -> pa.Table:
        """Return some columns of a file, or all."""
        try:
            # Not `read_table`, which imports the datasets of Arrow.
            found = _parquet_file(self._directory / file.path).read(columns)
            fields = [self._schema.field(name) for name in columns or self._schema.names]
            rows = found.cast(pa.schema(fields))
        except (OSError, ValueError, pa.ArrowException):
            rows = None
        if rows is None or rows.num_rows != file.rows:
            finding = TableFinding(
                TableDefect.CONTENT, f"its file `{file.path}` is missing or damaged"
            )
            raise table_error(self._relation, self._directory, [finding])
        return rows

    def read_all(self, current: Iterable[PublishedFile]) -> pa.Table:
        """Return the rows of several files."""
        return pa.concat_tables([self._schema.empty_table(), *map(self.read, current)])

    def rewrite_without(
        self, current: Sequence[PublishedFile], removed: pa.Table, tasks: TaskPool | None = None
    ) -> tuple[FileReplacement, int]:
        """Rewrite the files that contain some of these rows without them.

        Of a row with copies, as many are removed as are given.

        Args:
            current: the files of the table.
            removed: the rows.
            tasks: where many files are rewritten, if the table has no copies; None for here.

        Returns:
            the exchange, and how many of the rows were found.
        """
        if tasks is not None:
            near = [
                (file, within)
                for file in current
                if (within := rows_within(removed, file.low, file.high, file.nulls)).num_rows
            ]
            if len(near) >= REWRITTEN_MIN_FILES:
                return self._rewrite_in_tasks(near, tasks)
        exchange = FileReplacement([], [])
        found = 0
        for file in sorted(current, key=lambda each: each.rows):
            if not removed.num_rows:
                break
            within = rows_within(removed, file.low, file.high, file.nulls)
            if not within.num_rows or not self._may_contain(file, within.column(0)):
                continue
            rows = self.read(file)
            positions = find_rows(within, rows)
            if not len(positions):
                continue
            found += len(positions)
            removed = row_difference(rows.take(index_array(positions)), removed)[0]
            exchange.old.append(file)
            exchange.new.extend(self.write(_without(rows, positions), is_sorted=True))
        return exchange, found

    def _rewrite_in_tasks(
        self, near: Sequence[tuple[PublishedFile, pa.Table]], tasks: TaskPool
    ) -> tuple[FileReplacement, int]:
        """Rewrite files, each without the rows that are within its bounds."""
        rewriter = FileRewriter(
            self._directory.absolute(), self._owner, self._relation, self._schema
        )
        sought = [(file, durable_files.to_arrow_stream(rows)) for file, rows in near]
        results = tasks.run(f"publish {self._relation}", rewriter, sought)
        exchange = FileReplacement([], [])
        for (file, _), (found, new) in zip(near, results, strict=True):
            if found:
                exchange.old.append(file)
                exchange.new.extend(new)
        return exchange, sum(found for found, _ in results)

    def _may_contain(self, file: PublishedFile, sought: pa.ChunkedArray) -> bool:
        """Return whether the first column of a file has one of some values.

        Bounds say little about texts, which a snapshot has in the order of their arrival; but one
        column is quickly read.
        """
        if not pa.types.is_string(sought.type):
            return True
        first = self._read(file, [self._schema.names[0]]).column(0)
        return bool(pc.any(pc.is_in(first, value_set=sought.combine_chunks())).as_py())

    def merge_tiers(self, current: Iterable[PublishedFile]) -> FileReplacement:
        """Merge the files of each tier that has too many."""
        tiers = _crowded_tiers(current)
        new = [file for tier in tiers for file in self.write(self.read_all(tier))]
        return FileReplacement(new, [file for tier in tiers for file in tier])


def _parquet_file(path: Place) -> pq.ParquetFile:
    """Open a Parquet file; of an object only the columns that are read are fetched."""
    if isinstance(path, Path):
        return pq.ParquetFile(path, memory_map=True)
    return pq.ParquetFile(path.open(), pre_buffer=True)


def find_rows(sought: pa.Table, rows: pa.Table) -> npt.NDArray[np.int64]:
    """Return the positions of some rows in a table: of each as many as are sought.

    >>> find_rows(pa.table({"x": [2, 9]}), pa.table({"x": [1, 2, 3, 2]})).tolist()
    [1]
    """
    positions = np.arange(rows.num_rows)
    # Column by column most rows drop out cheaply; the rest is compared as whole rows.
    for wanted, column in zip(sought.columns, rows.columns, strict=True):
        if pa.types.is_nested(column.type):
            continue
        near = column.take(index_array(positions))
        is_near = pc.is_in(near, value_set=wanted.combine_chunks()).combine_chunks()
        positions = positions[bool_values(is_near)]
    both = pa.concat_tables([rows.take(index_array(positions)), sought.cast(rows.schema)])
    words = row_words(both.columns, both.num_rows)
    is_found = match_copies(words[: len(positions)], words[len(positions) :])
    found: npt.NDArray[np.int64] = positions[is_found]
    return found


def _is_ascending(column: pa.ChunkedArray) -> bool:
    """Return whether the values of a column are sorted, as those of an engine's first column are.

    Texts are in the order in which the engine met them, so they are sorted once more.
    """
    if len(column) < 2 or column.null_count or pa.types.is_nested(column.type):
        return len(column) < 2
    return bool(pc.all(pc.less_equal(column[:-1], column[1:])).as_py())


def _tier_of(rows: int) -> int | None:
    """Return the tier of a file with this many rows, log₁₆ rounded down; a large one has none."""
    if rows > FILE_MAX_ROWS // 4:
        return None
    return (max(rows, 1).bit_length() - 1) // (TIER_MAX_FILES.bit_length() - 1)


def is_crowded(rows: Iterable[int]) -> bool:
    """Return whether a table with files of these numbers of rows has too many small ones."""
    tiers = Counter(map(_tier_of, rows))
    return any(number > TIER_MAX_FILES for tier, number in tiers.items() if tier is not None)


def _crowded_tiers(held: Iterable[PublishedFile]) -> list[list[PublishedFile]]:
    """Return the files of each tier that has too many."""
    tiers: dict[int, list[PublishedFile]] = defaultdict(list)
    for file in held:
        tier = _tier_of(file.rows)
        if tier is not None:
            tiers[tier].append(file)
    return [tier for _, tier in sorted(tiers.items()) if len(tier) > TIER_MAX_FILES]


def _without(rows: pa.Table, positions: npt.NDArray[np.int64]) -> pa.Table:
    stays = np.ones(rows.num_rows, np.bool_)
    stays[positions] = False
    return rows.filter(bool_array(stays))
