"""Documents on Spark: many of them side by side, each with its state, in Structured Streaming.

Rows `(doc, fn, seq, xml, eos)` are grouped by document. For each document that a micro-batch has
rows for, a task calls `Shard` with what is kept of it (`keeping.Kept`, as JSON) and the rows; the
events that come of them go on, what is kept goes back. Spark keeps state and progress together, so
a batch that is repeated begins where it began before; numbers of rows tell what comes again.

A process keeps documents open between batches; a state that another process has changed since has
another stamp, and is opened anew. With Spark Connect events are received in a process of the
server: it opens the warehouse by its place, and calls `on_batch` there.
"""

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corollary.database.database import Database, opened_of, state_of
from corollary.database.opened import Opened
from corollary.database.opening import reopen
from corollary.documents.keeping import Arrival, Keeper, Kept
from corollary.documents.sink import receive, sink_program
from corollary.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

ARRIVALS = "doc string, fn string, seq long, xml string, eos boolean"
"""The columns of the source. A row without `fn` brings the document itself."""
EVENTS = "doc string, op string, view string, text string, value double, before double, seq long"
STATE = "kept string"
_COLUMNS = [each.split()[0] for each in EVENTS.split(", ")]
_keepers: dict["Shard", Keeper] = {}
"""Of this process: documents stay open from one batch to the next."""
_databases: dict[str, Database] = {}
"""By place, those whose streams this process runs."""


@dataclass(frozen=True, slots=True)
class Shard:
    """What a task calls for each document that has rows in a batch.

    Attributes:
        views: queries by name.
        template: what every document is in the beginning.
        once: the functions that answer at most once.
        types: the labels that the trees of functions begin with.
    """

    views: tuple[tuple[str, str], ...]
    template: str | None = None
    once: tuple[str, ...] = ()
    types: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __call__(self, key: tuple[Any, ...], frames: Iterable[Any], state: Any) -> Iterator[Any]:
        """Let the rows of a batch come to a document."""
        import pandas as pd

        keeper = _keepers.get(self)
        if keeper is None:
            # Spark's worker joins frames of which some are empty; what it says of that is not ours.
            warnings.filterwarnings("ignore", "The behavior of DataFrame concat", FutureWarning)
            keeper = _keepers[self] = Keeper(
                dict(self.views), self.template, self.once, dict(self.types)
            )
        kept = Kept.of(state.get[0] if state.exists else None)
        arrivals = [
            Arrival(fn or "", -1 if pd.isna(seq) else int(seq), xml, eos is True or eos == 1)
            for frame in frames
            for fn, seq, xml, eos in zip(
                frame["fn"], frame["seq"], frame["xml"], frame["eos"], strict=True
            )
        ]
        events = keeper.take(str(key[0]), kept, arrivals)
        state.update((kept.text(),))
        rows = [
            (key[0], each.op, each.view, each.text, each.value, each.before, each.seq)
            for each in events
        ]
        if rows:
            yield pd.DataFrame(rows, columns=_COLUMNS)


def events_of(
    frame: "DataFrame",
    views: Mapping[str, str],
    *,
    template: str | None = None,
    once: Sequence[str] = (),
    types: Mapping[str, Sequence[str]] | None = None,
) -> "DataFrame":
    """Return the events of documents whose streams are a streaming frame.

    Args:
        frame: with the columns of `ARRIVALS`.
        views: queries by name.
        template: what every document is in the beginning, unless a row without `fn` brings it.
        once: the functions that answer at most once.
        types: the labels that the trees of functions begin with.

    Raises:
        InputError: a query is none, or pandas is missing.
    """
    _demand_pandas()
    for query in views.values():
        from corollary.documents.parse import parse_query

        parse_query(query)
    named = tuple((name, tuple(labels)) for name, labels in sorted((types or {}).items()))
    shard = Shard(tuple(views.items()), template, tuple(once), named)
    asked = frame.select(*(each.split()[0] for each in ARRIVALS.split(", ")))
    return asked.groupBy("doc").applyInPandasWithState(shard, EVENTS, STATE, "append", "NoTimeout")


@dataclass(frozen=True, slots=True)
class Receiver:
    """What Spark calls for the events of a micro-batch: one transaction, under a key of its own."""

    opened: Opened
    checkpoint: str
    on_batch: "Callable[[int, int], object] | None" = None

    def __call__(self, frame: "DataFrame", number: int) -> None:
        """Put the events of a batch into the warehouse, unless that was done before."""
        database = _databases.get(self.opened.place)
        if database is None:
            database = _databases[self.opened.place] = reopen(self.opened, frame.sparkSession)
        events = frame.toArrow().to_pylist()
        path = Path(self.checkpoint.removeprefix("file:")) / "metadata"
        query = json.loads(path.read_text("utf-8"))["id"]
        with state_of(database).lock:
            receive(database, events, f"documents {query} {number}")
            database.publish()
        if self.on_batch is not None:
            self.on_batch(number, len(events))


def watch(
    database: Database,
    frame: "DataFrame",
    views: Mapping[str, str],
    *,
    checkpoint: str | Path | None = None,
    trigger: Mapping[str, Any] | None = None,
    on_batch: "Callable[[int, int], object] | None" = None,
    **options: Any,
) -> "StreamingQuery":
    """Keep a warehouse up to date with the answers of views on documents, exactly once.

    Args:
        database: with a warehouse; its relations are those of `sink.PROGRAM`.
        frame: as `events_of` takes it; further options are for that, too.
        views: queries by name.
        checkpoint: where Spark keeps state and progress; in the warehouse if it is not given.
        trigger: as `DataStreamWriter.trigger` takes it.
        on_batch: called with the number of each batch, and how many events it had; with Spark
            Connect in a process of the server.
        options: of `events_of`.

    Raises:
        InputError: the database is in memory, or a query is none.
    """
    opened = opened_of(database)
    if opened is None:
        cure = "open it with a path: corollary.open('warehouse')"
        raise InputError.of("C1250", "Documents are watched in a warehouse.", None, cure)
    sink_program(database)
    place = _absolute(checkpoint or Path(opened.place) / "streams" / "documents")
    _databases[opened.place] = database
    events = events_of(frame, views, **options)
    writer = events.writeStream.outputMode("append").option("checkpointLocation", place)
    writer = writer.foreachBatch(Receiver(opened, place, on_batch))
    query = writer.trigger(**(trigger or {"processingTime": "0 seconds"})).start()
    state_of(database).closing.append(query.stop)
    return query


def _absolute(checkpoint: str | Path) -> str:
    """Return where a checkpoint is, for processes in other directories, too."""
    is_address = "://" in str(checkpoint) or str(checkpoint).startswith("file:")
    return str(checkpoint) if is_address else str(Path(checkpoint).absolute())


def wait(query: "StreamingQuery") -> None:
    """Wait until a query ends.

    Raises:
        InputError: it has failed.
    """
    from pyspark.errors import StreamingQueryException

    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        said = str(error).strip().splitlines()
        cure = "mend it and start again: it goes on behind the last batch that was committed"
        raise InputError.of("C1253", f"The stream has failed: {said[0]}.", None, cure) from error


def _demand_pandas() -> None:
    from importlib.util import find_spec

    if find_spec("pandas") is None:
        cure = 'pip install "corollary[documents]"'
        raise InputError.of("C1251", "State for each document needs pandas.", None, cure)
