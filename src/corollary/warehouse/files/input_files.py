"""Reads files that users name: regular files only, not while they change, no decompression bombs.

A file's *fingerprint* is its size, times and inode. Every later write changes it, because a file is
read only when its times are at least a tick of the kernel's clock old. That of an object is its
size, time and entity tag, which the store makes of its content.
"""

import hashlib
import os
import stat
import time
from collections.abc import Callable
from typing import BinaryIO, TypeVar

import pyarrow as pa

from corollary.errors import InputError
from corollary.source import Span
from corollary.warehouse.files.object_path import ObjectPath, ObjectReader, ObjectStatus
from corollary.warehouse.files.places import Place

T = TypeVar("T")
Fingerprint = tuple[int, int, int, int]

GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
EXPANDED_ALLOWED_BYTES = 256 * 2**20
"""The expanded size in bytes up to which the ratio of a compressed file does not matter."""
EXPANDED_MAX_RATIO = 200
"""The maximum ratio of expanded to compressed size for larger files."""
LINE_MAX_BYTES = 4 * 2**20
"""The maximum bytes of a line in sources; a longer one means that a line break is missing."""
RETRY_PAUSES_SECONDS = (0.02, 0.05, 0.1, 0.3, 0.0)
"""Seconds to wait after each attempt to read a file that is being written."""
_TICK_NANOSECONDS = 20_000_000
"""The period in which two writes may get the same time."""
_SECOND_NANOSECONDS = 1_000_000_000


def fingerprint_of(status: os.stat_result | ObjectStatus) -> Fingerprint:
    """Return the fingerprint of a file, which every write changes."""
    if isinstance(status, ObjectStatus):
        tag = int.from_bytes(hashlib.blake2b(status.e_tag.encode(), digest_size=6).digest())
        return status.st_size, status.st_mtime_ns, tag, 0
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def read_unchanged(
    path: Place, name: str, span: Span | None, use: Callable[[BinaryIO], T]
) -> tuple[T, Fingerprint]:
    """Return the result of `use` on a file that was not written meanwhile, and its fingerprint.

    Args:
        path: the file or object, already resolved (`paths.resolve_place`).
        name: what messages call it.
        span: the directive that names it.
        use: reads the open file; it may be called several times.

    Raises:
        InputError: `C0804`, it cannot be read; `C0953`, it changes each time it is read.
        FileNotFoundError: it does not exist.
    """
    for pause in RETRY_PAUSES_SECONDS:
        with open_file(path, name, span) as file:
            before = fingerprint_of(status_of(file))
            wait_for_tick(before)
            try:
                result = use(file)
            except (pa.ArrowException, OSError, InputError):
                if has_fingerprint(path, before):  # else it was half-written, and is read again
                    raise
            else:
                if has_fingerprint(path, before):
                    return result, before
        time.sleep(pause)
    raise InputError.of(
        "C0953",
        f"`{name}` is written while it is read; {len(RETRY_PAUSES_SECONDS)} attempts failed.",
        span,
        "write a new file and rename it into place; nothing was changed",
    )


def open_file(path: Place, name: str, span: Span | None) -> BinaryIO:
    """Open a regular file, or an object.

    Raises:
        InputError: `C0804`, it is a directory, pipe or device.
    """
    if isinstance(path, ObjectPath):
        return path.open()
    # Opening a pipe without this flag would wait for its writer.
    file = open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")  # noqa: PTH123, SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise InputError.of("C0804", f"`{name}` cannot be read: it is not a file", span)
    return file


def status_of(file: BinaryIO) -> os.stat_result | ObjectStatus:
    """Return the status that a file or object had when it was opened."""
    reader = getattr(file, "raw", None)
    return reader.status if isinstance(reader, ObjectReader) else os.fstat(file.fileno())


def file_error(name: str, verb: str, error: OSError, span: Span | None) -> InputError:
    """Return the error of a file that cannot be read or written."""
    reason = error.strerror or str(error)
    return InputError.of("C0804", f"`{name}` cannot be {verb}: {reason}", span)


def has_longer_line(data: bytes, max_bytes: int | None) -> bool:
    r"""Return whether a line has more bytes than a maximum.

    Of the windows of half that length, a longer line covers at least one entirely. So most windows
    need only one search for a line break, and no line is looked at alone.

    >>> has_longer_line(b"abc\ndefg\n", 4), has_longer_line(b"abc\ndefg\n", 3)
    (False, True)
    """
    if max_bytes is None:
        return False
    half = max_bytes // 2
    for start in range(0, len(data) - half + 1, half):
        if data.find(b"\n", start, start + half) < 0:
            first = data.rfind(b"\n", 0, start) + 1
            last = data.find(b"\n", start + half)
            if (len(data) if last < 0 else last) - first > max_bytes:
                return True
    return False


def has_fingerprint(path: Place, fingerprint: Fingerprint) -> bool:
    """Return whether a file exists and has a fingerprint."""
    try:
        return fingerprint_of(path.stat()) == fingerprint
    except OSError:
        return False


def wait_for_tick(fingerprint: Fingerprint) -> None:
    """Wait until another write would give the file another time."""
    # st_ctime, of the last change of content or metadata: users cannot set it.
    changed = fingerprint[2]
    # Some file systems store whole seconds only.
    tick = _TICK_NANOSECONDS if changed % _SECOND_NANOSECONDS else 2 * _SECOND_NANOSECONDS
    age = time.time_ns() - changed
    if 0 <= age < tick:
        time.sleep((tick - age) / _SECOND_NANOSECONDS)
