"""The goals that a database answers, counted in memory and noted in its warehouse now and then."""

import time
from collections import Counter
from contextlib import suppress

from corollary.core.rules import Constant, Literal
from corollary.errors import CorollaryError
from corollary.warehouse.catalog import Catalog
from corollary.warehouse.query_log import note_queries

EVERY = 60.0
"""Seconds between two notes."""


class QueryLog:
    """Counts goals by their form; to note them never makes a query fail."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._counts: Counter[str] = Counter()
        self._noted = time.monotonic()

    def note(self, goal: Literal) -> None:
        """Count a goal."""
        self._counts[form_of(goal)] += 1
        if time.monotonic() - self._noted > EVERY:
            self.flush()

    def flush(self) -> None:
        """Note what was counted; if that cannot be done, it is forgotten."""
        counts, self._counts = self._counts, Counter()
        self._noted = time.monotonic()
        if counts:
            with suppress(CorollaryError):
                note_queries(self._catalog, counts)


def form_of(goal: Literal) -> str:
    """Return a goal without its values.

    >>> from corollary.core.rules import Variable
    >>> form_of(Literal("link", (Constant("a"), Variable("y"))))
    'link^bf'
    """
    bound = "".join("b" if isinstance(slot, Constant) else "f" for slot in goal.slots)
    return f"{goal.relation}^{bound}"
