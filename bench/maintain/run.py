"""Running a maintenance task, for its outcome or for its profile."""

import cProfile
import gc
import pstats

from bench.maintain.contenders import CLOCKS, Clock, Contender, DuckdbAnew, Maintained, rows_of
from bench.maintain.task import Task
from bench.maintain.tracks import Outcome
from bench.maintain.turns import take_turns


def compare(task: Task, clock: Clock = CLOCKS["wall"]) -> Outcome:
    """Measure one task: our algorithms, and DuckDB as rival and referee."""
    given = {size: make() for size, make in task.relations.items()}
    teams: list[list[Contender]] = []
    for size, relations in given.items():
        ours = [Maintained(each, relations, task.program, size, clock) for each in task.algorithms]
        teams.append([*ours, DuckdbAnew(relations, task.sql, size, clock)])
    rounds = task.rounds(next(iter(given.values())))
    gc.collect()
    gc.freeze()  # what is loaded stays, so that collecting garbage before a step is quick
    try:
        return take_turns(teams, rounds, task)
    finally:
        gc.unfreeze()


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
