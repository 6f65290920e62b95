"""Directories and objects for the files of one process, which go with it.

They are removed when they are closed, when their owner is collected, or when the process ends. A
process that is killed leaves them behind. The next one that makes a directory of the same kind in
the same place sees that nobody holds its lock any more, and removes it. Objects have no locks: an
owner that lives writes one of them again from time to time, and `corollary gc` removes what nobody
has written for long.
"""

import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from threading import Event, Thread
from typing import IO, Any
from uuid import uuid4

from corollary.registry import EXTENSIONS

LOCK_SUFFIX = ".lock"
ALIVE = "alive"
"""The object that an owner writes again."""
ALIVE_SECONDS = 600.0
"""How often it does."""


class ScratchDirectory:
    """A directory that is removed with its owner.

    Args:
        prefix: the beginning of its name.
        parent: where it is made; in the directory of temporary files, if it is not given or cannot
            be written. Directories that are made for it go with it, once nobody else uses them.
    """

    def __init__(self, prefix: str, parent: Path | None = None) -> None:
        temporary = Path(tempfile.gettempdir())
        try:
            self.path, lock, made = _make(prefix, parent or temporary)
        except OSError:
            if parent is None:
                raise
            self.path, lock, made = _make(prefix, temporary)
        self._finalizer = weakref.finalize(self, _remove, self.path, lock, os.getpid(), made)

    def close(self) -> None:
        """Remove it."""
        self._finalizer()


class ScratchObjects:
    """The beginning of names in an object store; what has it is removed with its owner.

    Args:
        prefix: the beginning of the last part.
        parent: the place before it.

    Attributes:
        directory: one of this machine, for copies.
    """

    def __init__(self, prefix: str, parent: str) -> None:
        self.path = f"{parent}/{prefix}-{uuid4().hex}"
        self.directory = ScratchDirectory(prefix)
        place, closed = EXTENSIONS.place_of(self.path), Event()
        (place / ALIVE).write_bytes(b"")
        Thread(target=_stay_alive, args=(place / ALIVE, closed), daemon=True).start()
        self._finalizer = weakref.finalize(self, _remove_objects, place, closed, os.getpid())

    def close(self) -> None:
        """Remove them."""
        self._finalizer()
        self.directory.close()


def _stay_alive(place: Any, closed: Event) -> None:
    while not closed.wait(ALIVE_SECONDS):
        with suppress(OSError):  # the next time
            place.write_bytes(b"")


def _remove_objects(place: Any, closed: Event, owner: int) -> None:
    if os.getpid() == owner:
        closed.set()
        with suppress(OSError):  # `corollary gc` will
            names = [path.relative_to(place) for path, _ in place.entries()]
            EXTENSIONS.remove_files(place, names)


def _make(prefix: str, root: Path) -> tuple[Path, IO[bytes], list[Path]]:
    """Make a directory; return it, its lock, and those made for it, the innermost first."""
    made = [each for each in (root, *root.parents) if not each.exists()]
    root.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(root, prefix)
    while True:
        path = Path(tempfile.mkdtemp(prefix=f"{prefix}-", dir=root)).absolute()
        lock = Path(f"{path}{LOCK_SUFFIX}").open("wb")  # noqa: SIM115 - held by the finalizer
        flock(lock, LOCK_EX)
        if path.exists():
            return path, lock, made
        lock.close()  # before it was locked, another process has taken it for abandoned


def _remove(path: Path, lock: IO[bytes], owner: int, made: list[Path]) -> None:
    if os.getpid() == owner:  # not in a process that was forked from it
        shutil.rmtree(path, ignore_errors=True)
        with suppress(OSError):
            Path(f"{path}{LOCK_SUFFIX}").unlink(missing_ok=True)
            for each in made:
                each.rmdir()  # unless others use it
    lock.close()


def _remove_abandoned(root: Path, prefix: str) -> None:
    """Remove the directories whose process was killed."""
    for found in root.glob(f"{prefix}-*{LOCK_SUFFIX}"):
        with suppress(OSError), found.open("rb") as lock:
            flock(lock, LOCK_EX | LOCK_NB)  # fails if somebody holds it
            shutil.rmtree(str(found).removesuffix(LOCK_SUFFIX), ignore_errors=True)
            found.unlink()
