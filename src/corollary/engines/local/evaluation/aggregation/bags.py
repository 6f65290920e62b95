"""Holistic aggregates: of the bag of a group's values, whatever the order of its rows.

A kernel gets the rows of many groups at once, each with the number of times that it counts, and
returns the code of each group's value. Of rows that are equal in what they are chosen or ordered
by, other values decide; null is the least of them.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.logic import Accumulator, Value
from corollary.core.records.arrays import join_pieces, offsets_of
from corollary.core.types import NUMBER, Type
from corollary.data_class import dataclass
from corollary.engines.local.evaluation.aggregation.moments import double_moment, single_moment
from corollary.engines.local.evaluation.functions.arrays import pieces_of
from corollary.engines.local.evaluation.order_keys import order_keys
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.sorting import first_mask
from corollary.engines.local.values.codes import Dictionary
from corollary.engines.local.values.texts import Texts


def float_order(bits: Codes) -> Codes:
    """Return the bits of floats as integers in their order, or such integers as bits."""
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)


@dataclass(frozen=True, slots=True)
class Bag:
    """The rows of some groups, none of which is empty, sorted by group.

    Attributes:
        owners: the group of each row.
        begins: the first row of each group.
        weights: how often each row counts.
        columns: the codes of each column, and their type.
        parameters: the constants of the aggregate.
        type: of the result.
        is_ordered: whether rows of a group are in an order, which decides between equal ones.
    """

    owners: Codes
    begins: Codes
    weights: Codes
    columns: tuple[tuple[Codes, Type], ...]
    parameters: tuple[Value, ...]
    type: Type
    dictionary: Dictionary
    is_ordered: bool = False

    def values(self, at: int) -> Any:
        """Return the values of a column."""
        return self.dictionary.decode(*self.columns[at])

    def ranks(self, at: int) -> Codes:
        """Return integers in the order of the values of a column, 0 for null."""
        codes, type_ = self.columns[at]
        return order_keys(codes, type_, self.dictionary).keys


def holistic(
    accumulator: Accumulator,
    values: Mapping[int, tuple[Codes, Type]],
    sizes: Codes,
    type_: Type,
    dictionary: Dictionary,
    *,
    is_ordered: bool = False,
) -> Codes:
    """Return the code of each group's value, 0 (null) if it has none.

    Args:
        accumulator: what is computed.
        values: the codes of columns and their types, sorted by group.
        sizes: the number of rows of each group.
        type_: of the result.
        dictionary: for codes and values.
        is_ordered: whether the rows of a group are in the order of a window.
    """
    assert accumulator.value is not None
    kernel, needed = _KERNELS[accumulator.operator]
    columns = [values[at] for at in (accumulator.value, *accumulator.others)]
    owners = np.repeat(np.arange(len(sizes)), sizes)
    weights = np.ones(len(owners), np.int64)
    for at in accumulator.weights:
        weights = weights * dictionary.decode(values[at][0], NUMBER)
    counts = weights != 0
    for codes, _ in columns[:needed]:
        counts &= codes != 0
    owners = owners[counts]
    result = np.zeros(len(sizes), np.int64)
    if len(owners):
        begins = first_mask(owners).nonzero()[0]
        chosen = tuple((codes[counts], each) for codes, each in columns)
        places = owners[begins]
        bag = Bag(
            np.repeat(np.arange(len(begins)), np.diff(np.append(begins, len(owners)))),
            begins,
            weights[counts],
            chosen,
            accumulator.parameters,
            type_,
            dictionary,
            is_ordered,
        )
        result[places] = kernel(bag)
    return result


def _moment(operator: str, bag: Bag) -> Codes:
    values, is_null = single_moment(operator, bag.values(0), bag.weights, bag.begins)
    return bag.dictionary.encode(values, is_null, bag.type)


def _moment_of_two(operator: str, bag: Bag) -> Codes:
    columns = bag.values(0), bag.values(1)
    values, is_null = double_moment(operator, columns, bag.weights, bag.begins)
    return bag.dictionary.encode(values, is_null, bag.type)


def _combine_bits(combine: np.ufunc, bag: Bag) -> Codes:
    values = bag.values(0)
    if combine is np.bitwise_xor:
        values = np.where(bag.weights & 1, values, 0)
    return bag.dictionary.encode(combine.reduceat(values, bag.begins), None, bag.type)


def _percentile(is_continuous: bool, bag: Bag) -> Codes:
    """Return percentiles; the parameters are the share p and whether the order descends."""
    share, is_descending = bag.parameters
    assert isinstance(share, int | float | Decimal)
    ranks = -bag.ranks(0) if is_descending else bag.ranks(0)
    order = np.lexsort((ranks, bag.owners))
    values, weights = bag.values(0)[order], bag.weights[order]
    ends = np.cumsum(weights)
    before = ends[bag.begins] - weights[bag.begins]
    count = np.add.reduceat(weights, bag.begins)

    def value_at(place: Codes) -> Codes:
        found: Codes = values[np.searchsorted(ends, before + place.astype(np.int64), side="right")]
        return found

    if not is_continuous:
        result = value_at(np.maximum(np.ceil(count * float(share)) - 1, 0))
        return bag.dictionary.encode(result, None, bag.type)
    position = (count - 1) * float(share)
    lower, upper = np.floor(position), np.ceil(position)
    one, two = value_at(lower), value_at(upper)
    with np.errstate(all="ignore"):
        between = one + (position - lower) * (two - one) + 0.0
    result = np.where((lower == upper) | (one == two), one, between)
    return bag.dictionary.encode(result, None, bag.type)


def _mode(bag: Bag) -> Codes:
    """Return the most frequent value; of several the least, or the greatest one."""
    (is_descending,) = bag.parameters
    ranks = bag.ranks(0)
    order = np.lexsort((ranks, bag.owners))
    is_first = first_mask(bag.owners[order]) | first_mask(ranks[order])
    counts = np.add.reduceat(bag.weights[order], is_first.nonzero()[0])
    firsts = order[is_first]
    by_value = -ranks[firsts] if is_descending else ranks[firsts]
    best = firsts[np.lexsort((by_value, -counts, bag.owners[firsts]))]
    return bag.columns[0][0][best[first_mask(bag.owners[best])]]


def _choose(is_greatest: bool, bag: Bag) -> Codes:
    """Return the second value where the first is the greatest or the least."""
    places = np.arange(len(bag.owners))
    others = (places if is_greatest else -places) if bag.is_ordered else bag.ranks(1)
    order = np.lexsort((others, bag.ranks(0), bag.owners))
    at = np.append(bag.begins[1:], len(order)) - 1 if is_greatest else bag.begins
    return bag.columns[1][0][order[at]]


def _end_row(is_last: bool, bag: Bag) -> Codes:
    """Return the second value of the first or last row by the columns after it."""
    (ignores_nulls,) = bag.parameters
    keys = [bag.ranks(at) for at in range(len(bag.columns) - 1, 1, -1)]
    if ignores_nulls:
        keys.append((bag.columns[1][0] == 0) != is_last)
    order = np.lexsort((*keys, bag.owners))
    at = np.append(bag.begins[1:], len(order)) - 1 if is_last else bag.begins
    return bag.columns[1][0][order[at]]


def _join_texts(bag: Bag) -> Codes:
    """Return the texts of a group in the order of another column, with something between them."""
    separator, is_descending = bag.parameters
    texts = bag.values(0)
    assert isinstance(texts, Texts)
    keys = -bag.ranks(1) if is_descending else bag.ranks(1)
    order = np.arange(len(bag.owners))
    if not bag.is_ordered:
        order = np.lexsort((bag.ranks(0), keys, bag.owners))
    rows = order.repeat(bag.weights[order])
    ends = np.cumsum(np.add.reduceat(bag.weights, bag.begins))
    lists = pa.LargeListArray.from_arrays(pa.array(np.append(0, ends)), texts.take(rows).array)
    joined = pc.binary_join(lists, pa.scalar(separator, pa.large_string()))
    return bag.dictionary.encode(Texts(joined), None, bag.type)


def _collect(is_set: bool, bag: Bag) -> Codes:
    """Return the values of a group as an array in their order; in that of rows if they have one."""
    codes, type_ = bag.columns[0]
    ranks = bag.ranks(0)
    rows = np.arange(len(ranks))
    if is_set or not bag.is_ordered:
        rows = np.lexsort((ranks, bag.owners))
    if is_set:
        rows = rows[first_mask(bag.owners[rows]) | first_mask(ranks[rows])]
    else:
        rows = rows.repeat(bag.weights[rows])
    ends = offsets_of(np.bincount(bag.owners[rows], minlength=len(bag.begins)))
    pieces = pieces_of(bag.dictionary.decode(codes[rows], type_), None, type_)
    return bag.dictionary.encode(Texts(join_pieces(ends, pieces.array)), None, bag.type)


_SINGLE = ("var_pop", "var_samp", "stddev_pop", "stddev_samp", "skewness", "kurtosis")
_DOUBLE = ("covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept", "regr_r2")
_SUMS = ("regr_sxx", "regr_sxy", "regr_syy")

_KERNELS: dict[str, tuple[Callable[[Bag], Codes], int]] = {
    **{name: (partial(_moment, name), 1) for name in _SINGLE},
    **{name: (partial(_moment_of_two, name), 2) for name in (*_DOUBLE, *_SUMS)},
    "bit_and": (partial(_combine_bits, np.bitwise_and), 1),
    "bit_or": (partial(_combine_bits, np.bitwise_or), 1),
    "bit_xor": (partial(_combine_bits, np.bitwise_xor), 1),
    "percentile_cont": (partial(_percentile, True), 1),
    "percentile_disc": (partial(_percentile, False), 1),
    "mode": (_mode, 1),
    "max_by": (partial(_choose, True), 1),
    "min_by": (partial(_choose, False), 1),
    "first": (partial(_end_row, False), 1),
    "last": (partial(_end_row, True), 1),
    "listagg": (_join_texts, 1),
    "collect_list": (partial(_collect, False), 1),
    "collect_set": (partial(_collect, True), 1),
}
"""The kernels, and how many columns have to be present for a row to count."""
