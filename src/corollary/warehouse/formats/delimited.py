"""Facts files in Soufflé's form: read, write, print.

A file is read in blocks of whole records, several at the same time: `block_reader` reads each by
vectors as far as its records are regular. Output is sorted.
"""

import io
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from corollary.console import Progress
from corollary.core.arrow import sort_rows
from corollary.core.program import Directive, Relation
from corollary.errors import Diagnostic, InputError
from corollary.source import SourceFile, Span
from corollary.warehouse.files import input_files
from corollary.warehouse.formats import json_documents
from corollary.warehouse.formats.block_reader import Malformed, read_block
from corollary.warehouse.formats.block_tables import BlockTables, map_blocks
from corollary.warehouse.formats.delimited_lines import CONTROL_CHARACTERS, lines_of
from corollary.warehouse.formats.dialect import Dialect, dialect_of, is_json
from corollary.warehouse.formats.text_records import (
    PeekedText,
    ReadableText,
    RecordBlock,
    count_lines,
    index_quoted_records,
    split_blocks,
    split_record,
)
from corollary.warehouse.formats.text_stream import TextStream

SHOWN_FINDINGS_MAX = 20
"""The maximum number of findings about one file that an error shows."""


def read(
    path: Path,
    relation: Relation,
    directive: Directive,
    *,
    name: str | None = None,
    progress: Progress | None = None,
) -> pa.Table:
    """Return the rows of a facts file; of a large one they are compact (`expand_table`).

    Args:
        path: the file, already resolved (`paths.resolve`).
        relation: the relation of the rows.
        directive: the `.input` with its parameters.
        name: what messages call the file; by default its path.
        progress: is told how far the reading has come.

    Raises:
        InputError: `C0801` to `C0804` and `C0806`.
    """
    name = str(path) if name is None else name
    progress = progress or Progress(name)
    try:
        with input_files.open_file(path, name, directive.span) as file:
            progress.total_bytes = path.stat().st_size
            return _read(file, name, relation, directive, progress)
    except OSError as error:
        raise input_files.file_error(name, "read", error, directive.span) from None


def read_stream(
    stream: BinaryIO, relation: Relation, directive: Directive, *, name: str = "<stdin>"
) -> pa.Table:
    """Return the rows of a stream up to its end; otherwise like reading a file."""
    try:
        if not stream.seekable():  # standard input, perhaps compressed
            stream = io.BytesIO(stream.read())
        return _read(stream, name, relation, directive, Progress(name))
    except OSError as error:
        raise input_files.file_error(name, "read", error, directive.span) from None


def write(
    table: pa.Table,
    stream: BinaryIO,
    relation: Relation,
    directive: Directive,
    warnings: list[Diagnostic] | None = None,
) -> None:
    """Write the rows, sorted, to a stream; what could not be read back is in `warnings` then.

    Raises:
        InputError: `C0806`; `C0807`, of what could not be read back if nobody takes warnings.
    """
    dialect = dialect_of(relation, directive)
    stream.writelines(lines_of(sort_rows(table), relation, directive, dialect, warnings=warnings))


def print_rows(table: pa.Table, stream: BinaryIO, relation: Relation, directive: Directive) -> None:
    """Write the rows, sorted, as Soufflé prints a relation with `IO=stdout`.

    What would change a terminal is escaped.
    """
    if is_json(directive):
        json_documents.write(table, stream, relation, directive)
        return
    dialect = dialect_of(relation, directive)
    stream.write(f"---------------\n{directive.parameter('name', relation.name)}\n".encode())
    rows = lines_of(sort_rows(table), relation, directive, dialect, escaped=CONTROL_CHARACTERS)
    if dialect.has_header and relation.types:
        stream.write(next(rows))
    stream.write(b"===============\n")
    stream.writelines(rows)
    stream.write(b"===============\n")


def _read(
    file: BinaryIO, name: str, relation: Relation, directive: Directive, progress: Progress
) -> pa.Table:
    text = PeekedText(TextStream(file, name, directive.span, progress.advance_to_bytes))
    dialect = dialect_of(relation, directive).of_first_line(text.head)
    table, malformed = parse_rows(
        text, name, relation, dialect, max_malformed=SHOWN_FINDINGS_MAX + 1, progress=progress
    )
    if malformed:
        raise InputError(first_findings(malformed, name))
    return table


def parse_rows(
    text: ReadableText,
    name: str,
    relation: Relation,
    dialect: Dialect,
    *,
    max_malformed: int | None = None,
    progress: Progress | None = None,
) -> tuple[pa.Table, Malformed]:
    """Return the good rows of a text, and the findings about each malformed record.

    The text of such a record is `finding.span.file.text`.

    Args:
        text: the text, without compression and byte order mark.
        name: the name of the file in messages.
        relation: the relation of the rows.
        dialect: the syntax of the file.
        max_malformed: the number of malformed records after which reading stops.
        progress: is told how many rows there are so far.
    """
    blocks = split_blocks(text, dialect)
    return parse_blocks(
        blocks, name, relation, dialect, max_malformed=max_malformed, progress=progress
    )


def parse_blocks(
    blocks: Iterable[RecordBlock],
    name: str,
    relation: Relation,
    dialect: Dialect,
    *,
    max_malformed: int | None = None,
    progress: Progress | None = None,
    is_compact: bool = True,
) -> tuple[pa.Table, Malformed]:
    """Return the good rows of the blocks of a text; otherwise like `parse_rows`."""

    def read_one(block: RecordBlock) -> tuple[pa.Table, Malformed]:
        return read_block(block, name, relation, dialect, max_malformed)

    if dialect.has_header:
        blocks = _without_header(iter(blocks), name, relation, dialect)
    tables = BlockTables(relation, is_compact=is_compact)
    malformed: Malformed = []
    for table, findings in map_blocks(read_one, blocks):
        tables.add(table)
        malformed += findings
        if progress is not None:
            progress.advance(rows=table.num_rows)
        if max_malformed is not None and len(malformed) >= max_malformed:
            break
    return tables.union(), malformed[:max_malformed]


def _without_header(
    blocks: Iterator[RecordBlock], name: str, relation: Relation, dialect: Dialect
) -> Iterator[RecordBlock]:
    """Yield the blocks without the first record; if its quotes are wrong, it is no header.

    Raises:
        InputError: `C0945`, the first record is a row.
    """
    first = next(blocks, None)
    if first is None:
        return
    check_header(first, name, relation, dialect)
    end = _header_end(first, dialect)
    rest = first.data[end:]
    if rest:
        line = first.first_line + count_lines(first.data[:end])
        first = RecordBlock(rest, line, index_quoted_records(rest, dialect))
        blocks = chain([first], blocks)
    yield from blocks


def _header_end(first: RecordBlock, dialect: Dialect) -> int:
    """Return where the first record ends; 0 if its quotes are wrong."""
    end = first.data.find(b"\n") + 1
    if dialect.is_quoted and b'"' in first.data[:end]:
        text = first.data.decode("utf-8", "surrogateescape")
        header, length = split_record(text, 0, 1, dialect)
        if header.problem is not None:
            return 0
        end = len(text[: length + 1].encode("utf-8", "surrogateescape"))
    return end


def check_header(first: RecordBlock, name: str, relation: Relation, dialect: Dialect) -> None:
    """Raise if the first record of a file is a row: names are not numbers, dates or the like.

    Args:
        first: the first block of the file.
        name: the name of the file in messages.
        relation: the relation of the rows.
        dialect: the syntax of the file.

    Raises:
        InputError: `C0945`.
    """
    typed = [at for at, type_ in enumerate(relation.types) if not type_.is_symbol]
    record = first.data[: _header_end(first, dialect)]
    if dialect.may_begin_with_row or not typed or not record:
        return
    block = RecordBlock(record, 1, index_quoted_records(record, dialect))
    table, malformed = read_block(block, name, relation, dialect)
    if malformed or all(table.column(at).null_count == table.num_rows for at in typed):
        return
    text = record.decode("utf-8", "replace").rstrip("\r\n")
    found = Diagnostic(
        "C0945",
        f"`{name}` has no header: its first line is a row of `{relation.name}`.",
        Span(SourceFile(name, text), 1, 1, 1, len(text) + 1),
        "put the names of the columns there, or take `headers=true` out of the `.input`; if the "
        'line is a header all the same, say `max_bad="off"` there',
    )
    raise InputError([found])


def first_findings(malformed: Malformed, name: str) -> list[Diagnostic]:
    """Return the findings that an error shows of those about malformed records."""
    findings = [found for findings in malformed for found in findings]
    if len(findings) <= SHOWN_FINDINGS_MAX:
        return findings
    more = f"and more in `{name}`: only the first {SHOWN_FINDINGS_MAX} findings are shown"
    return [*findings[:SHOWN_FINDINGS_MAX], Diagnostic(findings[SHOWN_FINDINGS_MAX].code, more)]
