"""The record of a run: what every step gave. Counters, traces and progress are its readers."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol

from corollary.core.plan import Aggregate, Derive


class Recorder(Protocol):
    """What an engine tells about a run while it goes on."""

    def procedure(self, name: str) -> None:
        """A procedure begins."""

    def step(self, step: Derive | Aggregate, size: int) -> None:
        """A step has given so many tuples."""

    def round(self, number: int) -> None:
        """A round of a loop has ended."""


@dataclass(slots=True)
class Tally:
    """A recorder that counts."""

    derived: Counter[str] = field(default_factory=Counter)
    rounds: Counter[str] = field(default_factory=Counter)
    current: str = ""

    def procedure(self, name: str) -> None:
        """Note the procedure that rounds belong to."""
        self.current = name

    def step(self, step: Derive | Aggregate, size: int) -> None:
        """Count the tuples of a step under its target."""
        self.derived[step.target] += size

    def round(self, number: int) -> None:  # noqa: ARG002 - the count matters, not the number
        """Count a round of the current procedure."""
        self.rounds[self.current] += 1
