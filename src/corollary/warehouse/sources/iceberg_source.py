"""A table of Iceberg as a source, in a catalog that pyiceberg is configured for.

A snapshot that was read before has the same data files as the one of now, but for some: those that
are new, and those that are gone or have other deletions. Only these are read, and their rows
compared; all files are where a row may be in several, or a snapshot has expired.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from corollary.errors import CorollaryError, InputError
from corollary.warehouse.copies import distinct, row_difference
from corollary.warehouse.sources.parquet_file import check_columns, convert_records
from corollary.warehouse.sources.schema_drift import FileRecords
from corollary.warehouse.sources.source import EarlierRows, Position, SourceChange
from corollary.warehouse.sources.source_spec import InputSource, RunCollector, SourceSpec

if TYPE_CHECKING:
    from pyiceberg.table import FileScanTask, Table


class IcebergSource(InputSource):
    """Reads a table."""

    def __init__(self, spec: SourceSpec) -> None:
        super().__init__(spec, "iceberg")

    def is_unchanged(self, before: Position | None) -> bool:
        """Return whether the snapshot that was read is still the last one."""
        before = self._comparable(before)
        if before is None:
            return False
        with self._table() as table:
            return bool(_position(table) == before["snapshot"])

    def _change(
        self, before: Position | None, earlier: EarlierRows, collector: RunCollector
    ) -> SourceChange:
        with self._table() as table:
            now = {_identity(each): each for each in _tasks(table, None)}
            then = self._earlier_tasks(table, before, earlier)
            schema = table.schema().as_arrow()
            check_columns(schema, self._spec.location.name, collector.expected)
            columns = tuple(schema.names)
            position: Position = {"snapshot": _position(table)}
            if then is None:
                records = self._read(table, list(now.values()), collector, columns)
                rows_before = 0 if before is None else before["rows"]
                change, count = self._replacement(records, rows_before, earlier, collector)
                position["rows"] = count
                return collector.to_source_change(change, position, None, good_records=count)
            came = [each for name, each in now.items() if name not in then]
            went = [each for name, each in then.items() if name not in now]
            new = self._read(table, came, collector, columns)
            rows = collector.add_file(self._spec.location.name, new)
            collector.raise_if_malformed()
            lost = self._read(table, went, collector, columns).table
        added, removed = row_difference(lost, rows)
        if not self._spec.has_copies:
            added, removed = self._spec.revision(earlier, distinct(added), distinct(removed))
        count = len(earlier) + added.num_rows - removed.num_rows
        position["rows"] = count
        return collector.to_source_change((added, removed), position, frozenset())

    def _earlier_tasks(
        self, table: "Table", before: Position | None, earlier: EarlierRows
    ) -> "dict[tuple[str, ...], FileScanTask] | None":
        """Return the files of the snapshot that was read; None if they do not say what changed."""
        if before is None or self._spec.key.order:
            return None
        uuid, snapshot = before["snapshot"]
        if uuid != str(table.metadata.table_uuid) or table.snapshot_by_id(snapshot or 0) is None:
            return None
        tasks = _tasks(table, snapshot)
        has_deletions = any(each.delete_files for each in tasks)
        total = sum(each.file.record_count for each in tasks)
        # Otherwise a row may be in several files, or a malformed one in a file that stays.
        is_exact = not has_deletions and total == len(earlier)
        return {_identity(each): each for each in tasks} if is_exact else None

    def _read(
        self,
        table: "Table",
        tasks: "Sequence[FileScanTask]",
        collector: RunCollector,
        columns: tuple[str, ...],
    ) -> FileRecords:
        """Return the rows of files, without those that are deleted."""
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan

        names = [each for each in self._spec.relation.columns if each in columns]
        schema = table.schema().select(*names)
        found = ArrowScan(table.metadata, table.io, schema, AlwaysTrue()).to_table(tasks)
        arrays = [
            found.column(each) if each in names else pa.chunked_array([pa.nulls(found.num_rows)])
            for each in self._spec.relation.columns
        ]
        name = self._spec.location.name
        rows, malformed = convert_records(arrays, name, collector.expected, has_order=False)
        return FileRecords(rows, malformed, columns)

    @contextmanager
    def _table(self) -> "Iterator[Table]":
        """Give the table as it is now.

        Raises:
            InputError: `C1743`, it cannot be read; `C1744`, the package is missing.
        """
        directive = self._spec.directive
        name, span = directive.parameter("catalog"), directive.span
        try:
            from pyiceberg.catalog import load_catalog
        except ImportError:
            raise InputError.of(
                "C1744",
                "Tables of Iceberg are read with a package that is not installed.",
                span,
                'install it: `pip install "corollary[iceberg]"`',
            ) from None
        try:
            yield load_catalog(name).load_table(directive.parameter("table", directive.relation))
        except CorollaryError:
            raise
        except Exception as error:  # noqa: BLE001 - those of pyiceberg have no class in common
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise InputError.of(
                "C1743",
                f"`{self._spec.location.name}` cannot be read: {reason}.",
                span,
                f"configure the catalog `{name}` for pyiceberg (PYICEBERG_CATALOG__{name.upper()}"
                "__URI, or .pyiceberg.yaml), or correct the name of the table; nothing was changed",
            ) from None


def _tasks(table: "Table", snapshot: int | None) -> "list[FileScanTask]":
    """Return the files of a snapshot, the last one if none is given, with their deletions."""
    if table.current_snapshot() is None:
        return []
    return list(table.scan(snapshot_id=snapshot).plan_files())


def _identity(task: "FileScanTask") -> tuple[str, ...]:
    deletions: Sequence[Any] = sorted(each.file_path for each in task.delete_files)
    return (task.file.file_path, *deletions)


def _position(table: "Table") -> list[Any]:
    """Return what says whether a table has changed, as JSON values."""
    snapshot = table.current_snapshot()
    return [str(table.metadata.table_uuid), None if snapshot is None else snapshot.snapshot_id]
