"""The formats of files, and how a portion of a file is read: here or in a task.

| format    | a portion of a file | got longer            | is read by                |
|-----------|---------------------|-----------------------|---------------------------|
| `csv`     | bytes of records    | the new records       | `csv_file`                |
| `jsonl`   | bytes of lines      | the new records       | `json_file.read`          |
| `json`    | all of it           | read again as a whole | `json_file.read_document` |
| `parquet` | row groups          | read again as a whole | `parquet_file`            |
"""

from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from typing import BinaryIO

from corollary.console import Progress
from corollary.core.arrow import expand_table
from corollary.core.program import Relation
from corollary.data_class import dataclass
from corollary.warehouse.formats.dialect import Dialect
from corollary.warehouse.formats.text_records import read_head
from corollary.warehouse.formats.text_stream import TextStream
from corollary.warehouse.sources import csv_file, json_file, parquet_file
from corollary.warehouse.sources.portions import DataFile, EarlierText, FirstBytes, Portion
from corollary.warehouse.sources.schema_drift import ExpectedColumns, FileRecords

_HEAD_BYTES = 1 << 20
"""The first bytes of a text, in which its header is."""


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A format.

    Attributes:
        field_bytes: about the bytes of a value.
        read: reads a file, or row groups of it; of a text, a stream of it.
        syntax: that of a text, which says where its records end; None for other formats.
    """

    field_bytes: int
    read: Callable[..., FileRecords]
    syntax: Callable[[ExpectedColumns, str], Dialect] | None = None


FORMATS = {
    "csv": FileFormat(8, csv_file.read, csv_file.syntax),
    "jsonl": FileFormat(8, json_file.read, json_file.syntax),
    "json": FileFormat(3, json_file.read_document),
    "parquet": FileFormat(3, parquet_file.read),
}


def estimated_rows(size: int, format_: str, relation: Relation) -> int:
    """Return about how many rows a number of bytes has."""
    return size // (FORMATS[format_].field_bytes * max(1, relation.arity))


def read_portion(
    opened: BinaryIO, portion: Portion, expected: ExpectedColumns, progress: Progress | None = None
) -> tuple[FileRecords, str]:
    """Return the records of a portion, and the checksum if it is all of a text.

    Args:
        opened: its file, at the start.
        portion: what is read of it.
        expected: the columns that the file should have.
        progress: is told how far the reading has come.

    Raises:
        InputError: it cannot be read, or has other columns.
    """
    file, shown = portion.file, portion.file.shown
    read = FORMATS[file.format].read
    if file.format == "parquet":
        groups = None if portion.end is None else range(portion.start, portion.end)
        table = {"partition": file.partition, "allows_missing": file.allows_missing}
        place = {"row_groups": groups, "first_row": portion.before}
        return read(opened, shown, expected, **table, **place, progress=progress), ""
    if not file.is_text:
        return read(opened, shown, expected, progress=progress), ""
    report = () if progress is None else (progress.advance_to_bytes,)
    text = TextStream(opened, shown, expected.directive.span, *report)
    if portion.is_whole:
        records = read(text, shown, expected, None, progress)
        return records, text.checksum()
    if not portion.start:
        assert portion.end is not None
        first = FirstBytes(text, portion.end - text.mark_bytes)
        return read(first, shown, expected), ""
    earlier = EarlierText(read_head(text, _HEAD_BYTES), portion.before, is_whole=True)
    opened.seek(portion.start)
    size = file.size if portion.end is None else portion.end
    return read(FirstBytes(opened, size - portion.start), shown, expected, earlier), ""


def parse_file(raw: bytes, name: str, format_: str, expected: ExpectedColumns) -> FileRecords:
    """Return the records of a file, in a table with the types of the relation.

    Args:
        raw: its bytes, perhaps compressed.
        name: its name in messages.
        format_: `csv`, `jsonl`, `json` or `parquet`.
        expected: the columns that it should have.

    Raises:
        InputError: it cannot be read, or has other columns.
    """
    file = DataFile(name, name, "", format_, (len(raw), 0, 0, 0))
    records, _ = read_portion(BytesIO(raw), Portion(file), expected)
    return replace(records, table=expand_table(records.table, expected.relation))
