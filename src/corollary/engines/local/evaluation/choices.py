"""Choices: of tuples that agree on a domain only the least is taken.

Tuples are taken in ascending order unless they agree on a domain with one that was taken. All
tuples that are the least of their kind in every domain are found at once: nothing that is before
them can be in their way. What agrees with them is dropped, and the next ones are found.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from corollary.core.plans import Choose
from corollary.core.states import State
from corollary.engines.local.storage.layout import Words
from corollary.engines.local.storage.table import Table
from corollary.engines.local.table_handle import decode_words
from corollary.engines.local.values.codes import Dictionary

Ranks = npt.NDArray[np.int64]


def choose_tuples(step: Choose, source: Table, dictionary: Dictionary) -> Words:
    """Return the tuples that a step chooses from a table, in the order in which they are packed."""
    words = source.tuples(State.NEW)
    count = len(words)
    if count < 2:
        return words
    codes = [source.layout.unpack_column(words, at) for at in range(len(source.types))]
    names = tuple(f"c{at}" for at in range(len(source.types)))
    values = decode_words(words, source.layout, source.types, names, dictionary)
    ranks = [_ranks(column.to_pylist()) for column in values.columns]
    place = np.empty(count, np.int64)
    place[np.lexsort(ranks[::-1])] = np.arange(count)
    domains = [_kinds([codes[at] for at in domain]) for domain in step.domains]
    is_open, is_taken = np.ones(count, bool), np.zeros(count, bool)
    while is_open.any():
        is_least = is_open.copy()
        for kinds in domains:
            least = np.full(int(kinds.max()) + 1, count, np.int64)
            np.minimum.at(least, kinds[is_open], place[is_open])
            is_least &= least[kinds] == place
        is_taken |= is_least
        for kinds in domains:
            taken = np.zeros(int(kinds.max()) + 1, bool)
            taken[kinds[is_least]] = True
            is_open &= ~taken[kinds]
    return words[is_taken]


def _ranks(values: list[object]) -> Ranks:
    """Return the places of values in ascending order; null is the least, NaN the greatest."""
    distinct = sorted(set(values), key=_order)
    places = {value: place for place, value in enumerate(distinct)}
    return np.array([places[value] for value in values], np.int64)


def _order(value: Any) -> tuple[Any, ...]:
    if isinstance(value, float) and math.isnan(value):
        return (2,)
    return (0,) if value is None else (1, value)


def _kinds(columns: list[npt.NDArray[np.int64]]) -> Ranks:
    """Return a number for each tuple, equal for those that agree on all columns."""
    _, kinds = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    return kinds.reshape(-1).astype(np.int64)
