"""What a task does with its portions of a source: reads and checks them, and writes their rows."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa

from corollary.core.arrow import empty_table, expand_table
from corollary.data_class import dataclass
from corollary.errors import Diagnostic
from corollary.warehouse.files import input_files
from corollary.warehouse.files.durable_files import from_arrow_stream, to_arrow_stream
from corollary.warehouse.files.file_rows import RowsFile
from corollary.warehouse.files.places import Place, place_of
from corollary.warehouse.formats.delimited import SHOWN_FINDINGS_MAX
from corollary.warehouse.sources.file_bounds import FileBounds, bounds_of
from corollary.warehouse.sources.file_formats import read_portion
from corollary.warehouse.sources.portions import DataFile, Portion
from corollary.warehouse.sources.quarantine import NO_BAD_ROWS, to_bad_rows
from corollary.warehouse.sources.schema_drift import ExpectedColumns, FileRecords
from corollary.warehouse.sources.tasks.staged_rows import RowPieces, write_rows

INLINE_BAD_ROWS = 1000
"""Up to this many malformed records come with the report of a task; more are in a file."""


@dataclass(frozen=True, slots=True)
class PortionReport:
    """What a task tells of a portion.

    Attributes:
        rows: how many good rows it has.
        bounds: of their columns.
        columns: the names of all its columns.
        header_names: for each column of the relation, its name in the headers of the file.
        checksum: of the file, if the portion is all of a text.
        findings: about the first malformed records.
        bad_count: how many malformed records there are.
        bad: the malformed records as an Arrow stream, or the name of a file that holds it.
        is_irregular: whether quotes are irregular, so that records may begin elsewhere.
        is_changed: whether the file is not the one that was listed; nothing else counts then.
    """

    portion: Portion
    rows: int = 0
    bounds: FileBounds = ()
    columns: tuple[str, ...] = ()
    header_names: tuple[str, ...] = ()
    checksum: str = ""
    findings: tuple[list[Diagnostic], ...] = ()
    bad_count: int = 0
    bad: bytes | str = b""
    is_irregular: bool = False
    is_changed: bool = False

    def bad_rows(self) -> pa.Table:
        """Return the malformed records."""
        return load_bad_rows(self.bad)


@dataclass(frozen=True, slots=True)
class TaskReport:
    """What a task tells of all its portions, and where their rows are."""

    portions: tuple[PortionReport, ...]
    staged: RowsFile | RowPieces | None


@dataclass(frozen=True, slots=True)
class PortionReader:
    """Reads portions; it is pickled, and called in a task.

    Attributes:
        source: the name of the source.
        root: the directory that files of rows are written to.
        has_bounds: whether bounds of columns are wanted.
        unnamed: the files that are read by position; the names in their headers are not expected.
        write_pieces: writes rows so that those with the same key can be put together; None if
            there is no key.
    """

    expected: ExpectedColumns
    source: str
    root: Place
    has_bounds: bool = False
    unnamed: frozenset[str] = frozenset()
    write_pieces: Callable[[pa.Table], RowPieces] | None = None

    def __call__(self, portions: Sequence[Portion]) -> TaskReport:
        """Return what was read.

        Raises:
            InputError: a file cannot be read, or has other columns.
        """
        reports, tables = [], []
        for portion in portions:
            report, table = self._read(portion)
            reports.append(report)
            if table.num_rows and not (report.is_irregular or report.is_changed):
                tables.append(table)
        return TaskReport(tuple(reports), self._stage(tables))

    def report(self, file: DataFile, records: FileRecords) -> TaskReport:
        """Return what is told of records that something else has read."""
        table = expand_table(records.table, self.expected.relation)
        told = self._report(Portion(file), records, table, "")
        return TaskReport((told,), self._stage([table] if table.num_rows else []))

    def _stage(self, tables: Sequence[pa.Table]) -> RowsFile | RowPieces | None:
        """Write rows to a file."""
        if not tables:
            return None
        rows = pa.concat_tables(tables)
        write = self.write_pieces
        return write_rows(self.root, rows) if write is None else write(rows)

    def _read(self, portion: Portion) -> tuple[PortionReport, pa.Table]:
        file, span = portion.file, self.expected.directive.span
        expected = replace(self.expected, is_compact=False)
        if file.name in self.unnamed:
            expected = replace(expected, header_names=())
        changed = PortionReport(portion, is_changed=True), empty_table(expected.relation)
        try:
            with input_files.open_file(place_of(file.path), file.shown, span) as opened:
                if input_files.fingerprint_of(input_files.status_of(opened)) != file.fingerprint:
                    return changed
                records, checksum = read_portion(opened, portion, expected)
            if not input_files.has_fingerprint(place_of(file.path), file.fingerprint):
                return changed
        except FileNotFoundError:
            return changed
        except OSError as error:
            raise input_files.file_error(file.shown, "read", error, span) from None
        table = expand_table(records.table, expected.relation)
        return self._report(portion, records, table, checksum), table

    def _report(
        self, portion: Portion, records: FileRecords, table: pa.Table, checksum: str
    ) -> PortionReport:
        relation, malformed = self.expected.relation.name, records.malformed
        bad = to_bad_rows(relation, self.source, portion.file.name, malformed)
        return PortionReport(
            portion,
            table.num_rows,
            bounds_of(table) if self.has_bounds and table.num_rows else (),
            () if portion.file.allows_missing else records.columns,
            records.header_names,
            checksum,
            tuple(malformed[: SHOWN_FINDINGS_MAX + 1]),
            bad.num_rows,
            store_bad_rows(self.root, bad),
            is_irregular=not (portion.is_whole or records.has_regular_quotes),
        )


def store_bad_rows(root: Place, bad: pa.Table) -> bytes | str:
    """Return malformed records as an Arrow stream; of many, the name of a file that holds it."""
    if not bad.num_rows:
        return b""
    data = to_arrow_stream(bad)
    if bad.num_rows <= INLINE_BAD_ROWS:
        return data
    path = root / f"bad-{secrets.token_hex(16)}.arrow"
    path.write_bytes(data)
    return str(path)


def load_bad_rows(stored: bytes | str) -> pa.Table:
    """Return the malformed records that were stored."""
    data = stored if isinstance(stored, bytes) else place_of(stored).read_bytes()
    return from_arrow_stream(data) if data else NO_BAD_ROWS
