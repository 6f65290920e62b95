"""Alerts on their way: what is known of each, its id, and how long it is left alone."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from corollary.core.alerts import Alert

SHORTEST, LONGEST = 1.0, 3600.0
"""Seconds until the second attempt, and the most between two attempts."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """An alert in the outbox.

    Attributes:
        id: the same in every attempt.
        commit: the commit that it is of.
        alert: what it says, and where it goes.
        attempts: how often it was claimed, this time included.
        depth: how long the chain of commits before is that alerts have made.
    """

    id: str
    commit: int
    alert: Alert
    attempts: int = 0
    depth: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return it as sinks outside get it."""
        return {"id": self.id, "commit": self.commit, **self.alert.as_json()}


@dataclass(frozen=True, slots=True)
class OutboxState:
    """How many alerts wait, since when the oldest one does, and what last went wrong."""

    waiting: int
    oldest: float | None
    error: str | None


def id_of(warehouse: str, commit: int, alert: Alert) -> str:
    """Return the id of an alert."""
    return digest(warehouse, commit, *alert.as_json().values(), alert.sink.kind, alert.sink.place)


def digest(*said: Any) -> str:
    """Return the id of what is said, fit for JSON."""
    return hashlib.blake2b(json.dumps(said).encode(), digest_size=16).hexdigest()


def pause(attempts: int) -> float:
    """Return the seconds to wait after so many attempts.

    >>> [pause(attempts) for attempts in (1, 2, 3, 20)]
    [1.0, 2.0, 4.0, 3600.0]
    """
    return float(min(LONGEST, SHORTEST * 2 ** min(attempts - 1, 30)))
