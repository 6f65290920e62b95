"""Sideways information passing: the order in which the literals of a body are probed.

"Bound is easier": fully bound literals first, then more bound columns, then the smaller estimated
fan-out. Negated literals and conditions follow as soon as all their variables are bound, an
equation as soon as it can compute its unbound side.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from corollary.core import logic
from corollary.core.functors import may_fail
from corollary.core.pipeline import (
    AntiProbe,
    Compute,
    Extreme,
    Filter,
    Pipeline,
    Probe,
    Reference,
    Stage,
)
from corollary.core.statistics import Statistics


@dataclass(frozen=True, slots=True)
class Goal:
    """A literal of a body, and the relation and state that it is read from.

    Attributes:
        extreme: of which only one match is needed for each row (see `Probe`).
    """

    literal: logic.Literal
    source: Reference
    extreme: Extreme | None = None


@dataclass(slots=True)
class _Ordering:
    """The stages of a pipeline under construction, and the variables that they bind."""

    statistics: Statistics
    bound: set[str] = field(default_factory=set)
    stages: list[Stage] = field(default_factory=list)

    def probe(self, goal: Goal) -> None:
        slots = goal.literal.slots
        columns = bound_columns(slots, self.bound)
        self.stages.append(Probe(goal.source, slots, columns, goal.extreme))
        self.bound |= logic.variable_names(goal.literal)

    def place_ready(self, negated: list[Goal], conditions: list[logic.Condition]) -> None:
        """Place every negated literal and condition that is ready.

        Tests that always have a value come first: fewer rows reach the expressions that may fail.
        """
        while True:
            ready = [each for each in conditions if self._is_ready(each)]
            tests = [each for each in ready if logic.variable_names(each) <= self.bound]
            certain = [each for each in tests if not has_fault(each)]
            absent = [each for each in negated if logic.variable_names(each.literal) <= self.bound]
            if certain:
                conditions.remove(certain[0])
                self.stages.append(Filter(certain[0]))
            elif absent:
                negated.remove(absent[0])
                self.stages.append(AntiProbe(absent[0].source, absent[0].literal.slots))
            elif ready:
                chosen = min(ready, key=has_fault)
                conditions.remove(chosen)
                self._place(chosen)
            else:
                return

    def _is_ready(self, condition: logic.Condition) -> bool:
        return (
            logic.variable_names(condition) <= self.bound or self._assignment(condition) is not None
        )

    def _assignment(
        self, condition: logic.Condition
    ) -> tuple[logic.Variable, logic.Expression] | None:
        if condition.operator in ("=", "is"):
            sides = (condition.left, condition.right)
            for one, other in (sides, sides[::-1]):
                needed = {each.name for each in logic.variables_of(other)}
                is_free = isinstance(one, logic.Variable) and one.name not in self.bound
                if is_free and needed <= self.bound:
                    assert isinstance(one, logic.Variable)
                    return one, other
        return None

    def _place(self, condition: logic.Condition) -> None:
        assignment = self._assignment(condition)
        if logic.variable_names(condition) <= self.bound or assignment is None:
            generator = logic.range_of(condition)
            if generator is None:
                self.stages.append(Filter(condition))
                return
            # `range` makes rows, so a bound variable is compared with each of its values.
            bound, functor = generator
            value = logic.Variable(f"{bound.name}'", bound.type)
            self.stages.append(Compute(value, functor))
            self.stages.append(Filter(logic.Condition("=", bound, value)))
            return
        variable, expression = assignment
        self.stages.append(Compute(variable, expression, condition.operator == "is"))
        self.bound.add(variable.name)

    def choose(self, goals: Sequence[Goal]) -> Goal:
        """Return the goal to probe next."""
        if self.statistics.has_fixed_order:
            return goals[0]

        def cost(goal: Goal) -> tuple[bool, int, float]:
            columns = bound_columns(goal.literal.slots, self.bound)
            # The answers to calls of a relation fan out as the relation does.
            fanout = self.statistics.fanout(goal.literal.relation, columns)
            return len(columns) < len(goal.literal.slots), -len(columns), fanout

        return min(goals, key=cost)


def sip(
    head: tuple[logic.Variable | logic.Constant, ...],
    goals: Sequence[Goal],
    conditions: Sequence[logic.Condition],
    origin: logic.Origin,
    statistics: Statistics,
    *,
    lead: Goal | None = None,
    is_lenient: bool = False,
) -> Pipeline:
    """Return the pipeline of a body; `lead` is probed first, the others as variables get bound."""
    ordering = _Ordering(statistics)
    remaining = [goal for goal in goals if not goal.literal.negated]
    negated = [goal for goal in goals if goal.literal.negated]
    open_conditions = list(conditions)
    if lead is not None:
        remaining.remove(lead)
        ordering.probe(lead)
    ordering.place_ready(negated, open_conditions)
    while remaining:
        goal = ordering.choose(remaining)
        remaining.remove(goal)
        ordering.probe(goal)
        ordering.place_ready(negated, open_conditions)
    assert not [*negated, *open_conditions], f"unsafe rule reached planning: {origin.text}"
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
    ordering = _Ordering(statistics)
    positive = [goal for goal in goals if not goal.literal.negated]
    by_place = {(goal.source, goal.literal.slots): goal for goal in positive}
    certain = [condition for condition in conditions if not has_fault(condition)]
    for stage in stages:
        if isinstance(stage, Probe):
            ordering.place_ready([], certain)
            ordering.probe(by_place[stage.source, stage.slots])
    ordering.place_ready([], certain)
    last = [*certain, *(condition for condition in conditions if has_fault(condition))]
    ordering.place_ready([goal for goal in goals if goal.literal.negated], last)
    return tuple(ordering.stages)


def bound_columns(slots: Sequence[logic.Slot], bound: Iterable[str]) -> tuple[int, ...]:
    """Return the columns that hold constants or bound variables."""
    names = set(bound)
    return tuple(
        column
        for column, slot in enumerate(slots)
        if isinstance(slot, logic.Constant)
        or (isinstance(slot, logic.Variable) and slot.name in names)
    )


def has_fault(condition: logic.Condition) -> bool:
    """Whether the condition holds an expression that may have no value."""
    if condition.operator in ("match", "!match"):
        return True
    return any(_can_fail(side) for side in (condition.left, condition.right))


def _can_fail(expression: logic.Expression) -> bool:
    return isinstance(expression, logic.Functor) and (
        may_fail(expression.name, expression.type)
        or any(_can_fail(each) for each in expression.arguments)  # type: ignore[arg-type]
    )
