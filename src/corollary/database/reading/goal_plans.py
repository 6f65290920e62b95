"""Many goals of one shape, such as `link("a", y)` and `link("b", y)`, answered by one run.

The shape of a goal of one atom is its relation and which arguments are bound. Its plan is made
once; the values of all goals are rows of a relation of calls, which the run joins with the
relation, or asks of its rules if it is virtual. The first goal of a shape is read in full, so that
a shape is never anything else than what the language says.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from corollary.core import logic
from corollary.core.arrow import from_python, nullary_table, single_array, sort_rows
from corollary.core.arrow_buffers import fixed_values
from corollary.core.engine import within_seconds
from corollary.core.plans import working_relation
from corollary.core.program import Relation
from corollary.core.types import NUMBER, Type
from corollary.data_class import dataclass
from corollary.database.program.goals import read_goal
from corollary.database.reading.shape_plans import ShapeCache, ShapePlan
from corollary.database.state import DatabaseState
from corollary.database.store import Store
from corollary.errors import CorollaryError, EvaluationError

GOAL = re.compile(r"\s*([A-Za-z_]\w*)\s*\((.*)\)\s*", re.DOTALL)
ARGUMENT = re.compile(
    r'\s*(?:"([^"\\\x00-\x1f]*)"|(-?[0-9]{1,18})(?![\w.])|([A-Za-z_]\w*))\s*(,|$)'
)
NUMBER_COLUMN = logic.Variable("corollary goal", NUMBER)
"""A variable that no goal can name."""

Shape = tuple[str, tuple[str, ...]]
"""A relation, and for each argument the kind of value, or the name of the variable."""


@dataclass(frozen=True, slots=True)
class SimpleGoal:
    """A goal of one atom, with the values of its bound arguments."""

    shape: Shape
    values: tuple[Any, ...]


def parse_simple_goal(text: str) -> SimpleGoal | None:
    """Return a goal of one atom whose arguments are plain values and variables; None for others.

    >>> parse_simple_goal('link("a", y)')
    SimpleGoal(shape=('link', ('"', 'y')), values=('a',))
    """
    found = GOAL.fullmatch(text)
    if found is None:
        return None
    relation, rest = found.groups()
    slots: list[str] = []
    values: list[Any] = []
    at = 0
    while True:
        argument = ARGUMENT.match(rest, at)
        if argument is None:
            return None
        symbol, number, name, end = argument.groups()
        if name is not None:
            slots.append(name)
        elif number is not None:
            slots.append("0")
            values.append(int(number))
        else:
            slots.append('"')
            values.append(symbol)
        at = argument.end()
        if not end:
            return SimpleGoal((relation, tuple(slots)), tuple(values))


@dataclass(frozen=True, slots=True)
class _GoalShape:
    """What is made for goals of a shape.

    Attributes:
        plan: answers them; its first column has the numbers of goals.
        answers: the relation of a goal's answers.
        literal: the goal that it was made for.
    """

    plan: ShapePlan
    answers: Relation
    literal: logic.Literal


@dataclass(frozen=True, slots=True)
class GoalPlans:
    """Answers goals by the plans of their shapes.

    Attributes:
        state: of the database.
        store: which counts goals.
    """

    state: DatabaseState
    store: Store

    def answer(
        self, goals: Sequence[SimpleGoal], text: str, *, at_once: bool = True
    ) -> tuple[Relation, pa.Table, list[int]] | None:
        """Answer goals of one shape.

        Args:
            goals: the goals.
            text: that of the first one.
            at_once: whether the first goal of a shape is answered by a plan of the shape.

        Returns:
            The relation of answers, the answers in the order of goals, each goal's sorted, and
            where those of each goal begin, with the end; None if the shape has to be answered one
            by one.

        Raises:
            EvaluationError, LimitError: of any of them.
        """
        state = self.state
        with state.lock, within_seconds(state.limits):
            shapes = ShapeCache.of(state)
            found = shapes.recall(
                goals[0].shape,
                lambda: self._make(goals[0], text, shapes.next_number()),
                at_once=at_once,
            )
            return None if found is None else self._run(found, goals)

    def recall(self, goal: SimpleGoal, text: str) -> tuple[Relation, pa.Table] | None:
        """Answer a goal whose shape was asked for before; None if it has to be read in full."""
        try:
            found = self.answer([goal], text, at_once=False)
        except EvaluationError:  # read in full, it gets its message
            return None
        if found is None:
            return None
        shape, table, starts = found
        if not shape.columns:
            return shape, nullary_table(starts[-1])
        return shape, table.rename_columns(list(shape.columns))

    def _run(
        self, found: _GoalShape, goals: Sequence[SimpleGoal]
    ) -> tuple[Relation, pa.Table, list[int]]:
        for _ in goals:
            self.store.log_query(found.literal)
        rows = [(number, *each.values) for number, each in enumerate(goals)]
        assert found.plan.given is not None
        answers = sort_rows(found.plan.run(self.state, from_python(rows, found.plan.given)).table())
        numbers = fixed_values(single_array(answers.column(0)), np.int64)
        starts = np.searchsorted(numbers, np.arange(len(goals) + 1)).tolist()
        return found.answers, answers.remove_column(0), starts

    def _make(self, goal: SimpleGoal, text: str, number: int) -> _GoalShape | None:
        """Return what is made for a shape; None if goals of it are not what they look like."""
        try:
            asked = read_goal(self.state.loaded, text)
        except CorollaryError:
            return None
        program, literal = asked.program, asked.literal
        if not asked.is_atom or not _is_same(goal, literal):
            return None
        bound: list[logic.Variable] = []
        slots: list[logic.Slot] = []
        types = program.relations[literal.relation].types
        for slot, type_ in zip(literal.slots, types, strict=True):
            if isinstance(slot, logic.Constant):
                if not (type_.is_symbol or type_.is_number):
                    return None
                bound.append(logic.Variable(f"corollary value {len(bound)}", _plain(type_)))
                slots.append(bound[-1])
            else:
                slots.append(slot)
        asking = (NUMBER_COLUMN, *bound)
        calls = _relation(working_relation("", f"calls {number}"), asking)
        free = tuple(map(logic.Variable, asked.answers.columns, asked.answers.types))
        answers = _relation(working_relation("", f"answers {number}"), (NUMBER_COLUMN, *free))
        plan = ShapePlan(
            program,
            logic.Literal(literal.relation, tuple(slots)),
            calls,
            answers,
            logic.Literal(calls.name, asking),
        )
        return _GoalShape(plan, asked.answers, literal)


def _is_same(goal: SimpleGoal, literal: logic.Literal) -> bool:
    """Return whether a goal, read in full, is what its shape says."""
    relation, slots = goal.shape
    values = iter(goal.values)
    if literal.relation != relation or len(literal.slots) != len(slots):
        return False
    for given, slot in zip(slots, literal.slots, strict=True):
        match slot:
            case logic.Constant():
                if given not in ('"', "0") or slot.value != next(values):
                    return False
            case logic.Variable():
                if slot.name != given:
                    return False
            case logic.Wildcard():
                if given != "_":
                    return False
    return True


def _plain(type_: Type) -> Type:
    return type_.with_null(False)


def _relation(name: str, slots: Sequence[logic.Variable]) -> Relation:
    """Return a working relation with a column for each variable."""
    types = tuple(slot.type for slot in slots if slot.type is not None)
    columns = tuple(f"c{number}" for number in range(len(types)))
    return Relation(name, columns, types, is_derived=True, is_declared=False)
