"""Plans on base relations: the union of their parts, and tuples that a change may concern.

A base relation is the union of what its writers assert, and each writer changes its own part.

    R = R₁ ∪ R₂ ∪ …
    Δ⁻R = ∪ Δ⁻Ri − ∪ Rj in NEW        tuples that no part asserts any more
    Δ⁺R = ∪ Δ⁺Ri − R in OLD           tuples that no part asserted before

A relation that only one writer has written to is its own part, at no extra cost.
"""

from collections.abc import Mapping, Sequence

from corollary.core.logic import Literal, Slot, Wildcard
from corollary.core.pipeline import Reference
from corollary.core.plans import Add, Plan, Remove, Step
from corollary.core.program import NormalProgram, Relation
from corollary.core.states import State
from corollary.core.statistics import Statistics
from corollary.maintain.draft import Body, Draft
from corollary.maintain.sip import Goal
from corollary.maintain.update import Update


def plan_union_of_parts(program: NormalProgram, relations: Sequence[str]) -> Plan:
    """Return the plan that brings base relations to NEW when their parts have changed."""
    draft = _new_draft(program)
    steps: list[Step] = []
    for name in relations:
        parts = tuple(program.parts[name].values())
        gone, come = draft.working_relation(name, "gone"), draft.working_relation(name, "come")
        removed = (Reference(part, State.REMOVED) for part in parts)
        added = (Reference(part, State.ADDED) for part in parts)
        steps += [
            draft.copy(gone, *removed, without=tuple(Reference(part) for part in parts)),
            draft.copy(come, *added, without=(Reference(name, State.OLD),)),
            Remove(name, gone),
            Add(name, come),
        ]
    return draft.finish(steps)


def plan_intersections(
    program: NormalProgram, tuples: Mapping[str, str], targets: Mapping[str, str]
) -> Plan:
    """Return the plan that finds which of some tuples are in base relations.

    Args:
        program: whose base relations they are.
        tuples: for each base relation the one that holds the tuples to look up.
        targets: for each base relation the one that receives those that are in it.
    """
    draft = _new_draft(program)
    for name, other in (*tuples.items(), *targets.items()):
        draft.types[other] = draft.types[name]
    return draft.finish(
        [
            draft.intersect(targets[name], Reference(other), Reference(name))
            for name, other in tuples.items()
        ]
    )


def plan_key_matches(
    program: NormalProgram, relation: str, determinants: Sequence[int], into: str
) -> Plan:
    """Return the plan that finds all tuples of NEW that agree with an added one in some columns.

    Only they can violate a functional dependency that held before.

    Args:
        program: the program of the relation.
        relation: the relation.
        determinants: the columns.
        into: receives the tuples.
    """
    draft = _new_draft(program)
    added = Reference(relation, State.ADDED)
    draft.types[into] = draft.types[relation]
    columns = draft.variables(relation)
    key: tuple[Slot, ...] = tuple(
        column if at in determinants else Wildcard() for at, column in enumerate(columns)
    )
    lead = Goal(Literal(added.relation, key), added)
    every = Goal(Literal(relation, columns), Reference(relation))
    return draft.finish(draft.derive(into, [Body.led(columns, lead, every)]))


def plan_key_lookup(
    program: NormalProgram, relation: str, keys: Relation, positions: Sequence[int], into: str
) -> Plan:
    """Return the plan that finds all tuples of NEW with some values in the columns of a key.

    Args:
        program: of the relation.
        relation: a base relation, or a part of one.
        keys: the relation that holds the values.
        positions: of its columns in the relation.
        into: the relation that receives the tuples.
    """
    draft = _new_draft(program)
    draft.types |= {keys.name: keys.types, into: draft.types[relation]}
    columns = draft.variables(relation)
    wanted = Literal(keys.name, tuple(columns[at] for at in positions))
    lead = Goal(wanted, Reference(keys.name))
    every = Goal(Literal(relation, columns), Reference(relation))
    return draft.finish(draft.derive(into, [Body.led(columns, lead, every)]))


def _new_draft(program: NormalProgram) -> Draft:
    return Draft(Update(program, program, {}, Statistics()))
