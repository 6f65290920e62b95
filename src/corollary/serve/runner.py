"""Runs a server from its start to its end: service, HTTP, and what commands find it by."""

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corollary.data_class import dataclass
from corollary.database.opening import open_with
from corollary.database.options import IN_PROCESS, DatabaseOptions
from corollary.database.publishing import PublishTime
from corollary.engines.local.bulk.connection import bound_memory
from corollary.serve.http.application import application
from corollary.serve.http.http_metrics import HttpMetrics
from corollary.serve.http.metric_export import configured_export
from corollary.serve.http.server import DRAIN_SECONDS, HttpServer, cannot_listen, tls_context
from corollary.serve.http.settings import ServerSettings, is_loopback
from corollary.serve.http.telemetry import Telemetry, configured_telemetry
from corollary.serve.processes.front import FrontService
from corollary.serve.processes.local_service import LocalService
from corollary.serve.processes.process_service import ProcessService
from corollary.serve.server_file import ServerFile, remove_server_file
from corollary.serve.service import Service, ServiceLimits
from corollary.serve.tokens import TokenStore

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from corollary.serve.postgres.server import PgServer

POSTGRES_SECONDS = 2
"""How long statements of PostgreSQL clients may take that are under way at a stop."""
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRun:
    """A server that is about to run.

    Attributes:
        warehouse: the place of the warehouse.
        settings: how it is reached.
        limits: the bounds on requests.
        options: of the database, for the process that commits.
        readers: the number of reading processes; 0 does everything in one, None as is best.
        tokens: says who asks.
        listening: the socket of its port.
        private: the socket of its owner, in the directory of the warehouse, if that can be.
        directory: the directory of the warehouse, if it is one.
        certificate: the files of a certificate and of its key, for TLS.
        pg_port: the port for PostgreSQL clients, 0 for one that is free; None if there is none.
        page: returns the routes of the page.
    """

    warehouse: str
    settings: ServerSettings
    limits: ServiceLimits
    tokens: TokenStore
    listening: socket.socket
    private: socket.socket | None = None
    directory: Path | None = None
    certificate: tuple[Path, Path] | None = None
    pg_port: int | None = None
    options: DatabaseOptions = IN_PROCESS
    readers: int | None = None
    page: "Callable[[Service], Sequence[BaseRoute]] | None" = None

    async def _open(self) -> FrontService:
        """Open the warehouse: in several processes, or in this one."""
        place, options, limits = self.warehouse, self.options, self.limits
        if self.readers != 0:
            return await ProcessService.open(place, options, readers=self.readers, limits=limits)
        bound_memory(limits.memory)
        chosen = replace(options, publish=PublishTime.MANUAL)
        when = PublishTime.of(options.publish or PublishTime.SECOND)
        return await LocalService.open(lambda: open_with(place, chosen, create=False), limits, when)

    async def serve(self, announce: Callable[[int | None], None]) -> None:
        """Serve until a signal comes; then stop in order.

        Args:
            announce: is called when requests are answered, with the port for PostgreSQL clients.
        """
        if self.certificate is not None:
            tls_context(self.certificate)
        telemetry = configured_telemetry()
        service = await self._open()
        try:
            await self._answer(service, telemetry, announce)
        finally:
            if self.directory is not None:
                remove_server_file(self.directory)
            if not service.is_stopping:  # something has failed
                await _within(service.close(), self.settings.stop_seconds)
            telemetry.close()

    async def _answer(
        self, service: Service, telemetry: Telemetry, announce: Callable[[int | None], None]
    ) -> None:
        routes = () if self.page is None else self.page(service)
        metrics, export = HttpMetrics(), configured_export()
        app = application(service, self.settings, self.tokens, routes, telemetry, metrics=metrics)
        server = HttpServer(app, self.settings, self.listening, self.private, self.certificate)
        started = asyncio.Event()
        running = asyncio.ensure_future(server.run(started))
        postgres = exporting = None
        try:
            await _first_of(running, started.wait())
            if export is not None:
                collect = partial(metrics.read, service, shows_relations=True)
                exporting = asyncio.ensure_future(export.run(collect))
            postgres = await self._start_postgres(service)
            self._leave_file(None if postgres is None else postgres.port)
            announce(None if postgres is None else postgres.port)
            await _first_of(running, _signal())
        finally:
            # Requests are still answered while the service stops: that it does, for one.
            if exporting is not None and export is not None:
                exporting.cancel()
                await asyncio.to_thread(export.close)
            if postgres is not None:
                await postgres.close(POSTGRES_SECONDS)
            seconds = self.settings.stop_seconds - POSTGRES_SECONDS - 2 * DRAIN_SECONDS
            await _within(service.close(), seconds)
            server.stop()
            await running

    async def _start_postgres(self, service: Service) -> "PgServer | None":
        """Listen for PostgreSQL clients, if that is asked for.

        Raises:
            InputError: the port is taken.
        """
        if self.pg_port is None:
            return None
        from corollary.serve.postgres.server import PgServer, PgSettings

        tls = None if self.certificate is None else tls_context(self.certificate)
        host = self.settings.host
        needs_tls = not is_loopback(host) and not self.settings.is_behind_proxy
        settings = PgSettings(host, self.pg_port, tls, requires_tls=needs_tls)
        server = PgServer(service, self.tokens, settings)
        try:
            await server.start()
        except OSError as error:
            raise cannot_listen(host, self.pg_port, error, "--pg-port") from None
        return server

    def _leave_file(self, pg_port: int | None) -> None:
        if self.private is not None and self.directory is not None:
            path = self.private.getsockname()
            ServerFile(os.getpid(), path, self.settings.url, pg_port).write(self.directory)


def run_in_loop(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a server in a loop of its own: that of uvloop, if it is installed."""
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    with suppress(ImportError):
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main())


async def _signal() -> None:
    """Wait for a signal to stop; a second one is not held back."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in STOP_SIGNALS:
        loop.add_signal_handler(each, stopped.set)
    await stopped.wait()
    loop.remove_signal_handler(signal.SIGINT)


async def _first_of(running: "asyncio.Future[None]", other: Coroutine[Any, Any, Any]) -> None:
    """Wait for something to happen; if the server ends before it, raise its error."""
    waiting = asyncio.ensure_future(other)
    await asyncio.wait([running, waiting], return_when=asyncio.FIRST_COMPLETED)
    if not waiting.done():
        waiting.cancel()
        running.result()


async def _within(work: Coroutine[Any, Any, None], seconds: float) -> None:
    """Do something, or give up after some seconds."""
    try:
        await asyncio.wait_for(work, seconds)
    except TimeoutError:
        return
