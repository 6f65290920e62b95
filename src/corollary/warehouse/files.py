"""Data files: immutable, whole or not there, with a checksum.

A file is written under a temporary name, forced to the disk, renamed, and its directory forced too:
only then may the catalog speak of it. Whoever reads it compares the checksum first, so that a torn
or altered file is an error that names it, never missing rows.
"""

import hashlib
import io
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from corollary.errors import WarehouseError

SUFFIX = ".writing"
COMPRESSED = 1 << 12
"""Larger Arrow streams are compressed."""


def checksum_of(data: bytes | memoryview) -> str:
    """Return the checksum of bytes, as the catalog keeps it."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def write(root: Path, name: str, data: bytes | memoryview) -> str:
    """Write a file durably; return its checksum.

    Raises:
        WarehouseError: the disk is full, or the place cannot be written.
    """
    path = root / name
    temporary = path.with_name(path.name + SUFFIX)
    try:
        make_directory(path.parent)
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
        force_directory(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise WarehouseError.cannot_write(path, error) from error
    return checksum_of(data)


def make_directory(path: Path) -> None:
    """Make a directory, and those above it, durably."""
    if not path.is_dir():
        make_directory(path.parent)
        path.mkdir(exist_ok=True)
        force_directory(path.parent)


def force_directory(path: Path) -> None:
    """Force the entries of a directory to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read(root: Path, name: str, checksum: str) -> pa.Buffer:
    """Return the bytes of a file, memory-mapped.

    Raises:
        WarehouseError: it is missing, or not what was written.
    """
    path = root / name
    data = mapped(path)
    if checksum_of(memoryview(data)) != checksum:
        raise WarehouseError.is_damaged(path)
    return data


def mapped(path: Path) -> pa.Buffer:
    """Return the bytes of a file, memory-mapped.

    Raises:
        WarehouseError: it is missing or cannot be read.
    """
    try:
        return pa.memory_map(str(path)).read_buffer() if path.stat().st_size else pa.py_buffer(b"")
    except OSError as error:
        raise WarehouseError.cannot_read(path, error) from error


def has_size(path: Path, size: int) -> bool:
    """Say whether a file is there, and has so many bytes."""
    try:
        return path.stat().st_size == size
    except OSError:
        return False


def parquet_bytes(table: pa.Table) -> bytes:
    """Return a table as the bytes of a Parquet file."""
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def parquet_table(data: pa.Buffer) -> pa.Table:
    """Return the table that a Parquet file holds."""
    return pq.read_table(pa.BufferReader(data))


def arrow_bytes(table: pa.Table) -> bytes:
    """Return a table as an Arrow IPC stream."""
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression="zstd" if table.nbytes > COMPRESSED else None)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue()


def arrow_table(data: bytes) -> pa.Table:
    """Return the table that an Arrow IPC stream holds."""
    return pa.ipc.open_stream(data).read_all()
