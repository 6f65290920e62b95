"""A proxy before an object store whose requests fail, get lost, hang and are repeated."""

from __future__ import annotations

import http.client
import random
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

FAULTS = ("refused", "lost before", "lost behind", "repeated", "hangs before", "hangs behind")
"""What may happen to a request: 503; the connection ends before the store gets it, or instead of
the answer; the store gets it twice; no answer comes in time, and the store gets it or not."""
HANG_SECONDS = 20.0


class FaultyStore:
    """Passes requests on to a store, but for those that `choose` has a fault for."""

    def __init__(self, url: str) -> None:
        self.target = urlsplit(url).netloc
        self.counts: Counter[str] = Counter()
        self.requests: list[tuple[str, str]] = []
        self.choose: Callable[[str, str], str | None] = lambda _method, _path: None
        self.over = threading.Event()

    def at_random(self, seed: int, share: float, only: str = "/data/") -> None:
        """Let this share of the requests go wrong whose path has a part."""
        chance = random.Random(seed)

        def choose(_method: str, path: str) -> str | None:
            return chance.choice(FAULTS) if only in path and chance.random() < share else None

        self.choose = choose

    def once(self, fault: str, method: str, part: str) -> None:
        """Let one request go wrong."""
        is_over: list[bool] = []

        def choose(found: str, path: str) -> str | None:
            if is_over or found != method or part not in path:
                return None
            is_over.append(True)
            return fault

        self.choose = choose

    def forward(self, handler: BaseHTTPRequestHandler, body: bytes) -> Any:
        """Return the answer of the store."""
        connection = http.client.HTTPConnection(self.target, timeout=60)
        try:
            connection.request(handler.command, handler.path, body, dict(handler.headers))
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()


@contextmanager
def faulty_store(url: str) -> Iterator[tuple[FaultyStore, str]]:
    """Start a proxy; give it and its URL."""
    store = FaultyStore(url)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except OSError:
                self.close_connection = True

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            fault = store.choose(self.command, self.path)
            store.requests.append((self.command, self.path))
            store.counts[fault or "none"] += 1
            if fault == "refused":
                self.send(503, [], b"<Error><Code>SlowDown</Code></Error>")
                return
            if fault == "repeated":
                store.forward(self, body)
            found = None
            if fault not in {"lost before", "hangs before"}:
                found = store.forward(self, body)
            if fault is not None and fault.startswith("hangs"):
                store.over.wait(HANG_SECONDS)
            if found is None or fault in {"lost behind", "hangs behind"}:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.send(*found)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer  # noqa: N815 - names of the library

        def send(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
            self.send_response_only(status)
            length = str(len(body))
            for name, value in headers:
                if name.lower() == "content-length" and self.command == "HEAD":
                    length = value
                elif name.lower() not in {"content-length", "connection", "transfer-encoding"}:
                    self.send_header(name, value)
            self.send_header("Content-Length", length)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield store, f"http://127.0.0.1:{server.server_port}"
    finally:
        store.over.set()
        server.shutdown()
        server.server_close()
        thread.join()
