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
"""

from collections.abc import Iterator, Sequence

from corollary.advisor.model import candidates

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
