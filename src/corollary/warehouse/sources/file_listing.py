"""The files that a name denotes: a file, all files in a folder, or those that match a pattern.

`*`, `?` and `[…]` match within a name, `**` any number of folders. Names that begin with `.` or `_`
are not data (writers use them internally) unless the pattern begins with the same. Links to files
are followed within the root; links to folders are refused, since they may form cycles. In an object
store a folder is the beginning of names.
"""

import errno
import os
import re
import stat
from collections.abc import Iterator, Sequence
from fnmatch import translate
from pathlib import Path

from corollary.data_class import dataclass
from corollary.errors import InputError
from corollary.source import Span
from corollary.warehouse.files.input_files import Fingerprint, file_error, fingerprint_of
from corollary.warehouse.files.object_path import ObjectPath
from corollary.warehouse.files.paths import resolve, resolve_place
from corollary.warehouse.files.places import Place, is_object_url

_WILDCARD = re.compile(r"[*?[]")
_EVERYTHING = ("**", "*")


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file of a source.

    Attributes:
        name: its name in positions and messages.
        path: its real path; as text, since folders may have many files.
    """

    name: str
    path: str
    fingerprint: Fingerprint


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """Where to look for files.

    Attributes:
        root: the place that files must lie in.
        base: the place that names are relative to.
        name: the name as written in the directive.
        span: the directive.
    """

    root: Place
    base: Place
    name: str
    span: Span | None = None

    @property
    def display_name(self) -> str:
        """The name for messages."""
        return self.shown(self.name)

    def shown(self, name: str) -> str:
        """Return what messages call a file."""
        return name if is_object_url(name) else str(self.base / name)

    def resolve(self, name: str) -> Place:
        """Return the real path of a file or folder under the root, or the name of objects."""
        base, span = self.base, self.span
        return resolve_place(self.root, name, base=base, span=span, may_be_directory=True)

    def resolve_file(self) -> Path:
        """Return the real path of the file, which is no folder and no object."""
        assert isinstance(self.base, Path)
        root = self.root if isinstance(self.root, Path) else self.base
        return resolve(root, self.name, base=self.base, span=self.span)


def list_files(place: SourceLocation) -> list[ListedFile]:
    """Return the files that exist now, ordered by name.

    Raises:
        InputError: `C0804`, there is none of that name; `C0805`, it leads outside the root.
    """
    try:
        path = place.resolve(place.name)
        if isinstance(path, ObjectPath):
            return sorted(_objects(place, path), key=lambda each: each.name)
        if _WILDCARD.search(place.name) and not path.exists():
            folder, pattern = _split(place.name)
            top = place.resolve(folder)
            assert isinstance(top, Path), "a name below a folder of files"
            found = _matching(place, top, folder, pattern)
        else:
            status = path.stat()
            if not stat.S_ISDIR(status.st_mode):
                return [ListedFile(place.name, str(path), fingerprint_of(status))]
            found = _matching(place, path, place.name, _EVERYTHING)
        # Two `**` may find a file several times.
        return [each for _, each in sorted({each.name: each for each in found}.items())]
    except OSError as error:
        raise file_error(place.display_name, "read", error, place.span) from None


def is_pattern(place: SourceLocation) -> bool:
    """Return whether a name is a pattern, and not the name of an existing file or folder."""
    return bool(_WILDCARD.search(place.name)) and not place.resolve(place.name).exists()


def is_single_file(place: SourceLocation) -> bool:
    """Return whether a name can denote one file only."""
    return not _WILDCARD.search(place.name) and not place.resolve(place.name).is_dir()


def _objects(place: SourceLocation, path: ObjectPath) -> Iterator[ListedFile]:
    """Yield the objects that a name denotes: one, all below it, or those that match a pattern."""
    name = place.name
    pattern: tuple[str, ...] = _EVERYTHING
    if path.is_file():
        yield ListedFile(place.name, str(path), fingerprint_of(path.stat()))
        return
    if _WILDCARD.search(place.name) and not path.is_dir():
        name, pattern = _split(place.name)
        found = place.resolve(name)
        assert isinstance(found, ObjectPath), "a name below that of objects"
        path = found
    elif not path.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such object", str(path))
    for each, status in path.entries():
        below = each.relative_to(path)
        if _matches(below.split("/"), pattern):
            shown = below if name in {"", "."} else f"{name}/{below}"
            yield ListedFile(shown, str(each), fingerprint_of(status))


def _matches(names: Sequence[str], pattern: Sequence[str]) -> bool:
    """Return whether the parts of a name match those of a pattern."""
    if not names or not pattern:
        return not names and not pattern
    part, rest = pattern[0], pattern[1:]
    if part == "**":
        is_below = not _is_hidden(names[0], part) and _matches(names[1:], pattern)
        return is_below or _matches(names, rest or ("*",))
    if re.fullmatch(translate(part), names[0]) is None or _is_hidden(names[0], part):
        return False
    return _matches(names[1:], rest)


def _split(name: str) -> tuple[str, tuple[str, ...]]:
    """Return the folder before the first part with a wildcard, and the parts from there on."""
    if is_object_url(name):
        store, key = name.split("://", 1)
        bucket, *parts = key.split("/")
        first = next(at for at, part in enumerate(parts) if _WILDCARD.search(part))
        return "/".join((f"{store}://{bucket}", *parts[:first])), tuple(parts[first:])
    parts = list(Path(name).parts)
    first = next(at for at, part in enumerate(parts) if _WILDCARD.search(part))
    return str(Path(*parts[:first])), tuple(parts[first:])


def _matching(
    place: SourceLocation, folder: Path, name: str, pattern: tuple[str, ...]
) -> Iterator[ListedFile]:
    """Yield the files below a folder that the parts of a pattern match."""
    part, rest = pattern[0], pattern[1:]
    if part == "..":
        message = f"`{place.name}` has `..` after a wildcard"
        raise InputError.of("C0805", message, place.span, "name the folder itself")
    is_deep = part == "**"
    if is_deep:
        yield from _matching(place, folder, name, rest or ("*",))
    is_match = re.compile(translate("*" if is_deep else part)).fullmatch
    with os.scandir(folder) as entries:
        for entry in entries:
            if not is_match(entry.name) or _is_hidden(entry.name, part):
                continue
            path = entry.name if name in {"", "."} else f"{name}/{entry.name}"
            if entry.is_dir():
                if entry.is_symlink() and (is_deep or rest):
                    message = f"`{path}` is a link to a folder, which is not followed"
                    raise InputError.of("C0805", message, place.span, "name that folder itself")
                if is_deep or rest:
                    below = pattern if is_deep else rest
                    yield from _matching(place, Path(entry.path), path, below)
            elif not is_deep and not rest and (found := _found(place, entry, path)):
                yield found


def _found(place: SourceLocation, entry: "os.DirEntry[str]", name: str) -> ListedFile | None:
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:  # removed since the folder was listed
        return None
    if stat.S_ISREG(status.st_mode):
        return ListedFile(name, entry.path, fingerprint_of(status))
    path = place.resolve(name)
    return ListedFile(name, str(path), fingerprint_of(path.stat()))


def _is_hidden(name: str, part: str) -> bool:
    return name[0] in "._" and not part.startswith(name[0])
