"""A service of several processes: a writer that commits, and readers on the committed state."""

import asyncio
import contextlib
import os
import time
from collections import Counter, OrderedDict
from dataclasses import asdict
from typing import Any

from corollary.database.access.principals import Principal
from corollary.database.options import IN_PROCESS, LOCAL, PROBING, SPARK, DatabaseOptions
from corollary.serve import requests
from corollary.serve.answers import Answer, ServiceError
from corollary.serve.commands import DeclarationsRequest
from corollary.serve.processes import front
from corollary.serve.processes.group_commit import CommitReport
from corollary.serve.processes.supervision import Job, Worker, WorkerDiedError, WorkerSettings
from corollary.serve.service import ServiceLimits

READ_BATCH_REQUESTS = 64
"""The maximum number of reads that a reader gets at once."""
MAX_TRIES = 2
"""A write that was with this many processes when they died is not tried again."""
OVERTIME_SECONDS = 5.0
"""A reader that takes this much longer than its requests may take is killed."""
SHORT_SECONDS = 0.25
"""What a request may take in the reader for short ones; if it takes longer, it waits for others."""
SHORT_MAX_BYTES = 2_000
"""The bytes of a request that is tried there."""
MEMORY_WATCH_SECONDS = 0.1
"""How often the memory of processes is looked at."""
MEMORY_FACTOR = 1.5
"""A process that takes this many times the memory of a request is killed: it has not stopped."""
QUICK_SECONDS = 0.05
"""A question whose table came within this time is short when it is asked again."""
QUICK_MAX = 1024
"""The number of texts of such questions that are remembered."""
SHORT_KINDS: tuple[type[requests.Request], ...] = (
    *(requests.QueryRequest, requests.SqlRequest, requests.SqlShapeRequest, DeclarationsRequest),
    *(
        requests.RelationsRequest,
        requests.CommitsRequest,
        requests.CommitRequest,
        requests.ProgramRequest,
        requests.StatusRequest,
    ),
)
"""The requests that may be short."""


class ProcessService(front.FrontService):
    """Answers requests in processes of its own; starts them again when they die.

    Args:
        place: the warehouse.
        options: of the database, for the writer; readers use the local engine. If that of
            the writer is Spark, they look up tuples in partitions themselves, and what reads large
            relations is answered by the writer.
        readers: the number of readers; one less than the machine has processors if not given, but
            at least two. Where there are two or more, the first is for short requests.
        limits: the bounds on requests.
    """

    def __init__(
        self,
        place: str,
        options: DatabaseOptions = IN_PROCESS,
        *,
        readers: int | None = None,
        limits: ServiceLimits | None = None,
    ) -> None:
        super().__init__(limits or ServiceLimits(), place)
        self._arrival = asyncio.Event()
        self.reads, self.short_reads = front.JobQueue(self._arrival), front.JobQueue(self._arrival)
        self._slow: Counter[str] = Counter()
        self._quick: OrderedDict[str, None] = OrderedDict()
        bounds = asdict(self.limits)
        engine = PROBING if options.engine == SPARK else LOCAL
        reading = DatabaseOptions(engine, functors=options.functors)
        self.writer = Worker(
            WorkerSettings("writer", "writer", place, options, bounds),
            self._on_writer_event,
            self._on_writer_start,
        )
        number = max(2, (os.cpu_count() or 2) - 1) if readers is None else readers
        self.readers = [
            Worker(
                WorkerSettings(f"reader-{at}", "reader", place, reading, bounds),
                self._on_reader_event,
            )
            for at in range(1, number + 1)
        ]
        self._watched: frozenset[str] = frozenset()
        self._tasks: list[asyncio.Task[None]] = []
        self._batch: asyncio.Event = asyncio.Event()
        self._batch.set()

    @classmethod
    async def open(
        cls,
        place: str,
        options: DatabaseOptions = IN_PROCESS,
        *,
        readers: int | None = None,
        limits: ServiceLimits | None = None,
    ) -> "ProcessService":
        """Start all processes, and wait until they have opened the warehouse.

        Raises:
            ServiceError: it cannot be opened.
        """
        service = cls(place, options, readers=readers, limits=limits)
        workers = [service.writer, *service.readers]
        results = await asyncio.gather(*(each.start() for each in workers), return_exceptions=True)
        failure = next((each for each in results if isinstance(each, BaseException)), None)
        if failure is not None:
            await asyncio.gather(*(each.stop(1.0) for each in workers))
            raise failure
        service.metrics.commit = service.writer.commit
        service._tasks = [
            asyncio.create_task(service._write()),
            *(asyncio.create_task(service._read(each)) for each in service.readers),
            asyncio.create_task(service._watch_memory()),
        ]
        return service

    @property
    def is_ready(self) -> bool:
        """Whether it takes requests, and all processes run."""
        return (
            not self.is_stopping
            and self.writer.is_ready
            and any(each.is_ready for each in self.readers)
        )

    async def watch(self, relations: frozenset[str]) -> None:
        """Let commits watch these virtual relations, and no others."""
        self._watched = relations
        self.writer.post({"type": "watch", "relations": sorted(relations)})

    async def refuse_requests(self) -> None:
        """Begin to stop: subscribers hear of it, and what waits is refused."""
        await super().refuse_requests()
        self.short_reads.refuse_all(front.stopping)

    async def close(self) -> None:
        """Stop: the running group commits, waiting writes are refused; ten seconds at most."""
        end = time.monotonic() + self.limits.stop_seconds
        await self.refuse_requests()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.1, end - time.monotonic() - 1.0)):
                await self._batch.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        left = max(0.1, end - time.monotonic())
        await asyncio.gather(*(each.stop(left) for each in [self.writer, *self.readers]))

    # --- the writer ----------------------------------------------------------------------------

    async def _write(self) -> None:
        """Send groups of writes to the writer; a group forms while the last one commits."""
        limits = self.limits
        while True:
            jobs = await self.writes.take(limits.group_requests, limits.group_bytes)
            self._batch.clear()
            try:
                await self.writer.do(jobs)
            except WorkerDiedError:
                self._repeat_writes(jobs)
            finally:
                self._batch.set()

    def _repeat_writes(self, jobs: list[Job]) -> None:
        """Do writes again that the dead writer has not begun, or that have a key."""
        again = []
        left = [each for each in jobs if not each.answer.done()]
        is_begun = any(each.has_begun for each in left)
        for job in left:
            request = job.request
            has_key = (
                isinstance(request, requests.ApplyRequest | requests.PushEventsRequest)
                and request.idempotency_key is not None
            )
            job.tries += job.has_begun or not is_begun
            if self.is_stopping:
                job.fail(front.unknown_outcome() if job.has_begun else front.stopping())
            elif job.has_begun and (job.tries >= MAX_TRIES or not has_key or self.writer.end):
                job.fail(front.unknown_outcome())
            elif job.tries >= MAX_TRIES:
                job.fail(front.fatal_request("writer"))
            else:
                job.has_begun = False
                again.append(job)
        self.writes.put_back(again)

    def _on_writer_event(self, document: dict[str, Any]) -> None:
        """Tell readers and subscribers of a commit."""
        if document["type"] != "commit":
            self._count_restart("writer")
            return
        rows = {name: (added, removed) for name, (added, removed) in document["rows"].items()}
        report = CommitReport(
            document["number"], document["seconds"], document["requests"], rows, document["timings"]
        )
        for each in self.readers:
            each.post({"type": "commit", "number": report.number, "timings": report.timings})
        self.note_commit(report)

    async def _on_writer_start(self, writer: Worker) -> None:
        if self._watched:
            writer.post({"type": "watch", "relations": sorted(self._watched)})

    # --- readers -------------------------------------------------------------------------------

    async def call(self, who: Principal, request: requests.Request) -> Answer:
        """Answer a request; see `FrontService`."""
        began = time.monotonic()
        try:
            return await super().call(who, request)
        finally:
            if who.name not in self._running:
                del self._slow[who.name]
            if isinstance(request, requests.SqlRequest):
                self._note_seconds(request.sql, time.monotonic() - began)

    def _note_seconds(self, text: str, seconds: float) -> None:
        """Remember whether a question was short."""
        self._quick.pop(text, None)
        if seconds < QUICK_SECONDS and len(text) <= SHORT_MAX_BYTES:
            self._quick[text] = None
            if len(self._quick) > QUICK_MAX:
                self._quick.popitem(last=False)

    def is_quick(self, request: requests.Request) -> bool:
        """Return whether a question was answered quickly before: others need not fear it much."""
        return isinstance(request, requests.SqlRequest) and request.sql in self._quick

    def queue_of(self, who: Principal, request: requests.Request) -> front.JobQueue:
        """Return where a read waits: who asks for long ones waits for them with all requests.

        A table may take long to be sent, so a question for one is short if it was so before.
        """
        is_small = (
            isinstance(request, SHORT_KINDS) and front.request_size(request) <= SHORT_MAX_BYTES
        )
        is_table = getattr(request, "arrow", False) and not self.is_quick(request)
        is_short = is_small and not self._slow[who.name] and not is_table
        return self.short_reads if is_short else self.reads

    def next_queue(self, job: Job, error: ServiceError) -> front.JobQueue | None:
        """Return where a read waits again that was not short, or that needs the writer."""
        if not job.is_hurried or error.limit != "seconds":
            return super().next_queue(job, error)
        self._slow[job.who.name] += 1
        for other in self.short_reads.withdraw(job.who.name):
            self.reads.put(other)
        return self.reads

    async def _take_reads(self, reader: Worker) -> list[Job]:
        """Wait for what a reader does next: short requests, or whatever has waited longest."""
        queues = [self.short_reads, self.reads]
        if len(self.readers) > 1 and reader is self.readers[0]:
            queues.pop()
        while True:
            waiting = [each for each in queues if each.jobs]
            for queue in sorted(waiting, key=lambda each: each.jobs[0].number):
                found = queue.take_waiting(READ_BATCH_REQUESTS, self.limits.group_bytes)
                if found:
                    return found
            self._arrival.clear()
            await self._arrival.wait()

    async def _read(self, reader: Worker) -> None:
        """Send reads to a reader; a batch forms while it answers the last one."""
        is_hurried = len(self.readers) > 1 and reader is self.readers[0]
        seconds = SHORT_SECONDS if is_hurried else None
        while True:
            await reader.wait_until_ready()
            jobs = await self._take_reads(reader)
            for job in jobs:
                job.is_hurried = is_hurried
            is_quick = all(self.is_quick(each.request) for each in jobs)
            bound = (seconds or self.limits.seconds) * len(jobs) + OVERTIME_SECONDS
            try:
                async with asyncio.timeout(bound):
                    await reader.do(jobs, seconds, is_quick=is_quick)
                self.metrics.reader_commits[reader.settings.name] = reader.commit
            except (WorkerDiedError, TimeoutError) as error:
                if isinstance(error, TimeoutError):
                    reader.kill("took more seconds than its limit")
                self._repeat_reads(jobs, reader)
            self._restart_if_large(reader)

    def _repeat_reads(self, jobs: list[Job], reader: Worker) -> None:
        """Ask each of several reads alone of another reader; what a reader died of, fails."""
        left = [each for each in jobs if not each.answer.done()]
        is_begun = any(each.has_begun for each in left)
        if len(jobs) > 1 or not is_begun:
            for job in left:
                if isinstance(job.request, requests.SqlRequest):
                    self._quick.pop(job.request.sql, None)  # next time it says when it is begun
                job.tries += is_begun
                job.has_begun = False
            (self.reads if jobs[0].is_alone else self.short_reads).put_back(left)
            return
        limit = next((each for each in ("seconds", "memory") if each in reader.end), None)
        for job in left:
            job.fail(
                front.ended_request("reader", limit) if limit else front.fatal_request("reader")
            )

    # --- memory --------------------------------------------------------------------------------

    async def _watch_memory(self) -> None:
        """Kill processes that have taken much more memory for their requests than they may."""
        most = int(self.limits.memory * MEMORY_FACTOR)
        while True:
            await asyncio.sleep(MEMORY_WATCH_SECONDS)
            for each in (self.writer, *self.readers):
                if each.grown_bytes > most:
                    each.kill("took more memory than its limit")

    def _restart_if_large(self, reader: Worker) -> None:
        """Restart a reader that has kept much memory, when nothing waits for it."""
        is_idle = not self.reads.jobs and not self.short_reads.jobs
        if is_idle and reader.is_ready and reader.held_bytes > self.limits.memory:
            reader.kill("has kept more memory than a request may take")

    def _on_reader_event(self, _: dict[str, Any]) -> None:
        """Count a reader that has died: it tells nothing else."""
        self._count_restart("reader")

    def _count_restart(self, role: str) -> None:
        self.metrics.restarts[role] = self.metrics.restarts.get(role, 0) + 1
