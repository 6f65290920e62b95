"""The body of an aggregate is inlined where one rule defines it and derives nothing twice.

`h.body1(x, y, v) :- q(x, y), r(y, v)` has a tuple for each instance of its rule. Whoever aggregates
it can read the instances, so that the tuples, as many as the join has, are not stored. The same
holds for a declared relation that is virtual: no change of it need be found for the aggregate.
The body of an aggregate over its own stratum is stored: it changes group by group.
"""

from dataclasses import replace

from corollary.analysis.keys import has_single_derivations
from corollary.core.logic import Aggregation
from corollary.rewrite.translation_unit import TranslationUnit


def inlined(unit: TranslationUnit) -> None:
    """Let bodies of aggregates be inlined that are not stored, and that have one such rule."""
    keys = unit.keys
    bodies = {each.body for each in unit.aggregations if isinstance(each, Aggregation)}
    for name in bodies - unit.recursive_bodies:
        relation = unit.relations[name]
        rules = [rule for rule in unit.rules if rule.head.relation == name]
        is_open = relation.is_derived and (relation.is_virtual or not relation.is_declared)
        if is_open and len(rules) == 1 and has_single_derivations(rules[0], keys):
            unit.relations[name] = replace(relation, is_virtual=True, is_inlined=True)
