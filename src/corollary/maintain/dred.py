"""DRed: delete and rederive.

Reference: A. Gupta, I. S. Mumick, V. S. Subrahmanian, "Maintaining views incrementally", SIGMOD
1993; told by example in "Maintenance of recursive views" (Dietrich), Table 1.

    δ⁻(p) :- δ⁻(Li), the other literals in OLD              overestimate, to a fixpoint
    δ⁺(p) :- δ⁻(p), body in NEW, less δ⁻                    alternative derivations
    Δ⁻(p) = δ⁻(p) − δ⁺(p)

| symbol | name here |
|---|---|
| δ⁻(p) | `p•over`, new ones `p•next_over` |
| p less δ⁻(p), superscript v | NEW of p after `Remove` |
| δ⁺(p), and what is inserted | `p•found`, all of them `p•new` |

Stages: (1) overdelete, by rem_i for the changes below and by the growing overestimate for literals
of the stratum; everything that is not in the overestimate has a derivation without removed tuples;
(2) take the overestimate out; (3) rederive its tuples from what is left, insert what the additions
below bring, and go on semi-naively; (4) what went and came back is no change. Where no tuple has
two derivations, the overestimate is exact and nothing is rederived.

Example: reach left-linear, edges a→b, b→c, a→c; edge(b,c) removed:

| stage | reach |
|---|---|
| overestimate | bc ac |
| rederived | ac |
| removed | bc |
"""

from corollary.analysis.strata import Stratum
from corollary.core.pipeline import Reference
from corollary.core.plan import Extend, Loop, Remove, Role, Settle, Step
from corollary.core.rules import Rule, head_of
from corollary.core.states import State
from corollary.maintain.delta import (
    in_state,
    instance,
    kept_rules,
    recursive_places,
    seeds,
)
from corollary.maintain.draft import Body, Draft, literal_of
from corollary.maintain.payload import derives_once
from corollary.maintain.seminaive import insert
from corollary.maintain.sip import Goal
from corollary.maintain.trace import told


def plan(stratum: Stratum, draft: Draft) -> list[Step]:
    """Return the steps that maintain a stored stratum."""
    overestimate = _overdelete(stratum, draft)
    additions, first = seeds(
        draft, kept_rules(draft, stratum.relations), stratum.relations, State.ADDED, _add
    )
    if overestimate and not _is_exact(stratum, draft):
        for name in stratum.relations:
            first[name] += _rederive(name, stratum, draft)
    steps = [*overestimate, *additions, *insert(stratum, draft, first)]
    steps += [Settle(name) for name in stratum.relations]
    return [*steps, *told(stratum, draft, "over" if overestimate else "")]


def _is_exact(stratum: Stratum, draft: Draft) -> bool:
    """Whether the overestimate is what goes: no tuple has a second derivation."""
    return derives_once(stratum) and not draft.update.redefined & set(stratum.relations)


def _overdelete(stratum: Stratum, draft: Draft) -> list[Step]:
    """Return the steps that take out everything whose derivations may have gone."""
    members, kept = stratum.relations, kept_rules(draft, stratum.relations)
    steps, bodies = seeds(draft, kept, members, State.REMOVED, _remove)
    if not any(bodies.values()):
        return []
    again: list[Step] = []
    extend: list[Step] = []
    leave: list[Step] = []
    for name in members:
        following, over = draft.make(name, "next_over"), draft.make(name, "over")
        steps += draft.derive(following, bodies[name], role=Role.APPROXIMATED, about=name)
        further = [
            _go_on(rule, place)
            for rule in kept
            if rule.head.relation == name
            for place in recursive_places(rule, members)
        ]
        again += draft.derive(
            following, further, without=(Reference(over),), role=Role.APPROXIMATED, about=name
        )
        extend.append(Extend(over, following))
        leave.append(Remove(name, over))
    steps += extend
    if stratum.is_recursive:
        fresh = tuple(Reference(draft.make(name, "over"), State.ADDED) for name in members)
        steps.append(Loop((*again, *extend), fresh))
    return [*steps, *leave]


def _remove(rule: Rule, place: int | None, lead: Goal | None) -> Body:
    """Return rem_i, or the whole body in OLD of a rule that goes."""
    return instance(rule, in_state(State.OLD), lead=lead, place=place)


def _add(rule: Rule, place: int | None, lead: Goal | None) -> Body:
    """Return add_i, or the whole body in NEW of a rule that comes."""
    return instance(
        rule,
        in_state(State.NEW),
        lead=lead,
        place=place,
        is_judged=True,
    )


def _go_on(rule: Rule, place: int) -> Body:
    """Return what goes when the overestimate of a literal of the stratum goes."""
    literal = rule.literals[place]
    source = Reference(f"{literal.relation}•over", State.ADDED)
    return instance(rule, in_state(State.OLD), lead=Goal(literal, source), place=place)


def _rederive(name: str, stratum: Stratum, draft: Draft) -> list[Body]:
    """Return the bodies that find another derivation of what was taken out."""
    over = draft.make(name, "over")
    return [
        instance(rule, in_state(State.NEW), lead=literal_of(over, head_of(rule)))
        for rule in stratum.rules
        if rule.head.relation == name
    ]
