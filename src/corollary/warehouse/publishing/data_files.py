"""The data files of a published table: sorted, immutable, of bounded size, and few.

Tuples that go are looked for in the files whose bounds they are within, and only the files that
hold some are written anew. Tuples that come make a new file. Files of like size are merged when
there are many of them (a tier holds up to 16; its files are within a factor of 16), so that a tuple
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

from corollary.core.engine import Kept
from corollary.core.program import Relation
from corollary.warehouse import files
from corollary.warehouse.publishing.log import Finding, Trouble, as_error
from corollary.warehouse.publishing.rows import published_rows, published_schema
from corollary.warehouse.publishing.statistics import has_nan, rows_within, statistics_of

GROUP = 32_768
"""The rows of a row group, which readers skip as a whole."""
LARGEST = 4 * GROUP
"""The rows of the largest file: to remove one tuple, one such file is written anew."""
TIER = 16
SORTED_BY = 4
"""So many columns make the order of a file's rows."""
_SAMPLE = 1024
_PLACE, _SOUGHT = "place", "sought"


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file that the log says is part of the table.

    Attributes:
        low: the least value of each column, by name; high and nulls likewise.
    """

    path: str
    size: int
    rows: int
    low: Any = field(repr=False, compare=False)
    high: Any = field(repr=False, compare=False)
    nulls: Any = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file that is written, and not yet part of the table."""

    path: str
    size: int
    rows: int
    statistics: str


@dataclass(frozen=True, slots=True)
class Exchange:
    """Files that take the place of others."""

    new: list[NewFile]
    old: list[DataFile]


@dataclass(frozen=True, slots=True)
class PartOfTable:
    """Writes rows of a relation into files; it is pickled, and called wherever the tuples are."""

    directory: Path
    owner: str
    relation: Relation

    def __call__(self, tuples: pa.Table) -> list[NewFile] | None:
        """Write some tuples; None if the directory of the table is not seen from here."""
        if not self.directory.is_dir():
            return None
        schema = published_schema(self.relation)
        data = DataFiles(self.directory, self.owner, self.relation.name, schema)
        return data.write(published_rows(tuples, self.relation))


class DataFiles:
    """Reads and writes the data files of one table.

    Args:
        directory: where the table is.
        owner: what the names of our files begin with.
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
        """Write rows into files, in order, and force them to the disk."""
        if rows.num_rows > 1 and not is_sorted:
            rows = rows.sort_by([(name, "ascending") for name in rows.column_names[:SORTED_BY]])
        parts = -(-rows.num_rows // LARGEST)
        ends = [rows.num_rows * part // parts for part in range(parts + 1)] if parts else []
        return [
            self._write_file(rows.slice(start, end - start))
            for start, end in itertools.pairwise(ends)
        ]

    def write_apart(self, tuples: Kept, relation: Relation) -> list[NewFile] | None:
        """Write tuples into files where they are; None if these are not seen from here then."""
        files.make_directory(self._directory)
        use = PartOfTable(self._directory.absolute(), self._owner, relation)
        parts = tuples.each(use)
        found = [file for part in parts for file in part or ()]
        is_seen = [files.has_size(self._directory / each.path, each.size) for each in found]
        return found if all(is_seen) and None not in parts else None

    def _write_file(self, rows: pa.Table) -> NewFile:
        name = f"{self._prefix}-{next(self._number)}.parquet"
        sink = pa.BufferOutputStream()
        # Parquet leaves NaN out of its bounds, and readers would skip a group that holds it.
        columns = dict(zip(rows.column_names, rows.columns, strict=True))
        pq.write_table(
            rows,
            sink,
            compression="zstd",
            row_group_size=GROUP,
            write_statistics=[name for name, column in columns.items() if not has_nan(column)],
            use_dictionary=[name for name, column in columns.items() if has_repeats(column)],
        )
        data = memoryview(sink.getvalue())
        files.write(self._directory, name, data)
        return NewFile(name, len(data), rows.num_rows, statistics_of(rows))

    def read(self, file: DataFile) -> pa.Table:
        """Return the rows of a file.

        Raises:
            WarehouseError: it is missing, or not as it was written.
        """
        path = self._directory / file.path
        try:
            rows = pq.read_table(path, memory_map=True, partitioning=None).cast(self._schema)
        except (OSError, ValueError, pa.ArrowException):
            rows = None
        if rows is None or rows.num_rows != file.rows:
            finding = Finding(Trouble.CONTENT, f"its file `{file.path}` is missing or damaged")
            raise as_error(self._relation, self._directory, [finding])
        return rows

    def read_all(self, held: Iterable[DataFile]) -> pa.Table:
        """Return the rows of several files."""
        return pa.concat_tables([self._schema.empty_table(), *map(self.read, held)])

    def without(self, held: Sequence[DataFile], gone: pa.Table) -> tuple[Exchange, int]:
        """Write the files that hold some of these rows anew without them.

        Returns:
            the exchange, and how many of the rows were found.
        """
        exchange = Exchange([], [])
        found = 0
        for file in sorted(held, key=lambda each: each.rows):
            if found == gone.num_rows:
                break
            within = rows_within(gone, file.low, file.high, file.nulls)
            if not within.num_rows:
                continue
            rows = self.read(file)
            places = places_of(within, rows)
            if not len(places):
                continue
            found += len(places)
            exchange.old.append(file)
            exchange.new.extend(self.write(_rest(rows, places), is_sorted=True))
        return exchange, found

    def merge(self, held: Iterable[DataFile]) -> Exchange:
        """Write the files of crowded tiers anew, each tier as one."""
        tiers = crowded_tiers(held)
        new = [file for tier in tiers for file in self.write(self.read_all(tier))]
        return Exchange(new, [file for tier in tiers for file in tier])


def places_of(sought: pa.Table, rows: pa.Table) -> pa.Array:
    """Return where the sought rows stand among others.

    >>> places_of(pa.table({"x": [2, 9]}), pa.table({"x": [1, 2, 3]})).to_pylist()
    [1]
    """
    keys = [f"key{at}" for at in range(rows.num_columns)]
    near = rows.rename_columns(keys).append_column(_PLACE, pa.array(np.arange(rows.num_rows)))
    sought = sought.rename_columns(keys)
    for key in keys:
        values = sought.column(key).combine_chunks()
        near = near.filter(pc.is_in(near.column(key), value_set=values))
    sought = sought.append_column(_PLACE, pa.nulls(sought.num_rows, pa.int64()))
    tables = [
        table.append_column(_SOUGHT, pa.repeat(pa.scalar(is_sought), table.num_rows))
        for table, is_sought in ((near, False), (sought, True))
    ]
    groups = pa.concat_tables(tables).group_by(keys).aggregate([(_PLACE, "max"), (_SOUGHT, "max")])
    is_found = pc.and_(groups.column(f"{_SOUGHT}_max"), groups.column(f"{_PLACE}_max").is_valid())
    return groups.filter(is_found).column(f"{_PLACE}_max").combine_chunks()


def has_repeats(column: pa.ChunkedArray) -> bool:
    """Say whether the values of a column repeat so much that a dictionary pays, by a sample."""
    sample = column.take(pa.array(np.linspace(0, len(column) - 1, _SAMPLE, dtype=np.int64)))
    return bool(pc.count_distinct(sample, mode="all").as_py() < _SAMPLE // 4)


def tier_of(rows: int) -> int | None:
    """Return the tier of a file with so many rows; a large one has none."""
    if rows > LARGEST // 4:
        return None
    return (max(rows, 1).bit_length() - 1) // (TIER.bit_length() - 1)


def is_crowded(rows: Iterable[int]) -> bool:
    """Say whether a table with files of so many rows has too many small ones."""
    tiers = Counter(map(tier_of, rows))
    return any(number > TIER for tier, number in tiers.items() if tier is not None)


def crowded_tiers(held: Iterable[DataFile]) -> list[list[DataFile]]:
    """Return the files of each tier that has too many."""
    tiers: dict[int, list[DataFile]] = defaultdict(list)
    for file in held:
        tier = tier_of(file.rows)
        if tier is not None:
            tiers[tier].append(file)
    return [tier for _, tier in sorted(tiers.items()) if len(tier) > TIER]


def _rest(rows: pa.Table, places: pa.Array) -> pa.Table:
    stays = np.ones(rows.num_rows, np.bool_)
    stays[places.to_numpy()] = False
    return rows.filter(pa.array(stays))
