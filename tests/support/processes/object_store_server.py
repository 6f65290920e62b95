"""An object store of our own for the tests: S3 as `moto` imitates it, on loopback, in memory."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from corollary.warehouse.files import object_store

BUCKET = "corollary-tests"
KEY, SECRET = "AKIATESTKEYOFNOBODY", "test-secret-of-nobody"
"""What no message may contain."""


class ObjectStoreServer:
    """A store that runs; processes started from here find it in their environment."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._numbers = count(1)

    def place(self) -> str:
        """Return a place that nobody has used."""
        return f"s3://{BUCKET}/places/{os.getpid()}-{next(self._numbers)}"

    def client(self) -> Any:
        """Return a client of another library."""
        import boto3

        return boto3.client("s3", endpoint_url=self.url)


def environment(url: str) -> dict[str, str]:
    """Return the environment that leads to a store."""
    return {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": url,
        "AWS_ALLOW_HTTP": "true",
    }


@contextmanager
def object_store_server() -> Iterator[ObjectStoreServer]:
    """Start a store, and stop it at the end."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    process = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    process.start()
    host, port = process.get_host_and_port()
    server = ObjectStoreServer(f"http://{host}:{port}")
    before = dict(os.environ)
    os.environ.update(environment(server.url))
    object_store.open_store.cache_clear()
    try:
        server.client().create_bucket(Bucket=BUCKET)
        yield server
    finally:
        os.environ.clear()
        os.environ.update(before)
        object_store.open_store.cache_clear()
        process.stop()
