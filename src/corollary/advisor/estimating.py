"""Real sizes beside N^k: how many rows a body goes through, from what the relations hold.

The loop is that of `costs`, with numbers instead of degrees (`flows`). The cost of a plan is its
*work*: the rows of all states and joins on the way, and of scans where there is no index.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from corollary.advisor.candidates import Candidate, Leaf, Node, expanded
from corollary.advisor.clauses import ClauseForm, Test
from corollary.advisor.flows import Confluence, Estimate, Flow
from corollary.advisor.scheme import Scheme
from corollary.advisor.shapes import Shapes
from corollary.core.rules import Literal
from corollary.core.statistics import GUESS
from corollary.core.terms import Constant, Variable

FILTER = 0.5
"""The share of rows that is thought to pass a comparison."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What relations hold.

    Attributes:
        rows: tuples.
        distinct: values of each column.
        most: the tuples that have the most frequent value of each column.
        width: bytes of a tuple.
        is_scanned: whether a relation is read in full to be joined, as Spark does.
    """

    rows: Mapping[str, int] = field(default_factory=dict)
    distinct: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    most: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    width: Mapping[str, float] = field(default_factory=dict)
    is_scanned: bool = False

    @property
    def stored_bytes(self) -> float:
        """All bytes that are stored."""
        return sum(rows * self.width.get(name, 8.0) for name, rows in self.rows.items())


class Estimator:
    """Estimates bodies over a scheme."""

    def __init__(self, scheme: Scheme, shapes: Shapes, sizes: Sizes) -> None:
        self._scheme = scheme
        self._shapes = shapes
        self.sizes = sizes
        self._relations: dict[str, Flow] = {}
        self._candidates: dict[Candidate, Estimate] = {}

    # --- what is asked -------------------------------------------------------------------------

    def clause(self, clause: ClauseForm, body: Sequence[Node], bound: frozenset[str]) -> Estimate:
        """Estimate a clause with a body, some of its variables being given."""
        pinned = [each.literal for each in clause.pinned if each.literal is not None]
        filters = sum(each.literal is None for each in clause.pinned)
        nodes = [node for node in (*body, *pinned) if not isinstance(node, Test)]
        filters += sum(isinstance(node, Test) for node in body)
        return self._joined(nodes, clause.head_variables, filters, bound)

    def candidate(self, node: Candidate) -> Estimate:
        """Estimate the rows of a candidate, and the work of making it."""
        found = self._candidates.get(node)
        if found is None:
            shown = frozenset(node.variables)
            parts = [self._leaves(leaves, shown) for leaves in expanded(node)]
            rows = sum(each.flow.rows for each in parts)
            distinct = {
                name: min(rows, sum(each.flow.distinct.get(name, 1.0) for each in parts))
                for name in shown
            }
            work = sum(each.work for each in parts)
            found = self._candidates[node] = Estimate(Flow(rows, distinct), work)
        return found

    def row_bytes(self, node: Candidate) -> float:
        """Return how many bytes a row of a candidate has: those of the columns it shows."""
        found: dict[str, float] = {}
        for leaf in expanded(node)[0]:
            if isinstance(leaf, Literal) and leaf.slots:
                each = self.sizes.width.get(leaf.relation, 8.0 * len(leaf.slots)) / len(leaf.slots)
                for slot in leaf.slots:
                    if isinstance(slot, Variable) and slot.name in node.variables:
                        found.setdefault(slot.name, each)
        return sum(found.values()) or 1.0

    def bytes(self, node: Candidate) -> float:
        """Return how many bytes a candidate would take."""
        return self.candidate(node).flow.rows * self.row_bytes(node)

    def change(self, node: Candidate) -> dict[str, float]:
        """Return the work of maintaining a candidate, for one changed tuple of each relation."""
        shown = frozenset(node.variables)
        found: dict[str, float] = {}
        for leaves in expanded(node):
            literals = [leaf for leaf in leaves if isinstance(leaf, Literal)]
            tests = len(leaves) - len(literals)
            for at, literal in enumerate(literals):
                given = self._shapes.of(literal).variables
                rest = [*literals[:at], *literals[at + 1 :]]
                work = 1.0 + self._joined(rest, shown, tests, given).work
                found[literal.relation] = found.get(literal.relation, 0.0) + work
        return found

    def _leaves(self, leaves: Iterable[Leaf], shown: frozenset[str]) -> Estimate:
        nodes = [leaf for leaf in leaves if isinstance(leaf, Literal)]
        return self._joined(nodes, shown, sum(isinstance(leaf, Test) for leaf in leaves))

    # --- one literal ---------------------------------------------------------------------------

    def relation(self, name: str) -> Flow:
        """Return what a relation holds; of one that is not kept, what its rules give."""
        found = self._relations.get(name)
        if found is None:
            form = self._scheme.relations.get(name)
            arity = 0 if form is None else form.arity
            rows = self.sizes.rows.get(name)
            guess = float(GUESS if rows is None else rows)
            unknown = {f"{at}": guess**0.5 for at in range(arity)}
            self._relations[name] = Flow(guess, unknown)  # while its own rules are looked at
            if rows is None and name in self._scheme.clauses:
                found = self._computed(name, arity)
            else:
                held = self.sizes.distinct.get(name, tuple(unknown.values()))
                most = self.sizes.most.get(name, ())
                found = Flow(
                    guess,
                    {f"{at}": float(max(1, each)) for at, each in enumerate(held)},
                    {f"{at}": float(each) for at, each in enumerate(most)},
                )
            self._relations[name] = found
        return found

    def _computed(self, name: str, arity: int) -> Flow:
        parts = [
            self.clause(clause, (*clause.literals, *clause.tests), frozenset())
            for clause in self._scheme.clauses[name]
        ]
        rows = sum(each.flow.rows for each in parts)
        pairs = list(zip(self._scheme.clauses[name], parts, strict=True))
        values = (max(_column(clause, at, part) for clause, part in pairs) for at in range(arity))
        distinct = {f"{at}": max(1.0, min(rows, each)) for at, each in enumerate(values)}
        return Flow(rows, distinct)

    def _node(self, node: Node) -> Flow:
        if isinstance(node, Candidate):
            return self.candidate(node).flow
        assert isinstance(node, Literal)
        base = self.relation(node.relation)
        rows, distinct, most = base.rows, dict[str, float](), dict[str, float]()
        for at, slot in enumerate(node.slots):
            values = base.distinct.get(f"{at}", max(1.0, rows**0.5))
            if isinstance(slot, Constant):
                rows /= values
            elif isinstance(slot, Variable) and slot.name in distinct:
                rows /= max(values, distinct[slot.name])
                distinct[slot.name] = min(values, distinct[slot.name])
            elif isinstance(slot, Variable):
                distinct[slot.name] = values
                if f"{at}" in base.most:
                    most[slot.name] = base.most[f"{at}"]
        return Flow(
            rows, {name: max(1.0, min(each, rows)) for name, each in distinct.items()}, most
        )

    # --- a body --------------------------------------------------------------------------------

    def _joined(
        self,
        nodes: Sequence[Node],
        wanted: frozenset[str],
        filters: int = 0,
        bound: frozenset[str] = frozenset(),
    ) -> Estimate:
        """Estimate a join, in the best order, and its projection on the variables wanted."""
        flows = [self._node(node) for node in nodes]
        shapes = [self._shapes.of(node) for node in nodes]
        found = Confluence(flows, shapes, wanted, bound, self.sizes.is_scanned).best()
        rows = found.flow.rows * FILTER**filters
        distinct = {name: min(each, max(1.0, rows)) for name, each in found.flow.distinct.items()}
        return Estimate(Flow(rows, distinct), found.work)


def _column(clause: ClauseForm, at: int, part: Estimate) -> float:
    argument = clause.head.arguments[at]
    if isinstance(argument, Variable):
        return part.flow.distinct.get(argument.name, part.flow.rows)
    return 1.0 if isinstance(argument, Constant) else part.flow.rows
