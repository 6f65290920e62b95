"""A transaction between its first change and its commit, and what is recorded of it."""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import field
from typing import Any

from corollary.core.alerts import Alert
from corollary.core.once import stored_relations
from corollary.core.program import NormalProgram
from corollary.data_class import dataclass
from corollary.database.changes import Changes
from corollary.database.counters import Stats, StatsRecorder
from corollary.database.program.loaded_program import LoadedProgram
from corollary.database.writing.operations import Operation
from corollary.maintain.maintenance import Maintenance
from corollary.maintain.update import Update
from corollary.warehouse.catalog.catalog_rows import DeliveredAlerts

ALERT_DEPTH: ContextVar[int] = ContextVar("ALERT_DEPTH", default=0)
"""How many commits led to the code that runs, each made by delivering alerts of the one before."""

Position = tuple[str, Any]
"""The relation that a source fills, and how far it has been read, fit for JSON."""


@dataclass(frozen=True, slots=True)
class DeferredOperations:
    """What a function given to `tx.read` returns at the commit.

    Attributes:
        operations: in the order in which they apply.
        positions: how far sources have been read by then, by the name of the source.
    """

    operations: Sequence[Operation]
    positions: Mapping[str, Position]


@dataclass(frozen=True, slots=True)
class FollowUp:
    """Rows of base relations that depend on what else a transaction writes to base relations.

    Attributes:
        relations: those that get rows.
        steps: called one after another, when all that was asked for is written and no view is
            maintained yet; each returns what to write next.
        positions: returns how far sources have been read, given the number of the commit that has
            all that was read; called before it is recorded.
    """

    relations: frozenset[str]
    steps: "Sequence[Callable[[PendingCommit], Sequence[Operation]]]"
    positions: Callable[[int], Mapping[str, Position]]


NO_FOLLOW_UP = FollowUp(frozenset(), (), lambda _: {})


@dataclass(frozen=True, slots=True)
class PlanRun:
    """A plan that was run for an update, and its record."""

    update: Update
    maintenance: Maintenance
    recorder: StatsRecorder


@dataclass(slots=True)
class PendingCommit:
    """A transaction that has changed relations and is not recorded yet.

    Attributes:
        before: the program before, with the relations that the one after has.
        after: the program after.
        planned: the same in normal form, as it is planned for: what becomes virtual is stored.
        created: the relations that were declared for it, or have other columns.
        refilled: the new relations whose OLD holds what their rules give on the old data.
        dropped: the relations and event predicates that the program has no more.
        has_other_relations: whether a relation has other columns, or is stored in another way.
        rebuilt: the relations whose payload was computed again before the plan ran.
        changes: what was added and removed, by relation.
        stats: how each relation was maintained, as JSON.
        positions: how far sources have been read, by the name of the source.
        idempotency: the key that the caller gave.
        keys: those of the requests that share the commit, if it is a group.
        digests: of the changes of these keys, as far as they are known.
        alerts: go to the outbox with the commit.
        delivers: the alerts that the commit itself delivers, if a sink makes it.
        depth: how many commits led to this one, each made by alerts of the one before.
        exact: the relations whose ranks are least heights after it.
    """

    before: NormalProgram
    after: LoadedProgram
    planned: NormalProgram
    created: frozenset[str] = frozenset()
    refilled: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()
    has_other_relations: bool = False
    rebuilt: set[str] = field(default_factory=set)
    changes: Changes = field(default_factory=lambda: Changes({}))
    stats: Mapping[str, Any] = field(default_factory=dict)
    positions: Mapping[str, Position] = field(default_factory=dict)
    idempotency: str | None = None
    keys: tuple[str, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict)
    alerts: Sequence[Alert] = ()
    delivers: DeliveredAlerts | None = None
    depth: int = 0
    exact: frozenset[str] = frozenset()

    @property
    def stored(self) -> frozenset[str]:
        """The relations that are stored after it."""
        return stored_relations(self.after.normal)


@dataclass(frozen=True, slots=True)
class Replay:
    """What an earlier transaction of the same idempotency key did; `digest`: of its change."""

    number: int
    changes: Changes
    stats: Mapping[str, Stats]
    alerts: Sequence[Alert] = ()
    digest: str | None = None
