"""Limits on a run: rounds, tuples, seconds, memory, and the rows that some steps may handle."""

import time
from collections.abc import Callable, Iterable
from typing import Protocol

from corollary.core.engine import Limits
from corollary.core.pipeline import Pipeline
from corollary.core.states import State
from corollary.errors import LimitError

UNLIMITED = 1 << 62


class Bulk(Protocol):
    """Something that takes memory."""

    @property
    def nbytes(self) -> int:
        """So many bytes."""


class Tuples(Bulk, Protocol):
    """Tuples that a step has made."""

    def __len__(self) -> int:
        """Return how many."""


class Held(Bulk, Protocol):
    """A table."""

    def size(self, state: State) -> int:
        """Return the number of tuples of a state."""


class Exceeded(Exception):  # noqa: N818 - no error: the interpreter goes on elsewhere
    """Steps have handled more rows than their budget allows."""


class Budget:
    """Watches a run and stops it, naming the limit and the rule that was at work.

    Attributes:
        handled: the rows that have passed stages of pipelines so far.
        ceiling: how many of them are allowed before `Exceeded` is raised.
    """

    def __init__(
        self, limits: Limits, tables: Callable[[], Iterable[Held]], dictionary: Bulk
    ) -> None:
        self._limits = limits
        self._tables = tables
        self._dictionary = dictionary
        self._began = time.monotonic() if limits.since is None else limits.since
        self._seconds = limits.seconds
        self._is_counting = limits.tuples is not None or limits.memory is not None
        self._productive: Pipeline | None = None
        self._open_tuples = 0
        self._open_bytes = 0
        self._held_tuples = 0
        self._held_bytes = 0
        self._aside_tuples = 0
        self._aside_bytes = 0
        self.handled = 0
        self.ceiling = UNLIMITED

    def spend(self, pipeline: Pipeline, words: Tuples) -> None:
        """Count a batch of new tuples of a pipeline."""
        if pipeline.origin.text:
            self._productive = pipeline
        if self._is_counting:
            self._open_tuples += len(words)
            self._open_bytes += words.nbytes
            self._check()

    def tick(self, pipeline: Pipeline, rows: int) -> None:
        """A batch passes a stage: see to the time and to the rows."""
        self.handled += rows
        if self.handled > self.ceiling:
            raise Exceeded
        if self._seconds is not None and time.monotonic() - self._began > self._seconds:
            self._productive = pipeline
            raise self._error(f"{self._seconds:g} seconds", "--limit-seconds")

    def handle(self, rows: int) -> None:
        """A step that has no pipeline handles so many rows."""
        self.handled += rows
        if self.handled > self.ceiling:
            raise Exceeded

    def release(self) -> None:
        """The batches of a step have become one result, or are given up."""
        self._open_tuples = self._open_bytes = 0

    def set_aside(self, tables: tuple[Held, ...], sign: int) -> None:
        """Tables go out of sight while a procedure runs (+1), or come back (-1)."""
        if self._is_counting:
            self._aside_tuples += sign * sum(table.size(State.NEW) for table in tables)
            self._aside_bytes += sign * sum(table.nbytes for table in tables)

    def check_rounds(self, rounds: int) -> None:
        """Stop a loop that has gone on for too many rounds."""
        limit = self._limits.rounds
        if limit is not None and rounds > limit:
            raise self._error(f"{limit} rounds", "--limit-rounds")

    def check_totals(self) -> None:
        """Measure what the tables hold and stop if it is too much."""
        if not self._is_counting:
            return
        limits = self._limits
        if limits.tuples is not None:
            held = sum(table.size(State.NEW) for table in self._tables())
            self._held_tuples = held + self._aside_tuples
        if limits.memory is not None:
            held = sum(table.nbytes for table in self._tables())
            self._held_bytes = held + self._aside_bytes + self._dictionary.nbytes
        self._check()

    def _check(self) -> None:
        limits = self._limits
        if limits.tuples is not None and self._held_tuples + self._open_tuples > limits.tuples:
            raise self._error(f"{limits.tuples} tuples", "--limit-tuples")
        if limits.memory is not None and self._held_bytes + self._open_bytes > limits.memory:
            raise self._error(f"{limits.memory} bytes", "--limit-memory")

    def _error(self, what: str, option: str) -> LimitError:
        rule = ""
        if self._productive is not None:
            rule = f", at work on the rule `{self._productive.origin.text}`"
        return LimitError(
            f"the evaluation was stopped at its limit of {what}{rule}; nothing was changed\n"
            f"  = raise the limit with `{option}`, or bound the values the rule makes"
        )
