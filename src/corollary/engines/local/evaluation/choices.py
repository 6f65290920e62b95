"""Choices: of tuples that agree on a domain only the least is taken.

Tuples are taken in ascending order unless they agree on a domain with one that was taken. All
tuples that are the least of their kind in every domain are found at once: nothing that is before
them can be in their way. What agrees with them is dropped, and the next ones are found.
"""

import numpy as np
import numpy.typing as npt

from corollary.core.plans import Choose
from corollary.core.states import State
from corollary.engines.local.evaluation.order_keys import order_keys
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import Words
from corollary.engines.local.storage.table import Table
from corollary.engines.local.values.codes import Dictionary

Ranks = npt.NDArray[np.int64]


def choose_tuples(step: Choose, source: Table, dictionary: Dictionary) -> Words:
    """Return the tuples that a step chooses from a table, in the order in which they are packed."""
    words = source.tuples(State.NEW)
    count = len(words)
    if count < 2:
        return words
    codes = [source.layout.unpack_column(words, at) for at in range(len(source.types))]
    ranks = [
        order_keys(column, type_, dictionary).keys
        for column, type_ in zip(codes, source.types, strict=True)
    ]
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


def _kinds(columns: list[Codes]) -> Ranks:
    """Return a number for each tuple, equal for those that agree on all columns."""
    kinds = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        distinct, rows = np.unique(column, return_inverse=True)
        _, kinds = np.unique(kinds * len(distinct) + rows, return_inverse=True)
    return kinds
