"""What Spark calls for every micro-batch: one transaction, committed exactly once.

rows of the batch → events → the last one on each tuple → a transaction with an idempotency key of
query and batch → commit → publish → deliver alerts

Spark calls it again for a batch that its checkpoint does not list as done, although it may have
been committed: then the key is known, and nothing happens. The key holds the id of the query in the
checkpoint, so a deleted checkpoint makes new keys.

With Spark Connect the function runs in a process of the server. So it carries only names, and opens
the database by its location; in the process of the database it uses the open one.

Of a folder in which files arrive (`.input p(IO=stream, filename="arrivals", …)`) Spark finds each
file once and passes its bytes; they are read as those of any other source, so dialects, line
numbers and malformed records are the same. The events of a batch are ordered: files by their
modification time, then by name; inside a file, line by line.
"""

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import pyarrow as pa

from corollary.core.program import Directive, Program, Relation
from corollary.data_class import dataclass
from corollary.database.database import Database, state_of
from corollary.database.intake.source_guards import SourceDifference, SourceGuards
from corollary.database.opening import reopen
from corollary.database.pending_commit import DeferredOperations
from corollary.database.store import OpenArguments
from corollary.database.writing.events import Events, first_bad_rows, with_operation, with_signs
from corollary.database.writing.frame_rows import EventReader, read_batch
from corollary.database.writing.quarantine import quarantine_operations, with_quarantine
from corollary.engines.spark.frames import all_rows
from corollary.errors import CorollaryError, InputError
from corollary.warehouse.copies import count_copies
from corollary.warehouse.files.durable_files import checksum_of
from corollary.warehouse.files.places import Place
from corollary.warehouse.formats import dialect
from corollary.warehouse.sources.file_formats import parse_file
from corollary.warehouse.sources.file_listing import SourceLocation
from corollary.warehouse.sources.quarantine import BadRowPolicy, to_bad_rows
from corollary.warehouse.sources.schema_drift import ExpectedColumns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from corollary.database.alerts.delivery import Delivered
    from corollary.database.transaction import Transaction
    from corollary.warehouse.publishing.outputs import PublishResult


METADATA_FILE = "metadata"
"""The file of a checkpoint that holds the id of its query."""


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """The outcome of a micro-batch.

    Attributes:
        stream: the name of the stream.
        number: of the batch, from 0.
        transaction: what changed; of a repeated batch, what had changed.
        malformed: how many rows were quarantined.
        published: the outcome of publishing; None if nothing is published.
        delivered: the alerts that were delivered to their sinks.
        seconds: how long it took.
    """

    stream: str
    number: int
    transaction: "Transaction"
    malformed: int
    published: "PublishResult | None"
    seconds: float
    delivered: "Delivered | None" = None

    def as_json(self, max_rows: int) -> dict[str, Any]:
        """Return it as `corollary watch` prints it."""
        return {
            **self.transaction.as_json(max_rows),
            "stream": self.stream,
            "batch": self.number,
            "malformed": self.malformed,
            "seconds": round(self.seconds, 6),
        }


class _Local:
    """State that the streams of this process share."""

    def __init__(self) -> None:
        self.open: WeakValueDictionary[str, Database] = WeakValueDictionary()
        """By token, the databases of streams that were started in this process."""
        self.opened: dict[str, Database] = {}
        """By location, databases opened here for streams that another process has started."""
        self.stopping: set[str] = set()
        self.failed: dict[str, CorollaryError] = {}


process_streams = _Local()


class StoppedError(CorollaryError):
    """The stream is stopping: this batch is left for the next start."""


@dataclass(frozen=True, slots=True)
class BatchProcessor:
    """The function of `foreachBatch`.

    Attributes:
        opened: how the database is opened in another process.
        token: identifies this start of the stream, and its database in this process.
        relation: the base relation that is changed.
        source: the name of the stream.
        reader: turns rows into events.
        checkpoint: where Spark records its progress.
        bad_rows: what is done with malformed rows.
        on_batch: called after every commit.
        guards: what is accepted of a batch.
    """

    opened: OpenArguments
    token: str
    relation: str
    source: str
    reader: EventReader
    checkpoint: str
    bad_rows: BadRowPolicy = BadRowPolicy.QUARANTINE
    on_batch: Callable[[StreamBatch], object] | None = None
    guards: SourceGuards = field(default_factory=SourceGuards)

    def __call__(self, frame: Any, number: int) -> None:
        """Commit the transaction of a micro-batch, unless it was committed before."""
        try:
            database = self._database(frame)
            with state_of(database).lock:
                if self.token in process_streams.stopping:
                    raise StoppedError(f"`{self.source}` is stopped before batch {number}")
                batch = self._transact(database, frame, number)
        except CorollaryError as error:
            process_streams.failed[self.token] = error
            raise
        batch = replace(batch, delivered=database.deliver())
        if self.on_batch is not None:
            self.on_batch(batch)

    def _database(self, frame: Any) -> Database:
        found = process_streams.open.get(self.token) or process_streams.opened.get(
            self.opened.location
        )
        if found is None:
            found = reopen(self.opened, frame.sparkSession)
            process_streams.opened[self.opened.location] = found
        return found

    def _transact(self, database: Database, frame: Any, number: int) -> StreamBatch:
        began = time.monotonic()
        database.refresh()
        transaction = database.transaction(idempotency=f"stream {self._query(frame)} {number}")
        malformed = 0
        if not transaction.is_repeated:
            malformed = self._fill(transaction, database, frame, number)
            transaction.commit()
        published = database.publish(transaction)
        seconds = time.monotonic() - began
        return StreamBatch(self.source, number, transaction, malformed, published, seconds)

    def _fill(self, transaction: "Transaction", database: Database, frame: Any, number: int) -> int:
        """Add the change of a batch to a transaction; return how many rows are quarantined."""
        state = state_of(database)
        relation = state.writable_relation(self.relation)
        has_copies = self.relation in state.loaded.normal.bags
        change = read_batch(
            self.reader,
            frame,
            relation,
            self.source,
            f"batch {number}",
            tasks=state.engine.tasks,
            has_copies=has_copies,
        )
        if change.bad.num_rows and self.bad_rows is BadRowPolicy.ABORT:
            raise InputError(first_bad_rows(change.bad, change.findings, self.source))
        directive = self.reader.directive if isinstance(self.reader, FolderReader) else None
        declared = (each for each in database.program.declarations if each.name == self.relation)
        difference = SourceDifference(
            self.source,
            relation,
            change.added,
            change.removed,
            next((each.key for each in declared), ()),
            directive,
            has_copies,
            number,
        )
        held = state.engine.handle(state.loaded.normal.bases.get(self.relation, self.relation))
        size = count_copies(held) if has_copies else len(held)
        tasks = state.engine.tasks
        self.guards.check_batch(difference, change.good, change.bad, size, held=held, tasks=tasks)
        transaction.delete(self.relation, change.removed)
        transaction.insert(self.relation, change.added)
        if change.bad.num_rows:
            transaction.edit(with_quarantine)
            source = self.source
            transaction.read(
                lambda: DeferredOperations(
                    quarantine_operations(
                        state.engine, state.program, source, change.bad, frozenset()
                    ),
                    {},
                )
            )
        return int(change.bad.num_rows)

    def _query(self, frame: Any) -> str:
        """Return the id of the query, which is that of its checkpoint."""
        if "://" in self.checkpoint:
            read = all_rows(frame.sparkSession.read.text(f"{self.checkpoint}/{METADATA_FILE}"))
            return str(json.loads(read.column(0)[0].as_py())["id"])
        path = Path(self.checkpoint.removeprefix("file:")) / METADATA_FILE
        return str(json.loads(path.read_text("utf-8"))["id"])


BINARY_FILE_SCHEMA = "path string, modificationTime timestamp, length long, content binary"
"""The columns of Spark's format `binaryFile`."""
_GLOB_CHARACTERS = re.compile(r"([\\*?\[\]{},])")
_WILDCARDS = re.compile(r"[*?[]")


@dataclass(frozen=True, slots=True)
class FolderReader:
    """Reads the files of a micro-batch.

    Attributes:
        directive: the `.input`.
        folder: where its files are.
    """

    directive: Directive
    folder: str

    @property
    def op(self) -> str | None:
        """The column of the operation; None if all rows are inserts."""
        return self.directive.parameter("op") or None

    def select(self, frame: Any) -> Any:
        """Return what is read of a micro-batch."""
        return frame.select("path", "modificationTime", "content")

    def read(self, table: pa.Table, relation: Relation, source: str, batch: str) -> list[Events]:
        """Return the events of some files of a batch, file by file.

        Raises:
            InputError: a file cannot be read, or has other columns.
        """
        shape, directive = (
            with_operation(relation, self.op),
            dialect.per_file_directive(self.directive),
        )
        has_names = directive.parameter("headers") == "true" and not directive.parameter("columns")
        expected = ExpectedColumns(shape, directive, shape.columns if has_names else ())
        found = []
        for file in table.to_pylist():
            path = Path(file["path"].removeprefix("file:"))
            name = str(path.relative_to(self.folder))
            format_ = dialect.format_of(directive, path.name)
            reading = parse_file(file["content"], str(path), format_, expected)
            bad = to_bad_rows(relation.name, source, name, reading.malformed)
            rows, unknown = with_signs(reading.table, relation, self.op, source, batch)
            bad = pa.concat_tables([bad, unknown])
            place = file["modificationTime"], file["path"]
            found.append(Events(rows, bad, tuple(reading.malformed), place))
        return found


@dataclass(frozen=True, slots=True)
class Folder:
    """An `.input` that is a stream.

    Attributes:
        relation: the relation that it changes.
        reader: reads its batches.
        pattern: for the names of its files.
    """

    relation: str
    reader: FolderReader
    pattern: str

    @property
    def source(self) -> str:
        """The name of the stream: unique, and the same in every run."""
        return f"{self.relation} < {dialect.file_name_of(self.reader.directive)}"

    @property
    def checkpoint(self) -> str:
        """The name of its checkpoint directory."""
        return f"{self.relation}-{checksum_of(self.source.encode())[:8]}"

    def frame(self, session: "SparkSession") -> "DataFrame":
        """Return the files as a streaming frame."""
        reader = session.readStream.format("binaryFile").schema(BINARY_FILE_SCHEMA)
        reader = reader.option("recursiveFileLookup", "true").option("pathGlobFilter", self.pattern)
        max_files = self.reader.directive.parameter("max_files")
        if max_files:
            reader = reader.option("maxFilesPerTrigger", max_files)
        return reader.load(_GLOB_CHARACTERS.sub(r"\\\1", self.reader.folder))


def find_folders(
    program: Program, relations: Mapping[str, Relation], base: Place, root: Place | None
) -> list[Folder]:
    """Return the streams of a program, one for each different `.input` that is one.

    Args:
        program: the program, checked.
        relations: the shapes of its relations by name.
        base: the directory that names are relative to (`-F`).
        root: the directory that files must lie in (`--root`); by default the base.

    Raises:
        InputError: `C0805`, a name lies outside; `C0984`, it is not a folder, or is read twice.
    """
    found: dict[str, Folder] = {}
    for directive in dict.fromkeys(program.directives):
        if not dialect.is_stream(directive):
            continue
        folder, pattern = _folder(directive, base, root)
        reader = FolderReader(directive, str(folder))
        each = Folder(relations[directive.relation].name, reader, pattern)
        if each.source in found:
            raise InputError.of(
                "C0984",
                f"`{each.relation}` reads `{dialect.file_name_of(directive)}` in two ways.",
                directive.span,
                "take one `.input` out, or let it fill a relation of its own",
            )
        found[each.source] = each
    return list(found.values())


def _folder(directive: Directive, base: Place, root: Place | None) -> tuple[Path, str]:
    """Return the folder of a stream, and the pattern for the names in it."""
    name = dialect.file_name_of(directive)
    place = SourceLocation(root or base, base, name, directive.span)
    path, pattern = place.resolve(name), "*"
    if not path.exists() and _WILDCARDS.search(Path(name).name):
        path, pattern = place.resolve(str(Path(name).parent)), Path(name).name
    if not isinstance(path, Path) or not path.is_dir():
        raise InputError.of(
            "C0984",
            f"`{place.display_name}` is not a folder in which files can arrive.",
            directive.span,
            'name a folder, perhaps with a pattern for files: `filename="arrivals/*.csv"`',
        )
    return path, pattern
