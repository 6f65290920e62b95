"""The store of a database in memory: alerts and grants until the process ends, no history."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from corollary.core.rules import Literal
from corollary.database.changes import Changes
from corollary.database.grants import MemoryGrants
from corollary.database.memory_outbox import MemoryOutbox
from corollary.database.pending_commit import PendingCommit, Position, Replay
from corollary.database.state import DatabaseState

if TYPE_CHECKING:
    from corollary.warehouse.publishing.publisher import Outcome


class MemoryStore:
    """Numbers commits, and holds their alerts until they are delivered."""

    is_durable = False
    alert_directory = Path()

    def __init__(self) -> None:
        self.outbox = MemoryOutbox()
        self.grants = MemoryGrants()

    def catch_up(self, state: DatabaseState) -> None:
        """Do nothing: no other process commits here."""

    def replay_of(self, idempotency: str) -> Replay | None:
        """Return None: keys are known only where commits last."""

    def record(self, state: DatabaseState, pending: PendingCommit, _: frozenset[str]) -> int:
        """Put the alerts of a commit into the outbox; return the number of the commit."""
        number = state.commits + 1
        self.outbox.record(number, pending.alerts, pending.cause, pending.depth)
        return number

    def note_positions(self, state: DatabaseState, positions: Mapping[str, Position]) -> None:
        """Do nothing: sources are read once."""

    def invalidate_payload(self, relations: Iterable[str]) -> None:
        """Do nothing: payload is in the engine only."""

    def fold_if_due(self, state: DatabaseState) -> None:
        """Do nothing: there are no files."""

    def publish(self, state: DatabaseState, fresh: Changes | None) -> "Outcome | None":
        """Publish nothing."""

    def log_query(self, goal: Literal) -> None:
        """Count nothing."""

    def close(self) -> None:
        """Do nothing."""
