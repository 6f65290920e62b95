"""The exponent k of a rule's processing time N^k, under three kinds of plan.

    cost(L1 … Ln):  state := ∅
                    T := state ∪ vars(Li);  worst := max(worst, deg(T | L1 … Li))
                    state := T ∩ (head, later literals, filters not applied yet)

| plan | joins | between joins |
|---|---|---|
| `left_deep` | a literal at a time, looked up, in the best order: the paper's | duplicates go |
| `bushy` | any two results: a perfect optimiser that stores nothing | duplicates go |
| `pipelined` | a literal at a time: Spark without DISTINCT in between | everything stays |

What is needed later depends on the set of literals joined so far and not on their order, so the
best order is found by dynamic programming over sets.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from corollary.advisor.degree import degree
from corollary.advisor.shapes import Numbers, Shape

EXACT = 14
"""Bodies of more literals are ordered greedily."""
EXACT_BUSHY = 9
"""The same for bushy plans, of which there are many more."""


@dataclass(frozen=True, slots=True)
class Exponents:
    """What a body costs; `is_exact` unless it was ordered greedily."""

    left_deep: int
    bushy: int
    pipelined: int
    is_exact: bool = True


@dataclass(frozen=True, slots=True)
class Join:
    """A body to be joined.

    Attributes:
        shapes: of what is joined.
        head: the variables that are wanted.
        filters: the variables of each condition and negated literal.
        bound: the variables that a query gives.
    """

    shapes: tuple[Shape, ...]
    head: frozenset[str]
    filters: tuple[frozenset[str], ...] = ()
    bound: frozenset[str] = frozenset()


def left_deep(join: Join) -> int:
    """Return the exponent of the best left-deep plan with projections."""
    return _Search(join).left_deep(is_projecting=True)


def exponents(join: Join) -> Exponents:
    """Return the exponents of all three kinds of plan."""
    search = _Search(join)
    paper = search.left_deep(is_projecting=True)
    return Exponents(
        paper,
        min(paper, search.bushy()),
        search.left_deep(is_projecting=False),
        len(join.shapes) <= EXACT_BUSHY,
    )


@dataclass(slots=True)
class _Search:
    join: Join
    variables: list[int] = field(default_factory=list)
    dependencies: list[tuple[tuple[int, int], ...]] = field(default_factory=list)
    _given: tuple[tuple[int, int], ...] = ()
    _head: int = 0
    _filters: list[int] = field(default_factory=list)
    _cache: dict[tuple[int, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        numbers, join = Numbers(), self.join
        self.variables = [numbers.mask(each.variables) for each in join.shapes]
        self.dependencies = [
            tuple((numbers.mask(left), numbers.mask(right)) for left, right in each.dependencies)
            for each in join.shapes
        ]
        self._given = ((0, numbers.mask(join.bound)),) if join.bound else ()
        every = 0
        for mask in self.variables:
            every |= mask
        filters = [numbers.mask(each) for each in join.filters]
        self._head = _with_inputs(numbers.mask(join.head), filters, every)
        self._filters = [each & every for each in filters]
        self._cache: dict[tuple[int, int], int] = {}

    def left_deep(self, *, is_projecting: bool) -> int:
        """Return the best exponent over all orders."""
        total = len(self.variables)
        if total > EXACT:
            return self._greedy(is_projecting)
        full = (1 << total) - 1
        state = self._state if is_projecting else self._all
        best = [0] + [full] * full
        states = [state(chosen) for chosen in range(full + 1)]
        for chosen in range(1, full + 1):
            found = total * 64
            for at in range(total):
                if chosen >> at & 1:
                    before = chosen ^ (1 << at)
                    if best[before] < found:
                        reached = self._degree(states[before] | self.variables[at], chosen)
                        found = min(found, max(best[before], reached))
            best[chosen] = found
        return best[full]

    def bushy(self) -> int:
        """Return the best exponent over all trees of joins."""
        total = len(self.variables)
        if total > EXACT_BUSHY:
            return self._greedy(is_projecting=True)
        full = (1 << total) - 1
        best: dict[int, int] = {0: 0}
        for chosen in range(1, full + 1):
            if chosen & (chosen - 1) == 0:
                at = chosen.bit_length() - 1
                best[chosen] = self._degree(self.variables[at], chosen)
                continue
            found, left = total * 64, (chosen - 1) & chosen
            while left:
                right = chosen ^ left
                if left >= right:
                    below = max(best[left], best[right])
                    if below < found:
                        together = self._state(left) | self._state(right)
                        found = min(found, max(below, self._degree(together, chosen)))
                left = (left - 1) & chosen
            best[chosen] = found
        return best[full]

    def _greedy(self, is_projecting: bool) -> int:
        """Take the literal next that keeps the degree least."""
        state: Callable[[int], int] = self._state if is_projecting else self._all
        chosen, worst, left = 0, 0, list(range(len(self.variables)))
        while left:
            costs = [
                (self._degree(state(chosen) | self.variables[at], chosen | 1 << at), at)
                for at in left
            ]
            cost, at = min(costs)
            chosen, worst = chosen | 1 << at, max(worst, cost)
            left.remove(at)
        return worst

    def _all(self, chosen: int) -> int:
        found = 0
        for at, mask in enumerate(self.variables):
            if chosen >> at & 1:
                found |= mask
        return found

    def _state(self, chosen: int) -> int:
        """Return what has to be kept of the literals joined so far."""
        have, later = 0, self._head
        for at, mask in enumerate(self.variables):
            if chosen >> at & 1:
                have |= mask
            else:
                later |= mask
        for mask in self._filters:
            if mask & ~have:
                later |= mask
        return have & later

    def _degree(self, target: int, chosen: int) -> int:
        key = (target, chosen)
        found = self._cache.get(key)
        if found is None:
            dependencies = [*self._given]
            for at, each in enumerate(self.dependencies):
                if chosen >> at & 1:
                    dependencies += each
            found = self._cache[key] = degree(target, tuple(dependencies))
        return found


def _with_inputs(head: int, filters: Sequence[int], joined: int) -> int:
    """Return the wanted variables that literals bind: a computed one stands for its inputs."""
    wanted, before = head, -1
    while wanted != before:
        before = wanted
        for mask in filters:
            if mask & wanted & ~joined:
                wanted |= mask
    return wanted & joined
