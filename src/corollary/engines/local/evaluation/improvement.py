"""The step `Improve`: the best tuples of each key, less those that are covered already.

Tuples and rivals are sorted by key and value, better values first, so a tuple can only be covered
by one before it in its group. In a total order the first one of a group is the best. With two
value columns a running minimum of the second one says whether a tuple before is as good; with more,
the first tuple that is left in each group is a best one, and what it covers goes, again and again.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from corollary.core.plans import Improve
from corollary.core.states import State
from corollary.engines.local.evaluation.order_keys import order_keys
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import Words
from corollary.engines.local.storage.table import Table
from corollary.engines.local.values.codes import Dictionary

Ranks = npt.NDArray[np.int64]


def improve(step: Improve, source: Table, rivals: Table, dictionary: Dictionary) -> Words:
    """Return the best tuples of a table that no rival covers, packed and sorted as in the table."""
    words, others = source.tuples(State.NEW), rivals.tuples(State.NEW)
    if not len(words):
        return words
    columns = [
        np.concatenate(
            [rivals.layout.unpack_column(others, at), source.layout.unpack_column(words, at)]
        )
        for at in range(step.arity)
    ]
    values = []
    for column in step.order.values:
        at = column.position
        keys = order_keys(columns[at], source.types[at], dictionary).keys
        ranks: Ranks = np.unique(keys, return_inverse=True)[1]
        values.append(-ranks if column.is_greater_better else ranks)
    by = [columns[at] for at in step.order.keys(step.arity)]
    # Rivals come first among equals, so that they cover them; `lexsort` is stable.
    sorted_by = [*reversed(values), *reversed(by)]
    order = np.lexsort(sorted_by) if sorted_by else np.arange(len(others) + len(words))
    groups = _group_numbers(by, order)
    sorted_values = [each[order] for each in values]
    if step.order.is_total or not values:
        is_best = np.append(True, groups[1:] != groups[:-1])
    elif len(values) == 2:
        is_best = _first_of_two(groups, sorted_values[0], sorted_values[1])
    else:
        is_best = _peel(groups, sorted_values)
    chosen = order[is_best] - len(others)
    best: Words = words[np.sort(chosen[chosen >= 0])]
    return best


def _group_numbers(keys: Sequence[Codes], order: Ranks) -> Ranks:
    """Return the number of each row's group, in the sorted order."""
    is_new = np.zeros(len(order), np.bool_)
    for key in keys:
        column = key[order]
        is_new[1:] |= column[1:] != column[:-1]
    return np.cumsum(is_new)


def _first_of_two(groups: Ranks, first: Ranks, second: Ranks) -> npt.NDArray[np.bool_]:
    """Return which rows no row before covers, for two value columns.

    Later groups are shifted below earlier ones, so that one running minimum serves all.
    """
    del first  # rows are sorted by it: every row before is as good in it
    low = second - second.min()
    width = int(low.max()) + 1
    shifted = low + (groups[-1] - groups) * width
    before = np.minimum.accumulate(shifted)
    is_best = np.ones(len(groups), np.bool_)
    is_best[1:] = (shifted[1:] < before[:-1]) | (groups[1:] != groups[:-1])
    return is_best


def _peel(groups: Ranks, values: Sequence[Ranks]) -> npt.NDArray[np.bool_]:
    """Return which rows no row before covers, for any number of value columns."""
    is_best = np.zeros(len(groups), np.bool_)
    rows = np.arange(len(groups))
    while len(rows):
        own = groups[rows]
        starts = np.append(True, own[1:] != own[:-1])
        firsts = rows[starts]
        is_best[firsts] = True
        leader = firsts[np.cumsum(starts) - 1]
        is_covered = np.ones(len(rows), np.bool_)
        for each in values:
            is_covered &= each[leader] <= each[rows]
        rows = rows[~is_covered]
    return is_best
