"""Tasks without Spark: functions run in this process, but are pickled as they would be."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path

from corollary.core.engine import Item, MapResult, PartitionsOf
from corollary.engines.spark.task_pool import partitions_of


class InProcessTasks:
    """Runs tasks one after the other, each twice, as if the first had been lost.

    Attributes:
        titles: of the jobs.
        min_tuples: relations of so many tuples are large.
    """

    def __init__(self, directory: Path, min_tuples: int = 0, count: int = 3) -> None:
        self.directory = directory
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
