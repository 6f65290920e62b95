"""What is stored beside relations, checked by brute force: ranks, counts and totals.

The rules of the normal program are evaluated by joining all their literals tuple by tuple; nothing
of the engine is used but reading. Strata with arithmetic in their rules are left out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

from corollary.analysis.strata import Stratum, strata
from corollary.core.arrow import to_python
from corollary.core.logic import Aggregation, Condition, Constant, Literal, Rule, Variable
from corollary.core.totals import SpecialPlace
from corollary.core.types import Type
from corollary.database.database import Database
from corollary.maintain.payload import Part, Payload, parts_of, payload_kind, payload_kinds
from oracles.evaluation import canonical, compare

Row: TypeAlias = tuple[Any, ...]
Instance: TypeAlias = tuple[Row, tuple[tuple[str, Row], ...]]
"""A head, and the tuples that stand for the positive literals."""


def check_payload(db: Database) -> int:
    """Assert that valid ranks, counts and totals are right; return how many were looked at."""
    program = db._state.loaded.normal
    looked_at = 0
    relations: dict[str, list[Row]] = {}
    for stratum in strata(program):
        valid = set(stratum.relations) <= db._state.planner.payload
        valid &= not stratum.subsumption  # its stairs are checked in `stairs_check.py`
        if valid and stratum.is_grouped:
            looked_at += check_levels(db, stratum)
        elif valid and stratum.aggregations:
            looked_at += check_totals(db, stratum)
        elif valid and not stratum.has_choice and all(map(is_plain, stratum.rules)):
            below = {each.relation for rule in stratum.rules for each in rule.literals}
            below |= set(stratum.relations)
            if any(_is_virtual(db, name) for name in below):
                continue
            for name in below - set(relations):
                relations[name] = read(db, name)
            check = check_ranks if stratum.is_recursive else check_counts
            looked_at += check(db, stratum, relations)
    return looked_at


def _is_virtual(db: Database, name: str) -> bool:
    relation = db._state.loaded.normal.relations[name]
    return relation.is_derived and relation.is_virtual


def read(db: Database, name: str) -> list[Row]:
    """Return the tuples of a relation, floats in canonical form."""
    return [tuple(map(canonical, row)) for row in to_python(db._state.engine.read(name))]


def is_plain(rule: Rule) -> bool:
    """Whether a rule compares variables and constants only."""
    return not rule.is_lenient and all(
        isinstance(side, Variable | Constant)
        for condition in rule.conditions
        for side in (condition.left, condition.right)
    )


def check_ranks(db: Database, stratum: Stratum, relations: Mapping[str, list[Row]]) -> int:
    """Assert that every tuple has a derivation whose premises of its stratum have smaller ranks."""
    ranks: dict[tuple[str, Row], int] = {}
    for name in stratum.relations:
        ranked = [(row[:-1], row[-1]) for row in read(db, f"{name}•rank")]
        assert Counter(row for row, _ in ranked) == Counter(relations[name]), name
        ranks |= {(name, row): rank for row, rank in ranked}
    supported = set()
    for rule in stratum.rules:
        name = rule.head.relation
        for head, premises in instances(rule, relations):
            own = [ranks[each] for each in premises if each[0] in stratum.relations]
            if all(rank < ranks[name, head] for rank in own):
                supported.add((name, head))
    assert supported == set(ranks), f"ranks of {set(ranks) - supported} are not well-founded"
    return len(ranks)


def check_levels(db: Database, stratum: Stratum) -> int:
    """Assert that a group that reads others, and no other, has a level, and one above theirs."""
    relations = db._state.loaded.normal.relations
    levels: dict[tuple[str, Row], int] = {}
    arcs: list[tuple[tuple[str, Row], tuple[str, Row]]] = []
    for name in stratum.relations:
        if grouping := relations[name].grouping:
            rows = read(db, f"{name}•level")
            assert len({row[:-1] for row in rows}) == len(rows), f"two levels for a group of {name}"
            levels |= {(name, row[:-1]): row[-1] for row in rows}
            width = len(grouping.key)
            for below, pairs in grouping.reads:
                found = read(db, pairs)
                arcs += [((name, row[:width]), (below, row[width:])) for row in found]
    assert levels.keys() == {reader for reader, _ in arcs}, "levels of other groups"
    for reader, read_group in arcs:
        assert levels[reader] > levels.get(read_group, 0), (reader, read_group, levels)
    return len(levels)


def check_counts(db: Database, stratum: Stratum, relations: Mapping[str, list[Row]]) -> int:
    """Assert that the stored counts are the numbers of derivations; without counts, all one."""
    (name,) = stratum.relations
    found = Counter(head for rule in stratum.rules for head, _ in instances(rule, relations))
    if not payload_kind(stratum, db._state.loaded.normal):
        assert found == Counter(relations[name]), f"a tuple of {name} has several derivations"
        return len(found)
    counted = {row[:-1]: row[-1] for row in read(db, f"{name}•count")}
    assert counted == found, f"counts of {name} are {counted}, not {found}"
    assert db._state.engine.size(f"{name}•count") == len(counted)
    return len(counted)


def check_totals(db: Database, stratum: Stratum) -> int:
    """Assert that stored totals are what the assignments of the body say."""
    program = db._state.loaded.normal
    (aggregation,) = stratum.aggregations
    rows = assignments(db, aggregation)
    if not payload_kinds(stratum, program) or rows is None:
        return 0
    types = program.relations[aggregation.body].types
    return sum(
        check_part(db, part, types, rows) for part in parts_of(aggregation, program) if part.payload
    )


def check_part(db: Database, part: Part, types: tuple[Type, ...], rows: list[Row]) -> int:
    """Assert that the totals of some accumulators are what the assignments say."""
    aggregation, kind = part.aggregation, part.payload
    expected: Counter[Row] = Counter()
    for row in rows:
        group = tuple(row[at] for at in aggregation.groups)
        term = row[aggregation.values[0]] if aggregation.values else 0
        is_counted = term is not None or aggregation.accumulators[0].operator != "mean"
        if kind is Payload.VALUES:
            expected[*group, term] += term is not None or aggregation.only.is_nullable
        elif kind is Payload.DIGITS:
            expected[*group, SpecialPlace.COUNT] += is_counted
            for place, digit in digits(term):
                expected[*group, place] += digit
        else:
            expected[*group, 0] += is_counted
            last = 0
            for column in aggregation.values:
                words = 4 if types[column].precision > 18 else 2
                scale = 10 ** types[column].scale
                value = 0 if row[column] is None else int(Fraction(row[column]) * scale)
                expected[*group, last + 1] += value >> 32 * (words - 1)
                for at in range(words - 1):
                    expected[*group, last + words - at] += value >> 32 * at & 0xFFFFFFFF
                last += words
    found: Counter[Row] = Counter()
    for row in read(db, part.kept):
        if kind is Payload.TOTAL:
            group, totals = row[: len(aggregation.groups)], row[len(aggregation.groups) :]
            found.update({(*group, at): number for at, number in enumerate(totals)})
        else:
            assert row[-1] != 0, row
            found[row[:-1]] = row[-1]
    expected, found = (Counter({k: n for k, n in each.items() if n}) for each in (expected, found))
    assert found == expected, f"totals of {aggregation} are {found}, not {expected}"
    return len(found)


def assignments(db: Database, aggregation: Aggregation) -> list[Row] | None:
    """Return the tuples of an aggregate's body; None if they are not stored and rules not plain."""
    relations = db._state.loaded.normal.relations
    if not relations[aggregation.body].is_inlined:
        return None if _is_virtual(db, aggregation.body) else read(db, aggregation.body)
    (rule,) = (
        each for each in db._state.loaded.normal.rules if each.head.relation == aggregation.body
    )
    below = {each.relation for each in rule.literals}
    if not is_plain(rule) or any(_is_virtual(db, name) for name in below):
        return None
    return [head for head, _ in instances(rule, {name: read(db, name) for name in below})]


def digits(term: float | None) -> Iterator[tuple[int, int]]:
    """Yield places and digits of a float, which is a multiple of 2^-1074."""
    if term is None:
        return
    if math.isnan(term) or math.isinf(term):
        places = (SpecialPlace.NAN, SpecialPlace.INFINITY, SpecialPlace.NEGATIVE_INFINITY)
        yield places[0 if math.isnan(term) else 1 if term > 0 else 2], 1
        return
    exact = Fraction(term) * 2**1074
    assert exact.denominator == 1
    for place in range(66):
        yield place, (abs(int(exact)) >> 32 * place & 0xFFFFFFFF) * (1 if exact > 0 else -1)


def instances(rule: Rule, relations: Mapping[str, list[Row]]) -> Iterator[Instance]:
    """Yield every instance of a rule that holds."""
    positive = [each for each in rule.literals if not each.negated]
    negated = [each for each in rule.literals if each.negated]
    for env, premises in joined(positive, {}, (), relations):
        bound = decided(rule.conditions, dict(env))
        if bound is None:
            continue
        if any(_value(each, bound) in relations[each.relation] for each in negated):
            continue
        yield _value(rule.head, bound), premises


def joined(
    literals: list[Literal],
    env: dict[str, Any],
    premises: tuple[tuple[str, Row], ...],
    relations: Mapping[str, list[Row]],
) -> Iterator[tuple[dict[str, Any], tuple[tuple[str, Row], ...]]]:
    """Yield the bindings that match all literals, with the tuples that they match."""
    if not literals:
        yield env, premises
        return
    first, *rest = literals
    for row in relations[first.relation]:
        extended = matched(first, row, env)
        if extended is not None:
            yield from joined(rest, extended, (*premises, (first.relation, row)), relations)


def matched(literal: Literal, row: Row, env: dict[str, Any]) -> dict[str, Any] | None:
    """Return the bindings with those that a tuple gives to a literal."""
    found = dict(env)
    for slot, value in zip(literal.slots, row, strict=True):
        match slot:
            case Constant(value=constant):
                if not _same(canonical(constant), value):
                    return None
            case Variable(name=name):
                if name in found and not _same(found[name], value):
                    return None
                found[name] = value
    return found


def decided(conditions: tuple[Condition, ...], env: dict[str, Any]) -> dict[str, Any] | None:
    """Return the bindings with those that equations add, None if a condition does not hold."""
    waiting = list(conditions)
    while waiting:
        for condition in waiting:
            sides = (condition.left, condition.right)
            known = [not isinstance(side, Variable) or side.name in env for side in sides]
            if all(known):
                left, right = (_term(side, env) for side in sides)
                operator = "=" if condition.operator == "is" else condition.operator
                if condition.operator == "is" and left is None and right is None:
                    break
                if left is None or right is None or not compare(operator, left, right):
                    return None
                break
            if any(known) and condition.operator in ("=", "is"):
                unknown = sides[known.index(False)]
                assert isinstance(unknown, Variable)
                value = _term(sides[known.index(True)], env)
                if value is None and condition.operator == "=":
                    return None
                env[unknown.name] = value
                break
        else:
            raise AssertionError(f"nothing decides {waiting}")
        waiting.remove(condition)
    return env


def _term(term: Any, env: dict[str, Any]) -> Any:
    return env[term.name] if isinstance(term, Variable) else canonical(term.value)


def _value(literal: Literal, env: dict[str, Any]) -> Row:
    return tuple(_term(slot, env) for slot in literal.slots)


def _same(one: Any, other: Any) -> bool:
    return one is other or bool(one == other)
