"""Limits on a run: rounds, tuples, seconds, memory."""

import time
from collections.abc import Mapping

from corollary.core.engine import Limits
from corollary.core.pipeline import Pipeline
from corollary.core.states import State
from corollary.engines.local.codes import Dictionary
from corollary.engines.local.layout import Words
from corollary.engines.local.table import Table
from corollary.errors import LimitError


class Budget:
    """Watches a run and stops it, naming the limit and the rule that was at work."""

    def __init__(self, limits: Limits, tables: Mapping[str, Table], dictionary: Dictionary) -> None:
        self._limits = limits
        self._tables = tables
        self._dictionary = dictionary
        self._began = time.monotonic() if limits.since is None else limits.since
        self._productive: Pipeline | None = None
        self._open_tuples = 0
        self._open_bytes = 0
        self._held_tuples = 0
        self._held_bytes = 0

    def spend(self, pipeline: Pipeline, words: Words) -> None:
        """Count a batch of new tuples of a pipeline."""
        self._productive = pipeline
        self._open_tuples += len(words)
        self._open_bytes += words.nbytes
        self._check()

    def tick(self, pipeline: Pipeline) -> None:
        """A batch passes a stage: see to the time."""
        seconds = self._limits.seconds
        if seconds is not None and time.monotonic() - self._began > seconds:
            self._productive = pipeline
            raise self._error(f"{seconds:g} seconds", "--limit-seconds")

    def release(self) -> None:
        """The batches of a step have become one result."""
        self._open_tuples = self._open_bytes = 0

    def check_rounds(self, rounds: int) -> None:
        """Stop a loop that has gone on for too many rounds."""
        limit = self._limits.rounds
        if limit is not None and rounds > limit:
            raise self._error(f"{limit} rounds", "--limit-rounds")

    def check_totals(self) -> None:
        """Measure what the tables hold and stop if it is too much."""
        limits = self._limits
        if limits.tuples is not None:
            self._held_tuples = sum(table.size(State.NEW) for table in self._tables.values())
        if limits.memory is not None:
            held = sum(table.nbytes for table in self._tables.values())
            self._held_bytes = held + self._dictionary.nbytes
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
