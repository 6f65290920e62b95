"""The limit on tuples counts those that a request works on, not those that are stored."""

import asyncio
from pathlib import Path

import corollary
from corollary.database.access.principals import OWNER
from corollary.serve.processes.local_service import LocalService
from corollary.serve.requests import QueryRequest
from corollary.serve.service import ServiceLimits

PROGRAM = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, y) :- path(x, z), edge(z, y).
.output path
"""


def test_what_algorithms_keep_of_a_view_is_not_work_of_a_request(tmp_path: Path) -> None:
    (tmp_path / "path.dl").write_text(PROGRAM)
    place = tmp_path / "warehouse"
    with corollary.open(place, engine="local", algorithm="ranked") as database:
        database.load(tmp_path / "path.dl")
        for each in range(30):  # ranks are kept from the second commit on
            with database.transaction() as transaction:
                transaction.insert("edge", [(each, each + 1)])

    async def ask() -> list[list[int]]:
        limits = ServiceLimits(tuples=40)
        service = await LocalService.open(lambda: corollary.open(place, engine="local"), limits)
        answer = await service.call(OWNER, QueryRequest("path(27, y)"))
        await service.close()
        rows: list[list[int]] = answer.json["rows"]
        return rows

    assert asyncio.run(ask()) == [[28], [29], [30]]
