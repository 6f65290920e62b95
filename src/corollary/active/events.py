"""Event predicates over a transaction's changes, evaluated when all views are maintained.

Reference: J. V. Harrison, S. W. Dietrich, "Integrating active and deductive rules" (1993),
section 4.

An event-condition pair is a rule whose body reads changes and both states:

    large_raise(E) ← Δhigh_salaried_rem(E, Old), Δhigh_salaried_add(E, New), New ≥ Old * 1.1

| symbol | name here |
|---|---|
| ec-pred | event predicate, `e•event` in a plan |
| Δp_add, Δp_rem | `+p`, `-p`: the changes of p |
| p_Old, p_New | `p@old`, `p` |
| relevant | `required_changes`: the relations whose changes the goals need, and of which sign |

They are ordinary rules, evaluated stratum by stratum. A literal that reads a change, or another
event predicate, leads its body, so that a rule whose event did not happen costs nothing; a virtual
relation in the same body is solved for the bindings of the event (`solve`), with one memo for all
rules.

Example: edge(b,d) removed from a→b→d; `lost(x,y) :- -link(x,y)`, link virtual:

| step | gives |
|---|---|
| propagate, filter | link•removed = bd, ad |
| evaluate | lost•event = bd, ad |
"""

from collections.abc import Collection, Container, Iterable, Iterator
from dataclasses import replace

from corollary.analysis.strata import Stratum, strata
from corollary.core.graph import reachable
from corollary.core.logic import NO_RULE, AnyAggregation, Literal, Rule, Wildcard
from corollary.core.pipeline import Reference
from corollary.core.plans import Plan, Step, When, effect_relation, event_relation
from corollary.core.program import ActiveRules, NormalProgram, Relation, relations_read
from corollary.core.states import CHANGES, SIGNS, State
from corollary.maintain.algorithms.seminaive import fixpoint
from corollary.maintain.draft import Body, Draft
from corollary.maintain.sip import Goal
from corollary.maintain.update import Update


def required_events(active: ActiveRules, goals: Iterable[str]) -> set[str]:
    """Return the event predicates that the goals depend on, themselves included."""
    reads = relations_read(active.rules, active.aggregations)
    below = reachable(goals, lambda name: reads.get(name, ()))
    return below.keys() & active.relations.keys()


def observed_change(event: str) -> tuple[str, State]:
    """Return the relation and sign of an event that is no event predicate.

    >>> observed_change("link"), observed_change("-link")
    (('link', <State.ADDED: 'added'>), ('link', <State.REMOVED: 'removed'>))
    """
    sign = SIGNS.get(event[:1])
    return (event, State.ADDED) if sign is None else (event[1:], sign)


def required_changes(active: ActiveRules, goals: Collection[str]) -> dict[str, frozenset[State]]:
    """Return the relations whose changes goals need, with the signs.

    A goal is an event predicate, or a relation whose additions are needed; or `+p` or `-p`.
    """
    events = required_events(active, goals)
    found: dict[str, set[State]] = {}
    for goal in goals:
        if goal not in active.relations:
            name, sign = observed_change(goal)
            found.setdefault(name, set()).add(sign)
    for read in _read(active, events):
        relation, state = active.marked.get(read, ("", State.NEW))
        if state in CHANGES:
            found.setdefault(relation, set()).add(state)
    return {name: frozenset(signs) for name, signs in found.items()}


def _read(active: ActiveRules, events: Collection[str]) -> Iterator[str]:
    """Yield the relations that the rules of event predicates read, with repetitions."""
    reads = relations_read(active.rules, active.aggregations)
    for event in events:
        yield from reads.get(event, ())


def has_observable_change(
    before: NormalProgram, after: NormalProgram, changed: Collection[str]
) -> bool:
    """Whether an event could happen: base relations or the rules of views have changed.

    Changes of the active rules themselves are not events.
    """
    if changed:
        return True
    if before is after:
        return False
    # The old program may have what active rules of the new one query.
    queries = {*before.active.queries, *after.active.queries}
    return _views(before, queries) != _views(after, queries)


def _views(
    program: NormalProgram, queries: Container[str]
) -> tuple[frozenset[Rule], frozenset[AnyAggregation]]:
    return (
        frozenset(rule for rule in program.rules if rule.head.relation not in queries),
        frozenset(each for each in program.aggregations if each.relation not in queries),
    )


def evaluate_events(draft: Draft, goals: Collection[str]) -> list[Step]:
    """Return the steps that evaluate event predicates after all views are maintained."""
    active = draft.update.new.active
    events = required_events(active, goals)
    steps: list[Step] = []
    for stratum in strata(_as_program(active)):
        if not events.isdisjoint(stratum.relations):
            evaluated, results = fixpoint(stratum, draft, State.NEW)
            for name, result in results.items():
                target = event_relation(name)
                draft.types[target] = draft.types[name]
                evaluated.append(draft.copy(target, Reference(result)))
            needed = _prerequisites(stratum, draft)
            steps += evaluated if needed is None else [When(needed, tuple(evaluated))]
    for name in active.triggers:
        if name in events:
            steps += _effect(name, draft)
    return steps


def event_plan(update: Update, goals: Collection[str]) -> Plan:
    """Return the plan that evaluates event predicates, when all views are maintained."""
    draft = Draft(update)
    draft.readable.update(update.new.relations)
    return draft.finish(evaluate_events(draft, goals))


def _effect(trigger: str, draft: Draft) -> list[Step]:
    """Return the steps that find the effective change of a trigger.

    Deletes apply first, then inserts: a tuple that a trigger of the same relation inserts stays.
    Copies are added to those that a bag has, and removed if there are any.
    """
    program = draft.update.new
    relation, sign = program.active.triggers[trigger]
    base = Reference(program.bases.get(relation, relation))
    head, target = Reference(event_relation(trigger)), effect_relation(trigger)
    draft.types[target] = draft.types[trigger]
    if relation in program.bags.values():
        if sign is State.ADDED:
            return [draft.copy(target, head)]
        return _with_copies(target, head, base, draft)
    if sign is State.ADDED:
        return [draft.copy(target, head, without=(base,))]
    inserting = next(
        (name for name, each in program.active.triggers.items() if each == (relation, State.ADDED)),
        None,
    )
    deletes = draft.intersect(target, head, base)
    if inserting is None:
        return [deletes]
    return [replace(deletes, without=(Reference(event_relation(inserting)),))]


def _with_copies(target: str, head: Reference, base: Reference, draft: Draft) -> list[Step]:
    """Return the steps that find which copies to remove are of rows that a bag has."""
    *row, count = draft.variables(target)
    lead = Goal(Literal(head.relation, (*row, count)), head)
    rows = Goal(Literal(base.relation, (*row, Wildcard())), base)
    return draft.derive(target, [Body((*row, count), (lead, rows), (), NO_RULE, lead)])


def _prerequisites(stratum: Stratum, draft: Draft) -> tuple[Reference, ...] | None:
    """Return changes and events without which the stratum is empty; None if it may not be."""
    found: dict[Reference, None] = {}
    for rule in stratum.rules:
        lead = next(
            (
                source
                for literal in rule.literals
                if not literal.negated
                and literal.relation not in stratum.relations
                and (source := draft.event_source(literal.relation)) is not None
            ),
            None,
        )
        is_derived = any(each.relation in stratum.relations for each in rule.literals)
        if lead is not None:
            found[lead] = None
        elif not is_derived:
            return None
    for aggregation in stratum.aggregations:
        source = draft.event_source(aggregation.body)
        if source is None:
            return None
        found[source] = None
    return tuple(found)


def _as_program(active: ActiveRules) -> NormalProgram:
    """Return the active rules as a program, in which all other relations they read are base."""
    every = _read(active, active.relations)
    below = {
        name: Relation(name, (), (), is_derived=False)
        for name in every
        if name not in active.relations
    }
    relations = {**below, **active.relations}
    return NormalProgram(relations, active.rules, active.aggregations, {})
