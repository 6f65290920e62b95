"""Remote stores: where a driver has strata maintained that it does not maintain itself."""

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import replace
from typing import Generic, Protocol

import pyarrow as pa

from corollary.core import plans
from corollary.core.engine import Limits, MapResult, TableHandle
from corollary.core.pipeline import Reference
from corollary.core.program import Relation
from corollary.core.recorder import Recorder
from corollary.core.states import State
from corollary.data_class import dataclass
from corollary.engines.local.prepared_plan import PreparedPlan

CHANGES = (State.ADDED, State.REMOVED)

PLAN_CACHE_ENTRIES = 64


@dataclass(frozen=True, slots=True)
class ChangedTuples:
    """The change of a relation: added and removed tuples, or (`removed` is None) all its tuples."""

    added: pa.Table
    removed: pa.Table | None


RelationDeltas = Mapping[str, ChangedTuples]


@dataclass(frozen=True, slots=True)
class RemoteRun:
    """A part of a plan that a remote store runs.

    Attributes:
        maintained: the relations that the plan maintains.
        open_changes: of relations that the store has copies of, as far as it lacks them.
        working_relations: those that the plan reads and does not derive, with their tuples.
        handled: how many rows the whole plan has handled so far.
    """

    plan: plans.Plan
    maintained: frozenset[str]
    open_changes: RelationDeltas
    working_relations: Mapping[str, tuple[Relation, pa.Table]]
    handled: int
    limits: Limits


class RemoteStore(Protocol):
    """Holds relations, which it maintains or has copies of, and runs parts of plans on them.

    Attributes:
        relations: all that it holds.
        synced: the copies that have the open change of their relation.
    """

    relations: dict[str, Relation]
    synced: set[str]

    @property
    def has_open_run(self) -> bool:
        """Whether a run has changed relations, and is not committed yet."""

    def maintains(self, name: str) -> bool:
        """Whether it maintains a relation; of others it has copies."""

    def holds(self, name: str, pivot: int | None) -> bool:
        """Whether it holds a relation, partitioned by a column if that matters there."""

    def add(self, relation: Relation, rows: pa.Table, pivot: int | None) -> None:
        """Hold a relation from now on, with these tuples in OLD."""

    def apply_change(self, name: str, delta: ChangedTuples) -> None:
        """Apply a change, found by somebody else, to a relation that it maintains."""

    def drop(self, names: Iterable[str]) -> None:
        """Drop relations, whose tuples here are no longer valid."""

    def size(self, name: str, state: State) -> int:
        """Return the number of tuples of a relation that it maintains."""

    def distinct(self, name: str) -> tuple[int, ...]:
        """Return about how many distinct values each column of such a relation has."""

    def read(self, name: str, state: State) -> pa.Table:
        """Return the tuples of such a relation in OLD, ADDED or REMOVED."""

    def handle(self, name: str, state: State) -> TableHandle | None:
        """Return a handle of such a relation, if it is better read later, or in partitions."""

    def run(self, remote_run: RemoteRun, recorder: Recorder) -> int:
        """Run a part of a plan; return how many rows the whole plan has handled by then."""

    def commit(self, changes: RelationDeltas) -> None:
        """Make NEW the OLD; `changes` are those of copies that are not synced."""

    def rollback(self) -> None:
        """Make OLD the NEW."""

    def close(self) -> None:
        """Release everything."""


class PlanCache(Generic[MapResult]):
    """Computes something from a plan once, as long as the plan is the same object."""

    def __init__(self, make: Callable[[plans.Plan], MapResult]) -> None:
        self._make = make
        self._entries: dict[int, tuple[plans.Plan, MapResult]] = {}

    def __call__(self, plan: plans.Plan) -> MapResult:
        """Return what was computed from the plan."""
        entry = self._entries.get(id(plan))
        if entry is None:
            if len(self._entries) >= PLAN_CACHE_ENTRIES:
                self._entries.clear()
            # The entry holds the plan, so that no other object gets its id.
            entry = self._entries[id(plan)] = plan, self._make(plan)
        return entry[1]


@dataclass(frozen=True, slots=True)
class DriverNeeds:
    """How the part of a plan that runs on the driver uses relations.

    Attributes:
        copies: relations that are read in OLD or NEW.
        changes: relations whose changes are read.
        written: relations that are written.
    """

    copies: frozenset[str]
    changes: frozenset[str]
    written: frozenset[str]


def driver_needs(plan: plans.Plan) -> DriverNeeds:
    """Return how the part of a plan that runs on the driver uses relations."""
    part = subplan(plan, plan.main)
    references = set(plans.references_read(part))
    return DriverNeeds(
        frozenset(each.relation for each in references if each.state not in CHANGES),
        frozenset(each.relation for each in references if each.state in CHANGES),
        frozenset(plans.relations_written(part)),
    )


def placed_parts(plan: plans.Plan) -> dict[str, plans.Plan]:
    """Return the parts of a plan that run in remote stores, by procedure."""
    return {
        each.procedure: subplan(plan, each.procedure)
        for each in plans.steps_of(plan)
        if isinstance(each, plans.PlacedCall)
    }


def working_relations(
    part: plans.Plan, prepared: PreparedPlan, stored: Container[str]
) -> dict[str, tuple[Relation, pa.Table]]:
    """Return the working relations that a part of a plan reads and does not derive."""
    derived = set(plans.relations_written(part))
    found = {}
    for name, types in part.types.items():
        if name not in stored and name not in derived:
            rows = prepared.read(Reference(name))
            columns = tuple(rows.column_names)
            found[name] = Relation(name, columns, types, False, is_declared=False), rows
    return found


def subplan(plan: plans.Plan, procedure: str) -> plans.Plan:
    """Return the plan of one procedure and those it calls, except calls with a placement."""
    found: dict[str, tuple[plans.Step, ...]] = {}
    work = [procedure]
    while work:
        name = work.pop()
        if name not in found:
            found[name] = plan.procedures[name]
            steps = plans.steps_of(plans.Plan({name: found[name]}, {}))
            work += [each.procedure for each in steps if isinstance(each, plans.Call)]
    part = replace(plan, procedures=found, main=procedure)
    used = {each.relation for each in plans.references_read(part)}
    used |= set(plans.relations_written(part))
    return replace(
        part,
        types={name: types for name, types in plan.types.items() if name in used},
        orders={name: orders for name, orders in plan.orders.items() if name in used},
        locals={name: local for name, local in plan.locals.items() if name in found},
    )
