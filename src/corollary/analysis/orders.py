"""Orders: the fewest column orders of a relation that serve all its probes.

A probe with the columns B bound can use an order whose first |B| columns are B. One order serves
a whole chain B1 ⊂ B2 ⊂ …, so the fewest orders are a smallest chain cover of the bound sets
(Dilworth), found by bipartite matching, as in Soufflé.

Reference: P. Subotić, H. Jordan, L. Chang, A. Fekete, B. Scholz, "Automatic index selection for
large-scale Datalog computation", VLDB 2018.
"""

from collections.abc import Iterable, Mapping

from corollary.core.pipeline import Pipeline, Probe

Order = tuple[int, ...]


def orders(pipelines: Iterable[Pipeline]) -> Mapping[str, tuple[Order, ...]]:
    """Return the orders of every relation that the pipelines probe with bound columns."""
    pipelines = [*pipelines]
    probes = (each for pipeline in pipelines for each in pipeline.stages if isinstance(each, Probe))
    arity = {each.source.relation: len(each.slots) for each in probes}
    probed = probed_columns(pipelines)
    return {name: chain_cover(sets, arity[name]) for name, sets in probed.items()}


def probed_columns(pipelines: Iterable[Pipeline]) -> Mapping[str, set[frozenset[int]]]:
    """Return for every relation the sets of columns that are bound when pipelines probe it."""
    bound: dict[str, set[frozenset[int]]] = {}
    for pipeline in pipelines:
        for stage in pipeline.stages:
            if not isinstance(stage, Probe) or not (stage.bound or stage.extreme):
                continue
            sets = bound.setdefault(stage.source.relation, set())
            if stage.bound:
                sets.add(frozenset(stage.bound))
            if stage.extreme is not None:
                sets.add(frozenset((*stage.bound, stage.extreme.column)))
    return bound


def chain_cover(sets: Iterable[frozenset[int]], arity: int) -> tuple[Order, ...]:
    """Return orders such that every set is the first columns of one of them.

    >>> chain_cover([frozenset({1}), frozenset({0, 1}), frozenset({0})], 2)
    ((0, 1), (1, 0))
    """
    ordered = sorted(set(sets), key=lambda each: (len(each), sorted(each)))
    follows: dict[frozenset[int], frozenset[int]] = {}  # the matching: large set → small set

    def augment(small: frozenset[int], seen: set[frozenset[int]]) -> bool:
        """Find an augmenting path from a set that is not matched yet (Kuhn's algorithm)."""
        for large in ordered:
            if small < large and large not in seen:
                seen.add(large)
                if large not in follows or augment(follows[large], seen):
                    follows[large] = small
                    return True
        return False

    for each in ordered:
        augment(each, set())
    chains = []
    for top in ordered:
        if top not in follows.values():  # nothing larger follows: the end of a chain
            chain = [top]
            while chain[-1] in follows:
                chain.append(follows[chain[-1]])
            chains.append(_order(chain[::-1], arity))
    return tuple(sorted(chains))


def _order(chain: list[frozenset[int]], arity: int) -> Order:
    columns: list[int] = []
    for each in (*chain, frozenset(range(arity))):
        columns += sorted(each - set(columns))
    return tuple(columns)
