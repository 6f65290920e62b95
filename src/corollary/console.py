"""Notes and progress for the user of a terminal; the library itself is silent.

Work is told as *phases* (read, evaluate, store, publish), and inside a phase as *progress*: what is
done just now, with rows and bytes so far. A stopwatch is in exactly one phase at any moment, so
that the seconds of all phases add up to the whole.

| where | what is shown |
|---|---|
| a terminal | a line that changes while there is work, and a closing line with the seconds |
| elsewhere | the closing line, and lines about phases, where it takes more than a second |
| with `-v` | the closing line, and a line for each phase; another one every few seconds within it |
| with `-q`, and in a library | nothing |
"""

import shutil
import sys
import time
from collections.abc import Callable
from enum import StrEnum
from threading import RLock, Thread
from typing import Protocol, TextIO

from corollary.data_class import dataclass

LIVE_SECONDS = 0.1
"""The least time between two states of the line on a terminal."""
TICK_SECONDS = 0.5
"""The time between two states of that line while nothing is reported."""
SHOWN_MIN_SECONDS = 2.0
"""That line has the seconds of what takes longer than this."""
LOG_SECONDS = 5.0
"""The least time between two lines about the same phase."""
LONG_SECONDS = 1.0
"""Where there is no terminal, work that takes less is not worth a line."""
RATE_MIN_SECONDS = 1.0
"""Before that, rows in a second are a guess."""
BYTE_UNITS = ("B", "KB", "MB", "GB", "TB")
_CLEAR_LINE = "\r\x1b[2K"


class Phase(StrEnum):
    """What the work of a moment is for, in the order in which the closing line has them."""

    READ = "read"
    CHECK = "check"
    PLAN = "plan"
    EVALUATE = "evaluate"
    STORE = "store"
    PUBLISH = "publish"
    COPY = "copy"
    REMOVE = "remove"
    OTHER = "other"


@dataclass(slots=True)
class Progress:
    """What is done just now, and how far it is.

    Attributes:
        text: what is done, such as `reading orders.csv`.
        total_rows: how many rows there will be, if that is known; `total_bytes` likewise.
        stage: where it is, such as `round 3`.
        began: when it began, by the clock of the console.
        report: called with further rows and bytes.
    """

    text: str
    total_rows: int | None = None
    total_bytes: int | None = None
    stage: str = ""
    rows: int = 0
    bytes: int = 0
    began: float = 0.0
    report: Callable[["Progress", int, int], None] | None = None

    def advance(self, rows: int = 0, bytes: int = 0) -> None:  # noqa: A002 - as the attribute
        """Note that further rows or bytes are done; called often, it shows only some of them."""
        self.rows += rows
        self.bytes += bytes
        if self.report is not None:
            self.report(self, rows, bytes)

    def advance_to_bytes(self, bytes: int) -> None:  # noqa: A002 - as the attribute
        """Note how many bytes are done in all."""
        self.advance(bytes=bytes - self.bytes)

    def line(self, now: float) -> str:
        """Return it as a line.

        >>> Progress("reading a.csv", total_bytes=4_000_000, rows=50_000, bytes=1_000_000).line(2)
        'reading a.csv: 50,000 rows, 1.0 MB of 4.0 MB, 25,000 rows/s'
        """
        amounts = _amounts(self.rows, self.bytes, self.total_rows, self.total_bytes)
        seconds = now - self.began
        if self.rows and seconds >= RATE_MIN_SECONDS:
            amounts.append(f"{self.rows / seconds:,.0f} rows/s")
        what = f"{self.text}, {self.stage}" if self.stage else self.text
        return f"{what}: {', '.join(amounts)}" if amounts else what


class Console(Protocol):
    """Where notes, warnings and progress go."""

    def note(self, text: str) -> None:
        """Print a line that is not a result."""

    def enter(self, phase: Phase) -> None:
        """Begin a phase; the one before has ended."""

    def progress(
        self, text: str, total_rows: int | None = None, total_bytes: int | None = None
    ) -> Progress:
        """Say what is done from now on; its amounts are told to what is returned."""

    def done(self) -> None:
        """Remove the progress line."""


class SilentConsole:
    """Prints nothing."""

    def note(self, text: str) -> None:
        """Ignored."""

    def enter(self, phase: Phase) -> None:
        """Ignored."""

    def progress(
        self, text: str, total_rows: int | None = None, total_bytes: int | None = None
    ) -> Progress:
        """Return something that shows nothing."""
        return Progress(text, total_rows, total_bytes)

    def done(self) -> None:
        """Ignored."""


class Stopwatch:
    """Seconds by phase; it is always in exactly one, so that they add up to the time it runs.

    >>> times = iter([0.0, 0.25, 1.0])
    >>> watch = Stopwatch(lambda: next(times))
    >>> watch.enter(Phase.READ)
    0.25
    >>> watch.enter(Phase.OTHER)
    0.75
    >>> watch.closing_line()
    'read 0.75 s, other 0.25 s: 1.00 s'
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = clock()
        self.phase = Phase.OTHER
        self.seconds = dict.fromkeys(Phase, 0.0)

    @property
    def total(self) -> float:
        """The seconds of all phases that have ended."""
        return sum(self.seconds.values())

    def enter(self, phase: Phase) -> float:
        """Enter a phase; return the seconds that were spent in the one before."""
        now = self._clock()
        spent, self._since = now - self._since, now
        self.seconds[self.phase] += spent
        self.phase = phase
        return spent

    def closing_line(self) -> str:
        """Return the seconds of each phase, and their sum.

        Sums are rounded and not the seconds themselves, so that the parts add up as printed.
        """
        parts, so_far = [], 0.0
        for phase, seconds in self.seconds.items():
            before, so_far = so_far, so_far + seconds
            hundredths = round(100 * so_far) - round(100 * before)
            if hundredths:
                parts.append(f"{phase} {hundredths / 100:.2f} s")
        return f"{', '.join(parts) or Phase.OTHER}: {round(100 * so_far) / 100:.2f} s"


@dataclass(slots=True)
class _PhaseAmounts:
    """What has been done in a phase, and when a line was last printed about it."""

    printed_at: float
    rows: int = 0
    bytes: int = 0


class TerminalConsole:
    """Writes to standard error: notes, a line that changes on a terminal, else lines of a log.

    Args:
        is_quiet: whether to print nothing at all.
        is_verbose: whether to print a line for each phase.
        allowed: the codes of warnings that the user accepts, which are not printed.
        stream: where to write; standard error, as it is at that moment, if it is not given.
        clock: the time in seconds.
    """

    def __init__(
        self,
        is_quiet: bool = False,
        *,
        is_verbose: bool = False,
        allowed: frozenset[str] = frozenset(),
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._is_quiet = is_quiet
        self._is_verbose = is_verbose
        self.allowed = allowed
        self._given_stream = stream
        self._clock = clock
        self._is_terminal = self._stream.isatty()
        self._lock = RLock()  # streams commit in threads of their own
        self._watch = Stopwatch(clock)
        self._amounts = _PhaseAmounts(clock())
        self._has_work = False
        self._shown: Progress | None = None
        self._drawn_at: float | None = None  # None: there is no line
        self._ticker: Thread | None = None

    @property
    def _stream(self) -> TextIO:
        return sys.stderr if self._given_stream is None else self._given_stream

    # --- lines that stay -----------------------------------------------------------------------

    def note(self, text: str) -> None:
        """Print a line, unless quiet."""
        if not self._is_quiet:
            with self._lock:
                self.done()
                print(text, file=self._stream, flush=True)

    def enter(self, phase: Phase) -> None:
        """Begin a phase; where lines are printed for phases, this is the line of the one before."""
        with self._lock:
            before, amounts = self._watch.phase, self._amounts
            if phase is before:
                return
            spent = self._watch.enter(phase)
            self._amounts = _PhaseAmounts(self._clock())
            self._has_work |= phase is not Phase.OTHER
            if before is not Phase.OTHER and self._logs(spent):
                told = [*_amounts(amounts.rows, amounts.bytes), f"{spent:.2f} s"]
                self.note(f"{before}: {', '.join(told)}")
            self.done()

    def _logs(self, seconds: float) -> bool:
        """Whether something that took some seconds is worth a line that stays."""
        return self._is_verbose or (not self._is_terminal and seconds >= LONG_SECONDS)

    def finish(self, min_seconds: float = 0.0) -> None:
        """End the work with the closing line, if there was work of a phase; then begin anew.

        Args:
            min_seconds: what took less needs none, even on a terminal. Opening, imports and other
                seconds outside of phases do not count.
        """
        with self._lock:
            self.enter(Phase.OTHER)
            self._watch.enter(Phase.OTHER)
            work = self._watch.total - self._watch.seconds[Phase.OTHER]
            if not self._is_terminal:
                min_seconds = max(min_seconds, LONG_SECONDS)
            if self._has_work and (self._is_verbose or work >= min_seconds):
                self.note(self._watch.closing_line())
            self.restart()

    def seconds_of(self, phase: Phase) -> float:
        """Return the seconds that a phase has taken so far, once it has ended."""
        return self._watch.seconds[phase]

    def restart(self) -> None:
        """Let the seconds of phases begin now."""
        with self._lock:
            self.done()
            self._watch, self._amounts = Stopwatch(self._clock), _PhaseAmounts(self._clock())
            self._has_work = False

    # --- the line that changes -----------------------------------------------------------------

    def progress(
        self, text: str, total_rows: int | None = None, total_bytes: int | None = None
    ) -> Progress:
        """Show what is done from now on."""
        made = Progress(text, total_rows, total_bytes)
        if not self._is_quiet:
            made.began, made.report = self._clock(), self._advance
            self._advance(made, 0, 0)
        return made

    def _advance(self, progress: Progress, rows: int, further_bytes: int) -> None:
        with self._lock:
            now, amounts = self._clock(), self._amounts
            amounts.rows += rows
            amounts.bytes += further_bytes
            if self._is_terminal and not self._is_verbose:
                self._shown = progress
                if self._drawn_at is None or now - self._drawn_at >= LIVE_SECONDS:
                    self._draw(now)
                self._start_ticker()
            elif now - amounts.printed_at >= LOG_SECONDS:
                self.note(progress.line(now))
                amounts.printed_at = now

    def _draw(self, now: float) -> None:
        if self._shown is None:
            return
        line = self._shown.line(now)
        seconds = now - self._shown.began
        if seconds >= SHOWN_MIN_SECONDS:
            line = f"{line}, {seconds:.0f} s"
        width = max(20, shutil.get_terminal_size().columns - 1)
        self._stream.write(_CLEAR_LINE + (line if len(line) <= width else f"{line[: width - 1]}…"))
        self._stream.flush()
        self._drawn_at = now

    def _start_ticker(self) -> None:
        """Let the line change also while one call takes long; only where it is a real terminal."""
        if self._ticker is None and self._given_stream is None:
            self._ticker = Thread(target=self._tick, name="progress", daemon=True)
            self._ticker.start()

    def _tick(self) -> None:
        while True:
            time.sleep(TICK_SECONDS)
            with self._lock:
                self._draw(self._clock())

    def done(self) -> None:
        """Remove the progress line."""
        with self._lock:
            self._shown = None
            if self._drawn_at is not None:
                self._stream.write(_CLEAR_LINE)
                self._stream.flush()
                self._drawn_at = None


def _amounts(
    rows: int, count: int, total_rows: int | None = None, total_bytes: int | None = None
) -> list[str]:
    """Return rows and bytes as text, those that are known."""
    found = []
    if rows or total_rows:
        of = f" of {total_rows:,}" if total_rows else ""
        found.append(f"{rows:,}{of} {'row' if (total_rows or rows) == 1 else 'rows'}")
    if count or total_bytes:
        of = f" of {format_bytes(total_bytes)}" if total_bytes else ""
        found.append(f"{format_bytes(count)}{of}")
    return found


def format_bytes(count: int) -> str:
    """Return a number of bytes as text.

    >>> format_bytes(999), format_bytes(34542), format_bytes(2_500_000)
    ('999 B', '34.5 KB', '2.5 MB')
    """
    number, unit = float(count), 0
    while number >= 999.5 and unit < len(BYTE_UNITS) - 1:
        number, unit = number / 1000, unit + 1
    return f"{number:.1f} {BYTE_UNITS[unit]}" if unit else f"{count} B"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "tuple"), counted(1200, "tuple")
    ('1 tuple', '1,200 tuples')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
