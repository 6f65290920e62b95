"""DRed: delete and rederive.

Reference: A. Gupta, I. S. Mumick, V. S. Subrahmanian, "Maintaining views incrementally", SIGMOD
1993; by example in "Maintenance of recursive views" (Dietrich), Table 1.

    δ⁻(p) :- δ⁻(Li), the other literals in OLD              overestimate, to a fixpoint
    δ⁺(p) :- δ⁻(p), body in NEW without δ⁻                  alternative derivations
    Δ⁻(p) = δ⁻(p) − δ⁺(p)

| symbol | name here |
|---|---|
| δ⁻(p) | `p•over`, new ones `p•next_over` |
| p − δ⁻(p), superscript v | NEW of p after `Remove` |
| δ⁺(p), and what is inserted | `p•found`, all of them `p•new` |

Stages: (1) overdelete, by rem_i for the changes below and by the growing overestimate for literals
of the stratum; everything that is not in the overestimate has a derivation without removed tuples;
(2) take the overestimate out; (3) rederive its tuples from what is left, insert what the additions
below derive, and continue semi-naively; (4) tuples that were taken out and came back are no change.
Where no tuple has two derivations, the overestimate is exact and nothing is rederived.

Example: reach left-linear, edges a→b, b→c, a→c; edge(b,c) removed:

| stage | reach |
|---|---|
| overestimate | bc ac |
| rederived | ac |
| removed | bc |
"""

from corollary.analysis.keys import has_single_derivations as has_one_instance
from corollary.analysis.keys import relation_keys
from corollary.analysis.strata import Stratum
from corollary.core.logic import Rule, head_arguments
from corollary.core.pipeline import Reference
from corollary.core.plans import Add, CancelOut, Extend, Loop, Remove, Role, Step, working_relation
from corollary.core.states import State
from corollary.maintain import delta
from corollary.maintain.algorithms.seminaive import insert
from corollary.maintain.draft import Body, Draft, working_goal
from corollary.maintain.payload import has_single_derivations
from corollary.maintain.sip import Goal
from corollary.maintain.trace import INSERTION, derive_by_rule, trace_rows


def plan(stratum: Stratum, draft: Draft) -> list[Step]:
    """Return the steps that maintain a stored stratum."""
    if _is_exact(stratum, draft):
        return _plan_exact(stratum, draft)
    overestimate = _overdelete(stratum, draft)
    members = stratum.relations
    kept = delta.unchanged_rules(draft, members)
    additions, first = delta.seed_bodies(draft, kept, members, State.ADDED)
    if overestimate:
        for name in stratum.relations:
            first[name] += _rederive(name, stratum, draft)
    steps = [*overestimate, *additions, *insert(stratum, draft, first)]
    steps += [CancelOut(name) for name in stratum.relations]
    return [*steps, *trace_rows(stratum, draft, "over" if overestimate else "")]


def _is_exact(stratum: Stratum, draft: Draft) -> bool:
    """Whether the overestimate is exact: no tuple has a second derivation, in OLD neither."""
    update = draft.update
    return (
        has_single_derivations(stratum)
        and stratum.keys.items() <= relation_keys(update.old).items()
        and update.redefined.isdisjoint(stratum.relations)
    )


def _plan_exact(stratum: Stratum, draft: Draft) -> list[Step]:
    """Return the steps where no tuple has two derivations: what they lose goes, the rest comes."""
    (name,) = stratum.relations
    rules, steps = delta.unchanged_rules(draft, (name,)), list[Step]()
    over, found = (draft.working_relation(name, role) for role in ("over", "found"))
    selections, lost = delta.seed_bodies(draft, rules, (name,), State.REMOVED)
    if lost[name]:
        role = Role.APPROXIMATED
        steps += derive_by_rule(draft, over, lost[name], name, "overestimate", role=role)
        steps.append(Remove(name, over))
    more, gained = delta.seed_bodies(draft, rules, (name,), State.ADDED)
    if gained[name]:
        steps += [*derive_by_rule(draft, found, gained[name], name, INSERTION), Add(name, found)]
    # By a key, a tuple may have another derivation in each state.
    if lost[name] and gained[name] and not has_one_instance(stratum.rules[0]):
        steps.append(CancelOut(name))
    return [*selections, *more, *steps, *trace_rows(stratum, draft, "over" if lost[name] else "")]


def _overdelete(stratum: Stratum, draft: Draft) -> list[Step]:
    """Return stages (1) and (2): take out every tuple that may have lost a derivation."""
    members, kept = stratum.relations, delta.unchanged_rules(draft, stratum.relations)
    steps, bodies = delta.seed_bodies(draft, kept, members, State.REMOVED)
    if not any(bodies.values()):
        return []
    again: list[Step] = []
    extend: list[Step] = []
    take_out: list[Step] = []
    every = {name: draft.working_relation(name, "over") for name in members}
    for name, over in every.items():
        following = draft.working_relation(name, "next_over")
        steps += derive_by_rule(
            draft, following, bodies[name], name, "overestimate", role=Role.APPROXIMATED
        )
        further = [
            _overdelete_further(rule, position)
            for rule in delta.unchanged_rules(draft, (name,))
            for position in delta.recursive_positions(rule, stratum.members)
        ]
        again += derive_by_rule(
            draft,
            following,
            further,
            name,
            "overestimate",
            without=(Reference(over),),
            role=Role.APPROXIMATED,
        )
        extend.append(Extend(over, following))
        take_out.append(Remove(name, over))
    steps += extend
    if stratum.is_recursive:
        fresh = tuple(
            Reference(draft.working_relation(name, "over"), State.ADDED) for name in members
        )
        steps.append(Loop((*again, *extend), fresh))
    return [*steps, *take_out]


def _overdelete_further(rule: Rule, position: int) -> Body:
    """Return rem_i for a literal of the stratum: its removals are the last overestimate."""
    literal = rule.literals[position]
    source = Reference(working_relation(literal.relation, "over"), State.ADDED)
    return delta.propagation_body(rule, position, Goal(literal, source), State.REMOVED)


def _rederive(name: str, stratum: Stratum, draft: Draft) -> list[Body]:
    """Return the bodies of δ⁺: other derivations of tuples that were taken out."""
    over = draft.working_relation(name, "over")
    return [
        delta.make_body(
            rule, delta.read_in_state(State.NEW), lead=working_goal(over, head_arguments(rule))
        )
        for rule in stratum.rules_by_head.get(name, ())
    ]
