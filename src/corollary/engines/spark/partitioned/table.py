"""The table of a partitioned relation: OLD is in partitions, the open change is here.

A table without committed tuples is an ordinary one. Its first commit writes partitions; from then
on every order has a `PartitionedRun`, a commit writes files of changes, and the runs of the new
version start anew: what the transaction has fetched is forgotten.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pyarrow as pa

from corollary.core.program import Relation
from corollary.core.states import State
from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.engines.local.storage.arrangement import Arrangement, Order
from corollary.engines.local.storage.code_range import CodeRange, Codes
from corollary.engines.local.storage.layout import Layout, LayoutFamily, Words
from corollary.engines.local.storage.rows import Tuples
from corollary.engines.local.storage.runs import (
    PendingProbe,
    SortedRun,
    merge_words,
    sort_distinct,
    subtract_words,
)
from corollary.engines.local.storage.table import Table
from corollary.engines.local.table_handle import decode_words
from corollary.engines.local.values.codes import Dictionary
from corollary.engines.spark.jobs import PartitionJobs
from corollary.engines.spark.partitioned.open_partition import INTERNED_KINDS, own_ranges
from corollary.engines.spark.partitioned.partition_files import (
    PartitionedFiles,
    StoredPartition,
)
from corollary.engines.spark.partitioned.partitioning import partition_count
from corollary.engines.spark.partitioned.run import PartitionedRun
from corollary.engines.spark.partitioned.source import PartitionSource

INTERNED_BITS = 24
"""The codes of texts and floats that pass get so many bits in words, more once these are used."""

WIDER_BITS = 6
"""They get so many more bits when they need more."""

ROOM_BITS = 2
"""The codes of texts have room for so many bits more than they need, so that it lasts."""

ALL_CODES_BITS = 63
"""The width of a column whose integers may be interned."""


@dataclass(slots=True)
class PartitionPlace:
    """What the partitioned tables of an engine share.

    Attributes:
        interned_bits: the width of columns whose codes the driver assigns.
    """

    root: str
    jobs: PartitionJobs
    dictionary: Dictionary
    interned_bits: int = INTERNED_BITS


class PartitionedTable(Table):
    """The tuples of one relation, the committed ones in partitions.

    Attributes:
        relation: name, columns and types.
        source: the committed tuples; None if there are none.
        loading: the added tuples, if they are in partitions; nothing is committed then.
    """

    __slots__ = ("_keys", "_leads", "_next", "_place", "loading", "relation", "source")

    is_partitioned: ClassVar[bool] = True

    def __init__(
        self, relation: Relation, place: PartitionPlace, family: LayoutFamily | None = None
    ) -> None:
        super().__init__(relation.types, family)
        self.relation = relation
        self.source: PartitionSource | None = None
        self.loading: PartitionSource | None = None
        self._place = place
        self._next: PartitionedFiles | None = None
        self._leads: dict[int, PartitionedRun] = {}
        self._keys: dict[tuple[int, ...], tuple[tuple[StoredPartition, ...], bool]] = {}
        """Whether columns were found to be a key of what some partitions hold."""

    @property
    def held(self) -> PartitionSource | None:
        """The tuples in partitions: the committed ones, or those that are loaded."""
        return self.loading or self.source

    @property
    def is_loading(self) -> bool:
        """Whether the tuples in partitions are not committed yet."""
        return self.loading is not None

    @property
    def files(self) -> PartitionedFiles | None:
        """The files of the tuples in partitions, None if there are none."""
        return None if self.held is None else self.held.files

    @property
    def known_orders(self) -> list[Order]:
        """The orders that probes need, as far as that is known."""
        return [self.primary_order, *self._others, *self._wanted]

    def relabel(self, relation: Relation) -> None:
        """Give the relation another name, or its columns; the types are the same."""
        self.relation = relation
        if self.source is not None:
            files = replace(self.source.files, relation=relation)
            self.source = replace(self.source, files=files)
            self.release()

    # --- versions ------------------------------------------------------------------------------

    def adopt(self, files: PartitionedFiles) -> None:
        """Replace the contents by the tuples of files, as OLD."""
        super().assign(self.layout.empty)
        self.source = self._hold(files)
        if self.source is not None:
            self.release()
            self._old = files.size

    def load(self, files: PartitionedFiles) -> None:
        """Replace the contents by the tuples of files, as ADDED."""
        super().assign(self.layout.empty)
        self.loading = self._hold(files)
        if self.loading is not None:
            self.release()
            self._added = files.size

    def _hold(self, files: PartitionedFiles) -> PartitionSource | None:
        """Prepare orders for the tuples of files; return these, None if there are none."""
        self._others = {}
        self.source = self.loading = self._next = None
        self._distinct_unknown()
        if not files.size:
            return None
        self.widen(self._ranges(files))
        layout = self.layout
        for order in (order for each in files.sets for order in each.orders):
            arrangement = Arrangement(order, layout.permute(order))
            if order == self.primary_order:
                self._main = arrangement
            else:
                self._others[order] = arrangement
        return PartitionSource(replace(files, relation=self.relation), self._place.jobs)

    def _distinct_unknown(self) -> None:
        self.distinct_estimates, self._estimated = (), 0

    def _ranges(self, files: PartitionedFiles) -> list[CodeRange]:
        """Return the codes that columns may have here: those of texts are given when they pass."""
        return [
            self._range(each, type_) for each, type_ in zip(files.ranges, self.types, strict=True)
        ]

    def _range(self, known: CodeRange | None, type_: Type) -> CodeRange:
        if known is not None:
            return known
        is_interned = type_.kind in INTERNED_KINDS
        bits = self._place.interned_bits if is_interned else ALL_CODES_BITS
        return CodeRange(0, bits, type_.nullable)

    def release(self) -> None:
        """Forget what was fetched."""
        self._leads = {}
        for each in (self._main, *self._others.values()):
            self._release(each)

    def _release(self, arrangement: Arrangement) -> None:
        if self.held is None:
            return
        order, layout = arrangement.order, arrangement.layout
        run = PartitionedRun(self.held, order, layout, self._place.dictionary, self._leads)
        if self.is_loading:
            later = [each for each in arrangement.added if not isinstance(each, PartitionedRun)]
            arrangement.added = [run, *later]
        else:
            arrangement.runs = [run]
        arrangement.forget_layers()

    @property
    def fetched_bytes(self) -> int:
        """The size of what was fetched."""
        if self.held is None:
            return 0
        return sum(
            run.nbytes
            for each in (self._main, *self._others.values())
            for run in (each.added if self.is_loading else each.runs)
        )

    def widen_interned(self) -> None:
        """Make room for more codes of texts."""
        if self.held is not None:
            self.widen(self._ranges(self.held.files))

    def _make_room(self) -> None:
        """Let columns hold all codes of texts: one that does not fit would seem to be absent."""
        if self.held is None:
            return
        assert self.family.current.layout is not None
        for at, column in enumerate(self.family.current.layout.columns):
            if self.types[at].kind in INTERNED_KINDS:
                bound = self._place.dictionary.domain(self.types[at]).code_bound
                if bound > column.last:
                    wider = [CodeRange()] * len(self.types)
                    wider[at] = CodeRange(0, bound.bit_length() + ROOM_BITS, column.has_null)
                    self.widen(wider)

    # --- reading -------------------------------------------------------------------------------

    @property
    def layout(self) -> Layout:
        """The current layout, which has room for all texts that the driver knows."""
        self._make_room()
        return super().layout

    def arrangement(self, order: Order) -> Arrangement:
        """Return the tuples sorted in an order, which is maintained from now on."""
        self._make_room()
        return super().arrangement(order)

    def tuples(self, state: State, order: Order | None = None) -> Words:
        """Return the tuples of a state, packed as the layout says that is current afterwards."""
        while True:
            layout, words = self.layout, super().tuples(state, order)
            # The texts that have just passed may be too many for it: then they are packed again.
            if self.layout is layout:
                return words

    def order_for(self, bound: tuple[int, ...]) -> Order:
        """Return an order whose first columns are the bound ones, with partitions if possible."""
        found = super().order_for(bound)
        if self.held is None or self.held.set_for(found) is not None:
            return found
        # Any column that is bound can lead: one that has partitions needs no others.
        leads = [each.lead for each in self.held.files.sets if each.lead in bound]
        if not leads:
            return found
        distinct = self.held.files.distinct
        lead = max(leads, key=lambda column: distinct[column])
        rest = (column for column in self.primary_order if column not in bound)
        return (lead, *(column for column in bound if column != lead), *rest)

    def unfetched(self, order: Order, keys: list[Codes], state: State) -> list[PendingProbe] | None:
        """Return what a probe by keys has to fetch; None if it is not known, or is everything."""
        if not keys or (self.held is not None and self.held.set_for(order) is None):
            return None
        arrangement = self.arrangement(order)
        keys = _fitting(keys, arrangement.layout)
        found = (
            layer.run.unfetched(keys, len(keys[0]))
            for layer in arrangement.layers(state)
            if isinstance(layer.run, PartitionedRun)
        )
        return [each for each in found if each is not None]

    def unfetched_words(self, words: Words, state: State) -> list[PendingProbe]:
        """Return what a lookup of tuples, packed in the current layout, has to fetch."""
        found = (
            layer.run.unfetched_words(words)
            for layer in self.arrangement(self.primary_order).layers(state)
            if isinstance(layer.run, PartitionedRun)
        )
        return [each for each in found if each is not None]

    def unfetched_codes(self, columns: Sequence[Codes], state: State) -> list[PendingProbe]:
        """Return what a lookup of tuples, of any codes, has to fetch."""
        layout = self.layout
        fitting = _fitting(columns, layout)
        return self.unfetched_words(layout.pack(fitting, len(fitting[0])), state)

    def _arrange(self, order: Order) -> Arrangement:
        if self.held is None:
            return super()._arrange(order)
        held = replace(self.held, files=self.held.arranged(order))
        other = Arrangement(order, self.layout.permute(order))
        if self.is_loading:
            self.loading = held
            self._release(other)
            for run in self._main.added[1:]:
                other.add(other.sort_words(run.words, self._main.layout))
            return other
        self.source = held
        self._release(other)
        other.mark_stale(None, None)
        other.catch_up(self._main)
        return other

    def _agreeing(self, columns: tuple[int, ...], arrangement: Arrangement) -> Table:
        """Return the tuples of NEW that are added, or agree with an added one in some columns.

        The arrangement begins with the columns.
        """
        main = self.arrangement(self.primary_order)
        candidates = [self.layout.empty]
        added = self._added_here()
        if len(added):
            # An added tuple may agree with one that no other agreed with before.
            layout, order = arrangement.layout, arrangement.order
            keys = [self.layout.unpack_column(added, column) for column in order[: len(columns)]]
            for run in arrangement.added[:1] if self.is_loading else arrangement.runs:
                starts, ends = run.ranges(layout, keys, len(added))
                sizes = ends - starts
                shift = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
                words = sort_distinct(run.take(np.arange(len(shift)) + shift))
                codes = layout.unpack(words)
                by_column = [codes[order.index(at)] for at in self.primary_order]
                candidates.append(self.layout.pack(by_column, len(words)))
        old = sort_distinct(np.concatenate(candidates))
        found = Table(self.types, self.family)
        found.assign(merge_words(subtract_words(old, main.removed), added))
        return found

    def is_key(self, length: int, state: State) -> bool:
        """Return whether no two tuples of a state agree in the first columns, as far as is known.

        Tasks look at the partitions, once for each version of them.
        """
        if self.held is None:
            return super().is_key(length, state)
        if state not in (State.OLD, State.NEW) or (state is State.OLD and self.is_loading):
            return False
        columns = self.primary_order[:length]
        partitions = self.held.files.sets[0].partitions
        known = self._keys.get(columns)
        if known is None or known[0] is not partitions:
            known = self._keys[columns] = partitions, self.held.is_unique(columns)
        if state is State.OLD or not known[1]:
            return known[1]
        arrangement = self.arrangement(self.order_for(columns))
        changed = self._agreeing(columns, arrangement)
        return changed.is_key(length, State.NEW)

    def distinct_values(self) -> tuple[int, ...]:
        """Estimate the distinct values of the columns, from statistics of files."""
        return super().distinct_values() if self.held is None else self.held.files.distinct

    def _make_bitmap(self, lookups: int) -> None:
        """Build none: that would read all tuples."""

    def change_tables(self) -> tuple[pa.Table, pa.Table]:
        """Return the added and the removed tuples that are here."""
        removed = self.arrangement(self.primary_order).removed
        return self._decode(self._added_here()), self._decode(removed)

    def _added_here(self) -> Words:
        """Return the added tuples that are not in partitions."""
        main = self.arrangement(self.primary_order)
        if not self.is_loading:
            return main.words(State.ADDED)
        return merge_words(self.layout.empty, *(run.words for run in main.added[1:]))

    def _decode(self, words: Words) -> pa.Table:
        return decode_words(
            words, self.layout, self.types, self.relation.columns, self._place.dictionary
        )

    def _encode_rows(self, rows: pa.Table) -> Words:
        """Return tuples packed and sorted in the primary order."""
        columns = [
            self._place.dictionary.encode_arrow(rows.column(at), type_)
            for at, type_ in enumerate(self.types)
        ]
        return sort_distinct(self.pack(columns, rows.num_rows))

    # --- writing -------------------------------------------------------------------------------

    def _open(self, added: Words, removed: Words) -> None:
        self.loading = None  # if tuples were loaded, those that stay are among the added ones
        super()._open(added, removed)

    def _loosen(self, count: int) -> None:  # noqa: ARG002
        """Return None: every change is packed."""
        return

    def add(self, words: Tuples) -> None:
        """Add tuples that are not in NEW; some may have been removed before."""
        super().add(self._with_room(words))

    def remove(self, words: Tuples) -> None:
        """Remove tuples from NEW; some may be ADDED, new or after they were removed."""
        super().remove(self._with_room(words))

    def _with_room(self, words: Tuples) -> Words:
        """Return tuples packed as the layout says once there is room for all texts."""
        if isinstance(words, list):
            return self.pack_rows(words)
        before = self.family.current.layout
        assert before is not None
        return self.layout.convert(words, before)

    def replace(self, words: Tuples) -> None:
        """Make NEW equal to the tuples given; the change becomes the difference from OLD."""
        words = self._with_room(words)
        if self.source is None:
            super().replace(words)
            return
        main = self.arrangement(self.primary_order)
        added = words[~main.contains(words, State.OLD)]
        removed = self.source.subtract(self._decode(words))
        before = self.layout
        removed_words = self._encode_rows(removed)
        self.set_change(self.layout.convert(added, before), removed_words)

    def extend(self, words: Tuples) -> None:
        """Commit, then add tuples that are not in NEW; ADDED is these and nothing else."""
        words = self._with_room(words)
        before = self.layout
        self.commit()  # which may widen the layout
        self.add(self.layout.convert(words, before))

    def prefetch(self) -> None:
        """Write the files of the open change, so that `commit` cannot fail."""
        self._next = self._write()

    def _write(self) -> PartitionedFiles:
        added, removed = self.change_tables()
        source = self.held
        if self.loading is not None and not (added.num_rows or removed.num_rows):
            return self.loading.files
        if source is None:
            jobs = self._place.jobs
            count = partition_count(added.num_rows, jobs.slots)
            orders = [*self._others, *self._wanted]
            files = PartitionedFiles.empty(self._place.root, self.relation, orders, count)
            source = PartitionSource(files, jobs)
        return source.changed(added, removed, own_ranges(self.types, self.layout.columns))

    def commit(self) -> None:
        """Make NEW the OLD; the change must be settled."""
        if self.has_change:
            self.adopt(self._write() if self._next is None else self._next)

    def rollback(self) -> None:
        """Discard the open change."""
        if self.is_loading:
            self.assign(self.layout.empty)
            return
        super().rollback()
        self._next = None
        self.release()

    def assign(self, words: Tuples) -> None:
        """Replace the contents by these tuples, as ADDED."""
        super().assign(self.as_words(words))
        self.source = self.loading = self._next = None

    def restore(
        self, before: Layout, runs: Mapping[Order, SortedRun], estimates: tuple[int, ...]
    ) -> None:
        """Replace the contents by tuples packed in some layout, as OLD; they become partitions."""
        super().restore(before, runs, estimates)
        self.assign(self.tuples(State.OLD))
        self.commit()

    def copy_from(self, other: Table) -> None:
        """Replace the contents by what another table of the same types has in NEW, as OLD."""
        if not isinstance(other, PartitionedTable) or other.source is None:
            super().copy_from(other)
            return
        self.adopt(other.source.files)
        if other.has_change:
            main = other.arrangement(other.primary_order)
            self.widen(other.layout.columns)
            self.set_change(
                *(
                    self.layout.convert(words, other.layout)
                    for words in (main.words(State.ADDED), main.removed)
                )
            )
            self.commit()


def _fitting(columns: Sequence[Codes], layout: Layout) -> list[Codes]:
    """Return the rows whose codes fit into the first columns of a layout: no tuple has others."""
    overflow = layout.overflow_mask(columns)
    return list(columns) if overflow is None else [codes[~overflow] for codes in columns]
