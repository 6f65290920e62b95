"""What there is to know of a plan some of whose strata run elsewhere."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from corollary.core.plan import Place, Plan, part_of, read_by, steps_of, written_by
from corollary.engines.spark.elsewhere import CHANGES

Made = TypeVar("Made")

PLANS = 64
"""So many plans are known at a time."""


class ByPlan(Generic[Made]):
    """What is made of a plan once, as long as it is the same object."""

    def __init__(self, make: Callable[[Plan], Made]) -> None:
        self._make = make
        self._known: dict[int, tuple[Plan, Made]] = {}

    def __call__(self, plan: Plan) -> Made:
        """Return what was made of the plan."""
        known = self._known.get(id(plan))
        if known is None:
            if len(self._known) >= PLANS:
                self._known.clear()
            known = self._known[id(plan)] = plan, self._make(plan)  # which keeps the identity
        return known[1]


@dataclass(frozen=True, slots=True)
class Needs:
    """What the part of a plan that runs here asks of relations that may be elsewhere.

    Attributes:
        copies: relations that are read in OLD or NEW.
        changes: relations whose changes are read.
        written: relations that are written.
    """

    copies: frozenset[str]
    changes: frozenset[str]
    written: frozenset[str]


def needs_of(plan: Plan) -> Needs:
    """Return what the part of a plan that runs here asks."""
    here = part_of(plan, plan.main)
    references = set(read_by(here))
    return Needs(
        frozenset(each.relation for each in references if each.state not in CHANGES),
        frozenset(each.relation for each in references if each.state in CHANGES),
        frozenset(written_by(here)),
    )


def parts_of(plan: Plan) -> dict[str, Plan]:
    """Return the parts of a plan that may run elsewhere, by procedure."""
    return {
        each.procedure: part_of(plan, each.procedure)
        for each in steps_of(plan)
        if isinstance(each, Place)
    }
