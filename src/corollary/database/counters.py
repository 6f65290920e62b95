"""Recorders: the progress line, the counters of each relation, and the rows of a trace."""

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from corollary.console import Console
from corollary.core.engine import Engine
from corollary.core.plans import WORKING_SEPARATOR, Derive, Evaluation, RecordTrace, Role, Within
from corollary.core.program import NormalProgram
from corollary.core.recorder import CountingRecorder, JobRecord
from corollary.core.states import CHANGES, State
from corollary.data_class import dataclass
from corollary.database.changes import json_rows
from corollary.maintain.choose import Algorithm, AlgorithmChoice
from corollary.maintain.maintenance import Maintenance
from corollary.maintain.update import Update

if TYPE_CHECKING:
    import pyarrow as pa

CHECKING_STAGES = ("kept", "suspended")
"""The stages of a trace that check what was found before the loop, or in its last round."""

PARTITIONS = "partitions"
"""The placement of strata whose relations are in partitions."""

BULK = "bulk"
"""The placement of strata with a step that was a query over whole relations."""

COUNTER_NAMES = (
    "propagated",
    "approximated",
    "filtered",
    "refiltered",
    "disqualified",
    "actual",
    "memo_hits",
    "base_probes",
    "checked",
    "suspended",
    "rounds",
    "irrelevant_updates",
)
"""The counters, in the order in which they are shown."""

JOB_COUNTER_NAMES = ("jobs", "bytes_sent", "bytes_returned")
"""What probing partitions has cost, shown where there was a job."""

ROW_COUNTER_NAMES = ("estimated_rows", "handled_rows", "given_up_rows")
"""What the choice of an algorithm was made by, and what came of it, where there was an estimate."""

OCCASIONAL_NAMES = (*JOB_COUNTER_NAMES, *ROW_COUNTER_NAMES)


class ProgressRecorder(CountingRecorder):
    """Shows the relation that is computed, the round and the tuples so far."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console
        self._progress = console.progress("evaluating")

    def procedure(self, name: str) -> None:
        """Show the procedure."""
        super().procedure(name)
        relation = name.replace(WORKING_SEPARATOR, " ").strip()
        self._progress = self._console.progress(f"evaluating {relation}".strip())

    def step(self, step: Evaluation, size: int, led: int) -> None:
        """Count, and show the tuples of the step."""
        super().step(step, size, led)
        self._progress.advance(rows=size)

    def round(self, count: int = 1) -> None:
        """Count, and show the round."""
        super().round(count)
        self._progress.stage = f"round {self.rounds[self.current]:,}"
        self._progress.advance()


@dataclass(frozen=True, slots=True)
class TraceRow:
    """One row of the papers' tables, with tuples as JSON.

    Attributes:
        relation: of the head; the last three lists are tuples of it.
        updates: each with its relation.
        sign: whether the head gains or loses tuples.
        stage: the stage of an algorithm that has several, with the round of its loop.
    """

    rule: str
    relation: str
    updates: tuple[tuple[str, list[Any]], ...]
    approximation: tuple[list[Any], ...]
    disqualified: tuple[list[Any], ...]
    actual: tuple[list[Any], ...]
    sign: State | None = None
    stage: str = ""
    round: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether the invocation had no effect, so that the papers' tables omit it."""
        return not self.approximation


@dataclass(slots=True)
class StratumRecord:
    """What the procedure of one stratum took.

    Attributes:
        handled: the rows of all steps.
        given_up: those of them that an increment had handled when it was given up.
    """

    seconds: float = 0.0
    handled: int = 0
    given_up: int = 0
    is_bulk: bool = False

    @property
    def has_switched(self) -> bool:
        """Whether an increment was given up for a recomputation."""
        return self.given_up > 0


class StatsRecorder(ProgressRecorder):
    """Counts for every relation the results of the steps of its stratum."""

    def __init__(
        self, console: Console, program: NormalProgram, choices: Mapping[str, AlgorithmChoice]
    ) -> None:
        super().__init__(console)
        self._program = program
        self._choices = choices
        self.counts: dict[str, Counter[str]] = {}
        self.strata: dict[str, StratumRecord] = {}
        self.rows: list[TraceRow] = []
        self.jobs: list[JobRecord] = []
        self._stratum = ""
        self._others = 0
        self._began = 0.0
        self._handled = 0

    def _of(self, relation: str) -> Counter[str]:
        return self.counts.setdefault(relation, Counter())

    @property
    def stratum(self) -> str:
        """The relations of the stratum that is maintained now, and how many others are."""
        relations = self._choices[self._stratum].relations if self._stratum else ()
        return ", ".join(relations) + (f" and {self._others} more" if self._others else "")

    @property
    def _first(self) -> str:
        """The relation that counts of the whole stratum are attributed to."""
        return self._choices[self._stratum].relations[0] if self._stratum else ""

    def procedure(self, name: str) -> None:
        """Note the stratum that begins."""
        super().procedure(name)
        if name in self._choices:
            self.strata[name] = StratumRecord()
            self._stratum, self._began = name, time.monotonic()

    def end(self, name: str, handled: int) -> None:
        """Note the stratum that ends."""
        if name == self._stratum or not self._stratum:
            self._leave(handled)

    def resume(self, name: str, handled: int, others: int = 0) -> None:
        """Note the stratum that goes on instead of another one."""
        super().resume(name, handled)
        self._leave(handled)
        self._others = others
        if name in self._choices:
            self._stratum, self._began = name, time.monotonic()

    def _leave(self, handled: int) -> None:
        """Note the time and the number of rows that a stratum took since it went on."""
        if self._stratum:
            record = self.strata[self._stratum]
            record.seconds += time.monotonic() - self._began
            record.handled += handled - self._handled
        self._stratum, self._handled = "", handled

    def step(self, step: Evaluation, size: int, led: int) -> None:
        """Count the result of a step under its role."""
        super().step(step, size, led)
        if isinstance(step, Derive) and step.role is not None:
            counts = self._of(step.about)
            if step.role is Role.RELEVANT:
                counts["irrelevant_updates"] += led - size
                return
            is_updated = step.role in (Role.APPROXIMATED, Role.CHECKED, Role.PROPAGATED)
            if is_updated and not step.is_gathering:
                counts["propagated"] += led
            if step.role is not Role.PROPAGATED:
                counts[step.role.value] += size

    def touched(self, relation: str, count: int) -> None:
        """Count groups that may change."""
        self._of(relation)[Role.APPROXIMATED.value] += count

    def round(self, count: int = 1) -> None:
        """Count rounds of the stratum."""
        super().round(count)
        if self._stratum:
            self._of(self._first)["rounds"] += count

    def probe(self, relation: str, rows: int) -> None:
        """Count look-ups in base relations."""
        found = self._program.relations.get(relation)
        if self._stratum and found is not None and not found.is_derived:
            self._of(self._first)["base_probes"] += rows

    def bulk(self) -> None:
        """Note that a stratum has run queries over whole relations."""
        if self._stratum:
            self.strata[self._stratum].is_bulk = True

    def job(self, job: JobRecord) -> None:
        """Keep a job that has probed partitions; count it for the stratum."""
        self.jobs.append(job)
        if self._stratum:
            counts = self._of(self._first)
            counts.update(jobs=1, bytes_sent=job.sent, bytes_returned=job.returned)

    def switch(self, within: Within, rows: int) -> None:
        """Note that a stratum was recomputed after its budget was used up."""
        self.strata[within.about].given_up = rows

    def row(
        self, row: RecordTrace, relations: "Mapping[str, tuple[pa.Table, ...]]", number: int
    ) -> None:
        """Keep a row of the trace."""
        updates: list[tuple[str, list[Any]]] = []
        for reference, table in zip(row.updates, relations["updates"], strict=True):
            name = row.source or reference.relation.partition(WORKING_SEPARATOR)[0]
            updates += [(name, each) for each in json_rows(table, self._program.relations[name])]
        head = self._program.relations[row.about]
        approximation, disqualified, actual = (
            tuple(each for table in relations[part] for each in json_rows(table, head))
            for part in ("approximation", "disqualified", "actual")
        )
        lists = tuple(updates), approximation, disqualified, actual
        # What a loop begins with is its first round; `ranked` checks it in the loop.
        in_round = max(1, number) if row.stage in CHECKING_STAGES else number + 1
        self.rows.append(TraceRow(row.rule, row.about, *lists, row.sign, row.stage, in_round))


@dataclass(frozen=True, slots=True)
class Stats:
    """What the maintenance of one relation took.

    Attributes:
        refused: the algorithm that was asked for and could not be had; empty if there is none.
        seconds: its share of those of its stratum, and those of what was made for its rules, such
            as the relations of its aggregates, which have none of their own.
    """

    algorithm: str
    reason: str
    seconds: float
    counts: Mapping[str, int]
    placement: str
    refused: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the figures as `apply` prints them."""
        return {
            "algorithm": self.algorithm,
            "placement": self.placement,
            "seconds": round(self.seconds, 6),
            **{name: self.counts.get(name, 0) for name in COUNTER_NAMES},
            **{name: self.counts[name] for name in OCCASIONAL_NAMES if self.counts.get(name)},
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "Stats":
        """Return the figures that were printed; the reason is not among them."""
        names = (*COUNTER_NAMES, *OCCASIONAL_NAMES)
        counts = {name: found[name] for name in names if found.get(name)}
        return cls(found["algorithm"], "", found["seconds"], counts, found["placement"])


def collect_stats(
    engine: Engine, update: Update, maintenance: Maintenance, recorder: StatsRecorder
) -> dict[str, Stats]:
    """Return what the maintenance of each relation took; call it before the engine commits."""
    stats: dict[str, Stats] = {}
    seconds = _seconds_of_relations(update.new, maintenance, recorder)
    for procedure, record in recorder.strata.items():
        choice = maintenance.choices[procedure]
        algorithm, reason = str(choice.algorithm), choice.explanation
        placed = maintenance.places.get(procedure)
        home = BULK if record.is_bulk else home_of(engine, choice.relations)
        placement = home if placed is None else str(placed.placement)
        if record.has_switched:
            algorithm = str(Algorithm.RECOMPUTE)
            reason = f"{choice.algorithm} outgrew its budget in {record.given_up:,} rows ({reason})"
        for name in choice.relations:
            counts = dict(recorder.counts.get(name, {}))
            if choice.cost is not None and name == choice.relations[0]:
                rows = choice.cost, record.handled, record.given_up
                counts |= dict(zip(ROW_COUNTER_NAMES, rows, strict=True))
            if not update.is_virtual(name):
                counts["actual"] = sum(engine.size(name, sign) for sign in CHANGES)
            if choice.algorithm in (Algorithm.RANKED, Algorithm.DRED):
                # They check tuples before they remove any: the papers' counters follow from that.
                seen = counts.get("checked", 0) or counts.get("approximated", 0)
                disqualified = max(0, seen - engine.size(name, State.REMOVED))
                counts |= {"approximated": seen, "filtered": seen, "disqualified": disqualified}
            refused = str(choice.refused or "")
            stats[name] = Stats(algorithm, reason, seconds[name], counts, placement, refused)
    for name, signs in update.changed.items():
        irrelevant = signs - update.relevant.get(name, frozenset())
        if irrelevant:
            counts = {"irrelevant_updates": sum(engine.size(name, sign) for sign in irrelevant)}
            stats[name] = Stats("none", "nobody asks for it", 0.0, counts, engine.default_placement)
    return stats


def home_of(engine: Engine, relations: Iterable[str]) -> str:
    """Return where strata of these relations are maintained that are placed nowhere else."""
    places = {engine.residency(name).place for name in relations}
    return PARTITIONS if PARTITIONS in places else engine.default_placement


def _seconds_of_relations(
    program: NormalProgram, maintenance: Maintenance, recorder: StatsRecorder
) -> dict[str, float]:
    """Return the seconds of each relation; they add up to those of all strata."""
    found: dict[str, float] = defaultdict(float)
    maintained = {name for each in recorder.strata for name in maintenance.choices[each].relations}
    for procedure, record in recorder.strata.items():
        relations = maintenance.choices[procedure].relations
        for name in relations:
            owner = name
            while not _is_declared(owner, program) and "." in owner:
                owner = owner.rpartition(".")[0]
            has_owner = owner in maintained and _is_declared(owner, program)
            found[owner if has_owner else name] += record.seconds / len(relations)
    return found


def _is_declared(name: str, program: NormalProgram) -> bool:
    relation = program.relations.get(name)
    return relation is not None and relation.is_declared
