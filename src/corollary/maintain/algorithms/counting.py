"""Counting: every stored tuple has the number of its derivations.

Reference: A. Gupta, I. S. Mumick, V. S. Subrahmanian, "Maintaining views incrementally", SIGMOD
1993, the counting algorithm for views without recursion.

    Δc(t) = Σ over rules and positions i of  ±1 for each instance of exact_i with head t
    c_new(t) = c_old(t) + Δc(t);   0 → positive adds t,  positive → 0 removes it

| symbol | name here |
|---|---|
| c(t) | `p•count`, whose last column is the count |
| Δc(t) | `p•difference` |

In exact_i the literals before i are read in NEW, those after i in OLD, so that an instance that is
added or removed is counted once, at the first literal that changed. A recursive relation cannot be
counted: a tuple on a cycle has derivations that depend on itself, and would never be removed.

Example: `v(x) :- r(x, y)`, r = {(1,a), (1,b)}, r(1,a) removed: Δc(1) = −1, c goes from 2 to 1 and
v(1) stays.
"""

from collections.abc import Iterator

from corollary.analysis.relevance import flip_signs
from corollary.analysis.strata import Stratum
from corollary.core import logic
from corollary.core.pipeline import Reference
from corollary.core.plans import Add, CancelOut, Reduce, Remove, Role, Step, When
from corollary.core.states import State
from corollary.core.types import NUMBER
from corollary.maintain import delta
from corollary.maintain.draft import Body, Draft, working_goal
from corollary.maintain.payload import count_relation
from corollary.maintain.sip import Goal, has_fault
from corollary.maintain.trace import trace_rows

_DIFFERENCE = logic.Variable("difference'", NUMBER)
_BEFORE = logic.Variable("before'", NUMBER)
_AFTER = logic.Variable("after'", NUMBER)


def plan(stratum: Stratum, draft: Draft) -> list[Step]:
    """Return the steps that maintain a stored, non-recursive relation whose counts are valid."""
    (name,) = stratum.relations
    steps: list[Step] = []
    bodies: list[Body] = []
    for rule in delta.unchanged_rules(draft, stratum.relations):
        for changed in _changed_literals(rule, draft):
            selection, chosen = delta.apply_selections(draft, changed)
            steps += selection
            bodies.append(_exact(chosen))
    update = draft.update
    for rules, state, weight in (
        (update.added_rules, State.NEW, 1),
        (update.removed_rules, State.OLD, -1),
    ):
        bodies += [_whole_rule(rule, state, weight) for rule in rules if rule.head.relation == name]
    difference = draft.working_relation(name, "difference", NUMBER)
    steps += draft.derive(difference, bodies, reduce=Reduce.SUM, role=Role.APPROXIMATED, about=name)
    steps += _judge_added(stratum, draft)
    steps.append(When((Reference(difference),), tuple(_recount(name, draft))))
    return [*steps, *trace_rows(stratum, draft)]


def _changed_literals(rule: logic.Rule, draft: Draft) -> Iterator[delta.ChangedLiteral]:
    """Yield every change of a literal of a rule, with its effect on the head's count."""
    for position, literal in enumerate(rule.literals):
        for sign in sorted(draft.update.signs_of(literal.relation)):
            effect = next(iter(flip_signs({sign}))) if literal.negated else sign
            yield delta.ChangedLiteral(
                rule, position, effect, draft.changes_of(literal.relation, sign)
            )


def _exact(changed: delta.ChangedLiteral) -> Body:
    """Return exact_i: each instance counts +1 or −1."""

    def read(at: int, literal: logic.Literal) -> Goal:
        state = State.NEW if at < changed.position else State.OLD
        return Goal(literal, Reference(literal.relation, state))

    weight = logic.Constant(1 if changed.sign is State.ADDED else -1, NUMBER)
    return delta.make_body(
        changed.rule,
        read,
        lead=changed.lead,
        position=changed.position,
        head=(*logic.head_arguments(changed.rule), weight),
        is_bag=True,
    )


def _whole_rule(rule: logic.Rule, state: State, weight: int) -> Body:
    """Return every instance of a rule that is itself added or removed."""
    head = (*logic.head_arguments(rule), logic.Constant(weight, NUMBER))
    return delta.make_body(
        rule, delta.read_in_state(state), head=head, is_judged=state is State.NEW, is_bag=True
    )


def _judge_added(stratum: Stratum, draft: Draft) -> list[Step]:
    """Return the step that judges new instances with expressions that may have no value.

    The pipelines exact_i mix states, so that an expression without a value there may be no error.
    """
    (name,) = stratum.relations
    bodies = [
        delta.make_body(
            rule,
            delta.read_in_state(State.NEW),
            lead=changed.lead,
            position=changed.position,
            is_judged=True,
        )
        for rule in delta.unchanged_rules(draft, stratum.relations)
        if any(has_fault(condition) for condition in rule.conditions)
        for changed in _changed_literals(rule, draft)
        if changed.sign is State.ADDED
    ]
    return draft.derive(draft.working_relation(name, "judged"), bodies) if bodies else []


def _recount(name: str, draft: Draft) -> list[Step]:
    """Return the steps that add Δc to the counts, and bring the relation to NEW."""
    count = count_relation(draft, name)
    columns = draft.variables(name)
    lead = working_goal(draft.working_relation(name, "difference", NUMBER), (*columns, _DIFFERENCE))
    before = Goal(logic.Literal(count, (*columns, _BEFORE)), Reference(count, State.OLD))
    unknown = Goal(logic.Literal(name, columns, True), Reference(name, State.OLD))
    total = logic.Condition("=", _AFTER, logic.Functor("+", (_BEFORE, _DIFFERENCE), NUMBER))
    zero = logic.Constant(0, NUMBER)

    def body(head: tuple[logic.Variable, ...], other: Goal, *conditions: logic.Condition) -> Body:
        return Body(head, (lead, other), conditions, logic.NO_RULE, lead)

    outdated = draft.working_relation(name, "counted_out", NUMBER)
    counted = draft.working_relation(name, "counted", NUMBER)
    removed, added = draft.working_relation(name, "gone"), draft.working_relation(name, "came")
    stays = logic.Condition(">", _AFTER, zero)
    ends = logic.Condition("=", _AFTER, zero)
    steps = [
        *draft.derive(outdated, [body((*columns, _BEFORE), before)]),
        *draft.derive(
            counted,
            [
                body((*columns, _AFTER), before, total, stays),
                body((*columns, _DIFFERENCE), unknown),
            ],
        ),
        *draft.derive(removed, [body(columns, before, total, ends)]),
        *draft.derive(added, [body(columns, unknown)]),
    ]
    steps += [Remove(count, outdated), Add(count, counted)]
    steps += [Remove(name, removed), Add(name, added)]
    return [*steps, CancelOut(count)]
