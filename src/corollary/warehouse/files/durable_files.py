"""Data files: immutable, whole or not there, with a checksum.

A file is written under a temporary name, synced, renamed, and its directory synced too: only then
may the catalog reference it. A reader compares the checksum first, so that a torn or altered file
is an error that names it, never missing rows.
"""

import hashlib
import io
import os
from pathlib import Path

import pyarrow as pa

from corollary.errors import WarehouseError

CHANGE_COLUMN = "_change_type"
"""The column of a file of changes that says whether a tuple was inserted or deleted."""
INSERT, DELETE = "insert", "delete"
HOLDS_COLUMN = "holds"
"""The column of a relation without columns, in formats that need one."""
_TEMPORARY_SUFFIX = ".writing"
_COMPRESS_MIN_BYTES = 1 << 12
"""Arrow streams of more bytes than this are compressed."""


def checksum_of(data: bytes | memoryview) -> str:
    """Return the checksum of bytes as the catalog stores it: BLAKE2b, 16 bytes, hexadecimal."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def write(root: Path, name: str, data: bytes | memoryview) -> str:
    """Write a file durably; return its checksum.

    Raises:
        WarehouseError: the disk is full, or the directory cannot be written.
    """
    path = root / name
    temporary = path.with_name(path.name + _TEMPORARY_SUFFIX)
    try:
        make_directory(path.parent)
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            # Content before name: after a power failure the name must not lead to a torn file.
            os.fsync(file.fileno())
        temporary.rename(path)
        # The rename itself is only durable once the directory is.
        sync_path(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise WarehouseError.cannot_write(path, error) from error
    return checksum_of(data)


def make_directory(path: Path) -> None:
    """Create a directory and its parents, and sync the parent of each one created."""
    if not path.is_dir():
        make_directory(path.parent)
        path.mkdir(exist_ok=True)
        sync_path(path.parent)


def sync_path(path: Path) -> None:
    """Sync the entries of a directory, or the content of a file, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read(root: Path, name: str, checksum: str) -> pa.Buffer:
    """Return the bytes of a file, memory-mapped, if they have the given checksum.

    Raises:
        WarehouseError: it is missing, or not what was written.
    """
    path = root / name
    data = memory_map(path)
    if checksum_of(memoryview(data)) != checksum:
        raise WarehouseError.damaged(path)
    return data


def memory_map(path: Path) -> pa.Buffer:
    """Return the bytes of a file, memory-mapped.

    Raises:
        WarehouseError: it is missing or cannot be read.
    """
    try:
        # An empty file cannot be mapped.
        return pa.memory_map(str(path)).read_buffer() if path.stat().st_size else pa.py_buffer(b"")
    except OSError as error:
        raise WarehouseError.cannot_read(path, error) from error


def has_size(path: Path, size: int) -> bool:
    """Return whether a file exists and has this many bytes."""
    try:
        return path.stat().st_size == size
    except OSError:
        return False


def to_parquet(table: pa.Table) -> bytes:
    """Return a table as the bytes of a Parquet file."""
    import pyarrow.parquet as pq  # a small warehouse has none, and starts without it

    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def from_parquet(data: pa.Buffer) -> pa.Table:
    """Return the table that a Parquet file holds."""
    import pyarrow.parquet as pq

    return pq.read_table(pa.BufferReader(data))


def to_arrow_stream(table: pa.Table) -> bytes:
    """Return a table as an Arrow IPC stream."""
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(
        compression="zstd" if table.nbytes > _COMPRESS_MIN_BYTES else None
    )
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue()


def from_arrow_stream(data: bytes) -> pa.Table:
    """Return the table that an Arrow IPC stream holds."""
    return pa.ipc.open_stream(data).read_all()


# --- what the rows of a file are -----------------------------------------------------------------
# These functions are pickled by name and run in Spark tasks, so they are not lambdas.


def full_rows(table: pa.Table) -> pa.Table:
    """Return the rows of a file that holds all tuples of a relation."""
    return table


def inserted_rows(table: pa.Table) -> pa.Table:
    """Return the rows of a file of changes for inserted tuples."""
    return _with_change_type(table, INSERT)


def deleted_rows(table: pa.Table) -> pa.Table:
    """Return the rows of a file of changes for deleted tuples."""
    return _with_change_type(table, DELETE)


def _with_change_type(table: pa.Table, change: str) -> pa.Table:
    column = pa.repeat(pa.scalar(change, pa.string()), table.num_rows)
    return (
        table.append_column(CHANGE_COLUMN, column)
        if table.num_columns
        else pa.table({CHANGE_COLUMN: column})
    )
