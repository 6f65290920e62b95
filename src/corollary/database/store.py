"""The store of a database: where commits are recorded, and what that needs to offer."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from corollary.core.alerts import Sink
from corollary.core.logic import Literal
from corollary.data_class import dataclass
from corollary.database.access.grants import Grants
from corollary.database.changes import Changes
from corollary.database.options import DatabaseOptions
from corollary.database.pending_commit import PendingCommit, Position, Replay
from corollary.database.state import DatabaseState
from corollary.warehouse.catalog.queued_alert import OutboxState, QueuedAlert

if TYPE_CHECKING:
    from corollary.warehouse.publishing.publisher import PublishResult


class Outbox(Protocol):
    """Alerts that commits have queued for delivery."""

    def sinks(self) -> list[Sink]:
        """Return the sinks for which something is due."""

    def claim(self, sink: Sink, claim: str, max_alerts: int) -> list[QueuedAlert]:
        """Claim what is due for a sink, oldest first, up to a number of alerts."""

    def renew(self, claim: str, ids: Sequence[str]) -> bool:
        """Extend a claim; return whether it is still there, so that nobody else has it."""

    def mark(self, claim: str, ids: Sequence[str]) -> None:
        """Note that alerts are delivered, unless another process has claimed them since."""

    def postpone(self, claim: str, waiting: Sequence[QueuedAlert], error: str) -> None:
        """Note that an attempt at some alerts has failed."""

    def pause_sink(self, sink: Sink, seconds: float) -> None:
        """Try a sink that cannot be reached only after some seconds."""

    def state(self) -> OutboxState:
        """Return how many alerts are queued, since when, and the last error."""


class Store(Protocol):
    """Records commits and gives them back; `WarehouseStore` or `MemoryStore`.

    Attributes:
        is_durable: whether commits survive the process.
    """

    is_durable: bool

    @property
    def location(self) -> str:
        """Where commits are recorded, for messages."""

    @property
    def alert_directory(self) -> Path | None:
        """The directory of the files of alerts, if there is one."""

    @property
    def outbox(self) -> Outbox:
        """The alerts that are not delivered yet."""

    @property
    def grants(self) -> Grants:
        """Which reader may see which relation."""

    def check_exists(self) -> None:
        """Refuse to read what nobody has written yet.

        Raises:
            WarehouseError: there is no warehouse.
        """

    def catch_up(self, state: DatabaseState) -> None:
        """Apply to a state what other processes have committed."""

    def replay_of(self, idempotency: str) -> Replay | None:
        """Return what the transaction of a key did, if there was one."""

    def record(
        self, state: DatabaseState, pending: PendingCommit, payload: frozenset[str], /
    ) -> int:
        """Record a commit after which the payload of some relations is valid; return its number.

        Raises:
            ConflictError: another process has committed first.
            WarehouseError: it cannot be written.
        """

    def source_positions(self) -> Mapping[str, Position]:
        """Return how far sources have been read, by the name of the source."""

    def record_positions(self, state: DatabaseState, positions: Mapping[str, Position]) -> None:
        """Note how far sources have been read, where no tuple has changed."""

    def invalidate_payload(self, relations: Iterable[str]) -> None:
        """Note that the payload of relations in the engine is not the recorded one."""

    def fold_if_due(self, state: DatabaseState) -> None:
        """Write a new snapshot if enough has changed since the last one."""

    def publish(self, state: DatabaseState, last_changes: Changes | None) -> "PublishResult | None":
        """Bring the tables of all `.output` relations up to date with the last commit.

        What it changed need not be read back if it is passed.
        """

    def log_query(self, goal: Literal) -> None:
        """Count a goal that was asked, for the advisor."""

    def close(self) -> None:
        """Write what is buffered, and close the files."""


@dataclass(frozen=True, slots=True)
class OpenArguments:
    """How a durable database was opened, so that another process can open it with `reopen`.

    Attributes:
        location: the directory of the warehouse, or the URL of its catalog.
        options: which can be pickled.
    """

    location: str
    options: DatabaseOptions = DatabaseOptions()
