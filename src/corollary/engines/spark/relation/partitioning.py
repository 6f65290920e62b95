"""Which partition of a relation a tuple is in.

A relation is partitioned by the values of a column, its *lead*: by the first k bits of a mix of the
value, so that there are 2^k partitions, and one more bit splits each in two. Values that many
tuples have, the *heavy* ones, would fill single partitions: the mix of the value and those of other
columns spreads their tuples over all of them.

    key(v)        the integer of v, the bits of a float, the CRC-32 of a text; 0 for null
    mix(a)        a · 0x9E3779B97F4A7C15 modulo 2^64
    mix(a, b)     mix(mix(a) xor (mix(a) shifted right by 32) xor b)

    v light       the first k bits of mix(key(v))
    v heavy       the first k bits of mix(key(v), key(w)), w the value of another column; of all
                  others, if no single one tells the tuples of v apart

A tuple is in one partition. A probe by a light value asks one of them. By a heavy value it asks all
of them, or one if w is known, too.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.core.arrow_buffers import index_array
from corollary.core.program import Relation
from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.engines.local.values import native

PARTITION_TUPLES = 1 << 21
"""A partition should have about this many tuples."""

SPREAD_TUPLES = 1 << 19
"""Relations are not divided further for the sake of tasks: each partition costs every job."""

SPREAD_PARTITIONS = 256
"""A relation that is large enough has this many partitions: many tasks may share it."""

LEAST_PARTITIONS = 8
"""A small relation has this many partitions; its tuples are in one file as long as it is small."""

PARTITIONS_MAX_BITS = 16
"""There are at most 2 to the power of this many partitions of one lead."""

SPLIT_RATIO = 2
"""A relation whose partitions are this many times as large as that gets more of them."""

SKEW_RATIO = 2
"""A partition of more than this many times the mean size may have heavy values."""

HEAVY_DIVISOR = 4
"""A value is heavy if it has more than one of this many tuples of a partition."""

HEAVY_MAX_VALUES = 1 << 10
"""The maximum number of heavy values of a lead."""

MEASURED_MAX_VALUES = 1 << 8
"""The maximum number of values that a task counts, those that most tuples have."""


def partition_count(tuples: int) -> int:
    """Return how many partitions a relation should have, by its size: a power of two.

    How many tasks run at once is asked for each job: a task takes several partitions.

    >>> partition_count(1000), partition_count(10_000_000), partition_count(100_000_000)
    (8, 32, 256)
    """
    spread = min(SPREAD_PARTITIONS, tuples // SPREAD_TUPLES)
    return power_of_two(max(LEAST_PARTITIONS, spread, -(-tuples // PARTITION_TUPLES)))


def power_of_two(count: int) -> int:
    """Return a number of partitions, or of tasks that share them: at least as many as asked for.

    >>> power_of_two(1), power_of_two(5), power_of_two(1 << 20)
    (1, 8, 65536)
    """
    return 1 << min((count - 1).bit_length(), PARTITIONS_MAX_BITS)


def needs_more_partitions(tuples: int, count: int) -> bool:
    """Whether there should be more partitions for this number of tuples."""
    return partition_count(tuples) > SPLIT_RATIO * count


def oversized_partitions(sizes: npt.ArrayLike, examined: int = 0) -> list[int]:
    """Return the partitions that have many more tuples than others, and may have heavy values.

    Args:
        sizes: of all partitions.
        examined: one that is not much larger than this is not worth it.

    >>> oversized_partitions([100, 100, 100, 100]), oversized_partitions([1 << 23, 9, 9, 9])
    ([], [0])
    """
    counts = np.asarray(sizes)
    mean = SKEW_RATIO * int(counts.sum()) // max(len(counts), 1)
    found: list[int] = np.flatnonzero(counts > max(SPLIT_RATIO * PARTITION_TUPLES, mean)).tolist()
    return found if found and counts.max() > SPLIT_RATIO * examined else []


def partition_of(column: pa.ChunkedArray, type_: Type, count: int) -> npt.NDArray[np.int64]:
    """Return the partition of each value of a column, the same in every process; null is in 0.

    It is the first k bits of `key * 0x9E3779B97F4A7C15`, modulo 2^64, where the key is the integer
    of a value, the bits of a float, or the CRC-32 of a text.
    """
    return native.place_keys(column_keys(column, type_), count)


def column_keys(column: pa.ChunkedArray, type_: Type) -> native.Keys:
    """Return the keys of the values of a column; null has that of 0."""
    return native.partition_keys(*native.from_arrow(column, type_))


@dataclass(frozen=True, slots=True)
class HeavyValues:
    """The values of a lead that many tuples have.

    Attributes:
        keys: the keys of the values, sorted. Light values that have one of them, too, count as
            heavy: what matters is that everybody does the same.
        columns: others than the lead, which spread the tuples.
    """

    keys: tuple[int, ...]
    columns: tuple[int, ...]

    def find(self, keys: native.Keys) -> npt.NDArray[np.int64]:
        """Return the positions of heavy values among those with some keys."""
        return np.flatnonzero(np.isin(keys, np.array(self.keys, np.uint64)))


@dataclass(frozen=True, slots=True)
class Partitioning:
    """Says which partition a tuple is in.

    Attributes:
        lead: the column whose values decide, if they are not heavy.
        count: how many partitions there are.
        heavy: the values whose tuples are spread over all partitions.
    """

    lead: int
    count: int
    heavy: HeavyValues | None = None

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that decide the partition of a tuple."""
        return (self.lead,) if self.heavy is None else (self.lead, *self.heavy.columns)

    def unites(self, columns: Collection[int]) -> bool:
        """Whether tuples that agree in some columns are in the same partition."""
        return {*self.columns} <= {*columns}

    def numbers(
        self, columns: Mapping[int, pa.ChunkedArray], types: Sequence[Type]
    ) -> npt.NDArray[np.int64]:
        """Return the partition of each tuple.

        Args:
            columns: at least those that decide.
            types: of all columns of the relation.
        """
        keys = column_keys(columns[self.lead], types[self.lead])
        if self.heavy is not None and len(at := self.heavy.find(keys)):
            some = index_array(at)
            others = [
                column_keys(columns[each].take(some), types[each]) for each in self.heavy.columns
            ]
            keys = keys.copy()
            keys[at] = native.mix_keys([keys[at], *others])
        return native.place_keys(keys, self.count)

    def rows_by_partition(
        self, rows: pa.Table, columns: Sequence[int], types: Sequence[Type]
    ) -> dict[int, npt.NDArray[np.int64]]:
        """Return for each partition the rows of a table whose tuples it may have.

        Args:
            rows: values of some columns, at least of the lead.
            columns: those that the table has.
            types: of all columns of the relation.
        """
        given = {column: rows.column(at) for at, column in enumerate(columns)}
        if self.heavy is None or self.unites(columns):
            return _rows_by_number(self.numbers(given, types))
        heavy = self.heavy.find(column_keys(given[self.lead], types[self.lead]))
        light = np.setdiff1d(np.arange(rows.num_rows), heavy, assume_unique=True)
        leads = given[self.lead].take(index_array(light))
        found = {
            number: light[each]
            for number, each in _rows_by_number(
                partition_of(leads, types[self.lead], self.count)
            ).items()
        }
        if not len(heavy):
            return found
        none = light[:0]
        return {
            number: np.sort(np.concatenate([found.get(number, none), heavy]))
            for number in range(self.count)
        }


def _rows_by_number(numbers: npt.NDArray[np.int64]) -> dict[int, npt.NDArray[np.int64]]:
    """Return the rows of each partition that has some."""
    rows = np.argsort(numbers, kind="stable")
    ordered = numbers[rows]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    parts = np.split(rows, starts[1:])
    return dict(zip(ordered[starts].tolist(), parts, strict=True)) if len(rows) else {}


def split_table(
    table: pa.Table, relation: Relation, partitioning: Partitioning
) -> Iterator[tuple[int, pa.Table]]:
    """Yield the tuples of each partition that has some, with its number."""
    if not table.num_rows:
        return
    columns = {at: table.column(at) for at in partitioning.columns}
    found = _rows_by_number(partitioning.numbers(columns, relation.types))
    ordered = table.take(index_array(np.concatenate(list(found.values()))))
    first = 0
    for number, rows in found.items():
        yield number, ordered.slice(first, len(rows))
        first += len(rows)


def measure_values(
    rows: pa.Table, order: Sequence[int], types: Sequence[Type]
) -> dict[int, tuple[int, ...]]:
    """Return the values of the lead that most tuples have, by key.

    Each with the number of tuples that have it, and for the other columns in their order, how many
    of these agree there at most.
    """
    lead, *others = order
    keys, places, counts = np.unique(
        column_keys(rows.column(lead), types[lead]), return_inverse=True, return_counts=True
    )
    most = np.argsort(-counts, kind="stable")[:MEASURED_MAX_VALUES]
    most = most[counts[most] > 1]
    ranks = np.full(len(keys), len(most))
    ranks[most] = np.arange(len(most))
    groups = ranks[places]
    some = np.flatnonzero(groups < len(most))
    groups = groups[some]
    widths = []
    for column in others:
        values = column_keys(rows.column(column).take(index_array(some)), types[column])
        sorted_rows = np.lexsort((values, groups))
        ordered = groups[sorted_rows], values[sorted_rows]
        is_first = np.ones(len(some), np.bool_)
        is_first[1:] = (ordered[0][1:] != ordered[0][:-1]) | (ordered[1][1:] != ordered[1][:-1])
        starts = np.flatnonzero(is_first)
        width = np.zeros(len(most), np.int64)
        np.maximum.at(width, ordered[0][starts], np.diff(np.append(starts, len(some))))
        widths.append(width)
    measured = np.column_stack([counts[most], *widths]).tolist()
    return dict(zip(keys[most].tolist(), map(tuple, measured), strict=True))


def choose_heavy(
    measured: Iterable[Mapping[int, Sequence[int]]],
    columns: tuple[int, ...],
    before: HeavyValues | None = None,
) -> HeavyValues | None:
    """Return the heavy values of a lead, with those known before; None if there are no others.

    Args:
        measured: by key of a value, how many tuples have it, and for each of the columns, how many
            of these agree in it at most; the numbers of a key are added up.
        columns: those that may spread the tuples, the best one for probes first.
        before: the heavy values so far.
    """
    sums: dict[int, npt.NDArray[np.int64]] = {}
    for each in measured:
        for key, numbers in each.items():
            sums[key] = sums.get(key, 0) + np.array(numbers, np.int64)
    limit = max(PARTITION_TUPLES // HEAVY_DIVISOR, 1)
    found = {key: each for key, each in sums.items() if each[0] > limit}
    known = () if before is None else before.keys
    fresh = sorted(found.keys() - {*known}, key=lambda key: (-int(found[key][0]), key))
    keys = tuple(sorted((*known, *fresh[: HEAVY_MAX_VALUES - len(known)])))
    if not found or not columns:
        return None
    # One column, if it tells the tuples of each value apart; tuples differ in all of them together.
    most = np.max(list(found.values()), axis=0)[1:].tolist()
    good = [column for column, width in zip(columns, most, strict=True) if width <= limit]
    if before is not None and (len(before.columns) > 1 or before.columns[0] in good):
        spread = before.columns
    elif before is None and good:
        spread = tuple(good[:1])
    else:
        spread = columns
    chosen = HeavyValues(keys, spread)
    return None if chosen == before else chosen
