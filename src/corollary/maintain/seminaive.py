"""Semi-naive evaluation of a stratum, and insertion into it.

Reference: F. Bancilhon, "Naive evaluation of recursively defined relations" (1986); the form with
one variant per recursive literal is that of Balbin and Ramamohanarao (1987).

A tuple derived in round n+1 uses at least one tuple that was new in round n. So a rule
`p :- …, p1, …, pk, …` with k literals of its own stratum has k variants:

    variant i:   p1 … p(i-1) in ALL,   pi in NEW-IN-LAST-ROUND,   p(i+1) … pk in OLD-OF-LAST-ROUND

| symbol | name here |
|---|---|
| ALL | `p•so_far`, state NEW |
| NEW-IN-LAST-ROUND (ΔP) | `p•so_far`, state ADDED |
| OLD-OF-LAST-ROUND | `p•so_far`, state OLD |
| candidates of a round, less ALL | `p•next` |

Stages: (1) rules without a literal of the stratum give the first round; (2) the loop derives the
variants, drops what is known and extends; it holds before every round that ALL has every tuple with
a derivation of that height; (3) when a round brings nothing, ALL is the relation.

Insertion into a stored stratum is the same loop, begun with the seeds of a change instead of all
tuples (`insert`). Ranks are the numbers of the rounds at first, and 1 + the largest rank of the
premises for what is inserted later.

Example: edges a→b→c→d, `tc(x,y) :- edge(x,y). tc(x,z) :- tc(x,y), edge(y,z).`

| round | tc•next |
|---|---|
| first | ab bc cd |
| 1 | ac bd |
| 2 | ad |
| 3 | nothing |
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from corollary.analysis.strata import Stratum, strata
from corollary.core.pipeline import Reference
from corollary.core.plan import (
    Aggregate,
    Call,
    Extend,
    Grow,
    Loop,
    Number,
    Place,
    Plan,
    Reduce,
    Step,
    Store,
    procedure_of,
    working,
)
from corollary.core.program import NormalProgram
from corollary.core.rules import Literal, Rule
from corollary.core.states import State
from corollary.core.statistics import Statistics
from corollary.core.terms import Constant
from corollary.core.types import NUMBER
from corollary.maintain.delta import in_state, instance, recursive_places
from corollary.maintain.draft import Body, Draft
from corollary.maintain.payload import (
    Payload,
    count_of,
    is_absent,
    rank_of,
    ranked_literals,
    total_of,
)
from corollary.maintain.sip import Goal
from corollary.maintain.update import EMPTY, Update


def evaluate(
    program: NormalProgram, statistics: Statistics, places: Mapping[str, Place] | None = None
) -> Plan:
    """Return the plan that evaluates a program once, one stratum after another.

    Args:
        program: what to evaluate.
        statistics: of its relations.
        places: of strata that run elsewhere, by procedure.
    """
    relations = {name: replace(each, is_virtual=False) for name, each in program.relations.items()}
    draft = Draft(Update(EMPTY, replace(program, relations=relations), {}, statistics))
    for stratum in strata(program):
        draft.procedures[procedure_of(stratum.relations)] = tuple(plan(stratum, draft))
        draft.finished.update(stratum.relations)
    elsewhere = places or {}
    return draft.plan([elsewhere.get(name, Call(name)) for name in draft.procedures])


def plan(stratum: Stratum, draft: Draft, payload: Payload | None = None) -> list[Step]:
    """Return the steps that evaluate one stratum from the relations below it, in NEW."""
    steps, results = fixpoint(stratum, draft, State.NEW, payload)
    return [*steps, *(Store(name, result) for name, result in results.items())]


def fixpoint(
    stratum: Stratum, draft: Draft, state: State, payload: Payload | None = None
) -> tuple[list[Step], dict[str, str]]:
    """Return the steps that evaluate a stratum in a state, and the relations that hold it then.

    With payload, the ranks of a recursive stratum or the counts of another are results too.
    """
    if stratum.is_recursive:
        return _rounds(stratum, draft, state, with_ranks=payload is Payload.RANK)
    (name,) = stratum.relations
    if stratum.aggregations:
        return _aggregated(stratum, draft, state), {name: next_of(name)}
    target = draft.make(name, "next")
    if payload is Payload.COUNT:
        counted = draft.make(name, "counted", NUMBER)
        one = Constant(1, NUMBER)
        bodies = [
            replace(body, head=(*body.head, one), is_bag=True)
            for body in _first(name, stratum, state)
        ]
        steps = draft.derive(counted, bodies, reduce=Reduce.SUM)
        steps.append(draft.copy(target, Reference(counted)))
        return steps, {name: target, count_of(draft, name): counted}
    return draft.derive(target, _first(name, stratum, state)), {name: target}


def _aggregated(stratum: Stratum, draft: Draft, state: State) -> list[Step]:
    (aggregation,) = stratum.aggregations
    target = draft.make(aggregation.relation, "next")
    source, steps = draft.source(aggregation.body, state), list[Step]()
    if not draft.tables.looks_up(source):
        rows = working(aggregation.body, "rows")
        draft.types[rows] = draft.types[aggregation.body]
        slots = draft.variables(aggregation.body)
        goal = Goal(Literal(aggregation.body, slots), source)
        steps = draft.derive(rows, [Body(slots, (goal,), (), aggregation.origin)])
        source = Reference(rows)
    return [*steps, Aggregate(target, aggregation, source)]


def _rounds(
    stratum: Stratum, draft: Draft, state: State, *, with_ranks: bool
) -> tuple[list[Step], dict[str, str]]:
    """Return the first round and the loop of a recursive stratum."""
    members = stratum.relations
    steps: list[Step] = []
    results: dict[str, str] = {}
    extend: list[Step] = []
    for name in members:
        target, known = draft.make(name, "next"), draft.make(name, "so_far")
        steps += draft.derive(target, _first(name, stratum, state))
        extend.append(Extend(known, target))
        results[name] = known
        if with_ranks:
            ranked = draft.make(name, "ranked", NUMBER)
            extend.append(Number(ranked, target))
            results[rank_of(draft, name)] = ranked
    derive: list[Step] = []
    for name in members:
        bodies = list(variants(stratum, name, state))
        derive += draft.derive(next_of(name), bodies, without=(Reference(so_far(name)),))
    limits = tuple(
        (so_far(name), limit)
        for name in members
        if (limit := draft.relation(name).limit) is not None
    )
    fresh = tuple(Reference(so_far(name), State.ADDED) for name in members)
    return [*steps, *extend, Loop((*derive, *extend), fresh, limits)], results


def _first(name: str, stratum: Stratum, state: State) -> list[Body]:
    """Return the bodies that need no tuple of the stratum."""
    return [
        instance(rule, in_state(state), is_judged=state is State.NEW)
        for rule in stratum.rules
        if rule.head.relation == name and not recursive_places(rule, stratum.relations)
    ]


def variants(stratum: Stratum, name: str, state: State) -> Iterator[Body]:
    """Yield the k variants of every rule of a relation with k literals of its stratum."""
    for rule in stratum.rules:
        if rule.head.relation == name:
            places = recursive_places(rule, stratum.relations)
            for place in places:
                yield _variant(rule, places, place, state)


def _variant(rule: Rule, places: Sequence[int], place: int, state: State) -> Body:
    """Return one variant: the literal at `place` is read in what the last round brought."""

    def read(at: int, literal: Literal) -> Goal:
        if at not in places:
            return Goal(literal, Reference(literal.relation, state))
        seen = State.NEW if at < place else State.OLD
        return Goal(literal, Reference(so_far(literal.relation), seen))

    literal = rule.literals[place]
    lead = Goal(literal, Reference(so_far(literal.relation), State.ADDED))
    return instance(rule, read, lead=lead, place=place, is_judged=state is State.NEW)


def insert(
    stratum: Stratum,
    draft: Draft,
    first: Mapping[str, Sequence[Body]],
    *,
    with_ranks: bool = False,
) -> list[Step]:
    """Return the steps that add to NEW what `first` derives, and all that follows from it.

    Args:
        stratum: the relations to add to; what was taken out of them before may come back.
        draft: the plan under construction.
        first: for each relation the bodies that begin. With ranks, their last column is the rank,
            and their heads are not in NEW.
        with_ranks: whether the tuples that come get ranks.
    """
    members = stratum.relations
    rank = (NUMBER,) if with_ranks else ()
    reduce = Reduce.MIN if with_ranks else None
    begin: list[Step] = []
    again: list[Step] = []
    grow: list[Step] = []
    for name in members:
        found, new = draft.make(name, "found", *rank), draft.make(name, "new", *rank)
        known = () if with_ranks else (Reference(name),)
        begin += draft.derive(found, first.get(name, ()), reduce=reduce, without=known)
        bodies = [
            _following(rule, stratum, draft, place, with_ranks)
            for rule in stratum.rules
            if rule.head.relation == name
            for place in recursive_places(rule, members)
        ]
        again += draft.derive(found, bodies, reduce=reduce, without=known)
        grow.append(Extend(new, found))
        if with_ranks:
            came = draft.make(name, "came")
            grow += [draft.copy(came, Reference(found)), Grow(rank_of(draft, name), found)]
            found = came
        grow.append(Grow(name, found))
    if not stratum.is_recursive:
        return [*begin, *grow]
    fresh = tuple(Reference(working(name, "new"), State.ADDED) for name in members)
    return [*begin, *grow, Loop((*again, *grow), fresh)]


def _following(rule: Rule, stratum: Stratum, draft: Draft, place: int, with_ranks: bool) -> Body:
    """Return what a rule derives from the tuples that came last at one of its literals."""
    literal = rule.literals[place]
    source = Reference(working(literal.relation, "new"), State.ADDED)
    if not with_ranks:
        return instance(
            rule,
            in_state(State.NEW),
            lead=Goal(literal, source),
            place=place,
            is_judged=True,
        )
    ranked = ranked_literals(rule, stratum.relations, draft, State.NEW)
    return instance(
        rule,
        ranked.read,
        lead=Goal(ranked.literal(place), source),
        place=place,
        goals=[is_absent(rule)],
        conditions=[total_of(ranked)],
        head=ranked.head,
        is_judged=True,
    )


def so_far(relation: str) -> str:
    """Return the name of the working relation that accumulates a relation."""
    return working(relation, "so_far")


def next_of(relation: str) -> str:
    """Return the name of the working relation that holds what a round brings."""
    return working(relation, "next")
