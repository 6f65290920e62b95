"""Places where a driver has strata maintained that it does not maintain itself."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from corollary.core.engine import Kept, Limits
from corollary.core.plan import Plan
from corollary.core.program import Relation
from corollary.core.recorder import Recorder
from corollary.core.states import State

CHANGES = (State.ADDED, State.REMOVED)


@dataclass(frozen=True, slots=True)
class Delta:
    """How a relation changes: what is removed and added, or (removed is None) all that it holds."""

    added: pa.Table
    removed: pa.Table | None


Changes = Mapping[str, Delta]


@dataclass(frozen=True, slots=True)
class Errand:
    """A part of a plan that runs elsewhere.

    Attributes:
        plan: what to run.
        owned: the relations that it maintains.
        opened: open changes of relations that are held as copies, not told so far.
        working: working relations that the plan reads, with what they hold.
        handled: how many rows the whole plan has handled so far.
        limits: bounds on the run.
    """

    plan: Plan
    owned: frozenset[str]
    opened: Changes
    working: Mapping[str, tuple[Relation, pa.Table]]
    handled: int
    limits: Limits


class Elsewhere(Protocol):
    """A place that holds relations, some as copies, some for good, and runs parts of plans on them.

    Attributes:
        held: the relations that it holds.
        told: the relations of whose open changes it knows.
    """

    held: dict[str, Relation]
    told: set[str]

    @property
    def is_open(self) -> bool:
        """Whether a run has changed relations, and that is not committed yet."""

    def owns(self, name: str) -> bool:
        """Whether it maintains a relation, rather than being told of its changes."""

    def is_as(self, name: str, pivot: int | None) -> bool:
        """Whether it holds a relation, shared out by a column if that matters there."""

    def hold(self, relation: Relation, rows: pa.Table, pivot: int | None) -> None:
        """Hold a relation from now on, which has these tuples in OLD."""

    def follow(self, name: str, delta: Delta) -> None:
        """Let a relation that it maintains have changed, by what somebody else found."""

    def forget(self, names: Iterable[str]) -> None:
        """Let go of relations: what is held of them is no longer true."""

    def size(self, name: str, state: State) -> int:
        """Return the number of tuples of a relation that it maintains."""

    def distinct(self, name: str) -> tuple[int, ...]:
        """Return about how many distinct values each column of such a relation has."""

    def read(self, name: str, state: State) -> pa.Table:
        """Return the tuples of such a relation in OLD, ADDED or REMOVED."""

    def later(self, name: str, state: State) -> Kept | None:
        """Return tuples of such a relation that are better read when somebody asks for them."""

    def run(self, errand: Errand, recorder: Recorder) -> int:
        """Run a part of a plan; return how many rows have been handled then."""

    def commit(self, changes: Changes) -> None:
        """Make NEW the OLD; with changes of copies that have not been told so far."""

    def rollback(self) -> None:
        """Make OLD the NEW."""

    def close(self) -> None:
        """Let go of everything."""
