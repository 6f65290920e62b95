"""Progress on a terminal, in a log, and in silence, with a clock that the test sets."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corollary import console as consoles
from corollary.console import Phase, SilentConsole, Stopwatch, TerminalConsole

CLEAR = "\r\x1b[2K"


class Terminal(io.StringIO):
    """Remembers what is written to it."""

    def isatty(self) -> bool:
        return True

    @property
    def screen(self) -> list[str]:
        """The lines that are to be seen, without those that were cleared."""
        return [line.rpartition(CLEAR)[2] for line in self.getvalue().split("\n")]


class Clock:
    """A clock that stands still."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setattr(consoles, "LONG_SECONDS", 1.0)
    monkeypatch.setattr(consoles, "LOG_SECONDS", 5.0)
    return Clock()


def load(console: TerminalConsole, clock: Clock, seconds: float = 1.0) -> None:
    """What a run does: each phase takes longer than the one before."""
    for place, phase in enumerate((Phase.READ, Phase.EVALUATE, Phase.STORE, Phase.PUBLISH), 1):
        console.enter(phase)
        progress = console.progress(f"at {phase}", total_bytes=4_000_000)
        clock.now += seconds * place
        progress.advance(rows=1000 * place, bytes=500_000 * place)
    console.enter(Phase.OTHER)
    clock.now += seconds


# --- the stopwatch -------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.sampled_from(Phase), st.floats(0, 1e4)), max_size=30))
def test_the_parts_add_up_as_printed(spent: list[tuple[Phase, float]]) -> None:
    clock = Clock()
    watch = Stopwatch(clock)
    for phase, seconds in spent:
        watch.enter(phase)
        clock.now += seconds
    watch.enter(Phase.OTHER)
    parts, _, total = watch.closing_line().rpartition(": ")
    printed = [round(100 * float(each)) for each in re.findall(r"[\d.]+(?= s)", parts)]
    assert sum(printed) == round(100 * float(total.removesuffix(" s")))
    assert watch.total == pytest.approx(clock.now - 100.0)


# --- a terminal ----------------------------------------------------------------------------------


def test_a_line_that_changes_and_a_closing_line(clock: Clock) -> None:
    terminal = Terminal()
    console = TerminalConsole(stream=terminal, clock=clock)
    load(console, clock)
    assert "at read: 1,000 rows, 500.0 KB of 4.0 MB, 1,000 rows/s" in terminal.getvalue()
    console.finish()
    assert terminal.screen == [
        "read 1.00 s, evaluate 2.00 s, store 3.00 s, publish 4.00 s, other 1.00 s: 11.00 s",
        "",
    ]


def test_the_line_is_drawn_now_and_then(clock: Clock) -> None:
    terminal = Terminal()
    console = TerminalConsole(stream=terminal, clock=clock)
    console.enter(Phase.EVALUATE)
    progress = console.progress("evaluating path")
    for number in range(1000):
        progress.stage = f"round {number}"
        progress.advance(rows=1)
        clock.now += 0.001
    assert 5 <= terminal.getvalue().count(CLEAR) <= 15


def test_a_line_fits_into_the_terminal(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    terminal = Terminal()
    TerminalConsole(stream=terminal, clock=clock).progress("reading a file of a long name.csv")
    assert terminal.screen == ["reading a file of a long nam…"]


def test_notes_and_interrupts_leave_clean_lines(clock: Clock) -> None:
    terminal = Terminal()
    console = TerminalConsole(stream=terminal, clock=clock)
    console.progress("reading a.csv")
    console.note("one note")
    console.progress("reading b.csv")
    console.done()  # as for Ctrl-C
    assert terminal.screen == ["one note", ""]


def test_short_work_ends_without_a_closing_line(clock: Clock) -> None:
    """A query says how long it took only if it took long."""
    terminal = Terminal()
    console = TerminalConsole(stream=terminal, clock=clock)
    console.enter(Phase.EVALUATE)
    clock.now += 0.9
    console.enter(Phase.OTHER)
    clock.now += 5
    console.finish(min_seconds=1.0)
    assert terminal.screen == [""]
    console.finish()  # nothing was done since
    assert terminal.screen == [""]


# --- a log ---------------------------------------------------------------------------------------


def test_a_line_for_each_long_phase(clock: Clock) -> None:
    log = io.StringIO()
    console = TerminalConsole(stream=log, clock=clock)
    load(console, clock, seconds=0.5)
    console.finish()
    assert log.getvalue().splitlines() == [
        "evaluate: 2,000 rows, 1.0 MB, 1.00 s",
        "store: 3,000 rows, 1.5 MB, 1.50 s",
        "publish: 4,000 rows, 2.0 MB, 2.00 s",
        "read 0.50 s, evaluate 1.00 s, store 1.50 s, publish 2.00 s, other 0.50 s: 5.50 s",
    ]


def test_lines_within_a_long_phase(clock: Clock) -> None:
    log = io.StringIO()
    console = TerminalConsole(stream=log, clock=clock)
    console.enter(Phase.READ)
    progress = console.progress("reading a.csv", total_rows=24_000)
    for _ in range(12):
        clock.now += 1
        progress.advance(rows=1000)
    assert log.getvalue().splitlines() == [
        "reading a.csv: 5,000 of 24,000 rows, 1,000 rows/s",
        "reading a.csv: 10,000 of 24,000 rows, 1,000 rows/s",
    ]


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_verbose(clock: Clock, stream: type[io.StringIO]) -> None:
    """A line for each phase, however short, and none that changes."""
    log = stream()
    console = TerminalConsole(is_verbose=True, stream=log, clock=clock)
    load(console, clock, seconds=0.01)
    console.finish()
    assert log.getvalue().splitlines() == [
        "read: 1,000 rows, 500.0 KB, 0.01 s",
        "evaluate: 2,000 rows, 1.0 MB, 0.02 s",
        "store: 3,000 rows, 1.5 MB, 0.03 s",
        "publish: 4,000 rows, 2.0 MB, 0.04 s",
        "read 0.01 s, evaluate 0.02 s, store 0.03 s, publish 0.04 s, other 0.01 s: 0.11 s",
    ]


# --- silence -------------------------------------------------------------------------------------


def test_quiet(clock: Clock) -> None:
    for stream in (io.StringIO(), Terminal()):
        console = TerminalConsole(is_quiet=True, is_verbose=True, stream=stream, clock=clock)
        load(console, clock, seconds=60)
        console.note("a note")
        console.finish()
        assert stream.getvalue() == ""


def test_a_library_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    console = SilentConsole()
    console.enter(Phase.READ)
    console.progress("reading a.csv", total_rows=2).advance(rows=2, bytes=10)
    console.done()
    assert capfd.readouterr() == ("", "")
