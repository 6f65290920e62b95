"""Few tuples as rows: their codes, one tuple of Python for each."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter

import numpy as np

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
