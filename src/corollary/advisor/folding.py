"""Variable folding: the literals of one clause become candidates with fewer variables.

After Chirkova and Genesereth, stage 1. `sig` are the significant variables of the clause.

| step | applies to | gives |
|---|---|---|
| 1 `drop` | v ∉ sig in one literal only | the literal's projection without all such v |
| 2 `unite` | literals with the same set of variables | one candidate over that set |
| 3 `subsume` | p, ∅ ≠ vars(p) ⊂ vars(r), no v ∈ sig, none elsewhere | one candidate {r, p} |
| 4 `cluster` | literals connected by variables ∉ sig | one candidate over all their variables |

Before and after every step the clause means the same: a sub-conjunction is replaced by a predicate
over all variables that it shares with the rest. The steps are repeated in this order until nothing
changes; step 1 comes first since the candidates on the way depend on the order.

    view(A,B) :- services(A,P1), services(A,P2), dc(P1,P2), base(A,B).
    cluster      c(A,P1,P2) :- services(A,P1), services(A,P2), dc(P1,P2).
    drop         d(A) :- c(A,P1,P2).
    view(A,B) :- d(A), base(A,B).
"""

from collections.abc import Callable, Sequence

from corollary.advisor.candidates import Candidate, Node, in_order, shown_by, variables_of
from corollary.advisor.clauses import Test

Nodes = list[Node]


def fold(nodes: Sequence[Node], significant: frozenset[str]) -> Nodes:
    """Return the nodes of a clause after all steps, until none applies."""
    now = list(nodes)
    while True:
        before = now
        for step in STEPS:
            now = _exhausted(step, now, significant)
        if now == before:
            return now


def _exhausted(
    step: Callable[[Nodes, frozenset[str]], Nodes], nodes: Nodes, significant: frozenset[str]
) -> Nodes:
    while True:
        after = step(nodes, significant)
        if after == nodes:
            return nodes
        nodes = after


def drop(nodes: Nodes, significant: frozenset[str]) -> Nodes:
    """Step 1: project away what occurs in one literal only."""
    after: Nodes = []
    for at, node in enumerate(nodes):
        others = shown_by((*nodes[:at], *nodes[at + 1 :]))
        kept = variables_of(node) & (significant | others)
        is_dead = kept != variables_of(node) and not isinstance(node, Test)
        after.append(candidate((node,), kept, "drop") if is_dead else node)
    return after


def unite(nodes: Nodes, _: frozenset[str]) -> Nodes:
    """Step 2: merge literals that have the same variables."""
    groups: dict[frozenset[str], list[Node]] = {}
    for node in nodes:
        groups.setdefault(variables_of(node), []).append(node)
    after: Nodes = []
    for shown, group in groups.items():
        after += [candidate(group, shown, "unite")] if _is_group(group) else group
    return after


def subsume(nodes: Nodes, significant: frozenset[str]) -> Nodes:
    """Step 3: merge a literal into the only other one that has its variables, as a filter."""
    into: dict[int, list[Node]] = {}
    gone: set[int] = set()
    for at, node in enumerate(nodes):
        shown = variables_of(node)
        if not shown or shown & significant:
            continue
        holders = [
            number
            for number, other in enumerate(nodes)
            if number != at and variables_of(other) & shown
        ]
        if len(holders) != 1 or isinstance(nodes[holders[0]], Test):
            continue
        if shown < variables_of(nodes[holders[0]]):
            into.setdefault(holders[0], []).append(node)
            gone.add(at)
    return [
        candidate((node, *into[at]), variables_of(node), "subsume") if at in into else node
        for at, node in enumerate(nodes)
        if at not in gone
    ]


def cluster(nodes: Nodes, significant: frozenset[str]) -> Nodes:
    """Step 4: merge what variables that leave the clause nowhere connect."""
    after: Nodes = []
    for group in components(nodes, significant):
        after += [candidate(group, shown_by(group), "cluster")] if _is_group(group) else group
    return after


STEPS = (drop, unite, subsume, cluster)
"""The steps in order."""


def components(nodes: Sequence[Node], significant: frozenset[str]) -> list[list[Node]]:
    """Return the nodes in groups that share no variable but significant ones."""
    groups: list[tuple[set[str], list[Node]]] = []
    for node in nodes:
        inner = set(variables_of(node) - significant)
        touched = [group for group in groups if group[0] & inner]
        members = [each for group in touched for each in group[1]]
        merged = (inner.union(*(group[0] for group in touched)), [*members, node])
        groups = [group for group in groups if group not in touched]
        groups.append(merged)
    order = {id(node): at for at, node in enumerate(nodes)}
    found = [sorted(group, key=lambda node: order[id(node)]) for _, group in groups]
    return sorted(found, key=lambda group: order[id(group[0])])


def candidate(group: Sequence[Node], shown: frozenset[str], step: str) -> Candidate:
    """Return the candidate of a group of nodes over some of their variables."""
    return Candidate(in_order(group, shown), (tuple(group),), step)


def _is_group(group: Sequence[Node]) -> bool:
    return len(group) > 1 and not all(isinstance(node, Test) for node in group)
