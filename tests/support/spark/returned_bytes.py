"""How many bytes the tasks of jobs have returned to the driver, as Spark's status store says."""

from __future__ import annotations

from typing import Any


class ReturnedBytes:
    """Counts what tasks return to the driver from now on; a session of Connect has no such store.

    Args:
        spark: a session; the jobs of all sessions of its application count.
    """

    def __init__(self, spark: Any) -> None:
        self._context = spark.sparkContext._jsc.sc()
        self._first = self._jobs()

    def _jobs(self) -> int:
        """The number of the last job, and one."""
        self._context.listenerBus().waitUntilEmpty()
        listed = self._context.statusStore().jobsList(None)
        return 1 + max((listed.apply(at).jobId() for at in range(listed.size())), default=-1)

    def by_job(self) -> dict[int, int]:
        """The bytes of each job since it was made."""
        store = self._context.statusStore()
        found = {}
        for number in range(self._first, self._jobs()):
            stages = store.job(number).stageIds()
            numbers = [stages.apply(at) for at in range(stages.size())]
            found[number] = sum(self._of_stage(store, each) for each in numbers)
        return found

    @staticmethod
    def _of_stage(store: Any, stage: int) -> int:
        return int(store.lastStageAttempt(stage).resultSize())

    @property
    def total(self) -> int:
        """The bytes of all jobs since it was made."""
        return sum(self.by_job().values())
