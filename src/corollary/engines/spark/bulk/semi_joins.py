"""Semi-joins: of a large relation, Spark reads the tuples that the leading relation asks for.

    p(x, z) :- Δp(x, y), e(y, z).       e is partitioned by its first column

The keys `y` of Δp go to the partitions of `e` that they are in, and tasks look them up there, as
they look up those of a small change. The join then reads Δp and the tuples found, so that a round
costs what its frontier touches, however large `e` is.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from corollary.core.arrow import ArrowColumn
from corollary.core.logic import Variable
from corollary.core.pipeline import AntiProbe, Pipeline, Probe, Reference
from corollary.data_class import dataclass
from corollary.engines.spark.bulk import spark_columns
from corollary.engines.spark.exchange import split_open_change
from corollary.engines.spark.operations import (
    OpenChange,
    PartitionAddress,
    from_bytes,
    without_rows,
)
from corollary.engines.spark.relation.files import PartitionedFiles, PartitionSet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEY = "key"

SEMI_JOIN_RATIO = 4
"""The column has this many times as many values as tuples lead; else the relation is read whole."""


@dataclass(frozen=True, slots=True)
class SemiJoin:
    """Reads the tuples of a relation that have a value of the leading one in a column.

    Attributes:
        column: of the relation; it has partitions by this column.
        lead: the leading relation.
        key: the column of that.
    """

    column: int
    lead: Reference
    key: int


def find_semi_joins(pipeline: Pipeline) -> dict[Reference, list[SemiJoin]]:
    """Return those that give a pipeline all tuples it needs of relations that it looks up."""
    probes = [each for each in pipeline.stages if isinstance(each, Probe | AntiProbe)]
    if not probes:
        return {}
    lead, *others = probes
    keys = {slot: at for at, slot in enumerate(lead.slots) if isinstance(slot, Variable)}
    found: dict[Reference, list[SemiJoin]] = {lead.source: []}  # it is read as a whole
    for each in others:
        joins = [
            SemiJoin(at, lead.source, keys[slot])
            for at, slot in enumerate(each.slots)
            if isinstance(slot, Variable) and slot in keys
        ]
        # One that is looked up twice needs the tuples of both.
        known = found.get(each.source, joins)
        found[each.source] = [join for join in known if join in joins]
    return {source: joins for source, joins in found.items() if joins}


@dataclass(frozen=True, slots=True)
class ProbePartitions:
    """Finds the tuples of some keys inside tasks; Spark calls it with the keys, by partition.

    Attributes:
        part: the set whose lead the keys are of.
        columns: those that are asked for.
        changes: the open change, by partition.
    """

    files: PartitionedFiles
    part: PartitionSet
    columns: tuple[int, ...]
    changes: Mapping[int, OpenChange]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the tuples that have one of the keys, and perhaps others."""
        types = self.files.relation.types
        to_query = spark_columns.ToQueryColumns(*spark_columns.query_columns(types, self.columns))
        for number, rows in spark_columns.placed_tables(batches):
            keys = spark_columns.from_spark(rows.column(KEY), types[self.part.lead])
            for table in self._find(number, keys):
                yield from to_query(table.select(list(self.columns))).to_batches()

    def _find(self, number: int, keys: ArrowColumn) -> Iterator[pa.Table]:
        address = PartitionAddress.of(self.files, self.part, number)
        change = self.changes.get(number, OpenChange())
        if address.stored.files:
            wanted = pa.table({KEY: keys.unique()})
            found = address.open().matches(self.part.orders[0], wanted)
            if change.removed is not None:
                found = without_rows(found, from_bytes(change.removed), address.relation)
            yield found
        if change.added is not None:
            yield from_bytes(change.added)


def probe_frame(
    files: PartitionedFiles,
    part: PartitionSet,
    columns: Sequence[int],
    keys: "DataFrame",
    change: tuple[pa.Table, pa.Table],
) -> "DataFrame":
    """Return columns of the tuples that have some keys, and perhaps of others, as a frame.

    Args:
        files: those of the relation.
        part: the set whose lead the keys are of.
        columns: at least one.
        keys: a frame with a column, `KEY`.
        change: the open change.
    """
    types = files.relation.types
    changes = split_open_change(*change, files.relation, part.partitioning)
    find = ProbePartitions(files, part, tuple(columns), changes)
    schema = spark_columns.schema_text(*spark_columns.query_columns(types, columns))
    return spark_columns.place_rows(keys, [KEY], types, part.partitioning).mapInArrow(find, schema)
