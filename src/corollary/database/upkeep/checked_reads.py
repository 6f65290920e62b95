"""Reads with checks: files whose bytes, rows and columns are as recorded, and their history.

Relations are replayed from snapshots and changes alone, without an index.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from corollary.console import Console
from corollary.core.arrow import schema_of
from corollary.core.program import NormalProgram, Relation
from corollary.data_class import dataclass
from corollary.database.upkeep.verify_report import VerifyReport
from corollary.engines.local.engine import LocalEngine
from corollary.errors import WarehouseError
from corollary.warehouse.catalog.catalog_rows import StoredChange, StoredIndex, StoredSnapshot
from corollary.warehouse.catalog.inventory import Inventory
from corollary.warehouse.catalog.program_layout import program_of_layout
from corollary.warehouse.files import durable_files, multi_file_table
from corollary.warehouse.warehouse import INDEX_PREFIX, RelationDelta, Warehouse

HistoryEvent = tuple[int, StoredChange | StoredSnapshot | None]
"""A commit, and what is stored of a relation at it; None for an index of that commit."""


@dataclass(frozen=True, slots=True)
class CheckedReader:
    """Reads files of a warehouse, and counts what it has read.

    All methods raise `WarehouseError` where something is not as recorded.
    """

    warehouse: Warehouse
    report: VerifyReport
    console: Console

    def _count(self, path: str, rows: int, size: int) -> None:
        self.console.progress(f"checking {path}").advance(rows, size)
        self.report.bytes += size

    def read_change(self, stored: StoredChange, shape: Relation | None) -> RelationDelta:
        """Return a change; without a shape, as for payload, its columns are not checked."""
        self.report.changes += 1
        if stored.inline is None and stored.path is not None:
            size = multi_file_table.total_bytes(self.warehouse.root, stored.path)
        else:
            size = len(stored.inline or b"")
        self._count(stored.path or "the catalog", stored.added + stored.removed, size)
        place = stored.path or f"the change of {stored.relation} in the catalog"
        try:
            delta = self.warehouse.read_change(stored)
        except (pa.ArrowException, KeyError) as error:
            raise WarehouseError.damaged(place) from error
        if (delta.added.num_rows, delta.removed.num_rows) != (stored.added, stored.removed):
            raise WarehouseError.damaged(place)
        if shape is not None:
            _check_columns(delta.added, shape, place)
        return delta

    def read_snapshot(self, stored: StoredSnapshot, shape: Relation) -> pa.Table:
        """Return a snapshot."""
        self.report.snapshots += 1
        size = multi_file_table.total_bytes(self.warehouse.root, stored.path)
        self._count(stored.path, stored.rows, size)
        try:
            table = self.warehouse.read_snapshot(stored)
        except pa.ArrowException as error:
            raise WarehouseError.damaged(stored.path) from error
        if table.num_rows != stored.rows:
            raise WarehouseError.damaged(stored.path)
        _check_columns(table, shape, stored.path)
        return table

    def read_index_file(self, stored: StoredIndex) -> pa.Buffer:
        """Return a file of an index."""
        self.report.index_files += 1
        data = durable_files.read(self.warehouse.root, stored.path, stored.checksum)
        self._count(stored.path, 0, data.size)
        return data

    def read_index(self, listed: Sequence[StoredIndex], program: NormalProgram) -> "CheckedIndex":
        """Return the undamaged relations of an index, and the errors; raises nothing."""
        found, errors = {}, []
        for each in listed:
            try:
                found[each.path.rpartition("/")[2].removeprefix(INDEX_PREFIX)] = (
                    self.read_index_file(each)
                )
            except WarehouseError as error:
                errors.append((each.path, error))
        engine = LocalEngine()
        engine.declare(program.relations)
        try:
            return CheckedIndex(engine, engine.restore(found), errors)
        except WarehouseError as error:
            return CheckedIndex(engine, set(), [*errors, (listed[0].path, error)])


@dataclass(frozen=True, slots=True)
class CheckedIndex:
    """The undamaged relations of an index, in an engine; and the files that are damaged."""

    engine: LocalEngine
    relations: set[str]
    errors: list[tuple[str, WarehouseError]]


def _check_columns(table: pa.Table, shape: Relation, place: str) -> None:
    if table.schema.types != schema_of(shape).types:
        raise WarehouseError.damaged(place)


class ProgramHistory:
    """The programs of all commits, and the columns of each relation at them."""

    def __init__(self, warehouse: Warehouse, holdings: Inventory) -> None:
        self._catalog = warehouse.catalog
        self._inventory = holdings
        self._known: dict[int, NormalProgram] = {}

    def program_at(self, commit: int) -> NormalProgram:
        """Return the relations, without rules, of the program in force at a commit.

        Snapshots from before the fold are there only if nothing has changed until the fold.
        """
        number = self._inventory.programs[max(commit, self._inventory.fold)]
        known = self._known.get(number)
        if known is None:
            known = self._known[number] = program_of_layout(self._catalog.program(number).layout)
        return known

    def shape_at(self, name: str, commit: int) -> Relation | None:
        """Return a relation as it was declared at a commit."""
        return self.program_at(commit).relations.get(name)


def indexes_of(warehouse: Warehouse, inventory: Inventory, name: str, commit: int) -> list[int]:
    """Return the commits of indexes that tell what a relation held at a commit, or before it.

    A later index does, too, if the relation has not changed until then.
    """
    changed = warehouse.catalog.changes(commit, inventory.latest, name)
    before = changed[0][0] if changed else inventory.latest + 1
    return [each for each in inventory.indexes if each < before]


def history_events(
    changes: list[tuple[int, StoredChange]], snapshots: list[StoredSnapshot], indexes: list[int]
) -> Iterator[HistoryEvent]:
    """Yield what is stored of a relation, in order: change, snapshot, index of each commit."""
    found: list[tuple[int, int, StoredChange | StoredSnapshot | None]] = [
        *((commit, 0, change) for commit, change in changes),
        *((each.commit, 1, each) for each in snapshots),
        *((commit, 2, None) for commit in indexes),
    ]
    for commit, _, each in sorted(found, key=lambda one: one[:2]):
        yield commit, each


@dataclass(slots=True)
class ReplayedRelation:
    """A relation that is replayed through history.

    Attributes:
        shape: its columns now; None as long as nothing is stored of it.
        is_known: whether its tuples are known; not after a damaged change, nor before the first
            snapshot if history was dropped.
        path: the file that holds just its tuples, if they were read from one.
    """

    shape: Relation | None = None
    is_known: bool = True
    path: str | None = None
    _engine: LocalEngine | None = None

    def reset(self, shape: Relation, table: pa.Table | None = None) -> None:
        """Replace all tuples."""
        self.shape, self.is_known, self.path = shape, True, None
        self._engine = LocalEngine()
        self._engine.declare({shape.name: shape})
        if table is not None:
            self._engine.insert(shape.name, table)

    def apply(self, shape: Relation, delta: RelationDelta) -> bool:
        """Apply a change; return whether it added new tuples and removed existing ones only."""
        if self._engine is None or delta.is_full:
            self.reset(shape)
        engine, name = self._engine, shape.name
        assert engine is not None
        self.path = None
        size = engine.size(name)
        engine.delete(name, delta.removed)
        between = engine.size(name)
        engine.insert(name, delta.added)
        engine.commit()
        removed, added = size - between, engine.size(name) - between
        return bool(removed == delta.removed.num_rows and added == delta.added.num_rows)

    def table(self) -> pa.Table:
        """Return the tuples."""
        assert self._engine is not None
        assert self.shape is not None
        return self._engine.read(self.shape.name)
