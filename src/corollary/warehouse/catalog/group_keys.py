"""Idempotency keys of commits that several requests share: each request has its own.

A commit of one request has its key in its own row. The table is created with the first commit of
several, so that a warehouse that is not served has none.
"""

from collections.abc import Sequence

from corollary.warehouse.catalog.connections import CatalogConnection, DuplicateRowError

TABLE = "corollary_keys"
CREATE = f"""
    CREATE TABLE IF NOT EXISTS {TABLE} (
        idempotency VARCHAR(200) NOT NULL,
        commit_number INTEGER NOT NULL,
        PRIMARY KEY (idempotency))"""


def record_keys(connection: CatalogConnection, number: int, keys: Sequence[str]) -> None:
    """Note the keys of a commit, in its transaction.

    Raises:
        DuplicateRowError: another commit has one of them.
    """
    if keys:
        connection.execute(CREATE)
        places = ", ".join("?" * len(keys))
        query = f"SELECT idempotency FROM corollary_commits WHERE idempotency IN ({places})"  # noqa: S608 - values are arguments
        taken = connection.scalar(query, *keys)
        if taken is not None:
            raise DuplicateRowError(taken)
        rows = [{"idempotency": each, "commit_number": number} for each in keys]
        connection.insert(TABLE, rows)


def find_by_key(connection: CatalogConnection, key: str) -> int | None:
    """Return the number of the commit of a key, if several requests share it."""
    if TABLE not in connection.tables():
        return None
    query = "SELECT commit_number FROM corollary_keys WHERE idempotency = ?"
    found = connection.scalar(query, key)
    return None if found is None else int(found)
