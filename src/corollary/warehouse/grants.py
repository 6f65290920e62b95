"""Grants: the relations that readers may see, kept in the catalog beside the commits.

They belong to no commit: they hold for the past too, and going back in time does not change them.
"""

from collections.abc import Iterable

import sqlalchemy as sa

from corollary.warehouse import schema
from corollary.warehouse.catalog import Catalog

_table = schema.grants


class StoredGrants:
    """The grants of a warehouse."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def of(self, reader: str) -> frozenset[str]:
        """Return what a reader may see."""
        query = sa.select(_table.c.relation).where(_table.c.reader == reader)
        with self._catalog.reading() as connection:
            return frozenset(connection.execute(query).scalars())

    def every(self) -> dict[str, list[str]]:
        """Return what all readers may see, in the order of their names."""
        query = sa.select(_table).order_by(_table.c.reader, _table.c.relation)
        found: dict[str, list[str]] = {}
        with self._catalog.reading() as connection:
            for row in connection.execute(query):
                found.setdefault(row.reader, []).append(row.relation)
        return {reader: sorted(found[reader]) for reader in sorted(found)}

    def add(self, reader: str, relations: Iterable[str]) -> None:
        """Let a reader see relations, too."""
        names = sorted(set(relations))
        with self._catalog.writing() as connection:
            self._remove(connection, reader, names)
            rows = [{"reader": reader, "relation": name} for name in names]
            connection.execute(_table.insert(), rows)

    def remove(self, reader: str, relations: Iterable[str]) -> None:
        """Let a reader not see relations any more."""
        with self._catalog.writing() as connection:
            self._remove(connection, reader, sorted(set(relations)))

    @staticmethod
    def _remove(connection: sa.Connection, reader: str, names: list[str]) -> None:
        mine = _table.c.reader == reader
        connection.execute(_table.delete().where(mine, _table.c.relation.in_(names)))
