"""The loop of the shell: an interrupt ends what runs, and nothing else; names are completed."""

import signal
from collections.abc import Iterator

import pytest

import corollary
from corollary.cli.shell.shell import Shell
from corollary.cli.shell.terminal import completions
from corollary.console import TerminalConsole

ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 0 UNION SELECT n + 1 FROM r) SELECT MAX(n) FROM r;"


@pytest.fixture
def alarm() -> Iterator[None]:
    """Let an alarm do what Ctrl-C does."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("alarm")
def test_an_interrupt_ends_the_question_only(capsys: pytest.CaptureFixture[str]) -> None:
    lines = iter([ENDLESS, "SELECT 'still here' AS a;", None])

    def read_line(_: bool) -> str | None:
        line = next(lines)
        if line == ENDLESS:
            signal.setitimer(signal.ITIMER_REAL, 0.5)
        return line

    with corollary.open(None, engine="local") as database:
        Shell(database, TerminalConsole(is_quiet=True)).run(read_line)
    printed = capsys.readouterr()
    assert printed.err == "interrupted\n"
    assert printed.out == "a\nstill here\n"


def test_names_are_completed_before_words() -> None:
    assert completions("sel", ["selected", "other"]) == ["selected", "select"]
    assert completions("SEL", ["selected"]) == ["selected", "SELECT"]
    assert completions("\\e", []) == ["\\explain"]
