"""Errors and diagnostics: each with a code, a sentence, a span and a note on how to fix it."""

import errno
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from corollary.data_class import dataclass
from corollary.source import SourceFile, Span

EXCERPT_MAX_CHARS = 160
"""Longer lines are clipped in an excerpt."""
BEFORE_CARET_MAX_CHARS = 60
"""The maximum number of characters before the caret in a clipped line."""
CATALOG_MIN_FREE_BYTES = 1 << 16
"""With less room than this on its disk, a catalog in a file cannot be written."""


class Severity(StrEnum):
    """How much a diagnostic matters."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding about the user's input.

    Attributes:
        code: stable identifier such as ``C0201``; the catalogue is `docs/diagnostics.md`.
        message: one sentence, with `names` in backquotes.
        span: the position in the user's text, if there is one.
        note: how to fix it.
        related: other positions, each with a remark (the links of a cycle, an earlier declaration).
    """

    code: str
    message: str
    span: Span | None = None
    note: str | None = None
    related: tuple[tuple[Span, str], ...] = ()
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        return render(self)

    def as_json(self) -> dict[str, Any]:
        """Return the diagnostic as a JSON object."""
        span = self.span
        position = (
            {"file": span.file.name, "line": span.line, "column": span.column} if span else {}
        )
        return {
            "code": self.code,
            "severity": str(self.severity),
            "message": self.message,
            **position,
            "note": self.note,
        }


def sort_by_position(
    findings: Iterable[Diagnostic], sources: Sequence[SourceFile]
) -> list[Diagnostic]:
    """Return findings in the order of the text, those without a position first."""
    files = {source.name: number for number, source in enumerate(sources)}

    def position(finding: Diagnostic) -> tuple[int, int, int]:
        span = finding.span
        return (files.get(span.file.name, 0), span.line, span.column) if span else (-1, 0, 0)

    return sorted(findings, key=position)


def render(diagnostic: Diagnostic) -> str:
    """Return the diagnostic as text: the sentence, the line with a caret, the note."""
    lines = [f"{diagnostic.severity}[{diagnostic.code}]: {diagnostic.message}"]
    span = diagnostic.span
    if span is not None:
        lines += _excerpt(span, "")
    while span is not None and span.instance is not None:
        span = span.instance
        lines += _excerpt(span, "instantiated here")
    for span, remark in diagnostic.related:
        lines += _excerpt(span, remark)
    if diagnostic.note:
        lines.append(f"  = {diagnostic.note}")
    return "\n".join(lines)


def _excerpt(span: Span, remark: str) -> list[str]:
    line = span.file.line(span.line)
    is_clipped = len(line) > EXCERPT_MAX_CHARS
    first = max(0, span.column - 1 - BEFORE_CARET_MAX_CHARS) if is_clipped else 0
    text = "".join(map(_printable, line[first : first + EXCERPT_MAX_CHARS]))
    number = str(span.line)
    margin = " " * len(number)
    visible = text.expandtabs(4)
    # Columns count characters, but the caret is placed below the text with tabs expanded.
    start = len(text[: span.column - 1 - first].expandtabs(4))
    last = span.end_column - 1 - first if span.end_line == span.line else len(text)
    width = max(1, len(text[:last].expandtabs(4)) - start)
    carets = f" {margin} | {' ' * start}{'^' * width} {remark}".rstrip()
    return [f" {margin}--> {span}", f" {number} | {visible}", carets]


def _printable(character: str) -> str:
    is_shown = character.isprintable() or character == "\t"
    return character if is_shown else "\N{REPLACEMENT CHARACTER}"


WHY_HINT = "; `--why` of `run` and `apply` "
"""Begins the end of a note that says how to get proofs."""


class CorollaryError(Exception):
    """The base of all errors that Corollary raises."""

    exit_code = 1


class InputError(CorollaryError):
    """The input (a program, facts, an option) is not acceptable; carries all findings at once."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(render(found) for found in self.diagnostics))

    # Errors of Spark tasks are pickled; by default `Exception` would pass the text, not the data.
    def __reduce__(self) -> tuple[type["InputError"], tuple[tuple[Diagnostic, ...]]]:
        return type(self), (self.diagnostics,)

    @classmethod
    def of(cls, code: str, message: str, span: Span | None = None, note: str | None = None) -> Self:
        """Return an error with a single finding."""
        return cls([Diagnostic(code, message, span, note)])


class LimitError(CorollaryError):
    """A limit on rounds, tuples, seconds or memory was exceeded; nothing was changed.

    Attributes:
        limit: which one, if it is known: `seconds`, `memory` …
    """

    exit_code = 5

    def __init__(self, message: str, limit: str | None = None) -> None:
        super().__init__(message)
        self.limit = limit


class EvaluationError(InputError):
    """A rule instance that holds has an expression without a value (overflow, division by zero)."""


class ConstraintError(InputError):
    """A key, a functional dependency or a constraint would be violated; nothing was changed.

    Attributes:
        why: proofs of what violates it, if they were asked for.
    """

    exit_code = 3
    why: Sequence[object] = ()

    def with_proofs(self, why: Sequence[object]) -> "ConstraintError":
        """Return the error with proofs; its notes do not say any more how to ask for them."""
        shown = (
            replace(each, note=None if each.note is None else each.note.partition(WHY_HINT)[0])
            for each in self.diagnostics
        )
        error = ConstraintError(shown)
        error.why = why
        return error


class AccessError(InputError):
    """A reader asks for something that was not granted."""


class ConflictError(CorollaryError):
    """Another transaction has committed first; nothing was changed."""

    exit_code = 4

    @classmethod
    def commit_taken(cls, number: int) -> "ConflictError":
        """Return the error of a commit whose number is taken."""
        return cls(f"another transaction made commit {number} first; nothing was changed")

    @classmethod
    def fenced(cls) -> "ConflictError":
        """Return the error of a writer whose intent `gc` has removed."""
        return cls(
            "this transaction took so long that `gc` gave it up; nothing was changed\n"
            "  = run it again, and let `gc` wait longer with `--keep-intents`"
        )


class ClaimError(CorollaryError):
    """Another process has taken over what this one was about to deliver; nothing was changed."""


SCAN_REFUSED = "C0996"
"""The code of what would read a large partitioned relation in a process without tasks."""

CHECK_STORE = "check bucket, endpoint and credentials, which the environment has, and do it again"
RESTORE = "restore the warehouse from a backup with `corollary restore`"


class WarehouseError(InputError):
    """A warehouse cannot be read or written as it is."""

    @classmethod
    def missing(cls, location: object, cure: str | None = None) -> "WarehouseError":
        """Return the error of a location without a warehouse."""
        text = f"There is no warehouse in `{location}`."
        cure = cure or "make one with `corollary run PROGRAM --warehouse DIR`"
        return cls([Diagnostic("C0930", text, None, cure)])

    @classmethod
    def cannot_write(cls, path: object, error: OSError) -> "WarehouseError":
        """Return the error of a file that cannot be written."""
        cure = "check the permissions of the directory; nothing was changed"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            cure = "make room on the disk; nothing was changed"
        elif "://" in str(path):
            cure = f"{CHECK_STORE}; nothing was changed"
        elif error.errno in (errno.EEXIST, errno.ENOTDIR):
            cure = "name a directory: there is a file in its place"
        text = f"`{path}` cannot be written: {error.strerror or error}."
        return cls([Diagnostic("C0932", text, None, cure)])

    @classmethod
    def cannot_read(cls, path: object, error: OSError) -> "WarehouseError":
        """Return the error of a file that is missing or cannot be read."""
        text = f"`{path}` cannot be read: {error.strerror or error}."
        cure = "restore the warehouse from a backup, or see with `corollary verify` what is left"
        if "://" in str(path) and not isinstance(error, FileNotFoundError):
            cure = CHECK_STORE
        elif error.errno in (errno.EACCES, errno.EPERM):
            cure = "check its permissions"
        return cls([Diagnostic("C0933", text, None, cure)])

    @classmethod
    def damaged(cls, path: object) -> "WarehouseError":
        """Return the error of a file with a wrong checksum."""
        text = f"`{path}` is damaged: its checksum is not the one that was noted."
        cure = "restore the file from a backup, or run `corollary verify --repair`"
        return cls([Diagnostic("C0934", text, None, cure)])

    @classmethod
    def other_format(cls, found: str, oldest: int, known: int) -> "WarehouseError":
        """Return the error of a warehouse that another version has written."""
        cure = (
            "use the version of corollary that has written it; or export it there with `corollary "
            "export --all`, and make a warehouse of that here with `corollary import`"
        )
        if found.isdecimal() and oldest <= int(found) < known:
            cure = f"bring it to format {known}: `corollary upgrade WAREHOUSE`"
        elif found.isdecimal() and int(found) < oldest:
            cure = "make a new one with `corollary run PROGRAM --warehouse DIR`"
        text = f"The warehouse has format {found}; this version of corollary knows {known}."
        return cls([Diagnostic("C0931", text, None, cure)])

    @classmethod
    def altered_table(cls, place: str, table: str) -> "WarehouseError":
        """Return the error of a table of the catalog that has other columns."""
        text = f"The catalog `{place}` is damaged: the table `{table}` has other columns."
        return cls([Diagnostic("C0934", text, None, RESTORE)])

    @classmethod
    def lost_catalog(cls, place: str, files: object) -> "WarehouseError":
        """Return the error of an empty catalog beside data files."""
        text = f"`{place}` is missing or empty, but there are data files in `{files}`."
        cure = (
            "put the catalog back, or make the warehouse again of a backup with `corollary "
            "restore`; name another place for a new one"
        )
        return cls([Diagnostic("C0933", text, None, cure)])

    @classmethod
    def foreign_database(cls, place: str, tables: Iterable[str]) -> "WarehouseError":
        """Return the error of a database that another program has made."""
        listed = ", ".join(f"`{name}`" for name in sorted(tables)[:3])
        text = f"`{place}` is the database of another program: it has the tables {listed}."
        cure = "choose another directory for the warehouse; nothing was changed"
        return cls([Diagnostic("C0930", text, None, cure)])

    @classmethod
    def catalog_failure(cls, location: str, error: Exception) -> "WarehouseError":
        """Return the error of a catalog that cannot be used."""
        reason = str(error).strip().splitlines()
        problem, place = reason[0] if reason else type(error).__name__, redact_password(location)
        code, text = "C0935", f"The catalog cannot be used: {problem}."
        cure = f"check that {place} can be reached and written; nothing was changed"
        if problem in ("file is not a database", "database disk image is malformed"):
            code, text = "C0934", f"The catalog `{place}` is damaged: {problem}."
            cure = RESTORE
        elif not location.startswith("postgresql:") and is_disk_full(Path(location).parent):
            code, text = "C0932", f"The catalog `{place}` cannot be written: the disk is full."
            cure = "make room: `corollary gc` removes files that nobody needs; nothing was changed"
        elif problem in ("unable to open database file", "attempt to write a readonly database"):
            code, text = "C0932", f"The catalog `{place}` cannot be opened and written: {problem}."
            cure = (
                "check the permissions of its directory, or copy the warehouse elsewhere; "
                "one that is read-only can be queried and exported"
            )
        return cls([Diagnostic(code, text, None, cure)])


class UnknownOutcomeError(WarehouseError):
    """The connection was lost while a transaction of the catalog was being committed."""

    @classmethod
    def at_commit(cls, location: str, error: Exception) -> "UnknownOutcomeError":
        """Return the error of any transaction."""
        place, reason = redact_password(location), str(error).strip().splitlines()
        text = (
            "The connection to the catalog was lost at the end of a transaction, and whether it "
            f"was made is not known: {reason[0] if reason else type(error).__name__}."
        )
        cure = f"when {place} can be reached again, do the same once more"
        return cls([Diagnostic("C0938", text, None, cure)])

    @classmethod
    def of_commit(cls, location: str, number: int, key: str | None) -> "UnknownOutcomeError":
        """Return the error of a commit that could not be looked up."""
        place = redact_password(location)
        text = (
            f"The connection to the catalog was lost while commit {number} was being made, and "
            "whether it was made is not known."
        )
        cure = f"when {place} can be reached again, `corollary log` shows whether it was; " + (
            "or do it once more with an idempotency key from the start"
            if key is None
            else f"or repeat it with the same key, `{key}`, which never does it twice"
        )
        return cls([Diagnostic("C0938", text, None, cure)])


def is_disk_full(directory: Path) -> bool:
    """Whether a disk has no room for the files that a catalog needs to be written."""
    try:
        return shutil.disk_usage(directory).free < CATALOG_MIN_FREE_BYTES
    except OSError:
        return False


def redact_password(url: str) -> str:
    """Return the location of a warehouse or a catalog, with `…` in place of a password.

    >>> redact_password("/w/catalog.sqlite"), redact_password("postgresql://me:secret@host/w")
    ('/w/catalog.sqlite', 'postgresql://me:…@host/w')
    """
    return re.sub(r"(://[^:/@]+):[^@]*@", r"\1:…@", url)
