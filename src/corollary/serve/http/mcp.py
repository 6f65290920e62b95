"""The Model Context Protocol, by which agents ask: JSON-RPC over HTTP, without a session.

Clients of the protocol since 2026-07-28 send all that is needed with each request, and say some of
it again in headers; earlier ones begin with a handshake, on which nothing here depends.
"""

import dataclasses
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from corollary.data_class import dataclass
from corollary.database.access.principals import AccessRole, Principal
from corollary.errors import InputError
from corollary.serve import requests
from corollary.serve.answers import JSON_TYPE, Answer, ServiceError
from corollary.serve.handlers.failures import service_error
from corollary.serve.http.endpoints import require_role
from corollary.serve.http.openapi import object_schema
from corollary.serve.http.parameters import join_changes, parse_object
from corollary.serve.http.responses import json_response
from corollary.serve.requests import Request, parse_request
from corollary.version import __version__

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
VERSIONS = (*HANDSHAKE_VERSIONS, "2026-07-28")
PREFIX = "io.modelcontextprotocol/"
VERSION_HEADER, METHOD_HEADER, NAME_HEADER = "mcp-protocol-version", "mcp-method", "mcp-name"
SERVER = {"name": "corollary", "version": __version__}
FRESH = {"ttlMs": 0, "cacheScope": "private"}
"""What a client may keep of an answer: nothing."""
AGENT_ROWS = 100
"""How many rows an agent is shown if it does not say how many."""

PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMETERS = -32700, -32600, -32601, -32602
HEADER_MISMATCH, UNKNOWN_VERSION = -32020, -32022

INSTRUCTIONS = """\
This server keeps a warehouse: base relations (tables), and views over them, written in SQL or as \
Datalog rules, which are true again after every change. Begin with `list`, then `describe` what \
looks relevant. Ask with `sql` (one SELECT), or with `query`: a goal such as `link("a", y)`, where \
words are variables and texts stand in quotes. `why` proves a tuple, `why-not` says what one \
lacks, `changes` says what came and went since a commit. An error says how to mend the call."""
MAY_WRITE = " `what-if` and `apply` with `dry_run` say what would follow from a change; {apply}"
APPLY = "without it, `apply` makes the change."
DRY_APPLY = "`apply` does nothing else here."


@dataclass(frozen=True, slots=True)
class Tool:
    """What an agent can call.

    Attributes:
        name: its name.
        request: what it asks.
        fixed: fields that are decided.
        defaults: fields that are decided unless they are given.
    """

    name: str
    request: type[Request]
    fixed: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)


_TEXT = {"form": "text", "limit_nodes": None, "limit_expanded": None, "limit_dry_runs": None}
_ROWS = {"limit": AGENT_ROWS}
_CHANGED_ROWS = {"max_rows": AGENT_ROWS}
TOOLS = (
    Tool("list", requests.RelationsRequest),
    Tool("describe", requests.DescribeRequest),
    Tool("sql", requests.SqlRequest, {"arrow": False}, _ROWS),
    Tool("query", requests.QueryRequest, {"arrow": False}, _ROWS),
    Tool("why", requests.WhyRequest, _TEXT),
    Tool("why-not", requests.WhyNotRequest, _TEXT),
    Tool("changes", requests.DifferenceRequest, {}, _ROWS),
    Tool("what-if", requests.WhatIfRequest, {}, _CHANGED_ROWS),
    Tool("advise", requests.AdviceRequest, {"names": ()}),
    Tool("apply", requests.ApplyRequest, {"alone": False, "today": None}, _CHANGED_ROWS),
)

Ask = Callable[[Request], Awaitable[Answer | None]]


class ProtocolError(Exception):
    """A message that cannot be answered."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class AgentInterface:
    """Answers the messages of agents.

    Args:
        allows_writes: whether `apply` may change anything.
    """

    def __init__(self, *, allows_writes: bool) -> None:
        self._allows_writes = allows_writes

    async def respond(self, http: HttpRequest, who: Principal, ask: Ask) -> Response:
        """Return the response to a message; what tells something has an empty one."""
        number = None
        is_modern = http.headers.get(VERSION_HEADER, VERSIONS[0]) not in HANDSHAKE_VERSIONS
        try:
            message = await _read(http)
            if "id" not in message:
                return Response(status_code=202)
            number = message["id"]
            parameters = message.get("params", {})
            if is_modern:
                _check_envelope(http, message["method"], parameters)
            result = await self._result(message["method"], parameters, who, ask)
        except ProtocolError as error:
            problem = {"code": error.code, "message": str(error)}
            if error.data is not None:
                problem["data"] = error.data
            is_unread = error.code in (PARSE_ERROR, INVALID_REQUEST)
            status = 404 if error.code == NO_METHOD else 400
            return json_response(
                {"jsonrpc": "2.0", "id": number, "error": problem},
                status if is_modern or is_unread else 200,
            )
        if result is None:
            return Response(status_code=204)
        if is_modern:
            result |= {"resultType": "complete", "_meta": {f"{PREFIX}serverInfo": SERVER}}
        return json_response({"jsonrpc": "2.0", "id": number, "result": result})

    async def _result(
        self, method: str, parameters: Mapping[str, Any], who: Principal, ask: Ask
    ) -> dict[str, Any] | None:
        match method:
            case "initialize":
                asked = parameters.get("protocolVersion")
                version = asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
                return {"protocolVersion": version, "serverInfo": SERVER, **self._about(who)}
            case "server/discover":
                return {"supportedVersions": [*VERSIONS], **self._about(who), **FRESH}
            case "ping":
                return {}
            case "tools/list":
                may_call = (each for each in TOOLS if who.role.includes(each.request.role))
                tools = [self._described(each) for each in may_call]
                return {"tools": tools, **FRESH}
            case "tools/call":
                return await self._call(parameters, who, ask)
            case _:
                raise ProtocolError(NO_METHOD, f"There is no method `{method[:200]}`.")

    def _about(self, who: Principal) -> dict[str, Any]:
        """Return what the server can do, and how an agent uses it."""
        text = INSTRUCTIONS
        if who.role.includes(AccessRole.WRITE):
            text += MAY_WRITE.format(apply=APPLY if self._allows_writes else DRY_APPLY)
        return {"capabilities": {"tools": {}}, "instructions": text}

    def _described(self, tool: Tool) -> dict[str, Any]:
        """Return a tool as agents see it."""
        schema = object_schema(tool.request, without=tool.fixed)
        for name, value in self._defaults(tool).items():
            schema["properties"][name]["default"] = value
        is_write = tool.request is requests.ApplyRequest and self._allows_writes
        return {
            "name": tool.name,
            "description": inspect.cleandoc(tool.request.__doc__ or ""),
            "inputSchema": schema,
            "annotations": {
                "readOnlyHint": not is_write,
                "destructiveHint": is_write,
                "openWorldHint": False,
            },
        }

    def _defaults(self, tool: Tool) -> Mapping[str, Any]:
        if tool.request is requests.ApplyRequest and not self._allows_writes:
            return {**tool.defaults, "dry_run": True}
        return tool.defaults

    async def _call(
        self, parameters: Mapping[str, Any], who: Principal, ask: Ask
    ) -> dict[str, Any] | None:
        """Call a tool; what goes wrong in it is told the agent, which can call it again."""
        name = parameters.get("name")
        tool = next((each for each in TOOLS if each.name == name), None)
        if tool is None:
            known = ", ".join(each.name for each in TOOLS)
            raise ProtocolError(INVALID_PARAMETERS, f"There is no tool `{name}`: call {known}.")
        try:
            require_role(who, tool.request)
            answer = await ask(self._request(tool, parameters.get("arguments") or {}))
        except (ServiceError, InputError) as error:
            return _content(service_error(error).message, is_error=True)
        if answer is None:
            return None
        result = _content(answer.text, is_error=False)
        if answer.media_type == JSON_TYPE:
            result["structuredContent"] = answer.json
        return result

    def _request(self, tool: Tool, arguments: Any) -> Request:
        if not isinstance(arguments, dict):
            raise ProtocolError(INVALID_PARAMETERS, "`arguments` is not an object.")
        given = {**self._defaults(tool), **join_changes(arguments)}
        request = parse_request(tool.request, given, tool.fixed)
        is_change = isinstance(request, requests.ApplyRequest) and not request.dry_run
        if is_change and not self._allows_writes:
            raise ServiceError.of(
                403,
                "C1645",
                "Agents change nothing here: they only try changes out.",
                "call `apply` with `dry_run`, or let them: `corollary serve W "
                "--allow-agent-writes`",
            )
        return request


async def _read(http: HttpRequest) -> dict[str, Any]:
    """Return the message of a request."""
    try:
        message = parse_object(await http.body())
    except ServiceError as error:
        if error.status != 400:
            raise
        raise ProtocolError(PARSE_ERROR, error.message) from None
    number = message.get("id", 0)
    if (
        message.get("jsonrpc") != "2.0"
        or not isinstance(message.get("method"), str)
        or not isinstance(message.get("params", {}), dict)
        or not isinstance(number, str | int)
        or isinstance(number, bool)
    ):
        raise ProtocolError(INVALID_REQUEST, "This is no request of JSON-RPC 2.0.")
    return message


def _check_envelope(http: HttpRequest, method: str, parameters: Mapping[str, Any]) -> None:
    """Refuse a message that lacks what each has to have, or whose headers say something else."""
    meta = parameters.get("_meta")
    needed = [f"{PREFIX}protocolVersion", f"{PREFIX}clientCapabilities"]
    if not isinstance(meta, dict) or any(each not in meta for each in needed):
        raise ProtocolError(INVALID_PARAMETERS, f"`params._meta` needs {' and '.join(needed)}.")
    version = meta[needed[0]]
    said = {VERSION_HEADER: version, METHOD_HEADER: method}
    if method == "tools/call":
        said[NAME_HEADER] = parameters.get("name")
    for header, value in said.items():
        if http.headers.get(header) != value:
            text = f"The header `{header}` is not what the message says."
            raise ProtocolError(HEADER_MISMATCH, text)
    if version not in VERSIONS:
        data = {"supported": [*VERSIONS], "requested": version}
        raise ProtocolError(UNKNOWN_VERSION, "The server has no such version.", data)


def _content(text: str, *, is_error: bool) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": is_error}
