"""What a task does with a partition; operations travel pickled, their tuples as Arrow's bytes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from corollary.core.arrow_buffers import bool_array
from corollary.core.engine import ValueRange
from corollary.core.program import Relation
from corollary.core.states import State
from corollary.data_class import dataclass
from corollary.engines.local.storage.arrangement import Order
from corollary.engines.local.storage.layout import Mask
from corollary.engines.spark.relation.change_files import merge_changes, read_change, write_change
from corollary.engines.spark.relation.files import (
    PartitionChange,
    PartitionedFiles,
    PartitionSet,
    StoredPartition,
)
from corollary.engines.spark.relation.open_partition import (
    OpenPartition,
    PartitionEngine,
    find_rows,
    load_partition,
    new_name,
    open_partition,
    ranges_of,
    read_partition,
    write_partition,
)
from corollary.engines.spark.relation.partitioning import (
    Partitioning,
    split_table,
)
from corollary.engines.spark.relation.shared_files import read_file


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

    def open(self) -> OpenPartition:
        """Return the partition, to look something up, and keep it open in this process."""
        return open_partition(self.root, self.relation, self.orders, self.number, self.stored)

    def read(self) -> PartitionEngine:
        """Return the partition, to read all of it: that would push out what is open."""
        return load_partition(self.root, self.relation, self.orders[:1], self.stored)


@dataclass(frozen=True, slots=True)
class OpenChange:
    """The tuples of a change that is open on the driver which belong to one partition."""

    added: bytes | None = None
    removed: bytes | None = None

    def open_in(self, partition: PartitionEngine) -> None:
        """Make the change in a partition, where it is open then."""
        if self.removed is not None:
            partition.remove_rows(from_bytes(self.removed))
        if self.added is not None:
            partition.add_rows(from_bytes(self.added))

    def apply_to(self, rows: pa.Table, relation: Relation) -> pa.Table:
        """Return tuples of the partition without the removed ones, and all that were added."""
        if self.removed is not None:
            rows = without_rows(rows, from_bytes(self.removed), relation)
        if self.added is None:
            return rows
        added = from_bytes(self.added).rename_columns(rows.column_names)
        return pa.concat_tables([rows, added.cast(rows.schema)])


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
        rows = address.read().table()
        return to_bytes(without_rows(rows, from_bytes(self.rows), address.relation))


@dataclass(frozen=True, slots=True)
class Fold:
    """Write a partition with its changes as a new base."""

    def run(self, address: PartitionAddress) -> StoredPartition:
        """Return what was written; each attempt writes a directory of its own."""
        opened = load_partition(address.root, address.relation, address.orders, address.stored)
        return opened.write(address.root)


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
            number: write_partition(address.root, address.relation, address.orders, part)
            for number, part in split_table(rows, address.relation, self.partitioning)
        }


@dataclass(frozen=True, slots=True)
class Apply:
    """Apply a function to the tuples of a partition, with a change that is open."""

    function: Callable[[pa.Table], Any]
    change: OpenChange

    def run(self, address: PartitionAddress) -> list[Any]:
        """Return the result, nothing if the partition is empty."""
        rows = self.change.apply_to(address.read().table(), address.relation)
        return [self.function(rows)] if rows.num_rows else []


@dataclass(frozen=True, slots=True)
class Build:
    """Make the base of a new partition from tuples."""

    rows: bytes

    def run(self, address: PartitionAddress) -> StoredPartition:
        """Return what was written."""
        rows = from_bytes(self.rows)
        return write_partition(address.root, address.relation, address.orders, rows)


@dataclass(frozen=True, slots=True)
class AddNumber:
    """Write the tuples of a partition with a number as last column, as tuples of a relation."""

    number: int
    relation: Relation
    partitioning: Partitioning

    def run(self, address: PartitionAddress) -> dict[int, StoredPartition]:
        """Return what was written, by number of the relation's partition."""
        tables = read_partition(address.root, address.relation, address.orders, address.stored)
        rows = pa.concat_tables(list(tables))
        number = pa.repeat(pa.scalar(self.number, pa.int64()), rows.num_rows)
        numbered = pa.table([*rows.columns, number], names=list(self.relation.columns))
        return {
            number: write_open_change(address.root, self.relation, part, part.slice(0, 0))
            for number, part in split_table(numbered, self.relation, self.partitioning)
        }


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
        found = [read_piece(root, each) for each in self.pieces]
        if self.rows is not None:
            found.append(from_bytes(self.rows))
        if self.partition is not None:
            found.append(self.partition.read().table())
        return found


@dataclass(frozen=True, slots=True)
class ChangePartition:
    """Insert tuples into a partition, delete them, or let it have them and no others.

        insert X     ADDED' = ADDED ∪ (X − NEW − REMOVED)     REMOVED' = REMOVED − X
        delete X     ADDED' = ADDED − X                       REMOVED' = REMOVED ∪ (X ∩ NEW ∩ OLD)
        replace by X ADDED' = X − OLD                         REMOVED' = OLD − X

    OLD is the partition, NEW is OLD with the change that is open.

    Attributes:
        sign: ADDED to insert, REMOVED to delete, None to let it have the tuples given.
        given: the tuples.
        before: the change that is open, in files.
        here: the change that is open, of the driver; it is that or the other.
    """

    sign: State | None
    given: GivenTuples
    before: PartitionChange | None = None
    here: OpenChange = OpenChange()

    def run(self, address: PartitionAddress) -> StoredPartition:
        """Return the change that is open then, as a partition without a base."""
        opened = address.read()
        if self.before is not None:
            opened.open_change(*read_change(address.root, self.before))
        self.here.open_in(opened)
        tables = self.given.tables(address.root)
        if self.sign is None:
            opened.replace_contents(tables)
        else:
            for each in tables:
                (opened.add_rows if self.sign is State.ADDED else opened.remove_rows)(each)
        return write_open_change(address.root, address.relation, *opened.open_rows())


def read_piece(root: str, name: str) -> pa.Table:
    """Return the tuples of a file, as `to_bytes` writes them."""
    return from_bytes(read_file(root, name))


def without_rows(rows: pa.Table, others: pa.Table, relation: Relation) -> pa.Table:
    """Return rows that are not among others."""
    return rows.filter(bool_array(~find_rows(rows, others, relation)))


def write_open_change(
    root: str, relation: Relation, added: pa.Table, removed: pa.Table
) -> StoredPartition:
    """Write a change to a file; return it as a partition without a base."""
    if not added.num_rows and not removed.num_rows:
        return StoredPartition()
    written = write_change(root, new_name(relation.name, "change"), added, removed)
    return StoredPartition().changed(written, ranges_of(added, relation))
