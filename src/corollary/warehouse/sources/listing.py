"""Which files a name stands for: a file, all files below a folder, or those that a pattern matches.

`*`, `?` and `[…]` match within a name, `**` any number of folders. Names that begin with `.` or `_`
are no data (writers put their own there) unless the pattern begins with the same. Links to files
are followed as far as the root reaches; links to folders are refused, since they may run in rings.
"""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import translate
from pathlib import Path

from corollary.errors import InputError
from corollary.source import Span
from corollary.warehouse.contents import Fingerprint, fingerprint_of, unusable
from corollary.warehouse.paths import resolve

_WILD = re.compile(r"[*?[]")
_EVERYTHING = ("**", "*")


@dataclass(frozen=True, slots=True)
class Found:
    """A file of a source.

    Attributes:
        name: what the position and messages call it.
        path: where it really is; as text, since folders may have many files.
    """

    name: str
    path: str
    fingerprint: Fingerprint


@dataclass(frozen=True, slots=True)
class Place:
    """Where to look for files.

    Attributes:
        root: the directory that files must lie in.
        base: the directory that names are relative to.
        name: the name as written in the directive.
        span: the directive.
    """

    root: Path
    base: Path
    name: str
    span: Span | None = None

    @property
    def shown(self) -> str:
        """The name as messages have it."""
        return str(self.base / self.name)

    def resolve(self, name: str) -> Path:
        """Return the real path of a file or folder under the root."""
        return resolve(self.root, name, base=self.base, span=self.span, may_be_directory=True)


def files_at(place: Place) -> list[Found]:
    """Return the files that a place has now, in the order of their names.

    Raises:
        InputError: `C0804`, there is none of that name; `C0805`, it is out of reach.
    """
    try:
        path = place.resolve(place.name)
        if _WILD.search(place.name) and not path.exists():
            folder, pattern = _split(place.name)
            found = _matching(place, place.resolve(folder), folder, pattern)
        else:
            status = path.stat()
            if not stat.S_ISDIR(status.st_mode):
                return [Found(place.name, str(path), fingerprint_of(status))]
            found = _matching(place, path, place.name, _EVERYTHING)
        # Two `**` reach a file in several ways.
        return [each for _, each in sorted({each.name: each for each in found}.items())]
    except OSError as error:
        raise unusable(place.shown, "read", error, place.span) from None


def is_wild(place: Place) -> bool:
    """Return whether a name is a pattern, and not that of a file or folder."""
    return bool(_WILD.search(place.name)) and not place.resolve(place.name).exists()


def is_one_file(place: Place) -> bool:
    """Return whether a name can stand for one file only."""
    return not _WILD.search(place.name) and not place.resolve(place.name).is_dir()


def _split(name: str) -> tuple[str, tuple[str, ...]]:
    """Return the folder before the first wild part, and the parts from there on."""
    parts = Path(name).parts
    first = next(at for at, part in enumerate(parts) if _WILD.search(part))
    return str(Path(*parts[:first])), parts[first:]


def _matching(place: Place, folder: Path, name: str, pattern: tuple[str, ...]) -> Iterator[Found]:
    """Yield the files below a folder that the parts of a pattern match."""
    part, rest = pattern[0], pattern[1:]
    if part == "..":
        message = f"`{place.name}` has `..` behind a wild part"
        raise InputError.of("C0805", message, place.span, "name the folder itself")
    is_deep = part == "**"
    if is_deep:
        yield from _matching(place, folder, name, rest or ("*",))
    is_match = re.compile(translate("*" if is_deep else part)).fullmatch
    with os.scandir(folder) as entries:
        for entry in entries:
            if not is_match(entry.name) or _is_hidden(entry.name, part):
                continue
            called = entry.name if name in {"", "."} else f"{name}/{entry.name}"
            if entry.is_dir():
                if entry.is_symlink() and (is_deep or rest):
                    message = f"`{called}` is a link to a folder, which is not followed"
                    raise InputError.of("C0805", message, place.span, "name that folder itself")
                if is_deep or rest:
                    below = pattern if is_deep else rest
                    yield from _matching(place, Path(entry.path), called, below)
            elif not is_deep and not rest and (found := _found(place, entry, called)):
                yield found


def _found(place: Place, entry: "os.DirEntry[str]", name: str) -> Found | None:
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:  # it has gone since the folder was listed
        return None
    if stat.S_ISREG(status.st_mode):
        return Found(name, entry.path, fingerprint_of(status))
    path = place.resolve(name)
    return Found(name, str(path), fingerprint_of(path.stat()))


def _is_hidden(name: str, part: str) -> bool:
    return name[0] in "._" and not part.startswith(name[0])
