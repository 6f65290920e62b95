"""Work of many clients side by side: one piece of each client at a time.

Whoever asks for much waits for himself; another client is served at once.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from typing import Any, TypeVar

from corollary.data_class import dataclass
from corollary.serve.answers import ServiceError

Result = TypeVar("Result")


@dataclass(slots=True)
class _Lane:
    """The work of one client: what runs, and how many wait for that or run."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    requests: int = 0


class Lanes:
    """Says who may work now.

    Args:
        places: how many clients may work at once.
        requests: how many requests one client may have, with those that wait.
    """

    def __init__(self, places: int, requests: int) -> None:
        self._places = asyncio.Semaphore(places)
        self._requests = requests
        self._lanes: dict[str, _Lane] = {}

    async def enter(self, name: str) -> None:
        """Wait for one's turn; `leave` ends it.

        Raises:
            ServiceError: the client has too many requests.
        """
        lane = self._lanes.setdefault(name, _Lane())
        if lane.requests >= self._requests:
            text = f"`{name}` has {lane.requests} requests under way already."
            raise ServiceError.of(429, "C1609", text, "wait for answers first", retry_after=1)
        lane.requests += 1
        try:
            await lane.turn.acquire()
            try:
                await self._places.acquire()
            except BaseException:
                lane.turn.release()
                raise
        except BaseException:
            self._forget(name, lane)
            raise

    def requests_of(self, name: str) -> int:
        """Return how many requests a client has under way."""
        lane = self._lanes.get(name)
        return 0 if lane is None else lane.requests

    def leave_after(self, name: str, work: "asyncio.Future[Any]") -> None:
        """Keep the turn until some work is done, whether somebody waits for it or not."""

        def leave(done: "asyncio.Future[Any]") -> None:
            self.leave(name)
            if not done.cancelled():
                done.exception()  # nobody may be there to look at it

        work.add_done_callback(leave)

    def leave(self, name: str) -> None:
        """Let the next one have the turn."""
        lane = self._lanes[name]
        self._places.release()
        lane.turn.release()
        self._forget(name, lane)

    def _forget(self, name: str, lane: _Lane) -> None:
        lane.requests -= 1
        if not lane.requests:
            del self._lanes[name]


class LaneThreads:
    """Threads in which clients let functions run, each client one at a time."""

    def __init__(self, name: str, places: int, requests: int) -> None:
        self._lanes = Lanes(places, requests)
        self._threads = ThreadPoolExecutor(places, name)

    async def run(self, name: str, call: Callable[[], Result]) -> Result:
        """Return what a function returns; if nobody waits for it any more, it ends nevertheless.

        Raises:
            ServiceError: the client has too many requests.
        """
        await self._lanes.enter(name)
        running = asyncio.get_running_loop().run_in_executor(self._threads, call)
        self._lanes.leave_after(name, running)
        return await asyncio.shield(running)

    def close(self) -> None:
        """Begin no more work."""
        self._threads.shutdown(wait=False, cancel_futures=True)
