"""Estimates in rows beside the exponents N^k, from the sizes of the relations.

The loop is that of the exponents, with cardinalities instead of degrees. The cost of a plan is its
*work*: the rows of all states and joins on the way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from corollary.advisor.cost.cardinality import Cardinality, JoinEstimate, JoinOrderSearch
from corollary.advisor.model import candidates
from corollary.advisor.model.scheme import Scheme
from corollary.advisor.model.shapes import NodeShapes
from corollary.core.logic import Constant, Literal, Variable
from corollary.core.statistics import UNMEASURED_ROWS

FILTER_SELECTIVITY = 0.5
"""The fraction of rows that is assumed to pass a comparison or a negated literal."""


@dataclass(frozen=True, slots=True)
class RelationSizes:
    """The sizes of relations.

    Attributes:
        rows: the number of tuples.
        distinct: the number of values of each column.
        max_frequency: the frequency of the most frequent value of each column.
        row_bytes: bytes of a tuple.
    """

    rows: Mapping[str, int] = field(default_factory=dict)
    distinct: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    max_frequency: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    row_bytes: Mapping[str, float] = field(default_factory=dict)

    @property
    def stored_bytes(self) -> float:
        """The bytes of all stored relations."""
        return sum(rows * self.row_bytes.get(name, 8.0) for name, rows in self.rows.items())


class Estimator:
    """Estimates bodies over a scheme."""

    def __init__(self, scheme: Scheme, shapes: NodeShapes, sizes: RelationSizes) -> None:
        self._scheme = scheme
        self._shapes = shapes
        self.sizes = sizes
        self._relations: dict[str, Cardinality] = {}
        self._candidates: dict[candidates.Candidate, JoinEstimate] = {}

    def estimate_clause(
        self,
        clause: candidates.SchemeClause,
        body: Sequence[candidates.Node],
        bound: frozenset[str] = frozenset(),
    ) -> JoinEstimate:
        """Estimate a clause with another body, and some variables bound."""
        pinned = [each.literal for each in clause.pinned if each.literal is not None]
        nodes = [node for node in body if not isinstance(node, candidates.MovableComparison)]
        filters = len(clause.pinned) - len(pinned) + len(body) - len(nodes)
        return self._estimate_join((*nodes, *pinned), clause.head_variables, filters, bound)

    def estimate_candidate(self, node: candidates.Candidate) -> JoinEstimate:
        """Estimate the rows of a candidate, and the work of building it."""
        found = self._candidates.get(node)
        if found is None:
            parts = []
            for leaves in candidates.expand(node):
                literals = [leaf for leaf in leaves if isinstance(leaf, Literal)]
                filters = len(leaves) - len(literals)
                parts.append(self._estimate_join(literals, candidates.variables_of(node), filters))
            rows = sum(each.result.rows for each in parts)
            distinct = {
                name: min(rows, sum(each.result.distinct.get(name, 1.0) for each in parts))
                for name in node.variables
            }
            work = sum(each.work for each in parts)
            found = self._candidates[node] = JoinEstimate(Cardinality(rows, distinct), work)
        return found

    def candidate_bytes(self, node: candidates.Candidate) -> float:
        """Return the estimated bytes of a stored candidate."""
        return self.estimate_candidate(node).result.rows * self._row_bytes(node)

    def _row_bytes(self, node: candidates.Candidate) -> float:
        """Return the bytes of a row: each column is an average one of a relation that binds it."""
        found: dict[str, float] = {}
        for leaf in candidates.expand(node)[0]:
            if isinstance(leaf, Literal) and leaf.slots:
                each = self.sizes.row_bytes.get(leaf.relation, 8.0 * len(leaf.slots)) / len(
                    leaf.slots
                )
                for slot in leaf.slots:
                    if isinstance(slot, Variable) and slot.name in node.variables:
                        found.setdefault(slot.name, each)
        return sum(found.values()) or 1.0

    def change_work(self, node: candidates.Candidate) -> dict[str, float]:
        """Return the work of maintaining a candidate, for one changed tuple of each relation."""
        found: dict[str, float] = {}
        for leaves in candidates.expand(node):
            literals = [leaf for leaf in leaves if isinstance(leaf, Literal)]
            filters = len(leaves) - len(literals)
            for at, literal in enumerate(literals):
                # The changed tuple binds the variables of its literal; the rest is joined to it.
                rest, bound = (
                    [*literals[:at], *literals[at + 1 :]],
                    candidates.variables_of(literal),
                )
                work = (
                    1.0
                    + self._estimate_join(rest, candidates.variables_of(node), filters, bound).work
                )
                found[literal.relation] = found.get(literal.relation, 0.0) + work
        return found

    def hourly_upkeep(self, node: candidates.Candidate, rates: Mapping[str, float]) -> float:
        """Return the rows handled per hour to maintain a candidate.

        Args:
            node: the candidate.
            rates: changed tuples of base relations per hour.
        """
        work = self.change_work(node)
        return sum(rate * work.get(name, 0.0) for name, rate in rates.items())

    # --- one literal ---------------------------------------------------------------------------

    def _relation(self, name: str) -> Cardinality:
        """Return the cardinality of a relation, columns named by position.

        That of a virtual relation is estimated from its rules.
        """
        found = self._relations.get(name)
        if found is None:
            relation = self._scheme.relations.get(name)
            arity = 0 if relation is None else relation.arity
            rows = self.sizes.rows.get(name)
            guess = float(UNMEASURED_ROWS if rows is None else rows)
            unknown = {f"{at}": guess**0.5 for at in range(arity)}
            self._relations[name] = Cardinality(guess, unknown)  # what recursive rules read
            if rows is None and name in self._scheme.clauses:
                found = self._estimate_rules(name, arity)
            else:
                distinct = self.sizes.distinct.get(name, tuple(unknown.values()))
                frequencies = self.sizes.max_frequency.get(name, ())
                found = Cardinality(
                    guess,
                    {f"{at}": float(max(1, each)) for at, each in enumerate(distinct)},
                    {f"{at}": float(each) for at, each in enumerate(frequencies)},
                )
            self._relations[name] = found
        return found

    def _estimate_rules(self, name: str, arity: int) -> Cardinality:
        clauses = self._scheme.clauses[name]
        parts = [(each, self.estimate_clause(each, each.leaves)) for each in clauses]
        rows = sum(part.result.rows for _, part in parts)
        values = (max(_column(clause, at, part) for clause, part in parts) for at in range(arity))
        distinct = {f"{at}": max(1.0, min(rows, each)) for at, each in enumerate(values)}
        return Cardinality(rows, distinct)

    def _node(self, node: candidates.Node) -> Cardinality:
        if isinstance(node, candidates.Candidate):
            return self.estimate_candidate(node).result
        assert isinstance(node, Literal)
        base = self._relation(node.relation)
        rows, distinct, frequencies = base.rows, dict[str, float](), dict[str, float]()
        for at, slot in enumerate(node.slots):
            values = base.distinct.get(f"{at}", max(1.0, rows**0.5))
            if isinstance(slot, Constant):
                rows /= values
            elif isinstance(slot, Variable) and slot.name in distinct:
                rows /= max(values, distinct[slot.name])
                distinct[slot.name] = min(values, distinct[slot.name])
            elif isinstance(slot, Variable):
                distinct[slot.name] = values
                if f"{at}" in base.max_frequency:
                    frequencies[slot.name] = base.max_frequency[f"{at}"]
        distinct = {name: max(1.0, min(each, rows)) for name, each in distinct.items()}
        return Cardinality(rows, distinct, frequencies)

    # --- a body --------------------------------------------------------------------------------

    def _estimate_join(
        self,
        nodes: Sequence[candidates.Node],
        head: frozenset[str],
        filters: int = 0,
        bound: frozenset[str] = frozenset(),
    ) -> JoinEstimate:
        """Estimate a join, in the best order, and its projection on the head."""
        inputs = [self._node(node) for node in nodes]
        shapes = [self._shapes.shape_of(node) for node in nodes]
        found = JoinOrderSearch(inputs, shapes, head, bound).best()
        rows = found.result.rows * FILTER_SELECTIVITY**filters
        distinct = {name: min(each, max(1.0, rows)) for name, each in found.result.distinct.items()}
        return JoinEstimate(Cardinality(rows, distinct), found.work)


def _column(clause: candidates.SchemeClause, at: int, part: JoinEstimate) -> float:
    """Return the number of values of a column of the head."""
    argument = clause.head.arguments[at]
    if isinstance(argument, Variable):
        return part.result.distinct.get(argument.name, part.result.rows)
    return 1.0 if isinstance(argument, Constant) else part.result.rows
