"""From a proof to what is shown: each tuple once, as users know it, with notes beside it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace

from corollary.core.graph import reachable
from corollary.core.logic import Aggregation, Constant, Literal
from corollary.core.program import NormalProgram
from corollary.data_class import dataclass
from corollary.provenance.groups import GroupRows, value_column
from corollary.provenance.instances import Fact, InstanceFinder
from corollary.provenance.nodes import (
    AggregateValue,
    CutReason,
    ProofCut,
    ProofKind,
    ProofNode,
    ProofRule,
    Row,
)
from corollary.provenance.proof_graph import INFINITE, KnownInstance, ProofGraph
from corollary.provenance.wording import Bindings, Wording, condition_node, partial_row

NodeKey = tuple[object, ...]
"""What a node is about: nodes of equal keys are one."""


@dataclass(frozen=True, slots=True)
class NodeSketch:
    """A node whose premises and notes have no ids yet."""

    node: ProofNode
    premises: tuple[NodeKey, ...] = ()
    notes: tuple[NodeKey, ...] = ()


def number_nodes(
    root: NodeKey, sketch_of: Callable[[NodeKey], NodeSketch], max_nodes: int | None = None
) -> tuple[tuple[ProofNode, ...], list[ProofCut], dict[NodeKey, int]]:
    """Return the nodes below a root, breadth-first, what was left out, and all ids.

    Args:
        root: the first node.
        sketch_of: gives a node, and what is below it.
        max_nodes: the maximum number of nodes; None if there is none.
    """
    ids, order = {root: 0}, [root]
    for key in order:  # which grows on the way
        sketch = sketch_of(key)
        for below in (*sketch.premises, *sketch.notes):
            if below not in ids and (max_nodes is None or len(order) < max_nodes):
                ids[below] = len(order)
                order.append(below)
    nodes, cuts = [], []
    for key in order:
        sketch = sketch_of(key)
        premises = tuple(ids[each] for each in sketch.premises if each in ids)
        notes = tuple(ids[each] for each in sketch.notes if each in ids)
        shown, total = len(premises) + len(notes), len(sketch.premises) + len(sketch.notes)
        if shown < total:
            cuts.append(ProofCut(CutReason.NODES, ids[key], shown, total))
        nodes.append(replace(sketch.node, id=ids[key], premises=premises, notes=notes))
    return tuple(nodes), cuts, ids


@dataclass(slots=True)
class ProofDrawing:
    """Draws a proof.

    Attributes:
        wording: of the program.
        graph: the tuples and their heights.
        finder: found the instances.
        chosen: for each tuple the instance that derives it, None for base tuples; tuples that are
            not in it have no proof.
        groups: the rows of aggregates.
    """

    wording: Wording
    graph: ProofGraph
    finder: InstanceFinder
    chosen: dict[int, KnownInstance | None]
    groups: Mapping[Fact, GroupRows]
    _sketches: dict[NodeKey, NodeSketch] = field(default_factory=dict)

    def draw(
        self, root: NodeKey, max_nodes: int
    ) -> tuple[tuple[ProofNode, ...], dict[int, ProofRule], list[ProofCut], dict[NodeKey, int]]:
        """Return the nodes, breadth-first, their rules, what was left out, and all ids."""
        nodes, cuts, ids = number_nodes(root, self._sketch, max_nodes)
        numbers = {each.rule for each in nodes if each.rule is not None}
        rules = {number: self.wording.rule(number) for number in sorted(numbers)}
        return nodes, rules, cuts, ids

    # --- tuples --------------------------------------------------------------------------------

    def tuple_key(self, number: int) -> NodeKey:
        """Return the key of a tuple; what only passes a tuple on is the node of that tuple."""
        known = self.chosen.get(number)
        while known is not None and known.step.is_passing:
            if not known.premises:  # a projection of an aggregate
                ((relation, row),) = self.groups_of(known)
                return self.aggregate_key(relation, row)
            (premise,) = known.premises
            if self._is_better(premise, number):
                break
            number, known = premise, self.chosen.get(premise)
        return "tuple", number

    def _is_better(self, premise: int, number: int) -> bool:
        """Whether a tuple of subsumption is passed on as one that it is better than."""
        relation, row = self.graph.facts[number]
        return relation in self._program.subsumption and self.graph.facts[premise][1] != row

    def aggregate_key(self, relation: str, row: Row) -> NodeKey:
        """Return the key of a tuple of an aggregate, which is a note."""
        slots = tuple(map(Constant, row, self._program.relations[relation].types))
        key, sketch = self._aggregate(Literal(relation, slots), {})
        self._sketches[key] = sketch
        return key

    def _sketch(self, key: NodeKey) -> NodeSketch:
        if key not in self._sketches:
            number = key[1]
            assert isinstance(number, int)
            self._sketches[key] = self._sketch_tuple(number)
        return self._sketches[key]

    def _sketch_tuple(self, number: int) -> NodeSketch:
        relation, row = self.graph.facts[number]
        wording = self.wording
        copies = _copies(row) if relation in wording.counts else None
        node = replace(wording.node(ProofKind.BASE, relation, row), copies=copies)
        if not self.graph.is_derived(number):
            return NodeSketch(node)
        known = self.chosen.get(number)
        if known is None:  # the limits were reached before there was a proof
            return NodeSketch(replace(node, kind=ProofKind.DERIVED))
        height = self.graph.heights[number]
        if height >= INFINITE:  # the lower part of a very high proof is not known
            height = self.graph.guess(number)
        node = replace(node, height=height)
        if known.step.is_link:
            return self._sketch_chain(node, known)
        origin = known.step.rule.origin
        node = replace(
            node,
            kind=ProofKind.DERIVED,
            rule=wording.rule_number(origin),
            alternative=origin.alternative,
        )
        premises = dict.fromkeys(map(self.tuple_key, known.premises))
        notes = dict(self._notes(number, known))
        if relation in self._assignments:
            facts = (self.graph.facts[premise] for premise in known.premises)
            parts = [wording.tuple_text(*fact) for fact in facts]
            parts += [sketch.node.text for sketch in notes.values()]
            node = replace(node, text=", ".join(parts))
        self._sketches |= notes
        return NodeSketch(node, tuple(premises), tuple(notes))

    @property
    def _assignments(self) -> frozenset[str]:
        """The relations of rows that are aggregated and have no name that the user knows."""
        bodies = (self._program.relations[each.body] for each in self._program.aggregations)
        return frozenset(each.name for each in bodies if not each.is_declared)

    def _sketch_chain(self, node: ProofNode, known: KnownInstance) -> NodeSketch:
        """Return the node of a tuple of an `eqrel`: its premises are the links, in their order."""
        keys = dict.fromkeys(map(self.tuple_key, self._links(known)))
        return NodeSketch(replace(node, kind=ProofKind.CHAIN), tuple(keys))

    def _links(self, known: KnownInstance) -> list[int]:
        """Return the links of a chain, in their order."""
        links: list[int] = []
        current: KnownInstance | None = known
        while current is not None:
            links.append(current.premises[-1])
            current = self.chosen[current.premises[0]] if current.is_longer else None
        return links[::-1]

    def count_tuples(self, root: NodeKey) -> int:
        """Return how many tuples a proof has, shown or not."""

        def below(key: NodeKey) -> Iterator[NodeKey]:
            known = self.chosen.get(key[1]) if isinstance(key[1], int) else None
            if known is not None:
                links = self._links(known) if known.step.is_link else known.premises
                yield from map(self.tuple_key, links)

        return len(reachable([root], below))

    # --- notes ---------------------------------------------------------------------------------

    def _notes(self, number: int, known: KnownInstance) -> Iterator[tuple[NodeKey, NodeSketch]]:
        """Yield what else an instance needs, in the order of its rule."""
        rule = known.step.rule
        bindings = self.bindings(known)
        aggregates = self.finder.steps.aggregates
        for literal in rule.literals:
            if literal.negated:
                yield self._absent(literal, bindings)
            elif literal.relation in aggregates:
                for each in self.wording.single_values(literal):
                    yield self._aggregate(each, bindings)
        for place, condition in enumerate(rule.conditions):
            node = condition_node(condition, bindings)
            if node is not None:
                yield ("computed", number, place), NodeSketch(node)

    def groups_of(self, known: KnownInstance) -> Iterator[Fact]:
        """Yield the tuples of aggregates that an instance needs."""
        bindings: Bindings | None = None
        for literal in known.step.rule.literals:
            if literal.relation in self.finder.steps.aggregates and not literal.negated:
                bindings = self.bindings(known) if bindings is None else bindings
                for each in self.wording.single_values(literal):
                    yield literal.relation, partial_row(each, bindings)

    def bindings(self, known: KnownInstance) -> Bindings:
        """Return the values of the variables of an instance."""
        variables = self.finder.variables(known.instance.step)
        names = (each.name for each in variables)
        return dict(zip(names, known.instance.values, strict=True))

    def _absent(self, literal: Literal, bindings: Bindings) -> tuple[NodeKey, NodeSketch]:
        """Return the note of a negated literal; `_` is any value, and null in its row."""
        wording = self.wording
        text = wording.literal_text(literal, bindings)
        relation, row = literal.relation, partial_row(literal, bindings)
        projection = wording.projections.get(relation)
        if projection is not None:
            relation = projection.relation
            wide = dict(zip(projection.columns, row, strict=True))
            arity = len(self.finder.asked.program.relations[relation].types)
            row = tuple(wide.get(at) for at in range(arity))
        if relation in wording.aggregations:
            keys = [Constant(value, None) for value in partial_row(literal, bindings)]
            text = f"no {wording.group_text(relation, keys)}"
        node = wording.node(ProofKind.ABSENT, relation, row, text)
        return ("absent", literal.relation, partial_row(literal, bindings)), NodeSketch(node)

    @property
    def _program(self) -> NormalProgram:
        return self.finder.asked.program

    def _aggregate(self, literal: Literal, bindings: Bindings) -> tuple[NodeKey, NodeSketch]:
        """Return the note of an aggregate: some rows of its group are its premises."""
        relation, row = literal.relation, partial_row(literal, bindings)
        aggregation = self.wording.aggregations[relation]
        shape = self._program.relations[relation]
        columns = list(range(len(row)))
        if isinstance(aggregation, Aggregation):
            columns = [*aggregation.keys, value_column(aggregation, row)]
        node = ProofNode(
            0,
            ProofKind.AGGREGATE,
            self.wording.user_name(aggregation.body),
            tuple(row[at] for at in columns),
            tuple(shape.types[at] for at in columns),
            text=self.wording.aggregate_text(literal, bindings),
        )
        premises: dict[NodeKey, None] = {}
        group = self.groups.get((relation, row))
        if group is not None:
            premises = dict.fromkeys(
                self.tuple_key(self.graph.number(fact, None)) for fact in group.rows
            )
            keys = tuple((shape.columns[at], row[at], shape.types[at]) for at in aggregation.keys)
            # Of several window functions, the last one stands for all: the text has each.
            at = columns[-1]
            operator = (
                aggregation.accumulators[at - len(keys)].operator
                if isinstance(aggregation, Aggregation)
                else aggregation.functions[-1].name
            )
            made = AggregateValue(operator, keys, row[at], group.total, group.rest, shape.types[at])
            node = replace(node, aggregate=made)
        return ("aggregate", relation, row), NodeSketch(node, tuple(premises))


def _copies(row: Row) -> int:
    assert isinstance(row[-1], int)
    return row[-1]
