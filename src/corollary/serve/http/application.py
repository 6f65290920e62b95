"""The application: routes of the interface, of the page, and the gate before them."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from corollary.database.access.principals import AccessRole, Principal
from corollary.serve.answers import Answer, ServiceError
from corollary.serve.handlers.failures import service_error
from corollary.serve.http.endpoints import ENDPOINTS, AnswerType, Endpoint, require_role
from corollary.serve.http.events import respond_with_events
from corollary.serve.http.http_metrics import METRICS_TYPE, HttpMetrics, print_metrics
from corollary.serve.http.mcp import AgentInterface
from corollary.serve.http.middleware import RequestMiddleware
from corollary.serve.http.openapi import openapi_document
from corollary.serve.http.parameters import parse_object, read_request
from corollary.serve.http.responses import json_response, respond, respond_with_error
from corollary.serve.http.settings import ServerSettings
from corollary.serve.http.telemetry import Telemetry
from corollary.serve.requests import EventsRequest, Request
from corollary.serve.service import Service
from corollary.serve.tokens import SESSION_SECONDS, TokenStore

Handler = Callable[[HttpRequest], Awaitable[Response]]


def application(
    service: Service,
    settings: ServerSettings,
    tokens: TokenStore,
    extra_routes: Sequence[BaseRoute] = (),
    telemetry: Telemetry | None = None,
    *,
    metrics: HttpMetrics | None = None,
) -> ASGIApp:
    """Return the application.

    Args:
        service: answers requests.
        settings: how it is reached.
        tokens: says who asks.
        extra_routes: other routes, such as those of the page; `request.state.principal` says who
            asks, or is None.
        telemetry: makes traces.
        metrics: counts requests.
    """
    metrics = metrics or HttpMetrics()
    interface = _Interface(service, settings, tokens, metrics)
    inner = _Application(
        routes=[*interface.routes(), *extra_routes],
        exception_handlers={HTTPException: _refuse, Exception: _fail},
    )
    return RequestMiddleware(inner, settings, tokens, metrics, telemetry or Telemetry())


class _Application(Starlette):
    """An application whose errors are all answered, and none raised again."""

    def build_middleware_stack(self) -> ASGIApp:
        return ExceptionMiddleware(self.router, handlers=self.exception_handlers)


async def _fail(_: HttpRequest, error: Exception) -> Response:
    """Answer an error, whatever it is."""
    return respond_with_error(service_error(error))


async def _refuse(request: HttpRequest, error: Exception) -> Response:
    """Answer what no route fits, as other errors are."""
    assert isinstance(error, HTTPException)
    path = request.url.path
    if error.status_code == 404:
        text = f"There is nothing at `{path[:200]}`."
        found = ServiceError.of(404, "C1629", text, "`/openapi.json` lists the paths")
        return respond_with_error(found)
    if error.status_code == 405:
        text = f"`{path[:200]}` has no method {request.method}."
        found = ServiceError.of(405, "C1630", text, "`/openapi.json` lists the methods")
        response = respond_with_error(found)
        response.headers.update(error.headers or {})
        return response
    return Response(error.detail, error.status_code, error.headers)


async def _unless_left(request: HttpRequest, call: Coroutine[Any, Any, Answer]) -> Answer | None:
    """Return the answer to a read; None if the client leaves before: then it is not computed."""

    async def wait_until_left() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    answer, left = asyncio.ensure_future(call), asyncio.ensure_future(wait_until_left())
    try:
        await asyncio.wait((answer, left), return_when=asyncio.FIRST_COMPLETED)
        return await answer if answer.done() else None
    finally:
        answer.cancel()
        left.cancel()


class _Interface:
    """The handlers of the paths."""

    def __init__(
        self, service: Service, settings: ServerSettings, tokens: TokenStore, metrics: HttpMetrics
    ) -> None:
        self._service = service
        self._settings = settings
        self._tokens = tokens
        self._metrics = metrics
        self._openapi = json_response(openapi_document())
        self._agents = AgentInterface(allows_writes=settings.allows_agent_writes)

    def routes(self) -> list[Route]:
        """Return all routes."""
        return [
            Route("/healthz", self._health),
            Route("/readyz", self._ready),
            Route("/metrics", self._show_metrics),
            Route("/openapi.json", self._describe),
            Route("/mcp", self._answer_agent, methods=["POST"]),
            Route("/v1/session", self._session),
            Route("/v1/session", self._open_session, methods=["POST"]),
            Route("/v1/session", self._close_session, methods=["DELETE"]),
            *(Route(each.path, self._handler(each), methods=[each.method]) for each in ENDPOINTS),
        ]

    def _handler(self, endpoint: Endpoint) -> Handler:
        async def handle(request: HttpRequest) -> Response:
            who: Principal = request.state.principal
            require_role(who, endpoint.request)
            answer = await self._ask(request, await read_request(endpoint, request))
            return Response(status_code=204) if answer is None else respond(answer)

        async def subscribe(request: HttpRequest) -> Response:
            asked = await read_request(endpoint, request)
            assert isinstance(asked, EventsRequest)
            return await self._events(request, request.state.principal, asked)

        return subscribe if endpoint.answer is AnswerType.EVENTS else handle

    async def _ask(self, request: HttpRequest, asked: Request) -> Answer | None:
        """Return the answer to a request; None if the client of a read has left."""
        call = self._service.call(request.state.principal, asked)
        if asked.is_write:  # it is made, whether or not anybody hears of it
            return await call
        return await _unless_left(request, call)

    async def _answer_agent(self, request: HttpRequest) -> Response:
        ask = partial(self._ask, request)
        return await self._agents.respond(request, request.state.principal, ask)

    async def _events(self, request: HttpRequest, who: Principal, asked: EventsRequest) -> Response:
        events = self._service.subscribe(who, asked)
        return await respond_with_events(events, request.state.is_valid)

    # --- about the server ----------------------------------------------------------------------

    async def _health(self, _: HttpRequest) -> Response:
        return json_response({"status": "ok"})

    async def _ready(self, _: HttpRequest) -> Response:
        if self._service.is_ready:
            return json_response({"status": "ready"})
        return json_response({"status": "stopping"}, 503)

    async def _show_metrics(self, request: HttpRequest) -> Response:
        who: Principal = request.state.principal
        shows_relations = who.role.includes(AccessRole.WRITE)
        found = await self._metrics.read(self._service, shows_relations=shows_relations)
        return Response(print_metrics(found), media_type=METRICS_TYPE)

    async def _describe(self, _: HttpRequest) -> Response:
        return self._openapi

    # --- sessions ------------------------------------------------------------------------------

    async def _session(self, request: HttpRequest) -> Response:
        who: Principal = request.state.principal
        return json_response({"name": who.name, "role": str(who.role)})

    async def _open_session(self, request: HttpRequest) -> Response:
        fields = parse_object(await request.body())
        secret = fields.get("key") or fields.get("token")
        opened = self._tokens.open_session(secret) if isinstance(secret, str) else None
        if opened is None:
            raise ServiceError.of(
                401,
                "C1622",
                "This key or token opens no session: it was used, has ended, or was never valid.",
                "`corollary token link W` prints a new address; or sign in with a token",
            )
        response = Response(status_code=204)
        self._set_cookie(response, opened[0], round(SESSION_SECONDS))
        return response

    async def _close_session(self, request: HttpRequest) -> Response:
        if request.state.session is not None:
            self._tokens.close_session(request.state.session)
        response = Response(status_code=204)
        self._set_cookie(response, "", 0)
        return response

    def _set_cookie(self, response: Response, value: str, seconds: int) -> None:
        response.set_cookie(
            self._settings.cookie_name,
            value,
            max_age=seconds,
            httponly=True,
            samesite="strict",
            secure=self._settings.has_secure_cookies,
        )
