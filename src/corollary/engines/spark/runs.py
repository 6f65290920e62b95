"""A sorted run whose words are in partitions, probed by jobs.

What a probe has found is kept in an *arena*, an array that only grows, until the transaction ends:
the tuples of a key are a sorted slice of it, and no key is asked for twice. The driver's dictionary
gets the values that pass, and no others.

Probes of several runs whose keys are known at the same moment are one job (`fetch_probes`). The
runs of one table share what was asked for by a lead alone: whoever asks in another order for keys
that begin with such leads finds the tuples here.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corollary.engines.local.storage.arrangement import Order
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import Layout, Mask, Words, layout_of
from corollary.engines.local.storage.runs import (
    PendingProbe,
    is_member,
    sort_distinct,
    subtract_words,
)
from corollary.engines.local.storage.sorting import sort_words
from corollary.engines.local.table_handle import decode_words
from corollary.engines.local.values.codes import Dictionary
from corollary.engines.local.values.domains import GrowingArray
from corollary.engines.spark.jobs import PartitionTask
from corollary.engines.spark.relation.open_partition import LEAD_MAX_TUPLES
from corollary.engines.spark.relation.source import PartitionSource, joint_title

SHARED_MAX_TUPLES = 1 << 16
"""No more tuples of leads are copied from the arena of one order to that of another."""


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


class RunProbe(NamedTuple):
    """Keys that a run was not asked for yet.

    Attributes:
        run: the run.
        length: how many first columns are the keys; 0 for whole tuples, which are looked up.
        keys: packed, sorted, each once.
    """

    run: "PartitionedRun"
    length: int
    keys: Words

    @property
    def expected_tuples(self) -> int:
        """The estimated number of tuples that the answer has."""
        return len(self.keys) * self.run.tuples_of_key(self.length)

    def fetch_with(self, others: Sequence[PendingProbe]) -> None:
        """Fetch the tuples of these keys, and those of others, by one job."""
        fetch_probes([self, *(each for each in others if isinstance(each, RunProbe))])


def fetch_probes(probes: Sequence[RunProbe]) -> None:
    """Fetch what probes of some runs ask for, by one job; equal keys of a run are asked once."""
    merged: dict[tuple[int, int], RunProbe] = {}
    for each in probes:
        at = id(each.run), each.length
        if at in merged:
            keys = np.concatenate([merged[at].keys, each.keys])
            each = each._replace(keys=sort_distinct(keys))
        merged[at] = each
    requests = [each.run.request(each) for each in merged.values()]
    tasks = [task for some, _ in requests for task in some]
    title = joint_title("probe", (address.relation.name for address, _ in tasks))
    found = probes[0].run.source.jobs.run(tasks, title)
    first = 0
    for some, accept in requests:
        accept(found[first : first + len(some)])
        first += len(some)


class PartitionedRun:
    """The OLD tuples of a relation in one order.

    Attributes:
        source: the files.
        order: the columns of the relation as they are sorted.
        layout: of its words.
    """

    __slots__ = (
        "_absent",
        "_arena",
        "_dictionary",
        "_is_narrow",
        "_leads",
        "_present",
        "_slices",
        "_whole",
        "layout",
        "order",
        "source",
    )

    is_here = False

    def __init__(
        self,
        source: PartitionSource,
        order: Order,
        layout: Layout,
        dictionary: Dictionary,
        leads: "dict[int, PartitionedRun] | None" = None,
    ) -> None:
        self.order = order
        self.layout = layout
        self.source = source
        self._dictionary = dictionary
        self._leads = {} if leads is None else leads
        """By lead the run of the table that was asked for tuples by it alone."""
        self._arena = GrowingArray(layout.dtype)
        self._slices: dict[int, _Slices] = {}
        self._whole: tuple[int, int] | None = None
        self._is_narrow: bool | None = None
        self._present = self._absent = layout.empty

    def __len__(self) -> int:
        return self.source.files.size

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
        other = PartitionedRun(self.source, self.order, layout, self._dictionary, self._leads)
        arena = self._arena.array[: self._arena.count]
        other._arena.extend(layout.convert(arena, before))
        for length, found in self._slices.items():
            prefixes = (layout_of(each.columns[:length]) for each in (layout, before))
            keys = next(prefixes).convert(found.keys, next(prefixes))
            other._slices[length] = found._replace(keys=keys)
        other._whole = self._whole
        other._present = layout.convert(self._present, before)
        other._absent = layout.convert(self._absent, before)
        if self._leads.get(self.order[0]) is self:
            self._leads[self.order[0]] = other
        return other

    # --- probes --------------------------------------------------------------------------------

    def find(self, low: Any, high: Any) -> None:  # noqa: ARG002
        """Return None: what is elsewhere is not asked for one by one."""
        return

    def contains(self, needles: Words) -> Mask:
        """Return for each needle whether it is among the words."""
        if self._whole is not None:
            return is_member(needles, self.words)
        if len(missing := self._missing_words(needles)):
            fetch_probes([self._probe_of(missing)])
            missing = self._missing_words(missing)
            assert not len(missing), "all leads were asked for"
        return is_member(needles, self._present)

    def _probe_of(self, words: Words) -> RunProbe:
        """Return the probe that says of tuples whether they are there."""
        if not self._has_narrow_leads:
            return RunProbe(self, 0, words)
        # The tuples themselves are few: who looks up a key next finds them here.
        lead = layout_of(self.layout.columns[:1])
        codes = self.layout.unpack_column(words, 0)
        return RunProbe(self, 1, sort_distinct(lead.pack([codes], len(words))))

    def _missing_words(self, needles: Words) -> Words:
        """Return the tuples of which it is not known whether they are there."""
        known = self._present, self._absent
        missing = subtract_words(subtract_words(sort_distinct(needles), known[0]), known[1])
        for length, asked in self._slices.items():
            if not len(missing):
                break
            # Of a key that was asked for, all tuples are here.
            prefix = layout_of(self.layout.columns[:length])
            codes = [self.layout.unpack_column(missing, at) for at in range(length)]
            keys = prefix.pack(codes, len(missing))
            is_asked = is_member(keys, asked.keys)
            if np.count_nonzero(is_asked):
                at = asked.keys.searchsorted(sort_distinct(keys[is_asked]))
                found = sort_distinct(self._gather(asked.starts[at], asked.ends[at]))
                words = missing[is_asked]
                self._accept_mask(words, is_member(words, found))
                missing = missing[~is_asked]
        return missing

    @property
    def _has_narrow_leads(self) -> bool:
        """Whether few tuples agree in the first column."""
        if self._is_narrow is None:
            files = self.source.files
            self._is_narrow = files.size <= LEAD_MAX_TUPLES * files.distinct[self.order[0]]
        return self._is_narrow

    def _gather(self, starts: Codes, ends: Codes) -> Words:
        """Return the words of slices of the arena, one after the other."""
        sizes = ends - starts
        shift = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
        return self.take(np.arange(len(shift)) + shift)

    def ranges(self, layout: Layout, keys: list[Codes], count: int) -> tuple[Codes, Codes]:
        """Return for each key (values of the first columns) the slice of the arena that has it."""
        length = len(keys)
        if not length:
            first, last = self._collect()
            return np.full(count, first, np.int64), np.full(count, last, np.int64)
        if self._whole is not None:
            return self._bounds(keys, count, self._whole)
        wanted = layout_of(layout.columns[:length]).pack(keys, count)
        missing = self._missing_keys(length, wanted)
        if len(missing) or length not in self._slices:
            fetch_probes([RunProbe(self, length, missing)])
        found = self._slices[length]
        at = found.keys.searchsorted(wanted)
        return found.starts[at], found.ends[at]

    def _bounds(
        self, keys: list[Codes], count: int, region: tuple[int, int]
    ) -> tuple[Codes, Codes]:
        """Return the slices of keys in a sorted region of the arena."""
        first, last = region
        words = self._arena.array[first:last]
        low, high = self.layout.prefix_bounds(keys, count)
        return words.searchsorted(low) + first, words.searchsorted(high, "right") + first

    # --- what was not asked for yet ------------------------------------------------------------

    def unfetched(self, keys: list[Codes], count: int) -> RunProbe | None:
        """Return the keys, of one column or more, that `ranges` would ask for, if there are any."""
        if self._whole is not None:
            return None
        wanted = layout_of(self.layout.columns[: len(keys)]).pack(keys, count)
        missing = self._missing_keys(len(keys), wanted)
        return RunProbe(self, len(keys), missing) if len(missing) else None

    def unfetched_words(self, needles: Words) -> RunProbe | None:
        """Return the keys that `contains` would ask for, if there are any."""
        if self._whole is not None:
            return None
        missing = self._missing_words(needles)
        return self._probe_of(missing) if len(missing) else None

    def tuples_of_key(self, length: int) -> int:
        """Return about how many tuples an answer has for a key of some first columns."""
        files = self.source.files
        distinct = max(
            (files.distinct[column] for column in self.order[:length]), default=files.size
        )
        return -(-files.size // max(1, distinct))  # rounded up

    def request(self, probe: RunProbe) -> tuple[list[PartitionTask], Callable[[list[Any]], None]]:
        """Return what tasks do for a probe of this run, and what takes their results."""
        if not probe.length:
            lookup = self.source.lookup(self._decode(probe.keys))
            return lookup.tasks, lambda found: self._accept_mask(probe.keys, lookup.mask(found))
        types = self.source.files.relation.types
        codes = layout_of(self.layout.columns[: probe.length]).unpack(probe.keys)
        columns = [
            self._dictionary.decode_arrow(each, types[column])
            for each, column in zip(codes, self.order, strict=False)
        ]
        keys = pa.table(columns, names=[f"k{at}" for at in range(probe.length)])
        return self.source.match_tasks(self.order, keys), partial(self._accept_tuples, probe)

    def _accept_mask(self, words: Words, found: Mask) -> None:
        self._present = sort_words(np.concatenate([self._present, words[found]]))
        self._absent = sort_words(np.concatenate([self._absent, words[~found]]))

    def _accept_tuples(self, probe: RunProbe, found: list[Any]) -> None:
        self._note(probe.length, probe.keys, self._append(self.source.joined(found)))
        if probe.length == 1:
            self._leads[self.order[0]] = self

    def _note(self, length: int, keys: Words, region: tuple[int, int]) -> None:
        """Note where the tuples of keys are: in a region of the arena."""
        codes = layout_of(self.layout.columns[:length]).unpack(keys)
        starts, ends = self._bounds(codes, len(keys), region)
        known = self._slices.get(length)
        if known is not None:
            keys = np.concatenate([known.keys, keys])
            rows = np.argsort(keys, kind="stable")
            keys = keys[rows]
            starts = np.concatenate([known.starts, starts])[rows]
            ends = np.concatenate([known.ends, ends])[rows]
        self._slices[length] = _Slices(keys, starts, ends)

    def _missing_keys(self, length: int, wanted: Words) -> Words:
        """Return the keys of which neither this run nor one with the same lead knows the tuples."""
        missing, known = sort_distinct(wanted), self._slices.get(length)
        if known is not None:
            missing = subtract_words(missing, known.keys)
        leader = self._leads.get(self.order[0])
        if not len(missing) or leader is None or (leader is self and length == 1):
            return missing
        leads = layout_of(self.layout.columns[:length]).unpack(missing)[0]
        columns = leader.tuples_with(leads, self.layout)
        if columns is None:
            return missing
        region = self._append_codes([columns[column] for column in self.order])
        self._note(length, missing, region)
        return missing[:0]

    def tuples_with(self, leads: Codes, layout: Layout) -> dict[int, Codes] | None:
        """Return the columns of the tuples with some leads, None unless all of them are here.

        Args:
            leads: codes that fit a layout.
            layout: of an order with the same lead.
        """
        if layout.columns[0] != self.layout.columns[0]:
            return None
        prefix = layout_of(layout.columns[:1])
        wanted = sort_distinct(prefix.pack([leads], len(leads)))
        known = self._slices.get(1)
        if self._whole is not None:
            starts, ends = self._bounds(prefix.unpack(wanted), len(wanted), self._whole)
        elif known is not None and is_member(wanted, known.keys).all():
            at = known.keys.searchsorted(wanted)
            starts, ends = known.starts[at], known.ends[at]
        else:
            return None
        if (ends - starts).sum() > SHARED_MAX_TUPLES:
            return None
        codes = self.layout.unpack(self._gather(starts, ends))
        return dict(zip(self.order, codes, strict=True))

    def _collect(self) -> tuple[int, int]:
        """Read all words into the arena; return their place."""
        if self._whole is None:
            self._whole = self._append(self.source.read())
            self._leads[self.order[0]] = self
        return self._whole

    def _append(self, rows: pa.Table) -> tuple[int, int]:
        """Add tuples to the arena, sorted; return their place."""
        types = self.source.files.relation.types
        return self._append_codes(
            [
                self._dictionary.encode_arrow(rows.column(column), types[column])
                for column in self.order
            ]
        )

    def _append_codes(self, columns: list[Codes]) -> tuple[int, int]:
        """Add tuples, given by the columns in the order of the run, to the arena."""
        if self.layout.overflow_mask(columns) is not None:
            raise LayoutExceeded(self.source.files.relation.name)
        first = self._arena.count
        self._arena.extend(sort_words(self.layout.pack(columns, len(columns[0]))))
        return first, self._arena.count

    def _decode(self, words: Words) -> pa.Table:
        """Return words as tuples of the relation."""
        relation = self.source.files.relation
        types = tuple(relation.types[column] for column in self.order)
        names = [relation.columns[column] for column in self.order]
        found = decode_words(words, self.layout, types, names, self._dictionary)
        return found.select([self.order.index(at) for at in range(len(types))])
