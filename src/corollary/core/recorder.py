"""The record of a run: the size of every step's result. Counters, traces and progress read it.

Jobs say for which commit they are run, as the pages of a cluster show it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from typing import TYPE_CHECKING, Any

from corollary.core.plans import Evaluation, RecordTrace, Within
from corollary.data_class import dataclass

if TYPE_CHECKING:
    import pyarrow as pa


JOB_TAG = "corollary"
"""The tag of all jobs, and the group of those that work for no commit."""

_group: ContextVar[str] = ContextVar("group", default=JOB_TAG)


@contextmanager
def job_group(location: str, commit: int) -> Iterator[None]:
    """Let the jobs that are started inside be those of a commit of a warehouse.

    >>> with job_group("/data/sales/", 7):
    ...     current_job_group()
    'corollary/sales/7'
    """
    name = location.partition("?")[0].rstrip("/").rpartition("/")[2]
    token = _group.set(f"{JOB_TAG}/{name}/{commit}")
    try:
        yield
    finally:
        _group.reset(token)


def current_job_group() -> str:
    """Return the group of jobs that are started now."""
    return _group.get()


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job in which tasks have done something with partitions.

    Attributes:
        title: what they have done.
        partitions: by relation the numbers of the partitions that were asked.
        sent, returned: bytes that went to the tasks and came back.
    """

    title: str
    partitions: Mapping[str, tuple[int, ...]]
    sent: int
    returned: int

    def as_json(self) -> dict[str, Any]:
        """Return it as `trace` prints it."""
        return {
            "title": self.title,
            "partitions": {name: list(each) for name, each in self.partitions.items()},
            "bytes_sent": self.sent,
            "bytes_returned": self.returned,
        }


class Recorder:
    """Receives the events of a run from an engine; those that it has no use for are ignored."""

    __slots__ = ()

    @property
    def stratum(self) -> str:
        """The relations of the stratum that is maintained now; empty between strata."""
        return ""

    def procedure(self, name: str) -> None:
        """A procedure begins."""

    def end(self, name: str, handled: int) -> None:
        """A procedure has ended; `handled` rows were handled since the plan began."""

    def resume(self, name: str, handled: int, others: int = 0) -> None:
        """A procedure goes on, with others, or, without a name, a step of the main one."""

    def step(self, step: Evaluation, size: int, led: int) -> None:
        """A step has given `size` tuples; the first probes of its pipelines gave `led` rows."""

    def touched(self, relation: str, count: int) -> None:
        """Some groups of a relation may change."""

    def round(self, count: int = 1) -> None:
        """A round of a loop has ended, or several that ran at once."""

    def probe(self, relation: str, rows: int) -> None:
        """`rows` rows were looked up in the OLD or NEW state of a relation."""

    def bulk(self) -> None:
        """A pipeline or an aggregation has run as a query over whole relations."""

    def job(self, job: JobRecord) -> None:
        """Tasks have probed partitions."""

    def switch(self, within: Within, rows: int) -> None:
        """Steps have exceeded their budget and are abandoned, after some rows."""

    def row(
        self, row: RecordTrace, relations: "Mapping[str, tuple[pa.Table, ...]]", number: int
    ) -> None:
        """A row of a trace: the tables of `updates`, `approximation`, `disqualified`, `actual`.

        It is recorded in a round of the loop it is in; the number is 0 outside of loops.
        """


@dataclass(slots=True)
class CountingRecorder(Recorder):
    """A recorder that counts tuples and rounds."""

    derived: Counter[str] = field(default_factory=Counter)
    rounds: Counter[str] = field(default_factory=Counter)
    current: str = ""

    def procedure(self, name: str) -> None:
        """Remember the procedure to count rounds for."""
        self.current = name

    def resume(self, name: str, handled: int, others: int = 0) -> None:  # noqa: ARG002
        """Remember the procedure to count rounds for."""
        self.current = name

    def step(self, step: Evaluation, size: int, led: int) -> None:  # noqa: ARG002
        """Count the tuples of a step under its target."""
        self.derived[step.target] += size

    def round(self, count: int = 1) -> None:
        """Count rounds of the current procedure."""
        self.rounds[self.current] += count
