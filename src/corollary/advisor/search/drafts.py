"""Drafts: a predicate after both stages, before its advice is written."""

from collections.abc import Sequence
from dataclasses import field, replace

from corollary.advisor.cost.estimates import Estimator
from corollary.advisor.cost.exponents import Exponents
from corollary.advisor.model.candidates import Candidate, FoldedClause, Measure, SchemeClause
from corollary.advisor.model.canonical import CanonicalForms
from corollary.advisor.model.scheme import (
    AggregatingClause,
    Options,
    Scheme,
    SelectionMode,
    WorkloadQuery,
)
from corollary.advisor.model.shapes import NodeShapes
from corollary.advisor.search.decision import Decider, StorageDecision
from corollary.advisor.search.disjuncts import merge_disjuncts
from corollary.advisor.search.folding import carry_dependencies, fold, partial_cluster_bodies
from corollary.advisor.search.rewriting import Rewriter
from corollary.advisor.search.shared_views import shared_views
from corollary.advisor.search.workload import QueryDemand, Workload
from corollary.advisor.search_limit import is_search_over
from corollary.data_class import dataclass

UNREACHABLE_EXPONENT = 1 << 30
"""Larger than any exponent, so that a decision is for whatever is best."""


@dataclass(frozen=True, slots=True)
class PredicateDraft:
    """A predicate after both stages: its clauses as they are, their exponents, and the decision.

    Attributes:
        is_complete: whether it was done before the work of the search was over.
        aggregations: its clauses, if summaries may compute its aggregates; `clauses` are their
            parts then.
    """

    query: WorkloadQuery
    is_query: bool
    clauses: tuple[SchemeClause, ...]
    rewriter: Rewriter
    decider: Decider
    before: Exponents
    decision: StorageDecision
    is_complete: bool = True
    aggregations: tuple[AggregatingClause, ...] = ()


@dataclass(frozen=True, slots=True)
class DraftBuilder:
    """Takes predicates through both stages.

    Attributes:
        limit: the effective arity of the scheme.
        estimator: knows real sizes, if they are known.
        chosen: the views that workloads have chosen, by form.
        measures: those of chosen summaries that queries use, by form.
    """

    scheme: Scheme
    options: Options
    shapes: NodeShapes
    forms: CanonicalForms
    limit: int
    estimator: Estimator | None
    chosen: dict[str, Candidate] = field(default_factory=dict)
    measures: dict[str, list[Measure]] = field(default_factory=dict)

    @property
    def weighs_workload(self) -> bool:
        """Whether the workload as a whole decides: sizes are known, and a budget is to be spent."""
        return self.options.selection == SelectionMode.BUDGET and self.estimator is not None

    def draft(self, query: WorkloadQuery, *, is_query: bool) -> PredicateDraft:
        """Take a predicate through both stages."""
        clauses = self.scheme.clauses.get(query.relation, ())
        aggregations: tuple[AggregatingClause, ...] = ()
        if self.weighs_workload and query.relation in self.scheme.aggregations:
            aggregations = self.scheme.aggregations[query.relation]
            clauses = tuple(part for each in aggregations for part in each.parts)
        is_complete = not is_search_over()
        rewriter = Rewriter(self.shapes, self.forms, query.bound)
        unfolded = tuple(map(FoldedClause.unfolded, clauses))
        exponent = rewriter.cost(unfolded, frozenset())
        decider = Decider(rewriter, self.limit, self.options, self.estimator)
        decision = StorageDecision(unfolded, exponent, {})
        if is_complete and not aggregations:
            decision = self._decide(decider, clauses, exponent)
        before = replace(rewriter.exponents(unfolded, frozenset()), left_deep=exponent)
        is_complete = not is_search_over()
        return PredicateDraft(
            query, is_query, clauses, rewriter, decider, before, decision, is_complete, aggregations
        )

    def _decide(
        self, decider: Decider, clauses: Sequence[SchemeClause], before: int
    ) -> StorageDecision:
        """Decide with and without the disjunct phase; the better decision counts."""

        def decide(start: Sequence[FoldedClause]) -> StorageDecision:
            return decider.decide([self._fold(each, decider) for each in start], before)

        # First without the phase, which is quick: there is a decision if the time ends in it.
        decisions = [decide([FoldedClause.unfolded(each) for each in clauses])]
        if self.options.merges_disjuncts and len(clauses) > 1 and not is_search_over():
            merged = merge_disjuncts(clauses)
            if len(merged) < len(clauses):
                decisions.insert(0, decide(merged))
        return min(
            decisions, key=lambda each: (each.after, decider.storage_vector(each.stored.values()))
        )

    def _fold(self, start: FoldedClause, decider: Decider) -> FoldedClause:
        """Return a clause after stage 1."""
        clause = start.clause
        if clause.has_aggregate or is_search_over():
            return start
        significant = clause.significant
        folded = tuple(fold(start.nodes, significant))
        if not self.options.partial_clusters:
            return FoldedClause(clause, folded, start.nodes)
        bodies = [folded, *partial_cluster_bodies(start.nodes, significant, decider.is_legal)]
        ways = [
            FoldedClause(
                clause,
                tuple(carry_dependencies(node, clause.literals, decider.is_legal) for node in body),
                start.nodes,
            )
            for body in bodies
        ]

        def rank(way: FoldedClause) -> tuple[object, ...]:
            found = decider.decide([way], UNREACHABLE_EXPONENT, is_trial=True)
            return found.after, decider.storage_vector(found.stored.values())

        best, least = ways[0], rank(ways[0]) if len(ways) > 1 else ()
        for way in ways[1:]:
            if is_search_over():
                break
            found = rank(way)
            if found < least:
                best, least = way, found
        return best

    def select_workload(self, drafts: list[PredicateDraft]) -> list[PredicateDraft]:
        """Decide by the workload as a whole, if there is a budget."""
        if not self.weighs_workload:
            return drafts
        assert self.estimator is not None
        every = [
            clause
            for draft in drafts
            for clause in draft.clauses
            if not draft.aggregations or clause.measure is not None
        ]
        decider = drafts[0].decider
        pool = shared_views(every, self.forms, decider.is_legal) if every else {}
        for draft in drafts:
            for root in (root for each in draft.decision.clauses for root in each.roots()):
                legal = (node for node in root.nodes() if draft.decider.is_legal(node))
                pool.update((self.forms.key(node), node) for node in legal)
        demands = [
            QueryDemand(
                each.decision.clauses,
                each.rewriter,
                each.query.frequency,
                frozenset(each.decision.stored),
                each.clauses,
            )
            for each in drafts
        ]
        workload = Workload(demands, pool, self.estimator, self._remaining_budget())
        chosen = workload.choose()
        found = [
            replace(each, decision=self._restrict(each, workload.clauses(at, chosen), chosen, pool))
            for at, each in enumerate(drafts)
        ]
        for draft in found:
            self.chosen.update(draft.decision.stored)
            self._note_measures(draft.decision.clauses)
        return found

    def _remaining_budget(self) -> Options:
        """Return the options with what views that are chosen already leave of the budget."""
        if self.options.budget_bytes is None:
            return self.options
        assert self.estimator is not None
        spent = sum(map(self.estimator.candidate_bytes, self.chosen.values()))
        return replace(self.options, budget_bytes=max(0.0, self.options.budget_bytes - spent))

    def _note_measures(self, clauses: Sequence[FoldedClause]) -> None:
        for root in (root for each in clauses for root in each.roots()):
            if root.general is not None and root.view.measures is not None:
                known = self.measures.setdefault(self.forms.key(root), [])
                measure = root.general.measure
                if measure is not None and measure not in known:
                    known.append(measure)

    def _restrict(
        self,
        draft: PredicateDraft,
        clauses: tuple[FoldedClause, ...],
        chosen: frozenset[str],
        pool: dict[str, Candidate],
    ) -> StorageDecision:
        """Return the decision to use those views that the workload chose."""
        used = {
            self.forms.key(node)
            for each in clauses
            for body in draft.rewriter.bodies(each, chosen)
            for node in body
            if isinstance(node, Candidate)
        }
        after = draft.rewriter.cost(clauses, frozenset(used))
        stored = {key: pool[key] for key in sorted(used)}
        return replace(draft.decision, clauses=clauses, after=after, stored=stored, small_gain=None)
