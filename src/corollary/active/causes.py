"""Causes: which changes are one step behind the tuples that came or went.

A tuple h came because of a rule `h :- L1, …, Lk` and a literal Li that has changed, the others in
NEW: add_i of the delta pipelines, read backwards. (For one that went: rem_i, the others in OLD.)

| symbol | name here |
|---|---|
| the tuples to explain | `given` |
| the changes of Li behind them | `i.j•cause`: rule i, literal j |

Example: `tc(x,z) :- tc(x,y), edge(y,z)`; tc(a,c) went: edge(b,c) went while tc(a,b) held.
"""

from collections.abc import Container, Iterator
from dataclasses import dataclass

from corollary.analysis.relevance import flipped
from corollary.core.pipeline import Reference
from corollary.core.plan import Plan, Step, working
from corollary.core.rules import Aggregation, Literal, Rule
from corollary.core.states import State
from corollary.core.terms import Constant, Variable
from corollary.maintain.delta import in_state, instance
from corollary.maintain.draft import Body, Draft
from corollary.maintain.sip import Goal
from corollary.maintain.update import Update


@dataclass(frozen=True, slots=True)
class Cause:
    """The change of a literal's relation that may be behind a tuple, and where its tuples are."""

    relation: str
    sign: State
    place: str


def causes(
    update: Update,
    head: tuple[str, State],
    given: str,
    known: Container[tuple[str, State]],
) -> tuple[Plan, tuple[Cause, ...]]:
    """Return the plan that finds what is one step behind some tuples, and where it will be.

    Args:
        update: all views of which are maintained.
        head: the relation, or event predicate, of the tuples, and whether they came or went.
        given: the relation that holds the tuples.
        known: the relations and signs whose changes can be read; a rule that reads an event
            predicate which is not among them is left out.
    """
    draft = Draft(update)
    draft.finished.update(update.new.relations)
    name, sign = head
    draft.types[given] = draft.types[name]
    found: list[Cause] = []
    steps: list[Step] = []
    for number, rule in enumerate(_rules(update, name, sign, known)):
        for place, literal in enumerate(rule.literals):
            change = _change(update, literal, sign)
            if change is None or change not in known:
                continue
            cause = Cause(*change, working(f"{number}.{place}", "cause"))
            draft.types[cause.place] = draft.types[cause.relation]
            slots = tuple(
                slot if isinstance(slot, Variable | Constant) else Variable(f"_{at}", type_)
                for at, (slot, type_) in enumerate(
                    zip(literal.slots, draft.types[cause.relation], strict=True)
                )
            )
            source = draft.event(cause.relation) or draft.changes(*change)
            lead = Goal(Literal(cause.relation, slots), source)
            asked = Goal(Literal(given, rule.head.slots), Reference(given))
            state = State.NEW if sign is State.ADDED else State.OLD
            body = instance(
                rule, in_state(state), lead=lead, place=place, goals=[asked], head=slots
            )
            steps += draft.derive(cause.place, [body])
            found.append(cause)
    for aggregation in update.new.aggregations:
        if aggregation.relation == name:
            for side in (State.ADDED, State.REMOVED):
                if (aggregation.body, side) in known:
                    cause = Cause(aggregation.body, side, working(side, "cause"))
                    steps += _touching(aggregation, cause, given, draft)
                    found.append(cause)
    return draft.plan(steps), tuple(found)


def _touching(aggregation: Aggregation, cause: Cause, given: str, draft: Draft) -> list[Step]:
    """Return the steps that find the changes of a body in the groups of some values."""
    draft.types[cause.place] = draft.types[cause.relation]
    row, value = draft.variables(cause.relation), Variable("value", draft.types[given][-1])
    lead = Goal(Literal(cause.relation, row), draft.changes(cause.relation, cause.sign))
    keys = tuple(row[at] for at in aggregation.groups)
    asked = Goal(Literal(given, (*keys, value)), Reference(given))
    body = Body(row, (lead, asked), (), aggregation.origin, lead)
    return draft.derive(cause.place, [body])


def _rules(
    update: Update, name: str, sign: State, known: Container[tuple[str, State]]
) -> Iterator[Rule]:
    program, active = update.new if sign is State.ADDED else update.old, update.new.active
    for rule in (*program.rules, *active.rules):
        events = (each.relation for each in rule.literals if each.relation in active.relations)
        if rule.head.relation == name and all((each, State.ADDED) in known for each in events):
            yield rule


def _change(update: Update, literal: Literal, sign: State) -> tuple[str, State] | None:
    """Return the change of a literal that lets a head come or go; None if there is none."""
    active = update.new.active
    marked = active.marked.get(literal.relation)
    if marked is not None:
        return marked if marked[1] in (State.ADDED, State.REMOVED) else None
    if literal.relation in active.relations:
        return None if literal.negated else (literal.relation, State.ADDED)
    (change,) = flipped({sign}) if literal.negated else {sign}
    return literal.relation, change
