"""What an engine holds of Spark and of the disk: made when it is first used, then released.

Tasks run by number, and the same number comes to the same executor, as long as that is there: on a
cluster they run over a small persisted RDD of numbers. The first task with a number leaves the
block of that number with its executor, and Spark prefers an executor that has the block, so that
files which a task opens are open there the next time. Spark Connect has no RDDs: there, tasks are
Python functions over rows, and run anywhere.
"""

import os
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from corollary.engines.scratch_directory import ScratchDirectory, ScratchObjects
from corollary.engines.spark.jobs import Execution, Task
from corollary.engines.spark.relation.shared_files import forget, is_in_store, use_directory
from corollary.engines.spark.session import (
    is_connect,
    may_leave_machine,
    private_session,
    release_session,
    run_jobs,
    worker_memory,
)
from corollary.errors import InputError

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import SparkSession

_READ_DIRECTORIES: "WeakKeyDictionary[object, Any]" = WeakKeyDictionary()
"""By handles that frames read: the directories of engines that were closed."""

SCRATCH_VARIABLE = "COROLLARY_SCRATCH"
"""The environment variable that names a place for the files that tasks share."""
SCRATCH_PREFIX = "corollary-partitions"
MISSING_PACKAGE = "No module named 'corollary"


class TaskRunner:
    """Runs jobs of tasks in a session.

    Attributes:
        numbers: the RDD of numbers, with 2ᵏ partitions of one number each.
        executors: those that were there when it was made.
    """

    def __init__(self, session: "SparkSession") -> None:
        self.session = session
        self.numbers: RDD[int] | None = None
        self.executors: frozenset[str] = frozenset()

    def run(self, task: Task, numbers: Sequence[int], title: str) -> list[bytes]:
        """Run a job with a task for each number; return what they return, in this order.

        Raises:
            InputError: `C0995`, the workers lack this package.
        """
        from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException

        run = self._run_over_rows if is_connect(self.session) else self._run_over_blocks
        try:
            work = partial(run, task, numbers)
            return run_jobs(self.session, title, work)
        except (PySparkException, Py4JJavaError) as error:
            if MISSING_PACKAGE not in str(error):
                raise
            raise InputError.of(
                "C0995",
                "The Python that runs Spark's tasks has no package `corollary`.",
                None,
                "install the same version there, or let `PYSPARK_PYTHON` name a Python that has it",
            ) from None

    def close(self) -> None:
        """Let executors forget the blocks."""
        if self.numbers is not None:
            self.numbers.unpersist()
            self.numbers = None

    def _run_over_blocks(self, task: Task, numbers: Sequence[int]) -> list[bytes]:
        rdd = self._placed_numbers(max(numbers, default=0) + 1)
        return self.session.sparkContext.runJob(rdd, partial(_run_task, task), list(numbers))

    def _placed_numbers(self, count: int) -> "RDD[int]":
        """Return the RDD with at least so many numbers.

        Another one is made if executors have come or gone: else a new one would get no tasks while
        those that have blocks are free.
        """
        context: Any = self.session.sparkContext
        status = context._jsc.sc().getExecutorMemoryStatus()  # noqa: SLF001 - no public way to ask
        executors = frozenset(status.keySet().mkString(" ").split())
        size = 1 << (count - 1).bit_length()
        known = 0 if self.numbers is None else self.numbers.getNumPartitions()
        if self.numbers is None or known < size or self.executors != executors:
            self.close()
            size = max(size, known)
            self.numbers = context.parallelize(range(size), size).persist()
            self.executors = executors
        return self.numbers

    def _run_over_rows(self, task: Task, numbers: Sequence[int]) -> list[bytes]:
        from pyspark.sql.functions import col, udf
        from pyspark.sql.types import BinaryType

        # Python functions over rows need neither pandas nor Arrow in Spark.
        called = partial(_run_task_at, task, tuple(numbers))
        function = udf(called, BinaryType(), useArrow=False).asNondeterministic()
        rows = self.session.range(0, len(numbers), 1, max(1, len(numbers)))
        return [bytes(row[0]) for row in rows.select(function(col("id"))).collect()]


def _run_task(task: Task, numbers: Iterable[int]) -> list[bytes]:
    return [task(number) for number in numbers]


def _run_task_at(task: Task, numbers: Sequence[int], position: int) -> bytes:
    return task(numbers[position])


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

    @property
    def session(self) -> "SparkSession":
        """The private session."""
        if self._session is None:
            self._session = private_session(self._spark)
        return self._session

    @property
    def worker_memory(self) -> int | None:
        """The bytes that the settings of Spark let a worker have; None if they do not say."""
        session = self._session or self._spark
        return None if session is None else worker_memory(session)

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

    def run(self, task: Task, numbers: Sequence[int], title: str) -> list[bytes]:
        """Run a job with a task for each number; return what they return, in this order."""
        return self.runner.run(task, numbers, title)

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
