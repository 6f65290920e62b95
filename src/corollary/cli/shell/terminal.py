"""Reads lines from a terminal, with history and completion, or from a pipe."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import click

from corollary.cli.shell.entries import SQL_WORDS

PROMPT, CONTINUATION = "corollary> ", "       ... "
HISTORY_MAX_LINES = 5000
_SQL_COMPLETIONS = (
    *SQL_WORDS,
    *("where", "group by", "order by", "having", "limit", "join", "left join", "union", "except"),
    *("intersect", "distinct", "exists", "between", "recursive", "table", "view", "materialized"),
    *("into", "as", "on", "and", "or", "not", "null", "count", "sum", "avg", "min", "max"),
)
_COMMANDS = ("\\d", "\\explain", "\\timing", "\\q", "\\?")


def line_reader(names: Callable[[], list[str]]) -> Callable[[bool], str | None]:
    """Return a function that returns the next line, None at the end.

    On a terminal it asks for the line, and completes the names that `names` returns.
    """
    if not sys.stdin.isatty():
        return lambda _: sys.stdin.readline() or None
    _set_up_editing(names)

    def read(is_new: bool) -> str | None:
        try:
            return input(PROMPT if is_new else CONTINUATION)
        except EOFError:
            click.echo()
            return None

    return read


def completions(text: str, names: list[str]) -> list[str]:
    """Return what a word that was begun can become: names first, then words of SQL.

    >>> completions("li", ["link", "cable"])
    ['link', 'limit']
    """
    if text.startswith("\\"):
        return [each for each in _COMMANDS if each.startswith(text)]
    begun = text.lower()
    found = [each for each in names if each.lower().startswith(begun)]
    words = [each.upper() if text.isupper() else each for each in _SQL_COMPLETIONS]
    return [*found, *(each for each in words if each.lower().startswith(begun))]


def _set_up_editing(names: Callable[[], list[str]]) -> None:
    """Set up history and completion, as far as this Python has them."""
    try:
        import atexit
        import readline
    except ImportError:
        return
    found: list[str] = []

    def complete(text: str, number: int) -> str | None:
        nonlocal found
        if number == 0:
            found = completions(text, names())
        return found[number] if number < len(found) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" \t\n,;()=<>!+-*/'\"")
    readline.parse_and_bind("tab: complete")
    home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    history = home / "corollary" / "history"
    try:
        history.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if history.exists():
            readline.read_history_file(history)
    except OSError:
        return
    readline.set_history_length(HISTORY_MAX_LINES)

    def save() -> None:
        with suppress(OSError):  # the history is a convenience
            readline.write_history_file(history)

    atexit.register(save)
