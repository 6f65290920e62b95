"""Every route, page and command by every role: who is answered, and what may change."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from starlette.routing import Route

import corollary
from corollary.database.access.principals import OWNER, AccessRole, Principal
from corollary.errors import AccessError
from corollary.serve.answers import ServiceError
from corollary.serve.command_names import READING_COMMANDS, WRITING_COMMANDS
from corollary.serve.handlers.context import HandlerContext
from corollary.serve.handlers.dispatch import HANDLERS, handle
from corollary.serve.http.application import application
from corollary.serve.http.mcp import TOOLS
from corollary.serve.http.settings import ServerSettings
from corollary.serve.processes.local_service import LocalService
from corollary.serve.requests import ProgramRequest
from corollary.serve.service import ServiceLimits
from corollary.serve.tokens import TokenStore
from corollary.warehouse.warehouse_catalog import WarehouseCatalog
from corollary.web.routes import routes
from support.serve.asgi_client import LoopThread

PROGRAM = """
.decl edge(x: symbol, y: symbol)
.decl link(x: symbol, y: symbol)
link(x, y) :- edge(x, y).
.decl secret(who: symbol, n: number)
.decl owner(who: symbol, n: number)
owner(x, n) :- secret(x, n).
.decl arrived(x: symbol) key(x)
.input arrived(IO=push)
"""
HIDDEN = ("secret", "owner(", "mallory", "31337")
INSERT = {"op": "insert", "relation": "edge", "row": ["NEW", "b"]}
PUBLISH = {"op": "add-rule", "rule": 'link(x, "NEW") :- secret(x, n), n < 0.'}
"""A rule that shows a hidden column in a view that was granted, of rows that are not there."""
READ, WRITE, ADMIN = AccessRole


class Effect(StrEnum):
    """What a request changes if it is let through."""

    NONE = "none"
    DATA = "data"
    RULES = "rules"


@dataclass(frozen=True)
class Case:
    """A request, the least role that may send it (None: nobody need sign in), and its effect."""

    method: str
    url: str
    least: AccessRole | None
    body: Any = None
    effect: Effect = Effect.NONE
    status: int = 200

    def __str__(self) -> str:
        command = self.body.get("command", "") if isinstance(self.body, dict) else ""
        return f"{self.method} {self.url} {command} {self.effect}"


def _form(path: str, least: AccessRole, effect: Effect = Effect.NONE, **fields: str) -> Case:
    return Case("POST", path, least, urlencode(fields), effect)


def _page(path: str, least: AccessRole, status: int = 200, **fields: str) -> Case:
    return Case("GET", f"{path}?{urlencode(fields)}" if fields else path, least, status=status)


def _command(
    name: str,
    least: AccessRole,
    effect: Effect = Effect.NONE,
    files: Mapping[str, str] | None = None,
    **options: Any,
) -> Case:
    path = "/v1/writing-command" if name in WRITING_COMMANDS else "/v1/command"
    body = {"command": name, "options": options, "files": files or {}}
    return Case("POST", path, least, body, effect)


def _agent(tool: str, least: AccessRole, effect: Effect = Effect.NONE, **arguments: Any) -> Case:
    call = {"name": tool, "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    return Case("POST", "/mcp", least, body, effect)


def _changes(change: dict[str, Any], least: AccessRole, effect: Effect) -> list[Case]:
    """Return all ways to make a change: the interface, the command line, the page."""
    line = json.dumps(change)
    files = {"changes": line}
    named = {"warehouse": "wh", "changes": "c.jsonl"}
    return [
        Case("POST", "/v1/apply", least, {"changes": [change]}, effect),
        Case("POST", "/v1/apply", least, {"changes": [change], "alone": True}, effect),
        Case("POST", "/v1/apply", least, {"changes": [change], "idempotency_key": "NEW"}, effect),
        Case("POST", "/v1/apply", least, {"changes": [change], "dry_run": True}),
        _command("apply", least, effect, files, **named),
        _command("apply", least, effect, files, idempotency_key="c NEW", **named),
        _command("apply", least, files=files, dry_run=True, **named),
        _agent("apply", least, effect, changes=[change]),
        _agent("apply", least, effect, changes=[change], idempotency_key="a NEW"),
        _agent("apply", least, changes=[change], dry_run=True),
        _form("/change/outcome", least, effect, do="commit", changes=line),
        _form("/change/outcome", least, changes=line),
        _page("/ui/try", least, changes=line),
    ]


CASES = [
    # The server itself.
    Case("GET", "/healthz", None),
    Case("GET", "/readyz", None),
    Case("GET", "/openapi.json", None),
    Case("GET", "/metrics", READ),
    Case("GET", "/v1/session", READ),
    Case("DELETE", "/v1/session", READ, status=204),
    # Questions: a reader sees what was granted.
    Case("POST", "/v1/query", READ, {"goal": "link(x, y)"}),
    Case("POST", "/v1/sql", READ, {"sql": "SELECT * FROM link"}),
    Case("GET", "/v1/relations", READ),
    Case("GET", "/v1/relations/link", READ),
    Case("GET", "/v1/describe/link", READ),
    Case("GET", "/v1/describe/secret", WRITE),
    Case("GET", "/v1/commits", READ),
    Case("GET", "/v1/commits/2", READ),
    Case("GET", "/v1/changes", READ),
    Case("GET", "/v1/events?relation=link", READ),
    Case("GET", "/v1/events?relation=secret", WRITE),
    Case("POST", "/v1/why", READ, {"fact": 'link("a", "b")'}),
    Case("POST", "/v1/why-not", READ, {"fact": 'link("b", "a")'}),
    Case("GET", "/v1/graph", READ),
    Case("GET", "/v1/graph.svg", READ),
    Case("GET", "/v1/alerts", READ),
    # What shows everything.
    Case("POST", "/v1/query", WRITE, {"goal": "secret(x, y)"}),
    Case("GET", "/v1/relations/secret", WRITE),
    Case("POST", "/v1/why-added", WRITE, {"fact": 'link("a", "b")'}),
    Case("POST", "/v1/why-removed", WRITE, {"fact": 'link("c", "d")'}),
    Case("POST", "/v1/explain", WRITE, {"question": "link(x, y)"}),
    Case("POST", "/v1/check", WRITE, {"program": ".decl p(x: number)"}),
    Case("GET", "/v1/program", WRITE),
    Case("GET", "/v1/status", WRITE),
    Case("GET", "/v1/quarantine", WRITE),
    Case("GET", "/v1/advice", WRITE),
    Case("POST", "/v1/advice", WRITE, {"log": "SELECT x, COUNT(*) FROM link GROUP BY x;"}),
    Case("GET", "/v1/documents", WRITE),
    Case("POST", "/v1/declarations", WRITE, {"relations": ["edge"]}),
    Case("POST", "/v1/what-if", WRITE, {"fact": 'edge("a", "b")'}),
    # Changes of data, and of rules.
    *_changes(INSERT, WRITE, Effect.DATA),
    Case("POST", "/v1/sources/arrived/events", WRITE, '{"x": "NEW"}', Effect.DATA),
    *_changes(PUBLISH, ADMIN, Effect.RULES),
    Case("PUT", "/v1/program", ADMIN, {"program": f"{PROGRAM}.decl p_NEW()"}, Effect.RULES),
    Case("PUT", "/v1/program", ADMIN, {"program": PROGRAM, "dry_run": True}),
    # The command line.
    _command("query", READ, places=["wh"], goal="link(x, y)"),
    _command("query", WRITE, places=["wh"], goal="secret(x, y)"),
    _command("sql", READ, places=["wh"], question="SELECT * FROM link"),
    _command("why", READ, warehouse="wh", goal='link("a", "b")'),
    _command("why-not", READ, warehouse="wh", goal='link("b", "a")'),
    _command("why-added", WRITE, warehouse="wh", goal='link("a", "b")'),
    _command("why-removed", WRITE, warehouse="wh", goal='link("c", "d")'),
    _command("log", READ, warehouse="wh"),
    _command("changes", READ, warehouse="wh"),
    _command("status", WRITE, warehouse="wh"),
    _command("what-if", WRITE, warehouse="wh", fact='edge("a", "b")'),
    # Agents.
    _agent("list", READ),
    _agent("describe", READ, relation="link"),
    _agent("describe", WRITE, relation="secret"),
    _agent("sql", READ, sql="SELECT * FROM link"),
    _agent("query", READ, goal="link(x, y)"),
    _agent("query", WRITE, goal="secret(x, y)"),
    _agent("why", READ, fact='link("a", "b")'),
    _agent("why-not", READ, fact='link("b", "a")'),
    _agent("changes", READ, since=1),
    _agent("changes", WRITE, since=1, relation="secret"),
    _agent("what-if", WRITE, fact='edge("a", "b")'),
    _agent("advise", WRITE),
    # The page.
    *(
        _page(path, READ)
        for path in (
            *("/", "/relations", "/relations/link", "/commits", "/commits/2", "/alerts", "/change"),
            *("/documents", "/advice", "/quarantine", "/help", "/ui/live"),
        )
    ),
    _page("/console", READ, q="link(x, y)"),
    _page("/ask", READ, 303, q="link(x, y)"),
    _page("/ui/proof.json", READ, goal='link("a", "b")'),
    _page("/ui/proof.svg", READ, goal='link("a", "b")'),
    _page("/relations/secret", WRITE),
    _page("/console", WRITE, q="secret(x, y)"),
    _page("/documents/none", WRITE, 404),
    _page("/ui/proof.json", WRITE, ask="why-added", goal='link("a", "b")'),
    _page("/ui/what-if", WRITE, fact='edge("a", "b")'),
    _form("/advice/log", WRITE, log="SELECT x, COUNT(*) FROM link GROUP BY x;"),
]
"""Who may ask what, and what comes of it."""


class Gate:
    """The application with its page in this process, and a token of each role."""

    def __init__(self, place: Path) -> None:
        self.catalog = WarehouseCatalog.open(place, create=False)
        tokens = TokenStore(self.catalog.catalog)
        self.loop = LoopThread()
        self.service = self.loop.run(
            LocalService.open(lambda: corollary.open(place, engine="local"))
        )
        settings = ServerSettings(warehouse_name="wh", allows_agent_writes=True)
        self.app = application(self.service, settings, tokens, routes(self.service, "wh"))
        self.routes = [each for each in self.app._app.routes if isinstance(each, Route)]
        self.secrets = {role: tokens.add(str(role), role) for role in AccessRole}
        self.numbers = count(1)

    def send(self, case: Case, role: AccessRole | None) -> tuple[int, str]:
        """Return the status and the text of an answer; of a stream, its beginning."""
        body = case.body if isinstance(case.body, str) else json.dumps(case.body)
        new = f"n{next(self.numbers)}"
        return self.loop.run(self._send(case.method, case.url, body.replace("NEW", new), role))

    async def _send(
        self, method: str, url: str, body: str, role: AccessRole | None
    ) -> tuple[int, str]:
        headers = [(b"host", b"127.0.0.1:8765"), (b"content-type", b"application/json")]
        if role is not None:
            headers.append((b"authorization", f"Bearer {self.secrets[role]}".encode()))
        path, _, query = url.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": headers,
        }
        given = iter([{"type": "http.request", "body": body.encode() if body != "null" else b""}])
        started = asyncio.Event()
        found: list[bytes] = []
        status = 0

        async def receive() -> Any:
            for each in given:
                return each
            await started.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)
            found.append(message.get("body", b""))
            if message.get("body"):
                started.set()

        await self.app(scope, receive, send)
        return status, b"".join(found).decode()

    def state(self) -> tuple[str, int]:
        """Return the program in force, and the number of the last commit."""
        answer = self.loop.run(self.service.call(OWNER, ProgramRequest()))
        return answer.json["program"], answer.commit

    def close(self) -> None:
        self.loop.run(self.service.close())
        self.loop.close()
        self.catalog.close()


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    place = tmp_path_factory.mktemp("rights") / "wh"
    with corollary.open(place, engine="local") as db:
        program = place.with_name("program.dl")
        program.write_text(PROGRAM, encoding="utf-8")
        db.run(program)  # so that the source is known
        with db.transaction() as tx:
            tx.insert("edge", [("a", "b"), ("c", "d")])
            tx.insert("secret", [("mallory", 31337)])
        with db.transaction() as tx:
            tx.delete("edge", [("c", "d")])
        db.grant("read", "link")
    with closing(Gate(place)) as made:
        yield made


def is_refused(status: int, text: str) -> bool:
    """Whether an answer refuses something; those of commands and of the page say it in words."""
    return status in (400, 403) or any(
        code in text for code in ("C1601", "C1623", "C1040", "C1041")
    )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_route_by_every_role(gate: Gate, case: Case) -> None:
    for role in (None, *AccessRole):
        program, commit = gate.state()
        status, text = gate.send(case, role)
        new_program, new_commit = gate.state()
        if case.least is None or (role is not None and role.includes(case.least)):
            assert status == case.status, (role, text)
            assert not is_refused(status, text), (role, text)
            if isinstance(case.body, dict) and "command" in case.body:
                assert json.loads(text)["status"] in (0, 1), (role, text)
            assert (new_program != program) is (case.effect is Effect.RULES), role
            assert (new_commit != commit) is (case.effect is not Effect.NONE), (role, text)
        else:
            assert (new_program, new_commit) == (program, commit), role
            if role is not None:
                assert is_refused(status, text), (role, text)
            elif case.url.startswith(("/v1/", "/metrics", "/mcp")):
                assert status == 401
            else:
                assert status == 200
                assert "corollary token add W NAME" in text
        if role in (None, READ):
            asked = case.url + json.dumps(case.body)
            assert not [each for each in HIDDEN if each in text and each not in asked], text


def test_the_cases_have_every_route_and_command(gate: Gate) -> None:
    """A new route needs a case; signing in has tests of its own, and static files show nothing."""
    known = {
        (method, route.path)
        for route in gate.routes
        for method in (route.methods or set()) - {"HEAD"}
        if not route.path.startswith(("/static/", "/vendor/"))
    }
    tried = {
        (each.method, next(route.path for route in gate.routes if route.path_regex.match(path)))
        for each in CASES
        for path in [urlsplit(each.url).path]
    }
    assert known - tried == {("POST", "/v1/session")}
    named = {each.body["command"] for each in CASES if "command" in (each.body or ())}
    assert named == {*READING_COMMANDS, *WRITING_COMMANDS}
    called = {each.body["params"]["name"] for each in CASES if each.url == "/mcp"}
    assert called == {each.name for each in TOOLS}


def test_a_writing_command_is_not_run_as_a_reading_one(gate: Gate) -> None:
    for name in WRITING_COMMANDS:
        body = {"command": name, "options": {"warehouse": "wh"}}
        assert gate.send(Case("POST", "/v1/command", READ, body), ADMIN)[0] == 400


@pytest.mark.parametrize(
    "options",
    [{"insert": ["edge=new.csv"]}, {"delete": "edge=old.csv"}, {"changes": "changes.jsonl"}],
)
@pytest.mark.parametrize("files", [{}, {"edge=other.csv": ""}, {"changes": 1}])
def test_a_file_that_the_client_has_not_sent(
    gate: Gate, options: dict[str, Any], files: dict[str, Any]
) -> None:
    body = {"command": "apply", "options": {"warehouse": "wh", **options}, "files": files}
    status, text = gate.send(Case("POST", "/v1/writing-command", WRITE, body), WRITE)
    assert status == 400, text
    assert "C1641" in text


# --- below HTTP --------------------------------------------------------------------------------


@pytest.fixture
def context() -> Iterator[HandlerContext]:
    database = corollary.open(None, engine="local")
    database.load(text=PROGRAM)
    with closing(HandlerContext(database, ServiceLimits())) as made:
        yield made


def test_handlers_refuse_lower_roles(context: HandlerContext) -> None:
    for kind in HANDLERS:
        for role in AccessRole:
            if not role.includes(kind.role):
                request = object.__new__(kind)
                with pytest.raises(ServiceError, match="C1601"):
                    handle(context, Principal("x", role), request)


def test_a_transaction_has_the_role_of_who_asks(context: HandlerContext) -> None:
    """Whatever a handler does with the database, it does it for who has sent the request."""
    database = context.database
    rule = 'link(x, "p") :- secret(x, _).'

    def edit() -> None:
        with database.transaction() as transaction:
            transaction.add_rule(rule)

    def insert() -> None:
        with database.transaction() as transaction:
            transaction.insert("edge", [("a", "b")])

    def define() -> None:
        database.sql("CREATE VIEW v AS SELECT who FROM secret")

    for role, allowed in ((None, ()), (READ, ()), (WRITE, (insert,)), (ADMIN, (insert, edit))):
        for change in (insert, edit, define) if role is not ADMIN else (insert, edit):
            with ExitStack() as acting:
                if role is not None:
                    acting.enter_context(context.acting_as(Principal("x", role)))
                if change in allowed:
                    change()
                    continue
                with pytest.raises(AccessError, match="C1601"):
                    change()


def test_whoever_opens_the_warehouse_may_do_everything() -> None:
    with corollary.open(None, engine="local") as database:
        database.load(text=PROGRAM)
        with database.transaction() as transaction:
            transaction.add_rule('link(x, "p") :- secret(x, _).')
        assert transaction.commit_number == 2
