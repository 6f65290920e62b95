"""The engine of a driver: strata run on the driver, or in the remote stores of their relations.

Small relations are held and computed here by the local engine, and Spark is never started for them.
A partitioned stratum is maintained by one Spark job. Its relations are then remote: the driver has
at most their open changes, or a copy if a step here reads them.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from corollary.core.engine import (
    TUPLE_BYTES,
    BulkMode,
    IndexPlaces,
    Limits,
    LocalTable,
    RelationPlace,
    TableHandle,
    ValueRange,
    driver_memory,
)
from corollary.core.plans import WORKING_SEPARATOR, PlacedCall, Placement, Plan
from corollary.core.program import Relation
from corollary.core.recorder import Recorder
from corollary.core.states import State
from corollary.engines.local.prepared_plan import PreparedPlan
from corollary.engines.local.storage.table import Table
from corollary.engines.spark import remote
from corollary.engines.spark.partitioned.engine import PARTITIONS_PLACE, PartitioningEngine
from corollary.engines.spark.resources import SparkResources
from corollary.engines.spark.session import parallelism_of
from corollary.rewrite.partitions import PARTITIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from corollary.engines.spark.bulk.queries import SparkQueries
    from corollary.engines.spark.bulk.steps import SparkSteps

    # Imported where they are used: small relations need none of it.
    from corollary.engines.spark.strata.driver import PartitionedStratum
    from corollary.engines.spark.strata.messages import PartitionRequest

PARTITIONS_MIN_TUPLES = 1 << 24
"""A stratum of so many tuples is partitioned; the driver is quicker with fewer…"""

PARTITIONS_MIN_INPUT_TUPLES = 1 << 20
"""…and so is one that is still empty and reads so many."""

REPARTITION_MIN_RATIO = 2
"""Strata that were stored are partitioned anew if so many times as many tasks run at once now."""

MANIFEST = "shares.json"
"""The file of an index that describes the partitioned strata."""


class DriverEngine(PartitioningEngine):
    """Holds relations on the driver and in remote stores; runs plans here and placed strata there.

    Args:
        spark: the user's session; a local one is started if it is needed and there is none.
        placement: where strata run that have a pivot; `auto` decides by size.
        partition_count: how many tasks run at once, and how many partitions a stratum has; by
            default what Spark says, which is asked for each job.
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
        self._spark = spark
        self._placement = placement
        self._given_count = partition_count
        self._partition_count: int | None = None
        self._is_stored_count = False
        self._scratch = scratch
        self._partitioned: dict[str, PartitionedStratum] = {}
        """By procedure."""
        self._remote: dict[str, remote.RemoteStore] = {}
        """The store that maintains each remote relation."""
        self._copied: set[str] = set()
        """The remote relations that the driver has a copy of."""
        self._needs = remote.PlanCache(remote.driver_needs)
        self._parts = remote.PlanCache(remote.placed_parts)
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
    def _stores(self) -> list[remote.RemoteStore]:
        return list(self._partitioned.values())

    @property
    def default_placement(self) -> str:
        """The placement of strata by default."""
        return "driver"

    @property
    def partition_count(self) -> int:
        """The number of partitions of a stratum, the same for all of them until it is closed.

        Plans name it, and every partition has a copy of what its stratum reads: so there are as
        many as tasks run at once when it is first asked for, or as many as were stored.
        """
        if self._partition_count is None:
            self._partition_count = self.task_count
        if self._is_stored_count:
            self._is_stored_count = False
            self._repartition(self.task_count)
        return self._partition_count

    @property
    def task_count(self) -> int:
        """How many tasks run at once, now."""
        if self._given_count is not None:
            return self._given_count
        return parallelism_of(self._resources.session)

    def _repartition(self, count: int) -> None:
        """Let stored strata be partitioned anew when they next run, if many more tasks run now.

        They come to the driver for it: where its memory has a limit, only if they fit.
        """
        assert self._partition_count is not None
        taken = TUPLE_BYTES * sum(
            store.size(name, State.OLD) for name, store in self._remote.items()
        )
        is_narrow = count >= REPARTITION_MIN_RATIO * self._partition_count
        if is_narrow and (self._memory is None or taken <= self._memory):
            for name in list(self._remote):
                self._take_back(name)
            self._partitioned.clear()
            self._partition_count = count

    def placement(
        self, relations: Sequence[str], below: Sequence[str], *, has_pivot: bool
    ) -> Placement:
        """Return where a stratum should run."""
        if self._placement == PARTITIONS_PLACE or any(
            map(self.is_partitioned, [*relations, *below])
        ):
            return Placement.DRIVER  # by rounds of probes
        if self._placement != "auto":
            forced = Placement(self._placement)
            return forced if has_pivot or forced is not Placement.TASKS else Placement.DRIVER
        if any(name in self._remote for name in relations):  # they stay where they are
            return Placement.TASKS
        if self._spark is None and find_spec("pyspark") is None:
            return Placement.DRIVER
        size = sum(self.size(name, State.OLD) for name in relations if name in self._relations)
        lower = sum(self.size(name) for name in below if name in self._relations)
        is_large = size >= PARTITIONS_MIN_TUPLES
        if has_pivot and (is_large or (not size and lower >= PARTITIONS_MIN_INPUT_TUPLES)):
            return Placement.TASKS
        return Placement.DRIVER

    def close(self) -> None:
        """Remove all files and release the session."""
        for store in self._stores:
            store.close()
        self._partitioned.clear()
        self._remote.clear()
        self._resources.close()

    def _run_job(self, request: "PartitionRequest") -> list[bytes]:
        from corollary.engines.spark.strata.job import run_spark_job

        return run_spark_job(self._resources.runner, request)

    def _steps_elsewhere(self, plan: Plan, tables: Mapping[str, Table]) -> "SparkSteps | None":
        if not self._has_partitions(plan):
            return None
        from corollary.engines.spark.bulk.queries import SparkQueries
        from corollary.engines.spark.bulk.steps import SparkSteps

        if self._bulk_queries is None:
            self._bulk_queries = SparkQueries(self._resources, self._partition_place, self._bulk)
        return SparkSteps(self._bulk_queries, plan, tables, self._relations.keys())

    # --- relations -----------------------------------------------------------------------------

    def drop(self, relations: Iterable[str]) -> None:
        """Drop relations."""
        names = list(relations)
        self._forget_remote(names)
        super().drop(names)

    def rename(self, old: str, new: str) -> None:
        """Give a relation another name, which no relation has."""
        self._fetch_copy(old)
        self._forget_remote([old])
        super().rename(old, new)

    def relabel(self, relation: Relation) -> None:
        """Give the columns of a relation the names that it has here; the types are the same."""
        self._take_back(relation.name)
        super().relabel(relation)

    def copy(self, source: str, target: str) -> None:
        """Make the NEW tuples of one relation the OLD and NEW ones of another."""
        self._fetch_copy(source)
        self._forget_remote([target])
        super().copy(source, target)

    def clear(self, relations: Iterable[str]) -> None:
        """Empty relations, in all states."""
        names = list(relations)
        self._forget_remote(names)
        super().clear(names)

    def insert(
        self, relation: str, rows: Sequence[tuple[Any, ...]] | pa.Table | TableHandle
    ) -> None:
        """Add tuples to NEW of a relation; those already there are no change."""
        self._take_back(relation)
        super().insert(relation, rows)

    def delete(
        self, relation: str, rows: Sequence[tuple[Any, ...]] | pa.Table | TableHandle
    ) -> None:
        """Remove tuples from NEW of a relation; those not there are no change."""
        self._take_back(relation)
        super().delete(relation, rows)

    def apply_change(
        self, relation: str, added: pa.Table | TableHandle, removed: pa.Table | TableHandle
    ) -> None:
        """Apply a change to OLD and NEW of a relation; it adds and removes just these tuples."""
        store = self._remote.get(relation)
        if store is not None:
            tables = [x if isinstance(x, pa.Table) else x.table() for x in (added, removed)]
            store.apply_change(relation, remote.ChangedTuples(*tables))
        if not self._is_remote_only(relation):
            self._settle_load(relation)
            super().delete(relation, removed)
            super().insert(relation, added)

    # --- index files ---------------------------------------------------------------------------

    def save(self, relations: Iterable[str]) -> Iterator[tuple[str, bytes | Path]]:  # type: ignore[override]
        """Yield the files of an index of relations, as they are in OLD now: name and bytes."""
        names = list(relations)
        yield from super().save(name for name in names if name not in self._remote)
        manifest = []
        for number, (procedure, stratum) in enumerate(self._partitioned.items()):
            if not set(stratum.pivots) & set(names):
                continue
            for partition, directory in enumerate(stratum.fold()):
                for file in sorted(directory.iterdir()):
                    yield f"{_prefix(number, partition)}{file.name}", file.read_bytes()
            manifest.append({"number": number, "procedure": procedure, **stratum.manifest()})
        if manifest:
            described = {"shares": self._partition_count, "strata": manifest}
            yield MANIFEST, json.dumps(described).encode()

    def restore(self, files: Mapping[str, pa.Buffer], paths: IndexPlaces | None = None) -> set[str]:
        """Fill declared relations from the files of an index; return which ones."""
        found = super().restore(files, paths)
        if MANIFEST not in files:
            return found
        manifest = json.loads(files[MANIFEST].to_pybytes())
        self._partition_count, self._is_stored_count = manifest["shares"], True
        for each in manifest["strata"]:
            copies = each["relations"].keys() - each["pivots"].keys()
            if copies <= found and all(
                name in self._relations and repr(self._relations[name].types) == types
                for name, types in each["relations"].items()
            ):
                found |= self._restore_partitions(each, files, manifest["shares"])
        return found

    def _restore_partitions(
        self, manifest: Mapping[str, Any], files: Mapping[str, pa.Buffer], count: int
    ) -> set[str]:
        """Restore the partitions of a stratum from the files of an index; return its relations."""
        from corollary.engines.spark.strata.versions import write_base

        directories = [
            write_base(self._root, _prefix(manifest["number"], partition), files)
            for partition in range(count)
        ]
        stratum = self._new_stratum(manifest["procedure"], manifest["pivots"], count)
        stratum.restore(manifest, self._relations, directories)
        self._remote |= dict.fromkeys(stratum.pivots, stratum)
        return set(stratum.pivots)

    def _new_stratum(
        self, procedure: str, pivots: Iterable[str], count: int
    ) -> "PartitionedStratum":
        """Return a partitioned stratum that holds nothing yet."""
        from corollary.engines.spark.strata.driver import PartitionedStratum

        title = ", ".join(pivots)
        stratum = PartitionedStratum(self._run_job, self._root, count, title)
        self._partitioned[procedure] = stratum
        return stratum

    # --- remote relations ----------------------------------------------------------------------

    def _is_remote_only(self, relation: str) -> bool:
        """Whether a relation is remote, and the driver has no copy of it."""
        return relation in self._remote and relation not in self._copied

    def _fetch_copy(self, relation: str) -> None:
        """Get a copy of a relation, with its open change."""
        if not self._is_remote_only(relation):
            return
        store, table = self._remote[relation], self._tables[relation]
        rows = store.read(relation, State.OLD)
        table.clear()
        super().insert(relation, rows)
        table.commit()
        if store.has_open_run:
            self._apply_open_change(relation, store)
        self._copied.add(relation)

    def _apply_open_change(self, relation: str, store: remote.RemoteStore) -> None:
        """Apply the change that a run of a store has found to the copy."""
        super().delete(relation, store.read(relation, State.REMOVED))
        super().insert(relation, store.read(relation, State.ADDED))

    def _take_back(self, relation: str) -> None:
        """Hold a remote relation here, and no longer remotely."""
        if relation in self._remote:
            self._fetch_copy(relation)
            self._forget_remote([relation])

    def _forget_remote(self, relations: Iterable[str]) -> None:
        """Drop relations from all stores, whose tuples are no longer valid."""
        names = list(relations)
        for name in names:
            self._remote.pop(name, None)
            self._copied.discard(name)
        for store in self._stores:
            store.drop(names)

    # --- changes -------------------------------------------------------------------------------

    def commit(self, relations: Iterable[str] | None = None) -> None:
        """Make NEW the OLD of some relations, or of all."""
        named = None if relations is None else list(relations)
        if named is None:
            # All changes are read first: a store that has committed has no open change to read.
            pending = [(store, self._unsynced_changes(store)) for store in self._stores]
            for store, changes in pending:
                store.commit(changes)
        else:
            self._forget_remote(named)
        super().commit(named)
        self._clear_remote_tables()

    def _clear_remote_tables(self) -> None:
        """Drop the changes of remote relations that were loaded for a plan."""
        for name in self._remote:
            if self._is_remote_only(name):
                self._tables[name].clear()

    def _unsynced_changes(self, store: remote.RemoteStore) -> dict[str, remote.ChangedTuples]:
        """Return the open changes that the copies of a store lack."""
        return {
            name: remote.ChangedTuples(*(self.read(name, sign) for sign in remote.CHANGES))
            for name in store.relations
            if not store.maintains(name)
            and name not in store.synced
            and any(self.size(name, sign) for sign in remote.CHANGES)
        }

    def rollback(self) -> None:
        """Make OLD the NEW of every relation."""
        for store in self._stores:
            store.rollback()
        self._clear_remote_tables()
        super().rollback()

    # --- reading -------------------------------------------------------------------------------

    def read(self, relation: str, state: State = State.NEW) -> pa.Table:
        """Return the tuples of a relation in a state, as an Arrow table."""
        store = self._remote.get(relation)
        if store is not None and relation not in self._copied:
            # A store reads OLD and changes; NEW often equals one of them.
            if state is State.NEW and not store.has_open_run:
                state = State.OLD
            elif state is State.NEW and not store.size(relation, State.OLD):
                state = State.ADDED
            if state is not State.NEW:
                return store.read(relation, state)
            self._fetch_copy(relation)
        return super().read(relation, state)

    def handle(self, relation: str, state: State = State.NEW) -> TableHandle:
        """Return a handle of the tuples of a relation in a state, as they are now."""
        if not self._is_remote_only(relation):
            return super().handle(relation, state)
        handle = self._remote[relation].handle(relation, state)
        return LocalTable(self.read(relation, state)) if handle is None else handle

    def size(self, relation: str, state: State = State.NEW) -> int:
        """Return the number of tuples of a relation in a state."""
        if self._is_remote_only(relation):
            return self._remote[relation].size(relation, state)
        return super().size(relation, state)

    def changed(self) -> set[str]:
        """Return the relations that have an open change."""
        return super().changed() | {
            name
            for name in filter(self._is_remote_only, self._remote)
            if any(self.size(name, sign) for sign in remote.CHANGES)
        }

    def within(self, relation: str, boxes: Sequence[Mapping[int, ValueRange]]) -> pa.Table:
        """Return the tuples of NEW in one of several boxes, each once, perhaps with others."""
        if self._is_remote_only(relation):
            return self.read(relation)
        return super().within(relation, boxes)

    def lookup(
        self,
        relation: str,
        bound: tuple[int, ...],
        values: Sequence[Any],
        columns: Sequence[int],
        max_rows: int,
    ) -> list[pa.Array | pa.ChunkedArray] | None:
        """Return columns of the tuples of NEW with some values; None if many, or elsewhere."""
        if self._is_remote_only(relation):
            return None
        return super().lookup(relation, bound, values, columns, max_rows)

    def place_of(self, relation: str) -> RelationPlace:
        """Return where the tuples of a relation are, and why."""
        if relation not in self._remote:
            return super().place_of(relation)
        return RelationPlace(Placement.TASKS, "the tasks that maintain its stratum hold it")

    def distinct(self, relation: str) -> tuple[int, ...]:
        """Return about how many distinct values each column of a relation has."""
        if self._is_remote_only(relation):
            return self._remote[relation].distinct(relation)
        return super().distinct(relation)

    # --- plans ---------------------------------------------------------------------------------

    def run(self, plan: Plan, recorder: Recorder, limits: Limits) -> int:
        """Run the main procedure of a plan; return how many rows it handled.

        If it fails, the relations that the plan writes have no open change; those that `insert` and
        `delete` have changed keep theirs.
        """
        needs = self._needs(plan)
        for name in needs.written & self._remote.keys():
            self._take_back(name)
        for name in needs.copies & self._remote.keys():
            self._fetch_copy(name)
        self._limits = limits
        if not self.size(PARTITIONS.name) and PARTITIONS.name in plan.types:
            super().insert(PARTITIONS.name, [(number,) for number in range(self.partition_count)])
            super().commit([PARTITIONS.name])
        try:
            return super().run(plan, recorder, limits)
        except BaseException:
            for store in self._stores:
                store.rollback()
            raise

    def _place(self, prepared: PreparedPlan, step: PlacedCall) -> bool:
        """Run the procedure of a stratum in a remote store."""
        store = self._store_of(step)
        part = self._parts(prepared.plan)[step.procedure]
        relations = [each for each in part.types if each in self._relations]
        columns = dict(step.columns)
        # The payload of a relation, `p•rank` say, is partitioned as the relation itself.
        pivots = {
            each: columns[owner]
            for each in relations
            if (owner := each.partition(WORKING_SEPARATOR)[0]) in columns
        }
        for name in relations:
            if name != PARTITIONS.name and not store.holds(name, pivots.get(name)):
                if name in pivots:
                    self._take_back(name)
                store.add(self._relations[name], self.read(name, State.OLD), pivots.get(name))
        remote_run = remote.RemoteRun(
            part,
            frozenset(pivots),
            self._unsynced_changes(store),
            remote.working_relations(part, prepared, self._relations),
            prepared.budget.handled_rows,
            self._limits,
        )
        try:
            prepared.budget.handled_rows = store.run(remote_run, prepared.recorder)
        except BaseException:
            store.drop([name for name in pivots if name not in self._remote])
            raise
        needs = self._needs(prepared.plan)
        for name in pivots:
            self._note_maintained(name, store, needs)
        return True

    def _store_of(self, step: PlacedCall) -> remote.RemoteStore:
        known = self._partitioned.get(step.procedure)
        return known or self._new_stratum(step.procedure, dict(step.columns), self.partition_count)

    def _note_maintained(
        self, relation: str, store: remote.RemoteStore, needs: remote.DriverNeeds
    ) -> None:
        """Make a relation remote that a store has maintained; update what the driver has of it."""
        if relation in self._remote:
            if relation in self._copied:
                self._apply_open_change(relation, store)
            elif relation in needs.changes:
                self._load_changes(relation, store)
            return
        self._remote[relation] = store
        if relation in needs.copies or relation in needs.changes:
            self._copied.add(relation)
            self._apply_open_change(relation, store)
        else:
            self._tables[relation].clear()

    def _load_changes(self, relation: str, store: remote.RemoteStore) -> None:
        """Fill the table of a remote relation so that ADDED and REMOVED are right, and no more."""
        table = self._tables[relation]
        table.clear()
        # What is removed has to be there first.
        super().insert(relation, store.read(relation, State.REMOVED))
        table.commit()
        self._apply_open_change(relation, store)


def _prefix(number: int, partition: int) -> str:
    return f"share-{number}-{partition}-"
