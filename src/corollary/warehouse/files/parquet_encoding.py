"""Tables as Parquet: encodings that are quick to write and to read, and small.

| values | encoding |
|---|---|
| integers, dates, timestamps, decimals up to 18 digits | DELTA_BINARY_PACKED |
| texts, floats and wider decimals, few of them distinct | dictionary |
| the rest | plain |

All pages are compressed with zstd at level 1. A column without nulls is a required one. A file that
a published table may reference carries its statistics, as the Delta log has them, in its footer.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow_buffers import index_array
from corollary.warehouse.files.column_bounds import has_nan

ROW_GROUP_ROWS = 32_768
"""The rows of a row group, which readers skip as a whole."""
STATISTICS_KEY = "corollary.statistics"
"""The key of the statistics in the footer of a file."""
INTEGER_DECIMAL_MAX_DIGITS = 18
"""Decimals of up to this many digits are stored as integers of 64 bits."""
_COMPRESSION_LEVEL = 1
_SAMPLE_ROWS = 1024
_DICTIONARY_MAX_SHARE = 4
"""A dictionary is worth its time if at most one in this many values of a sample is distinct."""


def to_parquet(table: pa.Table, statistics: str | None = None) -> pa.Buffer:
    """Return a table as the bytes of a Parquet file.

    Args:
        table: the rows.
        statistics: of the rows, for a file that readers of a published table may read.
    """
    import pyarrow.parquet as pq  # a small warehouse has no such file, and starts without it

    columns = dict(zip(table.column_names, table.columns, strict=True))
    packed = [name for name, column in columns.items() if _is_integer(column.type)]
    others = [name for name in columns if name not in packed]
    # The bounds of Parquet ignore NaN, and readers would skip a group that contains it.
    has_bounds = statistics is not None
    bounded = [name for name, column in columns.items() if has_bounds and not has_nan(column)]
    table = _with_required_columns(table)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        table.schema,
        compression="zstd",
        compression_level=_COMPRESSION_LEVEL,
        column_encoding=dict.fromkeys(packed, "DELTA_BINARY_PACKED") or None,
        use_dictionary=[name for name in others if _has_repeats(columns[name])],
        write_statistics=bounded,
        store_decimal_as_integer=True,
        store_schema=False,
    ) as writer:
        writer.write_table(table, ROW_GROUP_ROWS)
        if statistics is not None:
            writer.add_key_value_metadata({STATISTICS_KEY: statistics})
    return sink.getvalue()


def from_parquet(data: pa.Buffer) -> pa.Table:
    """Return the table that a Parquet file holds; any column may have nulls."""
    # Not `read_table`, which imports the datasets of Arrow.
    import pyarrow.parquet as pq

    table = pq.ParquetFile(pa.BufferReader(data)).read()
    if not table.num_columns:
        return table
    return pa.table(table.columns, table.column_names)


def statistics_in(metadata: Mapping[bytes, bytes] | None) -> str | None:
    """Return the statistics in the footer of a file, as the Delta log has them."""
    found = (metadata or {}).get(STATISTICS_KEY.encode())
    return None if found is None else found.decode()


def _with_required_columns(table: pa.Table) -> pa.Table:
    if not table.num_columns:
        return table
    fields = [
        pa.field(name, column.type, nullable=column.null_count > 0)
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    return pa.Table.from_arrays(table.columns, schema=pa.schema(fields))


def _is_integer(type_: pa.DataType) -> bool:
    if pa.types.is_decimal(type_):
        return bool(type_.precision <= INTEGER_DECIMAL_MAX_DIGITS)
    return bool(
        pa.types.is_integer(type_) or pa.types.is_date(type_) or pa.types.is_timestamp(type_)
    )


def _has_repeats(column: pa.ChunkedArray) -> bool:
    """Return whether a sample has so few distinct values that a dictionary saves space."""
    if pa.types.is_boolean(column.type) or pa.types.is_nested(column.type) or not len(column):
        return False
    if pa.types.is_dictionary(column.type):
        return True
    positions = np.linspace(0, len(column) - 1, _SAMPLE_ROWS, dtype=np.int64)
    sample = column.take(index_array(positions))
    distinct = pc.count_distinct(sample, mode="all").as_py()
    return bool(distinct * _DICTIONARY_MAX_SHARE < _SAMPLE_ROWS)
