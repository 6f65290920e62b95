"""New versions of a published table.

A version is made by compare-and-swap on the one that was inspected (no retries: `deltalake` would
rebase an append silently). `deltalake` does not sync, so its files are synced here before the
version is acknowledged.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from corollary import fault
from corollary.errors import ConflictError, WarehouseError
from corollary.warehouse.files import durable_files
from corollary.warehouse.formats.delta_entries import entry_path
from corollary.warehouse.publishing.checked_log import MARK_FIELD, VersionMark
from corollary.warehouse.publishing.published_files import FileReplacement, NewFile
from corollary.warehouse.publishing.published_table import CONFIGURATION, PublishedTable, first_line

CHECKPOINT_INTERVAL_VERSIONS = 100
"""The number of versions between two checkpoints of the log."""
_NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


def create_table(
    target: PublishedTable, schema: pa.Schema, new: list[NewFile], mark: VersionMark
) -> int:
    """Make the first version of a table; return its number, 0.

    Raises:
        ConflictError: another writer has made one.
        WarehouseError: `C0942`, it cannot be written.
    """
    mark = replace(mark, actions=len(new))
    with _committing(target.relation):
        target.directory.mkdir(parents=True, exist_ok=True)
        create_table_with_add_actions(
            target.uri,
            Schema.from_arrow(schema),
            _adds(new, is_change=True),
            mode="error",
            name=target.relation,
            description="published by corollary; do not write to it",
            configuration=CONFIGURATION,
            commit_properties=_properties(target, mark),
            post_commithook_properties=_NO_HOOKS,
        )
        _sync_entry(target, 0)
        durable_files.sync_path(target.directory)
        durable_files.sync_path(target.directory.parent)
    return 0


def overwrite_table(
    target: PublishedTable,
    delta: DeltaTable,
    schema: pa.Schema,
    new: list[NewFile],
    mark: VersionMark,
) -> int:
    """Make a version that does not depend on those before it, and may have other columns.

    Raises:
        ConflictError: the table is no longer at the version that was inspected.
        WarehouseError: `C0942`, it cannot be written.
    """
    mark = replace(mark, actions=len(new) + len(delta.file_uris()))
    with _committing(target.relation):
        delta.create_write_transaction(
            [*_adds(new, is_change=True)],
            mode="overwrite",
            schema=Schema.from_arrow(_told_apart(schema, delta)),
            commit_properties=_properties(target, mark),
            post_commithook_properties=_NO_HOOKS,
        )
        return _sync_version(target, delta)


def _told_apart(schema: pa.Schema, delta: DeltaTable) -> pa.Schema:
    """Return a schema that `deltalake` does not take for that of the table if the order differs.

    It compares columns as a set, and would keep the old order. The metadata of a column counts.
    """
    was = [each.name for each in delta.schema().fields]
    if was == schema.names or set(was) != set(schema.names):
        return schema
    position = f"{MARK_FIELD}.position"
    return pa.schema(
        each.with_metadata({position: f"{delta.version() + 1}.{at}"})
        for at, each in enumerate(schema)
    )


def replace_files(
    target: PublishedTable,
    delta: DeltaTable,
    change: FileReplacement,
    mark: VersionMark,
    *,
    is_change: bool,
) -> int:
    """Make a version in which files replace others; return its number.

    Args:
        target: the table.
        delta: the table, at the version that was inspected.
        change: the files.
        mark: what the version shows.
        is_change: whether the rows of the table change, or only the files that hold them.

    Raises:
        ConflictError: the table is no longer at that version.
        WarehouseError: `C0942`, it cannot be written.
    """
    mark = replace(mark, actions=len(change.new) + len(change.old))
    now = _now()
    removes = [RemoveAction(each.path, is_change, now, each.size, {}) for each in change.old]
    with _committing(target.relation):
        delta.create_write_transaction(
            [*_adds(change.new, is_change=is_change), *removes],
            mode="append",
            schema=delta.schema(),
            commit_properties=_properties(target, mark),
            post_commithook_properties=_NO_HOOKS,
        )
        return _sync_version(target, delta)


def _properties(target: PublishedTable, mark: VersionMark) -> CommitProperties:
    return CommitProperties(
        custom_metadata=mark.as_metadata(),
        max_commit_retries=0,
        app_transactions=[Transaction(target.application, mark.commit)],
    )


def _adds(new: list[NewFile], *, is_change: bool) -> list[AddAction]:
    now = _now()
    return [AddAction(each.path, each.size, {}, now, is_change, each.statistics) for each in new]


def _now() -> int:
    return time.time_ns() // 1_000_000


def _sync_version(target: PublishedTable, delta: DeltaTable) -> int:
    """Sync a new version to the disk; return its number."""
    version = delta.version() + 1  # as no other writer was first; `deltalake` does not reload
    _sync_entry(target, version)
    if version % CHECKPOINT_INTERVAL_VERSIONS == 0:
        newest = target.open()
        newest.create_checkpoint()
        for path in target.log.glob("*checkpoint*"):
            durable_files.sync_path(path)
        durable_files.sync_path(target.log)
        newest.cleanup_metadata()
    return version


def _sync_entry(target: PublishedTable, version: int) -> None:
    """Sync the entry of a version to the disk, which `deltalake` has only written."""
    fault.hit("after_publish")
    durable_files.sync_path(entry_path(target.log, version))
    durable_files.sync_path(target.log)


@contextmanager
def _committing(relation: str) -> Iterator[None]:
    """Turn errors of `deltalake` into ours."""
    fault.hit("before_publish")
    try:
        yield
    except CommitFailedError as error:
        raise ConflictError(
            f"another writer changed the published table of `{relation}` at the same time"
        ) from error
    except (DeltaError, OSError) as error:
        raise WarehouseError.of(
            "C0942",
            f"`{relation}` cannot be published: {first_line(error)}.",
            None,
            "check the directory of the table, and publish again; the commit itself is safe",
        ) from error
