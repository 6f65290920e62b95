"""Tables and lists for the terminal: columns that fit its width, lists wrapped and cut."""

import shutil
from collections.abc import Sequence
from itertools import zip_longest

GAP = 2
NARROWEST = 12
"""A column that does not fit is not made narrower than this."""

Cell = Sequence[str]
"""Pieces that stand in one cell; lines break between them."""


def width() -> int:
    """Return the width of the terminal; 100 where there is none."""
    return max(40, shutil.get_terminal_size((100, 24)).columns)


def counted(number: int, noun: str) -> str:
    """Return a number of things in words.

    >>> counted(1, "tuple"), counted(1200, "tuple")
    ('1 tuple', '1,200 tuples')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def signed(counts: tuple[int, int]) -> list[str]:
    """Return how many tuples came and went, as far as any did.

    >>> signed((1200, 3))
    ['+1,200', '−3']
    """
    added, removed = counts
    return [f"+{added:,}"] * bool(added) + [f"−{removed:,}"] * bool(removed)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return lines whose columns begin below each other.

    >>> aligned([["link", "+12"], ["direct_link", "+3"]])
    ['link         +12', 'direct_link  +3']
    """
    widths = [max(map(len, column), default=0) for column in zip_longest(*rows, fillvalue="")]
    return [_line(row, widths[: len(row)]) for row in rows]


def cut(pieces: Sequence[str], most: int) -> list[str]:
    """Return at most so many pieces, and how many more there are.

    >>> cut(["a", "b", "c"], 2)
    ['a', 'b', '… 1 more']
    """
    left = len(pieces) - most
    return [*pieces[:most], f"… {left:,} more"] if left > 0 else list(pieces)


def wrap(pieces: Cell, columns: int) -> list[str]:
    """Return lines of at most so many characters; a longer piece is broken, best at a blank.

    >>> wrap(["(a, b)", "(a, c)", "(a, d)"], 14)
    ['(a, b) (a, c)', '(a, d)']
    """
    lines = [""]
    for piece in pieces:
        if lines[-1] and len(lines[-1]) + 1 + len(piece) > columns:
            lines.append("")
        rest = f"{lines[-1]} {piece}" if lines[-1] else piece
        while len(rest) > columns:
            blank = rest.rfind(" ", 1, columns + 1)
            end = columns if blank < 0 else blank
            lines[-1:] = [rest[:end], ""]
            rest = rest[end:].lstrip()
        lines[-1] = rest
    return lines


def table(header: Sequence[str], rows: Sequence[Sequence[Cell]], columns: int) -> list[str]:
    """Return the lines of a table that fits into so many columns, if that can be.

    >>> table(["rule", "updates"], [[["1"], ["edge(a, b)", "edge(a, c)"]]], 18)
    ['rule  updates', '1     edge(a, b)', '      edge(a, c)']
    """
    cells = [[[title], *(row[at] for row in rows)] for at, title in enumerate(header)]
    natural = [max(len(" ".join(cell)) for cell in column) for column in cells]
    unbroken = [max(len(piece) for cell in column for piece in cell) for column in cells]
    widths = _fitted(natural, unbroken, columns - GAP * (len(header) - 1))
    wrapped = [[wrap(cell, each) for cell, each in zip(row, widths, strict=True)] for row in rows]
    used = [
        max(len(title), *(len(line) for row in wrapped for line in row[at]))
        for at, title in enumerate(header)
    ]
    lines = [_line(header, used)]
    for row in wrapped:
        lines += [_line(texts, used) for texts in zip_longest(*row, fillvalue="")]
    return lines


def _line(texts: Sequence[str], widths: Sequence[int]) -> str:
    gap = " " * GAP
    return gap.join(text.ljust(each) for text, each in zip(texts, widths, strict=True)).rstrip()


def _fitted(natural: Sequence[int], unbroken: Sequence[int], space: int) -> list[int]:
    """Return widths within a space: no piece broken if that can be, the widest columns give way."""
    least = unbroken
    if sum(least) > space:
        least = [min(each, NARROWEST) for each in unbroken]
    widths = list(natural)
    while sum(widths) > space:
        give = [at for at, each in enumerate(widths) if each > least[at]]
        if not give:
            break
        widest = max(give, key=widths.__getitem__)
        widths[widest] -= 1
    return widths
