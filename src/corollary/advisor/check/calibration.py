"""Seconds per row-operation, from timed runs.

A row-operation is a row that goes into a join or comes out of one. Its time comes from two sources:

| runs | rows | seconds |
|---|---|---|
| commits that maintained a stored view | look-ups, twice, and changed tuples | of its stratum |
| queries that `--measure` has timed | as estimated | the median before, less the floor |

The *floor* is what every call takes, however few rows it handles: the time of the same query where
all relations are empty. A query is expected to take the floor and the time of its rows. A look-up
counts twice: one row goes in, and about as many come out as the next look-up takes.

Runs of few rows are left out, since they measure the start-up time. So are views over other views,
whose look-ups are only counted in part.
"""

import statistics

from corollary.advisor.advice import Advice
from corollary.advisor.check.measurement import Measurements, measure_floor
from corollary.core.program import NormalProgram
from corollary.data_class import dataclass
from corollary.database.database import Database, state_of, warehouse_of

CALIBRATION_MIN_ROWS = 10_000
"""Runs that handle fewer rows are left out."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The time of a row-operation, and of a call.

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
    source = f"{_count(len(timed), 'commit')} of the history ({place})"
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
    source = f"{_count(len(found), 'measured run')} of the rules as they are"
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


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
