"""Self-maintainable updates: the change and the stored view suffice, no base relation is read.

Reference: F. W. Tompa, J. A. Blakeley, "Maintaining materialized views without accessing base
data", Information Systems 13(4), 1988, who call such updates autonomously computable.

Recognised are removals from a stored relation with one rule and no recursion, where every variable
of the literal that loses tuples is in the head:

    Δ⁻P = P ⋉ Δ⁻L

Every tuple of the view with these values was derived from a lost tuple, by this rule, and loses all
its derivations. (Additions to the only literal of a rule need no base relation either; `counting`
handles them.)

| symbol | name here |
|---|---|
| Δ⁻L | the lead |
| Δ⁻P, with its counts | `p•gone`, `p•counted_out` |

Example: `v(id, x, y) :- r(id, x), s(x, y)`; r(7, a) removed: all tuples v(7, a, _) are removed
and s is not read.
"""

from corollary.analysis.relevance import flip_signs
from corollary.analysis.strata import Stratum
from corollary.core.logic import Literal, Rule, Variable, Wildcard, head_arguments, variable_names
from corollary.core.pipeline import Reference
from corollary.core.plans import Remove, Role, Step
from corollary.core.states import State
from corollary.core.types import NUMBER
from corollary.maintain.delta import apply_selections, changed_literals
from corollary.maintain.draft import Body, Draft
from corollary.maintain.payload import count_relation, has_counts
from corollary.maintain.sip import Goal
from corollary.maintain.trace import trace_rows
from corollary.maintain.update import Update

_COUNT = Variable("count'", NUMBER)


def is_autonomous(stratum: Stratum, update: Update) -> bool:
    """Whether every change that a stratum may see is autonomously computable."""
    if stratum.is_recursive or stratum.aggregations or len(stratum.rules) != 1:
        return False
    if stratum.has_choice:  # a tuple that goes lets another one come
        return False
    (rule,) = stratum.rules
    (name,) = stratum.relations
    if update.is_virtual(name) or rule.is_lenient or name in update.redefined:
        return False
    return all(
        _is_determined(rule, position, sign)
        for position, literal in enumerate(rule.literals)
        for sign in _effects(literal, update)
    )


def _effects(literal: Literal, update: Update) -> frozenset[State]:
    signs = update.signs_of(literal.relation)
    return flip_signs(signs) if literal.negated else signs


def _is_determined(rule: Rule, position: int, sign: State) -> bool:
    if sign is State.ADDED:
        return False
    literal = rule.literals[position]
    head = {slot.name for slot in head_arguments(rule) if isinstance(slot, Variable)}
    has_all = not any(isinstance(slot, Wildcard) for slot in literal.slots)
    return not literal.negated and has_all and variable_names(literal) <= head


def plan(stratum: Stratum, draft: Draft) -> list[Step]:
    """Return the steps that maintain a stratum whose updates are autonomously computable."""
    (name,) = stratum.relations
    steps: list[Step] = []
    removed, counted = list[Body](), list[Body]()
    has_payload = has_counts(stratum) and name in draft.update.valid_payload
    for changed in changed_literals(draft, stratum.rules, stratum.relations, State.REMOVED):
        selection, chosen = apply_selections(draft, changed)
        steps += selection
        head = head_arguments(chosen.rule)
        lead, origin = chosen.lead, chosen.rule.origin
        view = Goal(Literal(name, head), Reference(name, State.OLD))
        removed.append(Body(head, (lead, view), (), origin, lead))
        if has_payload:
            full, count = (*head, _COUNT), count_relation(draft, name)
            beside = Goal(Literal(count, full), Reference(count, State.OLD))
            counted.append(Body(full, (lead, beside), (), origin, lead))
    out = draft.working_relation(name, "gone")
    steps += draft.derive(out, removed, role=Role.ACTUAL, about=name)
    if has_payload:
        rows = draft.working_relation(name, "counted_out", NUMBER)
        steps += [*draft.derive(rows, counted), Remove(count_relation(draft, name), rows)]
    return [*steps, Remove(name, out), *trace_rows(stratum, draft)]
