"""Both stages for all queries, then for the derived predicates that queries still read: the advice.

queries → fold, decide → rewrite → what the rewritten rules read and nobody keeps → the same again
"""

from dataclasses import replace
from functools import partial

from corollary.advisor.advice import Advice, Arity, Figures, NewView, PredicateAdvice, Rejected
from corollary.advisor.candidates import Candidate
from corollary.advisor.deciding import Decision
from corollary.advisor.drafting import Draft, Drafter
from corollary.advisor.estimating import Estimator, Sizes
from corollary.advisor.naming import Named, Naming
from corollary.advisor.printing import (
    body_clause,
    in_text_order,
    original_clause,
    view_clauses,
)
from corollary.advisor.reasons import reason_for
from corollary.advisor.rewriting import Forms, Worked
from corollary.advisor.scheme import Options, Query, RelationForm, Scheme
from corollary.advisor.shapes import Shapes, effective_arity, paper_arity
from corollary.advisor.upkeep import upkeep_exponent
from corollary.advisor.workload import upkeep_per_hour
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


class _Advisor:
    def __init__(self, scheme: Scheme, options: Options, sizes: Sizes | None) -> None:
        self._scheme = scheme
        self._options = options
        self._shapes = Shapes(scheme)
        self._forms = Forms()
        self._naming = Naming(scheme, self._forms)
        self._arity = self._effective_arity()
        self._estimator = None if sizes is None else Estimator(scheme, self._shapes, sizes)
        self._drafter = Drafter(
            scheme, options, self._shapes, self._forms, self._arity.value, self._estimator
        )
        self._predicates: dict[str, PredicateAdvice] = {}

    def advise(self) -> Advice:
        """Go through the queries, then through what they read."""
        drafts = [self._drafter.draft(each, is_query=True) for each in self._scheme.queries]
        while drafts:
            for draft in self._drafter.selected(drafts):
                self._predicates[draft.query.relation] = self._written(draft)
            drafts = [self._drafter.draft(each, is_query=False) for each in self._still_read()]
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
        set_by = next((name for arity, name in found if arity == value), "")
        forms = (self._scheme.relations[name] for _, name in found)
        return Arity(value, set_by, max((paper_arity(each) for each in forms), default=0))

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
            and not _is_left(self._scheme.relations[name])
        ]

    # --- writing it down -----------------------------------------------------------------------

    def _written(self, draft: Draft) -> PredicateAdvice:
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

    def _work(self, draft: Draft, keys: frozenset[str]) -> tuple[float, float] | None:
        if self._estimator is None:
            return None
        before = draft.rewriter.work(draft.plain, frozenset(), self._estimator)
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
        estimate, size = self._estimator.candidate(node), self._estimator.bytes(node)
        changes, updates = self._estimator.change(node), self._options.updates
        return Figures(
            estimate.flow.rows,
            size,
            size / max(1.0, self._estimator.sizes.stored_bytes),
            estimate.work,
            sum(rate for name, rate in updates.items() if name in changes),
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


def _is_left(relation: RelationForm) -> bool:
    """Whether a relation needs no advice of its own: it is kept, or is not to be."""
    return relation.is_stored or relation.is_kept or relation.is_inline


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
