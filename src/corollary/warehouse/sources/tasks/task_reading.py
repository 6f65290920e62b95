"""Reads files of a source in tasks: the jobs, and what is put together of their reports."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow.parquet as pq

from corollary.core.engine import TableHandle, TaskPool, slice_bounds
from corollary.data_class import dataclass
from corollary.warehouse.copies import CopiesHandle
from corollary.warehouse.files import input_files
from corollary.warehouse.files.file_rows import FileRows, StagingDirectory
from corollary.warehouse.files.places import place_of
from corollary.warehouse.formats.text_records import PEEKED_BYTES, read_head
from corollary.warehouse.formats.text_stream import TextStream
from corollary.warehouse.sources import csv_file
from corollary.warehouse.sources.file_bounds import FileBounds, merge_bounds
from corollary.warehouse.sources.file_formats import FORMATS, estimated_rows
from corollary.warehouse.sources.portions import DataFile, Portion, group_by_size
from corollary.warehouse.sources.schema_drift import ExpectedColumns
from corollary.warehouse.sources.source import Rows
from corollary.warehouse.sources.source_spec import RunCollector, SourceSpec
from corollary.warehouse.sources.tasks import portion_reader
from corollary.warehouse.sources.tasks.staged_rows import PieceComparison, PieceWriter
from corollary.warehouse.sources.tasks.staging import Staging, collect, key_partitions
from corollary.warehouse.sources.tasks.text_ranges import (
    RangeScan,
    TextRange,
    record_ranges,
    scan_range,
)


@dataclass(frozen=True, slots=True)
class ReadFile:
    """What is noted of a file that tasks have read."""

    rows: int
    bounds: FileBounds
    checksum: str


@dataclass(frozen=True, slots=True)
class TaskReading:
    """What tasks have read: the rows, which have one for each key, and notes on each file."""

    rows: FileRows
    files: Mapping[str, ReadFile]


def read_in_tasks(
    spec: SourceSpec,
    tasks: TaskPool,
    files: Sequence[DataFile],
    collector: RunCollector,
    *,
    rows_before: Mapping[str, int] | None = None,
    has_bounds: bool = False,
) -> TaskReading:
    """Read files of a source; malformed records, columns and warnings go to the collector.

    Args:
        spec: the `.input`, of a relation with columns whose equal rows are one.
        tasks: where they are read.
        files: all of them are read.
        collector: of this run.
        rows_before: how many rows files had before.
        has_bounds: whether the bounds of columns are noted.

    Raises:
        InputError: a file cannot be read, or has other columns; or too many records are malformed.
        ConstraintError: `C0954`, rows with the same key are in conflict.
        FileNotFoundError: a file was removed or written meanwhile.
    """
    job = _Job(spec, tasks, files, collector.expected, has_bounds=has_bounds)
    reports = job.read()
    found: dict[str, list[portion_reader.PortionReport]] = {each.name: [] for each in files}
    for report in reports:
        for portion in report.portions:
            found[portion.portion.file.name].append(portion)
    noted = {}
    for name, portions in found.items():
        had = (rows_before or {}).get(name, 0)
        collect(spec, collector, name, portions, rows_before=had)
        checksum = job.checksums.get(name, portions[0].checksum)
        count = sum(each.rows for each in portions)
        noted[name] = ReadFile(count, _bounds(portions), checksum)
    collector.raise_if_malformed()
    return TaskReading(job.staging.rows(reports), noted)


def compare_in_tasks(
    spec: SourceSpec, tasks: TaskPool, before: TableHandle, now: FileRows, *, is_extension: bool
) -> tuple[Rows, Rows]:
    """Return the rows that a source has got and lost; a table where they are few.

    Args:
        spec: the `.input`.
        tasks: where they are compared.
        before: the rows that it had, with their copies.
        now: those that it has; or, if it is an extension, those that were added to it.
        is_extension: whether no row was lost.
    """
    if not len(before) and not spec.has_copies:
        return now if tasks.is_large(len(now)) else now.table(), spec.empty_table()
    relation = spec.counts if spec.has_copies else spec.relation
    partitions = key_partitions(spec, tasks, len(before) + len(now))
    directory = StagingDirectory(tasks)
    pieces = StagingDirectory(tasks)
    write = PieceWriter(pieces.path, partitions)
    is_compared = len(before) and not (spec.has_copies and is_extension)
    then = before.map_partitions(write) if is_compared else []
    there = now.map_partitions(write)
    compare = PieceComparison(directory.path, spec.relation, then, there, spec.has_copies)
    found = tasks.run(f"compare {spec.name}", compare, range(partitions.count))
    sides: Iterable[TableHandle] = (
        FileRows(relation, [each for each in side if each is not None], tasks, directory)
        for side in zip(*found, strict=True)
    )
    if spec.has_copies:
        sides = map(CopiesHandle, sides)
    few = (each if tasks.is_large(len(each)) else each.table() for each in sides)
    now_there, gone = few
    return now_there, spec.empty_table() if is_extension else gone


class _Job:
    """The jobs of one reading.

    Attributes:
        checksums: of texts that are read by ranges.
        staging: where the rows are.
    """

    def __init__(
        self,
        spec: SourceSpec,
        tasks: TaskPool,
        files: Sequence[DataFile],
        expected: ExpectedColumns,
        *,
        has_bounds: bool,
    ) -> None:
        self._spec = spec
        self._tasks = tasks
        self._files = files
        self._has_bounds = has_bounds
        self._expected, self._unnamed = _with_names(files, expected)
        self.checksums: dict[str, str] = {}
        rows = sum(estimated_rows(each.size, each.format, spec.relation) for each in files)
        self.staging = Staging(spec, tasks, rows)

    def read(self) -> list[portion_reader.TaskReport]:
        """Return the reports of all files, each with all its portions.

        Raises:
            FileNotFoundError: a file was removed or written meanwhile.
        """
        if self._files:  # a later write has to show
            input_files.wait_for_tick(max((each.fingerprint for each in self._files), key=_changed))
        portions = [*self._divided(), *self._whole()]
        reports = self._run(portions)
        irregular = {
            each.portion.file.name
            for report in reports
            for each in report.portions
            if each.is_irregular
        }
        if irregular:
            rest = [
                report
                for report in reports
                if not irregular & {each.portion.file.name for each in report.portions}
            ]
            again = [Portion(each) for each in self._files if each.name in irregular]
            reports = [*rest, *self._run(again)]
        for report in reports:
            for each in report.portions:
                if each.is_changed:
                    raise FileNotFoundError(each.portion.file.path)
        return reports

    def _run(self, portions: Sequence[Portion]) -> list[portion_reader.TaskReport]:
        reader = portion_reader.PortionReader(
            self._expected,
            self._spec.name,
            self.staging.directory.path,
            self._has_bounds,
            self._unnamed,
            self.staging.write_pieces,
        )
        groups = list(group_by_size(portions))
        return self._tasks.run(f"read {self._spec.name}", reader, groups)

    def _whole(self) -> Iterator[Portion]:
        """Yield the files that are read as a whole, or by row groups."""
        for each in self._files:
            if each.name in self.checksums:
                continue
            if each.format != "parquet" or each.size <= 2 * each.portion_bytes:
                yield Portion(each)
            else:
                yield from _row_groups(each)

    def _divided(self) -> Iterator[Portion]:
        """Yield the portions of large texts, whose records are found by a job of their own."""
        asked: list[TextRange] = []
        numbers: dict[str, range] = {}
        for each in self._files:
            is_quoted = _is_divisible(each, self._expected)
            if is_quoted is None:
                continue
            start = len(asked)
            asked.append(TextRange(each.path, each.shown, 0, each.size, False, is_checksum=True))
            asked += (
                TextRange(each.path, each.shown, *ends, is_quoted)
                for ends in slice_bounds(each.size, each.portion_bytes)
            )
            numbers[each.name] = range(start, len(asked))
        scans = self._tasks.run(f"find the records of {self._spec.name}", scan_range, asked)
        for each in self._files:
            if each.name in numbers:
                checksum, *found = (scans[at] for at in numbers[each.name])
                self.checksums[each.name] = checksum.checksum
                yield from _portions(each, found)


def _changed(fingerprint: input_files.Fingerprint) -> int:
    return fingerprint[2]


def _with_names(
    files: Sequence[DataFile], expected: ExpectedColumns
) -> tuple[ExpectedColumns, frozenset[str]]:
    """Return what is expected of files behind the first one with a header, and the others.

    As if one was read after the other: the first header says how columns are called.
    """
    unnamed: set[str] = set()
    if expected.header_names or expected.directive.parameter("headers") != "true":
        return expected, frozenset()
    for each in files:
        if each.format != "csv":
            continue
        unnamed.add(each.name)
        path, span = place_of(each.path), expected.directive.span
        with input_files.open_file(path, each.shown, span) as opened:
            text = TextStream(opened, each.shown, span)
            names = csv_file.header_names(text, each.shown, expected)
        if names:
            known = expected.known_columns
            relation, directive = expected.relation, expected.directive
            return ExpectedColumns(relation, directive, names, known), frozenset(unnamed)
    return expected, frozenset()


def _is_divisible(file: DataFile, expected: ExpectedColumns) -> bool | None:
    """Return whether quotes mean anything in a text that is read by ranges; None for others."""
    if not file.is_text or file.size <= 2 * file.portion_bytes:
        return None
    path, span = place_of(file.path), expected.directive.span
    with input_files.open_file(path, file.shown, span) as opened:
        text = TextStream(opened, file.shown, span)
        if text.is_compressed:
            return None
        head = read_head(text, PEEKED_BYTES)
    syntax = FORMATS[file.format].syntax
    assert syntax is not None
    return syntax(expected, file.name).of_first_line(head).is_quoted


def _portions(file: DataFile, scans: Sequence[RangeScan]) -> Iterator[Portion]:
    for each in record_ranges(file.size, scans):
        yield Portion(file, each.start, each.end, each.lines)


def _row_groups(file: DataFile) -> Iterator[Portion]:
    """Yield portions of a Parquet file by its row groups."""
    with input_files.open_file(place_of(file.path), file.shown, None) as opened:
        metadata = pq.ParquetFile(opened).metadata
    start = rows = size = 0
    before = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        size += sum(group.column(at).total_compressed_size for at in range(group.num_columns))
        rows += group.num_rows
        if size >= file.portion_bytes or number + 1 == metadata.num_row_groups:
            yield Portion(file, start, number + 1, before)
            start, before, size, rows = number + 1, before + rows, 0, 0


def _bounds(portions: Sequence[portion_reader.PortionReport]) -> FileBounds:
    known = [each.bounds for each in portions if each.rows]
    if not known:
        return ()
    first, *rest = known
    for each in rest:
        first = merge_bounds(first, each)
    return first
