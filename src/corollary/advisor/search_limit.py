"""How much work the search for advice may do: an anytime search.

The search is polynomial with constants that bound its exhaustive parts. When its work is over, it
does not fail: searches for the best order, the smallest set or the best workload settle for what
they have found, and predicates that were not looked at keep their rules. The advice says so.

Steps count: a set of literals, candidates or views, a pair of clauses, a rewriting that is looked
at. They are the same on a busy machine, and so is the advice; `--limit-seconds` is the last resort.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from corollary.engines.budget import WorkBudget

SEARCH_MAX_STEPS = 2_000_000
"""The maximum number of steps of a search, unless it is told otherwise: a minute or two."""

_BUDGET: ContextVar[WorkBudget | None] = ContextVar("search budget", default=None)


@contextmanager
def limited_search(max_steps: int) -> Iterator[WorkBudget]:
    """End the search after some steps, and before the seconds of the run are over."""
    budget = WorkBudget(max_steps)
    token = _BUDGET.set(budget)
    try:
        yield budget
    finally:
        _BUDGET.reset(token)


def is_search_over(steps: int = 1) -> bool:
    """Count steps, and return whether the work of the search is over."""
    budget = _BUDGET.get()
    if budget is None:
        return False
    budget.spent += steps
    return budget.is_over
