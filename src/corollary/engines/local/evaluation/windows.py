"""Window functions: of each row, from the rows of its partition in their order.

Rows are sorted by partition and order, those that are equal in both by all their columns. Then all
is arithmetic on positions: a partition is a range of them, so are the peers of a row and its frame.

| function | value of the row at position i of a partition s … e, peers p … q, frame a … b |
|---|---|
| `row_number`, `rank` | i − s + 1, p − s + 1 |
| `dense_rank` | the number of first peers in s … i |
| `lag`, `lead` | the value at i − k, i + k, if that is in s … e, else the default |
| `count`, `sum` | C(b) − C(a), where C are running totals over all rows |
| `min`, `max` | the better of the two blocks of 2^k rows that begin at a and end at b |
| holistic aggregates | of the bag of rows a … b, each different frame once |

A frame with distances ends where the order has a value that a column of the row says. Functions
that ignore nulls count the rows with a value only.
Sums of floats are exact, digit by digit, and rounded once (`aggregation/exact_sums.py`).
"""

from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from corollary.core.engine import check_deadline
from corollary.core.functors.holistic import HOLISTIC
from corollary.core.logic import Accumulator, OrderColumn, RowFrame, WindowFunction, Windowing
from corollary.core.states import State
from corollary.core.types import NUMBER, Type
from corollary.core.windows import sees_rows_before, tells_peers_apart
from corollary.data_class import dataclass
from corollary.engines.local.evaluation import decimals
from corollary.engines.local.evaluation.aggregation import exact_sums
from corollary.engines.local.evaluation.aggregation.aggregates import fit_sums
from corollary.engines.local.evaluation.aggregation.bags import holistic
from corollary.engines.local.evaluation.order_keys import Keys, order_keys
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import NARROW_BITS, Layout, Mask, Words
from corollary.engines.local.storage.sorting import first_mask, sort_with_rows
from corollary.engines.local.storage.table import Table
from corollary.engines.local.values.codes import Dictionary
from corollary.engines.local.values.native import narrow_integers

Positions = npt.NDArray[np.int64]


class Columns(Protocol):
    """Columns of codes by number."""

    def __getitem__(self, column: int, /) -> Codes:
        """Return a column."""

    def __len__(self) -> int:
        """Return the number of columns."""


FRAME_ROWS_MAX = 1 << 20
"""So many rows of frames are listed at once, for aggregates of all values."""

SHORT_RANGE = 8
"""Ranges of fewer positions than this are spread position by position."""

LAST_KEY = np.iinfo(np.int64).max
"""The key of null where a least value is looked for."""


def compute_windows(
    windowing: Windowing, body: Table, state: State, target: Table, dictionary: Dictionary
) -> Words:
    """Return the rows of a body with the values of their window functions, for the target."""
    words, layout = body.tuples(state), body.layout
    if windowing.top is not None and sees_rows_before(windowing):
        words = _first_rows(windowing, words, body, dictionary)
    columns = [layout.unpack_column(words, at) for at in range(len(body.types))]
    values: list[Codes] = [np.empty(0, np.int64) for _ in windowing.functions]
    if len(words):
        values = row_values(windowing, columns, target.types, dictionary)
    mask = is_top(windowing, values, dictionary)
    # The columns of the body come first, and are sorted and distinct: so are these tuples.
    columns += values
    if mask is not None:
        columns = [column[mask] for column in columns]
    return target.pack(columns, len(columns[-1]))


def _first_rows(windowing: Windowing, words: Words, body: Table, dictionary: Dictionary) -> Words:
    """Return the rows that may be the first ones, by the first column of the order."""
    assert windowing.top is not None
    most = max(windowing.top[1], 1)
    if windowing.partition or not windowing.order or len(words) <= most:
        return words
    lead = windowing.order[0]
    codes = body.layout.unpack_column(words, lead.column)
    key = _order_key(lead, order_keys(codes, body.types[lead.column], dictionary).keys)
    found: Words = words[key <= np.partition(key, most - 1)[most - 1]]
    return found


def row_values(
    windowing: Windowing, columns: Columns, types: tuple[Type, ...], dictionary: Dictionary
) -> list[Codes]:
    """Return the codes of the values of rows, at least one, given those of their columns.

    Args:
        windowing: the functions.
        columns: of the rows.
        types: of the columns, then of the values.
        dictionary: of the codes.
    """
    rows = _sort(windowing, columns, types[: len(columns)], dictionary)
    return _values(windowing, rows, types)


def arranged_values(
    windowing: Windowing,
    words: Words,
    arranged: "Arranged",
    types: tuple[Type, ...],
    dictionary: Dictionary,
    *,
    before: "Before | None" = None,
) -> list[Codes]:
    """Return the codes of the values of rows in an arrangement, each partition at one place.

    Args:
        windowing: the functions.
        words: the rows.
        arranged: how they are arranged.
        types: of their columns, then of the values.
        dictionary: of the codes.
        before: what running functions have before the rows; None for nothing.
    """
    if not len(words):
        return [np.empty(0, np.int64) for _ in windowing.functions]
    rows = _arrange(windowing, words, arranged, types[: len(arranged.order)], dictionary)
    if before is not None:
        begins = rows.is_start.nonzero()[0]
        leads = words[rows.order][begins]
        keys = arranged.layout.prefix_keys(leads, len(windowing.partition))
        numbers = before.partitions.searchsorted(keys)
        rows = replace(rows, before=before.spread(_spread(numbers, begins, rows.count)))
    return _values(windowing, rows, types)


def _values(windowing: Windowing, rows: "_Rows", types: tuple[Type, ...]) -> list[Codes]:
    """Return the codes of the values of each row."""
    of_values = types[len(types) - len(windowing.functions) :]
    return [
        rows.scatter(_value(function, rows, type_))
        for function, type_ in zip(windowing.functions, of_values, strict=True)
    ]


def is_top(windowing: Windowing, values: list[Codes], dictionary: Dictionary) -> Mask | None:
    """Return the mask of the rows that the windowing has; None for all."""
    if windowing.top is None:
        return None
    at, most = windowing.top
    mask: Mask = values[at] <= dictionary.encode_value(most, NUMBER)
    return mask


# --- rows in order -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Arranged:
    """How rows of an arrangement lie in the order of windows.

    Attributes:
        order: the columns of the body in the order of the arrangement.
        length: how many columns, partition and first ones of the order, have their values in order.
        is_whole: whether these are all columns of the order.
        is_descending: whether the order descends.
        has_ordered_rows: whether the codes of all columns are in the order of their values.
    """

    layout: Layout
    order: tuple[int, ...]
    length: int
    is_whole: bool
    is_descending: bool
    has_ordered_rows: bool

    @property
    def is_complete(self) -> bool:
        """Whether rows lie in the order of windows, peers included."""
        return self.is_whole and self.has_ordered_rows and not self.is_descending


@dataclass(frozen=True, slots=True)
class Before:
    """Totals of the rows that come before those of a slice.

    Attributes:
        partitions: the keys of partitions, ascending.
        rows: the number of rows, for each partition or by position.
        totals: the sum, or the number of those that are not null, by function and column.
        values: the number of different values of the order, if a function asks for it.
    """

    partitions: Words
    rows: Positions
    totals: dict[tuple[str, int], Positions]
    values: Positions | None = None

    def spread(self, numbers: Positions) -> "Before":
        """Return the totals by position, given the number of the partition at each."""
        totals = {key: total[numbers] for key, total in self.totals.items()}
        values = None if self.values is None else self.values[numbers]
        return Before(self.partitions, self.rows[numbers], totals, values)


@dataclass(frozen=True)
class _Rows:
    """All rows in their order.

    Attributes:
        order: the number of the row at each position.
        columns: the codes of the body's columns, not in this order.
        is_start, is_first_peer: whether a position is the first one of its partition, its peers.
        order_by: the columns that rows of a partition are ordered by.
        before: what running functions have before the first position of the partition.
    """

    order: Positions | slice
    columns: Columns
    types: tuple[Type, ...]
    dictionary: Dictionary
    is_start: Mask
    is_first_peer: Mask
    order_by: tuple[OrderColumn, ...]
    before: Before | None = None

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self.is_start)

    @cached_property
    def starts(self) -> Positions:
        """Of each position, the first one of its partition."""
        return _starts(self.is_start)

    @cached_property
    def ends(self) -> Positions:
        """Of each position, the one after the last of its partition."""
        return _ends(self.is_start)

    @cached_property
    def peer_starts(self) -> Positions:
        """Of each position, the first one of its peers."""
        return _starts(self.is_first_peer)

    @cached_property
    def peer_ends(self) -> Positions:
        """Of each position, the one after the last of its peers."""
        return _ends(self.is_first_peer)

    def column(self, at: int) -> Codes:
        """Return the codes of a column by position."""
        return self.columns[at][self.order]

    def scatter(self, values: Codes) -> Codes:
        """Return codes by position as codes by row."""
        if isinstance(self.order, slice):  # all rows, perhaps the last one first
            return values[self.order]
        result = np.empty_like(values)
        result[self.order] = values
        return result

    @property
    def positions(self) -> Positions:
        """All positions."""
        return np.arange(self.count)

    @property
    def rows_before(self) -> Positions | int:
        """The number of rows before a partition, by position."""
        return 0 if self.before is None else self.before.rows

    def total_before(self, function: str, column: int) -> Any:
        """Return the total of a column before a partition, by position."""
        return 0 if self.before is None else self.before.totals[function, column]


def _arrange(
    windowing: Windowing,
    words: Words,
    arranged: Arranged,
    types: tuple[Type, ...],
    dictionary: Dictionary,
) -> _Rows:
    """Return rows in order that lie in an arrangement."""
    layout, places = arranged.layout, [arranged.order.index(at) for at in range(len(types))]
    columns = _UnpackedColumns(layout, words, places)
    if not arranged.is_whole:
        return _sort(windowing, columns, types, dictionary)
    order: Positions | slice = slice(None, None, -1 if arranged.is_descending else None)
    ordered = words[order]
    is_start = np.zeros(len(words), np.bool_)
    is_start[:1] = True
    if windowing.partition:
        is_start = first_mask(layout.prefix_keys(ordered, len(windowing.partition)))
    is_first_peer = first_mask(layout.prefix_keys(ordered, arranged.length))
    if not arranged.is_complete and any(map(tells_peers_apart, windowing.functions)):
        order = np.arange(len(words))[order].copy()
        _sort_peers(order, is_first_peer, columns, types, dictionary)
    return _Rows(order, columns, types, dictionary, is_start, is_first_peer, windowing.order)


class _UnpackedColumns:
    """The columns of packed rows, each unpacked when it is asked for."""

    def __init__(self, layout: Layout, words: Words, places: list[int]) -> None:
        self._layout, self._words, self._places = layout, words, places
        self._known: dict[int, Codes] = {}

    def __getitem__(self, column: int) -> Codes:
        if column not in self._known:
            codes = self._layout.unpack_column(self._words, self._places[column])
            self._known[column] = codes
        return self._known[column]

    def __len__(self) -> int:
        return len(self._places)


def _sort(
    windowing: Windowing, columns: Columns, types: tuple[Type, ...], dictionary: Dictionary
) -> _Rows:
    """Return rows in order."""
    keys = [columns[at] for at in windowing.partition]
    places = [
        _order_key(each, order_keys(columns[each.column], types[each.column], dictionary).keys)
        for each in windowing.order
    ]
    order = _sorted_rows([*keys, *places], len(columns[0]))
    is_start = _changes(keys, order)
    is_first_peer = is_start | _changes(places, order)
    if any(tells_peers_apart(each) for each in windowing.functions):
        _sort_peers(order, is_first_peer, columns, types, dictionary)
    return _Rows(order, columns, types, dictionary, is_start, is_first_peer, windowing.order)


def _sorted_rows(keys: list[Keys], count: int) -> Positions:
    """Return the rows in the order of keys, the most important first; as one key if it fits."""
    word, bits = np.zeros(count, np.int64), 0
    for key in keys:
        least = int(key.min())
        width = (int(key.max()) - least).bit_length()
        bits += width
        if bits > NARROW_BITS:
            return np.lexsort(keys[::-1])
        word = word << width | (key - least)
    return sort_with_rows(word)[1]


def _order_key(column: OrderColumn, keys: Keys) -> Keys:
    """Return keys that ascend in the order of a column."""
    key = -keys if column.is_descending else keys
    is_null = keys == 0
    if is_null.any():
        key = np.where(is_null, key.min() - 1 if column.nulls_first else key.max() + 1, key)
    return key


def _changes(keys: list[Keys], order: Positions) -> Mask:
    """Return the positions whose keys differ from those before."""
    found = np.zeros(len(order), np.bool_)
    found[:1] = True
    for key in keys:
        placed = key[order]
        found[1:] |= placed[1:] != placed[:-1]
    return found


def _starts(is_start: Mask) -> Positions:
    """Return the first position of each range, by position."""
    starts = is_start.nonzero()[0]
    if SHORT_RANGE * len(starts) > len(is_start):
        positions = np.arange(len(is_start))
        positions *= is_start
        return np.maximum.accumulate(positions, out=positions)
    return _spread(starts, starts, len(is_start))


def _ends(is_start: Mask) -> Positions:
    """Return the position after each range, by position."""
    starts = is_start.nonzero()[0]
    return _spread(np.append(starts[1:], len(is_start)), starts, len(is_start))


def _spread(values: Positions, starts: Positions, count: int) -> Positions:
    """Return the values of ranges by position, given where each begins."""
    if len(starts) < 2:  # one range: nothing is copied
        return np.broadcast_to(values, count)
    if len(starts) == count:
        return values
    return np.repeat(values, np.diff(starts, append=count))


def _sort_peers(
    order: Positions,
    is_first_peer: Mask,
    columns: Columns,
    types: tuple[Type, ...],
    dictionary: Dictionary,
) -> None:
    """Sort rows that are equal in partition and order by all columns, in place."""
    is_last = np.append(is_first_peer[1:], True)
    tied = (~(is_first_peer & is_last)).nonzero()[0]
    if not len(tied):
        return
    rows = order[tied]
    keys = [order_keys(columns[at][rows], type_, dictionary).keys for at, type_ in enumerate(types)]
    order[tied] = rows[_sorted_rows([np.cumsum(is_first_peer)[tied], *keys], len(rows))]


# --- functions -----------------------------------------------------------------------------------


def _value(function: WindowFunction, rows: _Rows, type_: Type) -> Codes:
    """Return the codes of a function's values by position."""
    at, encode = rows.positions, rows.dictionary.encode
    match function.name:
        case "row_number":
            return encode(rows.rows_before + at - rows.starts + 1, None, NUMBER)
        case "rank":
            number: Any = rows.rows_before + rows.peer_starts - rows.starts + 1
            return encode(number, None, NUMBER)
        case "dense_rank":
            number = np.cumsum(rows.is_first_peer)
            before = None if rows.before is None else rows.before.values
            number = number - number[rows.starts] + (1 if before is None else before + 1)
            return encode(number, None, NUMBER)
        case "lag" | "lead":
            return _neighbour(function, rows)
        case _:
            return _framed_value(function, rows, type_)


def _framed_value(function: WindowFunction, rows: _Rows, type_: Type) -> Codes:
    """Return the codes of a function of the rows in each frame."""
    first, last = _frame(function.frame, rows)
    match function.name:
        case "count":
            return rows.dictionary.encode(_count(function, rows, first, last), None, NUMBER)
        case "sum":
            (at,) = function.arguments
            return rows.dictionary.encode(*_sum(rows, at, first, last, type_), type_)
        case "min" | "max":
            return _extreme(function, rows, first, last)
        case name if name in HOLISTIC:
            return _holistic(function, rows, first, last, type_)
        case _:
            codes = rows.column(function.arguments[0])
            places = _present_places(codes) if function.ignores_nulls else None
            if places is not None:
                first, last = places.searchsorted(first), places.searchsorted(last)
            chosen = {"first_value": first, "last_value": last - 1}.get(
                function.name, first + function.distance - 1
            )
            is_there = (chosen >= first) & (chosen < last)
            return _chosen(codes, chosen, is_there, places)


def _holistic(
    function: WindowFunction, rows: _Rows, first: Positions, last: Positions, type_: Type
) -> Codes:
    """Return the codes of an aggregate of all values of each frame; equal frames have one."""
    width, (value, *others) = rows.count + 1, function.arguments
    frames, numbers = np.unique(first * width + np.maximum(first, last), return_inverse=True)
    starts, ends = np.divmod(frames, width)
    sizes = ends - starts
    totals = np.cumsum(sizes)
    columns = {at: (rows.column(at), rows.types[at]) for at in function.arguments}
    accumulator = Accumulator(
        function.name, value, others=tuple(others), parameters=function.parameters
    )
    parts, at, done = [], 0, 0
    while at < len(sizes):
        check_deadline()
        until = max(at + 1, int(totals.searchsorted(done + FRAME_ROWS_MAX, "right")))
        part = sizes[at:until]
        shift = starts[at:until] - (totals[at:until] - part) + done
        places = np.repeat(shift, part) + np.arange(int(part.sum()))
        values = {key: (codes[places], source) for key, (codes, source) in columns.items()}
        is_ordered = bool(rows.order_by)
        parts.append(
            holistic(accumulator, values, part, type_, rows.dictionary, is_ordered=is_ordered)
        )
        at, done = until, int(totals[until - 1])
    found: Codes = np.concatenate(parts)[numbers]
    return found


def _present_places(codes: Codes) -> Positions:
    """Return the positions of values that are not null."""
    found: Positions = codes.nonzero()[0]
    return found


def _neighbour(function: WindowFunction, rows: _Rows) -> Codes:
    """Return the codes of the value some rows before or after, or of the default."""
    codes, places = rows.column(function.arguments[0]), None
    first, there, last = rows.starts, rows.positions, rows.ends
    distance = -function.distance if function.name == "lag" else function.distance
    if function.ignores_nulls and distance:
        places = _present_places(codes)
        first, last = places.searchsorted(first), places.searchsorted(last)
        there = places.searchsorted(there, "left" if distance < 0 else "right") - (distance > 0)
    there = there + distance
    is_inside = (there >= first) & (there < last)
    found = _chosen(codes, there, is_inside, places)
    if len(function.arguments) > 1:
        found = np.where(is_inside, found, rows.column(function.arguments[1]))
    return found


def _chosen(codes: Codes, at: Positions, is_there: Mask, places: Positions | None = None) -> Codes:
    """Return the codes at some positions, null where there is none.

    Args:
        codes: by position.
        at: the positions, or their numbers among `places`.
        is_there: whether there is one.
        places: the positions that may be chosen; None for all.
    """
    found = np.where(is_there, at, 0)
    if places is not None:
        found = places[found] if len(places) else np.zeros_like(found)
    return np.where(is_there, codes[found], 0)


def _frame(frame: RowFrame | None, rows: _Rows) -> tuple[Positions, Positions]:
    """Return the first position of each row's frame, and that after its last one."""
    assert frame is not None
    first, last = rows.starts, rows.ends
    if not frame.is_rows:
        if frame.start is not None:
            first = rows.peer_starts if frame.first is None else _bound(rows, frame.first, "left")
        if frame.end is not None:
            last = rows.peer_ends if frame.last is None else _bound(rows, frame.last, "right")
        return first, np.maximum(first, last) if frame.start and frame.end else last
    if frame.start is not None:
        first = rows.positions + frame.start
    if frame.end is not None:
        last = rows.positions + (frame.end + 1)
    if frame.start:
        first = np.clip(first, rows.starts, rows.ends)
    if frame.end:
        last = np.clip(last, rows.starts, rows.ends)
    return first, np.maximum(first, last) if frame.start and frame.end else last


def _bound(rows: _Rows, column: int, side: Literal["left", "right"]) -> Positions:
    """Return the position before or after the rows whose order has the value of a column."""
    (by,) = rows.order_by
    codes = np.concatenate([rows.column(by.column), rows.column(column)])
    keys = _order_key(by, order_keys(codes, rows.types[by.column], rows.dictionary).keys)
    ranks = np.unique(keys, return_inverse=True)[1] + np.tile(
        np.cumsum(rows.is_start) * len(keys), 2
    )
    found: Positions = ranks[: rows.count].searchsorted(ranks[rows.count :], side)
    return found


def _running(values: Any) -> Any:
    """Return the sums of all values before each position, and of all."""
    totals = np.zeros(len(values) + 1, values.dtype)
    np.cumsum(values, out=totals[1:])
    return totals


def _count(function: WindowFunction, rows: _Rows, first: Positions, last: Positions) -> Positions:
    """Return the number of rows in a frame, or of those with a value."""
    if not function.arguments:
        number: Positions = last - first + rows.rows_before
        return number
    present = np.ones(rows.count, np.int64)
    for at in function.arguments:
        present &= rows.column(at) != 0
    totals = _running(present)
    before = rows.total_before("count", function.arguments[0])
    found: Positions = totals[last] - totals[first] + before
    return found


def _sum(
    rows: _Rows, at: int, first: Positions, last: Positions, type_: Type
) -> tuple[Any, Mask | None]:
    """Return the sum of each frame, and the mask of those too large for the type."""
    codes, source = rows.column(at), rows.types[at]
    values = rows.dictionary.decode(codes, source)
    if source.stores_floats:
        return _sum_floats(np.where(codes != 0, values, 0.0), first, last), None
    values = np.where(codes != 0, values, np.zeros(1, values.dtype))
    before = rows.total_before("sum", at)
    if values.dtype == np.int64 and type_ == source and _is_small(values, before):
        totals = _running(values)
        return totals[last] - totals[first] + before, None
    if values.dtype == object:
        totals = np.concatenate([np.zeros(1, object), np.add.accumulate(values)])
        return decimals.bounded(narrow_integers(totals[last] - totals[first] + before))
    high = _running((values >> exact_sums.DIGIT_BITS).astype(np.int64))
    low = _running((values & exact_sums.DIGIT_MASK).astype(np.int64))
    high = high[last] - high[first] + (before >> exact_sums.DIGIT_BITS)
    low = low[last] - low[first] + (before & exact_sums.DIGIT_MASK)
    high += low >> exact_sums.DIGIT_BITS
    low &= exact_sums.DIGIT_MASK
    sums: tuple[Any, Mask | None] = fit_sums(high, low, type_)
    return sums


def _is_small(values: Any, before: Any) -> bool:
    """Whether no sum of integers, and of what comes before them, can be too large."""
    most = max(abs(int(values.min())), abs(int(values.max())))
    bound = most * len(values) + int(np.abs(before).max())
    return bound < 1 << NARROW_BITS


def _sum_floats(values: exact_sums.Floats, first: Positions, last: Positions) -> exact_sums.Floats:
    """Return the correctly rounded sums of frames; infinities and NaN by IEEE."""

    def sums_of(integers: Positions) -> Positions:
        running: Positions = _running(integers)
        return running[last] - running[first]

    is_finite = np.isfinite(values)
    finite = np.where(is_finite, values, 0.0)
    sums = exact_sums.round_digits(*exact_sums.sum_digits(finite, sums_of, len(first)))
    if not is_finite.all():
        for special in (np.inf, -np.inf):
            with np.errstate(invalid="ignore"):
                is_there = sums_of((values == special).astype(np.int64)) > 0
                sums = np.where(is_there, sums + special, sums)
        sums = np.where(sums_of(np.isnan(values).astype(np.int64)) > 0, np.nan, sums)
    return sums


def _extreme(function: WindowFunction, rows: _Rows, first: Positions, last: Positions) -> Codes:
    """Return the codes of the least or greatest value of each frame, null without one."""
    at = function.arguments[0]
    ordered = order_keys(rows.columns[at], rows.types[at], rows.dictionary)
    keys = ordered.keys[rows.order]
    is_least = function.name == "min"
    if is_least:
        keys = np.where(keys == 0, LAST_KEY, keys)
    better = np.minimum if is_least else np.maximum
    sizes = last - first
    found = np.full(len(first), LAST_KEY if is_least else 0)
    length, longest = 1, int(sizes.max(initial=0))
    # In round k, the key at a position is the best of the 2^k keys from there on.
    while length <= longest:
        own = ((sizes >= length) & (sizes < 2 * length)).nonzero()[0]
        found[own] = better(keys[first[own]], keys[last[own] - length])
        if 2 * length <= longest:
            keys = better(keys[:-length], keys[length:])
        length *= 2
    if is_least:
        found[found == LAST_KEY] = 0
    return ordered.code_of(found)
