"""One publication: brings the table of one relation to one commit.

| method | when |
|---|---|
| create | there is no table yet: the whole relation becomes version 0 |
| apply_changes | the table shows an earlier commit: the net change since becomes a version |
| alter | its options are others: a version with the same rows |
| overwrite | the columns are others, or another writer made a version: the whole relation again |
| replace_table | the log itself is damaged: a new table replaces the old one |
"""

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from corollary.core.engine import TableHandle
from corollary.core.program import Relation
from corollary.core.table_options import TableOptions
from corollary.errors import WarehouseError
from corollary.warehouse.catalog.catalog import Catalog
from corollary.warehouse.catalog.catalog_rows import Commit
from corollary.warehouse.copies import change_data, row_difference
from corollary.warehouse.files import durable_files
from corollary.warehouse.files.durable_files import DELETE, INSERT
from corollary.warehouse.files.object_path import ObjectPath
from corollary.warehouse.publishing import checked_log, delta_commit, delta_schema, published_files
from corollary.warehouse.publishing.history import History
from corollary.warehouse.publishing.outputs import PublishedVersion
from corollary.warehouse.publishing.published_table import (
    PublishedState,
    PublishedTable,
    files_of,
    temporary_sibling,
)
from corollary.warehouse.publishing.table_schemas import columns_of_schema, schema_to_publish
from corollary.warehouse.warehouse import ChangeHandles


class Publication:
    """Brings the table of a relation to a commit; the caller holds the table's lock."""

    def __init__(
        self,
        target: PublishedTable,
        relation: Relation,
        commit: Commit,
        history: History,
        catalog: Catalog,
        *,
        options: TableOptions,
    ) -> None:
        self._target = target
        self._relation = relation
        self._commit = commit
        self._history = history
        self._catalog = catalog
        self._options = options
        self._schema = delta_schema.published_schema(relation)
        self._data = published_files.PublishedFiles(
            target.directory, target.warehouse, relation.name, self._schema
        )

    def create(self) -> PublishedVersion:
        """Make the first version of a table."""
        rows, new = self._write_all()
        self._data.sync()
        return self._start(None, published_files.FileReplacement(new, []), rows)

    def _start(
        self, before: DeltaTable | None, exchange: published_files.FileReplacement, rows: int
    ) -> PublishedVersion:
        """Make a version with these rows that defines the table, whatever it was."""
        version = delta_commit.write_version(
            self._target,
            before,
            exchange,
            self._mark(rows, is_start=True),
            definition=delta_commit.define_table(self._target, before, self._schema, self._options),
        )
        return self._record(version, rows, 0, len(exchange.new))

    def alter(self, state: PublishedState, start: int) -> PublishedVersion:
        """Make a version with other options and the same rows, which are those of a commit."""
        version = delta_commit.write_version(
            self._target,
            state.delta,
            published_files.FileReplacement([], []),
            replace(state.mark, options=self._options.digest, is_start=False),
            definition=delta_commit.define_table(
                self._target, state.delta, self._schema, self._options
            ),
        )
        self._catalog.record_published(self._relation.name, start, version)
        return PublishedVersion(self._relation.name, start, version, 0, 0, 0)

    def overwrite(self, change: ChangeHandles | None = None) -> PublishedVersion:
        """Make a version that does not depend on those before it.

        Args:
            change: what it changes, if that is known.
        """
        delta = self._target.open()
        rows, new = self._write_all()
        data = [] if change is None else self._distributed_change_data(change)
        self._data.sync()
        made = self._start(delta, published_files.FileReplacement(new, files_of(delta), data), rows)
        is_other = columns_of_schema(delta.schema()) != schema_to_publish(self._relation)
        return replace(made, new_columns=tuple(self._schema.names)) if is_other else made

    def replace_table(self) -> PublishedVersion:
        """Replace a damaged table by a new one."""
        directory = self._target.directory
        if isinstance(directory, ObjectPath):
            # Objects have no second name to be built under: a crash leaves no table, or a damaged
            # one, until the next repair.
            self._target.remove()
            return self.create()
        new = PublishedTable(
            temporary_sibling(directory), self._target.warehouse, self._relation.name
        )
        other = Publication(
            new, self._relation, self._commit, self._history, self._catalog, options=self._options
        )
        published = other.create()
        # A crash between the renames leaves no table, which the next publication creates.
        assert isinstance(new.directory, Path)
        old = temporary_sibling(directory)
        directory.rename(old)
        new.directory.rename(directory)
        durable_files.sync_path(directory.parent)
        shutil.rmtree(old)
        return published

    def apply_changes(self, state: PublishedState, start: int) -> PublishedVersion | None:
        """Apply the changes since the commit that the table shows."""
        if not state.files:
            return self._fill(state)
        large = self._history.distributed_change(self._relation, start, self._commit.number)
        if large is not None:
            return self._apply_distributed(state, large)
        changes = self._changes(state, start)
        if changes is None:
            return self.overwrite()
        added, removed = changes
        if not added.num_rows and not removed.num_rows:
            self._catalog.record_published(self._relation.name, self._commit.number, state.version)
            return None
        exchange = self._without(state, removed)
        exchange.new.extend(self._data.write(added))
        if self._options.change_data_feed and exchange.old:
            kinds = change_data(removed, added, self._options.key)
            exchange.change_data.extend(self._data.write_change_data(kinds))
        return self._exchange(state, exchange, added.num_rows, removed.num_rows)

    def _apply_distributed(
        self, state: PublishedState, change: ChangeHandles
    ) -> PublishedVersion | None:
        """Apply a change of many tuples: their processes write those that come.

        Where many go, hardly a file stays: the table is written anew.
        """
        if change.removed is not None and change.removed.is_distributed:
            return self.overwrite(change)
        new = self._data.write_distributed(change.added, self._relation)
        if new is None:
            return self.overwrite()
        exchange = published_files.FileReplacement([], [])
        if change.removed is not None and len(change.removed):
            removed = delta_schema.published_rows(change.removed.table(), self._relation)
            exchange = self._without(state, removed)
        exchange.new.extend(new)
        if exchange.old:
            exchange.change_data.extend(self._distributed_change_data(change))
        return self._exchange(state, exchange, *change.counts)

    def _distributed_change_data(self, change: ChangeHandles) -> list[published_files.NewFile]:
        """Write a change of many tuples where they are; without a look at keys."""
        if not self._options.change_data_feed:
            return []
        found: list[published_files.NewFile] = []
        for kind, tuples in ((DELETE, change.removed), (INSERT, change.added)):
            if tuples is not None:
                found += self._data.write_distributed(tuples, self._relation, kind) or ()
        return found

    def _without(self, state: PublishedState, removed: pa.Table) -> published_files.FileReplacement:
        """Write the files anew that have rows that go."""
        tasks = self._history.tasks_for(self._relation)
        exchange, found = self._data.rewrite_without(state.files, removed, tasks)
        if found != removed.num_rows:
            what = f"{removed.num_rows - found} of its rows are gone or altered"
            finding = checked_log.TableFinding(checked_log.TableDefect.CONTENT, what)
            raise checked_log.table_error(self._relation.name, self._target.directory, [finding])
        return exchange

    def _exchange(
        self,
        state: PublishedState,
        exchange: published_files.FileReplacement,
        added: int,
        removed: int,
    ) -> PublishedVersion:
        """Make the next version, by which so many rows come and go."""
        self._data.sync()
        mark = self._mark(state.mark.rows + added - removed)
        version = delta_commit.write_version(self._target, state.delta, exchange, mark)
        replaced = {file.path for file in exchange.old}
        sizes = [file.rows for file in state.files if file.path not in replaced]
        sizes += [file.rows for file in exchange.new]
        if published_files.is_crowded(sizes):
            version = self._merge(mark, version)
        return self._record(version, added, removed, len(exchange.new))

    def _fill(self, shown: PublishedState) -> PublishedVersion | None:
        """Write the whole relation into a table without files."""
        rows, new = self._write_all()
        if not rows:
            self._catalog.record_published(self._relation.name, self._commit.number, shown.version)
            return None
        self._data.sync()
        exchange = published_files.FileReplacement(new, [])
        mark = self._mark(rows)
        version = delta_commit.write_version(self._target, shown.delta, exchange, mark)
        return self._record(version, rows, 0, len(new))

    def _changes(self, shown: PublishedState, start: int) -> tuple[pa.Table, pa.Table] | None:
        """Return the rows to add to the table, and those to remove from it.

        None if they are not known, and there are too many rows to compare them here.
        """
        delta = self._history.changes(self._relation, start, self._commit.number)
        if delta is None:
            content = self._content()
            if content.is_distributed:
                return None
            every = delta_schema.published_rows(content.table(), self._relation)
            return row_difference(self._data.read_all(shown.files), every)
        return (
            delta_schema.published_rows(delta.added, self._relation),
            delta_schema.published_rows(delta.removed, self._relation),
        )

    def _content(self) -> TableHandle:
        """Return all tuples of the relation."""
        return self._history.content(self._relation, self._commit.number)

    def _write_all(self) -> tuple[int, list[published_files.NewFile]]:
        """Write all rows, or link to a snapshot of them; return how many, and the files.

        Distributed rows are written in their processes.
        """
        linked = self._link_snapshot()
        if linked is not None:
            return sum(each.rows for each in linked), linked
        content = self._content()
        if content.is_distributed:
            new = self._data.write_distributed(content, self._relation)
            if new is not None:
                return len(content), new
        rows = delta_schema.published_rows(content.table(), self._relation)
        return rows.num_rows, self._data.write(rows)

    def _link_snapshot(self) -> list[published_files.NewFile] | None:
        """Take over the files of a snapshot; None if there is none, or not any more."""
        try:
            sources = self._history.snapshot_files(self._relation, self._commit.number)
            return None if sources is None else self._data.link(sources)
        except (WarehouseError, OSError):
            return None  # damaged, or just replaced by another fold

    def _merge(self, mark: checked_log.VersionMark, version: int) -> int:
        """Make a version with fewer files and the same rows, unless another writer was first."""
        delta = self._target.open()
        if delta.version() != version:
            return version
        exchange = self._data.merge_tiers(files_of(delta))
        self._data.sync()
        return delta_commit.write_version(self._target, delta, exchange, mark, is_change=False)

    def _mark(self, rows: int, *, is_start: bool = False) -> checked_log.VersionMark:
        return checked_log.VersionMark(
            self._target.warehouse,
            self._commit.number,
            repr(self._commit.created),
            delta_schema.columns_digest(self._schema),
            rows,
            actions=0,
            is_start=is_start,
            options=self._options.digest,
        )

    def _record(self, version: int, added: int, removed: int, written: int) -> PublishedVersion:
        name, commit = self._relation.name, self._commit.number
        self._catalog.record_published(name, commit, version)
        return PublishedVersion(name, commit, version, added, removed, written)
