"""Scatter and gather: tuples go to the partitions that they belong to, through files.

    scatter    tasks split tuples of a handle, a partition, a change or a file into *pieces*
    gather     a task for each partition makes a base, or a change, of its pieces

So a relation is loaded, partitioned by another column, and the tuples of heavy values are spread.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from corollary.core.engine import TableHandle
from corollary.core.program import Relation
from corollary.data_class import dataclass
from corollary.engines.local.storage.arrangement import Order
from corollary.engines.spark.jobs import PartitionJobs
from corollary.engines.spark.operations import (
    OpenChange,
    PartitionAddress,
    read_piece,
    to_bytes,
    write_open_change,
)
from corollary.engines.spark.relation.change_files import read_change
from corollary.engines.spark.relation.files import (
    PartitionChange,
    PartitionedFiles,
    PartitionSet,
    StoredPartition,
)
from corollary.engines.spark.relation.open_partition import new_name, write_partition
from corollary.engines.spark.relation.partitioning import (
    Partitioning,
    choose_heavy,
    measure_values,
    oversized_partitions,
    partition_count,
    split_table,
)
from corollary.engines.spark.relation.shared_files import remove_files, write_file

# --- what tasks do -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TuplePiece:
    """Tuples for a partition, in a file.

    Attributes:
        lead: of the set of the partition.
        number: of the partition.
        name: of the file below the root.
        rows: how many tuples there are.
        is_removed: whether they are those that a change removes.
    """

    lead: int
    number: int
    name: str
    rows: int
    is_removed: bool = False


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
                write_file(self.root, name, to_bytes(part))
                found.append(TuplePiece(partitioning.lead, number, name, part.num_rows))
        return found


@dataclass(frozen=True, slots=True)
class Scatter:
    """Split a partition, a change of it, or tuples that are in a file, by partitionings."""

    partitionings: tuple[Partitioning, ...]
    file: str | None = None
    change: PartitionChange | None = None

    def run(self, address: PartitionAddress) -> list[TuplePiece]:
        """Return the files."""
        write = PiecesByPartition(address.root, address.relation, self.partitionings)
        if self.change is not None:
            names = list(address.relation.columns)  # which may have had others before
            added, removed = (
                each.rename_columns(names) for each in read_change(address.root, self.change)
            )
            return [*write(added), *(replace(each, is_removed=True) for each in write(removed))]
        if self.file is not None:
            return write(read_piece(address.root, self.file))
        return write(address.read().table())


@dataclass(frozen=True, slots=True)
class Gather:
    """Make a new partition of pieces: its base, or a change without one.

    Attributes:
        added, removed: the names of the files.
        is_base: whether it is a base, to which nothing but tuples come.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    is_base: bool

    def run(self, address: PartitionAddress) -> StoredPartition:
        """Return what was written."""
        root, relation = address.root, address.relation
        sides = [[read_piece(root, each) for each in names] for names in (self.added, self.removed)]
        empty = next(table for side in sides for table in side).slice(0, 0)
        added, removed = (pa.concat_tables([empty, *side]) for side in sides)
        if not self.is_base:
            return write_open_change(root, relation, added, removed)
        return write_partition(root, relation, address.orders, added)


@dataclass(frozen=True, slots=True)
class MeasureLead:
    """Find the values of the lead that most tuples have: of a partition, or of a file."""

    file: str | None = None

    def run(self, address: PartitionAddress) -> dict[int, tuple[int, ...]]:
        """Return by key how many tuples have it, and how many of them agree in each column."""
        rows = address.read().table() if self.file is None else read_piece(address.root, self.file)
        return measure_values(rows, address.orders[0], address.relation.types)


# --- what the driver has them do -----------------------------------------------------------------


def split_bytes(rows: pa.Table, relation: Relation, partitioning: Partitioning) -> dict[int, bytes]:
    """Return tuples of the driver by partition, as they travel to tasks."""
    return {number: to_bytes(part) for number, part in split_table(rows, relation, partitioning)}


def split_open_change(
    added: pa.Table, removed: pa.Table, relation: Relation, partitioning: Partitioning
) -> dict[int, OpenChange]:
    """Return a change of the driver by partition."""
    sides = [split_bytes(each, relation, partitioning) for each in (added, removed)]
    touched = sides[0].keys() | sides[1].keys()
    return {number: OpenChange(*(each.get(number) for each in sides)) for number in touched}


def gather(
    files: PartitionedFiles,
    sets: Iterable[PartitionSet],
    pieces: Sequence[TuplePiece],
    jobs: PartitionJobs,
    *,
    title: str,
    bases: Collection[int] | None = None,
) -> dict[int, dict[int, StoredPartition]]:
    """Make partitions of pieces, by one job; return them by lead and number.

    Args:
        files: those of the relation.
        sets: which the partitions are of.
        pieces: of their tuples; they are removed.
        jobs: runs the job.
        title: of the job.
        bases: the partitions that get a base, all if it is None; others get a change.
    """
    by_lead = {each.lead: each for each in sets}
    names: dict[tuple[int, int], tuple[list[str], list[str]]] = {}
    for each in pieces:
        names.setdefault((each.lead, each.number), ([], []))[each.is_removed].append(each.name)
    tasks = [
        (
            PartitionAddress.of(files, by_lead[lead], number, StoredPartition()),
            Gather(tuple(added), tuple(removed), is_base=bases is None or number in bases),
        )
        for (lead, number), (added, removed) in names.items()
    ]
    results = jobs.run(tasks, title)
    remove_files(files.root, (each.name for each in pieces))
    made: dict[int, dict[int, StoredPartition]] = {lead: {} for lead in by_lead}
    for (lead, number), stored in zip(names, results, strict=True):
        made[lead][number] = stored
    return made


def scatter_changes(
    files: PartitionedFiles, wanted: Sequence[PartitionSet], jobs: PartitionJobs
) -> PartitionedFiles:
    """Return the files of a change with sets like some of its relation; two jobs for all."""
    if not wanted:
        return files
    part, title = files.sets[0], f"arrange {files.relation.name}"
    partitionings = tuple(each.partitioning for each in wanted)
    tasks = [
        (PartitionAddress.of(files, part, number), Scatter(partitionings, change=change))
        for number, stored in enumerate(part.partitions)
        for change in stored.changes
    ]
    pieces = [each for found in jobs.run(tasks, title) for each in found]
    made = gather(files, wanted, pieces, jobs, title=title, bases=())
    for each in wanted:
        files = files.with_set(each.emptied().with_partitions(made[each.lead]))
    return files


def build_partitions(
    rows: TableHandle,
    relation: Relation,
    orders: Sequence[Order],
    root: str,
    jobs: PartitionJobs,
) -> PartitionedFiles:
    """Write the tuples of a handle as partitions, in two jobs; equal ones are one.

    Args:
        rows: may have tuples more than once, and in any order.
        relation: whose tuples they are.
        orders: that probes will need.
        root: a directory that the driver and all tasks see.
        jobs: runs the second job; the first is that of the handle.
    """
    count = partition_count(len(rows))
    files = PartitionedFiles.empty(root, relation, orders, count)
    partitionings = tuple(each.partitioning for each in files.sets)
    write = PiecesByPartition(root, relation, partitionings)
    pieces = [each for made in rows.map_partitions(write) for each in made]
    return gather_pieces(files, files.sets, pieces, jobs, "load")


def gather_pieces(
    files: PartitionedFiles,
    sets: Sequence[PartitionSet],
    pieces: Sequence[TuplePiece],
    jobs: PartitionJobs,
    what: str,
    *,
    is_final: bool = False,
) -> PartitionedFiles:
    """Write the partitions of sets from pieces, in one job; in three, if there are heavy values.

    No task then gets all tuples of such a value: the pieces are split again before.

    Args:
        files: those of the relation.
        sets: without tuples; each of them replaces that of its lead, or is a new one.
        pieces: of all their tuples, some may be equal; they are removed.
        jobs: runs the jobs.
        what: is done.
        is_final: whether the sets say which values are heavy; otherwise they have none so far.
    """
    by_lead = {each.lead: each for each in sets}
    relation, title = files.relation, f"{what} {files.relation.name}"
    crowded = {
        (lead, number)
        for lead, part in by_lead.items()
        if len(relation.types) > 1 and not is_final
        for number in oversized_partitions(_sizes(part, pieces))
    }
    if crowded:
        pieces, by_lead = _spread_pieces(files, by_lead, pieces, crowded, jobs)
    made = gather(files, by_lead.values(), pieces, jobs, title=title)
    for lead, part in by_lead.items():
        files = files.with_set(part.with_partitions(made[lead]))
    return files


def _sizes(part: PartitionSet, pieces: Iterable[TuplePiece]) -> list[int]:
    """Return how many tuples pieces have for each partition of a set."""
    sizes = [0] * len(part.partitions)
    for each in pieces:
        if each.lead == part.lead:
            sizes[each.number] += each.rows
    return sizes


def _spread_pieces(
    files: PartitionedFiles,
    by_lead: dict[int, PartitionSet],
    pieces: Sequence[TuplePiece],
    crowded: set[tuple[int, int]],
    jobs: PartitionJobs,
) -> tuple[list[TuplePiece], dict[int, PartitionSet]]:
    """Split the pieces of crowded partitions again if there are heavy values, in two jobs.

    Returns all pieces, and the sets with the heavy values.
    """
    large = [each for each in pieces if (each.lead, each.number) in crowded]

    def address(at: int, part: PartitionSet) -> PartitionAddress:
        # A task for each piece, as many at a time as there can be.
        return PartitionAddress.of(files, part, at, StoredPartition())

    measured = jobs.run(
        [
            (address(at, by_lead[each.lead]), MeasureLead(each.name))
            for at, each in enumerate(large)
        ],
        f"find frequent values of {files.relation.name}",
    )
    sets = dict(by_lead)
    for lead in {each.lead for each in large}:
        part = by_lead[lead]
        counts = [found for each, found in zip(large, measured, strict=True) if each.lead == lead]
        heavy = choose_heavy(counts, part.orders[0][1:])
        examined = max(_sizes(part, pieces)) if heavy is None else 0
        sets[lead] = replace(part, heavy=heavy, examined=examined)
    large = [each for each in large if sets[each.lead].heavy is not None]
    tasks = [
        (
            address(at, sets[each.lead]),
            Scatter((sets[each.lead].partitioning,), each.name),
        )
        for at, each in enumerate(large)
    ]
    split = jobs.run(tasks, f"spread {files.relation.name}")
    remove_files(files.root, (each.name for each in large))
    gone = {each.name for each in large}
    others = [each for each in pieces if each.name not in gone]
    return [*others, *(each for made in split for each in made)], sets
