"""What is known of a transaction on its way to a commit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from corollary.core.program import NormalProgram
from corollary.database.changes import Changes
from corollary.database.counters import Counters, Stats
from corollary.database.operations import Operation
from corollary.database.program import Loaded
from corollary.maintain.maintenance import Maintenance

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


@dataclass(frozen=True, slots=True)
class Journal:
    """What is noted with a commit besides its changes."""

    stats: Mapping[str, Any]
    positions: Mapping[str, Position]
    idempotency: str | None = None
