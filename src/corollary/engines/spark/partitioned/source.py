"""A partitioned relation at one version, as the driver asks for it: each question is one job."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from corollary.core.arrow import arrow_type
from corollary.core.arrow_buffers import bool_array, index_array
from corollary.core.engine import ValueRange
from corollary.engines.local.storage.arrangement import Order
from corollary.engines.local.storage.layout import Mask
from corollary.engines.spark.partitioned import operations
from corollary.engines.spark.partitioned.change_files import write_changes
from corollary.engines.spark.partitioned.jobs import PartitionJobs
from corollary.engines.spark.partitioned.open_partition import new_name
from corollary.engines.spark.partitioned.operations import PartitionAddress, from_bytes, to_bytes
from corollary.engines.spark.partitioned.partition_files import (
    ColumnRanges,
    PartitionedFiles,
    PartitionSet,
    StoredPartition,
    partition_count,
    partition_of,
    split_table,
)

BUILD_MIN_TUPLES = 1 << 16
"""Tasks write the files of a change from so many tuples on; the driver writes those of fewer."""


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
        return {
            number: PartitionAddress(
                self.files.root, self.files.relation, part.orders, number, stored
            )
            for number, stored in enumerate(part.partitions)
            if stored.files
        }

    def _ask(
        self,
        part: PartitionSet,
        make: Callable[[int], operations.PartitionOperation | None],
        what: str,
    ) -> dict[int, Any]:
        """Run an operation on each partition for which one is made; return the results."""
        made = {
            number: (address, operation)
            for number, address in self._addresses(part).items()
            if (operation := make(number)) is not None
        }
        results = self.jobs.run(list(made.values()), f"{what} {self.files.relation.name}")
        return dict(zip(made, results, strict=True))

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

    def match(self, order: Order, keys: pa.Table) -> pa.Table:
        """Return the tuples whose first columns in an order are one of some distinct keys."""
        part = self.set_for(order)
        assert part is not None, f"no partitions for {order}"
        count, type_ = len(part.partitions), self.files.relation.types[order[0]]
        rows = _rows_by_partition(partition_of(keys.column(0), type_, count))
        parts = {number: keys.take(index_array(each)) for number, each in rows.items()}

        def make(number: int) -> operations.PartitionOperation | None:
            asked = parts.get(number)
            return None if asked is None else operations.Match(order, to_bytes(asked))

        return self.joined(self._ask(part, make, "probe").values())

    def contains(self, rows: pa.Table) -> Mask:
        """Return for each tuple whether it is there."""
        part = self.files.sets[0]
        count, type_ = len(part.partitions), self.files.relation.types[part.lead]
        places = _rows_by_partition(partition_of(rows.column(part.lead), type_, count))
        parts = {number: rows.take(index_array(each)) for number, each in places.items()}

        def make(number: int) -> operations.PartitionOperation | None:
            asked = parts.get(number)
            return None if asked is None else operations.Contain(to_bytes(asked))

        result = np.zeros(rows.num_rows, np.bool_)
        for number, mask in self._ask(part, make, "look up").items():
            result[places[number]] = mask
        return result

    def read(self) -> pa.Table:
        """Return all tuples: for what users read, and small relations."""
        found = self._ask(self.files.sets[0], lambda _: operations.ReadAll(), "read")
        return self.joined(found.values())

    def subtract(self, rows: pa.Table) -> pa.Table:
        """Return the tuples that are not among some rows."""
        part, relation = self.files.sets[0], self.files.relation
        known = dict(split_table(rows, relation, part.lead, len(part.partitions)))
        empty = to_bytes(self.no_rows)

        def make(number: int) -> operations.PartitionOperation:
            asked = known.get(number)
            return operations.Subtract(empty if asked is None else to_bytes(asked))

        return self.joined(self._ask(part, make, "compare").values())

    def compare(self, files: PartitionedFiles) -> tuple[pa.Table, pa.Table]:
        """Return the tuples that files have and this relation has not, and the reverse."""
        part, others = self.files.sets[0], files.sets[0]
        if len(part.partitions) != len(others.partitions):
            rows = PartitionSource(files, self.jobs).read()
            return rows.filter(bool_array(~self.contains(rows))), self.subtract(rows)
        tasks = []
        for number, (mine, theirs) in enumerate(
            zip(part.partitions, others.partitions, strict=True)
        ):
            if mine.files or theirs.files:
                relation = self.files.relation
                one, two = (
                    PartitionAddress(each.root, relation, part.orders, number, stored)
                    for each, stored in ((self.files, mine), (files, theirs))
                )
                tasks.append((one, operations.Compare(two)))
        found = self.jobs.run(tasks, f"compare {self.files.relation.name}")
        added, removed = (self.joined(each[at] for each in found) for at in range(2))
        return added, removed

    def duplicates(self, columns: Sequence[int]) -> pa.Table:
        """Return the tuples that agree with another one in some columns, the lead of a set one."""
        part = next(each for each in self.files.sets if each.lead in columns)
        found = self._ask(
            part, lambda _: operations.FindDuplicates(tuple(columns)), "check the key of"
        )
        return self.joined(found.values())

    def is_unique(self, columns: Sequence[int]) -> bool:
        """Return whether no two tuples agree in some columns, the lead of a set one of them."""
        part = next(each for each in self.files.sets if each.lead in columns)
        found = self._ask(
            part, lambda _: operations.CheckUnique(tuple(columns)), "look for a key of"
        )
        return all(found.values())

    def within(self, boxes: Sequence[Mapping[int, ValueRange]]) -> pa.Table:
        """Return the tuples in one of several boxes, each once, perhaps with others."""
        found = self._ask(
            self.files.sets[0], lambda _: operations.FindWithin(tuple(boxes)), "select from"
        )
        return self.joined(found.values())

    def apply(
        self, function: Callable[[pa.Table], Any], added: pa.Table, removed: pa.Table
    ) -> list[Any]:
        """Return the results of a function on each partition, with an open change."""
        part, relation = self.files.sets[0], self.files.relation
        changes = [
            dict(split_table(each, relation, part.lead, len(part.partitions)))
            for each in (added, removed)
        ]

        def bytes_of(number: int) -> list[bytes | None]:
            return [to_bytes(each[number]) if number in each else None for each in changes]

        tasks = [
            (
                PartitionAddress(self.files.root, relation, part.orders, number, stored),
                operations.Apply(function, *bytes_of(number)),
            )
            for number, stored in enumerate(part.partitions)
            if stored.files or number in changes[0]
        ]
        return [each for made in self.jobs.run(tasks, f"use {relation.name}") for each in made]

    # --- writing -------------------------------------------------------------------------------

    def changed(self, added: pa.Table, removed: pa.Table, ranges: ColumnRanges) -> PartitionedFiles:
        """Write a change; return the files with it, folded where that is due.

        Args:
            added: tuples that are not in the relation.
            removed: tuples of the relation.
            ranges: of the codes of added tuples.
        """
        files = self.files
        for part in files.sets:
            files = files.with_set(self._changed_set(part, added, removed, ranges))
        return PartitionSource(files, self.jobs).folded()

    def _changed_set(
        self, part: PartitionSet, added: pa.Table, removed: pa.Table, ranges: ColumnRanges
    ) -> PartitionSet:
        relation, root = self.files.relation, self.files.root
        count = len(part.partitions)
        gained = dict(split_table(added, relation, part.lead, count))
        lost = dict(split_table(removed, relation, part.lead, count))
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
                PartitionAddress(root, relation, part.orders, number, StoredPartition()),
                operations.Build(data),
            )
            for number, data in built.items()
        ]
        results = self.jobs.run(tasks, f"write {relation.name}")
        return part.with_partitions(changed | dict(zip(built, results, strict=True)))

    def folded(self) -> PartitionedFiles:
        """Write partitions anew that have many changes, merge files; return the files."""
        files, relation = self.files, self.files.relation
        if files.is_crowded:
            return self._split(partition_count(files.size, self.jobs.slots))
        due: list[tuple[PartitionAddress, operations.PartitionOperation]] = []
        for part in files.sets:
            for address in self._addresses(part).values():
                if address.stored.is_due:
                    due.append((address, operations.Fold()))
                elif (first := address.stored.merged_from) is not None:
                    due.append((address, operations.MergeChanges(first)))
        results = self.jobs.run(due, f"fold {relation.name}")
        for (address, operation), made in zip(due, results, strict=True):
            if isinstance(operation, operations.MergeChanges):
                made = address.stored.with_merged(operation.first, made)
            current = next(each for each in files.sets if each.lead == address.orders[0][0])
            files = files.with_set(current.with_partitions({address.number: made}))
        return files

    def _split(self, count: int) -> PartitionedFiles:
        """Make more partitions; return the files."""
        tasks = [
            (address, operations.Split(count))
            for part in self.files.sets
            for address in self._addresses(part).values()
        ]
        results = self.jobs.run(tasks, f"split {self.files.relation.name}")
        files = self.files
        for part in files.sets:
            empty = replace(part, partitions=(StoredPartition(),) * count)
            made = {
                number: stored
                for (address, _), found in zip(tasks, results, strict=True)
                if address.orders == part.orders
                for number, stored in found.items()
            }
            files = files.with_set(empty.with_partitions(made))
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
        count = len(primary.partitions)
        scattered = self._ask(
            primary, lambda _: operations.Scatter(order[0], count), "arrange"
        ).values()
        pieces: dict[int, list[str]] = {}
        for each in scattered:
            for number, name in each:
                pieces.setdefault(number, []).append(name)
        tasks = [
            (
                PartitionAddress(files.root, files.relation, (order,), number, StoredPartition()),
                operations.Gather(tuple(names)),
            )
            for number, names in pieces.items()
        ]
        results = self.jobs.run(tasks, f"arrange {files.relation.name}")
        for names in pieces.values():
            for name in names:
                (Path(files.root) / name).unlink(missing_ok=True)
        empty = PartitionSet((order,), (StoredPartition(),) * count)
        return files.with_set(empty.with_partitions(dict(zip(pieces, results, strict=True))))


def _rows_by_partition(numbers: Any) -> dict[int, Any]:
    """Return the rows of each partition that has some."""
    rows = np.argsort(numbers, kind="stable")
    ordered = numbers[rows]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    parts = np.split(rows, starts[1:])
    return dict(zip(ordered[starts].tolist(), parts, strict=True)) if len(rows) else {}
