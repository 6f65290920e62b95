"""Tokens: secrets that clients show, of which the catalog keeps hashes only.

A token has 256 random bits. HTTP clients send it as `Authorization: Bearer`, and its SHA-256 is
looked up; PostgreSQL clients use it as the password of the user with its name, and prove that they
know it (SCRAM-SHA-256), for which a verifier is kept.
"""

import base64
import hashlib
import hmac
import math
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from corollary.data_class import dataclass
from corollary.database.access.grants import check_reader_name
from corollary.database.access.principals import AccessRole, Principal
from corollary.errors import InputError
from corollary.warehouse.catalog.catalog import Catalog
from corollary.warehouse.catalog.credentials import (
    KEY,
    SESSION,
    TOKEN,
    StoredCredential,
    StoredCredentials,
)

TOKEN_BYTES = 32
TOKEN_PREFIX = "cor_"  # noqa: S105 - not a secret, but what tools that look for them know them by
SCRAM_ITERATIONS = 4096
SCRAM_SALT_BYTES = 16
REFRESH_SECONDS = 1.0
"""A token that was revoked is refused after this time at the latest."""
MISSING_SECONDS = 0.02
"""How often the catalog is read for tokens that are not known: new ones are few, guesses many."""
DAY_SECONDS = 86_400.0
KEY_SECONDS = 300.0
"""How long the key of an address that `serve` prints is valid."""
SESSION_SECONDS = 43_200.0
"""How long a browser stays signed in."""


@dataclass(frozen=True, slots=True)
class ScramVerifier:
    """What a server needs to check a password by SCRAM-SHA-256 (RFC 5802, RFC 7677)."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    @classmethod
    def of_password(cls, password: str, salt: bytes | None = None) -> "ScramVerifier":
        """Return the verifier of a password of ASCII characters, which SASLprep leaves as it is."""
        salt = secrets.token_bytes(SCRAM_SALT_BYTES) if salt is None else salt
        salted = hashlib.pbkdf2_hmac("sha256", password.encode("ascii"), salt, SCRAM_ITERATIONS)
        stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
        return cls(salt, SCRAM_ITERATIONS, stored, hmac.digest(salted, b"Server Key", "sha256"))

    @classmethod
    def parse(cls, text: str) -> "ScramVerifier":
        """Return the verifier that a text holds, as PostgreSQL writes it."""
        _, parameters, keys = text.split("$")
        iterations, salt = parameters.split(":")
        stored, server = keys.split(":")
        decode = base64.b64decode
        return cls(decode(salt), int(iterations), decode(stored), decode(server))

    def __str__(self) -> str:
        salt, stored, server = (
            base64.b64encode(each).decode()
            for each in (self.salt, self.stored_key, self.server_key)
        )
        return f"SCRAM-SHA-256${self.iterations}:{salt}${stored}:{server}"


@dataclass(frozen=True, slots=True)
class Token:
    """What is known of a token: all but the secret itself."""

    principal: Principal
    created: datetime
    expires: datetime | None


class TokenStore:
    """The tokens, sessions and keys of a warehouse.

    All methods may be called from any thread. What they look up is read from the catalog once a
    second at most; what is not found there is looked for again, for it may be new.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._stored = StoredCredentials(catalog)
        self._lock = threading.Lock()
        self._by_digest: Mapping[str, StoredCredential] = {}
        self._read_at = -math.inf
        self._salt_secret = ""

    # --- tokens --------------------------------------------------------------------------------

    def add(self, name: str, role: AccessRole, days: int | None = None) -> str:
        """Make a token; return it, which is the only time that anybody sees it.

        Raises:
            InputError: the name is not valid, or has a token already.
        """
        secret = _new_secret(TOKEN_PREFIX)
        seconds = None if days is None else days * DAY_SECONDS
        verifier = str(ScramVerifier.of_password(secret))
        principal = Principal(check_reader_name(name), role)
        self._add(TOKEN, secret, principal, seconds, verifier=verifier)
        return secret

    def list(self) -> list[Token]:
        """Return all tokens, ordered by name; some may have expired."""
        return [_token(each) for each in self._stored.all() if each.kind == TOKEN]

    def revoke(self, name: str) -> Token:
        """End a token, and the sessions that it has opened.

        Raises:
            InputError: there is none of this name.
        """
        found = [each for each in self._stored.all() if each.kind == TOKEN and each.name == name]
        if not found:
            names = ", ".join(f"`{each.principal.name}`" for each in self.list())
            known = f"there are tokens of {names}" if names else "there are no tokens"
            raise InputError.of("C1621", f"There is no token of `{name}`.", None, known)
        self._stored.remove([each.digest for each in found])
        self._forget()
        return _token(found[0])

    def principal_of(self, secret: str) -> Principal | None:
        """Return whose token this is; None if it is not one, or has ended."""
        found = self._find(secret, TOKEN)
        return None if found is None else _principal(found)

    def scram_of(self, name: str) -> tuple[ScramVerifier, Principal | None]:
        """Return how the password of a PostgreSQL user is checked, and who that is.

        Unknown users have a verifier too, one that no password fulfils, so that nothing tells them
        from known ones: its salt is the same each time, also by another server of the warehouse.
        """
        for credentials in self._attempts():
            for each in credentials.values():
                if each.kind == TOKEN and each.name == name and not _has_expired(each):
                    return ScramVerifier.parse(each.verifier), _principal(each)
        self._salt_secret = self._salt_secret or self._stored.salt_secret()
        secret = self._salt_secret.encode()
        salt = hmac.digest(secret, name.encode(), "sha256")[:SCRAM_SALT_BYTES]
        random = secrets.token_bytes(TOKEN_BYTES)
        return ScramVerifier(salt, SCRAM_ITERATIONS, random, random), None

    # --- browsers ------------------------------------------------------------------------------

    def new_key(self, principal: Principal) -> str:
        """Return a key that opens one session, within five minutes."""
        secret = _new_secret()
        self._add(KEY, secret, principal, KEY_SECONDS)
        return secret

    def open_session(self, secret: str) -> tuple[str, Principal] | None:
        """Return a new session for a key, which is used up, or for a token; None for neither."""
        issuer = self._find(secret, KEY)
        if issuer is not None:
            issuer = self._stored.take(issuer.digest, KEY)
        else:
            issuer = self._find(secret, TOKEN)
        if issuer is None:
            return None
        principal = _principal(issuer)
        seconds = SESSION_SECONDS
        if issuer.kind == TOKEN and issuer.expires is not None:
            seconds = min(seconds, issuer.expires - time.time())
        session = _new_secret()
        by = issuer.digest if issuer.kind == TOKEN else ""
        self._add(SESSION, session, principal, seconds, issuer=by)
        return session, principal

    def session_principal(self, secret: str) -> Principal | None:
        """Return who is signed in; None if the session has ended."""
        found = self._find(secret, SESSION)
        return None if found is None else _principal(found)

    def close_session(self, secret: str) -> None:
        """End a session."""
        self._stored.take(_digest(secret), SESSION)
        self._forget()

    # --- what is stored ------------------------------------------------------------------------

    def _add(
        self, kind: str, secret: str, who: Principal, seconds: float | None, **others: str
    ) -> None:
        now = time.time()
        expires = None if seconds is None else now + seconds
        role = str(who.role)
        digest = _digest(secret)
        new = StoredCredential(digest, kind, who.name, role, now, expires, **others)
        self._stored.add(new, now)
        self._forget()

    def _find(self, secret: str, kind: str) -> StoredCredential | None:
        # A digest is looked up, not the secret: how long that takes tells nothing of any secret.
        digest = _digest(secret)
        for credentials in self._attempts():
            found = credentials.get(digest)
            if found is not None:
                return None if found.kind != kind or _has_expired(found) else found
        return None

    def _attempts(self) -> Iterator[Mapping[str, StoredCredential]]:
        """Yield what is known, and then what another process may have added since."""
        if self.is_stale:
            self.refresh()
        yield self._by_digest
        if time.monotonic() - self._read_at >= MISSING_SECONDS:
            self._forget()
            self.refresh()
            yield self._by_digest

    @property
    def is_stale(self) -> bool:
        """Whether the next look-up will read the catalog, if `refresh` is not called before."""
        return time.monotonic() - self._read_at >= REFRESH_SECONDS

    def refresh(self) -> None:
        """Read the catalog, unless another thread has just done so."""
        with self._lock:
            if self.is_stale:
                self._by_digest = {each.digest: each for each in self._stored.all()}
                self._read_at = time.monotonic()

    def _forget(self) -> None:
        with self._lock:
            self._read_at = -math.inf


def _new_secret(prefix: str = "") -> str:
    return prefix + secrets.token_urlsafe(TOKEN_BYTES)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _has_expired(found: StoredCredential) -> bool:
    return found.expires is not None and found.expires <= time.time()


def _principal(found: StoredCredential) -> Principal:
    return Principal(found.name, AccessRole(found.role))


def _token(found: StoredCredential) -> Token:
    expires = None if found.expires is None else datetime.fromtimestamp(found.expires, UTC)
    return Token(_principal(found), datetime.fromtimestamp(found.created, UTC), expires)
