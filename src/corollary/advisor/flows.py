"""Flows: rows on their way through a join, by numbers.

    |T| = |state| · |L| / Π over shared x of max(V(state, x), V(L, x))
    a projection on Z without duplicates has D · (1 − (1 − 1/D)^n) rows,
    D = Π V(x) over a smallest set of variables that determines Z

| symbol | name here |
|---|---|
| V(L, x) | `Flow.distinct`: how many values a variable has |
| the most tuples with one value | `Flow.most`: bounds a join from above |
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import expm1, log1p, prod

from corollary.advisor.degree import generators
from corollary.advisor.shapes import Numbers, Shape

EXACT = 8
"""Bodies of more literals are ordered greedily."""


@dataclass(frozen=True, slots=True)
class Flow:
    """Rows on their way: how many, and how many values their variables have."""

    rows: float
    distinct: Mapping[str, float]
    most: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a body gives, and how many rows are handled until then."""

    flow: Flow
    work: float


@dataclass(frozen=True, slots=True)
class Confluence:
    """A join of flows, in the best order, projected on what is wanted.

    Attributes:
        flows: what is joined.
        shapes: their variables and dependencies.
        wanted: the variables of the result.
        bound: the variables that are given.
        is_scanned: whether what is joined is read in full.
    """

    flows: Sequence[Flow]
    shapes: Sequence[Shape]
    wanted: frozenset[str]
    bound: frozenset[str] = frozenset()
    is_scanned: bool = False

    def best(self) -> Estimate:
        """Return the estimate of the order that handles the fewest rows."""
        total = len(self.flows)
        best = {0: Estimate(Flow(1.0, dict.fromkeys(self.bound, 1.0)), 0.0)}
        for _ in range(total):
            reached: dict[int, Estimate] = {}
            for chosen, so_far in best.items():
                for at in range(total):
                    after = chosen | 1 << at
                    if after != chosen:
                        made = self._joined(so_far, chosen, at)
                        if after not in reached or made.work < reached[after].work:
                            reached[after] = made
            if total > EXACT:
                least = min(reached, key=lambda each: (reached[each].flow.rows, each))
                reached = {least: reached[least]}
            best = reached
        return best[(1 << total) - 1]

    def _joined(self, so_far: Estimate, chosen: int, at: int) -> Estimate:
        """Join one more flow, then project on what is needed later."""
        flow, after = self.flows[at], chosen | 1 << at
        inside = [shape for number, shape in enumerate(self.shapes) if after >> number & 1]
        outside = [shape for number, shape in enumerate(self.shapes) if not after >> number & 1]
        distinct = dict(so_far.flow.distinct)
        for name, values in flow.distinct.items():
            distinct[name] = min(values, distinct.get(name, values))
        rows = _join_rows(so_far.flow, flow)
        rows = min(rows, _combinations(frozenset(distinct), distinct, inside, self.bound))
        later = self.wanted.union(*(shape.variables for shape in outside))
        kept = frozenset(distinct) & later
        fewer = projected(rows, _combinations(kept, distinct, inside, self.bound))
        held = {name: max(1.0, min(distinct[name], fewer)) for name in kept}
        scan = flow.rows if self.is_scanned else 0.0
        return Estimate(Flow(fewer, held), so_far.work + so_far.flow.rows + rows + scan)


def _join_rows(one: Flow, other: Flow) -> float:
    """Return about how many rows the join of two flows has."""
    shared = one.distinct.keys() & other.distinct.keys()
    rows = one.rows * other.rows
    for name in shared:
        rows /= max(one.distinct[name], other.distinct[name], 1.0)
    bounds = [one.rows * other.most[name] for name in shared if name in other.most]
    bounds += [other.rows * one.most[name] for name in shared if name in one.most]
    return min([rows, *bounds])


def _combinations(
    names: frozenset[str],
    distinct: Mapping[str, float],
    shapes: Iterable[Shape],
    bound: frozenset[str],
) -> float:
    """Return how many combinations of values there can be: those of a smallest generating set.

    Hidden generators have no count of their own, so a set with one says nothing.
    """
    numbers = Numbers()
    dependencies = [each for shape in shapes for each in shape.dependencies]
    if bound:
        dependencies.append((frozenset(), bound))
    by_bit = {numbers.mask([name]): name for name in sorted(names)}
    masks = tuple((numbers.mask(left), numbers.mask(right)) for left, right in dependencies)
    chosen = generators(sum(by_bit), masks)
    if any(each not in by_bit for each in chosen):
        return prod(distinct[name] for name in names)
    return prod(distinct[by_bit[each]] for each in chosen)


def projected(rows: float, most: float) -> float:
    """Return how many different values so many rows have, of so many that there can be.

    >>> round(projected(1000, 10)), round(projected(10, 1e12))
    (10, 10)
    """
    if most <= 1.0:
        return min(rows, 1.0)
    return min(rows, -most * expm1(rows * log1p(-1.0 / most)))
