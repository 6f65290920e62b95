"""What rules would need to derive tuples that are not there: the premises that are missing.

For a rule `h :- P1, …, Pn` and a set M of its positive literals: the instances in which all of M
are missing, and every other part holds. Variables that only M has, and `_` in it, range over the
known values. One pipeline for each rule and M, led by the wanted tuples.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import prod

import pyarrow as pa

from corollary.core.arrow import sort_rows, to_python
from corollary.core.logic import Literal, Variable
from corollary.core.plans import Step, working_relation
from corollary.core.program import NormalProgram, Relation
from corollary.core.types import NUMBER, Type
from corollary.data_class import dataclass
from corollary.provenance.absences.known_values import known_relation
from corollary.provenance.absences.nearest import body_of_parts, type_of
from corollary.provenance.absences.rule_parts import (
    Component,
    RuleParts,
    row_of,
    with_named_wildcards,
)
from corollary.provenance.asked_state import AskedState
from corollary.provenance.limits import Allowance
from corollary.provenance.nodes import Row
from corollary.provenance.trials.wanted import new_draft, wanted_relation

MISSING_MAX = 4
"""The maximum number of literals of one rule that may be missing."""

Tuple = tuple[str, Row]
"""A relation of the normal program, and a tuple of it."""


@dataclass(frozen=True, slots=True)
class NeededPremises:
    """What tuples need.

    Attributes:
        by_tuple: for each tuple the sets of missing premises, one for each instance.
        is_complete: whether no instance was left out.
    """

    by_tuple: Mapping[Tuple, Sequence[frozenset[Tuple]]]
    is_complete: bool


@dataclass(frozen=True, slots=True)
class _Variant:
    """A rule without some of its literals."""

    parts: RuleParts
    component: Component
    missing: tuple[Literal, ...]
    target: Relation


def missing_premises(
    asked: AskedState, relation: str, rows: Sequence[Row], allowance: Allowance
) -> NeededPremises:
    """Return what tuples of a derived relation need; the known values are in the engine.

    Args:
        asked: the state in which the tuples are not there.
        relation: the relation.
        rows: the tuples.
        allowance: what is left of the limits.
    """
    engine = asked.engine
    with wanted_relation(asked, relation, rows) as wanted:
        variants: list[_Variant] = []
        is_complete = True
        for variant, size in _variants(asked, relation):
            if size * len(rows) > allowance.tuples:
                is_complete = False
            else:
                name = working_relation(str(len(variants)), "needed")
                variants.append(replace(variant, target=replace(variant.target, name=name)))
        made = {each.target.name: each.target for each in variants}
        engine.declare(made)
        try:
            draft = new_draft(asked)
            draft.types[wanted.name] = wanted.types
            steps: list[Step] = []
            for each in variants:
                draft.types[each.target.name] = each.target.types
                for variable in each.component.ranging:
                    type_ = type_of(variable).with_null(False)
                    draft.types[known_relation(type_)] = (type_,)
                body = body_of_parts(asked, each.parts, each.component, wanted.name, each.missing)
                steps += draft.derive(each.target.name, [body])
            allowance.run(engine, draft.finish(steps), asked.limits)
            found: dict[Tuple, dict[frozenset[Tuple], None]] = {}
            for each in variants:
                for number, premises in _premises(each, rows, engine.read(each.target.name)):
                    found.setdefault((relation, rows[number]), {})[premises] = None
        finally:
            engine.drop(made)
    return NeededPremises({key: list(sets) for key, sets in found.items()}, is_complete)


def _variants(asked: AskedState, relation: str) -> Iterator[tuple[_Variant, int]]:
    """Yield the rules of a relation without some literals, and how many values they range over."""
    relations = asked.program.relations
    for rule in asked.program.rules:
        if rule.head.relation != relation:
            continue
        named = with_named_wildcards(rule, lambda name: relations[name].types).literals
        positions = [at for at, each in enumerate(rule.literals) if not each.negated]
        for count in range(1, min(len(positions), MISSING_MAX) + 1):
            for chosen in combinations(positions, count):
                # `_` in a missing literal is a value that has to be chosen.
                literals = tuple(
                    named[at] if at in chosen else each for at, each in enumerate(rule.literals)
                )
                parts = RuleParts(replace(rule, literals=literals))
                component = parts.whole(set(range(len(parts.parts))) - set(chosen))
                size = prod(
                    asked.engine.size(known_relation(type_of(each))) for each in component.ranging
                )
                missing = tuple(literals[at] for at in chosen)
                yield _Variant(parts, component, missing, _target(component)), size


def has_more_literals(program: NormalProgram, relations: Iterable[str]) -> bool:
    """Whether a rule of some relations has more literals than may be missing together."""
    wanted = set(relations)
    return any(
        sum(not each.negated for each in rule.literals) > MISSING_MAX
        for rule in program.rules
        if rule.head.relation in wanted
    )


def _target(component: Component) -> Relation:
    types: tuple[Type, ...] = (NUMBER, *map(type_of, component.variables))
    columns = tuple(f"c{at}" for at in range(len(types)))
    return Relation("", columns, types, is_derived=False, is_declared=False)


def _premises(
    variant: _Variant, rows: Sequence[Row], table: pa.Table
) -> Iterator[tuple[int, frozenset[Tuple]]]:
    """Yield the missing premises of each instance, with the number of the wanted tuple."""
    head = variant.parts.rule.head
    for number, *values in to_python(sort_rows(table)):
        assert isinstance(number, int)
        bindings = {
            slot.name: value
            for slot, value in zip(head.slots, rows[number], strict=True)
            if isinstance(slot, Variable)
        }
        bindings |= {
            each.name: value
            for each, value in zip(variant.component.variables, values, strict=True)
        }
        rows_of = ((each.relation, row_of(each, bindings)) for each in variant.missing)
        yield number, frozenset((name, row) for name, row in rows_of if row is not None)
