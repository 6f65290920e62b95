"""A sorted run whose words are in partitions, probed by jobs.

What a probe has found is kept in an *arena*, an array that only grows, until the transaction ends:
the tuples of a key are a sorted slice of it, and no key is asked for twice. The driver's dictionary
gets the values that pass, and no others.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.engines.local.storage.arrangement import Order
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import Layout, Mask, Words, layout_of
from corollary.engines.local.storage.runs import is_member, sort_distinct, subtract_words
from corollary.engines.local.storage.sorting import sort_words
from corollary.engines.local.table_handle import decode_words
from corollary.engines.local.values.codes import Dictionary
from corollary.engines.local.values.domains import GrowingArray
from corollary.engines.spark.partitioned.open_partition import LEAD_MAX_TUPLES
from corollary.engines.spark.partitioned.source import PartitionSource


class LayoutExceeded(Exception):  # noqa: N818 - caught by the engine, which widens the layout
    """A value that passed has a code for which the layout of its table is too narrow."""

    def __init__(self, relation: str) -> None:
        super().__init__(f"the layout of `{relation}` is too narrow")
        self.relation = relation


class _Slices(NamedTuple):
    """Keys that were asked for, sorted, and their slices of the arena."""

    keys: Words
    starts: Codes
    ends: Codes


class PartitionedRun:
    """The OLD tuples of a relation in one order.

    Attributes:
        order: the columns of the relation as they are sorted.
        layout: of its words.
    """

    __slots__ = (
        "_absent",
        "_arena",
        "_dictionary",
        "_is_narrow",
        "_present",
        "_slices",
        "_source",
        "_whole",
        "layout",
        "order",
    )

    is_here = False

    def __init__(
        self, source: PartitionSource, order: Order, layout: Layout, dictionary: Dictionary
    ) -> None:
        self.order = order
        self.layout = layout
        self._source = source
        self._dictionary = dictionary
        self._arena = GrowingArray(layout.dtype)
        self._slices: dict[int, _Slices] = {}
        self._whole: tuple[int, int] | None = None
        self._is_narrow: bool | None = None
        self._present = self._absent = layout.empty

    def __len__(self) -> int:
        return self._source.files.size

    @property
    def nbytes(self) -> int:
        """The size of the arena in bytes."""
        return self._arena.array.nbytes + self._present.nbytes + self._absent.nbytes

    @property
    def words(self) -> Words:
        """All words, collected: only for what users asked to read, and small relations."""
        first, last = self._collect()
        return self._arena.array[first:last]

    def slice(self, first: int, last: int) -> Words:
        """Return the words of the arena from the first index to before the last."""
        return self._arena.array[first:last]

    def take(self, indices: npt.NDArray[Any]) -> Words:
        """Return the words of the arena at some indices."""
        found: Words = self._arena.array[indices]
        return found

    def repack(self, layout: Layout, before: Layout) -> "PartitionedRun":
        """Return the run in another layout of the same order, with what is known."""
        other = PartitionedRun(self._source, self.order, layout, self._dictionary)
        arena = self._arena.array[: self._arena.count]
        other._arena.extend(layout.convert(arena, before))
        for length, found in self._slices.items():
            prefixes = (layout_of(each.columns[:length]) for each in (layout, before))
            keys = next(prefixes).convert(found.keys, next(prefixes))
            other._slices[length] = found._replace(keys=keys)
        other._whole = self._whole
        other._present = layout.convert(self._present, before)
        other._absent = layout.convert(self._absent, before)
        return other

    # --- probes --------------------------------------------------------------------------------

    def contains(self, needles: Words) -> Mask:
        """Return for each needle whether it is among the words."""
        if self._whole is not None:
            return is_member(needles, self.words)
        if self._has_narrow_leads:
            # The tuples themselves are few: who looks up a key next finds them here.
            return is_member(needles, self._with_leads_of(needles))
        missing = subtract_words(
            subtract_words(sort_distinct(needles), self._present), self._absent
        )
        if len(missing):
            found = self._source.contains(self._decode(missing))
            self._present = sort_words(np.concatenate([self._present, missing[found]]))
            self._absent = sort_words(np.concatenate([self._absent, missing[~found]]))
        return is_member(needles, self._present)

    @property
    def _has_narrow_leads(self) -> bool:
        """Whether few tuples agree in the first column."""
        if self._is_narrow is None:
            files = self._source.files
            self._is_narrow = files.size <= LEAD_MAX_TUPLES * files.distinct[self.order[0]]
        return self._is_narrow

    def _with_leads_of(self, words: Words) -> Words:
        """Return the words with the first columns of some, sorted."""
        leads = [self.layout.unpack_column(words, 0)]
        starts, ends = self.ranges(self.layout, leads, len(words))
        sizes = ends - starts
        shift = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
        return sort_distinct(self.take(np.arange(len(shift)) + shift))

    def ranges(self, layout: Layout, keys: list[Codes], count: int) -> tuple[Codes, Codes]:
        """Return for each key (values of the first columns) the slice of the arena that has it."""
        length = len(keys)
        if not length:
            first, last = self._collect()
            return np.full(count, first, np.int64), np.full(count, last, np.int64)
        if self._whole is not None:
            return self._bounds(layout, keys, count, self._whole)
        wanted = layout_of(layout.columns[:length]).pack(keys, count)
        found = self._slices.get(length)
        distinct = sort_distinct(wanted)
        missing = distinct if found is None else subtract_words(distinct, found.keys)
        if found is None or len(missing):
            found = self._slices[length] = self._fetch(layout, length, missing, found)
        at = found.keys.searchsorted(wanted)
        return found.starts[at], found.ends[at]

    def _bounds(
        self, layout: Layout, keys: list[Codes], count: int, region: tuple[int, int]
    ) -> tuple[Codes, Codes]:
        """Return the slices of keys in a sorted region of the arena."""
        first, last = region
        words = self._arena.array[first:last]
        low, high = layout.prefix_bounds(keys, count)
        return words.searchsorted(low) + first, words.searchsorted(high, "right") + first

    def _fetch(self, layout: Layout, length: int, missing: Words, known: _Slices | None) -> _Slices:
        """Ask for the tuples of keys; return the slices of these and of those that are known."""
        prefix = layout_of(layout.columns[:length])
        codes = prefix.unpack(missing)
        types = self._source.files.relation.types
        columns = [
            self._dictionary.decode_arrow(each, types[column])
            for each, column in zip(codes, self.order, strict=False)
        ]
        names = [f"k{at}" for at in range(length)]
        region = self._append(self._source.match(self.order, pa.table(columns, names=names)))
        starts, ends = self._bounds(layout, codes, len(missing), region)
        if known is None:
            return _Slices(missing, starts, ends)
        keys = np.concatenate([known.keys, missing])
        rows = np.argsort(keys, kind="stable")
        return _Slices(
            keys[rows],
            np.concatenate([known.starts, starts])[rows],
            np.concatenate([known.ends, ends])[rows],
        )

    def _collect(self) -> tuple[int, int]:
        """Read all words into the arena; return their place."""
        if self._whole is None:
            self._whole = self._append(self._source.read())
        return self._whole

    def _append(self, rows: pa.Table) -> tuple[int, int]:
        """Add tuples to the arena, sorted; return their place."""
        types = self._source.files.relation.types
        columns = [
            self._dictionary.encode_arrow(rows.column(column), types[column])
            for column in self.order
        ]
        if self.layout.overflow_mask(columns) is not None:
            raise LayoutExceeded(self._source.files.relation.name)
        first = self._arena.count
        self._arena.extend(sort_words(self.layout.pack(columns, rows.num_rows)))
        return first, self._arena.count

    def _decode(self, words: Words) -> pa.Table:
        """Return words as tuples of the relation."""
        relation = self._source.files.relation
        types = tuple(relation.types[column] for column in self.order)
        names = [relation.columns[column] for column in self.order]
        found = decode_words(words, self.layout, types, names, self._dictionary)
        return found.select([self.order.index(at) for at in range(len(types))])
