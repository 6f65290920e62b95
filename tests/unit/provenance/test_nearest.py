"""The nearest instances of rules, against all substitutions over the known values."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from random import Random

import pytest

from corollary.core.logic import Rule
from corollary.database.database import state_of
from corollary.provenance.absences.nearest import MAX_DISTANCE, NearestInstances, nearest_instances
from corollary.provenance.limits import Allowance, ProofLimits
from corollary.provenance.query_state import query_state
from support.provenance.small_programs import (
    VIEWS,
    Fact,
    Row,
    SmallRule,
    known_values,
    open_database,
    random_facts,
    random_program,
)
from support.selection import examples

LIMITS = ProofLimits(seconds=60.0)
DOMAIN = (1, 2, 3)


@dataclass
class Judged:
    """What all substitutions say of one rule and tuple: the failing parts, and the values left."""

    distance: int
    instances: set[tuple[tuple[int, ...], tuple[tuple[str, int], ...]]]


def judge(rule: SmallRule, row: Row, facts: set[Fact], domain: set[int]) -> Judged | None:
    """Return the nearest instances of a rule for a tuple; None if the head does not fit."""
    # The parts of a normal rule are literals, then comparisons.
    order = sorted(rule.body, key=lambda test: test.name in ("<", "!=", ">="))
    head = {name for name in rule.head.terms if isinstance(name, str)}
    best: Judged | None = None
    for values in rule.instances(domain):
        if rule.derives(values)[1] != row:
            continue
        failing = tuple(at for at, test in enumerate(order) if not test.holds(values, facts))
        kept = {
            name for at, test in enumerate(order) if at not in failing for name in test.variables
        }
        found = failing, tuple(sorted((n, v) for n, v in values.items() if n in kept - head))
        if best is None or len(failing) < best.distance:
            best = Judged(len(failing), {found})
        elif len(failing) == best.distance:
            best.instances.add(found)
    return best


def bindings(instance: Mapping[str, tuple[object, object]], rule: Rule) -> tuple[object, ...]:
    head = {slot.name for slot in rule.head.slots if hasattr(slot, "name")}
    return tuple(sorted((name, value) for name, (value, _) in instance.items() if name not in head))


@pytest.mark.parametrize("storage", ["stored", "virtual"])
@pytest.mark.parametrize("seed", range(examples(4, 12)))
def test_all_substitutions_agree(seed: int, storage: str) -> None:
    random = Random(seed)
    program, base = random_program(random), random_facts(random, DOMAIN)
    facts = program.evaluate(base, DOMAIN)
    with open_database(program, base, storage) as db:
        asked = query_state(state_of(db))
        for name, arity in {**VIEWS[0], **VIEWS[1], **VIEWS[2]}.items():
            absent = [row for row in product(DOMAIN, repeat=arity) if (name, row) not in facts]
            rules = [rule for rule in program.rules if rule.head.name == name]
            found, is_complete = nearest_instances(asked, name, absent, Allowance(LIMITS))
            assert is_complete
            for row, nearest in zip(absent, found, strict=True):
                given = known_values(program, base, row) | {v for each in absent for v in each}
                expected = [judge(rule, row, facts, given) for rule in rules]
                check_row([each for each in expected if each is not None], nearest)


def check_row(expected: list[Judged], found: list[NearestInstances]) -> None:
    assert len(expected) == len(found)
    for judged, nearest in zip(expected, found, strict=True):
        if judged.distance > MAX_DISTANCE:
            assert nearest.beginning is not None
            continue
        assert nearest.beginning is None
        assert (nearest.distance, nearest.count) == (judged.distance, len(judged.instances))
        shown = [(each.failing, bindings(each.bindings, nearest.rule)) for each in nearest.shown]
        assert len(set(shown)) == min(3, nearest.count)
        assert set(shown) <= judged.instances
