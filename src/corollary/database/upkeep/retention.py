"""Retention: what a warehouse keeps of its past, and what it lets go.

expired intents → history before the oldest commit to keep → files that nobody speaks of → space

The first two are transactions of the catalog. Whatever a crash leaves behind after them are files
that nobody speaks of, which the next run removes.
"""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from corollary import fault
from corollary.console import Console, SilentConsole
from corollary.database.state import DatabaseState
from corollary.database.warehouse_store import WarehouseStore
from corollary.engines.local.engine import LocalEngine
from corollary.errors import InputError, WarehouseError
from corollary.warehouse.holdings import holdings
from corollary.warehouse.loose_files import Listing, listing, remove
from corollary.warehouse.parts import named_parts
from corollary.warehouse.places import relations_in
from corollary.warehouse.publishing.publisher import Publisher
from corollary.warehouse.publishing.tables import TABLES
from corollary.warehouse.retention import (
    Cut,
    Dropped,
    compact,
    doomed,
    drop,
    expire_intents,
    first_since,
    intents,
)
from corollary.warehouse.warehouse import CATALOG, Warehouse

KEEP_INTENTS = 3600.0
"""Seconds after which a writer without a sign of life is taken for dead."""
DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Retention:
    """What is to be kept; a commit is, if either of the two bounds on history says so.

    Attributes:
        commits: so many of the last commits; the last one always.
        days: the commits of so many days.
        intents: seconds after which a writer is taken for dead.
    """

    commits: int | None = None
    days: float | None = None
    intents: float = KEEP_INTENTS


@dataclass(frozen=True, slots=True)
class Collected:
    """What was let go, or would be.

    Attributes:
        expired: the writers that were given up, as host and process.
        oldest: the first commit that is kept.
        dropped: the rows of history that went.
        has_folded: whether snapshots had to be written first.
        files: how many data files went.
        file_bytes: their bytes.
        catalog_bytes: by how much the catalog's file got smaller.
        table_files: how many files of published tables went.
    """

    expired: tuple[str, ...]
    oldest: int
    dropped: Dropped | None
    has_folded: bool
    files: int
    file_bytes: int
    catalog_bytes: int
    table_files: int
    is_dry: bool

    def as_json(self) -> dict[str, Any]:
        """Return it as `gc` prints it."""
        dropped = self.dropped
        return {
            "dry_run": self.is_dry,
            "expired_intents": list(self.expired),
            "oldest": self.oldest,
            "commits": 0 if dropped is None else dropped.commits,
            "changes": 0 if dropped is None else dropped.changes,
            "snapshots": 0 if dropped is None else dropped.snapshots,
            "indexes": 0 if dropped is None else dropped.indexes,
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
) -> Collected:
    """Let go what is not to be kept; without bounds, only what nobody needs any more.

    Raises:
        InputError: `C0964`, a bound makes no sense.
        WarehouseError: a file cannot be read or removed.
    """
    retention, console = retention or Retention(), console or SilentConsole()
    _demand_sense(retention)
    catalog = warehouse.catalog
    limit = time.time() - retention.intents
    expired = tuple(each.writer for each in intents(catalog) if each.heartbeat <= limit)
    oldest = _oldest(warehouse, retention)
    if is_dry:
        return _foreseen(warehouse, expired, retention, oldest)
    expire_intents(catalog, retention.intents)
    dropped, has_folded = None, False
    if oldest > int(catalog.meta("oldest")):
        console.progress(f"dropping what was before commit {oldest}")
        cut, has_folded = _prepared(warehouse, oldest, console)
        dropped = drop(catalog, cut)
    return finish(warehouse, Outline(expired, dropped, has_folded), console)


@dataclass(frozen=True, slots=True)
class Outline:
    """What has happened in the catalog before files are removed."""

    expired: tuple[str, ...] = ()
    dropped: Dropped | None = None
    has_folded: bool = False


def finish(warehouse: Warehouse, outline: Outline, console: Console) -> Collected:
    """Remove the files that nobody speaks of, and give back what is free."""
    catalog = warehouse.catalog
    fault.hit("during_gc")
    console.progress("removing files")
    found = listing(warehouse.root, catalog)
    gone = set() if found.is_held else found.loose
    if found.is_held:
        console.note("the warehouse is being copied, so all files stay until the next time")
    else:
        remove(warehouse.root, found)
    before = catalog_bytes(warehouse)
    try:
        compact(catalog)
    except WarehouseError:
        console.note("others use the catalog, so its free space was not given back")
    console.done()
    return Collected(
        outline.expired,
        int(catalog.meta("oldest")),
        outline.dropped,
        outline.has_folded,
        len(gone),
        _bytes(found, gone),
        max(0, before - catalog_bytes(warehouse)),
        _clean_tables(warehouse),
        is_dry=False,
    )


def _demand_sense(retention: Retention) -> None:
    for name, value, least in (
        ("commits to keep", retention.commits, 1),
        ("days to keep", retention.days, 0),
        ("seconds to wait for writers", retention.intents, 0),
    ):
        if value is not None and not value >= least:
            raise InputError.of(
                "C0964",
                f"{value} makes no sense as the number of {name}.",
                None,
                f"give a number of at least {least}",
            )


def _oldest(warehouse: Warehouse, retention: Retention) -> int:
    """Return the first commit to keep."""
    catalog = warehouse.catalog
    latest, known = catalog.latest(), int(catalog.meta("oldest"))
    if latest is None or (retention.commits is None and retention.days is None):
        return known
    wanted = latest.number
    if retention.commits is not None:
        wanted = min(wanted, latest.number - retention.commits + 1)
    if retention.days is not None:
        first = first_since(catalog, time.time() - retention.days * DAY)
        wanted = wanted if first is None else min(wanted, first)
    return max(wanted, known)


def _prepared(warehouse: Warehouse, oldest: int, console: Console) -> tuple[Cut, bool]:
    """Return the cut before a commit; if no snapshots are before it, they are written first."""
    cut = _cut(warehouse, oldest)
    if cut is not None:
        return cut, False
    fold_at(warehouse, oldest, console)
    return Cut(oldest, oldest, stored_at(warehouse, oldest)), True


def _cut(warehouse: Warehouse, oldest: int) -> Cut | None:
    """Return the cut before a commit, if there are snapshots to start from."""
    held, relations = holdings(warehouse.catalog), stored_at(warehouse, oldest)
    taken = {each.commit for snapshots in held.snapshots.values() for each in snapshots}
    for fold in sorted((at for at in taken if held.fold <= at <= oldest), reverse=True):
        if not warehouse.catalog.stale(relations, fold):
            return Cut(oldest, fold, relations)
    return None


def stored_at(warehouse: Warehouse, number: int) -> list[str]:
    """Return the relations that are stored at a commit."""
    commit = warehouse.commit_at(number)
    assert commit is not None
    relations = relations_in(warehouse.catalog.program(commit.program).places).relations
    return [name for name, each in relations.items() if each.is_stored]


def fold_at(warehouse: Warehouse, number: int, console: Console) -> None:
    """Write snapshots and an index of a commit."""
    store = WarehouseStore(warehouse)
    past = DatabaseState(LocalEngine(), console=console)
    store.restore(past, number)
    store.fold(past)


def _foreseen(
    warehouse: Warehouse, expired: tuple[str, ...], retention: Retention, oldest: int
) -> Collected:
    """Return what would go."""
    catalog, root = warehouse.catalog, warehouse.root
    dropped, has_folded = None, False
    found = listing(root, catalog)
    limit = time.time() - retention.intents
    dead = {each.id for each in intents(catalog) if each.heartbeat <= limit}
    found = replace(found, writers=found.writers - dead)
    if oldest > int(catalog.meta("oldest")):
        cut = _cut(warehouse, oldest)
        has_folded = cut is None
        dropped = doomed(catalog, cut or Cut(oldest, oldest, stored_at(warehouse, oldest)))
        gone = dropped.paths | named_parts(root, dropped.paths, found.sizes).keys()
        named = {path: kind for path, kind in found.named.items() if path not in gone}
        found = replace(found, named=named)
    loose = set() if found.is_held else found.loose
    return Collected(
        expired, oldest, dropped, has_folded, len(loose), _bytes(found, loose), 0, 0, is_dry=True
    )


def _bytes(found: Listing, paths: set[str]) -> int:
    return sum(found.sizes[path] for path in paths)


def catalog_bytes(warehouse: Warehouse) -> int:
    """Return how large the catalog's file is, with its log; 0 for a server's database."""
    if not warehouse.catalog.is_file:
        return 0
    return sum(
        path.stat().st_size
        for path in (Path(f"{warehouse.root / CATALOG}{end}") for end in ("", "-wal"))
        if path.exists()
    )


def _clean_tables(warehouse: Warehouse) -> int:
    """Remove the files of published tables that no reader can want."""
    if not (warehouse.root / TABLES).exists():
        return 0
    return len(Publisher(warehouse.root, warehouse.catalog).clean())
