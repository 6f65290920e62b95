"""Parts: a base relation is the union of what its writers assert, and each touches its own part.

    R = R₁ ∪ R₂ ∪ …
    Δ⁻R = ∪ Δ⁻Ri − ∪ Rj in NEW        what nobody asserts any more
    Δ⁺R = ∪ Δ⁺Ri − R in OLD           what nobody asserted before

A relation that one writer alone has written to is its own part, and costs nothing more.
"""

from collections.abc import Mapping, Sequence

from corollary.core.pipeline import Reference
from corollary.core.plan import Grow, Plan, Remove, Step
from corollary.core.program import NormalProgram
from corollary.core.states import State
from corollary.core.statistics import Statistics
from corollary.maintain.draft import Draft
from corollary.maintain.update import Update


def union(program: NormalProgram, relations: Sequence[str]) -> Plan:
    """Return the plan that brings base relations to NEW when their parts have changed."""
    draft = Draft(Update(program, program, {}, Statistics()))
    steps: list[Step] = []
    for name in relations:
        parts = tuple(program.parts[name].values())
        gone, come = draft.make(name, "gone"), draft.make(name, "come")
        removed = (Reference(part, State.REMOVED) for part in parts)
        added = (Reference(part, State.ADDED) for part in parts)
        steps += [
            draft.copy(gone, *removed, without=tuple(Reference(part) for part in parts)),
            draft.copy(come, *added, without=(Reference(name, State.OLD),)),
            Remove(name, gone),
            Grow(name, come),
        ]
    return draft.plan(steps)


def shared(program: NormalProgram, asked: Mapping[str, str], kept: Mapping[str, str]) -> Plan:
    """Return the plan that finds which tuples are still in base relations.

    Args:
        program: whose base relations they are.
        asked: for each base relation the one that holds the tuples in question.
        kept: for each base relation the one that gets those that are there.
    """
    draft = Draft(Update(program, program, {}, Statistics()))
    for name, other in (*asked.items(), *kept.items()):
        draft.types[other] = draft.types[name]
    return draft.plan(
        [
            draft.common(kept[name], Reference(other), Reference(name))
            for name, other in asked.items()
        ]
    )
