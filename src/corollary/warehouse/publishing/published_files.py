"""The data files of a published table: sorted, immutable, of bounded size, and few.

Removed tuples are looked for in the files whose bounds they are within, and only the files that
contain some are rewritten. Added tuples make a new file. Files of similar size are merged when
there are many of them (a tier has up to 16; its files are within a factor of 16), so that a tuple
is written about once per tier, and a table of n tuples has about n / 100,000 + 64 files.
"""

import itertools
import secrets
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corollary.core.engine import TableHandle
from corollary.core.program import Relation
from corollary.warehouse.files import durable_files
from corollary.warehouse.publishing.checked_log import TableDefect, TableFinding, table_error
from corollary.warehouse.publishing.delta_schema import published_rows, published_schema
from corollary.warehouse.publishing.statistics import has_nan, rows_within, statistics_of

ROW_GROUP_ROWS = 32_768
"""The rows of a row group, which readers skip as a whole."""
FILE_MAX_ROWS = 4 * ROW_GROUP_ROWS
"""The maximum rows of a file: to remove one tuple, one such file is rewritten."""
TIER_MAX_FILES = 16
"""The maximum number of files in a tier, and the ratio of their sizes."""
_SORT_COLUMNS = 4
"""The number of columns by which the rows of a file are sorted."""
_SAMPLE_ROWS = 1024
_POSITION, _SOUGHT = "position", "sought"


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
    """Files that replace others."""

    new: list[NewFile]
    old: list[PublishedFile]


@dataclass(frozen=True, slots=True)
class PublishedFileWriter:
    """Writes tuples into files; it is pickled, and called in the processes that have the tuples."""

    directory: Path
    owner: str
    relation: Relation

    def __call__(self, tuples: pa.Table) -> list[NewFile] | None:
        """Write some tuples; return None if this process does not see the directory."""
        if not self.directory.is_dir():
            return None
        schema = published_schema(self.relation)
        data = PublishedFiles(self.directory, self.owner, self.relation.name, schema)
        return data.write(published_rows(tuples, self.relation))


class PublishedFiles:
    """Reads and writes the data files of one table.

    Args:
        directory: where the table is.
        owner: the prefix of the names of our files.
        relation: the relation that the table shows.
        schema: the columns of the table.
    """

    def __init__(self, directory: Path, owner: str, relation: str, schema: pa.Schema) -> None:
        self._directory = directory
        self._relation = relation
        self._schema = schema
        self._owner = owner
        self._prefix = f"{owner}-{secrets.token_hex(8)}"
        self._number = itertools.count()

    def write(self, rows: pa.Table, *, is_sorted: bool = False) -> list[NewFile]:
        """Write rows into files, sorted, and sync them to the disk."""
        if rows.num_rows > 1 and not is_sorted:
            rows = rows.sort_by([(name, "ascending") for name in rows.column_names[:_SORT_COLUMNS]])
        count = -(-rows.num_rows // FILE_MAX_ROWS)  # rounded up; the files get about equal sizes
        ends = [rows.num_rows * at // count for at in range(count + 1)] if count else []
        return [
            self._write_file(rows.slice(start, end - start))
            for start, end in itertools.pairwise(ends)
        ]

    def write_distributed(self, tuples: TableHandle, relation: Relation) -> list[NewFile] | None:
        """Write tuples in the processes that have them; None if the files are not visible here."""
        durable_files.make_directory(self._directory)
        use = PublishedFileWriter(self._directory.absolute(), self._owner, relation)
        parts = tuples.map_partitions(use)
        found = [file for part in parts for file in part or ()]
        is_seen = [durable_files.has_size(self._directory / each.path, each.size) for each in found]
        return found if all(is_seen) and None not in parts else None

    def _write_file(self, rows: pa.Table) -> NewFile:
        name = f"{self._prefix}-{next(self._number)}.parquet"
        sink = pa.BufferOutputStream()
        # The bounds of Parquet ignore NaN, and readers would skip a group that contains it.
        columns = dict(zip(rows.column_names, rows.columns, strict=True))
        pq.write_table(
            rows,
            sink,
            compression="zstd",
            row_group_size=ROW_GROUP_ROWS,
            write_statistics=[name for name, column in columns.items() if not has_nan(column)],
            use_dictionary=[name for name, column in columns.items() if _has_repeats(column)],
        )
        data = memoryview(sink.getvalue())
        durable_files.write(self._directory, name, data)
        return NewFile(name, len(data), rows.num_rows, statistics_of(rows))

    def read(self, file: PublishedFile) -> pa.Table:
        """Return the rows of a file.

        Raises:
            WarehouseError: it is missing or damaged.
        """
        path = self._directory / file.path
        try:
            rows = pq.read_table(path, memory_map=True, partitioning=None).cast(self._schema)
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
        self, current: Sequence[PublishedFile], removed: pa.Table
    ) -> tuple[FileReplacement, int]:
        """Rewrite the files that contain some of these rows without them.

        Returns:
            the exchange, and how many of the rows were found.
        """
        exchange = FileReplacement([], [])
        found = 0
        for file in sorted(current, key=lambda each: each.rows):
            if found == removed.num_rows:
                break
            within = rows_within(removed, file.low, file.high, file.nulls)
            if not within.num_rows:
                continue
            rows = self.read(file)
            positions = find_rows(within, rows)
            if not len(positions):
                continue
            found += len(positions)
            exchange.old.append(file)
            exchange.new.extend(self.write(_without(rows, positions), is_sorted=True))
        return exchange, found

    def merge_tiers(self, current: Iterable[PublishedFile]) -> FileReplacement:
        """Merge the files of each tier that has too many."""
        tiers = _crowded_tiers(current)
        new = [file for tier in tiers for file in self.write(self.read_all(tier))]
        return FileReplacement(new, [file for tier in tiers for file in tier])


def find_rows(sought: pa.Table, rows: pa.Table) -> pa.Array:
    """Return the positions of some rows in a table.

    >>> find_rows(pa.table({"x": [2, 9]}), pa.table({"x": [1, 2, 3]})).to_pylist()
    [1]
    """
    keys = [f"key{at}" for at in range(rows.num_columns)]
    near = rows.rename_columns(keys).append_column(_POSITION, pa.array(np.arange(rows.num_rows)))
    sought = sought.rename_columns(keys)
    # Column by column most rows drop out cheaply. The rest is compared as whole rows by grouping,
    # since Arrow's joins do not match null with null.
    for key in keys:
        values = sought.column(key).combine_chunks()
        near = near.filter(pc.is_in(near.column(key), value_set=values))
    sought = sought.append_column(_POSITION, pa.nulls(sought.num_rows, pa.int64()))
    tables = [
        table.append_column(_SOUGHT, pa.repeat(pa.scalar(is_sought), table.num_rows))
        for table, is_sought in ((near, False), (sought, True))
    ]
    aggregates = [(_POSITION, "max"), (_SOUGHT, "max")]
    groups = pa.concat_tables(tables).group_by(keys).aggregate(aggregates)
    positions = groups.column(f"{_POSITION}_max")
    is_found = pc.and_(groups.column(f"{_SOUGHT}_max"), positions.is_valid())
    return positions.filter(is_found).combine_chunks()


def _has_repeats(column: pa.ChunkedArray) -> bool:
    """Return whether a sample has so few distinct values that a dictionary saves space."""
    sample = column.take(pa.array(np.linspace(0, len(column) - 1, _SAMPLE_ROWS, dtype=np.int64)))
    return bool(pc.count_distinct(sample, mode="all").as_py() < _SAMPLE_ROWS // 4)


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


def _without(rows: pa.Table, positions: pa.Array) -> pa.Table:
    stays = np.ones(rows.num_rows, np.bool_)
    stays[positions.to_numpy()] = False
    return rows.filter(pa.array(stays))
