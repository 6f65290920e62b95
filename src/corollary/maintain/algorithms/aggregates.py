"""Aggregates: only the groups that a change touches are aggregated again.

    touched = keys of (ADDED ∪ REMOVED of the body)
    Δ⁺A = A_new(touched) − A_old(touched),   Δ⁻A = A_old(touched) − A_new(touched)

| symbol | name here |
|---|---|
| touched | `a•touched` |
| A_new(touched), A_old(touched) | `a•now`, `a•was` |

A stored relation is looked up in OLD; NEW, and any virtual relation, is solved for the touched
keys. A group that becomes empty has no tuple in NEW, a new one has none in OLD, and a row that
moves touches two groups: all are ordinary cases.

Of window functions, groups are partitions. Where the body is stored, the step `CompareWindows`
finds Δ⁺A and Δ⁻A: it reads the rows near a change, or the first ones, where that is enough.

Example: `total(k, s)`, r = {(x,1), (x,2), (y,5)}; r(x,2) removed: touched {x}; now (x,1), was
(x,3).
"""

from corollary.analysis.keys import relation_keys
from corollary.analysis.strata import Stratum
from corollary.core.logic import Literal, Wildcard, Windowing
from corollary.core.pipeline import Reference
from corollary.core.plans import Add, CompareWindows, Remove, Role, Step, When, working_relation
from corollary.core.states import State
from corollary.core.windows import arranging_order
from corollary.maintain.draft import Body, Draft, working_goal
from corollary.maintain.sip import Goal
from corollary.maintain.trace import trace_rows


def plan(stratum: Stratum, draft: Draft) -> list[Step]:
    """Return the steps that maintain an aggregate."""
    (aggregation,) = stratum.aggregations
    name, body = aggregation.relation, aggregation.body
    columns = draft.variables(name)
    keys = tuple(columns[at] for at in aggregation.keys)
    touched = working_relation(name, "touched")
    draft.types[touched] = tuple(draft.types[name][at] for at in aggregation.keys)
    row = draft.variables(body)
    steps: list[Step] = []
    changes = [draft.changes_of(body, sign) for sign in sorted(draft.update.signs_of(body))]
    bodies = [
        Body(
            tuple(row[at] for at in aggregation.groups),
            (goal := Goal(Literal(body, row), source),),
            (),
            aggregation.origin,
            goal,
        )
        for source in changes
    ]
    steps += draft.derive(touched, bodies, role=Role.APPROXIMATED, about=name)
    lead = working_goal(touched, keys)
    groups_of: list[Step] = []
    for role, state in (("now", State.NEW), ("was", State.OLD)):
        goal = Goal(Literal(name, columns), Reference(name, state))
        groups = Body(columns, (lead, goal), (), aggregation.origin, lead)
        groups_of += draft.derive(draft.working_relation(name, role), [groups])
    was, now = (
        Reference(draft.working_relation(name, "was")),
        Reference(draft.working_relation(name, "now")),
    )
    if draft.update.is_virtual(name):
        added, removed = (
            draft.working_relation(name, State.ADDED),
            draft.working_relation(name, State.REMOVED),
        )
    else:
        added, removed = draft.working_relation(name, "came"), draft.working_relation(name, "gone")
    compare: list[Step] = [
        draft.copy(added, now, without=(was,), role=Role.ACTUAL, about=name),
        draft.copy(removed, was, without=(now,), role=Role.ACTUAL, about=name),
    ]
    settle: list[Step] = []
    if not draft.update.is_virtual(name):
        settle += [Remove(name, removed), Add(name, added)]
    if not isinstance(aggregation, Windowing) or not _is_arranged(aggregation, draft):
        when = When((Reference(touched),), (*groups_of, *compare, *settle))
        return [*steps, when, *trace_rows(stratum, draft)]
    order = arranging_order(aggregation, len(draft.types[body]))
    found = (*steps, When((Reference(touched),), (*groups_of, *compare)))
    read = _read_columns(aggregation, draft)
    return [CompareWindows(added, removed, aggregation, body, order, read, found), *settle]


def _is_arranged(windowing: Windowing, draft: Draft) -> bool:
    """Whether the body of windows is stored, and so can be arranged in their order."""
    body = windowing.body
    if draft.is_traced or draft.update.is_virtual(body):
        return False
    states = (State.OLD, State.NEW)
    return all(draft.tables.is_available(Reference(body, state)) for state in states)


def _read_columns(windowing: Windowing, draft: Draft) -> tuple[int, ...]:
    """Return the columns of a body that readers of its windows ask for, and those of its key."""
    update, name = draft.update, windowing.relation
    every = tuple(range(len(draft.types[windowing.body])))
    if not update.is_virtual(name) or name in update.watched:
        return every
    found: set[int] = set()
    for program in (update.old, update.new):
        found |= {*relation_keys(program).get(windowing.body, every)}
        if any(each.body == name for each in program.aggregations):
            return every
        for rule in program.rules:
            for literal in rule.literals:
                if literal.relation == name:
                    slots = enumerate(literal.slots)
                    found |= {at for at, slot in slots if not isinstance(slot, Wildcard)}
    return tuple(at for at in every if at in found)
