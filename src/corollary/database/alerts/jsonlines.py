"""JSON lines: a file to which every alert is appended exactly once.

lock → remove a torn last line → find alerts that were claimed before → renew the claim → append →
fsync

A process that dies after the append leaves lines that are not marked as delivered. Their alerts are
claimed again, so they are looked up in the file before anything is appended. A process that is so
slow that its claim expires notices that under the lock, before it writes: the one that has taken
over either waits for the lock, and then finds the lines, or has written already.
"""

import fcntl
import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from corollary import fault
from corollary.database.alerts.sender import Claim, DeliveryError, Sender
from corollary.errors import InputError
from corollary.warehouse.catalog.queued_alert import QueuedAlert
from corollary.warehouse.files.durable_files import make_directory, sync_path
from corollary.warehouse.files.paths import resolve

LOCK_TIMEOUT_SECONDS = 10.0
"""How long to wait for others who write to the same file."""
BLOCK_BYTES = 1 << 16
_ID = re.compile(rb'^\{"id": "([0-9a-f]+)"')


class JsonLinesSender(Sender):
    """Appends to a file of JSON lines, which may not leave a directory."""

    def __init__(self, directory: Path | None, name: str) -> None:
        self._directory = directory
        self._name = name

    def send(self, alerts: Sequence[QueuedAlert], claim: Claim) -> None:
        """Append alerts that are not in the file yet.

        Raises:
            DeliveryError: the file cannot be written.
            ClaimError: another process has taken over.
        """
        if self._directory is None:
            raise DeliveryError(
                "an object store has no files to append to; name a directory with `--alerts`"
            )
        try:
            make_directory(self._directory)
            path = resolve(self._directory, self._name)
            make_directory(path.parent)
            with _locked(path) as file:
                _remove_torn_line(file)
                known = _ids_in(file, {each.id for each in alerts if each.attempts > 1})
                claim.require(alerts)
                _append(file, [each for each in alerts if each.id not in known])
                fault.hit("after_append")
        except OSError as error:
            raise DeliveryError(f"it cannot be written: {error.strerror or error}") from error
        except InputError as error:
            raise DeliveryError(error.diagnostics[0].message) from error


def truncate_files(directory: Path) -> None:
    """Remove all lines from the files in a directory."""
    for path in sorted(directory.rglob("*")):
        if path.is_file() and not path.is_symlink():
            with _locked(path) as file:
                os.ftruncate(file, 0)
                os.fsync(file)


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Open a file under an exclusive lock."""
    limit = time.monotonic() + LOCK_TIMEOUT_SECONDS
    while True:
        is_new = not path.exists()
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(path, flags, 0o666)
        try:
            if _try_lock(file, path):
                if is_new:
                    sync_path(path.parent)
                yield file
                return
        finally:
            os.close(file)
        if time.monotonic() > limit:
            raise DeliveryError("other processes keep it locked")
        time.sleep(0.02)


def _try_lock(file: int, path: Path) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Somebody may have replaced the file between our open and our lock.
        return os.fstat(file).st_ino == path.stat().st_ino
    except (BlockingIOError, FileNotFoundError):
        return False


def _remove_torn_line(file: int) -> None:
    """Remove a last line that was only partly written."""
    size = start = os.fstat(file).st_size
    tail = b""
    while start and b"\n" not in tail:
        length = min(BLOCK_BYTES, start)
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


def _ids_in(file: int, ids: set[str]) -> set[str]:
    """Return which of some alerts are in a file."""
    if not ids:
        return set()
    with os.fdopen(os.dup(file), "rb") as stream:
        stream.seek(0)
        found = (_ID.match(line) for line in stream)
        return ids & {each[1].decode() for each in found if each is not None}


def _append(file: int, alerts: Sequence[QueuedAlert]) -> None:
    lines = (json.dumps(each.as_json(), ensure_ascii=False) for each in alerts)
    data = memoryview("".join(f"{line}\n" for line in lines).encode("utf-8"))
    size = os.fstat(file).st_size
    try:
        while data:
            data = data[os.write(file, data) :]
        os.fsync(file)
    except OSError:
        with suppress(OSError):  # no partial lines on a full disk
            os.ftruncate(file, size)
        raise
