"""Files of partitions that lie in an object store, and are fetched when they are first opened.

The directory of partitions has a note for each of them, `NAME.origin`, which says where its files
are. Who opens `NAME` and does not find it fetches it: into a place of its own first, which then
gets the name, so that two tasks may do it at once. What was fetched is a cache. Beyond
`COROLLARY_CACHE_BYTES` those files go that were opened longest ago; who has them mapped keeps them,
and who opens them next fetches them again.
"""

import os
import pickle
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from corollary.core.engine import FileOrigin
from corollary.errors import WarehouseError

ORIGIN_SUFFIX = ".origin"
"""The end of the name of a note."""

CACHE_VARIABLE = "COROLLARY_CACHE_BYTES"
"""The environment variable that bounds the files which were fetched."""

CACHE_DEFAULT_BYTES = 1 << 34

OPENING_MAX_TRIES = 5
"""Files may be removed from the cache while they are opened: then they are fetched again."""

Opened = TypeVar("Opened")


def note_origins(root: Path, name: str, origins: Mapping[str, FileOrigin]) -> None:
    """Say where a file of a directory lies, or, by their names, the files of a directory in it.

    Args:
        root: the directory of partitions.
        name: of the file or directory there.
        origins: by name; that of a single file is empty.
    """
    (root / f"{name}{ORIGIN_SUFFIX}").write_bytes(pickle.dumps(dict(origins), protocol=5))


def origins_of(root: str | Path, name: str) -> dict[str, FileOrigin] | None:
    """Return where the files of a name lie; None if they are here only."""
    try:
        note = Path(root, f"{name}{ORIGIN_SUFFIX}").read_bytes()
    except FileNotFoundError:
        return None
    found: dict[str, FileOrigin] = pickle.loads(note)  # noqa: S301 - we have written it
    return found


def with_file(root: str, name: str, use: Callable[[Path], Opened]) -> Opened:
    """Return what a function makes of a file or directory, which is fetched if it is not here.

    Raises:
        WarehouseError: it cannot be fetched.
    """
    path = Path(root, name)
    for _ in range(OPENING_MAX_TRIES - 1):
        try:
            found = use(path)
        except FileNotFoundError:
            _fetch(path)
            continue
        _note_use(path)
        return found
    return use(path)


def _note_use(path: Path) -> None:
    with suppress(OSError):  # it has no note, or only the owner of the directory may do it
        os.utime(f"{path}{ORIGIN_SUFFIX}")


def _fetch(path: Path) -> None:
    """Fetch the files of a name.

    Raises:
        FileNotFoundError: it has no origin.
        WarehouseError: a request has failed.
    """
    origins = origins_of(path.parent, path.name)
    if origins is None:
        raise FileNotFoundError(path)
    made = path.with_name(f"{path.name}.{uuid4().hex}")
    try:
        if "" in origins:
            _copy(origins[""], made)
        else:
            made.mkdir()
            for name, origin in origins.items():
                _copy(origin, made / name)
        with suppress(OSError):  # another task was first
            made.rename(path)
    finally:
        if made.is_dir():
            shutil.rmtree(made, ignore_errors=True)
        else:
            made.unlink(missing_ok=True)
    _evict(path)


def _copy(origin: FileOrigin, path: Path) -> None:
    try:
        path.write_bytes(origin.read_buffer())
    except OSError as error:
        raise WarehouseError.cannot_read(origin, error) from None


# --- the cache -----------------------------------------------------------------------------------


def cache_bytes() -> int:
    """Return how many bytes of fetched files are kept."""
    return int(os.environ.get(CACHE_VARIABLE) or CACHE_DEFAULT_BYTES)


def _evict(latest: Path) -> None:
    """Remove the files that were opened longest ago, while there are too many bytes of them."""
    held: list[tuple[float, int, Path]] = []
    with os.scandir(latest.parent) as entries:
        notes = [each for each in entries if each.name.endswith(ORIGIN_SUFFIX)]
    for note in notes:
        path = Path(note.path.removesuffix(ORIGIN_SUFFIX))
        with suppress(OSError):
            used = time.time() if path == latest else note.stat().st_mtime
            held.append((used, _size(path), path))
    total, limit = sum(size for _, size, _ in held), cache_bytes()
    for _, size, path in sorted(held):
        if total <= limit or path == latest:
            break
        remove(path)
        total -= size


def _size(path: Path) -> int:
    if path.is_dir():
        return sum(each.stat().st_size for each in path.iterdir())
    return path.stat().st_size if path.exists() else 0


def remove(path: Path) -> None:
    """Remove a file or a directory, if it is there; at once, for those who open it meanwhile."""
    gone = path.with_name(f"{path.name}.{uuid4().hex}")
    with suppress(OSError):
        path.rename(gone)
        if gone.is_dir():
            shutil.rmtree(gone, ignore_errors=True)
        else:
            gone.unlink(missing_ok=True)
