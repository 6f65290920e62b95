"""Files of a program on disk: reading them, and finding what they include."""

from pathlib import Path

from corollary.errors import InputError
from corollary.frontends.datalog.preprocess import Include
from corollary.source import SourceFile


def read_source(path: Path) -> SourceFile:
    """Return a file of a program, under the name that was given for it."""
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = (error.strerror or "unknown error").lower()
        raise InputError.of("C0104", f"The file `{path}` cannot be read: {reason}.") from None
    try:
        return SourceFile(str(path), data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError.of(
            "C0101",
            f"The file `{path}` is not UTF-8 text (byte {error.start}, line {line}).",
            note="save it in the encoding UTF-8",
        ) from None


def include_under(root: Path) -> Include:
    """Return the function that finds included files beside the including one, under `root`."""
    limit = root.resolve()

    def include(name: str, source: SourceFile) -> SourceFile:
        path = Path(source.name).parent / name
        try:
            is_inside = path.resolve().is_relative_to(limit)
        except (OSError, RuntimeError, ValueError):
            is_inside = False
        if not is_inside:
            message = f"The file `{name}` lies outside the directory `{root}`."
            raise InputError.of("C0104", message)
        return read_source(_tidy(path))

    return include


def _tidy(path: Path) -> Path:
    """Return the path without `x/..`, so that one file has one name."""
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts and parts[-1] not in ("..", path.anchor):
            parts.pop()
        else:
            parts.append(part)
    return Path(*parts)
