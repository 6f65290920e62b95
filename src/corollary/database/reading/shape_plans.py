"""What is made once for all questions of a shape: plans of goals, of questions in SQL, of writes.

A shape is a question without its constants, which are rows of a relation when it is asked. What is
made for it is kept as long as the program in force and the engine are the same, and the plan as
long as relations have about the same sizes.

Goals of one shape, such as `link("a", y)` and `link("b", y)`, are answered by one run. The shape of
a goal of one atom is its relation and which arguments are bound. The values of all goals are rows
of a relation of calls, which the run joins with the relation, or asks of its rules if it is
virtual. The first goal of a shape is read in full, so that a shape is never anything else than what
the language says.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from enum import Enum
from itertools import count
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from corollary.core import logic
from corollary.core.arrow import from_python, nullary_table, single_array, sort_rows
from corollary.core.arrow_buffers import fixed_values
from corollary.core.engine import Engine, TableHandle, within_seconds
from corollary.core.plans import Plan, working_relation
from corollary.core.program import NormalProgram, Relation
from corollary.core.types import NUMBER, Type
from corollary.data_class import dataclass
from corollary.database.counters import ProgressRecorder
from corollary.database.program.goals import read_goal
from corollary.database.program.loaded_program import LoadedProgram
from corollary.database.state import DatabaseState
from corollary.database.store import Store
from corollary.errors import CorollaryError, EvaluationError
from corollary.maintain.solve import answer_goal

SHAPES_MAX = 256
"""So many shapes are remembered; the one that was asked longest ago is forgotten first."""


class _Unplanned(Enum):
    """A shape that nothing was made for: it was asked once, or each question has to be compiled."""

    SEEN = "seen"
    UNFIT = "unfit"


@dataclass(slots=True)
class _SizedPlan:
    """A plan, with the sizes that the relations had when it was made."""

    plan: Plan
    sizes: Mapping[str, int]


@dataclass(slots=True)
class ShapePlan:
    """A goal whose constants are rows of a relation, and its plan.

    Attributes:
        program: the rules in force, and those of the question.
        literal: what is asked.
        given: the relation of the constants, if there are any.
        answers: the relation that gets the answers.
        calls: the literal of `given` that binds the goal; None if the rules of the question read
            the constants.
        made: the plan, from its first run on.
    """

    program: NormalProgram
    literal: logic.Literal
    given: Relation | None
    answers: Relation
    calls: logic.Literal | None = None
    made: _SizedPlan | None = None

    @property
    def relations(self) -> dict[str, Relation]:
        """The relations that it has in the engine."""
        every = (self.answers,) if self.given is None else (self.given, self.answers)
        return {each.name: each for each in every}

    def run(self, state: DatabaseState, rows: pa.Table | Sequence[tuple[Any, ...]]) -> TableHandle:
        """Return the answers for some rows of constants.

        Raises:
            EvaluationError, LimitError: there are none.
        """
        engine = state.engine
        plan = self._plan(state)
        try:
            if self.given is not None:
                engine.insert(self.given.name, rows)
            engine.run(plan, ProgressRecorder(state.console), state.limits)
            return engine.handle(self.answers.name)
        finally:
            engine.clear(self.relations)

    def _plan(self, state: DatabaseState) -> Plan:
        made, program = self.made, self.program
        if made is not None and not state.has_resized(made.sizes):
            return made.plan
        if made is None:
            state.engine.declare(self.relations)
        plan = answer_goal(
            program,
            self.literal,
            state.planner.query_statistics(program),
            lambda name: program.relations[name].is_stored,
            calls=self.calls,
            answers=self.answers.name,
        )
        self.made = _SizedPlan(plan, state.sizes_of(plan))
        return plan


class Shaped(Protocol):
    """What is made for a shape."""

    @property
    def plan(self) -> ShapePlan | None:
        """The plan that it runs, if it runs one."""


Made = TypeVar("Made", bound=Shaped)


class ShapeCache:
    """Remembers what was made for shapes.

    Args:
        state: of the database.
    """

    def __init__(self, state: DatabaseState) -> None:
        self._state = state
        self._shapes: OrderedDict[Hashable, Shaped | _Unplanned] = OrderedDict()
        self._made_for: tuple[LoadedProgram, Engine] = (state.loaded, state.engine)
        self._numbers = count(1)

    @classmethod
    def of(cls, state: DatabaseState) -> "ShapeCache":
        """Return that of a database."""
        if state.shapes is None:
            state.shapes = cls(state)
        found: ShapeCache = state.shapes
        return found

    def next_number(self) -> int:
        """Return a number that tells the relations of a shape from those of others."""
        return next(self._numbers)

    def recall(
        self, key: Hashable, make: Callable[[], Made | None], *, at_once: bool = False
    ) -> Made | None:
        """Return what is made for a shape.

        Args:
            key: the shape, which tells what is made, too.
            make: makes it; None if questions of the shape have to be compiled one by one.
            at_once: whether it is made at the first question; if not, at the second.

        Raises:
            CorollaryError: of `make`; it is not called again.
        """
        self._forget()
        found: Any = self._shapes.get(key, _Unplanned.SEEN if at_once else None)
        if found is None:
            self._keep(key, _Unplanned.SEEN)
            return None
        if found is _Unplanned.SEEN:
            self._keep(key, _Unplanned.UNFIT)
            made = make()
            if made is not None:
                self._keep(key, made)
            return made
        self._shapes.move_to_end(key)
        return None if found is _Unplanned.UNFIT else found

    def _keep(self, key: Hashable, shape: Shaped | _Unplanned) -> None:
        self._shapes[key] = shape
        self._shapes.move_to_end(key)
        if len(self._shapes) > SHAPES_MAX:
            self._drop(self._shapes.popitem(last=False)[1])

    def _forget(self) -> None:
        """Forget what was made for another program, or is in another engine."""
        loaded, engine = self._made_for
        if loaded is self._state.loaded and engine is self._state.engine:
            return
        if engine is self._state.engine:
            for each in self._shapes.values():
                self._drop(each)
        self._shapes.clear()
        self._made_for = self._state.loaded, self._state.engine

    def _drop(self, shape: Shaped | _Unplanned) -> None:
        plan = None if isinstance(shape, _Unplanned) else shape.plan
        if plan is not None and plan.made is not None:
            self._state.engine.drop(plan.relations)


# --- goals of one atom ---------------------------------------------------------------------------


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
