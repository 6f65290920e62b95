"""Run the plan of a whole stratum on its partitions, inside the tasks of one job.

The relations of the stratum are partitioned by their pivot columns, so that no tuple of one task
meets a tuple of another. What else the plan reads, every task has a copy of. A task holds all of it
in a local engine, which its process keeps: the next time it reads the files of changes since. It
replies with the change of each relation, as tuples or as files, and takes the change back: whoever
commits the files makes them the relation.
"""

import pickle
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache, partial

import pyarrow as pa

from corollary.core import plans
from corollary.core.engine import Limits, deadline_start
from corollary.core.program import Relation
from corollary.core.recorder import Recorder
from corollary.core.states import CHANGES
from corollary.core.user_functors.loading import loaded_modules
from corollary.core.user_functors.registration import registered_functions
from corollary.data_class import dataclass
from corollary.engines.local.engine import LocalEngine
from corollary.engines.local.storage.arrangement import Order
from corollary.engines.spark.operations import PartitionAddress, to_bytes
from corollary.engines.spark.relation import open_partition
from corollary.engines.spark.relation.change_files import read_change, write_changes
from corollary.engines.spark.relation.files import StoredPartition
from corollary.engines.spark.relation.partitioning import Partitioning, split_table
from corollary.rewrite.partitions import PARTITIONS

INLINE_MAX_TUPLES = 1 << 14
"""A larger change of a relation in a task is written to files and not sent in the reply."""


# --- what is sent --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlanRelation:
    """A relation that a plan reads or maintains, in files.

    Attributes:
        orders: those of the set that the files are of.
        partitioning: of the set, if the plan maintains the relation; tasks share its partitions.
        old, added, removed: the tuples of OLD and of the open change, by partition.
        is_filled: whether any task has tuples of OLD.
    """

    relation: Relation
    orders: tuple[Order, ...]
    partitioning: Partitioning | None
    old: tuple[StoredPartition, ...]
    added: tuple[StoredPartition, ...]
    removed: tuple[StoredPartition, ...]
    is_filled: bool = True

    def rows(self, root: str, partitions: Iterable[StoredPartition]) -> Iterator[pa.Table]:
        """Yield the tuples of some of its partitions."""
        for stored in partitions:
            yield from open_partition.read_partition(root, self.relation, self.orders, stored)

    def of_task(self, number: int, count: int) -> "PlanRelation":
        """Return a relation that tasks share with what one of them has of it."""
        assert self.partitioning is not None
        width = self.partitioning.count // count
        own = slice(number * width, (number + 1) * width)
        is_filled = any(each.files for each in self.old)
        parts = self.old[own], self.added[own], self.removed[own]
        return PlanRelation(self.relation, self.orders, self.partitioning, *parts, is_filled)


GivenRelations = Mapping[str, tuple[Relation, pa.Table, pa.Table, pa.Table]]
"""Relations that are not in files, with their tuples in OLD, ADDED and REMOVED."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """A plan for the tasks of a job.

    Attributes:
        plan: pickled.
        tasks: how many there are.
        relations: those that it reads in files.
    """

    plan: bytes
    tasks: int
    limits: Limits
    relations: Mapping[str, PlanRelation]
    given: GivenRelations


@dataclass(frozen=True, slots=True)
class RelationChange:
    """What a plan has made of a relation in a task.

    Attributes:
        counts: how many tuples were added and removed.
        rows: the tuples added and removed, if they are few.
        partitions: the files, by partition, if they are many: of changes, or of all tuples of a
            relation that had none.
    """

    counts: tuple[int, int]
    rows: tuple[bytes, bytes] | None
    partitions: Mapping[int, StoredPartition]


@dataclass(slots=True)
class TaskRecorder(Recorder):
    """A recorder that adds up, so that the driver can report the sum over all tasks.

    Attributes:
        steps: the number of each step of the plan by its identity.
    """

    steps: Mapping[int, int] = field(default_factory=dict)
    sizes: Counter[int] = field(default_factory=Counter)
    led: Counter[int] = field(default_factory=Counter)
    probes: Counter[str] = field(default_factory=Counter)
    rounds: int = 0
    handled: int = 0
    switched: Counter[int] = field(default_factory=Counter)
    rows: list[tuple[int, Mapping[str, tuple[pa.Table, ...]], int]] = field(default_factory=list)

    def end(self, name: str, handled: int) -> None:  # noqa: ARG002
        """Record the rows so far."""
        self.handled = handled

    def step(self, step: plans.Evaluation, size: int, led: int) -> None:
        """Add to the sizes of a step."""
        number = self.steps[id(step)]
        self.sizes[number] += size
        self.led[number] += led

    def round(self, count: int = 1) -> None:
        """Count rounds."""
        self.rounds += count

    def probe(self, relation: str, rows: int) -> None:
        """Add to the probes of a relation."""
        self.probes[relation] += rows

    def switch(self, within: plans.Within, rows: int) -> None:
        """Record steps that exceeded their budget, and after how many rows."""
        self.switched[self.steps[id(within)]] += rows

    def row(
        self, row: plans.RecordTrace, relations: Mapping[str, tuple[pa.Table, ...]], number: int
    ) -> None:
        """Record a row of a trace."""
        self.rows.append((self.steps[id(row)], relations, number))


def report_run(plan: plans.Plan, records: Sequence[TaskRecorder], recorder: Recorder) -> int:
    """Report the sum over all tasks to a recorder; return how many rows they have handled."""
    steps = list(plans.steps_of(plan))
    for number, step in enumerate(steps):
        size = sum(each.sizes[number] for each in records)
        led = sum(each.led[number] for each in records)
        if size or led:
            recorder.step(step, size, led)  # type: ignore[arg-type]
        if given_up := sum(each.switched[number] for each in records):
            recorder.switch(step, given_up)  # type: ignore[arg-type]
    for name in {name for each in records for name in each.probes}:
        recorder.probe(name, sum(each.probes[name] for each in records))
    if rounds := max(each.rounds for each in records):
        recorder.round(rounds)
    for each in records:
        for number, relations, in_round in each.rows:
            recorder.row(steps[number], relations, in_round)  # type: ignore[arg-type]
    return sum(each.handled for each in records)


def subplan(plan: plans.Plan, procedure: str) -> plans.Plan:
    """Return the plan of one procedure and those it calls, except calls with a placement."""
    found = plans.called_procedures(plan, (plans.Call(procedure),), with_placed=False)
    part = replace(plan, procedures=found, main=procedure)
    used = {each.relation for each in plans.references_read(part)}
    used |= set(plans.relations_written(part))
    return replace(
        part,
        types={name: types for name, types in plan.types.items() if name in used},
        orders={name: orders for name, orders in plan.orders.items() if name in used},
        locals={name: local for name, local in plan.locals.items() if name in found},
    )


def pickle_plan(plan: plans.Plan) -> bytes:
    """Return a plan for tasks; functions of users travel with it, and their modules."""
    if not registered_functions():
        return pickle.dumps(plan, protocol=5)
    from pyspark import cloudpickle

    known = cloudpickle.list_registry_pickle_by_value()  # type: ignore[no-untyped-call]
    modules = [each for each in loaded_modules() if each.__name__ not in known]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    try:
        pickled: bytes = cloudpickle.dumps(plan, protocol=5)  # type: ignore[no-untyped-call]
    finally:  # the user's own frames are pickled as they were before
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return pickled


def remaining_limits(limits: Limits) -> Limits:
    """Return limits with the seconds that are left: clocks of other machines differ."""
    began = deadline_start()
    if limits.seconds is None or began is None:
        return limits
    left = limits.seconds - (time.monotonic() - began)
    return replace(limits, seconds=max(0.0, left))


# --- what a task does ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunStratum:
    """Run a plan on the partitions of a task, whose number is that of the address.

    Attributes:
        maintained: the relations that the plan maintains, as far as the task has them.
        shared: the plan, and what else all tasks read.
    """

    maintained: Mapping[str, PlanRelation]
    shared: PlanRequest | None = None

    def run(self, address: PartitionAddress) -> tuple[dict[str, RelationChange], TaskRecorder]:
        """Return the changes of the relations that the plan maintains, and what was recorded."""
        root, number, request = address.root, address.number, self.shared
        assert request is not None
        plan = _unpickled_plan(request.plan)
        recorder = TaskRecorder({id(step): at for at, step in enumerate(plans.steps_of(plan))})
        key = root, "plan", tuple(self.maintained), number, request.tasks
        make = partial(StratumEngine, number, request.tasks)
        with open_partition.kept_open(key, make, lambda each: each.nbytes) as engine:
            try:
                engine.prepare(root, {**request.relations, **self.maintained}, request.given)
                engine.run(plan, recorder, request.limits)
                changes = {
                    name: engine.change_of(root, each) for name, each in self.maintained.items()
                }
            finally:
                engine.rollback()
                engine.drop([name for name in request.given if name in engine.relations])
        recorder.steps = {}  # identities mean nothing to the driver
        return changes, recorder


@lru_cache(maxsize=64)
def _unpickled_plan(pickled: bytes) -> plans.Plan:
    plan: plans.Plan = pickle.loads(pickled)  # noqa: S301 - made by the driver, as the task itself
    return plan


class StratumEngine(LocalEngine):
    """The relations of a stratum, as far as one task has them.

    Args:
        number: of the task.
        count: of all tasks.
    """

    def __init__(self, number: int, count: int) -> None:
        super().__init__()
        self._versions: dict[str, tuple[tuple[Order, ...], tuple[StoredPartition, ...]]] = {}
        """The files that were read of each relation, and the orders of their set."""
        self.declare({PARTITIONS.name: PARTITIONS})
        self.insert(PARTITIONS.name, [(number, count)])
        self.commit()

    @property
    def nbytes(self) -> int:
        """About how much memory it takes."""
        return sum(each.nbytes for each in self._tables.values()) + self._dictionary.nbytes

    def prepare(
        self, root: str, relations: Mapping[str, PlanRelation], given: GivenRelations
    ) -> None:
        """Have all relations of a plan, with their open changes."""
        wanted = {name: each.relation for name, each in relations.items()}
        gone = [
            name
            for name, each in self._relations.items()
            if name != PARTITIONS.name and wanted.get(name) != each
        ]
        for name in gone:
            self._versions.pop(name, None)
        self.drop(gone)
        self.declare(wanted)
        for name, each in relations.items():
            self._read_old(root, name, each)
        self.declare({name: relation for name, (relation, *_) in given.items()})
        for name, (_, old, _, _) in given.items():
            self.insert(name, old)
        self.commit(given)
        for name, each in relations.items():
            for rows in each.rows(root, each.removed):
                self.delete(name, rows)
            for rows in each.rows(root, each.added):
                self.insert(name, rows)
        for name, (_, _, added, removed) in given.items():
            self.delete(name, removed)
            self.insert(name, added)

    def _read_old(self, root: str, name: str, wanted: PlanRelation) -> None:
        """Have the tuples of OLD of a relation."""
        orders, known = self._versions.pop(name, ((), ()))
        applied = None
        if orders == wanted.orders and len(known) == len(wanted.old):
            pairs = zip(wanted.old, known, strict=True)
            found = [open_partition.applied_changes(stored, before) for stored, before in pairs]
            applied = [each for each in found if each is not None]
        if applied is None or len(applied) < len(wanted.old):
            self._load(root, name, wanted)
        else:
            for stored, first in zip(wanted.old, applied, strict=True):
                for change in stored.changes[first:]:
                    added, removed = read_change(root, change)
                    self.delete(name, removed)
                    self.insert(name, added)
        self.commit([name])
        self._versions[name] = wanted.orders, wanted.old

    def _load(self, root: str, name: str, wanted: PlanRelation) -> None:
        self.clear([name])
        filled = [each for each in wanted.old if each.files]
        if len(filled) == 1 and wanted.orders[0] == tuple(range(len(wanted.relation.types))):
            opened = open_partition.load_partition(
                root, wanted.relation, wanted.orders[:1], filled[0]
            )
            table = opened.uncoded_table()
            if table is not None:  # its words mean the same here
                self._tables[name] = table
                self._unprepare(name)
                return
        for rows in wanted.rows(root, filled):
            self.insert(name, rows)

    def change_of(self, root: str, wanted: PlanRelation) -> RelationChange:
        """Return the change of a relation; the tuples of a large one are in files then."""
        name, partitioning = wanted.relation.name, wanted.partitioning
        assert partitioning is not None
        added, removed = (self.read(name, sign) for sign in CHANGES)
        counts = added.num_rows, removed.num_rows
        if sum(counts) <= INLINE_MAX_TUPLES:
            return RelationChange(counts, (to_bytes(added), to_bytes(removed)), {})
        if not wanted.is_filled:
            made = {
                number: open_partition.write_partition(root, wanted.relation, wanted.orders, rows)
                for number, rows in split_table(added, wanted.relation, partitioning)
            }
            return RelationChange(counts, None, made)
        changed = split_change(root, wanted.relation, partitioning, added, removed)
        return RelationChange(counts, None, changed)


def split_change(
    root: str, relation: Relation, partitioning: Partitioning, added: pa.Table, removed: pa.Table
) -> dict[int, StoredPartition]:
    """Write a change to a file; return it by partition, as partitions without a base."""
    gained, lost = (dict(split_table(rows, relation, partitioning)) for rows in (added, removed))
    none = added.slice(0, 0)
    touched = sorted(gained.keys() | lost.keys())
    pairs = [(gained.get(number, none), lost.get(number, none)) for number in touched]
    if not pairs:
        return {}
    written = write_changes(root, open_partition.new_name(relation.name, "change"), pairs)
    return {
        number: StoredPartition().changed(change, open_partition.ranges_of(rows, relation))
        for number, change, (rows, _) in zip(touched, written, pairs, strict=True)
    }
