"""One file of JSON of a source: a row is an object by column names, or an array in order.

A file of JSON lines has a row on each line; one of `IO=jsonfile` is an array of all rows.

Keys that are not columns are ignored; a nullable column may be missing. Empty lines are skipped.

Arrow reads many lines at once. Lines that it does not read as we do are found by splitting, and
only they, with a few neighbours, are read one by one.
"""

from dataclasses import replace
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json

from corollary.console import Progress
from corollary.core import arrow
from corollary.core.program import Relation
from corollary.core.records.record_structs import struct_type
from corollary.core.types import PLAIN_BRANCH, Kind, RecordType, Type
from corollary.errors import Diagnostic
from corollary.warehouse.files.input_files import LINE_MAX_BYTES, has_longer_line
from corollary.warehouse.formats import text_records
from corollary.warehouse.formats.block_tables import BlockTables, map_blocks
from corollary.warehouse.formats.dialect import Dialect
from corollary.warehouse.formats.json_documents import form_of
from corollary.warehouse.formats.text_columns import convert_texts
from corollary.warehouse.formats.text_stream import TextStream
from corollary.warehouse.formats.typed_values import from_arrow, from_json
from corollary.warehouse.sources import json_line
from corollary.warehouse.sources.portions import EarlierText
from corollary.warehouse.sources.schema_drift import ExpectedColumns, FileRecords

_LINES_MIN = 64
"""So few lines are read one by one, if Arrow does not read them as we do."""
_PARTS = 16
"""The number of parts into which more lines are split then."""
_LINES = Dialect(())
"""The syntax of a file of lines."""
_ARROW_KINDS = {Kind.SYMBOL, Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT, Kind.FLOAT32, Kind.BOOL}
"""What Arrow reads from JSON as we do; other kinds are texts there."""


_NUL = rb"\u0000"
"""A character that JSON has and our texts do not have."""


def syntax(*_: object) -> Dialect:
    """Return the syntax of a file: each line is a record."""
    return _LINES


def read(
    text: text_records.ReadableText,
    name: str,
    expected: ExpectedColumns,
    earlier: EarlierText | None = None,
    progress: Progress | None = None,
) -> FileRecords:
    """Return the records of a file; arguments as for `csv_file`."""
    tables = BlockTables(expected.relation, is_compact=expected.is_compact)
    malformed: list[list[Diagnostic]] = []
    columns: set[str] = set()

    def read_one(block: text_records.RecordBlock) -> "_Reader":
        reader = _Reader(name, expected)
        reader.read(block.data, block.first_line)
        return reader

    blocks = text_records.split_blocks(text, _LINES, 1 if earlier is None else earlier.lines + 1)
    for reader in map_blocks(read_one, blocks):
        table = reader.union()
        tables.add(table)
        malformed += sorted(reader.malformed, key=json_line.first_line_number)
        columns |= reader.columns
        if progress is not None:
            progress.advance(rows=table.num_rows)
    return FileRecords(tables.union(), malformed, tuple(sorted(columns)))


def read_document(
    file: BinaryIO, name: str, expected: ExpectedColumns, *, progress: Progress | None = None
) -> FileRecords:
    """Return the records of a file that is one array of rows; arguments as for `parquet_file`.

    Raises:
        InputError: `C0957`, it is not an array; `C0803`, it is not UTF-8.
    """
    relation = expected.relation
    form = form_of(relation, expected.directive)
    text = TextStream(file, name, expected.directive.span).read_all()
    items = json_line.split_document(text, name)
    if not relation.types:
        items = [(number, b"[]" if item == b"null" else item) for number, item in items]
    reader = _Reader(name, replace(expected, relation=replace(relation, columns=form.columns)))
    reader.read_items(items)
    rows = reader.union()
    if progress is not None:
        progress.advance(rows=rows.num_rows)
    table = rows.rename_columns(list(relation.columns)) if relation.types else rows
    return FileRecords(table, reader.malformed, tuple(sorted(reader.columns)))


def read_lines(lines: pa.ChunkedArray, expected: ExpectedColumns) -> FileRecords:
    """Return the records of texts that are JSON without line breaks, numbered from 1."""
    reader = _Reader("", expected)
    reader.read("\n".join([*lines.to_pylist(), ""]).encode(), 1)
    reader.malformed.sort(key=json_line.first_line_number)
    return FileRecords(reader.union(), reader.malformed, tuple(sorted(reader.columns)))


class _Reader:
    """Turns the lines of a block into tables, and collects those that are malformed."""

    def __init__(self, name: str, expected: ExpectedColumns) -> None:
        self.name = name
        self.relation = expected.relation
        self.tables: list[pa.Table] = []
        self.malformed: list[list[Diagnostic]] = []
        self.columns: set[str] = set()
        is_exact = any(type_.is_decimal for type_ in self.relation.types)
        self.decode = json_line.json_decoder(is_exact=is_exact)

    def read(self, data: bytes, first_line: int) -> None:
        """Read some lines, as many as possible at once."""
        found = (
            None if has_longer_line(data, LINE_MAX_BYTES) else read_vectorized(data, self.relation)
        )
        if found is not None:
            table, columns = found
            self.tables.append(table)
            self.columns |= columns
            return
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n")) + 1
        if len(ends) <= _LINES_MIN or not self.relation.types:
            self.tables.append(self.table(list(enumerate(data.split(b"\n"), first_line))))
            return
        # The first line of each part, and where it starts.
        firsts = np.linspace(0, len(ends), _PARTS + 1).astype(np.int64)
        bounds = np.concatenate([[0], ends])[firsts].tolist()
        for line, start, end in zip(firsts.tolist(), bounds, bounds[1:], strict=False):
            self.read(data[start:end], first_line + line)

    def read_items(self, items: list[json_line.NumberedLine]) -> None:
        """Read rows that are not on lines of their own."""
        found = read_vectorized(b"\n".join(item for _, item in items), self.relation)
        if found is None:
            self.tables.append(self.table(items))
        else:
            table, columns = found
            self.tables.append(table)
            self.columns |= columns

    def union(self) -> pa.Table:
        """Return the rows of all lines that were read."""
        if not self.relation.types:
            return arrow.nullary_table(min(1, sum(table.num_rows for table in self.tables)))
        return pa.concat_tables(self.tables)

    def table(self, lines: list[json_line.NumberedLine]) -> pa.Table:
        """Return the good rows of some lines."""
        rows: list[list[Any]] = []
        row_lines: list[json_line.NumberedLine] = []
        for number, line in lines:
            if not line or line.isspace():
                continue
            try:
                rows.append(self.row(line))
                row_lines.append((number, line))
            except json_line.BadLineError as bad:
                self.malformed.append([json_line.line_finding(self.name, (number, line), bad)])
        table, failures = json_line.convert_rows(rows, self.relation)
        self.malformed += (
            [
                json_line.line_finding(
                    self.name, row_lines[row], json_line.BadLineError("C0801", reason)
                )
                for reason in reasons
            ]
            for row, reasons in failures.items()
        )
        return table

    def row(self, line: bytes) -> list[Any]:
        """Return the values that a line has for the columns."""
        value = json_line.parse_line(line, self.decode)
        if isinstance(value, dict):
            self.columns |= value.keys()
        return json_line.column_values(value, self.relation)


# --- many lines at once --------------------------------------------------------------------------


def read_vectorized(data: bytes, relation: Relation) -> tuple[pa.Table, set[str]] | None:
    """Return the rows of whole lines and the keys in them, or None if Arrow may read them wrongly.

    Arrow reads a stream of objects and ignores lines. If each line begins with `{` and ends with
    `}`, no object crosses a line break (after a `}` inside of one, a comma or a bracket would have
    to follow), and as many objects as lines means one on each. Of texts that are not JSON, Arrow
    accepts only `NaN` and `Infinity`. Keys of objects inside of others are not looked at here.
    """
    data = data.removesuffix(b"\n")
    lines = text_records.count_lines(data) + 1
    is_regular = data.startswith(b"{") and data.endswith(b"}")
    if not relation.types or not is_regular or data.count(b"}\n{") != lines - 1:
        return None
    if _NUL in data:
        return None
    fields = [(name, _read_as(type_)) for name, type_ in _columns(relation)]
    has_structs = any(pa.types.is_nested(found) for _, found in fields)
    if has_structs and (b"NaN" in data or b"Infinity" in data):  # which are not JSON
        return None
    try:
        table = json.read_json(
            pa.BufferReader(data),
            read_options=json.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=json.ParseOptions(
                explicit_schema=pa.schema(fields),
                newlines_in_values=False,
                unexpected_field_behavior="infer",
            ),
        )
        table.validate(full=True)  # texts have to be UTF-8
    except (pa.ArrowException, UnicodeError):
        return None
    others = set(table.column_names) - set(relation.columns)
    if table.num_rows != lines or not all(_is_plain(table.column(name)) for name in others):
        return None
    columns = [
        _converted(arrow.single_array(table.column(name)), type_)
        for name, type_ in _columns(relation)
    ]
    if any(column is None for column in columns):
        return None
    return pa.Table.from_arrays(columns, schema=arrow.schema_of(relation)), set(table.column_names)


def _is_plain(column: pa.ChunkedArray) -> bool:
    """Return whether the values of a key that is not a column are certainly JSON."""
    if pa.types.is_floating(column.type):
        return bool(pc.all(pc.is_finite(column), min_count=0).as_py())
    return not pa.types.is_nested(column.type)


def _columns(relation: Relation) -> list[tuple[str, Type]]:
    return list(zip(relation.columns, relation.types, strict=True))


def _read_as(type_: Type) -> pa.DataType:
    """Return the type that Arrow reads: of records that are objects, a struct."""
    if type_.record is not None and _has_structs(type_.record):
        return struct_type(type_.record)
    return arrow.arrow_type(type_) if _is_read_by_arrow(type_) else pa.string()


def _is_read_by_arrow(type_: Type) -> bool:
    if type_.members:
        inner = [each for _, each in type_.members]
        return not type_.is_map and all(
            not each.stores_floats and _is_read_by_arrow(each) for each in inner
        )
    return type_.logical_kind in _ARROW_KINDS and type_.record is None


def _has_structs(record: RecordType, around: tuple[RecordType, ...] = ()) -> bool:
    """Return whether Arrow reads the objects of a record type as we do."""
    if record in around or record.is_algebraic:
        return False
    return all(
        _is_read_by_arrow(type_)
        if type_.record is None
        else _has_structs(type_.record, (*around, record))
        for type_ in record.branches[PLAIN_BRANCH].types
    )


def _converted(column: pa.Array, type_: Type) -> pa.Array | None:
    if type_.record is not None and pa.types.is_struct(column.type):
        if column.type != struct_type(type_.record):  # other keys, which are not fields
            return None
        texts, failures = from_arrow(pa.chunked_array([column]), type_)
        return None if failures else arrow.single_array(texts)
    if column.null_count and not type_.nullable:
        return None
    if type_.is_binary:
        encoded = column.dictionary_encode()
        found, failures = from_json(encoded.dictionary.to_pylist(), type_)
        return None if failures else arrow.single_array(found).take(encoded.indices)
    if type_.stores_floats:
        is_finite = pc.all(pc.is_finite(column), min_count=0).as_py()
        return arrow.canonical_floats(column) if is_finite else None
    if type_.members and column.type != arrow.arrow_type(type_):  # other keys, which are not fields
        return None
    return column if _is_read_by_arrow(type_) else convert_texts(column, type_)
