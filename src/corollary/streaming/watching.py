"""The loop of `corollary watch`: sources are looked at again and again, streams come as they come.

the pipeline once → a query for each `.input` that is a stream → every few seconds the pipeline, if
a source has changed → until somebody says stop, or (`is_once`) all there is has been read

A source is read as `corollary run` reads it: its part of the relation is what it says now. A stream
tells what happens: each of its files counts once, and what it says stays.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from corollary.core.program import Program
from corollary.database.database import Database, state_of
from corollary.database.pipeline import Inputs, Run, run
from corollary.database.program import load
from corollary.errors import ConflictError, CorollaryError, InputError
from corollary.streaming.batches import Batch
from corollary.streaming.folders import Folder, folders_of
from corollary.streaming.stream import checkpoint_of, failure, started_query, stop

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

BEAT = 0.5
"""So many seconds at most pass until it is noticed that a stream has ended."""


@dataclass(frozen=True, slots=True)
class Watch:
    """What is watched, and who is told.

    Attributes:
        program: the program.
        inputs: where sources are, and what is done about malformed records.
        interval: the seconds between two looks at the sources, and between two batches.
        is_once: whether to end when all there is has been read.
        on_run: called with what a run of the pipeline has changed, or with the first run.
        on_batch: called with what a batch of a stream has changed.
        on_trouble: called when a source cannot be read; it is looked at again.
    """

    program: Program
    inputs: Inputs
    interval: float
    is_once: bool
    on_run: Callable[[Run], object]
    on_batch: Callable[[Batch], object]
    on_trouble: Callable[[CorollaryError], object]


def watch(database: Database, asked: Watch) -> None:
    """Keep a warehouse up to date until it is interrupted, or all there is has been read.

    Raises:
        InputError: the program or a source is not acceptable at the start, or a stream has ended.
        KeyboardInterrupt: somebody said stop; the batch that was being committed is finished.
    """
    relations = load(asked.program).normal.relations
    folders = folders_of(asked.program, relations, asked.inputs.facts, asked.inputs.root)
    asked.on_run(run(database, asked.program, asked.inputs))
    streams = [_started(database, each, asked) for each in folders]
    try:
        if asked.is_once:
            _wait_for_all(streams)
        else:
            _go_on(database, streams, asked)
    finally:
        for query, token in streams:
            stop(database, query, token)


def _started(database: Database, folder: Folder, asked: Watch) -> "tuple[StreamingQuery, str]":
    from corollary.engines.spark.session import local, require

    require()
    pace: dict[str, Any] = {"processingTime": f"{asked.interval} seconds"}
    return started_query(
        database,
        folder.frame(local()),
        state_of(database).writable(folder.relation),
        folder.reader,
        source=folder.source,
        checkpoint=checkpoint_of(database, folder.checkpoint),
        trigger={"availableNow": True} if asked.is_once else pace,
        bad_rows=asked.inputs.bad_rows,
        on_batch=asked.on_batch,
    )


def _wait_for_all(streams: "list[tuple[StreamingQuery, str]]") -> None:
    """Wait until every stream has read all there is."""
    while any(query.isActive for query, _ in streams):
        _demand_health(streams)
        time.sleep(BEAT / 10)
    _demand_health(streams)


def _go_on(database: Database, streams: "list[tuple[StreamingQuery, str]]", asked: Watch) -> None:
    """Look at the sources from time to time, until something ends it."""
    trouble = ""
    while True:
        due = time.monotonic() + asked.interval
        while (left := due - time.monotonic()) > 0:
            _demand_health(streams)
            time.sleep(min(left, BEAT))
        try:
            outcome = run(database, asked.program, asked.inputs)
        except (InputError, ConflictError) as error:
            if str(error) != trouble:
                asked.on_trouble(error)
            trouble = str(error)
        else:
            trouble = ""
            if outcome.transaction is not None and outcome.transaction.commit_number is not None:
                asked.on_run(outcome)


def _demand_health(streams: "list[tuple[StreamingQuery, str]]") -> None:
    for query, token in streams:
        if (error := failure(query, token)) is not None:
            raise error
