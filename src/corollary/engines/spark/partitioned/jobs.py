"""Jobs on partitions: operations grouped into slices, one for each task, and what they cost."""

import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from corollary.core.recorder import JobRecord, Recorder
from corollary.data_class import dataclass
from corollary.engines.spark.partitioned.operations import PartitionAddress, PartitionOperation
from corollary.errors import CorollaryError

PartitionTask = tuple[PartitionAddress, PartitionOperation]

RunSlices = Callable[[Mapping[int, bytes], str], list[bytes]]
"""Runs a job with one task for each slice of work, by number, and a title; returns the results."""


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
        run_slices: runs a job.
        slots: says how many tasks run at once, now.

    Attributes:
        counts: what jobs have cost so far.
        recorder: of the plan that runs now.
    """

    can_scan: ClassVar[bool] = True
    """Whether jobs may read whole relations."""

    def __init__(self, run_slices: RunSlices, slots: Callable[[], int]) -> None:
        self._run_slices = run_slices
        self._slots = slots
        self.counts = JobCounts()
        self.recorder: Recorder | None = None

    @property
    def slots(self) -> int:
        """How many tasks run at once."""
        return self._slots()

    def run(self, tasks: Sequence[PartitionTask], title: str) -> list[Any]:
        """Run operations in one job; return their results in the same order.

        Raises:
            CorollaryError: that of an operation that failed.
        """
        if not tasks:
            return []
        # A partition goes to the same slice each time, so that workers may have it open.
        slots, slices = self.slots, dict[int, list[int]]()
        for at, (address, _) in enumerate(tasks):
            slices.setdefault(address.number % slots, []).append(at)
        sent = {
            number: pickle.dumps([tasks[at] for at in each], protocol=5)
            for number, each in slices.items()
        }
        returned = self._run_slices(sent, title)
        self._count(title, [address for address, _ in tasks], sent, returned)
        results: list[Any] = [None] * len(tasks)
        for each, data in zip(slices.values(), returned, strict=True):
            found = pickle.loads(data)  # noqa: S301 - our own tasks made it
            if isinstance(found, CorollaryError):
                raise found
            for at, result in zip(each, found, strict=True):
                results[at] = result
        return results

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


def serve_slice(data: bytes) -> bytes:
    """Run the operations of a slice."""
    tasks: list[PartitionTask] = pickle.loads(data)  # noqa: S301 - made by the driver
    try:
        return pickle.dumps([operation.run(address) for address, operation in tasks], protocol=5)
    except CorollaryError as error:
        return pickle.dumps(error, protocol=5)


def serve_number(slices: Mapping[int, bytes], number: int) -> bytes:
    """Run the operations of the slice with a number; Spark calls this in a task."""
    return serve_slice(slices[number])
