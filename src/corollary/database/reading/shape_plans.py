"""What is made once for all questions of a shape: plans of goals, of questions in SQL, of writes.

A shape is a question without its constants, which are rows of a relation when it is asked. What is
made for it is kept as long as the program in force and the engine are the same, and the plan as
long as relations have about the same sizes.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from enum import Enum
from itertools import count
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from corollary.core import logic
from corollary.core.engine import Engine, TableHandle
from corollary.core.plans import Plan
from corollary.core.program import NormalProgram, Relation
from corollary.data_class import dataclass
from corollary.database.counters import ProgressRecorder
from corollary.database.program.loaded_program import LoadedProgram
from corollary.database.state import DatabaseState
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
