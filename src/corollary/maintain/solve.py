"""Tabled evaluation, set at a time: answers to a goal with bound arguments (EQ*¬ of the papers).

Literature: Harrison and Dietrich (1992–94), who call it the evaluation of queries over a state;
extension tables (Dietrich 1987); magic sets (Bancilhon, Maier, Sagiv, Ullman 1986).

`solve(goal, adornment, bindings)`: for every predicate and adornment there is a relation of *calls*
(the bindings asked for) and one of *answers*. A rule `p :- L1, …, Lk`, called with adornment a, is
evaluated literal by literal in SIP order. At a literal Li of a derived relation q

    calls(q, b)    grows by   the bound arguments of Li over  calls(p, a), L1, …, L(i-1)
    answers(p, a)  grows by   the head over                   calls(p, a), L1, …, Lk

where a literal of q reads answers(q, b). Literals of p's own stratum take part semi-naively, calls
and answers alike, in one loop; a literal of a lower stratum (also a negated one, which is bound by
then, and the body of an aggregate) is solved to completion before it is read.

A transaction asks in two states, OLD and NEW, each with its own data and rules. What cannot differ
between them (a relation that is not a candidate) has one table for both, and a table lives as long
as the transaction: propagation and filtration share what either has found.

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

from collections.abc import Callable, Iterator
from dataclasses import field, replace

from corollary.analysis.orders import orders
from corollary.analysis.strata import Stratum
from corollary.core import logic, plans
from corollary.core.pipeline import AntiProbe, Filter, Pipeline, Probe, Reference, bound_columns
from corollary.core.program import NormalProgram
from corollary.core.states import State
from corollary.core.statistics import Statistics
from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.maintain import tabling
from corollary.maintain.algorithms.answer_descent import AnswerDescent
from corollary.maintain.sip import Goal, sip
from corollary.maintain.tail_calls import own_position

GOAL_RELATION = plans.working_relation("", "goal")


def answer_goal(
    program: NormalProgram,
    goal: logic.Literal,
    statistics: Statistics,
    is_readable: Callable[[str], bool],
    state: State = State.NEW,
    *,
    calls: logic.Literal | None = None,
    answers: str = GOAL_RELATION,
) -> plans.Plan:
    """Return the plan that answers a goal, where some derived relations can be read as stored.

    Args:
        program: its rules.
        goal: the query.
        statistics: of the relations.
        is_readable: whether a relation can be read, and need not be derived.
        state: of the data.
        calls: a literal of a relation with values for variables of the goal, to ask many goals at
            once. Its first column is the number of a goal; answers begin with it.
        answers: the relation that gets the answers.
    """
    types = {name: relation.types for name, relation in program.relations.items()}

    def is_available(source: Reference) -> bool:
        return plans.WORKING_SEPARATOR in source.relation or is_readable(source.relation)

    tables = tabling.CallTables(
        {state: program}, statistics, types, is_available, lambda _: state is State.NEW
    )
    origin = logic.Origin(f"the goal {goal.relation}")
    bound: dict[str, logic.Variable] = {}
    asking: list[Goal] = []
    if calls is not None:
        bound = {each.name: each for each in calls.slots if isinstance(each, logic.Variable)}
        types[calls.relation] = tuple(map(_type, calls.slots))
        asking = [Goal(calls, Reference(calls.relation))]
    columns = dict(list(bound.items())[:1])
    for slot in goal.slots:
        if isinstance(slot, logic.Variable) and slot.name not in bound:
            columns.setdefault(slot.name, slot)
    head = tuple(columns.values())
    types[answers] = tuple(map(_type, head))
    steps: list[plans.Step] = []
    source = Reference(goal.relation, state)
    if not is_readable(goal.relation):
        node = tables.adorn(goal.relation, bound_columns(goal.slots, bound), state)
        arguments = tuple(
            slot
            for column in node.bound
            if isinstance(slot := goal.slots[column], logic.Constant | logic.Variable)
        )
        asked = Pipeline((), arguments, origin)
        if asking:
            asked = sip(arguments, asking, (), origin, statistics)
        steps = tables.call(node, [asked])
        source = Reference(node.answers)
    goals = [*asking, Goal(goal, source)]
    lead = asking[0] if asking else None
    steps.append(plans.Derive(answers, (sip(head, goals, (), origin, statistics, lead=lead),)))
    every = {plans.MAIN: tuple(steps), **solve_procedures(tables)}
    return plans.Plan(every, types, orders(plans.pipelines_of(plans.Plan(every, types))))


def solve_procedures(tables: tabling.CallTables) -> dict[str, tuple[plans.Step, ...]]:
    """Return the procedures that answer all new calls, one for each stratum and state."""
    made: dict[str, tuple[plans.Step, ...]] = {}
    # Making one procedure may adorn relations of the strata below, and those of OLD may call tables
    # of NEW that both states share: so OLD is first, and upper strata come before lower ones.
    for state in (State.OLD, State.NEW):
        for stratum in reversed(tables.strata.get(state, ())):
            if tables.adorned_of(stratum, state):
                steps = tuple(_solve_stratum(stratum, state, tables))
                made[tabling.solve_procedure_name(stratum, state)] = steps
                for node in tables.adorned_of(stratum, state):
                    if tables.is_tail_recursive(node):
                        tail_steps = tuple(_solve_tail_calls(stratum, node, tables))
                        made[tabling.tail_procedure_name(node)] = tail_steps
    return made


def _type(slot: logic.Slot) -> Type:
    assert not isinstance(slot, logic.Wildcard)
    assert slot.type is not None
    return slot.type


@dataclass(slots=True)
class _Layer:
    """The procedure of a stratum under construction.

    Attributes:
        below: the steps that call lower strata.
        asks: the pipelines that make new calls of each adorned relation of the stratum.
        finds: the pipelines that find its new answers.
        judges: where only the best tuples count, the rules over them: they decide on errors.
    """

    stratum: Stratum
    state: State
    tables: tabling.CallTables
    below: list[plans.Step] = field(default_factory=list)
    asks: dict[tabling.AdornedRelation, list[Pipeline]] = field(default_factory=dict)
    finds: dict[tabling.AdornedRelation, list[Pipeline]] = field(default_factory=dict)
    judges: dict[tabling.AdornedRelation, list[Pipeline]] = field(default_factory=dict)
    descent: AnswerDescent = field(init=False)

    def __post_init__(self) -> None:
        self.descent = AnswerDescent(self.stratum, self.tables)

    def add(self, rule: logic.Rule, node: tabling.AdornedRelation) -> None:
        """Add the pipelines of one rule when it is called as `node`."""
        tables = self.tables
        call = logic.Literal(node.calls, tuple(rule.head.slots[column] for column in node.bound))
        goals = [Goal(call, Reference(node.calls)), *tables.cheapest_first(rule, self.state)]
        head = logic.head_arguments(rule)
        ordered = sip(
            head,
            goals,
            rule.conditions,
            rule.origin,
            tables.statistics,
            lead=goals[0],
            is_asked=lambda source: not self._is_available(source),
        )

        def ask(stage: Probe | AntiProbe, items: list[Goal | logic.Condition]) -> Reference:
            callee, arguments = tabling.callee_and_arguments(stage, tables)
            prefix = tabling.drop_fallible_conditions(items, arguments)
            pipelines = [
                replace(each, judge=()) for each in self._variants(prefix, arguments, rule, node)
            ]
            is_own = stage.source.relation in self.stratum.members
            if is_own and not tables.is_tail_recursive(callee):
                self.asks.setdefault(callee, []).extend(pipelines)
            else:
                self.below += tables.call(callee, pipelines)
            return Reference(callee.answers)

        items = tabling.resolve_calls(ordered.stages, self._is_available, ask)
        found = self._variants(items, head, rule, node)
        if self.stratum.subsumption:
            whole = sip(head, *tabling.split_body(items), rule.origin, tables.statistics)
            self.judges.setdefault(node, []).append(whole)
            self.descent.add(rule, node, *tabling.split_body(items))
            found = (replace(each, judge=(), is_deferred=True) for each in found)
        elif self.state is State.OLD:  # errors in OLD were judged when it was NEW
            found = (each if rule.is_lenient else replace(each, judge=()) for each in found)
        self.finds.setdefault(node, []).extend(found)

    def _variants(
        self,
        items: list[Goal | logic.Condition],
        head: tuple[logic.Variable | logic.Constant, ...],
        rule: logic.Rule,
        node: tabling.AdornedRelation,
    ) -> Iterator[Pipeline]:
        """Yield the semi-naive variants, led by the calls and by each literal of the stratum."""
        goals, conditions = tabling.split_body(items)
        members = {node.calls, *self.stratum.relations}
        positions = [
            at
            for at, goal in enumerate(goals)
            if goal.literal.relation in members
            and not self._is_stored(goal)
            and goal.source.relation not in self._complete
        ]
        for position in positions:
            stated = list(goals)
            for at in positions:
                state = State.ADDED if at == position else State.NEW if at < position else State.OLD
                stated[at] = Goal(goals[at].literal, Reference(goals[at].source.relation, state))
            yield sip(
                head,
                stated,
                conditions,
                rule.origin,
                self.tables.statistics,
                lead=stated[position],
                is_lenient=rule.is_lenient,
            )

    def _is_available(self, source: Reference) -> bool:
        """Whether a literal is read as stored; the stratum's own NEW may still be incomplete."""
        is_own = source.relation in self.stratum.members and self.state is State.NEW
        return not is_own and self.tables.is_available(source)

    @property
    def _complete(self) -> set[str]:
        """The answers of tail calls: like those of lower strata, complete when they are read."""
        nodes = self.tables.adorned_of(self.stratum, self.state)
        return {node.answers for node in nodes if self.tables.is_tail_recursive(node)}

    def _is_stored(self, goal: Goal) -> bool:
        """Whether a literal of the stratum is read as stored, without a call."""
        return goal.source.relation == goal.literal.relation in self.stratum.members


def _solve_stratum(stratum: Stratum, state: State, tables: tabling.CallTables) -> list[plans.Step]:
    """Return the loop that answers all new calls of a stratum."""
    layer = _Layer(stratum, state, tables)
    aggregated = {each.relation: each for each in stratum.aggregations}
    every = tables.adorned_of(stratum, state)
    for node in every:  # the list grows while rules call each other
        if tables.is_tail_recursive(node):
            continue
        if node.relation in aggregated:
            layer.below += _aggregate(node, aggregated[node.relation], tables)
        for rule in stratum.rules_by_head.get(node.relation, ()):
            layer.add(rule, node)
    nodes = [node for node in every if not tables.is_tail_recursive(node)]
    derive: list[plans.Step] = [
        plans.Derive(node.new_calls, tuple(layer.asks.get(node, ())), (Reference(node.calls),))
        for node in nodes
    ]
    derive += [
        plans.Derive(node.new_answers, tuple(layer.finds.get(node, ())), (Reference(node.answers),))
        for node in nodes
        if node.relation not in aggregated
    ]
    derive += [step for node in nodes for step in _improve(node, stratum, tables)]
    extend: list[plans.Step] = [plans.Extend(node.calls, node.new_calls) for node in nodes]
    extend += [plans.Extend(node.answers, node.new_answers) for node in nodes]
    fresh = [Reference(node.calls, State.ADDED) for node in nodes]
    if stratum.is_recursive:
        fresh += [Reference(node.answers, State.ADDED) for node in nodes]
    relations = tables.programs[state].relations
    limits = tuple(
        (node.answers, limit)
        for node in nodes
        if (limit := relations[node.relation].limit) is not None
    )
    opened = [step for node in nodes for step in _open(node, every, tables)]
    opened += layer.descent.before(nodes)
    extend += layer.descent.inside(nodes)
    loop = plans.Loop((*layer.below, *derive, *extend), tuple(fresh), limits)
    if not stratum.subsumption or state is State.OLD:
        return [*opened, loop]
    judged = [plans.Derive(node.new_answers, tuple(layer.judges.get(node, ()))) for node in nodes]
    empty = plans.Clear(tuple(node.new_answers for node in nodes))
    return [*opened, loop, plans.Judge((*judged, empty))]


def _improve(
    node: tabling.AdornedRelation, stratum: Stratum, tables: tabling.CallTables
) -> list[plans.Step]:
    """Return the steps that leave the best new answers, and take out those that they cover."""
    order = stratum.subsumption.get(node.relation)
    if order is None:
        return []
    types = tables.types[node.answers]
    found, rivals, beaten = (
        plans.working_relation(node.name, role) for role in ("derived", "rival", "beaten")
    )
    tables.types |= dict.fromkeys((found, rivals, beaten), types)
    keys = order.keys(node.arity)
    columns = tuple(logic.Variable(f"c{at}", type_) for at, type_ in enumerate(types))
    others = tuple(
        each if at in keys else logic.Variable(f"new{at}", each.type)
        for at, each in enumerate(columns)
    )
    known = Probe(Reference(node.answers), columns, keys)
    filters = tuple(Filter(each) for each in order.covers(others, columns))
    lead, best = Probe(Reference(found), others, ()), Probe(Reference(node.new_answers), others, ())
    return [
        plans.Derive(found, (Pipeline((best,), others, logic.NO_RULE),)),
        plans.Derive(rivals, (Pipeline((lead, known), columns, logic.NO_RULE),)),
        plans.Improve(node.new_answers, found, rivals, order, node.arity),
        plans.Derive(beaten, (Pipeline((best, known, *filters), columns, logic.NO_RULE),)),
        plans.Remove(node.answers, beaten),
    ]


def _solve_tail_calls(
    stratum: Stratum, node: tabling.AdornedRelation, tables: tabling.CallTables
) -> list[plans.Step]:
    """Return the steps that answer the new calls of a relation that ends in calls of itself.

    What a tail call reaches is followed no further where it is a call that was answered before.
    """
    roots, columns = (
        tuple(logic.Variable(f"{name}'{at}", type_) for at, type_ in enumerate(types))
        for name, types in (("root", tables.types[node.calls]), ("c", tables.types[node.answers]))
    )
    answered = Reference(node.calls, State.OLD)
    in_loop, after_loop = list[plans.Step](), list[plans.Step]()
    reach, find = list[Pipeline](), list[Pipeline]()
    for rule in stratum.rules:
        at = own_position(rule, node.relation)
        slots = tuple(rule.head.slots[column] for column in node.bound)
        state = State.NEW if at is None else State.ADDED
        body = [Goal(logic.Literal(node.tails, (*roots, *slots)), Reference(node.tails, state))]
        body += [
            Goal(each, Reference(each.relation, node.state))
            for place, each in enumerate(rule.literals)
            if place != at
        ]
        if at is None:
            head = _with_roots(logic.head_arguments(rule), roots, node)
            found = _call_below(rule, body, head, after_loop, tables)
            is_judged = node.state is State.NEW or rule.is_lenient
            find.append(found if is_judged else replace(found, judge=()))
        else:
            passed = tuple(
                slot
                for column in node.bound
                if isinstance(
                    slot := rule.literals[at].slots[column], logic.Variable | logic.Constant
                )
            )
            body.append(Goal(logic.Literal(node.calls, slots, negated=True), answered))
            reach.append(_call_below(rule, body, (*roots, *passed), in_loop, tables))
    arguments = tuple(columns[column] for column in node.bound)
    known = (
        Probe(Reference(node.tails), (*roots, *arguments), ()),
        Probe(answered, arguments, tuple(range(len(arguments)))),
        Probe(Reference(node.answers), columns, node.bound),
    )
    find.append(Pipeline(known, _with_roots(columns, roots, node), logic.NO_RULE))
    called = Probe(Reference(node.calls, State.ADDED), roots, ())
    next_round = plans.Derive(node.new_tails, tuple(reach), (Reference(node.tails),))
    extend = plans.Extend(node.tails, node.new_tails)
    return [
        plans.Extend(node.calls, node.new_calls),
        plans.Clear((node.tails,)),
        plans.Derive(node.new_tails, (Pipeline((called,), (*roots, *roots), logic.NO_RULE),)),
        extend,
        plans.Loop((*in_loop, next_round, extend), (Reference(node.tails, State.ADDED),)),
        *after_loop,
        plans.Derive(node.new_answers, tuple(find), (Reference(node.answers),)),
        plans.Extend(node.answers, node.new_answers),
    ]


def _with_roots(
    head: tuple[logic.Variable | logic.Constant, ...],
    roots: tuple[logic.Variable, ...],
    node: tabling.AdornedRelation,
) -> tuple[logic.Variable | logic.Constant, ...]:
    """Return a head with the arguments of the call that it answers."""
    by_column = dict(zip(node.bound, roots, strict=True))
    return tuple(by_column.get(column, slot) for column, slot in enumerate(head))


def _call_below(
    rule: logic.Rule,
    body: list[Goal],
    head: tuple[logic.Variable | logic.Constant, ...],
    steps: list[plans.Step],
    tables: tabling.CallTables,
) -> Pipeline:
    """Return the pipeline of a body, led by its first literal; append the calls that it needs."""

    def order(
        slots: tuple[logic.Variable | logic.Constant, ...], items: list[Goal | logic.Condition]
    ) -> Pipeline:
        goals, conditions = tabling.split_body(items)
        return sip(
            slots,
            goals,
            conditions,
            rule.origin,
            tables.statistics,
            lead=goals[0],
            is_lenient=rule.is_lenient,
        )

    def ask(stage: Probe | AntiProbe, items: list[Goal | logic.Condition]) -> Reference:
        callee, arguments = tabling.callee_and_arguments(stage, tables)
        prefix = order(arguments, tabling.drop_fallible_conditions(items, arguments))
        steps.extend(tables.call(callee, [replace(prefix, judge=())]))
        return Reference(callee.answers)

    stages = order(head, [*body, *rule.conditions]).stages
    return order(head, tabling.resolve_calls(stages, tables.is_available, ask))


def _open(
    node: tabling.AdornedRelation, nodes: list[tabling.AdornedRelation], tables: tabling.CallTables
) -> list[plans.Step]:
    """Return the steps that open new calls.

    A call that a more general, complete one subsumes takes over its answers instead.
    """
    types = tables.types[node.answers]
    columns = tuple(logic.Variable(f"c{at}", type_) for at, type_ in enumerate(types))
    arguments = tuple(columns[at] for at in node.bound)
    origin = logic.NO_RULE
    asked = Probe(Reference(node.new_calls), arguments, ())
    found, known = list[Pipeline](), list[Pipeline]()
    for general in nodes:
        if general.relation == node.relation and set(general.bound) < set(node.bound):
            bound = tuple(columns[at] for at in general.bound)
            complete = Probe(Reference(general.calls), bound, tuple(range(len(bound))))
            answers = Probe(Reference(general.answers), columns, node.bound)
            found.append(Pipeline((asked, complete, answers), columns, origin))
            known.append(Pipeline((asked, complete), arguments, origin))
    if not known:
        return [plans.Extend(node.calls, node.new_calls)]
    return [
        plans.Derive(node.new_answers, tuple(found), (Reference(node.answers),)),
        plans.Extend(node.answers, node.new_answers),
        plans.Derive(node.answered_calls, tuple(known)),
        plans.Extend(node.calls, node.answered_calls),
        plans.Derive(
            node.unanswered_calls,
            (Pipeline((asked,), arguments, origin),),
            (Reference(node.answered_calls),),
        ),
        plans.Extend(node.calls, node.unanswered_calls),
        plans.Clear((node.new_calls,)),
    ]


def _aggregate(
    node: tabling.AdornedRelation, aggregation: logic.AnyAggregation, tables: tabling.CallTables
) -> list[plans.Step]:
    """Return the steps that answer calls of an aggregate: solve its body, then aggregate."""
    body = tables.programs[node.state].relations[aggregation.body]
    variables = tuple(
        logic.Variable(f"c{column}", type_) for column, type_ in enumerate(body.types)
    )
    columns = tuple(aggregation.groups[aggregation.keys.index(at)] for at in node.bound)
    keys = tuple(variables[column] for column in columns)
    call = Probe(Reference(node.calls, State.ADDED), keys, ())
    source, steps = Reference(aggregation.body, node.state), list[plans.Step]()
    if not tables.is_available(source):
        asked = tables.adorn(aggregation.body, columns, node.state)
        arguments = tuple(variables[column] for column in asked.bound)
        steps = tables.call(asked, [Pipeline((call,), arguments, aggregation.origin)])
        source = Reference(asked.answers)
    rows = plans.working_relation(node.name, "rows")
    tables.types[rows] = body.types
    read = Probe(source, variables, tuple(sorted(columns)))
    pipeline = Pipeline((call, read), variables, aggregation.origin)
    known = (Reference(node.answers),)
    return [
        *steps,
        plans.Derive(rows, (pipeline,)),
        plans.aggregation_step(node.new_answers, aggregation, Reference(rows), known),
    ]
