"""Reads what a catalog speaks of, and believes nothing: bytes, rows and columns are as noted."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from corollary.console import Console
from corollary.core.arrow import schema_of
from corollary.core.program import NormalProgram, Relation
from corollary.database.upkeep.findings import Report
from corollary.engines.local.engine import LocalEngine
from corollary.errors import WarehouseError
from corollary.warehouse import files, parts
from corollary.warehouse.entries import StoredChange, StoredIndex, StoredSnapshot
from corollary.warehouse.warehouse import INDEX, Delta, Warehouse

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads files of a warehouse, and counts what it has read.

    All methods raise `WarehouseError` where something is not as noted.
    """

    warehouse: Warehouse
    report: Report
    console: Console

    def change(self, stored: StoredChange, shape: Relation | None) -> Delta:
        """Return a change; None as its shape is that of payload, which is taken as it is."""
        self.report.changes += 1
        if stored.inline is None and stored.path is not None:
            self.console.progress(f"checking {stored.path}")
            self.report.bytes += parts.size_of(self.warehouse.root, stored.path)
        else:
            self.report.bytes += len(stored.inline or b"")
        place = stored.path or f"the change of {stored.relation} in the catalog"
        try:
            delta = self.warehouse.change(stored)
        except (pa.ArrowException, KeyError) as error:
            raise WarehouseError.is_damaged(place) from error
        noted = (stored.added, stored.removed)
        if (delta.added.num_rows, delta.removed.num_rows) != noted:
            raise WarehouseError.is_damaged(place)
        if shape is not None:
            _demand_columns(delta.added, shape, place)
        return delta

    def snapshot(self, stored: StoredSnapshot, shape: Relation) -> pa.Table:
        """Return a snapshot."""
        self.report.snapshots += 1
        self.console.progress(f"checking {stored.path}")
        self.report.bytes += parts.size_of(self.warehouse.root, stored.path)
        try:
            table = self.warehouse.snapshot(stored)
        except pa.ArrowException as error:
            raise WarehouseError.is_damaged(stored.path) from error
        if table.num_rows != stored.rows:
            raise WarehouseError.is_damaged(stored.path)
        _demand_columns(table, shape, stored.path)
        return table

    def index_file(self, stored: StoredIndex) -> pa.Buffer:
        """Return a file of an index."""
        self.report.index_files += 1
        self.console.progress(f"checking {stored.path}")
        data = files.read(self.warehouse.root, stored.path, stored.checksum)
        self.report.bytes += data.size
        return data

    def index(self, listed: "Sequence[StoredIndex]", program: NormalProgram) -> "Index":
        """Return what is sound of an index, and what is not; raises nothing."""
        found, errors = {}, []
        for each in listed:
            try:
                found[each.path.rpartition("/")[2].removeprefix(INDEX)] = self.index_file(each)
            except WarehouseError as error:
                errors.append((each.path, error))
        engine = LocalEngine()
        engine.declare(program.relations)
        try:
            return Index(engine, engine.restore(found), errors)
        except WarehouseError as error:
            return Index(engine, set(), [*errors, (listed[0].path, error)])


@dataclass(frozen=True, slots=True)
class Index:
    """The relations of an index whose files are sound, in an engine; and the files that are not."""

    engine: LocalEngine
    relations: set[str]
    errors: list[tuple[str, WarehouseError]]


def _demand_columns(table: pa.Table, shape: Relation, place: str) -> None:
    if table.schema.types != schema_of(shape).types:
        raise WarehouseError.is_damaged(place)
