"""SCRAM-SHA-256 as a server does it (RFC 5802, RFC 7677), without channel binding.

PostgreSQL's clients leave the name in it empty: the user is the one of the startup message.
"""

import base64
import binascii
import hashlib
import hmac
import secrets

from corollary.serve.postgres.problems import PgError
from corollary.serve.tokens import ScramVerifier

MECHANISM = "SCRAM-SHA-256"
NONCE_BYTES = 18
_BINDING_HEADERS = ("n,,", "y,,")
"""No channel binding: the client cannot, or has seen that this server does not offer it."""


class ScramExchange:
    """One exchange: two messages of the client, two of the server.

    Args:
        verifier: what the catalog keeps of the password.
        nonce: the server's part of the nonce; random if it is not given.
    """

    def __init__(self, verifier: ScramVerifier, nonce: str | None = None) -> None:
        self._verifier = verifier
        self._nonce = nonce or base64.b64encode(secrets.token_bytes(NONCE_BYTES)).decode()
        self._header = ""
        self._messages = ""
        self._server_first = ""

    def first(self, data: bytes) -> bytes:
        """Return the answer to the client's first message.

        Raises:
            PgError: it is not one.
        """
        text = _ascii(data)
        header, bare = text[:3], text[3:]
        if header not in _BINDING_HEADERS:
            raise _malformed("channel binding and names of others are not supported")
        found = _attributes(bare)
        client_nonce = found.get("r", "")
        if "n" not in found or not client_nonce or "m" in found:
            raise _malformed("the first message has no nonce")
        self._header = header
        self._nonce = client_nonce + self._nonce
        salt = base64.b64encode(self._verifier.salt).decode()
        self._server_first = f"r={self._nonce},s={salt},i={self._verifier.iterations}"
        self._messages = f"{bare},{self._server_first}"
        return self._server_first.encode()

    def final(self, data: bytes) -> bytes | None:
        """Return the answer to the client's last message; None if its proof is wrong.

        Raises:
            PgError: it is not such a message.
        """
        text = _ascii(data)
        without_proof, _, proof = text.rpartition(",p=")
        found = _attributes(without_proof)
        if found.get("c") != base64.b64encode(self._header.encode()).decode():
            raise _malformed("the channel binding is another one than at first")
        if not hmac.compare_digest(found.get("r", ""), self._nonce):
            raise _malformed("the nonce is another one than at first")
        signed = f"{self._messages},{without_proof}".encode()
        signature = hmac.digest(self._verifier.stored_key, signed, "sha256")
        given = _decode_proof(proof)
        client_key = bytes(a ^ b for a, b in zip(given, signature, strict=True))
        is_right = hmac.compare_digest(
            hashlib.sha256(client_key).digest(), self._verifier.stored_key
        )
        if not is_right:
            return None
        own = hmac.digest(self._verifier.server_key, signed, "sha256")
        return b"v=" + base64.b64encode(own)


def _malformed(reason: str) -> PgError:
    return PgError("08P01", f"The SCRAM message is not valid: {reason}.", is_fatal=True)


def _ascii(data: bytes) -> str:
    try:
        return data.decode("ascii")
    except UnicodeDecodeError:
        raise _malformed("it is not ASCII") from None


def _attributes(text: str) -> dict[str, str]:
    """Return `a=1,b=2` as a mapping.

    >>> _attributes("n=,r=xy=")
    {'n': '', 'r': 'xy='}
    """
    found: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals or len(name) != 1:
            raise _malformed("an attribute has no name or no value")
        found[name] = value
    return found


def _decode_proof(text: str) -> bytes:
    try:
        found = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise _malformed("the proof is not Base64") from None
    if len(found) != hashlib.sha256().digest_size:
        raise _malformed("the proof has another length")
    return found
