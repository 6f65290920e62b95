"""The advisor's judge: exponents by trying every order, reformulations by every set partition.

It shares no code with the package, and is as slow as it is simple: small bodies only.

A clause is a dictionary: `head` (variables), `literals` (foldable ones), `joined` (pinned positive
ones) and `filters` (sets of variables). A literal is a pair (predicate, arguments), where arguments
that are strings are variables; `fds` gives the dependencies of predicates by position, from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations, permutations
from typing import Any

Dependency = tuple[frozenset[str], frozenset[str]]
Fds = Mapping[str, Sequence[tuple[Sequence[int], Sequence[int]]]]
Item = tuple[frozenset[str], tuple[Dependency, ...]]


def variables(literal: Any) -> frozenset[str]:
    return frozenset(each for each in literal[1] if isinstance(each, str))


def dependencies(literal: Any, fds: Fds) -> tuple[Dependency, ...]:
    def names(columns: Sequence[int]) -> frozenset[str]:
        return frozenset(literal[1][at] for at in columns if isinstance(literal[1][at], str))

    return tuple((names(left), names(right)) for left, right in fds.get(literal[0], ()))


def determined(known: Iterable[str], rules: Iterable[Dependency]) -> frozenset[str]:
    found, rules = set(known), list(rules)
    while fresh := {name for left, right in rules if left <= found for name in right - found}:
        found |= fresh
    return frozenset(found)


def degree(target: frozenset[str], rules: Sequence[Dependency]) -> int:
    every = sorted(target.union(*(left | right for left, right in rules)))
    for size in range(len(target)):
        if any(target <= determined(chosen, rules) for chosen in combinations(every, size)):
            return size
    return len(target)


def cost(items: Sequence[Item], head: frozenset[str], filters: Sequence[frozenset[str]]) -> int:
    """The least exponent of a left-deep plan with projections, over all orders."""
    return min((_cost(order, head, filters) for order in permutations(items)), default=0)


def _cost(order: Sequence[Item], head: frozenset[str], filters: Sequence[frozenset[str]]) -> int:
    state: frozenset[str] = frozenset()
    rules: list[Dependency] = []
    worst, open_ = 0, list(filters)
    for at, (shown, more) in enumerate(order):
        rules += more
        reached = state | shown
        worst = max(worst, degree(reached, rules))
        open_ = [each for each in open_ if not each <= reached]
        later = head.union(*(each for each, _ in order[at + 1 :]), *open_)
        state = reached & later
    return worst


def clause_cost(clause: Mapping[str, Any], fds: Fds) -> int:
    items = [(variables(each), dependencies(each, fds)) for each in _joined(clause)]
    return cost(items, frozenset(clause["head"]), clause["filters"])


def _joined(clause: Mapping[str, Any]) -> list[Any]:
    return [*clause["literals"], *clause["joined"]]


def exhaustive(clause: Mapping[str, Any], fds: Fds, limit: int) -> int:
    """The least exponent over all ways to store groups of literals of degree at most `limit`."""
    significant = frozenset(clause["head"]).union(
        *(variables(each) for each in clause["joined"]), *clause["filters"]
    )
    pinned = [(variables(each), dependencies(each, fds)) for each in clause["joined"]]
    best = clause_cost(clause, fds)
    for partition in partitions(list(clause["literals"])):
        items = list(pinned)
        for block in partition:
            others = [each for other in partition if other is not block for each in other]
            outside = significant.union(*map(variables, others))
            shown = frozenset().union(*map(variables, block)) & outside
            rules = tuple(chain.from_iterable(dependencies(each, fds) for each in block))
            if degree(shown, rules) <= limit:
                items.append((shown, rules))
            else:
                items += [(variables(each), dependencies(each, fds)) for each in block]
        best = min(best, cost(items, frozenset(clause["head"]), clause["filters"]))
    return best


def partitions(items: list[Any]) -> Iterator[list[list[Any]]]:
    """All set partitions.

    >>> len(list(partitions([1, 2, 3])))
    5
    """
    if not items:
        yield []
        return
    first, *rest = items
    for smaller in partitions(rest):
        yield [[first], *smaller]
        for at, block in enumerate(smaller):
            yield [*smaller[:at], [first, *block], *smaller[at + 1 :]]
