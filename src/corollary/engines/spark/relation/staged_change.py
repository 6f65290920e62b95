"""A change of a partitioned relation whose tuples are in files, as the relation's own are.

The driver knows the names and counts of these files; tasks make them, and read them as ADDED and
REMOVED. NEW is the files of OLD and these, so that a commit has nothing left to write.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pyarrow as pa

from corollary.core.engine import TableHandle
from corollary.core.states import State
from corollary.data_class import dataclass
from corollary.engines.spark import exchange
from corollary.engines.spark.jobs import PartitionJobs
from corollary.engines.spark.operations import (
    ChangePartition,
    GivenTuples,
    OpenChange,
    PartitionAddress,
)
from corollary.engines.spark.relation.files import (
    PartitionChange,
    PartitionedFiles,
    PartitionSet,
    StoredPartition,
    append_changes,
)
from corollary.engines.spark.relation.shared_files import remove_files
from corollary.engines.spark.relation.source import PartitionSource

Given = Mapping[int, GivenTuples]
"""The tuples that a change is made of, by partition of the first set."""


@dataclass(frozen=True, slots=True)
class StagedChange:
    """A change in files.

    Attributes:
        files: sets like those of the relation; each partition has no base and at most one change.
    """

    files: PartitionedFiles

    @property
    def added(self) -> PartitionedFiles:
        """The tuples gained."""
        return self._view(lambda change: change.only_added)

    @property
    def removed(self) -> PartitionedFiles:
        """The tuples lost."""
        return self._view(lambda change: change.only_removed)

    def _view(self, side: Callable[[PartitionChange], PartitionChange | None]) -> PartitionedFiles:
        def view(stored: StoredPartition) -> StoredPartition:
            found = [some for each in stored.changes if (some := side(each)) is not None]
            return replace(stored, changes=tuple(found)) if found else StoredPartition()

        sets = (
            each.emptied().with_partitions({at: view(each.partitions[at]) for at in each.used})
            for each in self.files.sets
        )
        return replace(self.files, sets=tuple(sets))

    @property
    def counts(self) -> tuple[int, int]:
        """How many tuples are gained and lost."""
        changes = [each for stored in self.files.sets[0].partitions for each in stored.changes]
        return sum(each.added for each in changes), sum(each.removed for each in changes)

    def applied_to(self, files: PartitionedFiles) -> PartitionedFiles:
        """Return the files of a relation with this change."""
        by_lead = {each.lead: each for each in self.files.sets}

        def applied(part: PartitionSet) -> PartitionSet:
            more, known = by_lead[part.lead], part.partitions
            changed = {at: append_changes(known[at], more.partitions[at]) for at in more.used}
            return part.with_partitions(changed)

        return replace(files, sets=tuple(map(applied, files.sets)))

    def arranged(self, part: PartitionSet, jobs: PartitionJobs) -> "StagedChange":
        """Return the change with the orders of a set of the relation; the set may be new."""
        known = next((each for each in self.files.sets if each.lead == part.lead), None)
        if known is None:
            return StagedChange(exchange.scatter_changes(self.files, [part], jobs))
        return StagedChange(self.files.with_set(replace(known, orders=part.orders)))


def pieces_of(source: PartitionSource, rows: TableHandle) -> dict[int, GivenTuples]:
    """Split tuples that are outside of this process into files, by partition; one job."""
    files = source.files
    part = files.sets[0]
    write = exchange.PiecesByPartition(files.root, files.relation, (part.partitioning,))
    found: dict[int, list[str]] = {}
    for each in (piece for made in rows.map_partitions(write) for piece in made):
        found.setdefault(each.number, []).append(each.name)
    return {number: GivenTuples(tuple(names)) for number, names in found.items()}


def rows_by_partition(source: PartitionSource, rows: pa.Table) -> dict[int, GivenTuples]:
    """Return tuples of the driver by partition."""
    split = exchange.split_bytes(rows, source.files.relation, source.files.sets[0].partitioning)
    return {number: GivenTuples(rows=each) for number, each in split.items()}


def partitions_of_files(source: PartitionSource, files: PartitionedFiles) -> Given | None:
    """Return the tuples of files that are partitioned as a source is; None if they are not."""
    mine, theirs = source.files.sets[0], files.sets[0]
    if mine.partitioning != theirs.partitioning:
        return None
    relation = source.files.relation
    return {
        number: GivenTuples(
            partition=PartitionAddress(files.root, relation, theirs.orders, number, stored)
        )
        for number, stored in enumerate(theirs.partitions)
        if stored.files
    }


def stage_change(
    source: PartitionSource,
    sign: State | None,
    given: Given,
    before: StagedChange | None = None,
    here: tuple[pa.Table, pa.Table] | None = None,
) -> StagedChange:
    """Change a relation by tuples that tasks read; return the change, with what was open before.

    One job, and two more if there are several sets.

    Args:
        source: the committed tuples.
        sign: ADDED to insert, REMOVED to delete, None to replace all tuples.
        given: the tuples.
        before: the change that is open, in files.
        here: the tuples added and removed by the change that is open, if the driver has them.
    """
    files, jobs = source.files, source.jobs
    part, relation = files.sets[0], files.relation
    opened = exchange.split_open_change(
        *(here or (source.no_rows, source.no_rows)), relation, part.partitioning
    )
    kept = {} if before is None else dict(enumerate(before.files.sets[0].partitions))
    touched = given.keys() | opened.keys()
    if sign is None:  # a partition without any of the tuples loses its own
        kept, opened = {}, {}
        touched = given.keys() | {at for at, each in enumerate(part.partitions) if each.files}
    tasks = [
        (
            PartitionAddress.of(files, part, number),
            ChangePartition(
                sign,
                given.get(number, GivenTuples()),
                next(iter(kept[number].changes), None) if number in kept else None,
                opened.get(number, OpenChange()),
            ),
        )
        for number in sorted(touched)
    ]
    results = jobs.run(tasks, f"change {relation.name}")
    made = {address.number: each for (address, _), each in zip(tasks, results, strict=True)}
    first = replace(files, sets=(part.emptied().with_partitions(kept | made),))
    remove_files(files.root, (name for each in given.values() for name in each.pieces))
    return StagedChange(exchange.scatter_changes(first, files.sets[1:], jobs))


def stage_partitions(source: PartitionSource, part: PartitionSet) -> StagedChange:
    """Return a change whose files there are for one set; two more jobs if there are others."""
    others = [each for each in source.files.sets if each.lead != part.lead]
    files = exchange.scatter_changes(replace(source.files, sets=(part,)), others, source.jobs)
    made = {each.lead: each for each in files.sets}
    return StagedChange(replace(files, sets=tuple(made[each.lead] for each in source.files.sets)))
