"""Idempotency keys of commits that several requests share, and digests of changes by their keys.

A commit of one request has its key in its own row. The table of keys is created with the first
commit of several, so that a warehouse that is not served has none.

A key that comes back stands for the same change, as its digest says. That table is created with the
first digest: transactions of a program that gives keys have none.

What clients of a server call a key is stored with their name before it: two of them may use the
same.
"""

import hashlib
from collections.abc import Mapping, Sequence

from corollary.warehouse.catalog.connections import CatalogConnection, DuplicateRowError

TABLE = "corollary_keys"
CREATE = f"""
    CREATE TABLE IF NOT EXISTS {TABLE} (
        idempotency VARCHAR(200) NOT NULL,
        commit_number INTEGER NOT NULL,
        PRIMARY KEY (idempotency))"""

DIGESTS_TABLE = "corollary_key_digests"
CREATE_DIGESTS = f"""
    CREATE TABLE IF NOT EXISTS {DIGESTS_TABLE} (
        idempotency VARCHAR(200) NOT NULL,
        digest VARCHAR(64) NOT NULL,
        PRIMARY KEY (idempotency))"""

QUERY_MAX_KEYS = 500
"""Databases limit the arguments of a statement."""
KEY_MAX_CHARACTERS = 200
"""The maximum length of a key as it is stored."""
SCOPE_END = "\t"
"""Ends the name of a client, which has none."""
SCOPE_MAX_CHARACTERS = 64


def scope_of(name: str) -> str:
    """Return what stands before the keys of a client."""
    if len(name) > SCOPE_MAX_CHARACTERS:
        name = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return name + SCOPE_END


def given_key(stored: str | None) -> str | None:
    """Return a key as its client calls it."""
    return None if stored is None else stored.rpartition(SCOPE_END)[2]


def record_keys(connection: CatalogConnection, number: int, keys: Sequence[str]) -> None:
    """Note the keys of a commit, in its transaction.

    Raises:
        DuplicateRowError: another commit has one of them.
    """
    if keys:
        connection.execute(CREATE)
        for start in range(0, len(keys), QUERY_MAX_KEYS):
            some = keys[start : start + QUERY_MAX_KEYS]
            places = ", ".join("?" * len(some))
            query = f"SELECT idempotency FROM corollary_commits WHERE idempotency IN ({places})"  # noqa: S608 - values are arguments
            taken = connection.scalar(query, *some)
            if taken is not None:
                raise DuplicateRowError(taken)
        rows = [{"idempotency": each, "commit_number": number} for each in keys]
        connection.insert(TABLE, rows)


def all_keys(connection: CatalogConnection) -> list[str]:
    """Return the keys of all commits."""
    query = "SELECT idempotency FROM corollary_commits WHERE idempotency IS NOT NULL"
    found = connection.column(query)
    if TABLE in connection.tables():
        found += connection.column("SELECT idempotency FROM corollary_keys")
    return sorted(found)


def find_by_key(connection: CatalogConnection, key: str) -> int | None:
    """Return the number of the commit of a key, if several requests share it."""
    if TABLE not in connection.tables():
        return None
    query = "SELECT commit_number FROM corollary_keys WHERE idempotency = ?"
    found = connection.scalar(query, key)
    return None if found is None else int(found)


def record_digests(connection: CatalogConnection, digests: Mapping[str, str]) -> None:
    """Note the digests of the changes of a commit, in its transaction."""
    if digests:
        connection.execute(CREATE_DIGESTS)
        rows = [{"idempotency": key, "digest": digest} for key, digest in digests.items()]
        connection.insert(DIGESTS_TABLE, rows)


def all_digests(connection: CatalogConnection) -> dict[str, str]:
    """Return the digests that are known, by their keys."""
    if DIGESTS_TABLE not in connection.tables():
        return {}
    return dict(connection.rows("SELECT idempotency, digest FROM corollary_key_digests"))


def find_digest(connection: CatalogConnection, key: str) -> str | None:
    """Return the digest of the change of a key, if it is known."""
    if DIGESTS_TABLE not in connection.tables():
        return None
    query = "SELECT digest FROM corollary_key_digests WHERE idempotency = ?"
    found = connection.scalar(query, key)
    return None if found is None else str(found)
