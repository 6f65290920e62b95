"""What a service does around requests: limits, waiting for a commit, snapshots, stopping."""

import asyncio
from pathlib import Path

import pytest

import corollary
from corollary.database.access.principals import OWNER
from corollary.serve.answers import Answer, ServiceError
from corollary.serve.handlers import dispatch
from corollary.serve.postgres.problems import pg_error
from corollary.serve.processes.local_service import LocalService
from corollary.serve.requests import (
    AlertsRequest,
    CommitsRequest,
    QueryRequest,
    RelationRowsRequest,
    RelationsRequest,
    SqlChangesRequest,
    SqlRequest,
    WhyRequest,
)
from corollary.serve.service import ServiceLimits
from support.serve.services import (
    PROGRAM,
    READER,
    WRITER,
    ask_all,
    delete,
    insert,
    make_warehouse,
    run_local,
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = make_warehouse(tmp_path_factory.mktemp("service") / "w")
    with corollary.open(place, engine="local") as database, database.transaction() as transaction:
        transaction.insert("edge", [("a", "b"), ("b", "c"), ("c", "d")])
        transaction.insert("stock", [("nut", 3), ("bolt", 5), ("Nutmeg", 1)])
    return place


def test_a_fact_of_the_text_cannot_be_deleted(tmp_path: Path) -> None:
    place = make_warehouse(tmp_path / "w", PROGRAM + 'edge("p", "q").\n')

    async def test(service: LocalService) -> None:
        statements = ("INSERT INTO stock VALUES ('n', 1)", "DELETE FROM edge WHERE x = 'p'")
        with pytest.raises(ServiceError, match="C0928") as found:
            await service.call(OWNER, SqlChangesRequest(statements))
        assert pg_error(found.value).sqlstate == "55000"
        assert "(`p`, `q`) of `edge` is asserted by the program text" in found.value.message
        rows = await service.call(OWNER, QueryRequest("stock(x, n)"))
        assert rows.json["rows"] == []
        kept, other = await ask_all(service, [delete("edge", "p", "q"), delete("edge", "q", "p")])
        assert isinstance(kept, Answer)
        assert isinstance(other, Answer)
        assert kept.json["kept"] == {
            "edge": {"rows": [["p", "q"]], "count": 1, "asserted_by": "the program text"}
        }
        assert "kept" not in other.json

    run_local(place, test)


def test_too_many_requests_of_one_token(place: Path) -> None:
    async def test(service: LocalService) -> None:
        found = await ask_all(service, [QueryRequest('path("a", y)') for _ in range(20)])
        refused = [each for each in found if isinstance(each, ServiceError)]
        assert len(refused) == 4
        assert {(each.status, each.retry_after) for each in refused} == {(429, 1)}
        assert "C1609" in refused[0].message
        others = await ask_all(service, [QueryRequest('path("a", y)')], READER)
        assert isinstance(others[0], Answer)

    run_local(place, test)


@pytest.mark.parametrize("what", ["reads", "writes", "bytes"])
def test_too_much_waits(tmp_path: Path, what: str) -> None:
    limits = ServiceLimits(
        waiting_reads=3 if what == "reads" else 512,
        waiting_writes=3 if what == "writes" else 256,
        waiting_bytes=1000 if what == "bytes" else 1 << 26,
    )

    async def test(service: LocalService) -> None:
        request = QueryRequest('path("a", y)')
        found = await ask_all(
            service, [request if what == "reads" else insert("edge", "a", "b") for _ in range(6)]
        )
        refused = [each for each in found if isinstance(each, ServiceError)]
        assert len(refused) == 3
        assert {(each.status, each.retry_after) for each in refused} == {(503, 1)}
        assert "C1608" in refused[0].message

    run_local(make_warehouse(tmp_path / "w"), test, limits)


def test_a_request_waits_for_its_commit(tmp_path: Path) -> None:
    limits = ServiceLimits(min_commit_seconds=0.3)

    async def test(service: LocalService) -> None:
        with pytest.raises(ServiceError, match="C1607") as found:
            await service.call(OWNER, QueryRequest('path("a", y)', min_commit=2))
        assert (found.value.status, found.value.retry_after) == (503, 1)
        waiting = asyncio.create_task(
            service.call(OWNER, QueryRequest('path("a", y)', min_commit=2))
        )
        await asyncio.sleep(0)
        await service.call(OWNER, insert("edge", "a", "b"))
        answer = await waiting
        assert (answer.json["rows"], answer.json["commit"]) == ([["b"]], 2)

    run_local(make_warehouse(tmp_path / "w"), test, limits)


def test_commits_of_others_are_seen(tmp_path: Path) -> None:
    place = make_warehouse(tmp_path / "w")

    async def test(service: LocalService) -> None:
        with corollary.open(place, engine="local") as database:
            with database.transaction() as transaction:
                transaction.insert("edge", [("a", "b")])
            request = QueryRequest('path("a", y)', min_commit=transaction.commit_number)
        assert (await service.call(OWNER, request)).json["rows"] == [["b"]]
        done = await service.call(OWNER, insert("edge", "b", "c"))
        assert done.json["commit"] == 3

    run_local(place, test)


def test_pages_show_one_state(tmp_path: Path) -> None:
    async def test(service: LocalService) -> None:
        await ask_all(service, [insert("edge", f"n{n}", "m") for n in range(6)])
        for first in (
            QueryRequest("edge(x, y)", limit=4),
            SqlRequest("SELECT x, y FROM edge", limit=4),
            RelationRowsRequest("edge", limit=4),
        ):
            page = await service.call(OWNER, first)
            await service.call(OWNER, delete("edge", "n5", "m"))
            rest = type(first)(
                **{
                    name: getattr(first, name)
                    for name in ("goal", "sql", "relation")
                    if hasattr(first, name)
                },
                cursor=page.json["cursor"],
            )
            last = await service.call(OWNER, rest)
            assert [row[0] for row in page.json["rows"]] == ["n0", "n1", "n2", "n3"]
            assert [row[0] for row in last.json["rows"]] == ["n4", "n5"]
            assert last.json["commit"] == page.json["commit"]
            assert last.json["cursor"] is None
            await service.call(OWNER, insert("edge", "n5", "m"))

    run_local(make_warehouse(tmp_path / "w"), test)


CONDITIONS = {
    ("item=nut",): ["nut"],
    ("item~NUT",): ["Nutmeg", "nut"],
    ("item~nut", "amount<3"): ["Nutmeg"],
    ("amount>=3",): ["bolt", "nut"],
    ("amount!=3",): ["Nutmeg", "bolt"],
    ("amount~5",): ["bolt"],
    ("item = nut",): ["nut"],
}


def test_conditions_on_rows(place: Path) -> None:
    async def test(service: LocalService) -> None:
        for where, expected in CONDITIONS.items():
            answer = await service.call(OWNER, RelationRowsRequest("stock", where=where))
            assert [row[0] for row in answer.json["rows"]] == expected
        for where in ("price=3", "amount", "amount=many", "=3", ""):
            with pytest.raises(ServiceError, match="C1604"):
                await service.call(OWNER, RelationRowsRequest("stock", where=(where,)))

    run_local(place, test)


def test_work_is_limited(tmp_path: Path) -> None:
    limits = ServiceLimits(tuples=1000)
    program = (
        PROGRAM
        + ".decl pair(x: symbol, y: symbol) virtual\npair(x, y) :- edge(x, _), edge(y, _).\n"
    )

    async def test(service: LocalService) -> None:
        lines = "\n".join(insert("edge", f"n{n}", "m").changes for n in range(50))
        await service.call(OWNER, type(insert("edge"))(lines))
        with pytest.raises(ServiceError, match=r"limit of \d+ tuples") as found:
            await service.call(OWNER, QueryRequest("pair(x, y)"))
        assert (found.value.status, found.value.exit_code) == (422, 5)
        answer = await service.call(OWNER, QueryRequest('pair("n1", y)'))
        assert len(answer.json["rows"]) == 50

    run_local(make_warehouse(tmp_path / "w", program), test, limits)


def test_a_service_that_stops_refuses(tmp_path: Path) -> None:
    async def test(service: LocalService) -> None:
        writes = [
            asyncio.create_task(service.call(WRITER, insert("edge", f"n{n}", "m")))
            for n in range(8)
        ]
        await asyncio.sleep(0.02)
        await service.close()
        found = await asyncio.gather(*writes, return_exceptions=True)
        done = [each for each in found if isinstance(each, Answer)]
        refused = [each for each in found if isinstance(each, ServiceError)]
        assert len(done) + len(refused) == 8
        assert all((each.status, each.retry_after) == (503, 5) for each in refused)
        with pytest.raises(ServiceError, match="C1605"):
            await service.call(OWNER, CommitsRequest())
        assert not service.is_ready

    async def run() -> None:
        place = make_warehouse(tmp_path / "w")
        service = await LocalService.open(lambda: corollary.open(place, engine="local"))
        await test(service)

    asyncio.run(run())


def test_a_database_in_memory_has_no_history() -> None:
    async def test(service: LocalService) -> None:
        found = await service.call(OWNER, RelationsRequest())
        assert [each["name"] for each in found.json["relations"]] == [
            "edge",
            "path",
            "reached",
            "stock",
        ]
        with pytest.raises(ServiceError, match="C0918"):
            await service.call(OWNER, CommitsRequest())

    run_local(None, test, program=PROGRAM)


def test_what_nobody_expects_is_logged_and_not_told(
    place: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> Answer:
        raise RuntimeError("/a/secret/path")

    monkeypatch.setitem(dispatch.HANDLERS, RelationsRequest, fail)

    async def test(service: LocalService) -> None:
        with pytest.raises(ServiceError, match="C1602") as found:
            await service.call(OWNER, RelationsRequest())
        assert found.value.status == 500
        assert "secret" not in repr(found.value.as_json())

    run_local(place, test)
    assert "/a/secret/path" in caplog.text


def test_forms_and_numbers_that_there_are_not(place: Path) -> None:
    async def test(service: LocalService) -> None:
        for request in (
            WhyRequest('path("a", "b")', form="pdf"),
            WhyRequest('path("a", "b")', limit_nodes=1_000_000),
            AlertsRequest(limit=-1),
        ):
            with pytest.raises(ServiceError, match="C1606"):
                await service.call(OWNER, request)

    run_local(place, test)
