"""Recomputation: evaluate a stratum in NEW, and take the difference with OLD.

    Δ⁺P = P_new − P_old,   Δ⁻P = P_old − P_new

A stored relation is replaced, and its payload recomputed. For a virtual one both states are
evaluated, since neither is stored; only the difference outlives the stratum.
"""

from corollary.analysis.strata import Stratum
from corollary.core.pipeline import Reference
from corollary.core.plans import Clear, Step, StoreRelation
from corollary.core.states import State
from corollary.maintain.algorithms import seminaive
from corollary.maintain.draft import Draft
from corollary.maintain.payload import payload_kind


def plan(stratum: Stratum, draft: Draft) -> list[Step]:
    """Return the steps that recompute a stratum."""
    if not any(draft.update.is_virtual(name) for name in stratum.relations):
        return seminaive.plan(stratum, draft, payload_kind(stratum, draft.update.new))
    return _compare_states(stratum, draft)


def _compare_states(stratum: Stratum, draft: Draft) -> list[Step]:
    """Return the steps that evaluate a stratum in both states and compare."""
    update = draft.update
    before = Stratum(
        stratum.relations,
        tuple(rule for rule in update.old.rules if rule.head.relation in stratum.relations),
        tuple(each for each in update.old.aggregations if each.relation in stratum.relations),
        stratum.is_recursive or not update.recursive_before.isdisjoint(stratum.relations),
    )
    steps: list[Step] = []
    if before.rules or before.aggregations:
        evaluation, results = seminaive.fixpoint(before, draft, State.OLD)
        steps += evaluation
        for name, result in results.items():
            steps.append(draft.copy(draft.working_relation(name, "was"), Reference(result)))
            steps.append(Clear((result,)))
    evaluation, results = seminaive.fixpoint(stratum, draft, State.NEW)
    steps += evaluation
    for name, result in results.items():
        if not update.is_virtual(name):
            steps.append(StoreRelation(name, result))
            continue
        was, now = Reference(draft.working_relation(name, "was")), Reference(result)
        added, removed = (
            draft.working_relation(name, State.ADDED),
            draft.working_relation(name, State.REMOVED),
        )
        steps.append(draft.copy(added, now, without=(was,)))
        steps.append(draft.copy(removed, was, without=(now,)))
    return steps
