"""Active types: types whose trees call functions, which bring trees of their own types.

Calls refer from the type of one function to those of others, in circles perhaps. For each function
the types that it can reach are put into one grammar. With the types

    f: "A = a[B*, !g]  B = b[]"
    g: "c"

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

from corollary.documents.types import function_types

Types = Mapping[str, function_types.FunctionType]
"""The types of functions by name; the others may bring anything."""
Rules = dict[str, tuple[function_types.Production, ...]]
"""Types by name, those of several functions together."""


def expand_calls(
    name: str, types: Types, silent: Collection[str]
) -> function_types.FunctionType | None:
    """Return the type of a function with what the calls in its trees bring.

    Args:
        name: the function.
        types: those of all functions.
        silent: the functions that bring nothing where they are called.
    """
    type_ = types.get(name)
    if not isinstance(type_, function_types.Grammar) or not called_in(type_):
        return type_
    rules = _qualified_rules(name, type_)
    for function in called_in(type_):
        rules |= result_rules(function, types, silent)
    return function_types.Grammar(_qualify(name, type_.start), rules)


def result_rules(name: str, types: Types, silent: Collection[str]) -> Rules:
    """Return the rules of what a function brings, a tree of `!name`, and of what that calls."""
    rules: Rules = {}
    pending = [name]
    while pending:
        function = pending.pop()
        if function_types.call_type_name(function) in rules:
            continue
        type_ = None if function in silent else types.get(function)
        if isinstance(type_, function_types.Grammar):
            rules |= _qualified_rules(function, type_)
            pending += called_in(type_)
        roots = () if function in silent else _root_rules(function, type_)
        rules[function_types.call_type_name(function)] = roots
    return rules


def called_in(grammar: function_types.Grammar) -> frozenset[str]:
    """Return the functions that trees of a grammar may call where its rules name them."""
    return frozenset[str]().union(
        *(each.calls for name in grammar.rules for each in grammar.productions(name))
    )


def _root_rules(
    function: str, type_: function_types.FunctionType | None
) -> tuple[function_types.Production, ...]:
    """Return the productions for the roots of what a function brings."""
    match type_:
        case None:
            return (function_types.ANYTHING,)
        case function_types.Labels(labels=labels):
            return (function_types.Production(labels, function_types.ANYTHING.children),)
        case function_types.Grammar(start=start):
            return tuple(_qualified(function, each) for each in type_.productions(start))
        case _:
            assert_never(type_)


def _qualified_rules(function: str, grammar: function_types.Grammar) -> Rules:
    """Return the rules of a grammar with the name of its function in those of types."""
    return {
        _qualify(function, name): tuple(
            _qualified(function, each) for each in grammar.productions(name)
        )
        for name in grammar.rules
    }


def _qualified(function: str, production: function_types.Production) -> function_types.Production:
    return replace(
        production,
        children=tuple(
            replace(each, type=_qualify(function, each.type)) for each in production.children
        ),
        groups=tuple(
            tuple(_qualify(function, each) for each in group) for group in production.groups
        ),
    )


def _qualify(function: str, name: str) -> str:
    """Return the name of a type of a function among those of all functions."""
    return function_types.ANY if name == function_types.ANY else json.dumps([function, name])
