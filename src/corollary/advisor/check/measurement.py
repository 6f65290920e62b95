"""Measures advice: the same queries with and without the views, in turns, on the real data.

The processor time of this process counts, so that a busy machine changes little. Where tasks of
other processes do the work, with Spark, it is the time that passes.
"""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from corollary.advisor.advice import Advice
from corollary.advisor.check.scratch_database import full_goal, open_scratch_database
from corollary.core.logic import Value
from corollary.core.printer import print_relation, print_value
from corollary.core.program import Program
from corollary.data_class import dataclass
from corollary.database.database import Database, state_of
from corollary.database.engines import LOCAL

if TYPE_CHECKING:
    import pyarrow as pa

WARM_RUNS = 5
"""The number of timed runs of each query on either side, after a cold one; the median counts."""


@dataclass(frozen=True, slots=True)
class QueryTimes:
    """The seconds of a query before and after: medians of warm runs, and the cold runs.

    Attributes:
        floor_seconds: of the same query where all relations are empty: what every call takes.
    """

    relation: str
    query: str
    before_seconds: float
    after_seconds: float
    cold_seconds: tuple[float, float]
    warm_runs: int
    floor_seconds: float = 0.0

    @property
    def speed_up(self) -> float:
        """The time before by the time after; below 1 it is slower."""
        return self.before_seconds / max(self.after_seconds, 1e-9)

    def break_even_queries(self, build_seconds: float) -> float | None:
        """Return the number of queries after which building has paid; None if it never does."""
        saving = self.before_seconds - self.after_seconds
        return build_seconds / saving if saving > 0 else None


@dataclass(frozen=True, slots=True)
class Measurements:
    """The times of all queries, the seconds to build the views, and their numbers of rows.

    Attributes:
        is_processor_time: whether seconds are those of the processor; otherwise those that passed.
    """

    queries: tuple[QueryTimes, ...]
    build_seconds: float
    rows: Mapping[str, int]
    is_processor_time: bool


def _clock(engine: str) -> Callable[[], float]:
    return time.process_time if engine == LOCAL else time.perf_counter


def measure(
    advice: Advice,
    before: Program,
    after: Program,
    tables: "dict[str, pa.Table]",
    *,
    engine: str = LOCAL,
    runs: int = WARM_RUNS,
) -> Measurements:
    """Measure queries with and without the advice, on copies in memory."""
    with (
        open_scratch_database(before, tables, engine=engine) as original,
        open_scratch_database(before, tables, engine=engine) as changed,
        open_scratch_database(before, {}, engine=engine) as empty,
    ):
        clock = _clock(engine)
        start = clock()
        transaction = changed.transaction()
        transaction.set_program(after)
        transaction.commit()
        build = clock() - start
        queries = tuple(
            _measure_query(name, each.query.bound, (original, changed, empty), runs, clock)
            for name, each in advice.queries.items()
        )
        rows = {
            name: state_of(changed).engine.size(name)
            for name, view in advice.views.items()
            if not view.is_virtual
        }
    return Measurements(queries, build, rows, engine == LOCAL)


def _measure_query(
    name: str,
    bound: frozenset[int],
    databases: tuple[Database, Database, Database],
    runs: int,
    clock: Callable[[], float],
) -> QueryTimes:
    goal = _goal(databases[0], name, bound)
    times: tuple[list[float], list[float], list[float]] = ([], [], [])
    for _ in range(runs + 1):
        for side, database in zip(times, databases, strict=True):
            side.append(_seconds_of(database, goal, clock))
    before, after, floor = (statistics.median(side[1:]) for side in times)
    return QueryTimes(name, goal, before, after, (times[0][0], times[1][0]), runs, floor)


def _seconds_of(database: Database, goal: str, clock: Callable[[], float]) -> float:
    start = clock()
    database.query(goal)
    return clock() - start


def measure_floor(program: Program, name: str, *, engine: str = LOCAL, runs: int = 3) -> float:
    """Return the seconds that a call takes where all relations are empty."""
    with open_scratch_database(program, {}, engine=engine) as empty:
        goal = full_goal(empty, name)
        clock = _clock(engine)
        return statistics.median([_seconds_of(empty, goal, clock) for _ in range(runs + 1)][1:])


def _goal(database: Database, name: str, bound: frozenset[int]) -> str:
    """Return a goal with values for the bound columns: those of one answer."""
    if not bound:
        return full_goal(database, name)
    answers = database.query(full_goal(database, name))
    relation = state_of(database).loaded.normal.relations[name]
    middle = answers.num_rows // 2
    arguments = []
    for at in range(relation.arity):
        if at in bound and middle > 0:
            value: Value = answers.column(at)[middle].as_py()
            arguments.append(print_value(value, relation.types[at]))
        else:
            arguments.append(f"v{at}")
    return f"{print_relation(name)}({', '.join(arguments)})"
