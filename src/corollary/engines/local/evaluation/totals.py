"""Running totals of aggregations: computed, and read (`core/totals.py` has their columns)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from corollary.core.logic import Aggregation
from corollary.core.states import State
from corollary.core.totals import WORD_BITS, SpecialPlace, word_count
from corollary.core.types import NUMBER, Kind, Type
from corollary.engines.local.evaluation import float_digits
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import Mask, Words, layout_of
from corollary.engines.local.storage.runs import sort_distinct
from corollary.engines.local.storage.table import Table
from corollary.engines.local.values.codes import Dictionary
from corollary.engines.local.values.native import INTEGER_BOUNDS

Integers = npt.NDArray[np.int64]

WORD_MASK = (1 << WORD_BITS) - 1

EXACT_FLOAT_INTEGERS = 1 << 53
"""Every integer up to this is a float, so that a quotient of two of them is rounded once."""


# --- from a body to its totals -------------------------------------------------------------------


def compute_totals(
    aggregation: Aggregation,
    body: Table,
    state: State,
    target: Table,
    dictionary: Dictionary,
    *,
    is_weighted: bool,
) -> Words:
    """Return the totals of the groups of a body, packed and sorted for the target."""
    assert aggregation.value is not None
    keys, owners, codes, weights = _grouped(aggregation, body, state, dictionary, is_weighted)
    type_ = body.types[aggregation.value]
    present = codes != 0
    counted = np.ones(len(codes), np.bool_) if aggregation.operator == "sum" else present
    values = dictionary.decode(codes[present], type_)
    groups = len(keys[0]) if keys else int(len(codes) > 0)
    if type_.kind is Kind.FLOAT:
        rows = _digit_rows(owners, values, weights, present, counted)
    else:
        rows = _word_rows(owners, values, weights, present, counted, groups, type_)
    found, sums = rows
    columns = [key[found] for key in keys]
    columns += [dictionary.encode(each, None, NUMBER) for each in sums]
    return sort_distinct(target.pack(columns, len(found)))


def _grouped(
    aggregation: Aggregation, body: Table, state: State, dictionary: Dictionary, is_weighted: bool
) -> tuple[list[Codes], Integers, Codes, Integers]:
    """Return the keys of the groups, and for each row its group, the code of its term, its weight.

    Rows are sorted by group.
    """
    assert aggregation.value is not None
    words, layout = body.tuples(state), body.layout
    columns = [*aggregation.groups, aggregation.value]
    columns += [len(body.types) - 1] if is_weighted else []
    if columns != list(range(len(columns))):
        selected = layout_of(tuple(layout.columns[column] for column in columns))
        rows = [layout.unpack_column(words, column) for column in columns]
        words, layout = np.sort(selected.pack(rows, len(words))), selected
    length = len(aggregation.groups)
    prefix = layout.prefix_keys(words, length)
    is_start = np.ones(len(words), np.bool_)
    is_start[1:] = prefix[1:] != prefix[:-1]
    firsts = words[is_start]
    keys = [layout.unpack_column(firsts, at) for at in range(length)]
    weights = np.ones(len(words), np.int64)
    if is_weighted:
        weights = dictionary.decode(layout.unpack_column(words, length + 1), NUMBER)
    return keys, np.cumsum(is_start) - 1, layout.unpack_column(words, length), weights


def _word_rows(
    owners: Integers,
    values: Any,
    weights: Integers,
    present: Mask,
    counted: Mask,
    groups: int,
    type_: Type,
) -> tuple[Integers, list[Integers]]:
    """Return the groups whose totals are not all 0, and their totals: a count, and words."""
    columns = [weights * counted]
    for word in split_words(values, type_):
        column = np.zeros(len(owners), np.int64)
        column[present] = word * weights[present]
        columns.append(column)
    if not groups:
        return np.empty(0, np.int64), [np.empty(0, np.int64)] * len(columns)
    starts = np.searchsorted(owners, np.arange(groups))
    sums = [np.add.reduceat(column, starts) for column in columns]
    found = np.any(np.stack(sums) != 0, axis=0).nonzero()[0]
    return found, [column[found] for column in sums]


def _digit_rows(
    owners: Integers, values: Any, weights: Integers, present: Mask, counted: Mask
) -> tuple[Integers, list[Integers]]:
    """Return the groups of rows with a place and the sum of its digits, which is not 0."""
    digits = float_digits.split_digits(values)
    weight, owner = weights[present], owners[present]
    rows = [(owner[each.rows], each.places, each.digits * weight[each.rows]) for each in digits]
    places = np.full(int(counted.sum()), SpecialPlace.COUNT, np.int64)
    rows.append((owners[counted], places, weights[counted]))
    group, place, digit = (np.concatenate(column) for column in zip(*rows, strict=True))
    key = group * len(SpecialPlace) * 64 + place
    order = key.argsort(kind="stable")
    key, group, place, digit = key[order], group[order], place[order], digit[order]
    if not len(key):
        return group, [place, digit]
    starts = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
    sums = np.add.reduceat(digit, starts)
    starts, sums = starts[sums != 0], sums[sums != 0]
    return group[starts], [place[starts], sums]


# --- integers ------------------------------------------------------------------------------------


def split_words(values: Any, type_: Type) -> list[Integers]:
    """Return the words of integers, the most significant first, which alone may be negative.

    >>> [word.tolist() for word in split_words(np.array([-1, 5]), NUMBER)]
    [[-1, 0], [4294967295, 5]]
    """
    last = word_count(type_) - 1
    words = []
    for at in range(last, -1, -1):
        word = values >> (at * WORD_BITS) if at else values
        words.append((word if at == last else word & WORD_MASK).astype(np.int64))
    return words


def join_words(words: Sequence[Integers], type_: Type) -> tuple[Any, Mask | None]:
    """Return the integers with these words, and the mask of those too large for a type, if any.

    The words of sums may be larger than those of values: what is above a word is carried.
    """
    carried = _carry(words)
    low, high = INTEGER_BOUNDS[type_.kind]
    if len(carried) > 2:
        exact = join_exactly(carried)
        too_large = np.array([not low <= each <= high for each in exact], np.bool_)
        fitting = [0 if large else each for each, large in zip(exact, too_large, strict=True)]
        return np.array(fitting, np.int64 if high < 1 << 63 else object), _mask(too_large)
    upper, lower = carried
    dtype, half = (
        (np.uint64, 0) if type_.kind is Kind.UNSIGNED else (np.int64, 1 << (WORD_BITS - 1))
    )
    too_large = (upper < -half) | (upper > WORD_MASK - half)
    values = (np.where(too_large, 0, upper) << WORD_BITS | np.where(too_large, 0, lower)).view(
        dtype
    )
    too_large |= (values < low) | (values > high)
    return np.where(too_large, 0, values).astype(dtype), _mask(too_large)


def join_exactly(words: Sequence[Integers]) -> list[int]:
    """Return the integers with these words as Python integers."""
    totals = [0] * len(words[0])
    for word in words:
        totals = [
            (total << WORD_BITS) + each for total, each in zip(totals, word.tolist(), strict=True)
        ]
    return totals


def _carry(words: Sequence[Integers]) -> list[Integers]:
    """Return words that say the same integers, all but the first from 0 to 2³² − 1."""
    carried: list[Integers] = []
    carry = np.zeros(len(words[0]), np.int64)
    for word in reversed(words[1:]):
        word = word + carry
        carry = word >> WORD_BITS
        carried.append(word & WORD_MASK)
    return [words[0] + carry, *reversed(carried)]


def _mask(mask: Mask) -> Mask | None:
    return mask if mask.any() else None


def sum_weights(values: Integers, starts: Integers) -> tuple[Integers, Mask | None]:
    """Return the sums of groups of numbers, and the mask of those that are too large, if any."""
    return join_words(
        [np.add.reduceat(each, starts) for each in split_words(values, NUMBER)], NUMBER
    )


def mean_of_words(words: Sequence[Integers], counts: Integers, scale: int) -> Any:
    """Return the means of integers times 10^-scale, each the float nearest to the quotient."""
    carried = _carry(words)
    divisors = counts.astype(np.float64) * 10.0**scale
    limit = EXACT_FLOAT_INTEGERS
    is_short = (counts <= limit // 10**scale) if 10**scale <= limit else np.zeros(len(counts), bool)
    for word in carried[:-2]:  # those above 64 bits
        is_short &= word == 0
    upper = carried[-2]
    is_short &= (upper >= -(limit >> WORD_BITS)) & (upper < limit >> WORD_BITS)
    exact = upper.astype(np.float64) * float(1 << WORD_BITS) + carried[-1].astype(np.float64)
    means = exact / np.where(is_short, divisors, 1.0)
    (long,) = np.nonzero(~is_short)
    if len(long):
        unit = 10**scale
        totals = join_exactly([word[long] for word in carried])
        parts = zip(totals, counts[long].tolist(), strict=True)
        means[long] = [total / (count * unit) for total, count in parts]
    return means


# --- from totals to values -----------------------------------------------------------------------


def read_totals(
    aggregation: Aggregation,
    source: Type,
    totals: Table,
    state: State,
    target: Table,
    dictionary: Dictionary,
) -> Words:
    """Return the tuples (keys…, value) that totals of values of a type say, sorted for the target.

    A sum that is too large for its type becomes null: the rule that reads it decides whether that
    is an error.
    """
    words, layout = totals.tuples(state), totals.layout
    length = len(target.types) - 1
    type_ = target.types[-1]
    columns = [
        dictionary.decode(layout.unpack_column(words, at), NUMBER)
        for at in range(length, len(totals.types))
    ]
    missing: Mask | None = None
    if source.kind is Kind.FLOAT:
        prefix = layout.prefix_keys(words, length)
        is_start = np.ones(len(words), np.bool_)
        is_start[1:] = prefix[1:] != prefix[:-1]
        words = words[is_start]
        values = _read_digits(aggregation, np.cumsum(is_start) - 1, *columns)
    elif aggregation.operator == "mean":
        values = mean_of_words(columns[1:], columns[0], source.scale)
    else:
        values, missing = join_words(columns[1:], type_)
    keys = [layout.unpack_column(words, at) for at in range(length)]
    codes = dictionary.encode(values, missing, type_)
    return sort_distinct(target.pack([*keys, codes], len(words)))


def _read_digits(
    aggregation: Aggregation, owners: Integers, places: Integers, digits: Integers
) -> Any:
    """Return the sum or mean of each group."""
    groups = int(owners[-1]) + 1 if len(owners) else 0
    sums = float_digits.join_digits(owners, places, digits, groups)
    if aggregation.operator == "sum":
        return sums
    counts = np.zeros(groups, np.int64)
    is_count = places == SpecialPlace.COUNT
    counts[owners[is_count]] = digits[is_count]
    return sums / counts
