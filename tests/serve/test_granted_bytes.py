"""Every request as a reader: no byte of what was not granted, and no hint that it exists."""

from pathlib import Path

import pytest

import corollary
from corollary.database.access.principals import OWNER
from corollary.serve.answers import Answer, ServiceError
from corollary.serve.processes.local_service import LocalService
from corollary.serve.requests import (
    AlertsRequest,
    ApplyRequest,
    ChangesRequest,
    CommitRequest,
    CommitsRequest,
    ExplainRequest,
    GraphRequest,
    ProgramRequest,
    PutProgramRequest,
    QueryRequest,
    RelationRowsRequest,
    RelationsRequest,
    Request,
    SqlRequest,
    WhatIfRequest,
    WhyAddedRequest,
    WhyNotRequest,
    WhyRequest,
    request_kinds,
)
from support.serve.services import READER, insert, run_local

PROGRAM = """
.decl vault(code: symbol, target: symbol, owner: symbol)
.decl path(x: symbol, y: symbol)
path(x, y) :- vault(x, y, _).
.decl hidden_sum(n: number)
hidden_sum(n) :- n = count : { vault(_, _, _) }.
opened(x) :- +vault(x, _, _).
.alert opened "somebody opened {x} of hidden_message"
seen(x) :- +path(x, _).
.alert seen "path {x} is there"
"""
SECRETS = (b"vault", b"hidden", b"owner-", b"opened", b"secret-key")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("granted") / "w"
    with corollary.open(place, engine="local") as database:
        database.load(text=PROGRAM)
        with database.transaction(idempotency="secret-key") as transaction:
            transaction.insert(
                "vault", [("a", "b", "owner-1"), ("b", "c", "owner-2"), ("c", "e", "owner-3")]
            )
        database.grant("alice", "path")
        with database.transaction() as transaction:
            transaction.delete("vault", [("c", "e", "owner-3")])
            transaction.insert("vault", [("c", "d", "owner-4")])
    return place


def plain_requests() -> list[Request]:
    """One request of each kind at least, none of which names what is hidden."""
    return [
        QueryRequest('path("a", y)'),
        QueryRequest("path(x, y)", arrow=True),
        SqlRequest("SELECT * FROM path"),
        RelationsRequest(),
        RelationsRequest(at=3),
        RelationRowsRequest("path", where=("x=a",)),
        CommitsRequest(),
        CommitRequest(2),
        CommitRequest(3),
        ChangesRequest(),
        ChangesRequest("path"),
        WhyRequest('path("a", "b")'),
        WhyRequest('path("a", "b")', form="text"),
        WhyRequest('path("a", "b")', form="svg"),
        WhyNotRequest('path("z", "b")', insertions=2),
        WhyAddedRequest('path("a", "b")'),
        WhatIfRequest('path("a", "b")'),
        ExplainRequest('path("a", y)'),
        ExplainRequest(),
        ProgramRequest(),
        PutProgramRequest(""),
        GraphRequest(),
        GraphRequest(form="svg"),
        AlertsRequest(),
        ApplyRequest(""),
        insert("path", "a", "b"),
    ]


def test_no_answer_has_a_byte_of_what_is_hidden(place: Path) -> None:
    async def test(service: LocalService) -> None:
        asked = plain_requests()
        for kind in request_kinds().values():  # those that need no fields, such as a status
            if not any(isinstance(each, kind) for each in asked):
                try:
                    asked.append(kind())
                except TypeError:
                    continue
        for request in asked:
            try:
                answer = await service.call(READER, request)
            except ServiceError as error:
                found = repr(error.as_json()).encode()
            else:
                found = answer.body if answer.table is None else repr(answer.table).encode()
            assert [each for each in SECRETS if each in found] == [], request

    run_local(place, test)


@pytest.mark.parametrize(
    "ask",
    [
        lambda name: QueryRequest(f'{name}("a", y, z)'),
        lambda name: QueryRequest(f'path(x, y), {name}(x, "z", _)'),
        lambda name: QueryRequest(f"path(x, _), n = count : {{ {name}(x, _, _) }}"),
        lambda name: SqlRequest(f"SELECT * FROM {name}"),
        lambda name: SqlRequest(f"SELECT * FROM path WHERE x IN (SELECT code FROM {name})"),
        RelationRowsRequest,
        ChangesRequest,
        lambda name: WhyRequest(f'{name}("a", "b", "c")'),
        lambda name: WhyNotRequest(f'{name}("a", "z", "c")'),
    ],
)
def test_what_is_hidden_looks_like_what_does_not_exist(place: Path, ask: object) -> None:
    async def test(service: LocalService) -> None:
        answers = []
        for name in ("vault", "nosuc"):
            with pytest.raises(ServiceError) as found:
                await service.call(READER, ask(name))  # type: ignore[operator]
            answers.append(repr(found.value.as_json()).replace(name, "NAME"))
            assert found.value.status == 403
        assert answers[0] == answers[1]

    run_local(place, test)


def test_a_revoked_grant_is_gone_at_once(place: Path) -> None:
    async def test(service: LocalService) -> None:
        assert isinstance(await service.call(READER, QueryRequest('path("a", y)')), Answer)
        with corollary.open(place, engine="local") as database:
            database.revoke("alice", "path")
        try:
            for request in (QueryRequest('path("a", y)'), SqlRequest("SELECT * FROM path")):
                with pytest.raises(ServiceError) as found:
                    await service.call(READER, request)
                assert found.value.status == 403
            relations = await service.call(READER, RelationsRequest())
            assert relations.json["relations"] == []
            assert await service.call(OWNER, QueryRequest('path("a", y)'))
        finally:
            with corollary.open(place, engine="local") as database:
                database.grant("alice", "path")

    run_local(place, test)
