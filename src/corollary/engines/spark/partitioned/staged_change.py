"""A change of a partitioned relation whose tuples are in files, as the relation's own are.

The driver knows the names and counts of these files; tasks make them, and read them as ADDED and
REMOVED. NEW is the files of OLD and these, so that a commit has nothing left to write.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from corollary.core.engine import TableHandle
from corollary.core.states import State
from corollary.engines.local.storage.arrangement import Order
from corollary.engines.spark.partitioned.change_operations import (
    ChangePartition,
    FindClashes,
    GatherChange,
    GivenTuples,
    ScatterChange,
)
from corollary.engines.spark.partitioned.jobs import PartitionJobs
from corollary.engines.spark.partitioned.loading import PiecesByLead
from corollary.engines.spark.partitioned.operations import PartitionAddress, to_bytes
from corollary.engines.spark.partitioned.partition_files import (
    PartitionChange,
    PartitionedFiles,
    PartitionSet,
    StoredPartition,
    split_table,
)
from corollary.engines.spark.partitioned.source import PartitionSource

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
            replace(each, partitions=tuple(map(view, each.partitions))) for each in self.files.sets
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
        for part in files.sets:
            changed = {
                number: part.partitions[number].changed(change, stored.ranges)
                for number, stored in enumerate(by_lead[part.lead].partitions)
                for change in stored.changes
            }
            files = files.with_set(part.with_partitions(changed))
        return files

    def arranged(self, order: Order, jobs: PartitionJobs) -> "StagedChange":
        """Return the change with one more order: of a set that has its lead, or of a new set."""
        known = next((each for each in self.files.sets if each.lead == order[0]), None)
        if known is None:
            return StagedChange(_with_sets(self.files, [(order,)], jobs))
        if order in known.orders:
            return self
        return StagedChange(self.files.with_set(replace(known, orders=(*known.orders, order))))

    def clashes(
        self, source: PartitionSource, columns: tuple[int, ...], jobs: PartitionJobs
    ) -> list[bytes]:
        """Return tuples of NEW that agree with an added one in some columns, the lead of a set one.

        Args:
            source: the committed tuples.
            columns: the first ones of an order that both have.
            jobs: runs the job.
        """
        files = self.applied_to(source.files)
        length = len(columns)
        part, change = next(
            (after, made)
            for after, made in zip(files.sets, self.files.sets, strict=True)
            if any({*order[:length]} == {*columns} for order in after.orders)
        )
        tasks = [
            (
                PartitionAddress(
                    files.root, files.relation, part.orders, number, part.partitions[number]
                ),
                FindClashes(columns, each),
            )
            for number, stored in enumerate(change.partitions)
            for each in stored.changes
            if each.added
        ]
        return jobs.run(tasks, f"check the key of {files.relation.name}")


def pieces_of(source: PartitionSource, rows: TableHandle) -> dict[int, GivenTuples]:
    """Split tuples that are outside of this process into files, by partition; one job."""
    files = source.files
    part = files.sets[0]
    write = PiecesByLead(files.root, files.relation, (part.lead,), len(part.partitions))
    found: dict[int, list[str]] = {}
    for made in rows.map_partitions(write):
        for _, number, name in made:
            found.setdefault(number, []).append(name)
    return {number: GivenTuples(tuple(names)) for number, names in found.items()}


def rows_by_partition(source: PartitionSource, rows: pa.Table) -> dict[int, GivenTuples]:
    """Return tuples of the driver by partition."""
    part, relation = source.files.sets[0], source.files.relation
    split = split_table(rows, relation, part.lead, len(part.partitions))
    return {number: GivenTuples(rows=to_bytes(each)) for number, each in split}


def partitions_of_files(source: PartitionSource, files: PartitionedFiles) -> Given | None:
    """Return the tuples of files that are partitioned as a source is; None if they are not."""
    mine, theirs = source.files.sets[0], files.sets[0]
    if len(mine.partitions) != len(theirs.partitions) or mine.lead != theirs.lead:
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
    count = len(part.partitions)
    added, removed = (
        {number: to_bytes(each) for number, each in split_table(rows, relation, part.lead, count)}
        for rows in here or (source.no_rows, source.no_rows)
    )
    kept = {} if before is None else dict(enumerate(before.files.sets[0].partitions))
    touched = given.keys() | added.keys() | removed.keys()
    if sign is None:  # a partition without any of the tuples loses its own
        kept, added, removed = {}, {}, {}
        touched = given.keys() | {at for at, each in enumerate(part.partitions) if each.files}
    tasks = [
        (
            PartitionAddress(files.root, relation, part.orders, number, part.partitions[number]),
            ChangePartition(
                sign,
                given.get(number, GivenTuples()),
                next(iter(kept[number].changes), None) if number in kept else None,
                added.get(number),
                removed.get(number),
            ),
        )
        for number in sorted(touched)
    ]
    results = jobs.run(tasks, f"change {relation.name}")
    made = {address.number: each for (address, _), each in zip(tasks, results, strict=True)}
    empty = PartitionSet(part.orders, (StoredPartition(),) * count)
    first = replace(files, sets=(empty.with_partitions(kept | made),))
    _remove_files(files.root, (name for each in given.values() for name in each.pieces))
    return StagedChange(_with_sets(first, [each.orders for each in files.sets[1:]], jobs))


def _with_sets(
    files: PartitionedFiles, wanted: Iterable[tuple[Order, ...]], jobs: PartitionJobs
) -> PartitionedFiles:
    """Return the files of a change with sets for other leads; two jobs for all of them."""
    by_lead = {orders[0][0]: orders for orders in wanted}
    if not by_lead:
        return files
    part, relation = files.sets[0], files.relation
    count = len(part.partitions)
    scattered = [
        (
            PartitionAddress(files.root, relation, part.orders, number, stored),
            ScatterChange(change, tuple(by_lead), count),
        )
        for number, stored in enumerate(part.partitions)
        for change in stored.changes
    ]
    pieces: dict[tuple[int, int], dict[State, list[str]]] = {}
    for made in jobs.run(scattered, f"arrange {relation.name}"):
        for lead, number, sign, name in made:
            sides = pieces.setdefault((lead, number), {State.ADDED: [], State.REMOVED: []})
            sides[sign].append(name)
    gathered = [
        (
            PartitionAddress(files.root, relation, by_lead[lead], number, StoredPartition()),
            GatherChange(*(tuple(each) for each in sides.values())),
        )
        for (lead, number), sides in pieces.items()
    ]
    results = jobs.run(gathered, f"arrange {relation.name}")
    for lead, orders in by_lead.items():
        made = {
            address.number: each
            for (address, _), each in zip(gathered, results, strict=True)
            if address.orders[0][0] == lead
        }
        empty = PartitionSet(orders, (StoredPartition(),) * count)
        files = files.with_set(empty.with_partitions(made))
    names = (name for sides in pieces.values() for each in sides.values() for name in each)
    _remove_files(files.root, names)
    return files


def _remove_files(root: str, names: Iterable[str]) -> None:
    for name in names:
        (Path(root) / name).unlink(missing_ok=True)
