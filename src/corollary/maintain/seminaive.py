"""Semi-naive evaluation of a stratum.

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

Example: edges a→b→c→d, `tc(x,y) :- edge(x,y). tc(x,z) :- tc(x,y), edge(y,z).`

| round | tc•next |
|---|---|
| first | ab bc cd |
| 1 | ac bd |
| 2 | ad |
| 3 | nothing |
"""

from collections.abc import Iterator

from corollary.analysis.orders import orders
from corollary.analysis.strata import Stratum, strata
from corollary.core.pipeline import Pipeline, Reference
from corollary.core.plan import (
    MAIN,
    Aggregate,
    Call,
    Derive,
    Extend,
    Loop,
    Plan,
    Step,
    Store,
    pipelines_of,
    procedure_of,
    working,
)
from corollary.core.program import NormalProgram
from corollary.core.rules import Rule
from corollary.core.states import State
from corollary.core.statistics import Statistics
from corollary.core.terms import Constant, Variable
from corollary.core.types import Type
from corollary.maintain.sip import Goal, sip


def evaluate(program: NormalProgram, statistics: Statistics) -> Plan:
    """Return the plan that evaluates a program, one stratum after another."""
    procedures: dict[str, tuple[Step, ...]] = {}
    types: dict[str, tuple[Type, ...]] = {
        name: relation.types for name, relation in program.relations.items()
    }
    for stratum in strata(program):
        procedures[procedure_of(stratum.relations)] = tuple(plan(stratum, program, statistics))
        for name in stratum.relations:
            types[next_of(name)] = types[so_far(name)] = program.relations[name].types
    main = tuple(Call(name) for name in procedures)
    made = Plan({MAIN: main, **procedures}, types)
    return Plan(made.procedures, types, orders(pipelines_of(made)))


def plan(stratum: Stratum, program: NormalProgram, statistics: Statistics) -> list[Step]:
    """Return the steps that evaluate one stratum from the relations below it, in NEW."""
    members = stratum.relations
    if not stratum.is_recursive:
        (name,) = members
        return [*_first(name, stratum, statistics), Store(name, next_of(name))]
    steps: list[Step] = []
    for name in members:
        steps += _first(name, stratum, statistics)
    steps += [Extend(so_far(name), next_of(name)) for name in members]
    steps.append(loop(stratum, program, statistics))
    steps += [Store(name, so_far(name)) for name in members]
    return steps


def _first(name: str, stratum: Stratum, statistics: Statistics) -> list[Step]:
    """Return the step that derives what needs no tuple of the stratum."""
    for aggregation in stratum.aggregations:
        if aggregation.relation == name:
            return [Aggregate(next_of(name), aggregation, Reference(aggregation.body))]
    pipelines = tuple(
        variant(rule, stratum.relations, None, statistics)
        for rule in stratum.rules
        if rule.head.relation == name and not recursive_places(rule, stratum.relations)
    )
    return [Derive(next_of(name), pipelines)]


def loop(stratum: Stratum, program: NormalProgram, statistics: Statistics) -> Loop:
    """Return the rounds: derive the variants, drop what is known, extend."""
    members = stratum.relations
    derive = [
        Derive(
            next_of(name),
            tuple(variants(stratum, name, statistics)),
            without=(Reference(so_far(name)),),
        )
        for name in members
    ]
    extend = [Extend(so_far(name), next_of(name)) for name in members]
    limits = tuple(
        (so_far(name), limit)
        for name in members
        if (limit := program.relations[name].limit) is not None
    )
    fresh = tuple(Reference(so_far(name), State.ADDED) for name in members)
    return Loop((*derive, *extend), fresh, limits)


def variants(stratum: Stratum, name: str, statistics: Statistics) -> Iterator[Pipeline]:
    """Yield the k variants of every rule of a relation with k literals of its stratum."""
    for rule in stratum.rules:
        if rule.head.relation == name:
            for place in recursive_places(rule, stratum.relations):
                yield variant(rule, stratum.relations, place, statistics)


def variant(
    rule: Rule, members: tuple[str, ...], place: int | None, statistics: Statistics
) -> Pipeline:
    """Return one variant: the literal at `place` is read in what the last round brought."""
    goals = []
    for position, literal in enumerate(rule.literals):
        source = Reference(literal.relation)
        if place is not None and not literal.negated and literal.relation in members:
            state = State.NEW if position < place else State.OLD
            source = Reference(
                so_far(literal.relation), State.ADDED if position == place else state
            )
        goals.append(Goal(literal, source))
    lead = goals[place] if place is not None else None
    return sip(
        head_of(rule),
        goals,
        rule.conditions,
        rule.origin,
        statistics,
        lead=lead,
        is_lenient=rule.is_lenient,
    )


def head_of(rule: Rule) -> tuple[Variable | Constant, ...]:
    """Return the head's arguments, which are variables and constants."""
    return tuple(slot for slot in rule.head.slots if isinstance(slot, Variable | Constant))


def recursive_places(rule: Rule, members: tuple[str, ...]) -> tuple[int, ...]:
    """Return the positions of the literals that belong to the rule's own stratum."""
    return tuple(
        place
        for place, literal in enumerate(rule.literals)
        if literal.relation in members and not literal.negated
    )


def so_far(relation: str) -> str:
    """Return the name of the working relation that accumulates a relation."""
    return working(relation, "so_far")


def next_of(relation: str) -> str:
    """Return the name of the working relation that holds what a round brings."""
    return working(relation, "next")
