"""Shares without Spark: requests are answered in this process, but pickled as they would be."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from corollary.core.arrow import from_python
from corollary.core.engine import (
    TUPLE_BYTES,
    Item,
    LocalTable,
    MapResult,
    PartitionsOf,
    TableHandle,
)
from corollary.database import opening
from corollary.engines.local.storage.arrangement import Order
from corollary.engines.spark import engine, placer, stratum
from corollary.engines.spark.jobs import Requests, Task, partitions_of
from corollary.engines.spark.relation import files as partition_files
from corollary.engines.spark.relation import handle, open_partition, partitioning, source
from corollary.engines.spark.runs import PartitionedRun

SHARES = 3


class RowsElsewhere(LocalTable):
    """Rows that pretend to be outside of this process, in two pieces."""

    overlap = 0
    """So many rows are in both of them."""

    def __len__(self) -> int:
        return self.rows.num_rows + min(self.overlap, -(-self.rows.num_rows // 2))

    @property
    def is_distributed(self) -> bool:
        return True

    def map_partitions(self, function: Callable[[pa.Table], MapResult]) -> list[MapResult]:
        middle = self.rows.num_rows // 2
        first = self.rows.slice(0, middle + self.overlap)
        return [function(first), function(self.rows.slice(middle))]

    def portions(self) -> list[Any]:
        return self.map_partitions(lambda piece: partial(iter, (piece,)))


class RepeatedRows(RowsElsewhere):
    """Some rows are there twice."""

    overlap = 1


class InProcess(engine.SparkEngine):
    """An engine whose jobs are loops, and which has no queries.

    Attributes:
        jobs: how many there have been.
        strata: how many of them were whole strata.
        stages_changes: whether the rows of all changes are given as if they were elsewhere.
    """

    jobs = strata = 0
    stages_changes = False

    def __init__(
        self,
        placement: str = "partitions",
        shares: int = SHARES,
        memory: int | None = None,
        scratch: str | None = None,
    ) -> None:
        super().__init__(placement=placement, task_count=shares, memory=memory, scratch=scratch)

    def _remote_steps(self, *_: Any) -> None:
        return None

    def _elsewhere(self, relation: str, rows: Any) -> Any:
        declared = self._relations[relation]
        if not self.stages_changes or not declared.types or not len(rows):
            return rows
        if isinstance(rows, Sequence):
            return RepeatedRows(from_python(list(rows), declared))
        return RepeatedRows(rows) if isinstance(rows, pa.Table) else rows

    def insert(self, relation: str, rows: Sequence[Any] | pa.Table | TableHandle) -> None:
        super().insert(relation, self._elsewhere(relation, rows))

    def delete(self, relation: str, rows: Sequence[Any] | pa.Table | TableHandle) -> None:
        super().delete(relation, self._elsewhere(relation, rows))

    def _run_tasks(self, task: Task, requests: Requests, title: str) -> list[bytes]:
        InProcess.jobs += 1
        InProcess.strata += title.startswith("maintain ")
        return run_here(task, requests, title)


def run_here(task: Task, requests: Requests, title: str) -> list[bytes]:
    """Run the tasks of a job in this process, one after the other."""
    assert title
    sent = pickle.dumps(task)
    return [pickle.loads(sent)(each) for each in requests.values()]


def matching(found: source.PartitionSource, order: Order, keys: pa.Table) -> pa.Table:
    """Return the tuples whose first columns in an order are one of some distinct keys."""
    return found.joined(found.jobs.run(found.match_tasks(order, keys), "probe"))


def present(found: source.PartitionSource, rows: pa.Table) -> list[bool]:
    """Return for each tuple whether it is there."""
    lookup = found.lookup(rows)
    return lookup.mask(found.jobs.run(lookup.tasks, "look up")).tolist()


@contextmanager
def everything_partitioned(number: int) -> Iterator[None]:
    """Let relations be in partitions in what is opened inside; a number says how it is there.

    Perhaps some are on the driver, as far as they fit into a budget, partitions are tiny, tasks
    write what else the driver would, folds come early, tasks find their partition closed,
    dictionaries are trimmed, codes get too few bits at first, changes are in files, and strata with
    a pivot run by rounds of probes.
    """
    chance = random.Random(number)
    with pytest.MonkeyPatch.context() as patch:
        shares, bits = chance.choice((1, 2, 3, 5)), chance.choice((1, 4, None))
        budget = chance.choice((None, None, TUPLE_BYTES, 8 * TUPLE_BYTES))
        placement = "partitions" if budget is None else "auto"
        share_out(patch, placement, shares, bits, budget)
        patch.setattr(partitioning, "PARTITION_TUPLES", chance.choice((1, 4, 1 << 21)))
        patch.setattr(partition_files, "MERGE_MIN_FILES", chance.choice((2, 3, 16)))
        patch.setattr(partitioning, "SPLIT_RATIO", chance.choice((1, 2)))
        patch.setattr(partition_files, "FOLD_MIN_TUPLES", chance.choice((1, 1 << 13)))
        patch.setattr(source, "BUILD_MIN_TUPLES", chance.choice((1, 1 << 16)))
        patch.setattr(open_partition, "OPEN_MAX_PARTITIONS", chance.choice((1, 256)))
        patch.setattr(open_partition, "ASKED_MAX", chance.choice((1, 1 << 20)))
        patch.setattr(engine, "DICTIONARY_MAX_BYTES", chance.choice((0, 1 << 26)))
        patch.setattr(placer, "WORKER_MEMORY", chance.choice((-1, 10 * TUPLE_BYTES, 1 << 30)))
        patch.setattr(engine, "BULK_MIN_TUPLES", chance.choice((1, 1 << 17)))
        patch.setattr(stratum, "INLINE_MAX_TUPLES", chance.choice((0, 2, 1 << 14)))
        stage_changes(patch, chance.choice((None, 1, 4)))
        yield


def forbid_collecting(patch: pytest.MonkeyPatch, max_tuples: int | None = None) -> None:
    """Let it be an error that a plan reads a whole partitioned relation on the driver.

    With a number, so that anything reads more tuples of one than that.
    """

    collect = PartitionedRun._collect

    def refuse(run: PartitionedRun) -> tuple[int, int]:
        name = run.source.files.relation.name
        assert name.endswith(("•given", "•keys")), f"`{name}` is collected on the driver"
        return collect(run)  # the few tuples that a message asks for

    read = source.PartitionSource.read

    def refuse_many(self: source.PartitionSource) -> pa.Table:
        name, size = self.files.relation.name, self.files.size
        assert size <= max_tuples, f"{size} tuples of `{name}` come to the driver"
        return read(self)

    if max_tuples is None:
        patch.setattr(PartitionedRun, "_collect", refuse)
    else:
        patch.setattr(source.PartitionSource, "read", refuse_many)


def stage_changes(patch: pytest.MonkeyPatch, min_tuples: int | None) -> None:
    """Let changes of so many tuples be in files; None for those that are large."""
    if min_tuples is not None:
        patch.setattr(InProcess, "stages_changes", True)
        patch.setattr(handle, "DISTRIBUTED_MIN_TUPLES", min_tuples)


def share_out(
    monkeypatch: pytest.MonkeyPatch,
    placement: str = "partitions",
    shares: int = SHARES,
    interned_bits: int | None = None,
    memory: int | None = None,
) -> None:
    """Let every database that is opened have its strata maintained elsewhere."""

    def made(*_: Any, scratch: str | None = None, **__: Any) -> InProcess:
        found = InProcess(placement, shares, memory, scratch)
        if interned_bits is not None:
            found.partition_place.interned_bits = interned_bits
        return found

    monkeypatch.setattr(opening, "create_engine", made)
    monkeypatch.setattr(partitioning, "LEAST_PARTITIONS", shares)


class InProcessTasks:
    """Runs tasks one after the other, each twice, as if the first had been lost.

    Attributes:
        titles: of the jobs.
        min_tuples: relations of so many tuples are large.
    """

    def __init__(self, directory: Path, min_tuples: int = 0, count: int = 3) -> None:
        self.directory = str(directory)
        self.min_tuples = min_tuples
        self.count = count
        self.titles: list[str] = []
        directory.mkdir(exist_ok=True)

    def run(
        self, title: str, function: Callable[[Item], MapResult], items: Sequence[Item]
    ) -> list[MapResult]:
        self.titles.append(title)
        sent = pickle.dumps((function, items))
        found: list[MapResult] = []
        for number in range(len(items)):
            for _ in range(2):
                task, all_items = pickle.loads(sent)
                reply = pickle.dumps(task(all_items[number]))
            found.append(pickle.loads(reply))
        return found

    def is_large(self, tuples: int) -> bool:
        return tuples >= self.min_tuples

    def partition_count(self, tuples: int) -> int:
        return self.count

    @property
    def partitions_of(self) -> PartitionsOf:
        return partitions_of
