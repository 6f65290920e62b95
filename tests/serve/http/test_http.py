"""The HTTP interface: what each path answers, to whom, and how it fails."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import corollary
from corollary.database.access.principals import OWNER, AccessRole, Principal
from corollary.serve.answers import Answer, Event, ServiceError
from corollary.serve.http import responses
from corollary.serve.http.application import application
from corollary.serve.http.endpoints import ENDPOINTS, Endpoint
from corollary.serve.http.middleware import SECURITY_HEADERS
from corollary.serve.http.settings import ServerSettings
from corollary.serve.processes.local_service import LocalService
from corollary.serve.requests import EventsRequest, PushEventsRequest, Request
from corollary.serve.service import ServiceMetrics
from corollary.serve.tokens import TokenStore
from corollary.warehouse.warehouse_catalog import WarehouseCatalog
from support.paths import REPOSITORY
from support.serve.asgi_client import BASE, AsgiClient, LoopThread

PROGRAM = """
.decl edge(x: symbol, y: symbol)
.decl link(x: symbol, y: symbol)
link(x, y) :- edge(x, y).
link(x, z) :- link(x, y), edge(y, z).
.decl secret(who: symbol, n: number)
.decl owner(who: symbol, n: number)
owner(x, n) :- secret(x, n).
.decl negative(who: symbol, n: number) virtual
negative(x, n) :- secret(x, n), n < 0.
.abort negative "{n} of {who} is negative"
"""
HIDDEN = ("secret", "owner(", "mallory", "31337")
FIELDS: dict[str, Any] = {
    "/v1/query": {"goal": 'link("a", y)'},
    "/v1/sql": {"sql": "SELECT y FROM link WHERE x = 'a'"},
    "/v1/advice": {"log": "SELECT x, COUNT(*) FROM link GROUP BY x;", "names": ["degree"]},
    "/v1/what-if": {"fact": 'edge("a", "b")'},
    "/v1/apply": {"changes": [], "dry_run": True},
    "/v1/why": {"fact": 'link("a", "c")'},
    "/v1/why-not": {"fact": 'link("c", "a")'},
    "/v1/why-added": {"fact": 'link("a", "b")'},
    "/v1/why-removed": {"fact": 'link("b", "d")'},
    "/v1/explain": {"question": 'link("a", y)'},
    "/v1/check": {"program": ".decl p(x: number)"},
    "/v1/program": {"program": PROGRAM, "dry_run": True},
    "/v1/command": {"command": "query", "options": {"places": ["wh"], "goal": 'link("a", y)'}},
    "/v1/writing-command": {
        "command": "what-if",
        "options": {"warehouse": "wh", "fact": 'edge("a", "b")'},
    },
    "/v1/declarations": {"relations": ["edge"]},
}
"""What is asked of paths that have bodies."""


class Server:
    """The application in this process, with clients of each role."""

    def __init__(self, place: Path, suffix: str = "", **settings: Any) -> None:
        self.catalog = WarehouseCatalog.open(place, create=False)
        self.tokens = TokenStore(self.catalog.catalog)
        self.settings = ServerSettings(warehouse_name="wh", **settings)
        opening = LocalService.open(lambda: corollary.open(place, engine="local"))
        self.loop = LoopThread()
        self.service = self.loop.run(opening)
        self.app = application(self.service, self.settings, self.tokens)
        self.anonymous = self.client()
        names = {"alice": AccessRole.READ, "bob": AccessRole.WRITE, "carol": AccessRole.ADMIN}
        self.secrets = {
            name: self.tokens.add(f"{name}{suffix}", role) for name, role in names.items()
        }
        self.reader, self.writer, self.admin = (
            self.client({"Authorization": f"Bearer {secret}"}) for secret in self.secrets.values()
        )

    def client(self, headers: dict[str, str] | None = None, base: str = BASE) -> AsgiClient:
        return AsgiClient(self.app, self.loop, headers, base)

    def close(self) -> None:
        self.loop.run(self.service.close())
        self.loop.close()
        self.catalog.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with three commits, of which `link` was granted to alice."""
    path = tmp_path_factory.mktemp("http") / "wh"
    with corollary.open(path, engine="local") as db:
        db.load(text=PROGRAM)
        with db.transaction() as tx:
            tx.insert("edge", [("a", "b"), ("b", "c"), ("c", "d")])
            tx.insert("secret", [("mallory", 31337)])
        with db.transaction() as tx:
            tx.delete("edge", [("c", "d")])
        db.grant("alice", "link")
    return path


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[Server]:
    """The application on it."""
    with closing(Server(place)) as made:
        yield made


def ask(client: AsgiClient, endpoint: Endpoint, **options: Any) -> Any:
    path = endpoint.path.replace("{relation:path}", "link").replace("{number}", "2")
    if endpoint.method != "GET":
        options.setdefault("json", FIELDS[endpoint.path])
    return client.request(endpoint.method, path, **options)


def code_of(response: Any) -> str:
    found = response.json()
    assert set(found) >= {"error", "diagnostics", "status"}
    assert found["diagnostics"][0]["message"] in found["error"]
    return str(found["diagnostics"][0]["code"])


QUESTIONS = [each for each in ENDPOINTS if each.request not in (EventsRequest, PushEventsRequest)]


@pytest.mark.parametrize("endpoint", QUESTIONS, ids=lambda each: f"{each.method}{each.path}")
def test_every_path_answers(server: Server, endpoint: Endpoint) -> None:
    """An admin gets an answer; a reader no byte that was not granted; nobody else anything."""
    answer = ask(server.admin, endpoint)
    assert answer.status_code == 200, answer.text
    assert answer.headers["corollary-commit"].isdigit()
    assert answer.headers["cache-control"] == "no-store"
    refused = ask(server.anonymous, endpoint)
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == "Bearer"
    assert code_of(refused) == "C1622"
    seen = ask(server.reader, endpoint)
    assert seen.status_code == 200 if endpoint.request.role is AccessRole.READ else 403, seen.text
    asked = json.dumps(FIELDS.get(endpoint.path, {}))
    assert not [each for each in HIDDEN if each in seen.text and each not in asked], seen.text


def test_questions(server: Server) -> None:
    query = server.reader.post("/v1/query", json={"goal": 'link("a", y)'})
    assert query.json()["rows"] == [["b"], ["c"]]
    assert query.json()["columns"] == ["y"]
    sql = {"sql": "SELECT y FROM link WHERE x = :x ORDER BY y", "parameters": {"x": "a"}}
    assert server.reader.post("/v1/sql", json=sql).json()["rows"] == [["b"], ["c"]]
    past = server.reader.post("/v1/query", json={"goal": 'link("a", y)', "at": 2})
    assert past.json()["rows"] == [["b"], ["c"], ["d"]]
    assert past.json()["commit"] == 2


def test_parameters(server: Server) -> None:
    get = server.admin.get
    rows = get("/v1/relations/link", params={"where": "x=a", "sort": "y desc", "at": "2"})
    assert rows.json()["rows"] == [["a", "d"], ["a", "c"], ["a", "b"]]
    several = get("/v1/relations/link", params=[("where", "x=a"), ("where", "y!=b"), ("at", "")])
    assert several.json()["rows"] == [["a", "c"]]
    for query, word in (
        ("limit=x", "whole number"),
        ("limit=1&limit=2", "given once"),
        ("limti=1", "limit"),
        ("relation=p", "part of the path"),
    ):
        refused = get(f"/v1/relations/link?{query}")
        assert refused.status_code == 400, query
        assert word in refused.text, refused.text
    assert get("/v1/commits/x").status_code == 400
    assert get("/v1/commits/99").status_code == 404
    assert get("/v1/commits/99999999999999999999").status_code in (400, 404)


def test_pages_show_one_state(server: Server) -> None:
    first = server.admin.get("/v1/relations/link", params={"limit": 2}).json()
    seen = first["rows"]
    cursor = first["cursor"]
    while cursor:
        params = {"limit": 2, "cursor": cursor}
        page = server.admin.get("/v1/relations/link", params=params).json()
        assert page["commit"] == first["commit"]
        seen += page["rows"]
        cursor = page["cursor"]
    assert sorted(seen) == [["a", "b"], ["a", "c"], ["b", "c"]]
    other = server.admin.get("/v1/relations/edge", params={"limit": 2, "cursor": first["cursor"]})
    assert other.status_code == 400


def test_bodies_of_changes(server: Server) -> None:
    """Lines, an object with lines, an object with a list: as curl sends them, too."""
    change = {"op": "insert", "relation": "edge", "row": ["p", "q"]}
    line = json.dumps(change)
    ways: list[dict[str, Any]] = [
        {"content": line},
        {"content": f"{line}\n", "headers": {"Content-Type": "application/x-ndjson"}},
        {"content": line, "headers": {"Content-Type": "application/x-www-form-urlencoded"}},
        {"json": {"changes": [change]}},
        {"json": {"changes": line}},
    ]
    for way in ways:
        if "json" in way:
            way["json"]["dry_run"] = True
        answer = server.writer.post("/v1/apply" if "json" in way else "/v1/apply?dry_run=1", **way)
        assert answer.status_code == 200, answer.text
        assert answer.json()["changes"]["edge"]["added"] == [["p", "q"]]
    assert server.admin.get("/v1/relations/edge?where=x=p").json()["rows"] == []


def test_changes_are_made_once(server: Server) -> None:
    change = {"changes": [{"op": "insert", "relation": "edge", "row": ["k", "l"]}]}
    headers = {"Idempotency-Key": "once"}
    first = server.writer.post("/v1/apply", json=change, headers=headers)
    again = server.writer.post("/v1/apply", json=change, headers=headers)
    assert first.status_code == again.status_code == 200
    assert first.json()["commit"] == again.json()["commit"]
    back = {"changes": [{"op": "delete", "relation": "edge", "row": ["k", "l"]}]}
    assert server.writer.post("/v1/apply", json=back).status_code == 200


def test_a_key_stands_for_one_change_of_one_token(server: Server) -> None:
    def send(client: AsgiClient, *row: str, key: str = "k1", **options: Any) -> Any:
        change = {"op": "insert", "relation": "edge", "row": list(row)}
        fields = {"changes": [change], "idempotency_key": key, **options}
        return client.post("/v1/apply", json=fields)

    def edges() -> list[list[str]]:
        rows: list[list[str]] = server.admin.get("/v1/relations/edge?where=x=k1").json()["rows"]
        return sorted(rows)

    first = send(server.writer, "k1", "a").json()["commit"]
    for way in ({}, {"alone": True}):
        other = send(server.writer, "k1", "b", **way)
        assert (other.status_code, code_of(other)) == (422, "C0929")
    assert edges() == [["k1", "a"]]
    day = send(server.writer, "k1", "a", today="2026-11-17")
    assert (day.status_code, code_of(day)) == (422, "C0929")
    line = ' {"row":["k1","a"], "relation":"edge","op" : "insert"}\n\n'
    written = server.writer.post("/v1/apply", content=line, headers={"Idempotency-Key": "k1"})
    assert written.json()["commit"] == first
    second = send(server.admin, "k1", "b").json()["commit"]
    assert second > first
    assert edges() == [["k1", "a"], ["k1", "b"]]
    assert send(server.admin, "k1", "b").json()["commit"] == second
    commits = {each["commit"]: each for each in server.admin.get("/v1/commits").json()["commits"]}
    assert {commits[each]["idempotency_key"] for each in (first, second)} == {"k1"}
    long = send(server.writer, "k1", "c", key="k" * 197)
    assert (long.status_code, code_of(long)) == (400, "C0920")
    assert "1 to 196 characters" in long.text


def test_errors_have_the_status_of_commands(server: Server) -> None:
    negative = {"changes": [{"op": "insert", "relation": "secret", "row": ["x", -1]}]}
    violated = server.writer.post("/v1/apply", json=negative)
    assert (violated.status_code, violated.json()["status"]) == (422, 3)
    goal = server.admin.post("/v1/query", json={"goal": "link(x"})
    assert (goal.status_code, goal.json()["status"]) == (400, 1)
    hidden = server.reader.post("/v1/query", json={"goal": "edge(x, y)"})
    assert (hidden.status_code, code_of(hidden)) == (403, "C1040")
    role = server.reader.post("/v1/apply", content="")
    assert (role.status_code, code_of(role)) == (403, "C1623")
    program = server.writer.put("/v1/program", content=PROGRAM)
    assert program.status_code == 403
    nothing = server.admin.get("/v1/nothing")
    assert (nothing.status_code, code_of(nothing)) == (404, "C1629")
    method = server.admin.put("/v1/query", json={})
    assert (method.status_code, code_of(method)) == (405, "C1630")
    assert method.headers["allow"] == "POST"


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"nul", b"\xff\xfe", b'{"goal": NaN}', b"[" * 100_000, b"9" * 5000],
    ids=lambda body: repr(body[:8]),
)
def test_bodies_that_are_no_objects(server: Server, body: bytes) -> None:
    refused = server.admin.post("/v1/query", content=body)
    assert (refused.status_code, code_of(refused)) == (400, "C1628")


def test_fields_that_are_wrong(server: Server) -> None:
    for fields in ({}, {"goal": 1}, {"goal": "p(x)", "golf": 1}, {"goal": "p(x)", "limit": True}):
        refused = server.admin.post("/v1/query", json=fields)
        assert refused.status_code == 400
        assert code_of(refused) == "C1600"


async def _chunks(chunk: bytes, count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield chunk


def test_large_bodies(place: Path) -> None:
    with closing(Server(place, "-small", body_max_bytes=1000)) as small:
        by_length = small.admin.post("/v1/query", content=b"x" * 1001)
        assert (by_length.status_code, code_of(by_length)) == (413, "C1626")
        assert by_length.headers["connection"] == "close"
        chunks = small.admin.post("/v1/query", content=_chunks(b"x" * 600, 2))
        assert chunks.status_code == 413


def test_arrow(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "BATCH_ROWS", 2)
    headers = {"Accept": responses.ARROW_TYPE}
    answer = server.admin.post("/v1/query", json={"goal": "secret(who, n)"}, headers=headers)
    assert answer.headers["content-type"] == responses.ARROW_TYPE
    table = pa.ipc.open_stream(answer.content).read_all()
    assert table.to_pylist() == [{"who": "mallory", "n": 31337}]
    assert table.schema.field("n").metadata[responses.TYPE_KEY] == b"number"
    rows = server.admin.get("/v1/relations/link", headers=headers, params={"at": 2})
    batches = list(pa.ipc.open_stream(rows.content))
    assert [len(each) for each in batches] == [2, 2, 2]
    nothing = server.admin.post("/v1/query", json={"goal": "link(x, x)"}, headers=headers)
    assert pa.ipc.open_stream(nothing.content).read_all().num_rows == 0


def test_pictures(server: Server) -> None:
    drawn = server.admin.get("/v1/graph.svg")
    assert drawn.headers["content-type"].startswith("image/svg+xml")
    assert "<svg" in drawn.text
    headers = {"Accept": "image/svg+xml"}
    proof = server.admin.post("/v1/why", json=FIELDS["/v1/why"], headers=headers)
    assert "<svg" in proof.text


# --- who asks ----------------------------------------------------------------------------------


def test_headers_are_on_every_answer(server: Server) -> None:
    for path in ("/healthz", "/nowhere", "/v1/relations", "/openapi.json", "/v1/session"):
        for client in (server.anonymous, server.admin):
            found = client.get(path).headers
            for name, value in SECURITY_HEADERS:
                assert found[name.decode()] == value.decode(), path
            assert "server" not in found


def test_tokens_are_checked(server: Server) -> None:
    secret = server.secrets["carol"]
    for value in (f"Basic {secret}", "Bearer", "Bearer x", f"Bearer {secret}x", secret):
        refused = server.anonymous.get("/v1/relations", headers={"Authorization": value})
        assert refused.status_code == 401, value
    spaced = server.anonymous.get("/v1/relations", headers={"Authorization": f"bearer  {secret} "})
    assert spaced.status_code == 200
    assert server.anonymous.get(f"/v1/relations?token={secret}").status_code == 401


def test_a_key_signs_a_browser_in(server: Server) -> None:
    browser = server.client()
    key = server.tokens.new_key(OWNER)
    ours = {"X-Corollary": "1", "Origin": BASE}
    for headers in ({}, {"Origin": BASE}, {**ours, "Origin": "http://evil.example"}):
        refused = browser.post("/v1/session", json={"key": key}, headers=headers)
        assert (refused.status_code, code_of(refused)) == (403, "C1624"), headers
    signed = browser.post("/v1/session", json={"key": key}, headers=ours)
    assert signed.status_code == 204
    cookie = signed.headers["set-cookie"]
    assert cookie.startswith("corollary_8765=")
    for flag in ("HttpOnly", "SameSite=strict", "Path=/", "Max-Age=43200"):
        assert flag in cookie
    assert "Secure" not in cookie
    assert key not in cookie
    assert browser.get("/v1/session").json() == {"name": "owner", "role": "admin"}
    again = server.client().post("/v1/session", json={"key": key}, headers=ours)
    assert (again.status_code, code_of(again)) == (401, "C1622")
    goal = {"goal": "link(x, y)"}
    for headers in ({}, {"X-Corollary": "1"}, {"Origin": BASE}, {**ours, "Origin": "null"}):
        refused = browser.post("/v1/query", json=goal, headers=headers)
        assert (refused.status_code, code_of(refused)) == (403, "C1624"), headers
    assert browser.post("/v1/query", json=goal, headers=ours).status_code == 200
    assert browser.delete("/v1/session").status_code == 403
    kept = dict(browser.cookies)
    assert browser.delete("/v1/session", headers=ours).status_code == 204
    browser.cookies.update(kept)
    assert browser.get("/v1/session").status_code == 401


def test_a_token_signs_in_too(server: Server) -> None:
    browser = server.client()
    ours = {"X-Corollary": "1", "Origin": BASE}
    token = server.tokens.add("dora", AccessRole.READ)
    for wrong in ({}, {"token": 1}, {"token": "x"}, {"key": None}):
        assert browser.post("/v1/session", json=wrong, headers=ours).status_code == 401
    assert browser.post("/v1/session", json={"token": token}, headers=ours).status_code == 204
    assert browser.get("/v1/session").json() == {"name": "dora", "role": "read"}
    assert browser.get("/v1/relations").status_code == 200
    server.tokens.revoke("dora")
    assert browser.get("/v1/relations").status_code == 401


def test_cookies_under_tls_and_behind_a_proxy(place: Path) -> None:
    with closing(Server(place, "-proxied", is_behind_proxy=True)) as proxied:
        base = "http://wh.example"
        browser = proxied.client({"X-Forwarded-Proto": "https"}, base)
        ours = {"X-Corollary": "1", "Origin": "https://wh.example"}
        key = {"key": proxied.tokens.new_key(OWNER)}
        plain = browser.post("/v1/session", json=key, headers={**ours, "Origin": base})
        assert plain.status_code == 403
        signed = browser.post("/v1/session", json=key, headers=ours)
        assert signed.status_code == 204
        assert signed.headers["set-cookie"].startswith("__Host-corollary_8765=")
        assert "Secure" in signed.headers["set-cookie"]
        assert "max-age" in signed.headers["strict-transport-security"]


@pytest.mark.parametrize(
    ("settings", "allowed", "refused"),
    [
        (
            {},
            ("127.0.0.1:1", "localhost", "[::1]:8765", "LOCALHOST:80"),
            (
                *("evil.example", "", "10.0.0.1", "[::1].evil.example", "[::1]evil.example"),
                *(
                    "127.0.0.1:x.evil.example",
                    "127.0.0.1:80@evil.example",
                    "localhost, evil.example",
                ),
                *("[::1", "[localhost]", "[::1]:", "127.0.0.1 evil.example")[:2],
            ),
        ),
        ({"allowed_hosts": ("wh.example",)}, ("wh.example:443", "127.0.0.1"), ("other.example",)),
        ({"host": "10.0.0.1", "has_tls": True}, ("any.example",), ()),
        (
            {"is_behind_proxy": True, "allowed_hosts": ("wh.example",)},
            ("WH.example.",),
            ("127.0.0.1", "evil.example"),
        ),
    ],
)
def test_names_of_the_server(
    settings: dict[str, Any], allowed: tuple[str, ...], refused: tuple[str, ...]
) -> None:
    made = ServerSettings(warehouse_name="wh", **settings)
    assert all(made.is_allowed_host(each) for each in allowed)
    assert not any(made.is_allowed_host(each) for each in refused)


def test_other_names_are_refused(server: Server) -> None:
    """A page of another site whose name leads here cannot ask."""
    for path in ("/", "/v1/relations", "/healthz"):
        found = server.admin.get(path, headers={"Host": "evil.example"})
        assert (found.status_code, code_of(found)) == (421, "C1625")


def test_a_request_has_one_host(server: Server) -> None:
    for path in ("/", "/v1/relations", "/healthz"):
        for names in (
            ("localhost", "evil.example"),
            ("evil.example", "localhost"),
            ("localhost",) * 2,
        ):
            headers = [("Host", name) for name in names]
            found = server.admin.get(path, headers=headers)
            assert (found.status_code, code_of(found)) == (400, "C1638")


# --- about the server --------------------------------------------------------------------------


def test_health(server: Server) -> None:
    assert server.anonymous.get("/healthz").json() == {"status": "ok"}
    assert server.anonymous.get("/readyz").status_code == 200
    assert server.anonymous.head("/healthz").status_code == 200


def test_metrics(server: Server) -> None:
    assert server.anonymous.get("/metrics").status_code == 401
    server.admin.get("/v1/relations/link")
    text = server.admin.get("/metrics").text
    for line in text.splitlines():
        assert line.startswith("# ") or len(line.rsplit(" ", 1)) == 2
        assert float(line.rsplit(" ", 1)[1]) >= 0 if not line.startswith("#") else True
    assert 'requests_total{path="/v1/relations/{relation:path}",status="200"}' in text
    assert 'le="+Inf"' in text
    assert "corollary_alerts_waiting " in text
    assert 'corollary_relation_tuples{relation="link"} ' in text
    hidden = server.reader.get("/metrics").text
    assert "relation=" not in hidden
    assert "requests_total" in hidden


def test_the_log_has_no_secrets(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("corollary.serve.requests")
    logger.addHandler(caplog.handler)
    logger.setLevel(logging.INFO)
    try:
        server.admin.get("/v1/relations/link?where=x%3Dverysecret")
    finally:
        logger.removeHandler(caplog.handler)
    (record,) = [each for each in caplog.records if each.name == logger.name][-1:]
    fields = record.__dict__["fields"]
    assert fields["path"] == "/v1/relations/link"
    assert (fields["status"], fields["who"]) == (200, "carol")
    assert "verysecret" not in str(fields)
    assert server.secrets["carol"] not in str(fields)


def test_the_description_has_every_path(server: Server) -> None:
    found = server.anonymous.get("/openapi.json").json()
    assert found["openapi"] == "3.1.0"
    for endpoint in ENDPOINTS:
        operation = found["paths"][endpoint.path.replace(":path", "")][endpoint.method.lower()]
        assert operation["summary"]
        names = {each["name"] for each in operation["parameters"]}
        assert names >= set(endpoint.path_fields)
    names = [each["operationId"] for path in found["paths"].values() for each in path.values()]
    assert len(names) == len(set(names))
    goal = found["paths"]["/v1/query"]["post"]["requestBody"]["content"]["application/json"]
    assert goal["schema"]["required"] == ["goal"]


def test_the_documentation_has_every_path_and_its_fields() -> None:
    """In a row of the table, fields in braces belong to the paths since the last braces."""
    text = (REPOSITORY / "docs" / "server.md").read_text("utf-8")
    requests = {each.path.partition("/{")[0]: each for each in ENDPOINTS}
    seen: set[str] = set()
    for row in re.findall(r"^\| (?:GET|POST).*$", text, re.MULTILINE):
        paths: list[str] = []
        for path, query, fields in re.findall(r"(/v1/[\w.-]+)|\?([\w=&]+)`|`\{([^`]+)\}`", row):
            paths += [path] if path else []
            names = [each.partition("=")[0] for each in query.split("&") if query]
            for name in [*names, *re.findall(r'"(\w+)"', fields)]:
                for each in paths[-1:] if query else paths:
                    known = {item.name for item in dataclasses.fields(requests[each].request)}
                    assert name in known | set(requests[each].aliases.values()), (each, name)
            paths = [] if fields else paths
            seen |= {path} - {""}
    assert seen == set(requests)


# --- failures ----------------------------------------------------------------------------------


class Failing:
    """A service that does what a test wants."""

    metrics = ServiceMetrics()
    is_ready = False

    def __init__(self, outcome: Any) -> None:
        self.outcome = outcome

    async def call(self, who: Principal, request: Request) -> Answer:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome

    async def subscribe(self, who: Principal, request: EventsRequest) -> AsyncIterator[Event]:
        for each in self.outcome:
            if isinstance(each, Exception):
                raise each
            yield each

    async def close(self) -> None:
        """Do nothing."""


def client_of(server: Server, outcome: Any) -> AsgiClient:
    app = application(Failing(outcome), server.settings, server.tokens)
    headers = {"Authorization": f"Bearer {server.secrets['carol']}"}
    return AsgiClient(app, server.loop, headers)


def test_an_error_nobody_expects_shows_nothing(server: Server) -> None:
    failed = client_of(server, RuntimeError("/home/me/secret.py")).get("/v1/relations")
    assert failed.status_code == 500
    assert code_of(failed) == "C1602"
    assert "secret.py" not in failed.text


def test_overload(server: Server) -> None:
    error = ServiceError.of(503, "C1605", "Too much.", "wait", retry_after=3)
    refused = client_of(server, error).get("/v1/relations")
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "3")
    assert client_of(server, error).get("/readyz").status_code == 503


def test_events(server: Server) -> None:
    events = [Event("", "", 4), Event("change", '{"a": "ü"}'), Event("bye", "{}", 5)]
    answer = client_of(server, events).get("/v1/events?relation=link&relation=edge&alerts=1")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.text == (
        'retry: 1000\n\nid: 4\n\nevent: change\ndata: {"a": "ü"}\n\nid: 5\nevent: bye\ndata: {}\n\n'
    )


def test_events_that_are_refused(server: Server) -> None:
    error = ServiceError.of(403, "C1040", "Not yours.", "ask")
    refused = client_of(server, [error]).get("/v1/events?relation=link")
    assert (refused.status_code, code_of(refused)) == (403, "C1040")
    late = client_of(server, [Event("", "", 4), error]).get("/v1/events?relation=link")
    assert late.status_code == 200
    assert "event: bye" in late.text
    assert "Not yours" in late.text


def test_a_read_whose_client_leaves_is_not_computed(server: Server) -> None:
    class Endless(Failing):
        is_cancelled = False

        async def call(self, who: Principal, request: Request) -> Answer:
            try:
                return await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                self.is_cancelled = True
                raise

    async def receive() -> dict[str, Any]:
        return next(messages)

    async def send(message: Any) -> None:
        pass

    service = Endless(ServiceError(500, ""))
    messages = iter([{"type": "http.request", "body": b""}, {"type": "http.disconnect"}])
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/v1/relations",
        "query_string": b"",
        "headers": [
            (b"host", b"127.0.0.1:8765"),
            (b"authorization", f"Bearer {server.secrets['alice']}".encode()),
        ],
        "client": ("127.0.0.1", 1),
    }
    server.loop.run(application(service, server.settings, server.tokens)(scope, receive, send))
    assert service.is_cancelled
