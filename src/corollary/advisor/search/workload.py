"""Which views are worth storing for a whole workload: gains of all queries against their costs.

    maximise  Σ_q f_q (work_q(∅) − work_q(S)) − Σ_{c ∈ S} (maint(c) + build(c) / horizon)
    subject to  Σ_{c ∈ S} bytes(c) ≤ budget

maint(c) has the rows of all changes, and for each commit what it takes however few they are. A view
that several queries share is paid once. A query uses the candidates of its own trees, or any
view of the pool whose body is part of its own (`shared_views`), whichever handles fewer rows. Gains
are not submodular (two views may gain together what neither gains alone), so small pools are
searched by branch and bound; larger ones start from single views and from what each query would
store alone, then local search adds, drops and swaps views. The empty set is always a solution, so
the result is never worse than nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from corollary.advisor.cost.estimates import Estimator
from corollary.advisor.model.candidates import Candidate, FoldedClause, Leaf, SchemeClause
from corollary.advisor.model.scheme import Options
from corollary.advisor.search.rewriting import Rewriter
from corollary.advisor.search.shared_views import uses_of
from corollary.advisor.search_limit import is_search_over
from corollary.data_class import dataclass

BRANCH_AND_BOUND_MAX_VIEWS = 14
"""Larger pools are searched locally."""
VIEW_COMMIT_ROWS = 50_000.0
"""The row-operations that take as long as a commit takes for a view that it may change."""
SUBSETS_MAX_VIEWS = 4
"""Of more usable views, a query drops one after the other while that helps."""


@dataclass(frozen=True, slots=True)
class QueryDemand:
    """A query of the workload.

    Attributes:
        clauses: its clauses after stage 1.
        frequency: queries per hour.
        preferred: the candidates that it would store if it were alone, by form.
        originals: its clauses as they are, in which shared views may be used.
    """

    clauses: Sequence[FoldedClause]
    rewriter: Rewriter
    frequency: float
    preferred: frozenset[str]
    originals: Sequence[SchemeClause] = ()


@dataclass(slots=True)
class Workload:
    """Chooses from a pool of candidates, by form."""

    demands: Sequence[QueryDemand]
    pool: Mapping[str, Candidate]
    estimator: Estimator
    options: Options
    _works: dict[tuple[int, frozenset[str]], float] = field(default_factory=dict)
    _known_forms: dict[int, frozenset[str]] = field(default_factory=dict)
    _uses: dict[int, list[list[Candidate]]] = field(default_factory=dict)
    _rewritings: dict[tuple[int, frozenset[str]], tuple[FoldedClause, ...]] = field(
        default_factory=dict
    )
    _prices: dict[str, float] = field(default_factory=dict)

    def choose(self) -> frozenset[str]:
        """Return the forms of the views to store."""
        if len(self.pool) <= BRANCH_AND_BOUND_MAX_VIEWS:
            return self._branch_and_bound()
        return self._local_search()

    def clauses(self, at: int, stored: frozenset[str]) -> tuple[FoldedClause, ...]:
        """Return the clauses of a query by which it reads the views that are stored."""
        usable = stored & self._forms(at)
        shared = self._shared_clauses(at, usable)
        if self._shared_work(at, usable) < self._tree_work(at, usable):
            return shared
        return tuple(self.demands[at].clauses)

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
        found = self._prices.get(key)
        if found is None:
            node = self.pool[key]
            build = self.estimator.estimate_candidate(node).work / self.options.horizon_hours
            upkeep = self.estimator.hourly_upkeep(node, self.options.updates)
            if upkeep:
                upkeep += self.options.commits_per_hour * VIEW_COMMIT_ROWS
            found = self._prices[key] = upkeep + build
        return found

    def _is_within_budget(self, stored: Iterable[str]) -> bool:
        return self.options.budget_bytes is None or self.size(stored) <= self.options.budget_bytes

    # --- one query -----------------------------------------------------------------------------

    def _work(self, at: int, stored: frozenset[str]) -> float:
        """Return the rows that a query handles, with the best of what is stored."""
        usable = stored & self._forms(at)
        work = self._works.get((at, usable))
        if work is None:
            work = min(self._tree_work(at, usable), self._shared_work(at, usable))
            if usable and len(usable) <= SUBSETS_MAX_VIEWS:
                # A rewriting need not use every stored view.
                work = min(work, *(self._work(at, usable - {key}) for key in usable))
            self._works[at, usable] = work
        return work

    def _tree_work(self, at: int, usable: frozenset[str]) -> float:
        demand = self.demands[at]
        return demand.rewriter.work(demand.clauses, usable, self.estimator)

    def _shared_work(self, at: int, usable: frozenset[str]) -> float:
        demand = self.demands[at]
        if not demand.originals:
            return self._tree_work(at, usable)
        clauses = self._shared_clauses(at, usable)
        return demand.rewriter.work(clauses, usable, self.estimator)

    def _shared_clauses(self, at: int, usable: frozenset[str]) -> tuple[FoldedClause, ...]:
        """Return the clauses of a query, each with the views that lower its work."""
        found = self._rewritings.get((at, usable))
        if found is None:
            uses = self._uses_in(at)
            found = self._rewritings[at, usable] = tuple(
                self._with_views(at, clause, [u for u in uses[number] if self._key(u) in usable])
                for number, clause in enumerate(self.demands[at].originals)
            )
        return found

    def _with_views(self, at: int, clause: SchemeClause, uses: Sequence[Candidate]) -> FoldedClause:
        """Return a clause that uses views, chosen one after the other by the work they save."""
        rewriter = self.demands[at].rewriter

        def work(folded: FoldedClause) -> float:
            keys = frozenset(map(self._key, folded.roots()))
            return rewriter.work([folded], keys, self.estimator)

        best = FoldedClause.unfolded(clause)
        least = work(best)
        while True:
            tries = [_replace_use(best, use) for use in uses]
            rated = [(work(each), number) for number, each in enumerate(tries) if each is not None]
            if not rated or min(rated)[0] >= least:
                return best
            least, number = min(rated)
            chosen = tries[number]
            assert chosen is not None
            best = chosen
            if clause.measure is not None:  # a second view would not keep the assignments apart
                return best

    def _uses_in(self, at: int) -> list[list[Candidate]]:
        """Return how the views of the pool can be used in each clause of a query."""
        if at not in self._uses:
            self._uses[at] = [
                [use for view in self.pool.values() for use in uses_of(view, clause)]
                for clause in self.demands[at].originals
            ]
        return self._uses[at]

    def _key(self, node: Candidate) -> str:
        return self.demands[0].rewriter.forms.key(node)

    def _forms(self, at: int) -> frozenset[str]:
        """Return the forms of the views that a query can use."""
        found = self._known_forms.get(at)
        if found is None:
            demand = self.demands[at]
            roots = (root for folded in demand.clauses for root in folded.roots())
            own = {self._key(node) for root in roots for node in root.nodes()}
            own |= {self._key(use) for uses in self._uses_in(at) for use in uses}
            found = self._known_forms[at] = frozenset(own)
        return found

    # --- the search ----------------------------------------------------------------------------

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
        now = self._better(frozenset(), seeds) or frozenset()
        while not is_search_over():
            # Swaps are many: they are tried where neither adding nor dropping a view helps.
            single = [now | {key} for key in self.pool] + [now - {key} for key in now]
            better = self._better(now, single)
            if better is None:
                swaps = [now - {old} | {new} for old in now for new in self.pool]
                better = self._better(now, swaps)
            if better is None:
                break
            now = better
        return now

    def _better(self, now: frozenset[str], moves: list[frozenset[str]]) -> frozenset[str] | None:
        """Return the best of some sets within the budget, if it is better than the one of now."""
        best = now
        for each in moves:
            if is_search_over():
                break
            if self._is_within_budget(each) and self.value(each) > self.value(best):
                best = each
        return best if self.value(best) > self.value(now) else None


def _replace_use(folded: FoldedClause, use: Candidate) -> FoldedClause | None:
    """Return a clause with a use of a view in place of its literals; None if one is gone."""
    literals: set[Leaf] = {each for each in use.bodies[0] if not isinstance(each, Candidate)}
    kept = tuple(each for each in folded.nodes if each not in literals)
    if len(kept) + len(literals) > len(folded.nodes):
        return None
    return FoldedClause(folded.clause, (*kept, use))
