"""The engine of a driver: relations here or in partitions, strata here or in tasks.

Small relations are held and computed here by the local engine, and Spark is never started for them.
A stratum that has a pivot and whose relations are in partitions is maintained by one Spark job.
"""

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Generic

import pyarrow as pa

from corollary.core import plans
from corollary.core.engine import BulkMode, IndexPlaces, Limits, MapResult, driver_memory
from corollary.core.pipeline import Reference
from corollary.core.plans import WORKING_SEPARATOR, PlacedCall, Placement, Plan
from corollary.core.program import Relation
from corollary.core.recorder import Recorder
from corollary.core.states import CHANGES, State
from corollary.engines.local.prepared_plan import PreparedPlan
from corollary.engines.local.storage.table import Table
from corollary.engines.spark.partitioned.change_files import write_change
from corollary.engines.spark.partitioned.engine import PARTITIONS_PLACE, PartitioningEngine
from corollary.engines.spark.partitioned.open_partition import new_name, write_partition
from corollary.engines.spark.partitioned.operations import PartitionAddress
from corollary.engines.spark.partitioned.partition_files import StoredPartition
from corollary.engines.spark.partitioned.remote_table import RemoteTable, is_change_relation
from corollary.engines.spark.partitioned.stratum import (
    PlanRelation,
    PlanRequest,
    RunStratum,
    pickle_plan,
    remaining_limits,
    report_run,
    subplan,
)
from corollary.engines.spark.resources import SparkResources
from corollary.engines.spark.session import parallelism_of
from corollary.rewrite.partitions import PARTITIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    # Imported where they are used: small relations need none of it.
    from corollary.engines.spark.bulk.queries import SparkQueries
    from corollary.engines.spark.bulk.steps import SparkSteps

TASKS_MIN_TUPLES = 1 << 24
"""A stratum of so many tuples is partitioned; the driver is quicker with fewer…"""

TASKS_MIN_INPUT_TUPLES = 1 << 20
"""…and so is one that is still empty and reads so many."""

COPIED_MAX_TUPLES = 1 << 23
"""A stratum that reads more tuples of other relations does not run in tasks: each has a copy."""

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


class DriverEngine(PartitioningEngine):
    """Holds relations on the driver and in partitions; runs plans here, and strata in tasks.

    Args:
        spark: the user's session; a local one is started if it is needed and there is none.
        placement: `driver`, or `partitions` to have all relations there; `auto` decides by size.
        partition_count: how many tasks run at once; by default what Spark says, which is asked for
            each job.
        scratch: a directory that the driver and all tasks see, for the files of partitions.
        memory: the bytes for tuples on the driver; the largest relations beyond it are partitioned.
    """

    def __init__(
        self,
        spark: "SparkSession | None" = None,
        *,
        placement: str = "auto",
        partition_count: int | None = None,
        scratch: Path | None = None,
        bulk: BulkMode | None = None,
        memory: int | str | None = None,
    ) -> None:
        is_auto = placement == "auto" and (spark is not None or find_spec("pyspark") is not None)
        budget = driver_memory(memory) if is_auto else None
        super().__init__(bulk, is_forced=placement == PARTITIONS_PLACE, memory=budget)
        self._given_count = partition_count
        self._partition_count: int | None = None
        self._copies: dict[str, StoredPartition] = {}
        """The files that tasks read of relations that are here: their tuples of OLD."""
        self._parts = PlanCache(_placed_parts)
        self._limits = Limits()
        self._resources = SparkResources(spark, scratch)
        self._bulk_queries: SparkQueries | None = None
        super().declare({PARTITIONS.name: PARTITIONS})

    # --- Spark ---------------------------------------------------------------------------------

    @property
    def _root(self) -> Path:
        """The directory of the files of partitions."""
        return self._resources.root

    @property
    def default_placement(self) -> str:
        """The placement of strata by default."""
        return "driver"

    @property
    def partition_count(self) -> int:
        """How many tasks share a stratum: a power of two, always the same, for plans name it."""
        if self._partition_count is None:
            self._partition_count = 1 << (self.task_count - 1).bit_length()
        return self._partition_count

    @property
    def task_count(self) -> int:
        """How many tasks run at once, now."""
        if self._given_count is not None:
            return self._given_count
        return parallelism_of(self._resources.session)

    def placement(
        self, relations: Sequence[str], below: Sequence[str], *, has_pivot: bool
    ) -> Placement:
        """Return where a stratum should run."""
        lower = sum(self.size(name) for name in below if name in self._relations)
        if not has_pivot or lower > COPIED_MAX_TUPLES:
            return Placement.DRIVER
        if self._is_forced:
            return Placement.TASKS
        if self._memory is None:
            return Placement.DRIVER
        size = sum(self.size(name, State.OLD) for name in relations if name in self._relations)
        is_large = size >= TASKS_MIN_TUPLES or any(map(self.is_partitioned, relations))
        if is_large or (not size and lower >= TASKS_MIN_INPUT_TUPLES):
            return Placement.TASKS
        return Placement.DRIVER

    def close(self) -> None:
        """Remove all files and release the session."""
        self._resources.close()

    def _steps_elsewhere(self, plan: Plan, tables: Mapping[str, Table]) -> "SparkSteps | None":
        if not self._has_partitions(plan):
            return None
        from corollary.engines.spark.bulk.queries import SparkQueries
        from corollary.engines.spark.bulk.steps import SparkSteps

        if self._bulk_queries is None:
            self._bulk_queries = SparkQueries(self._resources, self._partition_place, self._bulk)
        return SparkSteps(self._bulk_queries, plan, tables, self._relations.keys())

    # --- copies for tasks ----------------------------------------------------------------------

    def _copy_for_tasks(self, name: str) -> PlanRelation:
        """Return a relation that is here as tasks read it."""
        relation, root = self._relations[name], self._partition_place.root
        order = tuple(range(len(relation.types)))

        def written(state: State) -> StoredPartition:
            rows = self.read(name, state)
            if not rows.num_rows:
                return StoredPartition()
            change = write_change(root, new_name(name, "change"), rows, rows.slice(0, 0))
            return StoredPartition(changes=(change,))

        if name not in self._copies:
            base = new_name(name, "base")
            rows = self.read(name, State.OLD)
            self._copies[name] = write_partition(root, base, relation, (order,), rows)
        added, removed = map(written, CHANGES)
        return PlanRelation(relation, (order,), None, (self._copies[name],), (added,), (removed,))

    def _follow_copies(self, names: Iterable[str]) -> None:
        """Write the open changes of relations of which tasks have a copy."""
        for name in self._copies.keys() & names:
            if self._tables[name].is_remote(State.NEW):
                del self._copies[name]
                continue
            added, removed = (self.read(name, sign) for sign in CHANGES)
            root = self._partition_place.root
            change = write_change(root, new_name(name, "change"), added, removed)
            copy = self._copies.pop(name).changed(change, ())
            if not copy.is_due and copy.merged_from is None:
                self._copies[name] = copy

    def _forget_copies(self, names: Iterable[str]) -> None:
        for name in names:
            self._copies.pop(name, None)

    def _files_in_use(self) -> set[str]:
        copies = (name for each in self._copies.values() for name in each.files)
        return super()._files_in_use() | {f"{self._partition_place.root}/{name}" for name in copies}

    def drop(self, relations: Iterable[str]) -> None:
        """Remove relations."""
        names = list(relations)
        self._forget_copies(names)
        super().drop(names)

    def rename(self, old: str, new: str) -> None:
        """Give a relation another name, which must be unused."""
        self._forget_copies([old])
        super().rename(old, new)

    def copy(self, source: str, target: str) -> None:
        """Make the NEW tuples of one relation the OLD and NEW ones of another."""
        self._forget_copies([target])
        super().copy(source, target)

    def clear(self, relations: Iterable[str]) -> None:
        """Remove all tuples of relations, in every state."""
        names = list(relations)
        self._forget_copies(names)
        super().clear(names)

    def restore(self, files: Mapping[str, pa.Buffer], paths: IndexPlaces | None = None) -> set[str]:
        """Fill declared relations from the files of an index; return which ones."""
        self._copies.clear()
        return super().restore(files, paths)

    def commit(self, relations: Iterable[str] | None = None) -> None:
        """Make NEW the OLD of some relations, or of all."""
        names = None if relations is None else list(relations)
        changed = self.changed()
        self._follow_copies(changed if names is None else changed.intersection(names))
        super().commit(names)

    # --- plans ---------------------------------------------------------------------------------

    def run(self, plan: Plan, recorder: Recorder, limits: Limits) -> int:
        """Run the main procedure of a plan; return the number of rows that it handled.

        If it fails, the changes of the relations that the plan writes are rolled back; those of the
        relations that `insert` and `delete` have changed stay.
        """
        self._limits = limits
        if not self.size(PARTITIONS.name) and PARTITIONS.name in plan.types:
            super().insert(PARTITIONS.name, [(number,) for number in range(self.partition_count)])
            super().commit([PARTITIONS.name])
        return super().run(plan, recorder, limits)

    def _prepare(self, plan: Plan) -> PreparedPlan:
        if id(plan) not in self._prepared:
            for procedure, part in self._parts(plan).items():
                for name in self._pivots(plan, procedure, part):
                    table = self._tables[name]
                    is_movable = type(table) is not RemoteTable
                    if is_movable and not (isinstance(table, RemoteTable) and table.held):
                        self._partition(name)
        return super()._prepare(plan)

    def _pivots(self, plan: Plan, procedure: str, part: Plan) -> dict[str, int]:
        """Return the relations that the procedure of a stratum maintains, and their pivots."""
        (columns,) = (
            dict(each.columns)
            for each in plans.steps_of(plan)
            if isinstance(each, PlacedCall) and each.procedure == procedure
        )
        # The payload of a relation, `p•rank` say, is partitioned as the relation itself.
        return {
            each: columns[owner]
            for each in part.types
            if each in self._relations
            if (owner := each.partition(WORKING_SEPARATOR)[0]) in columns
        }

    def _place(self, prepared: PreparedPlan, step: PlacedCall) -> bool:
        """Run the procedure of a stratum in tasks, unless its partitions do not allow it."""
        part = self._parts(prepared.plan)[step.procedure]
        pivots = self._pivots(prepared.plan, step.procedure, part)
        count = self.partition_count
        tables = {name: self._tables[name] for name in pivots}
        for name, table in tables.items():
            assert isinstance(table, RemoteTable)
            if not table.partition_by(pivots[name], count):
                return False
        request = self._request(prepared, part, pivots)
        place = self._partition_place
        file = new_name(step.procedure, "plan")
        path = Path(place.root, file)
        path.write_bytes(pickle.dumps(request, protocol=5))
        first = next(iter(pivots))
        address = PartitionAddress(place.root, self._relations[first], (), 0, StoredPartition())
        tasks = [(replace(address, number=number), RunStratum(file)) for number in range(count)]
        prepared.recorder.procedure(step.procedure)
        try:
            found = place.jobs.run(tasks, f"maintain {', '.join(dict(step.columns))}")
        finally:
            path.unlink(missing_ok=True)
        for name, table in tables.items():
            assert isinstance(table, RemoteTable)
            table.take_changes(request.relations[name], [changes[name] for changes, _ in found])
        records = [record for _, record in found]
        prepared.budget.handled_rows += report_run(part, records, prepared.recorder)
        prepared.recorder.end(step.procedure, prepared.budget.handled_rows)
        return True

    def _request(
        self, prepared: PreparedPlan, part: Plan, pivots: Mapping[str, int]
    ) -> PlanRequest:
        """Return what tasks need to run a part of a plan."""
        relations: dict[str, PlanRelation] = {}
        given: dict[str, tuple[Relation, pa.Table, pa.Table, pa.Table]] = {}
        derived = set(plans.relations_written(part))
        for name, types in part.types.items():
            table = self._tables.get(name)
            if name == PARTITIONS.name:
                continue
            if table is None:
                if name not in derived:
                    rows = prepared.read(Reference(name))
                    columns = tuple(rows.column_names)
                    relation = Relation(name, columns, types, False, is_declared=False)
                    given[name] = relation, rows, rows.slice(0, 0), rows.slice(0, 0)
            elif not types or is_change_relation(name):
                old, added, removed = (self.read(name, each) for each in (State.OLD, *CHANGES))
                given[name] = self._relations[name], old, added, removed
            elif isinstance(table, RemoteTable) and (name in pivots or table.held is not None):
                relations[name] = table.for_tasks(pivots.get(name), self.partition_count)
            else:
                relations[name] = self._copy_for_tasks(name)
        limits = remaining_limits(self._limits)
        return PlanRequest(_pickle_plan(part), self.partition_count, limits, relations, given)


_pickle_plan = PlanCache(pickle_plan)
"""The same bytes for the same plan, so that workers recognise it."""


def _placed_parts(plan: Plan) -> dict[str, Plan]:
    """Return the parts of a plan that run in tasks, by procedure."""
    return {
        each.procedure: subplan(plan, each.procedure)
        for each in plans.steps_of(plan)
        if isinstance(each, PlacedCall)
    }
