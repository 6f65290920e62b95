"""Running a maintenance task, for its outcome or for its profile."""

import cProfile
import pstats

from bench.maintain.contenders import DuckdbAnew, Maintained, rows_of
from bench.maintain.task import Task
from bench.maintain.turns import Outcome, take_turns


def compare(task: Task) -> Outcome:
    """Measure one task: our algorithms, and DuckDB as rival and referee."""
    given = {size: make() for size, make in task.relations.items()}
    teams = [
        [
            *(Maintained(each, relations, task.program, size) for each in task.algorithms),
            DuckdbAnew(relations, task.sql, size),
        ]
        for size, relations in given.items()
    ]
    rounds = task.rounds(next(iter(given.values())))
    return take_turns(teams, rounds, task.allotted, task.patience)


def profile(task: Task, algorithm: str | None, top: int) -> None:
    """Print where the time of all rounds goes, by default for the first algorithm of a task.

    The first round is left out: it makes plans and orders that the others find made.
    """
    relations = next(iter(task.relations.values()))()
    contender = Maintained(algorithm or task.algorithms[0], relations, task.program)
    first, *others = task.rounds(relations)
    for step in first:
        contender.take(step, None)
    profiler = cProfile.Profile()
    for steps in others:
        for step in steps:
            profiler.runcall(contender.commit, step, rows_of(step))
    stats = pstats.Stats(profiler)
    stats.sort_stats("tottime").print_stats(top)
    stats.sort_stats("cumtime").print_stats(2 * top)
