"""Which views are worth storing for a whole workload: gains of all queries against their costs.

    maximise  Σ_q f_q (work_q(∅) − work_q(S)) − Σ_{c ∈ S} (maint(c) + build(c) / horizon)
    subject to  Σ_{c ∈ S} bytes(c) ≤ budget

A view that several queries share is paid once. Gains are not submodular (two views may gain
together what neither gains alone), so small pools are searched by branch and bound; larger ones
start from single views and from what each query would store alone, then local search adds, drops
and swaps views. The empty set is always a solution, so the result is never worse than nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from corollary.advisor.cost.estimates import Estimator
from corollary.advisor.model.candidates import Candidate, FoldedClause
from corollary.advisor.model.scheme import Options
from corollary.advisor.search.rewriting import Rewriter
from corollary.advisor.time_limit import is_search_over

BRANCH_AND_BOUND_MAX_VIEWS = 20
"""Larger pools are searched locally."""


@dataclass(frozen=True, slots=True)
class QueryDemand:
    """A query of the workload.

    Attributes:
        clauses: its clauses after stage 1.
        frequency: queries per hour.
        preferred: the candidates that it would store if it were alone, by form.
    """

    clauses: Sequence[FoldedClause]
    rewriter: Rewriter
    frequency: float
    preferred: frozenset[str]


@dataclass(slots=True)
class Workload:
    """Chooses from a pool of candidates, by form."""

    demands: Sequence[QueryDemand]
    pool: Mapping[str, Candidate]
    estimator: Estimator
    options: Options
    _works: dict[tuple[int, frozenset[str]], float] = field(default_factory=dict)

    def choose(self) -> frozenset[str]:
        """Return the forms of the views to store."""
        if len(self.pool) <= BRANCH_AND_BOUND_MAX_VIEWS:
            return self._branch_and_bound()
        return self._local_search()

    def value(self, stored: frozenset[str]) -> float:
        """Return the gain of a set of views per hour, in rows, less their costs."""
        gain = sum(
            each.frequency * (self._work(at, frozenset()) - self._work(at, stored))
            for at, each in enumerate(self.demands)
        )
        return gain - sum(self._price(key) for key in stored)

    def size(self, stored: Iterable[str]) -> float:
        """Return the bytes of some views."""
        return sum(self.estimator.candidate_bytes(self.pool[key]) for key in stored)

    def _price(self, key: str) -> float:
        """Return the cost of a view per hour: its upkeep, and its share of building it."""
        node = self.pool[key]
        build = self.estimator.estimate_candidate(node).work / self.options.horizon_hours
        return self.estimator.hourly_upkeep(node, self.options.updates) + build

    def _is_within_budget(self, stored: Iterable[str]) -> bool:
        return self.options.budget_bytes is None or self.size(stored) <= self.options.budget_bytes

    def _work(self, at: int, stored: frozenset[str]) -> float:
        """Return the rows that a query handles, with the best of what is stored."""
        demand = self.demands[at]
        usable = stored & self._forms(demand)
        work = self._works.get((at, usable))
        if work is None:
            work = demand.rewriter.work(demand.clauses, usable, self.estimator)
            if usable:  # a rewriting need not use every stored view
                work = min(work, *(self._work(at, usable - {key}) for key in usable))
            self._works[at, usable] = work
        return work

    @staticmethod
    def _forms(demand: QueryDemand) -> frozenset[str]:
        return frozenset(
            demand.rewriter.forms.key(node)
            for folded in demand.clauses
            for root in folded.roots()
            for node in root.nodes()
        )

    def _branch_and_bound(self) -> frozenset[str]:
        order = sorted(self.pool, key=lambda key: (self._price(key), key))
        best = (0.0, frozenset[str]())
        stack: list[tuple[int, frozenset[str]]] = [(0, frozenset())]
        while stack and not is_search_over():
            at, chosen = stack.pop()
            if not self._is_within_budget(chosen):
                continue
            value = self.value(chosen)
            if value > best[0]:
                best = value, chosen
            # More views never gain less: all undecided ones, for free, bound the branch.
            rest = chosen.union(order[at:])
            bound = self.value(rest) + sum(self._price(key) for key in rest - chosen)
            if at < len(order) and bound > best[0]:
                stack.append((at + 1, chosen))
                stack.append((at + 1, chosen | {order[at]}))
        return best[1]

    def _local_search(self) -> frozenset[str]:
        seeds = [frozenset({key}) for key in self.pool] + [each.preferred for each in self.demands]
        seeds = [each for each in seeds if self._is_within_budget(each)]
        now = max([frozenset[str](), *seeds], key=self.value)
        while not is_search_over():
            moves = [now | {key} for key in self.pool] + [now - {key} for key in now]
            moves += [now - {old} | {new} for old in now for new in self.pool]
            legal = (each for each in moves if self._is_within_budget(each))
            best = max(legal, key=self.value, default=now)
            if self.value(best) <= self.value(now):
                break
            now = best
        return now
