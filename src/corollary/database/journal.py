"""What is known of a transaction on its way to a commit."""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from corollary.core.alerts import Alert
from corollary.core.program import NormalProgram
from corollary.database.changes import Changes
from corollary.database.counters import Counters, Stats
from corollary.database.operations import Operation
from corollary.database.program import Loaded
from corollary.maintain.maintenance import Maintenance
from corollary.warehouse.entries import Cause

DEPTH: ContextVar[int] = ContextVar("DEPTH", default=0)
"""How long the chain of commits is behind the code that runs, each made by alerts of the last."""

Position = tuple[str, Any]
"""The relation that a source fills, and how far it has been read, fit for JSON."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a source has to say: operations, and how far it has been read then."""

    operations: Sequence[Operation]
    positions: Mapping[str, Position]


@dataclass(slots=True)
class Attempt:
    """A transaction that changes relations.

    Attributes:
        before: the program before, with the relations that the one after has.
        after: the program after.
        fresh: the relations that were made for it.
        rebuilt: the relations whose payload was made anew before it ran.
    """

    before: NormalProgram
    after: Loaded
    fresh: frozenset[str]
    rebuilt: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Ran:
    """A plan that was run, and its record."""

    maintenance: Maintenance
    recorder: Counters


@dataclass(frozen=True, slots=True)
class Told:
    """What a transaction did that was made before under the same key."""

    number: int
    changes: Changes
    stats: Mapping[str, Stats]
    alerts: Sequence[Alert] = ()


@dataclass(frozen=True, slots=True)
class Journal:
    """What is noted with a commit besides its changes.

    Attributes:
        alerts: what is to be told behind it.
        cause: the alerts that it delivers itself, if a sink makes it.
        depth: how long the chain of commits is that alerts of each have made the next of.
    """

    stats: Mapping[str, Any]
    positions: Mapping[str, Position]
    idempotency: str | None = None
    alerts: Sequence[Alert] = ()
    cause: Cause | None = None
    depth: int = 0
