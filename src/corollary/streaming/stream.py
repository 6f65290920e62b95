"""Start a stream, and stop it between two batches."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from corollary.core.program import Relation
from corollary.database.database import Database, open_arguments_of, state_of, warehouse_of
from corollary.database.intake.source_guards import SourceGuards, parse_bound
from corollary.database.writing.frame_rows import EventReader
from corollary.errors import CorollaryError, InputError, WarehouseError
from corollary.streaming.batches import BatchProcessor, StoppedError, StreamBatch, process_streams
from corollary.streaming.frames import FrameReader
from corollary.warehouse.sources.quarantine import BadRowPolicy

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

CHECKPOINTS_DIRECTORY = "streams"
"""The directory of a warehouse with the checkpoints of its streams."""

STOP_TRIES = 3
"""So often Java is asked to stop a stream; if it does not answer then, it is gone itself."""


def start(
    database: Database,
    frame: Any,
    into: str,
    *,
    op: str | None,
    order: str | None,
    checkpoint: str | Path | None,
    trigger: Mapping[str, Any] | None,
    bad_rows: str,
    max_bad: str | int,
    max_deletes: str | int,
    on_batch: Callable[[StreamBatch], object] | None,
) -> "StreamingQuery":
    """Do what `Database.stream` promises; its arguments are documented there."""
    _require_warehouse(database)
    guards = SourceGuards(parse_bound("max_bad", max_bad), parse_bound("max_deletes", max_deletes))
    if not getattr(frame, "isStreaming", False):
        raise InputError.of(
            "C0984",
            "The frame is not a streaming one.",
            None,
            "make it with `spark.readStream`; a frame that is complete goes into "
            "`tx.insert(relation, frame)`",
        )
    database.refresh()
    relation = state_of(database).writable_relation(into)
    reader = FrameReader(op, order)
    reader.check(frame, relation)
    started = start_query(
        database,
        frame,
        relation,
        reader,
        source=f"{into} < stream",
        checkpoint=checkpoint or default_checkpoint(database, into),
        trigger=trigger,
        bad_rows=_bad_rows(bad_rows),
        guards=guards,
        on_batch=on_batch,
    )
    return started[0]


def start_query(
    database: Database,
    frame: Any,
    relation: Relation,
    reader: EventReader,
    *,
    source: str,
    checkpoint: str | Path,
    trigger: Mapping[str, Any] | None,
    bad_rows: BadRowPolicy,
    guards: SourceGuards,
    on_batch: Callable[[StreamBatch], object] | None,
) -> "tuple[StreamingQuery, str]":
    """Start a query; return it, and the token of this start.

    Args:
        database: the database, of a warehouse.
        frame: a streaming frame.
        relation: the base relation that it changes.
        reader: turns its rows into events.
        source: the name of the stream.
        checkpoint: a directory or URL.
        trigger: as `DataStreamWriter.trigger` takes it.
        bad_rows: what is done with malformed rows.
        guards: what is accepted of a batch.
        on_batch: called after every commit.
    """
    opened = _require_warehouse(database)
    token = uuid4().hex
    directory = _make_directory(checkpoint)
    batches = BatchProcessor(
        opened, token, relation.name, source, reader, directory, bad_rows, on_batch, guards
    )
    process_streams.open[token] = database
    writer = frame.writeStream.foreachBatch(batches).option("checkpointLocation", directory)
    if trigger is not None:
        writer = writer.trigger(**trigger)
    query = writer.start()
    state_of(database).closing.append(partial(stop, database, query, token))
    return query, token


def stop(database: Database, query: "StreamingQuery", token: str) -> None:
    """Stop a stream: a batch that is being committed is finished, the next one is not started."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    with state_of(database).lock:  # no batch is being committed
        process_streams.stopping.add(token)
    for _ in range(STOP_TRIES):
        # A signal that comes while Java is asked leaves a connection that cannot be used.
        with suppress(Py4JError):
            if query.isActive:
                query.stop()
            break
    process_streams.stopping.discard(token)  # Spark does not call again


def failure_of(query: "StreamingQuery", token: str) -> CorollaryError | None:
    """Return the error that ended a stream; None if it runs, or was stopped."""
    found = process_streams.failed.get(token)
    if isinstance(found, StoppedError):
        return None
    if found is not None or query.isActive:
        return found
    error = query.exception()
    if error is None:
        return None
    reason = str(error).strip().splitlines()[0]
    hint = "what was committed stays; start it again when the cause is fixed"
    return InputError.of("C0986", f"Spark has ended a stream: {reason}.", None, hint)


def _require_warehouse(database: Database) -> Any:
    opened = open_arguments_of(database)
    if opened is None:
        raise InputError.of(
            "C0982",
            "A stream needs a warehouse, and this database is in memory.",
            None,
            "open a warehouse with `corollary.open(DIRECTORY)`",
        )
    return opened


def default_checkpoint(database: Database, name: str) -> Path:
    """Return the default checkpoint of a stream.

    Raises:
        InputError: `C1552`, the warehouse is in an object store.
    """
    warehouse = warehouse_of(database)
    assert warehouse is not None
    checkpoint = warehouse.root / CHECKPOINTS_DIRECTORY / name
    if isinstance(checkpoint, Path):
        return checkpoint
    raise InputError.of(
        "C1552",
        f"Spark cannot keep the checkpoint of a stream in `{checkpoint}`.",
        None,
        "name a directory, or a URL of a file system that Spark knows, with "
        "`db.stream(…, checkpoint=…)`",
    )


def _make_directory(checkpoint: str | Path) -> str:
    """Make the directory of a checkpoint; return its absolute path, as Spark may run elsewhere."""
    if "://" in str(checkpoint) or str(checkpoint).startswith("file:"):
        return str(checkpoint)
    path = Path(checkpoint).absolute()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WarehouseError.cannot_write(path, error) from error
    return str(path)


def _bad_rows(value: str) -> BadRowPolicy:
    if value not in set(BadRowPolicy):
        known = " or ".join(f"`{each}`" for each in BadRowPolicy)
        raise InputError.of("C0984", f"`bad_rows` is {known}, not `{value}`.", None, None)
    return BadRowPolicy(value)
