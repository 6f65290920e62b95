"""The assignments of an aggregate's body: all of them, or those that a change adds and removes.

Where rewriting made the body of one conjunction, it is *inlined*: its rule is read in its place,
and nothing is stored of it. An assignment then is an instance of the rule, and no tuple of the body
has two: the head has all its variables.
"""

from collections.abc import Sequence
from dataclasses import replace

from corollary.core import logic, plans
from corollary.core.pipeline import Reference
from corollary.core.states import State
from corollary.core.types import NUMBER, Type
from corollary.maintain import exact
from corollary.maintain.delta import make_body, read_in_state
from corollary.maintain.draft import Body, Draft, working_goal
from corollary.maintain.payload import Part, Payload, declare_parts, totals_relation
from corollary.maintain.sip import Goal


def difference_relation(aggregation: logic.Aggregation, draft: Draft) -> str:
    """Return δ: the keys, the terms (a count has none), and the number of assignments."""
    return _weighted_relation(aggregation, draft, "difference")


def _weighted_relation(aggregation: logic.Aggregation, draft: Draft, role: str) -> str:
    """Return a relation of keys, terms and the number of assignments."""
    name = plans.working_relation(aggregation.relation, role)
    row = draft.types[aggregation.body]
    draft.types[name] = (*_project(aggregation, row), NUMBER)
    return name


def _project(aggregation: logic.Aggregation, row: tuple[Type, ...]) -> tuple[Type, ...]:
    return tuple(row[at] for at in (*aggregation.groups, *aggregation.values))


def assignment_head(aggregation: logic.Aggregation, row: exact.Head, weight: int) -> exact.Head:
    """Return the keys and the terms of a row of the body, and a weight."""
    chosen = (row[at] for at in (*aggregation.groups, *aggregation.values))
    return (*chosen, logic.Constant(weight, NUMBER))


def weighted_aggregation(aggregation: logic.Aggregation, body: str) -> logic.Aggregation:
    """Return an aggregation over a relation of keys, terms and numbers instead of its body."""
    length = len(aggregation.groups)
    places = {at: place for place, at in enumerate(aggregation.values, length)}
    number = length + len(places)
    accumulators = []
    for each in aggregation.accumulators:
        value = None if each.value is None else places[each.value]
        others = tuple(places[at] for at in each.others)
        weights = tuple(places[at] for at in each.weights)
        weights += (number,) if each.is_holistic else ()
        accumulators.append(replace(each, value=value, others=others, weights=weights))
    return replace(
        aggregation, body=body, groups=tuple(range(length)), accumulators=tuple(accumulators)
    )


def difference_steps(aggregation: logic.Aggregation, draft: Draft) -> list[plans.Step]:
    """Return the steps that derive δ, each changed assignment once."""
    update, body = draft.update, aggregation.body
    target = difference_relation(aggregation, draft)
    if update.new.relations[body].is_inlined:

        def make_head(rule: logic.Rule, weight: int) -> exact.Head:
            return assignment_head(aggregation, logic.head_arguments(rule), weight)

        steps, bodies = exact.differences(body, draft, make_head)
        judged = exact.judge_added(body, draft)
        return [*steps, *draft.derive(target, bodies, reduce=plans.Reduce.SUM), *judged]
    row = draft.variables(body)
    bodies = []
    for sign in sorted(update.signs_of(body)):
        goal = Goal(logic.Literal(body, row), draft.changes_of(body, sign))
        head = assignment_head(aggregation, row, 1 if sign is State.ADDED else -1)
        bodies.append(Body(head, (goal,), (), aggregation.origin, goal, is_bag=True))
    return draft.derive(target, bodies, reduce=plans.Reduce.SUM)


# --- evaluation ----------------------------------------------------------------------------------


def evaluate(
    aggregation: logic.AnyAggregation, draft: Draft, state: State, payload: Payload | None
) -> tuple[list[plans.Step], dict[str, str]]:
    """Return the steps that aggregate the body in a state, and the relations with the results.

    With payload, the relations of totals are results too.
    """
    name = aggregation.relation
    target = draft.working_relation(name, "next")
    if isinstance(aggregation, logic.Windowing):
        steps, source = _read_body(aggregation, draft, state)
        return [*steps, plans.Window(target, aggregation, source)], {name: target}
    parts = declare_parts(draft, aggregation)
    if len(parts) > 1:
        return _evaluate_parts(aggregation, parts, draft, state, with_payload=payload is not None)
    body = draft.tables.programs[state].relations.get(aggregation.body)
    is_shared = state is State.NEW and aggregation.body in draft.shared_bodies
    is_inlined = body is not None and body.is_inlined and not is_shared
    if is_inlined and not aggregation.values:
        bodies = _weighted_bodies(aggregation, draft, state, Reference(aggregation.body, state))
        return draft.derive(target, bodies, reduce=plans.Reduce.SUM), {name: target}
    if payload is None:
        steps, source = _read_body(aggregation, draft, state)
        return [*steps, plans.Aggregate(target, aggregation, source)], {name: target}
    terms = tuple(draft.types[aggregation.body][at] for at in aggregation.values)
    kept = totals_relation(draft, parts[0])
    found = plans.working_relation(name, "found")
    draft.types[found] = draft.types[kept]
    # Not δ, which a plan has beside it: an engine makes one query of their join and its groups.
    every = _weighted_relation(aggregation, draft, "assignments")
    if is_inlined or payload is Payload.VALUES:
        bodies = _weighted_bodies(aggregation, draft, state, Reference(aggregation.body, state))
        steps = draft.derive(every, bodies, reduce=plans.Reduce.SUM)
        aggregation, source = weighted_aggregation(aggregation, every), Reference(every)
    else:
        steps, source = _read_body(aggregation, draft, state)
    if payload is Payload.VALUES:
        with_null = aggregation.has_every_group or aggregation.holistic is not None
        values = _values(draft, every, found, with_null=with_null)
        steps += [*values, plans.Aggregate(target, aggregation, source)]
    else:
        steps.append(plans.Total(found, aggregation, source, is_weighted=is_inlined))
        steps.append(plans.ReadTotals(target, aggregation, Reference(found), terms))
    return steps, {name: target, kept: found}


def _evaluate_parts(
    aggregation: logic.Aggregation,
    parts: Sequence[Part],
    draft: Draft,
    state: State,
    *,
    with_payload: bool,
) -> tuple[list[plans.Step], dict[str, str]]:
    """Return the same for an aggregate of several parts.

    Sums of floats are not taken together with anything: few engines have a form for them.
    """
    name, length = aggregation.relation, len(aggregation.groups)
    target = draft.working_relation(name, "next")
    steps, source = _read_body(aggregation, draft, state)
    results = {name: target}
    types = draft.types[source.relation]
    others, goals = list[int](), list[Goal]()
    row = draft.variables(name)
    for part in parts:
        own, kept = part.aggregation, part.kept
        if with_payload and part.payload is not None and kept not in results:
            found = plans.working_relation(own.relation, "found")
            draft.types[found] = draft.types[totals_relation(draft, part)]
            results[kept] = found
            if part.payload is not Payload.VALUES and own.values:
                steps.append(plans.Total(found, own, source))
            else:
                bodies = _weighted_bodies(own, draft, state, source)
                steps += draft.derive(found, bodies, reduce=plans.Reduce.SUM)
        if part.payload is not Payload.DIGITS:
            others += part.places
            continue
        next_ = plans.working_relation(own.relation, "next")
        draft.types[next_] = draft.types[own.relation]
        if kept in results:
            terms = tuple(types[at] for at in own.values)
            steps.append(plans.ReadTotals(next_, own, Reference(results[kept]), terms))
        else:
            steps.append(plans.Aggregate(next_, own, source))
        goals.append(
            working_goal(next_, (*row[:length], *(row[length + at] for at in part.places)))
        )
    if not goals:
        return [*steps, plans.Aggregate(target, aggregation, source)], results
    if others:
        rest = plans.working_relation(name, "rest")
        columns = (*range(length), *(length + at for at in others))
        draft.types[rest] = tuple(draft.types[name][at] for at in columns)
        accumulators = tuple(aggregation.accumulators[at] for at in others)
        steps.append(plans.Aggregate(rest, replace(aggregation, accumulators=accumulators), source))
        goals.append(working_goal(rest, tuple(row[at] for at in columns)))
    return [*steps, *draft.derive(target, [Body(row, tuple(goals), (), logic.NO_RULE)])], results


def _weighted_bodies(
    aggregation: logic.Aggregation, draft: Draft, state: State, source: Reference
) -> list[Body]:
    """Return the bodies of all assignments in a state, each with the weight 1.

    They are read from a source, unless the body is inlined: its rules are read then, even where
    others have its rows, so that these need not be made for it.
    """
    program, body = draft.tables.programs[state], aggregation.body
    if body in draft.shared_bodies and state is State.NEW:
        source = _rows_reference(body)
    elif program.relations[body].is_inlined:
        return [
            exact.whole_body(
                rule, state, assignment_head(aggregation, logic.head_arguments(rule), 1)
            )
            for rule in draft.update.rules_of(body, state)
        ]
    row = draft.variables(body)
    goal = Goal(logic.Literal(source.relation, row), source)
    head = assignment_head(aggregation, row, 1)
    return [Body(head, (goal,), (), aggregation.origin, is_bag=True)]


def _read_body(
    aggregation: logic.AnyAggregation, draft: Draft, state: State
) -> tuple[list[plans.Step], Reference]:
    """Return where all assignments are in a state, and the steps that derive them, if necessary."""
    name = aggregation.body
    if state is State.NEW and name in draft.shared_bodies:
        return [], _rows_reference(name)
    source = draft.source_of(name, state)
    if draft.tables.is_available(source):
        return [], source
    # The rows are its own: an engine can make one query of their join and its groups.
    rows = _rows_reference(aggregation.relation)
    if is_read_through(name, draft, state):
        return derive_rows(name, rows.relation, draft, state), rows
    draft.types[rows.relation] = draft.types[name]
    slots = draft.variables(name)
    goal = Goal(logic.Literal(name, slots), source)
    return draft.derive(rows.relation, [Body(slots, (goal,), (), aggregation.origin)]), rows


def is_read_through(body: str, draft: Draft, state: State = State.NEW) -> bool:
    """Whether all assignments of a body are derived by its rules, and nobody is called for them.

    So it is with inlined bodies, and with virtual relations that are defined by rules alone.
    """
    relation = draft.tables.programs[state].relations[body]
    if relation.is_inlined:
        return True
    if not (relation.is_derived and relation.is_virtual) or relation.limit is not None:
        return False
    stratum = draft.tables.stratum_of(body, state)
    return not stratum.is_recursive and not stratum.aggregations


def derive_shared_rows(body: str, draft: Draft) -> list[plans.Step]:
    """Return the steps that derive the assignments of a body for all aggregates that read it."""
    return derive_rows(body, _rows_reference(body).relation, draft, State.NEW)


def derive_rows(body: str, target: str, draft: Draft, state: State) -> list[plans.Step]:
    """Return the steps that derive the assignments of a body that is read through its rules."""
    draft.types[target] = draft.types[body]
    bodies = [
        make_body(rule, read_in_state(state), is_judged=state is State.NEW)
        for rule in draft.update.rules_of(body, state)
    ]
    return draft.derive(target, bodies)


def _rows_reference(owner: str) -> Reference:
    """Return where the assignments of an aggregate are, or those of a body that several share."""
    return Reference(plans.working_relation(owner, "rows"))


def _values(draft: Draft, every: str, target: str, *, with_null: bool) -> list[plans.Step]:
    """Return the step that copies the values of groups, with or without null."""
    if with_null:
        return [draft.copy(target, Reference(every))]
    columns = draft.variables(every)
    lead = working_goal(every, columns)
    present = logic.Condition("=", columns[-2], columns[-2])
    return draft.derive(target, [Body.led(columns, lead, conditions=[present])])
