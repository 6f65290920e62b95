"""Grants: the relations that readers may see, in the catalog beside the commits.

They are not versioned: they hold for earlier commits too, and time travel does not change them.
"""

from collections.abc import Iterable

from corollary.warehouse.catalog.catalog import Catalog
from corollary.warehouse.catalog.connections import CatalogConnection


class StoredGrants:
    """The grants of a warehouse."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def granted_to(self, reader: str) -> frozenset[str]:
        """Return what a reader may see."""
        query = "SELECT relation FROM corollary_grants WHERE reader = ?"
        with self._catalog.read_transaction() as connection:
            return frozenset(connection.column(query, reader))

    def by_reader(self) -> dict[str, list[str]]:
        """Return what each reader may see, ordered by name."""
        found: dict[str, list[str]] = {}
        with self._catalog.read_transaction() as connection:
            for row in connection.rows("SELECT reader, relation FROM corollary_grants"):
                found.setdefault(row.reader, []).append(row.relation)
        return {reader: sorted(found[reader]) for reader in sorted(found)}

    def add(self, reader: str, relations: Iterable[str]) -> None:
        """Grant relations to a reader."""
        names = sorted(set(relations))
        with self._catalog.write_transaction() as connection:
            self._remove(connection, reader, names)
            rows = [{"reader": reader, "relation": name} for name in names]
            connection.insert("corollary_grants", rows)

    def remove(self, reader: str, relations: Iterable[str]) -> None:
        """Revoke relations from a reader."""
        with self._catalog.write_transaction() as connection:
            self._remove(connection, reader, sorted(set(relations)))

    @staticmethod
    def _remove(connection: CatalogConnection, reader: str, names: list[str]) -> None:
        statement = "DELETE FROM corollary_grants WHERE reader = ? AND relation = ?"
        connection.execute_many(statement, [(reader, name) for name in names])
