"""Functional dependencies of partitioned relations: tasks look for tuples that violate them.

Where a set has tuples that agree in the determinants in one partition, each task finds the
violations of its own. Tuples of heavy values that agree may be in several: a task writes
representatives of them to pieces, and one more job compares those that meet.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from corollary.core.arrow import DependencyCheck, Violations, group_rows
from corollary.core.arrow_buffers import index_array
from corollary.core.states import State
from corollary.data_class import dataclass
from corollary.engines.local.storage.arrangement import Order
from corollary.engines.spark.exchange import (
    PiecesByPartition,
    TuplePiece,
    split_open_change,
)
from corollary.engines.spark.jobs import PartitionTask
from corollary.engines.spark.operations import (
    OpenChange,
    PartitionAddress,
    from_bytes,
    read_piece,
    to_bytes,
)
from corollary.engines.spark.relation.change_files import read_change
from corollary.engines.spark.relation.contents import PartitionedContents
from corollary.engines.spark.relation.files import (
    PartitionChange,
    PartitionedFiles,
    PartitionSet,
    StoredPartition,
)
from corollary.engines.spark.relation.open_partition import load_partition
from corollary.engines.spark.relation.partitioning import (
    HeavyValues,
    Partitioning,
    column_keys,
)
from corollary.engines.spark.relation.shared_files import remove_files
from corollary.engines.spark.relation.source import PartitionSource

# --- what the driver asks for --------------------------------------------------------------------


def find_violations(contents: PartitionedContents, check: DependencyCheck) -> Violations | None:
    """Return pairs of tuples of NEW that violate a functional dependency, found by tasks.

    None if no tuples are in partitions.
    """
    if not contents.is_held or not check.determinants:
        return None
    _arrange_for(contents, check)
    files, added, removed = contents.parts(State.NEW)
    source = PartitionSource(files, contents.place.jobs)
    if not added.num_rows and any(each.has_unique_lead for each in _led_by(files, check)):
        found = Violations(source.no_rows, source.no_rows, 0)
    else:
        found = violations_in(source, check, added, removed)
    if _says_key(contents, check) and not found.count and not (added.num_rows or removed.num_rows):
        contents.note_key(check.determinants)
    return found


def find_clashes(contents: PartitionedContents, check: DependencyCheck) -> Violations | None:
    """Return violations among the tuples of NEW that agree with added ones, found by tasks.

    None if few tuples agree, as those of a key: then others look them up, and keep them.
    """
    source, staged = contents.source, contents.staged
    if not contents.is_held or not check.determinants:
        return None
    if staged is None or source is None:
        is_key = _says_key(contents, check)
        if is_key or source is None or contents.has_few(check.determinants):
            return None
        order = _arrange_for(contents, check)
        files, added, removed = contents.parts(State.NEW)
        return violations_in(
            PartitionSource(files, contents.place.jobs), check, added, removed, order
        )
    _arrange_for(contents, check)
    new = PartitionSource(contents.files_of(State.NEW), contents.place.jobs)
    part = next((each for each in new.files.sets if _unites(each, check)), None)
    if part is None:
        return find_violations(contents, check)
    changes = next(each for each in staged.files.sets if each.lead == part.lead)
    tasks = [
        (PartitionAddress.of(new.files, part, number), FindViolations(check, each))
        for number, stored in enumerate(changes.partitions)
        for each in stored.changes
        if each.added
    ]
    return _run(new, check, tasks)


def _says_key(contents: PartitionedContents, check: DependencyCheck) -> bool:
    """Whether a dependency says that its determinants are a key."""
    return len(check.determinants) + len(check.dependents) == len(contents.relation.types)


def _arrange_for(contents: PartitionedContents, check: DependencyCheck) -> Order:
    """Have a set with a determinant as lead; return an order that begins with all of them."""
    order = contents.table.order_for(check.determinants)
    contents.table.arrangement(order)
    return order


def _led_by(files: PartitionedFiles, check: DependencyCheck) -> list[PartitionSet]:
    """Return the sets whose lead is one of the determinants."""
    return [each for each in files.sets if each.lead in check.determinants]


def _unites(part: PartitionSet, check: DependencyCheck) -> bool:
    """Whether a set has tuples that agree in the determinants in one partition."""
    return part.partitioning.unites(check.determinants)


def violations_in(
    source: PartitionSource,
    check: DependencyCheck,
    added: pa.Table,
    removed: pa.Table,
    order: Order | None = None,
) -> Violations:
    """Return pairs of tuples that violate a functional dependency, with an open change.

    One job, and one more if tuples that agree may be in several partitions.

    Args:
        source: the tuples.
        check: the lead of a set is one of its determinants.
        added: the tuples that the change adds.
        removed: those that it removes.
        order: if it is given, only tuples that agree with added ones are looked at: it begins with
            the determinants, and a set has it.
    """
    sets = _led_by(source.files, check)
    part = next((each for each in sets if _unites(each, check)), sets[0])
    if order is not None:
        part = next(each for each in sets if each.lead == order[0])
    relation = source.files.relation
    changes = split_open_change(added, removed, relation, part.partitioning)
    keys = {} if order is None else _keys_by_partition(source, part, order, check, added)
    asked = FindViolations(check, order=order or (), **_meeting(part, check))
    tasks = [
        (
            PartitionAddress.of(source.files, part, number),
            replace(asked, keys=keys.get(number), here=changes.get(number, OpenChange())),
        )
        for number, stored in enumerate(part.partitions)
        if (number in keys if order else stored.files or number in changes)
    ]
    return _run(source, check, tasks)


def _meeting(part: PartitionSet, check: DependencyCheck) -> dict[str, Any]:
    """Return which tuples of a set that agree may be apart, and where they meet."""
    if part.heavy is None or _unites(part, check):
        return {}
    others = tuple(each for each in check.determinants if each != part.lead)
    heavy = replace(part.heavy, columns=others) if others else None
    return {"heavy": part.heavy, "meeting": replace(part.partitioning, heavy=heavy)}


def _keys_by_partition(
    source: PartitionSource,
    part: PartitionSet,
    order: Order,
    check: DependencyCheck,
    added: pa.Table,
) -> dict[int, bytes]:
    """Return the determinants of tuples by the partitions that may have some that agree."""
    columns = order[: len(check.determinants)]
    keys = added.select(list(columns))
    keys = group_rows(keys, keys.column_names)
    places = part.partitioning.rows_by_partition(keys, columns, source.files.relation.types)
    return {number: to_bytes(keys.take(index_array(each))) for number, each in places.items()}


def _run(
    source: PartitionSource, check: DependencyCheck, tasks: Sequence[PartitionTask]
) -> Violations:
    """Return what tasks find as one; their pieces are compared, by one more job."""
    files, title = source.files, f"check the key of {source.files.relation.name}"
    results: list[FoundViolations] = source.jobs.run(tasks, title)
    names: dict[int, list[str]] = {}
    for each in (piece for found in results for piece in found.pieces):
        names.setdefault(each.number, []).append(each.name)
    compared = [
        (
            PartitionAddress.of(files, files.sets[0], number, StoredPartition()),
            CompareRepresentatives(check, tuple(some)),
        )
        for number, some in names.items()
    ]
    results += source.jobs.run(compared, title)
    remove_files(files.root, (each for some in names.values() for each in some))
    ones = source.joined(each.ones for each in results).slice(0, check.max_pairs)
    others = source.joined(each.others for each in results).slice(0, check.max_pairs)
    return Violations(ones, others, sum(each.count for each in results))


# --- what a task does ----------------------------------------------------------------------------


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
        here: a change of the driver, in files that do not have it.
        heavy, meeting: if tuples that agree may be in several partitions, the values of which that
            holds, and where representatives of these meet.
    """

    check: DependencyCheck
    change: PartitionChange | None = None
    order: Order = ()
    keys: bytes | None = None
    here: OpenChange = OpenChange()
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
            found = address.open().matches(self.order, from_bytes(self.keys))
            return self.here.apply_to(found, address.relation)
        if self.change is not None:
            return self._agreeing(address, read_change(address.root, self.change)[0])
        opened = address.read()
        self.here.open_in(opened)
        if self.heavy is not None:
            return opened.table()
        return opened.duplicate_rows(self.check.determinants)

    def _agreeing(self, address: PartitionAddress, added: pa.Table) -> pa.Table:
        """Return the tuples that agree in the determinants with added ones."""
        columns, orders = self.check.determinants, address.orders
        first = *orders[0][:1], *(each for each in columns if each != orders[0][0])
        made = *first, *(each for each in orders[0] if each not in first)
        prefixes = (each for each in orders if {*each[: len(columns)]} == {*columns})
        order = next(prefixes, made)
        keys = added.select(list(order[: len(columns)]))
        distinct = group_rows(keys, keys.column_names)
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
        rows = pa.concat_tables([read_piece(address.root, each) for each in self.files])
        return FoundViolations.among(rows, self.check)
