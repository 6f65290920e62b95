"""A service in one process: one thread has the database, and answers request after request."""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from corollary.database.database import Database
from corollary.serve.answers import Answer, Event, ServiceError
from corollary.serve.handlers.context import HandlerContext
from corollary.serve.handlers.dispatch import handle
from corollary.serve.principals import Principal
from corollary.serve.requests import EventsRequest, Request
from corollary.serve.service import ServiceLimits, ServiceMetrics

Result = TypeVar("Result")


class LocalService:
    """Answers requests on a database of this process.

    >>> import asyncio, corollary
    >>> from corollary.serve.principals import OWNER
    >>> from corollary.serve.requests import QueryRequest
    >>> async def ask():
    ...     service = await LocalService.open(lambda: corollary.open(None, engine="local"))
    ...     answer = await service.call(OWNER, QueryRequest("1 = 1"))
    ...     await service.close()
    ...     return answer.json["rows"]
    >>> asyncio.run(ask())
    [[]]

    Attributes:
        metrics: what it counts.
    """

    def __init__(self, context: HandlerContext, thread: ThreadPoolExecutor) -> None:
        self.metrics = ServiceMetrics(commit=context.commit)
        self._context = context
        self._thread = thread
        self._is_stopping = False

    @classmethod
    async def open(
        cls, open_database: Callable[[], Database], limits: ServiceLimits | None = None
    ) -> "LocalService":
        """Open a database in the thread that will use it.

        Args:
            open_database: opens it.
            limits: the bounds on requests.
        """
        thread = ThreadPoolExecutor(1, "database")
        loop = asyncio.get_running_loop()
        try:
            context = await loop.run_in_executor(
                thread, lambda: HandlerContext(open_database(), limits or ServiceLimits())
            )
        except BaseException:
            thread.shutdown()
            raise
        return cls(context, thread)

    @property
    def is_ready(self) -> bool:
        """Whether it takes requests."""
        return not self._is_stopping

    async def call(self, who: Principal, request: Request) -> Answer:
        """Answer a request.

        Raises:
            ServiceError: it has no answer.
        """
        if self._is_stopping:
            raise stopping()
        answer = await self._run(lambda: handle(self._context, who, request))
        self.metrics.commit = max(self.metrics.commit, self._context.commit)
        return answer

    def subscribe(self, who: Principal, request: EventsRequest) -> AsyncIterator[Event]:
        """Yield events, until the iterator is closed or the service stops."""
        raise NotImplementedError

    async def close(self) -> None:
        """Stop: what is running ends, what waits is refused."""
        self._is_stopping = True
        await self._run(self._context.close)
        self._thread.shutdown()

    async def _run(self, function: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)


def stopping() -> ServiceError:
    """Return the error of a request to a server that stops."""
    text = "The server stops, and takes no more requests."
    return ServiceError.of(503, "C1605", text, "ask again when it runs", retry_after=5)
