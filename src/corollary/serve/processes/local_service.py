"""A service in one process: one thread has the database, and answers request after request."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from corollary.database.access.principals import Principal
from corollary.database.database import Database, open_arguments_of
from corollary.database.publishing import PublishTime
from corollary.serve.answers import Answer, ServiceError
from corollary.serve.handlers.context import HandlerContext
from corollary.serve.processes.front import FrontService, JobQueue
from corollary.serve.processes.goal_batches import answer_batch
from corollary.serve.processes.group_commit import CommitReport, GroupCommitter, Write
from corollary.serve.processes.supervision import Job
from corollary.serve.requests import Request
from corollary.serve.service import ServiceLimits
from corollary.serve.subscriptions.watching import set_watched

Result = TypeVar("Result")
READ_BATCH_REQUESTS = 64
"""The maximum number of reads that are answered before the next group of writes."""


class LocalService(FrontService):
    """Answers requests on a database of this process.

    >>> import asyncio, corollary
    >>> from corollary.database.access.principals import OWNER
    >>> from corollary.serve.requests import QueryRequest
    >>> async def ask():
    ...     service = await LocalService.open(lambda: corollary.open(None, engine="local"))
    ...     answer = await service.call(OWNER, QueryRequest("1 = 1"))
    ...     await service.close()
    ...     return answer.json["rows"]
    >>> asyncio.run(ask())
    [[]]
    """

    def __init__(
        self, context: HandlerContext, thread: ThreadPoolExecutor, limits: ServiceLimits
    ) -> None:
        opened = open_arguments_of(context.database)
        super().__init__(limits, None if opened is None else opened.location)
        self.metrics.commit = context.commit
        self._context = context
        self._thread = thread
        self._loop = asyncio.get_running_loop()
        self._committer = GroupCommitter(context, lambda _: None, self._report)
        self._idle = asyncio.Event()
        self._idle.set()
        self._tasks = [asyncio.create_task(self._write()), asyncio.create_task(self._read())]

    @classmethod
    async def open(
        cls,
        open_database: Callable[[], Database],
        limits: ServiceLimits | None = None,
        publish: PublishTime = PublishTime.SECOND,
    ) -> "LocalService":
        """Open a database in the thread that will use it.

        Args:
            open_database: opens it.
            limits: the bounds on requests.
            publish: when tables are published.
        """
        thread = ThreadPoolExecutor(1, "database")
        loop = asyncio.get_running_loop()
        bounds = limits or ServiceLimits()
        try:
            context = await loop.run_in_executor(
                thread, lambda: HandlerContext(open_database(), bounds, publish)
            )
        except BaseException:
            thread.shutdown()
            raise
        return cls(context, thread, bounds)

    async def watch(self, relations: frozenset[str]) -> None:
        """Let commits watch these virtual relations, and no others."""
        await self._run(partial(set_watched, self._context.database, relations))

    def queue_of(self, _who: Principal, _request: Request) -> JobQueue:
        """Return where a read waits: all of them in one queue."""
        return self.reads

    async def close(self) -> None:
        """Stop: what is running ends, what waits is refused."""
        end = time.monotonic() + self.limits.stop_seconds
        await self.refuse_requests()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.1, end - time.monotonic())):
                await self._idle.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._run(partial(self._context.finish_commits, is_last=True))
        await self._run(self._context.close)
        self._thread.shutdown()

    async def _write(self) -> None:
        limits = self.limits
        while True:
            jobs: list[Job] = []
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._context.publishing.wait):
                    jobs = await self.writes.take(limits.group_requests, limits.group_bytes)
            self._idle.clear()
            try:
                await self._run(partial(self._do_writes, jobs))
                if not self.writes.jobs:
                    await self._run(self._context.finish_commits)
            finally:
                self._idle.set()

    async def _read(self) -> None:
        while True:
            jobs = await self.reads.take(READ_BATCH_REQUESTS, self.limits.group_bytes)
            await self._run(partial(self._do_reads, jobs))

    def _do_writes(self, jobs: list[Job]) -> None:
        by_number = {each.number: each for each in jobs}
        writes = [Write(each.number, each.who, each.request) for each in jobs]
        for number, found in self._committer.run(writes):
            self._settle(by_number[number], found)

    def _do_reads(self, jobs: list[Job]) -> None:
        by_number = {each.number: each for each in jobs}
        requests = [(each.number, each.who, each.request) for each in jobs]
        for number, found in answer_batch(self._context, requests):
            self._settle(by_number[number], found)

    def _settle(self, job: Job, found: Answer | ServiceError) -> None:
        """Hand an answer over to the loop, which runs in another thread."""
        self._loop.call_soon_threadsafe(_settle, job, found)

    def _report(self, report: CommitReport) -> None:
        self._loop.call_soon_threadsafe(self.note_commit, report)

    async def _run(self, function: Callable[[], Result]) -> Result:
        return await self._loop.run_in_executor(self._thread, function)


def _settle(job: Job, found: Answer | ServiceError) -> None:
    if isinstance(found, ServiceError):
        job.fail(found)
    elif not job.answer.done():
        job.answer.set_result(found)
