"""Seconds for row-operations: what a row took in runs that were timed.

A row-operation is a row that goes into a join or comes out of one. Two kinds of runs tell its time:

| runs | rows | seconds |
|---|---|---|
| commits that maintained a stored view | look-ups, twice, and changed tuples | of its stratum |
| queries that `--measure` has timed | as estimated | the median before |

Each look-up takes a row in and gives about as many as the next one takes, so it counts twice.

Runs of few rows are left out, since what they take is for starting them. So are views over other
views, of which look-ups are counted in part only.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from corollary.advisor.advice import Advice
from corollary.advisor.measuring import Measurements
from corollary.core.program import NormalProgram
from corollary.database.database import Database, state_of, warehouse_of

FEWEST = 10_000
"""Rows that a run has to handle, to tell anything."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """How long a row-operation takes.

    Attributes:
        seconds: of one row-operation.
        source: the runs that tell so.
    """

    seconds: float
    source: str

    def of(self, work: float) -> float:
        """Return the seconds that some row-operations are thought to take."""
        return work * self.seconds


def from_commits(database: Database) -> Calibration | None:
    """Return what the kept commits tell, where most rows were handled; None if that is nothing."""
    warehouse = warehouse_of(database)
    if warehouse is None:
        return None
    plain = _over_base_relations(state_of(database).loaded.normal)
    runs: dict[str, list[tuple[float, float]]] = {}
    for commit in warehouse.commits():
        for name, stats in commit.stats.items():
            rows = 2 * stats.get("base_probes", 0) + stats.get("actual", 0)
            if name in plain and rows >= FEWEST and stats["seconds"] > 0:
                runs.setdefault(stats["placement"], []).append((rows, stats["seconds"]))
    if not runs:
        return None
    place, found = max(runs.items(), key=lambda each: sum(rows for rows, _ in each[1]))
    return Calibration(_ratio(found), f"{_count(len(found), 'commit')} of the history ({place})")


def from_runs(advice: Advice, measured: Measurements) -> Calibration | None:
    """Return what measured queries tell; None if that is nothing."""
    found = [
        (work[0], each.before)
        for each in measured.queries
        if (work := advice.queries[each.relation].work) is not None and work[0] >= FEWEST
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


def _ratio(runs: Iterable[tuple[float, float]]) -> float:
    held = list(runs)
    return sum(seconds for _, seconds in held) / sum(rows for rows, _ in held)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
