"""A service of several processes: a writer that commits, and readers on the committed state."""

import asyncio
import contextlib
import os
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from corollary.database.engines import LOCAL, PROBING, SPARK
from corollary.serve.processes.front import (
    FrontService,
    fatal_request,
    stopping,
    unknown_outcome,
)
from corollary.serve.processes.group_commit import CommitReport
from corollary.serve.processes.supervision import (
    Job,
    Worker,
    WorkerDiedError,
    WorkerSettings,
)
from corollary.serve.requests import ApplyRequest
from corollary.serve.service import ServiceLimits

READ_BATCH_REQUESTS = 64
"""The maximum number of reads that a reader gets at once."""
MAX_TRIES = 2
"""A request that was with so many processes when they died is not tried again."""
OVERTIME_FACTOR = 3
"""A reader that takes so many times the limit of a request is killed."""


class ProcessService(FrontService):
    """Answers requests in processes of its own; starts them again when they die.

    Args:
        place: the warehouse.
        options: those of `open_database`, for the writer; readers use the local engine. If that of
            the writer is Spark, they look up tuples in partitions themselves, and what reads large
            relations is answered by the writer.
        readers: the number of readers; one less than the machine has processors if not given.
        limits: the bounds on requests.
    """

    def __init__(
        self,
        place: str,
        options: Mapping[str, Any] | None = None,
        *,
        readers: int | None = None,
        limits: ServiceLimits | None = None,
    ) -> None:
        super().__init__(limits or ServiceLimits(), place)
        bounds = asdict(self.limits)
        writing = {"engine": "local", **(options or {})}
        engine = PROBING if writing["engine"] == SPARK else LOCAL
        reading = {"engine": engine, "functors": writing.get("functors", ())}
        self.writer = Worker(
            WorkerSettings("writer", "writer", place, writing, bounds),
            self._on_writer_event,
            self._on_writer_start,
        )
        number = max(1, (os.cpu_count() or 2) - 1) if readers is None else readers
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
        options: Mapping[str, Any] | None = None,
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
            has_key = isinstance(request, ApplyRequest) and request.idempotency_key is not None
            job.tries += job.has_begun or not is_begun
            if self.is_stopping:
                job.fail(unknown_outcome() if job.has_begun else stopping())
            elif job.has_begun and (job.tries >= MAX_TRIES or not has_key):
                job.fail(unknown_outcome())
            elif job.tries >= MAX_TRIES:
                job.fail(fatal_request("writer"))
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
            document["number"],
            document["seconds"],
            document["requests"],
            rows,
            document["timings"],
        )
        for each in self.readers:
            each.post({"type": "commit", "number": report.number, "timings": report.timings})
        self.note_commit(report)

    async def _on_writer_start(self, writer: Worker) -> None:
        if self._watched:
            writer.post({"type": "watch", "relations": sorted(self._watched)})

    # --- readers -------------------------------------------------------------------------------

    async def _read(self, reader: Worker) -> None:
        """Send reads to a reader; a batch forms while it answers the last one."""
        while True:
            jobs = await self.reads.take(READ_BATCH_REQUESTS, self.limits.group_bytes)
            bound = self.limits.seconds * OVERTIME_FACTOR + len(jobs)
            try:
                async with asyncio.timeout(bound):
                    await reader.do(jobs)
                self.metrics.reader_commits[reader.settings.name] = reader.commit
            except (WorkerDiedError, TimeoutError) as error:
                if isinstance(error, TimeoutError):
                    reader.kill()
                self._repeat_reads(jobs)

    def _repeat_reads(self, jobs: list[Job]) -> None:
        again = []
        for job in jobs:
            if job.answer.done():
                continue
            job.tries += 1
            if job.tries >= MAX_TRIES:
                job.fail(fatal_request("reader"))
            else:
                again.append(job)
        self.reads.put_back(again)

    def _on_reader_event(self, _: dict[str, Any]) -> None:
        """Count a reader that has died: it tells nothing else."""
        self._count_restart("reader")

    def _count_restart(self, role: str) -> None:
        self.metrics.restarts[role] = self.metrics.restarts.get(role, 0) + 1
