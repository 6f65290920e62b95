"""What an aggregate implies is not tested again: a group that exists has a tuple.

Grouping is written with the groups bound by the aggregated literal itself:
`h(x, s) :- q(x, _), s = sum v : { q(x, v) }.` In normal form that is

    h(x, s) :- q(x, _), h.aggregate1(x, s).
    h(x, s) :- q(x, _), !h.aggregate1.some1(x), s = 0.

A group that is there has a tuple, so the first rule does not need `q(x, _)`; a tuple has a group,
so the second rule never holds. Without them a change costs what it changes: `q(x, _)` has as many
matches as the group has tuples.

An aggregate over a conjunction, `{ q(x, y), r(y, v) }`, implies `q(x, _)` as well; but there may be
a `q(x, _)` without a group, so the second rule stays. A bag `q(x)` is `q.rows(x, _)`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from corollary.analysis.bags import rows_name
from corollary.core.logic import Aggregation, Constant, Literal, Rule, Slot, Wildcard
from corollary.rewrite.translation_unit import TranslationUnit


def implied(unit: TranslationUnit) -> None:
    """Drop literals that aggregates imply, and rules for empty groups that cannot be empty."""
    aggregations = {
        each.relation: each for each in unit.aggregations if isinstance(each, Aggregation)
    }
    counts = {each.name: rows_name(each.name) for each in unit.declarations if each.is_bag}
    projected = {
        rule.head.relation: (source, rule)
        for rule in unit.rules
        if not unit.relations[rule.head.relation].is_declared
        and len(rule.literals) == 1
        and not rule.conditions
        and (source := rule.literals[0].relation) in aggregations
    }
    total = {  # the projections that hold all groups of an aggregate with a value for each of them
        name: aggregations[source]
        for name, (source, rule) in projected.items()
        if aggregations[source].has_every_group
        and rule.head.slots == rule.literals[0].slots[: len(aggregations[source].groups)]
    }
    bodies: dict[str, list[Rule]] = {}
    for rule in unit.rules:
        if not unit.relations[rule.head.relation].is_declared:
            bodies.setdefault(rule.head.relation, []).append(rule)
    unit.rules = [
        _without_implied(rule, aggregations, bodies, counts)
        for rule in unit.rules
        if not _is_contradictory(rule, total, aggregations, counts)
    ]
    read = {literal.relation for rule in unit.rules for literal in rule.literals}
    for name in total.keys() - read:
        unit.rules.remove(projected[name][1])
        del unit.relations[name]


def _is_contradictory(
    rule: Rule,
    total: Mapping[str, Aggregation],
    aggregations: Mapping[str, Aggregation],
    counts: Mapping[str, str],
) -> bool:
    """Return whether a rule asks for a tuple or an aggregate of a group that is not there."""
    positive = [literal for literal in rule.literals if not literal.negated]
    return any(
        negated.negated
        and negated.relation in total
        and any(
            _has_group(form, total[negated.relation], negated.slots)
            or _aggregates_group(literal, total[negated.relation], negated.slots, aggregations)
            for literal in positive
            for form in _forms(literal, counts)
        )
        for negated in rule.literals
    )


def _aggregates_group(
    literal: Literal,
    aggregation: Aggregation,
    keys: tuple[Slot, ...],
    aggregations: Mapping[str, Aggregation],
) -> bool:
    """Return whether a literal is of another aggregate of the group with these keys."""
    other = aggregations.get(literal.relation)
    is_alike = other is not None and (other.body, other.groups) == (
        aggregation.body,
        aggregation.groups,
    )
    return is_alike and literal.slots[: len(keys)] == keys


def _without_implied(
    rule: Rule,
    aggregations: Mapping[str, Aggregation],
    bodies: Mapping[str, Sequence[Rule]],
    counts: Mapping[str, str],
) -> Rule:
    read = [
        (found, literal.slots[: len(found.groups)])
        for literal in rule.literals
        if not literal.negated and (found := aggregations.get(literal.relation)) is not None
    ]
    literals = tuple(
        literal
        for literal in rule.literals
        if literal.negated
        or not any(
            _is_implied(form, aggregation, keys, bodies)
            for aggregation, keys in read
            for form in _forms(literal, counts)
        )
    )
    if len(literals) == len(rule.literals):
        return rule
    return replace(rule, literals=literals, origin=rule.origin.with_pass("implied"))


def _forms(literal: Literal, counts: Mapping[str, str]) -> tuple[Literal, ...]:
    """Return a literal, and that of a bag also as one of its counts."""
    rows = counts.get(literal.relation)
    if rows is None:
        return (literal,)
    return literal, replace(literal, relation=rows, slots=(*literal.slots, Wildcard()))


def _is_implied(
    literal: Literal,
    aggregation: Aggregation,
    keys: tuple[Slot, ...],
    bodies: Mapping[str, Sequence[Rule]],
) -> bool:
    has_group = _has_group(literal, aggregation, keys) and _is_projection(literal, aggregation)
    rules = bodies.get(aggregation.body, ())
    return has_group or _is_in_bodies(literal, aggregation, keys, rules)


def _has_group(literal: Literal, aggregation: Aggregation, keys: tuple[object, ...]) -> bool:
    """Return whether a literal is of the aggregated relation, for the group with these keys."""
    return literal.relation == aggregation.body and keys == tuple(
        literal.slots[column] for column in aggregation.groups
    )


def _is_in_bodies(
    literal: Literal, aggregation: Aggregation, keys: tuple[Slot, ...], bodies: Sequence[Rule]
) -> bool:
    """Return whether every assignment of an aggregate's body has a tuple that a literal asks for.

    Args:
        literal: of the rule that reads the aggregate.
        aggregation: the aggregate.
        keys: the arguments that the rule reads it with.
        bodies: the rules of the relation that it aggregates, if a pass made that.
    """

    def stands_for(slot: Slot, inside: Slot, head: tuple[Slot, ...]) -> bool:
        if isinstance(slot, Wildcard) or (isinstance(slot, Constant) and slot == inside):
            return True
        places = zip(keys, aggregation.groups, strict=True)
        return any(slot == key and inside == head[column] for key, column in places)

    return bool(bodies) and all(
        any(
            inside.relation == literal.relation
            and not inside.negated
            and all(
                stands_for(*pair, rule.head.slots)
                for pair in zip(literal.slots, inside.slots, strict=True)
            )
            for inside in rule.literals
        )
        for rule in bodies
    )


def _is_projection(literal: Literal, aggregation: Aggregation) -> bool:
    """Return whether a literal says nothing about the columns that are no keys."""
    return all(
        isinstance(slot, Wildcard)
        for column, slot in enumerate(literal.slots)
        if column not in aggregation.groups
    )
