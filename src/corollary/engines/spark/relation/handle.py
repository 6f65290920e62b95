"""Tuples in partitions: as handles, read on demand, and as steps of a plan pass them."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa

from corollary.core.engine import MapResult, Portion, ValueRange, slice_table
from corollary.data_class import dataclass
from corollary.engines.spark.exchange import split_open_change
from corollary.engines.spark.operations import (
    OpenChange,
    PartitionAddress,
    from_bytes,
    without_rows,
)
from corollary.engines.spark.relation.files import PartitionedFiles
from corollary.engines.spark.relation.open_partition import read_partition
from corollary.engines.spark.relation.source import PartitionSource

DISTRIBUTED_MIN_TUPLES = 1 << 17
"""So many tuples of a relation, or of a change, are not collected on the driver."""


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
        return self._with_change(self.source.read())

    def within(self, boxes: Sequence[Mapping[int, ValueRange]]) -> pa.Table:
        """Return the tuples in one of several boxes, each once, perhaps with others."""
        return self._with_change(self.source.within(boxes))

    def _with_change(self, rows: pa.Table) -> pa.Table:
        """Return committed tuples without the removed ones, and all that were added."""
        if self.removed.num_rows:
            rows = without_rows(rows, self.removed, self.source.files.relation)
        return pa.concat_tables([rows, self.added]) if self.added.num_rows else rows

    def slices(self, max_rows: int) -> Iterator[pa.Table]:
        """Yield the tuples in tables of about equal size."""
        yield from slice_table(self.table(), max_rows)

    @property
    def is_distributed(self) -> bool:
        """Whether there are too many tuples to collect them on the driver."""
        return is_distributed(len(self))

    def map_partitions(self, function: Callable[[pa.Table], MapResult]) -> list[MapResult]:
        """Return the results of a function on the tuples of each partition, from one job."""
        return self.source.apply(function, self.added, self.removed)

    def portions(self) -> Sequence[Portion]:
        """Return what yields the tuples of each partition."""
        return partition_portions(self.source.files, self.added, self.removed)


@dataclass(frozen=True, slots=True)
class ReadPartition:
    """Reads columns of a partition in a task, with the change that is open."""

    address: PartitionAddress
    change: OpenChange
    columns: tuple[int, ...]

    def __call__(self) -> Iterator[pa.Table]:
        """Yield the tuples."""
        if self.change.removed is not None:
            rows = pa.concat_tables(self._read(range(len(self.address.relation.types))))
            yield self.change.apply_to(rows, self.address.relation).select(self.columns)
            return
        yield from self._read(self.columns)
        if self.change.added is not None:
            yield from_bytes(self.change.added).select(self.columns)

    def _read(self, columns: Sequence[int]) -> Iterator[pa.Table]:
        at = self.address
        return read_partition(at.root, at.relation, at.orders, at.stored, columns)


def partition_portions(
    files: PartitionedFiles,
    added: pa.Table,
    removed: pa.Table,
    columns: Sequence[int] | None = None,
) -> list[ReadPartition]:
    """Return what yields columns of each partition with tuples, with the change that is open."""
    part, relation = files.sets[0], files.relation
    wanted = tuple(range(len(relation.types)) if columns is None else columns)
    change = split_open_change(added, removed, relation, part.partitioning)
    return [
        ReadPartition(
            PartitionAddress.of(files, part, number), change.get(number, OpenChange()), wanted
        )
        for number, stored in enumerate(part.partitions)
        if stored.files or number in change
    ]


@dataclass(frozen=True, slots=True)
class RemoteTuples:
    """Distinct tuples in the files of partitions."""

    files: PartitionedFiles

    def __len__(self) -> int:
        return self.files.size

    @property
    def nbytes(self) -> int:
        """The bytes that they take here."""
        return 0


def is_distributed(tuples: int) -> bool:
    """Return whether this number of tuples is too large to be collected on the driver."""
    return tuples >= DISTRIBUTED_MIN_TUPLES
