"""The search for a proof of a tuple: descent, cone, rounds.

1. **Descent**: a proof by ranks, without a search; its height is u.
2. **Cone**: the tuples among which all proofs are that are no higher than u.
3. **Rounds**, bottom-up over the instances that were met: the canonical proof, or a lower bound.

A rank is an upper bound inside of its stratum, and a lower one only if it is exact: ranks save
time, and never decide. Without valid ranks there is no descent, and u is infinite until a level of
the cone closes a proof.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import field
from heapq import heappop, heappush

from corollary.core.graph import reachable
from corollary.core.logic import Value
from corollary.data_class import dataclass
from corollary.engines.budget import WorkLimitError
from corollary.provenance.instances import Fact, InstanceFinder, Wanted
from corollary.provenance.limits import Allowance
from corollary.provenance.nodes import CutReason, Row
from corollary.provenance.proof_graph import INFINITE, KnownInstance, ProofGraph, instance_height

Choice = dict[int, KnownInstance | None]
"""A proof: for each of its tuples the instance that derives it, None for base tuples."""


@dataclass(frozen=True, slots=True)
class FoundProof:
    """What the search for a proof has found.

    Attributes:
        root: the number of the tuple.
        choice: the proof; None if the limits were reached before there was one, the upper part of
            it if it is too high for them.
        height: of the proof; None without the whole of it.
        height_at_least: no proof is lower.
        is_complete: whether all lowest proofs were among the instances looked at.
        cut: why not all tuples were looked at.
        truncated: the tuples of which only some instances were looked at, and how many there are.
    """

    root: int
    choice: Choice | None
    height: int | None
    height_at_least: int
    is_complete: bool
    cut: CutReason | None
    truncated: dict[int, int]


class ProofBuilder:
    """Finds proofs in one state; what was looked at for one is used for the next ones.

    Attributes:
        graph: the tuples and instances that were met.
    """

    def __init__(self, finder: InstanceFinder, allowance: Allowance) -> None:
        self.graph = ProofGraph(finder.steps, finder.asked.exact)
        self._finder = finder
        self._allowance = allowance

    def prove(self, fact: Fact, rank: int | None) -> FoundProof:
        """Return a proof of a tuple that is there."""
        graph = self.graph
        root = graph.number(fact, rank)
        if self._can_descend(fact[0]):
            begun = self._descend(root)
            if begun is not None:
                least = lower_bound(graph, root)
                return FoundProof(root, begun, None, least, False, self._allowance.reason, {})
        cone = _Cone(graph, root, self._finder, self._allowance)
        cone.expand()
        height, least = graph.heights[root], graph.heights[root]
        if not cone.is_complete:
            least = lower_bound(graph, root)
        if height >= INFINITE:
            return FoundProof(root, None, None, least, False, cone.cut, cone.truncated)
        choice = canonical_proof(graph, root)
        return FoundProof(root, choice, height, least, cone.is_complete, cone.cut, cone.truncated)

    # --- 1. descent ----------------------------------------------------------------------------

    def _can_descend(self, relation: str) -> bool:
        """Return whether all recursions that a proof may pass through have ranks."""
        steps, ranked = self._finder.steps, self._finder.asked.ranked

        def below(name: str) -> Iterator[str]:
            for number in steps.by_head.get(name, ()):
                step = steps.steps[number]
                yield from (step.rule.literals[at].relation for at in step.premises)

        every = reachable([relation], below)
        return all(name in ranked or not steps.stratum(name) for name in every)

    def _descend(self, root: int) -> Choice | None:
        """Add a proof of a tuple to the graph, by ranks.

        Every tuple of a ranked stratum has an instance whose premises of the stratum have smaller
        ranks. From the goal down, of these the one is taken with the least (largest guess, sum of
        guesses, rule, values), where the guess of a tuple is 0 if it is a base tuple, and its rank
        + 1 else. All tuples of a level are asked for at once. There is always a proof, so the
        limits do not count until it has more tuples than can be shown.

        Returns:
            None; if the work was over, what was found of the proof until then.
        """
        graph, allowance = self.graph, self._allowance
        chosen: Choice = {}
        level = [root]
        while level:
            if len(chosen) > allowance.limits.nodes and allowance.is_over:
                return chosen
            wanted = {
                number: Wanted(graph.facts[number], rank=graph.ranks[number])
                for number in level
                if graph.is_derived(number) and not graph.is_expanded(number)
            }
            with allowance.without_bounds():
                for number, found in self._finder.find_in_batches(wanted, allowance):
                    graph.add(number, found)
            below: dict[int, None] = {}
            for number in level:
                chosen[number] = None
                if graph.is_derived(number):
                    best = min(_smaller(graph, number), key=lambda each: _guess_order(graph, each))
                    chosen[number] = best
                    below |= dict.fromkeys(best.premises)
            level = [each for each in below if each not in chosen]
        return None


def _smaller(graph: ProofGraph, number: int) -> Iterator[KnownInstance]:
    """Yield the instances of a tuple whose premises of its stratum have smaller ranks."""
    members, rank = graph.steps.stratum(graph.facts[number][0]), graph.ranks[number]
    for known in graph.instances[number]:
        ranks = (
            graph.ranks[premise] for premise in known.premises if graph.facts[premise][0] in members
        )
        if rank is None or all(each is not None and each < rank for each in ranks):
            yield known


def _guess_order(graph: ProofGraph, known: KnownInstance) -> tuple[object, ...]:
    guesses = [graph.guess(premise) for premise in known.premises]
    return max(guesses, default=0), sum(guesses), *_order(known)


# --- 2. cone -------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Cone:
    """The cone of a goal.

    Let u be the height of a known proof of the goal, and lb(t) what the height of t is at least: 0
    for a base tuple, 1 for a derived one, its rank + 1 where ranks are exact. From the goal, level
    by level, the tuples that are first met at depth d are expanded, each once, all of a level at
    once, if d + lb <= u. After each level u is the height of the lowest proof so far.

    A tuple at depth d of a lowest proof has height <= u - d, so it is expanded, and all its lowest
    proofs are among the instances found. Steps that add nothing to a height stay on their level.

    Attributes:
        depths: of the tuples that were met.
        truncated: the tuples of which not all instances were looked at, and how many there are.
        cut: why other tuples were not expanded; None if all were that have to be.
    """

    graph: ProofGraph
    root: int
    finder: InstanceFinder
    allowance: Allowance
    depths: dict[int, int] = field(default_factory=dict)
    truncated: dict[int, int] = field(default_factory=dict)
    cut: CutReason | None = None

    @property
    def is_complete(self) -> bool:
        """Whether all lowest proofs are inside."""
        return self.cut is None and not self.truncated

    def expand(self) -> None:
        """Expand level after level, until all lowest proofs are inside or a limit is reached."""
        self.depths[self.root] = 0
        level, depth = [self.root], 0
        while level and self.cut is None:
            below: dict[int, None] = {}
            while level and self.cut is None:
                level = self._expand_level(level, depth, below)
            depth += 1
            level = [each for each in below if self.depths[each] == depth]

    @property
    def _is_settled(self) -> bool:
        """Whether no more can be known: not all instances of the goal, but its least height."""
        graph, root = self.graph, self.root
        return root in self.truncated and graph.heights[root] == graph.least[root]

    def _expand_level(self, level: list[int], depth: int, below: dict[int, None]) -> list[int]:
        """Expand tuples; return those that are met on the same level, note those below it."""
        graph = self.graph
        bound = graph.heights[self.root] - depth
        inside = [each for each in level if graph.is_derived(each) and graph.least[each] <= bound]
        is_bounded = graph.heights[self.root] < INFINITE
        height = bound if is_bounded else INFINITE
        open_ = [each for each in inside if not graph.is_expanded(each, height)]
        allowed = open_[: max(self.allowance.tuples, 0)]
        if len(allowed) < len(open_):
            self.cut = CutReason.NODES
        limit = height if is_bounded else None
        wanted = {each: Wanted(graph.facts[each], limit) for each in allowed}
        try:
            for number, found in self.finder.find_in_batches(wanted, self.allowance):
                graph.add(number, found, height)
                if found.is_cut:
                    self.truncated[number] = found.total
        except WorkLimitError:
            self.cut = self.allowance.reason
        if self._is_settled:
            return []
        here: dict[int, None] = {}
        for number in inside:
            for known in graph.instances.get(number, ()):
                pairs = list(zip(known.premises, known.weights, strict=True))
                if any(graph.least[premise] + weight > bound for premise, weight in pairs):
                    continue
                for premise, weight in pairs:  # met for the first time, or nearer than so far
                    if self.depths.get(premise, INFINITE) > depth + weight:
                        self.depths[premise] = depth + weight
                        (below if weight else here)[premise] = None
        return list(here)


# --- 3. rounds -----------------------------------------------------------------------------------


def canonical_proof(graph: ProofGraph, root: int) -> Choice:
    """Return the canonical proof by the instances that are known; the root has one.

    Every tuple gets its least height; of the instances that give it, the one with the smallest tree
    (1 + the sum of the premises' trees), then the least rule, then the least values.
    """
    tight = _tight_instances(graph, root)
    levels: dict[int, list[int]] = {}
    for number in tight:
        levels.setdefault(graph.heights[number], []).append(number)
    chosen: Choice = {}
    sizes: dict[int, int] = {}
    for height in sorted(levels):
        _choose_level(levels[height], tight, chosen, sizes)

    def premises(number: int) -> tuple[int, ...]:
        known = chosen[number]
        return () if known is None else known.premises

    return {number: chosen[number] for number in reachable([root], premises)}


def _tight_instances(graph: ProofGraph, root: int) -> dict[int, list[KnownInstance]]:
    """Return for the tuples of all lowest proofs the instances that give them their height."""
    found: dict[int, list[KnownInstance]] = {}
    work = [root]
    while work:
        number = work.pop()
        if number in found:
            continue
        found[number] = [
            known
            for known in graph.instances.get(number, ())
            if instance_height(known, graph.heights) == graph.heights[number]
        ]
        work += (premise for known in found[number] for premise in known.premises)
    return found


def _choose_level(
    level: list[int],
    tight: Mapping[int, list[KnownInstance]],
    chosen: Choice,
    sizes: dict[int, int],
) -> None:
    """Choose the instances of the tuples of one height, the smallest tree first (Knuth 1977).

    Premises of the same height are possible: a step may add nothing to it.
    """
    ready: list[tuple[int, tuple[object, ...], int, KnownInstance]] = []
    missing: dict[int, int] = {}
    waiting: dict[int, list[tuple[int, KnownInstance]]] = {}
    for number in level:
        if not tight[number]:
            chosen[number], sizes[number] = None, 1
    listed = [known for number in level for known in tight[number]]
    for at, known in enumerate(listed):
        absent = {each for each in known.premises if each not in sizes}
        missing[at] = len(absent)
        for each in absent:
            waiting.setdefault(each, []).append((at, known))
        if not absent:
            heappush(ready, (_size(known, sizes), _order(known), at, known))
    while ready:
        size, _, _, known = heappop(ready)
        if known.head in chosen:
            continue
        chosen[known.head], sizes[known.head] = known, size
        for at, other in waiting.get(known.head, ()):
            missing[at] -= 1
            if not missing[at]:
                heappush(ready, (_size(other, sizes), _order(other), at, other))


def _size(known: KnownInstance, sizes: Mapping[int, int]) -> int:
    """Return the size of the tree of an instance."""
    return known.added_size + sum(sizes[each] for each in known.premises)


def _order(known: KnownInstance) -> tuple[object, ...]:
    """Return what tells equally good instances apart: rule, premises, then all values."""
    instance = known.instance
    premises = tuple(_row_key(row) for _, row in instance.premises)
    return instance.step, premises, _row_key(instance.values)


def _row_key(row: Row) -> tuple[tuple[int, Value], ...]:
    """Return what to sort a tuple by: null first, NaN last.

    >>> sorted([(2,), (None,), (1,)], key=_row_key)
    [(None,), (1,), (2,)]
    """
    return tuple(map(_value_key, row))


def _value_key(value: Value) -> tuple[int, Value]:
    if value is None:
        return 0, 0
    if isinstance(value, float) and math.isnan(value):
        return 2, 0
    return 1, value


def lower_bound(graph: ProofGraph, root: int) -> int:
    """Return what the height of a tuple is at least, where not all instances are known.

    A tuple whose instances are known up to a height is either derived by one of them, or higher
    than that; any other counts with what its height is at least.
    """
    bounds = [
        max(least, graph.expanded.get(number, -1) + 1) if graph.is_derived(number) else least
        for number, least in enumerate(graph.least)
    ]
    work = [each for number in graph.expanded for each in graph.instances[number]]
    uses: dict[int, list[KnownInstance]] = {}
    for each in work:
        for premise in set(each.premises):
            uses.setdefault(premise, []).append(each)
    while work:
        each = work.pop()
        height = max(instance_height(each, bounds), graph.least[each.head])
        if height < bounds[each.head]:
            bounds[each.head] = height
            work += uses.get(each.head, ())
    return min(bounds[root], graph.heights[root])
