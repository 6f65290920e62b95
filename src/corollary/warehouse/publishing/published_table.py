"""The Delta table of one relation: its state, or its defects."""

import secrets
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from corollary.core.table_options import KEEP_SECONDS, TableOptions, parse_duration
from corollary.data_class import dataclass
from corollary.warehouse.files import durable_files
from corollary.warehouse.files.object_path import ObjectPath
from corollary.warehouse.files.places import Place, files_below, remove_files, remove_tree
from corollary.warehouse.formats.delta_entries import (
    LOG_DIRECTORY,
    entry_path,
    list_versions,
    read_actions,
)
from corollary.warehouse.publishing import checked_log
from corollary.warehouse.publishing.published_files import CHANGE_DATA_DIRECTORY, PublishedFile

READER_VERSION, WRITER_VERSION, FEED_WRITER_VERSION = 1, 2, 4
FEATURES_READER_VERSION, FEATURES_WRITER_VERSION = 3, 7
"""The versions of the Delta protocol that our tables have; the last ones name features."""
FEATURES = frozenset(("appendOnly", "changeDataFeed", "invariants", "timestampNtz"))
"""The features that our tables may name."""
_FEED_OPTIONS = TableOptions(change_data_feed=True)
EXPIRED_MIN_ENTRIES = 10
"""So many entries that are not kept any more are worth a checkpoint."""
_STRANGER = checked_log.TableFinding(
    checked_log.TableDefect.NOT_OURS, "it is not a table of this warehouse"
)


@dataclass(frozen=True, slots=True)
class PublishedState:
    """The state of a table without defects."""

    delta: DeltaTable
    version: int
    mark: checked_log.VersionMark
    files: list[PublishedFile]


class PublishedTable:
    """The Delta table of a relation, which may not exist yet.

    Attributes:
        directory: where the table is, or will be.
        application: the application that its versions name as their writer.
    """

    def __init__(self, directory: Place, warehouse: str, relation: str) -> None:
        self.directory = directory
        self.relation = relation
        self.warehouse = warehouse
        self.application = f"corollary:{warehouse}:{relation}"
        self.log = directory / LOG_DIRECTORY

    def is_absent(self) -> bool:
        """Return whether there is no table; files of a first version that failed do not count."""
        if not self.directory.exists():
            return True
        has_log = list_versions(self.log) or any(self.log.glob("*checkpoint*"))
        if not self.directory.is_dir() or has_log:
            return False
        return all(
            path.name in (LOG_DIRECTORY, CHANGE_DATA_DIRECTORY)
            or path.name.startswith(self.warehouse)
            for path in self.directory.iterdir()
        )

    def inspect(
        self, recorded: int | None
    ) -> tuple[PublishedState | None, list[checked_log.TableFinding]]:
        """Return the state of the table, or its defects.

        Args:
            recorded: a version that is known to be ours, from the catalog.
        """
        entries = list(checked_log.recent_entries(self.log, self.application, recorded))
        if not entries:
            return None, [_STRANGER]
        findings = [each.finding for each in entries if each.finding is not None]
        try:
            delta = self.open()
            is_ours = delta.transaction_version(self.application) is not None
        except (DeltaError, OSError) as error:
            what = f"the log cannot be read ({first_line(error)})"
            findings.append(checked_log.TableFinding(checked_log.TableDefect.DAMAGE, what))
            is_ours = any(each.mark for each in entries)
            return None, findings if is_ours or self._has_our_files() else [_STRANGER]
        is_torn = any(each.defect is checked_log.TableDefect.DAMAGE for each in findings)
        if not is_ours and not (is_torn and self._has_our_files()):
            return None, [_STRANGER]
        mark = entries[0].mark
        if delta.version() != entries[0].version:
            findings.append(
                checked_log.TableFinding(
                    checked_log.TableDefect.DAMAGE, "the entry of its newest version is missing"
                )
            )
        findings += _features(delta)
        if findings or mark is None:
            return None, findings
        held = files_of(delta)
        if sum(each.rows for each in held) != mark.rows:
            return None, [
                checked_log.TableFinding(
                    checked_log.TableDefect.CONTENT, "the log has lost or gained files"
                )
            ]
        return PublishedState(delta, delta.version(), mark, held), []

    def newest_entry(self) -> checked_log.LogEntry | None:
        """Return the newest entry of the log."""
        return next(checked_log.recent_entries(self.log, self.application, None), None)

    def has_torn_entry(self) -> bool:
        """Return whether any version in the log is torn, however old."""
        entries = (
            checked_log.read_entry(self.log, version, self.application)
            for version in list_versions(self.log)
        )
        return any(
            each.finding and each.finding.defect is checked_log.TableDefect.DAMAGE
            for each in entries
        )

    def open(self) -> DeltaTable:
        """Return the table, opened with `deltalake`."""
        return DeltaTable(self.uri)

    def expire_log(self, now: float) -> list[Place]:
        """Remove the entries and checkpoints that no version needs that is kept; return them.

        A version is kept until the one after it is as old as the table says. Where many are not
        kept any more, and there is no checkpoint after them, one is written. The log of a table
        that is not ours stays as it is.
        """
        modified = {each.name: each.modified for each in files_below(self.log)}
        versions = list_versions(self.log)
        infos = (e.get("commitInfo", {}) for e in read_actions(entry_path(self.log, versions[-1])))
        marks = (each.get(checked_log.MARK_FIELD, {}) for each in infos)
        if not any(each.get("warehouse") == self.warehouse for each in marks):
            return []
        delta = self.open()
        since = now - retention_of(delta, "delta.logRetentionDuration")
        kept = next(
            version
            for version in versions
            if version == versions[-1]
            or modified.get(entry_path(self.log, version + 1).name, now) >= since
        )
        checkpoints = {int(each[:20]) for each in modified if ".checkpoint" in each[20:]}
        if versions[-1] - max(checkpoints, default=-1) > EXPIRED_MIN_ENTRIES < kept - versions[0]:
            self.write_checkpoint(delta)
            checkpoints.add(delta.version())
        start = max((each for each in checkpoints if each <= kept), default=-1)
        old = sorted(name for name in modified if name[:20].isdecimal() and int(name[:20]) < start)
        remove_files(self.log, old)
        return [self.log / name for name in old]

    def write_checkpoint(self, delta: DeltaTable) -> None:
        """Write a checkpoint of a version, durably."""
        delta.create_checkpoint()
        for path in self.log.glob("*checkpoint*"):
            durable_files.sync_path(path)
        durable_files.sync_path(self.log)

    def remove(self) -> None:
        """Remove the table, so that readers see all of it or nothing."""
        if isinstance(self.directory, ObjectPath):
            # Without its log there is no table, and without the newest entries an older version.
            entries = list_versions(self.log)
            remove_files(self.log, [entry_path(self.log, each).name for each in entries[::-1]])
            remove_tree(self.directory)
            return
        old = temporary_sibling(self.directory)
        self.directory.rename(old)
        durable_files.sync_path(self.directory.parent)
        remove_tree(old)

    def _has_our_files(self) -> bool:
        return any(path.name.startswith(self.warehouse) for path in self.directory.iterdir())

    @property
    def uri(self) -> str:
        """The location for `deltalake`."""
        return self.directory.absolute().as_uri()


def retention_of(delta: DeltaTable, name: str) -> int:
    """Return for how many seconds a table keeps what a property speaks of."""
    return parse_duration(delta.metadata().configuration.get(name, "")) or KEEP_SECONDS


def temporary_sibling(directory: Path) -> Path:
    """Return a temporary name beside a table, for replacing or removing it as a whole."""
    return directory.with_name(f"{directory.name}.{secrets.token_hex(8)}")


def count_rows(place: Path) -> tuple[int, int]:
    """Return the version of a Delta table and how many rows it has, as any reader sees it."""
    delta = DeltaTable(str(place))
    return delta.version(), delta.to_pyarrow_table().num_rows


def files_of(delta: DeltaTable) -> list[PublishedFile]:
    """Return the files that make up the table."""
    # Not `pa.table`, which imports pandas where it is installed.
    actions = pa.RecordBatchReader.from_stream(delta.get_add_actions()).read_all()
    if not actions.num_rows:
        return []
    low, high, nulls = (
        actions.column(name).combine_chunks() for name in ("min", "max", "null_count")
    )
    return [
        PublishedFile(path, size, rows, low[at], high[at], nulls[at])
        for at, (path, size, rows) in enumerate(
            zip(
                actions.column("path").to_pylist(),
                actions.column("size_bytes").to_pylist(),
                actions.column("num_records").to_pylist(),
                strict=True,
            )
        )
    ]


def _features(delta: DeltaTable) -> list[checked_log.TableFinding]:
    protocol = delta.protocol()
    named = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    features = sorted(named - FEATURES)
    metadata = delta.metadata()
    features += sorted(metadata.configuration.keys() - _FEED_OPTIONS.configuration.keys())
    if metadata.partition_columns:
        features.append("partitions")
    versions = (protocol.min_reader_version, protocol.min_writer_version)
    is_ours = versions == (FEATURES_READER_VERSION, FEATURES_WRITER_VERSION) or (
        versions in ((READER_VERSION, WRITER_VERSION), (READER_VERSION, FEED_WRITER_VERSION))
    )
    if is_ours and not features:
        return []
    return [
        checked_log.TableFinding(
            checked_log.TableDefect.FEATURE, f"it uses {', '.join(features) or 'another protocol'}"
        )
    ]


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, or its class if it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
