"""Tables and lists for the terminal: columns that fit its width, lists wrapped and truncated."""

import textwrap
from collections.abc import Iterable, Sequence
from itertools import zip_longest

from corollary.cli.recording import terminal_columns

COLUMN_GAP = 2
COLUMN_MIN_WIDTH = 12
UNBREAKABLE = "\ue000"
"""Replaces the blanks inside a piece while a cell is wrapped; any character of private use does."""

Cell = str | Sequence[str]
"""The pieces of a cell, between which lines break; those of a text are its words."""


def terminal_width() -> int:
    """Return the width of the terminal; 100 where there is none."""
    return max(40, terminal_columns())


def signed(counts: tuple[int, int]) -> str:
    """Return the numbers of added and removed tuples, without zeros.

    >>> signed((1200, 3))
    '+1,200 −3'
    """
    added, removed = counts
    return " ".join([f"+{added:,}"] * bool(added) + [f"−{removed:,}"] * bool(removed))


def comma_separated(names: Sequence[str]) -> list[str]:
    """Return the pieces of a list that is separated by commas.

    >>> comma_separated(["a", "b"])
    ['a,', 'b']
    """
    return [*(f"{each}," for each in names[:-1]), *names[-1:]]


def truncate(pieces: Sequence[str], limit: int) -> list[str]:
    """Return at most `limit` pieces, then how many more there are.

    >>> truncate(["a", "b", "c"], 2)
    ['a', 'b', '… 1 more']
    """
    left = len(pieces) - limit
    return [*pieces[:limit], f"… {left:,} more"] if left > 0 else list(pieces)


def align(rows: Iterable[Sequence[str]]) -> list[str]:
    """Return lines whose columns begin below each other, however long that makes them.

    >>> align([["link", "+12"], ["direct_link", "+3"]])
    ['link         +12', 'direct_link  +3']
    """
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip_longest(*rows, fillvalue="")]
    return [_line(row, widths) for row in rows]


def wrap(pieces: Sequence[str], width: int) -> list[str]:
    """Return lines of at most `width` characters; only a longer piece is broken.

    >>> wrap(["(a, b)", "(a, c)", "(a, d)"], 14)
    ['(a, b) (a, c)', '(a, d)']
    """
    text = " ".join(each.replace(" ", UNBREAKABLE) for each in pieces)
    lines = textwrap.wrap(text, max(1, width), break_on_hyphens=False) or [""]
    return [line.replace(UNBREAKABLE, " ") for line in lines]


def table(
    header: Sequence[str], rows: Sequence[Sequence[Cell]], width: int | None = None
) -> list[str]:
    """Return the lines of a table that fits into a width, that of the terminal, if possible.

    >>> table(["rule", "updates"], [[["1"], ["edge(a, b)", "edge(a, c)"]]], 18)
    ['rule  updates', '1     edge(a, b)', '      edge(a, c)']
    """
    width = terminal_width() if width is None else width
    rows = [[each.split(" ") if isinstance(each, str) else each for each in row] for row in rows]
    columns = list(zip([[title] for title in header], *rows, strict=True))
    widths = [max(len(" ".join(cell)) for cell in column) for column in columns]
    least = [max(len(piece) for cell in column for piece in cell) for column in columns]
    space = width - COLUMN_GAP * (len(header) - 1)
    if sum(least) > space:
        least = [min(each, COLUMN_MIN_WIDTH) for each in least]
    while sum(widths) > space and widths != least:
        shrinkable = [at for at, each in enumerate(widths) if each > least[at]]
        widths[max(shrinkable, key=widths.__getitem__)] -= 1
    lines: list[Sequence[str]] = [header]
    for row in rows:
        lines += zip_longest(*map(wrap, row, widths), fillvalue="")
    return align(lines)


def _line(texts: Sequence[str], widths: Sequence[int]) -> str:
    padded = (text.ljust(width) for text, width in zip(texts, widths, strict=False))
    return (" " * COLUMN_GAP).join(padded).rstrip()
