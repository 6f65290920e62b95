"""Queued alerts: their ids, and the delay before the next attempt at delivery."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

from corollary.core.alerts import COMMON_PLACEHOLDERS, Alert, render_message
from corollary.core.types import NUMBER, SYMBOL
from corollary.data_class import dataclass

RETRY_MIN_SECONDS, RETRY_MAX_SECONDS = 1.0, 3600.0
"""Seconds between the first and the second attempt, and the maximum between two attempts."""


@dataclass(frozen=True, slots=True)
class QueuedAlert:
    """An alert in the outbox.

    Attributes:
        id: the same in every attempt.
        commit: the commit that raised it.
        alert: its content and its sink.
        attempts: how often it was claimed, this time included.
        depth: the length of the chain of commits before it that alerts have caused.
    """

    id: str
    commit: int
    alert: Alert
    attempts: int = 0
    depth: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return it as external sinks receive it."""
        return {"id": self.id, "commit": self.commit, **self.alert.as_json()}

    def render(self, template: str, escape: Callable[[str], str] = str) -> str:
        """Return a template with the columns of the event, and what all alerts have."""
        alert = self.alert
        return render_message(
            template,
            (*alert.columns, *COMMON_PLACEHOLDERS),
            (*alert.row, self.id, alert.event, alert.message, self.commit),
            (*alert.types, SYMBOL, SYMBOL, SYMBOL, NUMBER),
            escape,
        )


@dataclass(frozen=True, slots=True)
class OutboxState:
    """How many alerts are queued, when the oldest was raised, and the last error."""

    queued: int
    oldest: float | None
    error: str | None


def alert_id(warehouse: str, commit: int, alert: Alert) -> str:
    """Return the id of an alert, the same in every attempt to deliver it."""
    return alert_digest(
        warehouse, commit, *alert.as_json().values(), alert.sink.kind, alert.sink.location
    )


def alert_digest(*content: Any) -> str:
    """Return the digest of values that JSON can hold."""
    return hashlib.blake2b(json.dumps(content).encode(), digest_size=16).hexdigest()


def retry_delay(attempts: int) -> float:
    """Return the seconds to wait after this number of attempts: exponential backoff.

    >>> [retry_delay(attempts) for attempts in (1, 2, 3, 20)]
    [1.0, 2.0, 4.0, 3600.0]
    """
    return float(min(RETRY_MAX_SECONDS, RETRY_MIN_SECONDS * 2 ** min(attempts - 1, 30)))
