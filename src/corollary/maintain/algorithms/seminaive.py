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
variants, drops tuples that are in ALL and extends ALL; before round n, ALL has every tuple with a
derivation of height n; (3) when a round derives nothing new, ALL is the relation.

Insertion into a stored stratum is the same loop, started with the seeds of a change instead of all
tuples (`insert`). Ranks are the numbers of the rounds in an evaluation, and 1 + the largest rank of
the premises in an insertion.

Example: edges a→b→c→d, `tc(x,y) :- edge(x,y). tc(x,z) :- tc(x,y), edge(y,z).`

| round | tc•next |
|---|---|
| first | ab bc cd |
| 1 | ac bd |
| 2 | ad |
| 3 | nothing |
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from corollary.analysis.strata import Stratum, strata
from corollary.core import plans
from corollary.core.logic import Constant, Literal, Rule, Wildcard
from corollary.core.pipeline import Reference
from corollary.core.program import NormalProgram
from corollary.core.states import State
from corollary.core.statistics import Statistics
from corollary.core.types import NUMBER
from corollary.maintain import assignments
from corollary.maintain.algorithms import grouped_evaluation, rounds, stairs
from corollary.maintain.delta import (
    make_body,
    propagation_body,
    read_in_state,
    recursive_positions,
    with_plan,
)
from corollary.maintain.draft import Body, Draft, working_goal
from corollary.maintain.payload import (
    Payload,
    absent_head,
    count_relation,
    rank_body,
    rank_relation,
)
from corollary.maintain.sip import Goal
from corollary.maintain.trace import INSERTION, derive_by_rule
from corollary.maintain.update import EMPTY_PROGRAM, Update


def plan_program(
    program: NormalProgram,
    statistics: Statistics,
    places: Mapping[str, plans.PlacedCall] | None = None,
    asked: Collection[str] | None = None,
) -> plans.Plan:
    """Return the plan that evaluates a program once, one stratum after another.

    Args:
        program: what to evaluate.
        statistics: of its relations.
        places: where strata run that do not run on the driver, by procedure.
        asked: the relations that are read afterwards; None for all of them. Others are not stored
            if they are only aggregated: an engine need not even make their tuples.
    """
    placed = places or {}
    passing = _passing_relations(program, asked) if asked is not None and not placed else {}
    program = _rename(program, passing)
    relations = {
        name: replace(each, is_virtual=False, is_inlined=False)
        for name, each in program.relations.items()
    }
    draft = Draft(Update(EMPTY_PROGRAM, replace(program, relations=relations), {}, statistics))
    for stratum in strata(program):
        name = plans.procedure_name(stratum.relations)
        if name in passing.values():
            steps = draft.derive(name, _first(name, stratum, State.NEW))
        else:
            steps = plan(stratum, draft)
        draft.procedures[name] = tuple(steps)
        draft.readable.update(stratum.relations)
    return draft.finish([placed.get(name, plans.Call(name)) for name in draft.procedures])


def _passing_relations(program: NormalProgram, asked: Collection[str]) -> dict[str, str]:
    """Return the relations that are only aggregated, and working relations to hold their tuples."""
    read = {literal.relation for rule in program.rules for literal in rule.literals}
    heads = Counter(rule.head.relation for rule in program.rules)
    bodies = dict.fromkeys(each.body for each in program.aggregations)
    return {
        name: plans.working_relation(name, "rows")
        for name in bodies
        if heads[name] == 1 and name not in read and name not in asked
        if not program.relations[name].domains
    }


def _rename(program: NormalProgram, names: Mapping[str, str]) -> NormalProgram:
    """Return a program in which heads of rules and bodies of aggregates have other names."""
    if not names:
        return program
    return replace(
        program,
        relations={
            names.get(name, name): replace(each, name=names.get(name, name))
            for name, each in program.relations.items()
        },
        rules=tuple(
            replace(rule, head=replace(rule.head, relation=name))
            if (name := names.get(rule.head.relation))
            else rule
            for rule in program.rules
        ),
        aggregations=tuple(
            replace(each, body=names.get(each.body, each.body)) for each in program.aggregations
        ),
    )


def plan(stratum: Stratum, draft: Draft, payload: Payload | None = None) -> list[plans.Step]:
    """Return the steps that evaluate one stratum from the relations below it, in NEW."""
    steps, results = fixpoint(stratum, draft, State.NEW, payload)
    return [*steps, *(plans.StoreRelation(name, result) for name, result in results.items())]


def fixpoint(
    stratum: Stratum, draft: Draft, state: State, payload: Payload | None = None
) -> tuple[list[plans.Step], dict[str, str]]:
    """Return the steps that evaluate a stratum in a state, and the relations that hold the result.

    With payload, the relations of ranks or counts are results too.
    """
    if stratum.is_grouped:
        return grouped_evaluation.evaluate(
            stratum, draft, state, with_levels=payload is Payload.LEVEL
        )
    if stratum.dominated:
        return rounds.evaluate(stratum, draft, state, with_ranks=payload is Payload.RANK)
    if stratum.subsumption:
        steps, tops, ranked = stairs.evaluate(stratum, draft, state)
        if payload is Payload.RANK:
            tops |= {rank_relation(draft, name): each for name, each in ranked.items()}
        return steps, tops
    if stratum.is_recursive:
        return _rounds(stratum, draft, state, with_ranks=payload is Payload.RANK)
    (name,) = stratum.relations
    if stratum.aggregations:
        return assignments.evaluate(stratum.aggregations[0], draft, state, payload)
    target = draft.working_relation(name, "next")
    if payload is Payload.COUNT:
        counted = draft.working_relation(name, "counted", NUMBER)
        one = Constant(1, NUMBER)
        bodies = [
            replace(body, head=(*body.head, one), is_bag=True)
            for body in _first(name, stratum, state)
        ]
        steps = draft.derive(counted, bodies, reduce=plans.Reduce.SUM)
        steps.append(draft.copy(target, Reference(counted)))
        return steps, {name: target, count_relation(draft, name): counted}
    steps = draft.derive(target, _first(name, stratum, state))
    return [*steps, *_choose(name, target, draft)], {name: target}


def _rounds(
    stratum: Stratum, draft: Draft, state: State, *, with_ranks: bool
) -> tuple[list[plans.Step], dict[str, str]]:
    """Return the first round and the loop of a recursive stratum, and its results."""
    members = stratum.relations
    steps: list[plans.Step] = []
    results: dict[str, str] = {}
    extend: list[plans.Step] = []
    for name in members:
        target, every = draft.working_relation(name, "next"), draft.working_relation(name, "so_far")
        steps += draft.derive(target, _first(name, stratum, state))
        steps += _choose(name, target, draft)
        extend.append(plans.Extend(every, target))
        results[name] = every
        if with_ranks:
            ranked = draft.working_relation(name, "ranked", NUMBER)
            extend.append(plans.ExtendWithRound(ranked, target))
            results[rank_relation(draft, name)] = ranked
    derive: list[plans.Step] = []
    for name in members:
        bodies = list(_variants(stratum, name, state))
        derive += draft.derive(_next(name), bodies, without=(Reference(_so_far(name)),))
        derive += _choose(name, _next(name), draft, _so_far(name))
    limits = tuple(
        (_so_far(name), limit)
        for name in members
        if (limit := draft.relation(name).limit) is not None
    )
    fresh = tuple(Reference(_so_far(name), State.ADDED) for name in members)
    return [*steps, *extend, plans.Loop((*derive, *extend), fresh, limits)], results


def _choose(name: str, found: str, draft: Draft, known: str | None = None) -> list[plans.Step]:
    """Return the steps that drop tuples which agree with others on a choice domain.

    Args:
        name: the relation.
        found: what was derived of it in a round.
        draft: the plan under construction.
        known: the relation of the tuples that earlier rounds chose.
    """
    domains = draft.relation(name).domains
    if not domains:
        return []
    free = draft.working_relation(name, "free")
    steps: list[plans.Step] = []
    without: tuple[Reference, ...] = ()
    if known is not None:
        taken = draft.working_relation(name, "taken")
        columns = draft.variables(name)
        lead = working_goal(found, columns)
        agreeing = (
            [each if at in domain else Wildcard() for at, each in enumerate(columns)]
            for domain in domains
        )
        bodies = [Body.led(columns, lead, working_goal(known, slots)) for slots in agreeing]
        steps, without = draft.derive(taken, bodies), (Reference(taken),)
    steps.append(draft.copy(free, Reference(found), without=without))
    return [*steps, plans.Choose(found, free, domains)]


def _first(name: str, stratum: Stratum, state: State) -> list[Body]:
    """Return the bodies of the first round: rules without a literal of the stratum."""
    return [
        with_plan(rule, make_body(rule, read_in_state(state), is_judged=state is State.NEW), 0)
        for rule in stratum.rules_by_head.get(name, ())
        if not recursive_positions(rule, stratum.members)
    ]


def _variants(stratum: Stratum, name: str, state: State) -> Iterator[Body]:
    """Yield the k variants of every rule of a relation with k literals of its stratum."""
    for rule in stratum.rules_by_head.get(name, ()):
        positions = recursive_positions(rule, stratum.members)
        for position in positions:
            yield _variant(rule, positions, position, state)


def _variant(rule: Rule, positions: Sequence[int], position: int, state: State) -> Body:
    """Return one variant: the literal at `position` is read in NEW-IN-LAST-ROUND."""

    def read(at: int, literal: Literal) -> Goal:
        if at not in positions:
            return Goal(literal, Reference(literal.relation, state))
        seen = State.NEW if at < position else State.OLD
        return Goal(literal, Reference(_so_far(literal.relation), seen))

    literal = rule.literals[position]
    lead = Goal(literal, Reference(_so_far(literal.relation), State.ADDED))
    body = make_body(rule, read, lead=lead, position=position, is_judged=state is State.NEW)
    return with_plan(rule, body, positions.index(position), position)


def insert(
    stratum: Stratum, draft: Draft, first: Mapping[str, Sequence[Body]], *, with_ranks: bool = False
) -> list[plans.Step]:
    """Return the steps that add to NEW what `first` derives, and all that follows from it.

    Args:
        stratum: the relations to add to; tuples that were taken out before may come back.
        draft: the plan under construction.
        first: for each relation the bodies that start the insertion. With ranks, their last column
            is the rank, and their heads are not in NEW.
        with_ranks: whether the added tuples get ranks.
    """
    members = stratum.relations
    rank = (NUMBER,) if with_ranks else ()
    reduce = plans.Reduce.MIN if with_ranks else None
    start: list[plans.Step] = []
    again: list[plans.Step] = []
    grow: list[plans.Step] = []
    every = {name: draft.working_relation(name, "new", *rank) for name in members}
    for name, new in every.items():
        found = draft.working_relation(name, "found", *rank)
        known = () if with_ranks else (Reference(name),)
        start += derive_by_rule(
            draft, found, first.get(name, ()), name, INSERTION, reduce=reduce, without=known
        )
        bodies = [
            _following(rule, stratum, draft, position, with_ranks)
            for rule in stratum.rules_by_head.get(name, ())
            for position in recursive_positions(rule, stratum.members)
        ]
        again += derive_by_rule(draft, found, bodies, name, INSERTION, reduce=reduce, without=known)
        grow.append(plans.Extend(new, found))
        if with_ranks:
            unranked = draft.working_relation(name, "came")
            grow += [
                draft.copy(unranked, Reference(found)),
                plans.Add(rank_relation(draft, name), found),
            ]
            found = unranked
        grow.append(plans.Add(name, found))
    if not stratum.is_recursive:
        return [*start, *grow]
    fresh = tuple(Reference(plans.working_relation(name, "new"), State.ADDED) for name in members)
    return [*start, *grow, plans.Loop((*again, *grow), fresh)]


def _following(rule: Rule, stratum: Stratum, draft: Draft, position: int, with_ranks: bool) -> Body:
    """Return what a rule derives from the tuples that the last round added at one literal."""
    literal = rule.literals[position]
    source = Reference(plans.working_relation(literal.relation, "new"), State.ADDED)
    if not with_ranks:
        return propagation_body(rule, position, Goal(literal, source), State.ADDED)
    ranked = rank_body(rule, stratum.members, draft, State.NEW)
    lead = Goal(ranked.ranked_literal(position), source)
    return ranked.derivation(lead, position, [absent_head(rule)])


def _so_far(relation: str) -> str:
    """Return the name of the working relation ALL."""
    return plans.working_relation(relation, "so_far")


def _next(relation: str) -> str:
    """Return the name of the working relation of a round's candidates."""
    return plans.working_relation(relation, "next")
