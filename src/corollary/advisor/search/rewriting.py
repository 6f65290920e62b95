"""Rewritings: the clauses of a predicate over the stored candidates; others are inlined."""

from collections.abc import Iterable, Sequence
from dataclasses import field
from itertools import product

from corollary.advisor.cost.estimates import Estimator
from corollary.advisor.cost.exponents import Exponents, Join, left_deep_exponent, plan_exponents
from corollary.advisor.model import candidates
from corollary.advisor.model.canonical import CanonicalForms
from corollary.advisor.model.shapes import NodeShapes
from corollary.advisor.search_limit import is_search_over
from corollary.core.logic import Variable
from corollary.data_class import dataclass


@dataclass(slots=True)
class Rewriter:
    """Rewrites the clauses of one predicate, and computes their costs.

    Attributes:
        bound: the columns of the head that a query gives values for.
    """

    shapes: NodeShapes
    forms: CanonicalForms
    bound: frozenset[int] = frozenset()
    _costs: dict[tuple[candidates.FoldedClause, frozenset[str]], int] = field(default_factory=dict)
    _works: dict[tuple[candidates.FoldedClause, frozenset[str]], float] = field(
        default_factory=dict
    )
    _forms: dict[candidates.FoldedClause, frozenset[str]] = field(default_factory=dict)
    _builds: dict[candidates.Candidate, int] = field(default_factory=dict)

    def bodies(
        self, folded: candidates.FoldedClause, stored: frozenset[str]
    ) -> list[candidates.Body]:
        """Return the bodies that a clause has when some candidates, by form, are stored."""
        found = []
        for choice in product(*(self._inline(node, stored) for node in folded.nodes)):
            body = tuple(dict.fromkeys(node for part in choice for node in part))
            # A stored candidate implies the literals that it carries.
            implied = {
                literal
                for node in body
                if isinstance(node, candidates.Candidate)
                for literal in node.carried
            }
            found.append(tuple(node for node in body if node not in implied))
        return found

    def _inline(self, node: candidates.Node, stored: frozenset[str]) -> list[candidates.Body]:
        if not isinstance(node, candidates.Candidate) or self.forms.key(node) in stored:
            return [(node,)]
        found: list[candidates.Body] = []
        for body in node.bodies:
            parts = (self._inline(each, stored) for each in body)
            found += [tuple(each for part in choice for each in part) for choice in product(*parts)]
        return found

    def cost(self, clauses: Iterable[candidates.FoldedClause], stored: frozenset[str]) -> int:
        """Return the exponent of a predicate when some candidates are stored."""
        worst = 0
        for folded in clauses:
            key = folded, stored & self._forms_in(folded)
            found = self._costs.get(key)
            if found is None:
                found = self._costs[key] = max(
                    left_deep_exponent(self._clause_join(folded.clause, body))
                    for body in self.bodies(folded, stored)
                )
            worst = max(worst, found)
        return worst

    def _forms_in(self, folded: candidates.FoldedClause) -> frozenset[str]:
        """Return the forms of all candidates in a clause: storing others changes nothing."""
        found = self._forms.get(folded)
        if found is None:
            nodes = (node for root in folded.roots() for node in root.nodes())
            found = self._forms[folded] = frozenset(self.forms.key(node) for node in nodes)
        return found

    def exponents(
        self, clauses: Iterable[candidates.FoldedClause], stored: frozenset[str]
    ) -> Exponents:
        """Return the exponents of all kinds of plan."""
        found = [
            plan_exponents(self._clause_join(folded.clause, body))
            for folded in clauses
            for body in self.bodies(folded, stored)
        ]
        return Exponents(
            max((each.left_deep for each in found), default=0),
            max((each.bushy for each in found), default=0),
            max((each.pipelined for each in found), default=0),
            all(each.is_exact for each in found),
        )

    def work(
        self,
        clauses: Iterable[candidates.FoldedClause],
        stored: frozenset[str],
        estimator: Estimator,
    ) -> float:
        """Return the estimated rows handled when some candidates are stored."""
        total = 0.0
        for each in clauses:
            key = each, stored & self._forms_in(each)
            found = self._works.get(key)
            if found is None:
                bound = self._bound_variables(each.clause)
                found = self._works[key] = sum(
                    estimator.estimate_clause(each.clause, body, bound).work
                    for body in self.bodies(each, stored)
                )
            total += found
        return total

    def build_cost(self, node: candidates.Candidate) -> int:
        """Return the exponent of building a candidate from the input."""
        found = self._builds.get(node)
        if found is None:
            found = self._builds[node] = max(
                left_deep_exponent(self._join(each, candidates.variables_of(node)))
                for each in candidates.expand(node)
            )
        return found

    def upkeep_cost(self, node: candidates.Candidate) -> int:
        """Return the exponent of maintaining a candidate, for the worst literal that may change.

        Candidates are not recursive, so they are maintained by counting derivations. A changed
        tuple of the literal Li binds its variables: maint_exp(c, i) = cost(c | vars(Li) bound).
        That is at most the exponent of building it, which counts where the search is over.
        """
        if is_search_over():
            return self.build_cost(node)
        return max(
            (
                left_deep_exponent(
                    self._join(
                        leaves,
                        candidates.variables_of(node),
                        bound=candidates.variables_of(literal),
                    )
                )
                for leaves in candidates.expand(node)
                for literal in leaves
                if not isinstance(literal, candidates.MovableComparison)
            ),
            default=0,
        )

    def _clause_join(self, clause: candidates.SchemeClause, body: candidates.Body) -> Join:
        pinned = [each.literal for each in clause.pinned if each.literal is not None]
        filters = [each.variables for each in clause.pinned if each.literal is None]
        bound = self._bound_variables(clause)
        return self._join((*body, *pinned), clause.head_variables, filters, bound)

    def _join(
        self,
        nodes: Sequence[candidates.Node],
        head: frozenset[str],
        filters: Iterable[frozenset[str]] = (),
        bound: frozenset[str] = frozenset(),
    ) -> Join:
        shapes = [
            self.shapes.shape_of(n)
            for n in nodes
            if not isinstance(n, candidates.MovableComparison)
        ]
        moved = [node.variables for node in nodes if isinstance(node, candidates.MovableComparison)]
        return Join(tuple(shapes), head, (*filters, *moved), bound)

    def _bound_variables(self, clause: candidates.SchemeClause) -> frozenset[str]:
        return frozenset(
            argument.name
            for at, argument in enumerate(clause.head.arguments)
            if at in self.bound and isinstance(argument, Variable)
        )
