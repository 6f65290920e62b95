"""What every engine offers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from corollary.core.plan import Plan
from corollary.core.program import Relation
from corollary.core.recorder import Recorder
from corollary.core.states import State
from corollary.core.statistics import Statistics
from corollary.core.terms import Value

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one run; None is no bound.

    Attributes:
        rounds: of any one loop.
        tuples: held in all relations together.
        seconds: of the whole run.
        memory: in bytes, of relations, batches and made-up symbols.
        since: when the seconds began, on the monotonic clock; None for the start of the plan.
    """

    rounds: int | None = None
    tuples: int | None = None
    seconds: float | None = None
    memory: int | None = None
    since: float | None = None


class Engine(Protocol):
    """Holds relations and runs plans on them."""

    def declare(self, relations: Mapping[str, Relation]) -> None:
        """Make relations known; those already known stay as they are."""

    def insert(self, relation: str, rows: "Sequence[tuple[Value, ...]] | pa.Table") -> None:
        """Add tuples to a base relation."""

    def run(self, plan: Plan, recorder: Recorder, limits: Limits) -> None:
        """Run the main procedure of a plan."""

    def read(self, relation: str, state: State = State.NEW) -> "pa.Table":
        """Return the tuples of a relation in a state."""

    def size(self, relation: str, state: State = State.NEW) -> int:
        """Return the number of tuples of a relation in a state."""

    def statistics(self) -> Statistics:
        """Return sizes and fan-outs for the planner."""
