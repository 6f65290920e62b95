"""A partitioned table whose open change may be in files as well: many tuples come, or go.

    state    files
    OLD      the committed ones
    ADDED    the tuples that a `StagedChange` gains
    REMOVED  the tuples that it loses
    NEW      those of OLD and of the change

Each of them is a run that tasks probe. A change that comes to few tuples is on the driver, as other
changes are; one that is in files stays there, whatever is inserted or deleted besides.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from corollary.core.engine import TableHandle
from corollary.core.program import Relation
from corollary.core.states import State
from corollary.engines.local.storage.arrangement import Arrangement, Layer, Order
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import Layout, LayoutFamily, Words
from corollary.engines.local.storage.rows import Tuples
from corollary.engines.local.storage.runs import sort_distinct
from corollary.engines.local.storage.table import Table
from corollary.engines.spark.partitioned.handle import (
    DISTRIBUTED_MIN_TUPLES,
    PartitionedHandle,
    RemoteTuples,
    append_changes,
)
from corollary.engines.spark.partitioned.operations import from_bytes
from corollary.engines.spark.partitioned.partition_files import (
    PartitionedFiles,
    PartitionSet,
    StoredPartition,
)
from corollary.engines.spark.partitioned.run import PartitionedRun
from corollary.engines.spark.partitioned.source import PartitionSource
from corollary.engines.spark.partitioned.staged_change import (
    Given,
    StagedChange,
    partitions_of_files,
    pieces_of,
    rows_by_partition,
    stage_change,
    stage_partitions,
)
from corollary.engines.spark.partitioned.stratum import (
    PlanRelation,
    RelationChange,
    split_change,
)
from corollary.engines.spark.partitioned.table import PartitionedTable, PartitionPlace

STATES = (State.OLD, State.NEW, State.ADDED, State.REMOVED)


class StagedArrangement(Arrangement):
    """One order of a table, with a run in partitions for each state."""

    __slots__ = ("_by_state",)

    def __init__(self, order: Order, layout: Layout, runs: dict[State, PartitionedRun]) -> None:
        super().__init__(order, layout)
        self._by_state = runs

    def _layers(self, state: State) -> list[Layer]:
        run = self._by_state[state]
        return [Layer(run)] if len(run) else []

    @property
    def nbytes(self) -> int:
        """The size of what was fetched, in bytes."""
        return sum(run.nbytes for run in self._by_state.values())

    def repack(self, layout: Layout) -> None:
        """Pack what was fetched in another layout of the same order."""
        before = self.layout
        super().repack(layout)
        self._by_state = {
            state: run.repack(layout, before) for state, run in self._by_state.items()
        }


class StagingTable(PartitionedTable):
    """The table of a relation whose tuples, and those of large changes, are in partitions.

    Attributes:
        staged: the open change, if it is in files; none of it is here then.
    """

    __slots__ = ("staged",)

    def __init__(
        self, relation: Relation, place: PartitionPlace, family: LayoutFamily | None = None
    ) -> None:
        super().__init__(relation, place, family)
        self.staged: StagedChange | None = None

    def relabel(self, relation: Relation) -> None:
        """Give the relation another name, or its columns; the types are the same."""
        if self.staged is not None:
            self.staged = StagedChange(self._named(self.staged.files, relation))
        super().relabel(relation)

    # --- reading -------------------------------------------------------------------------------

    def staged_files(self, state: State) -> PartitionedFiles:
        """Return the files of a state while a change is in files."""
        assert self.source is not None
        assert self.staged is not None
        match state:
            case State.OLD:
                return self.source.files
            case State.ADDED:
                return self.staged.added
            case State.REMOVED:
                return self.staged.removed
            case State.NEW:
                return self.staged.applied_to(self.source.files)

    def release(self) -> None:
        """Forget what was fetched."""
        if self.staged is None:
            super().release()
            return
        self._main = self._staged_arrangement(self.primary_order)
        self._others = {order: self._staged_arrangement(order) for order in self._others}

    def _staged_arrangement(self, order: Order) -> StagedArrangement:
        layout = self.layout.permute(order)
        runs = {
            state: PartitionedRun(
                PartitionSource(self.staged_files(state), self._place.jobs),
                order,
                layout,
                self._place.dictionary,
            )
            for state in STATES
        }
        return StagedArrangement(order, layout, runs)

    @property
    def fetched_bytes(self) -> int:
        """The size of what was fetched."""
        if self.staged is None:
            return super().fetched_bytes
        return sum(each.nbytes for each in (self._main, *self._others.values()))

    def _arrange(self, order: Order) -> Arrangement:
        if self.staged is None or self.source is None:
            return super()._arrange(order)
        jobs = self._place.jobs
        self.source = PartitionSource(self.source.arranged(order), jobs)
        part = self.source.set_for(order)
        assert part is not None
        self.staged = self.staged.arranged(part, jobs)
        return self._staged_arrangement(order)

    def _new_source(self) -> PartitionSource:
        return PartitionSource(self.staged_files(State.NEW), self._place.jobs)

    def is_key(self, length: int, state: State) -> bool:
        """Return whether it is known that no two tuples of a state agree in the first columns."""
        if self.staged is None or state is not State.NEW:
            return super().is_key(length, state)
        columns = self.primary_order[:length]
        self.arrangement(self.order_for(columns))
        return self._new_source().is_unique(columns)

    # --- writing -------------------------------------------------------------------------------

    def change_by_handle(self, sign: State, rows: TableHandle) -> None:
        """Insert or delete tuples that are outside of this process; some are in partitions."""
        assert self.held is not None
        self._change_by(sign, pieces_of(self.held, rows))

    def change_by_files(self, sign: State | None, tuples: RemoteTuples) -> None:
        """Insert or delete tuples in partitions, or let NEW be these; some are in partitions."""
        assert self.held is not None
        given = partitions_of_files(self.held, tuples.files)
        if given is None:
            named = self._named(tuples.files, self.relation)
            source = PartitionSource(named, self._place.jobs)
            none = source.no_rows
            given = pieces_of(self.held, PartitionedHandle(source, none, none))
        self._change_by(sign, given)

    def _change_by_words(self, sign: State | None, words: Words) -> None:
        assert self.held is not None
        self._change_by(sign, rows_by_partition(self.held, self._decode(words)))

    def _change_by(self, sign: State | None, given: Given) -> None:
        """Change NEW by tuples that tasks read."""
        held = self.held
        assert held is not None
        here = None if self.staged is not None else self.change_tables()
        staged = stage_change(held, sign, given, self.staged, here)
        if self.is_loading:  # all of it is added anyway
            files = staged.applied_to(held.files)
            self.load(PartitionSource(files, self._place.jobs).folded())
            return
        if sum(staged.counts) < DISTRIBUTED_MIN_TUPLES:
            self._bring_here(staged)
        else:
            self._stage(staged)

    def _stage(self, staged: StagedChange) -> None:
        """Let a change in files be the one that is open."""
        added, removed = staged.counts
        self._forget_bitmap()
        self._keys.clear()
        self.staged = staged
        self._added, self._removed = added, removed
        self.widen(self._ranges(staged.added))
        self.release()

    def _bring_here(self, staged: StagedChange) -> None:
        """Make a change of few tuples one of the driver."""
        jobs = self._place.jobs
        self._set_rows(
            PartitionSource(staged.added, jobs).read(), PartitionSource(staged.removed, jobs).read()
        )

    def _set_rows(self, added: pa.Table, removed: pa.Table) -> None:
        """Set the open change: tuples not in OLD, and tuples of OLD."""
        added_words = self._encode_rows(added)
        before = self.layout
        removed_words = self._encode_rows(removed)
        self.set_change(self.layout.convert(added_words, before), removed_words)

    # --- whole strata in tasks -----------------------------------------------------------------

    def partition_by(self, lead: int, count: int) -> bool:
        """Have a number of partitions by a column, or more; return whether that is possible.

        It is not where the tuples of a value are in several partitions.
        """
        if self.held is None:
            return True
        order = self.order_for((lead,))
        self.arrangement(order)
        part = self.held.set_for(order)
        assert part is not None
        if len(part.partitions) >= count or part.heavy is not None:
            return part.heavy is None
        if self.staged is not None:
            return False
        held = replace(self.held, files=self.held.split(count))
        if self.is_loading:
            self.loading = held
        else:
            self.source = held
        self.release()
        return True

    def for_tasks(self, lead: int | None, count: int) -> PlanRelation:
        """Return the relation as tasks read it; a change that is here is written to files.

        Args:
            lead: the column that it is partitioned by, if tasks share its partitions.
            count: how many partitions there are if it has none so far.
        """
        order = self.order_for((lead or 0,))
        part = None if self.held is None else self.held.set_for(order)
        if part is None:
            part = PartitionSet((order,), (StoredPartition(),) * count)
        partitioning = part.partitioning

        def stored(files: PartitionedFiles | None) -> tuple[StoredPartition, ...]:
            sets = () if files is None else files.sets
            found = (each.partitions for each in sets if each.lead == partitioning.lead)
            return next(found, part.emptied().partitions)

        def written(rows: pa.Table) -> tuple[StoredPartition, ...]:
            found = split_change(
                self._place.root, self.relation, partitioning, rows, rows.slice(0, 0)
            )
            return part.emptied().with_partitions(found).partitions

        old = stored(None if self.source is None else self.source.files)
        if self.staged is not None:
            added, removed = stored(self.staged.added), stored(self.staged.removed)
        else:
            added, removed = map(written, self.change_tables())
        if self.loading is not None:
            added = tuple(map(append_changes, stored(self.loading.files), added))
        shared = None if lead is None else partitioning
        return PlanRelation(self.relation, part.orders, shared, old, added, removed)

    def take_changes(self, wanted: PlanRelation, made: Sequence[RelationChange]) -> None:
        """Let what tasks have found be the open change."""
        root, jobs = self._place.root, self._place.jobs
        partitioning = wanted.partitioning
        assert partitioning is not None
        part = PartitionSet(wanted.orders, (StoredPartition(),) * partitioning.count)
        files = PartitionedFiles(root, self.relation, (part,))
        total = sum(sum(each.counts) for each in made)
        if total < DISTRIBUTED_MIN_TUPLES and not any(each.partitions for each in made):
            joined = PartitionSource(files, jobs).joined
            sides = zip(*(each.rows for each in made if each.rows is not None), strict=True)
            self._set_rows(*map(joined, sides))
            return
        found: dict[int, StoredPartition] = {}
        for each in made:
            found |= each.partitions
            if each.rows is not None:
                added, removed = map(from_bytes, each.rows)
                found |= split_change(root, self.relation, partitioning, added, removed)
        part = part.with_partitions(found)
        files = replace(files, sets=(part,))
        if self.source is None:
            self.load(PartitionSource(files, jobs).with_primary())
        elif total < DISTRIBUTED_MIN_TUPLES:
            self._bring_here(StagedChange(files))
        else:
            self._stage(stage_partitions(self.source, part))

    def _hold(self, files: PartitionedFiles) -> PartitionSource | None:
        self._unstage()  # also where no tuple is left, and there are no runs to replace
        return super()._hold(files)

    def _unstage(self) -> None:
        """Have orders without a change in files, and without tuples."""
        if self.staged is not None:
            self.staged = None
            layout = self._layout
            self._main = Arrangement(self.primary_order, layout)
            self._others = {
                order: Arrangement(order, layout.permute(order)) for order in self._others
            }

    def _open(self, added: Words, removed: Words) -> None:
        if self.staged is not None:
            self._unstage()
            super().release()
        super()._open(added, removed)

    def insert(self, columns: Sequence[Codes], count: int) -> None:
        """Add tuples to NEW; those that it contains already have no effect."""
        if self.staged is None:
            super().insert(columns, count)
        else:
            self._change_by_words(State.ADDED, sort_distinct(self.pack(columns, count)))

    def delete(self, columns: Sequence[Codes], count: int) -> None:
        """Remove tuples from NEW; those that it does not contain have no effect."""
        if self.staged is None:
            super().delete(columns, count)
            return
        overflow = self.layout.overflow_mask(columns)
        if overflow is not None:
            rows = np.flatnonzero(~overflow)
            columns, count = [each[rows] for each in columns], len(rows)
        self._change_by_words(State.REMOVED, sort_distinct(self.layout.pack(columns, count)))

    def add(self, words: Tuples) -> None:
        """Add tuples that are not in NEW; some may have been removed before."""
        if self.staged is None:
            super().add(words)
        elif len(words):
            self._change_by_words(State.ADDED, self.as_words(words))

    def remove(self, words: Tuples) -> None:
        """Remove tuples of OLD from NEW; some may have been removed and added again."""
        if self.staged is None:
            super().remove(words)
        elif len(words):
            self._change_by_words(State.REMOVED, self.as_words(words))

    def replace(self, words: Tuples) -> None:
        """Make NEW equal to the tuples given; the change becomes the difference from OLD."""
        if self.staged is None:
            super().replace(words)
        else:
            self._change_by_words(None, self.as_words(words))

    def cancel_out(self) -> None:
        """Drop tuples that were removed and added again; a change in files never has any."""
        if self.staged is None:
            super().cancel_out()

    def _write(self) -> PartitionedFiles:
        return super()._write() if self.staged is None else self._new_source().folded()

    def assign(self, words: Tuples) -> None:
        """Replace the contents by these tuples, as ADDED."""
        if self.staged is not None:
            self._open(self._layout.empty, self._layout.empty)
        super().assign(words)

    def copy_from(self, other: Table) -> None:
        """Replace the contents by what another table of the same types has in NEW, as OLD."""
        if isinstance(other, StagingTable) and other.staged is not None:
            self.adopt(other.staged_files(State.NEW))
        else:
            super().copy_from(other)

    @staticmethod
    def _named(files: PartitionedFiles, relation: Relation) -> PartitionedFiles:
        return PartitionedFiles(files.root, relation, files.sets)
