"""Causes: the changes that directly caused tuples to be added or removed.

A tuple h was added because of a rule `h :- L1, …, Lk` and a change of a literal Li, the others in
NEW: add_i of the delta pipelines, read backwards. (For a removed one: rem_i, the others in OLD.)

| symbol | name here |
|---|---|
| the tuples to explain | `given` |
| the changes of Li that caused them | `i.j•cause`: rule i, literal j |

Example: `tc(x,z) :- tc(x,y), edge(y,z)`; tc(a,c) was removed: edge(b,c) was, with tc(a,b) in OLD.
"""

from collections.abc import Container, Iterator

from corollary.analysis.relevance import flip_signs
from corollary.core.logic import AnyAggregation, Constant, Literal, Rule, Slot, Variable, Wildcard
from corollary.core.pipeline import Reference
from corollary.core.plans import Plan, Step, working_relation
from corollary.core.states import CHANGES, State
from corollary.data_class import dataclass
from corollary.maintain.delta import make_body, read_in_state
from corollary.maintain.draft import Body, Draft
from corollary.maintain.sip import Goal
from corollary.maintain.update import Update


@dataclass(frozen=True, slots=True)
class CausingChange:
    """A change that may have caused tuples, and the working relation of its tuples."""

    relation: str
    sign: State
    target: str


def plan_causes(
    update: Update, head: tuple[str, State], given: str, known: Container[tuple[str, State]]
) -> tuple[Plan, tuple[CausingChange, ...]]:
    """Return the plan that finds the direct causes of some tuples, and the causes it finds.

    Args:
        update: an update whose views are all maintained.
        head: the relation, or event predicate, of the tuples, and their sign.
        given: the relation that holds the tuples.
        known: the relations and signs whose changes can be read; a rule that reads an event
            predicate which is not among them is left out.
    """
    draft = Draft(update)
    draft.readable.update(update.new.relations)  # all views can be read as they are
    name, sign = head
    draft.types[given] = draft.types[name]
    found: list[CausingChange] = []
    steps: list[Step] = []
    for number, rule in enumerate(_rules(update, name, sign, known)):
        for place, literal in enumerate(rule.literals):
            change = _change(update, literal, sign)
            if change is None or change not in known:
                continue
            cause = CausingChange(*change, working_relation(f"{number}.{place}", "cause"))
            draft.types[cause.target] = draft.types[cause.relation]
            slots = tuple(
                slot if isinstance(slot, Variable | Constant) else Variable(f"_{at}'", type_)
                for at, (slot, type_) in enumerate(
                    zip(literal.slots, draft.types[cause.relation], strict=True)
                )
            )
            source = draft.event_source(cause.relation) or draft.changes_of(*change)
            lead = Goal(Literal(cause.relation, slots), source)
            effects = Goal(Literal(given, rule.head.slots), Reference(given))
            state = State.NEW if sign is State.ADDED else State.OLD
            body = make_body(
                rule, read_in_state(state), lead=lead, position=place, goals=[effects], head=slots
            )
            steps += draft.derive(cause.target, [body])
            found.append(cause)
    for aggregation in update.new.aggregations:
        if aggregation.relation == name:
            for side in CHANGES:
                if (aggregation.body, side) in known:
                    cause = CausingChange(aggregation.body, side, working_relation(side, "cause"))
                    steps += _group_changes(aggregation, cause, given, draft)
                    found.append(cause)
    return draft.finish(steps), tuple(found)


def _group_changes(
    aggregation: AnyAggregation, cause: CausingChange, given: str, draft: Draft
) -> list[Step]:
    """Return the steps that find the changes of an aggregate's body in the groups of its tuples."""
    draft.types[cause.target] = draft.types[cause.relation]
    row = draft.variables(cause.relation)
    lead = Goal(Literal(cause.relation, row), draft.changes_of(cause.relation, cause.sign))
    columns: list[Slot] = [Wildcard()] * len(draft.types[given])
    for at, column in zip(aggregation.keys, aggregation.groups, strict=True):
        columns[at] = row[column]
    effects = Goal(Literal(given, tuple(columns)), Reference(given))
    body = Body(row, (lead, effects), (), aggregation.origin, lead)
    return draft.derive(cause.target, [body])


def _rules(
    update: Update, name: str, sign: State, known: Container[tuple[str, State]]
) -> Iterator[Rule]:
    program, active = update.new if sign is State.ADDED else update.old, update.new.active
    for rule in (*program.rules, *active.rules):
        events = (each.relation for each in rule.literals if each.relation in active.relations)
        if rule.head.relation == name and all((each, State.ADDED) in known for each in events):
            yield rule


def _change(update: Update, literal: Literal, sign: State) -> tuple[str, State] | None:
    """Return the change of a literal that can add or remove a head; None if there is none."""
    active = update.new.active
    marked = active.marked.get(literal.relation)
    if marked is not None:
        return marked if marked[1] in CHANGES else None
    if literal.relation in active.relations:
        return None if literal.negated else (literal.relation, State.ADDED)
    (change,) = flip_signs({sign}) if literal.negated else {sign}
    return literal.relation, change
