"""The report of a verification; reads with checks: bytes, rows and columns are as recorded.

Relations are replayed from snapshots and changes alone, without an index.
"""

from collections.abc import Iterator, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Any

import pyarrow as pa

from corollary.console import Console
from corollary.core.arrow import schema_of
from corollary.core.program import NormalProgram, Relation
from corollary.data_class import dataclass
from corollary.engines.local.engine import LocalEngine
from corollary.errors import Diagnostic, WarehouseError, render
from corollary.warehouse.catalog.catalog_rows import StoredChange, StoredIndex, StoredSnapshot
from corollary.warehouse.catalog.inventory import Inventory
from corollary.warehouse.catalog.program_layout import program_of_layout
from corollary.warehouse.files import durable_files, multi_file_table
from corollary.warehouse.warehouse import INDEX_PREFIX, RelationDelta, Warehouse


class FindingKind(StrEnum):
    """What a finding is about."""

    CATALOG = "catalog"
    CHANGE = "change"
    SNAPSHOT = "snapshot"
    INDEX = "index"
    STATE = "state"
    PAYLOAD = "payload"
    TABLE = "table"


RESTORE_CURE = "restore the warehouse from a backup: there is no other copy of this data"
REPAIR_CURE = "run `corollary verify --repair`: it can be rebuilt from what is undamaged"


@dataclass(frozen=True, slots=True)
class VerifyFinding:
    """A defect of a warehouse.

    Attributes:
        code: as in `docs/diagnostics.md`.
        file: where it is: a path in the warehouse, or the catalog.
        relation: whose tuples are concerned, if any.
        commit: the commit that is concerned, if any.
        is_repairable: whether it is derived data, which can be rebuilt.
        sound_from: a later commit from which on the defect does not matter; 0 if there is none.
    """

    kind: FindingKind
    code: str
    message: str
    file: str
    relation: str = ""
    commit: int = 0
    is_repairable: bool = False
    sound_from: int = 0

    @property
    def cure(self) -> str:
        """What to do about it."""
        if self.sound_from and not self.is_repairable:
            return (
                f"{RESTORE_CURE}; or drop commits {self.commit} to {self.sound_from - 1} and all "
                f"before them with `corollary gc --keep-commits`: from {self.sound_from} on "
                "everything is there"
            )
        return REPAIR_CURE if self.is_repairable else RESTORE_CURE

    @property
    def identity(self) -> tuple[str, ...]:
        """What tells findings apart, in two verifications of one warehouse."""
        return str(self.kind), self.file, self.relation, str(self.commit)

    def __str__(self) -> str:
        return render(Diagnostic(self.code, self.message, None, self.cure))

    def as_json(self) -> dict[str, Any]:
        """Return the finding as `verify` prints it."""
        return {
            "kind": str(self.kind),
            "code": self.code,
            "message": self.message,
            "file": self.file,
            "relation": self.relation or None,
            "commit": self.commit or None,
            "repairable": self.is_repairable,
            "cure": self.cure,
        }


@dataclass(slots=True)
class VerifyReport:
    """What a verification found, and how much it checked.

    Attributes:
        has_recomputed: whether derived relations were compared with their recomputation, which
            is not possible if a base relation is lost.
        repaired: earlier findings that no longer apply.
    """

    commits: int = 0
    changes: int = 0
    snapshots: int = 0
    index_files: int = 0
    relations: int = 0
    tuples: int = 0
    tables: int = 0
    bytes: int = 0
    seconds: float = 0.0
    has_recomputed: bool = False
    findings: list[VerifyFinding] = field(default_factory=list)
    repaired: list[VerifyFinding] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the report as `verify` prints it."""
        counted = ("commits", "changes", "snapshots", "index_files", "relations", "tuples")
        counts = {name: getattr(self, name) for name in (*counted, "tables", "bytes")}
        return {
            "sound": not self.findings,
            "checked": {**counts, "recomputed": self.has_recomputed},
            "findings": [each.as_json() for each in self.findings],
            "repaired": [each.as_json() for each in self.repaired],
            "seconds": round(self.seconds, 6),
        }


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
