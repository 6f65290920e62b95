"""File names of `.input` and `.output`, resolved under a configured root that they cannot leave.

Names of objects are accepted for what is read. Root and base may be of different kinds, `--root
s3://bucket` beside `-F facts`: then objects must lie in the root, and files in the base.
"""

import re
import stat
from pathlib import Path

from corollary.errors import InputError
from corollary.source import Span
from corollary.warehouse.files.object_path import ObjectPath
from corollary.warehouse.files.places import Place, is_below, is_object_url, place_of

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def resolve(
    root: Path,
    name: str,
    *,
    base: Path | None = None,
    span: Span | None = None,
    may_be_directory: bool = False,
) -> Path:
    """Return the real path of a file that the user named, if it lies under the root.

    Args:
        root: the directory that files must lie in, after all links have been followed.
        name: the name as written in the program; absolute, or relative to `base`.
        base: the directory of facts or of output; by default the root.
        span: the directive that names the file, for the message.
        may_be_directory: whether a directory is accepted too.

    Raises:
        InputError: `C0805`; the name is a URL, leads outside the root (by `..`, as an absolute
            path, or through a link), or is a directory, device, pipe or socket.
    """
    _refuse_unnamed(name, span)
    if _URL.match(name):
        raise _refused(name, "is a URL, and only files are read and written", span)
    # Links are followed first, so that the check below is about the real file.
    try:
        top = root.resolve()
        path = ((base or root) / name).resolve()
    except (OSError, RuntimeError):  # Python 3.11 and 3.12 raise RuntimeError for a loop of links
        raise _refused(name, "cannot be followed to a file", span) from None
    if not path.is_relative_to(top):
        raise _refused(
            name,
            f"leads outside the root `{root}`",
            span,
            "put the file under the root, or choose another root with --root DIR",
        )
    if problem := _problem(path, may_be_directory):
        raise _refused(name, problem, span)
    return path


def resolve_place(
    root: Place, name: str, *, base: Place, span: Span | None = None, may_be_directory: bool = False
) -> Place:
    """Return the real path of a file, or the name of an object, that the user named.

    Arguments and errors are those of `resolve`; a name of objects is none of them.
    """
    if not is_object_url(name) and isinstance(base, Path):
        top = root if isinstance(root, Path) else base
        return resolve(top, name, base=base, span=span, may_be_directory=may_be_directory)
    _refuse_unnamed(name, span)
    if is_object_url(name):
        place = place_of(name)
    elif _URL.match(name):
        raise _refused(name, "is a URL, but not one of objects", span)
    else:
        place = base / name
    top_of_objects = root if isinstance(root, ObjectPath) else base
    if not is_below(place, top_of_objects):
        raise _refused(
            name,
            f"leads outside the root `{root}`",
            span,
            "name the objects under the root, or choose another root with --root s3://BUCKET/NAME",
        )
    return place


def _refuse_unnamed(name: str, span: Span | None) -> None:
    if not name or "\0" in name:
        raise _refused(name, "is not a file name", span)


def _problem(path: Path, may_be_directory: bool) -> str | None:
    """Return why the path cannot be that of a file; one that does not exist yet can."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"cannot be followed to a file ({error.strerror})"
    if stat.S_ISDIR(mode) and may_be_directory:
        return None
    if stat.S_ISDIR(mode):
        return "is a directory, not a file"
    if not stat.S_ISREG(mode):
        return "is a device, pipe or socket, not a file"
    return None


def _refused(name: str, reason: str, span: Span | None, note: str | None = None) -> InputError:
    printable = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in name)
    return InputError.of("C0805", f"`{printable}` {reason}", span, note)
