"""What every service does before a request reaches a database: limits, queues, waiting."""

import asyncio
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable
from itertools import count

from corollary.database.access.principals import Principal
from corollary.database.reading.read_access import no_history
from corollary.database.reading.shape_plans import parse_simple_goal
from corollary.errors import SCAN_REFUSED
from corollary.serve import requests
from corollary.serve.answers import Answer, Event, ServiceError
from corollary.serve.handlers.context import BEHIND
from corollary.serve.handlers.failures import service_error
from corollary.serve.processes.group_commit import CommitReport
from corollary.serve.processes.supervision import Job
from corollary.serve.service import ServiceLimits, ServiceMetrics
from corollary.serve.subscriptions.hub import SubscriptionHub

BEHIND_POLL_SECONDS = 0.1
"""How often a commit of another process is looked for while a request waits for it."""
LOOKUP_MAX_CHARS = 2_000
"""A longer goal is not looked at, and waits for its turn alone."""
REQUEST_BYTES = 200
"""What a request without a text of changes counts."""


class JobQueue:
    """Requests that wait, and how many bytes they have.

    Args:
        arrival: is set when one comes; queues may share it.
    """

    def __init__(self, arrival: asyncio.Event | None = None) -> None:
        self.jobs: deque[Job] = deque()
        self.bytes = 0
        self._arrival = arrival or asyncio.Event()

    def __len__(self) -> int:
        return len(self.jobs)

    def put(self, job: Job) -> None:
        """Append a request."""
        self.jobs.append(job)
        self.bytes += job.size
        self._arrival.set()

    def put_back(self, jobs: list[Job]) -> None:
        """Let requests be the next ones, in their order."""
        self.jobs.extendleft(reversed(jobs))
        self.bytes += sum(each.size for each in jobs)
        self._arrival.set()

    async def take(self, max_jobs: int, max_bytes: int) -> list[Job]:
        """Wait for requests; return those that wait, from the first on, but at least one.

        One that was with a process when that died is returned alone, and so is one that asks for
        it.
        """
        while True:
            found = self.take_waiting(max_jobs, max_bytes)
            if found:
                return found
            self._arrival.clear()
            await self._arrival.wait()

    def take_waiting(self, max_jobs: int, max_bytes: int) -> list[Job]:
        """Return requests that wait, in the same way; none if there are none."""
        found: list[Job] = []
        taken = 0
        while self.jobs and len(found) < max_jobs:
            job = self.jobs[0]
            is_alone = job.is_alone or bool(job.tries)
            if found and (is_alone or taken + job.size > max_bytes):
                break
            if found and (job.is_own or found[0].is_own) and job.who != found[0].who:
                break
            self.jobs.popleft()
            self.bytes -= job.size
            if not job.answer.done():  # else the sender has gone
                found.append(job)
                taken += job.size
                if is_alone:
                    break
        return found

    def withdraw(self, name: str) -> list[Job]:
        """Return the requests of a principal, which no longer wait here."""
        found = [each for each in self.jobs if each.who.name == name]
        self.jobs = deque(each for each in self.jobs if each.who.name != name)
        self.bytes -= sum(each.size for each in found)
        return found

    def refuse_all(self, error: Callable[[], ServiceError]) -> None:
        """Fail all queued requests."""
        while self.jobs:
            self.jobs.popleft().fail(error())
        self.bytes = 0


class FrontService(ABC):
    """The part of a service that knows no database.

    Args:
        limits: the bounds on requests.
        place: the warehouse; None if the database is in memory, which has no events.

    Attributes:
        metrics: what it counts.
        limits: the bounds on requests.
        subscriptions: what sends events.
    """

    def __init__(self, limits: ServiceLimits, place: str | None) -> None:
        self.metrics = ServiceMetrics()
        self.limits = limits
        self.reads = JobQueue()
        self.writes = JobQueue()
        self.is_stopping = False
        self.subscriptions = (
            None
            if place is None
            else SubscriptionHub(place, self.watch, self.metrics, limits.subscribers)
        )
        self._numbers = count(1)
        self._running: Counter[str] = Counter()
        self._open_reads = 0
        self._open_writes = 0
        self._new_commit = asyncio.Condition()
        self._wakings: set[asyncio.Task[None]] = set()

    @property
    def is_ready(self) -> bool:
        """Whether it takes requests."""
        return not self.is_stopping

    @abstractmethod
    async def watch(self, relations: frozenset[str]) -> None:
        """Let commits watch these virtual relations, and no others."""

    @abstractmethod
    async def close(self) -> None:
        """Stop: what is running ends, what waits is refused; after ten seconds at most."""

    # --- requests ------------------------------------------------------------------------------

    async def call(self, who: Principal, request: requests.Request) -> Answer:
        """Answer a request.

        Raises:
            ServiceError: it has no answer.
        """
        if self.is_stopping:
            raise stopping()
        if self._running[who.name] >= self.limits.requests_per_token:
            text = f"`{who.name}` has {self._running[who.name]} requests under way already."
            note = "wait for answers before asking more, or ask for another token"
            raise ServiceError.of(429, "C1609", text, note, retry_after=1)
        self._running[who.name] += 1
        try:
            return await self._ask(who, request)
        finally:
            self._running[who.name] -= 1
            if not self._running[who.name]:
                del self._running[who.name]

    async def _ask(self, who: Principal, request: requests.Request) -> Answer:
        """Ask, again and again until the commit is there that the answer must have seen."""
        if request.min_commit is None:
            return await self._enqueue(who, request)
        loop = asyncio.get_running_loop()
        end = loop.time() + self.limits.min_commit_seconds
        while True:
            try:
                return await self._enqueue(who, request)
            except ServiceError as error:
                left = end - loop.time()
                if not error.has_code(BEHIND) or left <= 0:
                    raise
            await self._wait_for_commit(request.min_commit, min(left, BEHIND_POLL_SECONDS))

    async def _wait_for_commit(self, number: int, seconds: float) -> None:
        async with self._new_commit:
            try:
                async with asyncio.timeout(seconds):
                    await self._new_commit.wait_for(lambda: self.metrics.commit >= number)
            except TimeoutError:
                pass

    async def _enqueue(self, who: Principal, request: requests.Request) -> Answer:
        size = request_size(request)
        is_write = request.is_write
        self._refuse_if_full(size, is_write=is_write)
        self._count(1, is_write=is_write)
        queue = self.writes if is_write else self.queue_of(who, request)
        try:
            found = await self._wait_in(queue, who, request, size)
        finally:
            self._count(-1, is_write=is_write)
        self.metrics.commit = max(self.metrics.commit, found.commit)
        return found

    async def _wait_in(
        self, queue: JobQueue, who: Principal, request: requests.Request, size: int
    ) -> Answer:
        """Let a request wait in a queue, and perhaps in another one; return its answer."""
        is_own = self.is_quick(request)
        is_alone = not (request.is_write or is_own or is_lookup(request))
        while True:
            answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
            job = Job(next(self._numbers), who, request, size, answer, is_alone, is_own)
            queue.put(job)
            try:
                return await answer
            except ServiceError as error:
                following = self.next_queue(job, error)
                if following is None or queue is self.writes:
                    raise
                queue = following

    @abstractmethod
    def queue_of(self, who: Principal, request: requests.Request) -> JobQueue:
        """Return where a read waits."""

    def is_quick(self, request: requests.Request) -> bool:
        """Return whether a question was answered quickly before: others need not fear it much."""
        del request
        return False

    def next_queue(self, job: Job, error: ServiceError) -> JobQueue | None:
        """Return where a request waits again after an error; None if that is its answer."""
        is_scan = not job.request.is_write and error.has_code(SCAN_REFUSED)
        return self.writes if is_scan else None  # the writer may have tasks

    def _count(self, difference: int, *, is_write: bool) -> None:
        if is_write:
            self._open_writes += difference
        else:
            self._open_reads += difference
        self.metrics.queued["write"] = self._open_writes
        self.metrics.queued["read"] = self._open_reads

    def _refuse_if_full(self, size: int, *, is_write: bool) -> None:
        """Refuse a request if too many wait.

        Raises:
            ServiceError: `C1608`.
        """
        limits = self.limits
        if is_write:
            is_full = (
                self._open_writes >= limits.waiting_writes
                or self.writes.bytes + size > limits.waiting_bytes
            )
        else:
            is_full = (
                self._open_reads >= limits.waiting_reads
                or self.reads.bytes + size > limits.waiting_bytes
            )
        if is_full:
            what = "writes" if is_write else "reads"
            text = f"Too many {what} wait already; the server is busy."
            raise ServiceError.of(503, "C1608", text, "try again in a second", retry_after=1)

    def subscribe(
        self, who: Principal, request: requests.EventsRequest
    ) -> AsyncGenerator[Event, None]:
        """Yield events, until the iterator is closed or the service stops."""
        if self.is_stopping:
            raise stopping()
        if self.subscriptions is None:
            raise service_error(no_history())
        return self.subscriptions.subscribe(who, request)

    async def refuse_requests(self) -> None:
        """Begin to stop: subscribers hear of it, and what waits is refused."""
        self.is_stopping = True
        if self.subscriptions is not None:
            await self.subscriptions.close()
        self.writes.refuse_all(stopping)
        self.reads.refuse_all(stopping)

    # --- commits -------------------------------------------------------------------------------

    def note_commit(self, report: CommitReport) -> None:
        """Count a commit that this server has made, and wake up who waits for it."""
        metrics = self.metrics
        metrics.commits += 1
        metrics.commit = max(metrics.commit, report.number)
        metrics.commit_seconds += report.seconds
        metrics.grouped_requests += report.requests
        for name, (added, removed) in report.rows.items():
            for sign, rows in (("+", added), ("-", removed)):
                key = name, sign
                metrics.rows_changed[key] = metrics.rows_changed.get(key, 0) + rows
        if self.subscriptions is not None:
            self.subscriptions.notify()
        # The loop itself does not keep a task from being collected.
        task = asyncio.get_running_loop().create_task(self._wake())
        self._wakings.add(task)
        task.add_done_callback(self._wakings.discard)

    async def _wake(self) -> None:
        async with self._new_commit:
            self._new_commit.notify_all()


def stopping() -> ServiceError:
    """Return the error of a request to a server that stops."""
    text = "The server stops, and takes no more requests."
    return ServiceError.of(503, "C1605", text, "ask again when it runs", retry_after=5)


def unknown_outcome() -> ServiceError:
    """Return the error of a write whose process died while it was carried out."""
    text = "The writer died while it made this change; whether it was made is not known."
    note = "see `/v1/commits`; with an `Idempotency-Key` a change can be sent again safely"
    return ServiceError.of(503, "C1610", text, note, retry_after=1)


def fatal_request(role: str) -> ServiceError:
    """Return the error of a request at which a process died."""
    text = f"The {role} died at this request, which is not tried again."
    note = "ask for less; the log of the server has more"
    return ServiceError.of(503, "C1611", text, note, retry_after=5)


def ended_request(role: str, limit: str) -> ServiceError:
    """Return the error of a request whose process was killed at a limit."""
    text = f"The {role} was ended at this request: it took more {limit} than the limit allows."
    note = f"ask for less, or raise `--limit-{limit}` of the server"
    found = ServiceError.of(422, "C1611", text, note, exit_code=5)
    found.limit = limit
    return found


def request_size(request: requests.Request) -> int:
    """Return roughly how many bytes a request has."""
    match request:
        case (
            requests.ApplyRequest(changes=text)
            | requests.PushEventsRequest(events=text)
            | requests.PutProgramRequest(program=text)
            | requests.QueryRequest(goal=text)
        ):
            return REQUEST_BYTES + len(text)
        case (
            requests.SqlRequest(sql=text, parameters=values)
            | requests.SqlShapeRequest(sql=text, parameters=values)
        ):
            return REQUEST_BYTES + len(text) + sum(len(str(each)) for each in values.values())
        case _:
            return REQUEST_BYTES


def is_lookup(request: requests.Request) -> bool:
    """Whether a request is a goal of one atom with a value: many of them are answered together."""
    if not isinstance(request, requests.QueryRequest) or len(request.goal) > LOOKUP_MAX_CHARS:
        return False
    goal = parse_simple_goal(request.goal)
    return goal is not None and bool(goal.values)
