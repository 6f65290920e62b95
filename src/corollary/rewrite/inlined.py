"""The body of an aggregate is inlined where one rule defines it and derives nothing twice.

`h.body1(x, y, v) :- q(x, y), r(y, v)` has a tuple for each instance of its rule. Whoever aggregates
it can read the instances, so that the tuples, as many as the join has, are not stored.
"""

from dataclasses import replace

from corollary.core.logic import has_single_derivations
from corollary.rewrite.translation_unit import TranslationUnit


def inlined(unit: TranslationUnit) -> None:
    """Let bodies of aggregates be inlined that passes made, and that have one such rule."""
    for name in {each.body for each in unit.aggregations}:
        relation = unit.relations[name]
        rules = [rule for rule in unit.rules if rule.head.relation == name]
        is_made = relation.is_derived and not relation.is_declared
        if is_made and len(rules) == 1 and has_single_derivations(rules[0]):
            unit.relations[name] = replace(relation, is_virtual=True, is_inlined=True)
