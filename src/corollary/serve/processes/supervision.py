"""A process of the server as the front sees it: started, fed with batches, started again.

A process that dies takes nothing with it: the catalog is the truth. What it died of is not done
again: a read that it had alone fails; of several, each is asked alone. Writes are repeated if that
is safe, and else their senders learn that the outcome is not known.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from corollary.core.machine import own_memory
from corollary.data_class import dataclass
from corollary.database.access.principals import Principal
from corollary.database.options import DatabaseOptions
from corollary.serve.answers import Answer
from corollary.serve.processes import channel
from corollary.serve.requests import Request

LOG = logging.getLogger("corollary.serve")
MODULE = "corollary.serve.processes.worker"
RESTART_SECONDS = (0.0, 0.1, 0.5, 2.0, 5.0)
"""How long a process that dies again and again stays down, time after time."""
STABLE_SECONDS = 10.0
"""A process that has run so long is started again at once."""
START_SECONDS = 120.0
"""How long a process may take to open the warehouse."""


class WorkerDiedError(Exception):
    """The process has died; `has_begun` is whether the request may have been carried out."""

    def __init__(self, has_begun: bool) -> None:
        super().__init__("the process has died")
        self.has_begun = has_begun


@dataclass(slots=True, eq=False)
class Job:
    """A request that waits for its answer.

    Attributes:
        size: roughly its bytes.
        answer: is set with the answer, or an error.
        is_alone: whether a process gets it alone, and not together with others.
        is_own: whether a process gets it together with requests of the same principal only.
        is_hurried: whether it was given only some of its seconds.
        tries: how often it was sent to a process that died.
        has_begun: whether a process has begun to carry it out.
    """

    number: int
    who: Principal
    request: Request
    size: int
    answer: "asyncio.Future[Answer]"
    is_alone: bool = False
    is_own: bool = False
    is_hurried: bool = False
    tries: int = 0
    has_begun: bool = False

    def fail(self, error: Exception) -> None:
        """Let the sender have an error."""
        if not self.answer.done():
            self.answer.set_exception(error)


async def start_process(
    module: str,
) -> tuple[asyncio.subprocess.Process, asyncio.StreamReader, asyncio.StreamWriter]:
    """Run a module in a process that inherits one end of a socket; return it, and the other end."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            module,
            str(theirs.fileno()),
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
        )
    ours.setblocking(False)
    return process, *await asyncio.open_unix_connection(sock=ours)


def kill_process(process: asyncio.subprocess.Process) -> None:
    """Kill a process at once, if it runs."""
    if process.returncode is None:
        # Not by the method of the process, which would take its status from who waits for it.
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)


@dataclass(slots=True)
class WorkerSettings:
    """What a process opens.

    Attributes:
        name: of the process: `writer`, `reader-1`.
        role: `writer` or `reader`.
        place: the warehouse.
        options: of the database.
        limits: the bounds on requests.
    """

    name: str
    role: str
    place: str
    options: DatabaseOptions
    limits: Mapping[str, Any]

    def document(self) -> dict[str, Any]:
        """Return the settings as the process reads them."""
        return {
            "role": self.role,
            "place": self.place,
            "options": self.options.as_json(),
            "limits": dict(self.limits),
        }


@dataclass(slots=True, eq=False)
class Worker:
    """A process, which is started again when it dies.

    Attributes:
        settings: what it opens.
        on_event: called with frames that are not answers (`commit`), and when it has `died`.
        on_start: called whenever it is ready; what it sends comes first.
        restarts: how often it was started again.
        commit: the last commit that it has told of.
        memory: what it had taken when it was ready.
        end: why it was killed, if the front did that.
    """

    settings: WorkerSettings
    on_event: Callable[[dict[str, Any]], None]
    on_start: Callable[["Worker"], Awaitable[None]] | None = None
    restarts: int = 0
    commit: int = 0
    memory: int = 0
    end: str = ""
    _begun_memory: int = 0
    _jobs: dict[int, Job] = field(default_factory=dict)
    _process: "asyncio.subprocess.Process | None" = None
    _stream: asyncio.StreamWriter | None = None
    _idle: "asyncio.Event | None" = None
    _ready: asyncio.Event = field(default_factory=asyncio.Event)
    _runner: "asyncio.Task[None] | None" = None
    _is_stopping: bool = False

    @property
    def is_ready(self) -> bool:
        """Whether the process runs, and takes requests."""
        return self._ready.is_set()

    @property
    def pid(self) -> int | None:
        """The id of the process, if it runs."""
        return None if self._process is None else self._process.pid

    async def start(self) -> None:
        """Start the process, and wait until it is ready.

        Raises:
            ServiceError: it cannot open the warehouse.
        """
        try:
            stream = await self._open()
        except BaseException:
            await self._abandon()
            raise
        self._runner = asyncio.create_task(self._run(stream))

    async def wait_until_ready(self) -> None:
        """Wait until the process takes requests."""
        await self._ready.wait()

    @property
    def held_bytes(self) -> int:
        """What the process has taken since it was ready."""
        return own_memory(self.pid) - self.memory

    def post(self, document: Mapping[str, Any]) -> None:
        """Send a frame that needs no answer, if the process runs."""
        if self._stream is not None and self.is_ready:
            self._stream.write(channel.encode_frame(document))

    @property
    def has_begun(self) -> bool:
        """Whether the process has begun with a request that is not answered yet."""
        return any(each.has_begun for each in self._jobs.values())

    @property
    def grown_bytes(self) -> int:
        """What the process has taken for the requests that it answers; 0 if there are none."""
        return 0 if self._idle is None else own_memory(self.pid) - self._begun_memory

    async def do(
        self, jobs: Sequence[Job], seconds: float | None = None, *, is_quick: bool = False
    ) -> None:
        """Send requests, and wait until all of them are answered, or the process has died.

        Args:
            jobs: the requests.
            seconds: what each may take, if that is less than the limit.
            is_quick: whether the answers come together, without a word when they are begun.

        Raises:
            WorkerDiedError: it has; some requests are not answered.
        """
        await self._ready.wait()
        assert self._stream is not None
        self._jobs = {each.number: each for each in jobs}
        if not is_quick:
            self._begun_memory = own_memory(self.pid)
        self._idle = asyncio.Event()
        documents = [channel.request_document(each.number, each.who, each.request) for each in jobs]
        frame = {"type": "requests", "requests": documents, "seconds": seconds}
        self._stream.write(channel.encode_frame({**frame, "is_quick": is_quick}))
        for each in jobs:
            each.answer.add_done_callback(self._abandon_if_unwanted)
        try:
            with contextlib.suppress(ConnectionError):
                await self._stream.drain()
            await self._idle.wait()
        finally:
            left, self._jobs, self._idle = list(self._jobs.values()), {}, None
        if any(not each.answer.done() for each in left):
            raise WorkerDiedError(any(each.has_begun for each in left))

    def _abandon_if_unwanted(self, _: "asyncio.Future[Answer] | None" = None) -> None:
        """Let a reader stop if nobody waits for any of its answers."""
        is_unwanted = bool(self._jobs) and all(each.answer.done() for each in self._jobs.values())
        is_reader = self.settings.role == "reader"
        # It has not got the next requests yet, so that the signal cannot concern those.
        if is_unwanted and is_reader and self.has_begun and self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGUSR1)

    def kill(self, reason: str = "") -> None:
        """Kill the process at once; it is started again."""
        self.end = reason
        self._ready.clear()  # nothing more is sent to it
        if self._process is not None:
            kill_process(self._process)

    async def stop(self, seconds: float) -> None:
        """End the process: what it does is finished, within some seconds."""
        self._is_stopping = True
        self.post({"type": "stop"})
        if self._stream is not None:
            with contextlib.suppress(ConnectionError, RuntimeError):
                self._stream.write_eof()
        if self._process is not None:
            try:
                await asyncio.wait_for(self._process.wait(), max(0.1, seconds))
            except TimeoutError:
                self.kill()
                await self._process.wait()
        if self._runner is not None:
            self._runner.cancel()
            await asyncio.gather(self._runner, return_exceptions=True)
        if self._stream is not None:
            self._stream.close()
            with contextlib.suppress(ConnectionError):
                await self._stream.wait_closed()

    # --- the life of the process ---------------------------------------------------------------

    async def _open(self) -> asyncio.StreamReader:
        self._process, stream, self._stream = await start_process(
            "corollary.serve.processes.worker"
        )
        self._stream.write(channel.encode_frame(self.settings.document()))
        async with asyncio.timeout(START_SECONDS):
            frame = await channel.read_frame(stream)
        if frame is None:
            raise WorkerDiedError(has_begun=False)
        if frame[0]["type"] == "error":
            raise channel.parse_error(frame[0])
        self.commit = max(self.commit, frame[0]["commit"])
        self.memory, self.end = own_memory(self.pid), ""
        self._ready.set()
        if self.on_start is not None:
            await self.on_start(self)
        return stream

    async def _abandon(self) -> None:
        """Leave a process that has died, or has not become ready; nothing of it stays."""
        self._ready.clear()
        if self._stream is not None:
            self._stream.close()
        if self._process is not None:
            self.kill(self.end)  # it may still run, with a broken socket
            await self._process.wait()

    async def _run(self, stream: asyncio.StreamReader) -> None:
        """Read what the process sends; start it again when it has died."""
        failures = 0
        while True:
            began = time.monotonic()
            await self._read(stream)
            await self._abandon()
            if self._idle is not None:
                self._idle.set()
            if self._is_stopping:
                return
            failures = 0 if time.monotonic() - began > STABLE_SECONDS else failures + 1
            while True:
                pause = RESTART_SECONDS[min(failures, len(RESTART_SECONDS) - 1)]
                reason = self.end or "has died"
                LOG.warning("%s %s, and is started again", self.settings.name, reason)
                self.restarts += 1
                self.on_event({"type": "died"})
                await asyncio.sleep(pause)
                try:
                    stream = await self._open()
                    break
                except Exception as error:  # noqa: BLE001 - it is tried again
                    await self._abandon()
                    LOG.warning("%s cannot be started: %s", self.settings.name, error)
                    failures += 1

    async def _read(self, stream: asyncio.StreamReader) -> None:
        """Hand answers to those who wait for them, until the process has died."""
        while True:
            frame = await channel.read_frame(stream)
            if frame is None:
                return
            document, body = frame
            match document["type"]:
                case "answer":
                    job = self._jobs.pop(document["id"], None)
                    if job is not None and not job.answer.done():
                        job.answer.set_result(channel.parse_answer(document, body))
                case "error":
                    job = self._jobs.pop(document["id"], None)
                    if job is not None:
                        job.fail(channel.parse_error(document))
                case "begin":
                    for number in document["ids"]:
                        if number in self._jobs:
                            self._jobs[number].has_begun = True
                    self._abandon_if_unwanted()
                case "done":
                    self.commit = max(self.commit, document.get("commit", 0))
                    if self._idle is not None:
                        self._idle.set()
                case _:
                    self.on_event(document)
