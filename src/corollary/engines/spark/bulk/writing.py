"""Results as partitions: tasks reduce the rows of a partition and write them as a file of changes.

Rows with equal keys are in one partition, so that a task can make them distinct, sum them and leave
out what is known by itself.
"""

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from corollary.core.arrow_buffers import (
    bool_array,
    bool_values,
    index_array,
)
from corollary.core.plans import Reduce
from corollary.core.program import Relation
from corollary.data_class import dataclass
from corollary.engines.local.evaluation.derivation import reduce_words
from corollary.engines.local.storage.layout import Mask
from corollary.engines.local.storage.runs import sort_distinct
from corollary.engines.local.storage.table import Table
from corollary.engines.local.table_handle import decode_words
from corollary.engines.local.values.codes import Dictionary
from corollary.engines.spark.bulk import spark_columns
from corollary.engines.spark.frames import task_replies
from corollary.engines.spark.operations import from_bytes, to_bytes
from corollary.engines.spark.relation.change_files import write_change
from corollary.engines.spark.relation.files import (
    ColumnRanges,
    PartitionedFiles,
    StoredPartition,
)
from corollary.engines.spark.relation.open_partition import (
    find_rows,
    new_name,
    open_partition,
    own_ranges,
)
from corollary.engines.spark.relation.partitioning import Partitioning
from corollary.sqlgen.compiled import MARK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WRITTEN = "written BINARY"
"""What the tasks return: pickled `WrittenPartition`s."""


@dataclass(frozen=True, slots=True)
class KnownTuples:
    """Tuples that a result leaves out: those of files, with an open change.

    Attributes:
        files: they may be partitioned in another way than the result.
        added, removed: the tuples of the change, by partition of the result.
    """

    files: PartitionedFiles | None
    added: Mapping[int, bytes]
    removed: Mapping[int, bytes]

    def filter(self, rows: pa.Table, number: int, relation: Relation) -> pa.Table:
        """Return the rows of a partition that are not among them."""
        is_known = self._find_in_files(rows)
        if number in self.removed:
            is_known &= ~find_rows(rows, from_bytes(self.removed[number]), relation)
        if number in self.added:
            is_known |= find_rows(rows, from_bytes(self.added[number]), relation)
        return rows.filter(bool_array(~is_known)) if is_known.any() else rows

    def _find_in_files(self, rows: pa.Table) -> Mask:
        is_known = np.zeros(rows.num_rows, np.bool_)
        if self.files is None:
            return is_known
        root, relation, part = self.files.root, self.files.relation, self.files.sets[0]
        places = part.partitioning.rows_by_partition(rows, range(rows.num_columns), relation.types)
        for number, some in places.items():
            stored = part.partitions[number]
            if stored.files:
                opened = open_partition(root, relation, part.orders, number, stored)
                is_known[some] = opened.contains(rows.take(index_array(some)))
        return is_known


@dataclass(frozen=True, slots=True)
class WrittenPartition:
    """What a task has written.

    Attributes:
        marks: how many rows may lack a value; then nothing is written.
        rows: the tuples as bytes, if they are few.
    """

    number: int
    stored: StoredPartition
    marks: int
    rows: bytes | None


@dataclass(frozen=True, slots=True)
class WritePartitions:
    """Writes partitions inside tasks; Spark calls it with the rows of some of them.

    Attributes:
        relation: what the rows are tuples of.
        partitioning: which partition a row belongs to.
        reduce: how rows that differ in their last column only become one.
        known: what is left out.
        inline_max: the maximum number of tuples that are returned as well.
    """

    root: str
    relation: Relation
    partitioning: Partitioning
    reduce: Reduce | None
    known: tuple[KnownTuples, ...]
    inline_max: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a row for each partition that has tuples, or rows that may lack a value."""
        for number, rows in spark_columns.placed_tables(batches):
            written = pickle.dumps(self._write(rows, number), protocol=5)
            yield pa.RecordBatch.from_arrays([pa.array([written], pa.binary())], ["written"])

    def _write(self, table: pa.Table, number: int) -> WrittenPartition:
        marks = int(bool_values(table.column(MARK).combine_chunks()).sum())
        if marks:
            return WrittenPartition(number, StoredPartition(), marks, None)
        rows, ranges, distinct = self._reduced(table)
        for each in self.known:
            rows = each.filter(rows, number, self.relation)
        if not rows.num_rows:
            return WrittenPartition(number, StoredPartition(), 0, None)
        empty = rows.slice(0, 0)
        change = write_change(self.root, new_name(self.relation.name, "bulk"), rows, empty)
        stored = replace(StoredPartition().changed(change, ranges), distinct=distinct)
        inline = to_bytes(rows) if rows.num_rows <= self.inline_max else None
        return WrittenPartition(number, stored, 0, inline)

    def _reduced(self, table: pa.Table) -> tuple[pa.Table, ColumnRanges, tuple[int, ...]]:
        """Return the tuples that rows say, the ranges of their codes, and distinct values."""
        types, dictionary = self.relation.types, Dictionary()
        target = Table(types)
        columns = [
            dictionary.encode_arrow(spark_columns.from_spark(table.column(name), type_), type_)
            for name, type_ in zip(spark_columns.column_names(types), types, strict=True)
        ]
        words = target.pack(columns, table.num_rows)
        if self.reduce is not Reduce.SUM:
            words = sort_distinct(words)
        words = reduce_words(words, self.reduce, target, dictionary)
        if self.reduce is Reduce.SUM:
            words = sort_distinct(words)
        target.assign(words)
        rows = decode_words(words, target.layout, types, self.relation.columns, dictionary)
        return rows, own_ranges(types, target.layout.columns), target.distinct_values()


def write_partitions(frame: "DataFrame", writer: WritePartitions) -> list[WrittenPartition]:
    """Write the rows of a frame; return what was written, in no order."""
    names, partitioning = spark_columns.column_names(writer.relation.types), writer.partitioning
    leads = [names[at] for at in partitioning.columns]
    placed = spark_columns.place_rows(frame, leads, writer.relation.types, partitioning)
    rows = task_replies(placed.mapInArrow(writer, WRITTEN))
    return [pickle.loads(bytes(row[0])) for row in rows]  # noqa: S301 - our own tasks made it
