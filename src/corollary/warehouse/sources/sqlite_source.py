"""A table or view of an SQLite database as a source: its change is a full difference.

Columns are found by name if the table has all of the relation's, else by position, as Soufflé does.
A database that has not been written since, by its size and times, is not read again.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from corollary.core.types import Type
from corollary.errors import InputError
from corollary.source import Span
from corollary.warehouse.formats.sqlite_tables import open_table, table_name_of
from corollary.warehouse.formats.typed_values import Failures, from_json, from_texts
from corollary.warehouse.sources.parquet_file import convert_records
from corollary.warehouse.sources.schema_drift import ExpectedColumns, FileRecords
from corollary.warehouse.sources.source import EarlierRows, Position, SourceChange
from corollary.warehouse.sources.source_spec import InputSource, RunCollector, SourceSpec

_JOURNAL_SUFFIX = "-wal"
"""What other writers have committed may still be in the file of this ending."""


class SqliteSource(InputSource):
    """Reads a table or view of a database."""

    def __init__(self, spec: SourceSpec) -> None:
        super().__init__(spec, "sqlite")
        self._path: Path = spec.location.resolve_file()

    def is_unchanged(self, before: Position | None) -> bool:
        """Return whether the database has not been written since a position."""
        known = self._comparable(before)
        return known is not None and known.get("files") == self._fingerprint()

    def _change(
        self, before: Position | None, earlier: EarlierRows, collector: RunCollector
    ) -> SourceChange:
        files = self._fingerprint()
        rows_before = 0 if before is None else before["rows"]
        records = self._read(collector.expected)
        change, count = self._replacement(records, rows_before, earlier, collector)
        position = {"rows": count, "files": files}
        return collector.to_source_change(change, position, None, good_records=count)

    def _fingerprint(self) -> list[list[int]]:
        """Return size, time and number of the files of the database, as JSON values."""
        found = []
        for file in (self._path, self._path.with_name(self._path.name + _JOURNAL_SUFFIX)):
            if file.exists():
                status = file.stat()
                found.append([status.st_size, status.st_mtime_ns, status.st_ino])
        return found

    def _read(self, expected: ExpectedColumns) -> FileRecords:
        spec, relation = self._spec, self._spec.relation
        name, span = spec.location.display_name, spec.directive.span
        progress = spec.console.progress(f"reading {spec.location.name}")
        tables = [spec.empty_table()]
        malformed = []
        first_row = 0
        with open_table(self._path, name, table_name_of(spec.directive), span) as table:
            positions = _positions(table.columns, relation.columns, name, span)
            for batch in table.batches(positions):
                columns = [
                    _column(values, type_)
                    for values, type_ in zip(zip(*batch, strict=True), relation.types, strict=True)
                ]
                good, found = convert_records(
                    columns, name, expected, convert=_converted, first_row=first_row
                )
                tables.append(good)
                malformed += found
                first_row += len(batch)
                progress.advance(rows=len(batch))
            names = tuple(table.columns[at] for at in positions)
        return FileRecords(spec.union(tables), malformed, names)


def _positions(
    found: Sequence[str], wanted: Sequence[str], name: str, span: Span | None
) -> list[int]:
    """Return where the columns of a relation are in a table."""
    if wanted and set(wanted) <= set(found):
        return [found.index(each) for each in wanted]
    if not wanted or len(found) != len(wanted):
        listed = ", ".join(f"`{each}`" for each in found)
        raise InputError.of(
            "C0992",
            f"The table of `{name}` has {len(found)} columns, {listed}, which are not those of the "
            "relation, neither by name nor by number.",
            span,
            "declare the relation with the columns of the table, or name those that it needs",
        )
    return list(range(len(found)))


def _column(values: Sequence[Any], type_: Type) -> pa.ChunkedArray:
    """Return the values of a column as Arrow has them, texts where they are of several kinds."""
    kinds = {type(each) for each in values if each is not None}
    if type_.is_bool and kinds <= {int}:
        return pa.chunked_array([pa.array(values, pa.int64())])
    if type_.is_binary and kinds <= {bytes}:
        return pa.chunked_array([pa.array(values, pa.binary())])
    is_text = type_.is_symbol and kinds == {int}
    if len(kinds) <= 1 and bytes not in kinds and not is_text:
        return pa.chunked_array([pa.array(values)])
    texts = [_text(each) for each in values]
    return pa.chunked_array([pa.array(texts, pa.string())])


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _converted(column: pa.ChunkedArray, type_: Type) -> tuple[pa.ChunkedArray, Failures]:
    """Return a column in one of our types; null where a value is none of it."""
    if pa.types.is_string(column.type) and not type_.is_symbol:
        return from_texts(column.fill_null(""), type_)
    values = column.to_pylist()
    if type_.is_bool:
        values = [{0: False, 1: True}.get(each, each) for each in values]
    return from_json(values, type_)
