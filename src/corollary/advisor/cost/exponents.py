"""The exponent k of a rule's processing time N^k, under three kinds of plan.

    cost(L1 … Ln):  state := ∅
                    T := state ∪ vars(Li);  worst := max(worst, deg(T | L1 … Li))
                    state := T ∩ (head, later literals, filters not applied yet)

| plan | joins | between joins |
|---|---|---|
| `left_deep_exponent` | a literal at a time, looked up, best order (paper) | DISTINCT projection |
| `bushy` | any two results: a perfect optimiser that stores nothing | DISTINCT projection |
| `pipelined` | a literal at a time: Spark without DISTINCT in between | nothing is dropped |

What is needed later depends on the set of literals joined so far and not on their order, so orders
are found by visiting sets; how many are visited is bounded, which makes the search polynomial. Sets
of literals and of variables are bit masks.
"""

from collections.abc import Sequence

from corollary.advisor.model.shapes import NodeShape, VariableBits, degree
from corollary.advisor.search_limit import is_search_over
from corollary.data_class import dataclass

LEFT_DEEP_MAX_LITERALS = 14
"""Of shorter bodies all orders are visited, if need be."""
VISITED_MAX_SETS, VISITED_MAX_SETS_LONG = 1 << LEFT_DEEP_MAX_LITERALS, 1 << 10
"""The maximum number of sets of literals that are visited; then the greedy order counts."""
BUSHY_MAX_LITERALS = 9
"""The same for bushy plans, of which there are many more."""


@dataclass(frozen=True, slots=True)
class Exponents:
    """The exponents of a body; upper bounds (not `is_exact`) if it was ordered greedily."""

    left_deep: int
    bushy: int
    pipelined: int
    is_exact: bool = True


@dataclass(frozen=True, slots=True)
class Join:
    """A body to be joined.

    Attributes:
        shapes: those of the literals.
        head: the variables of the result.
        filters: the variables of each condition and negated literal.
        bound: the variables that a query gives values for.
    """

    shapes: tuple[NodeShape, ...]
    head: frozenset[str]
    filters: tuple[frozenset[str], ...] = ()
    bound: frozenset[str] = frozenset()


def left_deep_exponent(join: Join) -> int:
    """Return the exponent of the best left-deep plan with projections."""
    return _PlanSearch(join).left_deep(is_projecting=True)


def plan_exponents(join: Join) -> Exponents:
    """Return the exponents of all three kinds of plan."""
    search = _PlanSearch(join)
    paper = search.left_deep(is_projecting=True)
    # No plan is below the least exponent: where the left-deep one reaches it, so does a bushy one.
    bushy = paper if paper == search.least() else min(paper, search.bushy())
    return Exponents(
        paper, bushy, search.left_deep(is_projecting=False), len(join.shapes) <= BUSHY_MAX_LITERALS
    )


class _PlanSearch:
    def __init__(self, join: Join) -> None:
        variable_bits = VariableBits()
        self._variables = [variable_bits.mask(each.variables) for each in join.shapes]
        self._dependencies = [variable_bits.masks(each.dependencies) for each in join.shapes]
        self._bound = ((0, variable_bits.mask(join.bound)),) if join.bound else ()
        every = 0
        for mask in self._variables:
            every |= mask
        filters = [variable_bits.mask(each) for each in join.filters]
        self._head = _with_inputs(variable_bits.mask(join.head), filters, every)
        self._filters = [each & every for each in filters]
        self._cache: dict[tuple[int, int], int] = {}

    def left_deep(self, *, is_projecting: bool) -> int:
        """Return the best exponent over all orders.

        For each exponent k from the least possible one on, all sets are visited that can be joined
        at no more than N^k; the first k at which the whole body is reached is the best one.
        """
        worst = self._greedy(is_projecting)
        if is_search_over():
            return worst
        for exponent in range(self.least(is_projecting=is_projecting), worst):
            is_reached = self._is_reachable(exponent, is_projecting)
            if is_reached is None:
                return worst
            if is_reached:
                return exponent
        return worst

    def least(self, *, is_projecting: bool = True) -> int:
        """Return an exponent that no plan can be below: that of a literal, or of the result."""
        full = (1 << len(self._variables)) - 1
        targets = [*self._variables, self._state(full, is_projecting)]
        return max((self._degree(each, full) for each in targets), default=0)

    def _is_reachable(self, exponent: int, is_projecting: bool) -> bool | None:
        """Whether an order stays within an exponent; None if there are too many sets to visit."""
        total = len(self._variables)
        full = (1 << total) - 1
        most = VISITED_MAX_SETS if total <= LEFT_DEEP_MAX_LITERALS else VISITED_MAX_SETS_LONG
        stack, seen = [0], {0}
        while stack:
            chosen = stack.pop()
            if chosen == full:
                return True
            if len(seen) > most or is_search_over():
                return None
            state = self._state(chosen, is_projecting)
            reached: list[tuple[int, int]] = []
            for at in range(total):
                after = chosen | 1 << at
                if after == chosen:
                    continue
                degree_ = self._degree(state | self._variables[at], after)
                if degree_ > exponent:
                    continue
                if not self._state(after, is_projecting) & ~state:
                    # It only filters: whatever can be joined without it can be joined with it.
                    reached = [(degree_, after)]
                    break
                reached.append((degree_, after))
            for _, after in sorted(reached, reverse=True):
                if after not in seen:
                    seen.add(after)
                    stack.append(after)
        return False

    def bushy(self) -> int:
        """Return the best exponent over all trees of joins."""
        total = len(self._variables)
        if total > BUSHY_MAX_LITERALS or is_search_over(1 + (3**total >> 7)):
            return self._greedy(is_projecting=True)
        full = (1 << total) - 1
        best: dict[int, int] = {0: 0}
        for chosen in range(1, full + 1):
            if chosen & (chosen - 1) == 0:  # a single literal
                at = chosen.bit_length() - 1
                best[chosen] = self._degree(self._variables[at], chosen)
                continue
            # `left` runs through all proper subsets; of two complements one is enough.
            found, left = total * 64, (chosen - 1) & chosen
            while left:
                right = chosen ^ left
                if left >= right:
                    below = max(best[left], best[right])
                    if below < found:
                        together = self._state(left, True) | self._state(right, True)
                        found = min(found, max(below, self._degree(together, chosen)))
                left = (left - 1) & chosen
            best[chosen] = found
        return best[full]

    def _greedy(self, is_projecting: bool) -> int:
        """Join the literal next that gives the smallest degree; the first, if the work is over."""
        chosen, worst, remaining = 0, 0, list(range(len(self._variables)))
        while remaining:
            state = self._state(chosen, is_projecting)
            cost, at = min(
                (self._degree(state | self._variables[at], chosen | 1 << at), at)
                for at in (remaining[:1] if is_search_over() else remaining)
            )
            chosen, worst = chosen | 1 << at, max(worst, cost)
            remaining.remove(at)
        return worst

    def _state(self, chosen: int, is_projecting: bool) -> int:
        """Return the variables of the result of joining some literals."""
        known, later = 0, self._head
        for at, mask in enumerate(self._variables):
            if chosen >> at & 1:
                known |= mask
            else:
                later |= mask
        if not is_projecting:
            return known
        for mask in self._filters:
            if mask & ~known:  # not applied yet: its variables are needed until then
                later |= mask
        return known & later

    def _degree(self, target: int, chosen: int) -> int:
        key = (target, chosen)
        found = self._cache.get(key)
        if found is None:
            dependencies = [*self._bound]
            for at, each in enumerate(self._dependencies):
                if chosen >> at & 1:
                    dependencies += each
            found = self._cache[key] = degree(target, tuple(dependencies))
        return found


def _with_inputs(head: int, filters: Sequence[int], joined: int) -> int:
    """Return the variables that the result needs of literals.

    A variable that an equation computes is replaced by the other variables of the equation.
    """
    needed, before = head, -1
    while needed != before:
        before = needed
        for mask in filters:
            if mask & needed & ~joined:
                needed |= mask
    return needed & joined
