"""The interface of every engine, and the limits of its work."""

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar

from corollary.core.logic import Value
from corollary.core.machine import machine_memory, own_memory
from corollary.core.plans import Placement, Plan
from corollary.core.program import Relation
from corollary.core.recorder import Recorder
from corollary.core.states import State
from corollary.core.statistics import Statistics
from corollary.data_class import dataclass
from corollary.errors import InputError, LimitError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from corollary.core.arrow import DependencyCheck, Violations

MapResult = TypeVar("MapResult")
Item = TypeVar("Item")

BULK_MIN_TUPLES = 100_000
"""A step that is led by this many tuples is bulk…"""

BULK_MIN_FRAME_ROWS = 1_000_000
"""…and one through which this many rows are expected to flow."""


class BulkMode(StrEnum):
    """Which steps are bulk."""

    AUTO = "auto"
    """Those through which many rows flow."""
    ALWAYS = "always"
    """All that have an exact form."""
    NEVER = "never"
    """None."""


PARTITION_SEPARATOR = "~"
"""The character in the names of index files that tasks have written, and only tasks read."""

BULK_VARIABLE = "COROLLARY_BULK"
"""The environment variable that chooses where nothing else does."""


def bulk_mode(name: str | None = None) -> BulkMode:
    """Return the mode of a name, or of the environment if there is none.

    Raises:
        InputError: there is no such mode.
    """
    chosen = name or os.environ.get(BULK_VARIABLE) or BulkMode.AUTO
    if chosen not in list(BulkMode):
        cure = f"choose one of {', '.join(BulkMode)}"
        raise InputError.of("C0918", f"There is no mode of bulk work `{chosen}`.", None, cure)
    return BulkMode(chosen)


DRIVER_MEMORY_VARIABLE = "COROLLARY_DRIVER_MEMORY"
"""The environment variable that sets the budget where nothing else does."""

MACHINE_SHARE = 4
"""Without a setting, the budget is the memory of the machine divided by this."""

TUPLE_BYTES = 60
"""The bytes of a tuple in memory, at the peak."""

_UNITS = {unit: 1024**power for power, unit in enumerate("KMGT", 1)}


def parse_memory(text: str) -> int:
    """Return the number of bytes of a text such as 500M or 2G.

    >>> parse_memory("2G"), parse_memory("1.5k"), parse_memory("100")
    (2147483648, 1536, 100)

    Raises:
        InputError: `C1500`, it is no amount of memory.
    """
    number = text.strip().upper().removesuffix("B")
    factor = _UNITS.get(number[-1:], 1)
    try:
        count = float(number[:-1] if factor > 1 else number) * factor
    except ValueError:
        count = -1.0
    if not 0 <= count < float("inf"):
        message = f"`{text}` is not an amount of memory for the driver."
        raise InputError.of("C1500", message, None, "write bytes, or a number such as 500M or 2G")
    return int(count)


def driver_memory(amount: int | str | None = None) -> int:
    """Return the budget in bytes: what is given, what the environment says, or a quarter.

    Raises:
        InputError: `C1500`.
    """
    if isinstance(amount, int) and amount >= 0:
        return amount
    chosen = os.environ.get(DRIVER_MEMORY_VARIABLE) if amount is None else str(amount)
    if chosen:
        return parse_memory(chosen)
    return machine_memory() // MACHINE_SHARE


ROUNDS_MAX = 10_000_000
"""The rounds of a loop after which it is taken to be endless, unless a limit is set."""

RECURSION_MAX_ROUNDS, RECURSION_MAX_TUPLES = 25_000, 50_000_000
"""The same for a recursion in SQL that makes new values, and the tuples that it may make."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one run; None is no bound.

    Attributes:
        rounds: the maximum number of rounds of any one loop; None for `ROUNDS_MAX`, for which
            those of a search along a relation do not count, and for less in some recursions of SQL.
        tuples: the maximum number of tuples in all relations together.
        seconds: the maximum duration of the whole run.
        memory: the maximum number of bytes of relations, batches and computed symbols.
        rows: the maximum number of rows that pass stages of pipelines; searches set it.
        growth: the maximum number of bytes that the process may take in addition to what it has.
    """

    rounds: int | None = None
    tuples: int | None = None
    seconds: float | None = None
    memory: int | None = None
    rows: int | None = None
    growth: int | None = None

    def __post_init__(self) -> None:
        """Check that a bound is a number, and not negative.

        Raises:
            InputError: `C0923`.
        """
        for name in ("rounds", "tuples", "seconds", "memory", "rows", "growth"):
            value = getattr(self, name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if value is not None and not (is_number and value >= 0):
                message = f"`{value!r}` is not a limit on {name}."
                cure = "give a number that is not negative, or None for no limit"
                raise InputError.of("C0923", message, None, cure)


MEMORY_CHECK_SECONDS = 0.01
"""How often the memory of the process is looked at, at most."""


@dataclass(slots=True)
class _RunBounds:
    """When a run began, on the monotonic clock, and what it may take.

    Its seconds count for all of its work: reading a program, planning, computing.
    """

    start: float
    seconds: float | None
    memory: int
    growth: int | None
    next_look: float = 0.0
    is_abandoned: bool = False


_BOUNDS: ContextVar[_RunBounds | None] = ContextVar("run bounds", default=None)
"""They belong to the thread (or task) that has set them."""


@contextmanager
def within_seconds(limits: Limits | None) -> Iterator[None]:
    """Count the seconds of some limits from here on, and the memory that the process takes.

    Inside of other bounds, those hold.
    """
    is_bound = limits is not None and (limits.seconds is not None or limits.growth is not None)
    if limits is None or not is_bound or _BOUNDS.get() is not None:
        yield
        return
    memory = 0 if limits.growth is None else own_memory()
    token = _BOUNDS.set(_RunBounds(time.monotonic(), limits.seconds, memory, limits.growth))
    try:
        yield
    finally:
        _BOUNDS.reset(token)


def deadline_start() -> float | None:
    """Return when the seconds began, on the monotonic clock, if they are limited."""
    bounds = _BOUNDS.get()
    return None if bounds is None or bounds.seconds is None else bounds.start


def remaining_seconds() -> float | None:
    """Return how many of the seconds of a run are left, if they are limited."""
    bounds = _BOUNDS.get()
    if bounds is None or bounds.seconds is None:
        return None
    return max(0.0, bounds.start + bounds.seconds - time.monotonic())


def check_deadline() -> None:
    """Check time and memory; whoever does long work before an evaluation calls it now and then.

    Raises:
        LimitError: the seconds are over, or the process has taken too much memory.
    """
    bounds = _BOUNDS.get()
    if bounds is None:
        return
    if bounds.seconds is not None and time.monotonic() - bounds.start > bounds.seconds:
        raise LimitError(
            f"the work was stopped at its limit of {bounds.seconds:g} seconds, before the "
            "evaluation; nothing was changed\n"
            "  = raise the limit with `--limit-seconds`, or split long rules and programs",
            "seconds",
        )
    check_growth()


def abandon_work() -> None:
    """Stop the work within the bounds of this thread at the next check: nobody needs it."""
    bounds = _BOUNDS.get()
    if bounds is not None:
        bounds.is_abandoned = True


def check_growth() -> None:
    """Check how much memory the process has taken since its bounds were set.

    Raises:
        LimitError: too much, or the work was abandoned.
    """
    bounds = _BOUNDS.get()
    if bounds is not None and bounds.is_abandoned:
        raise LimitError("the work was stopped: nobody waits for it any more", "client")
    if bounds is None or bounds.growth is None:
        return
    now = time.monotonic()
    if now < bounds.next_look:
        return
    bounds.next_look = now + MEMORY_CHECK_SECONDS
    if own_memory() - bounds.memory > bounds.growth:
        raise LimitError(
            f"the work was stopped when it had taken {bounds.growth >> 20} MB of memory; nothing "
            "was changed\n"
            "  = raise the limit with `--limit-memory`, or bound the values that rules make",
            "memory",
        )


class ValueRange(NamedTuple):
    """The values that a column may have: integers from a least to a greatest one, and null.

    Whatever is an integer inside counts as one: the days of dates, the microseconds of timestamps,
    the digits of decimals, 0 and 1 of booleans.
    """

    least: int
    greatest: int
    has_null: bool


class Residency(NamedTuple):
    """Where the tuples of a relation are, and why."""

    place: str
    reason: str


class FileOrigin(Protocol):
    """A file that is fetched when it is first read; it travels pickled."""

    def read_buffer(self) -> memoryview:
        """Return the content."""


Portion = Callable[[], Iterator["pa.Table"]]
"""Yields some of the tuples of a handle where it is called; it travels pickled."""

IndexPlaces = Mapping[str, Path | FileOrigin]
"""Files of an index by name: a file, or where it is fetched from."""


class TableHandle(Protocol):
    """The tuples that a relation had in a state; later changes of the relation do not show."""

    def __len__(self) -> int:
        """Return the number of tuples."""

    def table(self) -> "pa.Table":
        """Return the tuples."""

    def slices(self, max_rows: int) -> "Iterator[pa.Table]":
        """Yield the tuples, in order, in tables of about equal size; at least one table.

        Columns of texts may be dictionaries.
        """

    @property
    def is_distributed(self) -> bool:
        """Whether the tuples are in partitions outside of this process, too many to fetch."""

    def map_partitions(self, function: "Callable[[pa.Table], MapResult]") -> list[MapResult]:
        """Return the results of a function for each partition of the tuples.

        For distributed tuples it runs where they are, so it must be picklable, and may be called
        more than once for the same partition.
        """

    def portions(self) -> "Sequence[Portion] | None":
        """Return what yields the tuples in tasks, as long as the handle is there.

        None if they are in this process.
        """


Tuples: TypeAlias = "pa.Table | TableHandle"

PartitionsOf = Callable[["pa.Table", Relation, int, int], "npt.NDArray[np.int64]"]
"""Returns the partition of each tuple of a relation, by a column, of a number of partitions."""


class TaskPool(Protocol):
    """Runs work in tasks outside of this process, where what is too large for it is read."""

    @property
    def directory(self) -> str:
        """Where files are that this process and all tasks see; they go with the engine.

        It is a directory, or a place in an object store.
        """

    def run(
        self, title: str, function: Callable[[Item], MapResult], items: Sequence[Item]
    ) -> list[MapResult]:
        """Return the results of a function for items, in their order: one job, a task for each.

        Both are pickled, and a task may run more than once, even at the same time.

        Raises:
            CorollaryError: the one that the first of the items raised.
        """

    def is_large(self, tuples: int) -> bool:
        """Whether a relation has too many tuples for this process."""

    def partition_count(self, tuples: int) -> int:
        """Return the number of partitions of a relation, by its tuples."""

    @property
    def partitions_of(self) -> "PartitionsOf":
        """The function that says which tuple belongs to which partition; it can be pickled."""


def slice_table(table: "pa.Table", max_rows: int) -> "Iterator[pa.Table]":
    """Yield a table in slices of about equal size, at least one."""
    bounds = slice_bounds(table.num_rows, max_rows)
    if len(bounds) == 1:
        yield table  # as a slice, a table without columns would lose its rows
        return
    for start, end in bounds:
        yield table.slice(start, end - start)


def slice_bounds(rows: int, max_rows: int) -> list[tuple[int, int]]:
    """Return start and end of slices of about equal size, at least one.

    >>> slice_bounds(10, 4), slice_bounds(0, 4)
    ([(0, 3), (3, 6), (6, 10)], [(0, 0)])
    """
    count = max(1, -(-rows // max_rows))  # rounded up
    return list(pairwise(rows * at // count for at in range(count + 1)))


class LocalHandle(ABC):
    """A handle on tuples of this process, which are all in one partition."""

    __slots__ = ()

    @abstractmethod
    def table(self) -> "pa.Table":
        """Return the tuples."""

    def slices(self, max_rows: int) -> "Iterator[pa.Table]":
        """Yield the tuples, in order, in tables of about equal size; at least one table."""
        yield from slice_table(self.table(), max_rows)

    @property
    def is_distributed(self) -> bool:
        """False: the tuples are here."""
        return False

    def map_partitions(self, function: "Callable[[pa.Table], MapResult]") -> list[MapResult]:
        """Return the result of a function for the tuples."""
        return [function(self.table())]

    def portions(self) -> None:
        """Return None: the tuples are here."""
        return


@dataclass(frozen=True, slots=True)
class LocalTable(LocalHandle):
    """A handle on an Arrow table in memory."""

    rows: "pa.Table"

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def table(self) -> "pa.Table":
        """Return the tuples."""
        return self.rows


class RowLookup(NamedTuple):
    """Rows that a change is going to look up: tuples of a relation, or values of some columns."""

    relation: str
    rows: "Sequence[tuple[Value, ...]] | pa.Table"
    columns: tuple[int, ...] | None = None
    is_inserted: bool = False
    """Whether tuples with these values are then inserted: the relation has to fit them."""


class Engine(Protocol):
    """Holds relations and runs plans on them."""

    def declare(self, relations: Mapping[str, Relation]) -> None:
        """Declare relations; those already declared stay as they are."""

    def drop(self, relations: Iterable[str]) -> None:
        """Forget relations."""

    def rename(self, old: str, new: str) -> None:
        """Give a relation another name, which no relation has."""

    def relabel(self, relation: Relation) -> None:
        """Give the columns of a relation the names that it has here; the types are the same."""

    def fill_later(self, sizes: Mapping[str, int], fill: Callable[[str], None]) -> None:
        """Have relations filled when they are first used; until then they have given sizes."""

    def copy(self, source: str, target: str) -> None:
        """Make the NEW tuples of one relation the OLD and NEW ones of another."""

    def insert(
        self, relation: str, rows: "Sequence[tuple[Value, ...]] | pa.Table | TableHandle"
    ) -> None:
        """Add tuples to the NEW state of a relation; those already in it are ignored.

        A handle on tuples outside of this process is for an engine that has tasks.
        """

    def delete(
        self, relation: str, rows: "Sequence[tuple[Value, ...]] | pa.Table | TableHandle"
    ) -> None:
        """Remove tuples from the NEW state of a relation; those not in it are ignored.

        A handle on tuples outside of this process is for an engine that has tasks.
        """

    def prefetch(self, lookups: Iterable[RowLookup]) -> None:
        """Fetch at once what is going to be looked up, where tuples are outside of this process."""

    def apply_change(self, relation: str, added: "Tuples", removed: "Tuples") -> None:
        """Apply an effective change: nothing of `added` is in the relation, all of `removed` is."""

    def commit(self, relations: Iterable[str] | None = None) -> None:
        """Make NEW the OLD of some relations, or of all."""

    def clear(self, relations: Iterable[str]) -> None:
        """Make relations empty in all states."""

    def rollback(self) -> None:
        """Make OLD the NEW of every relation."""

    def run(self, plan: Plan, recorder: Recorder, limits: Limits) -> int:
        """Run the main procedure of a plan; return how many rows it handled.

        If it fails, the relations that the plan writes have no open change; those that `insert` and
        `delete` have changed keep theirs.
        """

    def read(self, relation: str, state: State = State.NEW) -> "pa.Table":
        """Return the tuples of a relation in a state."""

    def handle(self, relation: str, state: State = State.NEW) -> TableHandle:
        """Return a handle on the tuples of a relation in a state; they are decoded on demand."""

    def size(self, relation: str, state: State = State.NEW) -> int:
        """Return the number of tuples of a relation in a state."""

    def changed(self) -> set[str]:
        """Return the relations that have an open change."""

    def violations(self, relation: str, check: "DependencyCheck") -> "Violations":
        """Return pairs of tuples of NEW that violate a functional dependency."""

    def clashes(self, relation: str, check: "DependencyCheck") -> "Violations | None":
        """Return those among the tuples that agree with added ones; None to look them up here."""

    def within(self, relation: str, boxes: Sequence[Mapping[int, ValueRange]]) -> "pa.Table":
        """Return the tuples of NEW in one of several boxes, each once, perhaps with others.

        Args:
            relation: the relation.
            boxes: each has ranges for some columns, in which the values of a tuple have to be.
        """

    def lookup(
        self,
        relation: str,
        bound: tuple[int, ...],
        rows: "Sequence[tuple[Any, ...]] | pa.Table",
        columns: Sequence[int],
        max_rows: int | None = None,
    ) -> "list[pa.Array | pa.ChunkedArray] | None":
        """Return columns of the tuples of NEW with some values, each once.

        None if they are many, or elsewhere.

        Args:
            relation: the relation.
            bound: some of its columns, in ascending order, at least one.
            rows: the values of these.
            columns: those to return.
            max_rows: the number of tuples that are returned at most.
        """

    def arrange(
        self,
        relation: str,
        orders: Iterable[tuple[int, ...]],
        probed: Iterable[Collection[int]],
    ) -> None:
        """Sort the tuples of a relation for plans and the index.

        Args:
            relation: its name.
            orders: of its columns, which the plans want.
            probed: the sets of columns by which it will be probed.
        """

    def save(self, relations: Iterable[str]) -> Iterator[tuple[str, bytes | Path | FileOrigin]]:
        """Yield the files of an index of relations, as they are in OLD now: name and bytes.

        Those that tasks have written are there already: name and place. Such a name has a
        `PARTITION_SEPARATOR`.
        """

    @property
    def reads_partitions(self) -> bool:
        """Whether it uses the files of an index that tasks have written."""

    def restore(
        self, files: Mapping[str, "pa.Buffer"], paths: IndexPlaces | None = None
    ) -> set[str]:
        """Load declared relations from the files of an index; return those that were in it.

        Args:
            files: by name; none of those that tasks have written.
            paths: where these are.
        """

    def held_tuples(self) -> int:
        """Return how many tuples all relations have together, payload included."""

    def statistics(self) -> Statistics:
        """Return sizes and fan-outs for the planner."""

    def distinct(self, relation: str) -> tuple[int, ...]:
        """Return the approximate number of distinct values of each column of a relation."""

    @property
    def default_placement(self) -> str:
        """The name of the placement of strata that have no other."""

    def placement(
        self, relations: Sequence[str], below: Sequence[str], *, has_pivot: bool
    ) -> Placement:
        """Return where a stratum should run.

        Args:
            relations: those of the stratum.
            below: those that it reads.
            has_pivot: whether it can be partitioned.
        """

    def residency(self, relation: str) -> Residency:
        """Return where the tuples of a relation are."""

    @property
    def tasks(self) -> TaskPool | None:
        """Where large inputs are read, if there are other processes that can do it."""

    def close(self) -> None:
        """Release what it holds outside of this process; it is not used afterwards."""
