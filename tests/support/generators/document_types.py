"""Random types of functions, random trees of them, and the same types as the package has them."""

from __future__ import annotations

import random

from corollary.documents.types.function_types import Child, FunctionType, Labels, Production
from corollary.documents.types.function_types import Grammar as PackageGrammar
from oracles.document_types import ANY, Grammar, Type
from oracles.documents import Tree
from support.generators.documents import LABELS

NAMES = "ABC"


def random_type(chance: random.Random, functions: str = "") -> Type:
    """Return the type of a function: often a grammar, sometimes labels only.

    Args:
        chance: where the random numbers come from.
        functions: those that trees of a grammar may call.
    """
    if chance.random() < 0.4:
        return some_labels(chance)
    return random_grammar(chance, functions)


def some_labels(chance: random.Random) -> frozenset[str]:
    pool = (*LABELS, "z")
    return frozenset(chance.sample(pool, chance.choices((0, 1, 2), (1, 6, 3))[0]))


def random_grammar(chance: random.Random, functions: str = "") -> Grammar:
    """Return a grammar; its types may have no finite tree, or be circular."""
    names = NAMES[: chance.randint(1, 3)]
    rules = {}
    for name in names:
        labels = None if chance.random() < 0.15 else some_labels(chance)
        children = tuple(
            (
                ANY if chance.random() < 0.1 else chance.choice(names),
                chance.random() < 0.25,
                chance.random() < 0.5,
            )
            for _ in range(chance.choices((0, 1, 2, 3), (2, 4, 3, 1))[0])
        )
        rules[name] = (labels, children)
    calls = {name: frozenset(each for each in functions if chance.random() < 0.6) for name in names}
    return Grammar("A", rules, {name: several for name, several in calls.items() if several})


def as_package(type_: frozenset[str] | Grammar) -> FunctionType:
    """Return a type as the package has it."""
    if not isinstance(type_, Grammar):
        return Labels(type_)
    rules = {
        name: Production(
            labels,
            tuple(Child(*each) for each in children),
            type_.calls.get(name, frozenset()),
        )
        for name, (labels, children) in type_.rules.items()
    }
    return PackageGrammar(type_.start, rules)


def random_tree(type_: Type, chance: random.Random, depth: int) -> Tree | None:
    """Return a tree of a type, about so deep, with calls only where a grammar names functions.

    It is None if none was found.
    """
    if isinstance(type_, Grammar):
        return of_grammar(type_, type_.start, chance, depth)
    if type_ is not None and not type_:
        return None
    label = chance.choice((*LABELS, "z") if type_ is None else sorted(type_))
    number = chance.choices((0, 1, 2, 3), (2, 4, 3, 1))[0] if depth > 1 else 0
    below = (random_tree(None, chance, depth - 1) for _ in range(number))
    return label, [each for each in below if each is not None]


def of_grammar(grammar: Grammar, name: str, chance: random.Random, depth: int) -> Tree | None:
    if name == ANY:
        return random_tree(None, chance, depth)
    labels, children = grammar.rules[name]
    if depth < -2 or labels == frozenset():
        return None
    below = []
    for child, is_required, is_single in children:
        number = int(is_required)
        if depth > 1:
            number = max(number, chance.randint(0, 1 if is_single else 2))
        several = [of_grammar(grammar, child, chance, depth - 1) for _ in range(number)]
        found = [each for each in several if each is not None]
        if is_required and not found:
            return None
        below += found
    below += [(f"!{each}", []) for each in grammar.calls.get(name, ()) if chance.random() < 0.6]
    return chance.choice((*LABELS, "z") if labels is None else sorted(labels)), below
