"""Whatever Spark reads as a source: its change is a full difference, since Spark reports none.

Columns are found by name, and have the types that Spark gives them. In text formats (CSV, JSON) a
value is read as in our own facts files. Rows have no numbers: Spark does not keep their order.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow import arrow_type, nullary_table
from corollary.core.program import Directive
from corollary.core.spark_io import CORRUPT_COLUMN, TEXT_FORMATS
from corollary.core.types import Type
from corollary.errors import Diagnostic
from corollary.source import SourceFile, Span
from corollary.warehouse.formats.typed_values import Failures, from_arrow, from_texts
from corollary.warehouse.sources.earlier_rows import EarlierRows
from corollary.warehouse.sources.file_listing import is_pattern, list_files
from corollary.warehouse.sources.parquet_file import check_columns, convert_records
from corollary.warehouse.sources.schema_drift import ExpectedColumns, FileRecords
from corollary.warehouse.sources.source import Position, SourceChange
from corollary.warehouse.sources.source_spec import InputSource, RunCollector, SourceSpec

Fetch = Callable[[Directive, Sequence[Path], Sequence[str]], tuple[tuple[str, ...], pa.Table]]
"""Reads an `.input` (with these files, if it names files): returns the names of all columns, and a
table with those of the relation."""


class SparkSource(InputSource):
    """Reads a source through Spark."""

    def __init__(self, inlet: SourceSpec, fetch: Fetch) -> None:
        super().__init__(inlet, "spark")
        self._fetch = fetch
        self._is_text = inlet.directive.parameter("format").lower() in TEXT_FORMATS

    def is_unchanged(self, _: Position | None) -> bool:
        """Return False: Spark has no fingerprints to compare."""
        return False

    def change_since(self, before: Position | None, earlier: EarlierRows) -> SourceChange:
        """Return what has changed since a position.

        Raises:
            InputError: the source cannot be read, or has rows that are not acceptable.
        """
        before = self._comparable(before)
        collector = RunCollector(self._inlet, before)
        rows_before = 0 if before is None else before["rows"]
        reading = self._reading(collector.expected)
        rows = collector.add_file(self._inlet.location.name, reading, rows_before)
        self._inlet.console.progress(f"reading {self.name}").advance(rows=rows.num_rows)
        collector.raise_if_malformed()
        position = {"form": self._form, "rows": rows.num_rows}
        change = self._inlet.replacement(earlier, rows)
        return collector.to_source_change(change, position, None, good_records=rows.num_rows)

    def _reading(self, expected: ExpectedColumns) -> FileRecords:
        inlet = self._inlet
        paths: list[Path] = []
        if inlet.directive.parameter("filename"):
            files = [Path(each.path) for each in list_files(inlet.location)]
            if not files and is_pattern(inlet.location):
                return FileRecords(inlet.empty_table())
            paths = (
                files
                if is_pattern(inlet.location)
                else [inlet.location.resolve(inlet.location.name)]
            )
        names, table = self._fetch(inlet.directive, paths, inlet.relation.columns)
        if not inlet.relation.types:
            return FileRecords(nullary_table(min(1, table.num_rows)), [], names)
        if not names:  # JSON without records has no columns
            return FileRecords(inlet.empty_table())
        table, corrupt = self._without_corrupt(table)
        check_columns(self._types(table), inlet.location.display_name, expected)
        columns = [
            table.column(name)
            if name in table.column_names
            else pa.chunked_array([pa.nulls(table.num_rows, arrow_type(type_))])
            for name, type_ in zip(inlet.relation.columns, inlet.relation.types, strict=True)
        ]
        convert = _from_text_or_arrow if self._is_text else from_arrow
        rows, malformed = convert_records(
            columns, inlet.location.display_name, expected, convert=convert, has_order=False
        )
        return FileRecords(
            rows, [*corrupt, *malformed], tuple(n for n in names if n != CORRUPT_COLUMN)
        )

    def _types(self, table: pa.Table) -> pa.Schema:
        """Return the schema; in text formats a text counts as the type of its column."""
        if not self._is_text:
            return table.schema
        types = dict(zip(self.relation.columns, self.relation.types, strict=True))
        return pa.schema(
            field.with_type(arrow_type(types[field.name])) if field.type == pa.string() else field
            for field in table.schema
        )

    def _without_corrupt(self, table: pa.Table) -> tuple[pa.Table, list[list[Diagnostic]]]:
        """Return the rows, and the findings about records that Spark could not parse."""
        if CORRUPT_COLUMN not in table.column_names or CORRUPT_COLUMN in self.relation.columns:
            return table, []
        corrupt = table.column(CORRUPT_COLUMN)
        name, message = self._inlet.location.display_name, "the record cannot be parsed"
        found = [
            [Diagnostic("C0801", message, Span(SourceFile(name, raw, 0), 0, 1, 0, 2))]
            for raw in corrupt.drop_null().to_pylist()
        ]
        return table.filter(pc.is_null(corrupt)).drop_columns([CORRUPT_COLUMN]), found


def _from_text_or_arrow(column: pa.ChunkedArray, type_: Type) -> tuple[pa.ChunkedArray, Failures]:
    is_text = column.type == pa.string() and arrow_type(type_) != pa.string()
    return from_texts(column, type_) if is_text else from_arrow(column, type_)
