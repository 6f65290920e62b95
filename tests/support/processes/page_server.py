"""A server of a warehouse in a process of its own, as `corollary serve` starts it."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 60.0


@dataclass
class PageServer:
    """A server that runs.

    Attributes:
        url: where it is.
        page: the address that opens the page, signed in, once.
    """

    warehouse: Path
    log: Path
    port: int = 0
    url: str = ""
    page: str = ""
    process: subprocess.Popen[str] | None = None

    def start(self) -> PageServer:
        """Start it; on the same port as before, if it has run before."""
        command = [sys.executable, "-m", "corollary", "serve", str(self.warehouse)]
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [*command, "--port", str(self.port), "--format", "json"],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        found = json.loads(self._line())
        self.url, self.page = found["url"], found["page"]
        self.port = int(self.url.rpartition(":")[2])
        return self

    def _line(self) -> str:
        """Return the line that it prints when it is ready."""
        assert self.process is not None
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        line = self.process.stdout.readline() if ready else ""
        if not line:
            self.kill()
            raise AssertionError(f"the server did not start:\n{self.log.read_text()}")
        return line

    def errors(self) -> list[str]:
        """Return the errors that it has logged."""
        lines = self.log.read_text().splitlines()
        logged = [json.loads(line) for line in lines if line.startswith("{")]
        return [str(each.get("trace", each)) for each in logged if each["level"] == "error"]

    def stop(self) -> int:
        """Stop it as Ctrl-C does; return its status."""
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(PATIENCE)
        finally:
            self.kill()

    def kill(self) -> None:
        """Make sure that it is gone."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            if self.process.stdout is not None:
                self.process.stdout.close()
            self.process = None
