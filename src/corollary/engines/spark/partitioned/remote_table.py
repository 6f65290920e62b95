"""Tables that take and give tuples in partitions: results of bulk steps never pass the driver."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa

from corollary.core.arrow import DependencyCheck, Violations
from corollary.core.engine import RowLookup
from corollary.core.plans import WORKING_SEPARATOR
from corollary.core.program import Relation
from corollary.core.states import CHANGES, State
from corollary.engines.local.storage.arrangement import Arrangement, Order
from corollary.engines.local.storage.code_range import Codes
from corollary.engines.local.storage.layout import Words
from corollary.engines.local.storage.rows import Tuples
from corollary.engines.local.storage.runs import PendingProbe, SortedRun
from corollary.engines.local.storage.table import Table
from corollary.engines.spark.partitioned.handle import RemoteTuples, append_files
from corollary.engines.spark.partitioned.open_partition import own_ranges
from corollary.engines.spark.partitioned.partition_files import PartitionedFiles
from corollary.engines.spark.partitioned.run import PartitionedRun
from corollary.engines.spark.partitioned.source import PartitionSource
from corollary.engines.spark.partitioned.staged_table import StagingTable
from corollary.engines.spark.partitioned.table import PartitionPlace

AGREEING_MAX_TUPLES = 16
"""If no more tuples agree in the determinants of a dependency on average, they are looked up."""

TupleSet = Tuples | RemoteTuples


class RemoteTable(StagingTable):
    """The table of a stored relation; results in partitions are loaded into it."""

    __slots__ = ()

    _has_index: ClassVar[bool] = True

    # --- reading -------------------------------------------------------------------------------

    def is_remote(self, state: State) -> bool:
        """Whether tuples of a state are in partitions."""
        match state:
            case State.ADDED:
                return self.loading is not None or self.staged is not None
            case State.REMOVED:
                return self.staged is not None
            case State.OLD:
                return self.source is not None
            case State.NEW:
                return self.source is not None or self.loading is not None

    def unfetched_rows(
        self, columns: tuple[int, ...] | None, codes: list[Codes]
    ) -> list[PendingProbe]:
        """Return what a lookup of values of some columns, or of tuples, in NEW has to fetch."""
        if columns is None:
            return self.unfetched_codes(codes, State.NEW)
        order = self.order_for(columns)
        keys = [codes[columns.index(column)] for column in order[: len(columns)]]
        return self.unfetched(order, keys, State.NEW) or []

    def files_of(self, state: State) -> PartitionedFiles:
        """Return the files of a state that is in partitions."""
        if self.staged is not None:
            return self.staged_files(state)
        found = self.loading if state is State.ADDED or self.source is None else self.source
        assert found is not None
        return found.files

    def parts(self, state: State) -> tuple[PartitionedFiles, pa.Table, pa.Table]:
        """Return the files of a state, and the tuples that were added and removed since, here.

        The state is one that is in partitions.
        """
        files = self.files_of(state)
        if state is State.OLD or self.staged is not None:
            none = PartitionSource(files, self._place.jobs).no_rows
            return files, none, none
        return files, *self.change_tables()

    def contents(self) -> Any:
        """Return all tuples of NEW as another table takes them: words, or `RemoteTuples`."""
        if not self.is_remote(State.NEW):
            return self.tuples(State.NEW)
        files, added, removed = self.parts(State.NEW)
        if added.num_rows or removed.num_rows:
            ranges = own_ranges(self.types, self.layout.columns)
            files = PartitionSource(files, self._place.jobs).changed(added, removed, ranges)
        return RemoteTuples(replace(files, sets=files.sets[:1]))

    def violations(self, check: DependencyCheck) -> Violations | None:
        """Return pairs of tuples of NEW that violate a functional dependency, found by tasks.

        None if no tuples are in partitions.
        """
        if not self.is_remote(State.NEW) or not check.determinants:
            return None
        self.arrangement(self.order_for(check.determinants))  # a set has one of them as lead now
        files, added, removed = self.parts(State.NEW)
        found = PartitionSource(files, self._place.jobs).violations(check, added, removed)
        is_key = len(check.determinants) + len(check.dependents) == len(self.types)
        if is_key and not found.count and not (added.num_rows or removed.num_rows):
            self._keys[check.determinants] = files.sets[0].partitions, True
        return found

    def has_few(self, columns: tuple[int, ...]) -> bool:
        """Whether few tuples agree in some columns, as far as is known."""
        files = self.files
        if files is None or not columns:
            return True
        if any(
            each.heavy is not None and not each.partitioning.unites(columns)
            for each in files.sets
            if each.lead in columns
        ):
            return False
        return files.size <= AGREEING_MAX_TUPLES * max(files.distinct[at] for at in columns)

    def clashes(self, check: DependencyCheck) -> Violations | None:
        """Return violations among the tuples of NEW that agree with added ones, found by tasks.

        None if few tuples agree, as those of a key: then others look them up, and keep them.
        """
        if not self.is_remote(State.NEW) or not check.determinants:
            return None
        if self.staged is None:
            is_key = len(check.determinants) + len(check.dependents) == len(self.types)
            if is_key or self.is_loading or self.has_few(check.determinants):
                return None
            order = self.order_for(check.determinants)
            self.arrangement(order)
            files, added, removed = self.parts(State.NEW)
            source = PartitionSource(files, self._place.jobs)
            return source.violations(check, added, removed, order)
        self.arrangement(self.order_for(check.determinants))
        assert self.source is not None
        if self.source.unites(check.determinants):
            return self.staged.clashes(self.source, check)
        return self.violations(check)

    # --- writing -------------------------------------------------------------------------------

    def assign(self, words: TupleSet) -> None:
        """Replace the contents by these tuples, as ADDED."""
        if isinstance(words, RemoteTuples):
            self.load(words.files)
        else:
            super().assign(words)

    def replace(self, words: TupleSet) -> None:
        """Make NEW equal to the tuples given; the change becomes the difference from OLD."""
        if not isinstance(words, RemoteTuples):
            super().replace(words)
        elif not self._old:
            self.load(words.files)
        elif self.source is None:
            super().replace(self._collect(words))
        else:
            self.change_by_files(None, words)

    def _collect(self, tuples: RemoteTuples) -> Words:
        return self._encode_rows(PartitionSource(tuples.files, self._place.jobs).read())

    def add(self, words: TupleSet) -> None:
        """Add tuples that are not in NEW; some may have been removed before."""
        if not isinstance(words, RemoteTuples):
            super().add(words)
        elif self.held is not None:
            self.change_by_files(State.ADDED, words)
        elif self._old or self.has_change:
            super().add(self._collect(words))
        else:
            self.load(words.files)

    def remove(self, words: TupleSet) -> None:
        """Remove tuples of OLD from NEW; some may have been removed and added again."""
        if not isinstance(words, RemoteTuples):
            super().remove(words)
        elif self.held is not None:
            self.change_by_files(State.REMOVED, words)
        else:
            super().remove(self._collect(words))

    def _write(self) -> PartitionedFiles:
        files = super()._write()
        # Results are files of changes: tasks make index files of them.
        is_result = self.loading is not None and self._has_index
        return PartitionSource(files, self._place.jobs).folded() if is_result else files


class MovableTable(RemoteTable):
    """The table of a relation that is in this process until a bulk step moves it to partitions."""

    __slots__ = ()

    @classmethod
    def of(cls, table: Table, relation: Relation, place: PartitionPlace) -> "MovableTable":
        """Return a table with what another one holds, its open change too."""
        found = cls(relation, place, table.family)
        _ = table.layout  # which packs an open change
        for slot in Table.__slots__:
            setattr(found, slot, getattr(table, slot))
        return found

    @property
    def is_partitioned(self) -> bool:  # type: ignore[override]
        """Whether some of its tuples are outside of this process."""
        return self.is_remote(State.NEW)

    def replace(self, words: TupleSet) -> None:
        """Make NEW equal to the tuples given; the change becomes the difference from OLD."""
        self._follow(words)
        super().replace(words)

    def add(self, words: TupleSet) -> None:
        """Add tuples that are not in NEW; some may have been removed before."""
        self._follow(words)
        super().add(words)

    def _follow(self, words: TupleSet) -> None:
        """Move the committed tuples to where those are that will be added to them."""
        is_here = self.source is None and self._old and not self.has_change
        if is_here and isinstance(words, RemoteTuples):
            self._move_to_partitions(words.files)

    def _move_to_partitions(self, like: PartitionedFiles) -> None:
        """Write what is here in partitions like those of some files."""
        empty = like.sets[0].emptied()
        files = PartitionedFiles(like.root, self.relation, (empty,))
        rows = self._decode(self.tuples(State.OLD))
        ranges = own_ranges(self.types, self.layout.columns)
        source = PartitionSource(files, self._place.jobs)
        self.adopt(source.changed(rows, rows.slice(0, 0), ranges))

    def prefetch(self) -> None:
        """Write, or read, what `commit` needs, so that it cannot fail."""
        if self.is_partitioned:
            super().prefetch()
        else:
            Table.prefetch(self)

    def commit(self) -> None:
        """Make NEW the OLD; the change must be settled."""
        if self.is_partitioned:
            super().commit()
        else:
            Table.commit(self)


class WorkingTable(MovableTable):
    """The table of a working relation: in partitions only where a bulk step has put it there.

    Of one that rounds extend, OLD and ADDED may be in partitions both.
    """

    __slots__ = ()

    _has_index = False

    @property
    def _is_both(self) -> bool:
        return self.source is not None and self.loading is not None

    def files_of(self, state: State) -> PartitionedFiles:
        """Return the files of a state that is in partitions."""
        if state is not State.NEW or not self._is_both:
            return super().files_of(state)
        assert self.source is not None
        assert self.loading is not None
        first = replace(self.source.files, sets=self.source.files.sets[:1])
        return append_files(first, self.loading.files)

    def is_key(self, length: int, state: State) -> bool:
        """Return whether it is known that no two tuples of a state agree in the first columns."""
        return not self._is_both and super().is_key(length, state)

    def distinct_values(self) -> tuple[int, ...]:
        """Estimate the distinct values of the columns, from statistics of files."""
        return self.files_of(State.NEW).distinct if self._is_both else super().distinct_values()

    def _arrange(self, order: Order) -> Arrangement:
        source, loading = self.source, self.loading
        if source is None or loading is None:
            return super()._arrange(order)
        self.source = replace(source, files=source.arranged(order))
        self.loading = replace(loading, files=loading.arranged(order))
        other = Arrangement(order, self.layout.permute(order))
        self._release(other)
        return other

    def _release(self, arrangement: Arrangement) -> None:
        source, loading = self.source, self.loading
        if source is None or loading is None:
            super()._release(arrangement)
            return
        order, layout = arrangement.order, arrangement.layout
        runs: list[SortedRun] = [
            PartitionedRun(each, order, layout, self._place.dictionary)
            for each in (source, loading)
        ]
        arrangement.runs, arrangement.added = runs[:1], runs[1:]
        arrangement.forget_layers()

    def widen_interned(self) -> None:
        """Make room for more codes of texts."""
        super().widen_interned()
        if self.source is not None:
            self.widen(self._ranges(self.source.files))

    def commit(self) -> None:
        """Make NEW the OLD; the change must be settled."""
        if self._is_both:
            self.adopt(self.files_of(State.NEW))
        else:
            super().commit()

    def extend(self, words: TupleSet) -> None:
        """Commit, then add tuples that are not in NEW; ADDED is these and nothing else."""
        if not isinstance(words, RemoteTuples):
            super().extend(words)
            return
        self.commit()
        if self._old and self.source is None:
            self._move_to_partitions(words.files)
        if self.source is None or not len(words):
            self.add(words)
            return
        partitioning = words.files.sets[0].partitioning
        if self.source.files.sets[0].partitioning != partitioning:
            self.adopt(self.source.partitioned_as(partitioning))
        self._distinct_unknown()
        self.loading = PartitionSource(
            replace(words.files, relation=self.relation), self._place.jobs
        )
        self._added = len(words)
        self._others = {}  # made again when they are asked for
        self.widen(self._ranges(words.files))
        self._release(self.arrangement(self.primary_order))


class CodedLookup(NamedTuple):
    """Rows that are going to be looked up in a table, as codes."""

    table: RemoteTable
    lookup: RowLookup
    codes: list[Codes]


def fetch_lookups(asked: Sequence[CodedLookup]) -> None:
    """Fetch what will be looked up, by one job."""
    for table, lookup, codes in asked:
        if lookup.is_inserted:  # a later change of the layout would repack what is asked for
            given = dict(zip(lookup.columns or table.primary_order, codes, strict=True))
            columns = [given.get(at, codes[0][:0]) for at in table.primary_order]
            table.fit(columns, (None,) * len(columns))
    needed = [
        probe
        for table, lookup, codes in asked
        if lookup.columns is None or table.has_few(lookup.columns)
        for probe in table.unfetched_rows(lookup.columns, codes)
    ]
    if needed:
        needed[0].fetch_with(needed[1:])


def is_change_relation(name: str) -> bool:
    """Return whether a relation holds the change of a virtual one, for a transaction."""
    return name.rpartition(WORKING_SEPARATOR)[2] in CHANGES and WORKING_SEPARATOR in name
