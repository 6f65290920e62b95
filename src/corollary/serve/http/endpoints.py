"""The paths of the interface: for each the request that it asks, and where its fields are."""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any

from corollary.data_class import dataclass
from corollary.database.access.principals import Principal
from corollary.serve import commands, requests
from corollary.serve.answers import ServiceError
from corollary.serve.requests import Request


class BodyForm(StrEnum):
    """What the body of a request is."""

    NONE = "none"
    """There is none; fields are parameters of the query."""
    OBJECT = "object"
    """A JSON object with the fields."""
    CHANGES = "changes"
    """A JSON object with the fields, or lines of changes."""
    EVENTS = "events"
    """Lines of events, or a JSON array of them."""
    PROGRAM = "program"
    """A JSON object with the fields, or the text of a program."""


class AnswerType(StrEnum):
    """What an answer is."""

    DOCUMENT = "document"
    ROWS = "rows"
    """JSON, or an Arrow stream if the client accepts that."""
    PROOF = "proof"
    """JSON, or a picture if the client accepts that."""
    PICTURE = "picture"
    EVENTS = "events"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A method of a path.

    Attributes:
        method: the method of HTTP.
        path: the path, with the fields that it has in braces.
        request: what is asked.
        body: where its fields are.
        answer: what comes back.
        aliases: fields whose parameters have another name.
        fixed: fields that the path has decided.
    """

    method: str
    path: str
    request: type[Request]
    body: BodyForm = BodyForm.NONE
    answer: AnswerType = AnswerType.DOCUMENT
    aliases: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def path_fields(self) -> tuple[str, ...]:
        """The fields that are in the path."""
        parts = self.path.split("/")
        return tuple(part[1:-1].partition(":")[0] for part in parts if part.startswith("{"))


def require_role(who: Principal, request: type[Request]) -> None:
    """Refuse a request that needs another role.

    Raises:
        ServiceError: `C1623`.
    """
    if not who.role.includes(request.role):
        raise ServiceError.of(
            403,
            "C1623",
            f"`{who.name}` has the role `{who.role}`, and may not do this.",
            f"ask with a token of the role `{request.role}`: "
            f"`corollary token add W NAME --role {request.role}`",
        )


def _get(path: str, request: type[Request], answer: AnswerType = AnswerType.DOCUMENT) -> Endpoint:
    return Endpoint("GET", f"/v1/{path}", request, BodyForm.NONE, answer)


def _post(path: str, request: type[Request], answer: AnswerType = AnswerType.DOCUMENT) -> Endpoint:
    return Endpoint("POST", f"/v1/{path}", request, BodyForm.OBJECT, answer)


ENDPOINTS = (
    _post("query", requests.QueryRequest, AnswerType.ROWS),
    _post("sql", requests.SqlRequest, AnswerType.ROWS),
    _post("what-if", requests.WhatIfRequest),
    Endpoint("POST", "/v1/apply", requests.ApplyRequest, BodyForm.CHANGES),
    Endpoint("POST", "/v1/sources/{relation}/events", requests.PushEventsRequest, BodyForm.EVENTS),
    _get("relations", requests.RelationsRequest),
    _get("relations/{relation:path}", requests.RelationRowsRequest, AnswerType.ROWS),
    _get("describe/{relation:path}", requests.DescribeRequest),
    _get("commits", requests.CommitsRequest),
    _get("commits/{number}", requests.CommitRequest),
    _get("changes", requests.ChangesRequest),
    Endpoint(
        "GET",
        "/v1/events",
        requests.EventsRequest,
        answer=AnswerType.EVENTS,
        aliases={"relations": "relation"},
    ),
    _post("why", requests.WhyRequest, AnswerType.PROOF),
    _post("why-not", requests.WhyNotRequest, AnswerType.PROOF),
    _post("why-added", requests.WhyAddedRequest, AnswerType.PROOF),
    _post("why-removed", requests.WhyRemovedRequest, AnswerType.PROOF),
    _post("explain", requests.ExplainRequest),
    Endpoint("POST", "/v1/check", requests.CheckRequest, BodyForm.PROGRAM),
    _get("program", requests.ProgramRequest),
    Endpoint("PUT", "/v1/program", requests.PutProgramRequest, BodyForm.PROGRAM),
    _get("graph", requests.GraphRequest, AnswerType.PROOF),
    Endpoint(
        "GET",
        "/v1/graph.svg",
        requests.GraphRequest,
        answer=AnswerType.PICTURE,
        fixed={"form": "svg"},
    ),
    _get("status", requests.StatusRequest),
    _get("alerts", requests.AlertsRequest),
    _get("quarantine", requests.QuarantineRequest, AnswerType.ROWS),
    _get("advice", requests.AdviceRequest),
    _post("advice", requests.AdviceRequest),
    _get("documents", requests.DocumentsRequest),
    _post("command", commands.CommandRequest),
    _post("writing-command", commands.WritingCommandRequest),
    _post("declarations", commands.DeclarationsRequest),
)
"""All that asks something of the warehouse."""
