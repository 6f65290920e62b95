"""Turns: one piece of work of each client at a time, and no turn is lost."""

from __future__ import annotations

import asyncio
import threading
from contextlib import closing

import pytest

from corollary.serve.answers import ServiceError
from corollary.serve.processes.lanes import Lanes, LaneThreads


async def has_turn(lanes: Lanes, name: str) -> bool:
    """Return whether a client gets a turn at once."""
    entering = asyncio.ensure_future(lanes.enter(name))
    for _ in range(5):
        await asyncio.sleep(0)
    if entering.done():
        entering.result()
        return True
    entering.cancel()
    await asyncio.gather(entering, return_exceptions=True)
    return False


def test_one_at_a_time_of_each_client() -> None:
    async def run() -> None:
        lanes = Lanes(places=2, requests=2)
        assert await has_turn(lanes, "ann")
        assert not await has_turn(lanes, "ann")
        assert await has_turn(lanes, "bob")
        assert not await has_turn(lanes, "carl")  # all places are taken
        lanes.leave("ann")
        assert await has_turn(lanes, "carl")
        lanes.leave("bob")
        lanes.leave("carl")
        assert not lanes.requests_of("ann") + lanes.requests_of("bob") + lanes.requests_of("carl")

    asyncio.run(run())


def test_too_many_requests_are_refused() -> None:
    async def run() -> None:
        lanes = Lanes(places=1, requests=2)
        await lanes.enter("ann")
        waiting = asyncio.ensure_future(lanes.enter("ann"))
        await asyncio.sleep(0)
        with pytest.raises(ServiceError, match="2 requests under way already"):
            await lanes.enter("ann")
        lanes.leave("ann")
        await waiting
        lanes.leave("ann")
        assert lanes.requests_of("ann") == 0

    asyncio.run(run())


def test_work_that_was_given_up_keeps_its_turn_until_it_ends() -> None:
    async def run() -> None:
        going_on = threading.Event()
        with closing(LaneThreads("work", places=2, requests=2)) as threads:
            first = asyncio.ensure_future(threads.run("ann", going_on.wait))
            await asyncio.sleep(0.01)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            second = asyncio.ensure_future(threads.run("ann", lambda: 2))
            assert await threads.run("bob", lambda: 1) == 1
            assert not second.done()
            going_on.set()
            assert await second == 2

    asyncio.run(run())
