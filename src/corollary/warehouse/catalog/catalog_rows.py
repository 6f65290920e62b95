"""Rows of the catalog as dataclasses, with the names of the columns; and a new commit."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from typing import Any

from corollary.core.alerts import Alert
from corollary.core.plans import working_relation
from corollary.core.program import Relation
from corollary.data_class import dataclass


@dataclass(frozen=True, slots=True)
class StoredChange:
    """What a commit did to a relation: the bytes, or the file, that hold it.

    Attributes:
        added: the number of tuples; `removed` likewise.
        is_full: whether it holds all tuples of the relation, and replaces what was there before.
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
    """A program: its text, and the layout of its relations as JSON."""

    id: int
    text: str
    layout: Mapping[str, Any]


EXACT_MARK = working_relation("", "exact")
"""Ends the names, among those of relations with valid payload, that mark ranks as least heights."""


def exact_marks(relations: Iterable[str]) -> frozenset[str]:
    """Return the marks of relations whose ranks are least heights."""
    return frozenset(f"{name}{EXACT_MARK}" for name in relations)


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit in the catalog.

    Attributes:
        program: the id of its program.
        payload: the relations whose payload is valid.
        exact: those of them whose ranks are least heights.
    """

    number: int
    created: float
    program: int
    payload: frozenset[str]
    stats: Mapping[str, Any]
    idempotency: str | None = None
    exact: frozenset[str] = frozenset()

    @property
    def time(self) -> datetime:
        """When it was made."""
        return datetime.fromtimestamp(self.created, UTC)


@dataclass(frozen=True, slots=True)
class DeliveredAlerts:
    """The alerts that a commit delivers by writing them into a relation.

    Attributes:
        claim: the claim under which the sink that commits holds them.
        ids: of the alerts.
    """

    claim: str
    ids: tuple[str, ...]


@dataclass(slots=True)
class NewCommit:
    """All that one commit records, or nothing of it.

    Attributes:
        parent: the commit that it was computed from.
        snapshots: relations that are, in a file, as they are after it.
        program: text and layout, if the program changes.
        dropped: the relations that the program does not have any more; their grants go.
        sources: the new position of each source by name: (relation, position).
        alerts: what goes to the outbox with it.
        delivers: the alerts that are delivered with it.
        depth: the length of the chain of commits in which alerts of each one caused the next.
        exact: the relations whose ranks are least heights.
        keys: the idempotency keys of the requests that share it, if it is a group.
        digests: of the changes of its keys, as far as they are known.
    """

    parent: int
    payload: frozenset[str]
    stats: Mapping[str, Any]
    changes: Sequence[StoredChange] = ()
    snapshots: Sequence[StoredSnapshot] = ()
    program: tuple[str, Mapping[str, Any]] | None = None
    dropped: Collection[str] = ()
    sources: Mapping[str, tuple[str, Any]] = field(default_factory=dict)
    idempotency: str | None = None
    alerts: Sequence[Alert] = ()
    delivers: DeliveredAlerts | None = None
    depth: int = 0
    exact: frozenset[str] = frozenset()
    keys: tuple[str, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """What a commit has changed in a relation.

    Attributes:
        relation: as it was declared then.
        stored: the change; None if it was not watched.
        counts: the relation whose tuples were changed, if it has the counts of copies.
        emptied: if all that it held is gone, what is recorded of it, and the commit before.
    """

    relation: Relation
    commit: Commit
    stored: StoredChange | None
    counts: Relation | None = None
    emptied: tuple[Relation, int] | None = None

    @property
    def is_of_counts(self) -> bool:
        """Whether the counts of the relation were changed, and its copies are shown."""
        return self.counts is not None

    @property
    def is_gap(self) -> bool:
        """Whether nobody knows what the commit has changed."""
        return self.stored is None and self.emptied is None
