"""Reads a facts file record by record: slower, and with a reason for every malformed record.

Each record becomes either a row or at least one finding that names file, line and column.
`vectorized_reader` gives the same rows or none.
"""

import re
from collections.abc import Iterable, Iterator

from corollary.core.logic import Value
from corollary.core.program import Relation
from corollary.core.values import parse_value, quote_text
from corollary.errors import Diagnostic
from corollary.source import SourceFile, Span
from corollary.warehouse.formats.delimited_records import TextRecord, split_records
from corollary.warehouse.formats.dialect import Dialect

_NOT_TEXT = re.compile("[\0\udc80-\udcff]")
"""NUL, and the bytes that are not UTF-8 as `surrogateescape` decodes them."""

Row = tuple[Value, ...]


def read(
    pieces: Iterable[tuple[int, bytes]], name: str, relation: Relation, dialect: Dialect
) -> Iterator[Row | list[Diagnostic]]:
    """Yield for each record its row, or the findings about it (`C0801` to `C0803`, `C0952`).

    Args:
        pieces: pieces of the file that consist of records, each with the number of its first line.
        name: the name of the file in messages.
        relation: the relation of the rows.
        dialect: the syntax of the file; the header is not among the pieces.
    """
    reader = _Reader(name, relation, dialect)
    for line, data in pieces:
        text = data.decode("utf-8", "surrogateescape")
        for record in split_records(text, dialect, line):
            yield reader.row(record)


class _Reader:
    """Turns records into rows."""

    def __init__(self, name: str, relation: Relation, dialect: Dialect) -> None:
        self.name = name
        self.relation = relation
        self.dialect = dialect
        self.width = max(dialect.positions, default=-1) + 1
        self.columns = list(zip(dialect.positions, relation.types, strict=True))

    def row(self, record: TextRecord) -> Row | list[Diagnostic]:
        """Return the row of a record, or what is wrong with it."""
        if findings := list(self.check_syntax(record)):
            return findings
        values: list[Value] = []
        for number, (position, type_) in enumerate(self.columns):
            text = record.fields[position]
            # A quoted empty field is the empty text, not null.
            expected = type_.with_null(False) if position in record.quoted else type_
            try:
                values.append(parse_value(text, expected))
            except ValueError as error:
                where = f"column `{self.relation.columns[number]}` of `{self.relation.name}`"
                note = None if text else f"an empty field is null if the column is `{type_}?`"
                finding = self.field_finding(record, position, "C0801", f"{error} ({where})", note)
                findings.append(finding)
        return findings or tuple(values)

    def check_syntax(self, record: TextRecord) -> Iterator[Diagnostic]:
        """Yield what is wrong with a record apart from its values."""
        if found := _NOT_TEXT.search(record.raw):
            if found[0] == "\0":
                message, note = "the file holds a NUL byte here", "facts files are plain text"
            else:
                byte = ord(found[0]) - 0xDC00
                message = f"the byte 0x{byte:02x} is not UTF-8 here"
                note = "convert the file to UTF-8, for instance with iconv"
            yield self.finding(record, (found.start(), found.end()), "C0803", message, note)
        elif self.is_too_long(record):
            yield too_long_line(self.name, record.line, record.raw)
        elif record.problem is not None:
            message, offset = record.problem
            yield self.finding(
                record, (offset, offset + 1), "C0801", message, 'a quote inside is written ""'
            )
        elif not self.relation.types:
            if record.raw != "()":
                message = (
                    f"{quote_text(record.raw)} is not `()`, the one tuple of `{self.relation.name}`"
                )
                yield self.finding(record, (0, len(record.raw)), "C0801", message)
        elif len(record.fields) < self.width:
            yield self.too_few(record)
        elif len(record.fields) > self.width and not self.dialect.has_other_columns:
            expected = _counted(self.width, "column")
            message = (
                f"{len(record.fields)} fields stand where `{self.relation.name}` has {expected}"
            )
            note = 'to take some columns of a wider file, name their positions: columns="0:1"'
            yield self.field_finding(record, self.width, "C0802", message, note)

    def is_too_long(self, record: TextRecord) -> bool:
        """Return whether a line of a record is longer than the maximum."""
        longest = self.dialect.line_max_bytes
        if longest is None or 4 * len(record.raw) <= longest:  # UTF-8 has at most 4 bytes
            return False
        return any(len(_bytes_of(line)) > longest for line in record.raw.split("\n"))

    def too_few(self, record: TextRecord) -> Diagnostic:
        """Return the finding for a record that ends early."""
        found = len(record.fields)
        if self.dialect.has_other_columns:
            required = f"`columns` asks for position {self.width - 1}"
        else:
            required = f"`{self.relation.name}` has {_counted(self.width, 'column')}"
        verb = "stands" if found == 1 else "stand"
        message = f"{_counted(found, 'field')} {verb} where {required}"
        delimiter = (
            "a tab" if self.dialect.delimiter == "\t" else quote_text(self.dialect.delimiter)
        )
        other = ";"
        if "\t" in record.raw and self.dialect.delimiter != "\t":
            other = "\\t"
        note = f'the delimiter is {delimiter}; another is named as in delimiter="{other}"'
        return self.finding(record, (len(record.raw), len(record.raw)), "C0802", message, note)

    def field_finding(
        self, record: TextRecord, position: int, code: str, message: str, note: str | None = None
    ) -> Diagnostic:
        """Return a finding about a field."""
        offset = record.offset(position)
        after = position + 1
        end = len(record.raw)
        if after < len(record.fields):
            end = record.offset(after) - record.delimiter_length
        return self.finding(record, (offset, end), code, message, note)

    def finding(
        self,
        record: TextRecord,
        range_: tuple[int, int],
        code: str,
        message: str,
        note: str | None = None,
    ) -> Diagnostic:
        """Return a finding about a range of a record's text."""
        raw = _bytes_of(record.raw).decode("utf-8", "backslashreplace")
        file = SourceFile(self.name, raw, record.line)
        span = Span(file, *record.position(range_[0]), *record.position(range_[1]))
        return Diagnostic(code, message, span, note)


def too_long_line(name: str, line: int, raw: str) -> Diagnostic:
    """Return the finding about a line that is too long to be a record."""
    file = SourceFile(name, raw, line)
    message = f"the line has {len(raw)} characters"
    note = "a line break is missing here, or this is not a file of facts"
    return Diagnostic("C0952", message, Span(file, line, 1, line, 2), note)


def _bytes_of(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
