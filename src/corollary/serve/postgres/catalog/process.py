"""Catalog queries in a process of their own, as the front sees it.

It is started at the first query. A query that nobody waits for any more is interrupted; if that
does not help, the process is killed, and what others have asked is asked again of the next one.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import field
from itertools import count
from typing import Any

import pyarrow as pa

from corollary.data_class import dataclass
from corollary.serve.postgres.problems import PgError
from corollary.serve.processes.channel import encode_frame, parse_answer, read_frame
from corollary.serve.processes.lanes import Lanes
from corollary.serve.processes.supervision import WorkerDiedError, kill_process, start_process

QUERY_SECONDS = 10.0
"""How long a query may take, with the time that it waits for others of the same client."""
INTERRUPT_SECONDS = 1.0
"""How long a query may go on after it was interrupted."""
PLACES = 4
"""How many clients can have a query at once."""
REQUESTS_MAX = 16
"""How many queries one client can have under way."""
TRIES = 2
MODULE = "corollary.serve.postgres.catalog.worker"


@dataclass(frozen=True, slots=True)
class CatalogQuery:
    """A query of DuckDB on the catalog of somebody.

    Attributes:
        user: who asks.
        database: the name of the database.
        relations: what the user may see: the answer to a `RelationsRequest`.
    """

    sql: str
    user: str
    database: str
    relations: bytes = field(repr=False)


class CatalogProcess:
    """Runs catalog queries, one of each client at a time."""

    def __init__(self) -> None:
        self._lanes = Lanes(PLACES, REQUESTS_MAX)
        self._numbers = count(1)
        self._queries: dict[int, asyncio.Future[pa.Table]] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._stream: asyncio.Future[asyncio.StreamWriter] | None = None
        self._running: asyncio.Task[None] | None = None
        self._is_spent = False

    @property
    def pid(self) -> int | None:
        """The id of the process, if it runs."""
        return None if self._process is None else self._process.pid

    def requests_of(self, user: str) -> int:
        """Return how many queries somebody has under way."""
        return self._lanes.requests_of(user)

    async def run(self, query: CatalogQuery) -> pa.Table:
        """Return the rows of a query.

        Raises:
            PgError: it cannot be run, or takes too long.
            ServiceError: the client has too many queries.
        """
        tries = 0
        while tries < TRIES:
            try:
                await self._started()  # what that takes is not the fault of the query
                async with asyncio.timeout(QUERY_SECONDS):
                    await self._lanes.enter(query.user)
                    return await self._answer(query)
            except TimeoutError:
                text = f"The query of the catalog took longer than {QUERY_SECONDS:g} seconds."
                raise PgError("57014", text) from None
            except WorkerDiedError as error:
                tries += error.has_begun
        raise PgError("58000", "The process that answers catalog queries has died.", "ask for less")

    async def close(self) -> None:
        """End the process, and all queries with it."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def _answer(self, query: CatalogQuery) -> pa.Table:
        """Send a query whose turn it is; the turn ends with the query."""
        number = next(self._numbers)
        answer: asyncio.Future[pa.Table] = asyncio.get_running_loop().create_future()
        self._lanes.leave_after(query.user, answer)
        if self._stream is None or not self._stream.done() or self._is_worn:
            answer.cancel()
            raise WorkerDiedError(has_begun=False)  # while the query waited for its turn
        self._queries[number] = answer
        document = {"sql": query.sql, "user": query.user, "database": query.database}
        frame = encode_frame({"type": "query", "id": number, **document}, query.relations)
        self._stream.result().write(frame)
        try:
            return await asyncio.shield(answer)
        except asyncio.CancelledError:
            self._interrupt(number)
            raise

    def _interrupt(self, number: int) -> None:
        if number in self._queries and self._stream is not None:
            self._stream.result().write(encode_frame({"type": "interrupt", "id": number}))
            asyncio.get_running_loop().call_later(INTERRUPT_SECONDS, self._kill_at, number)

    def _kill_at(self, number: int) -> None:
        """Kill the process if a query that was interrupted still runs."""
        if number in self._queries and self._process is not None:
            kill_process(self._process)

    @property
    def _is_worn(self) -> bool:
        """Whether the process has much memory that it does not give back, and can be replaced."""
        return self._is_spent and not self._queries

    # --- the process ---------------------------------------------------------------------------

    async def _started(self) -> asyncio.StreamWriter:
        """Start the process if it does not run; return what it reads."""
        if self._is_worn:
            await self.close()
        if self._stream is None:
            self._is_spent = False
            self._stream = asyncio.get_running_loop().create_future()
            self._running = asyncio.create_task(self._run(self._stream))
        return await asyncio.shield(self._stream)

    async def _run(self, ready: "asyncio.Future[asyncio.StreamWriter]") -> None:
        """Start the process, and hand answers to those who wait for them until it has died."""
        writer = None
        try:
            self._process, stream, writer = await start_process(MODULE)
            while (frame := await read_frame(stream)) is not None:
                if frame[0]["type"] == "ready":
                    ready.set_result(writer)
                else:
                    self._settle(*frame)
        finally:
            process, self._process, self._stream = self._process, None, None
            queries, self._queries = self._queries, {}
            for each in queries.values():
                each.set_exception(WorkerDiedError(has_begun=True))
            if not ready.done():
                ready.set_exception(WorkerDiedError(has_begun=True))
                ready.exception()  # nobody may be there to look at it
            if process is not None and writer is not None:
                kill_process(process)
                writer.close()
                await process.wait()

    def _settle(self, document: Mapping[str, Any], body: bytes) -> None:
        answer = self._queries.pop(document["id"])
        if document["type"] == "error":
            self._is_spent |= document["is_spent"]
            error = PgError(document["sqlstate"], document["message"], document["hint"])
            answer.set_exception(error)
        else:
            answer.set_result(parse_answer(document, body).table)
