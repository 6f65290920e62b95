"""Rules with window functions, row by row: the rows of a partition are listed, then counted off.

A rule is `h(x, …, v, …) :- p(x, …), v = window("…", x, …), ….`; the text is read here once more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from operator import xor
from typing import Any

from oracles.parser import And, Atom, Cmp, Fn, Formula, Lit, Rule, Var

Value = Any
Row = tuple[Value, ...]
Key = Callable[[Value], Any]
Summed = Callable[[list[Value], int], Value]


@dataclass(frozen=True, slots=True)
class Window:
    """A function: its name, its arguments as written, and the words of its OVER clause."""

    name: str
    arguments: tuple[str, ...]
    over: str
    terms: tuple[int, ...]
    skips_nulls: bool

    def column(self, text: str) -> int:
        """The column of the tuple that `$n` stands for."""
        return self.terms[int(text.strip()[1:]) - 1]

    def columns(self, word: str) -> list[tuple[int, str]]:
        """The columns after PARTITION BY or ORDER BY, with what follows each."""
        found = re.search(rf"{word} by (.*?)(?= order by| rows | range |$)", self.over)
        parts = found[1].split(",") if found else []
        return [(self.column(part.split()[0]), part) for part in parts]


def is_windowed(rule: Rule) -> bool:
    """Whether a rule has window functions."""
    return any(isinstance(each, Cmp) and _is_window(each.right) for each in _parts(rule.body))


def body_of(rule: Rule) -> Atom:
    """The literal of a rule with window functions."""
    (atom,) = (each for each in _parts(rule.body) if isinstance(each, Atom))
    return atom


def rows_of(rule: Rule, rows: Iterable[Row], order: Key, summed: Summed) -> list[Row]:
    """The tuples of the head.

    Args:
        rule: the rule.
        rows: the tuples of its literal.
        order: the sort key of a value, null first.
        summed: the sum of values of a column.
    """
    names = [each.name for each in body_of(rule).args if isinstance(each, Var)]
    given = sorted(rows, key=lambda row: [order(value) for value in row])
    windows = [_read(each.right, names) for each in _parts(rule.body) if isinstance(each, Cmp)]
    values = [_Partitions(window, given, order, summed) for window in windows]
    return [(*row, *(each.value(row) for each in values)) for row in given]


def _parts(body: Formula) -> tuple[Formula, ...]:
    return body.parts if isinstance(body, And) else (body,)


def _is_window(term: object) -> bool:
    return isinstance(term, Fn) and term.name == "window"


def _read(term: object, names: list[str]) -> Window:
    assert isinstance(term, Fn)
    text, *terms = term.args
    assert isinstance(text, Lit)
    found = re.fullmatch(r"(\w+)\((.*?)\)( ignore nulls)? over \((.*)\)", str(text.value))
    assert found is not None
    arguments = tuple(filter(None, (each.strip() for each in found[2].split(","))))
    columns = tuple(names.index(each.name) for each in terms if isinstance(each, Var))
    return Window(found[1], arguments, found[4], columns, found[3] is not None)


class _Partitions:
    """The rows of each partition in the order of a window."""

    def __init__(self, window: Window, rows: list[Row], order: Key, summed: Summed) -> None:
        self.window, self.order, self.summed = window, order, summed
        self.by = [column for column, _ in window.columns("partition")]
        self.lists: dict[Row, list[Row]] = {}
        rows = list(rows)
        for column, words in reversed(window.columns("order")):
            is_down = " desc" in words
            first = "nulls first" in words or ("nulls last" not in words and not is_down)
            rows.sort(key=lambda row, at=column: order(row[at]), reverse=is_down)  # type: ignore[misc]
            # A stable sort: nulls to where they are asked for.
            rows.sort(key=lambda row, at=column, up=first: (row[at] is None) != up)  # type: ignore[misc]
        for row in rows:
            self.lists.setdefault(self.key(row), []).append(row)

    def key(self, row: Row) -> Row:
        return tuple(repr(self.order(row[column])) for column in self.by)

    def peers(self, row: Row) -> Row:
        return tuple(repr(self.order(row[column])) for column, _ in self.window.columns("order"))

    def value(self, row: Row) -> Value:
        """The value of the function in a row."""
        rows, window = self.lists[self.key(row)], self.window
        at, peers = rows.index(row), self.peers(row)
        before = [each for each in rows[:at] if self.peers(each) != peers]
        match window.name:
            case "row_number":
                return at + 1
            case "rank":
                return len(before) + 1
            case "dense_rank":
                return len({self.peers(each) for each in before}) + 1
            case "lag" | "lead":
                return self.neighbour(rows, at)
        frame = self.frame(rows, at)
        if window.name == "count" and not window.arguments:
            return len(frame)
        column = window.column(window.arguments[0])
        values = [each[column] for each in frame]
        present = [each for each in values if each is not None]
        match window.name:
            case "count":
                return len(present)
            case "sum":
                return self.summed(present, column)
            case "min":
                return min(present, key=self.order, default=None)
            case "max":
                return max(present, key=self.order, default=None)
            case "bit_xor":
                return reduce(xor, present) if present else None
        values = present if window.skips_nulls else values
        match window.name:
            case "first_value":
                return values[0] if values else None
            case "last_value":
                return values[-1] if values else None
            case "nth_value":
                number = int(window.arguments[1])
                return values[number - 1] if number <= len(values) else None
        raise AssertionError(window.name)

    def neighbour(self, rows: list[Row], at: int) -> Value:
        value, *more = self.window.arguments
        numbers = [int(each) for each in more if each.isdecimal()]
        distance = numbers[0] if numbers else 1
        is_before = self.window.name == "lag"
        ways = reversed(rows[:at]) if is_before else rows[at + 1 :]
        found = [row[self.window.column(value)] for row in ways]
        if self.window.skips_nulls:
            found = [each for each in found if each is not None]
        if distance <= len(found):
            return found[distance - 1]
        defaults = [each for each in more if each.startswith("$")]
        return rows[at][self.window.column(defaults[0])] if defaults else None

    def frame(self, rows: list[Row], at: int) -> list[Row]:
        """The rows that the function sees."""
        found = re.search(r"(rows|range) between (.*) and (.*)", self.window.over)
        if found is None and not self.window.columns("order"):
            return rows
        kind, start, end = found.groups() if found else ("range", "unbounded preceding", "current")
        same = [n for n, each in enumerate(rows) if self.peers(each) == self.peers(rows[at])]

        def bound(text: str, peer: int) -> int:
            if text.startswith("unbounded"):
                return 0 if text.endswith("preceding") else len(rows) - 1
            if text.startswith("current"):
                return peer if kind == "range" else at
            distance = int(text.split(maxsplit=1)[0])
            return at - distance if text.endswith("preceding") else at + distance

        first, last = bound(start, same[0]), bound(end, same[-1])
        return [each for n, each in enumerate(rows) if first <= n <= last]
