"""Handles on partitioned relations: read on demand, by tasks where there is much."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from corollary.core.engine import MapResult, slice_table
from corollary.engines.spark.partitioned.operations import PartitionAddress, without_rows
from corollary.engines.spark.partitioned.partition_files import StoredPartition
from corollary.engines.spark.partitioned.source import PartitionSource

DISTRIBUTED_MIN_TUPLES = 1 << 17
"""A relation of so many tuples is not collected on the driver to be written from there."""


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class PartitionedHandle:
    """The tuples of a partitioned relation in a state.

    Attributes:
        source: the committed tuples.
        added, removed: the open change, if the state has it.
    """

    source: PartitionSource
    added: pa.Table
    removed: pa.Table

    def __len__(self) -> int:
        return self.source.files.size + int(self.added.num_rows) - int(self.removed.num_rows)

    def table(self) -> pa.Table:
        """Return the tuples."""
        rows = self.source.read()
        if self.removed.num_rows:
            files = self.source.files
            orders = files.sets[0].orders
            address = PartitionAddress(files.root, files.relation, orders, 0, StoredPartition())
            rows = without_rows(address, rows, self.removed)
        return pa.concat_tables([rows, self.added]) if self.added.num_rows else rows

    def slices(self, max_rows: int) -> Iterator[pa.Table]:
        """Yield the tuples in tables of about equal size."""
        yield from slice_table(self.table(), max_rows)

    @property
    def is_distributed(self) -> bool:
        """Whether there are too many tuples to collect them on the driver."""
        return len(self) >= DISTRIBUTED_MIN_TUPLES

    def map_partitions(self, function: Callable[[pa.Table], MapResult]) -> list[MapResult]:
        """Return the results of a function on the tuples of each partition, from one job."""
        return self.source.apply(function, self.added, self.removed)
