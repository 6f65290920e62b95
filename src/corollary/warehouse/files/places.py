"""Places of files: a directory of this machine, or a part of an object store.

`place_of` reads a name. A `Place` has the methods of `pathlib.Path` that both kinds have; the
functions below, and those of `durable_files`, do the rest. Places can be pickled: Spark tasks read
and write through them, each with the credentials of its own environment.
"""

import re
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

from corollary.errors import WarehouseError, redact_password
from corollary.warehouse.files.object_path import ObjectPath, delete_objects
from corollary.warehouse.files.object_store import SCHEMES

Place: TypeAlias = Path | ObjectPath
"""The name of a file or directory, or of an object or the beginning of such names."""

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://([^/?#]*)/?([^?#]*)(.*)", re.DOTALL)


class FileEntry(NamedTuple):
    """A file below a place.

    Attributes:
        name: its name below the place.
        modified: when it was written, in seconds.
        has_other_names: whether it has a second name, as only files on a disk have.
    """

    name: str
    size: int
    modified: float
    has_other_names: bool = False


def is_object_url(name: str) -> bool:
    """Return whether a name is that of an object.

    >>> is_object_url("s3://bucket/a"), is_object_url("/a/b"), is_object_url("https://host/a")
    (True, False, False)
    """
    found = _URL.match(name)
    return found is not None and found[1].lower() in SCHEMES


def place_of(name: str) -> Place:
    """Return the place that a name denotes.

    Raises:
        WarehouseError: `C1551`, the URL is not that of objects, or has more than their name.
    """
    found = _URL.match(name)
    if found is None:
        return Path(name)
    scheme, bucket, key, rest = found[1].lower(), found[2], found[3], found[4]
    has_account = scheme in {"abfs", "abfss"}  # `abfss://container@account.dfs.core.windows.net`
    if scheme not in SCHEMES:
        known = ", ".join(f"`{each}://`" for each in SCHEMES)
        raise WarehouseError.of(
            "C1551",
            f"`{_hidden(name)}` is not the name of a directory, nor of objects.",
            None,
            f"name a directory, or objects with {known}",
        )
    if ":" in bucket or ("@" in bucket and not has_account) or rest or not bucket:
        raise WarehouseError.of(
            "C1551",
            f"`{_hidden(name)}` is not a name of objects: it has more than bucket and name, or "
            "less.",
            None,
            f"write `{scheme}://BUCKET/NAME`; credentials, region and endpoint belong into the "
            "environment",
        )
    return ObjectPath(f"{scheme}://{bucket}") / key


def _hidden(name: str) -> str:
    """Return a URL without a password, and without parameters, which may contain one."""
    return redact_password(name.partition("?")[0])


def is_below(place: Place, other: Place) -> bool:
    """Return whether a place is another, or in it; links are followed."""
    if isinstance(place, ObjectPath):
        return place.is_relative_to(other)
    return isinstance(other, Path) and place.resolve().is_relative_to(other.resolve())


def files_below(place: Place) -> Iterator[FileEntry]:
    """Yield all files below a place, at any depth; none if it does not exist."""
    if isinstance(place, ObjectPath):
        for path, status in place.entries():
            yield FileEntry(path.relative_to(place), status.st_size, status.st_mtime)
        return
    for each in place.rglob("*"):
        try:
            found = each.stat()
        except FileNotFoundError:  # removed by another process meanwhile
            continue
        if stat.S_ISREG(found.st_mode):
            yield FileEntry(
                str(each.relative_to(place)), found.st_size, found.st_mtime, found.st_nlink > 1
            )


def has_files(place: Place) -> bool:
    """Return whether there is any file directly in a directory that is in a place."""
    if isinstance(place, ObjectPath):
        return place.is_dir()
    try:
        return any(place.glob("*/*"))
    except FileNotFoundError:  # a directory in which others just remove something
        return True


def remove_files(place: Place, names: Iterable[str]) -> None:
    """Remove files below a place; those that do not exist are no error.

    Raises:
        OSError: one cannot be removed.
    """
    if isinstance(place, ObjectPath):
        delete_objects([place / name for name in names])
        return
    for name in names:
        (place / name).unlink(missing_ok=True)


def remove_tree(place: Place) -> None:
    """Remove a place with all files below it.

    Raises:
        OSError: one cannot be removed.
    """
    if isinstance(place, ObjectPath):
        delete_objects([path for path, _ in place.entries()])
    else:
        shutil.rmtree(place)
