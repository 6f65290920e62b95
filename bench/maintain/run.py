"""Running a maintenance task, for its outcome or for its profile."""

import cProfile
import pstats

from bench.maintain.contenders import Contender, DuckdbAnew, Maintained, rows_of
from bench.maintain.task import Task
from bench.maintain.turns import Outcome, take_turns


def compare(task: Task) -> Outcome:
    """Measure one task: our algorithms, and DuckDB as rival and referee."""
    relations = task.relations()
    ours = [Maintained(each, relations, task.program) for each in task.algorithms]
    contenders: list[Contender] = [*ours, DuckdbAnew(relations, task.sql)]
    outcome = take_turns(contenders, task.rounds(relations), task.patience)
    for track, contender in zip(outcome.tracks, ours, strict=False):
        track.told = contender.told
    return outcome


def profile(task: Task, top: int) -> None:
    """Print where the time of all rounds goes, for the first algorithm of a task.

    The first round is left out: it makes plans and orders that the others find made.
    """
    relations = task.relations()
    contender = Maintained(task.algorithms[0], relations, task.program)
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
