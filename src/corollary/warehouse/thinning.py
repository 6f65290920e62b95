"""Thinning: a new fold makes older ones superfluous, so that their number stays small.

Of the indexes only the newest counts: it says how relations are now. Snapshots also shorten the way
to earlier commits: of each relation the first one stays, and of the others those whose distance to
the newest at least doubles from one to the next.
"""

import sqlalchemy as sa

from corollary.warehouse import schema
from corollary.warehouse.catalog import Catalog
from corollary.warehouse.holding import is_held


def thin(catalog: Catalog, number: int) -> list[str]:
    """Forget what the fold of a commit makes superfluous; return the files that held it.

    While somebody copies the warehouse, they are left to `gc`.
    """
    with catalog.writing() as connection:
        paths = [*_indexes(connection, number), *_snapshots(connection, number)]
        return [] if is_held(connection) else paths


def _indexes(connection: sa.Connection, number: int) -> list[str]:
    table = schema.indexes
    is_older = table.c.commit_number < number
    paths = connection.execute(sa.select(table.c.path).where(is_older)).scalars().all()
    connection.execute(table.delete().where(is_older))
    return list(paths)


def _snapshots(connection: sa.Connection, number: int) -> list[str]:
    table = schema.snapshots
    columns = (table.c.relation, table.c.commit_number, table.c.path)
    rows = connection.execute(sa.select(*columns).where(table.c.commit_number <= number))
    paths: dict[str, dict[int, str]] = {}
    for row in rows:
        paths.setdefault(row.relation, {})[row.commit_number] = row.path
    gone: list[str] = []
    for relation, held in paths.items():
        for commit in held.keys() - kept(sorted(held)):
            same = (table.c.relation == relation) & (table.c.commit_number == commit)
            connection.execute(table.delete().where(same))
            gone.append(held[commit])
    return gone


def kept(commits: list[int]) -> set[int]:
    """Return which of the commits of a relation's snapshots, in order, stay.

    >>> sorted(kept([1, 2, 3, 4, 5, 6, 7, 8, 9]))
    [1, 5, 7, 8, 9]
    """
    *older, newest = commits
    found, distance = {newest, commits[0]}, 0
    for commit in reversed(older):
        if newest - commit >= 2 * distance:
            found.add(commit)
            distance = newest - commit
    return found
