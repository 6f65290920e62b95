"""Digests of changes by their idempotency keys: a key that comes back stands for the same change.

The table is created with the first digest: transactions of a program that gives keys have none.
"""

from collections.abc import Mapping

from corollary.warehouse.catalog.connections import CatalogConnection

TABLE = "corollary_key_digests"
CREATE = f"""
    CREATE TABLE IF NOT EXISTS {TABLE} (
        idempotency VARCHAR(200) NOT NULL,
        digest VARCHAR(64) NOT NULL,
        PRIMARY KEY (idempotency))"""


def record_digests(connection: CatalogConnection, digests: Mapping[str, str]) -> None:
    """Note the digests of the changes of a commit, in its transaction."""
    if digests:
        connection.execute(CREATE)
        rows = [{"idempotency": key, "digest": digest} for key, digest in digests.items()]
        connection.insert(TABLE, rows)


def all_digests(connection: CatalogConnection) -> dict[str, str]:
    """Return the digests that are known, by their keys."""
    if TABLE not in connection.tables():
        return {}
    return dict(connection.rows("SELECT idempotency, digest FROM corollary_key_digests"))


def find_digest(connection: CatalogConnection, key: str) -> str | None:
    """Return the digest of the change of a key, if it is known."""
    if TABLE not in connection.tables():
        return None
    query = "SELECT digest FROM corollary_key_digests WHERE idempotency = ?"
    found = connection.scalar(query, key)
    return None if found is None else str(found)
