"""Counting: every stored tuple has the number of its derivations.

Reference: A. Gupta, I. S. Mumick, V. S. Subrahmanian, "Maintaining views incrementally", SIGMOD
1993, the counting algorithm for views without recursion.

    Δc(t) = Σ over rules and positions i of  ±1 for each instance of exact_i with head t
    c_new(t) = c_old(t) + Δc(t);   0 → positive adds t,  positive → 0 removes it

| symbol | name here |
|---|---|
| c(t) | `p•count`, whose last column is the count |
| Δc(t) | `p•difference` |

`maintain/exact.py` has the pipelines exact_i, which find each changed instance once. A recursive
relation cannot be counted: a tuple on a cycle has derivations that depend on itself, and would
never be removed.

Example: `v(x) :- r(x, y)`, r = {(1,a), (1,b)}, r(1,a) removed: Δc(1) = −1, c goes from 2 to 1 and
v(1) stays.
"""

from corollary.analysis.strata import Stratum
from corollary.core import logic
from corollary.core.pipeline import Reference
from corollary.core.plans import Accumulate, Add, CancelOut, Reduce, Remove, Role, Step, When
from corollary.core.states import State
from corollary.core.types import NUMBER
from corollary.maintain import exact
from corollary.maintain.draft import Body, Draft, working_goal
from corollary.maintain.payload import count_relation
from corollary.maintain.sip import Goal
from corollary.maintain.trace import trace_rows

_DIFFERENCE = logic.Variable("difference'", NUMBER)
_BEFORE = logic.Variable("before'", NUMBER)
_AFTER = logic.Variable("after'", NUMBER)


def plan(stratum: Stratum, draft: Draft) -> list[Step]:
    """Return the steps that maintain a stored, non-recursive relation whose counts are valid."""
    (name,) = stratum.relations
    steps, bodies = exact.differences(name, draft)
    difference = draft.working_relation(name, "difference", NUMBER)
    steps += draft.derive(difference, bodies, reduce=Reduce.SUM, role=Role.APPROXIMATED, about=name)
    steps += exact.judge_added(name, draft)
    steps.append(When((Reference(difference),), tuple(_recount(name, draft))))
    return [*steps, *trace_rows(stratum, draft)]


def _recount(name: str, draft: Draft) -> list[Step]:
    """Return the steps that add Δc to the counts, and bring the relation to NEW."""
    count = count_relation(draft, name)
    columns = draft.variables(name)
    lead = working_goal(draft.working_relation(name, "difference", NUMBER), (*columns, _DIFFERENCE))
    before = Goal(logic.Literal(count, (*columns, _BEFORE)), Reference(count, State.OLD))
    unknown = Goal(logic.Literal(name, columns, True), Reference(name, State.OLD))
    total = logic.Condition("=", _AFTER, logic.Functor("+", (_BEFORE, _DIFFERENCE), NUMBER))
    zero = logic.Constant(0, NUMBER)

    outdated = draft.working_relation(name, "counted_out", NUMBER)
    counted = draft.working_relation(name, "counted", NUMBER)
    removed, added = draft.working_relation(name, "gone"), draft.working_relation(name, "came")
    stays = logic.Condition(">", _AFTER, zero)
    ends = logic.Condition("=", _AFTER, zero)
    smaller: list[Step] = [
        *draft.derive(outdated, [Body.led((*columns, _BEFORE), lead, before)]),
        *draft.derive(
            counted,
            [
                Body.led((*columns, _AFTER), lead, before, conditions=(total, stays)),
                Body.led((*columns, _DIFFERENCE), lead, unknown),
            ],
        ),
        *draft.derive(removed, [Body.led(columns, lead, before, conditions=(total, ends))]),
        *draft.derive(added, [Body.led(columns, lead, unknown)]),
        Remove(count, outdated),
        Add(count, counted),
        CancelOut(count),
    ]
    return [
        Accumulate(count, lead.source.relation, 1, tuple(smaller), added, removed),
        Remove(name, removed),
        Add(name, added),
    ]
