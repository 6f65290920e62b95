"""Goals that were asked, counted by their binding pattern, for the advisor."""

import time
from collections import Counter
from contextlib import suppress

from corollary.core.logic import Constant, Literal
from corollary.errors import CorollaryError
from corollary.warehouse.catalog.catalog import Catalog
from corollary.warehouse.catalog.query_log import record_queries

QUERY_LOG_SECONDS = 60.0
"""The time between two writes of the counted goals to the catalog."""


class QueryLog:
    """Counts goals by their binding pattern; an error in it never makes a query fail."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._counts: Counter[str] = Counter()
        self._noted = time.monotonic()

    def count(self, goal: Literal) -> None:
        """Count a goal."""
        self._counts[_binding_pattern(goal)] += 1
        if time.monotonic() - self._noted > QUERY_LOG_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write the counts to the catalog; if that fails, they are lost."""
        counts, self._counts = self._counts, Counter()
        self._noted = time.monotonic()
        if counts:
            with suppress(CorollaryError):
                record_queries(self._catalog, counts)


def _binding_pattern(goal: Literal) -> str:
    """Return the binding pattern of a goal: its relation, and which arguments are bound.

    >>> from corollary.core.logic import Variable
    >>> _binding_pattern(Literal("link", (Constant("a"), Variable("y"))))
    'link^bf'
    """
    bound = "".join("b" if isinstance(slot, Constant) else "f" for slot in goal.slots)
    return f"{goal.relation}^{bound}"
