"""What tasks do with a change of many tuples: it stays in files, of which the driver knows names.

    insert X     ADDED' = ADDED ∪ (X − NEW − REMOVED)     REMOVED' = REMOVED − X
    delete X     ADDED' = ADDED − X                       REMOVED' = REMOVED ∪ (X ∩ NEW ∩ OLD)
    become X     ADDED' = X − OLD                         REMOVED' = OLD − X

OLD is the partition, NEW is OLD with the change that is open.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from corollary.core.arrow import DependencyCheck
from corollary.core.arrow_buffers import index_array
from corollary.core.program import Relation
from corollary.core.states import State
from corollary.data_class import dataclass
from corollary.engines.local.storage.arrangement import Order
from corollary.engines.spark.partitioned.change_files import read_change, write_change
from corollary.engines.spark.partitioned.open_partition import (
    load_partition,
    new_name,
    ranges_of,
)
from corollary.engines.spark.partitioned.operations import (
    PartitionAddress,
    PiecesByPartition,
    TuplePiece,
    from_bytes,
    read_piece,
    to_bytes,
    without_rows,
)
from corollary.engines.spark.partitioned.partition_files import PartitionChange, StoredPartition
from corollary.engines.spark.partitioned.partitioning import (
    HeavyValues,
    Partitioning,
    column_keys,
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


@dataclass(frozen=True, slots=True)
class FoundViolations:
    """What a task has found of the violations of a functional dependency.

    Attributes:
        ones, others: the first pairs.
        count: of all pairs.
        pieces: tuples that have to be compared with those of other partitions.
    """

    ones: bytes
    others: bytes
    count: int
    pieces: list[TuplePiece]

    @classmethod
    def among(
        cls, rows: pa.Table, check: DependencyCheck, pieces: Sequence[TuplePiece] = ()
    ) -> "FoundViolations":
        """Return those among some tuples."""
        found = check.violations(rows)
        return cls(to_bytes(found.ones), to_bytes(found.others), found.count, list(pieces))


@dataclass(frozen=True, slots=True)
class FindViolations:
    """Find tuples of NEW that violate a functional dependency, the lead among its determinants.

    Attributes:
        check: the dependency.
        change: if it is given, one that the partition has already: only tuples that agree with
            those that it adds are looked at.
        order, keys: the same for tuples that agree with keys in the first columns of an order.
        added, removed: a change of the driver, in files that do not have it.
        heavy, meeting: if tuples that agree may be in several partitions, the values of which that
            holds, and where representatives of these meet.
    """

    check: DependencyCheck
    change: PartitionChange | None = None
    order: Order = ()
    keys: bytes | None = None
    added: bytes | None = None
    removed: bytes | None = None
    heavy: HeavyValues | None = None
    meeting: Partitioning | None = None

    def run(self, address: PartitionAddress) -> FoundViolations:
        """Return the violations, and what has to be compared with other partitions."""
        rows = self._candidates(address)
        if self.heavy is None or self.meeting is None:
            return FoundViolations.among(rows, self.check)
        lead = self.meeting.lead
        keys = column_keys(rows.column(lead), address.relation.types[lead])
        heavy = self.heavy.find(keys)
        light = np.setdiff1d(np.arange(rows.num_rows), heavy, assume_unique=True)
        some = self.check.representatives(rows.take(index_array(heavy)))
        write = PiecesByPartition(address.root, address.relation, (self.meeting,))
        return FoundViolations.among(rows.take(index_array(light)), self.check, write(some))

    def _candidates(self, address: PartitionAddress) -> pa.Table:
        """Return the tuples to look at."""
        if self.keys is not None:
            return self._changed(address, address.open().matches(self.order, from_bytes(self.keys)))
        if self.change is not None:
            return self._agreeing(address, read_change(address.root, self.change)[0])
        opened = address.read()
        for rows, change in ((self.removed, opened.remove_rows), (self.added, opened.add_rows)):
            if rows is not None:
                change(from_bytes(rows))
        if self.heavy is not None:
            return opened.table()
        return opened.duplicate_rows(self.check.determinants)

    def _changed(self, address: PartitionAddress, rows: pa.Table) -> pa.Table:
        """Return tuples with a change of the driver."""
        if self.removed is not None:
            rows = without_rows(address, rows, from_bytes(self.removed))
        if self.added is None:
            return rows
        added = from_bytes(self.added).rename_columns(rows.column_names)
        return pa.concat_tables([rows, added.cast(rows.schema)])

    def _agreeing(self, address: PartitionAddress, added: pa.Table) -> pa.Table:
        """Return the tuples that agree in the determinants with added ones."""
        columns, orders = self.check.determinants, address.orders
        first = *orders[0][:1], *(each for each in columns if each != orders[0][0])
        made = *first, *(each for each in orders[0] if each not in first)
        prefixes = (each for each in orders if {*each[: len(columns)]} == {*columns})
        order = next(prefixes, made)
        keys = added.select(list(order[: len(columns)]))
        distinct = keys.group_by(keys.column_names).aggregate([])
        opened = load_partition(
            address.root, address.relation, tuple(dict.fromkeys((*orders, order))), address.stored
        )
        return opened.matches(order, distinct)


@dataclass(frozen=True, slots=True)
class CompareRepresentatives:
    """Find violations of a functional dependency among tuples of several partitions."""

    check: DependencyCheck
    files: tuple[str, ...]

    def run(self, address: PartitionAddress) -> FoundViolations:
        """Return the violations."""
        rows = pa.concat_tables([read_piece(address, each) for each in self.files])
        return FoundViolations.among(rows, self.check)


def _written(root: str, relation: Relation, added: pa.Table, removed: pa.Table) -> StoredPartition:
    """Write a change to a file; return it as a partition without a base."""
    if not added.num_rows and not removed.num_rows:
        return StoredPartition()
    written = write_change(root, new_name(relation.name, "change"), added, removed)
    return StoredPartition().changed(written, ranges_of(added, relation))
