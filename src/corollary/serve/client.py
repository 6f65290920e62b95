"""The client that the command line is: it asks the server of a warehouse, near or far."""

import json
import os
import socket
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from corollary.errors import InputError
from corollary.serve.server_file import SERVER_FILE, ServerFile

PROBE_SECONDS = 0.2
"""A server that does not answer within this time is not used."""
ANSWER_SECONDS = 600.0
"""The maximum time to wait for an answer."""
UNAVAILABLE = (429, 502, 503, 504)
"""The statuses of a server that does not take a request at the moment."""


class UnavailableError(Exception):
    """The server does not answer, or takes no requests; it has done nothing."""


class LostAnswerError(Exception):
    """The connection broke after a request was sent."""


class RefusedError(Exception):
    """The server refuses a request.

    Attributes:
        document: the error, its diagnostics, and the exit status.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        super().__init__(document.get("error"))
        self.document = document


class _UnixConnection(HTTPConnection):
    """HTTP over the private socket of a server."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class ServerClient:
    """Asks one server.

    Attributes:
        name: what messages call it.
        is_local: whether it is the server of a warehouse of this user, on this machine.
    """

    def __init__(self, name: str, url: str, token: str | None, path: str | None = None) -> None:
        self.name = name
        self.is_local = path is not None
        self._url = urlsplit(url)
        self._token = token
        self._path = path

    @classmethod
    def of_warehouse(cls, place: str) -> "ServerClient | None":
        """Return the server of a warehouse of this user, if it answers at once."""
        try:
            if Path(place, SERVER_FILE).stat().st_uid != os.getuid():
                return None
        except (OSError, ValueError):
            return None
        found = ServerFile.read(Path(place))
        if found is None:
            return None
        client = cls(f"the server of process {found.pid}, {found.url}", "", None, found.socket)
        try:
            with closing(client._connection(PROBE_SECONDS)) as connection:
                connection.request("GET", "/readyz")
                is_ready = connection.getresponse().status == 200
        except (OSError, HTTPException):
            return None
        return client if is_ready else None

    @classmethod
    def of_url(cls, url: str, token: str | None) -> "ServerClient":
        """Return a server by its address.

        Raises:
            InputError: `C1642`, it is not the address of a server.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            raise InputError.of(
                "C1642",
                f"`{url}` is not the address of a server.",
                None,
                "write it as `corollary serve` prints it, such as `http://127.0.0.1:8765`, and set "
                "the token in COROLLARY_TOKEN",
            )
        return cls(url, url, token)

    def post(self, path: str, document: dict[str, Any]) -> dict[str, Any]:
        """Ask, and return the answer.

        Raises:
            UnavailableError: the server has not taken the request.
            LostAnswerError: it has, and then the connection broke.
            RefusedError: it refuses it.
        """
        body = json.dumps(document).encode()
        headers = {"Content-Type": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        with closing(self._connection(ANSWER_SECONDS)) as connection:
            try:
                connection.connect()
            except OSError as error:
                raise UnavailableError(str(error.strerror or error)) from None
            try:
                connection.request("POST", f"{self._url.path.rstrip('/')}{path}", body, headers)
                response = connection.getresponse()
                content = response.read()
            except (OSError, HTTPException) as error:
                raise LostAnswerError(str(error)) from None
        return _document(response.status, content)

    def _connection(self, seconds: float) -> HTTPConnection:
        if self._path is not None:
            return _UnixConnection(self._path, seconds)
        host, port = str(self._url.hostname), self._url.port
        if self._url.scheme == "https":
            return HTTPSConnection(host, port, timeout=seconds)
        return HTTPConnection(host, port, timeout=seconds)


def _document(status: int, content: bytes) -> dict[str, Any]:
    """Return the document of an answer."""
    try:
        found = json.loads(content)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        found = {"error": f"the server answers with status {status}, and not as expected"}
        raise RefusedError(found)
    if status in UNAVAILABLE:
        raise UnavailableError(str(found.get("error", status)))
    if status != 200:
        raise RefusedError(found)
    return found
