"""Witnesses of `min` and `max`, from their definition: the assignments that have the value found.

    p(w) :- n = min x : { q(w, x) }.     means     p(w) :- n = min x : { q(_, x) }, q(w, n).

A witness is a variable of the aggregate's body that is used outside, and bound nowhere outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

from oracles.parser import Agg, And, Cmp, Formula, Rule, Var


def rebuilt(node: Any, change: Callable[[Any], Any]) -> Any:
    """The node with everything in it changed, from the outside in."""
    if isinstance(node, tuple):
        return tuple(rebuilt(each, change) for each in node)
    if not hasattr(node, "__dataclass_fields__"):
        return node
    changed = change(node)
    if changed is not node:
        return changed
    parts = {each.name: rebuilt(getattr(node, each.name), change) for each in fields(node)}
    return replace(node, **parts)


def variables(node: Any, *, enters: bool = True) -> Iterator[str]:
    """The names in a node; those inside aggregates only if it enters them."""
    if isinstance(node, tuple):
        for each in node:
            yield from variables(each, enters=enters)
    elif isinstance(node, Var):
        yield node.name
    elif hasattr(node, "__dataclass_fields__") and (enters or not isinstance(node, Agg)):
        for each in fields(node):
            yield from variables(getattr(node, each.name), enters=enters)


def extremes(node: Any) -> Iterator[Agg]:
    """The outermost `min` and `max` of a node."""
    if isinstance(node, tuple):
        for each in node:
            yield from extremes(each)
    elif isinstance(node, Agg):
        if node.op in ("min", "max"):
            yield node
    elif hasattr(node, "__dataclass_fields__"):
        for each in fields(node):
            yield from extremes(getattr(node, each.name))


def renamed(node: Any, names: set[str], mark: str) -> Any:
    def change(part: Any) -> Any:
        return Var(part.name + mark) if isinstance(part, Var) and part.name in names else part

    return rebuilt(node, change)


def with_witnesses(rule: Rule) -> Rule:
    """The rule in which each witness is bound by a second look at the aggregate's body."""
    parts: tuple[Formula, ...] = rule.body.parts if isinstance(rule.body, And) else (rule.body,)
    used = set(variables((rule.heads, parts), enters=False))
    bound = {name for part in parts if not isinstance(part, Cmp) for name in variables(part)} | {
        side.name
        for part in parts
        if isinstance(part, Cmp) and part.op in ("=", "is")
        for side in (part.left, part.right)
        if isinstance(side, Var)
    }
    for number, found in enumerate(list(extremes((rule.heads, parts)))):
        inside = set(variables(found.body))
        witnesses = (inside & used) - bound
        if not witnesses or found.target is None:
            continue
        value = Var(f"value#{number}")

        def swap(part: Any, found: Agg = found, value: Var = value) -> Any:
            return value if part is found else part

        kept = tuple(
            part
            for part in parts
            if not (
                isinstance(part, Cmp)
                and any(isinstance(side, Var) and side.is_wild for side in (part.left, part.right))
            )
        )
        once = renamed(found, witnesses, "#inside")
        again = renamed(found.body, inside - used, f"#again{number}")
        target = renamed(found.target, inside - used, f"#again{number}")
        parts = (*rebuilt(kept, swap), Cmp("=", value, once), again, Cmp("=", target, value))
        rule = replace(rule, heads=rebuilt(rule.heads, swap))
    return replace(rule, body=parts[0] if len(parts) == 1 else And(parts))
