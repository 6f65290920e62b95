"""Readers of a warehouse in partitions: they look tuples up themselves; scans are for Spark."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import corollary
from corollary.database.access.principals import OWNER, Principal
from corollary.database.options import PROBING
from corollary.engines.spark import jobs
from corollary.engines.spark.engine import SparkEngine
from corollary.engines.spark.relation import open_partition, source
from corollary.errors import InputError
from corollary.serve.answers import ServiceError
from corollary.serve.commands import CommandRequest
from corollary.serve.processes.front import FrontService, JobQueue
from corollary.serve.requests import QueryRequest, Request, SqlRequest
from support.serve.services import ask_all
from support.spark.in_process_partitions import share_out

PROGRAM = """
.decl sale(shop: number, item: symbol, pieces: number)
.decl sold(item: symbol, pieces: number)
sold(i, n) :- sale(_, i, _), n = sum p : { sale(_, i, p) }.
.decl big(shop: number, item: symbol) virtual
big(s, i) :- sale(s, i, n), n > 20.
"""
SALES = [(shop, f"item {item}", shop + item) for shop in range(20) for item in range(5)]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A warehouse whose relations are in partitions, with files of their own each."""
    monkeypatch.setattr(source, "BUILD_MIN_TUPLES", 1)
    with monkeypatch.context() as patch:
        share_out(patch, "partitions")
        with corollary.open(tmp_path / "w") as db:
            db.load(text=PROGRAM)
            with db.transaction() as tx:
                tx.insert("sale", SALES)
            db._store.fold(db._state)  # type: ignore[union-attr]
    return tmp_path / "w"


def test_a_reader_opens_the_partitions_that_it_asks(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "SCAN_MAX_TUPLES", 10)
    opened: list[str | None] = []
    open_base = open_partition._open_base

    def note(root: str, relation: Any, orders: Any, stored: Any) -> Any:
        opened.append(stored.base)
        return open_base(root, relation, orders, stored)

    monkeypatch.setattr(open_partition, "_open_base", note)
    with corollary.open(place, engine=PROBING) as reader:
        assert not opened
        assert reader.query("sale(7, item, n)").num_rows == 5
        assert len(opened) == 1
        assert reader.query('sale(7, "item 3", n)').to_pylist() == [{"n": 10}]
        assert reader.query("big(19, i)").num_rows == 3
        for goal in ("sale(x, y, n)", "big(s, i)"):
            with pytest.raises(InputError, match="C0996"):
                reader.query(goal)
        # It follows what others commit, and reads what is small.
        with corollary.open(place, engine="local") as writer, writer.transaction() as tx:
            tx.insert("sale", [(7, "new", 1)])
            tx.delete("sale", [(7, "item 0", 7)])
        reader.refresh()
        found = {row["item"] for row in reader.query("sale(7, item, n)").to_pylist()}
        assert found == {"new", "item 1", "item 2", "item 3", "item 4"}
        assert reader.query("sold(i, n)").num_rows == 6


class AnsweringService(FrontService):
    """A front whose readers and writer are functions."""

    def __init__(self, read: Callable[[Any], Any], write: Callable[[Any], Any]) -> None:
        from corollary.serve.service import ServiceLimits

        super().__init__(ServiceLimits(), None)
        self.answered: list[str] = []
        self._loops = [
            asyncio.create_task(self._answer("reader", self.reads, read)),
            asyncio.create_task(self._answer("writer", self.writes, write)),
        ]

    async def _answer(self, who: str, queue: Any, answer: Callable[[Any], Any]) -> None:
        while True:
            for job in await queue.take(1, 1 << 20):
                self.answered.append(who)
                try:
                    job.answer.set_result(answer(job.request))
                except ServiceError as error:
                    job.fail(error)

    def queue_of(self, _who: Principal, _request: Request) -> JobQueue:
        return self.reads

    async def watch(self, relations: frozenset[str]) -> None:
        """No change is told."""

    async def close(self) -> None:
        for each in self._loops:
            each.cancel()


def test_what_a_reader_refuses_the_writer_answers(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from corollary.serve.handlers.context import HandlerContext
    from corollary.serve.handlers.dispatch import handle
    from corollary.serve.service import ServiceLimits

    monkeypatch.setattr(jobs, "SCAN_MAX_TUPLES", 10)
    share_out(monkeypatch, "partitions")
    engine = partial(SparkEngine, execution=jobs.Execution.PROBES)

    async def run() -> None:
        contexts = []
        with monkeypatch.context() as patch:
            writer = corollary.open(place)
            patch.setattr("corollary.database.opening.create_engine", lambda *_, **__: engine())
            reader = corollary.open(place)
        for database in (reader, writer):
            context = HandlerContext(database, ServiceLimits())
            contexts.append(lambda request, context=context: handle(context, OWNER, request))
        service = AnsweringService(*contexts)
        asked = [
            QueryRequest("sale(7, item, n)"),
            QueryRequest("sale(x, y, n)"),
            SqlRequest("SELECT count(*) AS n FROM sale"),
            QueryRequest("no_such(x)"),
            CommandRequest("query", {"places": [str(place)], "goal": "sale(x, y, 3)"}),
        ]
        found = await ask_all(service, asked)
        assert [len(each.json["rows"]) for each in found[:3]] == [5, 100, 1]
        assert found[2].json["rows"] == [[100]]
        assert isinstance(found[3], ServiceError)
        assert found[4].json["status"] == 0
        lines = found[4].json["output"][0][1].splitlines()
        assert lines == ["x\ty", "0\titem 3", "1\titem 2", "2\titem 1", "3\titem 0"]
        assert sorted(service.answered) == ["reader"] * 5 + ["writer"] * 3
        await service.close()
        reader.close()
        writer.close()

    asyncio.run(run())
