"""Reads whole records with Arrow: the same table as `exact_reader`, or None.

Whenever anything is irregular (a field that does not convert, a ragged line, a lone carriage
return) the answer is None, and `block_reader` finds out which records it is about.
"""

import contextlib
from dataclasses import replace

import numpy as np
import pyarrow as pa
from pyarrow import csv

from corollary.core.arrow import schema_of, single_array
from corollary.core.program import Relation
from corollary.warehouse.files.input_files import BYTE_ORDER_MARK, has_longer_line
from corollary.warehouse.formats.dialect import Dialect
from corollary.warehouse.formats.text_columns import convert_texts

SUBSTITUTE = "\x1f"
"""Replaces a delimiter of several bytes, which Arrow cannot read, if the text does not use it."""


def read(data: bytes, relation: Relation, dialect: Dialect) -> pa.Table | None:
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
