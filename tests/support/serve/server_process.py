"""A server in a process of its own."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from support.command_line import COMMAND

STOP_SECONDS = 60


class ServerProcess:
    """A running `corollary serve`."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process = process
        self._log = log
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            process.wait(STOP_SECONDS)
            raise AssertionError(log.read_text("utf-8"))
        self.announced: dict[str, Any] = json.loads(line)
        self.url: str = self.announced["url"]
        self.key: str = self.announced["page"].partition("#key=")[2]
        self.pid = process.pid
        self.port = urlsplit(self.url).port or 0

    @property
    def log(self) -> str:
        return self._log.read_text("utf-8")

    def wait_for_log(self, text: str) -> None:
        """Wait until a line has the text: an answer is sent before it is logged."""
        end = time.monotonic() + STOP_SECONDS
        while text not in self.log.rpartition("\n")[0]:
            assert time.monotonic() < end, self.log
            time.sleep(0.01)

    def stop(self, signal: int) -> int:
        """Send a signal, and return the status."""
        self._process.send_signal(signal)
        return self._process.wait(STOP_SECONDS)

    def is_running(self) -> bool:
        return self._process.poll() is None


@contextmanager
def server_process(warehouse: Path, *arguments: str, **options: Any) -> Iterator[ServerProcess]:
    """Give a server of one process, which is killed at the end if it still runs."""
    log = warehouse.parent / f"{warehouse.name}-server.log"
    command = [*COMMAND, "serve", str(warehouse), "--port", "0", "--format", "json"]
    command += ["--readers", "0", *arguments]
    with (
        log.open("w", encoding="utf-8") as errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, **options
        ) as process,
    ):
        try:
            yield ServerProcess(process, log)
        finally:
            process.kill()
