"""A client of an application in this process: request after request, with cookies."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from typing import Any

import httpx

BASE = "http://127.0.0.1:8765"
GIVE_UP_SECONDS = 120.0


class LoopThread:
    """A loop in a thread: what a service has begun in it goes on between requests."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(GIVE_UP_SECONDS)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class AsgiClient:
    """Sends requests to an application; an error in it becomes a response, as in a server."""

    def __init__(
        self,
        app: Any,
        loop: LoopThread,
        headers: Mapping[str, str] | None = None,
        base: str = BASE,
    ) -> None:
        self.cookies = httpx.Cookies()
        self._app = app
        self._loop = loop
        self._headers = dict(headers or {})
        self._base = base

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        response = self._loop.run(self._send(method, path, options))
        assert isinstance(response, httpx.Response)
        return response

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.request("GET", path, **options)

    def head(self, path: str, **options: Any) -> httpx.Response:
        return self.request("HEAD", path, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self.request("POST", path, **options)

    def put(self, path: str, **options: Any) -> httpx.Response:
        return self.request("PUT", path, **options)

    def delete(self, path: str, **options: Any) -> httpx.Response:
        return self.request("DELETE", path, **options)

    async def _send(self, method: str, path: str, options: dict[str, Any]) -> httpx.Response:
        transport = httpx.ASGITransport(app=self._app, raise_app_exceptions=False)
        async with httpx.AsyncClient(
            transport=transport, base_url=self._base, headers=self._headers, cookies=self.cookies
        ) as client:
            response = await client.request(method, path, **options)
            self.cookies = client.cookies
            return response
