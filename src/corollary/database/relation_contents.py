"""Evaluates one relation by the rules of a program, on the data of one state."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from corollary.core.engine import Engine, Limits
from corollary.core.logic import Literal, Variable
from corollary.core.program import NormalProgram
from corollary.core.recorder import Recorder
from corollary.core.states import State
from corollary.core.statistics import Statistics
from corollary.database.program.goals import answer_relation
from corollary.maintain.solve import answer_goal


@contextmanager
def evaluated_relation(
    engine: Engine,
    program: NormalProgram,
    name: str,
    *,
    data: State,
    statistics: Statistics,
    recorder: Recorder,
    limits: Limits,
    is_readable: Callable[[str], bool] | None = None,
) -> Iterator[str]:
    """Give the name of a relation of the engine that holds what another one is, until the end.

    Args:
        engine: holds the data.
        program: its rules.
        name: the relation to evaluate.
        data: the state of what is read.
        statistics: of the relations.
        recorder: of the progress.
        limits: of the evaluation.
        is_readable: which relations are read as they are stored; the base relations if it is not
            given.
    """
    slots = tuple(
        Variable(f"v{at}", type_) for at, type_ in enumerate(program.relations[name].types)
    )
    goal = Literal(name, slots)
    answers = answer_relation(goal)
    readable = is_readable or (lambda each: not program.relations[each].is_derived)
    plan = answer_goal(program, goal, statistics, readable, data)
    engine.declare({answers.name: answers})
    try:
        engine.run(plan, recorder, limits)
        yield answers.name
    finally:
        engine.drop([answers.name])
