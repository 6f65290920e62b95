"""Variable folding: the literals of one clause become candidates with fewer variables.

After Chirkova and Genesereth, stage 1. `sig` are the significant variables of the clause.

| step | applies to | gives |
|---|---|---|
| 1 `drop` | v ∉ sig in one literal only | the literal's projection without all such v |
| 2 `unite` | literals with the same set of variables | one candidate over that set |
| 3 `subsume` | p, ∅ ≠ vars(p) ⊂ vars(r), no v ∈ sig or in a third literal | one candidate {r, p} |
| 4 `cluster` | literals connected by variables ∉ sig | one candidate over all their variables |

Every step keeps the clause equivalent: a sub-conjunction is replaced by a predicate over all
variables that it shares with the rest. The steps are repeated in this order until nothing changes;
step 1 comes first since the order decides which candidates arise on the way.

    view(A,B) :- services(A,P1), services(A,P2), dc(P1,P2), base(A,B).
    cluster      c(A,P1,P2) :- services(A,P1), services(A,P2), dc(P1,P2).
    drop         d(A) :- c(A,P1,P2).
    view(A,B) :- d(A), base(A,B).

Partial clusters: parts of a cluster that is too large, found by eliminating variables.

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

from corollary.advisor.model import candidates
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
from corollary.core.logic import Literal

Nodes = list[candidates.Node]


def fold(nodes: Sequence[candidates.Node], significant: frozenset[str]) -> Nodes:
    """Return the nodes of a clause after all steps, until none applies."""
    return [list(nodes), *(after for _, after in fold_steps(nodes, significant))][-1]


def fold_steps(
    nodes: Sequence[candidates.Node], significant: frozenset[str]
) -> Iterator[tuple[int, Nodes]]:
    """Yield the number of each step that applies, and the nodes after it."""
    now = list(nodes)
    while True:
        before = now
        for number, step in enumerate(STEPS, 1):
            after = step(now, significant)
            while after != now:
                yield number, after
                now, after = after, step(after, significant)
        if now == before:
            return


def drop(nodes: Nodes, significant: frozenset[str]) -> Nodes:
    """Step 1: project away what occurs in one literal only."""
    after: Nodes = []
    for at, node in enumerate(nodes):
        others = candidates.output_variables((*nodes[:at], *nodes[at + 1 :]))
        needed = candidates.variables_of(node) & (significant | others)
        if needed == candidates.variables_of(node) or isinstance(
            node, candidates.MovableComparison
        ):
            after.append(node)
        else:
            after.append(make_candidate((node,), needed))
    return after


def unite(nodes: Nodes, _: frozenset[str]) -> Nodes:
    """Step 2: merge literals that have the same variables."""
    groups: dict[frozenset[str], list[candidates.Node]] = {}
    for node in nodes:
        groups.setdefault(candidates.variables_of(node), []).append(node)
    after: Nodes = []
    for variables, group in groups.items():
        after += [make_candidate(group, variables)] if _is_mergeable(group) else group
    return after


def subsume(nodes: Nodes, significant: frozenset[str]) -> Nodes:
    """Step 3: merge a literal into the only other one that has its variables, as a filter."""
    into: dict[int, list[candidates.Node]] = {}
    subsumed: set[int] = set()
    for at, node in enumerate(nodes):
        variables = candidates.variables_of(node)
        if not variables or variables & significant:
            continue
        holders = [
            number
            for number, other in enumerate(nodes)
            if number != at and candidates.variables_of(other) & variables
        ]
        if len(holders) != 1 or isinstance(nodes[holders[0]], candidates.MovableComparison):
            continue
        if variables < candidates.variables_of(nodes[holders[0]]):
            into.setdefault(holders[0], []).append(node)
            subsumed.add(at)
    return [
        make_candidate((node, *into[at]), candidates.variables_of(node)) if at in into else node
        for at, node in enumerate(nodes)
        if at not in subsumed
    ]


def cluster(nodes: Nodes, significant: frozenset[str]) -> Nodes:
    """Step 4: merge literals that variables ∉ sig connect."""
    after: Nodes = []
    for group in candidates.connected_components(nodes, significant):
        merged = _is_mergeable(group)
        after += [make_candidate(group, candidates.output_variables(group))] if merged else group
    return after


STEPS = (drop, unite, subsume, cluster)
"""The steps in order."""


def make_candidate(
    group: Sequence[candidates.Node], columns: frozenset[str]
) -> candidates.Candidate:
    """Return the candidate of a group of nodes over some of their variables."""
    return candidates.Candidate(candidates.in_order(group, columns), (tuple(group),))


def _is_mergeable(group: Sequence[candidates.Node]) -> bool:
    return len(group) > 1 and not all(
        isinstance(node, candidates.MovableComparison) for node in group
    )


# --- partial clusters ----------------------------------------------------------------------------


COMBINED_PARTS_MAX = 10
"""The maximum number of parts of a cluster whose combinations are tried."""

IsLegal = Callable[[Candidate], bool]
"""Whether a candidate is small enough to be stored."""


def partial_cluster_bodies(
    nodes: Sequence[Node], significant: frozenset[str], is_legal: IsLegal
) -> Iterator[Body]:
    """Yield the bodies that use parts of clusters instead of what folding makes of the nodes."""
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
