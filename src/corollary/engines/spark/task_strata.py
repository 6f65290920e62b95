"""Whole strata in tasks: what the driver sends for a run, and makes of the replies.

A relation that stays on the driver, and that a stratum in tasks reads, has a copy in files; it is
written once, and then follows the commits.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Generic, Protocol

import pyarrow as pa

from corollary.core import plans
from corollary.core.engine import Limits, MapResult
from corollary.core.pipeline import Reference
from corollary.core.plans import WORKING_SEPARATOR, PlacedCall, Placement, Plan
from corollary.core.program import Relation
from corollary.core.states import CHANGES, State
from corollary.engines.local.prepared_plan import PreparedPlan
from corollary.engines.local.storage.table import Table
from corollary.engines.spark.operations import PartitionAddress, from_bytes
from corollary.engines.spark.placer import is_change_relation
from corollary.engines.spark.relation.change_files import write_change
from corollary.engines.spark.relation.contents import (
    PartitionedContents,
    PartitionPlace,
    contents_of,
)
from corollary.engines.spark.relation.files import (
    PartitionedFiles,
    PartitionSet,
    StoredPartition,
    append_changes,
)
from corollary.engines.spark.relation.handle import is_distributed
from corollary.engines.spark.relation.open_partition import new_name, write_partition
from corollary.engines.spark.relation.partitioning import partition_count, power_of_two
from corollary.engines.spark.relation.source import PartitionSource
from corollary.engines.spark.relation.staged_change import StagedChange, stage_partitions
from corollary.engines.spark.stratum import (
    PlanRelation,
    PlanRequest,
    RelationChange,
    RunStratum,
    pickle_plan,
    remaining_limits,
    report_run,
    split_change,
    subplan,
)
from corollary.rewrite.partitions import PARTITIONS

PLAN_CACHE_ENTRIES = 64


class PlanCache(Generic[MapResult]):
    """Computes something from a plan once, as long as the plan is the same object."""

    def __init__(self, make: Callable[[Plan], MapResult]) -> None:
        self._make = make
        self._entries: dict[int, tuple[Plan, MapResult]] = {}

    def __call__(self, plan: Plan) -> MapResult:
        """Return what was computed from the plan."""
        entry = self._entries.get(id(plan))
        if entry is None:
            if len(self._entries) >= PLAN_CACHE_ENTRIES:
                self._entries.clear()
            # The entry holds the plan, so that no other object gets its id.
            entry = self._entries[id(plan)] = plan, self._make(plan)
        return entry[1]


class TableHolder(Protocol):
    """An engine whose relations may be in partitions."""

    @property
    def relations(self) -> Mapping[str, Relation]:
        """The declared relations by name."""

    @property
    def tables(self) -> Mapping[str, Table]:
        """Their tables."""

    @property
    def partition_place(self) -> PartitionPlace:
        """What the tables of relations in partitions share."""

    def read(self, relation: str, state: State = State.NEW) -> pa.Table:
        """Return the tuples of a relation in a state."""


class TaskStrata:
    """Runs strata in tasks for an engine."""

    def __init__(self, engine: TableHolder) -> None:
        self._engine = engine
        self._copies: dict[str, StoredPartition] = {}
        """The files that tasks read of relations on the driver: their tuples of OLD."""
        self._parts = PlanCache(_placed_parts)
        self.limits = Limits()

    # --- copies --------------------------------------------------------------------------------

    def _copy_for_tasks(self, name: str) -> PlanRelation:
        """Return a relation that is here as tasks read it."""
        relation, root = self._engine.relations[name], self._engine.partition_place.root
        order = tuple(range(len(relation.types)))

        def written(state: State) -> StoredPartition:
            rows = self._engine.read(name, state)
            if not rows.num_rows:
                return StoredPartition()
            change = write_change(root, new_name(name, "change"), rows, rows.slice(0, 0))
            return StoredPartition(changes=(change,))

        if name not in self._copies:
            rows = self._engine.read(name, State.OLD)
            self._copies[name] = write_partition(root, relation, (order,), rows)
        added, removed = map(written, CHANGES)
        return PlanRelation(relation, (order,), None, (self._copies[name],), (added,), (removed,))

    def follow(self, names: Iterable[str]) -> None:
        """Write the open changes of relations of which tasks have a copy."""
        for name in self._copies.keys() & names:
            if self._engine.tables[name].is_remote(State.NEW):
                del self._copies[name]
                continue
            added, removed = (self._engine.read(name, sign) for sign in CHANGES)
            root = self._engine.partition_place.root
            change = write_change(root, new_name(name, "change"), added, removed)
            copy = self._copies.pop(name).changed(change, ())
            if not copy.is_due and copy.merged_from is None:
                self._copies[name] = copy

    def forget(self, names: Iterable[str]) -> None:
        """Have no copies of relations."""
        for name in names:
            self._copies.pop(name, None)

    @property
    def files(self) -> set[str]:
        """The files of all copies."""
        return {name for each in self._copies.values() for name in each.files}

    # --- plans ---------------------------------------------------------------------------------

    def maintained(self, plan: Plan) -> list[str]:
        """Return the relations that a plan maintains in tasks."""
        parts = self._parts(plan)[Placement.TASKS].items()
        return [name for procedure, part in parts for name in self._pivots(plan, procedure, part)]

    def probed(self, plan: Plan) -> set[str]:
        """Return the relations that strata of a plan ask for in each round."""
        parts = self._parts(plan)[Placement.ROUNDS].values()
        return {name for part in parts for name in part.types}

    def _pivots(self, plan: Plan, procedure: str, part: Plan) -> dict[str, int]:
        """Return the relations that the procedure of a stratum maintains, and their pivots."""
        columns = next(
            dict(each.columns)
            for each in plans.steps_of(plan)
            if isinstance(each, PlacedCall) and each.procedure == procedure
        )
        # The payload of a relation, `p•rank` say, is partitioned as the relation itself.
        return {
            each: columns[owner]
            for each in part.types
            if each in self._engine.relations
            if (owner := each.partition(WORKING_SEPARATOR)[0]) in columns
        }

    def run(self, prepared: PreparedPlan, step: PlacedCall) -> bool:
        """Run the procedure of a stratum in tasks, unless its partitions do not allow it."""
        part = self._parts(prepared.plan)[Placement.TASKS][step.procedure]
        pivots = self._pivots(prepared.plan, step.procedure, part)
        count, tasks = self._counts(part)
        maintained = {
            name: contents
            for name in pivots
            if (contents := contents_of(self._engine.tables[name])) is not None
        }
        assert maintained.keys() == pivots.keys(), "the engine has prepared them"
        if not all(partition_by(each, pivots[name], tasks) for name, each in maintained.items()):
            return False
        request = self._request(prepared, part, pivots, count, tasks)
        place = self._engine.partition_place
        every = request.relations
        others = {name: each for name, each in every.items() if name not in pivots}
        first = next(iter(pivots))
        address = PartitionAddress(
            place.root, self._engine.relations[first], (), 0, StoredPartition()
        )
        sent = [
            (
                replace(address, number=number),
                RunStratum({name: every[name].of_task(number, tasks) for name in pivots}),
            )
            for number in range(tasks)
        ]
        prepared.recorder.procedure(step.procedure)
        title = f"maintain {', '.join(dict(step.columns))}"
        found = place.jobs.run(sent, title, replace(request, relations=others))
        for name, each in maintained.items():
            take_changes(each, every[name], [changes[name] for changes, _ in found])
        records = [record for _, record in found]
        prepared.budget.handled_rows += report_run(part, records, prepared.recorder)
        prepared.recorder.end(step.procedure, prepared.budget.handled_rows)
        return True

    def _counts(self, part: Plan) -> tuple[int, int]:
        """Return the partitions that a relation of a stratum has by size, and the tasks, now."""
        tables = (self._engine.tables.get(name) for name in part.types)
        size = sum(each.size(State.NEW) for each in tables if each is not None)
        count = partition_count(size)
        return count, min(count, power_of_two(self._engine.partition_place.jobs.slots))

    def _request(
        self, prepared: PreparedPlan, part: Plan, pivots: Mapping[str, int], count: int, tasks: int
    ) -> PlanRequest:
        """Return what some tasks need to run a part of a plan.

        A relation that it maintains and that has no partitions gets a number of them.
        """
        relations: dict[str, PlanRelation] = {}
        given: dict[str, tuple[Relation, pa.Table, pa.Table, pa.Table]] = {}
        derived = set(plans.relations_written(part))
        for name, types in part.types.items():
            table = self._engine.tables.get(name)
            if name == PARTITIONS.name:
                continue
            if table is None:
                if name not in derived:
                    rows = prepared.read(Reference(name))
                    columns = tuple(rows.column_names)
                    relation = Relation(name, columns, types, False, is_declared=False)
                    given[name] = relation, rows, rows.slice(0, 0), rows.slice(0, 0)
            elif not types or is_change_relation(name):
                old, added, removed = (
                    self._engine.read(name, each) for each in (State.OLD, *CHANGES)
                )
                given[name] = self._engine.relations[name], old, added, removed
            elif (contents := contents_of(table)) and (name in pivots or contents.is_held):
                relations[name] = plan_relation(contents, pivots.get(name), count)
            else:
                relations[name] = self._copy_for_tasks(name)
        limits = remaining_limits(self.limits)
        return PlanRequest(_pickle_plan(part), tasks, limits, relations, given)


_pickle_plan = PlanCache(pickle_plan)
"""The same bytes for the same plan, so that workers recognise it."""


def _placed_parts(plan: Plan) -> dict[Placement, dict[str, Plan]]:
    """Return the parts of a plan that have a placement, by this and by procedure."""
    found: dict[Placement, dict[str, Plan]] = {each: {} for each in Placement}
    for step in plans.steps_of(plan):
        if isinstance(step, PlacedCall):
            found[step.placement][step.procedure] = subplan(plan, step.procedure)
    return found


# --- relations that tasks share ------------------------------------------------------------------


def partition_by(contents: PartitionedContents, lead: int, count: int) -> bool:
    """Have a number of partitions by a column, or more; return whether that is possible.

    It is not where the tuples of a value are in several partitions.
    """
    contents.move_committed()
    if contents.held is None:
        return True
    order = contents.table.order_for((lead,))
    contents.table.arrangement(order)
    part = contents.held.set_for(order)
    assert part is not None
    if len(part.partitions) >= count or part.heavy is not None:
        return part.heavy is None
    if contents.staged is not None:
        return False
    contents.hold_again(contents.held.split(count))
    contents.release()
    return True


def plan_relation(contents: PartitionedContents, lead: int | None, count: int) -> PlanRelation:
    """Return a relation as tasks read it; a change that is here is written to files.

    Args:
        contents: of the relation.
        lead: the column that it is partitioned by, if tasks share its partitions.
        count: how many partitions there are if it has none so far.
    """
    relation, root = contents.relation, contents.place.root
    order = contents.table.order_for((lead or 0,))
    part = None if contents.held is None else contents.held.set_for(order)
    if part is None:
        part = PartitionSet((order,), (StoredPartition(),) * count)
    partitioning, empty = part.partitioning, part.emptied()

    def stored(state: State) -> tuple[StoredPartition, ...]:
        sets = contents.files_of(state).sets if contents.is_remote(state) else ()
        found = (each.partitions for each in sets if each.lead == partitioning.lead)
        return next(found, empty.partitions)

    old, added, removed = map(stored, (State.OLD, *CHANGES))
    if contents.staged is None:
        here = [
            empty.with_partitions(
                split_change(root, relation, partitioning, rows, rows.slice(0, 0))
            ).partitions
            for rows in contents.change_tables()
        ]
        added, removed = tuple(map(append_changes, added, here[0])), here[1]
    shared = None if lead is None else partitioning
    return PlanRelation(relation, part.orders, shared, old, added, removed)


def take_changes(
    contents: PartitionedContents, wanted: PlanRelation, made: Sequence[RelationChange]
) -> None:
    """Let what tasks have found be the open change of a relation."""
    root, jobs, relation = contents.place.root, contents.place.jobs, contents.relation
    partitioning = wanted.partitioning
    assert partitioning is not None
    part = PartitionSet(wanted.orders, (StoredPartition(),) * partitioning.count)
    files = PartitionedFiles(root, relation, (part,))
    total = sum(sum(each.counts) for each in made)
    is_few = not is_distributed(total)
    if is_few and not any(each.partitions for each in made):
        joined = PartitionSource(files, jobs).joined
        sides = zip(*(each.rows for each in made if each.rows is not None), strict=True)
        contents.set_rows(*map(joined, sides))
        return
    found: dict[int, StoredPartition] = {}
    for each in made:
        found |= each.partitions
        if each.rows is not None:
            added, removed = map(from_bytes, each.rows)
            found |= split_change(root, relation, partitioning, added, removed)
    part = part.with_partitions(found)
    files = replace(files, sets=(part,))
    if contents.source is None:
        contents.load(PartitionSource(files, jobs).with_primary())
    elif is_few:
        contents.collect_to_driver(StagedChange(files))
    else:
        contents.stage(stage_partitions(contents.source, part))
