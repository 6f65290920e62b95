"""A server under load: bound queries, grouped writes and subscribers at once, over HTTP.

Clients keep a connection each and send requests at a fixed rate; a request that is due while the
last one is unanswered waits, and its time counts from when it was due. Writers insert a tuple a
request, with a key; at the end every confirmed tuple has to be there, in its commit, and every
subscriber has to have seen every commit, in order.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

import corollary
from bench.figure import Figure
from corollary.database.access.principals import AccessRole
from corollary.serve.tokens import TokenStore
from corollary.warehouse.warehouse_catalog import WarehouseCatalog

NAME = "serve"
ABOUT = "bound queries, grouped writes and subscribers of a server, over HTTP"
PROGRAM = """
.decl edge(x: symbol, y: symbol)
.decl path(x: symbol, y: symbol)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.decl note(client: symbol, number: number)
"""
CHAINS, LENGTH = 1000, 20
SECONDS = float(os.environ.get("COROLLARY_BENCH_SERVE_SECONDS", "60"))
QUERIES_PER_SECOND, WRITES_PER_SECOND, SUBSCRIBERS = 1000, 100, 50
READERS, WRITERS = 100, 20
TOKENS = 10
P99_BAR_MILLISECONDS = 50.0
LATE_SECONDS = 5.0
"""Clients that are so late at the end give up what is left."""


@dataclass(slots=True)
class Load:
    """What clients have seen.

    Attributes:
        latencies: in seconds, by kind of request.
        errors: what went wrong.
        confirmed: by tuple of `note`, the commit that it was confirmed with.
        seen: by subscriber, the commits in the order of their events.
    """

    latencies: dict[str, list[float]] = field(default_factory=lambda: {"query": [], "write": []})
    errors: list[str] = field(default_factory=list)
    confirmed: dict[tuple[str, int], int] = field(default_factory=dict)
    seen: dict[int, list[int]] = field(default_factory=dict)


class Client:
    """A connection of HTTP/1.1 that is kept."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._token = token
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, method: str, path: str, body: bytes = b"", extra: str = "") -> None:
        """Send a request."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\n"
            f"Authorization: Bearer {self._token}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n{extra}\r\n"
        )
        self._streams[1].write(head.encode() + body)

    async def head(self) -> tuple[int, int]:
        """Read the head of an answer; return its status and its length, 0 if it has none."""
        assert self._streams is not None
        lines = (await self._streams[0].readuntil(b"\r\n\r\n")).decode().split("\r\n")
        lengths = [
            each.split(":")[1] for each in lines if each.lower().startswith("content-length")
        ]
        return int(lines[0].split()[1]), int(lengths[0]) if lengths else 0

    async def ask(self, path: str, body: bytes, extra: str = "") -> tuple[int, bytes]:
        """Post a document; return the status and the answer."""
        await self.send("POST", path, body, extra)
        status, length = await self.head()
        assert self._streams is not None
        return status, await self._streams[0].readexactly(length)

    def close(self) -> None:
        """End the connection."""
        if self._streams is not None:
            self._streams[1].close()

    async def lines(self) -> "asyncio.StreamReader":
        """Return the stream of an answer without end."""
        assert self._streams is not None
        return self._streams[0]


def run(scale: float) -> Iterator[Figure]:
    """Yield the figures."""
    del scale  # the load is what the specification says
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory) / "warehouse"
        with corollary.open(place, engine="local") as database:
            database.load(text=PROGRAM)
            with database.transaction() as transaction:
                edges = [
                    (f"c{chain}-{at}", f"c{chain}-{at + 1}")
                    for chain in range(CHAINS)
                    for at in range(LENGTH)
                ]
                transaction.insert("edge", edges)
            first = database.commits
        with closing(WarehouseCatalog.open(place, create=False)) as opened:
            tokens = TokenStore(opened.catalog)
            secrets = [tokens.add(f"load{n}", AccessRole.WRITE) for n in range(TOKENS)]
        command = [sys.executable, "-m", "corollary", "serve", str(place), "--engine", "local"]
        command += ["--port", "0", "--format", "json"]
        with (
            (Path(directory) / "log").open("w") as log,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as server,
        ):
            assert server.stdout is not None
            try:
                port = urlsplit(json.loads(server.stdout.readline())["url"]).port or 0
                load = asyncio.run(_load(port, secrets, first))
            finally:
                server.terminate()
                server.wait(30)
        yield from _figures(load, place, first)


async def _load(port: int, secrets: list[str], first: int) -> Load:
    load = Load()
    ready = asyncio.Event()
    end = asyncio.get_running_loop().time() + SECONDS + 2.0
    subscribers = [
        asyncio.create_task(_subscribe(Client(port, secrets[n % TOKENS]), n, first, load))
        for n in range(SUBSCRIBERS)
    ]
    await asyncio.sleep(2.0)
    readers = [
        _repeat(Client(port, secrets[n % TOKENS]), n, READERS / QUERIES_PER_SECOND, end, load)
        for n in range(READERS)
    ]
    writers = [
        _write(Client(port, secrets[n % TOKENS]), n, WRITERS / WRITES_PER_SECOND, end, load)
        for n in range(WRITERS)
    ]
    await asyncio.gather(*readers, *writers)
    last = max(load.confirmed.values(), default=first)
    with_patience = time.monotonic() + 10.0
    while time.monotonic() < with_patience and not ready.is_set():
        if all(each and each[-1] >= last for each in load.seen.values()):
            ready.set()
        await asyncio.sleep(0.1)
    for each in subscribers:
        each.cancel()
    await asyncio.gather(*subscribers, return_exceptions=True)
    return load


async def _repeat(client: Client, number: int, pause: float, end: float, load: Load) -> None:
    """Ask bound goals, one every so often."""
    loop = asyncio.get_running_loop()
    due = loop.time() + pause * number / READERS
    at = number
    while due < end and loop.time() < end + LATE_SECONDS:
        await asyncio.sleep(max(0.0, due - loop.time()))
        at = (at * 7 + 13) % CHAINS
        body = json.dumps({"goal": f'path("c{at}-0", y)'}).encode()
        status, answer = await client.ask("/v1/query", body)
        load.latencies["query"].append(loop.time() - due)
        if status != 200 or answer.count(b"[") != LENGTH + 2:
            load.errors.append(f"query: {status} {answer[:200]!r}")
        due += pause


async def _write(client: Client, number: int, pause: float, end: float, load: Load) -> None:
    """Insert tuples, one every so often, each with its key."""
    loop = asyncio.get_running_loop()
    due, count = loop.time() + pause * number / WRITERS, 0
    while due < end and loop.time() < end + LATE_SECONDS:
        await asyncio.sleep(max(0.0, due - loop.time()))
        row = f"w{number}", count
        change = json.dumps({"op": "insert", "relation": "note", "row": row})
        body = json.dumps({"changes": [json.loads(change)]}).encode()
        key = f"Idempotency-Key: {number}-{count}\r\n"
        status, answer = await client.ask("/v1/apply", body, key)
        load.latencies["write"].append(loop.time() - due)
        if status == 200:
            load.confirmed[row] = json.loads(answer)["commit"]
        else:
            load.errors.append(f"write: {status} {answer[:200]!r}")
        count += 1
        due += pause


async def _subscribe(client: Client, number: int, first: int, load: Load) -> None:
    seen = load.seen[number] = []
    await client.send("GET", f"/v1/events?relation=note&since={first}")
    await client.head()
    stream = await client.lines()
    while True:
        line = (await stream.readline()).decode()
        found = line[line.find("data: ") :]
        if found.startswith("data: {"):
            seen.append(json.loads(found[6:])["commit"])


def _figures(load: Load, place: Path, first: int) -> Iterator[Figure]:
    with corollary.open(place, engine="local") as database:
        stored = set(database.relation("note").rows())
        commits = database.commits - first
    lost = [f"lost: {each}" for each in load.confirmed if each not in stored]
    unordered = [
        f"subscriber {number}: {len(set(seen))} of {commits} commits"
        for number, seen in load.seen.items()
        if sorted(set(seen)) != list(range(first + 1, first + commits + 1)) or seen != sorted(seen)
    ]
    wrong = tuple((load.errors + lost + unordered)[:5])
    for kind, seconds in load.latencies.items():
        times = np.array(seconds) * 1000
        about = f"{len(times):,} requests in {SECONDS:g} s, median {np.median(times):.1f} ms"
        yield Figure(
            f"{kind} p99",
            float(np.percentile(times, 99)),
            "ms",
            P99_BAR_MILLISECONDS,
            about,
            differences=wrong if kind == "query" else (),
        )
    about = f"{len(load.confirmed):,} writes; {SUBSCRIBERS} subscribers saw all of them"
    yield Figure("commits", commits / SECONDS, "/s", None, about)
