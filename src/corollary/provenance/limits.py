"""How much work a question may take."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from corollary.core.engine import Limits
from corollary.errors import LimitError


@dataclass(frozen=True, slots=True)
class ProofLimits:
    """Bounds on one question; what is left out because of them is said (`ProofCut`).

    Attributes:
        nodes: the maximum number of nodes that are shown.
        expanded: the maximum number of tuples whose instances are looked for.
        instances: the maximum number of instances of one tuple that are looked at.
        seconds: after which no more instances are looked for.
        dry_runs: the maximum number of changes that are tried out.
    """

    nodes: int = 1_000
    expanded: int = 100_000
    instances: int = 256
    seconds: float = 2.0
    dry_runs: int = 64


DEFAULT_LIMITS = ProofLimits()


class Allowance:
    """What is left of the limits of one question."""

    def __init__(self, limits: ProofLimits) -> None:
        self.limits = limits
        self.expanded = 0
        self._is_timed = True
        self._end = time.monotonic() + limits.seconds

    @property
    def seconds(self) -> float:
        """The seconds that are left, perhaps less than 0."""
        return self._end - time.monotonic()

    @property
    def tuples(self) -> int:
        """The number of tuples whose instances may still be looked for."""
        return self.limits.expanded - self.expanded

    @contextmanager
    def without_seconds(self) -> Iterator[None]:
        """Let the time not count: what is done then is needed for any answer."""
        self._is_timed = False
        try:
            yield
        finally:
            self._is_timed = True

    def take(self, tuples: int) -> None:
        """Note that the instances of some tuples are looked for.

        Raises:
            LimitError: the time is over.
        """
        self.expanded += tuples
        if tuples and self._is_timed and self.seconds <= 0:
            raise LimitError("the time for a question is over")

    def bounded(self, limits: Limits) -> Limits:
        """Return the limits of one run of the engine, which must not outlast the question."""
        if not self._is_timed:
            return limits
        seconds = max(self.seconds, 0.0)
        if limits.seconds is not None:
            seconds = min(seconds, limits.seconds)
        return Limits(limits.rounds, limits.tuples, seconds, limits.memory)
