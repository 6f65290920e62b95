"""A PostgreSQL server of our own for the tests: on loopback, in a temporary directory, for a while.

It dies with the process that started it. It forces nothing to the disk: what tests kill are its
clients, never itself.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from corollary.engines.scratch_directory import ScratchDirectory

USER = "corollary"
ACCOUNT = "postgres"
"""The server refuses to run as root; Debian's package makes this account."""
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "shared_buffers": "16MB",
    "autovacuum": "off",
}
PATIENCE = 30.0


class MissingError(Exception):
    """There is no PostgreSQL server here."""


class Server:
    """A server that runs.

    Attributes:
        process: the number of its first process.
    """

    def __init__(self, port: int, command: list[str], root: Path) -> None:
        self.port = port
        self._command, self._root = command, root
        self._numbers = count(1)
        self._start()

    @property
    def process(self) -> int:
        return self._running.pid

    def _start(self) -> None:
        log = self._root / "log"
        with log.open("ab") as output:
            self._running = subprocess.Popen(
                self._command, cwd=self._root, stdout=subprocess.DEVNULL, stderr=output
            )
        _wait(self, self._running, log)

    def stop(self) -> None:
        """Stop it at once, as if it had crashed."""
        self._running.send_signal(signal.SIGQUIT)
        self._running.wait(PATIENCE)

    def restart(self) -> None:
        """Let it crash, and start it again."""
        self.stop()
        self._start()

    def url(self, name: str) -> str:
        """Return where a database is."""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{name}"

    def place(self, directory: Path | str) -> str:
        """Return the place of a new warehouse: an empty database, and a place of files."""
        import psycopg

        name = f"warehouse{next(self._numbers)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f'create database "{name}"')
        return f"{self.url(name)}?data={directory}"


def _programs() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    other = shutil.which("initdb")
    if other is None:
        raise MissingError("PostgreSQL is not installed: apt-get install postgresql")
    return Path(other).parent


def _as_account() -> list[str]:
    """Return what to put before a command so that it does not run as root, and dies with us."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise MissingError("there is no setpriv (of util-linux) to start PostgreSQL with")
    if os.geteuid():
        return [setpriv, "--pdeathsig=QUIT"]
    account = [f"--reuid={ACCOUNT}", f"--regid={ACCOUNT}", "--clear-groups"]
    return [setpriv, *account, "--pdeathsig=QUIT"]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def postgresql() -> Iterator[Server]:
    """Start a server, and stop it at the end.

    Raises:
        MissingError: it cannot be had.
    """
    programs, prefix = _programs(), _as_account()
    scratch = ScratchDirectory("corollary-postgresql")
    root = scratch.path
    if not os.geteuid():
        account = pwd.getpwnam(ACCOUNT)
        os.chown(root, account.pw_uid, account.pw_gid)
    data, port = root / "data", _free_port()
    settings = [f"--{name}={value}" for name, value in SETTINGS.items()]
    try:
        subprocess.run(
            [*prefix, programs / "initdb", "--no-sync", "-A", "trust", "-U", USER, data],
            check=True,
            capture_output=True,
            cwd=root,
        )
        command = [*prefix, str(programs / "postgres"), "-D", str(data), "-p", str(port), *settings]
        server = Server(port, command, root)
        try:
            yield server
        finally:
            server.stop()
    finally:
        scratch.close()


def _wait(server: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a server answers."""
    import psycopg

    end = time.monotonic() + PATIENCE
    while True:
        try:
            psycopg.connect(server.url("postgres"), connect_timeout=5).close()
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > end:
                raise MissingError(f"PostgreSQL does not start: {log.read_text()}") from None
            time.sleep(0.05)
        else:
            return
