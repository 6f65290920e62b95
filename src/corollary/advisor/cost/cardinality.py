"""Cardinality estimates of joins and of projections without duplicates.

    |S ⋈ L| = |S| · |L| / U                    U: the size of the domain of the shared columns X
    U = max(d(S), d(L)) for one column, and for a reference to a key: the smaller set of values is
        contained in the larger one, as they were before conditions and joins removed some of them
    U = Π over x ∈ X of max(V(S, x), V(L, x)) otherwise
    a fraction d(L) / U of the rows of S has a partner, d(S) / U of those of L; the values that
    remain among them are estimated as Yao does (`core/statistics.py`)

A projection on Z keeps all n rows if Z determines the other columns; if one column determines Z, it
has one row for each value of that column. Only where neither holds, n rows are thrown into the D
combinations of values that there can be (occupancy).

| symbol | name here |
|---|---|
| V(L, x) | `Cardinality.distinct`: the number of values of a variable |
| d(L) | `_combinations`: the number of combinations of values of some variables |
| f | `matched`, and `JoinState.remaining` over all joins so far |
| maximum frequency of a value | `Cardinality.max_frequency`: bounds a join from above |

    orders(o, c), o the key, 1,000 rows, 100 customers     π_o: 1,000 rows   π_c: 100 rows
    joined with customer(c, n), 50 rows, c the key         500 rows, 50 customers
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from math import inf, prod

from corollary.advisor.model.shapes import Masks, NodeShape, VariableBits, closure, generators
from corollary.advisor.search_limit import is_search_over
from corollary.core.statistics import distinct_rows, remaining_values
from corollary.data_class import dataclass

ORDERED_MAX_LITERALS = 7
"""Longer bodies are ordered greedily."""


@dataclass(frozen=True, slots=True)
class Cardinality:
    """The number of rows, and of each variable the values and the most frequent one's rows.

    Attributes:
        domain: the number of values of a variable before any condition or join has removed some.
        count: gives the number of combinations of values of some variables, where it was measured.
    """

    rows: float
    distinct: Mapping[str, float]
    max_frequency: Mapping[str, float] = field(default_factory=dict)
    domain: Mapping[str, float] = field(default_factory=dict)
    count: Callable[[frozenset[str]], float | None] | None = field(default=None, compare=False)

    def domain_of(self, name: str) -> float:
        """Return the number of values that a variable can have."""
        return max(self.domain.get(name, 1.0), self.distinct.get(name, 1.0), 1.0)


@dataclass(frozen=True, slots=True)
class JoinEstimate:
    """The result of a body, and its work: the rows handled to compute it."""

    result: Cardinality
    work: float


@dataclass(frozen=True, slots=True)
class JoinState:
    """What is known after joining some inputs.

    Attributes:
        remaining: of each joined input, the fraction of its rows that still has partners.
    """

    result: Cardinality
    work: float
    remaining: Mapping[int, float] = field(default_factory=dict)


class JoinOrderSearch:
    """Finds the best order of a join, by dynamic programming over sets of inputs.

    Args:
        inputs: the cardinalities of what is joined.
        shapes: their variables and dependencies.
        head: the variables of the result.
        bound: the variables that are given.
    """

    def __init__(
        self,
        inputs: Sequence[Cardinality],
        shapes: Sequence[NodeShape],
        head: frozenset[str],
        bound: frozenset[str] = frozenset(),
    ) -> None:
        self._inputs = inputs
        self._head = head
        self._bound = bound
        self._variable_bits = VariableBits()
        self._variables = [each.variables for each in shapes]
        self._dependencies = [self._variable_bits.masks(each.dependencies) for each in shapes]
        self._given: Masks = ((0, self._variable_bits.mask(bound)),) if bound else ()

    def best(self) -> JoinEstimate:
        """Return the estimate of the order that handles the fewest rows."""
        total = len(self._inputs)
        # Round n holds the best plan for each set of n inputs, as a mask.
        best = {0: JoinState(Cardinality(1.0, dict.fromkeys(self._bound, 1.0)), 0.0)}
        for _ in range(total):
            reached: dict[int, JoinState] = {}
            for chosen, so_far in best.items():
                for at in range(total):
                    after = chosen | 1 << at
                    if after != chosen:
                        joined = self._join(so_far, chosen, at)
                        if after not in reached or joined.work < reached[after].work:
                            reached[after] = joined
            if total > ORDERED_MAX_LITERALS or is_search_over():
                least = min(reached, key=lambda each: (reached[each].result.rows, each))
                reached = {least: reached[least]}
            best = reached
        found = best[(1 << total) - 1]
        return JoinEstimate(found.result, found.work)

    def _join(self, so_far: JoinState, chosen: int, at: int) -> JoinState:
        """Join one more input, then project on what is needed later."""
        before, added, after = so_far.result, self._inputs[at], chosen | 1 << at
        domain, mine, theirs = self._domain(so_far, chosen, at)
        rows = before.rows * added.rows / max(1.0, domain)
        rows = _bounded_by_frequencies(rows, before, added)
        matched = min(1.0, theirs / domain), min(1.0, mine / domain)
        distinct = _values_after_join(before, added, matched)
        remaining = {each: share * matched[0] for each, share in so_far.remaining.items()}
        remaining[at] = matched[1]
        dependencies = self._masks(after)
        rows = min(rows, self._combinations(frozenset(distinct), distinct, dependencies))
        later = self._head.union(
            *(names for number, names in enumerate(self._variables) if not after >> number & 1)
        )
        kept = frozenset(distinct) & later
        fewer = self._projected_rows(rows, kept, distinct, dependencies, remaining)
        counts = {name: max(1.0, min(distinct[name], fewer)) for name in kept}
        sides = (before, added)
        domains = {
            name: max(each.domain_of(name) for each in sides if name in each.distinct)
            for name in kept
        }
        work = so_far.work + before.rows + rows
        return JoinState(Cardinality(fewer, counts, {}, domains), work, remaining)

    def _masks(self, chosen: int) -> Masks:
        found = self._given
        for at, each in enumerate(self._dependencies):
            if chosen >> at & 1:
                found += each
        return found

    # --- the join ------------------------------------------------------------------------------

    def _domain(self, so_far: JoinState, chosen: int, at: int) -> tuple[float, float, float]:
        """Return U, d(S) and d(L) for the shared columns."""
        before, added = so_far.result, self._inputs[at]
        shared = frozenset(before.distinct.keys() & added.distinct.keys())
        if not shared:
            return 1.0, 1.0, 1.0
        inside = [each for each in so_far.remaining if shared <= self._variables[each]]
        of_state = self._generators(shared, self._masks(chosen))
        of_input = self._generators(shared, self._dependencies[at])
        mine = min(before.rows, prod(before.distinct[name] for name in of_state))
        theirs = min(added.rows, prod(added.distinct[name] for name in of_input))
        if len(shared) > 1:
            for each in inside:
                share = so_far.remaining[each]
                mine = min(mine, self._count(each, shared, share))
            theirs = min(theirs, self._count(at, shared, 1.0))
        mine, theirs = max(mine, 1.0), max(theirs, 1.0)
        # A column that others determine on both sides restricts nothing further.
        names = of_state | of_input
        if len(names) == 1:
            domain = max(side.domain_of(name) for side in (before, added) for name in names)
            return max(mine, theirs, domain), mine, theirs
        referenced = [each for each in (*inside, at) if self._is_key(shared, each)]
        if referenced:
            return (
                max(mine, theirs, *(self._inputs[each].rows for each in referenced)),
                mine,
                theirs,
            )
        product = prod(max(before.domain_of(x), added.domain_of(x)) for x in names)
        return max(mine, theirs, product), mine, theirs

    def _count(self, at: int, names: frozenset[str], share: float) -> float:
        """Return how many combinations of values of an input remain in a share of its rows."""
        each = self._inputs[at]
        counted = None if each.count is None else each.count(names)
        return inf if counted is None else remaining_values(counted, each.rows, share)

    def _generators(self, names: frozenset[str], dependencies: Masks) -> frozenset[str]:
        """Return variables among some that determine all of them; all, if hidden ones do it."""
        by_bit = {self._variable_bits.mask([name]): name for name in sorted(names)}
        chosen = generators(sum(by_bit), dependencies)
        return frozenset(by_bit[each] for each in chosen) if set(chosen) <= set(by_bit) else names

    def _is_key(self, names: frozenset[str], at: int) -> bool:
        """Whether variables are a declared key of an input with other columns: a reference to it.

        All columns together are a key of every relation, and refer to nothing.
        """
        every = self._variables[at]
        if not names < every:
            return False
        mask = self._variable_bits.mask(names)
        return not self._variable_bits.mask(every) & ~closure(mask, self._dependencies[at])

    # --- the projection ------------------------------------------------------------------------

    def _projected_rows(
        self,
        rows: float,
        kept: frozenset[str],
        distinct: Mapping[str, float],
        dependencies: Masks,
        remaining: Mapping[int, float],
    ) -> float:
        """Return the number of rows of a projection without duplicates."""
        known = closure(self._variable_bits.mask(kept), dependencies)
        if not self._variable_bits.mask(distinct) & ~known:
            return rows
        names = self._generators(kept, dependencies)
        if len(names) == 1:
            return min(rows, *(distinct[name] for name in names))
        return self._cover(rows, names, distinct, remaining)

    def _cover(
        self,
        rows: float,
        names: frozenset[str],
        distinct: Mapping[str, float],
        remaining: Mapping[int, float],
    ) -> float:
        """Return the number of distinct rows over some variables.

        They are covered by combinations that were counted in one input, and by single variables:
        the inputs first that say most about the number of combinations.
        """
        rest, total = set(names), 1.0
        while rest:
            best: tuple[float, float, frozenset[str]] | None = None
            for at, share in remaining.items():
                inside = frozenset(rest & self._inputs[at].distinct.keys())
                if len(inside) < 2:
                    continue
                values = self._count(at, inside, share)
                ratio = values / max(1.0, prod(distinct[name] for name in inside))
                if best is None or ratio < best[0]:
                    best = ratio, values, inside
            if best is None or best[0] >= 1.0:
                total *= prod(distinct[name] for name in rest)
                break
            total *= best[1]
            rest -= best[2]
            if not rest and best[2] == names:  # all of it was counted
                return min(rows, max(1.0, total))
        return distinct_rows(rows, total)

    def _combinations(
        self, names: frozenset[str], distinct: Mapping[str, float], dependencies: Masks
    ) -> float:
        """Return the maximum number of combinations of values: those of a generating set."""
        return prod(distinct[name] for name in self._generators(names, dependencies))


def _bounded_by_frequencies(rows: float, one: Cardinality, other: Cardinality) -> float:
    shared = one.distinct.keys() & other.distinct.keys()
    for left, right in ((one, other), (other, one)):
        frequencies = (right.max_frequency[x] for x in shared if x in right.max_frequency)
        rows = min([rows, *(left.rows * frequency for frequency in frequencies)])
    return rows


def _values_after_join(
    one: Cardinality, other: Cardinality, matched: tuple[float, float]
) -> dict[str, float]:
    """Return the number of values of each variable that have partners."""
    found: dict[str, float] = {}
    shared = one.distinct.keys() & other.distinct.keys()
    for side, fraction in zip((one, other), matched, strict=True):
        for name, values in side.distinct.items():
            if name not in shared:
                found[name] = remaining_values(values, side.rows, fraction)
    for name in shared:
        least = min(one.distinct[name], other.distinct[name])
        if len(shared) > 1:
            # A value needs a partner that agrees with it in the other columns as well.
            least = min(
                least,
                remaining_values(one.distinct[name], one.rows, matched[0]),
                remaining_values(other.distinct[name], other.rows, matched[1]),
            )
        found[name] = max(1.0, least)
    return found
