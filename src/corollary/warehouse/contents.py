"""The content of files that users name: regular files only, not while they change, no bombs.

A file's *fingerprint* is its size, times and inode. A later write gets another one, because a file
is read only once its times lie a tick of the kernel's clock in the past.
"""

import gzip
import io
import os
import stat
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, TypeVar

import pyarrow as pa

from corollary.errors import InputError
from corollary.source import Span

T = TypeVar("T")
Fingerprint = tuple[int, int, int, int]

GZIP = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
HARMLESS_SIZE = 256 * 2**20
HIGHEST_RATIO = 200
"""A compressed file may expand to more than the harmless size only so many times."""
LONGEST_LINE = 4 * 2**20
"""Bytes; in the sources of a warehouse a longer line is no record but an accident."""
PAUSES = (0.02, 0.05, 0.1, 0.3, 0.0)
"""Seconds to wait after each attempt at a file that others are writing."""
TICK = 20_000_000
"""Nanoseconds in which two writes may bear the same time."""
_SECOND = 1_000_000_000


def fingerprint_of(status: os.stat_result) -> Fingerprint:
    """Return what tells whether a file has been written."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def read(
    path: Path, name: str, span: Span | None, use: Callable[[BinaryIO], T]
) -> tuple[T, Fingerprint]:
    """Return what `use` makes of a file that nobody wrote meanwhile, and its fingerprint.

    Args:
        path: the file, already resolved (`paths.resolve`).
        name: what messages call it.
        span: the directive that names it.
        use: reads the open file; it may be called several times.

    Raises:
        InputError: `C0804`, it cannot be read; `C0953`, it changes each time it is read.
        FileNotFoundError: it is not there.
    """
    for pause in PAUSES:
        with open_file(path, name, span) as file:
            before = fingerprint_of(os.fstat(file.fileno()))
            _wait_for_tick(before)
            try:
                result = use(file)
            except (pa.ArrowException, OSError, InputError):
                if _is_at(path, before):
                    raise
            else:
                if _is_at(path, before):
                    return result, before
        time.sleep(pause)
    raise InputError.of(
        "C0953",
        f"`{name}` is written while it is read; {len(PAUSES)} attempts failed.",
        span,
        "write a new file and rename it into place; nothing was changed",
    )


def open_file(path: Path, name: str, span: Span | None) -> BinaryIO:
    """Return an open regular file."""
    # Opening a pipe without this flag would wait for its writer.
    file = open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")  # noqa: PTH123, SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise InputError.of("C0804", f"`{name}` cannot be read: it is not a file", span)
    return file


def unusable(name: str, verb: str, error: OSError, span: Span | None) -> InputError:
    """Return the error of a file that cannot be read or written."""
    reason = error.strerror or str(error)
    return InputError.of("C0804", f"`{name}` cannot be {verb}: {reason}", span)


def text_of(data: bytes, name: str, span: Span | None) -> bytes:
    """Return the bytes of a text file without compression and byte order mark.

    Raises:
        InputError: `C0804`; it is no sound gzip file, or expands too far.
    """
    if data.startswith(GZIP):
        data = _expanded(data, name, span)
    return data.removeprefix(BYTE_ORDER_MARK)


def has_longer_line(data: bytes, longest: int | None) -> bool:
    r"""Return whether a line has more bytes than the longest may have.

    Such a line fills one of the windows of half that length.

    >>> has_longer_line(b"abc\ndefg\n", 4), has_longer_line(b"abc\ndefg\n", 3)
    (False, True)
    """
    if longest is None:
        return False
    half = longest // 2
    for start in range(0, len(data) - half + 1, half):
        if data.find(b"\n", start, start + half) < 0:
            first = data.rfind(b"\n", 0, start) + 1
            last = data.find(b"\n", start + half)
            if (len(data) if last < 0 else last) - first > longest:
                return True
    return False


def _is_at(path: Path, fingerprint: Fingerprint) -> bool:
    try:
        return fingerprint_of(path.stat()) == fingerprint
    except OSError:
        return False


def _wait_for_tick(fingerprint: Fingerprint) -> None:
    """Wait until a write would give the file another time."""
    # The time of the last change of content or name; users cannot set it.
    changed = fingerprint[2]
    # Some file systems know seconds only.
    tick = TICK if changed % _SECOND else 2 * _SECOND
    age = time.time_ns() - changed
    if 0 <= age < tick:
        time.sleep((tick - age) / _SECOND)


def _expanded(data: bytes, name: str, span: Span | None) -> bytes:
    limit = max(HARMLESS_SIZE, HIGHEST_RATIO * len(data))
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            content = file.read(limit + 1)
    except (EOFError, OSError, zlib.error) as error:
        message = f"`{name}` cannot be read: it is not a sound gzip file ({error})"
        raise InputError.of("C0804", message, span) from None
    if len(content) > limit:
        message = f"`{name}` cannot be read: it expands to more than {HIGHEST_RATIO} times its size"
        raise InputError.of("C0804", message, span, "decompress it first")
    return content
