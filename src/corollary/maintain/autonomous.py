"""Self-maintainable updates: the change and the stored view say it all, no base relation is read.

Reference: F. W. Tompa, J. A. Blakeley, "Maintaining materialized views without accessing base
data", Information Systems 13(4), 1988, who call such updates autonomously computable.

Two kinds are recognised, for a stored relation with one rule and no recursion:

    removals   every variable of the literal that loses tuples is in the head: whatever the view
               holds with these values was derived from a lost tuple, by this rule, so it goes
    additions  the literal that gains tuples is the only one of the rule

| symbol | name here |
|---|---|
| i-δ, d-δ: the change of the base relation | the lead |
| the part of the view that goes | `p•gone` |
| the part that comes | `p•came` |

Example: `v(id, x, y) :- r(id, x), s(x, y)`; r(7, a) removed: all tuples v(7, a, _) go,
and s is not read.
"""

from collections.abc import Iterator

from corollary.analysis.relevance import flipped
from corollary.analysis.strata import Stratum
from corollary.core.pipeline import Reference
from corollary.core.plan import Grow, Remove, Role, Step
from corollary.core.rules import Literal, Rule, head_of, names_in
from corollary.core.states import State
from corollary.core.terms import Variable, Wildcard
from corollary.maintain.delta import Changed, changed_literals, in_state, instance, select
from corollary.maintain.draft import Body, Draft
from corollary.maintain.dred import told
from corollary.maintain.payload import is_absent
from corollary.maintain.sip import Goal
from corollary.maintain.update import Update


def is_autonomous(stratum: Stratum, update: Update) -> bool:
    """Whether every change that may come to a stratum is autonomously computable."""
    if stratum.is_recursive or stratum.aggregations or len(stratum.rules) != 1:
        return False
    (rule,) = stratum.rules
    (name,) = stratum.relations
    if update.is_virtual(name) or rule.is_lenient or rule in update.added_rules:
        return False
    if any(each.head.relation == name for each in update.removed_rules):
        return False
    return all(
        _is_determined(rule, place, sign)
        for place, literal in enumerate(rule.literals)
        for sign in _effects(literal, update)
    )


def _effects(literal: Literal, update: Update) -> frozenset[State]:
    signs = update.signs(literal.relation)
    return flipped(signs) if literal.negated else signs


def _is_determined(rule: Rule, place: int, sign: State) -> bool:
    if sign is State.ADDED:
        return len(rule.literals) == 1
    literal = rule.literals[place]
    head = {slot.name for slot in head_of(rule) if isinstance(slot, Variable)}
    has_all = not any(isinstance(slot, Wildcard) for slot in literal.slots)
    return not literal.negated and has_all and names_in(literal) <= head


def plan(stratum: Stratum, draft: Draft) -> list[Step]:
    """Return the steps that maintain a stratum whose updates are autonomously computable."""
    (name,) = stratum.relations
    steps: list[Step] = []
    gone, came = list[Body](), list[Body]()
    for changed in _changes(stratum, draft):
        selection, chosen = select(draft, changed)
        steps += selection
        if chosen.sign is State.REMOVED:
            head = head_of(chosen.rule)
            view = Goal(Literal(name, head), Reference(name, State.OLD))
            gone.append(Body(head, (chosen.lead, view), (), chosen.rule.origin, chosen.lead))
        else:
            came.append(
                instance(
                    chosen.rule,
                    in_state(State.NEW),
                    lead=chosen.lead,
                    place=chosen.place,
                    goals=[is_absent(chosen.rule)],
                    is_judged=True,
                )
            )
    if gone:
        out = draft.make(name, "gone")
        steps += draft.derive(out, gone, role=Role.ACTUAL, about=name)
        steps.append(Remove(name, out))
    if came:
        new = draft.make(name, "came")
        steps += draft.derive(new, came, role=Role.ACTUAL, about=name)
        steps.append(Grow(name, new))
    return [*steps, *told(stratum, draft, "")]


def _changes(stratum: Stratum, draft: Draft) -> Iterator[Changed]:
    for sign in (State.REMOVED, State.ADDED):
        yield from changed_literals(draft, stratum.rules, stratum.relations, sign)
