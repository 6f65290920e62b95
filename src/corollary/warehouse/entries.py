"""What the catalog says, row by row, and what a commit adds to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from corollary.core.alerts import Alert


@dataclass(frozen=True, slots=True)
class StoredChange:
    """What a commit did to a relation: the bytes, or the file, that hold it.

    Attributes:
        is_full: it holds all tuples of the relation, whatever was before.
    """

    relation: str
    added: int
    removed: int
    is_full: bool
    checksum: str
    inline: bytes | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    """A relation as it was at a commit."""

    relation: str
    commit: int
    rows: int
    path: str
    checksum: str


@dataclass(frozen=True, slots=True)
class StoredIndex:
    """A file of an engine's index of a commit."""

    path: str
    checksum: str


@dataclass(frozen=True, slots=True)
class StoredProgram:
    """A program: its text, and the place of its relations as JSON."""

    id: int
    text: str
    places: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit as the catalog knows it."""

    number: int
    created: float
    program: int
    payload: frozenset[str]
    stats: Mapping[str, Any]
    idempotency: str | None = None


@dataclass(frozen=True, slots=True)
class Cause:
    """The alerts that a commit delivers, by being made.

    Attributes:
        claim: under which the sink that makes the commit has them.
        ids: of the alerts.
    """

    claim: str
    ids: tuple[str, ...]


@dataclass(slots=True)
class NewCommit:
    """All that becomes true at once.

    Attributes:
        parent: the commit it was made on.
        program: set when the program changes.
        sources: how far each source has been read, by name: (relation, position).
        alerts: what goes to the outbox with it.
        cause: the alerts that are delivered with it.
        depth: how long the chain of commits is that alerts of each have made the next of.
    """

    parent: int
    payload: frozenset[str]
    stats: Mapping[str, Any]
    changes: Sequence[StoredChange] = ()
    program: tuple[str, Mapping[str, Any]] | None = None
    sources: Mapping[str, tuple[str, Any]] = field(default_factory=dict)
    idempotency: str | None = None
    alerts: Sequence[Alert] = ()
    cause: Cause | None = None
    depth: int = 0
