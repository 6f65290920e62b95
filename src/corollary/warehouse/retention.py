"""What a catalog lets go: the history before a commit, and writers that were given up for dead.

Let `oldest` be the first commit to keep, and `fold` a commit not after it, at which every relation
has a snapshot. The state at every kept commit is these snapshots and the changes since, so

| rows | that go |
|---|---|
| changes | of commits up to the fold, but for the oldest commit itself |
| indexes | of commits before the fold |
| snapshots | of relations that have a later one up to the fold, or are no longer there |
| commits | before the fold; of those with an idempotency key a stub stays |
| outbox | of commits whose changes go, once they are delivered |
| programs | that no commit has |

All of them go in one transaction, and their files afterwards, as files that nobody speaks of.
"""

import time
from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa

from corollary.errors import ConflictError
from corollary.warehouse import schema
from corollary.warehouse.catalog import Catalog

ENOUGH_BYTES = 1 << 18
"""A catalog with less free space is not worth being rewritten."""
ENOUGH_SHARE = 4
"""Nor is one of which less than one in so many pages is free."""


@dataclass(frozen=True, slots=True)
class Intent:
    """A writer under way, or one that has died."""

    id: str
    writer: str
    heartbeat: float


@dataclass(frozen=True, slots=True)
class Cut:
    """Where history begins.

    Attributes:
        oldest: the first commit that is kept.
        fold: a commit not after it at which every relation has a snapshot.
        relations: those that are stored at the oldest commit.
        is_bare: whether what the oldest commit itself changed goes too, and what nobody was told.
    """

    oldest: int
    fold: int
    relations: Collection[str]
    is_bare: bool = False

    @property
    def last_change(self) -> int:
        """The last commit whose changes go."""
        return self.fold if self.is_bare else min(self.fold, self.oldest - 1)


@dataclass(frozen=True, slots=True)
class Dropped:
    """How many rows went, and which files they named."""

    commits: int
    changes: int
    snapshots: int
    indexes: int
    paths: frozenset[str]


# --- writers -------------------------------------------------------------------------------------


def intents(catalog: Catalog) -> list[Intent]:
    """Return the writers under way, oldest first."""
    table = schema.intents
    with catalog.reading() as connection:
        rows = connection.execute(sa.select(table).order_by(table.c.heartbeat))
        return [Intent(row.id, row.writer, row.heartbeat) for row in rows]


def expire_intents(catalog: Catalog, keep_seconds: float) -> None:
    """Give up writers that have shown no sign of life for so long; they cannot commit any more."""
    table = schema.intents
    with catalog.writing() as connection:
        connection.execute(table.delete().where(table.c.heartbeat <= time.time() - keep_seconds))


# --- history -------------------------------------------------------------------------------------


def first_since(catalog: Catalog, moment: float) -> int | None:
    """Return the first commit that was made since a moment."""
    table = schema.commits
    with catalog.reading() as connection:
        query = sa.select(sa.func.min(table.c.number)).where(table.c.created >= moment)
        found = connection.execute(query).scalar()
    return None if found is None else int(found)


def doomed(catalog: Catalog, cut: Cut) -> Dropped:
    """Return what would go."""
    with catalog.reading() as connection:
        return _doomed(connection, cut)


def drop(catalog: Catalog, cut: Cut) -> Dropped:
    """Let history begin at a commit; return what went."""
    with catalog.writing() as connection:
        found = _doomed(connection, cut)
        is_secure = catalog.is_file and cut.is_bare
        if is_secure:
            connection.exec_driver_sql("PRAGMA secure_delete = ON")
        for table, condition in _conditions(cut).items():
            connection.execute(table.delete().where(condition))
        _strip_commits(connection, cut)
        connection.execute(_UNUSED_PROGRAMS)
        for name, value in (("oldest", cut.oldest), ("fold", cut.fold)):
            _raise_to(connection, name, value)
    return found


def _raise_to(connection: sa.Connection, name: str, value: int) -> None:
    meta = schema.meta
    query = sa.select(meta.c.value).where(meta.c.name == name)
    value = max(value, int(connection.execute(query).scalar() or 0))
    connection.execute(meta.delete().where(meta.c.name == name))
    connection.execute(meta.insert().values(name=name, value=str(value)))


_UNUSED_PROGRAMS = schema.programs.delete().where(
    schema.programs.c.id.not_in(sa.select(schema.commits.c.program))
)


def _conditions(cut: Cut) -> dict[sa.Table, sa.ColumnElement[bool]]:
    """Return which rows go, table by table, in an order that no reference forbids."""
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
            sa.or_(outbox.c.delivered.is_not(None), sa.literal(cut.is_bare)),
        ),
    }


def _is_dropped(cut: Cut) -> sa.ColumnElement[bool]:
    return schema.commits.c.number < cut.fold


def _strip_commits(connection: sa.Connection, cut: Cut) -> None:
    """Take commits away; of those that somebody may still ask for a stub stays."""
    commits, outbox = schema.commits, schema.outbox
    is_asked = sa.or_(
        commits.c.idempotency.is_not(None),
        commits.c.number.in_(sa.select(outbox.c.commit_number)),
    )
    program = sa.select(commits.c.program).where(commits.c.number == cut.oldest)
    kept = connection.execute(program).scalar_one()
    connection.execute(commits.delete().where(_is_dropped(cut), sa.not_(is_asked)))
    connection.execute(
        commits.update().where(_is_dropped(cut)).values(program=kept, payload="[]", stats="{}")
    )


def _doomed(connection: sa.Connection, cut: Cut) -> Dropped:
    counts: dict[str, int] = {}
    paths: set[str] = set()
    for table, condition in _conditions(cut).items():
        query = sa.select(sa.func.count()).select_from(table).where(condition)
        counts[table.name] = int(connection.execute(query).scalar_one())
        if "path" in table.c:
            rows = connection.execute(sa.select(table.c.path).where(condition))
            paths |= {row.path for row in rows if row.path is not None}
    oldest = int(
        connection.execute(
            sa.select(schema.meta.c.value).where(schema.meta.c.name == "oldest")
        ).scalar_one()
    )
    number = schema.commits.c.number
    query = sa.select(sa.func.count()).where(number < cut.oldest, number >= oldest)
    return Dropped(
        int(connection.execute(query).scalar_one()),
        counts[schema.changes.name],
        counts[schema.snapshots.name],
        counts[schema.indexes.name],
        frozenset(paths),
    )


# --- the catalog's own space ---------------------------------------------------------------------


def compact(catalog: Catalog) -> bool:
    """Give free space of the catalog back where that pays; return whether it was rewritten.

    A server sees to that itself.
    """
    if not catalog.is_file:
        return False
    with catalog.alone() as cursor:
        size, pages, free = (
            cursor.execute(f"PRAGMA {each}").fetchone()[0]
            for each in ("page_size", "page_count", "freelist_count")
        )
        pays = free * size >= ENOUGH_BYTES and free * ENOUGH_SHARE >= pages
        if pays:
            cursor.execute("VACUUM")
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return bool(pays)


def rewrite(catalog: Catalog) -> None:
    """Write the catalog anew, so that nothing is left of what was deleted.

    Raises:
        ConflictError: another process reads it all the time.
    """
    with catalog.alone() as cursor:
        if not catalog.is_file:
            for table in schema.metadata.sorted_tables:
                cursor.execute(f"VACUUM FULL {table.name}")
            return
        cursor.execute("VACUUM")
        is_busy, *_ = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if is_busy:
        raise ConflictError(
            "another process reads the catalog, so that deleted rows may still be on the disk\n"
            "  = close what uses the warehouse, and run this again"
        )
