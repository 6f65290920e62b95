"""What an engine holds of Spark and of the disk: made when it is first used, then released."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from corollary.engines.scratch_directory import ScratchDirectory
from corollary.engines.spark.session import private_session, release_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from corollary.engines.spark.task_runner import Task, TaskRunner


class SparkResources:
    """A private session, a directory, and what runs tasks.

    Args:
        spark: the user's session; a local one is started if it is needed and there is none.
        scratch: a directory that the driver and all tasks see, for the files of partitions.
    """

    def __init__(self, spark: "SparkSession | None", scratch: Path | None) -> None:
        self._spark = spark
        self._scratch = scratch
        self._session: SparkSession | None = None
        self._runner: TaskRunner | None = None
        self._directory: ScratchDirectory | None = None

    @property
    def session(self) -> "SparkSession":
        """The private session."""
        if self._session is None:
            self._session = private_session(self._spark)
        return self._session

    @property
    def root(self) -> Path:
        """The directory of the files of partitions."""
        if self._directory is None:
            self._directory = ScratchDirectory("corollary-partitions", self._scratch)
        return self._directory.path

    @property
    def runner(self) -> "TaskRunner":
        """What runs tasks in the session."""
        if self._runner is None:
            from corollary.engines.spark.task_runner import TaskRunner

            self._runner = TaskRunner(self.session)
        return self._runner

    def run(self, task: "Task", numbers: Sequence[int], title: str) -> list[bytes]:
        """Run a job with a task for each number; return what they return, in this order."""
        return self.runner.run(task, numbers, title)

    def close(self) -> None:
        """Release the session, and remove the directory."""
        if self._runner is not None:
            self._runner.close()
            self._runner = None
        if self._session is not None:
            release_session(self._session)
            self._session = None
        if self._directory is not None:
            self._directory.close()
            self._directory = None
