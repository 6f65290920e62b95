"""Data files: immutable, whole or not there, with a checksum.

A file and its directory are synced before the catalog may reference it: a batch of files first
writes all of them, then syncs all. A reader compares the checksum first, so that a torn or altered
file is an error that names it, never missing rows.

In an object store a file is an object, put in one request: it is durable when the request has
succeeded. A batch makes several requests at a time, and its `sync` waits for them.
"""

import errno
import hashlib
import os
import secrets
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

import pyarrow as pa

from corollary.core.arrow_buffers import string_array
from corollary.errors import ConflictError, WarehouseError
from corollary.warehouse.files.object_path import ObjectPath
from corollary.warehouse.files.places import Place

CHANGE_COLUMN = "_change_type"
"""The column of a file of changes that says whether a tuple was inserted or deleted."""
INSERT, DELETE = "insert", "delete"
PREIMAGE, POSTIMAGE = "update_preimage", "update_postimage"
HOLDS_COLUMN = "holds"
"""The column of a relation without columns, in formats that need one."""
_TEMPORARY_SUFFIX = ".writing"
_NO_LINK_ERRORS = {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOSYS, errno.EOPNOTSUPP}
"""The errors of file systems, or of two of them, between which there are no hard links."""
_COMPRESS_MIN_BYTES = 1 << 12
"""Arrow streams of more bytes than this are compressed."""
_MESSAGE_MAX_ROWS = 64
_END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"
"""The last message of an Arrow stream: one without contents."""
REQUESTS_MAX = 8
"""How many objects are read or written at the same time."""


def checksum_of(data: bytes | memoryview | pa.Buffer) -> str:
    """Return the checksum of bytes as the catalog stores it: BLAKE2b, 16 bytes, hexadecimal."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def checksum_of_file(path: Path) -> str:
    """Return the checksum of the bytes of a file.

    Raises:
        WarehouseError: it is missing or cannot be read.
    """
    return checksum_of(memory_map(path))


class FileBatch:
    """Files that are written together: none may be referenced before all are synced.

    Args:
        root: the place that names of files are relative to.
        after_file: called after each file, to show that the writer is alive.
    """

    def __init__(self, root: Place, after_file: Callable[[], None] | None = None) -> None:
        self.root = root
        self._after_file = after_file
        self._unsynced: list[Path] = []
        self._directories: set[Path] = set()
        self._requests = _Requests()

    def write(self, name: str, data: bytes | memoryview | pa.Buffer) -> str:
        """Write a file, not synced yet, under its final name; return its checksum.

        Raises:
            WarehouseError: the disk is full, or the directory cannot be written.
        """
        path = self.root / name
        if isinstance(path, ObjectPath):
            self._requests.start(path, partial(path.create, data))
            self._beat()
            return checksum_of(data)
        try:
            make_directory(path.parent)
            with path.open("xb") as file:
                file.write(data)
        except OSError as error:
            with suppress(OSError):
                path.unlink(missing_ok=True)
            raise WarehouseError.cannot_write(path, error) from error
        self._unsynced.append(path)
        self._note(path)
        return checksum_of(data)

    def link(self, source: Place, name: str, *, is_synced: bool = True) -> None:
        """Give a file a second name; copy it where there are no hard links.

        Args:
            source: the file.
            name: the second name.
            is_synced: whether it was synced when it was written.

        A file and its second name are both on a disk, or both in the same bucket.

        Raises:
            WarehouseError: it is missing, or the directory cannot be written.
        """
        path = self.root / name
        if isinstance(path, ObjectPath):
            assert isinstance(source, ObjectPath)
            self._requests.start(path, partial(path.copy_from, source))
            self._beat()
            return
        assert isinstance(source, Path)
        try:
            make_directory(path.parent)
            try:
                os.link(source, path)
            except OSError as error:
                if error.errno not in _NO_LINK_ERRORS:
                    raise
                shutil.copyfile(source, path)
                is_synced = False
            if not is_synced:
                self._unsynced.append(path)
        except OSError as error:
            raise WarehouseError.cannot_write(path, error) from error
        self._note(path)

    def _note(self, path: Path) -> None:
        self._directories.add(path.parent)
        self._beat()

    def _beat(self) -> None:
        if self._after_file is not None:
            self._after_file()

    def sync(self) -> None:
        """Sync all files to the disk, then the directories with their names.

        Raises:
            ConflictError: one is gone: `gc` has taken the writer for dead.
            WarehouseError: the disk is full or broken, or the object store refuses it.
        """
        self._requests.wait()
        for path in (*self._unsynced, *sorted(self._directories)):
            try:
                sync_path(path)
            except FileNotFoundError as error:
                raise ConflictError.fenced() from error
            except OSError as error:
                raise WarehouseError.cannot_write(path, error) from error
        self._unsynced, self._directories = [], set()


class _Requests:
    """Requests that put objects, several at a time."""

    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None
        self._running: deque[tuple[ObjectPath, Future[None]]] = deque()

    def start(self, path: ObjectPath, request: Callable[[], None]) -> None:
        """Start a request, once there are few enough; what they put is in memory until then."""
        if self._executor is None:
            self._executor = ThreadPoolExecutor(REQUESTS_MAX, "corollary-put")
        while len(self._running) >= REQUESTS_MAX:
            self._wait_for_first()
        self._running.append((path, self._executor.submit(request)))

    def wait(self) -> None:
        """Wait until all have succeeded."""
        while self._running:
            self._wait_for_first()
        if self._executor is not None:
            self._executor.shutdown()
            self._executor = None

    def _wait_for_first(self) -> None:
        path, request = self._running.popleft()
        try:
            request.result()
        except OSError as error:
            raise WarehouseError.cannot_write(path, error) from error


def write(root: Place, name: str, data: bytes | memoryview | pa.Buffer) -> str:
    """Write a single file durably; return its checksum.

    Raises:
        WarehouseError: the disk is full, or the directory cannot be written.
    """
    path = root / name
    if isinstance(path, ObjectPath):
        try:
            path.create(data)
        except OSError as error:
            raise WarehouseError.cannot_write(path, error) from error
        return checksum_of(data)
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


def create_exclusively(path: Place, data: bytes) -> None:
    """Write a file, unless there is one of its name: it is whole, or not there.

    Raises:
        FileExistsError: there is one.
        OSError: it cannot be written.
    """
    if isinstance(path, ObjectPath):
        path.create(data)
        return
    temporary = path.with_name(f"{path.name}#{secrets.token_hex(8)}")
    try:
        temporary.write_bytes(data)
        sync_path(temporary)
        os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def make_directory(path: Place) -> None:
    """Create a directory and its parents, and sync the parent of each one created."""
    if isinstance(path, Path) and not path.is_dir():
        make_directory(path.parent)
        path.mkdir(exist_ok=True)
        sync_path(path.parent)


def sync_path(path: Place) -> None:
    """Sync the entries of a directory, or the content of a file, to the disk."""
    if isinstance(path, ObjectPath):
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read(root: Place, name: str, checksum: str) -> pa.Buffer:
    """Return the bytes of a file, memory-mapped, if they have the given checksum.

    Raises:
        WarehouseError: it is missing, or not what was written.
    """
    path = root / name
    return _checked(path, memory_map(path), checksum)


def _checked(path: Place, data: pa.Buffer, checksum: str) -> pa.Buffer:
    if checksum_of(memoryview(data)) != checksum:
        raise WarehouseError.damaged(path)
    return data


def read_several(root: Place, files: Iterable[tuple[str, str]]) -> Iterator[pa.Buffer]:
    """Yield the bytes of files, given by name and checksum; objects are fetched ahead of time.

    Raises:
        WarehouseError: one is missing, or not what was written.
    """
    listed = list(files)
    paths = [root / name for name, _ in listed]
    for path, data, (_, checksum) in zip(paths, memory_map_several(paths), listed, strict=True):
        yield _checked(path, data, checksum)


def memory_map_several(paths: Sequence[Place]) -> Iterator[pa.Buffer]:
    """Yield the bytes of files, memory-mapped; objects are fetched ahead of time.

    Raises:
        WarehouseError: one is missing or cannot be read.
    """
    if len(paths) < 2 or not isinstance(paths[0], ObjectPath):
        yield from map(memory_map, paths)
        return
    with ThreadPoolExecutor(REQUESTS_MAX, "corollary-get") as executor:
        ahead: deque[Future[pa.Buffer]] = deque()
        try:
            for path in paths:
                ahead.append(executor.submit(memory_map, path))
                if len(ahead) > REQUESTS_MAX:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for each in ahead:
                each.cancel()


def memory_map(path: Place) -> pa.Buffer:
    """Return the bytes of a file, memory-mapped; of an object, in memory.

    Raises:
        WarehouseError: it is missing or cannot be read.
    """
    try:
        if isinstance(path, ObjectPath):
            return pa.py_buffer(path.read_buffer())
        # An empty file cannot be mapped.
        return pa.memory_map(str(path)).read_buffer() if path.stat().st_size else pa.py_buffer(b"")
    except OSError as error:
        raise WarehouseError.cannot_read(path, error) from error


def has_size(path: Place, size: int) -> bool:
    """Return whether a file exists and has this many bytes."""
    try:
        return path.stat().st_size == size
    except OSError:
        return False


def to_arrow_stream(table: pa.Table) -> bytes:
    """Return a table without dictionaries as an Arrow IPC stream."""
    # Most changes are small: writing messages takes a quarter of what a stream takes.
    if table.num_rows <= _MESSAGE_MAX_ROWS:
        parts = [table.schema.serialize(), *[each.serialize() for each in table.to_batches()]]
        if sum(part.size for part in parts) <= _COMPRESS_MIN_BYTES:
            return b"".join([*parts, _END_OF_STREAM])
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(
        compression="zstd" if table.nbytes > _COMPRESS_MIN_BYTES else None
    )
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def from_arrow_stream(data: bytes) -> pa.Table:
    """Return the table that an Arrow IPC stream holds."""
    return pa.ipc.open_stream(data).read_all()


# --- what the rows of a file are -----------------------------------------------------------------
# These functions are pickled by name and run in Spark tasks, so they are not lambdas.


@cache
def change_scalar(change: str) -> pa.Scalar:
    """Return a value of the column of changes."""
    return string_array([change], pa.string())[0]


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
    column = pa.repeat(change_scalar(change), table.num_rows)
    return (
        table.append_column(CHANGE_COLUMN, column)
        if table.num_columns
        else pa.table({CHANGE_COLUMN: column})
    )
