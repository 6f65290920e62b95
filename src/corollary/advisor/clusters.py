"""Partial clusters: parts of a cluster that is too large, found by eliminating variables.

The paper merges a whole cluster or nothing. If that breaks the criterion, a part of it may still be
small: for a variable v ∉ sig, all literals that hold v, without v and whatever else dies with it.
This is the elimination step of variable elimination (FAQ, hypertree decompositions).

    q(X,Y,Z) :- k1(V,P1,P2), k2(V,P2,P1), e(X,V), f(V,Y), g(V,Z).
    the cluster is everything; eliminating P1 gives  c(V) :- k1(V,P1,P2), k2(V,P2,P1).

A candidate may also be small only because of a functional dependency in a literal outside: such a
literal, if the candidate has all its variables, is *carried* into it as a filter.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations

from corollary.advisor.candidates import (
    Body,
    Candidate,
    Node,
    expanded,
    shown_by,
    variables_of,
)
from corollary.advisor.clauses import Test
from corollary.advisor.folding import candidate, components, drop, fold
from corollary.core.rules import Literal

POOL = 10
"""So many parts of a cluster are combined."""


def alternatives(
    nodes: Sequence[Node], significant: frozenset[str], is_legal: Callable[[Candidate], bool]
) -> Iterator[Body]:
    """Yield what the nodes of a clause could become instead of what folding makes of them.

    Args:
        nodes: the nodes before folding.
        significant: the significant variables of the clause.
        is_legal: whether a candidate is small enough.
    """
    groups = components(nodes, significant)
    folded = [fold(group, significant) for group in groups]
    for at, group in enumerate(groups):
        roots = [node for node in folded[at] if isinstance(node, Candidate)]
        if len(group) < 2 or all(is_legal(root) for root in roots):
            continue
        rest = [node for number, each in enumerate(folded) if number != at for node in each]
        outside = significant | shown_by(rest)
        for chosen in _choices(list(_parts(group, outside, is_legal))):
            used = {id(leaf) for part in chosen for leaf in part.bodies[0]}
            left = [node for node in group if id(node) not in used]
            yield tuple(drop([*rest, *left, *chosen], significant))


def _parts(
    group: Sequence[Node], outside: frozenset[str], is_legal: Callable[[Candidate], bool]
) -> Iterator[Candidate]:
    """Yield the legal parts of a cluster; each is a candidate over leaves of the cluster."""
    found: dict[frozenset[int], Candidate] = {}
    for first in sorted(shown_by(group) - outside, key=_rank(group)):
        for merged in _eliminated(group, outside, first):
            part = _projected(merged, group, outside)
            if part is not None and is_legal(part):
                found.setdefault(frozenset(id(leaf) for leaf in merged), part)
    yield from found.values()


def _rank(group: Sequence[Node]) -> Callable[[str], int]:
    order = [name for node in group for name in _ordered(node)]
    return order.index


def _ordered(node: Node) -> list[str]:
    if isinstance(node, Literal):
        return [slot.name for slot in node.slots if hasattr(slot, "name")]
    return list(node.variables)


def _eliminated(group: Sequence[Node], outside: frozenset[str], first: str) -> Iterator[list[Node]]:
    """Yield the groups that arise when variables are eliminated, one of them first.

    Behind the first one, the variable goes next whose literals have the fewest variables.
    """
    blocks: list[list[Node]] = [[node] for node in group]
    rank = _rank(group)
    variable: str | None = first
    while variable is not None:
        touched = [block for block in blocks if variable in shown_by(block)]
        merged = [node for block in touched for node in block]
        blocks = [block for block in blocks if block not in touched]
        blocks.append(merged)
        if len(touched) > 1:
            yield merged
        open_ = [
            name
            for name in sorted(shown_by(group) - outside, key=rank)
            if sum(name in shown_by(block) for block in blocks) > 1
        ]
        variable = min(open_, key=lambda name: _width(name, blocks), default=None)


def _width(name: str, blocks: list[list[Node]]) -> int:
    touched = [node for block in blocks if name in shown_by(block) for node in block]
    return len(shown_by(touched))


def _projected(
    merged: Sequence[Node], group: Sequence[Node], outside: frozenset[str]
) -> Candidate | None:
    """Return the candidate of some leaves over what the rest of the clause needs of them."""
    order = [node for node in group if any(node is each for each in merged)]
    literals = [node for node in order if not isinstance(node, Test)]
    if any(not variables_of(node) <= shown_by(literals) for node in order):
        return None
    others = [node for node in group if not any(node is each for each in merged)]
    shown = shown_by(order) & (outside | shown_by(others))
    return candidate(order, shown, "eliminate")


def _choices(parts: list[Candidate]) -> Iterator[tuple[Candidate, ...]]:
    """Yield the sets of parts that have no literal in common."""
    pool = parts[:POOL]
    for size in range(1, len(pool) + 1):
        for chosen in combinations(pool, size):
            leaves = [id(leaf) for part in chosen for leaf in part.bodies[0]]
            if len(leaves) == len(set(leaves)):
                yield chosen


def carry(node: Node, literals: Iterable[Literal], is_legal: Callable[[Candidate], bool]) -> Node:
    """Return a node in which every candidate that is too large has what could make it smaller."""
    if not isinstance(node, Candidate) or is_legal(node):
        return node
    fitting = tuple(each for each in literals if variables_of(each) <= variables_of(node))
    inside = {leaf for leaves in expanded(node) for leaf in leaves}
    carried = tuple(each for each in fitting if each not in inside)
    if carried:
        bodies = tuple((*body, *carried) for body in node.bodies)
        wider = Candidate(node.variables, bodies, node.step, carried)
        if is_legal(wider):
            return wider
    bodies = tuple(tuple(carry(each, literals, is_legal) for each in body) for body in node.bodies)
    if bodies == node.bodies:
        return node
    return Candidate(node.variables, bodies, node.step, node.carried)
