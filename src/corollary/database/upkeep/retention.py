"""Retention: how much history a warehouse keeps, and the removal of the rest.

expired intents → history before the oldest commit to keep → files without references → space

The first two are transactions of the catalog. A crash after them leaves only files without
references, which the next run removes.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from corollary import fault
from corollary.console import Console, Phase, SilentConsole
from corollary.core.engine import Engine
from corollary.data_class import dataclass
from corollary.database.engines import create_engine
from corollary.database.options import SEQUENTIAL, DatabaseOptions
from corollary.database.state import DatabaseState
from corollary.database.warehouse_store import WarehouseStore
from corollary.engines.local.engine import LocalEngine
from corollary.errors import InputError, WarehouseError, is_disk_full
from corollary.warehouse.catalog.catalog_rows import Commit, NewCommit
from corollary.warehouse.catalog.inventory import read_inventory
from corollary.warehouse.catalog.program_layout import program_of_layout
from corollary.warehouse.catalog.replica_records import ReplicaRecords
from corollary.warehouse.catalog.retention import (
    INTENT_TIMEOUT_SECONDS,
    DroppedHistory,
    HistoryCut,
    compact_catalog,
    drop_history,
    expire_intents,
    first_commit_since,
    list_intents,
    preview_drop,
)
from corollary.warehouse.files import places
from corollary.warehouse.files.multi_file_table import find_lists
from corollary.warehouse.files.object_path import ObjectPath
from corollary.warehouse.orphan_files import list_data_files, remove_orphans
from corollary.warehouse.publishing.publisher import Publisher
from corollary.warehouse.warehouse import RelationDelta, Warehouse
from corollary.warehouse.warehouse_catalog import (
    SCRATCH_DIRECTORY,
    TABLES_DIRECTORY,
    scratch_directory,
)

DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Retention:
    """What to keep; a commit is kept if either of the two bounds on history says so.

    Attributes:
        commits: how many of the last commits; the last one is always kept.
        days: of how many days the commits.
        intents: seconds without a heartbeat after which a writer is considered dead.
    """

    commits: int | None = None
    days: float | None = None
    intents: float = INTENT_TIMEOUT_SECONDS


@dataclass(frozen=True, slots=True)
class RetentionResult:
    """What was removed, or would be in a dry run.

    Attributes:
        expired: the writers that were considered dead, as host and process.
        oldest: the first commit that is kept.
        dropped: the rows of history that were removed.
        has_folded: whether snapshots had to be written first.
        files: how many data files were removed.
        file_bytes: their size.
        catalog_bytes: by how much the catalog's file became smaller.
        table_files: how many files of published tables were removed.
    """

    expired: tuple[str, ...]
    oldest: int
    dropped: DroppedHistory | None
    has_folded: bool
    files: int
    file_bytes: int
    catalog_bytes: int
    table_files: int
    is_dry: bool

    def as_json(self) -> dict[str, Any]:
        """Return the result as `gc` prints it."""
        dropped = self.dropped or DroppedHistory(0, 0, 0, 0, frozenset())
        return {
            "dry_run": self.is_dry,
            "expired_intents": list(self.expired),
            "oldest": self.oldest,
            "commits": dropped.commits,
            "changes": dropped.changes,
            "snapshots": dropped.snapshots,
            "indexes": dropped.indexes,
            "folded": self.has_folded,
            "files": self.files,
            "file_bytes": self.file_bytes,
            "catalog_bytes": self.catalog_bytes,
            "table_files": self.table_files,
        }


def collect(
    warehouse: Warehouse,
    retention: Retention | None = None,
    *,
    is_dry: bool = False,
    console: Console | None = None,
) -> RetentionResult:
    """Remove what is not to be kept; without bounds, only what has no references.

    Raises:
        InputError: `C0964`, a bound is not possible.
        WarehouseError: a file cannot be read or removed.
    """
    retention, console = retention or Retention(), console or SilentConsole()
    _check_bounds(retention)
    catalog = warehouse.catalog
    limit = time.time() - retention.intents
    expired = tuple(each.writer for each in list_intents(catalog) if each.heartbeat <= limit)
    oldest = _oldest(warehouse, retention)
    if is_dry:
        return _preview(warehouse, expired, retention, oldest)
    console.enter(Phase.REMOVE)
    root = warehouse.root
    removed = _make_room(warehouse) if isinstance(root, Path) and is_disk_full(root) else (0, 0)
    expire_intents(catalog, retention.intents)
    dropped, has_folded = None, False
    if oldest > int(catalog.meta("oldest")):
        console.progress(f"dropping what was before commit {oldest}")
        ReplicaRecords(catalog).skip_unchanged(catalog.latest_number())
        cut, has_folded = _prepare_cut(warehouse, oldest, console)
        dropped = drop_history(catalog, cut)
    result = remove_files(
        warehouse, console, dropped, expired, has_folded=has_folded, removed=removed
    )
    _abort_uploads(warehouse, limit, console)
    _remove_scratch(warehouse.root, console)
    return result


def _make_room(warehouse: Warehouse) -> tuple[int, int]:
    """Remove files without references, for which nothing is written; return how many, and bytes."""
    found = list_data_files(warehouse.root, warehouse.catalog)
    if found.has_copy_lease:
        return 0, 0
    remove_orphans(warehouse.root, found)
    return len(found.orphans), sum(found.sizes[path] for path in found.orphans)


def remove_files(
    warehouse: Warehouse,
    console: Console,
    dropped: DroppedHistory | None,
    expired: tuple[str, ...] = (),
    *,
    has_folded: bool = False,
    removed: tuple[int, int] = (0, 0),
) -> RetentionResult:
    """Remove files without references, and free space in the catalog.

    Args:
        warehouse: where.
        console: shows what happens.
        dropped: what of the history was removed before.
        expired: the writers that were considered dead.
        has_folded: whether snapshots had to be written first.
        removed: how many files were removed before, and their size.
    """
    catalog = warehouse.catalog
    fault.hit("during_gc")
    progress = console.progress("removing files")
    found = list_data_files(warehouse.root, catalog)
    gone = set() if found.has_copy_lease else found.orphans
    if found.has_copy_lease:
        console.note("the warehouse is being copied, so all files are kept until the next run")
    else:
        remove_orphans(warehouse.root, found)
        progress.advance(bytes=sum(found.sizes[path] for path in gone))
    before = warehouse.catalog_bytes
    try:
        compact_catalog(catalog)
    except WarehouseError:
        console.note("others use the catalog, so its free space was not released")
    console.enter(Phase.OTHER)
    return RetentionResult(
        expired,
        int(catalog.meta("oldest")),
        dropped,
        has_folded,
        removed[0] + len(gone),
        removed[1] + sum(found.sizes[path] for path in gone),
        max(0, before - warehouse.catalog_bytes),
        _clean_tables(warehouse),
        is_dry=False,
    )


def _check_bounds(retention: Retention) -> None:
    for name, value, least in (
        ("commits to keep", retention.commits, 1),
        ("days to keep", retention.days, 0),
        ("seconds to wait for writers", retention.intents, 0),
    ):
        if value is not None and not value >= least:
            raise InputError.of(
                "C0964",
                f"{value} is not a possible number of {name}.",
                None,
                f"give a number of at least {least}",
            )


def _oldest(warehouse: Warehouse, retention: Retention) -> int:
    """Return the first commit to keep."""
    catalog = warehouse.catalog
    latest, known = catalog.latest_commit(), int(catalog.meta("oldest"))
    if latest is None or (retention.commits is None and retention.days is None):
        return known
    wanted = latest.number
    if retention.commits is not None:
        wanted = min(wanted, latest.number - retention.commits + 1)
    if retention.days is not None:
        first = first_commit_since(catalog, time.time() - retention.days * DAY_SECONDS)
        wanted = wanted if first is None else min(wanted, first)
    return max(wanted, known)


def _prepare_cut(warehouse: Warehouse, oldest: int, console: Console) -> tuple[HistoryCut, bool]:
    """Return the cut before a commit; if it needs snapshots, they are written first."""
    cut = _cut(warehouse, oldest)
    if cut is not None:
        return cut, False
    fold_at(warehouse, oldest, console)
    return HistoryCut(oldest, oldest, stored_relations_at(warehouse, oldest)), True


def _cut(warehouse: Warehouse, oldest: int) -> HistoryCut | None:
    """Return the cut before a commit, if there are snapshots and an index to start from.

    Whole relations that were recorded are snapshots, too; ranks and counts are in an index only.
    """
    held, relations = read_inventory(warehouse.catalog), stored_relations_at(warehouse, oldest)
    for fold in sorted((at for at in held.indexes if held.fold <= at <= oldest), reverse=True):
        if not warehouse.catalog.relations_to_fold(relations, fold):
            return HistoryCut(oldest, fold, relations)
    return None


def stored_relations_at(warehouse: Warehouse, number: int) -> list[str]:
    """Return the stored relations of a commit."""
    commit = warehouse.commit_at(number)
    assert commit is not None
    relations = program_of_layout(warehouse.catalog.program(commit.program).layout).relations
    return [name for name, each in relations.items() if each.is_stored]


def fold_at(warehouse: Warehouse, number: int, console: Console) -> None:
    """Write snapshots and an index of a commit; what is in partitions is read one by one."""
    make: Callable[[], Engine] = LocalEngine
    if warehouse.has_partitions(number):
        options, scratch = DatabaseOptions(SEQUENTIAL), scratch_directory(warehouse.root)
        make = partial(create_engine, options, scratch=scratch)
    store = WarehouseStore(warehouse, make)
    past = DatabaseState(LocalEngine(), console=console)
    try:
        store.restore(past, number)
        store.fold(past)
    finally:
        past.close()


def force_restore(
    warehouse: Warehouse,
    latest: Commit,
    changes: Mapping[str, RelationDelta] | None = None,
    payload: frozenset[str] = frozenset(),
) -> int:
    """Make a commit after which every process restores from what is stored; return its number.

    Its program is a new one with the same text: a process that has the database open sees that
    another program is in force, and restores. One that is about to commit or to fold gets a
    conflict.

    Raises:
        ConflictError: another process has committed first.
    """
    stored = warehouse.catalog.program(latest.program)
    new = NewCommit(latest.number, payload, {}, program=(stored.text, stored.layout))
    return warehouse.commit(new, changes or {})


def _preview(
    warehouse: Warehouse, expired: tuple[str, ...], retention: Retention, oldest: int
) -> RetentionResult:
    """Return what would be removed."""
    catalog, root = warehouse.catalog, warehouse.root
    dropped, has_folded = None, False
    found = list_data_files(root, catalog)
    limit = time.time() - retention.intents
    dead = {each.id for each in list_intents(catalog) if each.heartbeat <= limit}
    found = replace(found, intents=found.intents - dead)
    if oldest > int(catalog.meta("oldest")):
        cut = _cut(warehouse, oldest)
        has_folded = cut is None
        dropped = preview_drop(
            catalog, cut or HistoryCut(oldest, oldest, stored_relations_at(warehouse, oldest))
        )
        gone = dropped.paths | find_lists(root, dropped.paths, found.sizes).keys()
        named = {path: kind for path, kind in found.referenced.items() if path not in gone}
        found = replace(found, referenced=named)
    loose = set() if found.has_copy_lease else found.orphans
    size = sum(found.sizes[path] for path in loose)
    return RetentionResult(
        expired, oldest, dropped, has_folded, len(loose), size, 0, 0, is_dry=True
    )


def _abort_uploads(warehouse: Warehouse, before: float, console: Console) -> None:
    """Abort what dead writers have begun to put into an object store."""
    if not isinstance(warehouse.root, ObjectPath):
        return
    from corollary.warehouse.files.unfinished_uploads import UploadsUnknownError, abort_uploads

    try:
        aborted = abort_uploads(warehouse.root, before)
    except UploadsUnknownError as error:
        console.note(f"unfinished uploads were not looked for: {error}; let the bucket expire them")
    else:
        if aborted:
            console.note(f"{aborted} unfinished upload{'s' if aborted > 1 else ''} aborted")


def _remove_scratch(root: places.Place, console: Console) -> None:
    """Remove what dead processes have left for their tasks in an object store."""
    if not isinstance(root, ObjectPath):
        return
    place, latest, found = root / SCRATCH_DIRECTORY, dict[str, float](), list[str]()
    for path, status in place.entries():
        name = path.relative_to(place)
        owner = name.partition("/")[0]
        latest[owner] = max(latest.get(owner, 0.0), status.st_mtime)
        found.append(name)
    limit = time.time() - DAY_SECONDS  # the living write every ten minutes
    dead = {owner for owner, written in latest.items() if written < limit}
    places.remove_files(place, [each for each in found if each.partition("/")[0] in dead])
    if dead:
        console.note(f"files for tasks of {len(dead)} dead processes removed")


def _clean_tables(warehouse: Warehouse) -> int:
    """Remove the files of published tables that no reader can need."""
    if not (warehouse.root / TABLES_DIRECTORY).is_dir():
        return 0
    return len(Publisher(warehouse.root, warehouse.catalog).clean())
