"""A client of an application in this process: request after request, with cookies."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx

BASE = "http://127.0.0.1:8765"


class AsgiClient:
    """Sends requests to an application; an error in it becomes a response, as in a server."""

    def __init__(
        self, app: Any, headers: Mapping[str, str] | None = None, base: str = BASE
    ) -> None:
        self.cookies = httpx.Cookies()
        self._app = app
        self._headers = dict(headers or {})
        self._base = base

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        return asyncio.run(self._send(method, path, options))

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
