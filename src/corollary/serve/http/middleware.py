"""What every request passes: host, token or session, origin, limits; headers, log and metrics."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from http.cookies import CookieError, SimpleCookie
from typing import Any, NoReturn

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from corollary.database.access.principals import OWNER, Principal
from corollary.serve.answers import ServiceError
from corollary.serve.handlers.failures import service_error
from corollary.serve.http.http_metrics import HttpMetrics
from corollary.serve.http.request_log import log_request
from corollary.serve.http.responses import respond_with_error
from corollary.serve.http.settings import ServerSettings
from corollary.serve.http.telemetry import Telemetry
from corollary.serve.tokens import TokenStore

API_PREFIX = "/v1/"
API_PATHS = ("/metrics", "/mcp")
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
LOCAL_KEY = "corollary.is_local"
"""Set in the scope of a connection by the socket that only the owner of the files can open."""

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
SECURITY_HEADERS = [
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
]
STRICT_TRANSPORT = (b"strict-transport-security", b"max-age=31536000")
NO_STORE = (b"cache-control", b"no-store")


class RequestMiddleware:
    """Lets requests through to the application.

    It sets `principal` in the state of a request: who asks, or None; what lies below `/v1` is
    refused then, but for signing in.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: ServerSettings,
        tokens: TokenStore,
        metrics: HttpMetrics,
        telemetry: Telemetry,
    ) -> None:
        self._app = app
        self._settings = settings
        self._tokens = tokens
        self._metrics = metrics
        self._telemetry = telemetry
        self._headers = [*SECURITY_HEADERS]
        if settings.has_secure_cookies:
            self._headers.append(STRICT_TRANSPORT)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # no WebSockets here
            await send({"type": "websocket.close", "code": 1008})
            return
        response = _SentResponse(scope, send, self._headers)
        with self._telemetry.span(scope) as span:
            try:
                await self._admit(scope, response, receive)
            except Exception as error:
                if response.status:  # it has begun: an end that is missing tells the client
                    service_error(error)
                    raise ConnectionAbortedError from error
                await respond_with_error(service_error(error))(scope, receive, response.send)
            finally:
                self._note(scope, response)
                span(response.status)

    async def _admit(self, scope: Scope, response: "_SentResponse", receive: Receive) -> None:
        headers = dict(scope["headers"])
        if sum(name == b"host" for name, _ in scope["headers"]) > 1:
            text = "The request has several `Host` headers."
            raise ServiceError.of(400, "C1638", text, "send one of them")
        is_local = scope.get(LOCAL_KEY, False)
        host = headers.get(b"host", b"").decode("latin-1")
        if not is_local and not self._settings.is_allowed_host(host):
            text = f"This server is not called `{host[:200]}`."
            note = "start it with `--allow-host NAME` for each name that it has"
            raise ServiceError.of(421, "C1625", text, note)
        state = scope.setdefault("state", {})
        state["principal"] = OWNER if is_local else None
        state["session"] = None
        if not is_local:
            await self._identify(scope, headers, state, host)
        response.principal = state["principal"]
        state["is_valid"] = self._validity(headers, state)
        body = _LimitedBody(receive, headers, self._settings)
        await self._app(scope, body.receive, response.send)

    async def _identify(
        self, scope: Scope, headers: dict[bytes, bytes], state: dict[str, Any], host: str
    ) -> None:
        """Find out who asks; refuse who does not say it where it is needed."""
        await self._refresh_tokens()
        is_api = scope["path"].startswith(API_PREFIX) or scope["path"] in API_PATHS
        scheme, _, secret = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if scheme:
            if scheme.lower() == "bearer":
                state["principal"] = self._tokens.principal_of(secret.strip())
        elif (session := self._session(headers)) is not None:
            state["principal"] = self._tokens.session_principal(session)
            state["session"] = session
            if state["principal"] is not None and scope["method"] not in SAFE_METHODS:
                self._check_origin(scope, headers, host)
        is_signing_in = scope["path"] == "/v1/session" and scope["method"] == "POST"
        if is_signing_in and (b"x-corollary" not in headers or b"origin" in headers):
            self._check_origin(scope, headers, host)
        if is_api and state["principal"] is None and not is_signing_in:
            raise ServiceError.of(
                401,
                "C1622",
                "The request has no valid token.",
                "send `Authorization: Bearer TOKEN`; `corollary token add W NAME --role read` "
                "makes one",
            )

    def _validity(self, headers: dict[bytes, bytes], state: dict[str, Any]) -> Callable[[], bool]:
        """Return a function that says whether a token or session is still valid, for streams."""
        who: Principal | None = state["principal"]
        session: str | None = state["session"]
        tokens = self._tokens
        secret = headers.get(b"authorization", b"").decode("latin-1").partition(" ")[2].strip()

        def is_valid() -> bool:
            if session is not None:
                return bool(tokens.session_principal(session) == who)
            return bool(not secret or tokens.principal_of(secret) == who)

        return is_valid

    async def _refresh_tokens(self) -> None:
        if self._tokens.is_stale:
            await asyncio.to_thread(self._tokens.refresh)

    def _session(self, headers: dict[bytes, bytes]) -> str | None:
        text = headers.get(b"cookie", b"").decode("latin-1")
        if self._settings.cookie_name not in text:
            return None
        cookies: SimpleCookie = SimpleCookie()
        try:
            cookies.load(text)
        except CookieError:
            return None
        found = cookies.get(self._settings.cookie_name)
        return None if found is None else found.value

    def _check_origin(self, scope: Scope, headers: dict[bytes, bytes], host: str) -> None:
        """Refuse what a page of another site could make a browser send."""
        scheme = scope["scheme"]
        if self._settings.is_behind_proxy:
            scheme = headers.get(b"x-forwarded-proto", b"https").decode("latin-1")
        origin = headers.get(b"origin", b"").decode("latin-1").lower()
        if b"x-corollary" not in headers or origin != f"{scheme}://{host}".lower():
            raise ServiceError.of(
                403,
                "C1624",
                "The request comes with a session, but not from a page of this server.",
                "send the headers `Origin` and `X-Corollary`, as the page does, or use a token",
            )

    def _note(self, scope: Scope, response: "_SentResponse") -> None:
        route = scope.get("route")
        path = getattr(route, "path", "other")
        seconds = time.perf_counter() - response.started
        self._metrics.count(path, response.status, seconds)
        client = scope.get("client")
        who = response.principal
        log_request(
            {
                "method": scope["method"],
                "path": scope["path"],
                "status": response.status,
                "seconds": round(seconds, 6),
                "bytes": response.sent_bytes,
                "who": None if who is None else who.name,
                "client": client[0] if client else "local",
            },
            response.status,
        )


class _SentResponse:
    """What is sent for one request: its headers get ours; its status and its size are noted."""

    def __init__(self, scope: Scope, send: Send, headers: list[tuple[bytes, bytes]]) -> None:
        self.started = time.perf_counter()
        self.status = 0
        self.sent_bytes = 0
        self.principal: Principal | None = None
        self._scope = scope
        self._send = send
        self._headers = headers

    async def send(self, message: Message) -> None:
        """Send a part of the answer."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = list(message["headers"])
            names = {name for name, _ in own}
            own += [each for each in self._headers if each[0] not in names]
            if b"cache-control" not in names:
                own.append(NO_STORE)
            message = {**message, "headers": own}
        else:
            self.sent_bytes += len(message.get("body", b""))
        await self._send(message)


class _LimitedBody:
    """The body of a request, which may be neither too large nor too slow."""

    def __init__(
        self,
        receive: Callable[[], Awaitable[Message]],
        headers: dict[bytes, bytes],
        settings: ServerSettings,
    ) -> None:
        self._receive = receive
        self._settings = settings
        self._left = settings.body_max_bytes
        self._is_complete = False
        self._end = time.monotonic() + settings.body_seconds
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self._left:
            self._refuse_large()

    async def receive(self) -> Message:
        """Return the next part of the body; after it, wait until the client has gone."""
        if self._is_complete:
            return await self._receive()
        seconds = self._end - time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                message = await self._receive()
        except TimeoutError:
            text = "The body of the request was not there after "
            text += f"{self._settings.body_seconds:g} seconds."
            raise ServiceError.of(408, "C1627", text, "send it at once") from None
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            self._is_complete = not message.get("more_body", False)
            if self._left < 0:
                self._refuse_large()
        return message

    def _refuse_large(self) -> NoReturn:
        raise ServiceError.of(
            413,
            "C1626",
            f"The body of the request has more than {self._settings.body_max_bytes:,} bytes.",
            "split the changes, or let the server read them as a source",
            exit_code=5,
        )
