"""The loop of `corollary watch`: poll the sources, and commit the batches of streams.

the pipeline once → a query for each `.input` that is a stream → every few seconds the pipeline, if
a source has changed → until it is interrupted, or (`is_once`) everything has been read

A source is read as `corollary run` reads it: its part of the relation is its content now. A stream
has events: each of its files is read once, and what it inserted stays.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from corollary.core.program import Program
from corollary.data_class import dataclass
from corollary.database.database import Database, state_of
from corollary.database.intake.pipeline import Inputs, PipelineRun, run
from corollary.database.program.loaded_program import load_program
from corollary.errors import ConflictError, CorollaryError, InputError
from corollary.streaming.batches import StreamBatch
from corollary.streaming.folders import Folder, find_folders
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


def watch(database: Database, asked: WatchOptions) -> None:
    """Keep a warehouse up to date until it is interrupted, or everything has been read.

    Raises:
        InputError: the program or a source is not acceptable at the start, or a stream has ended.
        KeyboardInterrupt: it was interrupted; the batch that was being committed is finished.
    """
    relations = load_program(asked.program).normal.relations
    folders = find_folders(asked.program, relations, asked.inputs.facts, asked.inputs.root)
    asked.on_run(run(database, asked.program, asked.inputs))
    streams = [_start_folder(database, each, asked) for each in folders]
    try:
        if asked.is_once:
            _wait_for_all(streams)
        else:
            _poll(database, streams, asked)
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
    database: Database, folder: Folder, asked: WatchOptions
) -> "tuple[StreamingQuery, str]":
    from corollary.engines.spark.session import local_session, require_pyspark

    require_pyspark()
    pace: dict[str, Any] = {"processingTime": f"{asked.interval} seconds"}
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
    database: Database, streams: "list[tuple[StreamingQuery, str]]", asked: WatchOptions
) -> None:
    """Poll the sources until a stream fails or the process is interrupted."""
    trouble = ""
    while True:
        due = time.monotonic() + asked.interval
        while (left := due - time.monotonic()) > 0:
            _raise_failure(streams)
            time.sleep(min(left, HEALTH_CHECK_SECONDS))
        try:
            outcome = run(database, asked.program, asked.inputs)
        except (InputError, ConflictError) as error:
            if str(error) != trouble:
                asked.on_source_error(error)
            trouble = str(error)
        else:
            trouble = ""
            if outcome.transaction is not None and outcome.transaction.commit_number is not None:
                asked.on_run(outcome)


def _raise_failure(streams: "list[tuple[StreamingQuery, str]]") -> None:
    for query, token in streams:
        if (error := failure_of(query, token)) is not None:
            raise error
