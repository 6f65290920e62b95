"""The Spark engine: relations on the driver or in partitions, strata here or in tasks.

Small relations are held and computed here by the local engine, and Spark is never started for them.
Of others the tables are here, and their tuples in files that tasks probe. A stratum that has a
pivot and whose relations are in partitions is maintained by one job.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

import pyarrow as pa

from corollary.core import engine
from corollary.core.arrow import DependencyCheck, Violations
from corollary.core.engine import BULK_MIN_TUPLES
from corollary.core.logic import Value
from corollary.core.machine import grant_memory
from corollary.core.plans import PlacedCall, Placement, Plan, relations_written
from corollary.core.program import Relation
from corollary.core.recorder import Recorder
from corollary.core.states import State
from corollary.core.types import Type
from corollary.engines.local.engine import LocalEngine
from corollary.engines.local.evaluation.prefetch import LOOK_AHEAD_MAX_ROWS
from corollary.engines.local.prepared_plan import PreparedPlan
from corollary.engines.local.storage.layout import LayoutFamily
from corollary.engines.local.storage.table import Table
from corollary.engines.local.table_handle import recode_table
from corollary.engines.local.values.codes import Dictionary
from corollary.engines.spark.exchange import build_partitions
from corollary.engines.spark.frame_pins import framed_handles, release_frames
from corollary.engines.spark.jobs import (
    SCAN_MAX_TUPLES,
    Execution,
    JobCounts,
    PartitionJobs,
    Requests,
    SparkTaskPool,
    Task,
)
from corollary.engines.spark.placer import (
    PARTITIONS_PLACE,
    Placer,
    is_change_relation,
)
from corollary.engines.spark.relation.contents import (
    WIDER_BITS,
    PartitionedContents,
    PartitionPlace,
    contents_in,
    contents_of,
    fetch_lookups,
    working_relation,
    write_together,
)
from corollary.engines.spark.relation.dependencies import find_clashes, find_violations
from corollary.engines.spark.relation.files import PartitionedFiles
from corollary.engines.spark.relation.handle import PartitionedHandle
from corollary.engines.spark.relation.manifest import Manifest
from corollary.engines.spark.relation.shared_files import sweep
from corollary.engines.spark.relation.source import PartitionSource
from corollary.engines.spark.resources import SparkResources
from corollary.engines.spark.runs import LayoutExceeded
from corollary.engines.spark.session import granted_memory, parallelism_of
from corollary.engines.spark.task_strata import TaskStrata
from corollary.rewrite.partitions import ALL_PARTITIONS, PARTITIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    # Imported where they are used: small relations need none of it.
    from corollary.engines.spark.bulk.queries import SparkQueries
    from corollary.engines.spark.bulk.steps import SparkSteps

INSERTED_MAX_ROWS = 1 << 20
"""So many tuples of a handle are inserted at once."""

FETCHED_MAX_BYTES = 1 << 26
"""What queries have fetched is kept for the next one, up to this size."""

SWEEP_MIN_FILES = 64
"""The directory of partitions is looked through once this many files may be left in it…"""

SWEEP_DIVISOR = 4
"""…and there is one for this many in use: so a commit costs what its change touches."""

DICTIONARY_MAX_BYTES = 1 << 26
"""A dictionary of this size is trimmed when a transaction ends…"""

DICTIONARY_GROWTH = 2
"""…if it is this many times as large as after the last time: what it then holds is needed."""


class SparkEngine(LocalEngine):
    """Holds relations on the driver and in partitions; runs plans here, and strata in tasks.

    Args:
        spark: the user's session; a local one is started if it is needed and there is none.
        placement: `driver`, or `partitions` to have all relations there; `auto` decides by size.
        task_count: how many tasks run at once; by default what Spark says, which is asked for each
            job.
        scratch: a directory that the driver and all tasks see, or a place in an object store, for
            the files of partitions.
        memory: the bytes for tuples on the driver; the largest relations beyond it are partitioned.
        execution: who does the work of jobs. Without Spark, only what is in partitions stays there.
    """

    def __init__(
        self,
        spark: "SparkSession | None" = None,
        *,
        placement: str = "auto",
        task_count: int | None = None,
        scratch: str | None = None,
        bulk: engine.BulkMode | None = None,
        memory: int | str | None = None,
        execution: Execution = Execution.SPARK,
    ) -> None:
        super().__init__(bulk)
        self._execution = execution
        has_spark = execution is Execution.SPARK and (
            spark is not None or find_spec("pyspark") is not None
        )
        if (granted := granted_memory(spark)) is not None:
            grant_memory(granted)
        self._placer = Placer(
            is_forced=placement == PARTITIONS_PLACE,
            memory=engine.driver_memory(memory) if placement == "auto" and has_spark else None,
        )
        self._given_count = task_count if execution is Execution.SPARK else 1
        self._made_place: PartitionPlace | None = None
        self._trimmed_bytes = 0
        """The size of the dictionary when it was trimmed last."""
        self._next_sweep = SWEEP_MIN_FILES
        """The operations on partitions after which the directory is looked through."""
        self._handles: WeakSet[PartitionedHandle] = WeakSet()
        self._loaded: dict[str, tuple[PartitionSource, engine.TableHandle]] = {}
        """For relations that the open transaction has loaded, the files and what they are of."""
        self._resources = SparkResources(spark, scratch, execution)
        self._strata = TaskStrata(self)
        self._manifest = Manifest()
        self._bulk_queries: SparkQueries | None = None
        super().declare({PARTITIONS.name: PARTITIONS})

    # --- jobs ----------------------------------------------------------------------------------

    @property
    def _root(self) -> str:
        """The place of the files that tasks share."""
        return self._resources.root

    def _run_tasks(self, task: Task, requests: Requests, title: str) -> list[bytes]:
        """Run a job with one task for each request; return the results in this order."""
        if self._execution is Execution.SPARK:
            return self._resources.run(task, requests, title)
        return [task(each) for each in requests.values()]

    @property
    def tasks(self) -> SparkTaskPool | None:
        """Where large inputs are read."""
        most = None
        if self._execution is Execution.SEQUENTIAL:
            most = SCAN_MAX_TUPLES
        elif self._execution is Execution.SPARK and find_spec("pyspark") is not None:
            most = self._placer.load_max_tuples
        if most is None:
            return None
        return SparkTaskPool(self._run_tasks, lambda: self._root, most)

    @property
    def default_placement(self) -> str:
        """The placement of strata by default."""
        return "driver" if self._execution is Execution.SPARK else super().default_placement

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
        if not has_pivot:
            return Placement.DRIVER
        size = sum(self.size(name, State.OLD) for name in relations if name in self._relations)
        lower = sum(self.size(name) for name in below if name in self._relations)
        is_partitioned = any(map(self.is_partitioned, relations))
        self._placer.worker_memory = self._resources.worker_memory
        return self._placer.placement(size, lower, is_partitioned=is_partitioned)

    def close(self) -> None:
        """Remove all files that no frame reads, and release the session."""
        release_frames()
        own = set(map(id, self._handles))
        self._resources.close([each for each in framed_handles() if id(each) in own])

    def _remote_steps(self, plan: Plan, tables: Mapping[str, Table]) -> "SparkSteps | None":
        if self._execution is not Execution.SPARK or not self._has_partitions(plan):
            return None
        from corollary.engines.spark.bulk.queries import SparkQueries
        from corollary.engines.spark.bulk.steps import SparkSteps

        if self._bulk_queries is None:
            self._bulk_queries = SparkQueries(self._resources, self.partition_place, self._bulk)
        return SparkSteps(self._bulk_queries, plan, tables, self._relations.keys())

    @property
    def partition_place(self) -> PartitionPlace:
        """What the tables of relations in partitions share."""
        if self._made_place is None:
            root = self._resources.make_root(PARTITIONS_PLACE)
            slots = lambda: self.task_count  # noqa: E731 - it may start Spark
            jobs = PartitionJobs(self._run_tasks, slots, self._execution)
            self._made_place = PartitionPlace(root, jobs, self._dictionary)
        return self._made_place

    @property
    def tables(self) -> Mapping[str, Table]:
        """The tables of all relations."""
        return self._tables

    @property
    def reads_partitions(self) -> bool:
        """True: relations may be in the files of an index that tasks have written."""
        return True

    @property
    def job_counts(self) -> JobCounts:
        """What the jobs on partitions have cost so far."""
        return JobCounts() if self._made_place is None else replace(self._made_place.jobs.counts)

    # --- relations -----------------------------------------------------------------------------

    def _new_table(self, relation: Relation) -> Table:
        table = super()._new_table(relation)
        if self._placer.needs_partitions(relation):
            PartitionedContents(table, relation, self.partition_place)
        return table

    def _contents(self, relation: str) -> PartitionedContents:
        """Return what the table of a relation has in partitions, from now on."""
        table = self._tables[relation]
        found = contents_of(table)
        if found is None:
            declared, place = self._relations[relation], self.partition_place
            found = PartitionedContents(table, declared, place)
            self._unprepare(relation)
        return found

    def _all_contents(self) -> list[PartitionedContents]:
        if self._made_place is None:
            return []
        found = map(contents_of, self._tables.values())
        return [each for each in found if each is not None]

    def is_partitioned(self, relation: str) -> bool:
        """Whether the committed tuples of a relation are in partitions, or will be."""
        return relation in self._tables and (
            self._tables[relation].is_partitioned
            or self._placer.needs_partitions(self._relations[relation])
        )

    def residency(self, relation: str) -> engine.Residency:
        """Return where the tuples of a relation are, and why."""
        is_known = relation in self._tables
        is_there = self.is_partitioned(relation) if is_known else self._placer.is_forced
        place = PARTITIONS_PLACE if is_there else self.default_placement
        return self._placer.residency(self.size(relation) if is_known else 0, place)

    def _partition_large(self) -> None:
        """Partition the largest relations, until the others fit into the budget."""
        if self._placer.memory is None or self._placer.headroom >= 0:
            return
        here = {
            name: table.size(State.NEW)
            for name, table in self._tables.items()
            if not table.is_partitioned and table.types and not is_change_relation(name)
        }
        for name in self._placer.beyond_budget(here):
            self._contents(name).move_committed()

    def partitioned_files(self, relation: str) -> PartitionedFiles | None:
        """Return the files of the committed tuples of a relation; None if they are here."""
        found = contents_in(self._tables[relation], State.OLD)
        return None if found is None else found.files_of(State.OLD)

    def attach_files(self, relation: str, files: PartitionedFiles) -> None:
        """Make the tuples of files those of a relation; none of them passes the driver."""
        self._contents(relation).attach_files(files)

    def load(self, relation: str, rows: engine.TableHandle) -> None:
        """Add tuples that are outside of this process to a relation without any, as ADDED."""
        assert not self.size(relation), f"`{relation}` is not empty"
        self._written.add(relation)
        orders, place = self._tables[relation].known_orders, self.partition_place
        declared = self._relations[relation]
        files = build_partitions(rows, declared, orders, place.root, place.jobs)
        contents = self._contents(relation)
        contents.load(files)
        # Of equal tuples, one was loaded; what is equal may be written in several ways.
        is_same = files.size == len(rows) and not any(map(_has_equals, declared.types))
        if is_same and contents.loading is not None:
            self._loaded[relation] = contents.loading, rows

    def insert(
        self, relation: str, rows: Sequence[tuple[Value, ...]] | pa.Table | engine.TableHandle
    ) -> None:
        """Add tuples to NEW of a relation; those already there are no change."""
        self._written.add(relation)
        self._placer.grow(len(rows))
        if isinstance(rows, pa.Table | Sequence):
            self._widening(partial(super().insert, relation, rows))
        elif not rows.is_distributed:
            for each in rows.slices(INSERTED_MAX_ROWS):
                self._widening(partial(super().insert, relation, each))
        elif (contents := self._move_committed(relation)) is not None:
            contents.change_by_handle(State.ADDED, rows)
        else:  # the tuples that it has were inserted by this transaction, and are here
            few = super().read(relation)
            self.clear([relation])
            self.load(relation, rows)
            if few.num_rows:
                super().insert(relation, few)

    def delete(
        self, relation: str, rows: Sequence[tuple[Value, ...]] | pa.Table | engine.TableHandle
    ) -> None:
        """Remove tuples from NEW of a relation; those not in it are no change."""
        self._written.add(relation)
        if isinstance(rows, pa.Table | Sequence):
            self._widening(partial(super().delete, relation, rows))
            return
        contents = self._move_committed(relation) if rows.is_distributed else None
        if contents is not None:
            contents.change_by_handle(State.REMOVED, rows)
            return
        for each in rows.slices(INSERTED_MAX_ROWS):
            self._widening(partial(super().delete, relation, each))

    def prefetch(self, lookups: Iterable[engine.RowLookup]) -> None:
        """Fetch what a change is going to look up in partitions, by one job."""
        asked = [
            (contents, each, self._encode(each.relation, each.rows, each.columns)[0])
            for each in lookups
            if (contents := contents_in(self._tables[each.relation], State.NEW)) is not None
            if len(each.rows) <= LOOK_AHEAD_MAX_ROWS
        ]
        self._widening(partial(fetch_lookups, asked))

    def _move_committed(self, relation: str) -> PartitionedContents | None:
        """Move the committed tuples of a relation to partitions; None if it has none."""
        if self._tables[relation].size(State.OLD):
            self._contents(relation).move_committed()
        return contents_in(self._tables[relation], State.NEW)

    def apply_change(
        self,
        relation: str,
        added: pa.Table | engine.TableHandle,
        removed: pa.Table | engine.TableHandle,
    ) -> None:
        """Change a relation by tuples that are not in it and tuples that are.

        What was loaded is its OLD by then.
        """
        table = self._tables[relation]
        if table.is_partitioned and not table.size(State.OLD):
            table.commit()
        super().apply_change(relation, added, removed)

    # --- index files ---------------------------------------------------------------------------

    def save(  # type: ignore[override]
        self, relations: Iterable[str]
    ) -> Iterator[tuple[str, bytes | Path | engine.FileOrigin]]:
        """Yield the files of an index of relations, as they are in OLD now: name and bytes."""
        names = list(relations)
        files = {name: each for name in names if (each := self.partitioned_files(name))}
        yield from super().save(name for name in names if name not in files)
        yield from self._manifest.save(list(files.values()))

    def restore(
        self, files: Mapping[str, pa.Buffer], paths: engine.IndexPlaces | None = None
    ) -> set[str]:
        """Fill declared relations from the files of an index; return which ones."""
        self._strata.forget(list(self._relations))
        found = super().restore(files)
        self._placer.measure()
        if paths:
            root = self.partition_place.root
            stored = self._manifest.restore(root, self._relations, files, paths)
            for name, each in stored.items():
                self.attach_files(name, each)
            found |= stored.keys()
        for name in found:
            self._move_forced(name)
        return found

    def _move_forced(self, name: str) -> None:
        """Move the committed tuples of a relation to partitions if it has to be there."""
        if self._placer.needs_partitions(self._relations[name]):
            self._contents(name).move_committed()

    def rename(self, old: str, new: str) -> None:
        """Give a relation another name, which must be unused."""
        self._strata.forget([old])
        super().rename(old, new)
        self._relabel_table(new)

    def relabel(self, relation: Relation) -> None:
        """Give the columns of a relation the names that it has here; the types are the same."""
        super().relabel(relation)
        self._relabel_table(relation.name)

    def _relabel_table(self, name: str) -> None:
        contents = contents_of(self._tables[name])
        if contents is not None:
            contents.relabel(self._relations[name])

    def copy(self, source: str, target: str) -> None:
        """Make the NEW tuples of one relation the OLD and NEW ones of another."""
        self._strata.forget([target])
        contents = contents_in(self._tables[source], State.NEW)
        if contents is None:
            super().copy(source, target)
            self._move_forced(target)
        else:
            self.attach_files(target, contents.new_files())
        self._placer.measure()

    def drop(self, relations: Iterable[str]) -> None:
        """Remove relations."""
        names = list(relations)
        self._strata.forget(names)
        super().drop(names)

    def clear(self, relations: Iterable[str]) -> None:
        """Remove all tuples of relations, in every state."""
        names = list(relations)
        self._strata.forget(names)
        super().clear(names)

    # --- changes -------------------------------------------------------------------------------

    def commit(self, relations: Iterable[str] | None = None) -> None:
        """Make NEW the OLD of some relations, or of all."""
        names = None if relations is None else list(relations)
        changed = self.changed()
        self._placer.grow(sum(self.size(each, State.ADDED) for each in changed))
        self._strata.follow(changed if names is None else changed.intersection(names))
        if self._made_place is not None:
            self._made_place.jobs.operations += len(changed)
        for name in changed if names is None else changed.intersection(names):
            if self._placer.needs_partitions(self._relations[name]):
                self._contents(name).move_added()
        super().commit(names)
        self._release()
        if names is None:
            self._partition_large()
            self._trim_dictionary()
            self._sweep()

    def _prepare_commit(self, changed: Sequence[Table]) -> None:
        """Write what changes in partitions, and read the rest."""
        super()._prepare_commit([table for table in changed if not table.is_partitioned])
        held = (contents_of(table) for table in changed if table.has_change)
        write_together([each for each in held if each is not None and each.is_held])

    def rollback(self) -> None:
        """Make OLD the NEW of every relation."""
        super().rollback()
        self._release()

    def _release(self) -> None:
        """Forget what was fetched for a transaction."""
        self._loaded.clear()
        for each in self._all_contents():
            if each.fetched_bytes:
                each.release()

    def _trim_dictionary(self) -> None:
        """Forget the texts that only passed, once they are many: code the tables here anew."""
        limit = max(DICTIONARY_MAX_BYTES, DICTIONARY_GROWTH * self._trimmed_bytes)
        if self._made_place is None or self._dictionary.nbytes <= limit:
            return
        if self.changed():
            return
        fresh = Dictionary()
        for name, table in self._tables.items():
            if table.size(State.OLD) and not table.is_partitioned:
                self._tables[name] = recode_table(table, self._dictionary, fresh)
        self._dictionary = self._made_place.dictionary = fresh
        for each in self._all_contents():
            each.release()
        self._prepared.clear()  # their constants are codes of the old dictionary
        self._trimmed_bytes = fresh.nbytes

    def _files_in_use(self) -> set[str]:
        """Return the paths of all files of tables, of copies for tasks, and of the manifest."""
        names = {*self._strata.files, self._manifest.base}
        others = {f"{self.partition_place.root}/{name}" for name in names}
        return others.union(*(each.file_paths for each in self._all_contents()))

    def _sweep(self) -> None:
        """Remove what no table and no handle needs, and what lost tasks have left, now and then."""
        if self._made_place is None or self._made_place.jobs.operations < self._next_sweep:
            return
        needed = self._files_in_use()
        release_frames()
        for handle in self._handles:
            needed |= handle.source.files.paths
        sweep(self._made_place.root, needed)
        spared = max(SWEEP_MIN_FILES, len(needed) // SWEEP_DIVISOR)
        self._next_sweep = self._made_place.jobs.operations + spared

    # --- reading -------------------------------------------------------------------------------

    def read(self, relation: str, state: State = State.NEW) -> pa.Table:
        """Return the tuples of a relation in a state, as an Arrow table."""
        handle = self._partitioned_handle(relation, state)
        return super().read(relation, state) if handle is None else handle.table()

    def handle(self, relation: str, state: State = State.NEW) -> engine.TableHandle:
        """Return a handle to the present tuples of a relation in a state."""
        handle = self._partitioned_handle(relation, state)
        if handle is None:
            return super().handle(relation, state)
        if (loaded := self._loaded.get(relation)) is not None:
            is_same = self._contents(relation).loading is loaded[0]
            if is_same and not handle.added.num_rows and not handle.removed.num_rows:
                return loaded[1]
        self._handles.add(handle)
        return handle

    def _partitioned_handle(self, relation: str, state: State) -> PartitionedHandle | None:
        contents = contents_in(self._tables[relation], state)
        if contents is None:
            return None
        files, added, removed = contents.parts(state)
        source = PartitionSource(files, self.partition_place.jobs)
        return PartitionedHandle(source, added, removed)

    def within(self, relation: str, boxes: Sequence[Mapping[int, engine.ValueRange]]) -> pa.Table:
        """Return the tuples of NEW in one of several boxes, each once, perhaps with others."""
        handle = self._partitioned_handle(relation, State.NEW)
        return super().within(relation, boxes) if handle is None else handle.within(boxes)

    def violations(self, relation: str, check: DependencyCheck) -> Violations:
        """Return pairs of tuples of NEW that violate a functional dependency."""
        contents = contents_of(self._tables[relation])
        found = None if contents is None else find_violations(contents, check)
        return super().violations(relation, check) if found is None else found

    def clashes(self, relation: str, check: DependencyCheck) -> Violations | None:
        """Return those among the tuples that agree with added ones; None to look them up here."""
        contents = contents_of(self._tables[relation])
        if contents is not None:
            return find_clashes(contents, check)
        return super().clashes(relation, check)

    # --- plans ---------------------------------------------------------------------------------

    def _working_table(
        self, name: str, types: tuple[Type, ...], family: LayoutFamily | None, plan: Plan
    ) -> Table:
        table = super()._working_table(name, types, family, plan)
        if types and self._has_partitions(plan):
            relation = working_relation(name, types)
            PartitionedContents(table, relation, self.partition_place, is_working=True)
        return table

    def _place(self, prepared: PreparedPlan, step: PlacedCall) -> bool:
        return step.placement is Placement.TASKS and self._strata.run(prepared, step)

    def _prepare(self, plan: Plan) -> PreparedPlan:
        if id(plan) not in self._prepared:
            for name in self._strata.maintained(plan):
                self._contents(name).move_committed()
            for name in self._strata.probed(plan):
                if name in self._tables and self.size(name) >= BULK_MIN_TUPLES:
                    self._contents(name).move_committed()
                    self._contents(name).move_added()
            if self._has_partitions(plan):
                for name in relations_written(plan):  # its results may be in partitions
                    if name in self._tables and self._tables[name].types:
                        self._contents(name)
        return super()._prepare(plan)

    def _has_partitions(self, plan: Plan) -> bool:
        """Whether a plan names a relation that may be in partitions."""
        return any(
            name in self._tables and self._tables[name].remote is not None for name in plan.types
        )

    def run(self, plan: Plan, recorder: Recorder, limits: engine.Limits) -> int:
        """Run the main procedure of a plan; return the number of rows that it handled.

        If it fails, the changes of the relations that the plan writes are rolled back; those of the
        relations that `insert` and `delete` have changed stay.
        """
        self._strata.limits = limits
        if not self.size(PARTITIONS.name) and PARTITIONS.name in plan.types:
            super().insert(PARTITIONS.name, [ALL_PARTITIONS])
            super().commit([PARTITIONS.name])
        if sum(each.fetched_bytes for each in self._all_contents()) > FETCHED_MAX_BYTES:
            self._release()
        if self._made_place is not None:
            self._made_place.jobs.recorder = recorder
        try:
            return self._widening(partial(super().run, plan, recorder, limits))
        finally:
            if self._made_place is not None:
                self._made_place.jobs.recorder = None

    def _widening(self, work: Callable[[], engine.MapResult]) -> engine.MapResult:
        """Do some work; begin anew with wider codes if those of texts that passed do not fit."""
        while True:
            try:
                return work()
            except LayoutExceeded:
                self.partition_place.interned_bits += WIDER_BITS
                for each in self._all_contents():
                    each.widen_interned()


def _has_equals(type_: Type) -> bool:
    """Whether values of a type are equal that are not the same, as zeros of both signs are."""
    return type_.stores_floats or type_.record is not None
