"""Documents on Spark: many of them side by side, each with its state, in Structured Streaming.

Rows `(doc, fn, seq, xml, eos, op, old, at)` are grouped by document; if views are over several
documents, by what stands before the last `/` of their names. For each group that a micro-batch has
rows for, a task calls `DocumentTask` with its state (a `SavedDocument`, as JSON) and rows; it
yields events and updates the state. Spark checkpoints state and progress together, so a batch that
is repeated starts from the same state; rows that are sent twice are recognised by their number.

A process keeps documents open between batches; a state that another process has changed since has
another stamp, and is opened again. With Spark Connect events are received in a process of the
server: it opens the warehouse by its location, and calls `on_batch` there.

Events go to relations of a warehouse, published like any other. An answer is a JSON array of
labels; `document_label` has them one by one, so that rules of the warehouse can select and compute.

Time is what rows say. If it passes by the clock, rows without a time came at that of their batch,
and a document with a window is called again, without rows, when something may leave it.
"""

import json
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow_buffers import index_array
from corollary.core.program import Program, Relation
from corollary.core.states import State
from corollary.data_class import dataclass
from corollary.database.database import Database, open_arguments_of, state_of
from corollary.database.opening import reopen
from corollary.database.store import OpenArguments
from corollary.database.writing.frame_rows import read_parts
from corollary.database.writing.rows import checked_table
from corollary.documents.queries.parse import parse_query, several_documents
from corollary.documents.saved_document import SavedDocument, StreamRow
from corollary.documents.stream_state import StreamProcessor
from corollary.documents.types.function_types import FunctionType, Grammar
from corollary.documents.types.read_type import GivenType, function_type, read_type
from corollary.errors import InputError
from corollary.frontends.datalog.parser import parse
from corollary.source import SourceFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

ARRIVALS = (
    "doc string, fn string, seq long, xml string, eos boolean, op string, old string, at string"
)
"""The columns of the source. A row without `fn` brings the document itself, or only a time; `op` is
`add`, if it is not `retract` or `replace`; `at` is when it came."""
OPTIONAL_COLUMNS = ("op", "old", "at")
"""Those that a source may leave out."""
WHOLE_COLLECTION = "collection"
"""The name of the group of documents whose names have no `/`."""
EVENTS = (
    "doc string, op string, view string, text string, value double, before double, seq long, "
    "since string"
)
STATE = "kept string"
_COLUMNS = [each.split()[0] for each in EVENTS.split(", ")]
EVENT_PROGRAM = """\
.decl document_answer(doc: symbol, view: symbol, answer: symbol)
.decl document_label(doc: symbol, view: symbol, answer: symbol, place: number, label: symbol)
.decl document_value(doc: symbol, view: symbol, value: float) key(doc, view)
.decl document_waits(doc: symbol, view: symbol, function: symbol)
.decl document_since(doc: symbol, view: symbol, function: symbol, since: symbol)
.decl document_closed(doc: symbol, function: symbol)
.decl document_refused(doc: symbol, function: symbol, seq: number, reason: symbol)
.output document_answer, document_label, document_value
.output document_waits, document_since, document_closed, document_refused
"""
_ANSWER = "doc", "view", "text"
_EMPTY_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"
_processors: dict["DocumentTask", StreamProcessor] = {}
"""Of this process: documents stay open from one batch to the next."""
_databases: dict[str, Database] = {}
"""By location, those whose streams this process runs."""


@dataclass(frozen=True, slots=True)
class DocumentTask:
    """What a task calls for each document that has rows in a batch.

    Attributes:
        views: queries by name.
        template: what every document is in the beginning; by name, if there are several.
        once: the functions that answer at most once.
        types: what the trees of functions look like.
        document_type: what documents have to be in the end.
        is_retractable: whether rows may retract trees.
        is_clocked: whether time passes by the clock.
    """

    views: tuple[tuple[str, str], ...]
    template: str | tuple[tuple[str, str], ...] | None = None
    once: tuple[str, ...] = ()
    types: tuple[tuple[str, FunctionType], ...] = ()
    document_type: Grammar | None = None
    is_retractable: bool = False
    is_clocked: bool = False

    @property
    def is_joint(self) -> bool:
        """Whether views are over several documents."""
        return any(parse_query(query).is_joint for _, query in self.views)

    def processor(self) -> StreamProcessor:
        """Return what applies rows to documents.

        Raises:
            InputError: a view, the template or a type is malformed.
        """
        return StreamProcessor(
            dict(self.views),
            dict(self.template) if isinstance(self.template, tuple) else self.template,
            self.once,
            dict(self.types),
            document_type=self.document_type,
            is_retractable=self.is_retractable,
            is_clocked=self.is_clocked,
        )

    def __call__(self, key: tuple[Any, ...], frames: Iterable[Any], state: Any) -> Iterator[Any]:
        """Apply the rows of a batch to a document."""
        import pandas as pd

        processor = _processors.get(self)
        if processor is None:
            # Spark's worker concatenates frames of which some are empty, and pandas warns of that.
            warnings.filterwarnings("ignore", "The behavior of DataFrame concat", FutureWarning)
            processor = _processors[self] = self.processor()
        saved = SavedDocument.from_json(state.get[0] if state.exists else None)
        arrivals = [
            StreamRow(
                fn or "",
                -1 if pd.isna(seq) else int(seq),
                xml,
                eos is True or eos == 1,
                op or None,
                old,
                at or None,
            )
            for frame in frames
            for fn, seq, xml, eos, op, old, at in zip(
                *(frame[name] for name in ("fn", "seq", "xml", "eos", "op", "old", "at")),
                strict=True,
            )
        ]
        seconds = state.getCurrentProcessingTimeMs() / 1000
        now = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
        events = processor.process_rows(str(key[0]), saved, arrivals, now)
        state.update((saved.to_json(),))
        turn = processor.next_turn(str(key[0])) if self.is_clocked else None
        if turn is not None:  # one millisecond later it has turned
            state.setTimeoutDuration(max(1, math.ceil(1000 * (turn - seconds)) + 1))
        rows = [
            (key[0], each.op, each.view, each.text, each.value, each.before, each.seq, each.since)
            for each in events
        ]
        if rows:
            yield pd.DataFrame(rows, columns=_COLUMNS)


def document_events(
    frame: "DataFrame",
    views: Mapping[str, str],
    *,
    template: str | Mapping[str, str] | None = None,
    once: Sequence[str] = (),
    types: Mapping[str, GivenType] | None = None,
    document_type: Grammar | str | Path | None = None,
    retractions: bool = False,
    clock: bool = False,
) -> "DataFrame":
    """Return the events of documents whose streams are a streaming frame.

    Args:
        frame: with the columns of `ARRIVALS`.
        views: queries by name; all over one document, or all over several.
        template: what every document is in the beginning, unless a row without `fn` brings it; by
            name, if there are several.
        once: the functions that answer at most once.
        types: what the trees of functions look like: labels, or a type.
        document_type: what documents have to be in the end; then nothing is collected.
        retractions: whether rows may retract and replace trees; then nothing is collected.
        clock: whether time passes by the clock of the cluster, and not only by the times of rows.

    Raises:
        InputError: a view is not a query, the template is not of its type, or pandas is missing.
    """
    _check_pandas()
    queries = [parse_query(query) for query in views.values()]
    if len({each.is_joint for each in queries}) > 1:
        joint = next(each for each in queries if each.is_joint)
        note = 'begin every view with `doc("name")` or `collection()`, or none of them'
        raise several_documents(joint, note)
    named = {name: function_type(name, each) for name, each in (types or {}).items()}
    grammar = document_type
    if isinstance(grammar, str | Path):
        grammar = read_type(grammar, "document type")
    task = DocumentTask(
        tuple(views.items()),
        tuple(sorted(template.items())) if isinstance(template, Mapping) else template,
        tuple(once),
        tuple(sorted(named.items(), key=lambda pair: pair[0])),
        grammar,
        retractions,
        clock,
    )
    task.processor()  # what is malformed is found here, and not in a task
    for name in OPTIONAL_COLUMNS:
        frame = frame if name in frame.columns else frame.selectExpr("*", f"string(null) {name}")
    rows = frame.select(*(each.split()[0] for each in ARRIVALS.split(", ")))
    if task.is_joint:  # of `north/orders` the function `web` is `orders:web` of `north`
        name = "substring_index(doc, '/', -1)"
        group = f"if(contains(doc, '/'), left(doc, length(doc) - length({name}) - 1), null)"
        rows = rows.selectExpr(
            f"coalesce({group}, '{WHOLE_COLLECTION}') doc",
            f"concat({name}, ':', coalesce(fn, '')) fn",
            *(each.split()[0] for each in ARRIVALS.split(", ")[2:]),
        )
    timeout = "ProcessingTimeTimeout" if clock else "NoTimeout"
    return rows.groupBy("doc").applyInPandasWithState(task, EVENTS, STATE, "append", timeout)


@dataclass(frozen=True, slots=True)
class EventWriter:
    """What Spark calls for the events of a micro-batch: one transaction, under a key of its own."""

    opened: OpenArguments
    checkpoint: str
    on_batch: "Callable[[int, int], object] | None" = None

    def __call__(self, frame: "DataFrame", number: int) -> None:
        """Put the events of a batch into the warehouse, unless that was done before."""
        database = _databases.get(self.opened.location)
        if database is None:
            database = _databases[self.opened.location] = reopen(self.opened, frame.sparkSession)
        state = state_of(database)
        relations = [state.writable_relation(each.relation) for each in EVENT_ROWS]
        # One job for all of them: a frame that has state is computed once.
        parts, count = read_parts(frame, EventSplit(relations), relations, state.engine.tasks)
        if count:  # by the clock there are batches without rows
            path = Path(self.checkpoint.removeprefix("file:")) / "metadata"
            query = json.loads(path.read_text("utf-8"))["id"]
            with state.lock:
                with database.transaction(idempotency=f"documents {query} {number}") as tx:
                    for each, rows in zip(EVENT_ROWS, parts, strict=True):
                        write = tx.delete if each.sign is State.REMOVED else tx.insert
                        if len(rows):
                            write(each.relation, rows)
                database.publish()
        if self.on_batch is not None:
            self.on_batch(number, count)


class EventRows(NamedTuple):
    """What events with an operation do to a relation: these columns come or go."""

    sign: State
    op: str
    relation: str
    columns: tuple[str, ...]

    def of(self, events: pa.Table) -> pa.Table:
        """Return the rows."""
        rows = events.filter(pc.equal(events.column("op"), pa.scalar(self.op)))
        if "before" in self.columns:  # a value that is the first one has a negative one before it
            rows = rows.filter(pc.greater_equal(rows.column("before"), pa.scalar(0.0)))
        return (_labels(rows) if "label" in self.columns else rows).select(list(self.columns))


EVENT_ROWS = (
    EventRows(State.REMOVED, "retracted", "document_answer", _ANSWER),
    EventRows(State.REMOVED, "retracted", "document_label", (*_ANSWER, "place", "label")),
    EventRows(State.REMOVED, "value", "document_value", ("doc", "view", "before")),
    EventRows(State.REMOVED, "settled", "document_waits", _ANSWER),
    EventRows(State.REMOVED, "settled", "document_since", (*_ANSWER, "since")),
    EventRows(State.ADDED, "sure", "document_answer", _ANSWER),
    EventRows(State.ADDED, "sure", "document_label", (*_ANSWER, "place", "label")),
    EventRows(State.ADDED, "value", "document_value", ("doc", "view", "value")),
    EventRows(State.ADDED, "waits", "document_waits", _ANSWER),
    EventRows(State.ADDED, "waits", "document_since", (*_ANSWER, "since")),
    EventRows(State.ADDED, "close", "document_closed", ("doc", "text")),
    EventRows(State.ADDED, "refused", "document_refused", ("doc", "view", "seq", "text")),
)
"""What events do, in this order: what goes goes first."""


@dataclass(frozen=True, slots=True)
class EventSplit:
    """Splits events into the rows of `EVENT_ROWS`; it is pickled, and called in tasks."""

    relations: Sequence[Relation]

    def __call__(self, events: pa.Table) -> list[pa.Table]:
        """Return the rows."""
        return [
            checked_table(each.of(events).rename_columns(list(relation.columns)), relation)
            for each, relation in zip(EVENT_ROWS, self.relations, strict=True)
        ]


def _labels(answers: pa.Table) -> pa.Table:
    """Return a row for each label of answers, with its place among those of the answer."""
    labels = [json.loads(each) for each in answers.column("text").to_pylist()]
    number = index_array(np.repeat(np.arange(len(labels)), list(map(len, labels))))
    places = [at for each in labels for at in range(len(each))]
    rows = answers.take(number).append_column("place", pa.array(places, pa.int64()))
    texts = [label for each in labels for label in each]
    return rows.append_column("label", pa.array(texts, pa.string()))


def declare_relations(database: Database) -> None:
    """Declare the relations of `EVENT_PROGRAM` that the program of the warehouse does not."""
    declared = parse(SourceFile("documents", EVENT_PROGRAM))
    known = state_of(database).loaded.normal.relations
    added = Program(
        declarations=tuple(each for each in declared.declarations if each.name not in known),
        directives=tuple(each for each in declared.directives if each.relation not in known),
    )
    if added.declarations:
        with database.transaction() as transaction:
            transaction.edit(lambda program: program + added)


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
        database: with a warehouse; `EVENT_PROGRAM` declares its relations.
        frame: as `document_events` takes it; further options are for that, too.
        views: queries by name.
        checkpoint: where Spark keeps state and progress; in the warehouse if it is not given.
        trigger: as `DataStreamWriter.trigger` takes it.
        on_batch: called with the number of each batch, and how many events it had; with Spark
            Connect in a process of the server.
        options: of `document_events`.

    Raises:
        InputError: the database is in memory, or a view is not a query.
    """
    opened = open_arguments_of(database)
    if opened is None:
        cure = "open it with a path: corollary.open('warehouse')"
        raise InputError.of("C1250", "Documents are watched in a warehouse.", None, cure)
    declare_relations(database)
    location = _absolute(checkpoint or Path(opened.location) / "streams" / "documents")
    _databases[opened.location] = database
    events = document_events(frame, views, **options)
    writer = events.writeStream.outputMode("append").option("checkpointLocation", location)
    writer = writer.foreachBatch(EventWriter(opened, location, on_batch))
    writer = writer.trigger(**(trigger or {"processingTime": "0 seconds"}))
    with _batches_of_rows(frame.sparkSession, is_only=bool(trigger and "availableNow" in trigger)):
        query = writer.start()
    state_of(database).closing.append(query.stop)
    return query


@contextmanager
def _batches_of_rows(session: "SparkSession", *, is_only: bool) -> Iterator[None]:
    """Let a query that starts have no batches without rows, so that it ends when all are read.

    Where states have a timeout, Spark would otherwise begin one batch after the other.
    """
    before = session.conf.get(_EMPTY_BATCHES)
    if is_only:
        session.conf.set(_EMPTY_BATCHES, "false")
    try:
        yield
    finally:
        if is_only and before is not None:
            session.conf.set(_EMPTY_BATCHES, before)


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
        lines = str(error).strip().splitlines()
        cure = "fix it and start again: it goes on after the last batch that was committed"
        raise InputError.of("C1253", f"The stream has failed: {lines[0]}.", None, cure) from error


def _check_pandas() -> None:
    from importlib.util import find_spec

    if find_spec("pandas") is None:
        cure = 'pip install "corollary[documents]"'
        raise InputError.of("C1251", "State for each document needs pandas.", None, cure)
