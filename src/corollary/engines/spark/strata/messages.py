"""What the driver and the tasks of a partitioned stratum send each other.

A job has one `PartitionRequest`, which all tasks get, and a `Reply` of each task. Changes travel in
files of a directory that the driver and all tasks see.
"""

import pickle
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.core.engine import Limits, deadline_start
from corollary.core.plans import Evaluation, RecordTrace, Within
from corollary.core.program import Relation
from corollary.core.recorder import JobRecord
from corollary.data_class import dataclass
from corollary.engines.local.values.native import from_arrow, partition_of
from corollary.engines.spark.remote import ChangedTuples
from corollary.errors import CorollaryError


@dataclass(frozen=True, slots=True)
class PartitionBase:
    """A directory of index files with the tuples of a partition, and their version."""

    version: int
    directory: str | None


@dataclass(frozen=True, slots=True)
class PartitionLogEntry:
    """The change that made a version of the partitions.

    Attributes:
        common: a file with the changes of relations that every partition has a copy of.
        own: by partition, a file with the changes of partitioned relations.
    """

    version: int
    common: str | None
    own: Mapping[int, str]

    @property
    def files(self) -> set[str]:
        """All files of the version."""
        return {*self.own.values(), *([] if self.common is None else [self.common])}


@dataclass(frozen=True, slots=True)
class PartitionRequest:
    """What the driver asks all tasks of a job to do.

    Attributes:
        owner: identifies the stratum of one driver; a worker process serves several.
        root: a directory that the driver and all tasks see.
        relations: those that the partitions hold; those in `pivots` are partitioned by a column.
        version: the last version of the log.
        plan: what to run, pickled; empty if there is nothing to run.
        open_changes: a file with the open changes of relations, and with working relations.
        is_folding: whether to write a new base first.
        use: a relation and a function to apply to its tuples, if that is all that is requested.
        job: identifies the request in the names of all files that its tasks write.
    """

    owner: str
    title: str
    root: str
    relations: Mapping[str, Relation]
    pivots: Mapping[str, int]
    partitions: int
    version: int
    bases: tuple[PartitionBase, ...]
    log: tuple[PartitionLogEntry, ...]
    plan: bytes = b""
    open_changes: str = ""
    limits: Limits = field(default_factory=Limits)
    is_folding: bool = False
    use: tuple[str, Callable[[pa.Table], Any]] | None = None
    job: str = field(default_factory=lambda: uuid4().hex)


@dataclass(frozen=True, slots=True)
class PartitionResult:
    """What a plan has made of a relation in a partition.

    Attributes:
        size: its tuples in NEW.
        distinct: about how many values each column has, if that was counted.
        counts: how many tuples were added and removed.
        delta: its change, or the file that holds it; None if there is none, or if the relation was
            empty before and the base of the reply holds it all.
    """

    size: int
    distinct: tuple[int, ...]
    counts: tuple[int, int]
    delta: ChangedTuples | str | None


@dataclass(slots=True)
class TaskRecorder:
    """A recorder that adds up, so that the driver can report the sum over all tasks.

    Attributes:
        steps: the number of each step of the plan by its identity.
    """

    steps: Mapping[int, int] = field(default_factory=dict)
    sizes: Counter[int] = field(default_factory=Counter)
    led: Counter[int] = field(default_factory=Counter)
    probes: Counter[str] = field(default_factory=Counter)
    rounds: int = 0
    handled: int = 0
    switched: Counter[int] = field(default_factory=Counter)
    rows: list[tuple[int, Mapping[str, tuple[pa.Table, ...]], int]] = field(default_factory=list)

    def procedure(self, name: str) -> None:
        """Nothing to record."""

    def end(self, name: str, handled: int) -> None:  # noqa: ARG002
        """Record the rows so far."""
        self.handled = handled

    def step(self, step: Evaluation, size: int, led: int) -> None:
        """Add to the sizes of a step."""
        number = self.steps[id(step)]
        self.sizes[number] += size
        self.led[number] += led

    def touched(self, relation: str, count: int) -> None:
        """Ignored: groups are counted on the driver."""

    def round(self, count: int = 1) -> None:
        """Count rounds."""
        self.rounds += count

    def probe(self, relation: str, rows: int) -> None:
        """Add to the probes of a relation."""
        self.probes[relation] += rows

    def bulk(self) -> None:
        """Ignored: a stratum in tasks is placed there."""

    def job(self, job: JobRecord) -> None:
        """Ignored: tasks start no jobs."""

    def switch(self, within: Within, rows: int) -> None:
        """Record steps that exceeded their budget, and after how many rows."""
        self.switched[self.steps[id(within)]] += rows

    def row(
        self, row: RecordTrace, relations: Mapping[str, tuple[pa.Table, ...]], number: int
    ) -> None:
        """Record a row of a trace."""
        self.rows.append((self.steps[id(row)], relations, number))


@dataclass(frozen=True, slots=True)
class Reply:
    """What a task has found.

    Attributes:
        folded: the base that it wrote of the requested version.
        base: the base that it wrote of the result of the plan.
        made: the result of the requested function, if the relation is not empty.
    """

    partition: int
    results: Mapping[str, PartitionResult] = field(default_factory=dict)
    record: TaskRecorder = field(default_factory=TaskRecorder)
    folded: str | None = None
    base: str | None = None
    made: tuple[Any, ...] = ()
    error: CorollaryError | None = None

    @property
    def files(self) -> set[str]:
        """The files and directories that it references."""
        places = (self.folded, self.base, *(each.delta for each in self.results.values()))
        return {each for each in places if isinstance(each, str)}


def partitions_of(
    rows: pa.Table, relation: Relation, pivot: int, partitions: int
) -> npt.NDArray[np.int64]:
    """Return the partition that each tuple belongs to."""
    type_ = relation.types[pivot]
    return partition_of(*from_arrow(rows.column(pivot), type_), partitions)


def write_pickle(data: Any, root: Path, job: str = "driver") -> str:
    """Write an object to a new file; return its path."""
    path = root / f"data-{job}-{uuid4().hex}"
    with path.open("wb") as file:
        pickle.dump(data, file, protocol=5)
    return str(path)


def read_pickle(path: str) -> Any:
    """Return the object that `write_pickle` has written."""
    with Path(path).open("rb") as file:
        return pickle.load(file)  # noqa: S301 - written by the driver or a task of it


def remaining_limits(limits: Limits) -> Limits:
    """Return limits with the seconds that are left: clocks of other machines differ."""
    began = deadline_start()
    if limits.seconds is None or began is None:
        return limits
    left = limits.seconds - (time.monotonic() - began)
    return replace(limits, seconds=max(0.0, left))
