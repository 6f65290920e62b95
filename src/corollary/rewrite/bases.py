"""A relation with both rules and base tuples gets a base part: `p(x) :- p.base(x)`.

When a program changes, what its relations hold must stay somewhere. So a relation that had base
tuples and gets rules keeps the tuples in a base part, and one that loses its rules stays derived,
with a base part.

Where numbers are words of 32 bits, each relation with numbers has a base part, whose values the
rule converts: what a file has may not fit.
"""

from dataclasses import replace

from corollary.core.logic import Condition, Literal, Origin, Rule, Variable
from corollary.core.program import Relation
from corollary.core.types import Kind
from corollary.rewrite.clauses.words import checked_word
from corollary.rewrite.translation_unit import TranslationUnit

_WORDS = (Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT)


def bases(unit: TranslationUnit) -> None:
    """Make the base parts; the seeds of equivalences are bases already, and may need one too."""
    seeds, before = unit.bases, unit.before
    filled = {*unit.facts, *(seeds.get(name, name) for name in unit.inputs)}
    derived = {rule.head.relation for rule in unit.rules}
    derived |= {aggregation.relation for aggregation in unit.aggregations}
    found = dict(seeds)
    relations: dict[str, Relation] = {}
    for name, relation in unit.relations.items():
        was = before.relations.get(name) if before else None
        has_base = name in filled or (before is not None and name in before.bases)
        if was is not None:
            has_base |= was.is_derived != (name in derived)
        is_derived = name in derived or (was is not None and was.is_derived)
        if (
            unit.has_words
            and not is_derived
            and any(each.kind in _WORDS for each in relation.types)
        ):
            is_derived = has_base = True
        relations[name] = replace(relation, is_derived=is_derived)
        if is_derived and has_base and name not in seeds:
            base = found[name] = unit.unused_name(f"{name}.base")
            relations[base] = Relation(
                base, relation.columns, relation.types, is_derived=False, is_declared=False
            )
            if name in unit.facts:
                unit.facts[base] = unit.facts.pop(name)
            unit.rules.append(_union(relation, base, unit.has_words))
    unit.relations = relations
    unit.bases = found | {name: found.get(seed, seed) for name, seed in seeds.items()}


def _union(relation: Relation, base: str, has_words: bool) -> Rule:
    slots = relation.variables
    origin = Origin(f"the facts of {relation.name}", None, ("bases",))
    conditions: list[Condition] = []
    made = list(slots)
    for at, slot in enumerate(slots if has_words else ()):
        word = Variable(f"{slot.name}.word", slot.type)
        condition = checked_word(slot, word)
        if condition is not None:
            conditions.append(condition)
            made[at] = word
    head = Literal(relation.name, tuple(made))
    return Rule(head, (Literal(base, slots),), tuple(conditions), origin)
