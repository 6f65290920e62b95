"""Rewritings: the clauses of a predicate over those candidates that are stored, others put back."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product

from corollary.advisor.candidates import Body, Candidate, Node, expanded
from corollary.advisor.canonical import canonical_view
from corollary.advisor.clauses import ClauseForm, Test
from corollary.advisor.costs import Exponents, Join, exponents, left_deep
from corollary.advisor.estimating import Estimator
from corollary.advisor.shapes import Shapes
from corollary.core.terms import Variable


class Forms:
    """The forms of candidates: two of the same form are one view, whatever their names."""

    def __init__(self) -> None:
        self._known: dict[Candidate, tuple[str, tuple[str, ...]]] = {}

    def key(self, node: Candidate) -> str:
        """Return what all isomorphic candidates have in common."""
        return self._form(node)[0]

    def order(self, node: Candidate) -> tuple[str, ...]:
        """Return the variables in an order that fits that of all isomorphic candidates."""
        return self._form(node)[1]

    def _form(self, node: Candidate) -> tuple[str, tuple[str, ...]]:
        found = self._known.get(node)
        if found is None:
            found = self._known[node] = canonical_view(node.variables, expanded(node))
        return found


@dataclass(frozen=True, slots=True)
class Worked:
    """A clause after stage 1: its nodes mean what its literals meant."""

    clause: ClauseForm
    nodes: Body

    def roots(self) -> list[Candidate]:
        """Return the candidates in the body: each is the root of a tree."""
        return [node for node in self.nodes if isinstance(node, Candidate)]

    def is_itself(self, node: Candidate) -> bool:
        """Whether a candidate is the whole clause: to store it is to store the query."""
        is_all = len(self.nodes) == 1 and not self.clause.pinned
        return is_all and frozenset(node.variables) == self.clause.head_variables


@dataclass(slots=True)
class Rewriter:
    """Rewrites and costs the clauses of one predicate.

    Attributes:
        bound: the columns of the head that a query gives values for.
    """

    shapes: Shapes
    forms: Forms
    bound: frozenset[int] = frozenset()
    _costs: dict[tuple[int, frozenset[str]], int] = field(default_factory=dict)

    def bodies(self, worked: Worked, stored: frozenset[str]) -> list[Body]:
        """Return the bodies that a clause has when some candidates are stored."""
        found = []
        for choice in product(*(self._inlined(node, stored) for node in worked.nodes)):
            body = tuple(dict.fromkeys(node for part in choice for node in part))
            implied = {
                literal for node in body if isinstance(node, Candidate) for literal in node.carried
            }
            found.append(tuple(node for node in body if node not in implied))
        return found

    def _inlined(self, node: Node, stored: frozenset[str]) -> list[Body]:
        if not isinstance(node, Candidate) or self.forms.key(node) in stored:
            return [(node,)]
        found: list[Body] = []
        for body in node.bodies:
            parts = (self._inlined(each, stored) for each in body)
            found += [tuple(each for part in choice for each in part) for choice in product(*parts)]
        return found

    def join(self, clause: ClauseForm, body: Body) -> Join:
        """Return what has to be joined for a body of a clause."""
        joined = [each.literal for each in clause.pinned if each.literal is not None]
        shapes = [self.shapes.of(node) for node in (*body, *joined) if not isinstance(node, Test)]
        filters = [each.variables for each in clause.pinned if each.literal is None]
        filters += [node.variables for node in body if isinstance(node, Test)]
        return Join(tuple(shapes), clause.head_variables, tuple(filters), self._given(clause))

    def _given(self, clause: ClauseForm) -> frozenset[str]:
        """Return the variables that a query gives values for."""
        return frozenset(
            argument.name
            for at, argument in enumerate(clause.head.arguments)
            if at in self.bound and isinstance(argument, Variable)
        )

    def cost(self, every: Iterable[Worked], stored: frozenset[str]) -> int:
        """Return the exponent of a predicate when some candidates are stored."""
        worst = 0
        for worked in every:
            key = id(worked), stored
            found = self._costs.get(key)
            if found is None:
                found = self._costs[key] = max(
                    left_deep(self.join(worked.clause, body))
                    for body in self.bodies(worked, stored)
                )
            worst = max(worst, found)
        return worst

    def exponents(self, every: Iterable[Worked], stored: frozenset[str]) -> Exponents:
        """Return the exponents of all kinds of plan."""
        found = [
            exponents(self.join(worked.clause, body))
            for worked in every
            for body in self.bodies(worked, stored)
        ]
        return Exponents(
            max((each.left_deep for each in found), default=0),
            max((each.bushy for each in found), default=0),
            max((each.pipelined for each in found), default=0),
            all(each.is_exact for each in found),
        )

    def work(self, every: Iterable[Worked], stored: frozenset[str], estimator: Estimator) -> float:
        """Return about how many rows are handled when some candidates are stored."""
        return sum(
            estimator.clause(worked.clause, body, self._given(worked.clause)).work
            for worked in every
            for body in self.bodies(worked, stored)
        )

    def build_cost(self, node: Candidate) -> int:
        """Return the exponent of making a candidate from the input."""
        shown = frozenset(node.variables)
        worst = 0
        for leaves in expanded(node):
            shapes = (self.shapes.of(leaf) for leaf in leaves if not isinstance(leaf, Test))
            tests = tuple(leaf.variables for leaf in leaves if isinstance(leaf, Test))
            join = Join(tuple(shapes), shown, tests)
            worst = max(worst, left_deep(join))
        return worst
