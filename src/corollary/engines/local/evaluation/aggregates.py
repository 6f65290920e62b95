"""Aggregates over sorted groups."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from corollary.core.logic import Aggregation
from corollary.core.states import State
from corollary.core.types import Kind, Type
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import Words, layout_of
from corollary.engines.local.storage.runs import sort_distinct
from corollary.engines.local.storage.sorting import first_mask, sort_words
from corollary.engines.local.storage.table import Table
from corollary.engines.local.values.codes import Dictionary
from corollary.engines.local.values.native import INTEGER_BOUNDS
from corollary.engines.local.values.texts import Texts

Starts = npt.NDArray[np.int64]
LIMB_BITS = 32


def aggregate(
    aggregation: Aggregation, body: Table, state: State, target: Table, dictionary: Dictionary
) -> Words:
    """Return the tuples (keys…, value) of an aggregation, packed and sorted for the target.

    A sum that is too large for its type becomes null: the rule that reads it decides whether that
    is an error.
    """
    groups = _groups(aggregation, body, state)
    codes = _values(aggregation, groups, target.types[-1], dictionary)
    has_value = (codes != 0) | (aggregation.operator == "sum")
    columns = [column[has_value] for column in (*groups.keys, codes)]
    return sort_distinct(target.pack(columns, len(columns[-1])))


@dataclass(frozen=True, slots=True)
class _Groups:
    """The rows of a body sorted by group.

    Attributes:
        keys: the key columns, one row per group.
        starts: the index of the first row of each group.
        values: the codes to aggregate; for `count` (type None) the number of rows per group.
    """

    keys: list[Codes]
    starts: Starts
    values: Codes
    type: Type | None


def _groups(aggregation: Aggregation, body: Table, state: State) -> _Groups:
    """Sort the key columns and the value column.

    Rows that differ only in other columns are equal now, and each counts: they are distinct tuples.
    """
    words, layout = body.tuples(state), body.layout
    columns = [*aggregation.groups, *(() if aggregation.value is None else (aggregation.value,))]
    if columns != list(range(len(columns))):
        selected = layout_of(tuple(layout.columns[column] for column in columns))
        rows = [layout.unpack_column(words, column) for column in columns]
        words, layout = sort_words(selected.pack(rows, len(words))), selected
    length = len(aggregation.groups)
    prefix = layout.prefix_keys(words, length)
    starts = first_mask(prefix).nonzero()[0]
    firsts = words[starts]
    keys = [layout.unpack_column(firsts, at) for at in range(length)]
    if aggregation.value is None:
        return _Groups(keys, starts, np.diff(np.append(starts, len(words))), None)
    return _Groups(keys, starts, layout.unpack_column(words, length), body.types[aggregation.value])


def _values(
    aggregation: Aggregation, groups: _Groups, type_: Type, dictionary: Dictionary
) -> Codes:
    """Return the code of each group's value, 0 (null) if all its values are null."""
    if groups.type is None:
        return dictionary.encode(groups.values, None, type_)
    codes, starts = groups.values, groups.starts
    if not len(starts):
        return np.empty(0, np.int64)
    present = codes != 0
    owners = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(codes))))[present]
    sizes = np.bincount(owners, minlength=len(starts))
    values = dictionary.decode(codes[present], groups.type)
    result = np.zeros(len(starts), np.int64)
    nonempty = np.flatnonzero(sizes)
    if not len(nonempty):
        if aggregation.operator == "sum":
            result[:] = dictionary.encode_value(0, type_)
        return result
    # `reduceat` needs the starts of nonempty groups among the values that are not null.
    begins = np.concatenate([[0], np.cumsum(sizes[nonempty])[:-1]])
    combined, too_large = _COMBINE[aggregation.operator](
        values, begins, sizes[nonempty], groups.type, type_
    )
    result[nonempty] = dictionary.encode(combined, too_large, type_)
    if aggregation.operator == "sum":
        result[sizes == 0] = dictionary.encode_value(0, type_)
    return result


def _extreme(is_largest: bool) -> Callable[..., Any]:
    def combine(values: Any, begins: Starts, sizes: Any, source: Type, target: Type) -> Any:  # noqa: ARG001
        # Symbols have no `reduceat`, and NaN is the greatest float here: compare their ranks.
        ordered: Any
        if isinstance(values, Texts):
            ordered, ranks = values.ranks()
        elif source.kind is Kind.FLOAT:
            ordered, ranks = np.unique(values, return_inverse=True, equal_nan=True)
        else:
            reduce = np.maximum if is_largest else np.minimum
            return reduce.reduceat(values, begins), None
        best = (np.maximum if is_largest else np.minimum).reduceat(ranks.ravel(), begins)
        return ordered[best], None

    return combine


def _integer_sums(values: Any, begins: Starts) -> list[int]:
    """Return exact sums as Python integers.

    Sums of the upper and the lower 32 bits cannot overflow 64 bits below 2^31 rows.
    """
    high = np.add.reduceat((values >> LIMB_BITS).astype(np.int64), begins)
    low = np.add.reduceat((values & ((1 << LIMB_BITS) - 1)).astype(np.int64), begins)
    return [(one << LIMB_BITS) + two for one, two in zip(high.tolist(), low.tolist(), strict=True)]


def sum_groups(values: Any, begins: Starts, sizes: Any, source: Type, target: Type) -> Any:
    """Return the sum of each group, and the mask of those too large for the type, None for none."""
    if source.kind is Kind.FLOAT:
        sums = [_float_sum(part) for part in _parts(values, begins, sizes)]
        return np.array(sums, np.float64), None
    low, high = INTEGER_BOUNDS[target.kind]
    exact = _integer_sums(values, begins)
    too_large = np.array([not low <= each <= high for each in exact], np.bool_)
    fitting = [each if low <= each <= high else 0 for each in exact]
    return np.array(fitting, np.uint64 if target.kind is Kind.UNSIGNED else np.int64), too_large


def _mean(values: Any, begins: Starts, sizes: Any, source: Type, target: Type) -> Any:
    if source.kind is Kind.FLOAT:
        sums, _ = sum_groups(values, begins, sizes, source, target)
        with np.errstate(all="ignore"):
            return sums / sizes, None
    unit = 10**source.scale
    exact = _integer_sums(values, begins)
    means = [each / (size * unit) for each, size in zip(exact, sizes.tolist(), strict=True)]
    return np.array(means, np.float64), None


def _parts(values: Any, begins: Starts, sizes: Any) -> list[list[float]]:
    listed = values.tolist()
    return [
        listed[at : at + size] for at, size in zip(begins.tolist(), sizes.tolist(), strict=True)
    ]


def _float_sum(values: list[float]) -> float:
    """Return the correctly rounded sum; infinities and NaN by IEEE."""
    try:
        return math.fsum(values) + 0.0  # no -0.0
    except (OverflowError, ValueError):
        special = [value for value in values if not math.isfinite(value)]
    if special:
        return sum(special)
    exact = sum(map(Fraction, values))
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


_COMBINE: dict[str, Callable[..., Any]] = {
    "sum": sum_groups,
    "mean": _mean,
    "min": _extreme(is_largest=False),
    "max": _extreme(is_largest=True),
}
