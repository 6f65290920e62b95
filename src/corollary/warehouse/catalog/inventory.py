"""An inventory of the catalog at one moment, and sizes and states without reading data files."""

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from corollary.warehouse.catalog import schema
from corollary.warehouse.catalog.catalog import Catalog
from corollary.warehouse.catalog.catalog_reader import stored_snapshot
from corollary.warehouse.catalog.catalog_rows import StoredIndex, StoredSnapshot


@dataclass(frozen=True, slots=True)
class Inventory:
    """What a catalog holds.

    Attributes:
        oldest: the first commit that is kept.
        fold: up to this commit there are only snapshots; 0 if no history was dropped.
        programs: the program of every commit, by its number.
        parents: the parent of every commit, by its number.
        changed_relations: the relations that have changes.
        snapshots: the snapshots of each relation, oldest first.
        indexes: the files of each index, by its commit, oldest first.
    """

    oldest: int
    fold: int
    programs: dict[int, int]
    parents: dict[int, int]
    changed_relations: tuple[str, ...]
    snapshots: dict[str, list[StoredSnapshot]]
    indexes: dict[int, list[StoredIndex]]

    @property
    def latest(self) -> int:
        """The last commit; 0 if there is none."""
        return max(self.programs, default=0)


def read_inventory(catalog: Catalog) -> Inventory:
    """Return what a catalog holds now, read in one transaction."""
    commits, changes = schema.commits, schema.changes
    snapshots, indexes = schema.snapshots, schema.indexes
    with catalog.read_transaction() as connection:
        meta = dict(connection.execute(sa.select(schema.meta.c.name, schema.meta.c.value)).all())
        made = connection.execute(
            sa.select(commits.c.number, commits.c.parent, commits.c.program).order_by(
                commits.c.number
            )
        ).all()
        changed = connection.execute(
            sa.select(changes.c.relation).distinct().order_by(changes.c.relation)
        ).scalars()
        taken: dict[str, list[StoredSnapshot]] = defaultdict(list)
        for row in connection.execute(sa.select(snapshots).order_by(snapshots.c.commit_number)):
            taken[row.relation].append(stored_snapshot(row))
        files: dict[int, list[StoredIndex]] = defaultdict(list)
        for row in connection.execute(
            sa.select(indexes).order_by(indexes.c.commit_number, indexes.c.path)
        ):
            files[row.commit_number].append(StoredIndex(row.path, row.checksum))
        return Inventory(
            int(meta["oldest"]),
            int(meta.get("fold", 0)),
            {row.number: row.program for row in made},
            {row.number: row.parent for row in made},
            tuple(changed),
            dict(taken),
            dict(files),
        )


# --- sizes ---------------------------------------------------------------------------------------


def relation_sizes(catalog: Catalog) -> dict[str, int]:
    """Return how many tuples each relation has at the last commit."""
    changes, snapshots = schema.changes, schema.snapshots
    events: list[tuple[int, int, str, int]] = []
    with catalog.read_transaction() as connection:
        counted = sa.select(
            changes.c.commit_number,
            changes.c.relation,
            changes.c.added,
            changes.c.removed,
            changes.c.is_full,
        )
        wholes: set[tuple[int, str]] = set()
        for row in connection.execute(counted):
            events.append((row.commit_number, 0, row.relation, row.added - row.removed))
            if row.is_full:
                wholes.add((row.commit_number, row.relation))
        rows = connection.execute(sa.select(snapshots))
        events += [(row.commit_number, 1, row.relation, row.rows) for row in rows]
    found: dict[str, int] = defaultdict(int)
    # A snapshot sorts after the change of the same commit, which it includes.
    for commit, is_snapshot, relation, count in sorted(events):
        if is_snapshot or (commit, relation) in wholes:
            found[relation] = count
        else:
            found[relation] += count
    return dict(found)


# --- states and checks ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SourceState:
    """The commit and the time at which a source was last read."""

    name: str
    relation: str
    commit: int
    read: float


def source_states(catalog: Catalog) -> list[SourceState]:
    """Return when each source was last read, except those that are no longer read."""
    table = schema.sources
    with catalog.read_transaction() as connection:
        rows = connection.execute(sa.select(table).order_by(table.c.source))
        return [
            SourceState(row.source, row.relation, row.commit_number, row.read)
            for row in rows
            if json.loads(row.position) is not None
        ]


def count_tuples_changed_since(catalog: Catalog, number: int) -> int:
    """Return how many tuples were added and removed after a commit."""
    table = schema.changes
    total = sa.func.coalesce(sa.func.sum(table.c.added + table.c.removed), 0)
    with catalog.read_transaction() as connection:
        query = sa.select(total).where(table.c.commit_number > number)
        return int(connection.execute(query).scalar_one())


def integrity_problems(catalog: Catalog) -> list[str]:
    """Return what SQLite finds wrong with its file; a server is trusted."""
    if not catalog.is_file:
        return []
    with catalog.raw_cursor() as cursor:
        found: list[Any] = cursor.execute("PRAGMA integrity_check(20)").fetchall()
        lost: list[Any] = cursor.execute("PRAGMA foreign_key_check").fetchall()
    problems = [str(row[0]) for row in found if row[0] != "ok"]
    return problems + [f"a row of {row[0]} refers to nothing" for row in lost]
