"""A nullable variable in two or more places of a body carries a test that it is not null.

The test is the condition `x = x`: comparisons with null are false.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from corollary.core.program import Relation
from corollary.core.rules import Condition, Rule
from corollary.core.terms import Variable


def nulls(rule: Rule, relations: Mapping[str, Relation]) -> Rule:
    """Return the rule with the tests that its nullable variables need."""
    places: Counter[str] = Counter()
    nullable: dict[str, Variable] = {}
    for literal in rule.literals:
        types = relations[literal.relation].types
        for slot, type_ in zip(literal.slots, types, strict=True):
            if isinstance(slot, Variable):
                places[slot.name] += 1
                if type_.nullable:
                    nullable[slot.name] = slot
    tests = tuple(
        Condition("=", variable, variable)
        for name, variable in nullable.items()
        if places[name] > 1
    )
    return replace(rule, conditions=rule.conditions + tests)
