"""While one client does bad things, others are answered; and the server stops when it is told."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psycopg
import pytest

import corollary
from corollary.database.access.principals import AccessRole
from corollary.serve.tokens import TokenStore
from corollary.warehouse.warehouse_catalog import WarehouseCatalog
from support.bad_clients import POSTGRES_MESSAGES
from support.selection import sampled
from support.serve.server_process import ServerProcess, server_process

CONNECTIONS = 8
"""As many as the server once had threads."""
ROUNDS = 5
MEDIAN_SECONDS = 15.0
"""An answer takes some milliseconds; the machine may be busy. It once took half a minute."""
GIVE_UP_SECONDS = 60.0


@dataclass(frozen=True)
class Server:
    """A server with its tokens."""

    process: ServerProcess
    tokens: dict[str, str]

    def connect(self, user: str) -> psycopg.Connection[Any]:
        return psycopg.connect(
            host="127.0.0.1",
            port=self.process.announced["pg_port"],
            user=user,
            password=self.tokens[user],
            dbname="wh",
            connect_timeout=int(GIVE_UP_SECONDS),
            autocommit=True,
        )

    def ask(self, path: str, document: dict[str, Any] | None = None) -> Any:
        """Ask by HTTP."""
        headers = {
            "Authorization": f"Bearer {self.tokens['good']}",
            "Content-Type": "application/json",
        }
        data = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(f"{self.process.url}{path}", data, headers)
        with urllib.request.urlopen(request, timeout=GIVE_UP_SECONDS) as answer:
            return json.load(answer)

    @contextmanager
    def misused(self, *names: str) -> Iterator[None]:
        """Let a client send messages over several connections, and not look at the answers."""
        with ExitStack() as stack:
            for name in names:
                for _ in range(CONNECTIONS):
                    bad = stack.enter_context(closing(self.connect("bad")))
                    sending = socket.socket(fileno=socket.dup(bad.fileno()))
                    stack.enter_context(closing(sending))
                    thread = threading.Thread(target=send, args=(sending, POSTGRES_MESSAGES[name]))
                    thread.start()
                    stack.callback(end, sending, thread)
            yield


def send(connection: socket.socket, data: bytes) -> None:
    """Send as much as the other side takes until the connection ends."""
    connection.setblocking(True)
    with suppress(OSError):
        connection.sendall(data)


def end(connection: socket.socket, sending: threading.Thread) -> None:
    """End a connection over which a thread sends."""
    with suppress(OSError):  # the server may have ended it
        connection.shutdown(socket.SHUT_RDWR)
    sending.join()


@contextmanager
def running(place: Path) -> Iterator[Server]:
    with corollary.open(place, engine="local") as db:
        db.load(text=".decl edge(x: symbol, y: symbol)\n.decl path(x: symbol, y: symbol)")
        with db.transaction() as tx:
            tx.insert("edge", [("a", "b")])
        db.grant("bad", "path")
    with closing(WarehouseCatalog.open(place, create=False)) as opened:
        store = TokenStore(opened.catalog)
        roles = {"good": AccessRole.ADMIN, "bad": AccessRole.READ}
        tokens = {name: store.add(name, role) for name, role in roles.items()}
    with server_process(place, "--pg-port", "0", "--readers", "1") as process:
        yield Server(process, tokens)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("bad") / "wh") as server:
        yield server


@pytest.mark.parametrize("name", sampled(POSTGRES_MESSAGES, 6))
def test_others_are_answered(server: Server, name: str) -> None:
    seconds: dict[str, list[float]] = {"healthz": [], "look-up": [], "sign-in": []}
    with server.misused(name):
        for _ in range(ROUNDS):
            start = time.monotonic()
            assert server.ask("/healthz") == {"status": "ok"}
            healthy = time.monotonic()
            assert server.ask("/v1/query", {"goal": 'edge("a", y)'})["rows"] == [["b"]]
            answered = time.monotonic()
            with server.connect("good") as connection:
                rows = connection.execute("SELECT y FROM edge WHERE x = 'a'").fetchall()
                assert rows == [("b",)]
            seconds["healthz"].append(healthy - start)
            seconds["look-up"].append(answered - healthy)
            seconds["sign-in"].append(time.monotonic() - answered)
    medians = {key: median(each) for key, each in seconds.items()}
    assert {key: each for key, each in medians.items() if each > MEDIAN_SECONDS} == {}


def test_the_server_stops_in_order(tmp_path: Path) -> None:
    names = ("a long series", "values in the catalog", "a million messages")
    with running(tmp_path / "wh") as server, server.misused(*names):
        assert server.process.stop(signal.SIGTERM) == 0, server.process.log
        assert "Traceback" not in server.process.log
