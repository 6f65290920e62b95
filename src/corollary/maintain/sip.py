"""Sideways information passing: the order in which the literals of a body are probed.

"Bound is easier": fully bound literals first, then more bound columns, then the smaller estimated
fan-out. Negated literals and conditions stand as soon as all their variables are bound, an
equation as soon as it can compute its unbound side.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from corollary.core.functors import may_fail
from corollary.core.origin import Origin
from corollary.core.pipeline import (
    Absent,
    Compute,
    Filter,
    Pipeline,
    Probe,
    Reference,
    Stage,
)
from corollary.core.rules import Condition, Literal, names_in
from corollary.core.statistics import Statistics
from corollary.core.terms import Constant, Expression, Functor, Slot, Variable, variables_of


@dataclass(frozen=True, slots=True)
class Goal:
    """A literal of a body and where it is read."""

    literal: Literal
    source: Reference


@dataclass(slots=True)
class _Ordering:
    """The stages so far and the variables they bind."""

    statistics: Statistics
    bound: set[str] = field(default_factory=set)
    stages: list[Stage] = field(default_factory=list)

    def probe(self, goal: Goal) -> None:
        slots = goal.literal.slots
        columns = bound_columns(slots, self.bound)
        self.stages.append(Probe(goal.source, slots, columns))
        self.bound |= names_in(goal.literal)

    def settle(self, negated: list[Goal], conditions: list[Condition]) -> None:
        """Place every negated literal and condition that can stand now; the safest come first."""
        while True:
            ready = [each for each in conditions if self._can_stand(each)]
            tests = [each for each in ready if names_in(each) <= self.bound]
            sure = [each for each in tests if not has_fault(each)]
            absent = [each for each in negated if names_in(each.literal) <= self.bound]
            if sure:
                conditions.remove(sure[0])
                self.stages.append(Filter(sure[0]))
            elif absent:
                negated.remove(absent[0])
                self.stages.append(Absent(absent[0].source, absent[0].literal.slots))
            elif ready:
                chosen = min(ready, key=has_fault)
                conditions.remove(chosen)
                self._stand(chosen)
            else:
                return

    def _can_stand(self, condition: Condition) -> bool:
        return names_in(condition) <= self.bound or self._assignment(condition) is not None

    def _assignment(self, condition: Condition) -> tuple[Variable, Expression] | None:
        if condition.operator in ("=", "is"):
            sides = (condition.left, condition.right)
            for one, other in (sides, sides[::-1]):
                needed = {each.name for each in variables_of(other)}
                is_free = isinstance(one, Variable) and one.name not in self.bound
                if is_free and needed <= self.bound:
                    assert isinstance(one, Variable)
                    return one, other
        return None

    def _stand(self, condition: Condition) -> None:
        assignment = self._assignment(condition)
        if names_in(condition) <= self.bound or assignment is None:
            generator = range_of(condition)
            if generator is None:
                self.stages.append(Filter(condition))
                return
            known, functor = generator
            made = Variable(f"{known.name}'", known.type)
            self.stages.append(Compute(made, functor))
            self.stages.append(Filter(Condition("=", known, made)))
            return
        variable, expression = assignment
        self.stages.append(Compute(variable, expression, condition.operator == "is"))
        self.bound.add(variable.name)

    def choose(self, goals: Sequence[Goal]) -> Goal:
        """Return the goal to probe next."""
        if self.statistics.is_as_written:
            return goals[0]

        def cost(goal: Goal) -> tuple[bool, int, float]:
            columns = bound_columns(goal.literal.slots, self.bound)
            fanout = self.statistics.fanout(goal.source.relation, columns)
            return len(columns) < len(goal.literal.slots), -len(columns), fanout

        return min(goals, key=cost)


def sip(
    head: tuple[Variable | Constant, ...],
    goals: Sequence[Goal],
    conditions: Sequence[Condition],
    origin: Origin,
    statistics: Statistics,
    *,
    lead: Goal | None = None,
    is_lenient: bool = False,
) -> Pipeline:
    """Return the pipeline of a body; `lead` is probed first, the rest as information passes."""
    ordering = _Ordering(statistics)
    waiting = [goal for goal in goals if not goal.literal.negated]
    negated = [goal for goal in goals if goal.literal.negated]
    open_conditions = list(conditions)
    if lead is not None:
        waiting.remove(lead)
        ordering.probe(lead)
    ordering.settle(negated, open_conditions)
    while waiting:
        goal = ordering.choose(waiting)
        waiting.remove(goal)
        ordering.probe(goal)
        ordering.settle(negated, open_conditions)
    assert not [*negated, *open_conditions], f"unsafe rule reached planning: {origin.text}"
    judge: tuple[Stage, ...] = ()
    if any(has_fault(condition) for condition in conditions):
        judge = _judge(ordering.stages, goals, conditions, statistics)
    return Pipeline(tuple(ordering.stages), head, origin, judge, is_lenient)


def _judge(
    stages: Iterable[Stage],
    goals: Sequence[Goal],
    conditions: Sequence[Condition],
    statistics: Statistics,
) -> tuple[Stage, ...]:
    """Return the same body with what may have no value, and negated literals, behind the rest."""
    ordering = _Ordering(statistics)
    positive = [goal for goal in goals if not goal.literal.negated]
    by_place = {(goal.source, goal.literal.slots): goal for goal in positive}
    sure = [condition for condition in conditions if not has_fault(condition)]
    for stage in stages:
        if isinstance(stage, Probe):
            ordering.settle([], sure)
            ordering.probe(by_place[stage.source, stage.slots])
    ordering.settle([], sure)
    doubtful = [*sure, *(condition for condition in conditions if has_fault(condition))]
    ordering.settle([goal for goal in goals if goal.literal.negated], doubtful)
    return tuple(ordering.stages)


def bound_columns(slots: Sequence[Slot], bound: Iterable[str]) -> tuple[int, ...]:
    """Return the columns whose value is known: constants and bound variables."""
    names = set(bound)
    return tuple(
        column
        for column, slot in enumerate(slots)
        if isinstance(slot, Constant) or (isinstance(slot, Variable) and slot.name in names)
    )


def range_of(condition: Condition) -> tuple[Variable, Functor] | None:
    """Return the variable that a range gives several values, and the range, if there is one."""
    for one, other in (
        (condition.left, condition.right),
        (condition.right, condition.left),
    ):
        if isinstance(other, Functor) and other.name == "range" and isinstance(one, Variable):
            return one, other
    return None


def has_fault(condition: Condition) -> bool:
    """Whether evaluating the condition may meet an expression without a value."""
    if condition.operator in ("match", "!match"):
        return True
    return any(_can_fail(side) for side in (condition.left, condition.right))


def _can_fail(expression: Expression) -> bool:
    return isinstance(expression, Functor) and (
        may_fail(expression.name, expression.type)
        or any(_can_fail(each) for each in expression.arguments)  # type: ignore[arg-type]
    )
