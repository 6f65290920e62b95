"""Few tuples as rows: their codes, one tuple of Python for each."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter

import numpy as np

from corollary.core.states import State
from corollary.engines.local.storage.arrangement import Order
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import Row, Words

Tuples = Words | list[Row]
"""Tuples as they are moved between tables: sorted words, or few of them as rows in any order."""


def columns_of(rows: Sequence[Row], width: int) -> list[Codes]:
    """Return the columns of rows."""
    return list(np.array(rows, np.int64).reshape(len(rows), width).T)


def matching(rows: list[Row], order: Order, key: Row) -> list[Row]:
    """Return the rows whose first columns in an order have these codes, in that order."""
    if not rows:
        return rows
    length = len(key)
    return [row for row in map(permutation(order), rows) if row[:length] == key]


@lru_cache(maxsize=1024)
def permutation(columns: Order) -> Callable[[Row], Row]:
    """Return what picks some codes of a row.

    >>> permutation((2, 0))((10, 20, 30)), permutation((1,))((10, 20)), permutation(())((10,))
    ((30, 10), (20,), ())
    """
    if len(columns) > 1:
        return itemgetter(*columns)
    if columns:
        (only,) = columns
        return lambda row: (row[only],)
    return lambda _: ()


class LooseChange:
    """The open change of a table as rows: tuples not in OLD, and tuples of OLD.

    A change of few tuples is made, read and committed row by row, and packed once it is larger, or
    once vectors read it; the layout of the table has room for it at once.
    """

    __slots__ = ("added", "removed")

    def __init__(self, added: list[Row]) -> None:
        self.added = added
        self.removed: list[Row] = []

    def __len__(self) -> int:
        return len(self.added) + len(self.removed)

    def side(self, sign: State) -> list[Row]:
        """Return the tuples that were removed; for other states, those that were added."""
        return self.removed if sign is State.REMOVED else self.added

    def matching(self, found: list[Row], order: Order, key: Row) -> list[Row]:
        """Return what the tuples of OLD with a key have become in NEW, all in an order."""
        gone = matching(self.removed, order, key)
        return [each for each in found if each not in gone] + matching(self.added, order, key)

    def insert(self, row: Row, has_row: Callable[[Row, State], bool]) -> None:
        """Add a tuple unless it is in NEW."""
        if row in self.removed:
            self.removed.remove(row)
        elif not has_row(row, State.NEW):
            self.added.append(row)

    def delete(self, row: Row, has_row: Callable[[Row, State], bool]) -> None:
        """Remove a tuple if it is in NEW."""
        if row in self.added:
            self.added.remove(row)
        elif has_row(row, State.NEW):
            self.removed.append(row)

    def remove(self, rows: list[Row]) -> None:
        """Remove tuples of NEW."""
        for row in rows:
            if row in self.added:
                self.added.remove(row)
            else:
                self.removed.append(row)

    def cancel_out(self) -> None:
        """Drop tuples that were removed and added again from both sides."""
        for row in [row for row in self.removed if row in self.added]:
            self.added.remove(row)
            self.removed.remove(row)
