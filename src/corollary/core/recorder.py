"""The record of a run: what every step gave. Counters, traces and progress are its readers."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from corollary.core.plan import Aggregate, Derive, Row, Within

if TYPE_CHECKING:
    import pyarrow as pa


class Recorder(Protocol):
    """What an engine tells about a run while it goes on."""

    def procedure(self, name: str) -> None:
        """A procedure begins."""

    def end(self, name: str, handled: int) -> None:
        """A procedure has ended; so many rows were handled since the plan began."""

    def step(self, step: Derive | Aggregate, size: int, led: int) -> None:
        """A step has given so many tuples, led by so many (the first probes of its pipelines)."""

    def round(self, count: int = 1) -> None:
        """A round of a loop has ended, or so many that were made at once."""

    def probe(self, relation: str, rows: int) -> None:
        """So many rows were looked up in the OLD or NEW state of a relation."""

    def switch(self, within: Within) -> None:
        """Steps have outgrown their budget and are abandoned."""

    def row(self, row: Row, relations: "Mapping[str, tuple[pa.Table, ...]]") -> None:
        """A row of a trace: the tables of `updates`, `approximation`, `disqualified`, `actual`."""


@dataclass(slots=True)
class Tally:
    """A recorder that counts."""

    derived: Counter[str] = field(default_factory=Counter)
    rounds: Counter[str] = field(default_factory=Counter)
    current: str = ""

    def procedure(self, name: str) -> None:
        """Note the procedure that rounds belong to."""
        self.current = name

    def end(self, name: str, handled: int) -> None:
        """Nothing to note."""

    def step(self, step: Derive | Aggregate, size: int, led: int) -> None:  # noqa: ARG002
        """Count the tuples of a step under its target."""
        self.derived[step.target] += size

    def round(self, count: int = 1) -> None:
        """Count rounds of the current procedure."""
        self.rounds[self.current] += count

    def probe(self, relation: str, rows: int) -> None:
        """Nothing to note."""

    def switch(self, within: Within) -> None:
        """Nothing to note."""

    def row(self, row: Row, relations: "Mapping[str, tuple[pa.Table, ...]]") -> None:
        """Nothing to note."""
