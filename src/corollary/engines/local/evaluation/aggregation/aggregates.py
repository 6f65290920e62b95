"""Aggregates over sorted groups."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from corollary.core.logic import Accumulator, Aggregation
from corollary.core.states import State
from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.engines.local.evaluation import decimals
from corollary.engines.local.evaluation.aggregation.bags import float_order, holistic
from corollary.engines.local.evaluation.aggregation.exact_sums import (
    DIGIT_BITS,
    sum_floats,
    sum_integers,
)
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import Row, Words, layout_of
from corollary.engines.local.storage.rows import permutation
from corollary.engines.local.storage.runs import sort_distinct
from corollary.engines.local.storage.sorting import first_mask, sort_words
from corollary.engines.local.storage.table import Table
from corollary.engines.local.values.codes import Dictionary
from corollary.engines.local.values.native import narrow_integers
from corollary.engines.local.values.texts import Texts

Starts = npt.NDArray[np.int64]


def aggregate(
    aggregation: Aggregation, body: Table, state: State, target: Table, dictionary: Dictionary
) -> Words:
    """Return the tuples (keys…, values…) of an aggregation, packed and sorted for the target.

    A sum that is too large for its type becomes null: the rule that reads it decides whether that
    is an error.
    """
    groups = _groups(aggregation, body, state)
    types = target.types[len(aggregation.groups) :]
    columns = [
        *groups.keys,
        *(
            _values(each, groups, type_, dictionary)
            for each, type_ in zip(aggregation.accumulators, types, strict=True)
        ),
    ]
    if not aggregation.has_every_group:
        has_value = columns[-1] != 0
        columns = [column[has_value] for column in columns]
    return sort_distinct(target.pack(columns, len(columns[-1])))


def extreme_rows(
    aggregation: Aggregation, body: list[Row], type_: Type, dictionary: Dictionary
) -> list[Row]:
    """Return the same for the least or the greatest of few values, which are integers."""
    accumulator = aggregation.only
    assert accumulator.value is not None
    key_of, choose = permutation(aggregation.groups), max if accumulator.operator == "max" else min
    groups: dict[Row, list[int]] = {}
    for row in body:
        groups.setdefault(key_of(row), []).append(row[accumulator.value])
    found = []
    for key, codes in groups.items():
        present = [dictionary.decode_integer(code, type_) for code in codes if code]
        if present:
            found.append((*key, dictionary.encode_integer(choose(present), type_)))
        elif accumulator.has_every_group:
            found.append((*key, 0))
    return found


@dataclass(frozen=True, slots=True)
class _Groups:
    """The rows of a body sorted by group.

    Attributes:
        keys: the key columns, one row per group.
        starts: the index of the first row of each group.
        sizes: the number of its rows.
        values: the codes to aggregate, and their types, by columns of the body.
    """

    keys: list[Codes]
    starts: Starts
    sizes: Starts
    values: Mapping[int, tuple[Codes, Type]]


def _groups(aggregation: Aggregation, body: Table, state: State) -> _Groups:
    """Sort the key columns and the value columns.

    Rows that differ only in other columns are equal now, and each counts: they are distinct tuples.
    """
    words, layout = body.tuples(state), body.layout
    columns = [*aggregation.groups, *aggregation.values]
    if columns != list(range(len(columns))):
        selected = layout_of(tuple(layout.columns[column] for column in columns))
        rows = [layout.unpack_column(words, column) for column in columns]
        words, layout = sort_words(selected.pack(rows, len(words))), selected
    length = len(aggregation.groups)
    prefix = layout.prefix_keys(words, length)
    starts = first_mask(prefix).nonzero()[0]
    firsts = words[starts]
    keys = [layout.unpack_column(firsts, at) for at in range(length)]
    values = {
        at: (layout.unpack_column(words, place), body.types[at])
        for place, at in enumerate(aggregation.values, length)
    }
    return _Groups(keys, starts, np.diff(np.append(starts, len(words))), values)


def _values(
    accumulator: Accumulator, groups: _Groups, type_: Type, dictionary: Dictionary
) -> Codes:
    """Return the code of each group's value, 0 (null) if all its values are null."""
    if accumulator.value is None:
        return dictionary.encode(groups.sizes, None, type_)
    if accumulator.is_holistic:
        return holistic(accumulator, groups.values, groups.sizes, type_, dictionary)
    (codes, source), starts = groups.values[accumulator.value], groups.starts
    if not len(starts):
        return np.empty(0, np.int64)
    present = codes != 0
    owners = np.repeat(np.arange(len(starts)), groups.sizes)[present]
    sizes = np.bincount(owners, minlength=len(starts))
    values = dictionary.decode(codes[present], source)
    result = np.zeros(len(starts), np.int64)
    nonempty = np.flatnonzero(sizes)
    if not len(nonempty):
        if accumulator.operator == "sum":
            result[:] = dictionary.encode_value(0, type_)
        return result
    # `reduceat` needs the starts of nonempty groups among the values that are not null.
    begins = np.concatenate([[0], np.cumsum(sizes[nonempty])[:-1]])
    combined, too_large = _COMBINE[accumulator.operator](
        values, begins, sizes[nonempty], source, type_
    )
    result[nonempty] = dictionary.encode(combined, too_large, type_)
    if accumulator.operator == "sum":
        result[sizes == 0] = dictionary.encode_value(0, type_)
    return result


def _extreme(is_largest: bool) -> Callable[..., Any]:
    def combine(values: Any, begins: Starts, sizes: Any, source: Type, target: Type) -> Any:  # noqa: ARG001
        reduce = (np.maximum if is_largest else np.minimum).reduceat
        if isinstance(values, Texts):
            ordered, ranks = values.ranks()
            return ordered[reduce(ranks, begins)], None
        if source.stores_floats:
            # NaN is the greatest float here, as its bits are among those of positive numbers.
            return float_order(reduce(float_order(values.view(np.int64)), begins)).view(
                np.float64
            ), None
        return reduce(values, begins), None

    return combine


def sum_groups(values: Any, begins: Starts, sizes: Any, source: Type, target: Type) -> Any:  # noqa: ARG001
    """Return the sum of each group, and the mask of those too large for the type, None for none."""
    if source.is_float:
        return sum_floats(values, begins), None
    if values.dtype == object:
        return decimals.bounded(narrow_integers(np.add.reduceat(values, begins)))
    return fit_sums(*sum_integers(values, begins), target)


def fit_sums(high: Codes, low: Codes, target: Type) -> Any:
    """Return sums of integers in two parts, and the mask of those too large, None for none."""
    # A sum fits if its upper part has 32 bits, signed or not.
    upper = 1 << (DIGIT_BITS if target.is_unsigned else DIGIT_BITS - 1)
    lower = 0 if target.is_unsigned else -upper
    too_large = (high < lower) | (high >= upper)
    if target.is_decimal and too_large.any():
        whole = (high.astype(object) << DIGIT_BITS) + low
        return decimals.bounded(narrow_integers(whole))
    sums = np.where(too_large, 0, high << DIGIT_BITS | low)
    return sums.view(np.uint64 if target.is_unsigned else np.int64), too_large


def _mean(values: Any, begins: Starts, sizes: Any, source: Type, target: Type) -> Any:
    if source.is_float:
        sums, _ = sum_groups(values, begins, sizes, source, target)
        with np.errstate(all="ignore"):
            return sums / sizes + 0.0, None  # a quotient may be too small, and -0.0
    unit = 10**source.scale
    if values.dtype == object:
        exact = np.add.reduceat(values, begins).tolist()
        divided = zip(exact, sizes.tolist(), strict=True)
        return np.array([each / (size * unit) for each, size in divided], np.float64), None
    high, low = sum_integers(values, begins)
    means = (high * 2.0**DIGIT_BITS + low) / (sizes * float(unit))
    # The quotient of two floats is correctly rounded if neither of them is.
    is_exact = (abs(high) < 1 << 20) & (sizes < (1 << 53) // unit)
    rest = (~is_exact).nonzero()[0]
    totals = zip(high[rest].tolist(), low[rest].tolist(), sizes[rest].tolist(), strict=True)
    means[rest] = [((one << DIGIT_BITS) + two) / (size * unit) for one, two, size in totals]
    return means, None


_COMBINE: dict[str, Callable[..., Any]] = {
    "sum": sum_groups,
    "mean": _mean,
    "min": _extreme(is_largest=False),
    "max": _extreme(is_largest=True),
}
