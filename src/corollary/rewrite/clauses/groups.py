"""Aggregates of the same groups are one relation, with a column for each.

`h(x, n, s) :- q(x, _), n = count : { q(x, v) }, s = sum v : { q(x, v) }.` has become

    h(x, n, s) :- q(x, _), h.aggregate1(x, n), h.aggregate2(x, s).

Both have the groups of `q`, so that one record says all of a group, and is kept by one step:

    h(x, n, s) :- q(x, _), h.aggregate1(x, n, s).

A rule that reads one of them and asks that the other has no group never holds, so that of the
alternatives for empty groups one is left. Only aggregates of one clause are taken together, and
only those that have a value, or null, for every group.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from corollary.core.logic import Accumulator, Aggregation, Condition, Literal, Rule, Slot, Wildcard
from corollary.core.types import Type
from corollary.rewrite.align import canonical_rule
from corollary.rewrite.translation_unit import TranslationUnit, unused_name
from corollary.source import Span

_Columns = dict[str, tuple[Aggregation, int]]
"""For each aggregate that was taken together with others, those, and its column."""

_Readers = dict[str, set[tuple[str, str, Span | None]]]
"""For each relation the clauses whose rules read it: head, text and position."""


def groups(unit: TranslationUnit) -> None:
    """Make one relation of the aggregates of the same groups in a clause."""
    readers: _Readers = {}
    for rule in unit.rules:
        for literal in rule.literals:
            clause = rule.head.relation, rule.origin.text, rule.origin.span
            readers.setdefault(literal.relation, set()).add(clause)
    _share_bodies(unit, readers)
    alike: dict[object, list[Aggregation]] = {}
    for each in unit.aggregations:
        if isinstance(each, Aggregation) and _has_every_group(each, unit):
            key = frozenset(readers.get(each.relation, ())), each.body, each.groups
            alike.setdefault(key, []).append(each)
    columns: _Columns = {}
    for found in alike.values():
        if len(found) > 1:
            columns |= _merge(found, unit)
    if columns:
        unit.rules = [changed for rule in unit.rules for changed in _read_merged(rule, columns)]


def _has_every_group(aggregation: Aggregation, unit: TranslationUnit) -> bool:
    """Whether an aggregate has a value, or null, for every group, and is not recursive."""
    types = unit.relations[aggregation.body].types
    has_nulls = any(types[at].nullable for at in aggregation.values)
    is_recursive = aggregation.body in unit.recursive_bodies
    return not is_recursive and (aggregation.has_every_group or not has_nulls)


def _merge(found: Sequence[Aggregation], unit: TranslationUnit) -> _Columns:
    """Take aggregates together under the name of the first; return where each of them is."""
    first, count = found[0], len(found[0].groups)
    relation = unit.relations[first.relation]
    names, types = list(relation.columns[:count]), list(relation.types[:count])
    at: dict[tuple[Accumulator, Type], int] = {}
    for each in found:
        shape = unit.relations[each.relation]
        key = _without_gaps(each.only), shape.types[-1]
        if key not in at:
            at[key] = len(names)
            names.append(unused_name(shape.columns[-1], names))
            types.append(shape.types[-1])
    merged = replace(first, accumulators=tuple(each for each, _ in at))
    columns = {
        each.relation: (
            merged,
            at[_without_gaps(each.only), unit.relations[each.relation].types[-1]],
        )
        for each in found
    }
    unit.relations[first.relation] = replace(relation, columns=tuple(names), types=tuple(types))
    for each in found[1:]:
        del unit.relations[each.relation]
        unit.aggregations.remove(each)
    unit.aggregations[unit.aggregations.index(first)] = merged
    return columns


def _without_gaps(accumulator: Accumulator) -> Accumulator:
    """Return an accumulator that has a value for every group as one that says so."""
    return accumulator if accumulator.has_every_group else replace(accumulator, is_nullable=True)


def _read_merged(rule: Rule, columns: _Columns) -> Iterator[Rule]:
    """Yield a rule that reads the merged relations; none if it asks for a group that is not there.

    Of several literals for a group, one is left.
    """
    if not any(literal.relation in columns for literal in rule.literals):
        yield rule
        return
    literals: dict[object, Literal] = {}
    asked: set[tuple[object, ...]] = set()
    conditions = list(rule.conditions)
    for number, literal in enumerate(rule.literals):
        if literal.relation not in columns:
            literals[number] = literal
            continue
        merged, column = columns[literal.relation]
        count = len(merged.groups)
        slots: list[Slot] = [*literal.slots[:count], *(Wildcard() for _ in merged.accumulators)]
        slots[column] = literal.slots[-1]
        key = merged.relation, literal.slots[:count], literal.negated
        asked.add(key)
        if key in literals:
            value, slots = slots[column], list(literals[key].slots)
            known = slots[column]
            if isinstance(known, Wildcard):
                slots[column] = value
            elif not isinstance(value, Wildcard):
                # One value has two names. Null is a sum that is too large: whoever reads it errs.
                conditions.append(Condition("is", value, known))
        literals[key] = Literal(merged.relation, tuple(slots), negated=literal.negated)
    if any((*group, not is_negated) in asked for *group, is_negated in asked):
        return
    yield replace(
        rule,
        literals=tuple(literals.values()),
        conditions=tuple(conditions),
        origin=rule.origin.with_pass("groups"),
    )


def _share_bodies(unit: TranslationUnit, readers: _Readers) -> None:
    """Let aggregates of equal bodies, which passes have made, read one of them."""
    bodies = {each.body for each in unit.aggregations if isinstance(each, Aggregation)}
    made = {
        name: [rule for rule in unit.rules if rule.head.relation == name]
        for name in bodies - unit.recursive_bodies - readers.keys()
        if not unit.relations[name].is_declared
    }
    known: dict[object, str] = {}
    shared: dict[str, str] = {}
    for each in unit.aggregations:
        if each.body in made and each.body not in shared:
            rules = sorted(
                repr((canonical_rule(rule, {}), rule.is_null_safe)) for rule in made[each.body]
            )
            clauses = frozenset(readers.get(each.relation, ()))
            definition = tuple(rules), unit.relations[each.body].types, clauses
            if known.setdefault(definition, each.body) != each.body:
                shared[each.body] = known[definition]
    if not shared:
        return
    unit.aggregations = [
        replace(each, body=shared.get(each.body, each.body)) for each in unit.aggregations
    ]
    unit.rules = [rule for rule in unit.rules if rule.head.relation not in shared]
    for name in shared:
        del unit.relations[name]
