"""Rows with copies: a table that has each row once, with its count in the last column, and back.

Differences of relations as sets compare a word for each row: null equals null, NaN equals NaN, -0.0
equals 0.0; how often a row occurs does not matter.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import Generic, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.analysis.bags import COPIES_COLUMN
from corollary.core.arrow import nullary_table, schema_of, single_array
from corollary.core.arrow_buffers import bool_array, fixed_array, fixed_values, index_array
from corollary.core.engine import Engine, LocalTable, MapResult, Portion, TableHandle, Tuples
from corollary.core.program import Relation
from corollary.core.states import State
from corollary.data_class import dataclass
from corollary.errors import InputError
from corollary.warehouse.files.durable_files import DELETE, INSERT, POSTIMAGE, PREIMAGE
from corollary.warehouse.row_words import Words, is_among, row_words

Counts = npt.NDArray[np.int64]

REPEATED_MAX_ROWS = 1 << 18
"""Tasks make no more copies than this at once."""

COPIES_MAX = 2**53
"""The maximum number of copies that a row has."""

SUM_MAX = 2**62
"""The maximum number of copies that the operations of a transaction name: sums are 64 bits."""


def repeat_rows(counted: pa.Table) -> pa.Table:
    """Return the rows of a table as often as its last column says, without that column.

    >>> repeat_rows(pa.table({"x": [1, 2, 3], "copies": [2, 1, 0]}))["x"].to_pylist()
    [1, 1, 2]
    """
    rows, counts = split_counts(counted)
    if (counts == 1).all():
        return rows
    return _repeat(rows, counts)


def _repeat(rows: pa.Table, counts: Counts) -> pa.Table:
    return rows.take(index_array(np.repeat(np.arange(len(counts)), np.maximum(counts, 0))))


def split_counts(counted: pa.Table) -> tuple[pa.Table, Counts]:
    """Return the rows and the counts of a table."""
    last = counted.num_columns - 1
    counts = fixed_values(single_array(counted.column(last)), np.int64)
    return counted.select(range(last)), counts


def count_copies(handle: TableHandle) -> int:
    """Return how many rows there are with all their copies."""
    return sum(handle.map_partitions(_count))


def _count(counted: pa.Table) -> int:
    return int(np.maximum(split_counts(counted)[1], 0).sum()) if counted.num_rows else 0


def distinct_rows(rows: pa.Table) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """Return the rows of a table, each once, and for every row its place among these.

    >>> rows, places = distinct_rows(pa.table({"x": [7, 5, 7]}))
    >>> rows["x"].to_pylist(), places.tolist()
    ([5, 7], [1, 0, 1])
    """
    words = row_words(rows.columns, rows.num_rows)
    _, first, places = np.unique(words, return_index=True, return_inverse=True)
    return rows.take(index_array(first.astype(np.int64))), places.reshape(-1)


def with_counts(rows: pa.Table, counts: Counts, relation: Relation) -> pa.Table:
    """Return rows with a last column of counts, as a relation of counts has them."""
    columns = [*rows.columns, fixed_array(counts, pa.int64())]
    return pa.Table.from_arrays(columns, list(relation.columns)).cast(schema_of(relation))


def sum_counts(tables: Sequence[pa.Table], relation: Relation) -> pa.Table:
    """Return the rows of tables that have counts, each once, with the sum of its counts."""
    schema = schema_of(relation)
    every, counts = split_counts(pa.concat_tables([each.cast(schema) for each in tables]))
    rows, places = distinct_rows(every)
    sums = np.zeros(rows.num_rows, np.int64)
    np.add.at(sums, places, counts)
    return with_counts(rows, sums, relation)


def compose_copies(places: Words, signed: Counts, rows: int) -> tuple[Counts, Counts]:
    """Return what a sequence of operations does to the copies of each row.

    An operation adds n copies, or removes n, down to none. All those on a row are one function of
    the number of copies c that there are, max(c + delta, least): `least` is what is left after
    the operation from which on the most are added.

    Args:
        places: the row of each operation, from 0 on.
        signed: how many copies it adds; what it removes is negative.
        rows: how many rows there are.

    Returns:
        `delta` and `least` of each row.

    >>> [each.tolist() for each in compose_copies(np.array([0, 0, 1]), np.array([-2, 1, 3]), 2)]
    [[-1, 3], [1, 3]]
    """
    delta, least = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    np.add.at(delta, places, signed)
    order = np.argsort(places, kind="stable")[::-1]  # row by row, the last operation first
    sums, of_row = np.cumsum(signed[order]), places[order]
    starts = np.flatnonzero(np.diff(of_row, prepend=rows))
    before = np.repeat(sums[starts] - signed[order][starts], np.diff(starts, append=len(sums)))
    np.maximum.at(least, of_row, sums - before)
    return delta, least


@dataclass(frozen=True, slots=True)
class CountChange:
    """What operations do to the counts of rows.

    Attributes:
        rows: each once.
        delta, least: as of `compose_copies`.
        total: the copies of all operations.
    """

    rows: pa.Table
    delta: Counts
    least: Counts
    total: float

    @classmethod
    def of(cls, operations: Sequence[tuple[State, pa.Table]]) -> Self:
        """Return what copies to add and to remove do, in order.

        Rows without any, which triggers may give, do nothing.
        """
        every, counts = split_counts(pa.concat_tables([table for _, table in operations]))
        rows, places = distinct_rows(every)
        signs = np.array([1 if sign is State.ADDED else -1 for sign, _ in operations])
        signed = np.repeat(signs, [table.num_rows for _, table in operations])
        signed = signed * np.maximum(counts, 0)
        delta, least = compose_copies(places, signed, rows.num_rows)
        return cls(rows, delta, least, float(np.abs(signed).sum(dtype=np.float64)))

    def counts(self, had: Counts, shape: Relation) -> Counts:
        """Return the new counts of rows, of those that they had.

        Raises:
            InputError: `C0976`, there are too many.
        """
        has: Counts = np.maximum(had + self.delta, self.least)
        if self.total > SUM_MAX or has.max(initial=0) > COPIES_MAX:
            raise InputError.of(
                "C0976",
                f"`{shape.name}` would have more than {COPIES_MAX:,} copies of a row.",
                None,
                "add fewer copies; nothing was changed",
            )
        return has

    def missing(self, had: Counts, has: Counts) -> pa.Table:
        """Return the rows of which no copy is left for a delete."""
        return self.rows.take(index_array(np.flatnonzero((has == 0) & (had + self.delta < 0))))


def known_counts(rows: pa.Table, counted: pa.Table) -> Counts:
    """Return the sum of the counts that some rows, which are distinct, have in a table.

    >>> counted = pa.table({"x": [2, 3, 2], "copies": [1, 5, 1]})
    >>> known_counts(pa.table({"x": [1, 2]}), counted).tolist()
    [0, 2]
    """
    known, counts = split_counts(counted)
    both = pa.concat_tables([rows, known.cast(rows.schema)])
    distinct, places = distinct_rows(both)
    sums = np.zeros(distinct.num_rows, np.int64)
    np.add.at(sums, places[rows.num_rows :], counts)
    return sums[places[: rows.num_rows]]


def change_of_counts(
    rows: pa.Table, had: Counts, has: Counts, relation: Relation
) -> tuple[pa.Table, pa.Table]:
    """Return the tuples of rows whose counts change, with those before and with those after."""
    removed, added = (
        with_counts(rows.take(index_array(at)), counts[at], relation)
        for counts in (had, has)
        for at in [np.flatnonzero((had != has) & (counts > 0))]
    )
    return removed, added


def net_counts(counted: pa.Table, is_insert: npt.NDArray[np.bool_]) -> tuple[pa.Table, pa.Table]:
    """Return inserts and deletes of copies, in order, as deletes and then inserts.

    >>> events = pa.table({"x": [1, 1, 1], "copies": [1, 1, 1]})
    >>> [each.to_pylist() for each in net_counts(events, np.array([False, False, True]))]
    [[{'x': 1, 'copies': 2}], [{'x': 1, 'copies': 1}]]
    """
    every, counts = split_counts(counted)
    rows, places = distinct_rows(every)
    delta, least = compose_copies(places, np.where(is_insert, counts, -counts), rows.num_rows)
    removed, added = (
        pa.Table.from_arrays(
            [*rows.take(index_array(np.flatnonzero(each))).columns, index_array(each[each > 0])],
            schema=counted.schema,
        )
        for each in (least - delta, least)
    )
    return removed, added


def match_copies(words: Words, sought: Words) -> npt.NDArray[np.bool_]:
    """Return which of some words are sought; of equal ones the first, as many as are sought.

    >>> match_copies(np.array([1, 2, 1, 1]), np.array([1, 3, 1])).tolist()
    [True, False, True, False]
    """
    order = np.argsort(words, kind="stable")
    ordered, wanted = words[order], np.sort(sought)
    rank = np.arange(len(words)) - np.searchsorted(ordered, ordered)
    first, last = (np.searchsorted(wanted, ordered, side) for side in ("left", "right"))
    found = np.empty(len(words), np.bool_)
    found[order] = rank < last - first
    return found


def change_data(removed: pa.Table, added: pa.Table, key: Sequence[int]) -> dict[str, pa.Table]:
    """Return the rows of a change by its kind.

    A removed and an added row that agree in the key, if there is one, are an update.
    """
    if not key:
        return {DELETE: removed, INSERT: added}
    both = pa.concat_tables([removed, added.cast(removed.schema)]).select(list(key))
    words = row_words(both.columns, both.num_rows)
    old, new = words[: removed.num_rows], words[removed.num_rows :]
    was_updated, is_update = is_among(old, new), is_among(new, old)
    return {
        DELETE: removed.filter(bool_array(~was_updated)),
        INSERT: added.filter(bool_array(~is_update)),
        PREIMAGE: removed.filter(bool_array(was_updated)),
        POSTIMAGE: added.filter(bool_array(is_update)),
    }


def row_difference(before: pa.Table, now: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the rows that only the second table has, and those that only the first has.

    >>> came, went = row_difference(pa.table({"x": [1, 2, 2]}), pa.table({"x": [2, 3, 3]}))
    >>> came["x"].to_pylist(), went["x"].to_pylist()
    ([3, 3], [1, 2])
    """
    both = pa.concat_tables([before.cast(now.schema), now])
    words = row_words(both.columns, both.num_rows)
    then, there = words[: before.num_rows], words[before.num_rows :]
    came = np.flatnonzero(~match_copies(there, then))
    went = np.flatnonzero(~match_copies(then, there))
    return now.take(index_array(came)), before.take(index_array(went))


def counted_difference(before: pa.Table, now: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the rows of which there are more in the second table, with how many, and the reverse.

    >>> came, went = counted_difference(pa.table({"x": [1, 2, 2]}), pa.table({"x": [2, 3, 3]}))
    >>> came.to_pylist(), went.to_pylist()
    ([{'x': 3, 'copies': 2}], [{'x': 1, 'copies': 1}, {'x': 2, 'copies': 1}])
    """
    both = pa.concat_tables([before.cast(now.schema), now])
    rows, places = distinct_rows(both)
    then, there = (
        np.bincount(each, minlength=rows.num_rows)
        for each in (places[: before.num_rows], places[before.num_rows :])
    )
    came, went = (
        rows.take(index_array(np.flatnonzero(change > 0))).append_column(
            COPIES_COLUMN, index_array(change[change > 0].astype(np.int64))
        )
        for change in (there - then, then - there)
    )
    return came, went


def difference_of_copies(added: pa.Table, removed: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return which copies came and which went, when some counts replace others.

    Args:
        added: the counts that are new, each with its row.
        removed: those that hold no more.

    >>> new = pa.table({"x": [1, 2], "copies": [3, 1]})
    >>> old = pa.table({"x": [1, 3], "copies": [1, 2]})
    >>> [side["x"].to_pylist() for side in difference_of_copies(new, old)]
    [[1, 1, 2], [3, 3]]
    """
    if not removed.num_rows or not added.num_rows:
        return repeat_rows(added), repeat_rows(removed)
    both = pa.concat_tables([added, removed.cast(added.schema)])
    every, counts = split_counts(both)
    counts = np.maximum(counts, 0)
    rows, places = distinct_rows(every)
    change = np.zeros(rows.num_rows, np.int64)
    np.add.at(change, places, np.where(np.arange(len(counts)) < added.num_rows, counts, -counts))
    return _repeat(rows, change), _repeat(rows, -change)


@dataclass(frozen=True)
class CopiesHandle:
    """A handle on rows with all their copies, of a handle on their counts."""

    counted: TableHandle

    @cached_property
    def _size(self) -> int:
        return count_copies(self.counted)

    def __len__(self) -> int:
        return self._size

    def table(self) -> pa.Table:
        """Return the rows."""
        return repeat_rows(self.counted.table())

    def slices(self, max_rows: int) -> Iterator[pa.Table]:
        """Yield the rows, in order, in tables of no more than `max_rows`; at least one table."""
        yield from _repeat_slices(self.counted.slices(max_rows), max_rows)

    @property
    def is_distributed(self) -> bool:
        """Whether the tuples are in partitions outside of this process."""
        return self.counted.is_distributed

    def map_partitions(self, function: Callable[[pa.Table], MapResult]) -> list[MapResult]:
        """Return the results of a function for each partition of the rows."""
        return self.counted.map_partitions(_OnCopies(function))

    def portions(self) -> Sequence[Portion] | None:
        """Return what yields the rows of each portion of their counts."""
        counted = self.counted.portions()
        return None if counted is None else [partial(repeat_portion, each) for each in counted]


def repeat_portion(counted: Portion) -> Iterator[pa.Table]:
    """Yield the rows of a portion of their counts."""
    return _repeat_slices(counted(), REPEATED_MAX_ROWS)


def _repeat_slices(tables: Iterable[pa.Table], max_rows: int) -> Iterator[pa.Table]:
    """Yield the rows of tables as often as they count, no more than some of them at once."""
    for counted in tables:
        rows, counts = split_counts(counted)
        ends = np.cumsum(np.maximum(counts, 0))
        total = int(ends[-1]) if len(ends) else 0
        for start in range(0, max(total, 1), max_rows):
            wanted = np.arange(start, min(start + max_rows, total))
            yield rows.take(index_array(np.searchsorted(ends, wanted, side="right")))


@dataclass(frozen=True, slots=True)
class _OnCopies(Generic[MapResult]):
    """Calls a function with rows and their copies; it can be pickled if the function can."""

    function: Callable[[pa.Table], MapResult]

    def __call__(self, counted: pa.Table) -> MapResult:
        return self.function(repeat_rows(counted))


CompareCounts = Callable[[TableHandle, TableHandle], tuple[TableHandle, TableHandle]]
"""Returns the copies that came and went, of counts that replace others, elsewhere."""


def change_of_copies(
    added: TableHandle, removed: TableHandle, compare: CompareCounts | None = None
) -> tuple[TableHandle, TableHandle]:
    """Return handles on the copies that came and went, of the change of their counts.

    Those outside of this process are compared there, if there is a function for it.
    """
    if not len(removed) or not len(added):
        return CopiesHandle(added), CopiesHandle(removed)
    is_distributed = added.is_distributed or removed.is_distributed
    change = _ChangeOfCopies(added, removed, compare if is_distributed else None)
    return _ChangedCopies(change, 0), _ChangedCopies(change, 1)


@dataclass(frozen=True)
class _ChangeOfCopies:
    """A change of counts; the copies are found when one side of them is read."""

    added: TableHandle
    removed: TableHandle
    compare: CompareCounts | None

    @cached_property
    def sides(self) -> tuple[TableHandle, TableHandle]:
        if self.compare is not None:
            return self.compare(self.added, self.removed)
        came, went = difference_of_copies(self.added.table(), self.removed.table())
        return LocalTable(came), LocalTable(went)


@dataclass(frozen=True, slots=True)
class _ChangedCopies:
    """A handle on the copies that came (0) or went (1)."""

    change: _ChangeOfCopies
    side: int

    @property
    def _rows(self) -> TableHandle:
        return self.change.sides[self.side]

    def __len__(self) -> int:
        return len(self._rows)

    def table(self) -> pa.Table:
        """Return the rows."""
        return self._rows.table()

    def slices(self, max_rows: int) -> Iterator[pa.Table]:
        """Yield the rows, in order, in tables of no more than `max_rows`; at least one table."""
        return self._rows.slices(max_rows)

    @property
    def is_distributed(self) -> bool:
        """Whether the tuples are outside of this process."""
        return self.change.compare is not None

    def map_partitions(self, function: Callable[[pa.Table], MapResult]) -> list[MapResult]:
        """Return the results of a function for each partition of the rows."""
        return self._rows.map_partitions(function)

    def portions(self) -> Sequence[Portion] | None:
        """Return what yields the rows in tasks; None if they are here."""
        return self._rows.portions()


def apply_counts(engine: Engine, relation: str, change: Sequence[Tuples]) -> None:
    """Replace counts: the tuples to remove, and those to add."""
    for apply, rows in zip((engine.delete, engine.insert), change, strict=True):
        if len(rows):
            apply(relation, rows)


def difference(before: pa.Table, now: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the rows that only the second table has, and those that only the first has, each once.

    >>> came, went = difference(pa.table({"x": [1, 2, 2]}), pa.table({"x": [2, 3, 3]}))
    >>> came["x"].to_pylist(), went["x"].to_pylist()
    ([3], [1])
    """
    if not now.num_columns:
        had, has = before.num_rows > 0, now.num_rows > 0
        return nullary_table(has and not had), nullary_table(had and not has)
    before = before.cast(now.schema)
    # Words of both tables together: only then are equal words equal rows.
    both = pa.concat_tables([before, now])
    words = row_words(both.columns, both.num_rows)
    then, there = words[: before.num_rows], words[before.num_rows :]
    return _only_once(now, there, then), _only_once(before, then, there)


def minus(left: pa.Table, right: pa.Table) -> pa.Table:
    """Return the rows of the left table that the right one does not have, each once."""
    return difference(right, left)[0]


def distinct(table: pa.Table) -> pa.Table:
    """Return the rows of a table, each once."""
    return minus(table, table.slice(0, 0))


def _only_once(table: pa.Table, words: Words, others: Words) -> pa.Table:
    """Return the rows whose words are not among others, each once and in order."""
    numbers = np.flatnonzero(~is_among(words, others)) if len(others) else np.arange(len(words))
    _, first = np.unique(words[numbers], return_index=True)
    return table.take(index_array(numbers[np.sort(first)]))
