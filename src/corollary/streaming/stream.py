"""Starting a stream, and stopping it between two batches."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from corollary.core.program import Relation
from corollary.database.database import Database, opened_of, state_of, warehouse_of
from corollary.database.opened import Opened
from corollary.errors import CorollaryError, InputError, WarehouseError
from corollary.streaming.batches import Batch, MicroBatches, Reader, StoppedError, local
from corollary.streaming.frames import FrameReader
from corollary.warehouse.sources.quarantine import BadRows

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

STREAMS = "streams"
"""The directory of a warehouse in which the checkpoints of its streams are."""


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
    on_batch: Callable[[Batch], object] | None,
) -> "StreamingQuery":
    """Start `Database.stream`, which has the words about its arguments."""
    _demand_warehouse(database)
    if not getattr(frame, "isStreaming", False):
        raise InputError.of(
            "C0984",
            "The frame is no streaming one.",
            None,
            "make it with `spark.readStream`; a frame that is complete goes into "
            "`tx.insert(relation, frame)`",
        )
    database.refresh()
    relation = state_of(database).writable(into)
    reader = FrameReader(op, order)
    reader.demand(frame, relation)
    started = started_query(
        database,
        frame,
        relation,
        reader,
        source=f"{into} < stream",
        checkpoint=checkpoint or checkpoint_of(database, into),
        trigger=trigger,
        bad_rows=_bad_rows(bad_rows),
        on_batch=on_batch,
    )
    return started[0]


def started_query(
    database: Database,
    frame: Any,
    relation: Relation,
    reader: Reader,
    *,
    source: str,
    checkpoint: str | Path,
    trigger: Mapping[str, Any] | None,
    bad_rows: BadRows,
    on_batch: Callable[[Batch], object] | None,
) -> "tuple[StreamingQuery, str]":
    """Start a query; return it, and the token of this start.

    Args:
        database: the database, of a warehouse.
        frame: a streaming frame.
        relation: the base relation that it changes.
        reader: makes events of its rows.
        source: the name of the stream.
        checkpoint: a directory or URL.
        trigger: as `DataStreamWriter.trigger` takes it.
        bad_rows: what is done about rows that do not fit.
        on_batch: called behind every commit.
    """
    opened = _demand_warehouse(database)
    token = uuid4().hex
    place = _made(checkpoint)
    batches = MicroBatches(opened, token, relation.name, source, reader, place, bad_rows, on_batch)
    local.open[token] = database
    writer = frame.writeStream.foreachBatch(batches).option("checkpointLocation", place)
    if trigger is not None:
        writer = writer.trigger(**trigger)
    query = writer.start()
    state_of(database).closing.append(partial(stop, database, query, token))
    return query, token


def stop(database: Database, query: "StreamingQuery", token: str) -> None:
    """Stop a stream: the batch that is being committed is finished, the next one is not begun."""
    with state_of(database).lock:  # nobody commits now
        local.stopping.add(token)
    if query.isActive:
        query.stop()
    local.stopping.discard(token)  # nobody calls any more


def failure(query: "StreamingQuery", token: str) -> CorollaryError | None:
    """Return why a stream has ended; None if it goes on, or was stopped."""
    found = local.failed.get(token)
    if isinstance(found, StoppedError):
        return None
    if found is not None or query.isActive:
        return found
    error = query.exception()
    if error is None:
        return None
    reason = str(error).strip().splitlines()[0]
    cure = "what was committed stays; start it again when the cause is mended"
    return InputError.of("C0986", f"Spark has ended a stream: {reason}.", None, cure)


def _demand_warehouse(database: Database) -> Opened:
    opened = opened_of(database)
    if opened is None:
        raise InputError.of(
            "C0982",
            "A stream needs a warehouse, and this database is in memory.",
            None,
            "open one that lasts with `corollary.open(DIRECTORY)`",
        )
    return opened


def checkpoint_of(database: Database, name: str) -> Path:
    """Return where the checkpoint of a stream is if nobody says where."""
    warehouse = warehouse_of(database)
    assert warehouse is not None
    return warehouse.root / STREAMS / name


def _made(checkpoint: str | Path) -> str:
    """Return the directory of a checkpoint, absolute: Spark and we may be in different ones."""
    if "://" in str(checkpoint) or str(checkpoint).startswith("file:"):
        return str(checkpoint)
    path = Path(checkpoint).absolute()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WarehouseError.cannot_write(path, error) from error
    return str(path)


def _bad_rows(asked: str) -> BadRows:
    if asked not in set(BadRows):
        known = " or ".join(f"`{each}`" for each in BadRows)
        raise InputError.of("C0984", f"`bad_rows` is {known}, not `{asked}`.", None, None)
    return BadRows(asked)
