"""Limits on a run (rounds, tuples, rows, seconds, memory), and on the work of a search."""

import time
from collections.abc import Callable, Iterable
from dataclasses import field
from math import inf
from typing import Protocol

from corollary.core import engine
from corollary.core.engine import Limits, check_growth, deadline_start, remaining_seconds
from corollary.core.pipeline import Pipeline
from corollary.core.states import State
from corollary.data_class import dataclass
from corollary.errors import LimitError

UNLIMITED_ROWS = 1 << 62

CLOCK_MIN_STEPS = 4096
"""A search reads the clock after this many steps."""

SEARCH_SHARE = 0.8
"""The share of the remaining seconds of a run that a search may take; the rest is for a report."""


class WorkLimitError(LimitError):
    """A search has done the work that it may do; whoever asks uses what was found until then."""


@dataclass(frozen=True, slots=True)
class WorkUsed:
    """The work that a search has done, and how much it could do, in steps of its kind."""

    used: int
    limit: int

    def __add__(self, other: "WorkUsed") -> "WorkUsed":
        """Return what two searches have done together."""
        return WorkUsed(self.used + other.used, self.limit + other.limit)

    def to_json(self) -> dict[str, int]:
        """Return it as JSON."""
        return {"used": self.used, "limit": self.limit}


@dataclass(slots=True)
class WorkBudget:
    """What is left of the work of one search.

    Steps count: nodes, rows, combinations, whatever the search looks at. They are the same on a
    busy machine, and so is the answer. Seconds are the last resort.

    >>> WorkBudget(10, unit="nodes").spend(11)
    Traceback (most recent call last):
    ...
    corollary.engines.budget.WorkLimitError: 10 nodes

    Attributes:
        limit: the maximum number of steps.
        seconds: the maximum time; less if the run that the search belongs to must end before.
        unit: what a step is.
        spent: the number of steps so far.
    """

    limit: int
    seconds: float = inf
    unit: str = "steps"
    spent: int = 0
    _read_at: int = 0
    _end: float = field(init=False)

    def __post_init__(self) -> None:
        remaining = remaining_seconds()
        if remaining is not None:
            self.seconds = min(self.seconds, SEARCH_SHARE * remaining)
        self._end = time.monotonic() + self.seconds

    @property
    def left(self) -> int:
        """The steps that are left."""
        return max(0, self.limit - self.spent)

    @property
    def seconds_left(self) -> float:
        """The seconds that are left; less than 0 after the end."""
        return self._end - time.monotonic()

    @property
    def is_over(self) -> bool:
        """Whether nothing is left."""
        return self.spent > self.limit or self.seconds_left <= 0

    @property
    def used(self) -> WorkUsed:
        """What was done, of what may be done."""
        return WorkUsed(self.spent, self.limit)

    def spend(self, steps: int = 1) -> None:
        """Note some steps.

        Raises:
            WorkLimitError: they are more than the limits allow.
        """
        self.spent += steps
        if self.spent > self.limit:
            raise WorkLimitError(f"{self.limit:,} {self.unit}")
        if self.spent - self._read_at >= CLOCK_MIN_STEPS:
            self._read_at = self.spent
            if self.seconds_left <= 0:
                raise WorkLimitError(f"{self.seconds:g} s")


class MemoryUser(Protocol):
    """Something that takes memory."""

    @property
    def nbytes(self) -> int:
        """The number of bytes."""


class MeasuredTable(MemoryUser, Protocol):
    """A table whose tuples and bytes count against the limits."""

    def size(self, state: State) -> int:
        """Return the number of tuples of a state."""


class BudgetExceeded(Exception):  # noqa: N818 - not an error: the interpreter runs the alternative steps
    """Steps have handled more rows than their `Within` allows."""


class Budget:
    """Counts what a run uses and stops it at a limit, naming the limit and the rule.

    Attributes:
        handled_rows: the rows that have passed stages of pipelines so far.
        row_limit: the value of `handled_rows` above which the run is given up.
        row_ceiling: the value of `handled_rows` above which the innermost `Within` is given up, or
            the run.
        is_endless: whether the loop that runs is a recursion of SQL that may never end.
    """

    def __init__(
        self, limits: Limits, tables: Callable[[], Iterable[MeasuredTable]], dictionary: MemoryUser
    ) -> None:
        self._limits = limits
        self._tables = tables
        self._dictionary = dictionary
        began = deadline_start()
        self._start = time.monotonic() if began is None else began
        self._seconds = limits.seconds
        self._has_size_limit = limits.tuples is not None or limits.memory is not None
        self._last_pipeline: Pipeline | None = None
        self._batch_tuples = 0
        self._batch_bytes = 0
        self._table_tuples = 0
        self._table_bytes = 0
        self._shadowed_tuples = 0
        self._shadowed_bytes = 0
        self.handled_rows = 0
        self.row_limit = UNLIMITED_ROWS if limits.rows is None else limits.rows
        self.row_ceiling = self.row_limit
        self.is_endless = False

    def count_tuples(self, pipeline: Pipeline, count: int, size: int) -> None:
        """Count tuples and bytes that a pipeline has derived, until the step's result exists."""
        if pipeline.origin.text:
            self._last_pipeline = pipeline
        if self._has_size_limit:
            self._batch_tuples += count
            self._batch_bytes += size
            self._check_sizes()

    def count_rows(self, pipeline: Pipeline, rows: int) -> None:
        """Count the rows that enter a stage of a pipeline, and check the time."""
        self.count_step_rows(rows)
        if self._seconds is not None and time.monotonic() - self._start > self._seconds:
            self._last_pipeline = pipeline
            self.check_seconds()
        check_growth()

    @property
    def seconds_left(self) -> float | None:
        """The seconds until the limit, if there is one; less than 0 after it."""
        if self._seconds is None:
            return None
        return self._start + self._seconds - time.monotonic()

    def check_seconds(self) -> None:
        """Check the time."""
        if self._seconds is not None and time.monotonic() - self._start > self._seconds:
            raise self._error(f"{self._seconds:g} seconds", "--limit-seconds")
        check_growth()

    def count_step_rows(self, rows: int) -> None:
        """Count the rows of a step without pipelines."""
        self.handled_rows += rows
        if self.handled_rows > self.row_ceiling:
            if self.handled_rows > self.row_limit:
                raise WorkLimitError(f"{self.row_limit:,} rows")
            raise BudgetExceeded

    def release_batches(self) -> None:
        """Forget the batches of a step: they are merged into its result, or discarded."""
        self._batch_tuples = self._batch_bytes = 0

    def count_shadowed(self, tables: tuple[MeasuredTable, ...], sign: int) -> None:
        """Count tables that a recursive call hides from the list of tables: +1, and -1 after it."""
        if self._has_size_limit:
            self._shadowed_tuples += sign * sum(table.size(State.NEW) for table in tables)
            self._shadowed_bytes += sign * sum(table.nbytes for table in tables)

    def check_rounds(self, rounds: int, searched: int = 0, made: int = 0) -> None:
        """Stop a loop that has run too many rounds.

        Args:
            rounds: how many.
            searched: those of them that were a search along a relation, which always ends.
            made: the tuples that they have made.
        """
        limit = self._limits.rounds
        if limit is None:
            limit = engine.RECURSION_MAX_ROUNDS if self.is_endless else engine.ROUNDS_MAX
            rounds -= searched
        if rounds > limit:
            raise self._error(f"{limit:,} rounds", "--limit-rounds")
        if self.is_endless and self._limits.tuples is None and made > engine.RECURSION_MAX_TUPLES:
            raise self._error(f"{engine.RECURSION_MAX_TUPLES:,} tuples", "--limit-tuples")

    def check_totals(self) -> None:
        """Measure all tables and stop if they are too large."""
        if not self._has_size_limit:
            return
        limits = self._limits
        if limits.tuples is not None:
            tuples = sum(table.size(State.NEW) for table in self._tables())
            self._table_tuples = tuples + self._shadowed_tuples
        if limits.memory is not None:
            size = sum(table.nbytes for table in self._tables())
            self._table_bytes = size + self._shadowed_bytes + self._dictionary.nbytes
        self._check_sizes()

    def _check_sizes(self) -> None:
        limits = self._limits
        if limits.tuples is not None and self._table_tuples + self._batch_tuples > limits.tuples:
            raise self._error(f"{limits.tuples} tuples", "--limit-tuples")
        if limits.memory is not None and self._table_bytes + self._batch_bytes > limits.memory:
            raise self._error(f"{limits.memory} bytes", "--limit-memory")

    def _error(self, what: str, option: str) -> LimitError:
        rule, cure = "", "bound the values the rule makes"
        if self._last_pipeline is not None:
            origin = self._last_pipeline.origin
            is_sql = origin.span is not None and origin.span.is_sql
            place = f"the SQL at {origin.span}" if is_sql else f"the rule `{origin.text}`"
            rule = f", at work on {place}"
        if self.is_endless:
            what += " for a recursion that makes new values"
            cure = "bound these values, as `WHERE n < 1000` does"
        return LimitError(
            f"the evaluation was stopped at its limit of {what}{rule}; nothing was changed\n"
            f"  = raise the limit with `{option}`, or {cure}",
            option.removeprefix("--limit-"),
        )
