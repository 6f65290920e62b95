"""What the person at the terminal sees while something goes on; library use is silent."""

import sys
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rich.status import Status


class Console(Protocol):
    """Where notes, warnings and progress go."""

    def note(self, text: str) -> None:
        """Say something that is not a result."""

    def progress(self, text: str) -> None:
        """Replace the line that says what is going on."""

    def done(self) -> None:
        """Take the progress line away."""


class SilentConsole:
    """Says nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""

    def progress(self, text: str) -> None:
        """Show nothing."""

    def done(self) -> None:
        """Nothing to take away."""


class TerminalConsole:
    """Writes to standard error: notes as lines, progress as a line that changes on a terminal."""

    def __init__(self, is_quiet: bool = False) -> None:
        self._is_quiet = is_quiet
        self._status: Status | None = None
        self._shows_progress = sys.stderr.isatty() and not is_quiet

    def note(self, text: str) -> None:
        """Print a line, unless asked to be quiet."""
        if not self._is_quiet:
            self.done()
            print(text, file=sys.stderr)

    def progress(self, text: str) -> None:
        """Show the line on a terminal."""
        if not self._shows_progress:
            return
        if self._status is None:
            self._status = self._rich().status(text)
            self._status.start()
        else:
            self._status.update(text)

    def done(self) -> None:
        """Take the progress line away."""
        if self._status is not None:
            self._status.stop()
            self._status = None

    @staticmethod
    def _rich() -> Any:
        from rich.console import Console as RichConsole

        return RichConsole(stderr=True)
