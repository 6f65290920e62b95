"""What tasks do with a change of many tuples: it stays in files, of which the driver knows names.

    insert X     ADDED' = ADDED ∪ (X − NEW − REMOVED)     REMOVED' = REMOVED − X
    delete X     ADDED' = ADDED − X                       REMOVED' = REMOVED ∪ (X ∩ NEW ∩ OLD)
    become X     ADDED' = X − OLD                         REMOVED' = OLD − X

OLD is the partition, NEW is OLD with the change that is open.
"""

from pathlib import Path

import pyarrow as pa

from corollary.core.program import Relation
from corollary.core.states import State
from corollary.data_class import dataclass
from corollary.engines.spark.partitioned.change_files import read_change, write_change
from corollary.engines.spark.partitioned.open_partition import (
    new_name,
    ranges_of,
)
from corollary.engines.spark.partitioned.operations import (
    PartitionAddress,
    PiecesByPartition,
    TuplePiece,
    from_bytes,
)
from corollary.engines.spark.partitioned.partition_files import PartitionChange, StoredPartition
from corollary.engines.spark.partitioned.partitioning import (
    Partitioning,
)


@dataclass(frozen=True, slots=True)
class GivenTuples:
    """Tuples of one partition that a change is made of, wherever they are; some may be equal.

    Attributes:
        pieces: files below the root of the partition, as `to_bytes` writes them.
        rows: tuples of the driver.
        partition: all tuples of a partition of another relation with the same columns.
    """

    pieces: tuple[str, ...] = ()
    rows: bytes | None = None
    partition: PartitionAddress | None = None

    def tables(self, root: str) -> list[pa.Table]:
        """Read them."""
        found = [from_bytes((Path(root) / each).read_bytes()) for each in self.pieces]
        if self.rows is not None:
            found.append(from_bytes(self.rows))
        if self.partition is not None:
            found.append(self.partition.read().table())
        return found


@dataclass(frozen=True, slots=True)
class ChangePartition:
    """Insert tuples into a partition, delete them, or let it have them and no others.

    Attributes:
        sign: ADDED to insert, REMOVED to delete, None to let it have the tuples given.
        given: the tuples.
        before: the change that is open, in files.
        added, removed: a change that is open, of the driver; it is that or the other.
    """

    sign: State | None
    given: GivenTuples
    before: PartitionChange | None = None
    added: bytes | None = None
    removed: bytes | None = None

    def run(self, address: PartitionAddress) -> StoredPartition:
        """Return the change that is open then, as a partition without a base."""
        opened = address.read()
        if self.before is not None:
            opened.open_change(*read_change(address.root, self.before))
        for rows, change in ((self.removed, opened.remove_rows), (self.added, opened.add_rows)):
            if rows is not None:
                change(from_bytes(rows))
        tables = self.given.tables(address.root)
        if self.sign is None:
            opened.become(tables)
        else:
            for each in tables:
                (opened.add_rows if self.sign is State.ADDED else opened.remove_rows)(each)
        return _written(address.root, address.relation, *opened.open_rows())


@dataclass(frozen=True, slots=True)
class ScatterChange:
    """Split a change by other columns, into files.

    Attributes:
        change: of the partition.
        partitionings: the tuples are split by each of them.
    """

    change: PartitionChange
    partitionings: tuple[Partitioning, ...]

    def run(self, address: PartitionAddress) -> tuple[list[TuplePiece], list[TuplePiece]]:
        """Return the files of the tuples that come, and of those that go."""
        write = PiecesByPartition(address.root, address.relation, self.partitionings)
        names = list(address.relation.columns)  # which may have had others before
        added, removed = (
            each.rename_columns(names) for each in read_change(address.root, self.change)
        )
        return write(added), write(removed)


@dataclass(frozen=True, slots=True)
class GatherChange:
    """Make the change of a partition from the files of pieces."""

    added: tuple[str, ...]
    removed: tuple[str, ...] = ()

    def run(self, address: PartitionAddress) -> StoredPartition:
        """Return the change, as a partition without a base."""
        sides = [GivenTuples(each).tables(address.root) for each in (self.added, self.removed)]
        empty = next(table for side in sides for table in side).slice(0, 0)
        added, removed = (pa.concat_tables([empty, *side]) for side in sides)
        return _written(address.root, address.relation, added, removed)


def _written(root: str, relation: Relation, added: pa.Table, removed: pa.Table) -> StoredPartition:
    """Write a change to a file; return it as a partition without a base."""
    if not added.num_rows and not removed.num_rows:
        return StoredPartition()
    written = write_change(root, new_name(relation.name, "change"), added, removed)
    return StoredPartition().changed(written, ranges_of(added, relation))
