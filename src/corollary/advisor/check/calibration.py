"""Seconds per row-operation, from timed runs.

A row-operation is a row that goes into a join or comes out of one. Its time comes from two sources:

| runs | rows | seconds |
|---|---|---|
| commits that maintained a stored view | look-ups, twice, and changed tuples | of its stratum |
| queries that `--measure` has timed | as estimated | the median before |

A look-up counts twice: one row goes in, and about as many come out as the next look-up takes.

Runs of few rows are left out, since they measure the start-up time. So are views over other views,
whose look-ups are only counted in part.
"""

from dataclasses import dataclass

from corollary.advisor.advice import Advice
from corollary.advisor.check.measurement import Measurements
from corollary.core.program import NormalProgram
from corollary.database.database import Database, state_of, warehouse_of

CALIBRATION_MIN_ROWS = 10_000
"""Runs that handle fewer rows are left out."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The time of a row-operation.

    Attributes:
        seconds_per_row: of one row-operation.
        source: the runs that were timed.
    """

    seconds_per_row: float
    source: str

    def seconds_for(self, work: float) -> float:
        """Return the estimated seconds of some row-operations."""
        return work * self.seconds_per_row


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
    return Calibration(_ratio(timed), f"{_count(len(timed), 'commit')} of the history ({place})")


def calibrate_from_measurements(advice: Advice, measurements: Measurements) -> Calibration | None:
    """Return the calibration by measured queries."""
    found = [
        (work[0], each.before_seconds)
        for each in measurements.queries
        if (work := advice.queries[each.relation].work) is not None
        and work[0] >= CALIBRATION_MIN_ROWS
    ]
    if not found:
        return None
    return Calibration(
        _ratio(found), f"{_count(len(found), 'measured run')} of the rules as they are"
    )


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
