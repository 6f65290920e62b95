"""The one door to a warehouse: whoever connects, and however, asks a `Service`."""

from collections.abc import AsyncGenerator
from dataclasses import field
from typing import Protocol

from corollary.data_class import dataclass
from corollary.database.access.principals import Principal
from corollary.serve.answers import Answer, Event
from corollary.serve.requests import EventsRequest, Request


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """The bounds on requests.

    Attributes:
        seconds: how long a request may take.
        tuples: how many tuples it may work on.
        memory: how many bytes a process may take for it, in addition to what it has.
        waiting_writes: how many writes may wait.
        waiting_bytes: how many bytes they may have.
        waiting_reads: how many reads may wait.
        requests_per_token: how many requests of one principal may be under way.
        group_requests: how many writes make up one commit.
        group_bytes: how many bytes they may have.
        min_commit_seconds: how long a request waits for the commit that it must have seen.
        stop_seconds: how long a stop may take.
        subscribers: how many subscriptions there may be.
    """

    seconds: float = 10.0
    tuples: int = 1_000_000
    memory: int = 1 << 30
    waiting_writes: int = 256
    waiting_bytes: int = 64 << 20
    waiting_reads: int = 512
    requests_per_token: int = 16
    group_requests: int = 64
    group_bytes: int = 4 << 20
    min_commit_seconds: float = 2.0
    stop_seconds: float = 10.0
    subscribers: int = 1000


@dataclass(slots=True)
class ServiceMetrics:
    """What a service counts; `/metrics` shows it.

    Attributes:
        commits: the commits that were made.
        commit_seconds: how long they took, all together.
        grouped_requests: the writes that were committed.
        queued: how many requests wait, by kind (`read`, `write`).
        subscribers: how many subscriptions there are.
        subscriber_lag: how many commits the slowest of them is behind.
        rows_changed: the tuples that came and went, by relation and sign (`+`, `-`).
        reader_commits: the commit that each reader has seen.
        restarts: how often a process was restarted, by process.
        commit: the last commit.
    """

    commits: int = 0
    commit_seconds: float = 0.0
    grouped_requests: int = 0
    queued: dict[str, int] = field(default_factory=lambda: {"read": 0, "write": 0})
    subscribers: int = 0
    subscriber_lag: int = 0
    rows_changed: dict[tuple[str, str], int] = field(default_factory=dict)
    reader_commits: dict[str, int] = field(default_factory=dict)
    restarts: dict[str, int] = field(default_factory=dict)
    commit: int = 0


class Service(Protocol):
    """Answers requests.

    Attributes:
        metrics: what it counts.
        is_ready: whether it takes requests; False once it stops.
    """

    metrics: ServiceMetrics

    @property
    def is_ready(self) -> bool:
        """Whether it takes requests."""

    async def call(self, who: Principal, request: Request) -> Answer:
        """Answer a request.

        Raises:
            ServiceError: it has no answer.
        """

    def subscribe(self, who: Principal, request: EventsRequest) -> AsyncGenerator[Event, None]:
        """Yield events, until the iterator is closed or the service stops.

        Raises:
            ServiceError: a relation was not granted, or does not exist.
        """

    async def close(self) -> None:
        """Stop: what is running ends, what waits is refused; after ten seconds at most."""
