"""Output files: several at once, all or none, each under its name only when complete."""

import contextlib
import gzip
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa

from corollary.core.program import Directive, Relation
from corollary.data_class import dataclass
from corollary.errors import InputError
from corollary.warehouse.files import input_files
from corollary.warehouse.formats import delimited

Writer = Callable[[pa.Table, BinaryIO, Relation, Directive], None]
"""Writes the rows of a relation, sorted, to a stream."""


@dataclass(frozen=True, slots=True)
class OutputFile:
    """One file to write.

    Attributes:
        path: where, already resolved (`paths.resolve`).
        directive: the `.output` with its parameters.
        writer: writes the format.
    """

    table: pa.Table
    path: Path
    relation: Relation
    directive: Directive
    writer: Writer = delimited.write

    def write(self, stream: BinaryIO) -> None:
        """Write the file's content to a stream."""
        if self.directive.parameter("compress") == "true":
            # No time and no name in the header, so that equal rows make equal files.
            with gzip.GzipFile("", "wb", 6, stream, mtime=0) as packed:
                self.writer(self.table, cast(BinaryIO, packed), self.relation, self.directive)
        else:
            self.writer(self.table, stream, self.relation, self.directive)


def write_outputs(outputs: Sequence[OutputFile]) -> None:
    """Write several files: first all of them under temporary names, then all renamed.

    Raises:
        InputError: `C0804`, `C0806` or `C0807`; no file has changed then, unless renaming itself
            failed.
    """
    check_distinct_paths((output.directive, output.path) for output in outputs)
    written: list[tuple[Path, OutputFile]] = []
    made = _missing_directories(outputs)
    is_done = False
    try:
        for output in outputs:
            with _reported(output):
                output.path.parent.mkdir(parents=True, exist_ok=True)
                temporary = output.path.with_name(f".corollary-{secrets.token_hex(8)}.tmp")
                with temporary.open("xb") as stream:
                    written.append((temporary, output))
                    output.write(stream)
                if output.path.exists():
                    temporary.chmod(stat.S_IMODE(output.path.stat().st_mode))
        for temporary, output in written:
            with _reported(output):
                temporary.replace(output.path)
        is_done = True
    finally:
        for temporary, _ in written:
            temporary.unlink(missing_ok=True)
        for directory in () if is_done else made:
            with contextlib.suppress(OSError):
                directory.rmdir()


def check_distinct_paths(outputs: Iterable[tuple[Directive, Path]]) -> None:
    """Raise an InputError (`C0806`) if two outputs go to one file."""
    first: dict[Path, Directive] = {}
    for directive, path in outputs:
        other = first.setdefault(path, directive)
        if other is not directive:
            names = f"`{other.relation}` and `{directive.relation}`"
            message = f"{names} are both written to `{path}`"
            raise InputError.of("C0806", message, directive.span, "give one a filename")


def _missing_directories(outputs: Sequence[OutputFile]) -> list[Path]:
    """Return the directories that writing will create, the innermost first."""
    missing = {
        directory
        for output in outputs
        for directory in output.path.parents
        if not directory.exists()
    }
    return sorted(missing, key=lambda directory: len(directory.parts), reverse=True)


@contextlib.contextmanager
def _reported(output: OutputFile) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        span = output.directive.span
        raise input_files.file_error(str(output.path), "written", error, span) from None
