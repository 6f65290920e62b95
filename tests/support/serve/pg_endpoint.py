"""A warehouse behind the PostgreSQL endpoint, in a thread of its own, for a while."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import corollary
from corollary.database.access.principals import AccessRole
from corollary.serve.postgres.server import PgServer, PgSettings
from corollary.serve.processes.local_service import LocalService
from corollary.serve.tokens import TokenStore
from corollary.warehouse.warehouse_catalog import WarehouseCatalog

PATIENCE = 60.0


@dataclass
class Endpoint:
    """An endpoint that runs.

    Attributes:
        tokens: the secret of each user.
    """

    store: TokenStore
    port: int = 0
    tokens: dict[str, str] = field(default_factory=dict)
    server: PgServer | None = None
    loop: asyncio.AbstractEventLoop | None = None

    def arguments(self, user: str = "alice") -> dict[str, Any]:
        """Return how psycopg connects."""
        return {
            "host": "127.0.0.1",
            "port": self.port,
            "user": user,
            "password": self.tokens[user],
            "dbname": "wh",
            "sslmode": "prefer",
        }

    def run(self, coroutine: Any) -> Any:
        """Run something in the thread of the endpoint."""
        assert self.loop is not None
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(PATIENCE)


@contextmanager
def running_endpoint(
    place: Path, users: dict[str, AccessRole], tls: ssl.SSLContext | None = None
) -> Iterator[Endpoint]:
    """Serve a warehouse to users, each with a token."""
    with closing(WarehouseCatalog.open(place, create=False)) as opened:
        endpoint = Endpoint(TokenStore(opened.catalog))
        for name, role in users.items():
            endpoint.tokens[name] = endpoint.store.add(name, role)
        ready, stop = threading.Event(), asyncio.Event()
        failures: list[BaseException] = []

        async def serve() -> None:
            endpoint.loop = asyncio.get_running_loop()
            service = await LocalService.open(lambda: corollary.open(place, engine="local"))
            server = PgServer(service, endpoint.store, PgSettings(port=0, tls=tls))
            await server.start()
            endpoint.port, endpoint.server = server.port, server
            ready.set()
            await stop.wait()
            await server.close(1.0)
            await service.close()

        def run() -> None:
            try:
                asyncio.run(serve())
            except BaseException as error:  # noqa: BLE001 - raised again in the test
                failures.append(error)
            ready.set()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        assert ready.wait(PATIENCE)
        if failures:
            raise failures[0]
        try:
            yield endpoint
        finally:
            assert endpoint.loop is not None
            endpoint.loop.call_soon_threadsafe(stop.set)
            thread.join(PATIENCE)
            if failures:
                raise failures[0]
