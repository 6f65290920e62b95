"""An `eqrel` relation is the reflexive, symmetric, transitive closure of its tuples.

Facts and rules fill a seed, and the closure is linear in it:

    same(x, x) :- same.seed(x, _).      same(x, z) :- same(x, y), same.seed(y, z).
    same(x, x) :- same.seed(_, x).      same(x, z) :- same(x, y), same.seed(z, y).
"""

from collections.abc import Iterator
from dataclasses import replace

from corollary.core.logic import Literal, Origin, Rule, Variable, Wildcard
from corollary.core.program import Declaration
from corollary.core.types import Type
from corollary.rewrite.translation_unit import TranslationUnit


def equivalences(unit: TranslationUnit) -> None:
    """Give every `eqrel` a seed, which is its base, and the rules that close it."""
    seeds: dict[str, str] = {}
    for declaration in unit.declarations:
        if declaration.is_equivalence:
            name, relation = declaration.name, unit.relations[declaration.name]
            seed = seeds[name] = unit.unused_name(f"{name}.seed")
            unit.relations[seed] = replace(relation, name=seed, is_declared=False)
            unit.rules = [_into_seed(rule, name, seed) for rule in unit.rules]
            unit.rules += _closure(declaration, seed, relation.types[0])
            if name in unit.facts:
                unit.facts[seed] = unit.facts.pop(name)
    unit.bases = seeds


def _into_seed(rule: Rule, name: str, seed: str) -> Rule:
    """Return the rule with the seed as its head, if it defines the equivalence."""
    if rule.head.relation != name:
        return rule
    head = replace(rule.head, relation=seed)
    return replace(rule, head=head, origin=rule.origin.with_pass("equivalences"))


def _closure(declaration: Declaration, seed: str, type_: Type) -> Iterator[Rule]:
    name = declaration.name
    origin = Origin(f".decl {name}(…) eqrel", declaration.span, ("equivalences",))
    x, y, z = (Variable(letter, type_) for letter in "xyz")
    anything = Wildcard()
    for member in (Literal(seed, (x, anything)), Literal(seed, (anything, x))):
        yield Rule(Literal(name, (x, x)), (member,), (), origin)
    for link in (Literal(seed, (y, z)), Literal(seed, (z, y))):
        yield Rule(Literal(name, (x, z)), (Literal(name, (x, y)), link), (), origin)
