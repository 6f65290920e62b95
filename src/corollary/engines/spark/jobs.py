"""Jobs: what tasks do travels to them pickled, and so do their results and errors.

A job is a function, and a request for each task, by number. Operations on partitions are grouped
into slices, one for each task; large inputs are read by a function of items, one for each task.
"""

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import Enum, auto
from functools import partial
from itertools import cycle, islice
from typing import Any, Generic

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.core.engine import Item, MapResult, PartitionsOf
from corollary.core.program import Relation
from corollary.core.recorder import JobRecord, Recorder
from corollary.data_class import dataclass
from corollary.engines.spark import operations
from corollary.engines.spark.operations import PartitionAddress, PartitionOperation
from corollary.engines.spark.relation.partitioning import partition_count, partition_of
from corollary.errors import SCAN_REFUSED, CorollaryError, InputError

Task = Callable[[bytes], bytes]
"""What a task does with its request; it goes to executors as bytes."""

Requests = Mapping[int, bytes]
"""What each task is asked, by its number: only that task gets it."""

RunTasks = Callable[[Task, Requests, str], list[bytes]]
"""Runs a job: what tasks do, what they are asked, a title; returns the results in this order."""

PartitionTask = tuple[PartitionAddress, PartitionOperation]

SCAN_MAX_TUPLES = 1 << 17
"""Partitions that have no more tuples together are read in a process without tasks."""

BOUNDED = (
    operations.Match,
    operations.Contain,
    operations.Build,
    operations.Fold,
    operations.MergeChanges,
)
"""What takes no longer in a larger relation: probes, and writing changes and single partitions."""


class Execution(Enum):
    """Who does the work of jobs."""

    SPARK = auto()
    """The tasks of a session."""

    SEQUENTIAL = auto()
    """This process, with one partition after the other, so that it takes the memory of one."""

    PROBES = auto()
    """This process; what would read all of a large relation is refused, so that its owner asks a
    process that has tasks."""


# --- what a task does ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ItemTask(Generic[Item, MapResult]):
    """Computes the result for an item; Spark calls this in a task."""

    function: Callable[[Item], MapResult]

    def __call__(self, request: bytes) -> bytes:
        """Return the result, or the error, for a pickled item, pickled."""
        item: Item = pickle.loads(request)  # noqa: S301 - made by the driver
        try:
            found: object = self.function(item)
        except CorollaryError as error:
            found = error
        return pickle.dumps(found, protocol=5)


def serve_slice(tasks: Sequence[PartitionTask], shared: object = None) -> list[Any]:
    """Run the operations of a slice, with what all tasks of the job share, if anything."""
    if shared is None:
        return [operation.run(address) for address, operation in tasks]
    return [replace(operation, shared=shared).run(address) for address, operation in tasks]  # type: ignore[type-var]


def assign_slots(count: int, slots: int, before: Sequence[int] = ()) -> list[int]:
    """Return which task takes each partition: as before, as far as no task has too many then.

    The first 2ᵏ partitions are spread evenly over the tasks: relations have 2ᵏ partitions.

    >>> assign_slots(8, 3), assign_slots(8, 4, [0, 1, 2, 0, 1, 2, 0, 1])
    ([0, 1, 2, 0, 1, 2, 0, 1], [0, 1, 2, 3, 1, 2, 0, 3])
    """
    found: list[int] = []
    loads = [0] * slots
    while len(found) < count:
        first, size = len(found), max(len(found), 1)
        most = -(-(first + size) // slots)
        kept: dict[int, int] = {}
        for at, slot in enumerate(before[first : first + size]):
            if slot < slots and loads[slot] < most:
                kept[at] = slot
                loads[slot] += 1
        turn = islice(cycle(range(slots)), first % slots, None)
        for at in range(size):
            if at not in kept:
                kept[at] = next(slot for slot in turn if loads[slot] < most)
                loads[kept[at]] += 1
            found.append(kept[at])
    return found


def read_replies(replies: Sequence[bytes]) -> list[Any]:
    """Return what tasks have returned.

    Raises:
        CorollaryError: the one that the first of the tasks raised.
    """
    found = [pickle.loads(each) for each in replies]  # noqa: S301 - our own tasks made it
    for each in found:
        if isinstance(each, CorollaryError):
            raise each
    return found


# --- operations on partitions --------------------------------------------------------------------


@dataclass(slots=True)
class JobCounts:
    """What jobs have cost.

    Attributes:
        sent, returned: bytes from the driver to tasks and back.
    """

    jobs: int = 0
    tasks: int = 0
    sent: int = 0
    returned: int = 0

    def since(self, before: "JobCounts") -> "JobCounts":
        """Return the difference from earlier counts."""
        return JobCounts(
            self.jobs - before.jobs,
            self.tasks - before.tasks,
            self.sent - before.sent,
            self.returned - before.returned,
        )


class PartitionJobs:
    """Runs operations on partitions, and counts what that costs.

    Args:
        run_tasks: runs a job.
        slots: says how many tasks run at once, now.
        execution: who does the work.

    Attributes:
        counts: what jobs have cost so far.
        operations: how many operations there were; each may have left files that nobody needs.
        recorder: of the plan that runs now.
    """

    def __init__(
        self,
        run_tasks: RunTasks,
        slots: Callable[[], int],
        execution: Execution = Execution.SPARK,
    ) -> None:
        self._run_tasks = run_tasks
        self._slots = slots
        self._execution = execution
        self.counts = JobCounts()
        self.operations = 0
        self._assigned: tuple[int, list[int]] = 0, []
        """For how many tasks at once partitions were assigned, and the task of each of them."""
        self.recorder: Recorder | None = None

    @property
    def slots(self) -> int:
        """How many tasks run at once."""
        return self._slots()

    @property
    def can_scan(self) -> bool:
        """Whether jobs may read whole relations."""
        return self._execution is not Execution.PROBES

    def run(self, tasks: Sequence[PartitionTask], title: str, shared: object = None) -> list[Any]:
        """Run operations in one job; return their results in the same order.

        Args:
            tasks: the partitions and operations.
            title: of the job.
            shared: what all operations get as their attribute `shared`, sent once.

        Raises:
            CorollaryError: that of an operation that failed.
            InputError: `C0996`, they would read all of a large relation.
        """
        self.operations += len(tasks)
        if not self.can_scan:
            self._check_size(tasks, title)
        if self._execution is not Execution.SPARK:
            return serve_slice(tasks, shared)
        if not tasks:
            return []
        slices = self._slices([address.number for address, _ in tasks])
        sent = {
            number: pickle.dumps([tasks[at] for at in each], protocol=5)
            for number, each in slices.items()
        }
        task = ItemTask(serve_slice if shared is None else partial(serve_slice, shared=shared))
        returned = self._run_tasks(task, sent, self._described(title))
        self._count(title, [address for address, _ in tasks], sent, returned)
        results: list[Any] = [None] * len(tasks)
        for each, found in zip(slices.values(), read_replies(returned), strict=True):
            for at, result in zip(each, found, strict=True):
                results[at] = result
        return results

    def _slices(self, numbers: Sequence[int]) -> dict[int, list[int]]:
        """Return the positions of partitions by the task that takes them.

        It is the same one each time, so that its worker may have the partition open; when more or
        fewer tasks run at once, as many as necessary go to others.
        """
        slots = self.slots
        known, assigned = self._assigned
        if slots != known or max(numbers) >= len(assigned):
            assigned = assign_slots(max(max(numbers) + 1, len(assigned)), slots, assigned)
            self._assigned = slots, assigned
        found: dict[int, list[int]] = {}
        for at, number in enumerate(numbers):
            found.setdefault(assigned[number], []).append(at)
        return found

    def _described(self, title: str) -> str:
        """Return a title, and the stratum for whose sake the job is run, if it does not say so."""
        stratum = "" if self.recorder is None else self.recorder.stratum
        return title if not stratum or title.endswith(f" {stratum}") else f"{title} for {stratum}"

    def _check_size(self, tasks: Sequence[PartitionTask], title: str) -> None:
        """Refuse to read all of a large relation."""
        scanned = [address for address, each in tasks if not isinstance(each, BOUNDED)]
        tuples = sum(each.stored.size for each in scanned)
        if tuples > SCAN_MAX_TUPLES:
            name = scanned[0].relation.name
            raise InputError.of(
                SCAN_REFUSED,
                f"To {title}, all its {tuples:,} tuples would be read here: `{name}` is in "
                "partitions, and this process has no tasks.",
                None,
                "bind the column that it is looked up by, or ask with the engine `spark`",
            )

    def _count(
        self,
        title: str,
        addresses: Sequence[PartitionAddress],
        sent: Mapping[int, bytes],
        returned: Sequence[bytes],
    ) -> None:
        sizes = sum(map(len, sent.values())), sum(map(len, returned))
        self.counts.jobs += 1
        self.counts.tasks += len(sent)
        self.counts.sent += sizes[0]
        self.counts.returned += sizes[1]
        if self.recorder is not None:
            asked: dict[str, set[int]] = {}
            for each in addresses:
                asked.setdefault(each.relation.name, set()).add(each.number)
            partitions = {name: tuple(sorted(each)) for name, each in asked.items()}
            self.recorder.job(JobRecord(title, partitions, *sizes))


# --- functions of items --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SparkTaskPool:
    """Runs functions on items in tasks.

    Attributes:
        run_tasks: runs a job.
        root: makes the place of the files that tasks share, if it is not there yet.
        max_tuples: of one relation that the driver should hold.
    """

    run_tasks: RunTasks
    root: Callable[[], str]
    max_tuples: int

    @property
    def directory(self) -> str:
        """A directory that the driver and all tasks see, or a place in an object store."""
        return self.root()

    def run(
        self, title: str, function: Callable[[Item], MapResult], items: Sequence[Item]
    ) -> list[MapResult]:
        """Return the results of a function for items, in their order.

        Raises:
            CorollaryError: the one that the first of the items raised.
        """
        if not items:
            return []
        requests = {at: pickle.dumps(each, protocol=5) for at, each in enumerate(items)}
        return read_replies(self.run_tasks(ItemTask(function), requests, title))

    def is_large(self, tuples: int) -> bool:
        """Whether this number of tuples of one relation is too large for the driver."""
        return tuples > self.max_tuples

    def partition_count(self, tuples: int) -> int:
        """Return into how many partitions a relation of this size is divided."""
        return partition_count(tuples)

    @property
    def partitions_of(self) -> PartitionsOf:
        """The function that says which tuple belongs to which partition."""
        return partitions_of


def partitions_of(
    rows: pa.Table, relation: Relation, column: int, count: int
) -> npt.NDArray[np.int64]:
    """Return the partition of each tuple by the value of a column."""
    return partition_of(rows.column(column), relation.types[column], count)
