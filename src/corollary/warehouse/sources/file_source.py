"""A file, a folder or a pattern of files as a source.

The position has for each file its fingerprint, a checksum of its content, how many good rows it
had and, if there are several files, the bounds of their columns. Which files are read again:

| since then                             | read                        | removed rows           |
|----------------------------------------|-----------------------------|------------------------|
| nothing                                | none                        | none                   |
| files were added                       | these                       | none                   |
| text files were touched, or got longer | these, parsed from the      | none                   |
|                                        | point where they ended      |                        |
| files were removed or altered          | these, and others that may  | those that no file has |
|                                        | have one of their rows      |                        |

Which row was in which file is not recorded. The *suspects* are the earlier rows within the bounds
of the files that were removed or altered: all other rows are in files that are as they were. A
suspect stays if it is found in a file that is read, so each file has to be read that may have one
that is missing so far, or another row with its key: `.input p(order=…)` may have left that out.
Where equal rows are copies, all files are read: how many of them were in which is not known.
"""

from collections.abc import Callable, Sequence
from typing import BinaryIO, NamedTuple, TypeVar

import pyarrow as pa

from corollary.console import Progress
from corollary.core.arrow import expand_table
from corollary.core.arrow_buffers import bool_array
from corollary.core.engine import TaskPool
from corollary.data_class import dataclass
from corollary.errors import Diagnostic, Severity
from corollary.warehouse.copies import difference, minus
from corollary.warehouse.files import input_files
from corollary.warehouse.files.durable_files import checksum_of
from corollary.warehouse.files.input_files import Fingerprint
from corollary.warehouse.files.places import place_of
from corollary.warehouse.formats.dialect import format_of
from corollary.warehouse.formats.text_stream import TextStream
from corollary.warehouse.sources import file_bounds
from corollary.warehouse.sources.file_formats import FORMATS, estimated_rows, read_portion
from corollary.warehouse.sources.file_listing import ListedFile, is_single_file, list_files
from corollary.warehouse.sources.portions import DataFile, Portion, read_earlier_text
from corollary.warehouse.sources.schema_drift import FileRecords
from corollary.warehouse.sources.source import EarlierRows, Position, Rows, SourceChange
from corollary.warehouse.sources.source_spec import InputSource, RunCollector, SourceSpec
from corollary.warehouse.sources.tasks.task_reading import compare_in_tasks, read_in_tasks

CHECKED_FIRST_MAX_BYTES = 1 << 24
"""Up to this size, the earlier text of a file is compared before its records are found."""


T = TypeVar("T")


class FileState(NamedTuple):
    """The state of a file in the position, where it is a JSON array.

    Attributes:
        checksum: of the content; empty for a format that is always read as a whole.
        rows: how many good ones there were.
        bounds: of their columns, if the source may have several files.
    """

    size: int
    modified: int
    changed: int
    inode: int
    checksum: str
    rows: int
    bounds: file_bounds.FileBounds = ()

    @property
    def fingerprint(self) -> Fingerprint:
        """The fingerprint, which every write changes."""
        return self.size, self.modified, self.changed, self.inode


class FileSource(InputSource):
    """Reads the files that a name or pattern denotes."""

    def __init__(self, spec: SourceSpec) -> None:
        super().__init__(spec, "files with bounds")

    def is_unchanged(self, before: Position | None) -> bool:
        """Return whether the same files exist, unchanged."""
        now = {file.name: file.fingerprint for file in list_files(self._spec.location)}
        before = self._comparable(before)
        if before is None:
            return False
        return {name: entry.fingerprint for name, entry in _entries(before).items()} == now

    def _change(
        self, before: Position | None, earlier: EarlierRows, collector: RunCollector
    ) -> SourceChange:
        try:
            return _Attempt(self._spec, before, collector).change(earlier)
        except _LargeFileError:
            collector = RunCollector(self._spec, before)
            return _Attempt(self._spec, before, collector).change(earlier, is_for_tasks=True)


class _LargeFileError(Exception):
    """A file that only seemed to have got longer was altered, and is too large to be read here."""


def _may_begin_with(opened: BinaryIO, entry: FileState) -> bool:
    """Return whether a file may begin with its earlier text: of a small one, whether it does.

    Finding the records of that text, to see where it ends, takes longer than its checksum.
    """
    if entry.size > CHECKED_FIRST_MAX_BYTES:
        return True
    place = opened.tell()
    opened.seek(0)
    data = opened.read(entry.size)
    opened.seek(place)
    return checksum_of(data) == entry.checksum


def _entries(position: Position) -> dict[str, FileState]:
    return {name: FileState(*entry) for name, entry in position["files"].items()}


@dataclass(frozen=True, slots=True)
class _Reading:
    """What was read of a file.

    Attributes:
        records: its records; None if it has the content that it had.
        checksum: of its content; empty for a format that is always read as a whole.
        is_tail: whether the records are only those that it got since.
    """

    records: FileRecords | None
    checksum: str
    is_tail: bool = False


class _Attempt:
    """One attempt at reading what has changed.

    Attributes:
        _known: the state of each file at the last reading.
        _noted: the state of each file now.
        _whole: the rows of the files that were read from their start.
        _tails: the rows that were appended to files.
        _altered: the files that are there with other content.
    """

    def __init__(self, spec: SourceSpec, before: Position | None, collector: RunCollector) -> None:
        self._spec = spec
        self._is_first = before is None
        self._known = {} if before is None else _entries(before)
        self._files = list(map(self._file, list_files(spec.location)))
        self._collector = collector
        self._noted: dict[str, FileState] = {}
        self._whole: dict[str, pa.Table] = {}
        self._tails: dict[str, pa.Table] = {}
        self._altered: set[str] = set()
        self._is_single = is_single_file(spec.location)

    def change(self, earlier: EarlierRows, *, is_for_tasks: bool = False) -> SourceChange:
        """Return what has changed since the last reading.

        Args:
            earlier: the rows that the source had then.
            is_for_tasks: whether it is certainly too much to be read here.
        """
        other = [file for file in self._files if not self._is_known(file)]
        about = sum(map(self._estimated_rows, other))
        tasks = self._spec.tasks if is_for_tasks else self._spec.tasks_for(about)
        if tasks is not None:
            return self._change_in_tasks(tasks, other, earlier)
        for file in self._files:
            entry = self._known.get(file.name)
            if entry is None:
                self._read_whole(file)
            elif entry.fingerprint == file.fingerprint:
                self._noted[file.name] = entry
            else:
                self._read_changed(file, entry)
        self._collector.raise_if_malformed()
        removed = frozenset(self._known.keys() - self._noted.keys())
        before = [self._known[name] for name in (*self._altered, *removed)]
        rows = self._compare(earlier, [each.bounds for each in before if each.rows])
        return self._to_source_change(rows, removed.union(self._whole))

    def _to_source_change(self, rows: tuple[Rows, Rows], reread: frozenset[str]) -> SourceChange:
        """Return the change, with the position of now, and where names were relative to."""
        position = {"files": self._noted, "folder": str(self._spec.location.base)}
        good = sum(each.rows for each in self._noted.values())
        return self._collector.to_source_change(
            rows, position, None if self._is_first else reread, self._warnings(), good
        )

    def _file(self, file: ListedFile) -> DataFile:
        shown = self._spec.location.shown(file.name)
        format_ = format_of(self._spec.directive, file.name)
        return DataFile(file.name, shown, file.path, format_, file.fingerprint)

    def _is_known(self, file: DataFile) -> bool:
        """Whether a file is as it was at the last reading."""
        entry = self._known.get(file.name)
        return entry is not None and entry.fingerprint == file.fingerprint

    def _estimated_rows(self, file: DataFile) -> int:
        """Return about how many rows of a file are new; of a text that got longer, few."""
        entry, size = self._known.get(file.name), file.size
        if entry is not None and file.is_text and 0 < entry.size < size:
            size -= entry.size
        return estimated_rows(size, file.format, self._spec.relation)

    def _change_in_tasks(
        self, tasks: TaskPool, other: Sequence[DataFile], earlier: EarlierRows
    ) -> SourceChange:
        """Return what has changed, where it is too much to be read here.

        Files that were added are read by themselves, if rows do not compete by a key. Otherwise all
        files are, and compared with the earlier rows.
        """
        spec = self._spec
        removed = frozenset(self._known.keys() - {file.name for file in self._files})
        is_new = all(file.name not in self._known for file in other)
        is_extension = is_new and not (removed or self._is_first or spec.key.columns)
        files = other if is_extension else self._files
        reading = read_in_tasks(
            spec,
            tasks,
            files,
            self._collector,
            rows_before={name: entry.rows for name, entry in self._known.items()},
            has_bounds=not self._is_single,
        )
        for file in self._files:
            found = reading.files.get(file.name)
            self._noted[file.name] = (
                self._known[file.name]
                if found is None
                else FileState(*file.fingerprint, found.checksum, found.rows, found.bounds)
            )
        rows = compare_in_tasks(
            spec, tasks, earlier.handle(), reading.rows, is_extension=is_extension
        )
        return self._to_source_change(rows, removed.union(reading.files))

    def _compare(
        self, earlier: EarlierRows, bounds: Sequence[file_bounds.FileBounds]
    ) -> tuple[pa.Table, pa.Table]:
        """Return added and removed rows, given the bounds of the files that have lost rows."""
        spec = self._spec
        found, lost = self._rows(), spec.empty_table()
        unread = [file for file in self._files if file.name not in self._whole]
        is_all_needed = spec.has_copies or not spec.relation.types
        if bounds and is_all_needed:  # rows without columns: there is at most one
            self._read_all(unread)
        elif bounds and unread and not self._is_first:
            near = spec.in_order(earlier.within(file_bounds.boxes_of(bounds)))
            suspects = near.filter(bool_array(file_bounds.is_within_any(near, bounds)))
            found, lost = difference(suspects, expand_table(found, spec.relation))
            columns = spec.identifying_columns if spec.key.order else None
            known = {file.name: self._known[file.name] for file in unread}
            more = [
                file
                for file in unread
                if known[file.name].rows
                and file_bounds.is_within(lost, known[file.name].bounds, columns).any()
            ]
            if more:
                self._read_all(more)
                others = spec.union([self._whole[file.name] for file in more])
                others = expand_table(others, spec.relation)
                found, lost = spec.union([found, others]), minus(lost, others)
        if self._is_first or len(self._whole) == len(self._files):
            return spec.replacement(earlier, self._rows())
        return spec.revision(earlier, found, lost)

    def _read_all(self, files: Sequence[DataFile]) -> None:
        for file in files:
            self._read_whole(file)
        self._collector.raise_if_malformed()

    def _rows(self) -> pa.Table:
        """Return all rows that were read."""
        tails = [rows for name, rows in self._tails.items() if name not in self._whole]
        return self._spec.union([*self._whole.values(), *tails])

    def _read_changed(self, file: DataFile, entry: FileState) -> None:
        """Read a file that was written since; of one that only grew, the new records."""
        if not file.is_text:
            self._altered.add(file.name)
            self._read_whole(file)
            return
        reading, fingerprint = self._opened(
            file, lambda opened: self._read_tail(opened, file, entry)
        )
        if reading.records is None:
            counted = entry.rows, entry.bounds
            self._noted[file.name] = FileState(*fingerprint, reading.checksum, *counted)
        elif reading.is_tail:
            rows = self._collector.add_file(file.name, reading.records)
            self._tails[file.name] = rows
            self._note(file, reading, fingerprint, rows, entry)
        else:
            self._altered.add(file.name)
            self._take(file, reading, fingerprint)

    def _read_whole(self, file: DataFile) -> None:
        """Read all records of a file."""
        self._take(file, *self._opened(file, lambda opened: self._read(opened, file)))

    def _take(self, file: DataFile, reading: "_Reading", fingerprint: Fingerprint) -> None:
        assert reading.records is not None
        rows_before = self._known[file.name].rows if file.name in self._known else 0
        rows = self._collector.add_file(file.name, reading.records, rows_before)
        self._whole[file.name] = rows
        self._note(file, reading, fingerprint, rows)

    def _note(
        self,
        file: DataFile,
        reading: "_Reading",
        fingerprint: Fingerprint,
        rows: pa.Table,
        head: FileState | None = None,
    ) -> None:
        """Note the state of a file that was read, perhaps only behind its earlier text."""
        bounds: file_bounds.FileBounds = (
            () if self._is_single or not rows.num_rows else file_bounds.bounds_of(rows)
        )
        count = rows.num_rows
        if head is not None and head.rows:
            bounds = file_bounds.merge_bounds(head.bounds, bounds) if count else head.bounds
            count += head.rows
        self._noted[file.name] = FileState(*fingerprint, reading.checksum, count, bounds)

    def _opened(self, file: DataFile, use: Callable[[BinaryIO], T]) -> tuple[T, Fingerprint]:
        name, span = file.shown, self._spec.directive.span
        try:
            return input_files.read_unchanged(place_of(file.path), name, span, use)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise input_files.file_error(name, "read", error, span) from None

    def _read(self, opened: BinaryIO, file: DataFile) -> "_Reading":
        progress = self._progress(opened, file)
        return _Reading(*read_portion(opened, Portion(file), self._collector.expected, progress))

    def _read_tail(self, opened: BinaryIO, file: DataFile, entry: FileState) -> "_Reading":
        """Read the records that follow the earlier text, if it is still there; else all."""
        progress, expected = self._progress(opened, file), self._collector.expected
        text = TextStream(opened, file.shown, expected.directive.span, progress.advance_to_bytes)
        size = progress.total_bytes or 0
        if size == entry.size and text.checksum() == entry.checksum:
            return _Reading(None, entry.checksum)
        if 0 < entry.size < size and not text.is_compressed and _may_begin_with(opened, entry):
            format_ = FORMATS[file.format]
            assert format_.syntax is not None
            syntax = format_.syntax(expected, file.name)
            earlier = read_earlier_text(text, entry.size, entry.checksum, syntax)
            if earlier is not None and earlier.is_whole:
                records = format_.read(text, file.shown, expected, earlier, progress)
                return _Reading(records, text.checksum(), is_tail=True)
        rows = estimated_rows(file.size, file.format, self._spec.relation)
        if self._spec.tasks_for(rows) is not None:
            raise _LargeFileError
        opened.seek(0)
        return self._read(opened, file)

    def _progress(self, opened: BinaryIO, file: DataFile) -> Progress:
        size = input_files.status_of(opened).st_size
        return self._spec.console.progress(f"reading {file.shown}", total_bytes=size)

    def _warnings(self) -> list[Diagnostic]:
        if self._files or self._is_single:
            return []
        place, span = self._spec.location, self._spec.directive.span
        name = self._spec.relation.name
        message = f"There is no file in `{place.display_name}`, so `{name}` is empty."
        cure = "put files there, or correct the name"
        return [Diagnostic("C0958", message, span, cure, severity=Severity.WARNING)]
