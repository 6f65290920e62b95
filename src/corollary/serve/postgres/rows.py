"""Rows as messages: DataRow, and CopyData in the three forms of COPY; thousands at once."""

import struct
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.serve.postgres.encoding import (
    Bytes,
    EncodedColumn,
    Integers,
    encode_column,
    text_column,
)
from corollary.serve.postgres.messages import BINARY_FORMAT, TEXT_FORMAT, format_of, message

CHUNK_ROWS = 16_384
"""The number of rows that are encoded at once; others are served in between."""
FEW_ROWS = 8
"""Up to this number of rows are encoded value by value: vectors would take longer."""
_LENGTH = struct.Struct("!i")
_HEAD = struct.Struct("!IH")
COPY_SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)
COPY_TRAILER = b"\xff\xff"


def data_rows(
    table: pa.Table, first: int, count: int, formats: Sequence[int], zone: str
) -> Iterator[bytes]:
    """Yield some rows of a table as DataRow messages, from the row `first` on."""
    return _field_messages(table.slice(first, count), b"D", formats, zone)


def _field_messages(
    table: pa.Table, kind: bytes, formats: Sequence[int], zone: str
) -> Iterator[bytes]:
    few = None
    if 0 < table.num_rows <= FEW_ROWS:
        few = _few_messages(table, kind, formats)
    if few is not None:
        yield few
        return
    for start in range(0, table.num_rows, CHUNK_ROWS):
        part = table.slice(start, CHUNK_ROWS)
        columns = [
            encode_column(column, format_of(formats, at), zone)
            for at, column in enumerate(part.columns)
        ]
        yield _assemble(columns, part.num_rows, kind)


def _few_messages(table: pa.Table, kind: bytes, formats: Sequence[int]) -> bytes | None:
    """Return messages of a few rows of integers and texts; None if there is something else."""
    columns: list[list[bytes | None]] = []
    for at, column in enumerate(table.columns):
        if format_of(formats, at) != TEXT_FORMAT:
            return None
        if pa.types.is_int64(column.type):
            texts = [None if each is None else b"%d" % each for each in column.to_pylist()]
        elif pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            texts = [None if each is None else each.encode() for each in column.to_pylist()]
        else:
            return None
        columns.append(texts)
    out = bytearray()
    for row in zip(*columns, strict=True):
        fields = b"".join(
            _LENGTH.pack(-1) if each is None else _LENGTH.pack(len(each)) + each for each in row
        )
        out += kind + _HEAD.pack(_HEAD.size + len(fields), len(row)) + fields
    return bytes(out)


def _assemble(columns: Sequence[EncodedColumn], count: int, kind: bytes) -> bytes:
    """Return messages of fields: kind, length, number of fields; each with its length before it."""
    sizes = np.full(count, 6 + 4 * len(columns), np.int64)
    fields: list[pa.Array] = []
    for column in columns:
        sizes += column.lengths
        shown = column.lengths
        if column.is_null is not None:
            shown = np.where(column.is_null, -1, shown)
        fields += [_fixed_values(_int32(shown)), _values(column)]
    heads = np.empty((count, 7), np.uint8)
    heads[:, 0] = kind[0]
    heads[:, 1:5] = _int32(sizes)
    heads[:, 5:] = divmod(len(columns), 256)
    return _joined([_fixed_values(heads), *fields])


def _int32(values: Integers) -> Bytes:
    """Return the four bytes of each integer, the highest one first."""
    return values.astype(">i4").view(np.uint8).reshape(len(values), 4)


def _fixed_values(values: Bytes) -> pa.Array:
    """Return the rows of a matrix of bytes."""
    count, width = values.shape
    ends = np.arange(count + 1, dtype=np.int64) * width
    return _binary_array(ends, values)


def _values(column: EncodedColumn) -> pa.Array:
    """Return the values of a column; a null is empty."""
    lengths, starts = column.lengths, column.starts
    first = int(starts[0]) if len(starts) else 0
    ends = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    data = column.data[first : first + int(ends[-1])]
    if not np.array_equal(starts - first, ends[:-1]):  # there are gaps between them
        steps = np.arange(int(ends[-1]), dtype=np.int64)
        data = column.data[steps + np.repeat(starts - ends[:-1], lengths)]
    return _binary_array(ends, data)


def _binary_array(ends: Integers, data: Bytes) -> pa.Array:
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(ends) - 1, buffers)


def _joined(fields: Sequence[pa.Array]) -> bytes:
    """Return the bytes of all rows of fields."""
    found = pc.binary_join_element_wise(*fields, pa.scalar(b"", pa.large_binary()))
    _, ends, data = found.buffers()
    size = int(np.frombuffer(ends, np.int64)[len(found)])
    return data.slice(0, size).to_pybytes() if size else b""


# --- COPY ---------------------------------------------------------------------------------------


def copy_binary(table: pa.Table, zone: str) -> Iterator[bytes]:
    """Yield the rows of a table as CopyData, in the binary form.

    The signature is in the message of the first row, where clients look for it.
    """
    signature = COPY_SIGNATURE
    for chunk in _field_messages(table, b"d", (BINARY_FORMAT,), zone):
        if signature:
            end = 1 + int.from_bytes(chunk[1:5], "big")
            yield message(b"d", signature + chunk[5:end])
            yield chunk[end:]
            signature = b""
        else:
            yield chunk
    yield message(b"d", signature + COPY_TRAILER)


def copy_lines(
    table: pa.Table, zone: str, *, delimiter: str, null: str, quote: str | None, has_header: bool
) -> Iterator[bytes]:
    """Yield the rows of a table as CopyData, one line each.

    Args:
        table: the rows.
        zone: the time zone of timestamps.
        delimiter: between the values.
        null: what stands for null.
        quote: what quotes values in CSV; None for PostgreSQL's own text form, with backslashes.
        has_header: whether the first line has the names of columns.
    """
    if has_header:
        names = pa.table([pa.array([name]) for name in table.column_names], _labels(table))
        yield _lines(names, zone, delimiter, null, quote)
    for start in range(0, table.num_rows, CHUNK_ROWS):
        yield _lines(table.slice(start, CHUNK_ROWS), zone, delimiter, null, quote)


def _labels(table: pa.Table) -> list[str]:
    return [str(at) for at in range(table.num_columns)]


def _lines(table: pa.Table, zone: str, delimiter: str, null: str, quote: str | None) -> bytes:
    fields = [_copy_field(column, zone, delimiter, null, quote) for column in table.columns]
    lines = pc.binary_join_element_wise(*fields, _large(delimiter))
    lines = pc.binary_join_element_wise(lines, _large(""), _large("\n"))
    return _whole_messages(encode_column(lines, TEXT_FORMAT, zone), table.num_rows)


def _copy_field(
    column: pa.ChunkedArray, zone: str, delimiter: str, null: str, quote: str | None
) -> pa.Array:
    parts = [text_column(chunk, zone).cast(pa.large_string()) for chunk in column.chunks]
    text = pa.chunked_array(parts, pa.large_string()).combine_chunks()
    if quote is None:
        escapes = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
        for found, written in escapes.items():
            text = pc.replace_substring(text, found, written)
        if delimiter not in escapes:
            text = pc.replace_substring(text, delimiter, f"\\{delimiter}")
        return pc.fill_null(text, null)
    needs = pc.equal(text, null)
    for special in (quote, delimiter, "\n", "\r"):
        needs = pc.or_(needs, pc.match_substring(text, special))
    doubled = pc.replace_substring(text, quote, quote * 2)
    mark = _large(quote)
    joined = pc.binary_join_element_wise(mark, doubled, mark, _large(""))
    return pc.fill_null(pc.if_else(needs, joined, text), null)


def _large(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def _whole_messages(column: EncodedColumn, count: int) -> bytes:
    """Return a CopyData message for each value of a column."""
    heads = np.empty((count, 5), np.uint8)
    heads[:, 0] = ord("d")
    heads[:, 1:] = _int32(column.lengths + 4)
    return _joined([_fixed_values(heads), _values(column)])
