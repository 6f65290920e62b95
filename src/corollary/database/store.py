"""The protocol of stores, which record commits, and the store of a database in memory.

In memory alerts and grants last until the process ends, and there is no history; its outbox behaves
as that of a catalog.
"""

import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from corollary.core.alerts import Alert, Sink, SinkKind
from corollary.core.logic import Literal
from corollary.data_class import dataclass
from corollary.database.access.grants import Grants, MemoryGrants
from corollary.database.changes import Changes
from corollary.database.counters import Stats
from corollary.database.options import DatabaseOptions
from corollary.database.pending_commit import PendingCommit, Position, Replay
from corollary.database.state import DatabaseState
from corollary.errors import ClaimError
from corollary.warehouse.catalog.catalog_rows import DeliveredAlerts
from corollary.warehouse.catalog.queued_alert import OutboxState, QueuedAlert, alert_id, retry_delay

if TYPE_CHECKING:
    from corollary.warehouse.publishing.outputs import PublishResult


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


class MemoryStore:
    """Numbers commits, and holds their alerts until they are delivered."""

    is_durable = False
    alert_directory = Path()
    location = "in memory"

    def __init__(self) -> None:
        self.outbox = MemoryOutbox()
        self.grants = MemoryGrants()
        self._positions: dict[str, Position] = {}
        self._done: dict[str, Replay] = {}
        """By idempotency key, what its commit did."""

    def check_exists(self) -> None:
        """Do nothing: it always exists."""

    def catch_up(self, state: DatabaseState) -> None:
        """Do nothing: no other process commits here."""

    def replay_of(self, idempotency: str) -> Replay | None:
        """Return what the commit of an idempotency key did, if there is one."""
        return self._done.get(idempotency)

    def record(self, state: DatabaseState, pending: PendingCommit, _: frozenset[str]) -> int:
        """Put the alerts of a commit into the outbox; return the number of the commit."""
        number = state.commits + 1
        for reader in self.grants.by_reader():
            self.grants.remove(reader, pending.dropped)
        self.outbox.record(number, pending.alerts, pending.delivers, pending.depth)
        self.record_positions(state, pending.positions)
        keys = pending.keys if pending.idempotency is None else (pending.idempotency,)
        if keys:
            stats = {name: Stats.from_json(each) for name, each in pending.stats.items()}
            replay = Replay(number, pending.changes, stats, pending.alerts)
            self._done |= {key: replace(replay, digest=pending.digests.get(key)) for key in keys}
        return number

    def source_positions(self) -> Mapping[str, Position]:
        """Return how far sources have been read, by the name of the source."""
        return self._positions

    def record_positions(self, _: DatabaseState, positions: Mapping[str, Position]) -> None:
        """Note how far sources have been read; those that are no longer read are forgotten."""
        every = {**self._positions, **positions}
        self._positions = {name: each for name, each in every.items() if each[1] is not None}

    def invalidate_payload(self, relations: Iterable[str]) -> None:
        """Do nothing: payload is in the engine only."""

    def fold_if_due(self, state: DatabaseState) -> None:
        """Do nothing: there are no files."""

    def publish(self, state: DatabaseState, last_changes: Changes | None) -> "PublishResult | None":
        """Publish nothing."""

    def log_query(self, goal: Literal) -> None:
        """Count nothing."""

    def close(self) -> None:
        """Do nothing."""


@dataclass(slots=True)
class _QueuedEntry:
    waiting: QueuedAlert
    made: float
    due: float
    claim: str | None = None
    error: str | None = None


class MemoryOutbox:
    """Alerts of a database in memory that are not delivered yet."""

    def __init__(self) -> None:
        self._id = secrets.token_hex(8)
        self._entries: dict[str, _QueuedEntry] = {}
        self._lock = Lock()

    def record(
        self, number: int, alerts: Sequence[Alert], delivers: DeliveredAlerts | None, depth: int
    ) -> None:
        """Queue the alerts of a commit, and remove those that it delivers.

        Raises:
            ClaimError: another thread has delivered them.
        """
        if delivers is not None and not self.renew(delivers.claim, delivers.ids):
            raise ClaimError("another thread delivers these alerts; nothing was changed")
        now = time.time()
        with self._lock:
            for each in delivers.ids if delivers is not None else ():
                del self._entries[each]
            for alert in alerts:
                if alert.sink.kind is not SinkKind.CONSOLE:
                    id_ = alert_id(self._id, number, alert)
                    entry = _QueuedEntry(QueuedAlert(id_, number, alert, 0, depth), now, now)
                    self._entries.setdefault(id_, entry)

    def sinks(self) -> list[Sink]:
        """Return the sinks for which something is due."""
        with self._lock:
            return sorted(
                {each.waiting.alert.sink for each in self._due()},
                key=lambda sink: (sink.kind, sink.location),
            )

    def _due(self) -> list[_QueuedEntry]:
        now = time.time()
        return [each for each in self._entries.values() if each.claim is None and each.due <= now]

    def claim(self, sink: Sink, claim: str, max_alerts: int) -> list[QueuedAlert]:
        """Claim what is due for a sink, oldest first, up to a number of alerts."""
        with self._lock:
            found = [each for each in self._due() if each.waiting.alert.sink == sink][:max_alerts]
            for each in found:
                each.claim = claim
                each.waiting = replace(each.waiting, attempts=each.waiting.attempts + 1)
            return [each.waiting for each in found]

    def renew(self, claim: str, ids: Sequence[str]) -> bool:
        """Return whether a claim is still held; claims in memory do not expire."""
        with self._lock:
            return all(id_ in self._entries and self._entries[id_].claim == claim for id_ in ids)

    def mark(self, claim: str, ids: Sequence[str]) -> None:
        """Remove alerts that are delivered."""
        with self._lock:
            for id_ in ids:
                if id_ in self._entries and self._entries[id_].claim == claim:
                    del self._entries[id_]

    def postpone(self, claim: str, waiting: Sequence[QueuedAlert], error: str) -> None:
        """Note that an attempt at some alerts has failed."""
        with self._lock:
            for each in waiting:
                entry = self._entries.get(each.id)
                if entry is not None and entry.claim == claim:
                    entry.claim, entry.error = None, error
                    entry.due = time.time() + retry_delay(each.attempts)

    def pause_sink(self, sink: Sink, seconds: float) -> None:
        """Try a sink that cannot be reached only after some seconds."""
        with self._lock:
            for each in self._due():
                if each.waiting.alert.sink == sink:
                    each.due = time.time() + seconds

    def state(self) -> OutboxState:
        """Return how many alerts are queued, since when, and the last error."""
        with self._lock:
            entries = list(self._entries.values())
        failed = [each for each in entries if each.error is not None]
        last = max(failed, key=lambda each: each.due, default=None)
        oldest = min((each.made for each in entries), default=None)
        return OutboxState(len(entries), oldest, None if last is None else last.error)
