"""Exact differences: every instance of a rule that a change adds or removes, once and signed.

    exact_i:   literal i reads the change, those before it NEW, those after it OLD

An instance that is added or removed is found at the first of its literals that changed; one that
only a mixture of states has is found twice, with opposite signs. So the signed number of instances
with a head is the difference of the numbers in NEW and in OLD. `counting` sums it for each tuple,
`totals` for each group.
"""

from collections.abc import Callable, Iterable, Iterator

from corollary.analysis.relevance import flip_signs
from corollary.core import logic
from corollary.core.pipeline import Reference
from corollary.core.plans import Step
from corollary.core.states import State
from corollary.core.types import NUMBER
from corollary.maintain import delta
from corollary.maintain.draft import Body, Draft
from corollary.maintain.sip import Goal, has_fault

Head = tuple[logic.Variable | logic.Constant, ...]
HeadMaker = Callable[[logic.Rule, int], Head]
"""Makes the head of an instance of a rule that counts +1 or −1."""


def weighted_head(rule: logic.Rule, weight: int) -> Head:
    """Return the arguments of a rule's head, and a weight."""
    return (*logic.head_arguments(rule), logic.Constant(weight, NUMBER))


def differences(
    relation: str, draft: Draft, make_head: HeadMaker = weighted_head
) -> tuple[list[Step], list[Body]]:
    """Return the bodies of all instances of a relation's rules that are added or removed.

    Together they are a bag. The steps apply selections to changes, and come first.
    """
    steps: list[Step] = []
    bodies: list[Body] = []
    for rule in delta.unchanged_rules(draft, (relation,)):
        for changed in _changed_literals(rule, draft):
            selection, chosen = delta.apply_selections(draft, changed)
            steps += selection
            bodies.append(_exact(chosen, make_head))
    update = draft.update
    for rules, state, weight in (
        (update.added_rules, State.NEW, 1),
        (update.removed_rules, State.OLD, -1),
    ):
        chosen_rules = (rule for rule in rules if rule.head.relation == relation)
        bodies += [whole_body(rule, state, make_head(rule, weight)) for rule in chosen_rules]
    return steps, bodies


def _changed_literals(rule: logic.Rule, draft: Draft) -> Iterator[delta.ChangedLiteral]:
    """Yield every change of a literal of a rule, with its effect on the head's count."""
    for position, literal in enumerate(rule.literals):
        for sign in sorted(draft.update.signs_of(literal.relation)):
            effect = next(iter(flip_signs({sign}))) if literal.negated else sign
            yield delta.ChangedLiteral(
                rule, position, effect, draft.changes_of(literal.relation, sign)
            )


def _exact(changed: delta.ChangedLiteral, make_head: HeadMaker) -> Body:
    """Return exact_i: each instance counts +1 or −1."""

    def read(at: int, literal: logic.Literal) -> Goal:
        state = State.NEW if at < changed.position else State.OLD
        return Goal(literal, Reference(literal.relation, state))

    return delta.make_body(
        changed.rule,
        read,
        lead=changed.lead,
        position=changed.position,
        head=make_head(changed.rule, 1 if changed.sign is State.ADDED else -1),
        is_bag=True,
    )


def whole_body(rule: logic.Rule, state: State, head: Head) -> Body:
    """Return every instance of a rule in a state."""
    return delta.make_body(
        rule, delta.read_in_state(state), head=head, is_judged=state is State.NEW, is_bag=True
    )


def judge_added(relation: str, draft: Draft) -> list[Step]:
    """Return the step that judges new instances with expressions that may have no value.

    The pipelines exact_i mix states, so that an expression without a value there may be no error.
    """
    bodies = list(_judged_bodies(delta.unchanged_rules(draft, (relation,)), draft))
    return draft.derive(draft.working_relation(relation, "judged"), bodies) if bodies else []


def _judged_bodies(rules: Iterable[logic.Rule], draft: Draft) -> Iterator[Body]:
    for rule in rules:
        if any(has_fault(condition) for condition in rule.conditions):
            for changed in _changed_literals(rule, draft):
                if changed.sign is State.ADDED:
                    yield delta.make_body(
                        rule,
                        delta.read_in_state(State.NEW),
                        lead=changed.lead,
                        position=changed.position,
                        is_judged=True,
                    )
