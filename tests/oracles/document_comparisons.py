"""A second opinion on comparisons: every number of a grid is tried for what is unknown.

The pattern is `/r[a/*$a][b/*$b]…`, with one variable for each letter. A comparison is coefficients
of variables, a constant, and an operator: Σ c·x + k is compared with 0. Labels are small whole
numbers, or no numbers; so if there are numbers that make comparisons true, some on the grid do.

Of times of arrival, every time of a grid is tried for what is to come:
the pattern is `/r[a arrived $a][b arrived $b]…`, one variable for each letter. What is sure is
asked by the clock. What is possible is asked at any time of the grid that is not before it, and a
node that is yet to come arrives between the clock and that time. Times are small whole numbers, and
so are the constants of comparisons: if any times make them true, some on the grid do.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from oracles.documents import Answers, Tree

Comparison = tuple[dict[str, int], int, str]
GRID = [at / 4 for at in range(-48, 49)]


def holds(comparison: Comparison, values: dict[str, float]) -> bool:
    factors, constant, operator = comparison
    total = sum(factor * values[name] for name, factor in factors.items()) + constant
    return {
        "<": total < 0,
        "<=": total <= 0,
        "=": total == 0,
        "!=": total != 0,
        ">": total > 0,
        ">=": total >= 0,
    }[operator]


def number(label: str) -> float | None:
    try:
        return float(label)
    except ValueError:
        return None


def options(tree: Tree, letter: str, live: set[str]) -> set[str | None]:
    """Return the labels that may stand for a letter; None for one that a function may bring."""
    found: set[str | None] = set()
    for label, below in tree[1]:
        if label[1:] in live and label.startswith("!"):
            found.add(None)
        for each, _ in below if label == letter else ():
            if not each.startswith("!"):
                found.add(each)
            elif each[1:] in live:
                found.add(None)
    return found


def answers(
    letters: str, comparisons: Iterable[Comparison], tree: Tree, live: set[str]
) -> tuple[Answers, Answers]:
    """Return what is sure, and what is possible, sure answers included."""
    several = list(comparisons)
    compared = sorted({name for factors, _, _ in several for name in factors})
    sure: Answers = set()
    possible: Answers = set()
    for chosen in product(*(options(tree, letter, live) for letter in letters)):
        known = dict(zip(letters, chosen, strict=True))
        grids = [GRID if known[name] is None else [number(known[name] or "")] for name in compared]
        if any(None in each for each in grids):
            continue
        values = (dict(zip(compared, each, strict=True)) for each in product(*grids))
        if any(all(holds(each, one) for each in several) for one in values):
            row = tuple("?" if each is None else each for each in chosen)
            possible.add(row)
            if None not in chosen:
                sure.add(row)
    return sure, possible


# --- times of arrival ---------------------------------------------------------------------------

NOW = "now"
STEP, LAST = 0.5, 40


def answers_in_time(
    letters: str,
    comparisons: Iterable[Comparison],
    arrived: list[tuple[str, int]],
    clock: int,
    is_open: bool,
) -> tuple[Answers, Answers]:
    """Return what is sure, and what is possible, sure answers included.

    Args:
        letters: of the pattern.
        comparisons: of the times of arrival, and of `now`.
        arrived: letters that came below the root, and when.
        clock: the time that it is.
        is_open: whether a function may still bring any.
    """
    several = list(comparisons)
    grid = [clock + at * STEP for at in range(LAST)]
    options = [
        [*{at for each, at in arrived if each == letter}, *([None] if is_open else [])]
        for letter in letters
    ]
    sure: Answers = set()
    possible: Answers = set()
    for chosen in product(*options):
        row = tuple("?" if each is None else str(each) for each in chosen)
        if None not in chosen:
            values = {**dict(zip(letters, chosen, strict=True)), NOW: clock}
            if all(holds(each, values) for each in several):
                sure.add(row)
        if _may_hold(dict(zip(letters, chosen, strict=True)), several, grid):
            possible.add(row)
    return sure, possible


def _may_hold(
    known: dict[str, int | None], comparisons: list[Comparison], grid: list[float]
) -> bool:
    unknown = [name for name, each in known.items() if each is None]
    for now in grid:
        earlier = [each for each in grid if each <= now]
        for times in product(earlier, repeat=len(unknown)):
            values = {**known, **dict(zip(unknown, times, strict=True)), NOW: now}
            if all(holds(each, values) for each in comparisons):
                return True
    return False
