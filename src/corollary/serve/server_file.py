"""What a running server leaves in its warehouse, so that commands of the same user find it."""

import json
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from corollary.data_class import dataclass
from corollary.errors import InputError
from corollary.version import __version__

SERVER_FILE = "server.json"
SOCKET_FILE = "server.sock"
SOCKET_PATH_MAX_BYTES = 100
"""The system allows a little more than a hundred bytes for the path of a socket."""
PROBE_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class ServerFile:
    """A running server.

    Attributes:
        pid: its process.
        socket: the path of a socket that only its user can open, without a token.
        url: the address for others.
        pg_port: the port for PostgreSQL clients, if there is one.
        version: the version of this package.
    """

    pid: int
    socket: str
    url: str
    pg_port: int | None = None
    version: str = __version__

    @classmethod
    def read(cls, warehouse: Path) -> "ServerFile | None":
        """Return what a server has left; None if there is nothing to be read."""
        try:
            found = json.loads((warehouse / SERVER_FILE).read_text("utf-8"))
            return cls(**found)
        except (OSError, ValueError, TypeError):
            return None

    def is_alive(self) -> bool:
        """Whether somebody listens on the socket."""
        with closing(socket.socket(socket.AF_UNIX)) as probe:
            probe.settimeout(PROBE_SECONDS)
            try:
                probe.connect(self.socket)
            except OSError:
                return False
        return True

    def write(self, warehouse: Path) -> None:
        """Leave the file, which only its user can read."""
        path = warehouse / SERVER_FILE
        with suppress(FileNotFoundError):
            path.unlink()
        path.touch(0o600, exist_ok=False)
        path.write_text(json.dumps(asdict(self)), "utf-8")


@contextmanager
def private_socket(warehouse: Path) -> Iterator[socket.socket]:
    """Give a socket in a warehouse that only this user can connect to; it goes at the end.

    If its path would be too long, it is in a directory of its own.

    Raises:
        InputError: another server of this warehouse runs.
        OSError: the directory cannot be written.
    """
    other = ServerFile.read(warehouse)
    if other is not None and other.is_alive():
        raise InputError.of(
            "C1633",
            f"A server of this warehouse runs already: process {other.pid}, {other.url}.",
            None,
            f"use it, or stop it with `kill {other.pid}`",
        )
    path = warehouse.absolute() / SOCKET_FILE
    with suppress(FileNotFoundError):
        path.unlink()
    with tempfile.TemporaryDirectory(prefix="corollary-") as directory:
        if len(os.fsencode(path)) > SOCKET_PATH_MAX_BYTES:
            path = Path(directory) / SOCKET_FILE
        listening = socket.socket(socket.AF_UNIX)
        mask = os.umask(0o177)
        try:
            listening.bind(str(path))
        finally:
            os.umask(mask)
        try:
            yield listening
        finally:
            listening.close()
            with suppress(FileNotFoundError):
                path.unlink()


def remove_server_file(warehouse: Path) -> None:
    """Remove the file that this process has left."""
    found = ServerFile.read(warehouse)
    if found is not None and found.pid == os.getpid():
        with suppress(FileNotFoundError):
            (warehouse / SERVER_FILE).unlink()
