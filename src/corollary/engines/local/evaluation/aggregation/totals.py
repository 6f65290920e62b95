"""Running totals of aggregations: computed, and read (`core/totals.py` has their columns)."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from corollary.core.logic import Accumulator, Aggregation
from corollary.core.plans import ReadTotals, Total
from corollary.core.totals import (
    ALL_PLACES,
    FLOAT_PLACES,
    WORD_BITS,
    SpecialPlace,
    word_count,
    word_slices,
)
from corollary.core.types import NUMBER, Type
from corollary.data_class import dataclass
from corollary.engines.local.evaluation.aggregation import exact_sums
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import Mask, Row, Words
from corollary.engines.local.storage.rows import permutation
from corollary.engines.local.storage.runs import sort_distinct
from corollary.engines.local.storage.sorting import first_mask, sort_words
from corollary.engines.local.storage.table import Table
from corollary.engines.local.values.codes import Dictionary

Integers = npt.NDArray[np.int64]

WORD_MASK = (1 << WORD_BITS) - 1

SIGN_BIT = 63
"""The bit of the sign in an integer of 64 bits."""

EXACT_FLOAT_INTEGERS = 1 << 53
"""Every integer up to this is a float, so that a quotient of two of them is rounded once."""

CHUNK_GROUPS = 1 << 14
"""The number of groups whose digits are in memory as a matrix at a time."""

SPECIAL_TESTS: Mapping[SpecialPlace, Callable[[Any], Mask]] = {
    SpecialPlace.NAN: np.isnan,
    SpecialPlace.INFINITY: np.isposinf,
    SpecialPlace.NEGATIVE_INFINITY: np.isneginf,
}
"""Which values are counted at a place, instead of having digits."""


# --- from a body to its totals -------------------------------------------------------------------


def compute_totals(step: Total, body: Table, target: Table, dictionary: Dictionary) -> Words:
    """Return the totals of the groups of a body, packed and sorted for the target."""
    terms = _read_terms(step, body, dictionary)
    is_float = terms[0].type.is_float
    groups, sums = _digit_rows(terms[0]) if is_float else _word_rows(terms)
    columns = [key[groups] for key in terms[0].keys]
    columns += [dictionary.encode(each, None, NUMBER) for each in sums]
    return sort_distinct(target.pack(columns, len(groups)))


def total_rows(
    step: Total, body: list[Row], types: Sequence[Type], dictionary: Dictionary
) -> list[Row]:
    """Return the totals of the groups of few tuples, whose values are integers or floats."""
    aggregation = step.aggregation
    if any(types[at].is_float for at in aggregation.values):
        return _digit_total_rows(step, body, types, dictionary)
    terms = [(at, types[at], _word_shifts(types[at])) for at in aggregation.values]
    key_of, count = permutation(aggregation.groups), 1 + sum(len(each[2]) for each in terms)
    of_present = terms[0][0] if _counts_present(aggregation) else None
    totals: dict[Row, list[int]] = {}
    for row in body:
        weight = dictionary.decode_integer(row[-1], NUMBER) if step.is_weighted else 1
        total = totals.setdefault(key_of(row), [0] * count)
        if of_present is None or row[of_present]:
            total[0] += weight
        place = 1
        for at, type_, shifts in terms:
            if code := row[at]:
                integer = dictionary.decode_integer(code, type_)
                total[place] += (integer >> shifts[0]) * weight
                for more, shift in enumerate(shifts[1:], place + 1):
                    total[more] += (integer >> shift & WORD_MASK) * weight
            place += len(shifts)
    return [
        (*key, *[dictionary.encode_integer(each, NUMBER) for each in total])
        for key, total in totals.items()
        if any(total)
    ]


def _digit_total_rows(
    step: Total, body: list[Row], types: Sequence[Type], dictionary: Dictionary
) -> list[Row]:
    """Return the same for floats: a row for each place with the sum of its digits."""
    aggregation = step.aggregation
    (term_at,) = aggregation.values
    key_of, counts_present = permutation(aggregation.groups), _counts_present(aggregation)
    codes = np.array([row[term_at] for row in body], np.int64)
    values = dictionary.decode(codes, types[term_at]).tolist()
    totals: Counter[tuple[Row, int]] = Counter()
    for row, value in zip(body, values, strict=True):
        weight = dictionary.decode_integer(row[-1], NUMBER) if step.is_weighted else 1
        key, is_present = key_of(row), row[term_at] != 0
        if is_present or not counts_present:
            totals[key, SpecialPlace.COUNT] += weight
        if is_present:
            for place, digit in _places_of(value):
                totals[key, place] += digit * weight
    return [
        (*key, *[dictionary.encode_integer(each, NUMBER) for each in (place, total)])
        for (key, place), total in totals.items()
        if total
    ]


def _places_of(value: float) -> Iterable[tuple[int, int]]:
    """Return the places that a float counts at, each with its digit there."""
    if math.isfinite(value):
        first, digits = exact_sums.split_float(value)
        return enumerate(digits, first)
    return [(place, 1) for place, is_at in SPECIAL_TESTS.items() if is_at(value)]


def _counts_present(aggregation: Aggregation) -> bool:
    """Whether n is the number of assignments with a term: a mean divides by it."""
    return aggregation.accumulators[0].operator == "mean"


@lru_cache(maxsize=64)
def _word_shifts(type_: Type) -> tuple[int, ...]:
    """Return for each word of an integer, the most significant first, the bits after it."""
    return tuple(at * WORD_BITS for at in reversed(range(word_count(type_))))


@dataclass(frozen=True, slots=True)
class _Terms:
    """A column that is aggregated, its rows sorted by group.

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


def _read_terms(step: Total, body: Table, dictionary: Dictionary) -> list[_Terms]:
    """Return the columns that are aggregated; they have keys, owners and weights in common."""
    aggregation = step.aggregation
    words, layout = body.tuples(step.body.state), body.layout
    columns = (*aggregation.groups, *aggregation.values)
    columns = (*columns, len(body.types) - 1) if step.is_weighted else columns
    if columns != tuple(range(len(columns))):
        selected = layout.permute(columns)
        rows = [layout.unpack_column(words, column) for column in columns]
        words, layout = sort_words(selected.pack(rows, len(words))), selected
    length = len(aggregation.groups)
    is_start = first_mask(layout.prefix_keys(words, length))
    firsts = words[is_start]
    keys = [layout.unpack_column(firsts, at) for at in range(length)]
    owners = np.cumsum(is_start) - 1
    weights = every = np.ones(len(words), np.int64)
    if step.is_weighted:
        weights = dictionary.decode(layout.unpack_column(words, len(columns) - 1), NUMBER)
    found = []
    for place, at in enumerate(aggregation.values, length):
        codes, type_ = layout.unpack_column(words, place), body.types[at]
        is_present = codes != 0
        is_counted = is_present if _counts_present(aggregation) else every.astype(np.bool_)
        values = dictionary.decode(codes[is_present], type_)
        found.append(
            _Terms(keys, len(firsts), owners, weights, is_present, is_counted, values, type_)
        )
    return found


def _word_rows(terms: Sequence[_Terms]) -> tuple[Integers, list[Integers]]:
    """Return the groups whose totals are not all 0, and their totals: a count, and words."""
    first = terms[0]
    columns = [first.weights * first.is_counted]
    for each in terms:
        for word in split_words(each.values, each.type):
            column = np.zeros(len(each.owners), np.int64)
            column[each.is_present] = word * each.weights[each.is_present]
            columns.append(column)
    if not first.count:
        return np.empty(0, np.int64), columns
    starts = np.searchsorted(first.owners, np.arange(first.count))
    sums = [np.add.reduceat(column, starts) for column in columns]
    groups = np.any(np.stack(sums) != 0, axis=0).nonzero()[0]
    return groups, [column[groups] for column in sums]


def _digit_rows(terms: _Terms) -> tuple[Integers, list[Integers]]:
    """Return the groups of rows with a place and the sum of its digits, which is not 0."""
    found = [
        (groups, np.full(len(groups), place, np.int64), sums[groups])
        for place, sums in _sums_by_place(terms).items()
        if len(groups := sums.nonzero()[0])
    ]
    if not found:
        return np.empty(0, np.int64), [np.empty(0, np.int64)] * 2
    groups, places, digits = (np.concatenate(column) for column in zip(*found, strict=True))
    return groups, [places, digits]


def _sums_by_place(terms: _Terms) -> dict[int, Integers]:
    """Return for each place that a term has a digit at, or is counted at, the sum of each group."""
    counted = terms.weights * terms.is_counted
    if not terms.count:
        return {}
    starts = np.searchsorted(terms.owners, np.arange(terms.count))
    sums: dict[int, Integers] = {SpecialPlace.COUNT: np.add.reduceat(counted, starts)}
    present = np.flatnonzero(terms.is_present)
    is_finite = np.isfinite(terms.values)
    if not is_finite.all():
        for special, is_at in SPECIAL_TESTS.items():
            rows = present[is_at(terms.values)]
            sums[special] = _sum_rows(terms, rows, terms.weights[rows])
    rows = present[is_finite]
    places, digits = exact_sums.float_digits(terms.values[is_finite])
    weights = terms.weights[rows]
    # Terms of one size have the same place, so there are few.
    for place in np.bincount(places).nonzero()[0].tolist():
        own = (places == place).nonzero()[0]
        for at, digit in enumerate(digits, place):
            more = _sum_rows(terms, rows[own], digit[own] * weights[own])
            sums[at] = more if at not in sums else sums[at] + more
    return sums


def _sum_rows(terms: _Terms, rows: Integers, values: Integers) -> Integers:
    """Return the sum of each group over some rows, ascending, each with a value."""
    sums = np.zeros(terms.count, np.int64)
    if len(rows):
        owners = terms.owners[rows]
        is_start = first_mask(owners)
        sums[owners[is_start]] = np.add.reduceat(values, is_start.nonzero()[0])
    return sums


# --- integers ------------------------------------------------------------------------------------


def split_words(values: Any, type_: Type) -> list[Integers]:
    """Return the words of integers, the most significant first, which alone may be negative.

    >>> [word.tolist() for word in split_words(np.array([-1, 5]), NUMBER)]
    [[-1, 0], [4294967295, 5]]
    """
    last = word_count(type_) - 1
    most = SIGN_BIT if values.dtype == np.int64 else last * WORD_BITS
    words = []
    for at in range(last, -1, -1):
        word = values >> min(at * WORD_BITS, most) if at else values
        words.append((word if at == last else word & WORD_MASK).astype(np.int64))
    return words


def join_words(words: Sequence[Integers], type_: Type) -> tuple[Any, Mask | None]:
    """Return the integers with these words, and the mask of those too large for a type, if any.

    The words of sums may be larger than those of values: what is above a word is carried.
    """
    carried = _carry(words)
    upper, lower, is_narrow = _narrow_words(carried, is_signed=not type_.is_unsigned)
    values = np.where(is_narrow, upper << WORD_BITS | lower, 0)
    least, most = type_.spec.bounds
    if type_.is_unsigned:
        return values.view(np.uint64), _mask(~is_narrow)
    wide = (~is_narrow).nonzero()[0]
    if most >> SIGN_BIT and len(wide):
        # Only decimals have values of more than 64 bits.
        exact = join_exactly([word[wide] for word in carried])
        values = values.astype(object)
        values[wide] = exact
    too_large = (values < least) | (values > most)
    if not most >> SIGN_BIT:
        too_large[wide] = True
    return values, _mask(too_large)


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
        carried.append((word + carry) & WORD_MASK)
        carry = (word + carry) >> WORD_BITS
    return [words[0] + carry, *reversed(carried)]


def _narrow_words(
    carried: Sequence[Integers], *, is_signed: bool
) -> tuple[Integers, Integers, Mask]:
    """Return the last two words, the first of them with the sign, and whether they say it all."""
    *others, upper, lower = carried
    if not others:
        half = 1 << (WORD_BITS - 1) if is_signed else 0
        return upper, lower, (upper >= -half) & (upper <= WORD_MASK - half)
    sign = upper >> (WORD_BITS - 1)
    is_narrow = others[0] == -sign
    for word in others[1:]:
        is_narrow &= word == sign * WORD_MASK
    return upper - (sign << WORD_BITS), lower, is_narrow


def _mask(mask: Mask) -> Mask | None:
    return mask if mask.any() else None


def mean_of_words(words: Sequence[Integers], counts: Integers, scale: int) -> Any:
    """Return the means of integers times 10^-scale, each the float nearest to the quotient."""
    carried, unit = _carry(words), 10**scale
    upper, lower, is_exact = _narrow_words(carried, is_signed=True)
    limit = EXACT_FLOAT_INTEGERS >> WORD_BITS
    is_exact &= (upper >= -limit) & (upper < limit) & (counts <= EXACT_FLOAT_INTEGERS // unit)
    means = (upper * 2.0**WORD_BITS + lower) / (counts * float(unit))
    rest = (~is_exact).nonzero()[0]
    exact = join_exactly([word[rest] for word in carried])
    divided = zip(exact, counts[rest].tolist(), strict=True)
    means[rest] = [total / (count * unit) for total, count in divided]
    return means


# --- from totals to values -----------------------------------------------------------------------


def read_totals(step: ReadTotals, totals: Table, target: Table, dictionary: Dictionary) -> Words:
    """Return the tuples (keys…, values…) that totals say, packed and sorted for the target.

    A sum that is too large for its type becomes null: the rule that reads it decides whether that
    is an error.
    """
    words, layout = totals.tuples(step.totals.state), totals.layout
    aggregation, length = step.aggregation, len(step.aggregation.groups)
    columns = [
        dictionary.decode(layout.unpack_column(words, at), NUMBER)
        for at in range(length, len(totals.types))
    ]
    results: list[tuple[Any, Mask | None]]
    if step.terms[0].is_float:
        is_start = first_mask(layout.prefix_keys(words, length))
        words = words[is_start]
        owners = np.cumsum(is_start) - 1
        results = [(read_digits(aggregation.only.operator, owners, *columns), None)]
    else:
        results = [
            _read_words(each, step, columns, type_)
            for each, type_ in zip(aggregation.accumulators, target.types[length:], strict=True)
        ]
    found = [layout.unpack_column(words, at) for at in range(length)]
    found += [
        dictionary.encode(values, missing, type_)
        for (values, missing), type_ in zip(results, target.types[length:], strict=True)
    ]
    return sort_distinct(target.pack(found, len(words)))


def _read_words(
    accumulator: Accumulator, step: ReadTotals, columns: Sequence[Integers], type_: Type
) -> tuple[Any, Mask | None]:
    """Return the values of an accumulator of integers, and the mask of those too large, if any."""
    words = columns[word_slices(step.aggregation.values, step.terms)[accumulator.value]]
    match accumulator.operator:
        case "count":
            return columns[0], None
        case "mean":
            return mean_of_words(words, columns[0], step.term_of(accumulator).scale), None
        case _:
            return join_words(words, type_)


def read_total_rows(
    step: ReadTotals, totals: list[Row], target: Table, dictionary: Dictionary
) -> list[Row]:
    """Return the tuples (keys…, values…) that few totals say."""
    length = len(step.aggregation.groups)
    if step.terms[0].is_float:
        return _read_digit_rows(step, totals, target.types[-1], dictionary)
    slices = word_slices(step.aggregation.values, step.terms)
    parts = [
        (each, slices[each.value], type_)
        for each, type_ in zip(step.aggregation.accumulators, target.types[length:], strict=True)
    ]
    read: list[Row] = []
    for row in totals:
        integers = [dictionary.decode_integer(code, NUMBER) for code in row[length:]]
        codes = []
        for accumulator, words, type_ in parts:
            total = 0
            for word in integers[words]:
                total = (total << WORD_BITS) + word
            if accumulator.operator == "mean":
                mean = total / (integers[0] * 10 ** step.term_of(accumulator).scale)
                codes.append(dictionary.encode_value(mean, type_))
            else:
                codes.append(dictionary.encode_integer(total, type_))
        read.append((*row[:length], *codes))
    return read


def _read_digit_rows(
    step: ReadTotals, totals: list[Row], type_: Type, dictionary: Dictionary
) -> list[Row]:
    """Return the same for the digits of floats."""
    groups: dict[Row, Counter[int]] = {}
    for row in totals:
        place, digit = (dictionary.decode_integer(code, NUMBER) for code in row[-2:])
        groups.setdefault(row[:-2], Counter())[place] = digit
    read: list[Row] = []
    for key, digits in groups.items():
        nan, plus, minus = (digits[place] > 0 for place in SPECIAL_TESTS)
        if nan or (plus and minus):
            value = math.nan
        elif plus or minus:
            value = math.inf if plus else -math.inf
        else:
            value = exact_sums.join_digits(
                (place, digit) for place, digit in digits.items() if place < FLOAT_PLACES
            )
        if step.aggregation.only.operator == "mean":
            value = value / digits[SpecialPlace.COUNT] + 0.0  # may be too small, and -0.0
        read.append((*key, dictionary.encode_value(value, type_)))
    return read


def read_digits(operator: str, owners: Integers, places: Integers, digits: Integers) -> Any:
    """Return the sum or mean of each group.

    Args:
        operator: says which.
        owners: the group of each row, ascending.
        places: the place of each row; a group has at most one row for a place.
        digits: what it has there.
    """
    groups = int(owners[-1]) + 1 if len(owners) else 0
    results = np.empty(groups, np.float64)
    for first in range(0, groups, CHUNK_GROUPS):
        size = min(CHUNK_GROUPS, groups - first)
        rows = slice(*np.searchsorted(owners, [first, first + size]))
        matrix = np.zeros((ALL_PLACES, size), np.int64)
        matrix[places[rows], owners[rows] - first] = digits[rows]
        used = places[rows][places[rows] < FLOAT_PLACES]
        least, most = (int(used.min()), int(used.max())) if len(used) else (0, 0)
        sums = exact_sums.round_digits(matrix[least : most + 1], least)
        nan, plus, minus = (matrix[place] > 0 for place in SPECIAL_TESTS)
        sums[plus], sums[minus] = np.inf, -np.inf
        sums[nan | (plus & minus)] = np.nan
        if operator == "mean":
            sums /= matrix[SpecialPlace.COUNT]
            sums += 0.0  # a quotient may be too small, and -0.0
        results[first : first + size] = sums
    return results
