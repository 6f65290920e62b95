"""Replicas that are tables of Iceberg, in a catalog that pyiceberg is configured for.

A change is one snapshot, whose summary has the position. Rows that come are new files. Rows that go
are taken out of the files that have them, which are written anew, as pyiceberg writes no deletion
vectors: files whose least and greatest values exclude these rows are not read, files without them
stay. Small files are merged along the way.

A snapshot that is not ours stops the replica, unless it only has other files with the same rows.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corollary.analysis.replicas import ReplicaSpec
from corollary.core.arrow import single_array
from corollary.core.arrow_buffers import bool_array, index_array
from corollary.core.program import Relation
from corollary.errors import WarehouseError
from corollary.warehouse.copies import row_difference
from corollary.warehouse.publishing.delta_schema import published_rows, published_schema
from corollary.warehouse.publishing.published_files import find_rows
from corollary.warehouse.publishing.replica import (
    ReplicaPosition,
    foreign_replica,
    unreachable_replica,
)
from corollary.warehouse.warehouse import RelationDelta

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.table import Table

DEFAULT_NAMESPACE = "default"
SUMMARY_PREFIX = "corollary."
"""Begins the names of the position's fields in the summary of a snapshot."""
FILE_MAX_ROWS = 1 << 18
"""The maximum rows of a file: to remove one row, one file is written anew."""
SMALL_FILE_ROWS, SMALL_FILES_MAX = 1 << 14, 32
"""So many files with fewer rows may be there; then they become one."""
_COMPARED = (pa.types.is_integer, pa.types.is_string, pa.types.is_date, pa.types.is_timestamp)
"""The types by whose bounds files are excluded."""


class IcebergReplica:
    """A table of Iceberg that a relation is replicated to.

    Args:
        relation: the relation.
        spec: the catalog, and the name of the table with its namespace.
    """

    def __init__(self, relation: Relation, spec: ReplicaSpec) -> None:
        self._relation = relation
        self._spec = spec

    @contextmanager
    def open(self) -> "Iterator[IcebergSession]":
        """Open the catalog.

        Raises:
            WarehouseError: `C0949`, it cannot be reached; `C0935`, the client is not installed.
        """
        try:
            from pyiceberg.catalog import load_catalog
        except ImportError as error:
            raise WarehouseError.of(
                "C0935",
                "Tables of Iceberg need the package `pyiceberg`, which is not installed.",
                None,
                "install `corollary[iceberg]`",
            ) from error
        try:
            yield IcebergSession(load_catalog(self._spec.location), self._relation, self._spec)
        except WarehouseError:
            raise
        except Exception as error:  # pyiceberg's have no class in common, nor those of its drivers
            raise unreachable_replica(str(self._spec), error) from error


class IcebergSession:
    """A catalog, and the table of a relation in it."""

    def __init__(self, catalog: Any, relation: Relation, spec: ReplicaSpec) -> None:
        self._catalog, self._relation, self._name = catalog, relation, str(spec)
        self._path = spec.name if "." in spec.name else f"{DEFAULT_NAMESPACE}.{spec.name}"
        self._schema = published_schema(relation)

    def position(self, recorded: ReplicaPosition | None) -> ReplicaPosition | None:  # noqa: ARG002
        """Return the position; None if there is no table yet, or one without rows.

        Raises:
            WarehouseError: `C0979`, somebody else has written to the table.
        """
        from pyiceberg.table.snapshots import Operation

        if not self._catalog.table_exists(self._path):
            return None
        table = self._load()
        snapshot = table.current_snapshot()
        while snapshot is not None:
            summary = snapshot.summary
            said = {} if summary is None else summary.additional_properties
            fields = {
                name.removeprefix(SUMMARY_PREFIX): value
                for name, value in said.items()
                if name.startswith(SUMMARY_PREFIX)
            }
            if fields:
                return ReplicaPosition.of(fields)
            if summary is None or summary.operation != Operation.REPLACE:
                raise foreign_replica(self._name, "has a snapshot of somebody else")
            parent = snapshot.parent_snapshot_id
            snapshot = None if parent is None else table.snapshot_by_id(parent)
        return None

    def _load(self) -> "Table":
        found: Table = self._catalog.load_table(self._path)
        return found

    def apply(self, change: RelationDelta, position: ReplicaPosition) -> None:
        """Apply a change, by a snapshot with a position.

        Raises:
            WarehouseError: `C0979`, the rows are not as they were left.
        """
        table = self._load()
        removed = published_rows(change.removed, self._relation)
        gone, kept = self._without(table, removed)
        self._commit(table, gone, [*kept, published_rows(change.added, self._relation)], position)

    def refresh(self, rows: pa.Table, position: ReplicaPosition) -> tuple[int, int]:
        """Hold just these rows; return how many came and went."""
        if self._catalog.table_exists(self._path):
            table, held = self._load(), self.position(None)
            if held is None or held.columns == position.columns:
                gone = [each.file for each in table.scan().plan_files()]
                self._commit(table, gone, [published_rows(rows, self._relation)], position)
                return rows.num_rows, sum(each.record_count for each in gone)
            self._catalog.drop_table(self._path)
        self._catalog.create_namespace_if_not_exists(self._path.rpartition(".")[0])
        table = self._catalog.create_table(self._path, schema=self._schema)
        self._commit(table, [], [published_rows(rows, self._relation)], position)
        return rows.num_rows, 0

    def _without(self, table: "Table", removed: pa.Table) -> tuple[list[Any], list[pa.Table]]:
        """Return the files that go, and the rows of them that stay."""
        tasks = [each.file for each in table.scan().plan_files()]
        small = [each for each in tasks if each.record_count < SMALL_FILE_ROWS]
        merged = {each.file_path for each in small} if len(small) > SMALL_FILES_MAX else set()
        near = set()
        if removed.num_rows:
            scan = table.scan(row_filter=_bounds(removed))
            near = {each.file.file_path for each in scan.plan_files()}
        gone, kept = [], []
        for file in tasks:
            if file.file_path not in near | merged:
                continue
            rows = self._read(table, file.file_path)
            positions = find_rows(removed, rows)
            if not len(positions) and file.file_path not in merged:
                continue
            stays = np.ones(rows.num_rows, np.bool_)
            stays[positions] = False
            gone.append(file)
            kept.append(rows.filter(bool_array(stays)))
            removed, _ = row_difference(rows.take(index_array(positions)), removed)
        if removed.num_rows:
            raise foreign_replica(self._name, "lacks rows, or has others than it was given")
        return gone, kept

    def _read(self, table: "Table", path: str) -> pa.Table:
        with table.io.new_input(path).open() as file:
            return pq.read_table(file).select(self._schema.names).cast(self._schema)

    def _commit(
        self,
        table: "Table",
        gone: Sequence[Any],
        rows: Sequence[pa.Table],
        position: ReplicaPosition,
    ) -> None:
        """Make a snapshot in which files are replaced by rows."""
        from pyiceberg.io.pyarrow import _dataframe_to_data_files

        fields = {f"{SUMMARY_PREFIX}{name}": str(v) for name, v in position.fields.items()}
        new = pa.concat_tables(rows)
        with table.transaction() as work:
            update = work.update_snapshot(snapshot_properties=fields)
            with update.overwrite() if gone else update.fast_append() as snapshot:
                for file in gone:
                    snapshot.delete_data_file(file)
                for start in range(0, new.num_rows, FILE_MAX_ROWS):
                    part = new.slice(start, FILE_MAX_ROWS)
                    for file in _dataframe_to_data_files(work.table_metadata, part, table.io):
                        snapshot.append_data_file(file)


def _bounds(rows: pa.Table) -> "BooleanExpression":
    """Return what holds for all of some rows: the least and greatest values of their columns."""
    from pyiceberg.expressions import (
        AlwaysTrue,
        And,
        GreaterThanOrEqual,
        LessThanOrEqual,
        Reference,
    )
    from pyiceberg.expressions.literals import literal

    found: BooleanExpression = AlwaysTrue()
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        is_compared = any(test(column.type) for test in _COMPARED)
        if is_compared and not column.null_count:
            bounds = pc.min_max(single_array(column)).as_py()
            least, last = literal(bounds["min"]), literal(bounds["max"])
            found = And(
                found,
                GreaterThanOrEqual(term=Reference(name), value=least),
                LessThanOrEqual(term=Reference(name), value=last),
            )
    return found
