"""One partition of a relation: written as index files, opened, probed and read.

A process keeps the partitions that it has opened; one that was opened at an earlier version only
applies the files of changes since. The partition of a set is an index of the relation with its
columns in the first order of the set, so that this is the primary one and there is no other.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow as pa

from corollary.core.arrow_buffers import bool_array, bool_values, index_array
from corollary.core.engine import BulkMode, ValueRange
from corollary.core.program import Relation
from corollary.core.states import State
from corollary.core.types import Kind, Type
from corollary.engines.local.engine import LocalEngine
from corollary.engines.local.evaluation.matches import find_matches
from corollary.engines.local.storage.arrangement import Order
from corollary.engines.local.storage.code_range import INTERNED_CODE, CodeRange, Codes, range_of
from corollary.engines.local.storage.layout import Mask
from corollary.engines.local.storage.sorting import first_mask
from corollary.engines.local.storage.table import Table
from corollary.engines.local.table_handle import decode_words
from corollary.engines.local.values.codes import Dictionary
from corollary.engines.spark.partitioned.partition_files import (
    ColumnRanges,
    PartitionChange,
    PartitionedFiles,
    PartitionSet,
    StoredPartition,
)

OPEN_MAX_BYTES = 1 << 30
"""The partitions that a process keeps open take no more memory, unless it is a single one."""

OPEN_MAX_PARTITIONS = 256
"""A process keeps no more partitions open: each one takes a few file mappings."""

ASKED_MAX = 1 << 20
"""A partition is opened anew after so many keys: those that it has not are in its dictionary."""

STORED_NAME = "tuples"
"""The relation of every index: files stay valid when a relation gets another name."""

SIGN_COLUMN = "+"
"""The last column of a file of changes: whether the tuple was added."""

INTERNED_KINDS = (Kind.SYMBOL, Kind.FLOAT)
"""The types whose values have no codes of their own."""


class PartitionEngine(LocalEngine):
    """The tuples of one partition, in the orders of its set.

    Attributes:
        asked: how many keys and tuples were looked up; the dictionary keeps their texts.
    """

    def __init__(self, relation: Relation, orders: Sequence[Order]) -> None:
        super().__init__(BulkMode.NEVER)
        self._relation = relation
        self.asked = 0
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
        self.delete(STORED_NAME, removed.select(self._columns))
        self.insert(STORED_NAME, added.select(self._columns))
        self.commit()

    def table(self) -> pa.Table:
        """Return all tuples."""
        return self.read(STORED_NAME).select(self._places)

    def matches(self, order: Order, keys: pa.Table) -> pa.Table:
        """Return the tuples whose first columns in an order are one of some distinct keys."""
        self.asked += keys.num_rows
        table = self._tables[STORED_NAME]
        arrangement = table.arrangement(self._orders[order])
        layout = arrangement.layout
        codes = [
            self._dictionary.encode_arrow(keys.column(at), self._relation.types[column])
            for at, column in enumerate(order[: keys.num_columns])
        ]
        codes, count = _fitting(codes, layout.overflow_mask(codes), keys.num_rows)
        parts = [
            find_matches(layer, layout, codes, count).gather()[1]
            for layer in (arrangement.layers(State.OLD) if count else ())
        ]
        words = np.concatenate(parts) if parts else layout.empty
        types = tuple(self._relation.types[column] for column in order)
        names = [self._relation.columns[column] for column in order]
        found = decode_words(words, layout, types, names, self._dictionary)
        return found.select([order.index(at) for at in range(len(order))])

    def contains(self, rows: pa.Table) -> Mask:
        """Return for each tuple whether it is there."""
        self.asked += rows.num_rows
        columns, count = self._encode(STORED_NAME, rows.select(self._columns))
        return self._tables[STORED_NAME].contains_codes(columns, count, State.OLD)

    def duplicate_rows(self, columns: Sequence[int]) -> pa.Table:
        """Return the tuples that agree with another one in some columns."""
        places = [self._places[at] for at in columns]
        return self.duplicates(STORED_NAME, places).select(self._places)

    def rows_within(self, boxes: Sequence[Mapping[int, ValueRange]]) -> pa.Table:
        """Return the tuples in one of several boxes, each once, perhaps with others."""
        placed = [{self._places[at]: each for at, each in box.items()} for box in boxes]
        return self.within(STORED_NAME, placed).select(self._places)

    def describe(self, base: str | None) -> StoredPartition:
        """Return the partition as one that a directory holds."""
        table = self._tables[STORED_NAME]
        distinct = self.distinct(STORED_NAME) if self.count else ()
        ranges = own_ranges(table.types, table.layout.columns)
        return StoredPartition(
            base,
            self.count,
            distinct=tuple(distinct[at] for at in self._places) if distinct else (),
            ranges=tuple(ranges[at] for at in self._places),
        )

    def write(self, root: str, directory: str) -> StoredPartition:
        """Write the partition to a new directory below a root."""
        if not self.count:
            return StoredPartition()
        path = Path(root) / directory
        path.mkdir(parents=True)
        for name, data in self.save([STORED_NAME]):
            (path / name).write_bytes(data)
        return self.describe(directory)

    def load(self, path: Path) -> None:
        """Open the files of a directory."""
        files = {each.name: pa.memory_map(str(each)).read_buffer() for each in path.iterdir()}
        assert self.restore(files), f"no index in {path}"

    def save_orders(self) -> None:
        """Sort the tuples in all orders."""
        self.arrange(STORED_NAME, self._orders.values())


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


def _fitting(codes: list[Codes], overflow: Mask | None, count: int) -> tuple[list[Codes], int]:
    """Return the keys that a layout can hold; no tuple has any other."""
    if overflow is None:
        return codes, count
    rows = (~overflow).nonzero()[0]
    return [each[rows] for each in codes], len(rows)


# --- writing -------------------------------------------------------------------------------------


def new_name(relation: str, job: str = "driver") -> str:
    """Return a unique name for a file or directory of a relation."""
    plain = "".join(each if each.isalnum() else "-" for each in relation)
    return f"{plain}-{job}-{uuid4().hex}"


def write_partition(
    root: str, directory: str, relation: Relation, orders: Sequence[Order], table: pa.Table
) -> StoredPartition:
    """Write tuples, all of one partition, as the base of it to a new directory below a root.

    Orders begin with the same column, the lead of the set. Equal tuples are written once.
    """
    opened = PartitionEngine(relation, orders)
    opened.insert(STORED_NAME, table.select(orders[0]))
    opened.commit()
    opened.save_orders()
    return opened.write(root, directory)


def write_change(root: str, name: str, added: pa.Table, removed: pa.Table) -> PartitionChange:
    """Write tuples that a partition gained and lost to a new file below a root."""
    signs = np.arange(added.num_rows + removed.num_rows) < added.num_rows
    both = pa.concat_tables([added, removed.rename_columns(added.column_names)])
    both = both.append_column(SIGN_COLUMN, bool_array(signs))
    with (
        pa.OSFile(str(Path(root) / name), "wb") as file,
        pa.ipc.new_file(file, both.schema) as writer,
    ):
        writer.write_table(both)
    return PartitionChange(name, added.num_rows, removed.num_rows)


def read_change(root: str, change: PartitionChange) -> tuple[pa.Table, pa.Table]:
    """Return the tuples that a partition gained and lost."""
    with pa.memory_map(str(Path(root) / change.file)) as file:
        both = pa.ipc.open_file(file).read_all()
    last = both.num_columns - 1
    is_added = bool_values(both.column(last).combine_chunks())
    assert np.count_nonzero(is_added) == change.added
    rows = both.select(range(last))
    return rows.slice(0, change.added), rows.slice(change.added)


def merge_changes(
    root: str, name: str, relation: Relation, changes: Sequence[PartitionChange]
) -> PartitionChange:
    """Write one file with the effect of several changes, in their order."""
    pairs = [read_change(root, each) for each in changes]
    rows = pa.concat_tables([table for pair in pairs for table in pair])
    sizes = [size for each in changes for size in (each.added, each.removed)]
    is_added = np.repeat(np.arange(len(sizes)) % 2 == 0, sizes)
    dictionary, table = Dictionary(), Table(relation.types)
    codes = [
        dictionary.encode_arrow(rows.column(at), type_) for at, type_ in enumerate(relation.types)
    ]
    words = table.pack(codes, rows.num_rows)
    order = np.argsort(words, kind="stable")
    starts = first_mask(words[order]).nonzero()[0]
    firsts, lasts = order[starts], order[np.append(starts[1:], len(order)) - 1]
    # A tuple that came and went, or went and came, is as it was before.
    kept = lasts[is_added[firsts] == is_added[lasts]]
    gained, lost = kept[is_added[kept]], kept[~is_added[kept]]
    added, removed = (rows.take(index_array(each)) for each in (gained, lost))
    written = write_change(root, name, added, removed)
    return replace(written, merged=tuple(each.file for each in changes))


# --- opening -------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Opened:
    engine: PartitionEngine
    stored: StoredPartition
    bytes: int = 0


_open: OrderedDict[tuple[str, str, tuple[Order, ...], int], _Opened] = OrderedDict()
"""By root, relation, orders and number, the least recently used first."""


def open_partition(
    root: str, relation: Relation, orders: tuple[Order, ...], number: int, stored: StoredPartition
) -> PartitionEngine:
    """Return a partition at a version, and keep it open."""
    key = root, repr(relation), orders, number
    found = _open.get(key)
    applied = None
    if found is not None and found.engine.asked <= ASKED_MAX:
        applied = _applied_changes(stored, found.stored)
    if found is None or applied is None:
        found = _open[key] = _Opened(_open_base(root, relation, orders, stored), stored)
        applied = 0
    _open.move_to_end(key)
    for change in stored.changes[applied:]:
        found.engine.change(*read_change(root, change))
    found.stored, found.bytes = stored, found.engine.bytes
    _evict()
    return found.engine


def _open_base(
    root: str, relation: Relation, orders: tuple[Order, ...], stored: StoredPartition
) -> PartitionEngine:
    opened = PartitionEngine(relation, orders)
    if stored.base is not None:
        opened.load(Path(root) / stored.base)
    return opened


def _applied_changes(stored: StoredPartition, found: StoredPartition) -> int | None:
    """Return how many changes of a version were applied to another; None if it is no earlier one.

    Files that were merged since count as applied if all of them were.
    """
    if stored.base != found.base:
        return None
    files = [each.file for each in found.changes]
    at = count = 0
    for change in stored.changes:
        if files[at : at + 1] == [change.file]:
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


def read_partition(files: PartitionedFiles, part: PartitionSet, number: int) -> pa.Table:
    """Return all tuples of a partition; it is not kept open."""
    return read_stored(files.root, files.relation, part.orders, part.partitions[number])


def read_stored(
    root: str, relation: Relation, orders: Sequence[Order], stored: StoredPartition
) -> pa.Table:
    """Return all tuples of a partition of a set with some orders; it is not kept open."""
    opened = _open_base(root, relation, tuple(orders[:1]), stored)
    for change in stored.changes:
        opened.change(*read_change(root, change))
    return opened.table()


def fold_partition(
    root: str,
    directory: str,
    relation: Relation,
    orders: tuple[Order, ...],
    stored: StoredPartition,
) -> StoredPartition:
    """Write a partition with its changes as a new base."""
    opened = _open_base(root, relation, orders, stored)
    for change in stored.changes:
        opened.change(*read_change(root, change))
    opened.save_orders()
    return opened.write(root, directory)
