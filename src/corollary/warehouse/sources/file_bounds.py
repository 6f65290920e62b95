"""The least and the greatest value of each column of a file: which rows it can have held.

A source of many files remembers the bounds of each, and not which row was in which file. When a
file is written anew, only the rows within its bounds can have been in it, and only files whose
bounds include one of those rows can still have it. So with a file for each month, say, the others
need not be read again.

Bounds may be too wide, never too narrow: floats have none, and long texts are truncated. They are
JSON values, as part of a position: for each column nothing, or least, greatest, and whether there
is null.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow import is_compared_as_text, single_array
from corollary.core.arrow_buffers import (
    Mask,
    fixed_array,
    fixed_values,
    null_mask,
    string_array,
    true_mask,
    words_of_integers,
)
from corollary.core.engine import ValueRange
from corollary.core.values import unscaled_integer
from corollary.warehouse.files.column_bounds import text_bounds

ColumnBounds: TypeAlias = Sequence[Any] | None
"""Least and greatest value, null if all values are null; and whether there is null."""
FileBounds: TypeAlias = Sequence[ColumnBounds]
"""The bounds of the first columns; the others are not bounded."""

COLUMNS_MAX = 16
"""The maximum number of columns with bounds."""
BOXES_MAX = 16
"""Of more files only the bounds of all together are looked up."""


def bounds_of(rows: pa.Table) -> FileBounds:
    """Return the bounds of rows.

    >>> bounds_of(pa.table({"x": [3, 1, None], "y": [0.5, 1.5, 2.5], "z": ["b", "a", "c"]}))
    [[1, 3, True], None, ['a', 'c', False]]
    """
    return [_column_bounds(column) for column in rows.columns[:COLUMNS_MAX]]


def merge_bounds(some: FileBounds, others: FileBounds) -> FileBounds:
    """Return the bounds of the rows of both.

    >>> merge_bounds([[1, 3, True], None], [[2, 5, False], [1, 1, False]])
    [[1, 5, True], None]
    """
    return [
        None if one is None or other is None else _merged(one, other)
        for one, other in zip(some, others, strict=False)  # columns without bounds may be left out
    ]


def boxes_of(bounds: Sequence[FileBounds]) -> list[Mapping[int, ValueRange]]:
    """Return the bounds of files as ranges of integers, for columns that have them."""
    if len(bounds) > BOXES_MAX:
        first, *rest = bounds
        for each in rest:
            first = merge_bounds(first, each)
        bounds = [first]
    return [
        {
            at: ValueRange(*column)
            for at, column in enumerate(each)
            if column is not None and isinstance(column[0], int)
        }
        for each in bounds
    ]


def is_within(rows: pa.Table, bounds: FileBounds, columns: Collection[int] | None = None) -> Mask:
    """Return for each row whether a file with these bounds may have it.

    Args:
        rows: with the types of the relation.
        bounds: of the file.
        columns: the columns that count, if not all do: a row that agrees in these is enough.
    """
    inside = np.ones(rows.num_rows, np.bool_)
    for at, column in enumerate(bounds):
        if column is not None and (columns is None or at in columns):
            inside &= _is_inside(single_array(rows.column(at)), column)
    return inside


def is_within_any(rows: pa.Table, bounds: Iterable[FileBounds]) -> Mask:
    """Return for each row whether one of several files may have it."""
    found = np.zeros(rows.num_rows, np.bool_)
    for each in bounds:
        found |= is_within(rows, each)
    return found


def _merged(one: Sequence[Any], other: Sequence[Any]) -> ColumnBounds:
    ends = [each for each in (one, other) if each[0] is not None]
    least, greatest = (
        (min(each[0] for each in ends), max(each[1] for each in ends)) if ends else (None, None)
    )
    return [least, greatest, bool(one[2] or other[2])]


_UNBOUNDED = (pa.types.is_floating, pa.types.is_binary, pa.types.is_duration, pa.types.is_time)


def _column_bounds(column: pa.ChunkedArray) -> ColumnBounds:
    type_ = column.type
    if is_compared_as_text(type_) or any(is_kind(type_) for is_kind in _UNBOUNDED):
        return None
    has_null = bool(column.null_count)
    if pa.types.is_dictionary(type_):
        column = pa.chunked_array([each.dictionary for each in column.chunks])
    if column.null_count == len(column):
        return [None, None, has_null]
    if pa.types.is_decimal32(type_) or pa.types.is_decimal64(type_):  # of large files
        return [*_narrow_bounds(column.chunks), has_null]
    ends = pc.min_max(column)
    least, greatest = ends["min"], ends["max"]
    if pa.types.is_string(column.type):
        return [*text_bounds(least.as_py(), greatest.as_py()), has_null]
    return [_integer(least), _integer(greatest), has_null]


def _narrow_bounds(chunks: Iterable[pa.Array]) -> tuple[int, int]:
    """Return the bounds of the integers behind narrow decimals, which Arrow does not compute."""
    ends = []
    for chunk in chunks:
        values, nulls = fixed_values(chunk, f"i{chunk.type.bit_width // 8}"), null_mask(chunk)
        present = values if nulls is None else values[~nulls]
        if len(present):
            ends.append((int(present.min()), int(present.max())))
    return min(least for least, _ in ends), max(greatest for _, greatest in ends)


def _integer(value: pa.Scalar) -> int:
    """Return the integer that a value is inside."""
    if pa.types.is_date(value.type) or pa.types.is_timestamp(value.type):
        return int(value.value)
    if pa.types.is_decimal(value.type):
        return unscaled_integer(value.as_py(), value.type.scale)
    return int(value.as_py())


def _is_inside(column: pa.Array, bounds: Sequence[Any]) -> Mask:
    """Return for each value whether it is within bounds."""
    least, greatest, has_null = bounds
    nulls = null_mask(column)
    if least is None:
        inside = np.zeros(len(column), np.bool_)
    else:
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.int8())
        low, high = _scalars([least, greatest], column.type)
        inside = true_mask(pc.and_(pc.greater_equal(column, low), pc.less_equal(column, high)))
    if nulls is None:
        return inside
    return np.where(nulls, has_null, inside)


def _scalars(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """Return bounds as values of a type."""
    if pa.types.is_string(type_):
        return string_array(values, type_)
    if pa.types.is_decimal(type_):
        return fixed_array(words_of_integers(np.array(values, object)), type_)
    kind = "u" if pa.types.is_unsigned_integer(type_) else "i"
    return fixed_array(np.array(values, f"{kind}{type_.bit_width // 8}"), type_)
