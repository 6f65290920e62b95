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
from corollary.core.engine import Engine, within_seconds
from corollary.core.plans import Plan, working_relation
from corollary.core.program import Relation
from corollary.core.types import NUMBER, Kind, Type
from corollary.data_class import dataclass
from corollary.database.counters import ProgressRecorder
from corollary.database.program.goals import read_goal
from corollary.database.program.loaded_program import LoadedProgram
from corollary.database.state import DatabaseState
from corollary.database.store import Store
from corollary.errors import CorollaryError, EvaluationError
from corollary.maintain.solve import answer_goal

GOAL = re.compile(r"\s*([A-Za-z_]\w*)\s*\((.*)\)\s*", re.DOTALL)
ARGUMENT = re.compile(
    r'\s*(?:"([^"\\\x00-\x1f]*)"|(-?[0-9]{1,18})(?![\w.])|([A-Za-z_]\w*))\s*(,|$)'
)
SHAPES_MAX = 256
"""So many plans are kept."""
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


@dataclass(slots=True)
class _ShapePlan:
    """The plan of a shape, with the relations of its calls and answers, and the goal's own."""

    plan: Plan
    calls: Relation
    answers: Relation
    shape: Relation
    literal: logic.Literal
    sizes: dict[str, int]


class GoalPlans:
    """Keeps the plans of shapes, as long as the program in force and sizes are about the same.

    Args:
        state: of the database.
        store: which counts goals.
    """

    def __init__(self, state: DatabaseState, store: Store) -> None:
        self._state = state
        self._store = store
        self._plans: dict[Shape, _ShapePlan | None] = {}
        self._seen: set[Shape] = set()
        self._numbers = 0
        self._made_for: tuple[LoadedProgram, Engine] | None = None

    def answer(
        self, goals: Sequence[SimpleGoal], text: str
    ) -> tuple[Relation, pa.Table, list[int]] | None:
        """Answer goals of one shape.

        Args:
            goals: the goals.
            text: that of the first one.

        Returns:
            The relation of answers, the answers in the order of goals, each goal's sorted, and
            where those of each goal begin, with the end; None if the shape has to be answered one
            by one.

        Raises:
            EvaluationError, LimitError: of any of them.
        """
        state = self._state
        with state.lock, within_seconds(state.limits):
            self._forget()
            shape = goals[0].shape
            found = self._plans.get(shape)
            if found is not None and state.has_resized(found.sizes):
                self._drop(self._plans.pop(shape))
            if shape not in self._plans:
                if len(self._plans) >= SHAPES_MAX:
                    self._drop(*self._plans.values())
                    self._plans = {}
                self._plans[shape] = self._plan(goals[0], text)
            found = self._plans[shape]
            return None if found is None else self._run(found, goals)

    def recall(self, goal: SimpleGoal, text: str) -> tuple[Relation, pa.Table] | None:
        """Answer a goal whose shape was asked for before; None if it has to be read in full."""
        with self._state.lock:
            self._forget()
            if goal.shape not in self._seen:
                if len(self._seen) >= SHAPES_MAX:
                    self._seen.clear()
                self._seen.add(goal.shape)
                return None
            try:
                found = self.answer([goal], text)
            except EvaluationError:  # read in full, it gets its message
                return None
        if found is None:
            return None
        shape, table, starts = found
        if not shape.columns:
            return shape, nullary_table(starts[-1])
        return shape, table.rename_columns(list(shape.columns))

    def _run(
        self, found: _ShapePlan, goals: Sequence[SimpleGoal]
    ) -> tuple[Relation, pa.Table, list[int]]:
        state, engine = self._state, self._state.engine
        for _ in goals:
            self._store.log_query(found.literal)
        rows = [(number, *each.values) for number, each in enumerate(goals)]
        names = [found.calls.name, found.answers.name]
        try:
            engine.insert(found.calls.name, from_python(rows, found.calls))
            engine.run(found.plan, ProgressRecorder(state.console), state.limits)
            answers = sort_rows(engine.read(found.answers.name))
        finally:
            engine.clear(names)
        numbers = fixed_values(single_array(answers.column(0)), np.int64)
        starts = np.searchsorted(numbers, np.arange(len(goals) + 1)).tolist()
        return found.shape, answers.remove_column(0), starts

    def _plan(self, goal: SimpleGoal, text: str) -> _ShapePlan | None:
        """Return the plan of a shape; None if goals of it are not what they look like."""
        state = self._state
        try:
            asked = read_goal(state.loaded, text)
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
                if type_.kind not in (Kind.SYMBOL, Kind.NUMBER):
                    return None
                bound.append(logic.Variable(f"corollary value {len(bound)}", _plain(type_)))
                slots.append(bound[-1])
            else:
                slots.append(slot)
        self._numbers += 1
        shape = asked.answers
        asking = (NUMBER_COLUMN, *bound)
        calls = _relation(working_relation("", f"calls {self._numbers}"), asking)
        free = tuple(map(logic.Variable, shape.columns, shape.types))
        answers = _relation(
            working_relation("", f"answers {self._numbers}"), (NUMBER_COLUMN, *free)
        )
        plan = answer_goal(
            program,
            logic.Literal(literal.relation, tuple(slots)),
            state.planner.query_statistics(program),
            lambda name: program.relations[name].is_stored,
            calls=logic.Literal(calls.name, asking),
            answers=answers.name,
        )
        sizes = state.sizes_of(plan)
        state.engine.declare({calls.name: calls, answers.name: answers})
        return _ShapePlan(plan, calls, answers, shape, literal, sizes)

    def _forget(self) -> None:
        """Forget plans that were made for another program, or on another engine."""
        state = self._state
        if self._made_for is None or self._made_for[0] is not state.loaded:
            if self._made_for is not None and self._made_for[1] is state.engine:
                self._drop(*self._plans.values())
            self._plans, self._seen = {}, set()
        elif self._made_for[1] is not state.engine:
            self._plans = {}
        self._made_for = state.loaded, state.engine

    def _drop(self, *plans: _ShapePlan | None) -> None:
        made = [each for each in plans if each is not None]
        self._state.engine.drop([each.calls.name for each in made])
        self._state.engine.drop([each.answers.name for each in made])


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
