"""Reads a regular facts file with Arrow: the same table as `exact_reader`, or None.

Whenever anything is irregular (a field that does not convert, a ragged line, a lone carriage
return, a stray quote) the answer is None, and the exact reader finds out what it is. Arrow's
conversions accept more than ours do (`0xff…` as a negative number, `1e999` as infinity), so each
column is first restricted to the bytes for which both agree.
"""

import contextlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from corollary.core.arrow import arrow_type, canonical_floats, schema_of
from corollary.core.program import Relation
from corollary.core.types import Kind, Type
from corollary.warehouse.files.input_files import has_longer_line
from corollary.warehouse.formats.dialect import Dialect

_SUBSTITUTE = b"\x1f"
"""Replaces a delimiter of several bytes, which Arrow cannot read, if the file does not use it."""
_FIRST_DAY = -719162
"""0001-01-01 as days since 1970."""
_AGREED_BYTES = {
    Kind.NUMBER: b"0123456789-",
    Kind.UNSIGNED: b"0123456789",
    Kind.FLOAT: b"0123456789-.eE+nainf",
    Kind.DECIMAL: b"0123456789-.",
    Kind.DATE: b"0123456789-",
    Kind.TIMESTAMP: b"0123456789-:.TZ ",
}


def read(data: bytes, relation: Relation, dialect: Dialect) -> pa.Table | None:
    """Return the rows of a file, or None if it needs the exact reader.

    Args:
        data: the content of the file, without byte order mark and compression.
        relation: the relation of the rows.
        dialect: the syntax of the file.
    """
    if not relation.types or b"\0" in data or has_longer_line(data, dialect.line_max_bytes):
        return None
    if dialect.has_header:
        header, _, data = data.partition(b"\n")
        if dialect.is_quoted and b'"' in header:
            return None
    if not data:
        return schema_of(relation).empty_table()
    if not data.endswith(b"\n"):
        data += b"\n"
    if data.count(b"\r") != data.count(b"\r\n"):
        return None
    delimiter = dialect.delimiter.encode()
    if len(delimiter) > 1:
        if dialect.is_quoted or _SUBSTITUTE in data:
            return None
        data, delimiter = data.replace(delimiter, _SUBSTITUTE), _SUBSTITUTE
    if dialect.is_quoted and not is_well_quoted(data, delimiter):
        return None
    texts = _read_texts(data, delimiter.decode(), relation, dialect)
    if texts is None:
        return None
    columns = []
    for text, type_ in zip(texts, relation.types, strict=True):
        column = convert_texts(text, type_)
        if column is None:
            return None
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=schema_of(relation))


def is_well_quoted(data: bytes, delimiter: bytes) -> bool:
    """Return whether quotes are only around fields, and doubled inside.

    Every quote toggles between inside and outside, so the 1st, 3rd … quote opens: it must follow a
    delimiter, a line break or (second half of a doubled one) a quote. Likewise the 2nd, 4th … one
    closes, and must be followed by one of them.
    """
    # A line break in front, so that a quote at the start of the file has a byte before it.
    content = np.frombuffer(b"\n" + data, np.uint8)
    quotes = np.flatnonzero(content == ord('"'))
    if len(quotes) % 2:
        return False
    before = np.frombuffer(b'\n"' + delimiter, np.uint8)
    after = np.frombuffer(b'\r\n"' + delimiter, np.uint8)
    opened = np.isin(content[quotes[::2] - 1], before).all()
    closed = np.isin(content[quotes[1::2] + 1], after).all()
    return bool(opened and closed)


def _read_texts(
    data: bytes, delimiter: str, relation: Relation, dialect: Dialect
) -> list[pa.ChunkedArray] | None:
    """Return the columns of the relation as texts, null where an unquoted field is empty."""
    names = [f"f{position}" for position in dialect.positions]
    with contextlib.suppress(pa.ArrowException, ValueError, KeyError):
        table = csv.read_csv(
            pa.BufferReader(data),
            read_options=csv.ReadOptions(autogenerate_column_names=True),
            parse_options=csv.ParseOptions(
                delimiter=delimiter,
                quote_char='"' if dialect.is_quoted else False,
                double_quote=True,
                escape_char=False,
                newlines_in_values=dialect.is_quoted,
                ignore_empty_lines=False,
            ),
            convert_options=csv.ConvertOptions(
                check_utf8=True,
                column_types=dict.fromkeys(names, pa.string()),
                include_columns=names if dialect.has_other_columns else None,
                null_values=[""],
                strings_can_be_null=any(type_.nullable for type_ in relation.types),
                quoted_strings_can_be_null=False,
            ),
        )
        if table.num_columns == relation.arity:
            return [table.column(name) for name in names]
    return None


def convert_texts(text: pa.ChunkedArray, type_: Type) -> pa.ChunkedArray | None:
    """Return a column of texts as values, or None if a text may not be one of the type."""
    if type_.kind is Kind.SYMBOL:
        return text if type_.nullable else pc.fill_null(text, "")
    if text.null_count and not type_.nullable:
        return None
    if type_.kind is Kind.BOOL:
        truth = pc.equal(text, "true")
        is_known = pc.or_(truth, pc.equal(text, "false"))
        return truth if pc.all(is_known, min_count=0).as_py() else None
    if not _has_only_bytes(text, _AGREED_BYTES[type_.kind]):
        return None
    if type_.kind is Kind.TIMESTAMP and not _is_plain_timestamp(text):
        return None
    try:
        column = pc.cast(text, arrow_type(type_))
    except pa.ArrowException:
        return None
    if type_.kind is Kind.FLOAT:
        return canonical_floats(column) if _is_in_range(column, text) else None
    if type_.kind is Kind.DATE and not _is_after_year_0(column, pa.int32(), _FIRST_DAY):
        return None
    if type_.kind is Kind.TIMESTAMP:
        first = _FIRST_DAY * 86_400_000_000
        return column if _is_after_year_0(column, pa.int64(), first) else None
    return column


def _has_only_bytes(text: pa.ChunkedArray, allowed: bytes) -> bool:
    """Return whether the texts consist of these bytes."""
    table = np.zeros(256, np.bool_)
    table[list(allowed)] = True
    for chunk in text.chunks:
        # All texts of a chunk are one buffer, which is checked at once; a slice has an offset.
        _, offsets, content = chunk.buffers()
        if content is None or not len(chunk):
            continue
        bounds = np.frombuffer(offsets, np.int32)[[chunk.offset, chunk.offset + len(chunk)]]
        if not table[np.frombuffer(content, np.uint8)[bounds[0] : bounds[1]]].all():
            return False
    return True


def _is_plain_timestamp(text: pa.ChunkedArray) -> bool:
    """Return whether all texts have seconds and end in `Z`."""
    is_long = pc.greater_equal(pc.binary_length(text), len("2026-11-15T08:00:00Z"))
    return bool(pc.all(pc.and_(is_long, pc.ends_with(text, "Z")), min_count=0).as_py())


def _is_in_range(column: pa.ChunkedArray, text: pa.ChunkedArray) -> bool:
    """Return whether every infinity was written as one, and is not a number that is too large."""
    infinite = pc.is_inf(column)
    if not pc.any(infinite, min_count=0).as_py():
        return True
    named = pc.match_substring(text, "inf")
    return bool(pc.all(pc.equal(infinite, named), min_count=0).as_py())


def _is_after_year_0(column: pa.ChunkedArray, integers: pa.DataType, first: int) -> bool:
    lowest = pc.min(pc.cast(column, integers)).as_py()
    return lowest is None or lowest >= first
