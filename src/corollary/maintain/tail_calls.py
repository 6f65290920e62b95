"""Tail calls: where free arguments are handed on, the last call answers the first one.

Reference: K. A. Ross, "Modular acyclicity and tail recursion in logic programs" (1991).

In

    link(x, z) :- link(x, y), edge(y, z)       called with z

the call of link with y has the answers that the call with z has, since x is handed on unchanged and
nothing else is asked of it. So the tuples (z, y) of *tails* are enough, where y was reached from
the call z; no call needs the answers of those below it.

| symbol | name here |
|---|---|
| tails(z, y) | `link^fb•tails`, new ones `link^fb•next` |

Example: `link(x, "d")` over a→b→c→d:

| round | tails | answers |
|---|---|---|
| 1 | (d, d) | |
| 2 | (d, c) | |
| 3 | (d, b) | |
| 4 | (d, a) | |
| after | | (c, d) (b, d) (a, d) |
"""

from collections.abc import Iterable

from corollary.core.logic import Rule, Variable, Wildcard, variable_names
from corollary.maintain.sip import has_fault


def is_tail_recursive(rules: Iterable[Rule], relation: str, bound: tuple[int, ...]) -> bool:
    """Whether all calls that a relation makes of itself are tail calls, and there is one.

    Args:
        rules: those of a stratum that has no other relation.
        relation: that relation.
        bound: the columns that a call binds.
    """
    recursive = [rule for rule in rules if own_position(rule, relation) is not None]
    return bool(recursive) and all(_ends_in_call(rule, relation, bound) for rule in recursive)


def own_position(rule: Rule, relation: str) -> int | None:
    """Return the position of the first literal that reads the rule's own relation."""
    return next((at for at, each in enumerate(rule.literals) if each.relation == relation), None)


def _ends_in_call(rule: Rule, relation: str, bound: tuple[int, ...]) -> bool:
    """Whether a recursive rule, called with some columns bound, ends in a call with the same."""
    at = own_position(rule, relation)
    assert at is not None
    call, others = rule.literals[at], (*rule.literals[:at], *rule.literals[at + 1 :])
    if call.negated or any(each.relation == relation for each in others):
        return False
    if rule.is_lenient or any(map(has_fault, rule.conditions)):
        return False
    free = [column for column in range(len(call.slots)) if column not in bound]
    handed = [slot.name for column in free if isinstance(slot := call.slots[column], Variable)]
    has_gap = any(isinstance(call.slots[column], Wildcard) for column in bound)
    if has_gap or not free or len(set(handed)) < len(free):
        return False
    if any(call.slots[column] != rule.head.slots[column] for column in free):
        return False
    passed, called = (
        {slot.name for column in bound if isinstance(slot := each.slots[column], Variable)}
        for each in (call, rule.head)
    )
    binding = [variable_names(each) for each in others if not each.negated]
    if not passed <= called.union(*binding):
        return False
    used = passed.union(called, *map(variable_names, others))
    used = used.union(*map(variable_names, rule.conditions))
    return used.isdisjoint(handed)
