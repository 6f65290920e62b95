"""Notes and progress for the user of a terminal; the library itself is silent."""

import sys
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rich.status import Status


class Console(Protocol):
    """Where notes, warnings and progress go."""

    def note(self, text: str) -> None:
        """Print a line that is not a result."""

    def progress(self, text: str) -> None:
        """Replace the progress line."""

    def done(self) -> None:
        """Remove the progress line."""


class SilentConsole:
    """Prints nothing."""

    def note(self, text: str) -> None:
        """Ignored."""

    def progress(self, text: str) -> None:
        """Ignored."""

    def done(self) -> None:
        """Ignored."""


class TerminalConsole:
    """Writes to standard error: notes as lines, progress as a line that changes on a terminal."""

    def __init__(self, is_quiet: bool = False) -> None:
        self._is_quiet = is_quiet
        self._status: Status | None = None
        self._shows_progress = sys.stderr.isatty() and not is_quiet

    def note(self, text: str) -> None:
        """Print a line, unless quiet."""
        if not self._is_quiet:
            self.done()
            print(text, file=sys.stderr)

    def progress(self, text: str) -> None:
        """Replace the progress line, on a terminal only."""
        if not self._shows_progress:
            return
        if self._status is None:
            self._status = self._rich().status(text)
            self._status.start()
        else:
            self._status.update(text)

    def done(self) -> None:
        """Remove the progress line."""
        if self._status is not None:
            self._status.stop()
            self._status = None

    @staticmethod
    def _rich() -> Any:
        from rich.console import Console as RichConsole

        return RichConsole(stderr=True)
