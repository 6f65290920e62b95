"""The loop of `corollary watch`: poll the sources, and commit the batches of streams.

the pipeline once → a query for each `.input` that is a stream → every few seconds the pipeline, if
a source has changed → until it is interrupted, or (`is_once`) everything has been read

A target lag of a view is the longest time until its sources are read again; what they changed is
committed and published at once. A source is read as often as the least target of the outputs that
depend on it says; an output without a target has the interval of the loop as one.

A source is read as `corollary run` reads it: its part of the relation is its content now. A stream
has events: each of its files is read once, and what it inserted stays.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from corollary.analysis.relevance import dependencies
from corollary.core.graph import reachable
from corollary.core.program import NormalProgram, Program
from corollary.core.table_options import table_options
from corollary.data_class import dataclass
from corollary.database.database import Database, state_of
from corollary.database.intake.pipeline import Inputs, PipelineRun, run, run_until_read
from corollary.database.program.loaded_program import load_program
from corollary.errors import ConflictError, CorollaryError, InputError
from corollary.streaming.batches import Folder, StreamBatch, find_folders
from corollary.streaming.stream import default_checkpoint, failure_of, start_query, stop

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

HEALTH_CHECK_SECONDS = 0.5
"""The maximum time until the end of a stream is noticed."""


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """What is watched, and the callbacks.

    Attributes:
        program: the program.
        inputs: where sources are, and what is done with malformed records.
        interval: the seconds between two polls of the sources, and between two batches.
        is_once: whether to end when everything has been read.
        on_run: called with the first run of the pipeline, and those that change something.
        on_batch: called with every batch of a stream.
        on_source_error: called when a source cannot be read; it is polled again.
    """

    program: Program
    inputs: Inputs
    interval: float
    is_once: bool
    on_run: Callable[[PipelineRun], object]
    on_batch: Callable[[StreamBatch], object]
    on_source_error: Callable[[CorollaryError], object]


class Clock(Protocol):
    """The functions of `time` that the loop needs."""

    def monotonic(self) -> float:
        """Return the time, in seconds."""

    def sleep(self, seconds: float, /) -> None:
        """Wait."""


def source_periods(program: Program, normal: NormalProgram, interval: float) -> dict[str, float]:
    """Return how many seconds lie between two looks at the sources of a relation."""
    below: dict[str, set[str]] = {}
    for head, body in dependencies(normal):
        below.setdefault(head, set()).add(body)
    names = {base: name for name, base in normal.bases.items()}
    names |= {counts: name for name, counts in normal.bags.items()}
    periods: dict[str, float] = {}
    for output, options in table_options(program).items():
        period = options.target_lag or interval
        start = normal.bags.get(output, output)
        for each in reachable([start], lambda name: below.get(name, ())):
            name = names.get(each, each)
            periods[name] = min(period, periods.get(name, period))
    inputs = (each.relation for each in program.directives if each.name == "input")
    return {name: periods.get(name, interval) for name in inputs}


class SourceSchedule:
    """Knows which sources are to be looked at when.

    Args:
        periods: the seconds between two looks, by relation.
        interval: the seconds after which a source that could not be read is looked at again.
        now: when all of them were read.
    """

    def __init__(self, periods: Mapping[str, float], interval: float, now: float) -> None:
        self._periods = periods
        self._interval = interval
        self._due = {name: now + period for name, period in periods.items()}

    def next(self, now: float) -> float:
        """Return when the next source is due."""
        return min(self._due.values(), default=now + self._interval)

    def take(self, now: float) -> frozenset[str]:
        """Return the relations whose sources are due; they are due again after their period."""
        due = frozenset(name for name, at in self._due.items() if at <= now)
        self._due |= {name: now + self._periods[name] for name in due}
        return due

    def retry(self, names: Iterable[str], now: float) -> None:
        """Let sources that could not be read be due again soon."""
        for name in names:
            self._due[name] = now + min(self._interval, self._periods[name])

    def hasten(self, names: Iterable[str], now: float) -> None:
        """Let sources that have more than one commit takes be due again at once."""
        self._due |= dict.fromkeys(names, now)


def watch(database: Database, asked: WatchOptions, clock: Clock = time) -> None:
    """Keep a warehouse up to date until it is interrupted, or everything has been read.

    Raises:
        InputError: the program or a source is not acceptable at the start, or a stream has ended.
        KeyboardInterrupt: it was interrupted; the batch that was being committed is finished.
    """
    normal = load_program(asked.program).normal
    folders = find_folders(asked.program, normal.relations, asked.inputs.facts, asked.inputs.root)
    periods = source_periods(asked.program, normal, asked.interval)
    for outcome in run_until_read(database, asked.program, asked.inputs):
        asked.on_run(outcome)
    streams = [_start_folder(database, each, asked, periods) for each in folders]
    try:
        if asked.is_once:
            _wait_for_all(streams)
        else:
            files = periods.keys() - {each.relation for each in folders}
            polled = {name: periods[name] for name in files}
            schedule = SourceSchedule(polled, asked.interval, clock.monotonic())
            _poll(database, streams, asked, schedule, clock)
    except Exception as error:
        if _hides_interrupt(error):
            raise KeyboardInterrupt from error
        raise
    finally:
        for query, token in streams:
            stop(database, query, token)


def _hides_interrupt(error: BaseException | None) -> bool:
    """Return whether an error came of an interrupt: that is what Spark makes of it at times."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _start_folder(
    database: Database, folder: Folder, asked: WatchOptions, periods: Mapping[str, float]
) -> "tuple[StreamingQuery, str]":
    from corollary.engines.spark.session import local_session, require_pyspark

    require_pyspark()
    pace: dict[str, Any] = {"processingTime": f"{periods[folder.relation]} seconds"}
    return start_query(
        database,
        folder.frame(local_session()),
        state_of(database).writable_relation(folder.relation),
        folder.reader,
        source=folder.source,
        checkpoint=default_checkpoint(database, folder.checkpoint),
        trigger={"availableNow": True} if asked.is_once else pace,
        bad_rows=asked.inputs.bad_rows,
        guards=asked.inputs.guards,
        on_batch=asked.on_batch,
    )


def _wait_for_all(streams: "list[tuple[StreamingQuery, str]]") -> None:
    """Wait until every stream has read everything."""
    while any(query.isActive for query, _ in streams):
        _raise_failure(streams)
        time.sleep(HEALTH_CHECK_SECONDS / 10)
    _raise_failure(streams)


def _poll(
    database: Database,
    streams: "list[tuple[StreamingQuery, str]]",
    asked: WatchOptions,
    schedule: SourceSchedule,
    clock: Clock,
) -> None:
    """Poll the sources until a stream fails or the process is interrupted."""
    trouble = ""
    while True:
        due = schedule.next(clock.monotonic())
        while (left := due - clock.monotonic()) > 0:
            _raise_failure(streams)
            clock.sleep(min(left, HEALTH_CHECK_SECONDS))
        names = schedule.take(clock.monotonic())
        try:
            outcome = run(database, asked.program, replace(asked.inputs, relations=names))
        except (InputError, ConflictError) as error:
            if str(error) != trouble:
                asked.on_source_error(error)
            trouble = str(error)
            schedule.retry(names, clock.monotonic())
        else:
            trouble = ""
            if outcome.has_more:
                schedule.hasten(names, clock.monotonic())
            if outcome.transaction is not None and outcome.transaction.commit_number is not None:
                asked.on_run(outcome)


def _raise_failure(streams: "list[tuple[StreamingQuery, str]]") -> None:
    for query, token in streams:
        if (error := failure_of(query, token)) is not None:
            raise error
