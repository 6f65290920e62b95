"""Makes partitions of pieces: files of tuples, as a first load or other partitions give them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from corollary.core.engine import TableHandle
from corollary.core.program import Relation
from corollary.engines.local.storage.arrangement import Order
from corollary.engines.spark.jobs import PartitionJobs
from corollary.engines.spark.partitioned import operations
from corollary.engines.spark.partitioned.operations import PartitionAddress, TuplePiece
from corollary.engines.spark.partitioned.partition_files import (
    PartitionedFiles,
    PartitionSet,
    StoredPartition,
)
from corollary.engines.spark.partitioned.partitioning import (
    choose_heavy,
    oversized_partitions,
    partition_count,
)


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
    count = partition_count(len(rows), jobs.slots)
    files = PartitionedFiles.empty(root, relation, orders, count)
    partitionings = tuple(each.partitioning for each in files.sets)
    write = operations.PiecesByPartition(root, relation, partitionings)
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
    names: dict[tuple[int, int], list[str]] = {}
    for each in pieces:
        names.setdefault((each.lead, each.number), []).append(each.name)
    tasks = [
        (
            PartitionAddress.of(files, by_lead[lead], number, StoredPartition()),
            operations.Gather(tuple(some)),
        )
        for (lead, number), some in names.items()
    ]
    results = jobs.run(tasks, title)
    remove_files(files.root, (each.name for each in pieces))
    made: dict[int, dict[int, StoredPartition]] = {lead: {} for lead in by_lead}
    for (lead, number), stored in zip(names, results, strict=True):
        made[lead][number] = stored
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
            (address(at, by_lead[each.lead]), operations.MeasureLead(each.name))
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
            operations.Scatter((sets[each.lead].partitioning,), each.name),
        )
        for at, each in enumerate(large)
    ]
    split = jobs.run(tasks, f"spread {files.relation.name}")
    remove_files(files.root, (each.name for each in large))
    gone = {each.name for each in large}
    others = [each for each in pieces if each.name not in gone]
    return [*others, *(each for made in split for each in made)], sets


def remove_files(root: str, names: Iterable[str]) -> None:
    """Remove files below a root, if they are there."""
    for name in names:
        (Path(root) / name).unlink(missing_ok=True)
