"""What a task does with a partition; operations travel pickled, their tuples as Arrow's bytes."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow_buffers import bool_array
from corollary.core.engine import ValueRange
from corollary.core.program import Relation
from corollary.data_class import dataclass
from corollary.engines.local.storage.arrangement import Order
from corollary.engines.local.storage.layout import Mask
from corollary.engines.spark.partitioned.change_files import merge_changes
from corollary.engines.spark.partitioned.open_partition import (
    PartitionEngine,
    fold_partition,
    load_partition,
    new_name,
    open_partition,
    write_partition,
)
from corollary.engines.spark.partitioned.partition_files import (
    PartitionChange,
    PartitionedFiles,
    PartitionSet,
    StoredPartition,
)
from corollary.engines.spark.partitioned.partitioning import (
    Partitioning,
    measure_values,
    split_table,
)


def to_bytes(table: pa.Table) -> bytes:
    """Return a table as bytes; of a slice, only what it shows."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def from_bytes(data: bytes) -> pa.Table:
    """Return the table that `to_bytes` has written."""
    return pa.ipc.open_stream(data).read_all()


@dataclass(frozen=True, slots=True)
class PartitionAddress:
    """Where a task finds a partition."""

    root: str
    relation: Relation
    orders: tuple[Order, ...]
    number: int
    stored: StoredPartition

    @classmethod
    def of(
        cls,
        files: PartitionedFiles,
        part: PartitionSet,
        number: int,
        stored: StoredPartition | None = None,
    ) -> "PartitionAddress":
        """Return that of a partition of a set, or of other files that take its place."""
        stored = part.partitions[number] if stored is None else stored
        return cls(files.root, files.relation, part.orders, number, stored)

    def open(self) -> PartitionEngine:
        """Return the partition, to look something up, and keep it open in this process."""
        return open_partition(self.root, self.relation, self.orders, self.number, self.stored)

    def read(self) -> PartitionEngine:
        """Return the partition, to read all of it: that would push out what is open."""
        return load_partition(self.root, self.relation, self.orders[:1], self.stored)


class PartitionOperation(Protocol):
    """Something to be done with a partition, where a task runs."""

    def run(self, address: PartitionAddress) -> Any:
        """Do it; the result is pickled."""


@dataclass(frozen=True, slots=True)
class Match:
    """Find the tuples whose first columns in an order are one of some distinct keys."""

    order: Order
    keys: bytes

    def run(self, address: PartitionAddress) -> bytes:
        """Return the tuples."""
        return to_bytes(address.open().matches(self.order, from_bytes(self.keys)))


@dataclass(frozen=True, slots=True)
class Contain:
    """Look tuples up."""

    rows: bytes

    def run(self, address: PartitionAddress) -> Mask:
        """Return for each tuple whether it is there."""
        return address.open().contains(from_bytes(self.rows))


@dataclass(frozen=True, slots=True)
class ReadAll:
    """Read a partition."""

    def run(self, address: PartitionAddress) -> bytes:
        """Return all tuples."""
        return to_bytes(address.read().table())


@dataclass(frozen=True, slots=True)
class CheckUnique:
    """Find out whether tuples agree in some columns, the lead among them."""

    columns: tuple[int, ...]

    def run(self, address: PartitionAddress) -> bool:
        """Return whether no two of them do."""
        return address.read().is_unique(self.columns)


@dataclass(frozen=True, slots=True)
class FindWithin:
    """Find tuples in boxes."""

    boxes: Sequence[Mapping[int, ValueRange]]

    def run(self, address: PartitionAddress) -> bytes:
        """Return the tuples in one of the boxes, perhaps with others."""
        return to_bytes(address.read().rows_within(self.boxes))


@dataclass(frozen=True, slots=True)
class Subtract:
    """Find the tuples that are not among others."""

    rows: bytes

    def run(self, address: PartitionAddress) -> bytes:
        """Return the tuples of the partition that are not among the rows."""
        return to_bytes(without_rows(address, address.read().table(), from_bytes(self.rows)))


@dataclass(frozen=True, slots=True)
class Fold:
    """Write a partition with its changes as a new base."""

    def run(self, address: PartitionAddress) -> StoredPartition:
        """Return what was written; each attempt writes a directory of its own."""
        name = new_name(address.relation.name, "base")
        return fold_partition(address.root, name, address.relation, address.orders, address.stored)


@dataclass(frozen=True, slots=True)
class MergeChanges:
    """Make one file of the changes of a partition from one to before the last."""

    first: int

    def run(self, address: PartitionAddress) -> PartitionChange:
        """Return the file."""
        name = new_name(address.relation.name, "change")
        changes = address.stored.changes[self.first : -1]
        return merge_changes(address.root, name, address.relation, changes)


@dataclass(frozen=True, slots=True)
class Split:
    """Make several partitions of one, as a partitioning says that differs in their number only."""

    partitioning: Partitioning

    def run(self, address: PartitionAddress) -> dict[int, StoredPartition]:
        """Return what was written, by number."""
        rows = address.read().table()
        return {
            number: write_partition(
                address.root,
                new_name(address.relation.name, "base"),
                address.relation,
                address.orders,
                part,
            )
            for number, part in split_table(rows, address.relation, self.partitioning)
        }


@dataclass(frozen=True, slots=True)
class Apply:
    """Apply a function to the tuples of a partition, with a change that is open.

    Attributes:
        added, removed: the tuples of the change that belong to the partition, if there are any.
    """

    function: Callable[[pa.Table], Any]
    added: bytes | None
    removed: bytes | None

    def run(self, address: PartitionAddress) -> list[Any]:
        """Return the result, nothing if the partition is empty."""
        rows = address.read().table()
        if self.removed is not None:
            rows = without_rows(address, rows, from_bytes(self.removed))
        if self.added is not None:
            rows = pa.concat_tables([rows, from_bytes(self.added)])
        return [self.function(rows)] if rows.num_rows else []


@dataclass(frozen=True, slots=True)
class TuplePiece:
    """Tuples for a partition, in a file.

    Attributes:
        lead: of the set of the partition.
        number: of the partition.
        name: of the file below the root.
        rows: how many tuples there are.
    """

    lead: int
    number: int
    name: str
    rows: int


@dataclass(frozen=True, slots=True)
class PiecesByPartition:
    """Splits tuples by partitionings, into files; it is pickled, and called in a task.

    Attributes:
        partitionings: the tuples are split by each of them.
    """

    root: str
    relation: Relation
    partitionings: tuple[Partitioning, ...]

    def __call__(self, rows: pa.Table) -> list[TuplePiece]:
        """Return the files."""
        rows = rows.select(list(self.relation.columns))
        found = []
        for partitioning in self.partitionings:
            for number, part in split_table(rows, self.relation, partitioning):
                name = new_name(self.relation.name, "piece")
                (Path(self.root) / name).write_bytes(to_bytes(part))
                found.append(TuplePiece(partitioning.lead, number, name, part.num_rows))
        return found


@dataclass(frozen=True, slots=True)
class Scatter:
    """Split a partition, or tuples that are in a file, by partitionings."""

    partitionings: tuple[Partitioning, ...]
    file: str | None = None

    def run(self, address: PartitionAddress) -> list[TuplePiece]:
        """Return the files."""
        rows = address.read().table() if self.file is None else read_piece(address, self.file)
        return PiecesByPartition(address.root, address.relation, self.partitionings)(rows)


@dataclass(frozen=True, slots=True)
class MeasureLead:
    """Find the values of the lead that most tuples have: of a partition, or of a file."""

    file: str | None = None

    def run(self, address: PartitionAddress) -> dict[int, tuple[int, ...]]:
        """Return by key how many tuples have it, and how many of them agree in each column."""
        rows = address.read().table() if self.file is None else read_piece(address, self.file)
        return measure_values(rows, address.orders[0], address.relation.types)


@dataclass(frozen=True, slots=True)
class Gather:
    """Make the base of a new partition from the files that `Scatter` has written."""

    files: tuple[str, ...]

    def run(self, address: PartitionAddress) -> StoredPartition:
        """Return what was written."""
        table = pa.concat_tables([read_piece(address, each) for each in self.files])
        name = new_name(address.relation.name, "base")
        return write_partition(address.root, name, address.relation, address.orders, table)


@dataclass(frozen=True, slots=True)
class Build:
    """Make the base of a new partition from tuples."""

    rows: bytes

    def run(self, address: PartitionAddress) -> StoredPartition:
        """Return what was written."""
        name = new_name(address.relation.name, "base")
        rows = from_bytes(self.rows)
        return write_partition(address.root, name, address.relation, address.orders, rows)


def read_piece(address: PartitionAddress, name: str) -> pa.Table:
    """Return the tuples of a file that `PiecesByPartition` has written."""
    return from_bytes((Path(address.root) / name).read_bytes())


def without_rows(address: PartitionAddress, rows: pa.Table, others: pa.Table) -> pa.Table:
    """Return rows that are not among others."""
    found = PartitionEngine(address.relation, address.orders[:1])
    found.change(others, others.slice(0, 0))
    return rows.filter(pc.invert(bool_array(np.asarray(found.contains(rows)))))
