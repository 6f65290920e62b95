"""Reads a block of records: by vectors where they are regular, the others one by one.

| records                                              | are found by                          |
|------------------------------------------------------|---------------------------------------|
| with NUL, a lone carriage return, bytes that are not | the offsets of these bytes            |
| UTF-8, irregular quotes, a line that is too long     |                                       |
| with another number of fields than the others        | counting delimiters outside of quotes |
| with a text that is not plain (`text_columns`)       | patterns, column by column            |

These are read exactly: each becomes a row, or at least one finding that names file, line and
column. Rows stay in order.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv

from corollary.console import counted
from corollary.core.arrow import from_python, nullary_table, schema_of, single_array
from corollary.core.arrow_buffers import bool_array, index_array
from corollary.core.logic import Value
from corollary.core.program import Relation
from corollary.core.values import parse_value, quote_text
from corollary.data_class import dataclass
from corollary.errors import Diagnostic
from corollary.source import SourceFile, Span
from corollary.warehouse.files.input_files import BYTE_ORDER_MARK, has_longer_line
from corollary.warehouse.formats.dialect import Dialect
from corollary.warehouse.formats.text_columns import Mask, are_plain, convert_texts
from corollary.warehouse.formats.text_records import RecordBlock, TextRecord, split_records

Malformed = list[list[Diagnostic]]
"""The findings about each malformed record."""


def read_block(
    block: RecordBlock,
    name: str,
    relation: Relation,
    dialect: Dialect,
    max_malformed: int | None = None,
) -> tuple[pa.Table, Malformed]:
    """Return the good rows of a block, and the findings about each malformed record.

    Args:
        block: the records, without header.
        name: the name of the file in messages.
        relation: the relation of the rows.
        dialect: the syntax of the file.
        max_malformed: the number of malformed records after which reading stops.
    """
    if block.has_regular_quotes:
        data, plain = outside_brackets(block.data, dialect)
        table = read_regular(data, relation, plain)
        if table is not None:
            return table, []
    return _IrregularBlock(block, name, relation, dialect, max_malformed).read()


@dataclass(frozen=True, slots=True)
class _IrregularBlock:
    """A block in which at least one record is irregular."""

    block: RecordBlock
    name: str
    relation: Relation
    dialect: Dialect
    max_malformed: int | None

    def read(self) -> tuple[pa.Table, Malformed]:
        """Return the rows and the findings."""
        if self.dialect.brackets:
            rows, _, malformed = self.read_exactly([(self.block.first_line, self.block.data)])
            return rows, malformed
        if not self.relation.types:
            rows, _, malformed = self.read_exactly([(self.block.first_line, self.block.data)])
            return nullary_table(min(1, rows.num_rows)), malformed
        records = _Records(self.block, self.dialect)
        is_odd = records.odd_ones()
        regular = self.read_regular(records, is_odd)
        if regular is None:
            rows, _, malformed = self.read_exactly([(self.block.first_line, self.block.data)])
            return rows, malformed
        exact, good, malformed = self.read_exactly(records.pieces(is_odd))
        if not exact.num_rows:
            return regular, malformed
        # Sorted by the number of the record: later rows of a stream replace earlier ones.
        numbers = np.concatenate([np.flatnonzero(~is_odd), np.flatnonzero(is_odd)[good]])
        together = pa.concat_tables([regular, exact]).combine_chunks()
        return together.take(index_array(np.argsort(numbers, kind="stable"))), malformed

    def read_regular(self, records: "_Records", is_odd: Mask) -> pa.Table | None:
        """Return the rows of the records that are not odd, and note which others are odd, too."""
        texts = read_texts(records.text_without(is_odd), self.relation, self.dialect)
        regular = np.flatnonzero(~is_odd)
        if texts is None or len(texts[0]) != len(regular):
            return None
        typed = list(zip(texts, self.relation.types, strict=True))
        columns = [convert_texts(*each) for each in typed]
        is_good = np.ones(len(regular), np.bool_)
        for (text, type_), column in zip(typed, columns, strict=True):
            if column is None:
                is_good &= are_plain(text, type_)
        selected = bool_array(is_good)
        columns = [
            convert_texts(text.filter(selected), type_)
            if column is None
            else column.filter(selected)
            for (text, type_), column in zip(typed, columns, strict=True)
        ]
        if any(column is None for column in columns):
            return None
        is_odd[regular[~is_good]] = True
        return pa.Table.from_arrays(columns, schema=schema_of(self.relation))

    def read_exactly(
        self, pieces: "list[tuple[int, bytes]] | Iterator[tuple[int, bytes]]"
    ) -> tuple[pa.Table, list[int], Malformed]:
        """Return the rows of records, which of the records they are, and the findings."""
        rows, good = [], []
        malformed: Malformed = []
        read = read_exactly(pieces, self.name, self.relation, self.dialect)
        for number, row in enumerate(read):
            if isinstance(row, tuple):
                rows.append(row)
                good.append(number)
                continue
            malformed.append(row)
            if self.max_malformed is not None and len(malformed) >= self.max_malformed:
                break
        return from_python(rows, self.relation), good, malformed


class _Records:
    """The records of a block, and which of them Arrow would not read as we do."""

    def __init__(self, block: RecordBlock, dialect: Dialect) -> None:
        self._block = block
        self._dialect = dialect
        index = block.records(dialect)
        ends = index.ends
        if index.end < len(block.data):  # a quote that is never closed
            ends = np.append(ends, len(block.data))
        self._ends = ends
        self._starts = np.concatenate([[0], ends[:-1]]).astype(np.int64)
        self._irregular = index.irregular
        self._has_open_quote = index.end < len(block.data)
        self._quotes = index.quotes
        self._content = np.frombuffer(block.data, np.uint8)

    def odd_ones(self) -> Mask:
        """Return which records have to be read one by one, whatever their values are."""
        data, content = self._block.data, self._content
        is_odd = np.zeros(len(self._ends), np.bool_)
        is_odd[self._irregular] = True
        if self._has_open_quote:
            is_odd[-1] = True
        for odd in (b"\0", SUBSTITUTE.encode() if len(self._delimiter) > 1 else b""):
            if odd and odd in data:
                is_odd[self._records_at(np.flatnonzero(content == odd[0]))] = True
        if b"\r" in data:
            returns = np.flatnonzero(content == ord("\r"))
            is_odd[self._records_at(returns[content[returns + 1] != ord("\n")])] = True
        if not data.isascii() and not _is_utf8(data):
            is_odd[self._records_at(np.flatnonzero(content >= 128))] = True
        if BYTE_ORDER_MARK in data:
            # Arrow would leave it out at the start of what it reads, whichever record that is.
            is_odd[[data.startswith(BYTE_ORDER_MARK, at) for at in self._starts.tolist()]] = True
        longest = self._dialect.line_max_bytes
        if longest is not None and len(data) > longest:
            breaks = np.flatnonzero(content == ord("\n"))
            lengths = np.diff(breaks, prepend=-1) - 1
            is_odd[self._records_at(breaks[lengths > longest])] = True
        delimiters = self._delimiters(is_odd)
        expected = max(self._dialect.positions)
        if self._dialect.has_other_columns and not is_odd.all():
            # Arrow reads records of one width only: that of most.
            expected = max(expected, int(np.bincount(delimiters[~is_odd]).argmax()))
        is_odd[delimiters != expected] = True
        return is_odd

    def pieces(self, selected: Mask) -> Iterator[tuple[int, bytes]]:
        """Yield the text of some records, each with the number of its first line."""
        breaks = np.flatnonzero(self._content == ord("\n"))
        starts, ends = self._starts[selected], self._ends[selected]
        lines = np.searchsorted(breaks, starts) + self._block.first_line
        for line, start, end in zip(lines.tolist(), starts.tolist(), ends.tolist(), strict=True):
            yield line, self._block.data[start:end]

    def text_without(self, is_left_out: Mask) -> bytes:
        """Return the text of the other records."""
        data, here = self._block.data, 0
        if not is_left_out.any():
            return data
        kept = []
        starts, ends = self._starts[is_left_out], self._ends[is_left_out]
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            kept.append(data[here:start])
            here = end
        kept.append(data[here:])
        return b"".join(kept)

    @property
    def _delimiter(self) -> bytes:
        return self._dialect.delimiter.encode()

    def _records_at(self, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the numbers of the records that contain some offsets."""
        return np.searchsorted(self._ends, offsets, side="right")

    def _delimiters(self, is_odd: Mask) -> npt.NDArray[np.int64]:
        """Return how many delimiters each record has outside of quotes; any number for odd ones."""
        content, ends, delimiter = self._content, self._ends, self._delimiter
        if len(delimiter) > 1:
            if len(self._quotes):
                is_odd[:] = True
                return np.zeros(len(ends), np.int64)
            text = self._block.data.replace(delimiter, SUBSTITUTE.encode())
            content, delimiter = np.frombuffer(text, np.uint8), SUBSTITUTE.encode()
            ends = np.flatnonzero(content == ord("\n")) + 1
        found = np.flatnonzero(content == delimiter[0])
        if len(self._quotes):
            # A delimiter is outside if an even number of quotes precedes it in its record.
            before = np.searchsorted(self._quotes, self._starts)
            inside = np.searchsorted(self._quotes, found) - before[self._records_at(found)]
            found = found[inside % 2 == 0]
        return np.bincount(np.searchsorted(ends, found, side="right"), minlength=len(ends))


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


# --- many records at once ------------------------------------------------------------------------


SUBSTITUTE = "\x1f"
"""Replaces a delimiter of several bytes, which Arrow cannot read, if the text does not use it."""


def read_regular(data: bytes, relation: Relation, dialect: Dialect) -> pa.Table | None:
    """Return the rows of some records, or None if they are not all regular.

    Args:
        data: whole records with regular quotes, each with its line break; without header.
        relation: the relation of the rows.
        dialect: the syntax of the file.
    """
    if not relation.types or dialect.brackets or b"\0" in data or has_lone_return(data):
        return None
    if data.startswith(BYTE_ORDER_MARK):  # at its start Arrow would leave it out
        return None
    if len(data) > (dialect.line_max_bytes or 0) and has_longer_line(data, dialect.line_max_bytes):
        return None
    texts = read_texts(data, relation, dialect)
    if texts is None:
        return None
    columns = []
    for text, type_ in zip(texts, relation.types, strict=True):
        column = convert_texts(text, type_)
        if column is None:
            return None
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=schema_of(relation))


def has_lone_return(data: bytes) -> bool:
    """Return whether there is a carriage return that no line break follows."""
    if b"\r" not in data:
        return False
    content = np.frombuffer(data, np.uint8)
    returns = np.flatnonzero(content == ord("\r"))
    return bool((content[returns + 1] != ord("\n")).any())  # data ends with a line break


def with_single_byte_delimiter(data: bytes, dialect: Dialect) -> tuple[bytes, Dialect] | None:
    """Return a text and its syntax with a delimiter of one byte, or None if there is no such."""
    delimiter = dialect.delimiter.encode()
    if len(delimiter) == 1:
        return data, dialect
    if (dialect.is_quoted and b'"' in data) or SUBSTITUTE.encode() in data:
        return None
    substituted = data.replace(delimiter, SUBSTITUTE.encode())
    return substituted, replace(dialect, delimiter=SUBSTITUTE)


def outside_brackets(data: bytes, dialect: Dialect) -> tuple[bytes, Dialect]:
    """Return a text whose delimiters outside of the brackets of records are of one byte.

    The syntax still has brackets if that cannot be done.

    >>> text = b"[1,[2,nil]],[3,nil]" + bytes([10])
    >>> outside_brackets(text, Dialect((0, 1), ",", brackets=(("[", "]"),)))[0].count(b",")
    3
    """
    if not dialect.brackets or SUBSTITUTE.encode() in data:
        return data, dialect
    content = np.frombuffer(data, np.uint8)
    delimiter = dialect.delimiter.encode()
    left, right = ([ord(pair[at]) for pair in dialect.brackets] for at in (0, 1))
    change = np.isin(content, left).astype(np.int64) - np.isin(content, right)
    depth = np.cumsum(change)
    breaks = np.flatnonzero(content == ord("\n"))
    # Each line begins outside, whatever the lines before it were.
    before = np.concatenate([[0], depth[breaks]])[np.searchsorted(breaks, np.arange(len(content)))]
    is_delimiter = depth - before == 0
    for at, sign in enumerate(delimiter):
        is_delimiter[: len(content) - at] &= content[at:] == sign
        is_delimiter[len(content) - at :] = False
    starts = np.flatnonzero(is_delimiter)
    if (np.diff(starts) < len(delimiter)).any():  # which of them is one is for the exact reader
        return data, dialect
    marked = content.copy()
    marked[starts] = ord(SUBSTITUTE)
    is_kept = np.ones(len(content), np.bool_)
    for at in range(1, len(delimiter)):
        is_kept[starts + at] = False
    return marked[is_kept].tobytes(), replace(dialect, delimiter=SUBSTITUTE, brackets=())


def read_texts(data: bytes, relation: Relation, dialect: Dialect) -> list[pa.Array] | None:
    """Return the columns of the relation as texts, null where an unquoted field is empty.

    Null is also in columns that are not nullable if another one is. None if the records do not all
    have the same number of fields, that of the relation, or are not UTF-8.
    """
    if not data:
        return [pa.nulls(0, pa.string())] * relation.arity
    plain = with_single_byte_delimiter(data, dialect)
    if plain is None:
        return None
    data, dialect = plain
    names = [f"f{position}" for position in dialect.positions]
    with contextlib.suppress(pa.ArrowException, ValueError, KeyError):
        table = csv.read_csv(
            pa.BufferReader(data),
            read_options=csv.ReadOptions(
                autogenerate_column_names=True,
                use_threads=False,  # the caller reads several blocks at the same time
                block_size=len(data) + 1,
            ),
            parse_options=csv.ParseOptions(
                delimiter=dialect.delimiter,
                quote_char='"' if dialect.is_quoted and b'"' in data else False,
                double_quote=True,
                escape_char=False,
                newlines_in_values=dialect.is_quoted,
                ignore_empty_lines=False,
            ),
            convert_options=csv.ConvertOptions(
                check_utf8=not data.isascii(),
                column_types=dict.fromkeys(names, pa.string()),
                include_columns=names if dialect.has_other_columns else None,
                null_values=[""],
                strings_can_be_null=any(type_.nullable for type_ in relation.types),
                quoted_strings_can_be_null=False,
            ),
        )
        if table.num_columns == relation.arity:
            return [single_array(table.column(name)) for name in names]
    return None


# --- one by one ----------------------------------------------------------------------------------


_NOT_TEXT = re.compile("[\0\udc80-\udcff]")
"""NUL, and the bytes that are not UTF-8 as `surrogateescape` decodes them."""

Row = tuple[Value, ...]


def read_exactly(
    pieces: Iterable[tuple[int, bytes]], name: str, relation: Relation, dialect: Dialect
) -> Iterator[Row | list[Diagnostic]]:
    """Yield for each record its row, or the findings about it (`C0801` to `C0803`, `C0952`).

    Args:
        pieces: pieces of the file that consist of records, each with the number of its first line.
        name: the name of the file in messages.
        relation: the relation of the rows.
        dialect: the syntax of the file; the header is not among the pieces.
    """
    reader = _RecordReader(name, relation, dialect)
    for line, data in pieces:
        text = data.decode("utf-8", "surrogateescape")
        for record in split_records(text, dialect, line):
            yield reader.row(record)


class _RecordReader:
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
            expected = counted(self.width, "column")
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
            required = f"`{self.relation.name}` has {counted(self.width, 'column')}"
        verb = "stands" if found == 1 else "stand"
        message = f"{counted(found, 'field')} {verb} where {required}"
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
