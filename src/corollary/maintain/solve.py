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

A transaction asks in two states, OLD and NEW, each with its own data and rules. What cannot differ
between them (a relation that is no candidate) has one table for both, and a table lives as long as
the transaction: propagation and filtration share what either has found.

| symbol | name here |
|---|---|
| p with adornment a | `p^bf`, in the state before the transaction `p^bf@old` |
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

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from corollary.analysis.orders import orders
from corollary.analysis.strata import Stratum, strata
from corollary.core.origin import Origin
from corollary.core.pipeline import Absent, Compute, Filter, Pipeline, Probe, Reference, Stage
from corollary.core.plan import (
    MAIN,
    WORKING,
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
from corollary.core.rules import Aggregation, Condition, Literal, Rule, head_of, names_in
from corollary.core.states import State
from corollary.core.statistics import Statistics
from corollary.core.terms import Constant, Slot, Variable, Wildcard
from corollary.core.types import Type
from corollary.maintain.sip import Goal, bound_columns, has_fault, sip

GOAL = working("", "goal")


@dataclass(frozen=True, slots=True)
class Adorned:
    """A derived relation, the columns that a call binds, and the state it asks about."""

    relation: str
    bound: tuple[int, ...]
    arity: int
    state: State = State.NEW

    @property
    def name(self) -> str:
        """The name, as in `link^bf`."""
        pattern = "".join("b" if at in self.bound else "f" for at in range(self.arity))
        return f"{self.relation}^{pattern}{'@old' if self.state is State.OLD else ''}"

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
class Tables:
    """The tables of calls and answers that a plan needs, and the procedures that fill them.

    Attributes:
        programs: the rules of each state.
        types: the columns of all relations; those of the tables are added.
        looks_up: whether a relation can be read in a state without asking.
        is_shared: whether a relation is the same in both states.
    """

    programs: Mapping[State, NormalProgram]
    statistics: Statistics
    types: dict[str, tuple[Type, ...]]
    looks_up: Callable[[Reference], bool]
    is_shared: Callable[[str], bool] = lambda _: True
    _strata: dict[State, tuple[Stratum, ...]] = field(default_factory=dict)
    _stratum_of: dict[tuple[State, str], Stratum] = field(default_factory=dict)
    _nodes: dict[tuple[State, str], list[Adorned]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for state, program in self.programs.items():
            self._strata[state] = strata(program)
            for stratum in self._strata[state]:
                self._stratum_of |= {(state, name): stratum for name in stratum.relations}

    def stratum_of(self, relation: str, state: State) -> Stratum:
        """Return the stratum that defines a relation in a state."""
        return self._stratum_of[state, relation]

    def node(self, relation: str, bound: Iterable[int], state: State) -> Adorned:
        """Return an adorned relation, registered with its stratum and working relations."""
        state = State.NEW if self.is_shared(relation) else state
        types = self.programs[state].relations[relation].types
        columns = self._callable(tuple(sorted(bound)), relation, state)
        node = Adorned(relation, columns, len(types), state)
        first = self._stratum_of[state, relation].relations[0]
        known = self._nodes.setdefault((state, first), [])
        if node not in known:
            known.append(node)
            asked = tuple(types[column] for column in node.bound)
            self.types |= {node.calls: asked, node.asked: asked}
            self.types |= {node.answers: types, node.found: types}
        return node

    def _callable(self, bound: tuple[int, ...], relation: str, state: State) -> tuple[int, ...]:
        """Return the columns a call may bind: of an aggregate only its keys, not the value."""
        aggregations = self._stratum_of[state, relation].aggregations
        if any(each.relation == relation for each in aggregations):
            value = len(self.programs[state].relations[relation].types) - 1
            return tuple(column for column in bound if column != value)
        return bound

    def nodes_of(self, stratum: Stratum, state: State) -> list[Adorned]:
        """Return the adorned relations of a stratum; the list grows while rules call each other."""
        return self._nodes.setdefault((state, stratum.relations[0]), [])

    def ask(self, asked: Adorned, pipelines: Iterable[Pipeline]) -> list[Step]:
        """Return the steps that ask an adorned relation and wait for all answers."""
        return [
            Derive(asked.asked, tuple(pipelines), (Reference(asked.calls),)),
            Extend(asked.calls, asked.asked),
            Call(_procedure(self._stratum_of[asked.state, asked.relation], asked.state)),
        ]

    def procedures(self) -> dict[str, tuple[Step, ...]]:
        """Return the procedures that answer all open calls, one for each stratum and state."""
        made: dict[str, tuple[Step, ...]] = {}
        for state in (State.OLD, State.NEW):  # OLD may ask in NEW what is shared
            for stratum in reversed(self._strata.get(state, ())):
                if self._nodes.get((state, stratum.relations[0])):
                    steps = tuple(_solve_stratum(stratum, state, self))
                    made[_procedure(stratum, state)] = steps
        return made

    def memo(self) -> tuple[str, ...]:
        """Return the names of all tables that hold calls or answers."""
        nodes = [node for each in self._nodes.values() for node in each]
        return tuple(name for node in nodes for name in (node.calls, node.answers))


def solve(program: NormalProgram, goal: Literal, statistics: Statistics) -> Plan:
    """Return the plan whose relation `GOAL` holds the answers: one column per goal variable.

    Derived relations are computed as far as the goal asks, whatever is stored of them.
    """
    return answer(program, goal, statistics, lambda name: not program.relations[name].is_derived)


def answer(
    program: NormalProgram,
    goal: Literal,
    statistics: Statistics,
    looks_up: Callable[[str], bool],
) -> Plan:
    """Return the plan that answers a goal, where some relations can be looked up."""
    types = {name: relation.types for name, relation in program.relations.items()}

    def is_there(source: Reference) -> bool:
        return WORKING in source.relation or looks_up(source.relation)

    tables = Tables({State.NEW: program}, statistics, types, is_there)
    origin = Origin(f"the goal {goal.relation}")
    seen: dict[str, Variable] = {}
    for slot in goal.slots:
        if isinstance(slot, Variable):
            seen.setdefault(slot.name, slot)
    types[GOAL] = tuple(_type(variable) for variable in seen.values())
    head = tuple(seen.values())
    steps: list[Step] = []
    source = Reference(goal.relation)
    if not looks_up(goal.relation):
        node = tables.node(goal.relation, bound_columns(goal.slots, ()), State.NEW)
        constants = tuple(
            slot for column in node.bound if isinstance(slot := goal.slots[column], Constant)
        )
        steps = tables.ask(node, [Pipeline((), constants, origin)])
        source = Reference(node.answers)
    steps.append(Derive(GOAL, (sip(head, [Goal(goal, source)], (), origin, statistics),)))
    procedures = {MAIN: tuple(steps), **tables.procedures()}
    made = Plan(procedures, types)
    return Plan(procedures, types, orders(pipelines_of(made)))


def _procedure(stratum: Stratum, state: State) -> str:
    return procedure_of(stratum.relations, "solve old" if state is State.OLD else "solve")


def _type(slot: Slot) -> Type:
    assert not isinstance(slot, Wildcard)
    assert slot.type is not None
    return slot.type


Ask = Callable[[Probe | Absent, "list[Goal | Condition]"], Reference]
"""Asks for what a literal needs, given what stands before it; returns where the answers are."""


def called(
    stages: Iterable[Stage], looks_up: Callable[[Reference], bool], ask: Ask
) -> list[Goal | Condition]:
    """Return a body in its SIP order, with every literal that cannot be looked up asked for."""
    items: list[Goal | Condition] = []
    for stage in stages:
        match stage:
            case Filter(condition=condition):
                items.append(condition)
            case Compute(variable=variable, expression=expression, lets_null=lets_null):
                items.append(Condition("is" if lets_null else "=", variable, expression))
            case Probe(source=source) | Absent(source=source):
                answers = source if looks_up(source) else ask(stage, items)
                negated = isinstance(stage, Absent)
                items.append(Goal(Literal(source.relation, stage.slots, negated), answers))
            case _:
                assert_never(stage)
    return items


def call_of(
    stage: Probe | Absent, tables: Tables
) -> tuple[Adorned, tuple[Variable | Constant, ...]]:
    """Return the adorned relation that a literal asks, and the arguments of the call."""
    bound = stage.bound if isinstance(stage, Probe) else tuple(range(len(stage.slots)))
    asked = tables.node(stage.source.relation, bound, stage.source.state)
    arguments = tuple(
        slot for at in asked.bound if isinstance(slot := stage.slots[at], Variable | Constant)
    )
    return asked, arguments


def split(
    items: Iterable[Goal | Condition],
) -> tuple[list[Goal], list[Condition]]:
    """Return the literals and the conditions of a body."""
    listed = list(items)
    goals = [item for item in listed if isinstance(item, Goal)]
    return goals, [item for item in listed if isinstance(item, Condition)]


def certain(
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


@dataclass(slots=True)
class _Layer:
    """A stratum under construction: what its rules ask of it and of those below, what they find."""

    stratum: Stratum
    state: State
    tables: Tables
    below: list[Step] = field(default_factory=list)
    asks: dict[Adorned, list[Pipeline]] = field(default_factory=dict)
    finds: dict[Adorned, list[Pipeline]] = field(default_factory=dict)

    def add(self, rule: Rule, node: Adorned) -> None:
        """Add what one rule contributes when it is called as `node`."""
        tables = self.tables
        call = Literal(node.calls, tuple(rule.head.slots[column] for column in node.bound))
        goals = [Goal(call, Reference(node.calls))]
        goals += [Goal(each, Reference(each.relation, self.state)) for each in rule.literals]
        head = head_of(rule)
        ordered = sip(head, goals, rule.conditions, rule.origin, tables.statistics, lead=goals[0])

        def ask(stage: Probe | Absent, items: list[Goal | Condition]) -> Reference:
            asked, arguments = call_of(stage, tables)
            prefix = certain(items, arguments)
            pipelines = [
                replace(each, judge=()) for each in self._variants(prefix, arguments, rule, node)
            ]
            if stage.source.relation in self.stratum.relations:
                self.asks.setdefault(asked, []).extend(pipelines)
            else:
                self.below += tables.ask(asked, pipelines)
            return Reference(asked.answers)

        items = called(ordered.stages, self._looks_up, ask)
        found = self._variants(items, head, rule, node)
        if self.state is State.OLD:  # what was an error then cannot be mended now
            found = (each if rule.is_lenient else replace(each, judge=()) for each in found)
        self.finds.setdefault(node, []).extend(found)

    def _variants(
        self,
        items: list[Goal | Condition],
        head: tuple[Variable | Constant, ...],
        rule: Rule,
        node: Adorned,
    ) -> Iterator[Pipeline]:
        """Yield the semi-naive variants: one for the calls, one for each literal of the stratum."""
        goals, conditions = split(items)
        members = {node.calls, *self.stratum.relations}
        places = [
            at
            for at, goal in enumerate(goals)
            if goal.literal.relation in members and not self._is_known(goal)
        ]
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

    def _looks_up(self, source: Reference) -> bool:
        """Whether a literal is looked up; one of the stratum not while NEW may be in the making."""
        is_own = source.relation in self.stratum.relations and self.state is State.NEW
        return not is_own and self.tables.looks_up(source)

    def _is_known(self, goal: Goal) -> bool:
        """Whether a literal of the stratum is looked up rather than asked."""
        return goal.source.relation == goal.literal.relation in self.stratum.relations


def _solve_stratum(stratum: Stratum, state: State, tables: Tables) -> list[Step]:
    """Return the loop that answers all open calls of a stratum."""
    layer = _Layer(stratum, state, tables)
    aggregated = {each.relation: each for each in stratum.aggregations}
    nodes = tables.nodes_of(stratum, state)
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
    relations = tables.programs[state].relations
    limits = tuple(
        (node.answers, limit)
        for node in nodes
        if (limit := relations[node.relation].limit) is not None
    )
    return [Loop((*layer.below, *derive, *extend), tuple(fresh), limits)]


def _aggregate(node: Adorned, aggregation: Aggregation, tables: Tables) -> list[Step]:
    """Return the steps that answer calls of an aggregate: solve its body, then aggregate."""
    body = tables.programs[node.state].relations[aggregation.body]
    variables = tuple(Variable(f"c{column}", type_) for column, type_ in enumerate(body.types))
    columns = tuple(aggregation.groups[at] for at in node.bound)
    keys = tuple(variables[column] for column in columns)
    call = Probe(Reference(node.calls, State.ADDED), keys, ())
    source, steps = Reference(aggregation.body, node.state), list[Step]()
    if not tables.looks_up(source):
        asked = tables.node(aggregation.body, columns, node.state)
        arguments = tuple(variables[column] for column in asked.bound)
        steps = tables.ask(asked, [Pipeline((call,), arguments, aggregation.origin)])
        source = Reference(asked.answers)
    rows = working(node.name, "rows")
    tables.types[rows] = body.types
    read = Probe(source, variables, tuple(sorted(columns)))
    pipeline = Pipeline((call, read), variables, aggregation.origin)
    steps += [
        Derive(rows, (pipeline,)),
        Aggregate(node.found, aggregation, Reference(rows), (Reference(node.answers),)),
    ]
    return steps
