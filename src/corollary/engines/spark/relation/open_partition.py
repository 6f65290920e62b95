"""One partition of a relation: written as index files, opened, probed and read.

A process keeps the partitions that it has opened; one that was opened at an earlier version only
applies the files of changes since. What is probed has its changes beside the base, so that nothing
is looked up in the base for them; what is read has them in it. The partition of a set is an index
of the relation with its columns in the first order of the set, so that this is the primary one and
there is no other.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corollary.core.arrow_buffers import bool_array
from corollary.core.engine import BulkMode, ValueRange
from corollary.core.program import Relation
from corollary.core.states import CHANGES, State
from corollary.core.types import Kind, Type
from corollary.data_class import dataclass
from corollary.engines.local.engine import LocalEngine
from corollary.engines.local.evaluation.matches import find_matches
from corollary.engines.local.storage.arrangement import Order
from corollary.engines.local.storage.code_range import INTERNED_CODE, CodeRange, range_of
from corollary.engines.local.storage.layout import Mask
from corollary.engines.local.storage.runs import sort_distinct
from corollary.engines.local.storage.table import Table
from corollary.engines.local.table_handle import decode_words
from corollary.engines.local.values.codes import Dictionary
from corollary.engines.spark.relation.change_files import read_change
from corollary.engines.spark.relation.files import (
    ColumnRanges,
    StoredPartition,
)
from corollary.engines.spark.relation.shared_files import local_directory, share, with_file

OPEN_MAX_BYTES = 1 << 30
"""The partitions that a process keeps open take no more memory, unless it is a single one."""

OPEN_MAX_PARTITIONS = 256
"""A process keeps no more partitions open: each one takes a few file mappings."""

LEAD_MAX_TUPLES = 2
"""If no more tuples agree in the first column on average, it is enough to look these up."""

ASKED_MAX = 1 << 20
"""A partition is opened anew after this many keys: its dictionary keeps those that it lacks."""

STORED_NAME = "tuples"
"""The relation of every index: files stay valid when a relation gets another name."""

INTERNED_KINDS = (Kind.SYMBOL, Kind.FLOAT)
"""The types whose values have no codes of their own."""


class PartitionEngine(LocalEngine):
    """The tuples of one partition, in the orders of its set.

    Attributes:
        asked: how many keys and tuples were looked up; the dictionary keeps their texts.
        lead_values: how many distinct values the lead has in the base, 0 if that is not known.
    """

    def __init__(self, relation: Relation, orders: Sequence[Order]) -> None:
        super().__init__(BulkMode.NEVER)
        self._relation = relation
        self.asked = self.lead_values = 0
        self._columns = orders[0]
        """The column of the relation at each place."""
        self._places = tuple(self._columns.index(at) for at in range(len(self._columns)))
        self._orders = {order: tuple(self._places[at] for at in order) for order in orders}
        stored = replace(
            relation,
            name=STORED_NAME,
            columns=tuple(relation.columns[at] for at in self._columns),
            types=tuple(relation.types[at] for at in self._columns),
        )
        self.declare({STORED_NAME: stored})

    @property
    def count(self) -> int:
        """How many tuples there are."""
        return self.size(STORED_NAME)

    @property
    def bytes(self) -> int:
        """About how much memory it takes."""
        return self._tables[STORED_NAME].nbytes + self._dictionary.nbytes

    def change(self, added: pa.Table, removed: pa.Table) -> None:
        """Add and remove tuples."""
        self.open_change(added, removed)
        self.commit()

    def open_change(self, added: pa.Table, removed: pa.Table) -> None:
        """Add and remove tuples, as a change that is open."""
        if removed.num_rows:
            self.remove_rows(removed)
        if added.num_rows:
            self.add_rows(added)

    def add_rows(self, rows: pa.Table) -> None:
        """Insert tuples, as a change that is open."""
        self.insert(STORED_NAME, rows.select(self._columns))

    def remove_rows(self, rows: pa.Table) -> None:
        """Delete tuples, as a change that is open."""
        self.delete(STORED_NAME, rows.select(self._columns))

    def replace_contents(self, tables: Sequence[pa.Table]) -> None:
        """Have some tuples and no others, as a change that is open."""
        target = self._tables[STORED_NAME]
        coded = [self._encode(STORED_NAME, each.select(self._columns)) for each in tables]
        for columns, count in coded:
            target.pack(columns, count)  # makes the layout wide enough for all of them
        words = [target.pack(columns, count) for columns, count in coded]
        target.replace(sort_distinct(np.concatenate([target.layout.empty, *words])))

    def open_rows(self) -> tuple[pa.Table, pa.Table]:
        """Return the tuples of the change that is open: those added, those removed."""
        added, removed = (self.read(STORED_NAME, each).select(self._places) for each in CHANGES)
        return added, removed

    def table(self) -> pa.Table:
        """Return all tuples."""
        return self.read(STORED_NAME).select(self._places)

    def columns(self, columns: Sequence[int]) -> pa.Table:
        """Return some columns of all tuples."""
        table, relation = self._tables[STORED_NAME], self._relation
        words, layout = table.tuples(State.OLD), table.layout
        found = [
            self._dictionary.decode_arrow(
                layout.unpack_column(words, self._places[at]), relation.types[at]
            )
            for at in columns
        ]
        return pa.table(found, names=[relation.columns[at] for at in columns])

    def uncoded_table(self) -> Table | None:
        """Return the tuples, if their words mean the same to every dictionary; None otherwise."""
        table = self._tables[STORED_NAME]
        is_uncoded = None not in own_ranges(table.types, table.layout.columns)
        return table if is_uncoded else None

    def matches(self, order: Order, keys: pa.Table) -> pa.Table:
        """Return the tuples whose first columns in an order are one of some distinct keys."""
        if self._is_told_by_lead(order, keys.num_columns):
            return self._filter_by_lead(order, keys)
        self.asked += keys.num_rows
        table = self._tables[STORED_NAME]
        arrangement = table.arrangement(self._orders[order])
        layout = arrangement.layout
        codes = [
            self._dictionary.encode_arrow(keys.column(at), self._relation.types[column])
            for at, column in enumerate(order[: keys.num_columns])
        ]
        codes = layout.fitting(codes)
        count = len(codes[0])
        parts = [
            find_matches(layer, layout, codes, count).gather()[1]
            for layer in (arrangement.layers(State.OLD) if count else ())
        ]
        words = np.concatenate(parts) if parts else layout.empty
        types = tuple(self._relation.types[column] for column in order)
        names = [self._relation.columns[column] for column in order]
        found = decode_words(words, layout, types, names, self._dictionary)
        return found.select([order.index(at) for at in range(len(order))])

    def _is_told_by_lead(self, order: Order, length: int) -> bool:
        """Whether the first of some columns nearly says the tuple, and no file is sorted by all."""
        table = self._tables[STORED_NAME]
        if length == 1 or set(self._columns[:length]) == set(order[:length]):
            return False
        if self._orders[order] in table.old_layers():
            return False
        return self.count <= LEAD_MAX_TUPLES * self.lead_values

    def _filter_by_lead(self, order: Order, keys: pa.Table) -> pa.Table:
        """Return the tuples that `matches` returns, without sorting the partition for it."""
        leads = pc.unique(keys.column(0))
        found = self.matches(self._columns, pa.table([leads], [keys.column_names[0]]))
        columns = order[: keys.num_columns]
        types = tuple(self._relation.types[at] for at in columns)
        names = tuple(self._relation.columns[at] for at in columns)
        asked = replace(self._relation, columns=names, types=types)
        keys = keys.rename_columns(list(names))
        return found.filter(bool_array(find_rows(found.select(list(columns)), keys, asked)))

    def contains(self, rows: pa.Table) -> Mask:
        """Return for each tuple whether it is there."""
        self.asked += rows.num_rows
        columns, count = self._encode(STORED_NAME, rows.select(self._columns))
        return self._tables[STORED_NAME].contains_codes(columns, count, State.OLD)

    def duplicate_rows(self, columns: Sequence[int]) -> pa.Table:
        """Return the tuples that agree with another one in some columns."""
        places = [self._places[at] for at in columns]
        return self.duplicates(STORED_NAME, places).select(self._places)

    def is_unique(self, columns: Sequence[int]) -> bool:
        """Whether no two tuples agree in some columns, the lead among them."""
        length = len(columns)
        if sorted(self._columns[:length]) == sorted(columns):
            return self._tables[STORED_NAME].is_key(length, State.OLD)
        return not self.duplicate_rows(columns).num_rows

    def rows_within(self, boxes: Sequence[Mapping[int, ValueRange]]) -> pa.Table:
        """Return the tuples in one of several boxes, each once, perhaps with others."""
        placed = [{self._places[at]: each for at, each in box.items()} for box in boxes]
        return self.within(STORED_NAME, placed).select(self._places)

    def describe(self, base: str | None) -> StoredPartition:
        """Return the partition as one that a directory holds."""
        table = self._tables[STORED_NAME]
        distinct = self._count_distinct() if self.count else ()
        ranges = own_ranges(table.types, table.layout.columns)
        return StoredPartition(
            base,
            self.count,
            distinct=tuple(distinct[at] for at in self._places) if distinct else (),
            ranges=tuple(ranges[at] for at in self._places),
        )

    def _count_distinct(self) -> tuple[int, ...]:
        """Return how many distinct values the columns have: exactly for the lead, else about."""
        table = self._tables[STORED_NAME]
        leads = table.layout.unpack_column(table.tuples(State.OLD), 0)
        _, *others = self.distinct(STORED_NAME)
        return (1 + int(np.count_nonzero(leads[1:] != leads[:-1])), *others)

    def write(self, root: str) -> StoredPartition:
        """Write the partition, in all orders, to a new directory below a root."""
        if not self.count:
            return StoredPartition()
        for order in self._orders.values():
            self._tables[STORED_NAME].arrangement(order)
        directory = new_name(self._relation.name, "base")
        path = local_directory(root) / directory
        path.mkdir(parents=True)
        for name, data in self.save([STORED_NAME]):
            (path / name).write_bytes(data)
        share(root, directory)
        return self.describe(directory)

    def load(self, path: Path) -> None:
        """Open the files of a directory.

        Raises:
            FileNotFoundError: it is not there.
        """
        files = {each.name: pa.memory_map(str(each)).read_buffer() for each in path.iterdir()}
        if not self.restore(files):
            raise FileNotFoundError(f"no index in {path}")


class OpenPartition:
    """A partition that is probed: its base, and what changes since have added and removed.

        tuples = (base − removed) ∪ added      removed ⊆ base, added ∩ base = ∅

    Changes have dictionaries of their own: to find their texts among those of the base would read
    much of it.
    """

    def __init__(
        self, base: PartitionEngine, relation: Relation, orders: tuple[Order, ...]
    ) -> None:
        self._base = base
        self._added = PartitionEngine(relation, orders)
        self._removed = PartitionEngine(relation, orders[:1])

    @property
    def asked(self) -> int:
        """How many keys and tuples were looked up; the dictionaries keep their texts."""
        return self._base.asked + self._added.asked + self._removed.asked

    @property
    def bytes(self) -> int:
        """About how much memory it takes."""
        return self._base.bytes + self._added.bytes + self._removed.bytes

    def change(self, added: pa.Table, removed: pa.Table) -> None:
        """Add tuples that are not there, and remove tuples that are."""
        sides = (removed, self._removed, self._added), (added, self._added, self._removed)
        for rows, gaining, losing in sides:
            none = rows.slice(0, 0)
            if losing.count:  # what it has comes back, or goes again
                is_undone = losing.contains(rows)
                losing.change(none, rows.filter(bool_array(is_undone)))
                rows = rows.filter(bool_array(~is_undone))
            if rows.num_rows:
                gaining.change(rows, none)

    def matches(self, order: Order, keys: pa.Table) -> pa.Table:
        """Return the tuples whose first columns in an order are one of some distinct keys."""
        found = self._base.matches(order, keys)
        if self._removed.count and found.num_rows:
            found = found.filter(bool_array(~self._removed.contains(found)))
        if self._added.count:
            found = pa.concat_tables([found, self._added.matches(order, keys)])
        return found

    def contains(self, rows: pa.Table) -> Mask:
        """Return for each tuple whether it is there."""
        found = self._base.contains(rows)
        if self._removed.count:
            found &= ~self._removed.contains(rows)
        if self._added.count:
            found |= self._added.contains(rows)
        return found


def own_ranges(types: Sequence[Type], ranges: Sequence[CodeRange]) -> ColumnRanges:
    """Return the ranges of codes, None for columns of which one is interned."""
    return tuple(
        None if type_.kind in INTERNED_KINDS or each.last >= INTERNED_CODE else each
        for type_, each in zip(types, ranges, strict=True)
    )


def ranges_of(table: pa.Table, relation: Relation) -> ColumnRanges:
    """Return the ranges of the codes of some tuples."""
    dictionary = Dictionary()
    codes = [
        CodeRange()
        if type_.kind in INTERNED_KINDS
        else range_of(dictionary.encode_arrow(table.column(at), type_))
        for at, type_ in enumerate(relation.types)
    ]
    return own_ranges(relation.types, codes)


# --- writing -------------------------------------------------------------------------------------


def new_name(relation: str, job: str = "driver") -> str:
    """Return a unique name for a file or directory of a relation."""
    plain = "".join(each if each.isalnum() else "-" for each in relation)
    return f"{plain}-{job}-{uuid4().hex}"


def write_partition(
    root: str, relation: Relation, orders: Sequence[Order], table: pa.Table
) -> StoredPartition:
    """Write tuples, all of one partition, as the base of it to a new directory below a root.

    Orders begin with the same column, the lead of the set. Equal tuples are written once.
    """
    opened = PartitionEngine(relation, orders)
    opened.insert(STORED_NAME, table.select(orders[0]))
    opened.commit()
    return opened.write(root)


# --- opening -------------------------------------------------------------------------------------


Engine = TypeVar("Engine", bound=LocalEngine)


@dataclass(slots=True)
class _Opened:
    """What is open.

    Attributes:
        stored: the version that a partition is at.
        mapped: the size of its files, which are mapped: their memory is the kernel's to take back.
        bytes: what it takes beside them.
    """

    engine: Any
    stored: StoredPartition
    mapped: int
    bytes: int = 0


_open: OrderedDict[Hashable, _Opened] = OrderedDict()
"""Partitions by root, relation, orders and number, and others; the least recently used first."""


def open_partition(
    root: str, relation: Relation, orders: tuple[Order, ...], number: int, stored: StoredPartition
) -> OpenPartition:
    """Return a partition at a version, and keep it open."""
    key = root, repr(relation), orders, number
    found = _open.get(key)
    applied = None
    if found is not None and found.engine.asked <= ASKED_MAX:
        applied = applied_changes(stored, found.stored)
    if found is None or applied is None:
        base = _open_base(root, relation, orders, stored)
        found = _open[key] = _Opened(OpenPartition(base, relation, orders), stored, base.bytes)
        applied = 0
    _open.move_to_end(key)
    opened: OpenPartition = found.engine
    for change in stored.changes[applied:]:
        opened.change(*read_change(root, change))
    found.stored, found.bytes = stored, opened.bytes - found.mapped
    _evict()
    return opened


@contextmanager
def kept_open(
    key: Hashable, make: Callable[[], Engine], size: Callable[[Engine], int]
) -> Iterator[Engine]:
    """Yield what is open by a key, or is made and then kept open; its size is taken afterwards."""
    found = _open.get(key) or _Opened(make(), StoredPartition(), 0)
    _open[key] = found
    _open.move_to_end(key)
    try:
        yield found.engine
    finally:
        found.bytes = size(found.engine)
        _evict()


def _open_base(
    root: str, relation: Relation, orders: tuple[Order, ...], stored: StoredPartition
) -> PartitionEngine:
    opened = PartitionEngine(relation, orders)
    if stored.base is not None:
        with_file(root, stored.base, opened.load)
    if stored.distinct:
        opened.lead_values = stored.distinct[orders[0][0]]
    return opened


def applied_changes(stored: StoredPartition, found: StoredPartition) -> int | None:
    """Return how many changes of a version were applied to another; None if it is no earlier one.

    Files that were merged since count as applied if all of them were. Two changes may be the two
    sides of one file.
    """
    if stored.base != found.base:
        return None
    files = [each.file for each in found.changes]
    at = count = 0
    for change in stored.changes:
        if at < len(files) and replace(found.changes[at], merged=change.merged) == change:
            at += 1
        elif change.merged and tuple(files[at : at + len(change.merged)]) == change.merged:
            at += len(change.merged)
        else:
            break
        count += 1
    return count if at == len(files) else None


def _evict() -> None:
    """Close the least recently used partitions while all together take too much memory."""
    total = sum([each.bytes for each in _open.values()])
    while len(_open) > 1 and (total > OPEN_MAX_BYTES or len(_open) > OPEN_MAX_PARTITIONS):
        _, evicted = _open.popitem(last=False)
        total -= evicted.bytes


def load_partition(
    root: str, relation: Relation, orders: tuple[Order, ...], stored: StoredPartition
) -> PartitionEngine:
    """Return a partition at a version, in some orders of its set; it is not kept open."""
    opened = _open_base(root, relation, orders, stored)
    for change in stored.changes:
        opened.change(*read_change(root, change))
    return opened


def read_partition(
    root: str,
    relation: Relation,
    orders: tuple[Order, ...],
    stored: StoredPartition,
    columns: Sequence[int] | None = None,
) -> Iterator[pa.Table]:
    """Yield the tuples of a partition, or some columns of them; it is not kept open."""
    columns = range(len(relation.types)) if columns is None else columns
    if stored.base is not None or any(each.removed for each in stored.changes):
        yield load_partition(root, relation, orders[:1], stored).columns(columns)
        return
    for change in stored.changes:
        yield read_change(root, change)[0].select(list(columns))


def find_rows(rows: pa.Table, others: pa.Table, relation: Relation) -> Mask:
    """Return for each tuple whether it is among others."""
    known = PartitionEngine(relation, [tuple(range(len(relation.types)))])
    known.change(others, others.slice(0, 0))
    return known.contains(rows)
