"""What a command prints: on the terminal, or into a recording where a server runs it for a client.

A command that a server runs for a client reads the server's database instead of opening one, and
what it would print is recorded, in order, so that the client prints the same.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from typing import TYPE_CHECKING, Any

import click

from corollary.console import TerminalConsole
from corollary.data_class import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

    from corollary.database.database import Database

WIDTH_WITHOUT_TERMINAL = 100


@dataclass(slots=True)
class Recording:
    """A command that runs on a server.

    Attributes:
        database: the one of the server.
        place: where it is; the client may call it by another name.
        width: that of the client's terminal.
        is_terminal: whether the client's standard error is a terminal.
        rows: the rows of files that the client has read, by the name of the file.
        changes: the content of the file of changes that the client has read.
        output: what was printed: `out` or `err`, and the text.
    """

    database: "Database"
    place: str
    width: int
    is_terminal: bool
    rows: "Mapping[str, pa.Table]" = field(default_factory=dict)
    changes: bytes = b""
    output: list[tuple[str, str]] = field(default_factory=list)

    def add(self, stream: str, text: str) -> None:
        """Add what is printed next."""
        if self.output and self.output[-1][0] == stream:
            text = self.output.pop()[1] + text
        self.output.append((stream, text))


_CURRENT: ContextVar[Recording | None] = ContextVar("recording", default=None)


def current_recording() -> Recording | None:
    """Return the recording that is made; None if the command prints on the terminal."""
    return _CURRENT.get()


@contextmanager
def recording_to(recording: Recording) -> Iterator[None]:
    """Record what a command prints."""
    token = _CURRENT.set(recording)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def echo(text: Any, *, nl: bool = True, err: bool = False) -> None:
    """Print as `click.echo` does, or record it."""
    recording = current_recording()
    if recording is None:
        click.echo(text, nl=nl, err=err)
        return
    line = text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else str(text)
    recording.add("err" if err else "out", f"{line}\n" if nl else line)


def terminal_columns() -> int:
    """Return the width of the terminal, that of the client if there is one."""
    recording = current_recording()
    if recording is not None:
        return recording.width
    return shutil.get_terminal_size((WIDTH_WITHOUT_TERMINAL, 24)).columns


def open_console(
    is_quiet: bool = False, *, is_verbose: bool = False, allowed: frozenset[str] = frozenset()
) -> TerminalConsole:
    """Return the console of a command."""
    recording = current_recording()
    if recording is None:
        return TerminalConsole(is_quiet, is_verbose=is_verbose, allowed=allowed)
    return RecordingConsole(recording, is_quiet, is_verbose=is_verbose, allowed=allowed)


class RecordingConsole(TerminalConsole):
    """Records the lines that stay; there is no line that changes."""

    def __init__(self, recording: Recording, is_quiet: bool, **settings: Any) -> None:
        stream: Any = _RecordingStream(recording)
        super().__init__(is_quiet, stream=stream, **settings)

    def _draw(self, now: float) -> None:
        """Draw nothing: the client would see it when all is over."""


class _RecordingStream:
    """Standard error of a client, as far as a console needs it."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def write(self, text: str) -> int:
        self._recording.add("err", text)
        return len(text)

    def flush(self) -> None:
        """Nothing is to be done."""

    def isatty(self) -> bool:
        return self._recording.is_terminal
