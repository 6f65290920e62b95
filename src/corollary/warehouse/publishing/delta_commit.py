"""New versions of a published table.

A version is made by compare-and-swap on the one that was inspected: its entry must not be there
yet. The entry is written here, as `deltalake` knows no files of change data; it is synced before it
gets its name, so that it is whole or not there.
"""

import json
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError

from corollary import fault
from corollary.core.table_options import TableOptions
from corollary.errors import ConflictError, WarehouseError
from corollary.version import __version__
from corollary.warehouse.files import durable_files
from corollary.warehouse.formats.delta_entries import entry_path
from corollary.warehouse.publishing.checked_log import MARK_FIELD, VersionMark
from corollary.warehouse.publishing.published_files import FileReplacement
from corollary.warehouse.publishing.published_table import (
    FEATURES_READER_VERSION,
    FEATURES_WRITER_VERSION,
    FEED_WRITER_VERSION,
    READER_VERSION,
    WRITER_VERSION,
    PublishedTable,
    first_line,
)

CHECKPOINT_INTERVAL_VERSIONS = 100
"""The number of versions between two checkpoints of the log."""
_Action = dict[str, dict[str, Any]]


def write_version(
    target: PublishedTable,
    before: DeltaTable | None,
    change: FileReplacement,
    mark: VersionMark,
    *,
    definition: Sequence[_Action] = (),
    is_change: bool = True,
) -> int:
    """Make a version in which files replace others; return its number.

    Args:
        target: the table.
        before: the table, at the version that was inspected; None if there is none yet.
        change: the files.
        mark: what the version shows.
        definition: the columns and options of the table, if they change.
        is_change: whether the rows of the table change, or only the files that hold them.

    Raises:
        ConflictError: the table is no longer at that version.
        WarehouseError: `C0942`, it cannot be written.
    """
    version = 0 if before is None else before.version() + 1
    now = time.time_ns() // 1_000_000
    files = list(_file_actions(change, now, is_change=is_change))
    info = {
        "timestamp": now,
        "operation": "WRITE" if is_change else "OPTIMIZE",
        "operationParameters": {},
        "engineInfo": f"corollary/{__version__}",
        MARK_FIELD: asdict(replace(mark, actions=len(files))),
    }
    # The last line shows that none before it is missing, as every line of a file is counted.
    ours = {"appId": target.application, "version": mark.commit, "lastUpdated": now}
    actions = [{"commitInfo": info}, *definition, *files, {"txn": ours}]
    # Characters as they are: `deltalake` reads some pairs of escapes as other characters.
    data = "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in actions)
    entry = entry_path(target.log, version)
    with _committing(target.relation):
        durable_files.make_directory(target.log)
        try:
            durable_files.create_exclusively(entry, data.encode())
        except FileExistsError as error:
            raise ConflictError(
                f"another writer changed the published table of `{target.relation}` at the same "
                "time"
            ) from error
        fault.hit("after_publish")
        durable_files.sync_path(target.log)
        if version and version % CHECKPOINT_INTERVAL_VERSIONS == 0:
            target.write_checkpoint(target.open())
            target.expire_log(time.time())
    return version


def _file_actions(change: FileReplacement, now: int, *, is_change: bool) -> Iterator[_Action]:
    common = {"partitionValues": {}, "dataChange": is_change}
    for old in change.old:
        removed = {"path": old.path, "size": old.size, "deletionTimestamp": now}
        yield {"remove": {**common, **removed, "extendedFileMetadata": True}}
    for new in change.new:
        added = {"path": new.path, "size": new.size, "modificationTime": now}
        yield {"add": {**common, **added, "stats": new.statistics}}
    for each in change.change_data:
        yield {"cdc": {**common, "path": each.path, "size": each.size, "dataChange": False}}


def define_table(
    target: PublishedTable, before: DeltaTable | None, schema: pa.Schema, options: TableOptions
) -> list[_Action]:
    """Return what says that a table has other columns or options from now on, if it has."""
    columns = Schema.from_arrow(schema).to_json()
    known = None if before is None else before.metadata()
    if before is not None and known is not None:
        has_options = known.configuration == options.configuration
        if has_options and before.schema().to_json() == columns:
            return []
    definition = {
        "id": str(uuid.uuid4()) if known is None else str(known.id),
        "name": target.relation,
        "description": "published by corollary; do not write to it",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": columns,
        "partitionColumns": [],
        "configuration": options.configuration,
        "createdTime": time.time_ns() // 1_000_000 if known is None else known.created_time,
    }
    return [*_raised_protocol(before, columns, options), {"metaData": definition}]


def _raised_protocol(
    before: DeltaTable | None, columns: str, options: TableOptions
) -> list[_Action]:
    """Return what readers and writers of a table have to know, if it is more than before.

    A type that old readers do not know is a *feature*, and where one is named, all are.
    """
    has_feed = options.change_data_feed
    held = None if before is None else before.protocol()
    held_version = 0 if held is None else held.min_writer_version
    held_writes = set() if held is None else {*(held.writer_features or ())}
    reads = {"timestampNtz"} if '"timestamp_ntz"' in columns else set()
    if not reads and not held_writes:
        needed = FEED_WRITER_VERSION if has_feed else WRITER_VERSION
        versions = {"minReaderVersion": READER_VERSION, "minWriterVersion": needed}
        return [{"protocol": versions}] if needed > held_version else []
    if held is not None:
        reads |= {*(held.reader_features or ())}
    has_feed |= FEED_WRITER_VERSION <= held_version < FEATURES_WRITER_VERSION
    writes = held_writes | reads | {"appendOnly", "invariants"}
    writes |= {"changeDataFeed"} if has_feed else set()
    named = {"readerFeatures": sorted(reads), "writerFeatures": sorted(writes)}
    versions = {"minReaderVersion": FEATURES_READER_VERSION}
    versions["minWriterVersion"] = FEATURES_WRITER_VERSION
    return [{"protocol": versions | named}] if writes != held_writes else []


@contextmanager
def _committing(relation: str) -> Iterator[None]:
    """Turn errors of the disk and of `deltalake` into ours."""
    fault.hit("before_publish")
    try:
        yield
    except (DeltaError, OSError) as error:
        raise WarehouseError.of(
            "C0942",
            f"`{relation}` cannot be published: {first_line(error)}.",
            None,
            "check the directory of the table, and publish again; the commit itself is safe",
        ) from error
