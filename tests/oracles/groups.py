"""Counts and sums through recursion, from their definition.

A rule `h(K, n) :- B, n = sum e : { L, R }` with R of h's own stratum has a group for each key K. A
group reads another if B and L have an instance in which R has the other's key, whatever the values
are. If no group reads itself through others, the model is found by computing all groups again and
again from what was there before: a group that reads nothing is right after the first time, one
that reads those after the second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from oracles.parser import Agg, And, Atom, Cmp, Expr, Fn, Formula, Not, Or, Rule, Truth, Var

RECURSIVE = ("count", "sum")


def parts(node: Expr | Formula) -> Iterator[Expr | Formula]:
    """Yield the direct parts of a node."""
    match node:
        case Fn(_, args) | Atom(_, args):
            yield from args
        case Cmp(_, left, right):
            yield from (left, right)
        case Not(inner):
            yield inner
        case Agg(_, target, body):
            yield from (body,) if target is None else (target, body)
        case _:
            yield from getattr(node, "parts", ())


def aggregates(node: Expr | Formula) -> Iterator[Agg]:
    """Yield the outermost aggregates."""
    if isinstance(node, Agg):
        yield node
    else:
        for part in parts(node):
            yield from aggregates(part)


def variables(node: Expr | Formula) -> set[str]:
    """The variables outside of aggregates."""
    if isinstance(node, Var):
        return {node.name}
    if isinstance(node, Agg):
        return set()
    return set().union(*map(variables, parts(node)))


def literals(formula: Formula) -> list[Formula]:
    """The literals of a conjunction; a disjunction counts as one."""
    return (
        [each for part in formula.parts for each in literals(part)]
        if isinstance(formula, And)
        else [formula]
    )


def alternatives(formula: Formula) -> list[list[Formula]]:
    """The conjunctions of literals of a body, one for each choice among its disjunctions."""
    match formula:
        case And(inner):
            picks = product(*map(alternatives, inner))
            return [[each for part in pick for each in part] for pick in picks]
        case Or(inner):
            return [each for part in inner for each in alternatives(part)]
        case _:
            return [[formula]]


def is_over(aggregate: Agg, stratum: set[str]) -> bool:
    """Whether an aggregate reads a relation of a stratum."""
    return any(isinstance(each, Atom) and each.relation in stratum for each in below(aggregate))


def below(node: Expr | Formula) -> Iterator[Expr | Formula]:
    """The node and everything in it."""
    yield node
    for part in parts(node):
        yield from below(part)


def bound(items: list[Formula], known: set[str]) -> set[str]:
    """The variables that literals bind, with what is known."""
    found = set(known)
    for item in items:
        if isinstance(item, Atom):
            found |= {each.name for each in item.args if isinstance(each, Var)}
    for _ in items:
        for item in items:
            if isinstance(item, Cmp) and item.op in ("=", "is"):
                for one, other in ((item.left, item.right), (item.right, item.left)):
                    if isinstance(one, Var) and variables(other) <= found:
                        found.add(one.name)
    return found


def lower(items: list[Formula], stratum: set[str], known: set[str]) -> list[Formula]:
    """The literals that have a truth value before the stratum has one."""
    own = [
        item
        for item in items
        if not any(isinstance(each, Atom) and each.relation in stratum for each in below(item))
    ]
    names = bound(own, known)
    return [item for item in own if isinstance(item, Atom) or variables(item) <= names]


def is_grouped(rules: list[Rule], stratum: set[str]) -> bool:
    """Whether a stratum is recursive through counts and sums only, each with a key."""
    mine = [(rule, head) for rule in rules for head in rule.heads if head.relation in stratum]
    over = [
        each
        for rule, head in mine
        for node in (rule.body, *head.args)
        for each in aggregates(node)
        if is_over(each, stratum)
    ]
    nested = any(
        is_over(inner, stratum)
        for each in over
        for part in parts(each)
        for inner in aggregates(part)
    )
    return (
        bool(over)
        and not nested
        and all(each.op in RECURSIVE for each in over)
        and all(keys(rules, name, stratum) for name in stratum)
    )


def keys(rules: list[Rule], relation: str, stratum: set[str]) -> list[int]:
    """The columns that lower literals bind in every rule of a relation."""
    found: list[int] | None = None
    for rule in rules:
        for head in rule.heads:
            if head.relation != relation:
                continue
            items = literals(rule.body)
            names = bound(lower(items, stratum, set()), set())
            columns = [
                at
                for at, arg in enumerate(head.args)
                if variables(arg) <= names
                and not any(is_over(each, stratum) for each in aggregates(arg))
            ]
            found = columns if found is None else [at for at in found if at in columns]
    return found or []


def reading_rules(rules: list[Rule], stratum: set[str]) -> Iterator[tuple[str, str, Rule]]:
    """Yield the reader, what it reads, and the rule that derives the pairs of their keys."""
    for rule in rules:
        for head in rule.heads:
            if head.relation not in stratum:
                continue
            outer = literals(rule.body)
            own = [head.args[at] for at in keys(rules, head.relation, stratum)]
            first = lower(outer, stratum, set())
            names = bound(first, set())
            for node in (rule.body, *head.args):
                inside = [pick for each in aggregates(node) for pick in alternatives(each.body)]
                for inner in inside:
                    second = lower(inner, stratum, names)
                    for atom in inner:
                        if isinstance(atom, Atom) and atom.relation in stratum:
                            read = [atom.args[at] for at in keys(rules, atom.relation, stratum)]
                            pairs = Atom("", (*own, *read))
                            body = And((Truth(True), *first, *second))
                            yield head.relation, atom.relation, Rule((pairs,), body)


def has_cycle(arcs: Mapping[object, set[object]]) -> bool:
    """Whether somebody reaches himself."""
    done: set[object] = set()
    for start in arcs:
        path: list[tuple[object, Iterator[object]]] = []
        on_path: set[object] = set()
        if start not in done:
            path, on_path = [(start, iter(arcs[start]))], {start}
        while path:
            node, targets = path[-1]
            target = next((each for each in targets if each not in done), None)
            if target is None:
                path.pop()
                on_path.discard(node)
                done.add(node)
            elif target in on_path:
                return True
            else:
                path.append((target, iter(arcs.get(target, ()))))
                on_path.add(target)
    return False
