"""Tuples in partitions, as steps of a plan pass them from table to table."""

from dataclasses import dataclass, replace

from corollary.engines.spark.partitioned.partition_files import (
    PartitionedFiles,
    PartitionSet,
    StoredPartition,
    join_ranges,
)


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


def append_files(files: PartitionedFiles, more: PartitionedFiles) -> PartitionedFiles:
    """Return the files of two relations without a common tuple as those of one.

    The second has files of changes only, and is partitioned like the first set of the first.
    """
    (first, *others), added = files.sets, more.sets[0]
    assert not others, "only one set is extended"
    assert len(first.partitions) == len(added.partitions), "partitioned alike"
    pairs = zip(first.partitions, added.partitions, strict=True)
    partitions = tuple(_append_changes(*each) for each in pairs)
    return replace(files, sets=(PartitionSet(first.orders, partitions),))


def _append_changes(stored: StoredPartition, more: StoredPartition) -> StoredPartition:
    assert more.base is None, "only changes are appended"
    if not more.changes:
        return stored
    known = [each for each in (stored.ranges, more.ranges) if each]
    return replace(
        stored,
        changes=(*stored.changes, *more.changes),
        ranges=join_ranges(known) if known else (),
        distinct=tuple(map(sum, zip(stored.distinct, more.distinct, strict=True)))
        if stored.distinct and more.distinct
        else stored.distinct or more.distinct,
    )
