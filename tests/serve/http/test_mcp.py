"""The interface for agents, by the official client of the Model Context Protocol and by hand."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest

import corollary
from corollary.database.access.principals import AccessRole
from corollary.serve.http.mcp import PREFIX, TOOLS
from corollary.serve.processes.local_service import LocalService
from support.serve.threaded_server import ThreadedServer

if TYPE_CHECKING:
    from mcp.client.client import Client

PROGRAM = """
.decl edge(x: symbol, y: symbol)
.decl link(x: symbol, y: symbol)
link(x, y) :- edge(x, y).
link(x, z) :- link(x, y), edge(y, z).
.decl secret(x: symbol)
"""
READING = ["list", "describe", "sql", "query", "why", "why-not", "changes"]
NEW_EDGE = {"op": "insert", "relation": "edge", "row": ["c", "d"]}
MODERN = "2026-07-28"


@pytest.fixture(scope="module", params=[False, True], ids=["dry", "writes"])
def server(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[ThreadedServer]:
    place = tmp_path_factory.mktemp("mcp") / "wh"
    with corollary.open(place, engine="local") as db:
        db.load(text=PROGRAM)
        with db.transaction() as tx:
            tx.insert("edge", [("a", "b"), ("b", "c")])
        db.grant("alice", "link")

    async def service() -> LocalService:
        return await LocalService.open(lambda: corollary.open(place, engine="local"))

    with closing(ThreadedServer(place, service, allows_agent_writes=request.param)) as running:
        yield running


@asynccontextmanager
async def _client(server: ThreadedServer, token: str, mode: str) -> AsyncIterator[Client]:
    from mcp.client import client as agent  # takes a second, which every collection would
    from mcp.client.streamable_http import streamable_http_client

    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers) as http:
        transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
        async with agent.Client(transport, mode=mode) as client:
            yield client


def _with_client(
    server: ThreadedServer, token: str, mode: str, talk: Callable[[Client], Awaitable[None]]
) -> None:
    async def run() -> None:
        async with _client(server, token, mode) as client:
            await talk(client)

    anyio.run(run)


def _text(result: Any) -> str:
    (content,) = result.content
    return str(content.text)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_session_of_the_official_client(server: ThreadedServer, mode: str) -> None:
    async def talk(client: Client) -> None:
        assert client.protocol_version == (MODERN if mode == "auto" else "2025-11-25")
        assert client.server_info is not None
        assert client.server_info.name == "corollary"
        assert "`list`" in (client.instructions or "")
        tools = {each.name: each for each in (await client.list_tools()).tools}
        assert list(tools) == [each.name for each in TOOLS]
        assert tools["sql"].input_schema["required"] == ["sql"]
        assert all(each.description for each in tools.values())
        described = await client.call_tool("describe", {"relation": "link"})
        assert described.structured_content["reads"] == {"edge": ["positive"]}
        assert described.structured_content["definition"][0] == "link(x, y) :- edge(x, y)."
        rows = await client.call_tool("sql", {"sql": "SELECT y FROM link WHERE x = 'a'"})
        assert rows.structured_content["rows"] == [["b"], ["c"]]
        proof = await client.call_tool("why", {"fact": 'link("a", "c")'})
        assert 'edge("b", "c")' in _text(proof)
        assert proof.structured_content is None
        tried = await client.call_tool("what-if", {"fact": 'edge("c", "d")'})
        assert tried.structured_content["changes"]["link"]["added"] == [
            ["a", "d"],
            ["b", "d"],
            ["c", "d"],
        ]
        wrong = await client.call_tool("query", {"goal": "lnk(x, y)"})
        assert wrong.is_error
        assert "link" in _text(wrong)

    _with_client(server, server.token, mode, talk)


def test_a_reader_sees_what_was_granted(server: ThreadedServer) -> None:
    token = server.tokens.add("alice", AccessRole.READ)

    async def talk(client: Client) -> None:
        assert [each.name for each in (await client.list_tools()).tools] == READING
        assert "apply" not in (client.instructions or "")
        listed = (await client.call_tool("list")).structured_content["relations"]
        assert [each["name"] for each in listed] == ["link"]
        link = (await client.call_tool("describe", {"relation": "link"})).structured_content
        assert (link["definition"], link["reads"]) == ([], {})
        for tool, arguments in (
            ("describe", {"relation": "edge"}),
            ("sql", {"sql": "SELECT * FROM secret"}),
        ):
            refused = await client.call_tool(tool, arguments)
            assert refused.is_error
            assert "C1040" in _text(refused)

    _with_client(server, token, "auto", talk)
    server.tokens.revoke("alice")


def test_changes_are_made_only_where_agents_may(server: ThreadedServer) -> None:
    async def talk(client: Client) -> None:
        tools = {each.name: each for each in (await client.list_tools()).tools}
        may_write = not tools["apply"].annotations.read_only_hint
        tried = await client.call_tool("apply", {"changes": [NEW_EDGE], "dry_run": True})
        assert tried.structured_content["changes"]["edge"]["added"] == [["c", "d"]]
        made = await client.call_tool("apply", {"changes": [NEW_EDGE], "dry_run": False})
        plain = await client.call_tool("apply", {"changes": [NEW_EDGE]})
        assert not plain.is_error
        found = await client.call_tool("query", {"goal": 'edge("c", y)'})
        since = {"since": 2, "relation": "edge"}
        changes = (await client.call_tool("changes", since)).structured_content["changes"]
        if may_write:
            assert made.structured_content["commit"] == 3
            assert found.structured_content["rows"] == [["d"]]
            assert changes["edge"]["added"] == [["c", "d"]]
        else:
            assert made.is_error
            assert "C1645" in _text(made)
            assert "--allow-agent-writes" in _text(made)
            assert found.structured_content["rows"] == []
            assert changes == {}

    _with_client(server, server.token, "auto", talk)


# --- by hand ------------------------------------------------------------------------------------


def _post(server: ThreadedServer, body: Any, **headers: str) -> httpx2.Response:
    given = {"Authorization": f"Bearer {server.token}"}
    given |= {f"mcp-{name.replace('_', '-')}": each for name, each in headers.items()}
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx2.post(f"{server.url}/mcp", content=content, headers=given)


def _message(method: str, number: Any = 1, **parameters: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}


def _code(response: httpx2.Response) -> tuple[int, int]:
    return response.status_code, response.json()["error"]["code"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"[]", -32700),
        (b"\xff", -32700),
        ({"id": 1, "method": "ping"}, -32600),
        ({"jsonrpc": "2.0", "id": 1}, -32600),
        (_message("ping", True), -32600),
        (_message("ping", [1]), -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}, -32600),
    ],
    ids=repr,
)
def test_what_is_no_message(server: ThreadedServer, body: Any, code: int) -> None:
    assert _code(_post(server, body)) == (400, code)


def test_calls_that_are_wrong(server: ThreadedServer) -> None:
    """A call that an agent can mend is answered with what is wrong; another is an error."""
    for parameters, word in (
        ({"name": "drop"}, "describe"),
        ({}, "describe"),
        ({"name": "list", "arguments": [1]}, "object"),
    ):
        wrong = _post(server, _message("tools/call", **parameters))
        assert _code(wrong) == (200, -32602)
        assert word in wrong.json()["error"]["message"]
    for arguments in ({}, {"fact": 1}, {"fact": 'link("a", "b")', "form": "svg"}, {"fakt": ""}):
        call = _message("tools/call", name="why", arguments=arguments)
        result = _post(server, call).json()["result"]
        assert result["isError"]
        assert "C1600" in result["content"][0]["text"]
    assert _code(_post(server, _message("tools/drop"))) == (200, -32601)


def test_messages_without_an_answer(server: ThreadedServer) -> None:
    told = _post(server, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (told.status_code, told.content) == (202, b"")
    assert _post(server, _message("ping", "a")).json() == {
        "jsonrpc": "2.0",
        "id": "a",
        "result": {},
    }


def test_the_version_is_one_that_both_know(server: ThreadedServer) -> None:
    for asked, found in (("2024-11-05", "2024-11-05"), ("2030-01-01", "2025-11-25")):
        answer = _post(server, _message("initialize", protocolVersion=asked)).json()
        assert answer["result"]["protocolVersion"] == found


def test_what_each_message_has_to_say(server: ThreadedServer) -> None:
    """Messages of clients without a handshake: `_meta`, and headers that agree with it."""
    meta = {f"{PREFIX}protocolVersion": MODERN, f"{PREFIX}clientCapabilities": {}}
    call = _message("tools/call", name="list", _meta=meta)
    headers = {"protocol_version": MODERN, "method": "tools/call", "name": "list"}
    found = _post(server, call, **headers).json()["result"]
    assert found["resultType"] == "complete"
    for wrong in ({"method": "tools/list"}, {"name": "sql"}):
        assert _code(_post(server, call, **(headers | wrong))) == (400, -32020)
    assert _code(_post(server, call, protocol_version=MODERN)) == (400, -32020)
    bare = _message("tools/call", name="list")
    assert _code(_post(server, bare, **headers)) == (400, -32602)
    later = {**meta, f"{PREFIX}protocolVersion": "2030-01-01"}
    asked = _message("tools/list", _meta=later)
    refused = _post(server, asked, protocol_version="2030-01-01", method="tools/list")
    assert _code(refused) == (400, -32022)
    assert MODERN in refused.json()["error"]["data"]["supported"]
    unknown = _message("tools/drop", _meta=meta)
    assert _code(_post(server, unknown, protocol_version=MODERN, method="tools/drop")) == (
        404,
        -32601,
    )


def test_nobody_asks_without_a_token(server: ThreadedServer) -> None:
    refused = httpx2.post(f"{server.url}/mcp", json=_message("tools/list"))
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == "Bearer"
    wrong = httpx2.get(f"{server.url}/mcp", headers={"Authorization": f"Bearer {server.token}"})
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
