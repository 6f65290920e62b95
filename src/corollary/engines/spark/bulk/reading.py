"""Relations as frames: tasks read the files of partitions, and apply the open change."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from corollary.data_class import dataclass
from corollary.engines.spark.bulk.spark_columns import column_names, schema_text, to_spark
from corollary.engines.spark.exchange import split_bytes
from corollary.engines.spark.operations import from_bytes, without_rows
from corollary.engines.spark.relation.files import PartitionedFiles
from corollary.engines.spark.relation.open_partition import (
    read_partition,
)
from corollary.sqlgen.query_frames import UNIT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCH_ROWS = 1 << 16
"""The number of rows of the batches that tasks hand to Spark."""


@dataclass(frozen=True, slots=True)
class ReadPartitions:
    """Reads partitions inside tasks; Spark calls it with batches of their numbers.

    Attributes:
        numbers: the partitions that hold tuples; Spark counts them.
        columns: those that are asked for.
        added, removed: the tuples of the open change, by partition, as bytes.
    """

    files: PartitionedFiles
    numbers: tuple[int, ...]
    columns: tuple[int, ...]
    added: Mapping[int, bytes]
    removed: Mapping[int, bytes]

    def __call__(self, places: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the tuples of the partitions at some places."""
        for batch in places:
            for place in batch.column(0).to_pylist():
                for table in self._tables(self.numbers[place]):
                    yield from self._batches(table)

    def _tables(self, number: int) -> Iterator[pa.Table]:
        """Yield the columns that are asked for, the first one if none is."""
        removed, columns = self.removed.get(number), list(self.columns or (0,))
        if removed is not None:
            rows = pa.concat_tables(list(self._read(number)))
            yield without_rows(rows, from_bytes(removed), self.files.relation).select(columns)
        else:
            yield from self._read(number, columns)
        if number in self.added:
            yield from_bytes(self.added[number]).select(columns)

    def _read(self, number: int, columns: Sequence[int] | None = None) -> Iterator[pa.Table]:
        root, relation, part = self.files.root, self.files.relation, self.files.sets[0]
        return read_partition(root, relation, part.orders, part.partitions[number], columns)

    def _batches(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        types, names = self.files.relation.types, column_names(self.files.relation.types)
        if not self.columns:
            units = pa.repeat(pa.scalar(True), table.num_rows)
            yield from pa.table({UNIT: units}).to_batches(max_chunksize=BATCH_ROWS)
            return
        arrays = [
            to_spark(column, types[at])
            for at, column in zip(self.columns, table.columns, strict=True)
        ]
        made = pa.Table.from_arrays(arrays, names=[names[at] for at in self.columns])
        yield from made.to_batches(max_chunksize=BATCH_ROWS)


def partition_frame(
    session: "SparkSession",
    files: PartitionedFiles,
    columns: Sequence[int],
    added: pa.Table,
    removed: pa.Table,
) -> "DataFrame":
    """Return columns of a partitioned relation, with its open change, as a frame."""
    part, relation = files.sets[0], files.relation
    changes = [split_bytes(each, relation, part.partitioning) for each in (added, removed)]
    used = {number for number, stored in enumerate(part.partitions) if stored.files}
    numbers = tuple(sorted(used | changes[0].keys())) or (0,)
    names, types = column_names(relation.types), relation.types
    schema = (
        schema_text([names[at] for at in columns], [types[at] for at in columns])
        if columns
        else schema_text([UNIT], ())
    )
    read = ReadPartitions(files, numbers, tuple(columns), *changes)
    return session.range(0, len(numbers), 1, len(numbers)).mapInArrow(read, schema)
