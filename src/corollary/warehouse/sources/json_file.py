"""One file of JSON lines of a source: a line is an object by column names, or an array in order.

Keys that are not columns are ignored; a nullable column may be missing. Empty lines are skipped.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json

from corollary.core.arrow import arrow_type, canonical_floats, nullary_table, schema_of
from corollary.core.program import Relation
from corollary.core.types import Kind, Type
from corollary.errors import Diagnostic
from corollary.warehouse.files.input_files import LINE_MAX_BYTES, has_longer_line
from corollary.warehouse.formats import vectorized_reader
from corollary.warehouse.sources import json_line
from corollary.warehouse.sources.schema_drift import ExpectedColumns, FileRecords

PIECE_BYTES = 2**20
"""Bytes that Arrow reads at once; an irregular line costs no more than its piece."""
_ARROW_KINDS = {Kind.SYMBOL, Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT, Kind.BOOL}
"""What Arrow reads from JSON as we do; other kinds are texts there."""


def read(data: bytes, name: str, expected: ExpectedColumns, start: int = 0) -> FileRecords:
    """Return the records of a file from some offset on; arguments as for `csv_file`."""
    relation = expected.relation
    reader = _Reader(name, expected)
    tables = []
    line = data.count(b"\n", 0, start) + 1
    while start < len(data):
        end = data.find(b"\n", start + PIECE_BYTES) + 1 or len(data)
        piece = data[start:end]
        table = None if has_longer_line(piece, LINE_MAX_BYTES) else read_vectorized(piece, relation)
        if table is None:
            table = reader.table(list(enumerate(piece.split(b"\n"), line)))
        else:
            reader.columns |= set(relation.columns)
        tables.append(table)
        start, line = end, line + piece.count(b"\n")
    reader.malformed.sort(key=json_line.first_line_number)
    if not relation.types:
        whole = nullary_table(min(1, sum(each.num_rows for each in tables)))
    else:
        whole = pa.concat_tables([schema_of(relation).empty_table(), *tables])
    return FileRecords(whole, reader.malformed, tuple(sorted(reader.columns)))


def can_continue_at(data: bytes, offset: int, expected: ExpectedColumns) -> bool:  # noqa: ARG001
    """Return whether a record ends at an offset of a text, by its line break."""
    return data.endswith(b"\n", 0, offset)


class _Reader:
    """Turns lines into tables, and collects those that are malformed."""

    def __init__(self, name: str, expected: ExpectedColumns) -> None:
        self.name = name
        self.relation = expected.relation
        self.malformed: list[list[Diagnostic]] = []
        self.columns: set[str] = set()
        is_exact = any(type_.kind is Kind.DECIMAL for type_ in self.relation.types)
        self.decode = json_line.json_decoder(is_exact=is_exact)

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


def read_vectorized(data: bytes, relation: Relation) -> pa.Table | None:
    """Return the rows of whole lines, or None if they have to be read line by line.

    Arrow reads a stream of objects and ignores lines. If each line begins with `{` and ends with
    `}`, no object crosses a line break (after a `}` inside of one, a comma or a bracket would have
    to follow), and as many objects as lines means one on each. Of texts that are not JSON, Arrow
    accepts only `NaN` and `Infinity`; a file with other keys than the columns is not accepted here.
    """
    data = data.removesuffix(b"\n")
    lines = data.count(b"\n") + 1
    is_regular = data.startswith(b"{") and data.endswith(b"}")
    if not relation.types or not is_regular or data.count(b"}\n{") != lines - 1:
        return None
    fields = [(name, _read_as(type_)) for name, type_ in _columns(relation)]
    try:
        table = json.read_json(
            pa.BufferReader(data),
            read_options=json.ReadOptions(block_size=LINE_MAX_BYTES),
            parse_options=json.ParseOptions(
                explicit_schema=pa.schema(fields),
                newlines_in_values=False,
                unexpected_field_behavior="error",
            ),
        )
        table.validate(full=True)  # texts have to be UTF-8
    except (pa.ArrowException, UnicodeError):
        return None
    if table.num_rows != lines:
        return None
    columns = [_converted(table.column(name), type_) for name, type_ in _columns(relation)]
    if any(column is None for column in columns):
        return None
    return pa.Table.from_arrays(columns, schema=schema_of(relation))


def _columns(relation: Relation) -> list[tuple[str, Type]]:
    return list(zip(relation.columns, relation.types, strict=True))


def _read_as(type_: Type) -> pa.DataType:
    return arrow_type(type_) if type_.kind in _ARROW_KINDS else pa.string()


def _converted(column: pa.ChunkedArray, type_: Type) -> pa.ChunkedArray | None:
    if column.null_count and not type_.nullable:
        return None
    if type_.kind is Kind.FLOAT:
        is_finite = pc.all(pc.is_finite(column), min_count=0).as_py()
        return canonical_floats(column) if is_finite else None
    return column if type_.kind in _ARROW_KINDS else vectorized_reader.convert_texts(column, type_)
