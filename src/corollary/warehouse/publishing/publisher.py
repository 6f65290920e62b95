"""Publishes relations as Delta tables, for every reader that knows Delta.

The table of a relation is under `tables/` and shows the relation as it was at one commit. It is an
output, never the truth: it is brought forward from the commit that its own log names, so that a
publication that was killed at any point is simply repeated, and it can be rebuilt at any time.

| stage | what holds after it |
|---|---|
| inspect | every version since the last recorded one is ours; else C0940 |
| collect | the net change since the commit that the table shows is known |
| write | new data files are synced; no version references them |
| commit | the next version references them, and names the commit; or another writer was first |
| record | the catalog has the version, from which later inspections start |
"""

from collections.abc import Iterable, Mapping

from corollary.core.program import Relation
from corollary.core.table_options import TableOptions
from corollary.data_class import dataclass
from corollary.errors import ConflictError, WarehouseError
from corollary.warehouse.catalog.catalog import Catalog
from corollary.warehouse.catalog.catalog_rows import Commit
from corollary.warehouse.copies import row_difference
from corollary.warehouse.files import durable_files
from corollary.warehouse.files.places import Place
from corollary.warehouse.publishing.checked_log import (
    TableDefect,
    TableFinding,
    VersionMark,
    table_error,
)
from corollary.warehouse.publishing.delta_schema import (
    columns_digest,
    published_rows,
    published_schema,
)
from corollary.warehouse.publishing.history import CopiesHistory, History
from corollary.warehouse.publishing.outputs import (
    RECORD_INTERVAL_COMMITS,
    PublishedVersion,
    commit_of,
)
from corollary.warehouse.publishing.publication import Publication
from corollary.warehouse.publishing.published_files import PublishedFiles
from corollary.warehouse.publishing.published_table import PublishedState, PublishedTable
from corollary.warehouse.publishing.table_directory import TableDirectory

_PUBLISH_ATTEMPTS = 3
"""How often a publication is repeated when another writer made the next version first."""


@dataclass(frozen=True, slots=True)
class DeltaOutput:
    """The Delta table of a relation, as one of several outputs."""

    publisher: "Publisher"
    relation: Relation

    @property
    def name(self) -> str:
        """What it is known by, together with its relation."""
        return "delta"

    def publish(self, commit: Commit, history: History) -> PublishedVersion | None:
        """Bring the table forward to a commit; return the new version, if any."""
        return self.publisher.publish(self.relation, commit.number, history)


class Publisher:
    """Publishes the relations of one warehouse.

    Args:
        root: the place of the warehouse.
        catalog: has its commits, and which version of each table shows which of them.
        counts: for each relation with copies, the one that has its counts.
        options: those of tables that have others than the default ones.
    """

    def __init__(
        self,
        root: Place,
        catalog: Catalog,
        counts: Mapping[str, Relation] | None = None,
        options: Mapping[str, TableOptions] | None = None,
    ) -> None:
        self._catalog = catalog
        self._counts = counts or {}
        self._options = options or {}
        self._tables = TableDirectory(root, catalog)

    def table_path(self, relation: str) -> Place:
        """Return the place of a relation's table."""
        return self._tables.table_path(relation)

    # --- publishing ----------------------------------------------------------------------------

    def outputs(self, relations: Iterable[Relation]) -> list[DeltaOutput]:
        """Return the tables of relations, to be brought forward."""
        return [DeltaOutput(self, each) for each in relations]

    def publish(self, relation: Relation, upto: int, history: History) -> PublishedVersion | None:
        """Bring the table of a relation forward to a commit; return the new version, if any.

        However far the table lags, it is brought forward from the commit that it shows: after a
        crash nothing else is needed.

        Raises:
            WarehouseError: `C0940`, the table is not as it was left; `C0936`, there is no such
                commit; `C0932` or `C0942`, the table cannot be written.
        """
        commit, history = commit_of(self._catalog, upto), self._with_copies(history)
        for _ in range(_PUBLISH_ATTEMPTS):
            try:
                return self._publish(relation, commit, history)
            except ConflictError:
                continue
        raise WarehouseError.of(
            "C0942",
            f"`{relation.name}` cannot be published: others keep writing to its table.",
            None,
            "stop them, and publish again; the commit itself is safe",
        )

    def _publish(
        self, relation: Relation, commit: Commit, history: History
    ) -> PublishedVersion | None:
        with self._tables.lock(relation.name) as target:
            publication = self._publication(target, relation, commit, history)
            recorded = self._catalog.published_versions().get(relation.name)
            if target.is_absent():
                return publication.create()
            if recorded is not None and self._is_up_to_date(target, relation, *recorded):
                if commit.number - recorded[0] >= RECORD_INTERVAL_COMMITS:
                    self._catalog.record_published(relation.name, commit.number, recorded[1])
                return None
            shown = self._inspect_ours(target, recorded and recorded[1])
            start = shown.mark.commit
            if recorded is not None and recorded[1] == shown.version:
                start = max(start, recorded[0])
            if commit.number < start:
                return None
            if shown.mark.columns != columns_digest(published_schema(relation)):
                return publication.overwrite()
            altered = None
            if shown.mark.options != self._options_of(relation.name).digest:
                altered = publication.alter(shown, start)
                shown = self._inspect_ours(target, altered.version)
            return publication.apply_changes(shown, start) or altered

    def _publication(
        self, target: PublishedTable, relation: Relation, commit: Commit, history: History
    ) -> Publication:
        options = self._options_of(relation.name)
        return Publication(target, relation, commit, history, self._catalog, options=options)

    def _options_of(self, relation: str) -> TableOptions:
        return self._options.get(relation, TableOptions())

    def _is_up_to_date(
        self, target: PublishedTable, relation: Relation, commit: int, version: int
    ) -> bool:
        """Return whether neither the relation nor its table has changed since that version."""
        newest = target.newest_entry()
        return (
            newest is not None
            and commit >= int(self._catalog.meta("oldest"))
            and newest.version == version
            and newest.mark is not None
            and newest.mark.columns == columns_digest(published_schema(relation))
            and newest.mark.options == self._options_of(relation.name).digest
            and not self._check_commit(newest.mark)
            and not self._lag(relation.name, commit)
        )

    def republish(self, relation: Relation, upto: int, history: History) -> PublishedVersion:
        """Rebuild the table of a relation from the warehouse, whatever its state.

        It becomes a new version, so that readers can continue. Where the log is damaged, or uses
        features that we do not, a new table replaces the old one.

        Raises:
            WarehouseError: the directory holds something that never was a table of this warehouse.
            ConflictError: another writer was first.
        """
        commit, history = commit_of(self._catalog, upto), self._with_copies(history)
        with self._tables.lock(relation.name) as target:
            publication = self._publication(target, relation, commit, history)
            if target.is_absent():
                return publication.create()
            _, findings = target.inspect(None)
            troubles = {each.defect for each in findings}
            if TableDefect.NOT_OURS in troubles:
                raise table_error(relation.name, target.directory, findings)
            if troubles & {TableDefect.DAMAGE, TableDefect.FEATURE} or target.has_torn_entry():
                return publication.replace_table()
            return publication.overwrite()

    # --- inspecting ----------------------------------------------------------------------------

    def lag(self, relations: Iterable[Relation]) -> dict[str, int]:
        """Return for each relation how many commits that changed it are not published yet."""
        recorded = self._catalog.published_versions()
        return {
            each.name: self._lag(each.name, recorded.get(each.name, (0, 0))[0])
            for each in relations
        }

    def _lag(self, relation: str, commit: int) -> int:
        """Return how many commits after one have changed a relation."""
        counts = self._counts.get(relation)
        return self._catalog.count_changing_commits(counts.name if counts else relation, commit)

    def _with_copies(self, history: History) -> History:
        return CopiesHistory(history, self._counts) if self._counts else history

    def check(self, relation: Relation, history: History | None = None) -> list[TableFinding]:
        """Return the defects of a relation's table: foreign writes, missing files or rows.

        Args:
            relation: the relation.
            history: if given, every row is compared with it.
        """
        with self._tables.lock(relation.name, is_read=True) as target:
            recorded = self._recorded_version(relation.name)
            if target.is_absent():
                gone = TableFinding(TableDefect.CONTENT, "it is gone")
                return [] if recorded is None else [gone]
            shown, findings = target.inspect(recorded)
            if shown is None:
                return findings
            findings = self._check_commit(shown.mark) or [
                TableFinding(TableDefect.CONTENT, f"its file `{each.path}` is missing or damaged")
                for each in shown.files
                if not durable_files.has_size(target.directory / each.path, each.size)
            ]
            is_alike = shown.mark.columns == columns_digest(published_schema(relation))
            if not findings and history is not None and is_alike:
                findings = self._compare(target, relation, shown, history)
            return findings

    def _compare(
        self, target: PublishedTable, relation: Relation, shown: PublishedState, history: History
    ) -> list[TableFinding]:
        content = self._with_copies(history).content(relation, shown.mark.commit)
        truth = published_rows(content.table(), relation)
        schema = published_schema(relation)
        data = PublishedFiles(target.directory, target.warehouse, relation.name, schema)
        missing, extra = row_difference(data.read_all(shown.files), truth)
        if not missing.num_rows and not extra.num_rows:
            return []
        what = f"it lacks {missing.num_rows} rows and has {extra.num_rows} that it should not have"
        return [TableFinding(TableDefect.CONTENT, what)]

    def _inspect_ours(self, target: PublishedTable, recorded: int | None) -> PublishedState:
        shown, findings = target.inspect(recorded)
        if shown is not None:
            findings = self._check_commit(shown.mark)
        if shown is None or findings:
            raise table_error(target.relation, target.directory, findings)
        return shown

    def _check_commit(self, mark: VersionMark) -> list[TableFinding]:
        """Return a finding if the commit of a mark is not in the history of the warehouse."""
        known = self._catalog.find_commit(mark.commit)
        latest = self._catalog.latest_commit()
        is_future = latest is None or mark.commit > latest.number
        if not is_future and (known is None or repr(known.created) == mark.created):
            return []
        what = f"it shows a commit {mark.commit} that this warehouse, or its backup, does not have"
        return [TableFinding(TableDefect.UNKNOWN_COMMIT, what)]

    # --- removing ------------------------------------------------------------------------------

    def clean(self, keep_seconds: float | None = None) -> list[Place]:
        """Remove what no version needs that is kept, and old entries of logs; return it.

        Args:
            keep_seconds: how long readers may use a version that has been superseded; by default
                as long as its table says.
        """
        return self._tables.remove_unused(keep_seconds)

    def withdraw(self, relation: str) -> None:
        """Remove the table of a relation that is no longer published.

        Raises:
            WarehouseError: the directory holds something that never was a table of this warehouse.
        """
        with self._tables.lock(relation) as target:
            if target.directory.exists():
                _, findings = target.inspect(None)
                if not target.is_absent() and TableDefect.NOT_OURS in {e.defect for e in findings}:
                    raise table_error(relation, target.directory, findings)
                target.remove()
            self._catalog.delete_published(relation)

    def _recorded_version(self, relation: str) -> int | None:
        recorded = self._catalog.published_versions().get(relation)
        return None if recorded is None else recorded[1]
