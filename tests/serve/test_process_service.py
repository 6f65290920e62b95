"""Writer and readers in processes: answers, kills at random, stops."""

import asyncio
import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

import corollary
from corollary.core.arrow import to_python
from corollary.database.access.principals import OWNER
from corollary.serve.answers import Answer, ServiceError
from corollary.serve.processes.channel import encode_frame
from corollary.serve.processes.process_service import ProcessService
from corollary.serve.processes.supervision import Worker
from corollary.serve.requests import CommitRequest, EventsRequest, QueryRequest, SqlRequest
from support.serve.services import READER, ask_all, insert, make_warehouse

pytestmark = pytest.mark.integration

Result = TypeVar("Result")
KILLING_SECONDS = 5.0


def run(
    place: Path, test: Callable[[ProcessService], Awaitable[Result]], readers: int = 1
) -> Result:
    async def inner() -> Result:
        service = await ProcessService.open(str(place), readers=readers)
        try:
            return await test(service)
        finally:
            await service.close()

    return asyncio.run(inner())


def kill(worker: Worker) -> None:
    with contextlib.suppress(ProcessLookupError):
        if worker.pid is not None:
            os.kill(worker.pid, signal.SIGKILL)


def test_processes_answer_commit_and_recover(tmp_path: Path) -> None:
    place = make_warehouse(tmp_path / "w")

    async def test(service: ProcessService) -> None:
        found = await ask_all(service, [insert("edge", f"n{n}", "m") for n in range(12)])
        assert all(isinstance(each, Answer) for each in found)
        commit = service.metrics.commit
        answer = await service.call(OWNER, QueryRequest('path("n3", y)', min_commit=commit))
        assert (answer.json["rows"], answer.json["commit"]) == ([["m"]], commit)
        asked = [QueryRequest(f'path("n{n}", y)') for n in range(12)]
        assert [each.json["rows"] for each in await ask_all(service, asked)] == [[["m"]]] * 12
        with pytest.raises(ServiceError, match="C1040"):
            await service.call(READER, QueryRequest('edge("a", y)'))
        table = await service.call(OWNER, SqlRequest("SELECT x FROM edge", arrow=True))
        assert table.table is not None
        assert (table.table.num_rows, table.types) == (12, ("symbol",))
        yes = await service.call(OWNER, QueryRequest('path("n3", "m")', arrow=True))
        assert yes.table is not None
        assert (yes.table.num_rows, yes.table.num_columns) == (1, 0)
        timed = await service.call(OWNER, CommitRequest(commit))
        assert timed.json["phases"]
        # A request that cannot be read is an answer; those of other modules can.
        (unreadable,) = await ask_all(service, [QueryRequest(goal=b"x".decode(), limit="3")])  # type: ignore[arg-type]
        assert isinstance(unreadable, ServiceError)
        assert (unreadable.status, "C1600" in unreadable.message) == (400, True)
        # Events go on, and writes too, when the writer is killed.
        events = service.subscribe(OWNER, EventsRequest(("reached",)))
        first = await anext(events)
        assert first.id == commit
        kill(service.writer)
        kill(service.readers[0])
        await service.call(OWNER, insert("edge", "a", "b", idempotency_key="k"))
        async with asyncio.timeout(30):
            event = await anext(events)
            while event.event not in ("change", "reset"):
                event = await anext(events)
        assert (event.json["commit"], event.json["relation"]) == (commit + 1, "reached")
        answer = await service.call(OWNER, QueryRequest('path("a", y)', min_commit=commit + 1))
        assert answer.json["rows"] == [["b"]]
        assert service.metrics.restarts == {"writer": 1, "reader": 1}
        await events.aclose()
        await stop_while_writing(service, place, rows=13)

    run(place, test)


@pytest.mark.parametrize(("point", "is_done"), [("before_commit", False), ("after_commit", True)])
def test_a_writer_that_dies_at_every_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str, is_done: bool
) -> None:
    """A write with a key is tried once more, and then refused; or was done, and is found."""
    place = make_warehouse(tmp_path / "w")
    monkeypatch.setenv("COROLLARY_FAULT", point)

    async def test(service: ProcessService) -> None:
        keyed = await ask_all(service, [insert("edge", "a", "b", idempotency_key="k")])
        unkeyed = await ask_all(service, [insert("edge", "c", "d")])
        assert isinstance(keyed[0], Answer) is is_done
        assert isinstance(unkeyed[0], ServiceError)
        for each in (*keyed, *unkeyed):
            if isinstance(each, ServiceError):
                assert (each.status, "C1610" in each.message) == (503, True)

    run(place, test, readers=0)
    monkeypatch.delenv("COROLLARY_FAULT")
    with corollary.open(place, engine="local") as database:
        assert len(database.relation("edge")) == 2 * is_done


async def stop_while_writing(service: ProcessService, place: Path, rows: int) -> None:
    """Stop a service: the group that runs is committed, and no process stays."""
    requests = [insert("edge", f"s{n}", "m") for n in range(12)]
    writes = [asyncio.create_task(service.call(OWNER, each)) for each in requests]
    await asyncio.sleep(0.01)
    processes = [each.pid for each in (service.writer, *service.readers)]
    began = time.monotonic()
    await service.close()
    assert time.monotonic() - began < service.limits.stop_seconds
    found = await asyncio.gather(*writes, return_exceptions=True)
    assert all(isinstance(each, Answer | ServiceError) for each in found)
    for pid in processes:
        assert pid is not None
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    with corollary.open(place, engine="local") as database:
        done = sum(isinstance(each, Answer) for each in found)
        assert len(database.relation("edge")) == rows + done


def test_a_place_without_a_warehouse(tmp_path: Path) -> None:
    async def test() -> None:
        with pytest.raises(ServiceError, match="C0930"):
            await ProcessService.open(str(tmp_path), readers=0)

    asyncio.run(test())


@pytest.mark.parametrize("has_warehouse", [True, False])
def test_a_front_that_has_gone(tmp_path: Path, has_warehouse: bool) -> None:
    """A process that has just opened the warehouse, or cannot, ends without a word."""
    place = make_warehouse(tmp_path / "w") if has_warehouse else tmp_path / "none"
    settings = {"role": "writer", "place": str(place), "options": {"engine": "local"}, "limits": {}}
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(encode_frame(settings))
        ours.close()
        module, number = "corollary.serve.processes.worker", str(theirs.fileno())
        command = [sys.executable, "-m", module, number]
        done = subprocess.run(
            command, pass_fds=(theirs.fileno(),), capture_output=True, timeout=60, check=False
        )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_nothing_is_lost_when_processes_are_killed(tmp_path: Path) -> None:
    """Four clients count up, each in order; who gets no answer asks again with the same key."""
    place = make_warehouse(tmp_path / "w")
    chance = random.Random(22)
    confirmed: dict[int, list[int]] = {client: [] for client in range(4)}

    async def test(service: ProcessService) -> None:
        end = time.monotonic() + KILLING_SECONDS
        refused: set[int] = set()

        async def count_up(client: int) -> None:
            number = 0
            while time.monotonic() < end:
                row = f"c{client}", f"{number:06}"
                request = insert("edge", *row, idempotency_key=f"{client}-{number}")
                (answer,) = await ask_all(service, [request])
                if isinstance(answer, ServiceError):
                    refused.add(answer.status)
                    await asyncio.sleep(0.05)
                    continue
                assert answer.json["changes"]["edge"]["added"] == [list(row)]
                confirmed[client].append(answer.json["commit"])
                number += 1

        async def ask() -> None:
            last = 0
            while time.monotonic() < end:
                (answer,) = await ask_all(service, [QueryRequest('edge("c0", y)')])
                if isinstance(answer, ServiceError):
                    refused.add(answer.status)
                    continue
                rows = [row[0] for row in answer.json["rows"]]
                assert rows == [f"{each:06}" for each in range(len(rows))]  # no gap, in order
                assert len(rows) >= last  # one reader: it never goes back
                last = len(rows)
                await asyncio.sleep(0.01)

        async def break_things() -> None:
            while time.monotonic() < end:
                await asyncio.sleep(chance.uniform(0.2, 1.2))
                kill(chance.choice([service.writer, service.writer, service.readers[0]]))

        await asyncio.gather(*(count_up(each) for each in range(4)), ask(), break_things())
        assert service.metrics.restarts.get("writer", 0) >= 1
        assert refused <= {503}

    run(place, test)
    with corollary.open(place, engine="local") as database:
        rows = database.relation("edge").rows()
        assert len(rows) == len(set(rows))
        for client, commits in confirmed.items():
            assert commits == sorted(commits)
            stored = sorted(y for x, y in rows if x == f"c{client}")
            # The last one may be committed without having been confirmed.
            assert len(commits) <= len(stored) <= len(commits) + 1
            assert stored == [f"{each:06}" for each in range(len(stored))]
            for number, commit in enumerate(commits):
                added = to_python(database.changes(commit)["edge"].added)
                assert (f"c{client}", f"{number:06}") in added
