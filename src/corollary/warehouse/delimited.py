"""Facts files in Soufflé's form: read, write, write several at once, print.

A file is read by vectors (`fast`) where it is plain, and record by record (`exact`) where anything
is odd or findings are collected. Output is sorted, and a file appears under its name only when it
is complete.
"""

import contextlib
import gzip
import io
import os
import secrets
import stat
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from corollary.core.arrow import nullary_table, schema_of, sort
from corollary.core.program import Directive, Relation
from corollary.errors import Diagnostic, InputError
from corollary.source import Span
from corollary.warehouse import exact, fast
from corollary.warehouse.dialect import Dialect, dialect_of
from corollary.warehouse.lines import lines_of

_GZIP = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MOST_FINDINGS = 20
PIECE_SIZE = 2**18
HARMLESS_SIZE = 256 * 2**20
HIGHEST_RATIO = 200
"""A compressed file may expand to more than the harmless size only so many times."""


@dataclass(frozen=True, slots=True)
class Output:
    """One file to write.

    Attributes:
        path: where, already resolved (`paths.resolve`).
    """

    table: pa.Table
    path: Path
    relation: Relation
    directive: Directive


def read(
    path: Path,
    relation: Relation,
    directive: Directive,
    *,
    name: str | None = None,
    quarantine: list[Diagnostic] | None = None,
) -> pa.Table:
    """Return the rows of a facts file.

    Args:
        path: the file, already resolved (`paths.resolve`).
        relation: the relation that the rows are of.
        directive: the `.input` with its parameters.
        name: what messages call the file; its path where nothing is said.
        quarantine: takes one finding for each malformed record instead of raising; the record's
            text is `finding.span.file.text`.

    Raises:
        InputError: `C0801` to `C0804` and `C0806`.
    """
    called = str(path) if name is None else name
    try:
        data = _content(path, called, directive.span)
    except OSError as error:
        raise _unusable(called, "read", error, directive.span) from None
    return _read(data, called, relation, directive, quarantine)


def read_stream(
    stream: BinaryIO,
    relation: Relation,
    directive: Directive,
    *,
    name: str = "<stdin>",
    quarantine: list[Diagnostic] | None = None,
) -> pa.Table:
    """Return the rows that a stream holds up to its end; otherwise like `read`."""
    try:
        data = stream.read()
    except OSError as error:
        raise _unusable(name, "read", error, directive.span) from None
    return _read(data, name, relation, directive, quarantine)


def write(
    table: pa.Table, target: Path | BinaryIO, relation: Relation, directive: Directive
) -> None:
    """Write the rows, sorted, to a file or a stream.

    Raises:
        InputError: `C0804`, `C0806` or `C0807`; a file is then as it was before.
    """
    if isinstance(target, Path):
        write_all([Output(table, target, relation, directive)])
    else:
        _write(table, target, relation, directive)


def write_all(outputs: Sequence[Output]) -> None:
    """Write several files: first all of them under temporary names, then all renamed.

    Raises:
        InputError: like `write`; no file has changed then, unless renaming itself failed.
    """
    refuse_clashes((output.directive, output.path) for output in outputs)
    written: list[tuple[Path, Output]] = []
    made = _missing_directories(outputs)
    is_done = False
    try:
        for output in outputs:
            with _reported(output):
                output.path.parent.mkdir(parents=True, exist_ok=True)
                temporary = output.path.with_name(f".corollary-{secrets.token_hex(8)}.tmp")
                with temporary.open("xb") as stream:
                    written.append((temporary, output))
                    _write(output.table, stream, output.relation, output.directive)
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


def _missing_directories(outputs: Sequence[Output]) -> list[Path]:
    """Return the directories that writing will make, the innermost first."""
    missing = {
        directory
        for output in outputs
        for directory in output.path.parents
        if not directory.exists()
    }
    return sorted(missing, key=lambda directory: len(directory.parts), reverse=True)


def print_rows(table: pa.Table, stream: BinaryIO, relation: Relation, directive: Directive) -> None:
    """Write the rows, sorted, as Soufflé prints a relation with `IO=stdout`."""
    dialect = dialect_of(relation, directive)
    stream.write(f"---------------\n{relation.name}\n".encode())
    rows = lines_of(sort(table), relation, directive, dialect, is_checked=False)
    if dialect.has_header and relation.types:
        stream.write(next(rows))
    stream.write(b"===============\n")
    stream.writelines(rows)
    stream.write(b"===============\n")


def _read(
    data: bytes,
    name: str,
    relation: Relation,
    directive: Directive,
    quarantine: list[Diagnostic] | None,
) -> pa.Table:
    dialect = dialect_of(relation, directive)
    if data.startswith(_GZIP):
        data = _expanded(data, name, directive.span)
    data = data.removeprefix(_BYTE_ORDER_MARK)
    table = fast.read(data, relation, dialect)
    if table is not None:
        return table
    most = MOST_FINDINGS + 1 if quarantine is None else None
    malformed: list[list[Diagnostic]] = []
    tables: list[pa.Table] = []
    for piece, line in _pieces(data, dialect):
        table = fast.read(piece, relation, dialect)
        if table is None:
            table = exact.read(
                piece, name, relation, dialect, malformed=malformed, most=most, first_line=line
            )
        tables.append(table)
        if most is not None and len(malformed) >= most:
            break
        dialect = replace(dialect, has_header=False)
    if quarantine is not None:
        quarantine += [findings[0] for findings in malformed]
    elif malformed:
        raise InputError(_first([found for findings in malformed for found in findings], name))
    if not relation.types:
        return nullary_table(min(1, sum(table.num_rows for table in tables)))
    return pa.concat_tables([schema_of(relation).empty_table(), *tables])


def _pieces(data: bytes, dialect: Dialect) -> Iterator[tuple[bytes, int]]:
    """Yield pieces of whole lines with the number of their first line.

    So a few odd lines in a big file cost little. Quoted fields may hold line breaks: such a file
    is one piece.
    """
    if dialect.is_quoted and b'"' in data:
        yield data, 1
        return
    start, line = 0, 1
    while start < len(data):
        end = data.find(b"\n", start + PIECE_SIZE) + 1 or len(data)
        piece = data[start:end]
        yield piece, line
        start, line = end, line + piece.count(b"\n")


def _first(findings: list[Diagnostic], name: str) -> list[Diagnostic]:
    if len(findings) <= MOST_FINDINGS:
        return findings
    more = f"and more in `{name}`: only the first {MOST_FINDINGS} findings are shown"
    return [*findings[:MOST_FINDINGS], Diagnostic(findings[MOST_FINDINGS].code, more)]


def _content(path: Path, name: str, span: Span | None) -> bytes:
    # Opening a pipe without this flag would wait for its writer.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise InputError.of("C0804", f"`{name}` cannot be read: it is not a file", span)
        return file.read()


def _expanded(data: bytes, name: str, span: Span | None) -> bytes:
    limit = max(HARMLESS_SIZE, HIGHEST_RATIO * len(data))
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            content = file.read(limit + 1)
    except (EOFError, OSError, zlib.error) as error:
        message = f"`{name}` cannot be read: it is not a sound gzip file ({error})"
        raise InputError.of("C0804", message, span) from None
    if len(content) > limit:
        message = f"`{name}` cannot be read: it expands to more than {HIGHEST_RATIO} times its size"
        raise InputError.of("C0804", message, span, "decompress it first")
    return content


def _write(table: pa.Table, stream: BinaryIO, relation: Relation, directive: Directive) -> None:
    dialect = dialect_of(relation, directive)
    lines: Iterable[bytes] = lines_of(sort(table), relation, directive, dialect)
    if dialect.is_compressed:
        # Neither time nor name, so that equal rows make equal files.
        with gzip.GzipFile("", "wb", 6, stream, mtime=0) as packed:
            packed.writelines(lines)
    else:
        stream.writelines(lines)


def refuse_clashes(outputs: Iterable[tuple[Directive, Path]]) -> None:
    """Raise an InputError (`C0806`) if two outputs go to one file."""
    first: dict[Path, Directive] = {}
    for directive, path in outputs:
        other = first.setdefault(path, directive)
        if other is not directive:
            names = f"`{other.relation}` and `{directive.relation}`"
            message = f"{names} are both written to `{path}`"
            raise InputError.of("C0806", message, directive.span, "give one a filename")


@contextlib.contextmanager
def _reported(output: Output) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        span = output.directive.span
        raise _unusable(str(output.path), "written", error, span) from None


def _unusable(name: str, verb: str, error: OSError, span: Span | None) -> InputError:
    reason = error.strerror or str(error)
    return InputError.of("C0804", f"`{name}` cannot be {verb}: {reason}", span)
