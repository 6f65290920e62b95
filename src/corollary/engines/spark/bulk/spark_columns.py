"""The columns of relations in Spark's queries, from and to Arrow (`sql/spark_dialect.py`).

Queries read values: the columns of a relation are `v0`, `v1`, … A relation without columns has one
there, `unit`, which is always true. Of relations in partitions, tasks read the files.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from corollary.core import arrow
from corollary.core.arrow_buffers import bool_array, fixed_array, fixed_values
from corollary.core.types import BOOL, Type
from corollary.data_class import dataclass
from corollary.engines.spark.frames import UNSIGNED_TYPE, portion_frame
from corollary.engines.spark.relation.files import PartitionedFiles
from corollary.engines.spark.relation.handle import partition_portions
from corollary.engines.spark.relation.partitioning import Partitioning
from corollary.sqlgen.compiled import Representation
from corollary.sqlgen.query_frames import UNIT
from corollary.sqlgen.spark_dialect import SPARK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NUMBER_COLUMN = "number"


def column_names(types: Sequence[Type]) -> list[str]:
    """Return the names of the columns of a relation."""
    return [f"{Representation.VALUE}{at}" for at in range(len(types))] or [UNIT]


def schema_text(names: Sequence[str], types: Sequence[Type]) -> str:
    """Return the schema of a relation as SQL has it."""
    pairs = zip(names, types or (BOOL,), strict=True)
    return ", ".join(f"{name} {SPARK.type_name(type_)}" for name, type_ in pairs)


def spark_arrow_type(type_: Type) -> pa.DataType:
    """Return the type in which Spark takes and gives the values of a type."""
    return UNSIGNED_TYPE if type_.is_unsigned else arrow.arrow_type(type_)


def to_spark(column: arrow.ArrowColumn, type_: Type) -> arrow.ArrowColumn:
    """Return a column as queries of Spark take it."""
    return arrow.to_stored_column(column, type_).cast(spark_arrow_type(type_.stored))


def from_spark(column: arrow.ArrowColumn, type_: Type) -> arrow.ArrowColumn:
    """Return a column that a query of Spark has given."""
    if type_.logical is not None:
        return arrow.from_stored_column(from_spark(column, type_.stored), type_)
    target = arrow.arrow_type(type_)
    if type_.is_float:
        return arrow.canonical_floats(column)
    if type_.is_decimal and column.type.precision > target.precision:
        return column.cast(target, safe=False)
    return column if column.type == target else column.cast(target)


def place_rows(
    frame: "DataFrame", names: Sequence[str], types: Sequence[Type], partitioning: Partitioning
) -> "DataFrame":
    """Return the rows of a frame, those of one partition with one task, and its `NUMBER_COLUMN`.

    Args:
        frame: the rows.
        names: of its columns that decide the partition, as the partitioning has them.
        types: of all columns of the relation.
        partitioning: of the relation.
    """
    from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]

    def number_rows(*columns: pa.Array) -> pa.Array:
        values = {
            at: pa.chunked_array([from_spark(each, types[at])])
            for at, each in zip(partitioning.columns, columns, strict=True)
        }
        return fixed_array(partitioning.numbers(values, types), pa.int64())

    numbered = frame.withColumn(NUMBER_COLUMN, arrow_udf(number_rows, "BIGINT")(*names))
    return numbered.repartitionById(partitioning.count, numbered[NUMBER_COLUMN].cast("INT"))


def placed_tables(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows that a task has got by `place_rows`, by partition."""
    found = [batch for batch in batches if batch.num_rows]
    if not found:
        return
    table = pa.Table.from_batches(found)
    numbers = fixed_values(table.column(NUMBER_COLUMN).combine_chunks(), np.int64)
    for number in np.unique(numbers).tolist():
        yield number, table.filter(bool_array(numbers == number))


def tuples_to_spark(table: pa.Table, types: Sequence[Type]) -> pa.Table:
    """Return tuples as a table that Spark takes."""
    if not types:
        return pa.table({UNIT: pa.repeat(pa.scalar(True), table.num_rows)})
    columns = [to_spark(each, type_) for each, type_ in zip(table.columns, types, strict=True)]
    # Spark loses rows that follow an empty chunk.
    return pa.Table.from_arrays(columns, names=column_names(types)).combine_chunks()


@dataclass(frozen=True, slots=True)
class ToQueryColumns:
    """Gives columns the names and types that queries read; without names, rows of `unit`."""

    names: tuple[str, ...]
    types: tuple[Type, ...]

    def __call__(self, table: pa.Table) -> pa.Table:
        """Return a table that Spark takes."""
        if not self.names:
            return pa.table({UNIT: pa.repeat(pa.scalar(True), table.num_rows)})
        arrays = map(to_spark, table.columns, self.types)
        return pa.Table.from_arrays(list(arrays), names=list(self.names))


def query_columns(
    types: Sequence[Type], columns: Sequence[int]
) -> tuple[tuple[str, ...], tuple[Type, ...]]:
    """Return the names and types of some columns of a relation."""
    names = column_names(types)
    return tuple(names[at] for at in columns), tuple(types[at] for at in columns)


def partition_frame(
    session: "SparkSession",
    files: PartitionedFiles,
    columns: Sequence[int],
    added: pa.Table,
    removed: pa.Table,
) -> "DataFrame":
    """Return columns of a partitioned relation, with its open change, as a frame."""
    names, types = query_columns(files.relation.types, columns)
    schema = schema_text(names, types) if names else schema_text([UNIT], ())
    # Of a query that needs no column, the first one says how many rows there are.
    portions = partition_portions(files, added, removed, columns or (0,))
    return portion_frame(session, portions, ToQueryColumns(names, types), schema)
