"""Both stages for all queries, then for the derived predicates that queries still read: the advice.

queries → fold, decide → rewrite → virtual relations that the rewritten rules read → the same again
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from corollary.advisor.advice import (
    Advice,
    NewView,
    PredicateAdvice,
    RejectedCandidate,
    SchemeArity,
    ViewEstimate,
)
from corollary.advisor.cost.estimates import Estimator
from corollary.advisor.cost.relation_sizes import RelationSizes
from corollary.advisor.model.candidates import Candidate, FoldedClause, PinReason, SchemeClause
from corollary.advisor.model.canonical import CanonicalForms
from corollary.advisor.model.scheme import (
    ArityScope,
    Options,
    Scheme,
    SchemeRelation,
    SelectionMode,
    WorkloadQuery,
)
from corollary.advisor.model.shapes import NodeShapes, effective_arity, paper_arity
from corollary.advisor.search import view_rules
from corollary.advisor.search.decision import StorageDecision
from corollary.advisor.search.drafts import DraftBuilder, PredicateDraft
from corollary.advisor.search_limit import limited_search
from corollary.analysis.traverse import atom_uses
from corollary.core.logic import Clause, Slot
from corollary.engines.budget import WorkBudget

REJECTED_NAME = "candidate"
"""The name of a rejected candidate in the report."""


def advise(
    scheme: Scheme, options: Options | None = None, sizes: RelationSizes | None = None
) -> Advice:
    """Return what to store for the queries of a scheme, and the rewritten queries."""
    return _Advisor(scheme, options or Options(), sizes).advise()


class _Advisor:
    def __init__(self, scheme: Scheme, options: Options, sizes: RelationSizes | None) -> None:
        self._scheme = scheme
        self._options = options
        self._shapes = NodeShapes(scheme)
        self._forms = CanonicalForms()
        self._arity = self._effective_arity()
        self._estimator = None if sizes is None else Estimator(scheme, self._shapes, sizes)
        self._builder = DraftBuilder(
            scheme, options, self._shapes, self._forms, self._arity.value, self._estimator
        )
        self._names = view_rules.ViewNames(
            scheme, self._forms, options.naming, self._builder.measures
        )
        self._predicates: dict[str, PredicateAdvice] = {}

    def advise(self) -> Advice:
        with limited_search(self._options.max_steps) as budget:
            return self._search(budget)

    def _search(self, budget: WorkBudget) -> Advice:
        drafts = [self._builder.draft(each, is_query=True) for each in self._scheme.queries]
        drafts += [self._builder.draft(each, is_query=False) for each in self._aggregated_below()]
        while drafts:
            for draft in self._builder.select_workload(drafts):
                self._predicates[draft.query.relation] = self._predicate_advice(draft)
            drafts = [self._builder.draft(each, is_query=False) for each in self._still_read()]
        views = self._views()
        sampled = {} if self._estimator is None else self._estimator.sizes.sampled
        return Advice(
            self._scheme,
            self._options,
            self._arity,
            self._predicates,
            views,
            not budget.is_over,
            sampled,
            budget.used,
        )

    def _effective_arity(self) -> SchemeArity:
        """Return the largest effective arity of a stored relation, and which relation has it."""
        names = set(self._scheme.relations)
        if self._options.scope == ArityScope.USED:
            names &= self._scheme.reachable(each.relation for each in self._scheme.queries)
        stored = [
            each
            for name, each in self._scheme.relations.items()
            if each.is_stored and name in names
        ]
        arities = {each.name: effective_arity(each, self._shapes) for each in stored}
        set_by = max(arities, key=lambda name: arities[name], default="")
        paper = max(map(paper_arity, stored), default=0)
        return SchemeArity(arities.get(set_by, 0), set_by, paper)

    def _aggregated_below(self) -> Iterator[WorkloadQuery]:
        """Yield virtual relations below the queries whose aggregates summaries may compute."""
        if not self._builder.weighs_workload:
            return
        queries = {each.relation for each in self._scheme.queries}
        for name in self._scheme.aggregations:
            frequency = sum(
                each.frequency
                for each in self._scheme.queries
                if name in self._scheme.reachable([each.relation])
            )
            is_below = name not in queries and _is_virtual(self._scheme.relations[name])
            if is_below and frequency:
                yield WorkloadQuery(name, frequency=frequency)

    def _still_read(self) -> list[WorkloadQuery]:
        """Return virtual relations that rewritten rules read and that have no advice yet."""
        asked: dict[str, float] = {}
        for each in self._predicates.values():
            read = {use.atom.relation for clause in each.rewritten for use in atom_uses(clause)}
            for name in sorted(read):
                asked[name] = asked.get(name, 0.0) + each.query.frequency
        return [
            WorkloadQuery(name, frequency=frequency)
            for name, frequency in asked.items()
            if name in self._scheme.clauses
            and name not in self._predicates
            and _is_virtual(self._scheme.relations[name])
        ]

    # --- predicates ----------------------------------------------------------------------------

    def _predicate_advice(self, draft: PredicateDraft) -> PredicateAdvice:
        decision, rewriter = draft.decision, draft.rewriter
        stored = frozenset(decision.stored)
        written = self._scheme.clauses.get(draft.query.relation, ())
        originals = tuple(view_rules.original_clause(each) for each in written)
        unchanged = PredicateAdvice(
            draft.query,
            draft.is_query,
            None,
            draft.before,
            draft.before,
            draft.before.left_deep,
            originals,
            originals,
            (),
            decision,
            rewriter,
            _rejected_rules(decision),
            self._work(draft),
        )
        if not stored:
            return replace(unchanged, reason=_reason(draft, self._shapes, self._arity))
        after = rewriter.exponents(decision.clauses, stored)
        used: dict[str, None] = {}

        def naming(clause: SchemeClause) -> view_rules.NameOf:
            def name_of(node: Candidate) -> tuple[str, tuple[Slot, ...]]:
                name = self._names.name_of(node, draft.query.relation, clause.positions)
                used[name[0]] = None
                return name

            return name_of

        rewritten: list[Clause] = []
        if draft.aggregations:
            parts = {each.clause: rewriter.bodies(each, stored)[0] for each in decision.clauses}
            rewritten = [
                view_rules.aggregating_clause(each, parts, naming(each.outer))
                for each in draft.aggregations
            ]
        else:
            for folded in decision.clauses:
                name_of = naming(folded.clause)
                rewritten += [
                    view_rules.body_clause(folded.clause, body, name_of)
                    for body in rewriter.bodies(folded, stored)
                ]
        builds = [rewriter.build_cost(node) for node in decision.stored.values()]
        return replace(
            unchanged,
            after=after,
            virtual_after=max([after.left_deep, *builds]),
            rewritten=tuple(rewritten),
            views=tuple(used),
        )

    def _work(self, draft: PredicateDraft) -> tuple[float, float] | None:
        if self._estimator is None:
            return None
        decision, work = draft.decision, draft.rewriter.work
        before = work(map(FoldedClause.unfolded, draft.clauses), frozenset(), self._estimator)
        return before, work(decision.clauses, frozenset(decision.stored), self._estimator)

    # --- views ---------------------------------------------------------------------------------

    def _views(self) -> dict[str, NewView]:
        """Return the views that the rewritten clauses use."""
        users: dict[str, list[PredicateAdvice]] = {}
        for each in self._predicates.values():
            for name in each.views:
                users.setdefault(name, []).append(each)
        return {
            view.name: self._view(view, users[view.name])
            for view in self._names.new_views()
            if view.name in users
        }

    def _view(self, view: view_rules.NamedView, users: list[PredicateAdvice]) -> NewView:
        node, rewriter = view.node, users[0].rewriter
        clauses = view_rules.view_clauses(view.name, view.order, node, view.positions)
        columns, rows = view.order, None
        if node.measures is not None:
            measures = self._builder.measures.get(self._forms.key(node), [])
            node = replace(node, measures=tuple(measures))
            clauses = view_rules.summary_clauses(view, measures, self._scheme)
            columns += view_rules.measure_columns(node, measures)
            rows = view_rules.summary_rows(node, measures, self._scheme)
        return NewView(
            view.name,
            columns,
            clauses,
            self._shapes.clausal_arity(node),
            rewriter.build_cost(node),
            rewriter.upkeep_cost(node),
            is_self_materialisation=any(
                _is_self_materialisation(node, each, self._forms) for each in users
            ),
            is_virtual=all(self._is_rewriting_enough(each) for each in users),
            estimate=self._estimate(node),
            node=node,
            rows=rows,
        )

    def _is_rewriting_enough(self, advice: PredicateAdvice) -> bool:
        """Whether computing the views along the way is as good as storing them.

        Its exponent has to be the same and, where sizes are known, it has to gain on this data.
        What the paper selects, or a workload pays for, is stored.
        """
        if self._options.selection != SelectionMode.MINIMAL:
            return False
        gains = advice.after.left_deep < advice.before.left_deep
        if not gains or advice.virtual_after != advice.after.left_deep:
            return False
        if self._estimator is None or advice.work is None:
            return True
        build = (
            self._estimator.estimate_candidate(node).work
            for node in advice.decision.stored.values()
        )
        before, after = advice.work
        return before >= self._options.min_real_gain * (after + sum(build))

    def _estimate(self, node: Candidate) -> ViewEstimate | None:
        if self._estimator is None:
            return None
        estimate = self._estimator.estimate_candidate(node)
        size = self._estimator.candidate_bytes(node)
        changes, updates = self._estimator.change_work(node), self._options.updates
        return ViewEstimate(
            estimate.result.rows,
            size,
            size / max(1.0, self._estimator.sizes.stored_bytes),
            estimate.work,
            sum(rate for name, rate in updates.items() if name in changes),
            self._estimator.hourly_upkeep(node, updates),
        )


def _rejected_rules(decision: StorageDecision) -> tuple[RejectedCandidate, ...]:
    """Return the candidates that were too large, as rules."""
    positions: dict[object, int] = {}
    for folded in decision.clauses:
        positions.update(folded.clause.positions)
    found = []
    for each in decision.rejected.values():
        order = view_rules.in_text_order(each.node, positions)
        clauses = view_rules.view_clauses(REJECTED_NAME, order, each.node, positions)
        found.append(RejectedCandidate(clauses[0], each.degree, each.reason))
    return tuple(found)


def _is_virtual(relation: SchemeRelation) -> bool:
    """Whether the rules of a relation run at query time, and it may be stored."""
    return not (relation.is_stored or relation.is_materialised or relation.is_inline)


def _is_self_materialisation(
    node: Candidate, advice: PredicateAdvice, forms: CanonicalForms
) -> bool:
    key = forms.key(node)
    return node.measures is None and any(
        folded.is_self_materialisation(root)
        for folded in advice.decision.clauses
        for root in folded.roots()
        if forms.key(root) == key
    )


# --- why nothing is advised ----------------------------------------------------------------------


def _reason(draft: PredicateDraft, shapes: NodeShapes, arity: SchemeArity) -> str:
    """Return why nothing is advised for a predicate: the most specific reason."""
    clauses, before = draft.clauses, draft.before.left_deep
    if not clauses:
        return "it has no rules"
    if not draft.is_complete:
        return "the search ended at its limit before it was looked at"
    if draft.aggregations:
        return "aggregate: no view that it could be computed from pays"
    if any(each.has_aggregate for each in clauses):
        return "aggregate"
    gain = draft.decision.small_gain
    if gain is not None:
        return f"the exponent would fall, but on this data the gain is {gain:.1f} x only"
    pinned = _pinned_reason(clauses)
    if not any(folded.roots() for folded in draft.decision.clauses):
        return pinned or "no step applies"
    head = max(_head_degree(each, shapes) for each in clauses)
    if before <= head:
        return f"no exponent gain (head already N^{head})"
    if draft.decision.rejected:
        least = min(draft.decision.rejected.values(), key=lambda each: each.degree)
        if least.degree <= arity.value:
            return f"too large: {least.reason}"
        set_by = f"ea(D)={arity.value} set by relation {arity.set_by}"
        return f"criterion: degree {least.degree} > {set_by}"
    return pinned or f"no exponent gain (N^{before} with every candidate stored)"


def _head_degree(clause: SchemeClause, shapes: NodeShapes) -> int:
    pinned = (each.literal for each in clause.pinned if each.literal is not None)
    joined = [shapes.shape_of(each) for each in (*clause.literals, *pinned)]
    bound = frozenset().union(*(each.variables for each in joined))
    return shapes.degree(clause.head_variables & bound, joined)


def _pinned_reason(clauses: Sequence[SchemeClause]) -> str | None:
    """Return what keeps variables from being folded away, if something does."""
    if any(each.reason == PinReason.NULL_JOIN for clause in clauses for each in clause.pinned):
        return "null joins null"
    if any(each.reason == PinReason.RECURSIVE for clause in clauses for each in clause.pinned):
        return "recursive literal pinned"
    names: dict[str, None] = {}
    for clause in clauses:
        for each in clause.pinned:
            names.update(dict.fromkeys(sorted(each.variables - clause.head_variables)))
    return f"opaque literal pins variables {', '.join(names)}" if names else None
