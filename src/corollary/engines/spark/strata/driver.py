"""The driver side of a partitioned stratum: what its partitions hold, and one job for each run.

Relations of the stratum are partitioned by their pivot columns; of the relations that the stratum
reads, every partition has a copy.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa

from corollary.core.arrow import arrow_type
from corollary.core.engine import MapResult, TableHandle, slice_table
from corollary.core.plans import Plan
from corollary.core.program import Relation
from corollary.core.recorder import Recorder
from corollary.core.states import State
from corollary.core.user_functors.loading import loaded_modules
from corollary.core.user_functors.registration import registered_functions
from corollary.data_class import dataclass
from corollary.engines.spark.remote import ChangedTuples, PlanCache, RelationDeltas, RemoteRun
from corollary.engines.spark.strata import messages
from corollary.engines.spark.strata.job import report_run, unpickle_replies
from corollary.engines.spark.strata.versions import VersionLog
from corollary.engines.spark.strata.worker import read_partition
from corollary.rewrite.partitions import PARTITIONS

DISTRIBUTED_MIN_TUPLES = 1 << 17
"""A relation of so many tuples is not collected on the driver to be written from there."""

RunJob = Callable[[messages.PartitionRequest], list[bytes]]
"""Returns the pickled replies to a request, one for each partition."""


def _pickled(plan: Plan) -> bytes:
    """Return a plan for tasks; functions of users travel with it, and their modules."""
    if not registered_functions():
        return pickle.dumps(plan, protocol=5)
    from pyspark import cloudpickle

    for module in loaded_modules():
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    pickled: bytes = cloudpickle.dumps(plan, protocol=5)  # type: ignore[no-untyped-call]
    return pickled


_pickle_plan = PlanCache(_pickled)
"""The same bytes for the same plan, so that workers recognise it."""


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class StratumHandle:
    """All tuples of a partitioned relation at a version, in the files of its partitions."""

    name: str
    size: int
    request: messages.PartitionRequest
    run_job: RunJob

    def __len__(self) -> int:
        return self.size

    def table(self) -> pa.Table:
        """Return the tuples."""
        partitions = range(self.request.partitions)
        return pa.concat_tables(
            [read_partition(self.request, each, self.name) for each in partitions]
        )

    def slices(self, max_rows: int) -> Iterator[pa.Table]:
        """Yield the tuples in tables of about equal size."""
        yield from slice_table(self.table(), max_rows)

    @property
    def is_distributed(self) -> bool:
        """Whether there are too many tuples to collect them on the driver."""
        return self.size >= DISTRIBUTED_MIN_TUPLES

    def map_partitions(self, function: Callable[[pa.Table], MapResult]) -> list[MapResult]:
        """Return the results of a function on the tuples of each partition, from one job."""
        request = replace(self.request, use=(self.name, function), job=uuid4().hex)
        return [made for each in unpickle_replies(self.run_job(request)) for made in each.made]

    @property
    def files(self) -> set[str]:
        """The files and directories that hold the tuples."""
        return {
            *(each.directory for each in self.request.bases if each.directory is not None),
            *(path for entry in self.request.log for path in entry.files),
        }


@dataclass(slots=True)
class PartitionedStratum:
    """The partitions of one stratum.

    Args:
        run_job: runs a job on all partitions.
        root: a directory that the driver and all tasks see.
        count: how many partitions there are.
        title: what Spark shows for a job.

    Attributes:
        relations: all that the partitions hold.
        pivots: the partitioned ones among them, with the column.
        synced: the relations whose open changes the tasks have.
        open_replies: of the tasks of the job that is not committed yet, by partition.
        sizes: of the partitioned relations, by partition.
        spreads: about how many distinct values their columns have, by partition.
    """

    run_job: RunJob
    root: Path
    count: int
    title: str
    relations: dict[str, Relation] = field(default_factory=dict)
    pivots: dict[str, int] = field(default_factory=dict)
    synced: set[str] = field(default_factory=set)
    open_replies: list[messages.Reply] | None = None
    sizes: dict[str, list[int]] = field(default_factory=dict)
    spreads: dict[str, list[tuple[int, ...]]] = field(default_factory=dict)
    _open_changes: RelationDeltas = field(default_factory=dict)
    _owner: str = field(default_factory=lambda: uuid4().hex)
    _log: VersionLog = field(init=False)

    def __post_init__(self) -> None:
        self._log = VersionLog(self.root, [messages.PartitionBase(0, None)] * self.count)

    @property
    def has_open_run(self) -> bool:
        """Whether there is a job that is not committed yet."""
        return self.open_replies is not None

    # --- relations -----------------------------------------------------------------------------

    def maintains(self, name: str) -> bool:
        """Whether a relation is partitioned; of others, every partition has a copy."""
        return name in self.pivots

    def holds(self, name: str, pivot: int | None) -> bool:
        """Whether a relation is held, and partitioned by a column."""
        return name in self.relations and self.pivots.get(name) == pivot

    def add(self, relation: Relation, rows: pa.Table, pivot: int | None) -> None:
        """Hold a relation from now on, partitioned if there is a pivot."""
        self.relations[relation.name] = relation
        if pivot is not None:
            self.pivots[relation.name] = pivot
            self.sizes[relation.name] = [rows.num_rows] + [0] * (self.count - 1)
            self.spreads[relation.name] = [()] * self.count
        self._log.append({relation.name: ChangedTuples(rows, None)})

    def apply_change(self, name: str, delta: ChangedTuples) -> None:
        """Apply a change, found by somebody else, to a partitioned relation."""
        assert delta.removed is not None
        for sign, rows in ((1, delta.added), (-1, delta.removed)):
            found = messages.partitions_of(
                rows, self.relations[name], self.pivots[name], self.count
            )
            for partition, count in enumerate(np.bincount(found, minlength=self.count).tolist()):
                self.sizes[name][partition] += sign * count
        self._log.append({name: delta})

    def drop(self, names: Iterable[str]) -> None:
        """Drop relations; the next request does not name them."""
        for name in names:
            self.relations.pop(name, None)
            self.pivots.pop(name, None)

    def size(self, name: str, state: State = State.OLD) -> int:
        """Return the number of tuples of a partitioned relation."""
        old = sum(self.sizes.get(name, ()))
        if state is State.OLD or self.open_replies is None:
            return old if state in (State.OLD, State.NEW) else 0
        counts = [each.results[name].counts for each in self.open_replies]
        added, removed = map(sum, zip(*counts, strict=True))
        return {State.ADDED: added, State.REMOVED: removed}.get(state, old + added - removed)

    def distinct(self, name: str) -> tuple[int, ...]:
        """Return about how many distinct values each column of a partitioned relation has."""
        spreads = [each for each in self.spreads.get(name, ()) if each]
        pivot = self.pivots[name]
        if not spreads:
            return (max(1, self.size(name)),) * len(self.relations[name].types)
        # Partitions share no value of the pivot column, and perhaps all values of the others.
        return tuple(
            sum(column) if at == pivot else max(column)
            for at, column in enumerate(zip(*spreads, strict=True))
        )

    def read(self, name: str, state: State) -> pa.Table:
        """Return the tuples of a partitioned relation in OLD, or the change by the open job.

        Additions to a relation that was empty are read from the bases that the tasks have written.
        """
        if state is State.OLD:
            request = self._request()
            return pa.concat_tables(
                [read_partition(request, each, name) for each in range(self.count)]
            )
        tables = []
        for reply in self.open_replies or ():
            result = reply.results[name]
            if result.delta is not None:
                delta = _delta(result)
                tables.append(delta.added if state is State.ADDED else delta.removed)
            elif result.counts[0] and state is State.ADDED:
                tables.append(read_partition(self._open_request(), reply.partition, name))
        if tables:
            return pa.concat_tables(tables)
        relation = self.relations[name]
        columns = [pa.array([], arrow_type(type_)) for type_ in relation.types]
        return pa.table(columns, names=list(relation.columns))

    def handle(self, name: str, state: State) -> TableHandle | None:
        """Return a handle of a relation that was empty before the open job.

        Or, between jobs, of any relation that is large.
        """
        if self.open_replies is None:
            if state not in (State.OLD, State.NEW) or self.size(name) < DISTRIBUTED_MIN_TUPLES:
                return None
            return self._new_handle(name, self.size(name), self._request())
        if state not in (State.ADDED, State.NEW) or self.size(name):
            return None
        results = [each.results[name] for each in self.open_replies]
        if not any(each.counts[0] for each in results) or any(each.delta for each in results):
            return None
        return self._new_handle(name, self.size(name, state), self._open_request())

    def _new_handle(
        self, name: str, size: int, request: messages.PartitionRequest
    ) -> StratumHandle:
        handle = StratumHandle(name, size, request, self.run_job)
        self._log.use(handle, handle.files)
        return handle

    # --- index files ---------------------------------------------------------------------------

    def manifest(self) -> dict[str, Any]:
        """Return what `restore` needs beside the files of `fold`, as JSON."""
        return {
            "relations": {name: repr(each.types) for name, each in self.relations.items()},
            "pivots": self.pivots,
            "sizes": self.sizes,
            "spreads": self.spreads,
        }

    def restore(
        self, manifest: Mapping[str, Any], relations: Mapping[str, Relation], bases: Sequence[Path]
    ) -> None:
        """Hold what the files of `fold` hold."""
        self.relations = {name: relations[name] for name in manifest["relations"]}
        self.pivots = dict(manifest["pivots"])
        self.sizes = {name: list(each) for name, each in manifest["sizes"].items()}
        self.spreads = {
            name: [tuple(spread) for spread in each] for name, each in manifest["spreads"].items()
        }
        self._log.bases = [messages.PartitionBase(0, str(each)) for each in bases]

    def fold(self) -> list[Path]:
        """Return the directories of index files that hold all partitions."""
        if self._log.entries or any(each.directory is None for each in self._log.bases):
            self._run_job(replace(self._request(), is_folding=True))
        bases = self._log.bases
        return [Path(each.directory) for each in bases if each.directory is not None]

    # --- jobs ----------------------------------------------------------------------------------

    def run(self, remote_run: RemoteRun, recorder: Recorder) -> int:
        """Run a plan on all partitions, in one job; return how many rows were handled by then."""
        request = replace(
            self._request(),
            plan=_pickle_plan(remote_run.plan),
            open_changes=messages.write_pickle(
                (remote_run.open_changes, remote_run.working_relations), self.root
            ),
            limits=messages.remaining_limits(remote_run.limits),
            is_folding=self._log.is_long(sum(map(self.size, self.pivots))),
        )
        recorder.procedure(remote_run.plan.main)
        try:
            replies = self._run_job(request)
        finally:
            self._log.discard([request.open_changes])
        self.open_replies, self._open_changes = replies, remote_run.open_changes
        self.synced = set(remote_run.open_changes)
        return report_run(remote_run, [each.record for each in replies], recorder)

    def _run_job(self, request: messages.PartitionRequest) -> list[messages.Reply]:
        try:
            replies = unpickle_replies(self.run_job(request))
        except BaseException:
            self._log.sweep(request.job, ())
            raise
        self._log.sweep(request.job, {path for each in replies for path in each.files})
        if request.is_folding:
            self._log.rebase({reply.partition: reply.folded for reply in replies})
        return replies

    def _request(self) -> messages.PartitionRequest:
        """Return a request about the last version."""
        return messages.PartitionRequest(
            owner=self._owner,
            title=self.title,
            root=str(self.root),
            relations={**self.relations, PARTITIONS.name: PARTITIONS},
            pivots=dict(self.pivots),
            partitions=self.count,
            version=self._log.version,
            bases=tuple(self._log.bases),
            log=tuple(self._log.entries),
        )

    def _open_request(self) -> messages.PartitionRequest:
        """Return a request about the version that the open job will be, if all was empty before."""
        assert self.open_replies is not None
        version = self._log.version + 1
        bases = tuple(messages.PartitionBase(version, each.base) for each in self.open_replies)
        return replace(self._request(), version=version, bases=bases, log=())

    def commit(self, changes: RelationDeltas) -> None:
        """Make a version of the changes of relations below and of the open job's result.

        Args:
            changes: of relations below that are not synced.
        """
        if self.open_replies is None:
            if changes:
                self._log.append(changes)
            return
        replies, own = self.open_replies, {}
        for reply in replies:
            deltas = {
                name: _delta(result)
                for name, result in reply.results.items()
                if result.delta is not None
            }
            if deltas:
                own[reply.partition] = messages.write_pickle(deltas, self.root)
            for name, result in reply.results.items():
                self.sizes[name][reply.partition] = result.size
                if result.distinct:
                    self.spreads[name][reply.partition] = result.distinct
        self._log.append({**self._open_changes, **changes}, own)
        self._close_job()
        self._log.rebase({each.partition: each.base for each in replies if each.base is not None})

    def rollback(self) -> None:
        """Drop the result of the open job."""
        self._log.discard(each.base for each in self.open_replies or ())
        self._close_job()

    def _close_job(self) -> None:
        for reply in self.open_replies or ():
            self._log.discard(each.delta for each in reply.results.values())
        self.open_replies = None
        self.synced.clear()

    def close(self) -> None:
        """Nothing to release: the directory is the engine's."""


def _delta(result: messages.PartitionResult) -> ChangedTuples:
    """Return the change of a relation in a partition, which there is."""
    found = messages.read_pickle(result.delta) if isinstance(result.delta, str) else result.delta
    assert isinstance(found, ChangedTuples)
    return found
