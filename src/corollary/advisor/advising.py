"""Both stages for all queries, then for the derived predicates that queries still read: the advice.

queries → fold, decide → rewrite → what the rewritten rules read and nobody keeps → the same again
"""

from dataclasses import dataclass, replace
from functools import partial

from corollary.advisor.advice import Advice, Arity, Figures, NewView, PredicateAdvice, Rejected
from corollary.advisor.candidates import Body, Candidate
from corollary.advisor.clauses import ClauseForm
from corollary.advisor.clusters import alternatives, carry
from corollary.advisor.costs import Exponents
from corollary.advisor.deciding import Decider, Decision
from corollary.advisor.disjuncts import Merged, merge
from corollary.advisor.estimating import Estimator, Sizes
from corollary.advisor.folding import fold
from corollary.advisor.naming import Named, Naming
from corollary.advisor.printing import (
    body_clause,
    in_text_order,
    original_clause,
    view_clauses,
)
from corollary.advisor.reasons import reason_for
from corollary.advisor.rewriting import Forms, Rewriter, Worked
from corollary.advisor.scheme import Options, Query, RelationForm, Scheme
from corollary.advisor.shapes import Shapes, effective_arity
from corollary.advisor.upkeep import upkeep_exponent
from corollary.advisor.workload import Demand, Workload, upkeep_per_hour
from corollary.core.rules import Atom

REJECTED = "candidate"
"""What a candidate that gets no name of its own is called."""


def advise(scheme: Scheme, options: Options | None = None, sizes: Sizes | None = None) -> Advice:
    """Return what to store for the queries of a scheme, and how they read then.

    Args:
        scheme: relations, clauses and queries.
        options: how to decide; as the paper does, if they are not given.
        sizes: what the relations hold, if that is known.
    """
    return _Advisor(scheme, options or Options(), sizes).advise()


@dataclass(frozen=True, slots=True)
class _Draft:
    """A predicate after both stages, before it is written down."""

    query: Query
    is_query: bool
    clauses: tuple[ClauseForm, ...]
    rewriter: Rewriter
    decider: Decider
    before: Exponents
    decision: Decision


class _Advisor:
    def __init__(self, scheme: Scheme, options: Options, sizes: Sizes | None) -> None:
        self._scheme = scheme
        self._options = options
        self._shapes = Shapes(scheme)
        self._forms = Forms()
        self._naming = Naming(scheme, self._forms)
        self._arity = self._effective_arity()
        self._estimator = None if sizes is None else Estimator(scheme, self._shapes, sizes)
        self._predicates: dict[str, PredicateAdvice] = {}

    def advise(self) -> Advice:
        """Go through the queries, then through what they read."""
        drafts = [self._draft(each, is_query=True) for each in self._scheme.queries]
        while drafts:
            for draft in self._selected(drafts):
                self._predicates[draft.query.relation] = self._written(draft)
            drafts = [self._draft(each, is_query=False) for each in self._still_read()]
        return Advice(
            self._scheme,
            self._options,
            self._arity,
            self._predicates,
            self._views(),
        )

    def _effective_arity(self) -> Arity:
        """Return the largest effective arity of a stored relation, and whose it is."""
        names = set(self._scheme.relations)
        if self._options.scope == "used":
            names &= self._scheme.below({each.relation for each in self._scheme.queries})
        found = [
            (effective_arity(each, self._shapes), name)
            for name, each in self._scheme.relations.items()
            if each.is_stored and name in names
        ]
        value = max((arity for arity, _ in found), default=0)
        return Arity(value, next((name for arity, name in found if arity == value), ""))

    def _still_read(self) -> list[Query]:
        """Return derived predicates that rewritten rules read and nobody keeps."""
        found: dict[str, None] = {}
        for each in self._predicates.values():
            for clause in each.rewritten:
                for item in clause.body:
                    if isinstance(item, Atom):
                        found[item.relation] = None
        return [
            Query(name, frequency=0.0)
            for name in found
            if name in self._scheme.clauses
            and name not in self._predicates
            and not _is_kept(self._scheme.relations[name])
        ]

    # --- stage 1 and 2 -------------------------------------------------------------------------

    def _draft(self, query: Query, *, is_query: bool) -> _Draft:
        clauses = self._scheme.clauses.get(query.relation, ())
        rewriter = Rewriter(self._shapes, self._forms, query.bound)
        plain = [Worked(each, (*each.literals, *each.tests)) for each in clauses]
        before = rewriter.exponents(plain, frozenset())
        decider = Decider(rewriter, self._arity.value, self._options, self._estimator)
        decision = self._decide(decider, clauses, before.left_deep)
        return _Draft(query, is_query, clauses, rewriter, decider, before, decision)

    def _decide(self, decider: Decider, clauses: tuple[ClauseForm, ...], before: int) -> Decision:
        """Decide with and without the disjunct phase; the better one counts."""
        ways = [[Merged(each, (*each.literals, *each.tests)) for each in clauses]]
        if self._options.has_disjuncts and len(clauses) > 1:
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
        if not self._options.partial_clusters:
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

    def _selected(self, drafts: list[_Draft]) -> list[_Draft]:
        """Let the workload as a whole decide, if a budget is to be spent."""
        if self._options.selection != "budget" or self._estimator is None:
            return drafts
        pool: dict[str, Candidate] = {}
        for draft in drafts:
            for root in (root for each in draft.decision.worked for root in each.roots()):
                legal = (node for node in root.nodes() if draft.decider.is_legal(node))
                pool.update((self._forms.key(node), node) for node in legal)
        demands = [
            Demand(
                each.decision.worked,
                each.rewriter,
                each.query.frequency,
                frozenset(each.decision.stored),
            )
            for each in drafts
        ]
        chosen = Workload(demands, pool, self._estimator, self._options).choose()
        return [replace(each, decision=self._spent(each, chosen, pool)) for each in drafts]

    def _spent(self, draft: _Draft, chosen: frozenset[str], pool: dict[str, Candidate]) -> Decision:
        """Return what of the views that the workload chose a predicate uses."""
        worked = draft.decision.worked
        used = {
            self._forms.key(node)
            for each in worked
            for body in draft.rewriter.bodies(each, chosen)
            for node in body
            if isinstance(node, Candidate)
        }
        after = draft.rewriter.cost(worked, frozenset(used))
        return replace(draft.decision, after=after, stored={key: pool[key] for key in sorted(used)})

    # --- writing it down -----------------------------------------------------------------------

    def _written(self, draft: _Draft) -> PredicateAdvice:
        decision, rewriter = draft.decision, draft.rewriter
        keys = frozenset(decision.stored)
        originals = tuple(original_clause(each) for each in draft.clauses)
        found = PredicateAdvice(
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
            _rejected(decision),
            self._work(draft, keys),
        )
        if not keys:
            reason = reason_for(
                draft.clauses, decision, draft.before.left_deep, self._shapes, self._arity
            )
            return replace(found, reason=reason)
        after = rewriter.exponents(decision.worked, keys)
        used: dict[str, None] = {}

        def named(node: Candidate, worked: Worked) -> tuple[str, tuple[str, ...]]:
            name = self._naming.of(node, draft.query.relation, worked.clause.positions)
            used[name[0]] = None
            return name

        clauses = tuple(
            body_clause(worked.clause, body, partial(named, worked=worked))
            for worked in decision.worked
            for body in rewriter.bodies(worked, keys)
        )
        builds = [rewriter.build_cost(node) for node in decision.stored.values()]
        return replace(
            found,
            after=after,
            virtual_after=max([after.left_deep, *builds]),
            rewritten=clauses,
            views=tuple(used),
        )

    def _work(self, draft: _Draft, keys: frozenset[str]) -> tuple[float, float] | None:
        if self._estimator is None:
            return None
        plain = [Worked(each, (*each.literals, *each.tests)) for each in draft.clauses]
        before = draft.rewriter.work(plain, frozenset(), self._estimator)
        return before, draft.rewriter.work(draft.decision.worked, keys, self._estimator)

    def _views(self) -> dict[str, NewView]:
        """Return the views that the rewritten clauses use."""
        users: dict[str, list[PredicateAdvice]] = {}
        for each in self._predicates.values():
            for name in each.views:
                users.setdefault(name, []).append(each)
        return {
            named.name: self._view(named, users[named.name])
            for named in self._naming.made()
            if named.name in users
        }

    def _view(self, named: Named, users: list[PredicateAdvice]) -> NewView:
        node = named.node
        return NewView(
            named.name,
            named.order,
            view_clauses(named.name, named.order, node, named.positions),
            self._shapes.degree_of(node),
            users[0].rewriter.build_cost(node),
            upkeep_exponent(node, self._shapes),
            is_itself=any(_is_itself(node, each, self._forms) for each in users),
            is_virtual=all(_is_rewriting_enough(each) for each in users),
            figures=self._figures(node),
            node=node,
        )

    def _figures(self, node: Candidate) -> Figures | None:
        if self._estimator is None:
            return None
        estimate = self._estimator.candidate(node)
        return Figures(
            estimate.flow.rows,
            self._estimator.bytes(node),
            estimate.work,
            self._estimator.change(node),
            upkeep_per_hour(node, self._estimator, self._options),
        )


def _rejected(decision: Decision) -> tuple[Rejected, ...]:
    """Return the candidates that were too large, as rules."""
    positions: dict[object, int] = {}
    for worked in decision.worked:
        positions.update(worked.clause.positions)
    found = []
    for each in decision.rejected.values():
        order = in_text_order(each.node, positions)
        clauses = view_clauses(REJECTED, order, each.node, positions)
        found.append(Rejected(clauses[0], each.degree, each.why))
    return tuple(found)


def _is_kept(relation: RelationForm) -> bool:
    return relation.is_stored or relation.is_kept


def _is_rewriting_enough(advice: PredicateAdvice) -> bool:
    """Whether computing the views along the way has the same exponent as storing them."""
    gains = advice.after.left_deep < advice.before.left_deep
    return gains and advice.virtual_after == advice.after.left_deep


def _is_itself(node: Candidate, advice: PredicateAdvice, forms: Forms) -> bool:
    key = forms.key(node)
    return any(
        worked.is_itself(root)
        for worked in advice.decision.worked
        for root in worked.roots()
        if forms.key(root) == key
    )
