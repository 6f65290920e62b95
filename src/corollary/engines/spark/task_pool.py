"""Work in Spark's tasks: a function on items, one job for all of them."""

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.core.engine import Item, MapResult, PartitionsOf
from corollary.core.program import Relation
from corollary.data_class import dataclass
from corollary.engines.spark.partitioned.partitioning import partition_count, partition_of
from corollary.errors import CorollaryError

RunTasks = Callable[[Callable[[int], bytes], Sequence[int], str], list[bytes]]
"""Runs a job: what a task does given its number, the numbers, a title; returns the results."""


@dataclass(frozen=True, slots=True)
class SparkTaskPool:
    """Runs functions on items in tasks.

    Attributes:
        run_tasks: runs a job.
        root: makes a directory that the driver and all tasks see, if it is not there yet.
        slots: says how many tasks run at once; that may start Spark.
        max_tuples: of one relation that the driver should hold.
    """

    run_tasks: RunTasks
    root: Callable[[], Path]
    slots: Callable[[], int]
    max_tuples: int

    @property
    def directory(self) -> Path:
        """A directory that the driver and all tasks see."""
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
        replies = self.run_tasks(ItemTask(function, items), range(len(items)), title)
        found = [pickle.loads(each) for each in replies]  # noqa: S301 - our own tasks made it
        for each in found:
            if isinstance(each, CorollaryError):
                raise each
        return found

    def is_large(self, tuples: int) -> bool:
        """Whether the driver should not hold so many tuples of one relation."""
        return tuples > self.max_tuples

    def partition_count(self, tuples: int) -> int:
        """Return into how many partitions a relation of so many tuples is divided."""
        return partition_count(tuples, self.slots())

    @property
    def partitions_of(self) -> PartitionsOf:
        """The function that says which tuple belongs to which partition."""
        return partitions_of


@dataclass(frozen=True, slots=True)
class ItemTask(Generic[Item, MapResult]):
    """Computes the result for one of some items, in a task."""

    function: Callable[[Item], MapResult]
    items: Sequence[Item]

    def __call__(self, number: int) -> bytes:
        """Return the result, or the error, for the item with a number, pickled."""
        try:
            found: object = self.function(self.items[number])
        except CorollaryError as error:
            found = error
        return pickle.dumps(found, protocol=5)


def partitions_of(
    rows: pa.Table, relation: Relation, column: int, count: int
) -> npt.NDArray[np.int64]:
    """Return the partition of each tuple by the value of a column."""
    return partition_of(rows.column(column), relation.types[column], count)
