"""A relation that chooses among its facts has them in a base part: `p(x) :- p.base(x)`."""

from dataclasses import replace

from corollary.core.logic import Literal, Origin, Rule
from corollary.rewrite.translation_unit import TranslationUnit


def choices(unit: TranslationUnit) -> None:
    """Give every relation with a choice domain and without rules a base part and one rule."""
    derived = {rule.head.relation for rule in unit.rules}
    for name, relation in list(unit.relations.items()):
        if not relation.domains or name in derived:
            continue
        base = unit.unused_name(f"{name}.base")
        unit.relations[base] = replace(
            relation, name=base, is_declared=False, is_derived=False, domains=()
        )
        slots = relation.variables
        origin = Origin(f"the facts of {name}", None, ("choices",))
        unit.rules.append(Rule(Literal(name, slots), (Literal(base, slots),), (), origin))
        if name in unit.facts:
            unit.facts[base] = unit.facts.pop(name)
        unit.bases = {**unit.bases, name: base}
