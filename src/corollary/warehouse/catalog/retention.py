"""Retention: what is deleted from a catalog, which is dead writers, history and older folds.

Let `oldest` be the first commit to keep, and `fold` a commit not after it, at which every relation
has a snapshot. The state at every kept commit is these snapshots and the changes since, so

| rows | that are deleted |
|---|---|
| changes | of commits up to the fold, except the oldest commit itself |
| indexes | of commits before the fold |
| snapshots | of relations that have a later one up to the fold, or no longer exist |
| commits | before the fold; of those with an idempotency key a stub stays |
| outbox | of commits whose changes are deleted, once they are delivered |
| programs | that no commit has |

All of them are deleted in one transaction, and their files afterwards, as orphans: a crash in
between leaves files without rows, never rows without files.

A new fold also makes older ones superfluous. Of the indexes only the newest is used: it holds the
current state. Snapshots also shorten the way to earlier commits: of each relation the first one
stays, and of the others those whose distance to the newest at least doubles from one to the next.
"""

import time
from collections.abc import Collection, Iterable
from typing import Any

from corollary.data_class import dataclass
from corollary.errors import ConflictError
from corollary.warehouse.catalog import idempotency_keys, schema
from corollary.warehouse.catalog.catalog import Catalog
from corollary.warehouse.catalog.connections import CatalogConnection
from corollary.warehouse.catalog.copy_lease import has_copy_lease

INTENT_TIMEOUT_SECONDS = 3600.0
"""The time without a heartbeat after which a writer is considered dead."""
VACUUM_MIN_FREE_BYTES = 1 << 18
"""With less free space than this, a catalog is not worth rewriting,"""
VACUUM_PAGES_PER_FREE = 4
"""nor with fewer than one free page in this number of pages."""


@dataclass(frozen=True, slots=True)
class Intent:
    """A writer that is running, or has died; `heartbeat` is its last sign of life."""

    id: str
    writer: str
    heartbeat: float


@dataclass(frozen=True, slots=True)
class HistoryCut:
    """Where the kept history begins.

    Attributes:
        oldest: the first commit that is kept.
        fold: a commit not after it at which every relation has a snapshot.
        relations: those that are stored at the oldest commit.
        is_erasure: whether the changes of the oldest commit itself, and undelivered alerts, are
            deleted too.
    """

    oldest: int
    fold: int
    relations: Collection[str]
    is_erasure: bool = False

    @property
    def last_change(self) -> int:
        """The last commit whose changes are deleted."""
        return self.fold if self.is_erasure else min(self.fold, self.oldest - 1)


@dataclass(frozen=True, slots=True)
class DroppedHistory:
    """How many rows were deleted, and the files that nothing references any more."""

    commits: int
    changes: int
    snapshots: int
    indexes: int
    paths: frozenset[str]


# --- writers -------------------------------------------------------------------------------------


def list_intents(catalog: Catalog) -> list[Intent]:
    """Return the intents of writers, the oldest heartbeat first."""
    query = "SELECT id, writer, heartbeat FROM corollary_intents ORDER BY heartbeat"
    with catalog.read_transaction() as connection:
        return [Intent(*row) for row in connection.rows(query)]


def expire_intents(catalog: Catalog, keep_seconds: float) -> None:
    """Delete intents without a heartbeat for this long; their writers cannot commit any more."""
    last = time.time() - keep_seconds
    with catalog.write_transaction() as connection:
        connection.execute("DELETE FROM corollary_intents WHERE heartbeat <= ?", last)


# --- history -------------------------------------------------------------------------------------


def first_commit_since(catalog: Catalog, moment: float) -> int | None:
    """Return the first commit that was made at or after a time."""
    query = "SELECT min(number) FROM corollary_commits WHERE created >= ?"
    with catalog.read_transaction() as connection:
        found = connection.scalar(query, moment)
    return None if found is None else int(found)


def preview_drop(catalog: Catalog, cut: HistoryCut) -> DroppedHistory:
    """Return what `drop` would delete."""
    with catalog.read_transaction() as connection:
        return _dropped_rows(connection, cut)


def drop_history(catalog: Catalog, cut: HistoryCut) -> DroppedHistory:
    """Delete the history before a commit; return what was deleted."""
    with catalog.write_transaction() as connection:
        found = _dropped_rows(connection, cut)
        if catalog.is_file and cut.is_erasure:
            # Erasure: SQLite overwrites deleted rows with zeros instead of only unlinking them.
            connection.execute("PRAGMA secure_delete = ON")
        # In an order that keeps foreign keys valid.
        connection.execute(
            "DELETE FROM corollary_changes WHERE commit_number <= ?", cut.last_change
        )
        _delete_snapshots(connection, _superseded_snapshots(connection, cut))
        connection.execute("DELETE FROM corollary_indexes WHERE commit_number < ?", cut.fold)
        connection.execute(
            "DELETE FROM corollary_outbox"
            " WHERE commit_number <= ? AND (delivered IS NOT NULL OR ?)",
            cut.last_change,
            cut.is_erasure,
        )
        _strip_commits(connection, cut)
        connection.execute(
            "DELETE FROM corollary_programs WHERE id NOT IN (SELECT program FROM corollary_commits)"
        )
        for name, value in (("oldest", cut.oldest), ("fold", cut.fold)):
            # Never lower: another `gc` may have dropped more meanwhile.
            known = int(catalog.find_meta(connection, name) or 0)
            catalog.replace_meta(connection, name, str(max(value, known)))
    return found


def _superseded_snapshots(connection: CatalogConnection, cut: HistoryCut) -> list[Any]:
    """Return the snapshots up to the fold that have a later one, or belong to no relation."""
    query = "SELECT relation, commit_number, path FROM corollary_snapshots WHERE commit_number <= ?"
    rows = connection.rows(query, cut.fold)
    newest: dict[str, int] = {}
    for row in rows:
        newest[row.relation] = max(row.commit_number, newest.get(row.relation, 0))
    return [
        row
        for row in rows
        if row.commit_number < newest[row.relation] or row.relation not in cut.relations
    ]


def _delete_snapshots(connection: CatalogConnection, rows: Iterable[Any]) -> None:
    connection.execute_many(
        "DELETE FROM corollary_snapshots WHERE relation = ? AND commit_number = ?",
        [(row.relation, row.commit_number) for row in rows],
    )


def _strip_commits(connection: CatalogConnection, cut: HistoryCut) -> None:
    """Delete commits; of those that are still referenced a stub without content stays.

    They are referenced by clients that repeat their key, and by alerts.
    """
    program = connection.scalar(
        "SELECT program FROM corollary_commits WHERE number = ?", cut.oldest
    )
    statement = (
        "DELETE FROM corollary_commits WHERE number < ? AND idempotency IS NULL"
        " AND number NOT IN (SELECT commit_number FROM corollary_outbox)"
    )
    if idempotency_keys.TABLE in connection.tables():
        statement += " AND number NOT IN (SELECT commit_number FROM corollary_keys)"
    connection.execute(statement, cut.fold)
    connection.execute(
        "UPDATE corollary_commits SET program = ?, payload = '[]', stats = '{}' WHERE number < ?",
        program,
        cut.fold,
    )


def _dropped_rows(connection: CatalogConnection, cut: HistoryCut) -> DroppedHistory:
    changes = connection.column(
        "SELECT path FROM corollary_changes WHERE commit_number <= ?", cut.last_change
    )
    indexes = connection.column(
        "SELECT path FROM corollary_indexes WHERE commit_number < ?", cut.fold
    )
    snapshots = [row.path for row in _superseded_snapshots(connection, cut)]
    # A snapshot may be the file of a change: one that stays keeps the file.
    staying = {*connection.column("SELECT path FROM corollary_snapshots")} - {*snapshots}
    staying |= {
        *connection.column(
            "SELECT path FROM corollary_changes WHERE commit_number > ?", cut.last_change
        )
    }
    oldest = connection.scalar("SELECT value FROM corollary_meta WHERE name = 'oldest'")
    commits = connection.scalar(
        "SELECT count(*) FROM corollary_commits WHERE number < ? AND number >= ?",
        cut.oldest,
        int(oldest),
    )
    paths = frozenset({*changes, *snapshots, *indexes} - staying - {None})
    return DroppedHistory(int(commits), len(changes), len(snapshots), len(indexes), paths)


# --- superseded folds ----------------------------------------------------------------------------


def drop_superseded_folds(catalog: Catalog, number: int) -> list[str]:
    """Delete the folds that the fold of a commit makes superfluous; return files to remove.

    While a process copies the warehouse there are none: `gc` removes them later.
    """
    with catalog.write_transaction() as connection:
        paths = [*_thin_indexes(connection, number), *_thin_snapshots(connection, number)]
        return [] if has_copy_lease(connection) else paths


def _thin_indexes(connection: CatalogConnection, number: int) -> list[str]:
    paths = connection.column("SELECT path FROM corollary_indexes WHERE commit_number < ?", number)
    connection.execute("DELETE FROM corollary_indexes WHERE commit_number < ?", number)
    return paths


def _thin_snapshots(connection: CatalogConnection, number: int) -> list[str]:
    query = "SELECT relation, commit_number, path FROM corollary_snapshots WHERE commit_number <= ?"
    by_relation: dict[str, list[Any]] = {}
    for row in connection.rows(query, number):
        by_relation.setdefault(row.relation, []).append(row)
    removed = []
    for rows in by_relation.values():
        kept = _kept_snapshots(sorted(row.commit_number for row in rows))
        removed += [row for row in rows if row.commit_number not in kept]
    _delete_snapshots(connection, removed)
    changes = {*connection.column("SELECT path FROM corollary_changes WHERE path IS NOT NULL")}
    return [row.path for row in removed if row.path not in changes]


def _kept_snapshots(commits: list[int]) -> set[int]:
    """Return which snapshots of a relation stay, by their commits in order.

    >>> sorted(_kept_snapshots([1, 2, 3, 4, 5, 6, 7, 8, 9]))
    [1, 5, 7, 8, 9]
    """
    *older, newest = commits
    kept, distance = {newest, commits[0]}, 0
    for commit in reversed(older):
        if newest - commit >= 2 * distance:
            kept.add(commit)
            distance = newest - commit
    return kept


# --- the catalog's own space ---------------------------------------------------------------------


def compact_catalog(catalog: Catalog) -> bool:
    """Return free space of an SQLite catalog to the file system; return whether it was rewritten.

    A server does that itself.
    """
    if not catalog.is_file:
        return False
    with catalog.outside_transactions() as connection:
        size, pages, free = (
            connection.scalar(f"PRAGMA {each}")
            for each in ("page_size", "page_count", "freelist_count")
        )
        is_worth_it = free * size >= VACUUM_MIN_FREE_BYTES and free * VACUUM_PAGES_PER_FREE >= pages
        if is_worth_it:
            connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return bool(is_worth_it)


def rewrite_catalog(catalog: Catalog) -> None:
    """Rewrite the catalog, so that no trace of deleted rows is left on the disk.

    Raises:
        ConflictError: another process keeps reading it.
    """
    with catalog.outside_transactions() as connection:
        if not catalog.is_file:
            for table in schema.TABLES:
                connection.execute(f"VACUUM FULL {table}")
            return
        connection.execute("VACUUM")
        # The old pages are in the file until the log is moved into it, which readers prevent.
        is_busy = connection.scalar("PRAGMA wal_checkpoint(TRUNCATE)")
    if is_busy:
        raise ConflictError(
            "another process reads the catalog, so that deleted rows may still be on the disk\n"
            "  = close what uses the warehouse, and run this again"
        )
