"""Files that driver and tasks share: below a *root*, a directory or a place in an object store.

A directory is one that all machines see. Where the root is in an object store, each machine has a
directory of its own beside it: what a process writes there it also puts into the store, and who
does not find a file fetches it. No lock and no path is then shared by two machines.

The index of a warehouse in an object store has files elsewhere: `origins.json` says where. They are
fetched in the same way, into a name of their own first, so that two tasks may do it at once. What
was fetched is a cache. Beyond `COROLLARY_CACHE_BYTES` those files go that were opened longest ago;
who has them mapped keeps them, and who opens them next fetches them again.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import pyarrow as pa

from corollary.core.engine import FileOrigin
from corollary.errors import WarehouseError
from corollary.registry import EXTENSIONS

ORIGINS = "origins.json"
"""The file below a root that says where the files of an index are."""

CACHE_VARIABLE = "COROLLARY_CACHE_BYTES"
"""The environment variable that bounds the files which were fetched."""

CACHE_DEFAULT_BYTES = 1 << 34

CACHE_CHECKS = 16
"""How often a process looks at the size of the cache while it fills all of it."""

OPENING_MAX_TRIES = 5
"""Files may be removed from the cache while they are opened: then they are fetched again."""

Opened = TypeVar("Opened")

_directories: dict[str, Path] = {}
"""By root in an object store, the directory beside it."""

_origins: dict[str, dict[str, dict[str, str]]] = {}
"""By root and name, the URLs of the files that have it; that of a single file is named ""."""

_unchecked: dict[str, int] = {}
"""By root, how many bytes have come since the size of the cache was looked at."""


def is_in_store(root: str) -> bool:
    """Return whether a root is a place in an object store."""
    return "://" in root


@cache
def place_of(name: str) -> Any:
    """Return a path, or a place in an object store, which has the same methods."""
    return EXTENSIONS.place_of(name)


def use_directory(root: str, path: Path) -> None:
    """Let a directory be the one beside a root in an object store, in this process."""
    path.mkdir(exist_ok=True)
    _directories[root] = path


def forget(root: str) -> None:
    """Know nothing of a root any more: its files are gone."""
    for each in (_directories, _origins, _unchecked):
        each.pop(root, None)


def local_directory(root: str) -> Path:
    """Return where files below a root are written and opened on this machine.

    Spark removes what tasks have written with their executor.
    """
    if not is_in_store(root):
        return Path(root)
    if root not in _directories:
        own = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0] or tempfile.gettempdir()
        name = blake2b(root.encode(), digest_size=16).hexdigest()
        path = Path(own, f"corollary-{name}")
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        _directories[root] = path
    return _directories[root]


# --- writing -------------------------------------------------------------------------------------


def share(root: str, name: str) -> None:
    """Let other machines see a file or directory that was written here.

    Raises:
        WarehouseError: it cannot be put into the object store.
    """
    if not is_in_store(root):
        return
    path, target = local_directory(root) / name, place_of(root) / name
    for each in path.iterdir() if path.is_dir() else [path]:
        place = target if each == path else target / each.name
        data = pa.memory_map(str(each)).read_buffer()
        _count(root, path, data.size)
        try:
            place.create(data)
        except OSError as error:
            raise WarehouseError.cannot_write(place, error) from None


def write_file(root: str, name: str, data: bytes) -> None:
    """Write a file that others read once."""
    (place_of(root) / name).write_bytes(data)


def read_file(root: str, name: str) -> bytes:
    """Return what `write_file` has written."""
    found: bytes = (place_of(root) / name).read_bytes()
    return found


def remove_files(root: str, names: Iterable[str]) -> None:
    """Remove what `write_file` has written."""
    EXTENSIONS.remove_files(place_of(root), names)


def sweep(root: str, needed: set[str]) -> None:
    """Remove all files below a root but some, given by their paths, and what tells of origins."""
    directory = local_directory(root)
    with os.scandir(directory) as entries:
        names = [each.name for each in entries]
    for name in names:
        if name != ORIGINS and f"{root}/{name}" not in needed:
            remove(directory / name)
    if is_in_store(root):
        place = place_of(root)
        found = [path.relative_to(place) for path, _ in place.entries()]
        kept = {each.removeprefix(f"{root}/") for each in needed} | {ORIGINS}
        remove_files(root, [each for each in found if each.partition("/")[0] not in kept])


# --- reading -------------------------------------------------------------------------------------


def note_origins(root: str, origins: Mapping[str, Mapping[str, FileOrigin]]) -> None:
    """Say where files and directories lie whose names below a root are given.

    Args:
        root: of all of them.
        origins: by name, and then by the name of the file in the directory; that of a single file
            is empty.
    """
    known = _origins.setdefault(root, {})
    known |= {name: {file: str(at) for file, at in each.items()} for name, each in origins.items()}
    if known:
        write_file(root, ORIGINS, json.dumps(known).encode())


def origins_of(root: str, name: str) -> dict[str, str] | None:
    """Return where the files of a name lie, as far as this process knows; None if not elsewhere."""
    return _origins.get(root, {}).get(name)


def with_file(root: str, name: str, use: Callable[[Path], Opened]) -> Opened:
    """Return what a function makes of a file or directory, which is fetched if it is not here.

    Raises:
        WarehouseError: it cannot be fetched.
    """
    path = local_directory(root) / name
    for _ in range(OPENING_MAX_TRIES - 1):
        try:
            found = use(path)
        except FileNotFoundError:
            _fetch(root, path)
            continue
        if _is_cached(root, name):
            with suppress(OSError):  # only the owner of the file may do it
                os.utime(path)
        return found
    return use(path)


def _fetch(root: str, path: Path) -> None:
    """Fetch the files of a name.

    Raises:
        FileNotFoundError: it is nowhere.
        WarehouseError: a request has failed.
    """
    made = path.with_name(f"{path.name}.{uuid4().hex}")
    try:
        size = _copy_files(_find_files(root, path.name), made)
        with suppress(OSError):  # another task was first
            made.rename(path)
    finally:
        if made.is_dir():
            shutil.rmtree(made, ignore_errors=True)
        else:
            made.unlink(missing_ok=True)
    _count(root, path, size)


def _find_files(root: str, name: str) -> dict[str, Any]:
    """Return where the files of a name are fetched from."""
    place = place_of(root)
    if origins_of(root, name) is None:
        if is_in_store(root):
            if (place / name).is_file():
                return {"": place / name}
            if found := {each.name: each for each, _ in (place / name).entries()}:
                return found
        with suppress(FileNotFoundError):
            _origins[root] = json.loads(read_file(root, ORIGINS))
    origins = origins_of(root, name)
    if origins is None:
        raise FileNotFoundError(place / name)
    return {file: place_of(url) for file, url in origins.items()}


def _copy_files(files: Mapping[str, Any], path: Path) -> int:
    """Copy files to a directory, or the one without a name to a file; return how many bytes."""
    if "" not in files:
        path.mkdir()
    size = 0
    for name, origin in files.items():
        try:
            size += (path / name if name else path).write_bytes(origin.read_buffer())
        except OSError as error:
            raise WarehouseError.cannot_read(origin, error) from None
    return size


# --- the cache -----------------------------------------------------------------------------------


def cache_bytes() -> int:
    """Return how many bytes of fetched files are kept."""
    return int(os.environ.get(CACHE_VARIABLE) or CACHE_DEFAULT_BYTES)


def _is_cached(root: str, name: str) -> bool:
    """Whether a file here can be fetched again."""
    if "." in name:  # what is being fetched, and the file of origins
        return False
    return is_in_store(root) or origins_of(root, name) is not None


def _count(root: str, latest: Path, size: int) -> None:
    """Note that bytes have come; remove those files that were opened longest ago if need be."""
    _unchecked[root] = _unchecked.get(root, 0) + size
    limit = cache_bytes()
    if _unchecked[root] <= limit // CACHE_CHECKS:
        return
    _unchecked[root] = 0
    held: list[tuple[float, int, Path]] = []
    with os.scandir(latest.parent) as entries:
        paths = [Path(each.path) for each in entries if _is_cached(root, each.name)]
    for path in paths:
        with suppress(OSError):
            held.append((path.stat().st_mtime, _size(path), path))
    total = sum(each for _, each, _ in held)
    for _, each, path in sorted(held):
        if total <= limit:
            break
        if path != latest:
            remove(path)
            total -= each


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
