"""Clients that send half a request, never read, or never stop: they harm nobody else."""

from __future__ import annotations

import json
import re
import select
import socket
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest

import corollary
from corollary.database.access.principals import Principal
from corollary.serve.answers import Answer, Event
from corollary.serve.requests import EventsRequest, Request
from corollary.serve.service import ServiceMetrics
from support.serve.threaded_server import ThreadedServer

pytestmark = pytest.mark.integration

LIMITS = {
    "head_seconds": 1.0,
    "body_seconds": 1.0,
    "stall_seconds": 1.0,
    "keep_alive_seconds": 2,
    "head_max_bytes": 20_000,
    "body_max_bytes": 1 << 20,
}
LARGE = b"x" * (20 << 20)
"""An answer that does not fit into the buffers of a connection."""
GIVE_UP_SECONDS = 60.0


class LargeAnswers:
    """A service whose answers and events are large."""

    metrics = ServiceMetrics()
    is_ready = True

    async def call(self, who: Principal, request: Request) -> Answer:
        return Answer(1, LARGE)

    async def subscribe(self, who: Principal, request: EventsRequest) -> AsyncIterator[Event]:
        while True:
            yield Event("change", json.dumps("x" * (1 << 20)), 1)

    async def close(self) -> None:
        """Do nothing."""


class Hosted(ThreadedServer):
    """A server with short limits."""

    def __init__(self, place: Path) -> None:
        async def open_service() -> LargeAnswers:
            return LargeAnswers()

        super().__init__(place, open_service, **LIMITS)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=GIVE_UP_SECONDS)

    def head(self, line: str, *headers: str) -> bytes:
        lines = [line, "Host: localhost", f"Authorization: Bearer {self.token}", *headers]
        return "".join(f"{each}\r\n" for each in (*lines, "")).encode()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    """A server with short limits."""
    place = tmp_path_factory.mktemp("hostile") / "wh"
    with corollary.open(place, engine="local") as db:
        db.load(text=".decl p(x: number)")
    with closing(Hosted(place)) as made:
        yield made


def rest_of(client: socket.socket) -> bytes:
    """What the server still sends, until it ends the connection."""
    found = bytearray()
    try:
        while data := client.recv(1 << 16):
            found += data
    except ConnectionError:
        pass
    return bytes(found)


def until_reset(client: socket.socket) -> None:
    """Read nothing until the server has ended the connection; then all that has come, fails."""
    events = select.poll()
    events.register(client, select.POLLHUP | select.POLLERR)
    assert events.poll(GIVE_UP_SECONDS * 1000)
    while client.recv(1 << 16):
        pass
    raise AssertionError("the connection has ended in order")


def until_refused(client: socket.socket, chunk: bytes) -> int:
    """Send the same bytes until the server ends the connection; return how many it took."""
    sent = 0
    end = time.monotonic() + GIVE_UP_SECONDS
    try:
        while time.monotonic() < end:
            sent += client.send(chunk)
    except ConnectionError:
        return sent
    raise AssertionError(f"the server has taken {sent} bytes")


def health(server: Hosted) -> bool:
    url = f"{server.url}/healthz"
    with urllib.request.urlopen(url, timeout=GIVE_UP_SECONDS) as found:
        return bool(json.load(found) == {"status": "ok"})


@pytest.mark.parametrize(
    ("start", "answers"),
    [
        (b"", 0),
        (b"GET /v1/relations HT", 0),
        (b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nX-Half: ", 0),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /heal", 1),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 1),
    ],
    ids=["nothing", "half a line", "half a head", "half a second request", "an idle one"],
)
def test_half_requests_are_given_up(server: Hosted, start: bytes, answers: int) -> None:
    with closing(server.connect()) as client:
        client.sendall(start)
        assert rest_of(client).count(b"HTTP/1.1 200 OK") == answers


def test_bodies_that_do_not_come(server: Hosted) -> None:
    with closing(server.connect()) as client:
        client.sendall(server.head("POST /v1/query HTTP/1.1", "Content-Length: 100") + b"{")
        answer = rest_of(client)
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"C1627" in answer


def test_heads_that_never_end(server: Hosted) -> None:
    with closing(server.connect()) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
        assert until_refused(client, b"X-More: xxxxxxxx\r\n" * 50) < 4 << 20
    with closing(server.connect()) as client:
        assert until_refused(client, b"GET /" + b"x" * 10_000) < 4 << 20


START = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize(
    "head",
    [
        START + b"X: " + b"x" * 30_000 + b"\r\n\r\n",
        START + b"".join(b"X-%d: %s\r\n" % (n, b"x" * 40) for n in range(600)) + b"\r\n",
        START + b"X:" + b" " * 60_000 + b"x\r\n\r\n",
        b"GET /healthz?" + b"x" * 30_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
    ids=["a header", "many headers", "blanks", "a path"],
)
@pytest.mark.parametrize("piece", [1 << 20, 1000], ids=["at once", "in pieces"])
@pytest.mark.parametrize("before", [b"", START + b"\r\n"], ids=["first", "second"])
def test_heads_that_are_too_long(server: Hosted, head: bytes, piece: int, before: bytes) -> None:
    """However they come, nothing is answered but that."""
    with closing(server.connect()) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.sendall(before)
        answer = b""
        while before and not answer.endswith(b'{"status": "ok"}'):
            answer += client.recv(1 << 16)
        with suppress(ConnectionError):
            for start in range(0, len(head), piece):
                client.sendall(head[start : start + piece])
        answer = rest_of(client)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize(
    ("start", "more"),
    [
        (b"2\r\n{}\r\n0\r\n", b"X-More: xxxxxxxx\r\n" * 50),
        (b"2\r\n{}\r\n0\r\nX-More: ", b"x" * 1000),
        (b"2;", b"x" * 1000),
    ],
    ids=["trailers", "a trailer", "an extension of a chunk"],
)
def test_what_is_no_body_never_ends(server: Hosted, start: bytes, more: bytes) -> None:
    with closing(server.connect()) as client:
        head = server.head("POST /v1/query HTTP/1.1", "Transfer-Encoding: chunked")
        client.sendall(head + start)
        assert until_refused(client, more) < 4 << 20


def test_heads_after_an_answer_that_does_not_end(server: Hosted) -> None:
    with closing(server.connect()) as client:
        client.sendall(server.head("GET /v1/events?relation=p HTTP/1.1") + START)
        assert until_refused(client, b"X-More: xxxxxxxx\r\n" * 50) < 4 << 20


def test_trailers_are_no_headers(server: Hosted) -> None:
    head = b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    trailers = f"Authorization: Bearer {server.token}\r\nConnection: close\r\n\r\n".encode()
    with closing(server.connect()) as client:
        client.sendall(head + b"2\r\n{}\r\n0\r\n" + trailers)
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 401 ")


def test_heads_that_are_not_too_long(server: Hosted) -> None:
    """The limit counts heads one by one, and no bodies."""
    long = b"X: " + b"x" * 18_000 + b"\r\n"
    body = server.head("POST /v1/query HTTP/1.1", "Content-Length: 600000") + b"x" * 600_000
    last = START + long + b"Connection: close\r\n\r\n"
    with closing(server.connect()) as client:
        client.sendall((START + long + b"\r\n") * 3 + body + last)
        answer = rest_of(client)
    assert [line[9:12] for line in re.findall(rb"HTTP/1.1 \d+", answer)] == [b"200"] * 3 + [
        b"400",
        b"200",
    ]


def test_bodies_that_never_end(server: Hosted) -> None:
    """A length that is too large is refused at once, a body without one at the limit."""
    with closing(server.connect()) as client:
        client.sendall(server.head("POST /v1/query HTTP/1.1", "Content-Length: 99999999999"))
        assert rest_of(client).startswith(b"HTTP/1.1 413 ")
    with closing(server.connect()) as client:
        client.sendall(server.head("POST /v1/query HTTP/1.1", "Transfer-Encoding: chunked"))
        assert until_refused(client, b"1000\r\n" + b"x" * 0x1000 + b"\r\n") < 32 << 20


def test_nobody_waits_for_a_body_of_a_stranger(server: Hosted) -> None:
    """Who has no token is refused before anything is read."""
    with closing(server.connect()) as client:
        line = b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"
        client.sendall(line)
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize("path", ["/v1/relations", "/v1/events?relation=p"])
def test_readers_that_never_read(server: Hosted, path: str) -> None:
    """They are cut off, and meanwhile others are answered."""
    with ExitStack() as stack:
        stalled = []
        for _ in range(10):
            client = stack.enter_context(closing(server.connect()))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.sendall(server.head(f"GET {path} HTTP/1.1"))
            stalled.append(client)
        assert health(server)
        for client in stalled:
            with pytest.raises(ConnectionResetError):
                until_reset(client)
        assert health(server)


def test_a_slow_reader_gets_everything(server: Hosted) -> None:
    """Who reads now and then is not cut off."""
    with closing(server.connect()) as client:
        client.sendall(server.head("GET /v1/relations HTTP/1.1", "Connection: close"))
        found = 0
        for _ in range(6):
            time.sleep(LIMITS["stall_seconds"] / 2)
            for _ in range(8):
                found += len(client.recv(1 << 18))
        found += len(rest_of(client))
        assert found > len(LARGE)


def test_strange_bytes(server: Hosted) -> None:
    for line in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"\x00" * 100, b"GET\r\n\r\n"):
        with closing(server.connect()) as client:
            client.sendall(line)
            answer = rest_of(client)
            assert answer == b"" or answer.startswith(b"HTTP/1.1 400 ")
    assert health(server)
