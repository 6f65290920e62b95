"""Tables of calls and answers, for tabled evaluation (`solve`).

There is one table of calls and one of answers for every relation, adornment and state that a plan
calls. A call is complete when the procedure of its stratum has ended; a complete call is never made
again, and one that a more general complete call subsumes is answered from its table.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import assert_never

from corollary.analysis.strata import Stratum, strata
from corollary.core.logic import Condition, Constant, Literal, Rule, Variable, variable_names
from corollary.core.pipeline import AntiProbe, Compute, Filter, Pipeline, Probe, Reference, Stage
from corollary.core.plans import Call, Derive, Step, procedure_name, working_relation
from corollary.core.program import NormalProgram
from corollary.core.states import State
from corollary.core.statistics import Statistics
from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.maintain.sip import Goal, has_fault, sip
from corollary.maintain.tail_calls import is_tail_recursive


class _Table:
    """The working relation with a role for an adorned relation."""

    __slots__ = ("_role",)

    def __init__(self, role: str) -> None:
        self._role = role

    def __get__(self, node: "AdornedRelation", _owner: object = None) -> str:
        return working_relation(node.name, self._role)


@dataclass(frozen=True, slots=True)
class AdornedRelation:
    """A derived relation with the columns that its calls bind, in a state."""

    relation: str
    bound: tuple[int, ...]
    arity: int
    state: State = State.NEW

    calls = _Table("calls")
    new_calls = _Table("asked")
    answered_calls = _Table("known")
    """New calls that a more general call has answered."""
    unanswered_calls = _Table("opened")
    """New calls that have to be evaluated."""
    answers = _Table("answers")
    new_answers = _Table("found")
    tails = _Table("tails")
    """Calls with what is reached from them by tail calls."""
    new_tails = _Table("next")

    @property
    def name(self) -> str:
        """The name, as in `link^bf`."""
        pattern = "".join("b" if at in self.bound else "f" for at in range(self.arity))
        return f"{self.relation}^{pattern}{'@old' if self.state is State.OLD else ''}"


@dataclass(slots=True)
class CallTables:
    """The tables of calls and answers that a plan needs, and the procedures that fill them.

    Attributes:
        programs: the rules of each state.
        types: the columns of all relations; those of the tables are added.
        is_available: whether a relation can be read in a state, without calls.
        is_shared: whether a relation is the same in both states.
    """

    programs: Mapping[State, NormalProgram]
    statistics: Statistics
    types: dict[str, tuple[Type, ...]]
    is_available: Callable[[Reference], bool]
    is_shared: Callable[[str], bool] = lambda _: True
    strata: dict[State, tuple[Stratum, ...]] = field(default_factory=dict)
    _stratum_of: dict[tuple[State, str], Stratum] = field(default_factory=dict)
    _nodes: dict[tuple[State, str], list[AdornedRelation]] = field(default_factory=dict)
    _generalised: dict[tuple[State, str, tuple[int, ...]], tuple[int, ...]] = field(
        default_factory=dict
    )
    _is_tail_recursive: dict[tuple[State, str, tuple[int, ...]], bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for state, program in self.programs.items():
            self.strata[state] = strata(program)
            for stratum in self.strata[state]:
                self._stratum_of |= {(state, name): stratum for name in stratum.relations}

    def adorn(self, relation: str, bound: Iterable[int], state: State) -> AdornedRelation:
        """Return an adorned relation, and register its tables with its stratum."""
        state = State.NEW if self.is_shared(relation) else state
        types = self.programs[state].relations[relation].types
        columns = self._callable(tuple(sorted(bound)), relation, state)
        columns = self._generalise(relation, columns, state)
        node = AdornedRelation(relation, columns, len(types), state)
        first = self._stratum_of[state, relation].relations[0]
        known = self._nodes.setdefault((state, first), [])
        if node not in known:
            known.append(node)
            arguments = tuple(types[column] for column in node.bound)
            calls = (node.calls, node.new_calls, node.answered_calls, node.unanswered_calls)
            self.types |= dict.fromkeys(calls, arguments)
            self.types |= {node.answers: types, node.new_answers: types}
            if self.is_tail_recursive(node):
                self.types |= dict.fromkeys((node.tails, node.new_tails), 2 * arguments)
        return node

    def stratum_of(self, relation: str, state: State) -> Stratum:
        """Return the stratum of a derived relation."""
        return self._stratum_of[state, relation]

    def is_tail_recursive(self, node: AdornedRelation) -> bool:
        """Whether a relation calls itself by tail calls: it has a procedure of its own then."""
        key = node.state, node.relation, node.bound
        if key not in self._is_tail_recursive:
            stratum = self._stratum_of[node.state, node.relation]
            is_limited = self.programs[node.state].relations[node.relation].limit is not None
            self._is_tail_recursive[key] = (
                stratum.relations == (node.relation,)
                and not is_limited
                and not stratum.subsumption
                and is_tail_recursive(stratum.rules, node.relation, node.bound)
            )
        return self._is_tail_recursive[key]

    def _callable(self, bound: tuple[int, ...], relation: str, state: State) -> tuple[int, ...]:
        """Return the columns that a call may bind: only keys, where values are compared."""
        aggregations = self._stratum_of[state, relation].aggregations
        order = self._stratum_of[state, relation].subsumption.get(relation)
        if order is not None:
            keys = order.keys(len(self.programs[state].relations[relation].types))
            return tuple(column for column in bound if column in keys)
        for each in aggregations:
            if each.relation == relation:
                return tuple(column for column in bound if column in each.keys)
        return bound

    def _generalise(self, relation: str, bound: tuple[int, ...], state: State) -> tuple[int, ...]:
        """Return the columns of the most general call that one with these columns makes at once.

        Where a rule of sg(x, y), called with x and y, begins with sg(x, x1), all answers for x are
        computed anyway: so sg^bb is called as sg^bf.
        """
        key = state, relation, bound
        if key not in self._generalised:
            self._generalised[key] = bound
            for rule in self._stratum_of[state, relation].rules:
                if rule.head.relation == relation and (
                    first := self._first_call(rule, bound, state)
                ):
                    self._generalised[key] = self._generalise(relation, first, state)
                    break
        return self._generalised[key]

    def cheapest_first(self, rule: Rule, state: State) -> list[Goal]:
        """Return the literals of a rule: of two that are bound alike, a look-up precedes a call."""
        goals = [Goal(each, Reference(each.relation, state)) for each in rule.literals]
        if self.statistics.has_fixed_order:
            return goals
        own = self._stratum_of[state, rule.head.relation].relations
        return sorted(
            goals,
            key=lambda goal: goal.literal.relation in own or not self.is_available(goal.source),
        )

    def _first_call(self, rule: Rule, bound: tuple[int, ...], state: State) -> tuple[int, ...]:
        """Return the columns of the rule's own call that a rule begins with, if it is like that.

        The call has some of the arguments of the head, unchanged, and nothing is tested before it.
        """
        relation = rule.head.relation
        call = Goal(Literal("", tuple(rule.head.slots[at] for at in bound)), Reference(""))
        goals = [call, *self.cheapest_first(rule, state)]
        stages = sip((), goals, rule.conditions, rule.origin, self.statistics, lead=call).stages
        if len(stages) < 2 or not isinstance(stage := stages[1], Probe):
            return ()
        if stage.source.relation != relation or not set(stage.bound) < set(bound):
            return ()
        is_same = all(stage.slots[at] == rule.head.slots[at] for at in stage.bound)
        return stage.bound if is_same else ()

    def adorned_of(self, stratum: Stratum, state: State) -> list[AdornedRelation]:
        """Return the adorned relations of a stratum; the list grows while rules call each other."""
        return self._nodes.setdefault((state, stratum.relations[0]), [])

    def call(self, asked: AdornedRelation, pipelines: Iterable[Pipeline]) -> list[Step]:
        """Return the steps that make new calls and answer them all."""
        if self.is_tail_recursive(asked):
            procedure = tail_procedure_name(asked)
        else:
            stratum = self._stratum_of[asked.state, asked.relation]
            procedure = solve_procedure_name(stratum, asked.state)
        new = Derive(asked.new_calls, tuple(pipelines), (Reference(asked.calls),))
        return [new, Call(procedure)]

    def memo_relations(self) -> tuple[str, ...]:
        """Return the names of all tables that hold calls or answers."""
        nodes = [node for each in self._nodes.values() for node in each]
        return tuple(name for node in nodes for name in (node.new_calls, node.calls, node.answers))


def solve_procedure_name(stratum: Stratum, state: State) -> str:
    """Return the name of the procedure that answers the new calls of a stratum."""
    return procedure_name(stratum.relations, "solve old" if state is State.OLD else "solve")


def tail_procedure_name(node: AdornedRelation) -> str:
    """Return the name of the procedure that answers the new calls of one adorned relation."""
    return procedure_name((node.name,), "solve")


MakeCall = Callable[[Probe | AntiProbe, "list[Goal | Condition]"], Reference]
"""Makes the calls of a literal, given what precedes it; returns where the answers are."""


def resolve_calls(
    stages: Iterable[Stage], looks_up: Callable[[Reference], bool], ask: MakeCall
) -> list[Goal | Condition]:
    """Return a body in its SIP order, in which literals that cannot be read have been called."""
    items: list[Goal | Condition] = []
    for stage in stages:
        match stage:
            case Filter(condition=condition):
                items.append(condition)
            case Compute(variable=variable, expression=expression, accepts_null=lets_null):
                items.append(Condition("is" if lets_null else "=", variable, expression))
            case Probe(source=source) | AntiProbe(source=source):
                answers = source if looks_up(source) else ask(stage, items)
                negated = isinstance(stage, AntiProbe)
                items.append(Goal(Literal(source.relation, stage.slots, negated), answers))
            case _:
                assert_never(stage)
    return items


def callee_and_arguments(
    stage: Probe | AntiProbe, tables: CallTables
) -> tuple[AdornedRelation, tuple[Variable | Constant, ...]]:
    """Return the adorned relation that a literal calls, and the arguments of the call."""
    bound = stage.bound if isinstance(stage, Probe) else tuple(range(len(stage.slots)))
    asked = tables.adorn(stage.source.relation, bound, stage.source.state)
    arguments = tuple(
        slot for at in asked.bound if isinstance(slot := stage.slots[at], Variable | Constant)
    )
    return asked, arguments


def split_body(items: Iterable[Goal | Condition]) -> tuple[list[Goal], list[Condition]]:
    """Return the literals and the conditions of a body."""
    listed = list(items)
    goals = [item for item in listed if isinstance(item, Goal)]
    return goals, [item for item in listed if isinstance(item, Condition)]


def drop_fallible_conditions(
    items: list[Goal | Condition], arguments: tuple[Variable | Constant, ...]
) -> list[Goal | Condition]:
    """Return the body before a call without the conditions that may have no value.

    Only the whole rule can decide whether such a value is an error. A call may be more general than
    necessary, so conditions that merely restrict it are dropped; one that binds an argument stays,
    and makes no call where it has no value.
    """
    kept = list(items)
    used = {slot.name for slot in arguments if isinstance(slot, Variable)}
    for item in reversed(items):
        names = variable_names(item.literal if isinstance(item, Goal) else item)
        if isinstance(item, Condition) and has_fault(item):
            binds = item.left.name if isinstance(item.left, Variable) else None
            if item.operator not in ("=", "is") or binds not in used:
                kept.remove(item)
                continue
        used |= names
    return kept
