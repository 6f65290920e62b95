"""Credentials: tokens of clients, and sessions and keys of browsers, in the catalog.

Only hashes of the secrets are stored. The table is created with the first of them, so that a
warehouse that is never served has none.
"""

import secrets
import time
from collections.abc import Sequence
from dataclasses import asdict

from corollary.data_class import dataclass
from corollary.errors import InputError
from corollary.warehouse.catalog.catalog import Catalog

TABLE = "corollary_credentials"
CREATE = f"""
    CREATE TABLE IF NOT EXISTS {TABLE} (
        digest VARCHAR(64) NOT NULL,
        kind VARCHAR(8) NOT NULL,
        name VARCHAR(200) NOT NULL,
        role VARCHAR(8) NOT NULL,
        created FLOAT NOT NULL,
        expires FLOAT,
        verifier VARCHAR(300) NOT NULL,
        issuer VARCHAR(64) NOT NULL,
        PRIMARY KEY (digest))"""
DIGEST_BYTES = 32

TOKEN, SESSION, KEY = "token", "session", "key"
SALTS = "salts"
"""Of the one row whose digest is random, and makes the salts of users that do not exist."""


@dataclass(frozen=True, slots=True)
class StoredCredential:
    """One credential.

    Attributes:
        digest: the SHA-256 of the secret, in hexadecimal.
        kind: a token, a session of a browser, or a key that opens one.
        name: who it is given to.
        role: read, write or admin.
        created: when it was made, in seconds since 1970.
        expires: when it ends, if ever.
        verifier: what SCRAM-SHA-256 needs to check the secret, for tokens.
        issuer: the digest of the token that has opened a session, which ends with it.
    """

    digest: str
    kind: str
    name: str
    role: str
    created: float
    expires: float | None
    verifier: str = ""
    issuer: str = ""


class StoredCredentials:
    """The credentials of a warehouse."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def all(self) -> list[StoredCredential]:
        """Return all of them, ordered by name; some may have expired."""
        with self._catalog.read_transaction() as connection:
            if TABLE not in connection.tables():
                return []
            rows = connection.rows(f"SELECT * FROM {TABLE} ORDER BY name, created")  # noqa: S608 - ours
        return [StoredCredential(**row._asdict()) for row in rows]

    def add(self, new: StoredCredential, now: float) -> None:
        """Add a credential; those that have expired go.

        Raises:
            InputError: there is a token of this name already.
        """
        with self._catalog.write_transaction() as connection:
            connection.execute(CREATE)
            connection.execute(
                "DELETE FROM corollary_credentials WHERE expires IS NOT NULL AND expires <= ?", now
            )
            query = "SELECT digest FROM corollary_credentials WHERE kind = ? AND name = ?"
            if new.kind == TOKEN and connection.first(query, TOKEN, new.name) is not None:
                raise InputError.of(
                    "C1620",
                    f"There is a token of `{new.name}` already.",
                    None,
                    f"revoke it first: `corollary token revoke W {new.name}`; or use another name",
                )
            connection.insert(TABLE, [asdict(new)])

    def salt_secret(self) -> str:
        """Return what makes the salts of users that do not exist; who asks first decides it."""
        query = "SELECT digest FROM corollary_credentials WHERE kind = ?"
        with self._catalog.write_transaction() as connection:
            connection.execute(CREATE)
            found = connection.scalar(query, SALTS)
            if found is None:
                found = secrets.token_hex(DIGEST_BYTES)
                new = StoredCredential(found, SALTS, "", "", time.time(), None)
                connection.insert(TABLE, [asdict(new)])
        return str(found)

    def take(self, digest: str, kind: str) -> StoredCredential | None:
        """Remove a credential, and return it: of two who take it only one gets it."""
        with self._catalog.write_transaction() as connection:
            if TABLE not in connection.tables():
                return None
            query = "SELECT * FROM corollary_credentials WHERE digest = ? AND kind = ?"
            row = connection.first(query, digest, kind)
            connection.execute("DELETE FROM corollary_credentials WHERE digest = ?", digest)
        return None if row is None else StoredCredential(**row._asdict())

    def remove(self, digests: Sequence[str]) -> None:
        """Remove credentials, and the sessions that they have opened."""
        statement = "DELETE FROM corollary_credentials WHERE digest = ? OR issuer = ?"
        with self._catalog.write_transaction() as connection:
            connection.execute_many(statement, [(each, each) for each in digests])
