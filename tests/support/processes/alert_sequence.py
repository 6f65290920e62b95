"""Databases with alerts, somebody who listens, and a sequence that may be killed on the way.

`alert_sequence.py nurse` reads jobs, as `crash_sequence.py` does: a job is the place of a
warehouse, the URL of a webhook, and a file in which the callback notes the alerts that it is called
with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import corollary
from corollary.database.database import Database
from corollary.warehouse.catalog import outbox
from support.processes.crash_sequence import nurse

BASE = """\
.decl edge(x: number, y: symbol)
.decl alarm(id: symbol, x: number, message: symbol, commit: number)
"""
TO_FILE = '.alert edge "edge {x}" (IO=jsonlines, filename="alerts.jsonl")\n'
TO_RELATION = '.alert edge "edge {x}" (IO=relation, relation=alarm)\n'
ROWS = [(1, "a"), (2, "b"), (3, "c")]
LEASE = 0.3
"""Seconds after which the claim of a process that was killed has expired."""


def to_webhook(url: str) -> str:
    return f'.alert edge "edge {{x}}" (IO=webhook, url="{url}")\n'


def lines(path: Path) -> list[Any]:
    """Return what a file of JSON lines says."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


class Listener:
    """A receiver of webhooks.

    Attributes:
        heard: the bodies that were posted, with the header that names the alert.
        status: what it answers; or, by path, something else.
    """

    def __init__(self) -> None:
        self.heard: list[tuple[str, Any]] = []
        self.status: dict[str, int] = {}
        listener = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                listener.heard.append((self.headers["Idempotency-Key"], json.loads(body)))
                self.send_response(listener.status.get(self.path, 204))
                self.send_header("Location", "/elsewhere")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


@contextmanager
def listening() -> Iterator[Listener]:
    found = Listener()
    try:
        yield found
    finally:
        found.close()


def opened(place: str | None, url: str = "", **options: Any) -> Database:
    """Open a database whose webhook may be reached."""
    return corollary.open(place, engine="local", webhooks=[url] if url else [], **options)


def noting(db: Database, heard: Path) -> None:
    """Let a callback note which alerts it was called with."""

    @db.on("edge")
    def note(rows: list[Any]) -> None:
        with heard.open("a") as file:
            file.writelines(f"{row.id} {row[0]}\n" for row in rows)


def run(job: str, acknowledge: Callable[[int], object]) -> None:
    """Make a commit with alerts for every sink, and deliver them."""
    place, url, heard = json.loads(job)
    outbox.CLAIM_SECONDS = LEASE
    with opened(place, url) as db:
        noting(db, Path(heard))
        if not db.commits:
            db.load(text=BASE + TO_FILE + TO_RELATION + to_webhook(url))
        with db.transaction(idempotency="rows") as tx:
            tx.insert("edge", ROWS)
        acknowledge(tx.commit_number or 0)
        db.publish()
        db.deliver()


if __name__ == "__main__":
    nurse(run)
