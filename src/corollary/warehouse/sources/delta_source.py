"""A Delta table as a source: its change is that of the files between two versions.

Let F be the files that both versions have, G those that were removed and N those that were added. A
row of G is removed if neither N nor F has it. F need not be read if no row is in the table twice:
that is so if the log counts as many rows for the earlier version as the relation had then. Where a
version or a file of it no longer exists (vacuum), or rows with the same key are ordered, the whole
table is compared with its earlier rows. Where equal rows are copies, those of G go and those of N
come. Of a table with a change feed, neither G nor N is read. Many rows of G and N are compared by
tasks.

In a change feed, a version that has rewritten files notes the rows that it changed; of one that has
only added or removed files, these are the rows. The signs of a row are added up over all versions.
That is the change of a set only if no row was in the table twice, which the caller knows.
"""

from collections.abc import Iterable, Sequence
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from corollary.core.arrow import expand_table
from corollary.core.engine import TaskPool
from corollary.core.table_options import FEED_PROPERTY
from corollary.errors import InputError
from corollary.warehouse.copies import distinct, minus, row_difference
from corollary.warehouse.files import input_files
from corollary.warehouse.files.durable_files import CHANGE_COLUMN, INSERT, POSTIMAGE
from corollary.warehouse.files.places import Place, place_of
from corollary.warehouse.formats.delta_entries import LOG_DIRECTORY, entry_path, read_actions
from corollary.warehouse.sources import delta_snapshot, parquet_file
from corollary.warehouse.sources.file_formats import estimated_rows, read_portion
from corollary.warehouse.sources.parquet_file import check_columns, convert_records
from corollary.warehouse.sources.portions import DataFile, Portion
from corollary.warehouse.sources.schema_drift import ExpectedColumns, FileRecords
from corollary.warehouse.sources.source import EarlierRows, Position, Rows, SourceChange
from corollary.warehouse.sources.source_spec import InputSource, RunCollector, SourceSpec
from corollary.warehouse.sources.tasks.task_reading import compare_in_tasks, read_in_tasks

PARQUET = "parquet"
"""The format of its files."""


class DeltaSource(InputSource):
    """Reads a Delta table."""

    def __init__(self, spec: SourceSpec, path: Place) -> None:
        super().__init__(spec, "delta")
        self._path = path

    def is_unchanged(self, before: Position | None) -> bool:
        """Return whether the version read last is still the last one."""
        before = self._comparable(before)
        if before is None:
            return False
        commit = delta_snapshot.entry_fingerprint(self._path, before["version"])
        if commit is None or list(commit) != before["commit"]:
            return False
        return not entry_path(self._path / LOG_DIRECTORY, before["version"] + 1).exists()

    def _change(
        self, before: Position | None, earlier: EarlierRows, collector: RunCollector
    ) -> SourceChange:
        now = delta_snapshot.read_snapshot(self._path, self._shown, self._spec.directive.span)
        then = self._snapshot_before(before, now)
        first = (
            delta_snapshot.first_needed_version(self._path) if then is None else then.version + 1
        )
        delta_snapshot.check_entries(
            self._path, self._shown, first, now.version, self._spec.directive.span
        )
        parquet_file.check_columns(now.schema, self._shown, collector.expected)
        columns = FileRecords(self._spec.empty_table(), [], tuple(now.schema.names))
        collector.add_file(self._spec.location.name, columns)
        attempt = _Attempt(self._spec, collector)
        rows = attempt.rows(then, now, earlier)
        # The position is that of the snapshot, whatever has been written since.
        commit = delta_snapshot.entry_fingerprint(self._path, now.version)
        position = {"version": now.version, "commit": commit and list(commit), "table": now.table}
        reread = None if attempt.has_read_all else frozenset(attempt.reread)
        return collector.to_source_change(rows, position, reread)

    @property
    def _shown(self) -> str:
        return self._spec.location.display_name

    def _snapshot_before(
        self, before: Position | None, now: delta_snapshot.DeltaSnapshot
    ) -> delta_snapshot.DeltaSnapshot | None:
        """Return the table as it was last read, if it is the same table and still exists."""
        if before is None or before.get("table") != now.table or before["version"] > now.version:
            return None
        commit = delta_snapshot.entry_fingerprint(self._path, before["version"])
        if commit is None or list(commit) != before["commit"]:
            return None  # a copy of the table, say, with a different history since
        if before["version"] == now.version:
            return now
        try:
            span = self._spec.directive.span
            return delta_snapshot.read_snapshot(self._path, self._shown, span, before["version"])
        except (LookupError, InputError):
            return None

    def _missing_files(self) -> tuple[str, str]:
        message = f"Files of the Delta table `{self._shown}` are missing."
        return message, "restore them, or let the table be repaired (`FSCK REPAIR TABLE`)"


class _Attempt:
    """One attempt at reading what has changed.

    Attributes:
        reread: the files that were read, or removed.
        has_read_all: whether the whole table was read.
    """

    def __init__(self, spec: SourceSpec, collector: RunCollector) -> None:
        self._spec = spec
        self._collector = collector
        self.reread: set[str] = set()
        self.has_read_all = False

    def rows(
        self,
        then: delta_snapshot.DeltaSnapshot | None,
        now: delta_snapshot.DeltaSnapshot,
        earlier: EarlierRows,
    ) -> tuple[Rows, Rows]:
        """Return the rows that were added and those that were removed."""
        if then is None:
            return self._all(now, earlier)
        common = now.files.keys() & then.files.keys()
        removed_files = [each for path, each in then.files.items() if path not in common]
        added_files = [each for path, each in now.files.items() if path not in common]
        if self._is_feed_exact(then, earlier) and removed_files:
            found = self._read_feed(then, now)
            if found is not None:
                self.reread |= {self._name(each) for each in removed_files}
                return self._spec.revision(earlier, *found)
        tasks = self._tasks_for([*removed_files, *added_files])
        if tasks is not None and removed_files and common and not self._spec.key.order:
            found = self._diff_in_tasks(tasks, then, (removed_files, added_files), earlier)
            if found is not None:
                return self._spec.revision(earlier, *found)
        if not removed_files and (tasks is None or not self._spec.key.columns):
            return self._compare(tasks, added_files, earlier, is_extension=True)
        if not common or self._spec.key.order or tasks is not None:
            return self._all(now, earlier)
        try:
            removed = self._reread(removed_files)
        except FileNotFoundError:
            return self._all(now, earlier)
        self.reread |= {self._name(each) for each in removed_files}
        new = expand_table(self._read(added_files), self._spec.relation)
        if self._spec.has_copies:
            return row_difference(removed, new)
        removed = minus(removed, new)
        if removed.num_rows and _count_rows(then) != len(earlier):
            # Some row is in the table twice, so the common files may still have a removed one.
            for path in sorted(common):
                removed = minus(removed, self._reread([now.files[path]]))
                if not removed.num_rows:
                    break
        return self._spec.revision(earlier, new, removed)

    def _is_feed_exact(self, then: delta_snapshot.DeltaSnapshot, earlier: EarlierRows) -> bool:
        """Whether no row was in the table twice, and none was malformed or left out."""
        return not self._spec.has_copies and _count_rows(then) == len(earlier)

    def _read_feed(
        self, then: delta_snapshot.DeltaSnapshot, now: delta_snapshot.DeltaSnapshot
    ) -> tuple[pa.Table, pa.Table] | None:
        """Return the rows that were added and removed by the feed; None if it does not serve."""
        path = self._spec.location.resolve(self._spec.location.name)
        versions = then.version, now.version
        size = feed_bytes(path, *versions)
        relation = self._spec.relation
        if size is None or not relation.types:
            return None
        if self._spec.tasks_for(estimated_rows(size, PARQUET, relation)) is not None:
            return None
        name = self._spec.location.display_name
        return read_feed(path, name, self._collector.expected, *versions)

    def _diff_in_tasks(
        self,
        tasks: TaskPool,
        then: delta_snapshot.DeltaSnapshot,
        files: tuple[Sequence[delta_snapshot.DeltaFile], Sequence[delta_snapshot.DeltaFile]],
        earlier: EarlierRows,
    ) -> tuple[pa.Table, pa.Table] | None:
        """Return what added files have and removed ones have not, and the reverse.

        None if the files that stayed may have a removed row, a removed file is gone, or if there is
        more than this process should hold.
        """
        removed, added = files
        if self._spec.has_copies or _count_rows(then) != len(earlier):
            return None
        try:
            gone = [self._file(each) for each in removed]
        except FileNotFoundError:
            return None
        unnoted = RunCollector(self._spec, None)
        before = read_in_tasks(self._spec, tasks, gone, unnoted)
        new = [self._file(each) for each in added]
        now = read_in_tasks(self._spec, tasks, new, self._collector)
        self.reread |= {*before.files, *now.files}
        rows = compare_in_tasks(self._spec, tasks, before.rows, now.rows, is_extension=False)
        came, went = rows
        if not isinstance(came, pa.Table) or not isinstance(went, pa.Table):
            return None
        return came, went

    def _all(self, now: delta_snapshot.DeltaSnapshot, earlier: EarlierRows) -> tuple[Rows, Rows]:
        self.has_read_all = True
        files = list(now.files.values())
        return self._compare(self._tasks_for(files), files, earlier, is_extension=False)

    def _tasks_for(self, files: Sequence[delta_snapshot.DeltaFile]) -> TaskPool | None:
        """Return where files are read; None if that is here."""
        if self._spec.tasks is None:
            return None
        return self._spec.tasks_for(sum(map(self._estimated_rows, files)))

    def _estimated_rows(self, file: delta_snapshot.DeltaFile) -> int:
        """Return about how many rows a file has; none if a vacuum has removed it."""
        if file.rows is not None:
            return file.rows
        try:
            return estimated_rows(self._file(file).size, PARQUET, self._spec.relation)
        except FileNotFoundError:
            return 0

    def _compare(
        self,
        tasks: TaskPool | None,
        files: Sequence[delta_snapshot.DeltaFile],
        earlier: EarlierRows,
        *,
        is_extension: bool,
    ) -> tuple[Rows, Rows]:
        """Return the added and removed rows if the table has these files, or has got them."""
        spec = self._spec
        if tasks is None:
            compare = spec.extension if is_extension else spec.replacement
            return compare(earlier, self._read(files))
        reading = read_in_tasks(spec, tasks, list(map(self._file, files)), self._collector)
        self.reread |= set(reading.files)
        return compare_in_tasks(
            spec, tasks, earlier.handle(), reading.rows, is_extension=is_extension
        )

    def _file(self, file: delta_snapshot.DeltaFile) -> DataFile:
        name = self._name(file)
        path = self._spec.location.resolve(name)
        return DataFile(
            name,
            self._spec.location.shown(name),
            str(path),
            PARQUET,
            input_files.fingerprint_of(path.stat()),
            file.partition,
            allows_missing=True,
        )

    def _read(self, files: Iterable[delta_snapshot.DeltaFile]) -> pa.Table:
        """Return the rows of files, and collect the malformed ones."""
        tables = []
        for each in files:
            tables.append(self._collector.add_file(self._name(each), self._reading(each)))
            self.reread.add(self._name(each))
        self._collector.raise_if_malformed()
        return self._spec.union(tables)

    def _reread(self, files: Iterable[delta_snapshot.DeltaFile]) -> pa.Table:
        """Return the good rows of files that have been read before."""
        rows = self._spec.union([self._reading(each).table for each in files])
        return expand_table(rows, self._spec.relation)

    def _reading(self, file: delta_snapshot.DeltaFile) -> FileRecords:
        found = self._file(file)
        span, expected = self._spec.directive.span, self._collector.expected

        def use(opened: BinaryIO) -> FileRecords:
            return read_portion(opened, Portion(found), expected)[0]

        reading, _ = input_files.read_unchanged(place_of(found.path), found.shown, span, use)
        return FileRecords(reading.table, reading.malformed)

    def _name(self, file: delta_snapshot.DeltaFile) -> str:
        return f"{self._spec.location.name}/{file.path}"


def _count_rows(snapshot: delta_snapshot.DeltaSnapshot) -> int | None:
    """Return how many rows the log counts, if it counts them for all files."""
    counts = [each.rows for each in snapshot.files.values()]
    return None if None in counts else sum(each or 0 for each in counts)


_VIEWS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
"""The types of columns in a feed that stand for others."""


def feed_bytes(path: Place, after: int, upto: int) -> int | None:
    """Return the size of the files that a feed reads; None if there is none for these versions.

    Args:
        path: the directory of the table.
        after: the version before those that are read.
        upto: the last one.
    """
    total = 0
    try:
        configuration = DeltaTable(str(path), version=after).metadata().configuration or {}
        if configuration.get(FEED_PROPERTY) != "true":
            return None
        for version in range(after + 1, upto + 1):
            actions = read_actions(entry_path(path / LOG_DIRECTORY, version))
            if any("metaData" in each for each in actions):
                return None  # the option, or the columns, may be others since
            noted = [each["cdc"] for each in actions if "cdc" in each]
            files = [each.get("add") or each.get("remove") or {} for each in actions]
            used = noted or [each for each in files if each.get("dataChange", False)]
            total += sum(each.get("size") or 0 for each in used)
    except (OSError, ValueError, DeltaError):
        return None
    return total


def read_feed(
    path: Place, name: str, expected: ExpectedColumns, after: int, upto: int
) -> tuple[pa.Table, pa.Table] | None:
    """Return the rows that versions have added and removed.

    None if the feed cannot be read, or has a malformed row: then files say where that is.

    Raises:
        InputError: `C0950`, a column is missing or of another type.
    """
    try:
        table = DeltaTable(str(path), version=upto)
        found = table.load_cdf(starting_version=after + 1, ending_version=upto)
        rows = pa.table(found)
    except (DeltaError, OSError, pa.ArrowException):
        return None
    types = [_VIEWS.get(each.type, each.type) for each in rows.schema]
    names = rows.column_names
    rows = rows.cast(pa.schema(list(zip(names, types, strict=True))))
    check_columns(rows.schema, name, expected)
    is_added = pc.is_in(rows.column(CHANGE_COLUMN), value_set=pa.array((INSERT, POSTIMAGE)))
    sides = (rows.filter(is_added), rows.filter(pc.invert(is_added)))
    came, went = (_converted(side, name, expected) for side in sides)
    if came is None or went is None:
        return None
    added, removed = row_difference(went, came)
    return distinct(added), distinct(removed)


def _converted(rows: pa.Table, name: str, expected: ExpectedColumns) -> pa.Table | None:
    columns = [rows.column(each) for each in expected.relation.columns]
    table, malformed = convert_records(columns, name, expected, has_order=False)
    return None if malformed else table
