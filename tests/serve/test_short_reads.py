"""A reader for short requests, and what a reader died of: it is not asked again."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

import corollary
from corollary.core.engine import Limits
from corollary.database.access.principals import OWNER
from corollary.errors import LimitError
from corollary.serve.answers import ServiceError
from corollary.serve.processes.front import JobQueue, is_lookup
from corollary.serve.processes.process_service import ProcessService
from corollary.serve.processes.supervision import Job
from corollary.serve.requests import QueryRequest, Request, SqlRequest
from corollary.serve.service import ServiceLimits
from support.bad_clients import GROWING, PRODUCT, PROGRAM
from support.serve.services import WRITER

LOOKUP = QueryRequest("edge(1, y)")
SCAN = SqlRequest("SELECT x FROM edge")
COUNTERS = ", ".join(
    f"t{at}(n) AS (SELECT {at} UNION SELECT n + 1 FROM t{at} WHERE n < 24000)" for at in range(8)
)
LONG = f"WITH RECURSIVE {COUNTERS} SELECT 1 FROM {', '.join(f't{at}' for at in range(8))}"
"""Takes most of a minute, and little memory."""


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("short") / "wh"
    with corollary.open(place, engine="local") as database:
        database.load(text=PROGRAM)
        with database.transaction() as transaction:
            transaction.insert("edge", [(at, at + 1) for at in range(2_000)])
    return place


@pytest.mark.parametrize(
    ("request_", "expected"),
    [(LOOKUP, True), (QueryRequest("edge(x, y)"), False), (SCAN, False)],
    ids=["bound", "free", "sql"],
)
def test_lookups(request_: Request, expected: bool) -> None:
    assert is_lookup(request_) is expected


def test_only_lookups_are_answered_together() -> None:
    async def test() -> list[list[int]]:
        queue = JobQueue()
        for number, request in enumerate([LOOKUP, LOOKUP, SCAN, SCAN, LOOKUP]):
            answer = asyncio.get_running_loop().create_future()
            queue.put(Job(number, OWNER, request, 200, answer, not is_lookup(request)))
        return [[each.number for each in await queue.take(64, 1 << 20)] for _ in range(4)]

    assert asyncio.run(test()) == [[0, 1], [2], [3], [4]]


def test_quick_questions_are_answered_together_with_those_of_the_same_client() -> None:
    async def test() -> list[list[int]]:
        queue = JobQueue()
        for number, who in enumerate([OWNER, OWNER, WRITER, WRITER, OWNER]):
            answer = asyncio.get_running_loop().create_future()
            queue.put(Job(number, who, SCAN, 200, answer, is_own=True))
        return [[each.number for each in await queue.take(64, 1 << 20)] for _ in range(3)]

    assert asyncio.run(test()) == [[0, 1], [2, 3], [4]]


@pytest.mark.integration
def test_a_lookup_does_not_wait_for_scans(warehouse: Path) -> None:
    async def test() -> None:
        limits = ServiceLimits(seconds=2.0)
        service = await ProcessService.open(str(warehouse), readers=2, limits=limits)
        try:
            scans = [asyncio.create_task(service.call(WRITER, SqlRequest(PRODUCT)))] * 2
            await asyncio.sleep(0)
            answer = await service.call(OWNER, LOOKUP)
            assert answer.json["rows"] == [[2]]
            assert not any(each.done() for each in scans)
            for each in await asyncio.gather(*scans, return_exceptions=True):
                assert isinstance(each, ServiceError)
                assert each.status == 422
                assert each.limit in {"seconds", "tuples"}  # whichever the machine comes to first
        finally:
            await service.close()

    asyncio.run(test())


@pytest.mark.integration
def test_what_a_reader_died_of_is_not_tried_again(warehouse: Path) -> None:
    async def test() -> None:
        service = await ProcessService.open(str(warehouse), readers=1)
        try:
            reader = service.readers[0]
            scan = asyncio.create_task(service.call(WRITER, SqlRequest(PRODUCT)))
            while not reader.has_begun:
                await asyncio.sleep(0.01)
            assert reader.pid is not None
            os.kill(reader.pid, signal.SIGKILL)
            with pytest.raises(ServiceError, match="C1611"):
                await scan
            assert (await service.call(OWNER, LOOKUP)).json["rows"] == [[2]]
            assert service.metrics.restarts == {"reader": 1}
        finally:
            await service.close()

    asyncio.run(test())


@pytest.mark.integration
def test_what_nobody_waits_for_is_stopped(warehouse: Path) -> None:
    async def test() -> None:
        limits = ServiceLimits(seconds=600.0)
        service = await ProcessService.open(str(warehouse), readers=1, limits=limits)
        try:
            reader = service.readers[0]
            scan = asyncio.create_task(service.call(WRITER, SqlRequest(LONG)))
            while not reader.has_begun:
                await asyncio.sleep(0.01)
            scan.cancel()
            async with asyncio.timeout(20):
                assert (await service.call(OWNER, LOOKUP)).json["rows"] == [[2]]
            assert service.metrics.restarts == {}
        finally:
            await service.close()

    asyncio.run(test())


@pytest.mark.slow
def test_a_text_that_doubles_meets_the_limit_on_memory() -> None:
    limits = Limits(growth=100 << 20)
    with (
        corollary.open(None, engine="local", limits=limits) as database,
        pytest.raises(LimitError, match="--limit-memory") as found,
    ):
        database.sql(GROWING)
    assert found.value.limit == "memory"
