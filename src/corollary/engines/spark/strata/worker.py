"""The worker side of a partitioned stratum: a task runs a plan on its partition.

A partition is a base, which is a directory of index files, and the entries of a log since. A worker
process that has it open from an earlier job only applies newer entries; any other starts from the
base, and reads no more of its files than the plan needs. Nothing that a task does is visible before
the driver commits its reply: it writes files of its own, and rolls its engine back.
"""

import pickle
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from corollary.core.plans import Plan, steps_of
from corollary.core.states import State
from corollary.data_class import dataclass
from corollary.engines.local.engine import LocalEngine
from corollary.engines.spark.remote import ChangedTuples
from corollary.engines.spark.strata import messages
from corollary.errors import CorollaryError
from corollary.rewrite.partitions import PARTITIONS

OPEN_PARTITIONS_MAX_BYTES = 1 << 30
"""The partitions that a worker keeps open take no more memory, unless it is a single one."""

TUPLE_BYTES = 60
"""The bytes of a tuple in memory, at the peak."""

INLINE_CHANGE_MAX_TUPLES = 1 << 14
"""A larger change is written to a file and not sent in the reply."""


@dataclass(slots=True)
class OpenPartition:
    """A partition in memory, with the base that it was read from and its version."""

    engine: LocalEngine
    base: str | None
    version: int

    @property
    def bytes(self) -> int:
        """About how much memory it takes."""
        return TUPLE_BYTES * sum(map(self.engine.size, self.engine.relations))


_open_partitions: OrderedDict[tuple[str, int], OpenPartition] = OrderedDict()
"""By owner and number, the least recently used first; as long as the worker process lives."""


def serve(request: messages.PartitionRequest, partition: int) -> bytes:
    """Return the pickled reply for a partition; Spark calls this in a task."""
    return pickle.dumps(_reply(request, partition), protocol=5)


def _reply(request: messages.PartitionRequest, partition: int) -> messages.Reply:
    """Run the plan on one partition, or apply a function to a relation there."""
    try:
        if request.use is not None:
            name, use = request.use
            rows = read_partition(request, partition, name)
            return messages.Reply(partition, made=(use(rows),) if rows.num_rows else ())
        opened = _open_partition(request, partition)
        folded = None
        if request.is_folding:
            folded = _write_base(opened.engine, request, partition)
            opened.base = folded
        if not request.plan:
            return messages.Reply(partition, folded=folded)
        return replace(_run(request, partition, opened), folded=folded)
    except CorollaryError as error:
        _open_partitions.pop((request.owner, partition), None)
        return messages.Reply(partition, error=error)


def _run(
    request: messages.PartitionRequest, partition: int, opened: OpenPartition
) -> messages.Reply:
    engine, plan = opened.engine, _unpickled_plan(request.plan)
    working = _apply_open_changes(engine, request)
    recorder = messages.TaskRecorder(
        {id(step): number for number, step in enumerate(steps_of(plan))}
    )
    try:
        engine.run(plan, recorder, request.limits)
        recorder.steps = {}  # identities mean nothing to the driver
        was_empty = not any(engine.size(name, State.OLD) for name in request.pivots)
        results = {name: _result(engine, name, request, was_empty) for name in request.pivots}
        base = None
        if was_empty and any(each.size for each in results.values()):
            # All tuples are new: a base says so at once, and the next job starts from it.
            engine.commit()
            base = _write_base(engine, request, partition)
            opened.base, opened.version = base, request.version + 1
        else:
            engine.rollback()
    except BaseException:
        engine.rollback()
        raise
    finally:
        engine.drop(working)
    return messages.Reply(partition, results, recorder, base=base)


def _result(
    engine: LocalEngine, name: str, request: messages.PartitionRequest, was_empty: bool
) -> messages.PartitionResult:
    counts = engine.size(name, State.ADDED), engine.size(name, State.REMOVED)
    delta: ChangedTuples | str | None = None
    if not was_empty and any(counts):
        delta = ChangedTuples(engine.read(name, State.ADDED), engine.read(name, State.REMOVED))
        if sum(counts) > INLINE_CHANGE_MAX_TUPLES:
            delta = messages.write_pickle(delta, Path(request.root), request.job)
    distinct = engine.distinct(name) if was_empty or request.is_folding else ()
    return messages.PartitionResult(engine.size(name), distinct, counts, delta)


@lru_cache(maxsize=64)
def _unpickled_plan(pickled: bytes) -> Plan:
    plan: Plan = pickle.loads(pickled)  # noqa: S301 - made by the driver, as the task itself is
    return plan


# --- partitions ----------------------------------------------------------------------------------


def read_partition(request: messages.PartitionRequest, partition: int, name: str) -> pa.Table:
    """Return the tuples of a relation in a partition at the requested version.

    A partition that is open at just that version is read; any other is opened temporarily.
    """
    base, found = request.bases[partition], _open_partitions.get((request.owner, partition))
    if (
        found is None
        or base.directory is None
        or (found.base, found.version) != (base.directory, request.version)
    ):
        found = _read_base(request, partition, base)
        _apply_log(found, request, partition)
    return found.engine.read(name)


def _open_partition(request: messages.PartitionRequest, partition: int) -> OpenPartition:
    """Return a partition at the requested version, and keep it open."""
    key, base = (request.owner, partition), request.bases[partition]
    found = _open_partitions.get(key)
    if found is None or found.base != base.directory or found.version > request.version:
        _open_partitions.pop(key, None)
        found = _open_partitions[key] = _read_base(request, partition, base)
    _open_partitions.move_to_end(key)
    _apply_log(found, request, partition)
    _evict()
    return found


def _evict() -> None:
    """Close the least recently used partitions while all together take too much memory."""
    total = sum(each.bytes for each in _open_partitions.values())
    while total > OPEN_PARTITIONS_MAX_BYTES and len(_open_partitions) > 1:
        _, evicted = _open_partitions.popitem(last=False)
        total -= evicted.bytes


def _apply_log(opened: OpenPartition, request: messages.PartitionRequest, partition: int) -> None:
    """Apply all changes up to the requested version."""
    _declare(opened.engine, request, partition)
    for entry in request.log:
        if entry.version > opened.version:
            for path in (entry.common, entry.own.get(partition)):
                if path is not None:
                    _apply(opened.engine, messages.read_pickle(path), request, partition)
            opened.engine.commit()
            opened.version = entry.version
    opened.version = request.version


def _read_base(
    request: messages.PartitionRequest, partition: int, base: messages.PartitionBase
) -> OpenPartition:
    engine = LocalEngine()
    _declare(engine, request, partition)
    if base.directory is not None:
        engine.clear([PARTITIONS.name])
        files = sorted(Path(base.directory).iterdir())
        found = engine.restore(
            {each.name: pa.memory_map(str(each)).read_buffer() for each in files}
        )
        engine.insert(PARTITIONS.name, [(partition,)])
        engine.commit()
        assert found, f"no index in {base.directory}"
    return OpenPartition(engine, base.directory, base.version)


def _write_base(engine: LocalEngine, request: messages.PartitionRequest, partition: int) -> str:
    """Write a base of a partition to a new directory; return its path."""
    directory = Path(request.root) / f"base-{partition}-{request.job}-{uuid4().hex}"
    directory.mkdir()
    names = [name for name in request.relations if name != PARTITIONS.name]
    for name, data in engine.save(names):
        (directory / name).write_bytes(data)
    return str(directory)


def _declare(engine: LocalEngine, request: messages.PartitionRequest, partition: int) -> None:
    """Declare the requested relations, and drop those that are no longer what they were."""
    wanted = request.relations
    engine.drop([name for name, each in engine.relations.items() if wanted.get(name) != each])
    engine.declare(wanted)
    if not engine.size(PARTITIONS.name):
        engine.insert(PARTITIONS.name, [(partition,)])
        engine.commit([PARTITIONS.name])


def _apply(
    engine: LocalEngine,
    deltas: Mapping[str, ChangedTuples],
    request: messages.PartitionRequest,
    partition: int,
) -> None:
    for name, delta in deltas.items():
        if name not in request.relations:
            continue
        added, removed = (
            rows
            if rows is None or name not in request.pivots
            else _own_rows(rows, name, request, partition)
            for rows in (delta.added, delta.removed)
        )
        if removed is None:
            engine.clear([name])
        else:
            engine.delete(name, removed)
        engine.insert(name, added)


def _own_rows(
    rows: pa.Table, name: str, request: messages.PartitionRequest, partition: int
) -> pa.Table:
    """Return the tuples that belong to a partition."""
    relation, pivot = request.relations[name], request.pivots[name]
    partitions = messages.partitions_of(rows, relation, pivot, request.partitions)
    return rows.filter(pa.array(partitions == partition))


def _apply_open_changes(engine: LocalEngine, request: messages.PartitionRequest) -> list[str]:
    """Apply the open changes of the transaction; return the working relations."""
    changes, working = messages.read_pickle(request.open_changes)
    for name, delta in changes.items():
        engine.delete(name, delta.removed)
        engine.insert(name, delta.added)
    engine.declare({name: relation for name, (relation, _) in working.items()})
    for name, (_, rows) in working.items():
        engine.insert(name, rows)
        engine.commit([name])
    return list(working)
