"""Partial clusters: parts of a cluster that is too large, found by eliminating variables.

The paper merges a whole cluster or nothing. If that violates the criterion, a part of it may still
be small: for a variable v ∉ sig, all literals with v, projected on what the rest needs. This is the
elimination step of variable elimination (FAQ, hypertree decompositions).

    q(X,Y,Z) :- k1(V,P1,P2), k2(V,P2,P1), e(X,V), f(V,Y), g(V,Z).
    the cluster is everything; eliminating P1 gives  c(V) :- k1(V,P1,P2), k2(V,P2,P1).

A candidate may also be small only because of a functional dependency in a literal outside it: such
a literal, if the candidate has all its variables, is *carried* into it as a filter.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations

from corollary.advisor.model.candidates import (
    Body,
    Candidate,
    MovableComparison,
    Node,
    connected_components,
    expand,
    in_order,
    output_variables,
    variables_of,
)
from corollary.advisor.search.folding import drop, fold, make_candidate
from corollary.core.logic import Literal

COMBINED_PARTS_MAX = 10
"""The maximum number of parts of a cluster whose combinations are tried."""

IsLegal = Callable[[Candidate], bool]
"""Whether a candidate is small enough to be stored."""


def partial_cluster_bodies(
    nodes: Sequence[Node], significant: frozenset[str], is_legal: IsLegal
) -> Iterator[Body]:
    """Yield the bodies that use parts of clusters instead of what folding makes of the nodes.

    Args:
        nodes: the nodes before folding.
        significant: the significant variables of the clause.
        is_legal: whether a candidate is small enough.
    """
    groups = connected_components(nodes, significant)
    folded = [fold(group, significant) for group in groups]
    for at, group in enumerate(groups):
        roots = [node for node in folded[at] if isinstance(node, Candidate)]
        if len(group) < 2 or all(is_legal(root) for root in roots):
            continue
        rest = [node for number, each in enumerate(folded) if number != at for node in each]
        outside = significant | output_variables(rest)
        for chosen in _disjoint_sets(_parts(group, outside, is_legal)):
            used = {id(leaf) for part in chosen for leaf in part.bodies[0]}
            unused = [node for node in group if id(node) not in used]
            yield tuple(drop([*rest, *unused, *chosen], significant))


def _parts(group: Sequence[Node], outside: frozenset[str], is_legal: IsLegal) -> list[Candidate]:
    """Return the legal parts of a cluster; each is a candidate over leaves of the cluster."""
    found: dict[frozenset[int], Candidate] = {}
    for first in in_order(group, output_variables(group) - outside):
        for merged in _eliminate(group, outside, first):
            part = _project(merged, group, outside)
            if part is not None and is_legal(part):
                found.setdefault(frozenset(id(leaf) for leaf in merged), part)
    return list(found.values())


def _eliminate(group: Sequence[Node], outside: frozenset[str], first: str) -> Iterator[list[Node]]:
    """Yield the groups that arise when variables are eliminated, beginning with a given one.

    After the first, the next variable is the one whose literals have the fewest variables.
    """
    blocks: list[list[Node]] = [[node] for node in group]
    inner = in_order(group, output_variables(group) - outside)
    variable: str | None = first
    while variable is not None:
        touched = [block for block in blocks if variable in output_variables(block)]
        merged = [node for block in touched for node in block]
        blocks = [block for block in blocks if block not in touched]
        blocks.append(merged)
        if len(touched) > 1:
            yield merged
        remaining = [
            name for name in inner if sum(name in output_variables(block) for block in blocks) > 1
        ]
        variable = min(remaining, key=lambda name: _width(name, blocks), default=None)


def _width(name: str, blocks: list[list[Node]]) -> int:
    touched = [node for block in blocks if name in output_variables(block) for node in block]
    return len(output_variables(touched))


def _project(
    merged: Sequence[Node], group: Sequence[Node], outside: frozenset[str]
) -> Candidate | None:
    """Return the candidate of some leaves over the variables that the rest of the clause needs.

    None if a comparison among them has a variable that no literal among them binds.
    """
    order = [node for node in group if any(node is each for each in merged)]
    literals = [node for node in order if not isinstance(node, MovableComparison)]
    if any(not variables_of(node) <= output_variables(literals) for node in order):
        return None
    others = [node for node in group if not any(node is each for each in merged)]
    columns = output_variables(order) & (outside | output_variables(others))
    return make_candidate(order, columns)


def _disjoint_sets(parts: Sequence[Candidate]) -> Iterator[tuple[Candidate, ...]]:
    """Yield sets of parts that have no literal in common.

    These are single parts, pairs, and for each part a largest set that is found greedily.
    """
    pool = parts[:COMBINED_PARTS_MAX]
    for size in (1, 2):
        yield from (each for each in combinations(pool, size) if _is_disjoint(each))
    for first in pool:
        chosen: tuple[Candidate, ...] = (first,)
        for part in pool:
            if part is not first and _is_disjoint((*chosen, part)):
                chosen = (*chosen, part)
        if len(chosen) > 2:
            yield chosen


def _is_disjoint(parts: Sequence[Candidate]) -> bool:
    leaves = [id(leaf) for part in parts for leaf in part.bodies[0]]
    return len(leaves) == len(set(leaves))


def carry_dependencies(node: Node, literals: Iterable[Literal], is_legal: IsLegal) -> Node:
    """Return a node in which candidates that are too large carry the literals that may help."""
    if not isinstance(node, Candidate) or is_legal(node):
        return node
    inside = {leaf for leaves in expand(node) for leaf in leaves}
    carried = tuple(
        each for each in literals if variables_of(each) <= variables_of(node) and each not in inside
    )
    if carried:
        bodies = tuple((*body, *carried) for body in node.bodies)
        wider = Candidate(node.variables, bodies, carried)
        if is_legal(wider):
            return wider
    bodies = tuple(
        tuple(carry_dependencies(each, literals, is_legal) for each in body) for body in node.bodies
    )
    if bodies == node.bodies:
        return node
    return Candidate(node.variables, bodies, node.carried)
