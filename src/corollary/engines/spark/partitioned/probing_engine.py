"""Engines of one process that use partitions without Spark.

One looks things up in partitions, and reads none of them whole: a probe opens the index file of its
partition here. What would read all tuples of a large partitioned relation is refused, so that its
owner asks a process that has tasks. A reader of a server is such a process, and its writer the
other. The other engine does what tasks would do itself, with one partition after the other, so that
it takes the memory of one of them: for upkeep.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from corollary.core.engine import BulkMode
from corollary.engines.scratch_directory import ScratchDirectory
from corollary.engines.spark.partitioned import operations
from corollary.engines.spark.partitioned.engine import PartitioningEngine
from corollary.engines.spark.partitioned.jobs import PartitionJobs, PartitionTask
from corollary.engines.spark.task_pool import SparkTaskPool
from corollary.engines.spark.task_runner import Task
from corollary.errors import SCAN_REFUSED, InputError

SCAN_MAX_TUPLES = 1 << 17
"""Partitions that have no more tuples together are read here."""

BOUNDED = (
    operations.Match,
    operations.Contain,
    operations.Build,
    operations.Fold,
    operations.MergeChanges,
)
"""What takes no longer in a larger relation: probes, and writing changes and single partitions."""


class SequentialJobs(PartitionJobs):
    """Runs operations in this process, one after the other."""

    def run(self, tasks: Sequence[PartitionTask], title: str) -> list[Any]:  # noqa: ARG002
        """Run operations; return their results in the same order."""
        return [each.run(address) for address, each in tasks]


class ProbeJobs(SequentialJobs):
    """Runs operations in this process that do not read all of a large relation."""

    can_scan = False

    def run(self, tasks: Sequence[PartitionTask], title: str) -> list[Any]:
        """Run operations; return their results in the same order.

        Raises:
            InputError: `C0996`, they would read all of a large relation.
        """
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
        return super().run(tasks, title)


class ProbingEngine(PartitioningEngine):
    """Holds relations in this process, and those in partitions where they are.

    Args:
        bulk: which steps DuckDB computes.
        scratch: a directory for second names of files, and for changes.
    """

    def __init__(self, bulk: BulkMode | None = None, scratch: Path | None = None) -> None:
        super().__init__(bulk)
        self._scratch = scratch
        self._directory: ScratchDirectory | None = None

    @property
    def _root(self) -> Path:
        if self._directory is None:
            self._directory = ScratchDirectory("corollary-partitions", self._scratch)
        return self._directory.path

    def _new_jobs(self) -> PartitionJobs:
        return ProbeJobs(self._run_slices, lambda: self.task_count)

    def close(self) -> None:
        """Remove all files."""
        if self._directory is not None:
            self._directory.close()
            self._directory = None


class SequentialEngine(ProbingEngine):
    """Does what tasks would do in this process, with one partition after the other."""

    def _new_jobs(self) -> PartitionJobs:
        return SequentialJobs(self._run_slices, lambda: self.task_count)

    def _run_tasks(self, task: Task, numbers: Sequence[int], title: str) -> list[bytes]:  # noqa: ARG002
        return [task(number) for number in numbers]

    @property
    def tasks(self) -> SparkTaskPool:
        """Where large inputs are read: here, one file after the other."""
        slots = lambda: self.task_count  # noqa: E731 - as where Spark may have to be started
        return SparkTaskPool(self._run_tasks, lambda: self._root, slots, SCAN_MAX_TUPLES)
