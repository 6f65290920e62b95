"""Drafts: a predicate after both stages, before its advice is written down."""

from dataclasses import dataclass, replace

from corollary.advisor.candidates import Body, Candidate
from corollary.advisor.clauses import ClauseForm
from corollary.advisor.clusters import alternatives, carry
from corollary.advisor.costs import Exponents
from corollary.advisor.deciding import Decider, Decision
from corollary.advisor.disjuncts import Merged, merge
from corollary.advisor.estimating import Estimator
from corollary.advisor.folding import fold
from corollary.advisor.rewriting import Forms, Rewriter, Worked
from corollary.advisor.scheme import Options, Query, Scheme
from corollary.advisor.shapes import Shapes
from corollary.advisor.workload import Demand, Workload


@dataclass(frozen=True, slots=True)
class Draft:
    """A predicate after both stages: its clauses, what they cost, and what is decided."""

    query: Query
    is_query: bool
    clauses: tuple[ClauseForm, ...]
    rewriter: Rewriter
    decider: Decider
    before: Exponents
    decision: Decision

    @property
    def plain(self) -> list[Worked]:
        """The clauses as they are, with nothing folded."""
        return as_they_are(self.clauses)


def as_they_are(clauses: tuple[ClauseForm, ...]) -> list[Worked]:
    """Return clauses with nothing folded."""
    return [Worked(each, (*each.literals, *each.tests)) for each in clauses]


@dataclass(frozen=True, slots=True)
class Drafter:
    """Makes drafts.

    Attributes:
        limit: the effective arity of the scheme.
        estimator: knows real sizes, if they are known.
    """

    scheme: Scheme
    options: Options
    shapes: Shapes
    forms: Forms
    limit: int
    estimator: Estimator | None

    def draft(self, query: Query, *, is_query: bool) -> Draft:
        """Take a predicate through both stages."""
        clauses = self.scheme.clauses.get(query.relation, ())
        rewriter = Rewriter(self.shapes, self.forms, query.bound)
        before = rewriter.exponents(as_they_are(clauses), frozenset())
        decider = Decider(rewriter, self.limit, self.options, self.estimator)
        decision = self._decide(decider, clauses, before.left_deep)
        return Draft(query, is_query, clauses, rewriter, decider, before, decision)

    def _decide(self, decider: Decider, clauses: tuple[ClauseForm, ...], before: int) -> Decision:
        """Decide with and without the disjunct phase; the better one counts."""
        ways = [[Merged(each, (*each.literals, *each.tests)) for each in clauses]]
        if self.options.has_disjuncts and len(clauses) > 1:
            merged = merge(clauses)
            if len(merged) < len(clauses):
                ways.insert(0, merged)
        decisions = [
            decider.decide([self._worked(each, decider) for each in way], before) for way in ways
        ]
        return min(decisions, key=lambda one: (one.after, decider.vector(one.stored.values())))

    def _worked(self, merged: Merged, decider: Decider) -> Worked:
        """Return a clause after stage 1."""
        clause = merged.clause
        if clause.obstacle:
            return Worked(clause, merged.nodes)
        significant = clause.significant
        folded = Worked(clause, tuple(fold(merged.nodes, significant)))
        if not self.options.partial_clusters:
            return folded
        others = alternatives(merged.nodes, significant, decider.is_legal)
        ways = [folded, *(Worked(clause, each) for each in others)]
        ways = [replace(each, nodes=self._carried(clause, each.nodes, decider)) for each in ways]

        def rank(worked: Worked) -> tuple[object, ...]:
            found = decider.decide([worked], 1 << 30)
            return found.after, decider.vector(found.stored.values())

        return min(ways, key=rank) if len(ways) > 1 else ways[0]

    @staticmethod
    def _carried(clause: ClauseForm, nodes: Body, decider: Decider) -> Body:
        return tuple(carry(node, clause.literals, decider.is_legal) for node in nodes)

    def selected(self, drafts: list[Draft]) -> list[Draft]:
        """Let the workload as a whole decide, if a budget is to be spent."""
        if self.options.selection != "budget" or self.estimator is None:
            return drafts
        pool: dict[str, Candidate] = {}
        for draft in drafts:
            for root in (root for each in draft.decision.worked for root in each.roots()):
                legal = (node for node in root.nodes() if draft.decider.is_legal(node))
                pool.update((self.forms.key(node), node) for node in legal)
        demands = [
            Demand(
                each.decision.worked,
                each.rewriter,
                each.query.frequency,
                frozenset(each.decision.stored),
            )
            for each in drafts
        ]
        chosen = Workload(demands, pool, self.estimator, self.options).choose()
        return [replace(each, decision=self._spent(each, chosen, pool)) for each in drafts]

    def _spent(self, draft: Draft, chosen: frozenset[str], pool: dict[str, Candidate]) -> Decision:
        """Return what of the views that the workload chose a predicate uses."""
        worked = draft.decision.worked
        used = {
            self.forms.key(node)
            for each in worked
            for body in draft.rewriter.bodies(each, chosen)
            for node in body
            if isinstance(node, Candidate)
        }
        after = draft.rewriter.cost(worked, frozenset(used))
        return replace(draft.decision, after=after, stored={key: pool[key] for key in sorted(used)})
