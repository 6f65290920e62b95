"""Which views a whole workload is worth: gains of all queries against upkeep and building.

    maximise  Σ_q f_q (work_q(∅) − work_q(S)) − Σ_{c ∈ S} (maint(c) + build(c) / horizon)
    subject to  Σ_{c ∈ S} bytes(c) ≤ budget

A view that several queries share is paid once. Gains are not submodular (two views may gain
together what none gains alone), so small pools are searched by branch and bound; larger ones start
from single views and from what each query would like, and are then improved by adding, dropping
and swapping. The empty set is always there, so nothing is ever made worse.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from corollary.advisor.candidates import Candidate
from corollary.advisor.estimating import Estimator
from corollary.advisor.rewriting import Rewriter, Worked
from corollary.advisor.scheme import Options

EXACT = 20
"""Pools of at most so many views are searched in full."""


@dataclass(frozen=True, slots=True)
class Demand:
    """A query of the workload: its clauses after stage 1, and how often it is asked in an hour."""

    worked: Sequence[Worked]
    rewriter: Rewriter
    frequency: float
    wish: frozenset[str]
    """What it would store if it were alone."""


@dataclass(slots=True)
class Workload:
    """Chooses from a pool of candidates, by their forms."""

    demands: Sequence[Demand]
    pool: Mapping[str, Candidate]
    estimator: Estimator
    options: Options
    _works: dict[tuple[int, frozenset[str]], float] = field(default_factory=dict)

    def choose(self) -> frozenset[str]:
        """Return the forms of the views to store."""
        if len(self.pool) <= EXACT:
            return self._searched()
        return self._improved()

    def value(self, stored: frozenset[str]) -> float:
        """Return what a set of views gains in an hour, in rows."""
        gain = sum(
            each.frequency * (self._work(at, frozenset()) - self._work(at, stored))
            for at, each in enumerate(self.demands)
        )
        return gain - sum(self.price(key) for key in stored)

    def price(self, key: str) -> float:
        """Return what a view costs in an hour: to keep it true, and its share of building it."""
        node = self.pool[key]
        build = self.estimator.candidate(node).work / self.options.horizon
        return self.upkeep(node) + build

    def upkeep(self, node: Candidate) -> float:
        """Return the rows handled in an hour to keep a view true."""
        return upkeep_per_hour(node, self.estimator, self.options)

    def size(self, stored: Iterable[str]) -> float:
        """Return the bytes of some views."""
        return sum(self.estimator.bytes(self.pool[key]) for key in stored)

    def _fits(self, stored: Iterable[str]) -> bool:
        return self.options.budget is None or self.size(stored) <= self.options.budget

    def _work(self, at: int, stored: frozenset[str]) -> float:
        """Return the rows that a query handles, with the best of what is stored."""
        demand = self.demands[at]
        mine = frozenset(key for key in stored if key in self._forms(demand))
        known = self._works.get((at, mine))
        if known is None:
            known = demand.rewriter.work(demand.worked, mine, self.estimator)
            if mine:
                known = min(known, *(self._work(at, mine - {key}) for key in mine))
            self._works[at, mine] = known
        return known

    @staticmethod
    def _forms(demand: Demand) -> frozenset[str]:
        return frozenset(
            demand.rewriter.forms.key(node)
            for worked in demand.worked
            for root in worked.roots()
            for node in root.nodes()
        )

    # --- small pools ---------------------------------------------------------------------------

    def _searched(self) -> frozenset[str]:
        """Branch and bound: what all that is left could gain at most, decides where to look."""
        order = sorted(self.pool, key=lambda key: (self.price(key), key))
        best = (0.0, frozenset[str]())
        open_: list[tuple[int, frozenset[str]]] = [(0, frozenset())]
        while open_:
            at, chosen = open_.pop()
            if not self._fits(chosen):
                continue
            value = self.value(chosen)
            if value > best[0]:
                best = value, chosen
            rest = chosen.union(order[at:])
            hope = self.value(rest) + sum(self.price(key) for key in rest - chosen)
            if at < len(order) and hope > best[0]:
                open_.append((at + 1, chosen))
                open_.append((at + 1, chosen | {order[at]}))
        return best[1]

    # --- large ones ----------------------------------------------------------------------------

    def _improved(self) -> frozenset[str]:
        """Start from single views and wishes, then add, drop and swap while that helps."""
        seeds = [frozenset({key}) for key in self.pool] + [each.wish for each in self.demands]
        seeds = [each for each in seeds if self._fits(each)]
        now = max([frozenset[str](), *seeds], key=self.value)
        while True:
            ways = [now | {key} for key in self.pool] + [now - {key} for key in now]
            ways += [now - {old} | {new} for old in now for new in self.pool]
            best = max((each for each in ways if self._fits(each)), key=self.value, default=now)
            if self.value(best) <= self.value(now):
                return now
            now = best


def upkeep_per_hour(node: Candidate, estimator: Estimator, options: Options) -> float:
    """Return the rows handled in an hour to keep a candidate true, at the update rates given."""
    changes = estimator.change(node)
    return sum(rate * changes.get(name, 0.0) for name, rate in options.updates.items())
