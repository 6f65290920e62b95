"""Facts files in Soufflé's form: read, write, print.

Arrow reads a regular file (`vectorized_reader`); where anything is irregular, or findings are
collected, it is read record by record (`exact_reader`). Output is sorted.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from corollary.core.arrow import nullary_table, schema_of, sort_rows
from corollary.core.program import Directive, Relation
from corollary.errors import Diagnostic, InputError
from corollary.warehouse.files import input_files
from corollary.warehouse.formats import exact_reader, vectorized_reader
from corollary.warehouse.formats.delimited_lines import lines_of
from corollary.warehouse.formats.dialect import Dialect, dialect_of

SHOWN_FINDINGS_MAX = 20
"""The maximum number of findings about one file that an error shows."""
PIECE_BYTES = 2**18
"""About the size of the pieces in which a file is read that is not regular as a whole."""


def read(
    path: Path, relation: Relation, directive: Directive, *, name: str | None = None
) -> pa.Table:
    """Return the rows of a facts file.

    Args:
        path: the file, already resolved (`paths.resolve`).
        relation: the relation of the rows.
        directive: the `.input` with its parameters.
        name: what messages call the file; by default its path.

    Raises:
        InputError: `C0801` to `C0804` and `C0806`.
    """
    name = str(path) if name is None else name
    try:
        with input_files.open_file(path, name, directive.span) as file:
            data = file.read()
    except OSError as error:
        raise input_files.file_error(name, "read", error, directive.span) from None
    return _read(data, name, relation, directive)


def read_stream(
    stream: BinaryIO, relation: Relation, directive: Directive, *, name: str = "<stdin>"
) -> pa.Table:
    """Return the rows of a stream up to its end; otherwise like reading a file."""
    try:
        data = stream.read()
    except OSError as error:
        raise input_files.file_error(name, "read", error, directive.span) from None
    return _read(data, name, relation, directive)


def write(table: pa.Table, stream: BinaryIO, relation: Relation, directive: Directive) -> None:
    """Write the rows, sorted, to a stream.

    Raises:
        InputError: `C0806` or `C0807`.
    """
    dialect = dialect_of(relation, directive)
    stream.writelines(lines_of(sort_rows(table), relation, directive, dialect))


def print_rows(table: pa.Table, stream: BinaryIO, relation: Relation, directive: Directive) -> None:
    """Write the rows, sorted, as Soufflé prints a relation with `IO=stdout`."""
    dialect = dialect_of(relation, directive)
    stream.write(f"---------------\n{relation.name}\n".encode())
    rows = lines_of(sort_rows(table), relation, directive, dialect, is_verified=False)
    if dialect.has_header and relation.types:
        stream.write(next(rows))
    stream.write(b"===============\n")
    stream.writelines(rows)
    stream.write(b"===============\n")


def _read(data: bytes, name: str, relation: Relation, directive: Directive) -> pa.Table:
    dialect = dialect_of(relation, directive)
    data = input_files.expand_text(data, name, directive.span)
    table, malformed = parse_rows(
        data, name, relation, dialect, max_malformed=SHOWN_FINDINGS_MAX + 1
    )
    if malformed:
        raise InputError(first_findings(malformed, name))
    return table


def parse_rows(
    data: bytes,
    name: str,
    relation: Relation,
    dialect: Dialect,
    *,
    max_malformed: int | None = None,
    first_line: int = 1,
) -> tuple[pa.Table, list[list[Diagnostic]]]:
    """Return the good rows of a text, and the findings about each malformed record.

    The text of such a record is `finding.span.file.text`.

    Args:
        data: the text, without compression and byte order mark.
        name: the name of the file in messages.
        relation: the relation of the rows.
        dialect: the syntax of the file.
        max_malformed: the number of malformed records after which reading stops.
        first_line: the number of the first line, if the data is the tail of a file.
    """
    malformed: list[list[Diagnostic]] = []
    table = vectorized_reader.read(data, relation, dialect)
    if table is not None:
        return table, malformed
    tables: list[pa.Table] = []
    for piece, line in _pieces(data, dialect, first_line):
        table = vectorized_reader.read(piece, relation, dialect)
        if table is None:
            table = exact_reader.read(
                piece,
                name,
                relation,
                dialect,
                malformed=malformed,
                max_malformed=max_malformed,
                first_line=line,
            )
        tables.append(table)
        if max_malformed is not None and len(malformed) >= max_malformed:
            break
        dialect = replace(dialect, has_header=False)
    if not relation.types:
        return nullary_table(min(1, sum(table.num_rows for table in tables))), malformed
    return pa.concat_tables([schema_of(relation).empty_table(), *tables]), malformed


def _pieces(data: bytes, dialect: Dialect, line: int) -> Iterator[tuple[bytes, int]]:
    """Yield pieces of whole lines with the number of their first line.

    So a few irregular lines in a big file cost little. Quoted fields may contain line breaks, so
    that a file with quotes is one piece.
    """
    if dialect.is_quoted and b'"' in data:
        yield data, line
        return
    start = 0
    while start < len(data):
        end = data.find(b"\n", start + PIECE_BYTES) + 1 or len(data)
        piece = data[start:end]
        yield piece, line
        start, line = end, line + piece.count(b"\n")


def first_findings(malformed: list[list[Diagnostic]], name: str) -> list[Diagnostic]:
    """Return the findings that an error shows of those about malformed records."""
    findings = [found for findings in malformed for found in findings]
    if len(findings) <= SHOWN_FINDINGS_MAX:
        return findings
    more = f"and more in `{name}`: only the first {SHOWN_FINDINGS_MAX} findings are shown"
    return [*findings[:SHOWN_FINDINGS_MAX], Diagnostic(findings[SHOWN_FINDINGS_MAX].code, more)]
