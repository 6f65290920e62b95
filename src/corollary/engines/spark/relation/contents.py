"""What a table has in partitions: files, and runs of its arrangements that tasks probe.

    state    files                                    otherwise
    OLD      the committed tuples                     the table has no tuples in partitions
    ADDED    a load, or what a `StagedChange` gains   the tuples added are on the driver
    REMOVED  what a `StagedChange` loses              the tuples removed are on the driver
    NEW      those of OLD and of the change           the files of OLD with the change of the driver

A commit writes files of changes; the runs of the new version start anew: what the transaction has
fetched is forgotten. A change of many tuples is in files before, and stays there, whatever is
inserted or deleted besides; one that comes to few tuples is collected to the driver. Results of
bulk steps are files, too, and never pass the driver.
"""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from corollary.core.engine import RowLookup, TableHandle
from corollary.core.program import Relation
from corollary.core.states import State
from corollary.core.types import Type
from corollary.data_class import dataclass
from corollary.engines.local.storage.arrangement import Arrangement, Order
from corollary.engines.local.storage.code_range import CodeRange, Codes
from corollary.engines.local.storage.layout import Words
from corollary.engines.local.storage.rows import Tuples
from corollary.engines.local.storage.runs import PendingProbe, merge_words, sort_distinct
from corollary.engines.local.storage.table import Table
from corollary.engines.local.table_handle import decode_words, encode_words
from corollary.engines.local.values.codes import Dictionary
from corollary.engines.spark.jobs import PartitionJobs
from corollary.engines.spark.relation import staged_change
from corollary.engines.spark.relation.files import (
    PartitionedFiles,
    PartitionSet,
    StoredPartition,
)
from corollary.engines.spark.relation.handle import PartitionedHandle, RemoteTuples, is_distributed
from corollary.engines.spark.relation.open_partition import INTERNED_KINDS, own_ranges
from corollary.engines.spark.relation.partitioning import partition_count
from corollary.engines.spark.relation.source import PartitionSource, fold_together
from corollary.engines.spark.runs import PartitionedRun

INTERNED_BITS = 24
"""The codes of texts and floats that pass get this many bits in words, more once these are used."""

WIDER_BITS = 6
"""They get this many more bits when they need more."""

ROOM_BITS = 2
"""The codes of texts have room for this many bits more than they need, so that it lasts."""

ALL_CODES_BITS = 63
"""The width of a column whose integers may be interned."""

AGREEING_MAX_TUPLES = 16
"""If no more tuples agree in the determinants of a dependency on average, they are looked up."""

TupleSet = Tuples | RemoteTuples


@dataclass(slots=True)
class PartitionPlace:
    """What the partitioned relations of an engine share.

    Attributes:
        interned_bits: the width of columns whose codes the driver assigns.
    """

    root: str
    jobs: PartitionJobs
    dictionary: Dictionary
    interned_bits: int = INTERNED_BITS


class PartitionedContents:
    """What one table has in partitions.

    Args:
        table: the table, which asks this from now on.
        relation: its name, columns and types.
        place: the files and jobs.
        is_working: whether it lives as long as a plan runs, so that an index does not pay.

    Attributes:
        table, relation, place: as given.
        source: the committed tuples, if they are in partitions.
        loading: the added tuples, if they are in partitions and nothing is committed.
        staged: the open change of committed tuples, if it is in files; none of it is here then.
        next_files: what the next commit makes those of OLD, once they are written.
    """

    __slots__ = (
        "_is_working",
        "_keys",
        "_leads",
        "loading",
        "next_files",
        "place",
        "relation",
        "source",
        "staged",
        "table",
    )

    def __init__(
        self, table: Table, relation: Relation, place: PartitionPlace, *, is_working: bool = False
    ) -> None:
        _ = table.layout  # which packs an open change
        table.remote = self
        self.table = table
        self.place = place
        self._is_working = is_working
        self.relation = relation
        self.source: PartitionSource | None = None
        self.loading: PartitionSource | None = None
        self.staged: staged_change.StagedChange | None = None
        self.next_files: PartitionedFiles | None = None
        self._leads: dict[int, PartitionedRun] = {}
        self._keys: dict[tuple[int, ...], tuple[tuple[StoredPartition, ...], bool]] = {}
        """Whether columns were found to be a key of what some partitions hold."""

    @property
    def held(self) -> PartitionSource | None:
        """The tuples in partitions: the committed ones, or those that are loaded."""
        return self.loading or self.source

    @property
    def is_held(self) -> bool:
        """Whether there are committed or loaded tuples in partitions."""
        return self.loading is not None or self.source is not None

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
                return self.is_held

    def files_of(self, state: State) -> PartitionedFiles:
        """Return the files of a state that is in partitions."""
        if self.staged is not None and self.source is not None:
            match state:
                case State.OLD:
                    return self.source.files
                case State.ADDED:
                    return self.staged.added
                case State.REMOVED:
                    return self.staged.removed
                case State.NEW:
                    return self.staged.applied_to(self.source.files)
        found = self.loading if state is State.ADDED or self.source is None else self.source
        assert found is not None
        return found.files

    def _source_of(self, files: PartitionedFiles) -> PartitionSource:
        return PartitionSource(replace(files, relation=self.relation), self.place.jobs)

    @property
    def file_paths(self) -> set[str]:
        """The paths of all files."""
        held = (self.source, self.loading, self.staged)
        return {path for each in held if each is not None for path in each.files.paths}

    def relabel(self, relation: Relation) -> None:
        """Give the relation another name, or its columns; the types are the same."""
        self.relation = relation
        if self.staged is not None:
            self.staged = staged_change.StagedChange(replace(self.staged.files, relation=relation))
        if self.source is not None:
            self.source = self._source_of(self.source.files)
            self.release()

    # --- versions ------------------------------------------------------------------------------

    def attach_files(self, files: PartitionedFiles) -> None:
        """Replace the contents by the tuples of files, as OLD."""
        self.source = self._hold(files)
        if self.source is not None:
            self.table.resize(old=files.size)
            self.release()

    def load(self, files: PartitionedFiles) -> None:
        """Replace the contents by the tuples of files, as ADDED."""
        self.loading = self._hold(files)
        if self.loading is not None:
            self.table.resize(added=files.size)
            self.release()

    def _hold(self, files: PartitionedFiles) -> PartitionSource | None:
        """Have no tuples, and the orders of files; return these, None if they have no tuples."""
        table = self.table
        table.assign(table.layout.empty)
        if not files.size:
            table.set_orders(())
            return None
        table.widen(self._ranges(files))
        table.set_orders(order for each in files.sets for order in each.orders)
        return self._source_of(files)

    def hold_again(self, files: PartitionedFiles) -> None:
        """Have the same tuples in other files."""
        if self.loading is not None:
            self.loading = self._source_of(files)
        else:
            self.source = self._source_of(files)

    def _ranges(self, files: PartitionedFiles) -> list[CodeRange]:
        """Return the codes that columns may have here: those of texts are given when they pass."""
        types = self.relation.types
        return [self._range(each, type_) for each, type_ in zip(files.ranges, types, strict=True)]

    def _range(self, known: CodeRange | None, type_: Type) -> CodeRange:
        if known is not None:
            return known
        is_interned = type_.kind in INTERNED_KINDS
        bits = self.place.interned_bits if is_interned else ALL_CODES_BITS
        return CodeRange(0, bits, type_.nullable)

    def release(self) -> None:
        """Forget what was fetched."""
        self._leads = {}
        for each in self.table.arrangements:
            self._connect(each)

    def _connect(self, arrangement: Arrangement) -> None:
        """Let an arrangement read what is in partitions."""
        order, layout, dictionary = arrangement.order, arrangement.layout, self.place.dictionary
        if self.staged is not None:
            arrangement.reset(layout.empty)
            arrangement.by_state = {
                state: PartitionedRun(
                    self._source_of(self.files_of(state)), order, layout, dictionary
                )
                for state in State
            }
        elif self.held is not None:
            run = PartitionedRun(self.held, order, layout, dictionary, self._leads)
            if self.loading is not None:
                later = [each for each in arrangement.added if not isinstance(each, PartitionedRun)]
                arrangement.added = [run, *later]
            else:
                arrangement.runs = [run]
        arrangement.forget_layers()

    @property
    def fetched_bytes(self) -> int:
        """The size of what was fetched, and of a change that is here."""
        return sum(each.nbytes for each in self.table.arrangements) if self.is_held else 0

    def widen_interned(self) -> None:
        """Make room for more codes of texts."""
        if self.is_held:
            self.table.widen(self._ranges(self.files_of(State.NEW)))

    def make_room(self) -> None:
        """Let columns hold all codes of texts: one that does not fit would seem to be absent."""
        if not self.is_held:
            return
        layout, types = self.table.family.current.layout, self.relation.types
        assert layout is not None
        for at, column in enumerate(layout.columns):
            if types[at].kind in INTERNED_KINDS:
                bound = self.place.dictionary.domain(types[at]).code_bound
                if bound > column.last:
                    wider = [CodeRange()] * len(types)
                    wider[at] = CodeRange(0, bound.bit_length() + ROOM_BITS, column.has_null)
                    self.table.widen(wider)

    # --- reading -------------------------------------------------------------------------------

    def order_for(self, order: Order, bound: tuple[int, ...]) -> Order:
        """Return an order whose first columns are the bound ones, with partitions if possible."""
        if self.held is None or self.held.set_for(order) is not None:
            return order
        # Any column that is bound can lead: one that has partitions needs no others.
        leads = [each.lead for each in self.held.files.sets if each.lead in bound]
        if not leads:
            return order
        distinct = self.held.files.distinct
        lead = max(leads, key=lambda column: distinct[column])
        rest = (column for column in self.table.primary_order if column not in bound)
        return (lead, *(column for column in bound if column != lead), *rest)

    def arrange(self, order: Order) -> Arrangement:
        """Return the tuples in an order that there is not yet; some are held."""
        table, held = self.table, self.held
        assert held is not None
        self.hold_again(held.arranged(order))
        if self.staged is not None and self.source is not None:
            part = self.source.set_for(order)
            assert part is not None
            self.staged = self.staged.arranged(part, self.place.jobs)
        main = table.arrangement(table.primary_order)
        other = Arrangement(order, main.layout.permute(order))
        self._connect(other)
        if self.loading is not None:
            for run in main.added[1:]:
                other.add(other.sort_words(run.words, main.layout))
        elif self.staged is None:
            other.mark_stale(None, None)
            other.catch_up(main)
        return other

    def unfetched(self, order: Order, keys: list[Codes], state: State) -> list[PendingProbe] | None:
        """Return what a probe by keys has to fetch; None if it is not known, or is everything."""
        if not keys or (self.held is not None and self.held.set_for(order) is None):
            return None
        arrangement = self.table.arrangement(order)
        keys = arrangement.layout.fitting(keys)
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
            for layer in self.table.arrangement(self.table.primary_order).layers(state)
            if isinstance(layer.run, PartitionedRun)
        )
        return [each for each in found if each is not None]

    def unfetched_codes(self, columns: Sequence[Codes], state: State) -> list[PendingProbe]:
        """Return what a lookup of tuples, of any codes, has to fetch."""
        layout = self.table.layout
        fitting = layout.fitting(columns)
        return self.unfetched_words(layout.pack(fitting, len(fitting[0])), state)

    def unfetched_rows(
        self, columns: tuple[int, ...] | None, codes: list[Codes]
    ) -> list[PendingProbe]:
        """Return what a lookup of values of some columns, or of tuples, in NEW should fetch."""
        if columns is None:
            return self.unfetched_codes(codes, State.NEW)
        if not self.has_few(columns):
            return []
        order = self.table.order_for(columns)
        keys = [codes[columns.index(column)] for column in order[: len(columns)]]
        return self.unfetched(order, keys, State.NEW) or []

    def fit(self, columns: tuple[int, ...] | None, codes: list[Codes]) -> None:
        """Make the layout wide enough for values of some columns, or for tuples."""
        primary = self.table.primary_order
        given = dict(zip(columns or primary, codes, strict=True))
        self.table.fit([given.get(at, codes[0][:0]) for at in primary], (None,) * len(primary))

    def is_key(self, length: int, state: State) -> bool:
        """Return whether it is known that no two tuples of a state agree in the first columns.

        Tasks look at the partitions, once for each version of them.
        """
        table, held = self.table, self.held
        assert held is not None
        if state not in (State.OLD, State.NEW) or (state is State.OLD and self.source is None):
            return False
        columns = table.primary_order[:length]
        if self.staged is not None and state is State.NEW:
            if self._is_working:
                return False
            table.arrangement(table.order_for(columns))
            return self._source_of(self.files_of(State.NEW)).is_unique(columns)
        partitions = held.files.sets[0].partitions
        known = self._keys.get(columns)
        if known is None or known[0] is not partitions:
            known = self._keys[columns] = partitions, held.is_unique(columns)
        if state is State.OLD or not known[1]:
            return known[1]
        arrangement = table.arrangement(table.order_for(columns))
        added = arrangement.sort_words(self._added_here(), table.layout)
        return arrangement.count_matches(added, length, ()) == len(added)  # with themselves

    def distinct_values(self) -> tuple[int, ...]:
        """Estimate the distinct values of the columns, from statistics of files."""
        return self.files_of(State.NEW).distinct

    def note_key(self, columns: tuple[int, ...]) -> None:
        """Take columns as a key of the tuples in partitions."""
        self._keys[columns] = self.files_of(State.NEW).sets[0].partitions, True

    def change_tables(self) -> tuple[pa.Table, pa.Table]:
        """Return the added and the removed tuples that are here."""
        removed = self.table.arrangement(self.table.primary_order).removed
        return self._decode(self._added_here()), self._decode(removed)

    def _added_here(self) -> Words:
        """Return the added tuples that are not in partitions."""
        main = self.table.arrangement(self.table.primary_order)
        if self.loading is None:
            return main.words(State.ADDED)
        return merge_words(main.layout.empty, *(run.words for run in main.added[1:]))

    def _decode(self, words: Words) -> pa.Table:
        relation, layout = self.relation, self.table.layout
        return decode_words(words, layout, relation.types, relation.columns, self.place.dictionary)

    def _encode_rows(self, rows: pa.Table) -> Words:
        """Return tuples packed and sorted in the primary order."""
        return sort_distinct(encode_words(rows, self.table, self.place.dictionary))

    def parts(self, state: State) -> tuple[PartitionedFiles, pa.Table, pa.Table]:
        """Return the files of a state, and the tuples that were added and removed since, here.

        The state is one that is in partitions.
        """
        files = self.files_of(state)
        if state is State.OLD or self.staged is not None:
            none = self._source_of(files).no_rows
            return files, none, none
        return files, *self.change_tables()

    def new_files(self) -> PartitionedFiles:
        """Return the files of NEW; a change that is here is written."""
        files, added, removed = self.parts(State.NEW)
        if not added.num_rows and not removed.num_rows:
            return files
        return self._source_of(files).changed(added, removed, self._own_ranges())

    def _own_ranges(self) -> tuple[CodeRange | None, ...]:
        return own_ranges(self.relation.types, self.table.layout.columns)

    def contents(self) -> RemoteTuples:
        """Return all tuples of NEW as another table takes them."""
        files = self.new_files()
        return RemoteTuples(replace(files, sets=files.sets[:1]))

    def has_few(self, columns: tuple[int, ...]) -> bool:
        """Whether few tuples agree in some columns, as far as is known."""
        if self.held is None or not columns:
            return True
        files = self.held.files
        if any(
            each.heavy is not None and not each.partitioning.unites(columns)
            for each in files.sets
            if each.lead in columns
        ):
            return False
        return files.size <= AGREEING_MAX_TUPLES * max(files.distinct[at] for at in columns)

    # --- moving --------------------------------------------------------------------------------

    def move_committed(self, like: PartitionSet | None = None) -> None:
        """Write the committed tuples that are here in partitions; an open change stays here.

        Args:
            like: if it is given, they are partitioned as its tuples are.
        """
        table = self.table
        if self.is_held or not table.size(State.OLD):
            return
        main, layout = table.arrangement(table.primary_order), table.layout
        change = main.words(State.ADDED), main.removed
        self.attach_files(self._built(self._decode(table.tuples(State.OLD)), like))
        if any(map(len, change)):
            table.set_change(*(table.layout.convert(each, layout) for each in change))

    def move_added(self) -> None:
        """Write the added tuples that are here in partitions, if there are no others."""
        table = self.table
        if not self.is_held and not table.size(State.OLD) and table.size(State.ADDED):
            self.load(self._built(self._decode(table.tuples(State.ADDED))))

    def _built(self, rows: pa.Table, like: PartitionSet | None = None) -> PartitionedFiles:
        """Return the files of tuples that are here."""
        root = self.place.root
        if like is not None:
            files = PartitionedFiles(root, self.relation, (like.emptied(),))
        else:
            count = partition_count(rows.num_rows)
            orders = self.table.known_orders
            files = PartitionedFiles.empty(root, self.relation, orders, count)
        files = self._source_of(files).changed(rows, rows.slice(0, 0), self._own_ranges())
        return self._source_of(files).folded()

    def _move_along(self, tuples: RemoteTuples) -> None:
        """Move the committed tuples to where those are that will be added to them."""
        if not self.table.has_change:
            self.move_committed(tuples.files.sets[0])

    # --- writing -------------------------------------------------------------------------------

    def change(self, sign: State, tuples: TupleSet) -> Words:
        """Add tuples to NEW, or remove them; return those that the table has to."""
        none = self.table.layout.empty
        if isinstance(tuples, RemoteTuples):
            if sign is State.ADDED:
                if not self.table.size(State.OLD) and not self.table.has_change:
                    self.load(tuples.files)
                    return none
                self._move_along(tuples)
            if not self.is_held:
                return self._read_words(tuples)
            self._change_by_files(sign, tuples)
            return none
        words = self._with_room(tuples)
        if self.staged is None or not len(words):
            return words
        self._change_by_rows(sign, self._decode(words))
        return none

    def replace(self, tuples: TupleSet) -> bool:
        """Make NEW equal to some tuples; return whether it has been done."""
        table = self.table
        if isinstance(tuples, RemoteTuples):
            if not table.size(State.OLD):
                self.load(tuples.files)
                return True
            self._move_along(tuples)
            if self.is_held:
                self._change_by_files(None, tuples)
            else:
                table.replace(self._read_words(tuples))
            return True
        if self.source is None:
            return False
        words = self._with_room(tuples)
        before, rows = table.layout, self._decode(words)
        if self.staged is not None:
            self._change_by_rows(None, rows)
            return True
        added = words[~table.contains(words, State.OLD)]
        removed = self._encode_rows(self.source.subtract(rows))
        table.set_change(table.layout.convert(added, before), removed)
        return True

    def _read_words(self, tuples: RemoteTuples) -> Words:
        return self._encode_rows(self._source_of(tuples.files).read())

    def _with_room(self, tuples: Tuples) -> Words:
        """Return tuples packed as the layout says once there is room for all texts."""
        if isinstance(tuples, list):
            return self.table.pack_rows(tuples)
        before = self.table.family.current.layout
        assert before is not None
        return self.table.layout.convert(tuples, before)

    def change_by_handle(self, sign: State, rows: TableHandle) -> None:
        """Insert or delete tuples that are outside of this process; some are in partitions."""
        assert self.held is not None
        self._change_by(sign, staged_change.pieces_of(self.held, rows))

    def _change_by_files(self, sign: State | None, tuples: RemoteTuples) -> None:
        """Insert or delete tuples in partitions, or let NEW be these; some are in partitions."""
        assert self.held is not None
        given = staged_change.partitions_of_files(self.held, tuples.files)
        if given is None:
            source = self._source_of(tuples.files)
            given = staged_change.pieces_of(
                self.held, PartitionedHandle(source, source.no_rows, source.no_rows)
            )
        self._change_by(sign, given)

    def _change_by_rows(self, sign: State | None, rows: pa.Table) -> None:
        assert self.source is not None
        self._change_by(sign, staged_change.rows_by_partition(self.source, rows))

    def _change_by(self, sign: State | None, given: staged_change.Given) -> None:
        """Change NEW by tuples that tasks read."""
        held = self.held
        assert held is not None
        here = None if self.staged is not None else self.change_tables()
        staged = staged_change.stage_change(held, sign, given, self.staged, here)
        if self.loading is not None:  # all of it is added anyway
            self.load(self._source_of(staged.applied_to(held.files)).folded())
        elif is_distributed(sum(staged.counts)):
            self.stage(staged)
        else:
            self.collect_to_driver(staged)

    def stage(self, staged: staged_change.StagedChange) -> None:
        """Let a change in files be the one that is open."""
        table = self.table
        added, removed = staged.counts
        self._keys.clear()
        self.staged = staged
        table.resize(old=table.size(State.OLD), added=added, removed=removed)
        table.widen(self._ranges(staged.added))
        self.release()

    def collect_to_driver(self, staged: staged_change.StagedChange) -> None:
        """Let a change in files, of few tuples, be the one that is open, here."""
        self.set_rows(*(self._source_of(each).read() for each in (staged.added, staged.removed)))

    def set_rows(self, added: pa.Table, removed: pa.Table) -> None:
        """Set the open change: tuples not in OLD, and tuples of OLD."""
        added_words, before = self._encode_rows(added), self.table.layout
        removed_words = self._encode_rows(removed)
        self.table.set_change(self.table.layout.convert(added_words, before), removed_words)

    def drop_change(self) -> None:
        """Have no open change in files: the table gets one."""
        self.loading = None  # if tuples were loaded, those that stay are among the added ones
        if self.staged is not None:
            self.staged = None
            for each in self.table.arrangements:
                each.reset(each.layout.empty)
            self.release()

    def assign(self, tuples: TupleSet) -> bool:
        """Have no tuples, or those of files, as ADDED; return whether it has been done."""
        if isinstance(tuples, RemoteTuples):
            self.load(tuples.files)
            return True
        self.source = self.loading = self.staged = self.next_files = None
        return False

    def extend(self, tuples: TupleSet) -> None:
        """Commit, then add tuples that are not in NEW; ADDED is these and nothing else."""
        table = self.table
        if not isinstance(tuples, RemoteTuples):
            words, before = self._with_room(tuples), table.layout
            table.commit()  # which may widen the layout
            table.add(table.layout.convert(words, before))
            return
        table.commit()
        self._move_along(tuples)
        part = tuples.files.sets[0]
        if self.source is None or not len(tuples) or not part.is_change:
            table.add(self.change(State.ADDED, tuples))
            return
        if self.source.files.sets[0].partitioning != part.partitioning:
            self.attach_files(self.source.partitioned_as(part.partitioning))
        self.stage(staged_change.stage_partitions(self.source, part))

    def commit(self) -> None:
        """Make NEW the OLD; some tuples are held."""
        if self._is_working and (self.loading is not None or self.staged is not None):
            self.next_files = self.new_files()
        elif self.next_files is None:
            write_together([self])
        assert self.next_files is not None
        self.attach_files(self.next_files)

    def end_rollback(self) -> None:
        """Forget what was fetched and written."""
        self.next_files = None
        self.release()


def write_together(changed: Sequence[PartitionedContents]) -> None:
    """Write the files of open changes, so that `commit` cannot fail; folds are one job."""
    sources = [PartitionSource(each.new_files(), each.place.jobs) for each in changed]
    for each, files in zip(changed, fold_together(sources), strict=True):
        each.next_files = files


def working_relation(name: str, types: tuple[Type, ...]) -> Relation:
    """Return the relation of the tuples that a step makes."""
    columns = tuple(f"c{at}" for at in range(len(types)))
    return Relation(name, columns, types, False, is_declared=False)


def contents_of(table: Table) -> PartitionedContents | None:
    """Return what a table has in partitions, if it may have tuples there."""
    return table.remote if isinstance(table.remote, PartitionedContents) else None


def contents_in(table: Table, state: State) -> PartitionedContents | None:
    """Return what a table has in partitions, if the tuples of a state are there."""
    found = contents_of(table)
    return found if found is not None and found.is_remote(state) else None


def fetch_lookups(asked: Sequence[tuple[PartitionedContents, RowLookup, list[Codes]]]) -> None:
    """Fetch what will be looked up, by one job: rows with their codes."""
    for contents, lookup, codes in asked:
        if lookup.is_inserted:  # a later change of the layout would repack what is asked for
            contents.fit(lookup.columns, codes)
    needed = [
        probe
        for contents, lookup, codes in asked
        for probe in contents.unfetched_rows(lookup.columns, codes)
    ]
    if needed:
        needed[0].fetch_with(needed[1:])
