"""Ten thousand subscribers of a server whose processes are killed: each sees all, in order.

A client sends changes at a fixed rate, each with its key, and sends it again until it is confirmed.
The others follow one of two relations over HTTP; whoever is cut off comes back with the number of
the last commit that it has seen whole. Meanwhile processes of the server are killed (SIGKILL) at
random: the one that commits, those that read, and at last the one that all are connected to. What
each subscriber has got is compared with the commits of the warehouse.
"""

import asyncio
import json
import os
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import numpy as np

import corollary
from bench.figure import Figure
from bench.process import processor_seconds
from bench.serve import Client
from corollary.core.machine import own_memory
from corollary.database.access.principals import AccessRole
from corollary.serve.runner import run_in_loop
from corollary.serve.tokens import TokenStore
from corollary.warehouse.warehouse_catalog import WarehouseCatalog

NAME = "subscribers"
ABOUT = "10,000 subscribers of a server whose processes are killed"
PROGRAM = """
.decl sent(number: number, at: number)
.decl even(number: number, at: number)
even(n, t) :- sent(n, t), n % 2 = 0.
"""
RELATIONS = ("sent", "even")
SUBSCRIBERS = 10_000
WAIT_SECONDS = 0.5
ANSWER_SECONDS = 20.0
PATIENCE_SECONDS = 120.0
DELAY_BAR_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Course:
    """What is to happen.

    Attributes:
        subscribers: how many there are.
        calm: the number of changes before the first kill.
        stormy: the number of those after it.
        kills: how many processes are killed, the server that all are connected to twice.
        pause: the seconds between two changes.

    The last change before the first kill, and the last one of all, are of both relations if there
    is an odd number of changes before them, and of all.
    """

    subscribers: int
    calm: int = 21
    stormy: int = 40
    kills: int = 8
    pause: float = 1.5


@dataclass(slots=True)
class Storm:
    """What has happened.

    Attributes:
        events: how many changes have come to subscribers.
        repeated: those of them that had come before a break already.
        breaks: how often a connection was lost.
        seen: the first text of a change, by relation and commit, and when it was sent.
        delays: in seconds, from sending a change until a subscriber has it, until the first kill.
        connected: the seconds until all were connected.
        kills: which processes were killed.
        deaths: how often each process of the server was, as its log says.
        memory: the bytes that the server takes for its subscribers.
        processor: the seconds that it used until the first kill, for which `calm` changes came.
        wrong: what should not be.
    """

    events: int = 0
    repeated: int = 0
    breaks: int = 0
    seen: dict[tuple[str, int], tuple[bytes, float]] = field(default_factory=dict)
    delays: list[float] = field(default_factory=list)
    connected: float = 0.0
    kills: list[str] = field(default_factory=list)
    deaths: dict[str, int] = field(default_factory=dict)
    memory: int = 0
    processor: float = 0.0
    calm: int = 0
    wrong: list[str] = field(default_factory=list)


class Subscriber(asyncio.Protocol):
    """One subscription, which comes back after a break.

    Attributes:
        commit: the last commit that it has seen whole, from which it goes on.
        got: the commits of the changes that have come, each once.
        is_open: whether it is connected, and has been told where it begins.
    """

    def __init__(self, storm: Storm, relation: str, token: str, port: int, since: int) -> None:
        self._storm = storm
        self.relation = relation
        self._token = token
        self._port = port
        self._rest = self._event = self._id = b""
        self._transport: asyncio.Transport | None = None
        self.commit = since
        self.got: list[int] = []
        self.is_open = False

    async def run(self) -> None:
        """Follow, and come back after a break; never all at once."""
        while True:
            await asyncio.sleep(WAIT_SECONDS * (1 + random.random()))
            with suppress(OSError):
                if self._transport is None:
                    connect = asyncio.get_running_loop().create_connection
                    await connect(lambda: self, "127.0.0.1", self._port)

    def leave(self) -> None:
        """End the connection."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for what follows the last commit."""
        self._transport, self._rest = cast("asyncio.Transport", transport), b""
        self._transport.write(
            f"GET /v1/events?relation={self.relation}&since={self.commit} HTTP/1.1\r\n"
            f"Host: 127.0.0.1:{self._port}\r\nAuthorization: Bearer {self._token}\r\n\r\n".encode()
        )

    def connection_lost(self, _: Exception | None) -> None:
        """Note that there is no connection."""
        self._transport, self.is_open = None, False
        self._storm.breaks += 1

    def data_received(self, data: bytes) -> None:
        """Take the lines that have come; those between them say how long a piece is."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            name, _, value = line.partition(b": ")
            if name == b"data":
                self._take(value)
            elif name == b"event":
                self._event = value
            elif name == b"id":
                self._id = value
            elif not line and self._id:  # a commit is whole
                self.commit, self._id, self.is_open = int(self._id), b"", True
            elif line.startswith(b"HTTP/1.1 5"):
                self.leave()

    def _take(self, data: bytes) -> None:
        storm = self._storm
        if self._event != b"change":
            if self._event != b"bye":
                storm.wrong.append(f"{self._event.decode()}: {data[:100]!r}")
            return
        commit = int(data[data.index(b" ") : data.index(b",")])
        if (self.relation, commit) not in storm.seen:
            sent = json.loads(data)["added"][0][1] / 1e6
            storm.seen[self.relation, commit] = data, sent
        first, sent = storm.seen[self.relation, commit]
        if data != first:
            storm.wrong.append(f"{data[:100]!r} is not {first[:100]!r}")
        storm.events += 1
        if not storm.kills:
            storm.delays.append(time.time() - sent)
        if not self.got or commit > self.got[-1]:
            self.got.append(commit)
        elif commit == self.got[-1]:
            storm.repeated += 1
        else:
            storm.wrong.append(f"{commit} comes after {self.got[-1]}")


class ServerUnderFire:
    """A server on a port that stays the same, and whose processes are killed.

    Args:
        place: the warehouse.
        subscribers: how many there are.
    """

    def __init__(self, place: Path, subscribers: int) -> None:
        with closing(socket.create_server(("127.0.0.1", 0))) as free:
            self.port = free.getsockname()[1]
        self._log = place.parent / "log"
        self._command = [
            *(sys.executable, "-m", "corollary", "serve", str(place), "--engine", "local"),
            *("--port", str(self.port), "--readers", "2", "--format", "json", "--log", "errors"),
            *("--limit-subscribers", str(subscribers)),
        ]
        self._process = self._start()

    def _start(self) -> "subprocess.Popen[str]":
        with self._log.open("a") as log:
            process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert process.stdout is not None
        assert process.stdout.readline(), self._log.read_text()
        return process

    @property
    def pid(self) -> int:
        """The process that subscribers are connected to."""
        return self._process.pid

    @property
    def processor(self) -> float:
        """The seconds of the processor that it has used, without those of its workers."""
        return processor_seconds(self.pid)[self.pid]

    def kill(self, *, is_front: bool) -> None:
        """Kill it, or one of the processes that it has started: one commits, two read."""
        if is_front:
            self._process.kill()
            self._wait()
            self._process = self._start()
            return
        workers = [each for each in processor_seconds(self.pid) if each != self.pid]
        chosen = random.choice(workers)
        with suppress(ProcessLookupError):  # it has been killed before, and comes again
            os.kill(chosen, signal.SIGKILL)

    def deaths(self) -> dict[str, int]:
        """Return how often each process has died, as the log says."""
        lines = self._log.read_text().splitlines()
        told = (each.partition(" has died")[0] for each in lines if " has died" in each)
        names = [re.split(r"[\s\"]", each)[-1] for each in told]
        return {name: names.count(name) for name in sorted(set(names))}

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        self._wait()

    def _wait(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout:
            self._process.wait(30)


def run(scale: float) -> Iterator[Figure]:
    """Yield the figures."""
    course = Course(max(10, int(SUBSCRIBERS * scale)))
    with tempfile.TemporaryDirectory() as directory:
        storm = Fire(Path(directory), course).run()
    yield from _figures(storm, course.subscribers)


class Fire:
    """Subscribers of a server, changes at a fixed rate, and kills.

    Args:
        directory: where the warehouse is made.
        course: what is to happen.
    """

    def __init__(self, directory: Path, course: Course) -> None:
        self._place = directory / "warehouse"
        self._course = course
        self._storm = Storm()
        with corollary.open(self._place, engine="local") as database:
            database.load(text=PROGRAM)
            self._first = database.commits
        with closing(WarehouseCatalog.open(self._place, create=False)) as opened:
            self._token = TokenStore(opened.catalog).add("storm", AccessRole.WRITE)

    def run(self) -> Storm:
        """Let it happen; return what has."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (max(soft, min(hard, 2 * self._course.subscribers)), hard)
        )
        server = ServerUnderFire(self._place, self._course.subscribers)
        try:
            run_in_loop(lambda: self._blow(server))
        finally:
            server.stop()
        storm = self._storm
        storm.deaths = server.deaths()
        with corollary.open(self._place, engine="local") as database:
            rows = database.relation("sent").rows()
            if sorted(n for n, _ in rows) != list(range(self._course.calm + self._course.stormy)):
                storm.wrong.append("changes were lost, or made twice")
            for relation in RELATIONS:
                commits = [
                    n
                    for each in database.feed(relation)
                    for n in each.arrow()["_commit_version"].to_pylist()
                ]
                expected = sorted(set(commits))
                got = [each.got for each in self._subscribers if each.relation == relation]
                storm.wrong += [
                    f"{relation}: {len(each)} commits, and not {len(expected)}: "
                    f"{sorted(set(expected) ^ set(each))[:5]}"
                    for each in got
                    if each != expected
                ]
        return storm

    async def _blow(self, server: ServerUnderFire) -> None:
        storm = self._storm
        before = own_memory(server.pid)
        self._subscribers = [
            Subscriber(storm, RELATIONS[at % 2], self._token, server.port, self._first)
            for at in range(self._course.subscribers)
        ]
        following = [asyncio.create_task(each.run()) for each in self._subscribers]
        began = time.perf_counter()
        await self._wait(lambda each: each.is_open, "connect")
        storm.connected = time.perf_counter() - began
        storm.memory = own_memory(server.pid) - before
        used = server.processor
        for number in range(self._course.calm):
            await self._send(number, server.port)
        await self._wait(lambda each: each.commit >= self._last, "see the last calm commit")
        storm.processor, storm.calm = server.processor - used, storm.events
        storm.memory = max(storm.memory, own_memory(server.pid) - before)
        every = max(1, self._course.stormy // max(1, self._course.kills))
        for at in range(self._course.stormy):
            killing = None
            if at % every == 0 and len(storm.kills) < self._course.kills:
                is_front = len(storm.kills) % max(2, self._course.kills // 2) == 1
                storm.kills.append("server" if is_front else "worker")
                killing = asyncio.create_task(self._kill(server, is_front=is_front))
            await self._send(self._course.calm + at, server.port)
            if killing is not None:
                await killing
        await self._wait(lambda each: each.commit >= self._last, "see the last commit")
        for task, subscriber in zip(following, self._subscribers, strict=True):
            task.cancel()
            subscriber.leave()
        await asyncio.gather(*following, return_exceptions=True)
        await asyncio.sleep(0.1)  # the loop closes the connections

    async def _kill(self, server: ServerUnderFire, *, is_front: bool) -> None:
        await asyncio.sleep(self._course.pause * random.random() / 10)  # while it is asked
        await asyncio.to_thread(server.kill, is_front=is_front)

    async def _send(self, number: int, port: int) -> None:
        """Send a change until it is confirmed."""
        began = time.perf_counter()
        row = [number, round(time.time() * 1e6)]
        change = {"changes": [{"op": "insert", "relation": "sent", "row": row}]}
        while time.perf_counter() < began + PATIENCE_SECONDS:
            with suppress(OSError, EOFError), closing(Client(port, self._token)) as client:
                key = f"Idempotency-Key: {number}\r\n"
                async with asyncio.timeout(ANSWER_SECONDS):
                    status, answer = await client.ask("/v1/apply", json.dumps(change).encode(), key)
                if status == 200:
                    self._last = json.loads(answer)["commit"]
                    break
                if status != 503:
                    self._storm.wrong.append(f"{status} {answer[:200]!r}")
                    break
            await asyncio.sleep(WAIT_SECONDS)
        await asyncio.sleep(max(0.0, began + self._course.pause - time.perf_counter()))

    async def _wait(self, is_there: Callable[[Subscriber], bool], what: str) -> None:
        end = time.perf_counter() + PATIENCE_SECONDS
        while not all(map(is_there, self._subscribers)):
            if time.perf_counter() > end:
                late = sum(not is_there(each) for each in self._subscribers)
                self._storm.wrong.append(f"{late} subscribers did not {what}")
                return
            await asyncio.sleep(0.1)


def _figures(storm: Storm, count: int) -> Iterator[Figure]:
    delays = np.array(storm.delays)
    about = f"{count:,} subscribers, connected in {storm.connected:.1f} s; "
    about += f"median {np.median(delays):.2f} s, the slowest {delays.max():.2f} s"
    wrong = tuple(storm.wrong[:5])
    yield Figure("delay p99", float(np.percentile(delays, 99)), "s", DELAY_BAR_SECONDS, about)
    about = f"{storm.calm:,} of them, in the process that clients are connected to"
    yield Figure("an event", 1e6 * storm.processor / storm.calm, "us", None, about)
    yield Figure("a subscriber", storm.memory / count / 1024, "KiB", None, "of memory there")
    deaths = ", ".join(f"{name} {times} times" for name, times in storm.deaths.items())
    about = f"all events in order; {storm.kills.count('server')} kills of the server, {deaths}; "
    about += f"{storm.breaks:,} connections lost, {storm.repeated:,} events came again"
    yield Figure("events", storm.events, "", None, about, differences=wrong)
