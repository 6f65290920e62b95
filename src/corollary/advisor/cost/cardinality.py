"""Cardinality estimates of joins.

    |T| = |state| · |L| / Π over shared x of max(V(state, x), V(L, x))
    a projection on Z without duplicates has D · (1 − (1 − 1/D)^n) rows,
    D = Π V(x) over a smallest set of variables that determines Z

| symbol | name here |
|---|---|
| V(L, x) | `Cardinality.distinct`: the number of values of a variable |
| maximum frequency of a value | `Cardinality.max_frequency`: bounds a join from above |
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import expm1, log1p, prod

from corollary.advisor.model.degree import generators
from corollary.advisor.model.shapes import NodeShape, VariableBits

ORDERED_MAX_LITERALS = 8
"""Longer bodies are ordered greedily."""


@dataclass(frozen=True, slots=True)
class Cardinality:
    """The number of rows, and of each variable the values and the most frequent one's rows."""

    rows: float
    distinct: Mapping[str, float]
    max_frequency: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JoinEstimate:
    """The result of a body, and its work: the rows handled to compute it."""

    result: Cardinality
    work: float


@dataclass(frozen=True, slots=True)
class JoinOrderSearch:
    """Finds the best order of a join, by dynamic programming over sets of inputs.

    Attributes:
        inputs: the cardinalities of what is joined.
        shapes: their variables and dependencies.
        head: the variables of the result.
        bound: the variables that are given.
    """

    inputs: Sequence[Cardinality]
    shapes: Sequence[NodeShape]
    head: frozenset[str]
    bound: frozenset[str] = frozenset()

    def best(self) -> JoinEstimate:
        """Return the estimate of the order that handles the fewest rows."""
        total = len(self.inputs)
        # Round n holds the best plan for each set of n inputs, as a mask.
        best = {0: JoinEstimate(Cardinality(1.0, dict.fromkeys(self.bound, 1.0)), 0.0)}
        for _ in range(total):
            reached: dict[int, JoinEstimate] = {}
            for chosen, so_far in best.items():
                for at in range(total):
                    after = chosen | 1 << at
                    if after != chosen:
                        joined = self._join(so_far, chosen, at)
                        if after not in reached or joined.work < reached[after].work:
                            reached[after] = joined
            if total > ORDERED_MAX_LITERALS:
                least = min(reached, key=lambda each: (reached[each].result.rows, each))
                reached = {least: reached[least]}
            best = reached
        return best[(1 << total) - 1]

    def _join(self, so_far: JoinEstimate, chosen: int, at: int) -> JoinEstimate:
        """Join one more input, then project on what is needed later."""
        added, after = self.inputs[at], chosen | 1 << at
        inside = [shape for number, shape in enumerate(self.shapes) if after >> number & 1]
        outside = [shape for number, shape in enumerate(self.shapes) if not after >> number & 1]
        distinct = dict(so_far.result.distinct)
        for name, values in added.distinct.items():
            distinct[name] = min(values, distinct.get(name, values))
        rows = _join_rows(so_far.result, added)
        rows = min(rows, _combinations(frozenset(distinct), distinct, inside, self.bound))
        later = self.head.union(*(shape.variables for shape in outside))
        kept = frozenset(distinct) & later
        fewer = distinct_rows(rows, _combinations(kept, distinct, inside, self.bound))
        counts = {name: max(1.0, min(distinct[name], fewer)) for name in kept}
        work = so_far.work + so_far.result.rows + rows
        return JoinEstimate(Cardinality(fewer, counts), work)


def _join_rows(one: Cardinality, other: Cardinality) -> float:
    """Return the estimated number of rows of a join of two inputs."""
    shared = one.distinct.keys() & other.distinct.keys()
    rows = one.rows * other.rows
    for name in shared:
        rows /= max(one.distinct[name], other.distinct[name], 1.0)
    for left, right in ((one, other), (other, one)):
        frequencies = (right.max_frequency[x] for x in shared if x in right.max_frequency)
        rows = min([rows, *(left.rows * frequency for frequency in frequencies)])
    return rows


def _combinations(
    names: frozenset[str],
    distinct: Mapping[str, float],
    shapes: Iterable[NodeShape],
    bound: frozenset[str],
) -> float:
    """Return the maximum number of combinations of values: those of a smallest generating set."""
    variable_bits = VariableBits()
    dependencies = [each for shape in shapes for each in shape.dependencies]
    if bound:
        dependencies.append((frozenset(), bound))
    by_bit = {variable_bits.mask([name]): name for name in sorted(names)}
    chosen = generators(sum(by_bit), variable_bits.masks(dependencies))
    if any(each not in by_bit for each in chosen):  # a hidden generator: its count is not known
        return prod(distinct[name] for name in names)
    return prod(distinct[by_bit[each]] for each in chosen)


def distinct_rows(rows: float, combinations: float) -> float:
    """Return the expected number of distinct rows, drawn from a number of combinations.

    >>> round(distinct_rows(1000, 10)), round(distinct_rows(10, 1e12))
    (10, 10)
    """
    if combinations <= 1.0:
        return min(rows, 1.0)
    # D · (1 − (1 − 1/D)^n) without cancellation for large D.
    return min(rows, -combinations * expm1(rows * log1p(-1.0 / combinations)))
