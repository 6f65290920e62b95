"""Keys: the tuples that may break a functional dependency are those that agree with new ones."""

from collections.abc import Sequence

from corollary.core.origin import NO_RULE
from corollary.core.pipeline import Reference
from corollary.core.plan import Plan
from corollary.core.program import NormalProgram
from corollary.core.rules import Literal
from corollary.core.states import State
from corollary.core.statistics import Statistics
from corollary.core.terms import Slot, Wildcard
from corollary.maintain.draft import Body, Draft
from corollary.maintain.sip import Goal
from corollary.maintain.update import Update


def touched(program: NormalProgram, relation: str, determinants: Sequence[int], into: str) -> Plan:
    """Return the plan that finds all tuples of NEW that agree with an added one in some columns."""
    draft = Draft(Update(program, program, {}, Statistics()))
    draft.types[into] = draft.types[relation]
    columns = draft.variables(relation)
    seen: tuple[Slot, ...] = tuple(
        column if at in determinants else Wildcard() for at, column in enumerate(columns)
    )
    lead = Goal(Literal(relation, seen), Reference(relation, State.ADDED))
    all_of = Goal(Literal(relation, columns), Reference(relation))
    return draft.plan(draft.derive(into, [Body(columns, (lead, all_of), (), NO_RULE, lead)]))
