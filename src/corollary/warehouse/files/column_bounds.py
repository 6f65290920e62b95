"""The minimum and maximum of each column of a file, as in the Delta log.

Readers skip files by them, and so do we when tuples are removed. A bound may be too wide, never too
narrow: long strings are truncated, and timestamps rounded to milliseconds, as some readers have no
finer ones.

Bounds are complete or absent: for a column without bounds in a file that has some, `deltalake` uses
the condition `x <= null`, by which its readers skip all rows. NaN would have to be a bound, and
readers do not agree how it compares, so a file with NaN has none at all.
"""

import json
import math
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow import is_compared_as_text
from corollary.core.arrow_buffers import bool_array

_MAX_COLUMNS = 32
"""The maximum number of columns with statistics; it is the usual one for Delta."""
_BOUND_MAX_CHARACTERS = 32
_LAST = "\U0010ffff"
"""The greatest character: it makes a truncated string an upper bound."""


def statistics_of(rows: pa.Table) -> str:
    """Return the statistics of a file's rows, as JSON.

    >>> statistics_of(pa.table({"x": [1, 2], "y": [None, "b"]}))
    '{"numRecords":2,"minValues":{"x":1,"y":"b"},"maxValues":{"x":2,"y":"b"},"nullCount":{"x":0,"y":1}}'
    """
    if any(map(has_nan, rows.columns)):
        return _object({"numRecords": str(rows.num_rows)})
    names = rows.column_names[:_MAX_COLUMNS]
    # Delta counts the nulls of each field of a struct, and none of the whole.
    columns = {
        name: rows.column(name) for name in names if not pa.types.is_struct(rows.column(name).type)
    }
    bounds = {
        name: _bounds(column)
        for name, column in columns.items()
        if column.null_count < len(column)
        and not (
            is_compared_as_text(column.type)
            or pa.types.is_duration(column.type)
            or pa.types.is_time(column.type)
        )
    }
    parts = {
        "numRecords": str(rows.num_rows),
        "minValues": _object({name: low for name, (low, _) in bounds.items()}),
        "maxValues": _object({name: high for name, (_, high) in bounds.items()}),
        "nullCount": _object({name: str(column.null_count) for name, column in columns.items()}),
    }
    return _object(parts)


def rows_within(rows: pa.Table, low: Any, high: Any, nulls: Any) -> pa.Table:
    """Return the rows that a file may contain, by the bounds of its columns.

    Args:
        rows: the rows to look for.
        low: the minimum of each column by name; null, or with nulls, where it is unknown.
        high: the maximum.
        nulls: how many nulls each column has.
    """
    if not low.is_valid:
        return rows
    for name in rows.column_names[:_MAX_COLUMNS]:
        if pa.types.is_nested(rows.column(name).type):
            continue
        least, greatest = low[name], high[name]
        if not (least.is_valid and greatest.is_valid):
            continue
        column = rows.column(name)
        inside = pc.and_(pc.greater_equal(column, least), pc.less_equal(column, greatest))
        # Comparing null gives null: such a row may be in the file if that has nulls.
        has_nulls = bool_array(np.array([nulls[name].as_py() != 0]))[0]
        rows = rows.filter(pc.fill_null(inside, has_nulls))
        if not rows.num_rows:
            break
    return rows


def has_nan(column: pa.ChunkedArray) -> bool:
    """Return whether a column contains NaN."""
    return bool(pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py())


def _json(value: object) -> str:
    # The JSON reader of arrow-rs decodes some escaped surrogate pairs to other characters.
    return json.dumps(value, ensure_ascii=False)


def _object(parts: dict[str, str]) -> str:
    return "{" + ",".join(f"{_json(name)}:{text}" for name, text in parts.items()) + "}"


def _bounds(column: pa.ChunkedArray) -> tuple[str, str]:
    """Return the bounds of a column, as JSON."""
    if pa.types.is_dictionary(column.type):
        column = pa.chunked_array([chunk.dictionary for chunk in column.chunks])
    type_ = column.type
    if pa.types.is_timestamp(type_):
        column = column.cast(pa.timestamp("us"))
    low, high = (each.as_py() for each in pc.min_max(column).values())
    if pa.types.is_string(type_):
        low, high = text_bounds(low, high)
        return _json(low), _json(high)
    if pa.types.is_timestamp(type_):
        return _json(_time(low, "milliseconds")), _json(_time_above(high))
    if pa.types.is_date(type_):
        return _json(low.isoformat()), _json(high.isoformat())
    if pa.types.is_decimal(type_):
        return f"{low:f}", f"{high:f}"
    if pa.types.is_floating(type_):
        return _float(low), _float(high)
    return _json(low), _json(high)


def text_bounds(low: str, high: str) -> tuple[str, str]:
    """Return bounds of the texts between two, truncated."""
    if len(high) > _BOUND_MAX_CHARACTERS and high[_BOUND_MAX_CHARACTERS] != _LAST:
        high = high[:_BOUND_MAX_CHARACTERS] + _LAST
    return low[:_BOUND_MAX_CHARACTERS], high


def _time_above(time: datetime) -> str:
    if not time.microsecond % 1000:
        return _time(time, "milliseconds")
    try:
        return _time(time + timedelta(milliseconds=1), "milliseconds")
    except OverflowError:
        return _time(time, "microseconds")


def _time(time: datetime, unit: str) -> str:
    return f"{time.isoformat(timespec=unit)}Z"


def _float(number: float) -> str:
    """Return a number as JSON, and infinity as Spark writes it."""
    if math.isinf(number):
        return '"Infinity"' if number > 0 else '"-Infinity"'
    return _json(number)
