"""A nullable variable in two or more places of a body gets a test that it is not null.

The test is the condition `x = x`: comparisons with null are false. In null-safe rules (`:=`) null
joins null, as it does in the engines: they get no test.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from corollary.core.logic import Condition, Rule, Variable
from corollary.core.program import Relation
from corollary.rewrite.translation_unit import TranslationUnit


def nulls(unit: TranslationUnit) -> None:
    """Add the tests that nullable join variables need."""
    unit.rules = [
        rule if rule.is_null_safe else _with_tests(rule, unit.relations) for rule in unit.rules
    ]


def _with_tests(rule: Rule, relations: Mapping[str, Relation]) -> Rule:
    occurrences: Counter[str] = Counter()
    nullable: dict[str, Variable] = {}
    for literal in rule.literals:
        types = relations[literal.relation].types
        for slot, type_ in zip(literal.slots, types, strict=True):
            if isinstance(slot, Variable):
                occurrences[slot.name] += 1
                if type_.nullable:
                    nullable[slot.name] = slot
    tests = tuple(
        Condition("=", variable, variable)
        for name, variable in nullable.items()
        if occurrences[name] > 1
    )
    return replace(rule, conditions=rule.conditions + tests)
