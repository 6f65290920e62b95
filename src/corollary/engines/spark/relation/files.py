"""The files of a partitioned relation: names, counts and statistics, no tuples.

A relation is stored once for each column that probes begin with, its *lead*: a `PartitionSet`. The
partition of a tuple follows from its value there (`Partitioning`). A partition is a *base*, which
is a directory of index files in all orders of the set, and small files of changes since. Files are
never modified and have unique names; whoever commits a `PartitionedFiles` makes them the relation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from corollary.core.program import Relation
from corollary.data_class import dataclass
from corollary.engines.local.storage.arrangement import Order
from corollary.engines.local.storage.code_range import CodeRange
from corollary.engines.spark.relation.partitioning import (
    HeavyValues,
    Partitioning,
    needs_more_partitions,
    oversized_partitions,
)

FOLD_DIVISOR = 4
"""A partition is written anew if its changes have one tuple for this many of its base."""

FOLD_MIN_TUPLES = 1 << 13
"""Fewer tuples of changes than this are no reason to do so: a base has a block at least."""

MERGE_MIN_FILES = 16
"""From this number of files of changes on, the later ones become one…"""

MERGE_RATIO = 2
"""…as long as a file has at most this many times the tuples of all after it."""

ColumnRanges = tuple[CodeRange | None, ...]
"""For each column the codes of its integers, None where a value has no code of its own."""


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """The tuples that a partition gained and lost, in a file that others may share.

    Attributes:
        file: its path below the root.
        added, removed: how many tuples of each.
        merged: the files that it replaces, with the same effect.
        first: where in the file the added tuples begin; the removed ones follow.
        is_reversed: whether the tuples that count as added are those that another change removes.
    """

    file: str
    added: int
    removed: int
    merged: tuple[str, ...] = ()
    first: int = 0
    is_reversed: bool = False

    @property
    def only_added(self) -> "PartitionChange | None":
        """The tuples gained, as a change that adds them; None if there are none."""
        return PartitionChange(self.file, self.added, 0, (), self.first) if self.added else None

    @property
    def only_removed(self) -> "PartitionChange | None":
        """The tuples lost, as a change that adds them; None if there are none."""
        if not self.removed:
            return None
        first = self.first + self.added
        return PartitionChange(self.file, self.removed, 0, (), first, is_reversed=True)

    @property
    def size(self) -> int:
        """How many tuples it has."""
        return self.added + self.removed


@dataclass(frozen=True, slots=True)
class StoredPartition:
    """The files of one partition, and what is known of its tuples.

    Attributes:
        base: the directory of index files below the root, None if there is none.
        base_tuples: how many tuples the base has.
        changes: since the base, in their order.
        distinct: about how many distinct values each column of the relation has in the base.
        ranges: the codes that the columns of base and changes have.
    """

    base: str | None = None
    base_tuples: int = 0
    changes: tuple[PartitionChange, ...] = ()
    distinct: tuple[int, ...] = ()
    ranges: ColumnRanges = ()

    @property
    def size(self) -> int:
        """How many tuples it has."""
        return self.base_tuples + sum(each.added - each.removed for each in self.changes)

    @property
    def is_due(self) -> bool:
        """Whether it should be folded: written anew with its changes."""
        changed = sum(each.size for each in self.changes)
        return changed >= max(FOLD_MIN_TUPLES, self.base_tuples // FOLD_DIVISOR)

    @property
    def merged_from(self) -> int | None:
        """The first of the changes before the last that should be one file, None if none should.

        The last one stays: tasks that have the partition open have not applied it yet.
        """
        last = len(self.changes) - 2
        if last + 2 < MERGE_MIN_FILES:
            return None
        first, later = last, self.changes[last].size
        while first and self.changes[first - 1].size <= MERGE_RATIO * later:
            first -= 1
            later += self.changes[first].size
        return first if first < last else None

    @property
    def files(self) -> list[str]:
        """Its files and directories below the root."""
        base = [] if self.base is None else [self.base]
        return [*base, *(each.file for each in self.changes)]

    def with_merged(self, first: int, change: PartitionChange) -> "StoredPartition":
        """Return the partition with its changes from one to before the last replaced by one."""
        return replace(self, changes=(*self.changes[:first], change, self.changes[-1]))

    def changed(self, change: PartitionChange, ranges: ColumnRanges) -> "StoredPartition":
        """Return the partition with one more change, whose tuples have codes in some ranges."""
        joined = join_ranges([each for each in (self.ranges, ranges) if each])
        return replace(self, changes=(*self.changes, change), ranges=joined)


@dataclass(frozen=True, slots=True, eq=False)
class PartitionFigures:
    """Counts and statistics of all partitions of a set, kept up by those that change.

    Attributes:
        partitions: those that they are of.
        sizes, bases, changed: the tuples of each partition, of its base, of its changes.
        changes, files: how many files of changes, and files, each has.
        distinct: a row for each partition: about how many values each column has, -1 if unknown.
        ranges: the codes that columns may have in one of them, () if that is not known.
    """

    partitions: tuple[StoredPartition, ...]
    sizes: npt.NDArray[np.int64]
    bases: npt.NDArray[np.int64]
    changed: npt.NDArray[np.int64]
    changes: npt.NDArray[np.int64]
    files: npt.NDArray[np.int64]
    distinct: npt.NDArray[np.int64]
    ranges: ColumnRanges

    @classmethod
    def of(cls, partitions: tuple[StoredPartition, ...], arity: int) -> "PartitionFigures":
        """Return those of partitions of a relation with some number of columns."""
        none = np.zeros(len(partitions), np.int64)
        unknown = np.full((len(partitions), arity), -1)
        used = {at: each for at, each in enumerate(partitions) if each.base or each.changes}
        figures = cls(partitions, none, none, none, none, none, unknown, ())
        return figures.updated(partitions, used)

    def updated(
        self, partitions: tuple[StoredPartition, ...], changed: Mapping[int, StoredPartition]
    ) -> "PartitionFigures":
        """Return those of partitions of which some are others now."""
        if not changed:
            return replace(self, partitions=partitions)
        numbers = np.array((self.sizes, self.bases, self.changed, self.changes, self.files))
        distinct, at, some = self.distinct.copy(), list(changed), changed.values()
        numbers[:, at] = np.transpose(
            [
                (
                    each.size,
                    each.base_tuples,
                    sum(change.size for change in each.changes),
                    len(each.changes),
                    len(each.files),
                )
                for each in some
            ]
        )
        distinct[at] = [each.distinct or (-1,) * distinct.shape[1] for each in some]
        ranges = {self.ranges, *(each.ranges for each in some)} - {()}
        joined = join_ranges(sorted(ranges, key=repr)) if ranges else ()
        sizes, bases, tuples, changes, files = numbers
        return PartitionFigures(partitions, sizes, bases, tuples, changes, files, distinct, joined)


@dataclass(frozen=True, slots=True)
class PartitionSet:
    """All tuples of a relation, partitioned by one column.

    Attributes:
        orders: the orders of the index files; all begin with the lead.
        heavy: the values of the lead whose tuples are in all partitions.
        examined: the tuples of a partition that was found to have no other heavy values.
        known: figures, perhaps of an earlier version.
    """

    orders: tuple[Order, ...]
    partitions: tuple[StoredPartition, ...]
    heavy: HeavyValues | None = None
    examined: int = 0
    known: PartitionFigures | None = field(default=None, compare=False, repr=False)

    @property
    def figures(self) -> PartitionFigures:
        """Counts and statistics of the partitions."""
        found = self.known
        if found is None or found.partitions is not self.partitions:
            found = PartitionFigures.of(self.partitions, len(self.orders[0]))
            object.__setattr__(self, "known", found)
        return found

    @property
    def lead(self) -> int:
        """The column whose values decide the partition."""
        return self.orders[0][0]

    @property
    def partitioning(self) -> Partitioning:
        """Which partition a tuple is in."""
        return Partitioning(self.lead, len(self.partitions), self.heavy)

    @property
    def size(self) -> int:
        """How many tuples there are."""
        return int(self.figures.sizes.sum())

    @property
    def used(self) -> list[int]:
        """The partitions that have files."""
        return np.flatnonzero(self.figures.files).tolist()

    @property
    def is_change(self) -> bool:
        """Whether it is the set of a change: no partition has a base, or several changes."""
        found = self.figures
        return bool((found.changes == found.files).all() and (found.files <= 1).all())

    @property
    def due(self) -> list[int]:
        """The partitions that may have to be folded, or to have their files of changes merged."""
        found = self.figures
        is_due = found.changed >= np.maximum(FOLD_MIN_TUPLES, found.bases // FOLD_DIVISOR)
        is_due |= found.changes >= MERGE_MIN_FILES
        return np.flatnonzero(is_due & (found.files > 0)).tolist()

    @property
    def has_unique_lead(self) -> bool:
        """Whether it is known that no two tuples agree in the lead: in bases, it is counted."""
        return self.heavy is None and all(
            not each.changes
            and (not each.size or each.distinct[self.lead : self.lead + 1] == (each.size,))
            for each in self.partitions
        )

    @property
    def oversized(self) -> list[int]:
        """The partitions that should be looked at for heavy values."""
        if len(self.orders[0]) == 1:  # all tuples have different values
            return []
        return oversized_partitions(self.figures.sizes, self.examined)

    def emptied(self, count: int | None = None) -> "PartitionSet":
        """Return the set without tuples, with as many partitions, or another number of them."""
        count = len(self.partitions) if count is None else count
        return replace(self, partitions=(StoredPartition(),) * count, known=None)

    def with_partitions(self, changed: Mapping[int, StoredPartition]) -> "PartitionSet":
        """Return the set with other files for some partitions."""
        partitions = list(self.partitions)
        for number, each in changed.items():
            partitions[number] = each
        made = tuple(partitions)
        return replace(self, partitions=made, known=self.figures.updated(made, changed))


@dataclass(frozen=True, slots=True)
class PartitionedFiles:
    """The files of a relation.

    Attributes:
        root: the directory that all paths are below; driver and tasks see it.
        relation: name, columns and types.
        sets: one for each lead, the first one with the primary order.
    """

    root: str
    relation: Relation
    sets: tuple[PartitionSet, ...]

    @classmethod
    def empty(
        cls, root: str, relation: Relation, orders: Sequence[Order], count: int
    ) -> "PartitionedFiles":
        """Return the files of a relation without tuples, to be probed in some orders."""
        primary = tuple(range(len(relation.types)))
        by_lead: dict[int, list[Order]] = {}
        for order in dict.fromkeys([primary, *orders]):
            by_lead.setdefault(order[0], []).append(order)
        partitions = (StoredPartition(),) * count
        sets = tuple(PartitionSet(tuple(each), partitions) for each in by_lead.values())
        return cls(root, relation, sets)

    @property
    def size(self) -> int:
        """How many tuples the relation has."""
        return self.sets[0].size

    @property
    def distinct(self) -> tuple[int, ...]:
        """About how many distinct values each column has."""
        estimates = [self._distinct(column) for column in range(len(self.relation.types))]
        return tuple(min(each, self.size) for each in estimates)

    def least_distinct(self, column: int) -> int:
        """How many distinct values a column has at least, about: those of its fullest partition."""
        if any(each.lead == column for each in self.sets):
            return self._distinct(column)
        return int(self.sets[0].figures.distinct[:, column].max(initial=0))

    def _distinct(self, column: int) -> int:
        own = next((each for each in self.sets if each.lead == column), self.sets[0])
        for part in (own, self.sets[0]):
            counts = part.figures.distinct[:, column]
            counts = counts[counts >= 0]
            if not len(counts):
                continue
            total, most = int(counts.sum()), int(counts.max())
            if part.lead != column:
                # They may share all of its values, or none: something between, as for samples.
                return int((most * total) ** 0.5)
            # Partitions of a lead share none of its values but the heavy ones.
            shared = 0 if part.heavy is None else len(part.heavy.keys) * (len(counts) - 1)
            return max(total - shared, most)
        return self.size

    @property
    def ranges(self) -> ColumnRanges:
        """The codes that the columns have."""
        return self.sets[0].figures.ranges or (CodeRange(),) * len(self.relation.types)

    @property
    def files(self) -> set[str]:
        """All files and directories below the root."""
        return {
            name for each in self.sets for partition in each.partitions for name in partition.files
        }

    @property
    def paths(self) -> set[str]:
        """The paths of all files and directories."""
        return {f"{self.root}/{name}" for name in self.files}

    @property
    def is_crowded(self) -> bool:
        """Whether there should be more partitions."""
        return needs_more_partitions(self.size, len(self.sets[0].partitions))

    def with_set(self, changed: PartitionSet) -> "PartitionedFiles":
        """Return the files with one set replaced or added."""
        others = {each.lead: each for each in self.sets}
        others[changed.lead] = changed
        return replace(self, sets=tuple(others.values()))

    def to_json(self) -> dict[str, Any]:
        """Return everything but root and relation as JSON."""
        return {
            "types": [str(each) for each in self.relation.types],
            "sets": [
                {
                    "orders": each.orders,
                    "partitions": [_partition_to_json(part) for part in each.partitions],
                    "heavy": each.heavy and [each.heavy.keys, each.heavy.columns],
                    "examined": each.examined,
                }
                for each in self.sets
            ],
        }

    def difference(self, before: "PartitionedFiles") -> list[list[tuple[int, Any]]] | None:
        """Return for each set, as JSON, the partitions that are others than before, by number.

        None if there is more that differs.
        """
        if self.kinds != before.kinds:
            return None
        return [
            [
                (at, _partition_to_json(each))
                for at, (each, known) in enumerate(zip(new.partitions, old.partitions, strict=True))
                if each is not known
            ]
            for new, old in zip(self.sets, before.sets, strict=True)
        ]

    @property
    def kinds(self) -> tuple[Any, ...]:
        """What the files have beside the partitions."""
        sets = [(each.orders, each.partitioning, each.examined) for each in self.sets]
        return self.relation.types, sets

    def with_difference(self, difference: Sequence[Sequence[tuple[int, Any]]]) -> Self:
        """Return the files with the partitions that `difference` has described."""
        sets = (
            each.with_partitions({at: _partition_from_json(found) for at, found in changed})
            for each, changed in zip(self.sets, difference, strict=True)
        )
        return replace(self, sets=tuple(sets))

    @classmethod
    def from_json(cls, root: str, relation: Relation, found: Mapping[str, Any]) -> Self | None:
        """Return the files that `to_json` described, None if they are of other types."""
        if found["types"] != [str(each) for each in relation.types]:
            return None
        sets = tuple(
            PartitionSet(
                tuple(tuple(order) for order in each["orders"]),
                tuple(_partition_from_json(part) for part in each["partitions"]),
                HeavyValues(*map(tuple, each["heavy"])) if each.get("heavy") else None,
                each.get("examined", 0),
            )
            for each in found["sets"]
        )
        return cls(root, relation, sets)


def append_changes(stored: StoredPartition, more: StoredPartition) -> StoredPartition:
    """Return a partition with the changes of another."""
    assert more.base is None, "only changes are appended"
    if not more.changes:
        return stored
    known = [each for each in (stored.ranges, more.ranges) if each]
    return replace(
        stored,
        changes=(*stored.changes, *more.changes),
        ranges=join_ranges(known) if known else (),
        distinct=tuple(map(sum, zip(stored.distinct, more.distinct, strict=True)))
        if stored.distinct and more.distinct
        else stored.distinct or more.distinct,
    )


def join_ranges(found: Sequence[ColumnRanges]) -> ColumnRanges:
    """Return ranges that include all of some."""
    joined = []
    for column in zip(*found, strict=True):
        known: CodeRange | None = CodeRange()
        for each in column:
            known = None if known is None or each is None else known.extend(each)
        joined.append(known)
    return tuple(joined)


def _partition_to_json(partition: StoredPartition) -> dict[str, Any]:
    return {
        "base": partition.base,
        "tuples": partition.base_tuples,
        "changes": [
            [each.file, each.added, each.removed, each.merged, each.first]
            for each in partition.changes
        ],
        "distinct": partition.distinct,
        "ranges": partition.ranges,
    }


def _partition_from_json(found: Mapping[str, Any]) -> StoredPartition:
    return StoredPartition(
        found["base"],
        found["tuples"],
        tuple(
            PartitionChange(file, added, removed, tuple(merged), *first)
            for file, added, removed, merged, *first in found["changes"]
        ),
        tuple(found["distinct"]),
        tuple(None if each is None else CodeRange(*each) for each in found["ranges"]),
    )
