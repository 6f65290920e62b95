"""What every engine offers."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from corollary.core.plan import Placement, Plan
from corollary.core.program import Relation
from corollary.core.recorder import Recorder
from corollary.core.states import State
from corollary.core.statistics import Statistics
from corollary.core.terms import Value

if TYPE_CHECKING:
    import pyarrow as pa

Made = TypeVar("Made")


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


class Kept(Protocol):
    """The tuples that a relation had in a state, whatever happens to the relation since."""

    def __len__(self) -> int:
        """Return the number of tuples."""

    def table(self) -> "pa.Table":
        """Return the tuples."""

    @property
    def is_apart(self) -> bool:
        """Whether the tuples are elsewhere, in parts, and so many that they had better stay."""

    def each(self, use: "Callable[[pa.Table], Made]") -> list[Made]:
        """Return what a function makes of each part of the tuples.

        What is elsewhere is used there, by a copy of the function: it has to be one that can be
        pickled, and may be called more than once for the same part.
        """


class OnePart(ABC):
    """What tuples say that are here, all together."""

    __slots__ = ()

    @abstractmethod
    def table(self) -> "pa.Table":
        """Return the tuples."""

    @property
    def is_apart(self) -> bool:
        """Whether the tuples are elsewhere, in parts: they are not."""
        return False

    def each(self, use: "Callable[[pa.Table], Made]") -> list[Made]:
        """Return what a function makes of the tuples."""
        return [use(self.table())]


@dataclass(frozen=True, slots=True)
class Held(OnePart):
    """Tuples that are at hand."""

    rows: "pa.Table"

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def table(self) -> "pa.Table":
        """Return the tuples."""
        return self.rows


class OnePlace:
    """What an engine says that runs all strata in one place."""

    @property
    def shares(self) -> int:
        """How many tasks share the work of a stratum: there are none."""
        return 1

    def placement(
        self,
        relations: Sequence[str],  # noqa: ARG002 - it makes no difference
        below: Sequence[str],  # noqa: ARG002
        *,
        has_pivot: bool,  # noqa: ARG002
    ) -> Placement:
        """Return where a stratum should run: here."""
        return Placement.DRIVER


class Engine(Protocol):
    """Holds relations and runs plans on them."""

    def declare(self, relations: Mapping[str, Relation]) -> None:
        """Make relations known; those already known stay as they are."""

    def drop(self, relations: Iterable[str]) -> None:
        """Forget relations."""

    def rename(self, old: str, new: str) -> None:
        """Give a relation another name, which no relation has."""

    def copy(self, source: str, target: str) -> None:
        """Make the NEW tuples of one relation the OLD and NEW ones of another."""

    def insert(self, relation: str, rows: "Sequence[tuple[Value, ...]] | pa.Table") -> None:
        """Add tuples to the NEW state of a relation; those already there are no change."""

    def delete(self, relation: str, rows: "Sequence[tuple[Value, ...]] | pa.Table") -> None:
        """Take tuples out of the NEW state of a relation; those not there are no change."""

    def change(self, relation: str, added: "pa.Table", removed: "pa.Table") -> None:
        """Let a relation change by just these tuples, for good: they come, and those were there."""

    def commit(self, relations: Iterable[str] | None = None) -> None:
        """Make NEW the OLD of some relations, or of all."""

    def clear(self, relations: Iterable[str]) -> None:
        """Let relations hold nothing, in any state."""

    def rollback(self) -> None:
        """Make OLD the NEW of every relation."""

    def run(self, plan: Plan, recorder: Recorder, limits: Limits) -> int:
        """Run the main procedure of a plan; return how many rows it handled.

        If it fails, the relations that the plan writes have no open change; those that `insert` and
        `delete` have changed keep theirs.
        """

    def read(self, relation: str, state: State = State.NEW) -> "pa.Table":
        """Return the tuples of a relation in a state."""

    def keep(self, relation: str, state: State = State.NEW) -> Kept:
        """Return the tuples of a relation in a state as they are now, to be decoded when asked."""

    def size(self, relation: str, state: State = State.NEW) -> int:
        """Return the number of tuples of a relation in a state."""

    def save(self, relations: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the files of an index of relations, as they are in OLD now: name and bytes."""

    def restore(self, files: Mapping[str, "pa.Buffer"]) -> set[str]:
        """Let declared relations hold what the files of an index say; return which ones do."""

    def statistics(self) -> Statistics:
        """Return sizes and fan-outs for the planner."""

    def distinct(self, relation: str) -> tuple[int, ...]:
        """Return about how many distinct values each column of a relation has."""

    @property
    def home(self) -> str:
        """Where strata run that are placed nowhere else, in one word."""

    @property
    def shares(self) -> int:
        """How many tasks share the work of a stratum that is shared out."""

    def placement(
        self, relations: Sequence[str], below: Sequence[str], *, has_pivot: bool
    ) -> Placement:
        """Return where a stratum should run.

        Args:
            relations: those of the stratum.
            below: those that it reads.
            has_pivot: whether its work can be shared out.
        """

    def close(self) -> None:
        """Let go of what it has outside of this process; it is not used any more."""
