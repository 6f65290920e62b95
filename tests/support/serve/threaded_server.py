"""A server in a thread of this process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from corollary.database.access.principals import AccessRole
from corollary.serve.http.application import application
from corollary.serve.http.server import HttpServer, listen_on
from corollary.serve.http.settings import ServerSettings
from corollary.serve.service import Service
from corollary.serve.tokens import TokenStore
from corollary.warehouse.warehouse_catalog import WarehouseCatalog


class ThreadedServer:
    """Answers requests of a service that its thread opens; `token` is that of an admin."""

    def __init__(
        self, place: Path, open_service: Callable[[], Awaitable[Service]], **settings: Any
    ) -> None:
        self._catalog = WarehouseCatalog.open(place, create=False)
        self.tokens = TokenStore(self._catalog.catalog)
        self.token = self.tokens.add("robot", AccessRole.ADMIN)
        listening = listen_on("127.0.0.1", 0)
        self.port = listening.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._started = threading.Event()
        self._server: HttpServer | None = None

        async def run() -> None:
            service = await open_service()
            made = ServerSettings(warehouse_name="wh", port=self.port, **settings)
            self._server = HttpServer(application(service, made, self.tokens), made, listening)
            self._started.set()
            await self._server.run()
            await service.close()

        self._thread = threading.Thread(target=lambda: asyncio.run(run()))
        self._thread.start()
        self._started.wait()

    def close(self) -> None:
        assert self._server is not None
        self._server.stop()
        self._thread.join()
        self._catalog.close()
