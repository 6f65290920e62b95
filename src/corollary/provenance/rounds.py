"""Rounds, bottom-up over the instances that were met: the canonical proof, or a lower bound.

Every tuple gets its least height; of the instances that give it, the one with the smallest tree
(1 + the sum of the premises' trees), then the least rule, then the least values.
"""

from collections.abc import Mapping
from heapq import heappop, heappush

from corollary.provenance.graph import KnownInstance, ProofGraph, instance_height
from corollary.provenance.value_order import values_key

Choice = Mapping[int, KnownInstance | None]
"""A proof: for each of its tuples the instance that derives it, None for base tuples."""


def canonical_proof(graph: ProofGraph, root: int) -> Choice:
    """Return the canonical proof by the instances that are known; the root has one."""
    tight = _tight_instances(graph, root)
    levels: dict[int, list[int]] = {}
    for number in tight:
        levels.setdefault(graph.heights[number], []).append(number)
    chosen: dict[int, KnownInstance | None] = {}
    sizes: dict[int, int] = {}
    for height in sorted(levels):
        _choose_level(levels[height], tight, chosen, sizes)
    return _reachable(chosen, root)


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
    chosen: dict[int, KnownInstance | None],
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
    return known.own + sum(sizes[each] for each in known.premises)


def _order(known: KnownInstance) -> tuple[object, ...]:
    return known.instance.step, values_key(known.instance)


def _reachable(chosen: Choice, root: int) -> Choice:
    """Return the part of a choice that the proof of one tuple needs."""
    found: dict[int, KnownInstance | None] = {}
    work = [root]
    while work:
        number = work.pop()
        if number not in found:
            known = found[number] = chosen[number]
            work += () if known is None else known.premises
    return found


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
