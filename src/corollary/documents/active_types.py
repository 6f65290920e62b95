"""Active types: types whose trees call functions, which bring trees of their own types.

Calls refer from the type of one function to those of others, in circles perhaps. For each function
the types that it can come to are put into one grammar. With the types

    f: Grammar("A", {"A": Rule({"a"}, (Child("B"),), calls={"g"}), "B": Rule({"b"})})
    g: Labels({"c"})

what `f` brings looks in the end like

| type         | labels | children                        |
|--------------|--------|---------------------------------|
| `["f", "A"]` | `a`    | any number of `["f", "B"]`, `!g` |
| `["f", "B"]` | `b`    |                                 |
| `!g`         | `c`    | any number of `ANY`             |

A stream brings any number of trees to each call of it, so that is exact. A function that answers
once brings one tree to all of its calls: for it the grammar is an upper bound.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import assert_never

from corollary.documents.types import (
    ANY,
    ANYTHING,
    NO_TREE,
    Child,
    FunctionType,
    Grammar,
    Labels,
    Rule,
    brought_by,
)

Types = Mapping[str, FunctionType]
"""The types of functions by name; the others may bring anything."""


def whole_type(name: str, types: Types, silent: Collection[str]) -> FunctionType | None:
    """Return what the trees of a function look like once the calls in them have brought theirs.

    Args:
        name: the function.
        types: those of all functions.
        silent: the functions that bring nothing where they are called.
    """
    type_ = types.get(name)
    if not isinstance(type_, Grammar) or not called_in(type_):
        return type_
    rules = _renamed(name, type_)
    left = [*called_in(type_)]
    while left:
        function = left.pop()
        if brought_by(function) in rules:
            continue
        if function in silent:
            rules[brought_by(function)] = NO_TREE
            continue
        other = types.get(function)
        if isinstance(other, Grammar):
            rules |= _renamed(function, other)
            left += called_in(other)
        rules[brought_by(function)] = _first_rule(function, other)
    return Grammar(_own(name, type_.start), rules)


def called_in(grammar: Grammar) -> frozenset[str]:
    """Return the functions that trees of a grammar may call where its rules name them."""
    return frozenset[str]().union(*(rule.calls for rule in grammar.rules.values()))


def _first_rule(function: str, type_: FunctionType | None) -> Rule:
    """Return the rule for the roots of what a function brings."""
    match type_:
        case None:
            return ANYTHING
        case Labels(labels=labels):
            return Rule(labels, ANYTHING.children)
        case Grammar(start=start):
            if start == ANY:
                return ANYTHING
            return _renamed(function, type_).get(_own(function, start), NO_TREE)
        case _:
            assert_never(type_)


def _renamed(function: str, grammar: Grammar) -> dict[str, Rule]:
    """Return the rules of a grammar with the name of its function in those of types."""
    return {
        _own(function, name): replace(
            rule, children=tuple(_child(function, each) for each in rule.children)
        )
        for name, rule in grammar.rules.items()
    }


def _child(function: str, child: Child) -> Child:
    return replace(child, type=_own(function, child.type))


def _own(function: str, name: str) -> str:
    """Return the name of a type of a function among those of all functions."""
    return ANY if name == ANY else json.dumps([function, name])
