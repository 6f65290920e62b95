"""A server of a warehouse in a thread of this process: its port, its private socket, its tokens."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from corollary.database.opening import open_database
from corollary.serve.http.application import application
from corollary.serve.http.server import HttpServer, listen_on
from corollary.serve.http.settings import ServerSettings
from corollary.serve.http.telemetry import configured_telemetry
from corollary.serve.processes.local_service import LocalService
from corollary.serve.server_file import ServerFile, private_socket, remove_server_file
from corollary.serve.service import ServiceLimits
from corollary.serve.tokens import TokenStore
from corollary.warehouse.warehouse_catalog import WarehouseCatalog

START_SECONDS = 120.0


@dataclass(frozen=True)
class RunningServer:
    """Where a server is, and who may use it."""

    url: str
    tokens: TokenStore


@contextmanager
def running_server(
    warehouse: Path, limits: ServiceLimits | None = None, engine: str = "local"
) -> Iterator[RunningServer]:
    """Run a server; at the end it has stopped."""
    with (
        closing(WarehouseCatalog.open(warehouse, create=False)) as catalog,
        closing(listen_on("127.0.0.1", 0)) as listening,
        private_socket(warehouse) as private,
    ):
        port = listening.getsockname()[1]
        settings = ServerSettings(warehouse_name=warehouse.name, host="127.0.0.1", port=port)
        tokens = TokenStore(catalog.catalog)
        is_up, stop = threading.Event(), threading.Event()
        failures: list[BaseException] = []

        async def serve() -> None:
            service = await LocalService.open(
                lambda: open_database(str(warehouse), create=False, engine=engine), limits
            )
            app = application(service, settings, tokens, (), configured_telemetry())
            server = HttpServer(app, settings, listening, private)
            started = asyncio.Event()
            running = asyncio.ensure_future(server.run(started))
            await started.wait()
            ServerFile(os.getpid(), private.getsockname(), settings.url).write(warehouse)
            is_up.set()
            await asyncio.to_thread(stop.wait)
            await service.close()
            server.stop()
            await running

        def run() -> None:
            try:
                asyncio.run(serve())
            except BaseException as error:  # noqa: BLE001 - it is raised in the thread that waits
                failures.append(error)
                is_up.set()

        thread = threading.Thread(target=run, name="server")
        thread.start()
        try:
            assert is_up.wait(START_SECONDS)
            if not failures:
                yield RunningServer(settings.url, tokens)
        finally:
            stop.set()
            thread.join()
            remove_server_file(warehouse)
        if failures:
            raise failures[0]
