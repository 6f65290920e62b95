"""The time that the search for advice may take: an anytime search.

The search is polynomial with constants that bound its exhaustive parts. When its time is over, it
does not fail: searches for the best order, the smallest set or the best workload settle for what
they have found, and predicates that were not looked at keep their rules. The advice says so.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from corollary.core.engine import remaining_seconds

SEARCH_SHARE = 0.8
"""The share of the remaining seconds that the search may take: the rest is for the report."""

_END: ContextVar[float | None] = ContextVar("search end", default=None)


@contextmanager
def limited_search() -> Iterator[None]:
    """Let the search end before the seconds of the run are over, if they are limited."""
    remaining = remaining_seconds()
    token = _END.set(None if remaining is None else time.monotonic() + SEARCH_SHARE * remaining)
    try:
        yield
    finally:
        _END.reset(token)


def is_search_over() -> bool:
    """Whether the time of the search is over."""
    end = _END.get()
    return end is not None and time.monotonic() > end
