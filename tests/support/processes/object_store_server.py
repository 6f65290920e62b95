"""An object store of our own for the tests: S3 as `moto` imitates it, on loopback, in memory."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from corollary.warehouse.files import object_store

BUCKET = "corollary-tests"
KEY, SECRET = "AKIATESTKEYOFNOBODY", "test-secret-of-nobody"
"""What no message may contain."""
PATIENCE = 60.0


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
    """Start a store in a process of its own, and stop it at the end."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    server = ObjectStoreServer(f"http://127.0.0.1:{port}")
    before = dict(os.environ)
    os.environ.update(environment(server.url))
    object_store.open_store.cache_clear()
    try:
        _wait(port, process)
        server.client().create_bucket(Bucket=BUCKET)
        yield server
    finally:
        os.environ.clear()
        os.environ.update(before)
        object_store.open_store.cache_clear()
        process.kill()
        process.wait()


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until a server answers."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 5).close()
        except OSError:
            assert process.poll() is None, "the imitated store does not start"
            assert time.monotonic() < end, "the imitated store does not answer"
            time.sleep(0.05)
        else:
            return
