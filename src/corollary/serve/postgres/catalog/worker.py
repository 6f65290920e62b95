"""The process that runs catalog queries; `python -m` runs it.

Queries of different clients run in threads of their own. Its memory is bounded: what asks for more
has an error, and nobody else notices. It ends when the socket that it inherits does.
"""

import json
import os
import resource
import signal
import socket
import sys
import threading
import traceback
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from corollary.core.machine import reserved_memory
from corollary.serve.answers import Answer
from corollary.serve.postgres.catalog.database import CatalogDatabase
from corollary.serve.postgres.catalog.process import PLACES
from corollary.serve.postgres.problems import PgError
from corollary.serve.postgres.relations import VisibleRelations
from corollary.serve.processes.channel import Channel, Frame, answer_frame

CATALOGS_MAX = 8
"""How many catalogs are kept."""
MEMORY_BYTES = 1 << 30
"""The data of the process beyond what it reserves at start; a query has less, `MEMORY_LIMIT`."""

CatalogKey = tuple[str, str, tuple[object, ...]]


class CatalogWorker:
    """Answers the queries that come over a channel."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._catalogs: OrderedDict[CatalogKey, CatalogDatabase] = OrderedDict()
        self._running: dict[int, CatalogDatabase | None] = {}
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(PLACES, "catalog")

    def run(self) -> None:
        """Answer queries until the other side is gone."""
        while (frame := self._channel.receive()) is not None:
            document, body = frame
            number = document["id"]
            if document["type"] == "query":
                self._running[number] = None
                self._threads.submit(self._answer, document, body)
            else:
                self._interrupt(number)

    def _interrupt(self, number: int) -> None:
        with self._lock:
            catalog = self._running.pop(number, None)
            if catalog is not None:
                catalog.interrupt()

    def _answer(self, document: Mapping[str, Any], body: bytes) -> None:
        number = document["id"]
        try:
            frame = answer_frame(number, Answer(0, table=self._run(document, body)))
        except PgError as error:
            frame = error_frame(number, error)
        except MemoryError:
            frame = error_frame(number, PgError("53200", "The query needs too much memory."))
        except Exception as error:  # noqa: BLE001 - the front tells what is wrong
            frame = error_frame(number, PgError("XX000", f"The query has failed: {error}."))
        with self._lock:
            self._running.pop(number, None)
            self._channel.send(*frame)

    def _run(self, document: Mapping[str, Any], body: bytes) -> Any:
        number = document["id"]
        catalog = self._catalog(document["user"], document["database"], body)
        with self._lock:
            if number not in self._running:
                raise PgError("57014", "The query of the catalog was cancelled.")
            self._running[number] = catalog
        return catalog.run(document["sql"])

    def _catalog(self, user: str, database: str, relations: bytes) -> CatalogDatabase:
        """Return the catalog of a client, who has one query at a time."""
        visible = VisibleRelations.of_json(json.loads(relations))
        key = (user, database, visible.shape())
        with self._lock:
            found = self._catalogs.get(key)
        if found is None:
            found = CatalogDatabase.create(visible, database, user)
        with self._lock:
            self._catalogs[key] = found
            self._catalogs.move_to_end(key)
            if len(self._catalogs) > CATALOGS_MAX:
                self._catalogs.popitem(last=False)
        return found


def error_frame(number: int, error: PgError) -> Frame:
    """Return an error as a frame, which says whether much of the memory was used once."""
    fields = {"sqlstate": error.sqlstate, "message": error.message, "hint": error.hint}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    return {"type": "error", "id": number, "is_spent": peak > MEMORY_BYTES // 2, **fields}, b""


def main(descriptor: int) -> None:
    """Answer queries until the socket ends."""
    for number in (signal.SIGINT, signal.SIGTERM):  # whoever stops the server ends the socket
        signal.signal(number, signal.SIG_IGN)
    # Arrow's allocator reserves 1 GiB on some systems, which may never be used.
    most = reserved_memory() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    status = 1
    try:
        channel = Channel(socket.socket(fileno=descriptor))
        with suppress(ConnectionError):  # the other side is gone
            channel.send({"type": "ready"})
            CatalogWorker(channel).run()
        status = 0
    except Exception:  # noqa: BLE001 - nobody else would report it
        traceback.print_exc()
    finally:
        os._exit(status)  # not at the end of queries that nobody waits for


if __name__ == "__main__":
    main(int(sys.argv[1]))
