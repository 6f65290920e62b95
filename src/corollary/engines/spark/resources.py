"""What an engine holds of Spark and of the disk: made when it is first used, then released.

Tasks run by number, and the same number comes to the same executor, as long as that is there: on a
cluster they run over a small persisted RDD of numbers. The first task with a number leaves the
block of that number with its executor, and Spark prefers an executor that has the block, so that
files which a task opens are open there the next time. The request of each task is an element of
another RDD, zipped with it. Spark Connect has no RDDs: there, tasks are Python functions over rows,
which have the requests, and run anywhere.
"""

import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from corollary.engines.scratch_directory import ScratchDirectory, ScratchObjects
from corollary.engines.spark.frames import task_replies
from corollary.engines.spark.jobs import Execution, Requests, Task
from corollary.engines.spark.relation.shared_files import forget, is_in_store, use_directory
from corollary.engines.spark.session import (
    is_connect,
    may_leave_machine,
    private_session,
    release_session,
    require_package,
    run_jobs,
    worker_memory,
)

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import SparkSession

_READ_DIRECTORIES: "WeakKeyDictionary[object, Any]" = WeakKeyDictionary()
"""By handles that frames read: the directories of engines that were closed."""

SCRATCH_VARIABLE = "COROLLARY_SCRATCH"
"""The environment variable that names a place for the files that tasks share."""
SCRATCH_PREFIX = "corollary-partitions"


REQUEST_MAX_BYTES = 1 << 25
"""What a task is asked travels with it up to this size; larger requests are broadcast."""

BLOCKS = 8
"""The numbers are in this many RDDs, so that some of them may find another executor."""


class TaskRunner:
    """Runs jobs of tasks in a session.

    Attributes:
        blocks: RDDs of consecutive numbers, one in each partition; together 2ᵏ of them.
        executors: those that were there when it was last asked; none where nobody says.
    """

    def __init__(self, session: "SparkSession") -> None:
        self.session = session
        self.blocks: list[tuple[range, RDD[int]]] = []
        self.executors: frozenset[str] = frozenset()
        self._numbers: RDD[int] | None = None
        """The numbers of all blocks."""
        self._moved = 0
        """How many blocks were made anew for the sake of new executors."""

    def run(self, task: Task, requests: Requests, title: str) -> list[bytes]:
        """Run a job with a task for each request; return what they return, in this order.

        Raises:
            InputError: `C0995`, the workers lack this package.
        """
        run = self._run_over_rows if is_connect(self.session) else self._run_over_blocks
        with require_package():
            return run_jobs(self.session, title, partial(run, task, requests))

    def close(self) -> None:
        """Let executors forget the blocks."""
        self._numbers = None
        while self.blocks:
            self.blocks.pop()[1].unpersist()

    def _run_over_blocks(self, task: Task, requests: Requests) -> list[bytes]:
        context, numbers = self.session.sparkContext, list(requests)
        placed = self._placed_numbers(max(numbers, default=0) + 1)
        if max(map(len, requests.values()), default=0) > REQUEST_MAX_BYTES:
            return context.runJob(placed, partial(_run_broadcast, task, requests), numbers)
        size = self.blocks[-1][0].stop
        asked = context.parallelize([requests.get(at, b"") for at in range(size)], size)
        return context.runJob(placed.zip(asked), partial(_run_requests, task), numbers)

    def _placed_numbers(self, count: int) -> "RDD[int]":
        """Return an RDD with at least `count` numbers.

        The blocks of an executor that is gone are made elsewhere by Spark. For one that has come,
        a part of all is made anew: else it would get no tasks while those that have blocks are
        free.
        """
        executors = _executors_of(self.session.sparkContext) or self.executors
        joined, self.executors = executors - self.executors, executors
        for _ in range(-(-len(self.blocks) * len(joined) // max(len(executors), 1))):
            at = self._moved % len(self.blocks)
            numbers, block = self.blocks[at]
            block.unpersist()
            self.blocks[at], self._numbers = self._block(numbers), None
            self._moved += 1
        known = self.blocks[-1][0].stop if self.blocks else 0
        size = max(1 << (count - 1).bit_length(), BLOCKS)
        width = max((size - known) // BLOCKS, 1)
        for first in range(known, size, width):
            self.blocks.append(self._block(range(first, first + width)))
            self._numbers = None
        if self._numbers is None:
            self._numbers = self.session.sparkContext.union([block for _, block in self.blocks])
        return self._numbers

    def _block(self, numbers: range) -> "tuple[range, RDD[int]]":
        # A list: of a range, Spark would make the elements in tasks.
        made = self.session.sparkContext.parallelize(list(numbers), len(numbers))
        return numbers, made.persist()

    def _run_over_rows(self, task: Task, requests: Requests) -> list[bytes]:
        from pyspark.sql.functions import udf
        from pyspark.sql.types import BinaryType

        # Python functions over rows need neither pandas nor Arrow in Spark.
        function = udf(task, BinaryType(), useArrow=False).asNondeterministic()
        rows = self.session.createDataFrame(
            list(enumerate(requests.values())), "number INT, request BINARY"
        )
        placed = rows.repartitionById(max(1, len(requests)), rows["number"])
        found = task_replies(placed.select("number", function("request")))
        return [bytes(row[1]) for row in sorted(found)]


def _run_requests(task: Task, requests: Iterable[tuple[int, bytes]]) -> list[bytes]:
    return [task(request) for _, request in requests]


def _run_broadcast(task: Task, requests: Requests, numbers: Iterable[int]) -> list[bytes]:
    return [task(requests[number]) for number in numbers]


def _executors_of(context: Any) -> frozenset[str]:
    """Return the names of those who run tasks; none if that cannot be found out."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    try:
        status = context._jsc.sc().getExecutorMemoryStatus()  # noqa: SLF001 - no public way to ask
        return frozenset(status.keySet().mkString(" ").split())
    except (AttributeError, TypeError, Py4JError):
        return frozenset()


class SparkResources:
    """A private session, a directory, and what runs tasks.

    Args:
        spark: the user's session; a local one is started if it is needed and there is none.
        scratch: a directory that the driver and all tasks see, or a place in an object store, for
            the files of partitions. `COROLLARY_SCRATCH` names another one.
        execution: who does the work of jobs.
    """

    def __init__(
        self, spark: "SparkSession | None", scratch: str | None, execution: Execution
    ) -> None:
        self._spark = spark
        self._scratch = scratch
        self._execution = execution
        self._roots: list[str] = []
        self._session: SparkSession | None = None
        self._runner: TaskRunner | None = None
        self._directory: ScratchDirectory | ScratchObjects | None = None
        self._worker_memory: int | None = None
        """What a session was asked once: the settings of executors do not change."""

    @property
    def session(self) -> "SparkSession":
        """The private session."""
        if self._session is None:
            self._session = private_session(self._spark)
        return self._session

    @property
    def worker_memory(self) -> int:
        """The bytes that Spark lets a worker have; 0 if it does not say, or does not run yet."""
        session = self._session or self._spark
        if self._worker_memory is None and session is not None:
            self._worker_memory = worker_memory(session)
        return self._worker_memory or 0

    @property
    def root(self) -> str:
        """The directory of the files that tasks share, or their place in an object store.

        Tasks that are all on this machine need no object store.
        """
        if self._directory is None:
            parent = os.environ.get(SCRATCH_VARIABLE) or self._scratch
            if parent is None or not is_in_store(parent):
                path = None if parent is None else Path(parent)
                self._directory = ScratchDirectory(SCRATCH_PREFIX, path)
            elif self._execution is Execution.SPARK and (
                parent != self._scratch or may_leave_machine(self._spark)
            ):
                self._directory = ScratchObjects(SCRATCH_PREFIX, parent)
            else:
                self._directory = ScratchDirectory(SCRATCH_PREFIX)
        return str(self._directory.path)

    def make_root(self, name: str) -> str:
        """Make a place below for files of one kind."""
        root = f"{self.root}/{name}"
        if isinstance(self._directory, ScratchObjects):
            use_directory(root, self._directory.directory.path / name)
            self._roots.append(root)
        else:
            Path(root).mkdir()
        return root

    @property
    def runner(self) -> TaskRunner:
        """What runs tasks in the session."""
        if self._runner is None:
            self._runner = TaskRunner(self.session)
        return self._runner

    def run(self, task: Task, requests: Requests, title: str) -> list[bytes]:
        """Run a job with a task for each request; return what they return, in this order."""
        return self.runner.run(task, requests, title)

    def close(self, readers: Iterable[object] = ()) -> None:
        """Release the session, and remove the directory, or let it go with the last reader."""
        if self._runner is not None:
            self._runner.close()
            self._runner = None
        if self._session is not None:
            release_session(self._session)
            self._session = None
        if self._directory is not None:
            kept = dict.fromkeys(readers, self._directory)
            _READ_DIRECTORIES.update(kept)
            if not kept:
                self._directory.close()
            self._directory = None
        while self._roots:
            forget(self._roots.pop())
