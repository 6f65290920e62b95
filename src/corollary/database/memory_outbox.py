"""The outbox of a database in memory: as that of a catalog, but gone with the process."""

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock

from corollary.core.alerts import Alert, Sink, SinkKind
from corollary.errors import ClaimError
from corollary.warehouse.entries import Cause
from corollary.warehouse.waiting import OutboxState, Waiting, id_of, pause


@dataclass(slots=True)
class _Entry:
    waiting: Waiting
    made: float
    due: float
    claim: str | None = None
    error: str | None = None


class MemoryOutbox:
    """Alerts of a database in memory that are not delivered yet."""

    def __init__(self) -> None:
        self._id = secrets.token_hex(8)
        self._entries: dict[str, _Entry] = {}
        self._lock = Lock()

    def record(self, number: int, alerts: Sequence[Alert], cause: Cause | None, depth: int) -> None:
        """Put the alerts of a commit into the outbox, and take out those that it delivers.

        Raises:
            ClaimError: others have delivered them.
        """
        if cause is not None and not self.renew(cause.claim, cause.ids):
            raise ClaimError("another thread delivers these alerts; nothing was changed")
        now = time.time()
        with self._lock:
            for each in cause.ids if cause is not None else ():
                del self._entries[each]
            for alert in alerts:
                if alert.sink.kind is not SinkKind.CONSOLE:
                    id_ = id_of(self._id, number, alert)
                    entry = _Entry(Waiting(id_, number, alert, 0, depth), now, now)
                    self._entries.setdefault(id_, entry)

    def sinks(self) -> list[Sink]:
        """Return the sinks for which something is due."""
        with self._lock:
            return sorted(
                {each.waiting.alert.sink for each in self._due()},
                key=lambda sink: (sink.kind, sink.place),
            )

    def _due(self) -> list[_Entry]:
        now = time.time()
        return [each for each in self._entries.values() if each.claim is None and each.due <= now]

    def claim(self, sink: Sink, claim: str, most: int) -> list[Waiting]:
        """Claim what is due for a sink, oldest first; so many at most."""
        with self._lock:
            found = [each for each in self._due() if each.waiting.alert.sink == sink][:most]
            for each in found:
                each.claim = claim
                each.waiting = replace(each.waiting, attempts=each.waiting.attempts + 1)
            return [each.waiting for each in found]

    def renew(self, claim: str, ids: Sequence[str]) -> bool:
        """Return whether a claim is still there, so that nobody else has it."""
        with self._lock:
            return all(id_ in self._entries and self._entries[id_].claim == claim for id_ in ids)

    def mark(self, claim: str, ids: Sequence[str]) -> None:
        """Forget alerts that are delivered."""
        with self._lock:
            for id_ in ids:
                if id_ in self._entries and self._entries[id_].claim == claim:
                    del self._entries[id_]

    def postpone(self, claim: str, waiting: Sequence[Waiting], error: str) -> None:
        """Note that an attempt at some alerts has failed."""
        with self._lock:
            for each in waiting:
                entry = self._entries.get(each.id)
                if entry is not None and entry.claim == claim:
                    entry.claim, entry.error = None, error
                    entry.due = time.time() + pause(each.attempts)

    def rest(self, sink: Sink, seconds: float) -> None:
        """Leave a sink alone for a while, which cannot be reached."""
        with self._lock:
            for each in self._due():
                if each.waiting.alert.sink == sink:
                    each.due = time.time() + seconds

    def state(self) -> OutboxState:
        """Return how the outbox is."""
        with self._lock:
            entries = list(self._entries.values())
        failed = [each for each in entries if each.error is not None]
        last = max(failed, key=lambda each: each.due, default=None)
        oldest = min((each.made for each in entries), default=None)
        return OutboxState(len(entries), oldest, None if last is None else last.error)
