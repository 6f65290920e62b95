"""Tabled evaluation, set at a time: answers to a goal with bound arguments (EQ*¬ of the papers).

References: Harrison and Dietrich (1992–94), who call it the evaluation of queries over a state;
extension tables (Dietrich 1987); magic sets (Bancilhon, Maier, Sagiv, Ullman 1986).

`solve(goal, adornment, bindings)`: for every predicate and adornment there is a relation of *calls*
(the bindings that were asked) and one of *answers*. A rule `p :- L1, …, Lk`, called with adornment
a, is evaluated literal by literal in SIP order. At a literal Li of a derived relation q

    calls(q, b)    grows by   the bound arguments of Li over  calls(p, a), L1, …, L(i-1)
    answers(p, a)  grows by   the head over                   calls(p, a), L1, …, Lk

where a literal of q reads answers(q, b). Literals of p's own stratum take part semi-naively, calls
and answers alike, in one loop; a literal of a lower stratum (also a negated one, which is bound by
then, and the body of an aggregate) is solved to completion before it is read.

| symbol | name here |
|---|---|
| p with adornment a | `p^bf` |
| calls(p, a) | `p^bf•calls`, new ones `p^bf•asked` |
| answers(p, a) | `p^bf•answers`, new ones `p^bf•found` |

Example: `link("a", y)` over the left-linear closure of a→b→c and x→y:

| round | link^bf•asked | link^bf•found |
|---|---|---|
| 1 | a | (a,b) |
| 2 | | (a,c) |
| 3 | | |

Nothing is ever computed for x.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import assert_never

from corollary.analysis.orders import orders
from corollary.analysis.strata import Stratum, strata
from corollary.core.origin import Origin
from corollary.core.pipeline import Absent, Compute, Filter, Pipeline, Probe, Reference
from corollary.core.plan import (
    MAIN,
    Aggregate,
    Call,
    Derive,
    Extend,
    Loop,
    Plan,
    Step,
    pipelines_of,
    procedure_of,
    working,
)
from corollary.core.program import NormalProgram
from corollary.core.rules import Aggregation, Condition, Literal, Rule, names_in
from corollary.core.states import State
from corollary.core.statistics import Statistics
from corollary.core.terms import Constant, Slot, Variable, Wildcard
from corollary.core.types import Type
from corollary.maintain.seminaive import head_of
from corollary.maintain.sip import Goal, bound_columns, has_fault, sip

GOAL = working("", "goal")


@dataclass(frozen=True, slots=True)
class Adorned:
    """A derived relation and the columns that a call binds."""

    relation: str
    bound: tuple[int, ...]
    arity: int

    @property
    def name(self) -> str:
        """The name, as in `link^bf`."""
        pattern = "".join("b" if at in self.bound else "f" for at in range(self.arity))
        return f"{self.relation}^{pattern}"

    @property
    def calls(self) -> str:
        """The relation of calls."""
        return working(self.name, "calls")

    @property
    def asked(self) -> str:
        """The relation of new calls."""
        return working(self.name, "asked")

    @property
    def answers(self) -> str:
        """The relation of answers."""
        return working(self.name, "answers")

    @property
    def found(self) -> str:
        """The relation of new answers."""
        return working(self.name, "found")


@dataclass(slots=True)
class _Tables:
    """The procedures under construction: adorned relations by stratum, and those still to do."""

    program: NormalProgram
    statistics: Statistics
    types: dict[str, tuple[Type, ...]]
    stratum_of: dict[str, Stratum] = field(default_factory=dict)
    nodes: dict[str, list[Adorned]] = field(default_factory=dict)

    def node(self, relation: str, bound: Iterable[int]) -> Adorned:
        """Return an adorned relation, registered with its stratum and working relations."""
        types = self.program.relations[relation].types
        node = Adorned(relation, tuple(sorted(bound)), len(types))
        known = self.nodes.setdefault(self.stratum_of[relation].relations[0], [])
        if node not in known:
            known.append(node)
            asked = tuple(types[column] for column in node.bound)
            self.types |= {node.calls: asked, node.asked: asked}
            self.types |= {node.answers: types, node.found: types}
        return node

    def is_derived(self, relation: str) -> bool:
        """Whether the relation must be asked for, rather than looked up."""
        return self.program.relations[relation].is_derived


def solve(program: NormalProgram, goal: Literal, statistics: Statistics) -> Plan:
    """Return the plan whose relation `GOAL` holds the answers: one column per goal variable."""
    types = {name: relation.types for name, relation in program.relations.items()}
    layers = strata(program)
    tables = _Tables(program, statistics, types)
    tables.stratum_of = {name: layer for layer in layers for name in layer.relations}
    origin = Origin(f"the goal {goal.relation}")
    seen: dict[str, Variable] = {}
    for slot in goal.slots:
        if isinstance(slot, Variable):
            seen.setdefault(slot.name, slot)
    types[GOAL] = tuple(_type(variable) for variable in seen.values())
    head = tuple(seen.values())
    if not tables.is_derived(goal.relation):
        pipeline = sip(head, [Goal(goal, Reference(goal.relation))], (), origin, statistics)
        return _plan({MAIN: (Derive(GOAL, (pipeline,)),)}, types)
    node = tables.node(goal.relation, bound_columns(goal.slots, ()))
    constants = tuple(
        slot for column in node.bound if isinstance(slot := goal.slots[column], Constant)
    )
    ask = Derive(node.asked, (Pipeline((), constants, origin),))
    answer = sip(head, [Goal(goal, Reference(node.answers))], (), origin, statistics)
    main: tuple[Step, ...] = (
        ask,
        Extend(node.calls, node.asked),
        Call(_procedure(tables.stratum_of[goal.relation])),
        Derive(GOAL, (answer,)),
    )
    procedures: dict[str, tuple[Step, ...]] = {MAIN: main}
    for stratum in reversed(layers):
        if stratum.relations[0] in tables.nodes:
            procedures[_procedure(stratum)] = tuple(_solve_stratum(stratum, tables))
    return _plan(procedures, types)


def _plan(procedures: dict[str, tuple[Step, ...]], types: dict[str, tuple[Type, ...]]) -> Plan:
    made = Plan(procedures, types)
    return Plan(procedures, types, orders(pipelines_of(made)))


def _procedure(stratum: Stratum) -> str:
    return procedure_of(stratum.relations, "solve")


def _type(slot: Slot) -> Type:
    assert not isinstance(slot, Wildcard)
    assert slot.type is not None
    return slot.type


@dataclass(slots=True)
class _Layer:
    """A stratum under construction: what its rules ask of it and of those below, what they find."""

    stratum: Stratum
    tables: _Tables
    below: list[Step] = field(default_factory=list)
    asks: dict[Adorned, list[Pipeline]] = field(default_factory=dict)
    finds: dict[Adorned, list[Pipeline]] = field(default_factory=dict)

    def add(self, rule: Rule, node: Adorned) -> None:
        """Add what one rule contributes when it is called as `node`."""
        tables = self.tables
        call = Literal(node.calls, tuple(rule.head.slots[column] for column in node.bound))
        goals = [Goal(call, Reference(node.calls))]
        goals += [Goal(each, Reference(each.relation)) for each in rule.literals]
        head = head_of(rule)
        ordered = sip(head, goals, rule.conditions, rule.origin, tables.statistics, lead=goals[0])
        so_far: list[Goal | Condition] = []
        for stage in ordered.stages:
            match stage:
                case Filter(condition=condition):
                    so_far.append(condition)
                case Compute(variable=variable, expression=expression, lets_null=lets_null):
                    so_far.append(Condition("is" if lets_null else "=", variable, expression))
                case Probe(source=source) | Absent(source=source):
                    answers = source
                    if source.relation != node.calls and tables.is_derived(source.relation):
                        answers = self._ask(stage, so_far, rule, node)
                    negated = isinstance(stage, Absent)
                    so_far.append(Goal(Literal(source.relation, stage.slots, negated), answers))
                case _:
                    assert_never(stage)
        self.finds.setdefault(node, []).extend(self._variants(so_far, head, rule, node))

    def _ask(
        self, stage: Probe | Absent, so_far: list[Goal | Condition], rule: Rule, node: Adorned
    ) -> Reference:
        """Call a derived literal with what is bound before it; return where its answers are."""
        tables, relation = self.tables, stage.source.relation
        bound = stage.bound if isinstance(stage, Probe) else tuple(range(len(stage.slots)))
        asked = tables.node(relation, _callable(bound, relation, tables))
        arguments = tuple(
            slot for at in asked.bound if isinstance(slot := stage.slots[at], Variable | Constant)
        )
        certain = _certain(so_far, arguments)
        pipelines = [
            replace(each, judge=()) for each in self._variants(certain, arguments, rule, node)
        ]
        if relation in self.stratum.relations:
            self.asks.setdefault(asked, []).extend(pipelines)
        else:
            self.below += _call(asked, pipelines, tables)
        return Reference(asked.answers)

    def _variants(
        self,
        items: list[Goal | Condition],
        head: tuple[Variable | Constant, ...],
        rule: Rule,
        node: Adorned,
    ) -> Iterator[Pipeline]:
        """Yield the semi-naive variants: one for the calls, one for each literal of the stratum."""
        goals = [item for item in items if isinstance(item, Goal)]
        conditions = [item for item in items if isinstance(item, Condition)]
        members = {node.calls, *self.stratum.relations}
        places = [at for at, goal in enumerate(goals) if goal.literal.relation in members]
        for place in places:
            stated = list(goals)
            for at in places:
                state = State.ADDED if at == place else State.NEW if at < place else State.OLD
                stated[at] = Goal(goals[at].literal, Reference(goals[at].source.relation, state))
            yield sip(
                head,
                stated,
                conditions,
                rule.origin,
                self.tables.statistics,
                lead=stated[place],
                is_lenient=rule.is_lenient,
            )


def _certain(
    items: list[Goal | Condition], arguments: tuple[Variable | Constant, ...]
) -> list[Goal | Condition]:
    """Return a prefix without the expressions that may have no value, where a call can do so.

    Whether a missing value counts is for the whole rule to say. A call may ask for more than is
    needed, so what only restricts it is left out; what binds an argument stays, and a row in which
    it has no value asks for nothing.
    """
    kept = list(items)
    used = {slot.name for slot in arguments if isinstance(slot, Variable)}
    for item in reversed(items):
        names = names_in(item.literal if isinstance(item, Goal) else item)
        if isinstance(item, Condition) and has_fault(item):
            binds = item.left.name if isinstance(item.left, Variable) else None
            if item.operator not in ("=", "is") or binds not in used:
                kept.remove(item)
                continue
        used |= names
    return kept


def _call(asked: Adorned, pipelines: list[Pipeline], tables: _Tables) -> list[Step]:
    """Return the steps that ask a relation of a lower stratum and wait for all answers."""
    return [
        Derive(asked.asked, tuple(pipelines), (Reference(asked.calls),)),
        Extend(asked.calls, asked.asked),
        Call(_procedure(tables.stratum_of[asked.relation])),
    ]


def _solve_stratum(stratum: Stratum, tables: _Tables) -> list[Step]:
    """Return the loop that answers all open calls of a stratum."""
    layer = _Layer(stratum, tables)
    aggregated = {each.relation: each for each in stratum.aggregations}
    nodes = tables.nodes[stratum.relations[0]]
    for node in nodes:  # grows while the rules call each other
        if node.relation in aggregated:
            layer.below += _aggregate(node, aggregated[node.relation], tables)
        for rule in stratum.rules:
            if rule.head.relation == node.relation:
                layer.add(rule, node)
    derive: list[Step] = [
        Derive(node.asked, tuple(layer.asks.get(node, ())), (Reference(node.calls),))
        for node in nodes
    ]
    derive += [
        Derive(node.found, tuple(layer.finds.get(node, ())), (Reference(node.answers),))
        for node in nodes
        if node.relation not in aggregated
    ]
    extend: list[Step] = [Extend(node.calls, node.asked) for node in nodes]
    extend += [Extend(node.answers, node.found) for node in nodes]
    fresh = [Reference(node.calls, State.ADDED) for node in nodes]
    if stratum.is_recursive:
        fresh += [Reference(node.answers, State.ADDED) for node in nodes]
    limits = tuple(
        (node.answers, limit)
        for node in nodes
        if (limit := tables.program.relations[node.relation].limit) is not None
    )
    return [Loop((*layer.below, *derive, *extend), tuple(fresh), limits)]


def _callable(bound: tuple[int, ...], relation: str, tables: _Tables) -> tuple[int, ...]:
    """Return the columns a call may bind: of an aggregate only its keys, not the value."""
    aggregations = tables.stratum_of[relation].aggregations
    if any(each.relation == relation for each in aggregations):
        value = len(tables.program.relations[relation].types) - 1
        return tuple(column for column in bound if column != value)
    return bound


def _aggregate(node: Adorned, aggregation: Aggregation, tables: _Tables) -> list[Step]:
    """Return the steps that answer calls of an aggregate: solve its body, then aggregate."""
    body = tables.program.relations[aggregation.body]
    variables = tuple(Variable(f"c{column}", type_) for column, type_ in enumerate(body.types))
    columns = tuple(aggregation.groups[at] for at in node.bound)
    keys = tuple(variables[column] for column in columns)
    call = Probe(Reference(node.calls, State.ADDED), keys, ())
    source, steps = aggregation.body, list[Step]()
    if tables.is_derived(aggregation.body):
        inner = _callable(columns, aggregation.body, tables)
        asked = tables.node(aggregation.body, inner)
        arguments = tuple(variables[column] for column in asked.bound)
        steps = _call(asked, [Pipeline((call,), arguments, aggregation.origin)], tables)
        source = asked.answers
    rows = working(node.name, "rows")
    tables.types[rows] = body.types
    read = Probe(Reference(source), variables, tuple(sorted(columns)))
    pipeline = Pipeline((call, read), variables, aggregation.origin)
    steps += [
        Derive(rows, (pipeline,)),
        Aggregate(node.found, aggregation, Reference(rows), (Reference(node.answers),)),
    ]
    return steps
