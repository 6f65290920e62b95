"""From a proof to what is shown: each tuple once, as users know it, with notes beside it."""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from corollary.core.logic import Aggregation, Literal, Rule, Variable
from corollary.core.printer import print_value
from corollary.core.program import NormalProgram
from corollary.provenance.graph import KnownInstance, ProofGraph
from corollary.provenance.groups import GroupRows
from corollary.provenance.instance_rows import Fact
from corollary.provenance.instances import InstanceFinder
from corollary.provenance.nodes import (
    AggregateValue,
    CutReason,
    ProofCut,
    ProofKind,
    ProofNode,
    ProofRule,
    Row,
)
from corollary.provenance.wording import Bindings, Wording, condition_text, substitute

NodeKey = tuple[object, ...]
"""What a node is about: nodes of equal keys are one."""


@dataclass(frozen=True, slots=True)
class _Sketch:
    """A node whose premises and notes have no ids yet."""

    node: ProofNode
    premises: tuple[NodeKey, ...] = ()
    notes: tuple[NodeKey, ...] = ()


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
    _sketches: dict[NodeKey, _Sketch] = field(default_factory=dict)

    def draw(
        self, root: int, max_nodes: int
    ) -> tuple[tuple[ProofNode, ...], dict[int, ProofRule], list[ProofCut], dict[int, int]]:
        """Return the nodes, breadth-first, their rules, what was left out, and the tuples' ids."""
        ids: dict[NodeKey, int] = {}
        order: list[NodeKey] = []
        work: deque[NodeKey] = deque()
        left_out: dict[NodeKey, None] = {}

        def meet(key: NodeKey) -> None:
            if key in ids:
                return
            if len(order) >= max_nodes:
                left_out[key] = None
                return
            ids[key] = len(order)
            order.append(key)
            work.append(key)

        meet(self._tuple_key(root))
        while work:
            sketch = self._sketch(work.popleft())
            for key in (*sketch.premises, *sketch.notes):
                meet(key)
        nodes = []
        cuts = []
        for key in order:
            sketch = self._sketch(key)
            premises = tuple(ids[each] for each in sketch.premises if each in ids)
            notes = tuple(ids[each] for each in sketch.notes if each in ids)
            total = len(sketch.premises) + len(sketch.notes)
            if len(premises) + len(notes) < total:
                shown = len(premises) + len(notes)
                cuts.append(ProofCut(CutReason.NODES, ids[key], shown, total))
            nodes.append(replace(sketch.node, id=ids[key], premises=premises, notes=notes))
        numbers = {each.rule for each in nodes if each.rule is not None}
        rules = {number: self.wording.rule(number) for number in sorted(numbers)}
        places = {key[1]: at for key, at in ids.items() if key[0] == "tuple"}
        return tuple(nodes), rules, cuts, {n: at for n, at in places.items() if isinstance(n, int)}

    # --- tuples --------------------------------------------------------------------------------

    def _tuple_key(self, number: int) -> NodeKey:
        """Return the key of a tuple; what only passes a tuple on is the node of that tuple."""
        known = self.chosen.get(number)
        while known is not None and known.step.is_passing:
            (number,) = known.premises
            known = self.chosen.get(number)
        return "tuple", number

    def _sketch(self, key: NodeKey) -> _Sketch:
        if key not in self._sketches:
            number = key[1]
            assert isinstance(number, int)
            self._sketches[key] = self._sketch_tuple(number)
        return self._sketches[key]

    def _sketch_tuple(self, number: int) -> _Sketch:
        relation, row = self.graph.facts[number]
        wording = self.wording
        node = ProofNode(
            0,
            ProofKind.BASE,
            wording.user_name(relation),
            wording.user_row(relation, row),
            wording.user_types(relation),
            text=wording.tuple_text(relation, row),
            copies=_copies(row) if relation in wording.counts else None,
        )
        if not self.graph.is_derived(number):
            return _Sketch(node)
        known = self.chosen.get(number)
        if known is None:  # the limits were reached before there was a proof
            return _Sketch(replace(node, kind=ProofKind.DERIVED))
        node = replace(node, height=self.graph.heights[number])
        if known.step.is_link:
            return self._sketch_chain(node, known)
        origin = known.step.rule.origin
        node = replace(
            node,
            kind=ProofKind.DERIVED,
            rule=wording.rule_number(origin),
            alternative=origin.alternative,
        )
        premises = dict.fromkeys(map(self._tuple_key, known.premises))
        if "aggregates" in origin.passes and not self._program.relations[relation].is_declared:
            node = replace(node, text=self._assignment_text(known))
        notes = dict(self._notes(number, known))
        self._sketches |= notes
        return _Sketch(node, tuple(premises), tuple(notes))

    def _assignment_text(self, known: KnownInstance) -> str:
        """Return a row that an aggregate aggregates, as the literals of its body."""
        facts = (self.graph.facts[premise] for premise in known.premises)
        return ", ".join(self.wording.tuple_text(*fact) for fact in facts)

    def _sketch_chain(self, node: ProofNode, known: KnownInstance) -> _Sketch:
        """Return the node of a tuple of an `eqrel`: its premises are the links, in their order."""
        links: list[int] = []
        current: KnownInstance | None = known
        while current is not None:
            links.append(current.premises[-1])
            current = self.chosen[current.premises[0]] if current.is_longer else None
        keys = dict.fromkeys(self._tuple_key(link) for link in reversed(links))
        return _Sketch(replace(node, kind=ProofKind.CHAIN), tuple(keys))

    # --- notes ---------------------------------------------------------------------------------

    def _notes(self, number: int, known: KnownInstance) -> Iterator[tuple[NodeKey, _Sketch]]:
        """Yield what else an instance needs, in the order of its rule."""
        rule = known.step.rule
        bindings = self.bindings(known)
        aggregates = self.finder.steps.aggregates
        for literal in rule.literals:
            if literal.negated:
                yield self._absent(literal, bindings)
            elif literal.relation in aggregates:
                yield self._aggregate(literal, bindings)
        for place, condition in enumerate(rule.conditions):
            text = condition_text(condition, bindings)
            left, separator, right = text.partition(" = ")
            if not (separator and left == right):
                node = ProofNode(0, ProofKind.COMPUTED, "", (), (), text=text)
                yield ("computed", number, place), _Sketch(node)

    def groups_of(self, known: KnownInstance) -> Iterator[Fact]:
        """Yield the tuples of aggregates that an instance needs."""
        bindings: Bindings | None = None
        for literal in known.step.rule.literals:
            if literal.relation in self.finder.steps.aggregates and not literal.negated:
                bindings = self.bindings(known) if bindings is None else bindings
                yield literal.relation, _row(literal, bindings)

    def bindings(self, known: KnownInstance) -> Bindings:
        """Return the values of the variables of an instance."""
        variables = self.finder.variables(known.instance.step)
        names = (each.name for each in variables)
        return dict(zip(names, known.instance.values, strict=True))

    def _absent(self, literal: Literal, bindings: Bindings) -> tuple[NodeKey, _Sketch]:
        """Return the note of a negated literal; `_` is any value, and null in its row."""
        wording = self.wording
        text = wording.literal_text(literal, bindings)
        relation, row = literal.relation, _row(literal, bindings)
        projection = wording.projections.get(relation)
        if projection is not None:
            relation = projection.relation
            wide = dict(zip(projection.columns, row, strict=True))
            arity = len(self.finder.asked.program.relations[relation].types)
            row = tuple(wide.get(at) for at in range(arity))
        aggregation = self._aggregations.get(relation)
        if aggregation is not None:
            text = f"no {self._group_text(aggregation, row)}"
        node = ProofNode(
            0,
            ProofKind.ABSENT,
            wording.user_name(relation),
            wording.user_row(relation, row),
            wording.user_types(relation),
            text=text,
        )
        return ("absent", literal.relation, _row(literal, bindings)), _Sketch(node)

    @property
    def _program(self) -> NormalProgram:
        return self.finder.asked.program

    @property
    def _aggregations(self) -> dict[str, Aggregation]:
        return {each.relation: each for each in self._program.aggregations}

    def _aggregate(self, literal: Literal, bindings: Bindings) -> tuple[NodeKey, _Sketch]:
        relation, row = literal.relation, _row(literal, bindings)
        aggregation = self._aggregations[relation]
        shape = self._program.relations[relation]
        value = print_value(row[-1], shape.types[-1])
        term = self._term(aggregation)
        text = f"{value} = {aggregation.operator}{term} : {self._group_text(aggregation, row)}"
        node = ProofNode(
            0,
            ProofKind.AGGREGATE,
            self.wording.user_name(aggregation.body),
            row,
            shape.types,
            text=text,
        )
        premises: dict[NodeKey, None] = {}
        group = self.groups.get((relation, row))
        if group is not None:
            keys = zip(shape.columns[:-1], row[:-1], shape.types[:-1], strict=True)
            made = AggregateValue(
                aggregation.operator, tuple(keys), row[-1], group.total, group.rest, shape.types[-1]
            )
            node = replace(node, aggregate=made)
            premises = dict.fromkeys(
                self._tuple_key(self.graph.number(fact, None)) for fact in group.rows
            )
        return ("aggregate", relation, row), _Sketch(node, tuple(premises))

    def _term(self, aggregation: Aggregation) -> str:
        if aggregation.value is None:
            return ""
        return f" {self._program.relations[aggregation.body].columns[aggregation.value]}"

    def _group_text(self, aggregation: Aggregation, group: Row) -> str:
        """Return the body of an aggregate with the keys of a group put in."""
        body = self._program.relations[aggregation.body]
        variables = tuple(map(Variable, body.columns, body.types))
        known = {
            variables[at].name: value for at, value in zip(aggregation.groups, group, strict=False)
        }
        rules = [each for each in self._program.rules if each.head.relation == body.name]
        if body.is_declared or not rules:
            return f"{{ {self.wording.literal_text(Literal(body.name, variables), known)} }}"
        return f"{{ {' ; '.join(self._body_text(rule, aggregation, group) for rule in rules)} }}"

    def _body_text(self, rule: Rule, aggregation: Aggregation, group: Row) -> str:
        keys = (rule.head.slots[at] for at in aggregation.groups)
        bindings = {
            slot.name: value
            for slot, value in zip(keys, group, strict=False)
            if isinstance(slot, Variable)
        }
        parts = [
            self.wording.literal_text(each, bindings)
            for each in rule.literals
            if each.relation not in self.finder.steps.guards
        ]
        return ", ".join([*parts, *(condition_text(each, bindings) for each in rule.conditions)])


def _row(literal: Literal, bindings: Bindings) -> Row:
    """Return the tuple of a literal all of whose variables are bound."""
    return tuple(getattr(substitute(slot, bindings), "value", None) for slot in literal.slots)


def _copies(row: Row) -> int:
    assert isinstance(row[-1], int)
    return row[-1]
