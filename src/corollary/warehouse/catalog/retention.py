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
from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa

from corollary.errors import ConflictError
from corollary.warehouse.catalog import schema
from corollary.warehouse.catalog.catalog import Catalog
from corollary.warehouse.catalog.copy_lease import has_copy_lease

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
    table = schema.intents
    with catalog.read_transaction() as connection:
        rows = connection.execute(sa.select(table).order_by(table.c.heartbeat))
        return [Intent(row.id, row.writer, row.heartbeat) for row in rows]


def expire_intents(catalog: Catalog, keep_seconds: float) -> None:
    """Delete intents without a heartbeat for this long; their writers cannot commit any more."""
    table = schema.intents
    with catalog.write_transaction() as connection:
        connection.execute(table.delete().where(table.c.heartbeat <= time.time() - keep_seconds))


# --- history -------------------------------------------------------------------------------------


def first_commit_since(catalog: Catalog, moment: float) -> int | None:
    """Return the first commit that was made at or after a time."""
    table = schema.commits
    with catalog.read_transaction() as connection:
        query = sa.select(sa.func.min(table.c.number)).where(table.c.created >= moment)
        found = connection.execute(query).scalar()
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
            connection.exec_driver_sql("PRAGMA secure_delete = ON")
        for table, condition in _conditions(cut).items():
            connection.execute(table.delete().where(condition))
        _strip_commits(connection, cut)
        connection.execute(_UNUSED_PROGRAMS)
        for name, value in (("oldest", cut.oldest), ("fold", cut.fold)):
            _raise_to(connection, name, value)
    return found


def _raise_to(connection: sa.Connection, name: str, value: int) -> None:
    # Never lower: another `gc` may have dropped more meanwhile.
    meta = schema.meta
    query = sa.select(meta.c.value).where(meta.c.name == name)
    value = max(value, int(connection.execute(query).scalar() or 0))
    connection.execute(meta.delete().where(meta.c.name == name))
    connection.execute(meta.insert().values(name=name, value=str(value)))


_UNUSED_PROGRAMS = schema.programs.delete().where(
    schema.programs.c.id.not_in(sa.select(schema.commits.c.program))
)


def _conditions(cut: HistoryCut) -> dict[sa.Table, sa.ColumnElement[bool]]:
    """Return which rows are deleted from each table, in an order that keeps foreign keys valid."""
    changes, snapshots, indexes = schema.changes, schema.snapshots, schema.indexes
    outbox = schema.outbox
    later = snapshots.alias()
    has_later = (
        sa.select(later.c.relation)
        .where(
            later.c.relation == snapshots.c.relation,
            later.c.commit_number > snapshots.c.commit_number,
            later.c.commit_number <= cut.fold,
        )
        .exists()
    )
    is_gone = snapshots.c.relation.not_in(sorted(cut.relations))
    return {
        changes: changes.c.commit_number <= cut.last_change,
        snapshots: sa.and_(snapshots.c.commit_number <= cut.fold, sa.or_(has_later, is_gone)),
        indexes: indexes.c.commit_number < cut.fold,
        outbox: sa.and_(
            outbox.c.commit_number <= cut.last_change,
            sa.or_(outbox.c.delivered.is_not(None), sa.literal(cut.is_erasure)),
        ),
    }


def _is_dropped(cut: HistoryCut) -> sa.ColumnElement[bool]:
    return schema.commits.c.number < cut.fold


def _strip_commits(connection: sa.Connection, cut: HistoryCut) -> None:
    """Delete commits; of those that are still referenced a stub without content stays."""
    commits, outbox = schema.commits, schema.outbox
    is_referenced = sa.or_(  # by a client that repeats its key, or by an alert
        commits.c.idempotency.is_not(None),
        commits.c.number.in_(sa.select(outbox.c.commit_number)),
    )
    program = sa.select(commits.c.program).where(commits.c.number == cut.oldest)
    program_id = connection.execute(program).scalar_one()
    connection.execute(commits.delete().where(_is_dropped(cut), sa.not_(is_referenced)))
    connection.execute(
        commits.update()
        .where(_is_dropped(cut))
        .values(program=program_id, payload="[]", stats="{}")
    )


def _dropped_rows(connection: sa.Connection, cut: HistoryCut) -> DroppedHistory:
    counts: dict[str, int] = {}
    paths: set[str] = set()
    shared: set[str] = set()  # of rows that stay: a snapshot may be the file of a change
    for table, condition in _conditions(cut).items():
        query = sa.select(sa.func.count()).select_from(table).where(condition)
        counts[table.name] = int(connection.execute(query).scalar_one())
        if "path" in table.c:
            rows = connection.execute(sa.select(table.c.path).where(condition))
            paths |= {row.path for row in rows if row.path is not None}
            rest = connection.execute(sa.select(table.c.path).where(sa.not_(condition)))
            shared |= {row.path for row in rest}
    oldest = int(
        connection.execute(
            sa.select(schema.meta.c.value).where(schema.meta.c.name == "oldest")
        ).scalar_one()
    )
    number = schema.commits.c.number
    query = sa.select(sa.func.count()).where(number < cut.oldest, number >= oldest)
    return DroppedHistory(
        int(connection.execute(query).scalar_one()),
        counts[schema.changes.name],
        counts[schema.snapshots.name],
        counts[schema.indexes.name],
        frozenset(paths - shared),
    )


# --- superseded folds ----------------------------------------------------------------------------


def drop_superseded_folds(catalog: Catalog, number: int) -> list[str]:
    """Delete the folds that the fold of a commit makes superfluous; return files to remove.

    While a process copies the warehouse there are none: `gc` removes them later.
    """
    with catalog.write_transaction() as connection:
        paths = [*_thin_indexes(connection, number), *_thin_snapshots(connection, number)]
        return [] if has_copy_lease(connection) else paths


def _thin_indexes(connection: sa.Connection, number: int) -> list[str]:
    table = schema.indexes
    is_older = table.c.commit_number < number
    paths = connection.execute(sa.select(table.c.path).where(is_older)).scalars().all()
    connection.execute(table.delete().where(is_older))
    return list(paths)


def _thin_snapshots(connection: sa.Connection, number: int) -> list[str]:
    table = schema.snapshots
    columns = (table.c.relation, table.c.commit_number, table.c.path)
    rows = connection.execute(sa.select(*columns).where(table.c.commit_number <= number))
    paths: dict[str, dict[int, str]] = {}
    for row in rows:
        paths.setdefault(row.relation, {})[row.commit_number] = row.path
    removed: list[str] = []
    for relation, by_commit in paths.items():
        for commit in by_commit.keys() - _kept_snapshots(sorted(by_commit)):
            same = (table.c.relation == relation) & (table.c.commit_number == commit)
            connection.execute(table.delete().where(same))
            removed.append(by_commit[commit])
    changes = schema.changes.c.path
    shared = connection.execute(sa.select(changes).where(changes.in_(removed))).scalars().all()
    return [path for path in removed if path not in shared]


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
    with catalog.raw_cursor() as cursor:
        size, pages, free = (
            cursor.execute(f"PRAGMA {each}").fetchone()[0]
            for each in ("page_size", "page_count", "freelist_count")
        )
        is_worth_it = free * size >= VACUUM_MIN_FREE_BYTES and free * VACUUM_PAGES_PER_FREE >= pages
        if is_worth_it:
            cursor.execute("VACUUM")
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return bool(is_worth_it)


def rewrite_catalog(catalog: Catalog) -> None:
    """Rewrite the catalog, so that no trace of deleted rows is left on the disk.

    Raises:
        ConflictError: another process keeps reading it.
    """
    with catalog.raw_cursor() as cursor:
        if not catalog.is_file:
            for table in schema.metadata.sorted_tables:
                cursor.execute(f"VACUUM FULL {table.name}")
            return
        cursor.execute("VACUUM")
        # The old pages are in the file until the log is moved into it, which readers prevent.
        is_busy, *_ = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if is_busy:
        raise ConflictError(
            "another process reads the catalog, so that deleted rows may still be on the disk\n"
            "  = close what uses the warehouse, and run this again"
        )
