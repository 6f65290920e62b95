"""One file of delimited text (CSV, TSV, Soufflé's facts) of a source.

Columns are taken by position, as Soufflé does. If the file has headers, the names at these
positions are recorded when it is first read; later files are read by name, so that a column that
was inserted between others is not mistaken for its neighbour.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

from corollary.console import Progress
from corollary.warehouse.files.input_files import LINE_MAX_BYTES
from corollary.warehouse.formats import delimited, text_records
from corollary.warehouse.formats.dialect import Dialect, dialect_of
from corollary.warehouse.sources import schema_drift
from corollary.warehouse.sources.portions import EarlierText
from corollary.warehouse.sources.schema_drift import ExpectedColumns, FileRecords

_HEADER_MAX_BYTES = 2**20


def syntax(expected: ExpectedColumns, name: str) -> Dialect:
    """Return the syntax of a file, in part by the ending of its name.

    Raises:
        InputError: `C0806`, a parameter is wrong.
    """
    dialect = dialect_of(expected.relation, expected.directive, name)
    return replace(dialect, line_max_bytes=LINE_MAX_BYTES)


def read(
    text: text_records.ReadableText,
    name: str,
    expected: ExpectedColumns,
    earlier: EarlierText | None = None,
    progress: Progress | None = None,
) -> FileRecords:
    """Return the records of a file, or those after its earlier text.

    Args:
        text: the file's text, without compression and byte order mark.
        name: the name of the file in messages.
        expected: the columns that it should have.
        earlier: what precedes the text, if that has been read before; a record starts after it.
        progress: is told how many rows there are so far.

    Raises:
        InputError: `C0806`, a parameter is wrong; `C0945`, there is no header; `C0950`, a column
            is missing.
    """
    relation = expected.relation
    if earlier is not None:
        head = earlier.head
    else:
        text = peeked = text_records.PeekedText(text)
        head = peeked.head
    dialect = syntax(expected, name).of_first_line(head)
    blocks = text_records.split_blocks(text, dialect, 1 if earlier is None else earlier.lines + 1)
    if earlier is None:
        first = next(blocks, None)
        head = b"" if first is None else first.data
        if first is not None and dialect.has_header:
            delimited.check_header(first, name, relation, dialect)
        blocks = chain([] if first is None else [first], blocks)
    columns = _header(head, dialect) if dialect.has_header else ()
    named = _names_at_positions(columns, dialect)
    if columns and expected.header_names and named != expected.header_names:
        dialect = _found_by_name(columns, name, dialect, expected)
        named = expected.header_names
    elif len(columns) > expected.arity and expected.header_names:
        dialect = replace(dialect, has_other_columns=True)
    if earlier is not None:
        dialect = replace(dialect, has_header=False)
    noted = _NotedQuotes(blocks)
    table, malformed = delimited.parse_blocks(
        noted, name, relation, dialect, progress=progress, is_compact=expected.is_compact
    )
    return FileRecords(table, malformed, columns, named, noted.are_regular)


def header_names(
    text: text_records.ReadableText, name: str, expected: ExpectedColumns
) -> tuple[str, ...]:
    """Return the names that the columns of the relation have in the headers of a file."""
    head = text_records.read_head(text, _HEADER_MAX_BYTES)
    dialect = syntax(expected, name).of_first_line(head)
    columns = _header(head, dialect) if dialect.has_header else ()
    return _names_at_positions(columns, dialect)


class _NotedQuotes:
    """Blocks of records; notes whether the quotes of all that were read are regular."""

    def __init__(self, blocks: Iterable[text_records.RecordBlock]) -> None:
        self._blocks = blocks
        self.are_regular = True

    def __iter__(self) -> Iterator[text_records.RecordBlock]:
        for block in self._blocks:
            self.are_regular &= block.has_regular_quotes
            yield block


def _header(data: bytes, dialect: Dialect) -> tuple[str, ...]:
    text = data[:_HEADER_MAX_BYTES].decode("utf-8", "replace")
    first = next(text_records.split_records(text, dialect), None)
    return () if first is None else tuple(first.fields)


def _names_at_positions(columns: tuple[str, ...], dialect: Dialect) -> tuple[str, ...]:
    """Return the names at the positions that the relation takes, if they are unique."""
    if len(columns) <= max(dialect.positions, default=-1):
        return ()
    taken = [columns[position] for position in dialect.positions]
    return tuple(taken) if all(columns.count(name) == 1 for name in taken) else ()


def _found_by_name(
    columns: tuple[str, ...], name: str, dialect: Dialect, expected: ExpectedColumns
) -> Dialect:
    for column in expected.header_names:
        if column not in columns:
            example = ":".join(map(str, range(expected.arity)))
            cure = f'if its new name is meant, say in the `.input` where it is: columns="{example}"'
            raise schema_drift.missing_column(expected, name, column, columns, cure)
        if columns.count(column) > 1:
            raise schema_drift.ambiguous_column(expected, name, column)
    positions = tuple(columns.index(column) for column in expected.header_names)
    has_others = dialect.has_other_columns or len(columns) > len(positions)
    return replace(dialect, positions=positions, has_other_columns=has_others)
