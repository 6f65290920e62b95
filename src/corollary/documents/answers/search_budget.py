"""How much a search over a document may take: nodes and rows that it looks at, and time."""

import time
from dataclasses import dataclass, field

from corollary.documents.errors import SearchLimitError

CLOCK_MIN_STEPS = 4096
"""The clock is read after this many steps."""


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """The limits of a search; beyond them there is a bound instead of an exact answer.

    Attributes:
        nodes: the maximum number of nodes of the document, rows and combinations looked at.
        seconds: the maximum time.
    """

    nodes: int = 50_000_000
    seconds: float = 20.0


@dataclass(slots=True)
class SearchBudget:
    """What is left of the limits of one search.

    >>> budget = SearchLimits(nodes=10)
    >>> SearchBudget(budget).spend(11)
    Traceback (most recent call last):
    ...
    corollary.documents.errors.SearchLimitError: 10 nodes
    """

    limits: SearchLimits
    spent: int = 0
    _read_at: int = 0
    _end: float = field(init=False)

    def __post_init__(self) -> None:
        self._end = time.monotonic() + self.limits.seconds

    def spend(self, steps: int = 1) -> None:
        """Note some steps.

        Raises:
            SearchLimitError: they are more than the limits allow.
        """
        self.spent += steps
        if self.spent > self.limits.nodes:
            raise SearchLimitError(f"{self.limits.nodes:,} nodes")
        if self.spent - self._read_at >= CLOCK_MIN_STEPS:
            self._read_at = self.spent
            if time.monotonic() > self._end:
                raise SearchLimitError(f"{self.limits.seconds:g} s")
