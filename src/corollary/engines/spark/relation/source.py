"""A partitioned relation at one version, as the driver asks for it: each question is one job."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.core.arrow import arrow_type
from corollary.core.arrow_buffers import index_array
from corollary.core.engine import ValueRange
from corollary.data_class import dataclass
from corollary.engines.local.storage.arrangement import Order
from corollary.engines.local.storage.layout import Mask
from corollary.engines.spark import operations
from corollary.engines.spark.exchange import (
    MeasureLead,
    Scatter,
    gather,
    gather_pieces,
    split_bytes,
    split_open_change,
)
from corollary.engines.spark.jobs import PartitionJobs, PartitionTask
from corollary.engines.spark.operations import OpenChange, PartitionAddress, from_bytes, to_bytes
from corollary.engines.spark.relation.change_files import write_changes
from corollary.engines.spark.relation.files import (
    ColumnRanges,
    PartitionedFiles,
    PartitionSet,
    StoredPartition,
    append_changes,
)
from corollary.engines.spark.relation.open_partition import new_name
from corollary.engines.spark.relation.partitioning import (
    Partitioning,
    choose_heavy,
    partition_count,
    split_table,
)

Rows = npt.NDArray[np.int64]
"""Positions of rows of a table."""

BUILD_MIN_TUPLES = 1 << 16
"""Tasks write the files of a change of at least this size; the driver writes smaller ones."""

TITLE_MAX_NAMES = 8
"""The title of a job names no more relations."""


@dataclass(frozen=True, slots=True)
class PartitionSource:
    """The files of a relation, and the jobs that read and write them."""

    files: PartitionedFiles
    jobs: PartitionJobs

    @property
    def no_rows(self) -> pa.Table:
        """No tuples, with the columns of the relation."""
        relation = self.files.relation
        arrays = [pa.array([], arrow_type(type_)) for type_ in relation.types]
        return pa.table(arrays, names=list(relation.columns))

    def _addresses(self, part: PartitionSet) -> dict[int, PartitionAddress]:
        """Return the partitions of a set that hold tuples."""
        return {number: PartitionAddress.of(self.files, part, number) for number in part.used}

    def _asked(
        self, part: PartitionSet, rows: Mapping[int, Rows]
    ) -> Iterator[tuple[PartitionAddress, Rows]]:
        """Yield the partitions that hold tuples and that some rows are looked up in, with these."""
        for number in sorted(rows):
            if part.partitions[number].files:
                yield PartitionAddress.of(self.files, part, number), rows[number]

    def _ask(
        self, part: PartitionSet, make: Callable[[int], operations.PartitionOperation], what: str
    ) -> list[Any]:
        """Have something done with each partition that holds tuples; return the results."""
        tasks = [(address, make(number)) for number, address in self._addresses(part).items()]
        return self.jobs.run(tasks, f"{what} {self.files.relation.name}")

    def joined(self, found: Iterable[bytes]) -> pa.Table:
        """Return the tuples that tasks have returned as one table."""
        empty = self.no_rows
        tables = (from_bytes(each) for each in found)
        return pa.concat_tables(
            [
                empty,
                *(
                    each if each.schema == empty.schema else each.cast(empty.schema)
                    for each in tables
                    if each.num_rows
                ),
            ]
        )

    # --- reading -------------------------------------------------------------------------------

    def set_for(self, order: Order) -> PartitionSet | None:
        """Return the set that answers probes in an order, None if there is none with its lead."""
        return next((each for each in self.files.sets if each.lead == order[0]), None)

    def match_tasks(self, order: Order, keys: pa.Table) -> list[PartitionTask]:
        """Return what tasks do to find the tuples whose first columns are some distinct keys."""
        part = self.set_for(order)
        assert part is not None, f"no partitions for {order}"
        columns, types = order[: keys.num_columns], self.files.relation.types
        rows = part.partitioning.rows_by_partition(keys, columns, types)
        return [
            (address, operations.Match(order, to_bytes(keys.take(index_array(some)))))
            for address, some in self._asked(part, rows)
        ]

    def lookup(self, rows: pa.Table) -> "TupleLookup":
        """Return what tasks do to say for each tuple whether it is there."""
        part = self.files.sets[0]
        types = self.files.relation.types
        places = part.partitioning.rows_by_partition(rows, range(len(types)), types)
        asked = list(self._asked(part, places))
        tasks: list[PartitionTask] = [
            (address, operations.Contain(to_bytes(rows.take(index_array(some)))))
            for address, some in asked
        ]
        return TupleLookup(tasks, [some for _, some in asked], rows.num_rows)

    def read(self) -> pa.Table:
        """Return all tuples: for what users read, and small relations."""
        found = self._ask(self.files.sets[0], lambda _: operations.ReadAll(), "read")
        return self.joined(found)

    def subtract(self, rows: pa.Table) -> pa.Table:
        """Return the tuples that are not among some rows."""
        part, relation = self.files.sets[0], self.files.relation
        known, empty = split_bytes(rows, relation, part.partitioning), to_bytes(self.no_rows)
        found = self._ask(
            part, lambda number: operations.Subtract(known.get(number, empty)), "compare"
        )
        return self.joined(found)

    def unites(self, columns: Sequence[int]) -> bool:
        """Whether a set has tuples that agree in some columns in one partition."""
        return any(each.partitioning.unites(columns) for each in self.files.sets)

    def is_unique(self, columns: Sequence[int]) -> bool:
        """Return whether it is known that no two tuples agree in some columns."""
        if not self.unites(columns):
            return False
        part = next(each for each in self.files.sets if each.partitioning.unites(columns))
        found = self._ask(
            part, lambda _: operations.CheckUnique(tuple(columns)), "look for a key of"
        )
        return all(found)

    def within(self, boxes: Sequence[Mapping[int, ValueRange]]) -> pa.Table:
        """Return the tuples in one of several boxes, each once, perhaps with others."""
        found = self._ask(
            self.files.sets[0], lambda _: operations.FindWithin(tuple(boxes)), "select from"
        )
        return self.joined(found)

    def apply(
        self, function: Callable[[pa.Table], Any], added: pa.Table, removed: pa.Table
    ) -> list[Any]:
        """Return the results of a function on each partition, with an open change."""
        part, relation = self.files.sets[0], self.files.relation
        changes = split_open_change(added, removed, relation, part.partitioning)
        tasks = [
            (
                PartitionAddress.of(self.files, part, number),
                operations.Apply(function, changes.get(number, OpenChange())),
            )
            for number, stored in enumerate(part.partitions)
            if stored.files or number in changes
        ]
        return [each for made in self.jobs.run(tasks, f"use {relation.name}") for each in made]

    # --- writing -------------------------------------------------------------------------------

    def changed(self, added: pa.Table, removed: pa.Table, ranges: ColumnRanges) -> PartitionedFiles:
        """Write a change; return the files with it.

        Args:
            added: tuples that are not in the relation.
            removed: tuples of the relation.
            ranges: of the codes of added tuples.
        """
        files = self.files
        for part in files.sets:
            files = files.with_set(self._changed_set(part, added, removed, ranges))
        return files

    def _changed_set(
        self, part: PartitionSet, added: pa.Table, removed: pa.Table, ranges: ColumnRanges
    ) -> PartitionSet:
        relation, root = self.files.relation, self.files.root
        count = len(part.partitions)
        gained = dict(split_table(added, relation, part.partitioning))
        lost = dict(split_table(removed, relation, part.partitioning))
        empty = added.slice(0, 0)
        built: dict[int, bytes] = {}
        changes: dict[int, tuple[pa.Table, pa.Table]] = {}
        for number in sorted(gained.keys() | lost.keys()):
            rows = gained.get(number, empty)
            if not part.partitions[number].files and rows.num_rows * count >= BUILD_MIN_TUPLES:
                built[number] = to_bytes(rows)
            else:
                changes[number] = rows, lost.get(number, empty)
        # One file for all of them: to make a file takes longer than to write a few tuples.
        name = new_name(relation.name, "change")
        written = write_changes(root, name, list(changes.values())) if changes else []
        changed = {
            number: part.partitions[number].changed(change, ranges)
            for number, change in zip(changes, written, strict=True)
        }
        tasks = [
            (
                PartitionAddress.of(self.files, part, number, StoredPartition()),
                operations.Build(data),
            )
            for number, data in built.items()
        ]
        results = self.jobs.run(tasks, f"write {relation.name}")
        return part.with_partitions(changed | dict(zip(built, results, strict=True)))

    def folded(self) -> PartitionedFiles:
        """Return the files, folded where that is due: see `fold_together`."""
        return fold_together([self])[0]

    def balanced(self) -> PartitionedFiles:
        """Return the files with no partition that has too many tuples.

        There are more partitions then, or those of heavy values are spread.
        """
        files = self.files
        if self.jobs.can_scan:
            if files.is_crowded:
                files = self.split(partition_count(files.size))
            for part in files.sets:
                if part.oversized:
                    files = files.with_set(self._spread(part))
        return files

    @property
    def due_folds(self) -> list[PartitionTask]:
        """What tasks do with partitions that have many changes."""
        due: list[PartitionTask] = []
        for part in self.files.sets:
            for address in (PartitionAddress.of(self.files, part, number) for number in part.due):
                if address.stored.is_due:
                    due.append((address, operations.Fold()))
                elif (first := address.stored.merged_from) is not None:
                    due.append((address, operations.MergeChanges(first)))
        return due

    def _spread(self, part: PartitionSet) -> PartitionSet:
        """Spread the tuples of heavy values in the largest partitions of a set; return the set.

        One job finds the values, and if there are some, one takes their tuples out, one adds them.
        """
        relation, addresses = self.files.relation, self._addresses(part)
        measured = self.jobs.run(
            [(addresses[each], MeasureLead()) for each in part.oversized],
            f"find frequent values of {relation.name}",
        )
        heavy = choose_heavy(measured, part.orders[0][1:], part.heavy)
        if heavy is None:
            return replace(part, examined=int(part.figures.sizes.max()))
        spread = replace(part, heavy=heavy, examined=0)
        # Tuples of values that were light so far are in the large partitions only.
        is_same = part.heavy is None or part.heavy.columns == heavy.columns
        emptied = part.oversized if is_same else list(addresses)
        scattered = self.jobs.run(
            [(addresses[each], Scatter((spread.partitioning,))) for each in emptied],
            f"spread {relation.name}",
        )
        pieces = [piece for made in scattered for piece in made]
        title = f"spread {relation.name}"
        made = gather(self.files, [part], pieces, self.jobs, title=title, bases=emptied)[part.lead]
        after = dict.fromkeys(emptied, StoredPartition())
        for number, stored in made.items():
            is_new, known = number in emptied, part.partitions[number]
            after[number] = stored if is_new else append_changes(known, stored)
        return spread.with_partitions(after)

    def split(self, count: int) -> PartitionedFiles:
        """Make more partitions; return the files."""
        tasks = [
            (address, operations.Split(part.emptied(count).partitioning))
            for part in self.files.sets
            for address in self._addresses(part).values()
        ]
        results = self.jobs.run(tasks, f"split {self.files.relation.name}")
        files = self.files
        for part in files.sets:
            made = {
                number: stored
                for (address, _), found in zip(tasks, results, strict=True)
                if address.orders == part.orders
                for number, stored in found.items()
            }
            files = files.with_set(part.emptied(count).with_partitions(made))
        return files

    def arranged(self, order: Order) -> PartitionedFiles:
        """Return the files with one more order: of a set that has its lead, or of a new set."""
        files, known = self.files, self.set_for(order)
        if known is not None:
            if order in known.orders:
                return files
            # Tasks sort in memory until the next fold writes the order as well.
            return files.with_set(replace(known, orders=(*known.orders, order)))
        primary = files.sets[0]
        part = replace(primary.emptied(), orders=(order,), heavy=None, examined=0)
        return self._rearranged(files, part, is_final=False)

    def with_primary(self) -> PartitionedFiles:
        """Return the files of a relation with one set, and before it one with the primary order."""
        (part,) = self.files.sets
        if part.lead == 0:
            return self.files
        primary = tuple(range(len(self.files.relation.types)))
        first = replace(part.emptied(), orders=(primary,))
        files = replace(self.files, sets=(first, part))
        return self._rearranged(files, first, is_final=False)

    def partitioned_as(self, partitioning: Partitioning) -> PartitionedFiles:
        """Return the files with the first set only, partitioned by its lead in a given way."""
        part = replace(self.files.sets[0].emptied(partitioning.count), heavy=partitioning.heavy)
        return self._rearranged(replace(self.files, sets=(part,)), part)

    def _rearranged(
        self, files: PartitionedFiles, part: PartitionSet, *, is_final: bool = True
    ) -> PartitionedFiles:
        """Return files with a set, which has no tuples yet, of the tuples that are here."""
        scatter = Scatter((part.partitioning,))
        scattered = self._ask(self.files.sets[0], lambda _: scatter, "arrange")
        pieces = [piece for each in scattered for piece in each]
        return gather_pieces(files, [part], pieces, self.jobs, "arrange", is_final=is_final)


def fold_together(sources: Sequence[PartitionSource]) -> list[PartitionedFiles]:
    """Write partitions anew that have many changes, or merge these; return the files of each.

    All of that is one job; where partitions have too many tuples for it, that is fixed before.
    """
    balanced = [PartitionSource(each.balanced(), each.jobs) for each in sources]
    due = [(at, task) for at, each in enumerate(balanced) for task in each.due_folds]
    title = joint_title("fold", (address.relation.name for _, (address, _) in due))
    results = sources[0].jobs.run([task for _, task in due], title) if due else []
    found: dict[tuple[int, int], dict[int, StoredPartition]] = {}
    for (at, (address, operation)), made in zip(due, results, strict=True):
        if isinstance(operation, operations.MergeChanges):
            made = address.stored.with_merged(operation.first, made)
        found.setdefault((at, address.orders[0][0]), {})[address.number] = made
    folded = [each.files for each in balanced]
    for (at, lead), made in found.items():
        part = next(each for each in folded[at].sets if each.lead == lead)
        folded[at] = folded[at].with_set(part.with_partitions(made))
    return folded


def joint_title(verb: str, relations: Iterable[str]) -> str:
    """Return the title of a job on some relations.

    >>> joint_title("probe", "abba")
    'probe a, b'
    """
    names = list(dict.fromkeys(relations))
    more = len(names) - TITLE_MAX_NAMES
    return f"{verb} {', '.join(names[:TITLE_MAX_NAMES])}{f' and {more} more' if more > 0 else ''}"


@dataclass(frozen=True, slots=True)
class TupleLookup:
    """Tuples that are looked up.

    Attributes:
        tasks: one for each partition that may have some.
        places: for each task the rows that it looks up.
        count: of all rows.
    """

    tasks: list[PartitionTask]
    places: list[Any]
    count: int

    def mask(self, found: Sequence[Mask]) -> Mask:
        """Return for each row whether it is there, by what the tasks have found."""
        result = np.zeros(self.count, np.bool_)
        for rows, mask in zip(self.places, found, strict=True):
            result[rows] = mask
        return result
