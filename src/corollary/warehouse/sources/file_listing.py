"""The files that a name denotes: a file, all files in a folder, or those that match a pattern.

`*`, `?` and `[…]` match within a name, `**` any number of folders. Names that begin with `.` or `_`
are not data (writers use them internally) unless the pattern begins with the same. Links to files
are followed within the root; links to folders are refused, since they may form cycles.
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
from corollary.warehouse.files.input_files import Fingerprint, file_error, fingerprint_of
from corollary.warehouse.files.paths import resolve

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
    def display_name(self) -> str:
        """The name for messages."""
        return str(self.base / self.name)

    def resolve(self, name: str) -> Path:
        """Return the real path of a file or folder under the root."""
        return resolve(self.root, name, base=self.base, span=self.span, may_be_directory=True)


def list_files(place: SourceLocation) -> list[ListedFile]:
    """Return the files that exist now, ordered by name.

    Raises:
        InputError: `C0804`, there is none of that name; `C0805`, it leads outside the root.
    """
    try:
        path = place.resolve(place.name)
        if _WILDCARD.search(place.name) and not path.exists():
            folder, pattern = _split(place.name)
            found = _matching(place, place.resolve(folder), folder, pattern)
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


def _split(name: str) -> tuple[str, tuple[str, ...]]:
    """Return the folder before the first part with a wildcard, and the parts from there on."""
    parts = Path(name).parts
    first = next(at for at, part in enumerate(parts) if _WILDCARD.search(part))
    return str(Path(*parts[:first])), parts[first:]


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
