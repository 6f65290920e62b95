"""Frames of Spark as rows: those of a transaction, and the micro-batches of streams.

rows of a frame → (tasks) events → pieces by tuple → (tasks) the last event on each → files

Tasks read and check the rows, the driver sees counts. All events on a tuple are in the same
partition of the tuples, in their order, so that each partition has its net change by itself. Where
all rows are inserts, one job is enough. The events of tasks that have few come with their report: a
frame without others is put together here.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import pyarrow as pa

from corollary.core.arrow import empty_table
from corollary.core.engine import TaskPool
from corollary.core.program import Relation
from corollary.data_class import dataclass
from corollary.database.writing.bag_operations import check_counts
from corollary.database.writing.events import Events, join_events, net_change
from corollary.database.writing.rows import MisfitError, checked_table
from corollary.database.writing.task_changes import rows_in
from corollary.engines.spark.frames import all_rows, empty_rows, map_frame
from corollary.engines.spark.session import describe_jobs
from corollary.errors import Diagnostic
from corollary.warehouse.files.durable_files import from_arrow_stream, to_arrow_stream
from corollary.warehouse.files.file_rows import RowsFile, StagingDirectory
from corollary.warehouse.files.places import Place, remove_files
from corollary.warehouse.formats.delimited import SHOWN_FINDINGS_MAX
from corollary.warehouse.sources.source import Rows
from corollary.warehouse.sources.tasks.portion_reader import load_bad_rows, store_bad_rows
from corollary.warehouse.sources.tasks.staged_rows import (
    KeyPartitions,
    RowPieces,
    write_pieces,
    write_rows,
)
from corollary.warehouse.sources.tasks.staging import QUARANTINED_MAX, too_many_bad_rows

INLINE_EVENTS = 1 << 14
"""The events of a task that has no more than this come with its report."""

_EXPECTED_ROWS = 1 << 24
"""How many rows a large frame may have: Spark does not say before."""


class EventReader(Protocol):
    """Turns the rows of a frame into events; it is pickled."""

    @property
    def op(self) -> str | None:
        """The column of the operation; None if all rows are inserts."""

    def select(self, frame: Any) -> Any:
        """Return what is read of a frame."""

    def read(self, table: pa.Table, relation: Relation, source: str, batch: str) -> list[Events]:
        """Return the events of some rows.

        Raises:
            InputError: they cannot be read, or have other columns.
        """


def read_frame(
    frame: Any, relation: Relation, tasks: TaskPool, *, has_counts: bool = False
) -> Rows:
    """Return the rows of a frame, as often as they are there; a table where they are few.

    Args:
        frame: of Spark.
        relation: the relation that they are for; it has columns.
        tasks: where they are read.
        has_counts: whether the last column is a number of copies.

    Raises:
        InputError: a row does not fit; the message names it.
    """
    check = RowCheck(relation, has_counts)
    check(empty_rows(frame))  # no job for columns that do not fit
    with describe_jobs(frame.sparkSession, f"read a frame for {relation.name}"):
        (rows,), _ = read_parts(frame, check, [relation], tasks)
    return rows


@dataclass(frozen=True, slots=True)
class RowCheck:
    """Checks rows for a relation; it is pickled."""

    relation: Relation
    has_counts: bool

    def __call__(self, table: pa.Table) -> list[pa.Table]:
        """Return the rows."""
        rows = checked_table(table, self.relation)
        if self.has_counts:
            check_counts(self.relation, rows)
        return [rows]


def read_parts(
    frame: Any,
    split: Callable[[pa.Table], Sequence[pa.Table]],
    relations: Sequence[Relation],
    tasks: TaskPool | None,
) -> tuple[list[Rows], int]:
    """Return the rows that a function makes of those of a frame, and how many the frame has.

    Args:
        frame: of Spark; it is computed once.
        split: returns rows for each of the relations; it is pickled.
        relations: what the rows are for.
        tasks: where that is done; None for here.

    Raises:
        InputError: a row does not fit; the message names it.
    """
    if tasks is None:
        table = all_rows(frame)
        return [*split(table)], table.num_rows
    directory = StagingDirectory(tasks)
    staged = map_frame(frame, PartStager(directory.path, split, _inline_rows(tasks)))
    count = 0
    for each in staged:
        if each.misfit is not None:
            row, fault, cure = each.misfit.args
            raise MisfitError(count + row, fault, cure).reported()
        count += each.count
    parts = zip(*(each.parts for each in staged), strict=True) if staged else [()] * len(relations)
    named = zip(relations, parts, strict=True)
    return [rows_in(tasks, relation, directory, part) for relation, part in named], count


def _inline_rows(tasks: TaskPool) -> int:
    return 0 if tasks.is_large(INLINE_EVENTS) else INLINE_EVENTS


@dataclass(frozen=True, slots=True)
class StagedParts:
    """What a task tells of some rows: their number, where their parts are, one that is no row."""

    count: int
    parts: Sequence[bytes | RowsFile | None]
    misfit: MisfitError | None = None


@dataclass(frozen=True, slots=True)
class PartStager:
    """Splits rows, and writes the parts; it is pickled, and called in tasks."""

    root: Place
    split: Callable[[pa.Table], Sequence[pa.Table]]
    inline: int

    def __call__(self, table: pa.Table) -> StagedParts:
        """Return what is told of some rows."""
        try:
            parts = self.split(table)
        except MisfitError as misfit:
            return StagedParts(table.num_rows, (), misfit)
        return StagedParts(table.num_rows, [self._stage(each) for each in parts])

    def _stage(self, rows: pa.Table) -> bytes | RowsFile | None:
        if not rows.num_rows:
            return None
        is_few = rows.num_rows <= self.inline
        return to_arrow_stream(rows) if is_few else write_rows(self.root, rows)


@dataclass(frozen=True, slots=True)
class NetChange:
    """The net change of a batch.

    Attributes:
        added, removed: no tuple is in both; of copies, first some are removed.
        bad: the malformed records, as rows of the quarantine.
        findings: about the first of them.
        good: how many events are not malformed.
    """

    added: Rows
    removed: Rows
    bad: pa.Table
    findings: list[list[Diagnostic]]
    good: int


def read_batch(
    reader: EventReader,
    frame: Any,
    relation: Relation,
    source: str,
    batch: str,
    *,
    tasks: TaskPool | None = None,
    has_copies: bool = False,
) -> NetChange:
    """Return the net change of a micro-batch.

    Args:
        reader: turns rows into events.
        frame: the batch.
        relation: the relation that it changes.
        source: the name of the stream.
        batch: the name of the batch.
        tasks: where large batches are read, if they are read anywhere but here.
        has_copies: whether equal rows of the relation are copies.

    Raises:
        InputError: rows do not fit, or too many of them are malformed (`C1530`).
    """
    selected = reader.select(frame)
    if tasks is None or not relation.columns:
        events = reader.read(all_rows(selected), relation, source, batch)
        return _here(events, relation, has_copies=has_copies)
    return _TaskBatch(reader, relation, source, batch, tasks, has_copies=has_copies).read(selected)


def _here(found: Sequence[Events], relation: Relation, *, has_copies: bool) -> NetChange:
    events = join_events(found)
    rows = events.rows if events.rows is not None else empty_table(relation)
    net = net_change(rows, relation, has_copies=has_copies)
    return NetChange(net.added, net.removed, events.bad, list(events.findings), rows.num_rows)


class _TaskBatch:
    """Reads one micro-batch in tasks."""

    def __init__(
        self,
        reader: EventReader,
        relation: Relation,
        source: str,
        batch: str,
        tasks: TaskPool,
        *,
        has_copies: bool,
    ) -> None:
        self._relation = relation
        self._has_copies = has_copies
        self._tasks = tasks
        self._directory = StagingDirectory(tasks)
        partitions = None
        if reader.op is not None:
            columns = tuple(range(relation.arity))
            count = tasks.partition_count(_EXPECTED_ROWS)
            partitions = KeyPartitions(relation, columns, count, tasks.partitions_of)
        self._stager = EventStager(
            reader, relation, source, batch, self._directory.path, partitions, _inline_rows(tasks)
        )

    def read(self, frame: Any) -> NetChange:
        """Return the net change of the batch."""
        staged = [each for found in map_frame(frame, self._stager) for each in found]
        counted, good = sum(each.bad_count for each in staged), sum(each.good for each in staged)
        if counted > QUARANTINED_MAX:
            place = f"{self._stager.batch} of {self._stager.source}"
            raise too_many_bad_rows(place, counted)
        events = [each.events() for each in staged]
        if all(each.is_here for each in staged) and not self._tasks.is_large(good):
            return _here(events, self._relation, has_copies=self._has_copies)
        rest = join_events([replace(each, rows=None) for each in events])
        staged.sort(key=lambda each: each.place)
        rows = [each.staged(self._stager.store) for each in staged if each.good]
        added, removed = self._net_change(rows)
        return NetChange(added, removed, rest.bad, list(rest.findings), good)

    def _net_change(self, rows: "Sequence[RowsFile | RowPieces]") -> tuple[Rows, Rows]:
        pieces = [each for each in rows if isinstance(each, RowPieces)]
        partitions = self._stager.partitions
        rows_of = partial(rows_in, self._tasks, self._relation, self._directory)
        if partitions is None:
            files = [each for each in rows if isinstance(each, RowsFile)]
            return rows_of(files), empty_table(self._relation)
        net = NetChangeOfPieces(self._directory.path, self._relation, pieces, self._has_copies)
        title = f"events on {self._relation.name}"
        found = self._tasks.run(title, net, range(partitions.count if pieces else 0))
        remove_files(self._directory.path, [each.place.name for each in pieces])
        added, removed = (rows_of([each[at] for each in found]) for at in (0, 1))
        return added, removed


@dataclass(frozen=True, slots=True)
class StagedEvents:
    """What a task tells of events that it has read.

    Attributes:
        rows: the events, as bytes or where they are; None if there are none.
        good: how many there are.
        bad_count: how many malformed records there are.
        bad: these, as `store_bad_rows` has stored them.
        findings: about the first of them.
        place, records: as of `Events`.
    """

    rows: bytes | RowPieces | RowsFile | None
    good: int
    bad_count: int
    bad: bytes | str
    findings: tuple[list[Diagnostic], ...]
    place: tuple[object, ...]
    records: int

    @property
    def is_here(self) -> bool:
        """Whether the events have come with this."""
        return self.rows is None or isinstance(self.rows, bytes)

    def events(self) -> Events:
        """Return the events that have come with this, and the malformed records."""
        rows = from_arrow_stream(self.rows) if isinstance(self.rows, bytes) else None
        return Events(rows, load_bad_rows(self.bad), self.findings, self.place, self.records)

    def staged(self, store: Callable[[pa.Table], RowsFile | RowPieces]) -> RowsFile | RowPieces:
        """Return where the events are; those that have come with this are stored."""
        assert self.rows is not None
        return store(from_arrow_stream(self.rows)) if isinstance(self.rows, bytes) else self.rows


@dataclass(frozen=True, slots=True)
class EventStager:
    """Reads rows of a batch, and writes their events; it is pickled, and called in tasks.

    Attributes:
        root: the directory that files are written to.
        partitions: in which events on the same tuple meet; None if all rows are inserts.
        inline: the number of events that are returned instead.
    """

    reader: EventReader
    relation: Relation
    source: str
    batch: str
    root: Place
    partitions: KeyPartitions | None
    inline: int

    def __call__(self, table: pa.Table) -> list[StagedEvents]:
        """Return what is told of the events of some rows."""
        found = self.reader.read(table, self.relation, self.source, self.batch)
        return [self._stage(each) for each in found]

    def _stage(self, events: Events) -> StagedEvents:
        rows: bytes | RowPieces | RowsFile | None = None
        found = events.rows
        assert found is not None
        if found.num_rows > self.inline:
            rows = self.store(found)
        elif found.num_rows:
            rows = to_arrow_stream(found)
        return StagedEvents(
            rows,
            found.num_rows,
            events.bad.num_rows,
            store_bad_rows(self.root, events.bad),
            events.findings[: SHOWN_FINDINGS_MAX + 1],
            events.place,
            events.records,
        )

    def store(self, rows: pa.Table) -> RowsFile | RowPieces:
        """Write events to a file."""
        if self.partitions is None:
            return write_rows(self.root, rows.select(list(self.relation.columns)))
        return write_pieces(self.root, self.partitions, rows)


@dataclass(frozen=True, slots=True)
class NetChangeOfPieces:
    """Finds the net change of the events in a partition of the tuples, in a task."""

    root: Place
    relation: Relation
    pieces: Sequence[RowPieces]
    has_copies: bool

    def __call__(self, partition: int) -> tuple[RowsFile | None, RowsFile | None]:
        """Return the files of the tuples to add and to remove."""
        rows = pa.concat_tables([each.piece(partition) for each in self.pieces])
        net = net_change(rows, self.relation, has_copies=self.has_copies)
        added, removed = (
            write_rows(self.root, each) if each.num_rows else None
            for each in (net.added, net.removed)
        )
        return added, removed
