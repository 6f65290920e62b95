"""An engine whose relations may be partitioned: tables on the driver, their tuples in files."""

import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from weakref import WeakSet

import pyarrow as pa

from corollary.core.arrow import DependencyCheck, Violations
from corollary.core.engine import (
    TUPLE_BYTES,
    BulkMode,
    IndexPlaces,
    Limits,
    MapResult,
    RelationPlace,
    RowLookup,
    TableHandle,
    ValueRange,
)
from corollary.core.logic import Value
from corollary.core.plans import Plan, relations_written
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
from corollary.engines.spark.partitioned.fetched_files import ORIGIN_SUFFIX, remove
from corollary.engines.spark.partitioned.handle import PartitionedHandle
from corollary.engines.spark.partitioned.jobs import JobCounts, PartitionJobs, serve_number
from corollary.engines.spark.partitioned.loading import build_partitions
from corollary.engines.spark.partitioned.partition_files import PartitionedFiles
from corollary.engines.spark.partitioned.remote_table import (
    CodedLookup,
    MovableTable,
    RemoteTable,
    WorkingTable,
    fetch_lookups,
    is_change_relation,
)
from corollary.engines.spark.partitioned.run import LayoutExceeded
from corollary.engines.spark.partitioned.saved_files import restore_files, save_files
from corollary.engines.spark.partitioned.source import PartitionSource
from corollary.engines.spark.partitioned.table import WIDER_BITS, PartitionPlace
from corollary.engines.spark.resources import SparkResources
from corollary.engines.spark.task_pool import SparkTaskPool
from corollary.engines.spark.task_runner import Task

LOAD_DIVISOR = 2
"""A load that would take more than one in so many bytes of the budget does not pass the driver."""

INSERTED_MAX_ROWS = 1 << 20
"""So many tuples of a handle are inserted at once."""

FETCHED_MAX_BYTES = 1 << 26
"""What queries have fetched is kept for the next one, up to this size."""

DICTIONARY_MAX_BYTES = 1 << 26
"""A dictionary of this size is trimmed when a transaction ends…"""

DICTIONARY_GROWTH = 2
"""…if it is so many times as large as after the last time: what it then holds is needed."""

PARTITIONS_PLACE = "partitions"
"""The place of relations whose committed tuples are in partitions."""


class PartitioningEngine(LocalEngine):
    """Holds relations on the driver, or in partitions that tasks probe.

    Args:
        is_forced: whether all relations are partitioned.
        memory: the bytes that the tuples of other relations may take here; None for any number.
    """

    def __init__(
        self,
        bulk: BulkMode | None = None,
        *,
        is_forced: bool = False,
        memory: int | None = None,
    ) -> None:
        super().__init__(bulk)
        self._is_forced = is_forced
        self._memory = memory
        self._headroom = -1
        """The bytes that tables here may still grow by until they are measured again."""
        self._made_place: PartitionPlace | None = None
        self._trimmed_bytes = 0
        """The size of the dictionary when it was trimmed last."""
        self._handles: WeakSet[PartitionedHandle] = WeakSet()

    _resources: SparkResources
    """What it holds of Spark."""

    @property
    @abstractmethod
    def _root(self) -> Path:
        """The directory of the files of partitions."""

    def _run_tasks(self, task: Task, numbers: Sequence[int], title: str) -> list[bytes]:
        """Run a job with one task for each number; return the results in this order."""
        return self._resources.run(task, numbers, title)

    def _run_slices(self, slices: Mapping[int, bytes], title: str) -> list[bytes]:
        """Run a job with one task for each slice of work."""
        return self._run_tasks(partial(serve_number, slices), list(slices), title)

    @property
    def tasks(self) -> SparkTaskPool | None:
        """Where large inputs are read."""
        if find_spec("pyspark") is None:
            return None
        if self._is_forced:
            most = -1
        elif self._memory is not None:
            most = self._memory // (TUPLE_BYTES * LOAD_DIVISOR)
        else:
            return None
        slots = lambda: self.task_count  # noqa: E731 - it may start Spark
        return SparkTaskPool(self._run_tasks, lambda: self._root, slots, most)

    @property
    def _partition_place(self) -> PartitionPlace:
        if self._made_place is None:
            root = self._root / PARTITIONS_PLACE
            root.mkdir()
            self._made_place = PartitionPlace(str(root), self._new_jobs(), self._dictionary)
        return self._made_place

    def _new_jobs(self) -> PartitionJobs:
        return PartitionJobs(self._run_slices, lambda: self.task_count)

    @property
    def task_count(self) -> int:
        """How many tasks run at once, now."""
        return self.partition_count

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
        if self._is_forced and relation.types and not is_change_relation(relation.name):
            return RemoteTable(relation, self._partition_place)
        return super()._new_table(relation)

    def _partitioned_tables(self) -> list[RemoteTable]:
        if self._made_place is None:
            return []
        return [each for each in self._tables.values() if isinstance(each, RemoteTable)]

    def _partitioned_table(self, relation: str, state: State = State.OLD) -> RemoteTable | None:
        """Return the table of a relation that has tuples of a state in partitions."""
        table = self._tables[relation]
        return table if isinstance(table, RemoteTable) and table.is_remote(state) else None

    def is_partitioned(self, relation: str) -> bool:
        """Whether the committed tuples of a relation are in partitions, or will be."""
        return relation in self._tables and self._tables[relation].is_partitioned

    def place_of(self, relation: str) -> RelationPlace:
        """Return where the tuples of a relation are, and why."""
        if self._is_forced and (relation not in self._tables or self.is_partitioned(relation)):
            return RelationPlace(PARTITIONS_PLACE, "asked for")
        tuples = self.size(relation) if relation in self._tables else 0
        reason = f"its {tuples:,} tuples take about {TUPLE_BYTES * tuples >> 20:,} MB"
        if self._memory is not None:
            reason += f", the driver has {self._memory >> 20:,} MB for all relations"
        place = PARTITIONS_PLACE if self.is_partitioned(relation) else self.default_placement
        return RelationPlace(place, reason)

    def _partition_large(self) -> None:
        """Partition the largest relations, until the others fit into the budget."""
        if self._memory is None or self._headroom >= 0:
            return
        here = {
            name: TUPLE_BYTES * table.size(State.NEW)
            for name, table in self._tables.items()
            if not table.is_partitioned and table.types and not is_change_relation(name)
        }
        total = sum(here.values())
        for name in sorted(here, key=lambda each: -here[each]):
            if total <= self._memory:
                break
            self._partition(name)
            total -= here[name]
        self._headroom = self._memory - total

    def _partition(self, name: str) -> None:
        """Move a relation to partitions; a change that is open stays here."""
        before = self._tables[name]
        table = RemoteTable(self._relations[name], self._partition_place, before.family)
        for order in before.old_layers():
            table.want(order)
        table.assign(before.tuples(State.OLD))
        table.commit()
        if before.has_change:
            main = before.arrangement(before.primary_order)
            changed = main.words(State.ADDED), main.words(State.REMOVED)
            layout = before.layout
            table.set_change(*(table.layout.convert(each, layout) for each in changed))
        self._set_table(name, table)

    def _settle_moved(self) -> None:
        """Let relations that a transaction has moved to partitions stay there."""
        if self._made_place is None:
            return
        for name, table in list(self._tables.items()):
            if isinstance(table, MovableTable) and table.source and not is_change_relation(name):
                self._set_table(name, RemoteTable(self._relations[name], self._partition_place))
                self.adopt(name, table.source.files)

    def partitioned_files(self, relation: str) -> PartitionedFiles | None:
        """Return the files of committed or loaded tuples of a relation; None if they are here."""
        table = self._partitioned_table(relation)
        return None if table is None else table.files

    def adopt(self, relation: str, files: PartitionedFiles) -> None:
        """Make the tuples of files those of a relation; none of them passes the driver."""
        self._make_partitioned(relation).adopt(files)

    def _set_table(self, name: str, table: Table) -> None:
        self._tables[name] = table
        self._unprepare(name)

    def _make_partitioned(self, relation: str) -> RemoteTable:
        """Return the table of a relation, whose tuples will be in partitions."""
        table = self._tables[relation]
        if not isinstance(table, RemoteTable):
            declared = self._relations[relation]
            table = RemoteTable(declared, self._partition_place, table.family)
            self._set_table(relation, table)
        return table

    def load(self, relation: str, rows: TableHandle) -> None:
        """Add tuples that are outside of this process to a relation without any, as ADDED."""
        assert not self.size(relation), f"`{relation}` is not empty"
        self._written.add(relation)
        table, place = self._make_partitioned(relation), self._partition_place
        orders = table.known_orders
        declared = self._relations[relation]
        table.load(build_partitions(rows, declared, orders, place.root, place.jobs))

    def insert(
        self, relation: str, rows: Sequence[tuple[Value, ...]] | pa.Table | TableHandle
    ) -> None:
        """Add tuples to NEW of a relation; those already there are no change."""
        self._written.add(relation)
        self._headroom -= TUPLE_BYTES * len(rows)
        if isinstance(rows, pa.Table | Sequence):
            self._widening(partial(super().insert, relation, rows))
        elif not rows.is_distributed:
            for each in rows.slices(INSERTED_MAX_ROWS):
                self._widening(partial(super().insert, relation, each))
        elif (table := self._table_in_partitions(relation)) is not None:
            table.change_by_handle(State.ADDED, rows)
        else:  # the tuples that it has were inserted by this transaction, and are here
            few = super().read(relation)
            self.clear([relation])
            self.load(relation, rows)
            if few.num_rows:
                super().insert(relation, few)

    def delete(
        self, relation: str, rows: Sequence[tuple[Value, ...]] | pa.Table | TableHandle
    ) -> None:
        """Remove tuples from NEW of a relation; those not in it are no change."""
        self._written.add(relation)
        if isinstance(rows, pa.Table | Sequence):
            self._widening(partial(super().delete, relation, rows))
            return
        table = self._table_in_partitions(relation) if rows.is_distributed else None
        if table is not None:
            table.change_by_handle(State.REMOVED, rows)
            return
        for each in rows.slices(INSERTED_MAX_ROWS):
            self._widening(partial(super().delete, relation, each))

    def prefetch(self, lookups: Iterable[RowLookup]) -> None:
        """Fetch what a change is going to look up in partitions, by one job."""
        asked = [
            CodedLookup(table, each, self._encode(each.relation, each.rows, each.columns)[0])
            for each in lookups
            if (table := self._partitioned_table(each.relation, State.NEW)) is not None
            if len(each.rows) <= LOOK_AHEAD_MAX_ROWS
        ]
        self._widening(partial(fetch_lookups, asked))

    def _table_in_partitions(self, relation: str) -> RemoteTable | None:
        """Return the table of a relation after its tuples were moved to partitions.

        None if it has no committed or loaded ones.
        """
        table = self._tables[relation]
        if not table.is_partitioned and table.size(State.OLD):
            self._partition(relation)
            table = self._tables[relation]
        return table if isinstance(table, RemoteTable) and table.held is not None else None

    def apply_change(
        self, relation: str, added: pa.Table | TableHandle, removed: pa.Table | TableHandle
    ) -> None:
        """Change a relation by tuples that are not in it and tuples that are.

        What was loaded is its OLD by then.
        """
        table = self._tables[relation]
        if isinstance(table, RemoteTable) and table.is_loading:
            table.commit()
        super().apply_change(relation, added, removed)

    # --- index files ---------------------------------------------------------------------------

    def save(self, relations: Iterable[str]) -> Iterator[tuple[str, bytes | Path]]:  # type: ignore[override]
        """Yield the files of an index of relations, as they are in OLD now: name and bytes."""
        names = list(relations)
        files = {name: each for name in names if (each := self.partitioned_files(name))}
        yield from super().save(name for name in names if name not in files)
        yield from save_files(files.values())

    def restore(self, files: Mapping[str, pa.Buffer], paths: IndexPlaces | None = None) -> set[str]:
        """Fill declared relations from the files of an index; return which ones."""
        found = super().restore(files)
        self._headroom = -1
        if paths:
            stored = restore_files(Path(self._partition_place.root), self._relations, files, paths)
            for name, each in stored.items():
                self.adopt(name, each)
            found |= stored.keys()
        return found

    def rename(self, old: str, new: str) -> None:
        """Give a relation another name, which must be unused."""
        super().rename(old, new)
        self._relabel_table(new)

    def relabel(self, relation: Relation) -> None:
        """Give the columns of a relation the names that it has here; the types are the same."""
        super().relabel(relation)
        self._relabel_table(relation.name)

    def _relabel_table(self, name: str) -> None:
        table = self._tables[name]
        if isinstance(table, RemoteTable):
            table.relabel(self._relations[name])

    def copy(self, source: str, target: str) -> None:
        """Make the NEW tuples of one relation the OLD and NEW ones of another."""
        if self._partitioned_table(source) is not None and not self.is_partitioned(target):
            self._set_table(target, RemoteTable(self._relations[target], self._partition_place))
        super().copy(source, target)
        self._headroom = -1

    # --- changes -------------------------------------------------------------------------------

    def commit(self, relations: Iterable[str] | None = None) -> None:
        """Make NEW the OLD of some relations, or of all."""
        names = None if relations is None else list(relations)
        self._headroom -= TUPLE_BYTES * sum(self.size(n, State.ADDED) for n in self.changed())
        super().commit(names)
        self._release()
        if names is None:
            self._settle_moved()
            self._partition_large()
            self._trim_dictionary()
            self._sweep()

    def rollback(self) -> None:
        """Make OLD the NEW of every relation."""
        super().rollback()
        self._release()

    def _release(self) -> None:
        """Forget what was fetched for a transaction."""
        for table in self._partitioned_tables():
            if table.fetched_bytes:
                table.release()

    def _trim_dictionary(self) -> None:
        """Forget the texts that only passed, once they are many: code the tables here anew."""
        limit = max(DICTIONARY_MAX_BYTES, DICTIONARY_GROWTH * self._trimmed_bytes)
        if self._made_place is None or self._dictionary.nbytes <= limit:
            return
        if self.changed():
            return
        fresh = Dictionary()
        for name, table in self._tables.items():
            if not table.is_partitioned:
                self._tables[name] = recode_table(table, self._dictionary, fresh)
        self._dictionary = self._made_place.dictionary = fresh
        for each in self._partitioned_tables():
            each.release()
        self._prepared.clear()  # their constants are codes of the old dictionary
        self._trimmed_bytes = fresh.nbytes

    def _files_in_use(self) -> set[str]:
        """Return the paths of all files of tables."""
        return {
            path
            for table in self._partitioned_tables()
            for source in (table.source, table.loading, table.staged)
            if source is not None
            for path in source.files.paths
        }

    def _sweep(self) -> None:
        """Remove what no table and no handle needs, and what lost tasks have left."""
        if self._made_place is None:
            return
        needed = self._files_in_use()
        for handle in self._handles:
            needed |= handle.source.files.paths
        with os.scandir(self._made_place.root) as entries:
            left = [each for each in entries if each.path.removesuffix(ORIGIN_SUFFIX) not in needed]
        for each in left:
            remove(Path(each.path))

    # --- reading -------------------------------------------------------------------------------

    def read(self, relation: str, state: State = State.NEW) -> pa.Table:
        """Return the tuples of a relation in a state, as an Arrow table."""
        handle = self._partitioned_handle(relation, state)
        return super().read(relation, state) if handle is None else handle.table()

    def handle(self, relation: str, state: State = State.NEW) -> TableHandle:
        """Return a handle to the present tuples of a relation in a state."""
        handle = self._partitioned_handle(relation, state)
        if handle is None:
            return super().handle(relation, state)
        self._handles.add(handle)
        return handle

    def _partitioned_handle(self, relation: str, state: State) -> PartitionedHandle | None:
        table = self._partitioned_table(relation, state)
        if table is None:
            return None
        files, added, removed = table.parts(state)
        source = PartitionSource(files, self._partition_place.jobs)
        return PartitionedHandle(source, added, removed)

    def within(self, relation: str, boxes: Sequence[Mapping[int, ValueRange]]) -> pa.Table:
        """Return the tuples of NEW in one of several boxes, each once, perhaps with others."""
        handle = self._partitioned_handle(relation, State.NEW)
        return super().within(relation, boxes) if handle is None else handle.within(boxes)

    def violations(self, relation: str, check: DependencyCheck) -> Violations:
        """Return pairs of tuples of NEW that violate a functional dependency."""
        table = self._tables[relation]
        found = table.violations(check) if isinstance(table, RemoteTable) else None
        return super().violations(relation, check) if found is None else found

    def clashes(self, relation: str, check: DependencyCheck) -> Violations | None:
        """Return those among the tuples that agree with added ones; None to look them up here."""
        table = self._tables[relation]
        if isinstance(table, RemoteTable):
            return table.clashes(check)
        return super().clashes(relation, check)

    # --- plans ---------------------------------------------------------------------------------

    def _working_table(
        self, name: str, types: tuple[Type, ...], family: LayoutFamily | None, plan: Plan
    ) -> Table:
        if types and self._has_partitions(plan):
            columns = tuple(f"c{at}" for at in range(len(types)))
            relation = Relation(name, columns, types, False, is_declared=False)
            return WorkingTable(relation, self._partition_place, family)
        return super()._working_table(name, types, family, plan)

    def _prepare(self, plan: Plan) -> PreparedPlan:
        if id(plan) not in self._prepared and self._has_partitions(plan):
            for name in relations_written(plan):  # its results may be in partitions
                table = self._tables.get(name)
                if table is not None and table.types and not isinstance(table, RemoteTable):
                    relation, place = self._relations[name], self._partition_place
                    self._set_table(name, MovableTable.of(table, relation, place))
        return super()._prepare(plan)

    def _has_partitions(self, plan: Plan) -> bool:
        """Whether a plan names a relation that may be in partitions."""
        return any(isinstance(self._tables.get(name), RemoteTable) for name in plan.types)

    def run(self, plan: Plan, recorder: Recorder, limits: Limits) -> int:
        """Run the main procedure of a plan; return the number of rows that it handled.

        If it fails, the changes of the relations that the plan writes are rolled back; those of the
        relations that `insert` and `delete` have changed stay.
        """
        if sum(each.fetched_bytes for each in self._partitioned_tables()) > FETCHED_MAX_BYTES:
            self._release()
        if self._made_place is not None:
            self._made_place.jobs.recorder = recorder
        try:
            return self._widening(partial(super().run, plan, recorder, limits))
        finally:
            if self._made_place is not None:
                self._made_place.jobs.recorder = None

    def _widening(self, work: Callable[[], MapResult]) -> MapResult:
        """Do some work; begin anew with wider codes if those of texts that passed do not fit."""
        while True:
            try:
                return work()
            except LayoutExceeded:
                self._partition_place.interned_bits += WIDER_BITS
                for table in self._partitioned_tables():
                    table.widen_interned()
