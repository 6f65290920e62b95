"""DuckDB in this process: one database in memory, and queries that can be stopped.

DuckDB does not notice Ctrl-C, so a query runs in a thread of its own. The thread that asked waits
for its batches, looks at its limits from time to time, and interrupts the query when it gives up.
"""

import os
from collections.abc import Callable, Generator, Mapping
from functools import lru_cache
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from corollary.core.machine import machine_memory
from corollary.engines.scratch_directory import ScratchDirectory

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

BATCH_ROWS = 1 << 21
"""The maximum number of rows in a batch of a result."""

WAITING_BATCHES_MAX = 2
"""A query that is this many batches ahead waits."""

POLL_SECONDS = 0.05
"""How often limits are checked while a query runs."""

MEMORY_FRACTION = 0.4
"""The part of the machine's memory that DuckDB may take before it spills to files."""

MEMORY_MIN_BYTES = 1 << 28


_given_bytes: int | None = None


def bound_memory(most: int) -> None:
    """Let the queries of this process take at most some bytes; call it before the first one."""
    global _given_bytes  # noqa: PLW0603 - the database is one for the process, too
    _given_bytes = most


def _memory_limit() -> str:
    if _given_bytes is not None:
        return f"{max(1, _given_bytes >> 20)}MiB"
    return f"{max(MEMORY_MIN_BYTES, int(MEMORY_FRACTION * machine_memory())) >> 20}MiB"


@lru_cache(maxsize=1)
def _database(_process: int) -> "tuple[DuckDBPyConnection, ScratchDirectory]":
    """Return the database of a process, and where it spills to.

    Threads of DuckDB do not survive a fork. What it spills are values of relations: nobody else can
    read them, and queries read no other files.
    """
    import duckdb

    directory = ScratchDirectory("corollary-spill")
    database = duckdb.connect(
        config={
            "threads": os.cpu_count() or 1,
            "preserve_insertion_order": "false",
            "memory_limit": _memory_limit(),
            "temp_directory": str(directory.path),
            "python_enable_replacements": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
        }
    )
    database.execute("SET enable_external_access = false")  # after the directory is set
    return database, directory


_Item: TypeAlias = "pa.RecordBatch | BaseException | None"
"""What the thread of a query passes on: a batch, why it failed, or that it has ended."""


def run_query(
    text: str, tables: Mapping[str, pa.Table], check: Callable[[], None]
) -> Generator[pa.RecordBatch]:
    """Yield the batches of a query's result; closing the iterator stops the query.

    Args:
        text: the query.
        tables: the tables that it reads.
        check: is called while the query runs; what it raises stops the query.
    """
    connection = _database(os.getpid())[0].cursor()
    for name, table in tables.items():
        connection.register(name, table)
    items: Queue[_Item] = Queue(WAITING_BATCHES_MAX)
    is_stopped = Event()

    def put(item: _Item) -> bool:
        while not is_stopped.is_set():
            try:
                items.put(item, timeout=POLL_SECONDS)
            except Full:
                continue
            return True
        return False

    def work() -> None:
        try:
            for batch in connection.sql(text).to_arrow_reader(BATCH_ROWS):
                if not put(batch):
                    return
            put(None)
        except BaseException as error:  # noqa: BLE001 - the thread that asked raises it
            put(error)

    worker = Thread(target=work, name="bulk query", daemon=True)
    worker.start()
    try:
        while (item := _next(items, check)) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        is_stopped.set()
        while worker.is_alive():  # an interrupt before the query begins is of no effect
            connection.interrupt()
            worker.join(POLL_SECONDS)
        connection.close()


def _next(items: "Queue[_Item]", check: Callable[[], None]) -> _Item:
    while True:
        try:
            item = items.get(timeout=POLL_SECONDS)
        except Empty:
            check()
            continue
        check()
        return item
