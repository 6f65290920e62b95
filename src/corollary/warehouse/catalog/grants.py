"""Grants: the relations that readers may see, in the catalog beside the commits.

They are not versioned: they hold for earlier commits too, and time travel does not change them.
"""

from collections.abc import Iterable

import sqlalchemy as sa

from corollary.warehouse.catalog import schema
from corollary.warehouse.catalog.catalog import Catalog

_table = schema.grants


class StoredGrants:
    """The grants of a warehouse."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def granted_to(self, reader: str) -> frozenset[str]:
        """Return what a reader may see."""
        query = sa.select(_table.c.relation).where(_table.c.reader == reader)
        with self._catalog.read_transaction() as connection:
            return frozenset(connection.execute(query).scalars())

    def by_reader(self) -> dict[str, list[str]]:
        """Return what each reader may see, ordered by name."""
        query = sa.select(_table).order_by(_table.c.reader, _table.c.relation)
        found: dict[str, list[str]] = {}
        with self._catalog.read_transaction() as connection:
            for row in connection.execute(query):
                found.setdefault(row.reader, []).append(row.relation)
        return {reader: sorted(found[reader]) for reader in sorted(found)}

    def add(self, reader: str, relations: Iterable[str]) -> None:
        """Grant relations to a reader."""
        names = sorted(set(relations))
        with self._catalog.write_transaction() as connection:
            self._remove(connection, reader, names)
            rows = [{"reader": reader, "relation": name} for name in names]
            connection.execute(_table.insert(), rows)

    def remove(self, reader: str, relations: Iterable[str]) -> None:
        """Revoke relations from a reader."""
        with self._catalog.write_transaction() as connection:
            self._remove(connection, reader, sorted(set(relations)))

    @staticmethod
    def _remove(connection: sa.Connection, reader: str, names: list[str]) -> None:
        mine = _table.c.reader == reader
        connection.execute(_table.delete().where(mine, _table.c.relation.in_(names)))
