"""Measures advice: the same queries with and without the views, in turns, on the real data.

The processor time of this process counts, so that a busy machine changes little. Where tasks of
other processes do the work, with Spark, it is the time that passes. What was measured says how long
a row-operation takes (`Calibration`), and which advice gains too little.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from corollary.advisor.advice import Advice, PredicateAdvice
from corollary.advisor.check.scratch_database import full_goal, open_scratch_database
from corollary.console import counted
from corollary.core.logic import Value
from corollary.core.printer import print_relation, print_value
from corollary.core.program import NormalProgram, Program
from corollary.data_class import dataclass
from corollary.database.database import Database, state_of, warehouse_of
from corollary.database.options import LOCAL

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


# --- seconds per row-operation -------------------------------------------------------------------


CALIBRATION_MIN_ROWS = 10_000
"""Runs that handle fewer rows are left out."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The time of a row-operation, a row that goes into a join or comes out of one, and of a call.

    | runs | rows | seconds |
    |---|---|---|
    | commits that maintained a stored view | look-ups, twice, and changed tuples | of its stratum |
    | queries that `--measure` has timed | as estimated | the median before, less the floor |

    The *floor* is what every call takes, however few rows it handles. A query is expected to take
    the floor and the time of its rows. A look-up counts twice: one row goes in, and about as many
    come out as the next look-up takes. Runs of few rows are left out, since they measure the
    start-up time. So are views over other views, whose look-ups are only counted in part.

    Attributes:
        seconds_per_row: of one row-operation.
        source: the runs that were timed.
        floor_seconds: of a query where all relations are empty: what every call takes.
    """

    seconds_per_row: float
    source: str
    floor_seconds: float = 0.0

    def seconds_for(self, work: float) -> float:
        """Return the estimated seconds of some row-operations."""
        return work * self.seconds_per_row

    def query_seconds(self, work: float) -> float:
        """Return the estimated seconds of a query that handles some rows: those, and the call."""
        return self.floor_seconds + self.seconds_for(work)


def calibrate_from_commits(database: Database) -> Calibration | None:
    """Return the calibration by the commits of the history, at the placement with most rows."""
    warehouse = warehouse_of(database)
    if warehouse is None:
        return None
    countable = _over_base_relations(state_of(database).loaded.normal)
    runs: dict[str, list[tuple[float, float]]] = {}
    for commit in warehouse.commits():
        for name, stats in commit.stats.items():
            rows = 2 * stats.get("base_probes", 0) + stats.get("actual", 0)
            if name in countable and rows >= CALIBRATION_MIN_ROWS and stats["seconds"] > 0:
                runs.setdefault(stats["placement"], []).append((rows, stats["seconds"]))
    if not runs:
        return None
    place, timed = max(runs.items(), key=lambda each: sum(rows for rows, _ in each[1]))
    source = f"{counted(len(timed), 'commit')} of the history ({place})"
    return Calibration(_ratio(timed), source, _floor(database))


def _floor(database: Database) -> float:
    """Return the seconds of a call, by a virtual relation if there is one."""
    loaded = state_of(database).loaded
    derived = [each for each in loaded.normal.relations.values() if each.is_derived]
    declared = [each for each in derived if each.is_declared]
    if not declared:
        return 0.0
    computed = next((each for each in declared if not each.is_stored), declared[0])
    return measure_floor(loaded.program, computed.name)


def calibrate_from_measurements(advice: Advice, measurements: Measurements) -> Calibration | None:
    """Return the calibration by measured queries."""
    found = [
        (work[0], max(0.0, each.before_seconds - each.floor_seconds))
        for each in measurements.queries
        if (work := advice.queries[each.relation].work) is not None
        and work[0] >= CALIBRATION_MIN_ROWS
    ]
    if not found:
        return None
    source = f"{counted(len(found), 'measured run')} of the rules as they are"
    floor = statistics.median(each.floor_seconds for each in measurements.queries)
    # The median: one query that is far off does not decide for all.
    rate = statistics.median(seconds / work for work, seconds in found)
    return Calibration(rate, source, floor)


def _over_base_relations(program: NormalProgram) -> frozenset[str]:
    """Return the derived relations whose rules read base relations only, without aggregates."""
    derived = {name for name, each in program.relations.items() if each.is_derived}
    others = {
        rule.head.relation
        for rule in program.rules
        if any(literal.relation in derived for literal in rule.literals)
    }
    return frozenset(derived - others - {each.relation for each in program.aggregations})


def _ratio(runs: list[tuple[float, float]]) -> float:
    return sum(seconds for _, seconds in runs) / sum(rows for rows, _ in runs)


# --- gains that are too small --------------------------------------------------------------------


def withdraw_small_gains(advice: Advice, measurements: Measurements) -> Advice:
    """Return the advice without what gains less than its options require.

    The gain of a query is its own rewriting and those of the predicates that it reads. A predicate
    that is not a query stays rewritten as long as a query that reads it gains enough, and a view as
    long as a rewritten rule reads it.
    """
    least = advice.options.min_real_gain
    gains = {each.relation: each.speed_up for each in measurements.queries}

    def judge(name: str, each: PredicateAdvice) -> PredicateAdvice:
        found = list(_gains_of(advice, name, gains))
        if not each.is_applicable or not found or max(found) >= least:
            return each
        reason = f"the measured gain is {max(found):.2f} x, less than {least:g}"
        return replace(
            each,
            reason=reason,
            after=each.before,
            virtual_after=each.before.left_deep,
            rewritten=each.originals,
            views=(),
            work=None if each.work is None else (each.work[0], each.work[0]),
        )

    predicates = {name: judge(name, each) for name, each in advice.predicates.items()}
    used = {view for each in predicates.values() for view in each.views}
    views = {name: view for name, view in advice.views.items() if name in used}
    return replace(advice, predicates=predicates, views=views)


def _gains_of(advice: Advice, name: str, gains: dict[str, float]) -> Iterator[float]:
    """Yield the measured gains of the queries that a rewriting concerns."""
    if name in gains:
        yield gains[name]
        return
    for query, gain in gains.items():
        if name in advice.scheme.reachable([query]):
            yield gain
