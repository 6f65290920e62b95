"""Estimates in rows beside the exponents N^k, from the sizes of the relations.

The loop is that of the exponents, with cardinalities instead of degrees. The cost of a plan is its
*work*: the rows of all states and joins on the way.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from corollary.advisor.cost.cardinality import Cardinality, JoinEstimate, JoinOrderSearch
from corollary.advisor.cost.relation_sizes import RelationSizes
from corollary.advisor.model import candidates
from corollary.advisor.model.scheme import Scheme
from corollary.advisor.model.shapes import NodeShapes
from corollary.core import logic
from corollary.core.statistics import UNMEASURED_ROWS, remaining_values, unmeasured_values

FILTER_SELECTIVITY = 0.5
"""The fraction of rows that is assumed to pass a comparison or a negated literal."""

MEASURE_BYTES = 8.0


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
        filters = [each.item for each in clause.pinned if each.literal is None]
        filters += _moved_comparisons(body)
        return self._estimate_join((*nodes, *pinned), clause.head_variables, filters, bound)

    def estimate_candidate(self, node: candidates.Candidate) -> JoinEstimate:
        """Estimate the rows of a candidate, and the work of building it."""
        found = self._candidates.get(node)
        if found is None:
            parts = []
            for leaves in candidates.expand(node):
                literals = [leaf for leaf in leaves if isinstance(leaf, logic.Literal)]
                head = candidates.variables_of(node)
                parts.append(self._estimate_join(literals, head, _moved_comparisons(leaves)))
            rows = sum(each.result.rows for each in parts)
            distinct = {
                name: max(
                    1.0, min(rows, sum(each.result.distinct.get(name, 1.0) for each in parts))
                )
                for name in node.variables
            }
            work = sum(each.work for each in parts)
            domain = {
                name: max(each.result.domain_of(name) for each in parts) for name in node.variables
            }
            count = _count_all(frozenset(node.variables), rows)
            result = Cardinality(rows, distinct, {}, domain, count)
            found = self._candidates[node] = JoinEstimate(result, work)
        return found

    def candidate_bytes(self, node: candidates.Candidate) -> float:
        """Return the estimated bytes of a stored candidate."""
        return self.estimate_candidate(node).result.rows * self._row_bytes(node)

    def _row_bytes(self, node: candidates.Candidate) -> float:
        """Return the bytes of a row: each column is an average one of a relation that binds it."""
        found: dict[str, float] = {}
        for leaf in candidates.expand(node)[0]:
            if isinstance(leaf, logic.Literal) and leaf.slots:
                each = self.sizes.row_bytes.get(leaf.relation, 8.0 * len(leaf.slots)) / len(
                    leaf.slots
                )
                for slot in leaf.slots:
                    if isinstance(slot, logic.Variable) and slot.name in node.variables:
                        found.setdefault(slot.name, each)
        return sum(found.values()) + MEASURE_BYTES * len(node.measures or ()) or 1.0

    def change_work(self, node: candidates.Candidate) -> dict[str, float]:
        """Return the work of maintaining a candidate, for one changed tuple of each relation."""
        found: dict[str, float] = {}
        for leaves in candidates.expand(node):
            literals = [leaf for leaf in leaves if isinstance(leaf, logic.Literal)]
            filters = _moved_comparisons(leaves)
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
            unknown = {f"{at}": unmeasured_values(guess) for at in range(arity)}
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
        assert isinstance(node, logic.Literal)
        base = self._relation(node.relation)
        fraction, distinct, frequencies = 1.0, dict[str, float](), dict[str, float]()
        for at, slot in enumerate(node.slots):
            values = base.distinct.get(f"{at}", unmeasured_values(base.rows))
            if isinstance(slot, logic.Constant):
                fraction *= self.sizes.constant_fraction(node.relation, at, slot.value, values)
            elif isinstance(slot, logic.Variable) and slot.name in distinct:
                fraction /= max(values, distinct[slot.name])
                distinct[slot.name] = min(values, distinct[slot.name])
            elif isinstance(slot, logic.Variable):
                distinct[slot.name] = values
                if f"{at}" in base.max_frequency:
                    frequencies[slot.name] = base.max_frequency[f"{at}"]
        count = self._counter(node, base.rows, fraction)
        return _restrict(Cardinality(base.rows, distinct, frequencies, {}, count), fraction)

    def _counter(
        self, literal: logic.Literal, rows: float, fraction: float
    ) -> Callable[[frozenset[str]], float | None] | None:
        """Return what counts the combinations of values of variables of a literal."""
        measure = self.sizes.count
        if measure is None or literal.relation not in self.sizes.rows:
            return None
        columns = {
            slot.name: at
            for at, slot in enumerate(literal.slots)
            if isinstance(slot, logic.Variable)
        }

        def count(names: frozenset[str]) -> float | None:
            found = measure(literal.relation, frozenset(columns[name] for name in names))
            return None if found is None else remaining_values(found, rows, fraction)

        return count

    # --- a body --------------------------------------------------------------------------------

    def _estimate_join(
        self,
        nodes: Sequence[candidates.Node],
        head: frozenset[str],
        filters: Sequence[logic.BodyItem] = (),
        bound: frozenset[str] = frozenset(),
    ) -> JoinEstimate:
        """Estimate a join, in the best order, and its projection on the head."""
        inputs = [self._node(node) for node in nodes]
        shapes = [self._shapes.shape_of(node) for node in nodes]
        fraction = 1.0
        for item in filters:
            pushed = self._push(item, nodes, inputs)
            fraction *= 1.0 if pushed else self._fraction(item, inputs)
        found = JoinOrderSearch(inputs, shapes, head, bound).best()
        return JoinEstimate(_restrict(found.result, fraction), found.work)

    def _push(
        self, item: logic.BodyItem, nodes: Sequence[candidates.Node], inputs: list[Cardinality]
    ) -> bool:
        """Restrict the inputs with the variable that an item compares with a constant."""
        match item:
            case logic.Comparison(operator, logic.Variable(name=name), logic.Constant(value=value)):
                pass
            case logic.Comparison(operator, logic.Constant(value=value), logic.Variable(name=name)):
                operator = logic.MIRRORED_OPERATORS.get(operator, operator)
            case _:
                return False
        is_done = False
        for at, node in enumerate(nodes):
            if name not in inputs[at].distinct:
                continue
            fraction = self._compared_fraction(operator, node, name, value, inputs[at])
            if fraction is None:
                return False
            inputs[at] = _restrict(inputs[at], fraction, name)
            is_done = True
        return is_done

    def _compared_fraction(
        self, operator: str, node: candidates.Node, name: str, value: logic.Value, of: Cardinality
    ) -> float | None:
        """Return the fraction of the rows of a node in which a variable compares with a value."""
        literal, at = _column_of(node, name)
        distinct = of.distinct[name]
        if operator in ("=", "!="):
            equal = 1.0 / max(1.0, distinct)
            if literal is not None:
                equal = self.sizes.constant_fraction(literal.relation, at, value, distinct)
            return equal if operator == "=" else 1.0 - equal
        if operator not in logic.MIRRORED_OPERATORS:
            return None
        if literal is None:
            return FILTER_SELECTIVITY
        is_inclusive = operator in ("<=", ">")
        summary = self.sizes.summary(literal.relation, at)
        below = summary.fraction_below(value, is_inclusive=is_inclusive)
        if below is None:
            return FILTER_SELECTIVITY
        return below if operator in ("<", "<=") else 1.0 - below

    def _fraction(self, item: logic.BodyItem, inputs: Sequence[Cardinality]) -> float:
        """Return the fraction of rows that is assumed to pass a filter on the whole body."""
        if not isinstance(item, logic.Comparison) or item.operator not in ("=", "!="):
            return FILTER_SELECTIVITY
        values = [_values_of(each, inputs) for each in (item.left, item.right)]
        known = [each for each in values if each is not None]
        if item.operator == "!=":
            return 1.0 - 1.0 / max(2.0, *known) if known else FILTER_SELECTIVITY
        if len(known) < 2:  # an equation that computes a variable restricts nothing
            return 1.0
        return 1.0 / max(1.0, *known)


def _moved_comparisons(leaves: Iterable[candidates.Node]) -> list[logic.BodyItem]:
    """Return the comparisons among some leaves."""
    return [each.item for each in leaves if isinstance(each, candidates.MovableComparison)]


def _count_all(names: frozenset[str], rows: float) -> Callable[[frozenset[str]], float | None]:
    """Return what counts the combinations of all variables of a view: its rows."""

    def count(asked: frozenset[str]) -> float | None:
        return rows if asked == names else None

    return count


def _restrict(of: Cardinality, fraction: float, name: str | None = None) -> Cardinality:
    """Return a fraction of the rows; a condition on a variable keeps that part of its values."""
    if fraction >= 1.0:
        return of
    rows = of.rows * fraction
    distinct = {
        each: max(1.0, values * fraction)
        if each == name
        else remaining_values(values, of.rows, fraction)
        for each, values in of.distinct.items()
    }
    domain = {each: of.domain_of(each) for each in of.distinct}
    return replace(of, rows=rows, distinct=distinct, domain=domain)


def _column_of(node: candidates.Node, name: str) -> tuple[logic.Literal | None, int]:
    """Return the literal in a node that binds a variable, and the column."""
    for leaf in candidates.expand(node)[0]:
        if isinstance(leaf, logic.Literal):
            for at, slot in enumerate(leaf.slots):
                if isinstance(slot, logic.Variable) and slot.name == name:
                    return leaf, at
    return None, 0


def _values_of(term: logic.Term, inputs: Sequence[Cardinality]) -> float | None:
    """Return the number of values of a term; None for a variable that nothing has bound."""
    match term:
        case logic.Variable(name=name):
            found = [each.distinct[name] for each in inputs if name in each.distinct]
            return min(found) if found else None
        case logic.Constant():
            return 1.0
        case _:
            return 2.0


def _column(clause: candidates.SchemeClause, at: int, part: JoinEstimate) -> float:
    """Return the number of values of a column of the head."""
    argument = clause.head.arguments[at]
    if isinstance(argument, logic.Variable):
        return part.result.distinct.get(argument.name, part.result.rows)
    return 1.0 if isinstance(argument, logic.Constant) else part.result.rows
