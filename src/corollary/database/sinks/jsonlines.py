"""JSON lines: a file to which every alert is appended exactly once.

lock → mend a torn last line → look for alerts that were claimed before → demand the claim → append
→ force to the disk

Whoever dies behind the append leaves lines that are not marked as delivered. Their alerts are
claimed again, so they are looked up in the file before anything is appended. Whoever is so slow
that its claim expires finds that out under the lock, before it writes: the one that has taken over
either waits for the lock, and then finds the lines, or has written already.
"""

import fcntl
import json
import os
import re
import time
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from corollary import fault
from corollary.database.sinks.sender import Claim, DeliveryError
from corollary.errors import InputError
from corollary.warehouse.files import force_directory, make_directory
from corollary.warehouse.paths import resolve
from corollary.warehouse.waiting import Waiting

PATIENCE = 10.0
"""Seconds to wait for others who write to the same file."""
BLOCK = 1 << 16
_ID = re.compile(rb'^\{"id": "([0-9a-f]+)"')


class JsonLines:
    """A file of JSON lines.

    Args:
        directory: which the file may not leave.
        name: of the file, in it.
    """

    most = 500
    is_divisible = False

    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory
        self._name = name

    def group(self, waiting: Waiting) -> Hashable:
        """Return what alerts have in common that are sent together: all of them."""

    def send(self, alerts: Sequence[Waiting], claim: Claim) -> None:
        """Append alerts that are not in the file yet.

        Raises:
            DeliveryError: the file cannot be written.
            ClaimError: another process has taken over.
        """
        try:
            make_directory(self._directory)
            path = resolve(self._directory, self._name)
            make_directory(path.parent)
            with _locked(path) as file:
                _mend(file)
                known = _found(file, {each.id for each in alerts if each.attempts > 1})
                claim.demand(alerts)
                _append(file, [each for each in alerts if each.id not in known])
                fault.hit("after_append")
        except OSError as error:
            raise DeliveryError(f"it cannot be written: {error.strerror or error}") from error
        except InputError as error:
            raise DeliveryError(error.diagnostics[0].message) from error


def empty(directory: Path) -> None:
    """Take all lines out of the files in a directory."""
    for path in sorted(directory.rglob("*")):
        if path.is_file() and not path.is_symlink():
            with _locked(path) as file:
                os.ftruncate(file, 0)
                os.fsync(file)


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Open a file that nobody else writes to meanwhile."""
    limit = time.monotonic() + PATIENCE
    while True:
        is_new = not path.exists()
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(path, flags, 0o666)
        try:
            if _is_ours(file, path):
                if is_new:
                    force_directory(path.parent)
                yield file
                return
        finally:
            os.close(file)
        if time.monotonic() > limit:
            raise DeliveryError("others write to it all the time")
        time.sleep(0.02)


def _is_ours(file: int, path: Path) -> bool:
    """Lock a file; return whether that went well, and it still has its name."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.fstat(file).st_ino == path.stat().st_ino
    except (BlockingIOError, FileNotFoundError):
        return False


def _mend(file: int) -> None:
    """Take away a last line that was not written to its end."""
    size = start = os.fstat(file).st_size
    tail = b""
    while start and b"\n" not in tail:
        length = min(BLOCK, start)
        start -= length
        tail = os.pread(file, length, start) + tail
    last = tail[tail.rfind(b"\n") + 1 :]
    if not last:
        return
    try:
        json.loads(last)
    except ValueError:
        os.ftruncate(file, size - len(last))
    else:
        os.write(file, b"\n")


def _found(file: int, ids: set[str]) -> set[str]:
    """Return which of some alerts are in a file."""
    if not ids:
        return set()
    with os.fdopen(os.dup(file), "rb") as stream:
        stream.seek(0)
        found = (_ID.match(line) for line in stream)
        return ids & {each[1].decode() for each in found if each is not None}


def _append(file: int, alerts: Sequence[Waiting]) -> None:
    lines = (json.dumps(each.as_json(), ensure_ascii=False) for each in alerts)
    data = memoryview("".join(f"{line}\n" for line in lines).encode("utf-8"))
    size = os.fstat(file).st_size
    try:
        while data:
            data = data[os.write(file, data) :]
        os.fsync(file)
    except OSError:
        with suppress(OSError):
            os.ftruncate(file, size)
        raise
