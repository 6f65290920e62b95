"""Whatever Spark reads as a source: its change is a full difference, since Spark reports none.

Columns are found by name, and have the types that Spark gives them. In text formats (CSV, JSON) a
value is read as in our own facts files. Rows have no numbers: Spark does not keep their order.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow import arrow_type, nullary_table
from corollary.core.engine import TaskPool
from corollary.core.program import Directive
from corollary.core.spark_io import CORRUPT_COLUMN, TEXT_FORMATS
from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.errors import Diagnostic
from corollary.source import SourceFile, Span
from corollary.warehouse.files.file_rows import FileRows
from corollary.warehouse.files.places import Place, place_of
from corollary.warehouse.formats.typed_values import Failures, from_arrow, from_texts
from corollary.warehouse.sources.file_listing import SourceLocation, is_pattern, list_files
from corollary.warehouse.sources.parquet_file import check_columns, convert_records
from corollary.warehouse.sources.portions import DataFile
from corollary.warehouse.sources.schema_drift import ExpectedColumns, FileRecords
from corollary.warehouse.sources.source import EarlierRows, Position, Rows, SourceChange
from corollary.warehouse.sources.source_spec import InputSource, RunCollector, SourceSpec
from corollary.warehouse.sources.tasks.portion_reader import PortionReader, TaskReport
from corollary.warehouse.sources.tasks.staging import Staging, collect
from corollary.warehouse.sources.tasks.task_reading import compare_in_tasks

Fetch = Callable[[Directive, Sequence[Path | str], Sequence[str]], tuple[tuple[str, ...], pa.Table]]
"""Reads an `.input` (with these files, if it names files): returns the names of all columns, and a
table with those of the relation."""

MapRows = Callable[
    [Directive, Sequence[Path | str], Sequence[str], Callable[[pa.Table], Any]],
    tuple[tuple[str, ...], pa.Table, list[Any]],
]
"""Applies a function to the rows of an `.input` in tasks: returns the names of all columns, those
of the relation without rows, and the results."""

_UNKNOWN_ROWS = 1 << 26
"""How many rows Spark may read: it does not say before."""


class SparkSource(InputSource):
    """Reads a source through Spark.

    Args:
        spec: the `.input`.
        fetch: brings its rows here.
        map_rows: applies a function to its rows where they are; None if they are to be here.
    """

    def __init__(self, spec: SourceSpec, fetch: Fetch, map_rows: MapRows | None = None) -> None:
        super().__init__(spec, "spark")
        self._fetch = fetch
        self._map_rows = map_rows
        self._is_text = spec.directive.parameter("format").lower() in TEXT_FORMATS

    def is_unchanged(self, _: Position | None) -> bool:
        """Return False: Spark has no fingerprints to compare."""
        return False

    def _change(
        self, before: Position | None, earlier: EarlierRows, collector: RunCollector
    ) -> SourceChange:
        change: tuple[Rows, Rows]
        rows_before = 0 if before is None else before["rows"]
        tasks = None if self._map_rows is None else self._spec.tasks_for(_UNKNOWN_ROWS)
        if tasks is None:
            records = self._reading(collector.expected)
            change, count = self._replacement(records, rows_before, earlier, collector)
        else:
            now, count = self._read_in_tasks(tasks, collector, rows_before)
            if tasks.is_large(max(count, len(earlier))):
                handle = earlier.handle()
                change = compare_in_tasks(self._spec, tasks, handle, now, is_extension=False)
            else:
                change = self._spec.replacement(earlier, now.table())
        self._spec.console.progress(f"reading {self.name}").advance(rows=count)
        return collector.to_source_change(change, {"rows": count}, None, good_records=count)

    def _read_in_tasks(
        self, tasks: TaskPool, collector: RunCollector, rows_before: int
    ) -> tuple[FileRows, int]:
        """Return the rows, which tasks have written, and how many good records there are."""
        spec, expected = self._spec, collector.expected
        assert self._map_rows is not None
        staging = Staging(spec, tasks, _UNKNOWN_ROWS)
        reader = PortionReader(
            expected, spec.name, staging.directory.path, write_pieces=staging.write_pieces
        )
        paths = self._paths()
        if paths is None:
            reports: list[TaskReport] = []
            names: tuple[str, ...] = ()
        else:
            frame = SparkRows(expected, spec.location, is_text=self._is_text)
            names, columns, reports = self._map_rows(
                spec.directive, paths, spec.relation.columns, SparkRowsStager(reader, frame)
            )
            if names:
                frame.check(columns)
        portions = [each for report in reports for each in report.portions]
        name = spec.location.name
        columns = shown_columns(names)
        collect(spec, collector, name, portions, rows_before=rows_before, columns=columns)
        collector.raise_if_malformed()
        return staging.rows(reports), sum(each.rows for each in portions)

    def _paths(self) -> list[Path | str] | None:
        """Return the files or the folder to read, none for a table; None if no file is there."""
        spec = self._spec
        if not spec.directive.parameter("filename"):
            return []
        files = [_name_for_spark(place_of(each.path)) for each in list_files(spec.location)]
        if not is_pattern(spec.location):
            return [_name_for_spark(spec.location.resolve(spec.location.name))]
        return files or None

    def _reading(self, expected: ExpectedColumns) -> FileRecords:
        spec = self._spec
        paths = self._paths()
        if paths is None:
            return FileRecords(spec.empty_table())
        names, table = self._fetch(spec.directive, paths, spec.relation.columns)
        if not spec.relation.types:
            return FileRecords(nullary_table(min(1, table.num_rows)), [], names)
        if not names:  # JSON without records has no columns
            return FileRecords(spec.empty_table())
        frame = SparkRows(expected, spec.location, is_text=self._is_text)
        return frame.records(table, names)


@dataclass(frozen=True, slots=True)
class SparkRows:
    """Converts what Spark has read to rows of a relation."""

    expected: ExpectedColumns
    location: SourceLocation
    is_text: bool

    def records(self, table: pa.Table, names: Sequence[str] = ()) -> FileRecords:
        """Return the good rows, and the findings about others.

        Args:
            table: the columns of the relation that there are.
            names: of all columns.

        Raises:
            InputError: `C0950`, a column is missing or of another type.
        """
        relation, expected = self.expected.relation, self.expected
        table, corrupt = self._without_corrupt(table)
        self.check(table)
        columns = [
            table.column(name)
            if name in table.column_names
            else pa.chunked_array([pa.nulls(table.num_rows, arrow_type(type_))])
            for name, type_ in zip(relation.columns, relation.types, strict=True)
        ]
        convert = _from_text_or_arrow if self.is_text else from_arrow
        rows, malformed = convert_records(
            columns, self.location.display_name, expected, convert=convert, has_order=False
        )
        return FileRecords(rows, [*corrupt, *malformed], shown_columns(names))

    def check(self, table: pa.Table) -> None:
        """Raise if a table does not have the columns of the relation (`C0950`)."""
        schema, relation = table.schema, self.expected.relation
        if self.is_text:  # a text counts as the type of its column
            types = dict(zip(relation.columns, relation.types, strict=True))
            schema = pa.schema(
                field.with_type(arrow_type(types[field.name]))
                if field.type == pa.string() and field.name in types
                else field
                for field in schema
            )
        check_columns(schema, self.location.display_name, self.expected)

    def _without_corrupt(self, table: pa.Table) -> tuple[pa.Table, list[list[Diagnostic]]]:
        """Return the rows, and the findings about records that Spark could not parse."""
        columns = self.expected.relation.columns
        if CORRUPT_COLUMN not in table.column_names or CORRUPT_COLUMN in columns:
            return table, []
        corrupt = table.column(CORRUPT_COLUMN)
        name, message = self.location.display_name, "the record cannot be parsed"
        found = [
            [Diagnostic("C0801", message, Span(SourceFile(name, raw, 0), 0, 1, 0, 2))]
            for raw in corrupt.drop_null().to_pylist()
        ]
        return table.filter(pc.is_null(corrupt)).drop_columns([CORRUPT_COLUMN]), found


@dataclass(frozen=True, slots=True)
class SparkRowsStager:
    """Converts what Spark has read, and writes its rows; it is pickled, and called in tasks."""

    reader: PortionReader
    rows: SparkRows

    def __call__(self, table: pa.Table) -> TaskReport:
        """Return what is told of some rows."""
        name = self.rows.location.name
        file = DataFile(name, self.rows.location.display_name, "", "spark", (0, 0, 0, 0))
        return self.reader.report(file, self.rows.records(table))


def _name_for_spark(place: Place) -> Path | str:
    """Return what Spark calls a file or object: those of S3 are read by its file system `s3a`."""
    if isinstance(place, Path):
        return place
    return f"s3a{str(place)[2:]}" if place.store.startswith("s3:") else str(place)


def shown_columns(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of columns that are the source's own."""
    return tuple(name for name in names if name != CORRUPT_COLUMN)


def _from_text_or_arrow(column: pa.ChunkedArray, type_: Type) -> tuple[pa.ChunkedArray, Failures]:
    is_text = column.type == pa.string() and arrow_type(type_) != pa.string()
    return from_texts(column, type_) if is_text else from_arrow(column, type_)
