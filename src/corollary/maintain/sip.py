"""Sideways information passing: the order in which the literals of a body are probed.

"Bound is easier": fully bound literals first, then more bound columns, then the smaller estimated
fan-out; a literal that would be asked about a computed value comes after all others. Negated
literals and conditions follow as soon as all their variables are bound, an equation as soon as it
can compute its unbound side. A record that is bound before its fields is taken apart at once.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from heapq import heappop, heappush

from corollary.core import logic
from corollary.core.engine import check_deadline
from corollary.core.functors.catalog import can_fail
from corollary.core.pipeline import (
    AntiProbe,
    Compute,
    Extreme,
    Filter,
    Pipeline,
    Probe,
    Reference,
    Stage,
    bound_columns,
)
from corollary.core.records.record_terms import FIELD_OF, RECORD_OF
from corollary.core.statistics import Statistics
from corollary.core.types import NUMBER, Type
from corollary.data_class import dataclass


@dataclass(frozen=True, slots=True)
class Goal:
    """A literal of a body, and the relation and state that it is read from.

    Attributes:
        extreme: of which only one match is needed for each row (see `Probe`).
    """

    literal: logic.Literal
    source: Reference
    extreme: Extreme | None = None


Cost = tuple[bool, bool, int, float]


@dataclass(slots=True)
class _Pattern:
    """A record that is taken apart, and what its fields are equal to, by their numbers."""

    record: logic.Variable
    branch: logic.Constant
    fields: dict[int, logic.Expression] = field(default_factory=dict)

    def made(self) -> logic.Functor | None:
        """Return the record made of its fields; None if some of them may have any value."""
        type_ = self.record.type
        assert type_ is not None
        assert type_.record is not None
        count = len(type_.record.branches[str(self.branch.value)].types)
        if len(self.fields) < count or any(map(can_fail, self.fields.values())):
            return None
        arguments = (self.branch, *(self.fields[at] for at in range(count)))
        return logic.Functor(RECORD_OF, arguments, type_)


@dataclass(slots=True)
class _WaitingCondition:
    """A condition that has no place yet, its number in the body, and its unbound variables."""

    condition: logic.Condition
    number: int
    unbound: set[str]
    is_fallible: bool
    is_placed: bool = False

    def assignment(self) -> tuple[logic.Variable, logic.Expression] | None:
        """Return its one unbound variable and what computes it, if the other side does."""
        condition = self.condition
        if len(self.unbound) == 1 and condition.operator in ("=", "is"):
            sides = (condition.left, condition.right)
            for one, other in (sides, sides[::-1]):
                if isinstance(one, logic.Variable) and one.name in self.unbound:
                    needed = {each.name for each in logic.variables_of(other)}
                    return None if one.name in needed else (one, other)
        return None


@dataclass(slots=True)
class _WaitingGoal:
    """A literal that has no place yet, its number in the body, and its unbound variables.

    Attributes:
        version: how often its cost has changed; a heap may hold former costs.
    """

    goal: Goal
    number: int
    unbound: set[str]
    version: int = 0
    is_placed: bool = False


class _Ordering:
    """The stages of a pipeline under construction, and the variables that they bind.

    What waits is found by its unbound variables, and what is ready is in heaps, first come in the
    body first: so the time is near-linear in the length of the body.
    """

    def __init__(self, statistics: Statistics, is_asked: Callable[[Reference], bool]) -> None:
        self.stages: list[Stage] = []
        self._statistics = statistics
        self._is_asked = is_asked
        self._bound: set[str] = set()
        self._computed: set[str] = set()
        self._waiting: dict[str, list[_WaitingCondition | _WaitingGoal]] = {}
        self._conditions: list[_WaitingCondition] = []
        self._patterns: dict[str, _Pattern] = {}
        self._records: dict[str, list[tuple[logic.Variable, logic.Functor]]] = {}
        self._goals: list[_WaitingGoal] = []
        self._tests: list[int] = []
        self._absent: list[int] = []
        self._assignments: list[int] = []
        self._fallible: list[int] = []
        self._costs: list[tuple[Cost, int, int]] = []

    def add(self, goals: Iterable[Goal], conditions: Iterable[logic.Condition]) -> None:
        """Add literals and conditions that are to be placed."""
        for condition in conditions:
            unbound = logic.variable_names(condition) - self._bound
            number = len(self._conditions)
            self._conditions.append(
                _WaitingCondition(condition, number, unbound, has_fault(condition))
            )
            self._wait(self._conditions[-1])
            made = _made_record(condition)
            if made is not None:
                variable, record = made
                self._records.setdefault(variable.name, []).append((variable, record))
                if variable.name in self._bound:
                    self._take_apart(variable, record)
            self._note_field(condition)
        self._make_records()
        for goal in goals:
            unbound = logic.variable_names(goal.literal) - self._bound
            self._goals.append(_WaitingGoal(goal, len(self._goals), unbound))
            self._wait(self._goals[-1])

    def _wait(self, item: _WaitingCondition | _WaitingGoal) -> None:
        for name in item.unbound:
            self._waiting.setdefault(name, []).append(item)
        self._rank(item)

    def _rank(self, item: _WaitingCondition | _WaitingGoal) -> None:
        """Note whether a condition or negated literal is ready, or what a literal costs."""
        if isinstance(item, _WaitingGoal):
            if not item.goal.literal.negated:
                item.version += 1
                heappush(self._costs, (self._cost(item.goal), item.number, item.version))
            elif not item.unbound:
                heappush(self._absent, item.number)
        elif not item.unbound:
            heappush(self._fallible if item.is_fallible else self._tests, item.number)
        elif item.assignment() is not None:
            heappush(self._fallible if item.is_fallible else self._assignments, item.number)

    def _cost(self, goal: Goal) -> Cost:
        if self._statistics.has_fixed_order:
            return False, False, 0, 0.0
        slots = goal.literal.slots
        columns = bound_columns(slots, self._bound)
        # The answers to calls of a relation fan out as the relation does.
        fanout = self._statistics.fanout(goal.literal.relation, columns)
        # What is read limits what is asked: questions about `x + 1` may go on without end.
        is_new = self._is_asked(goal.source) and any(
            isinstance(slot := slots[column], logic.Variable) and slot.name in self._computed
            for column in columns
        )
        return is_new, len(columns) < len(slots), -len(columns), fanout

    def _bind(self, names: Iterable[str]) -> None:
        new = [name for name in names if name not in self._bound]
        self._bound.update(new)
        for name in new:
            for item in self._waiting.pop(name, ()):
                item.unbound.discard(name)
                if not item.is_placed:
                    self._rank(item)
        for name in new:
            for variable, record in self._records.get(name, ()):
                self._take_apart(variable, record)
        self._make_records()

    def _note_field(self, condition: logic.Condition) -> None:
        """Note what a field of a record is equal to."""
        if condition.operator != "=":
            return
        for one, other in ((condition.left, condition.right), (condition.right, condition.left)):
            match one:
                case logic.Functor(
                    name=name,
                    arguments=(
                        logic.Variable() as record,
                        logic.Constant() as branch,
                        logic.Constant(value=int() as at),
                    ),
                ) if name == FIELD_OF:
                    known = self._patterns.setdefault(record.name, _Pattern(record, branch))
                    if known.branch == branch:
                        known.fields.setdefault(at, other)
                case _:
                    pass

    def _make_records(self) -> None:
        """Make each record all of whose fields are bound: it can be looked up then.

        Not where relations are asked: questions about ever larger records would have no end.
        """
        if self._is_asked is not _reads:
            return
        for pattern in list(self._patterns.values()):
            record = pattern.record
            made = pattern.made()
            if record.name in self._bound or made is None:
                continue
            if all(each.name in self._bound for each in logic.variables_of(made)):
                del self._patterns[record.name]
                self.stages.append(Compute(record, made))
                self._bind((record.name,))

    def _take_apart(self, variable: logic.Variable, record: logic.Functor) -> None:
        """Bind the variables of `r = [x, y]` where `r` is bound first: they are its fields."""
        branch, *arguments = record.arguments
        for at, (argument, type_) in enumerate(zip(arguments, _field_types(record), strict=True)):
            place = (variable, branch, logic.Constant(at, NUMBER))
            field_value = logic.Functor(FIELD_OF, place, type_.with_null(True))
            is_unbound = any(each.name not in self._bound for each in logic.variables_of(argument))
            if isinstance(argument, logic.Variable) and is_unbound:
                self.stages.append(Compute(argument, field_value))
                self._bind((argument.name,))
            elif isinstance(argument, logic.Functor) and argument.name == RECORD_OF and is_unbound:
                inner = logic.Variable(f"{variable.name}.{at}'", type_)
                self.stages.append(Compute(inner, field_value))
                self._take_apart(inner, argument)

    def probe(self, goal: Goal) -> None:
        """Place a literal."""
        slots = goal.literal.slots
        names = logic.variable_names(goal.literal)
        self.stages.append(
            Probe(goal.source, slots, bound_columns(slots, self._bound), goal.extreme)
        )
        if not self._is_asked(goal.source):
            self._computed -= names
        self._bind(names)

    def place_all(self) -> None:
        """Place everything, the cheapest literal first."""
        self.place_ready()
        while self._costs:
            _, number, version = heappop(self._costs)
            waiting = self._goals[number]
            if waiting.version == version and not waiting.is_placed:
                check_deadline()
                waiting.is_placed = True
                self.probe(waiting.goal)
                self.place_ready()

    def place_ready(self) -> None:
        """Place every negated literal and condition that is ready.

        Tests that always have a value come first: fewer rows reach the expressions that may fail.
        """
        while True:
            if self._tests:
                self._place(self._conditions[heappop(self._tests)])
            elif self._absent:
                waiting = self._goals[heappop(self._absent)]
                waiting.is_placed = True
                self.stages.append(AntiProbe(waiting.goal.source, waiting.goal.literal.slots))
            elif self._assignments:
                self._place(self._conditions[heappop(self._assignments)])
            elif self._fallible:
                self._place(self._conditions[heappop(self._fallible)])
            else:
                return

    def _place(self, waiting: _WaitingCondition) -> None:
        if waiting.is_placed:
            return
        waiting.is_placed = True
        condition = waiting.condition
        assignment = waiting.assignment()
        if assignment is not None:
            variable, expression = assignment
            self.stages.append(Compute(variable, expression, condition.operator == "is"))
            if isinstance(expression, logic.Functor):
                self._computed.add(variable.name)
            self._bind((variable.name,))
            return
        generator = logic.range_of(condition)
        if generator is None:
            self.stages.append(Filter(condition))
            return
        # `range` makes rows, so a bound variable is compared with each of its values.
        bound, functor = generator
        value = logic.Variable(f"{bound.name}'", bound.type)
        self.stages.append(Compute(value, functor))
        self.stages.append(Filter(logic.Condition("=", bound, value)))

    def is_complete(self) -> bool:
        """Whether everything has its place."""
        return all(each.is_placed for each in self._conditions) and all(
            each.is_placed for each in self._goals
        )


def _made_record(condition: logic.Condition) -> tuple[logic.Variable, logic.Functor] | None:
    """Return the variable and the record of `r = [x, y]`, if a condition is one."""
    if condition.operator in logic.EQUATIONS:
        for one, other in ((condition.left, condition.right), (condition.right, condition.left)):
            is_record = isinstance(other, logic.Functor) and other.name == RECORD_OF
            if is_record and isinstance(one, logic.Variable):
                assert isinstance(other, logic.Functor)
                return one, other
    return None


def _field_types(record: logic.Functor) -> tuple[Type, ...]:
    branch = record.arguments[0]
    assert isinstance(branch, logic.Constant)
    assert record.type is not None
    assert record.type.record is not None
    return record.type.record.branches[str(branch.value)].types


def _reads(_: Reference) -> bool:
    return False


def sip(
    head: tuple[logic.Variable | logic.Constant, ...],
    goals: Sequence[Goal],
    conditions: Sequence[logic.Condition],
    origin: logic.Origin,
    statistics: Statistics,
    *,
    lead: Goal | None = None,
    order: Sequence[Goal] = (),
    is_lenient: bool = False,
    is_asked: Callable[[Reference], bool] = _reads,
) -> Pipeline:
    """Return the pipeline of a body.

    Args:
        head: what it derives.
        goals: its literals.
        conditions: its conditions.
        origin: its rule.
        statistics: of the relations.
        lead: the literal that is probed first, the others as variables get bound.
        order: all positive literals, if the user has said in which order they are probed.
        is_lenient: see `Pipeline`.
        is_asked: whether a relation is not read: its bound arguments are questions about it.
    """
    ordering = _Ordering(statistics, is_asked)
    others = list(goals)
    if order:
        others = [goal for goal in goals if goal.literal.negated]
    elif lead is not None:
        others.remove(lead)
        ordering.probe(lead)
    ordering.add(others, conditions)
    for goal in order:
        ordering.place_ready()
        ordering.probe(goal)
    ordering.place_all()
    assert ordering.is_complete(), f"unsafe rule reached planning: {origin.text}"
    judge: tuple[Stage, ...] = ()
    if any(has_fault(condition) for condition in conditions):
        judge = _judge(ordering.stages, goals, conditions, statistics)
    return Pipeline(tuple(ordering.stages), head, origin, judge, is_lenient)


def _judge(
    stages: Iterable[Stage],
    goals: Sequence[Goal],
    conditions: Sequence[logic.Condition],
    statistics: Statistics,
) -> tuple[Stage, ...]:
    """Return the same body with negated literals and fallible conditions after all others.

    An expression without a value is an error only in rule instances whose other literals hold.
    """
    ordering = _Ordering(statistics, _reads)
    ordering.add((), (condition for condition in conditions if not has_fault(condition)))
    by_place = {
        (goal.source, goal.literal.slots): goal for goal in goals if not goal.literal.negated
    }
    for stage in stages:
        if isinstance(stage, Probe):
            ordering.place_ready()
            ordering.probe(by_place[stage.source, stage.slots])
    ordering.place_ready()
    ordering.add(
        (goal for goal in goals if goal.literal.negated),
        (condition for condition in conditions if has_fault(condition)),
    )
    ordering.place_ready()
    return tuple(ordering.stages)


def has_fault(condition: logic.Condition) -> bool:
    """Whether the condition holds an expression that may have no value."""
    if condition.operator in ("match", "!match"):
        return True
    return any(can_fail(side) for side in (condition.left, condition.right))
