"""Runs the application: on a port, and on the socket of the owner; and stops it in order."""

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.config import Config

from corollary.errors import InputError
from corollary.serve.http.middleware import LOCAL_KEY
from corollary.serve.http.protocol import GuardedProtocol
from corollary.serve.http.settings import ServerSettings

DRAIN_SECONDS = 1
"""How long answers may take that are on their way when everything else has stopped."""
BACKLOG = 1024


def listen_on(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address.

    Raises:
        InputError: somebody else does, or there is no such address.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(BACKLOG)
        except BaseException:
            listening.close()
            raise
    except (OSError, UnicodeError) as error:
        raise cannot_listen(host, port, error, "--port") from None
    return listening


def tls_context(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    """Return how a server encrypts, with a certificate and its key.

    Raises:
        InputError: they cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(*certificate)
    except OSError as error:  # what ssl raises, too
        raise InputError.of(
            "C1632",
            f"The certificate or its key cannot be used: {error.strerror or error}.",
            None,
            "give files in PEM format that belong together, with `--tls-cert` and `--tls-key`",
        ) from None
    return context


def cannot_listen(host: str, port: int, error: Exception, option: str) -> InputError:
    """Return the error of an address that cannot be listened on."""
    reason = getattr(error, "strerror", None) or error
    return InputError.of(
        "C1634",
        f"The server cannot listen on {host}, port {port}: {reason}.",
        None,
        f"choose another port with `{option}`; 0 takes one that is free",
    )


class HttpServer:
    """Runs an application.

    Args:
        app: the application.
        settings: how it is reached.
        listening: the socket of its port.
        private: the socket of its owner, whose requests need no token; None if there is none.
        certificate: the files of a certificate and of its key, for TLS.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: ServerSettings,
        listening: socket.socket,
        private: socket.socket | None = None,
        certificate: tuple[Path, Path] | None = None,
    ) -> None:
        self._listening = listening
        self._private = private
        common: dict[str, Any] = {
            "http": GuardedProtocol.bound_to(settings),
            "ws": "none",
            "lifespan": "off",
            "log_config": None,
            "access_log": False,
            "server_header": False,
            "timeout_keep_alive": settings.keep_alive_seconds,
            "timeout_graceful_shutdown": DRAIN_SECONDS,
        }
        public = Config(
            app,
            limit_concurrency=settings.connections,
            proxy_headers=settings.is_behind_proxy,
            forwarded_allow_ips="*",
            ssl_certfile=None if certificate is None else certificate[0],
            ssl_keyfile=None if certificate is None else certificate[1],
            **common,
        )
        self._private_config = Config(_of_owner(app), proxy_headers=False, **common)
        public.load()
        self._private_config.load()
        self._server = _UvicornServer(public)

    async def run(self, started: asyncio.Event | None = None) -> None:
        """Answer requests until `stop` is called."""
        serving = asyncio.ensure_future(self._server.serve([self._listening]))
        try:
            while not self._server.started and not serving.done():
                await asyncio.sleep(0.005)
            if self._private is not None and not serving.done():
                await self._listen_privately(self._private)
            if started is not None:
                started.set()
            await asyncio.shield(serving)
        finally:
            self.stop()
            await serving

    def stop(self) -> None:
        """Answer what is under way, and end."""
        self._server.should_exit = True

    async def _listen_privately(self, private: socket.socket) -> None:
        state, config = self._server.server_state, self._private_config

        def protocol() -> asyncio.Protocol:
            return config.http_protocol_class(  # type: ignore[call-arg]
                config=config, server_state=state, app_state={}
            )

        loop = asyncio.get_running_loop()
        opened = await loop.create_unix_server(protocol, sock=private, backlog=BACKLOG)
        self._server.servers.append(opened)


class _UvicornServer(uvicorn.Server):
    """A server that leaves signals to others."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _of_owner(app: ASGIApp) -> ASGIApp:
    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        scope[LOCAL_KEY] = True
        await app(scope, receive, send)

    return call
