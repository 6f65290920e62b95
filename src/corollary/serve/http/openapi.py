"""The OpenAPI 3.1 description of the interface, made of the classes of requests."""

import dataclasses
import inspect
from collections.abc import Container, Mapping
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from corollary.serve.answers import JSON_TYPE
from corollary.serve.http.endpoints import ENDPOINTS, AnswerType, BodyForm, Endpoint
from corollary.serve.http.events import EVENTS_TYPE
from corollary.serve.http.http_metrics import METRICS_TYPE
from corollary.serve.http.parameters import IDEMPOTENCY_HEADER, LAST_EVENT_HEADER
from corollary.serve.http.responses import ARROW_TYPE, COMMIT_HEADER, PICTURE_TYPE
from corollary.serve.requests import ApplyRequest, Request, is_needed
from corollary.version import __version__

Schema = dict[str, Any]
LINES_TYPE = "application/x-ndjson"
_IN_NAMES = str.maketrans("/.{}:", "-----")

ERROR_STATUSES = {
    400: "Something is wrong with the request; exit status 1.",
    401: "There is no valid token or session.",
    403: "It was not granted, or needs another role.",
    404: "There is no such path, relation or commit.",
    405: "The path has no such method.",
    408: "The body of the request did not come.",
    409: "Others have committed first; exit status 4.",
    413: "The body is too large.",
    421: "The server has another name.",
    422: "A constraint is violated (exit status 3), a limit was reached (5), or an idempotency key "
    "stands for another change (1).",
    429: "Too many requests of this token are under way.",
    500: "The server has failed; its log has the details.",
    503: "The server is overloaded, stops, or has not seen the commit yet.",
}
OPEN_ERRORS = (405, 421, 500)
"""What can go wrong on paths that need no token and read no body."""

SCHEMAS: Mapping[str, Schema] = {
    "Error": {
        "type": "object",
        "required": ["error", "diagnostics", "status"],
        "properties": {
            "error": {"type": "string", "description": "The message, as a command prints it."},
            "diagnostics": {"type": "array", "items": {"$ref": "#/components/schemas/Diagnostic"}},
            "status": {"type": "integer", "description": "The exit status of a command."},
        },
    },
    "Diagnostic": {
        "type": "object",
        "required": ["code", "severity", "message", "note"],
        "properties": {
            "code": {"type": "string", "pattern": "^C[0-9]{4}$"},
            "severity": {"enum": ["error", "warning"]},
            "message": {"type": "string"},
            "file": {"type": "string"},
            "line": {"type": "integer"},
            "column": {"type": "integer"},
            "note": {"type": ["string", "null"], "description": "How to fix it."},
        },
    },
    "Document": {"type": "object"},
    "Rows": {
        "type": "object",
        "required": ["columns", "rows", "commit"],
        "properties": {
            "columns": {"type": "array"},
            "rows": {"type": "array", "items": {"type": "array"}},
            "commit": {"type": "integer", "description": "The commit that the rows show."},
            "cursor": {"type": ["string", "null"], "description": "Leads to the next rows."},
        },
    },
    "Session": {
        "type": "object",
        "required": ["name", "role"],
        "properties": {"name": {"type": "string"}, "role": {"enum": ["read", "write", "admin"]}},
    },
}


def openapi_document() -> dict[str, Any]:
    """Return the description."""
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in ENDPOINTS:
        path = endpoint.path.replace(":path}", "}")
        paths.setdefault(path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Corollary",
            "version": __version__,
            "description": "A warehouse: relations, and views that are kept true.",
        },
        "security": [{"token": []}, {"session": []}],
        "paths": {**paths, **_about_the_server()},
        "components": {
            "schemas": dict(SCHEMAS),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "corollary_8765"},
            },
        },
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    request = endpoint.request
    operation: dict[str, Any] = {
        "operationId": f"{endpoint.method}{endpoint.path}".lower().translate(_IN_NAMES),
        "summary": inspect.cleandoc(request.__doc__ or ""),
        "description": f"Needs the role `{request.role}`.",
        "parameters": _parameters(endpoint),
        "responses": {"200": _answer(endpoint), **_errors(ERROR_STATUSES)},
    }
    if endpoint.body is not BodyForm.NONE:
        operation["requestBody"] = {"required": True, "content": _body(endpoint)}
    return operation


def _parameters(endpoint: Endpoint) -> list[Schema]:
    found: list[Schema] = []
    for each in dataclasses.fields(endpoint.request):
        is_in_path = each.name in endpoint.path_fields
        is_in_body = endpoint.body is not BodyForm.NONE and not is_in_path
        if is_in_body or each.name == "arrow" or each.name in endpoint.fixed:
            continue
        schema, text = field_schema(endpoint.request, each.name)
        found.append(
            {
                "name": endpoint.aliases.get(each.name, each.name),
                "in": "path" if is_in_path else "query",
                "required": is_in_path or is_needed(each),
                "description": text,
                "schema": _parameter_schema(schema),
            }
        )
    keyed = (IDEMPOTENCY_HEADER, BodyForm.CHANGES), (IDEMPOTENCY_HEADER, BodyForm.EVENTS)
    for name, body in (*keyed, (LAST_EVENT_HEADER, None)):
        if body is endpoint.body or (body is None and endpoint.answer is AnswerType.EVENTS):
            kind = {"type": "string"} if body else {"type": "integer", "minimum": 0}
            found.append({"name": name.title(), "in": "header", "schema": kind})
    return found


def _parameter_schema(schema: Schema) -> Schema:
    """Return the schema of a field as a parameter, which cannot be null."""
    kinds = schema.get("type")
    if not isinstance(kinds, list):
        return schema
    left = [each for each in kinds if each != "null"]
    return {**schema, "type": left[0] if len(left) == 1 else left}


def _body(endpoint: Endpoint) -> Schema:
    body = object_schema(endpoint.request, without=endpoint.path_fields)
    if endpoint.body is BodyForm.EVENTS:
        events = {"type": "array", "items": {"type": "object"}}
        return {JSON_TYPE: {"schema": events}, LINES_TYPE: {"schema": {"type": "string"}}}
    content: Schema = {JSON_TYPE: {"schema": body}}
    if endpoint.body is BodyForm.CHANGES:
        content[LINES_TYPE] = {"schema": {"type": "string"}}
    if endpoint.body is BodyForm.PROGRAM:
        content["text/plain"] = {"schema": {"type": "string"}}
    return content


def object_schema(request: type[Request], without: Container[str] = ()) -> Schema:
    """Return the schema of a request as a JSON object, without some of its fields."""
    fields = [each for each in dataclasses.fields(request) if each.name not in without]
    properties = {}
    for each in fields:
        schema, text = field_schema(request, each.name)
        properties[each.name] = {**schema, "description": text}
    if request is ApplyRequest:
        changes = properties["changes"]
        lines = {"type": "array", "items": {"type": "object"}}
        changes["anyOf"] = [{"type": changes.pop("type")}, lines]
    return {
        "type": "object",
        "properties": properties,
        "required": [each.name for each in fields if is_needed(each)],
        "additionalProperties": False,
    }


def field_schema(request: type[Request], name: str) -> tuple[Schema, str]:
    """Return the schema of a field, and its description."""
    hint = get_type_hints(request, include_extras=True)[name]
    text = ""
    if get_origin(hint) is Annotated:
        hint, text = get_args(hint)[:2]
    return type_schema(hint), str(text)


def type_schema(kind: Any) -> Schema:
    """Return the JSON schema of a type.

    >>> type_schema(int | str | None)
    {'type': ['integer', 'string', 'null']}
    """
    names = {int: "integer", str: "string", bool: "boolean", float: "number", type(None): "null"}
    if kind in names:
        return {"type": names[kind]}
    match get_origin(kind):
        case origin if origin is tuple:
            return {"type": "array", "items": type_schema(get_args(kind)[0])}
        case origin if isinstance(origin, type) and issubclass(origin, Mapping):
            return {"type": "object"}
        case None:
            return {}
        case _:
            members = [type_schema(each) for each in get_args(kind)]
            if all(each.keys() == {"type"} for each in members):
                return {"type": [each["type"] for each in members]}
            return {"anyOf": members}


# --- answers ----------------------------------------------------------------------------------


def _answer(endpoint: Endpoint) -> Schema:
    text = inspect.cleandoc(endpoint.request.__doc__ or "")
    commit = {"schema": {"type": "integer"}, "description": "The commit that the answer has seen."}
    content: Schema = {JSON_TYPE: _reference("Document")}
    match endpoint.answer:
        case AnswerType.DOCUMENT:
            pass
        case AnswerType.ROWS:
            content = {JSON_TYPE: _reference("Rows"), ARROW_TYPE: {}}
        case AnswerType.EVENTS:
            return {"description": text, "content": {EVENTS_TYPE: {}}}
        case AnswerType.PROOF:
            content[PICTURE_TYPE] = {}
        case AnswerType.PICTURE:
            content = {PICTURE_TYPE: {}}
    return {"description": text, "headers": {COMMIT_HEADER: commit}, "content": content}


def _errors(statuses: Mapping[int, str] | tuple[int, ...]) -> Schema:
    return {
        str(status): {
            "description": ERROR_STATUSES[status],
            "content": {JSON_TYPE: _reference("Error")},
        }
        for status in statuses
    }


def _reference(name: str) -> Schema:
    return {"schema": {"$ref": f"#/components/schemas/{name}"}}


def _about_the_server() -> dict[str, Any]:
    """Return the paths that ask nothing of the warehouse."""
    document = {JSON_TYPE: _reference("Document")}
    secret = {"type": "string", "description": "A key of an address that the server printed."}
    token = {**secret, "description": "A token."}
    session: Schema = {
        "type": "object",
        "properties": {"key": secret, "token": token},
        "anyOf": [{"required": ["key"]}, {"required": ["token"]}],
    }
    marker = {
        "name": "X-Corollary",
        "in": "header",
        "required": True,
        "description": "Anything: pages of other sites cannot send it.",
        "schema": {"type": "string"},
    }
    return {
        "/healthz": _plain("health", "Whether the server runs.", document),
        "/readyz": _plain("ready", "Whether it takes requests.", document, 503),
        "/metrics": {
            "get": {
                "operationId": "get-metrics",
                "summary": "What the server counts, for Prometheus.",
                "responses": {
                    "200": {"description": "The metrics.", "content": {METRICS_TYPE: {}}},
                    **_errors((401, *OPEN_ERRORS)),
                },
            }
        },
        "/openapi.json": _plain("openapi", "This description.", document),
        "/mcp": {
            "post": {
                "operationId": "post-mcp",
                "summary": "A message of the Model Context Protocol, by which agents ask.",
                "requestBody": {"required": True, "content": document},
                "responses": {
                    "200": {"description": "The answer, in JSON-RPC.", "content": document},
                    "202": {"description": "The message has no answer."},
                    "400": {"description": "It cannot be read.", "content": document},
                    "404": {"description": "There is no such method.", "content": document},
                    **_errors((401, 403, 408, 413, 503, *OPEN_ERRORS)),
                },
            }
        },
        "/v1/session": {
            "get": {
                "operationId": "get-session",
                "summary": "Who is signed in.",
                "responses": {
                    "200": {
                        "description": "Name and role.",
                        "content": {JSON_TYPE: _reference("Session")},
                    },
                    **_errors((401, *OPEN_ERRORS)),
                },
            },
            "post": {
                "operationId": "open-session",
                "summary": "Sign a browser in: the answer sets a cookie.",
                "security": [],
                "parameters": [marker],
                "requestBody": {"required": True, "content": {JSON_TYPE: {"schema": session}}},
                "responses": {
                    "204": {"description": "The cookie of the session."},
                    **_errors((400, 401, 403, 408, 413, *OPEN_ERRORS)),
                },
            },
            "delete": {
                "operationId": "close-session",
                "summary": "Sign out.",
                "responses": {
                    "204": {"description": "The session has ended."},
                    **_errors((401, 403, *OPEN_ERRORS)),
                },
            },
        },
    }


def _plain(name: str, summary: str, content: Schema, *others: int) -> Schema:
    responses = {
        str(status): {"description": summary, "content": content} for status in (200, *others)
    }
    return {
        "get": {
            "operationId": f"get-{name}",
            "summary": summary,
            "security": [],
            "responses": {**responses, **_errors(OPEN_ERRORS)},
        }
    }
