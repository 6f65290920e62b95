"""Running totals of aggregations: computed, and read (`core/totals.py` has their columns)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from corollary.core.logic import Aggregation
from corollary.core.plans import ReadTotals, Total
from corollary.core.totals import ALL_PLACES, WORD_BITS, SpecialPlace, word_count
from corollary.core.types import NUMBER, Kind, Type
from corollary.engines.local.evaluation import float_digits
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import Mask, Words
from corollary.engines.local.storage.runs import sort_distinct
from corollary.engines.local.storage.table import Table
from corollary.engines.local.values.codes import Dictionary
from corollary.engines.local.values.native import INTEGER_BOUNDS

Integers = npt.NDArray[np.int64]

WORD_MASK = (1 << WORD_BITS) - 1

EXACT_FLOAT_INTEGERS = 1 << 53
"""Every integer up to this is a float, so that a quotient of two of them is rounded once."""


# --- from a body to its totals -------------------------------------------------------------------


def compute_totals(step: Total, body: Table, target: Table, dictionary: Dictionary) -> Words:
    """Return the totals of the groups of a body, packed and sorted for the target."""
    terms = _read_terms(step, body, dictionary)
    groups, sums = _digit_rows(terms) if terms.type.kind is Kind.FLOAT else _word_rows(terms)
    columns = [key[groups] for key in terms.keys]
    columns += [dictionary.encode(each, None, NUMBER) for each in sums]
    return sort_distinct(target.pack(columns, len(groups)))


@dataclass(frozen=True, slots=True)
class _Terms:
    """What is aggregated, sorted by group.

    Attributes:
        keys: the key columns, one row for each group.
        count: the number of groups.
        owners: the group of each row.
        weights: how often each row counts.
        is_present: whether the term of a row is not null.
        is_counted: whether a row counts for n.
        values: the terms that are not null.
        type: of the terms.
    """

    keys: list[Codes]
    count: int
    owners: Integers
    weights: Integers
    is_present: Mask
    is_counted: Mask
    values: Any
    type: Type


def _read_terms(step: Total, body: Table, dictionary: Dictionary) -> _Terms:
    aggregation = step.aggregation
    assert aggregation.value is not None
    words, layout = body.tuples(step.body.state), body.layout
    columns = (*aggregation.groups, aggregation.value)
    columns = (*columns, len(body.types) - 1) if step.is_weighted else columns
    if columns != tuple(range(len(columns))):
        selected = layout.permute(columns)
        rows = [layout.unpack_column(words, column) for column in columns]
        words, layout = np.sort(selected.pack(rows, len(words))), selected
    length = len(aggregation.groups)
    is_start = _first_mask(layout.prefix_keys(words, length))
    firsts = words[is_start]
    codes, type_ = layout.unpack_column(words, length), body.types[aggregation.value]
    is_present = codes != 0
    weights = np.ones(len(words), np.int64)
    if step.is_weighted:
        weights = dictionary.decode(layout.unpack_column(words, length + 1), NUMBER)
    return _Terms(
        [layout.unpack_column(firsts, at) for at in range(length)],
        len(firsts),
        np.cumsum(is_start) - 1,
        weights,
        is_present,
        is_present if aggregation.operator == "mean" else np.ones(len(words), np.bool_),
        dictionary.decode(codes[is_present], type_),
        type_,
    )


def _first_mask(keys: Words) -> Mask:
    """Return the mask of those among sorted keys that differ from the one before."""
    is_first = np.ones(len(keys), np.bool_)
    is_first[1:] = keys[1:] != keys[:-1]
    return is_first


def _word_rows(terms: _Terms) -> tuple[Integers, list[Integers]]:
    """Return the groups whose totals are not all 0, and their totals: a count, and words."""
    columns = [terms.weights * terms.is_counted]
    for word in split_words(terms.values, terms.type):
        column = np.zeros(len(terms.owners), np.int64)
        column[terms.is_present] = word * terms.weights[terms.is_present]
        columns.append(column)
    if not terms.count:
        return np.empty(0, np.int64), columns
    starts = np.searchsorted(terms.owners, np.arange(terms.count))
    sums = [np.add.reduceat(column, starts) for column in columns]
    groups = np.any(np.stack(sums) != 0, axis=0).nonzero()[0]
    return groups, [column[groups] for column in sums]


def _digit_rows(terms: _Terms) -> tuple[Integers, list[Integers]]:
    """Return the groups of rows with a place and the sum of its digits, which is not 0."""
    weights, owners = terms.weights[terms.is_present], terms.owners[terms.is_present]
    rows = [
        (owners[each.rows], each.places, each.digits * weights[each.rows])
        for each in float_digits.split_digits(terms.values)
    ]
    counted = terms.is_counted
    places = np.full(np.count_nonzero(counted), SpecialPlace.COUNT, np.int64)
    rows.append((terms.owners[counted], places, terms.weights[counted]))
    group, place, digit = (np.concatenate(column) for column in zip(*rows, strict=True))
    key = group * ALL_PLACES + place
    order = key.argsort(kind="stable")
    starts = _first_mask(key[order]).nonzero()[0]
    if not len(starts):
        return group, [place, digit]
    sums = np.add.reduceat(digit[order], starts)
    chosen = order[starts[sums != 0]]
    return group[chosen], [place[chosen], sums[sums != 0]]


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


def sum_integers(values: Any, starts: Integers, type_: Type) -> tuple[Any, Mask | None]:
    """Return the sums of groups of integers, and the mask of those that are too large, if any."""
    words = [np.add.reduceat(each, starts) for each in split_words(values, type_)]
    return join_words(words, type_)


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


def read_totals(step: ReadTotals, totals: Table, target: Table, dictionary: Dictionary) -> Words:
    """Return the tuples (keys…, value) that totals say, packed and sorted for the target.

    A sum that is too large for its type becomes null: the rule that reads it decides whether that
    is an error.
    """
    words, layout = totals.tuples(step.totals.state), totals.layout
    length, type_ = len(target.types) - 1, target.types[-1]
    columns = [
        dictionary.decode(layout.unpack_column(words, at), NUMBER)
        for at in range(length, len(totals.types))
    ]
    missing: Mask | None = None
    if step.term.kind is Kind.FLOAT:
        is_start = _first_mask(layout.prefix_keys(words, length))
        words = words[is_start]
        values = _read_digits(step.aggregation, np.cumsum(is_start) - 1, *columns)
    elif step.aggregation.operator == "mean":
        values = mean_of_words(columns[1:], columns[0], step.term.scale)
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
