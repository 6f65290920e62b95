"""One Parquet file of a source or a Delta table: columns by name, types checked before values."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from corollary.console import Progress
from corollary.core.arrow import arrow_type, nullary_table
from corollary.core.program import Relation
from corollary.core.types import Type
from corollary.errors import Diagnostic, InputError
from corollary.source import SourceFile, Span
from corollary.warehouse.files.input_files import EXPANDED_ALLOWED_BYTES, EXPANDED_MAX_RATIO
from corollary.warehouse.formats import typed_values
from corollary.warehouse.formats.block_tables import BlockTables
from corollary.warehouse.formats.typed_values import from_arrow_or_dictionary
from corollary.warehouse.sources import schema_drift
from corollary.warehouse.sources.quarantine import RAW_MAX_CHARACTERS
from corollary.warehouse.sources.schema_drift import ExpectedColumns, FileRecords

BATCH_ROWS = 2**18
"""The maximum number of rows that are read at once."""
_VALUE_MIN_BYTES = 8
"""The memory that a value takes at least."""


def read(
    file: BinaryIO,
    name: str,
    expected: ExpectedColumns,
    *,
    partition: Mapping[str, pa.Scalar] | None = None,
    allows_missing: bool = False,
    row_groups: range | None = None,
    first_row: int = 0,
    progress: Progress | None = None,
) -> FileRecords:
    """Return the records of a file; of a large one they are compact (`expand_table`).

    Args:
        file: the file, open.
        name: its name in messages.
        expected: the columns that it should have.
        partition: columns that have one value for the whole file (the partition of a Delta table).
        allows_missing: whether missing columns are null.
        row_groups: those that are read, if not all are.
        first_row: how many rows precede them.
        progress: is told how far the reading has come.

    Raises:
        InputError: `C0804`, it is a damaged Parquet file; `C0950`, a column is missing or of
            another type.
    """
    relation = expected.relation
    progress = progress or Progress(name)
    partition = partition or {}
    tables = BlockTables(relation, is_compact=expected.is_compact)
    malformed: list[list[Diagnostic]] = []
    try:
        parquet = pq.ParquetFile(file)
        schema = parquet.schema_arrow
        check_columns(schema, name, expected, partition=partition, allows_missing=allows_missing)
        _refuse_bomb(parquet, file, name, expected)
        columns = tuple(schema.names)
        if not relation.types:
            return FileRecords(nullary_table(min(1, parquet.metadata.num_rows)), [], columns)
        for batch in _batches(parquet, file, expected, partition, row_groups):
            arrays = _columns(batch, relation, partition)
            good, found = convert_records(
                arrays, name, expected, convert=from_arrow_or_dictionary, first_row=first_row
            )
            tables.add(good)
            malformed += found
            first_row += batch.num_rows
            progress.advance_to_bytes(file.tell())
            progress.advance(rows=good.num_rows)
    except pa.ArrowException as error:
        message = f"`{name}` cannot be read: it is not a sound Parquet file ({error})"
        cure = "write the file again, or give its format, as in format=csv"
        raise InputError.of("C0804", message, expected.directive.span, cure) from None
    return FileRecords(tables.union(), malformed, columns)


def _batches(
    parquet: pq.ParquetFile,
    file: BinaryIO,
    expected: ExpectedColumns,
    partition: Mapping[str, Any],
    row_groups: range | None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file, row group by row group, with the columns of the relation."""
    schema, relation = parquet.schema_arrow, expected.relation
    present = [each for each in relation.columns if each in schema.names and each not in partition]
    if parquet.metadata.num_rows > BATCH_ROWS and expected.is_compact:
        # Most of its texts are in dictionaries already: they are not copied for each row.
        texts = [each for each in present if schema.field(each).type == pa.string()]
        parquet = pq.ParquetFile(file, metadata=parquet.metadata, read_dictionary=texts)
    yield from parquet.iter_batches(BATCH_ROWS, row_groups=row_groups, columns=present)


def _columns(
    batch: pa.RecordBatch, relation: Relation, partition: Mapping[str, pa.Scalar]
) -> list[pa.ChunkedArray]:
    """Return the columns of the relation; null where the file does not have one."""
    arrays = []
    for each, type_ in zip(relation.columns, relation.types, strict=True):
        if each in partition:
            arrays.append(pa.repeat(partition[each], batch.num_rows))
        elif each in batch.schema.names:
            arrays.append(batch.column(each))
        else:
            arrays.append(pa.nulls(batch.num_rows, arrow_type(type_)))
    return [pa.chunked_array([each]) for each in arrays]


def check_columns(
    schema: pa.Schema,
    name: str,
    expected: ExpectedColumns,
    *,
    partition: Mapping[str, Any] | None = None,
    allows_missing: bool = False,
) -> None:
    """Raise if a schema does not have the columns of the relation (`C0950`)."""
    for at, (column, type_) in enumerate(
        zip(expected.relation.columns, expected.relation.types, strict=True)
    ):
        if partition and column in partition:
            continue
        positions = schema.get_all_field_indices(column)
        if len(positions) > 1:
            raise schema_drift.ambiguous_column(expected, name, column)
        if not positions:
            if allows_missing or (type_.nullable and column not in expected.known_columns):
                continue
            names = [*schema.names, *(partition or ())]
            raise schema_drift.missing_column(expected, name, column, names)
        if not typed_values.is_readable(schema.field(positions[0]).type, type_):
            raise schema_drift.retyped_column(expected, name, at, schema.field(positions[0]).type)


def convert_records(
    columns: list[pa.ChunkedArray],
    name: str,
    expected: ExpectedColumns,
    *,
    convert: Callable[
        [pa.ChunkedArray, Type], tuple[pa.ChunkedArray, typed_values.Failures]
    ] = typed_values.from_arrow,
    has_order: bool = True,
    first_row: int = 0,
) -> tuple[pa.Table, list[list[Diagnostic]]]:
    """Return the good rows of the columns of a file, and the findings about the others.

    Args:
        columns: one for each of the relation.
        name: what messages call the file.
        expected: the columns that it should have.
        convert: converts a column to one of our types.
        has_order: whether rows have numbers; otherwise all findings are about line 0.
        first_row: the number of the first row in the file, from 0.
    """
    relation = expected.relation
    table, failures = typed_values.convert_columns(columns, relation, convert)
    malformed = []
    for row, reasons in sorted(failures.items()):
        number = first_row + row + 1 if has_order else 0
        values = {
            each: _shown(column[row])
            for each, column in zip(relation.columns, columns, strict=True)
        }
        malformed.append([_finding(name, number, reason, values) for reason in reasons])
    return table, malformed


def _finding(name: str, number: int, message: str, values: Mapping[str, str | None]) -> Diagnostic:
    """Return the finding about a row; its number is 0 if it has none."""
    raw = json.dumps(values, ensure_ascii=False)
    span = Span(SourceFile(name, raw, number), number, 1, number, 2)
    cure = "correct the value, or the type of the column"
    if number:
        cure = f"{cure}; the line is the number of the row"
    return Diagnostic("C0801", message, span, cure)


def _shown(scalar: pa.Scalar) -> str | None:
    if not scalar.is_valid:
        return None
    if pa.types.is_dictionary(scalar.type):
        return _shown(scalar.value)
    if pa.types.is_struct(scalar.type):
        return str(scalar)[:RAW_MAX_CHARACTERS]
    text = scalar.cast(
        pa.string()
    )  # `as_py` fails for values out of range and texts that are not UTF-8
    content = text.as_buffer().to_pybytes()[:RAW_MAX_CHARACTERS]
    return str(content.decode("utf-8", "backslashreplace"))


def _refuse_bomb(
    parquet: pq.ParquetFile, file: BinaryIO, name: str, expected: ExpectedColumns
) -> None:
    size = file.seek(0, 2)
    metadata = parquet.metadata
    groups = (metadata.row_group(at) for at in range(metadata.num_row_groups))
    expanded = max(
        sum(group.total_byte_size for group in groups),
        metadata.num_rows * max(1, expected.arity) * _VALUE_MIN_BYTES,
    )
    if expanded > max(EXPANDED_ALLOWED_BYTES, EXPANDED_MAX_RATIO * size):
        message = (
            f"`{name}` cannot be read: it expands to more than {EXPANDED_MAX_RATIO} times its size"
        )
        raise InputError.of(
            "C0804", message, expected.directive.span, "split it into several files"
        )
