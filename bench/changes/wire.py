"""The PostgreSQL port under eight clients: point queries, single-row writes, many rows as text.

PostgreSQL itself, where it is installed, does the same with the same clients, after us. Processor
time is that of all processes of a server. PostgreSQL forces nothing to the disk here, we do.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psycopg
import pyarrow as pa

import corollary
from bench.changes.pair import Cost
from bench.changes.postgresql import MissingError, copy_rows, postgresql
from bench.figure import Figure
from bench.process import byte_compile, processor_seconds
from corollary.database.access.principals import AccessRole
from corollary.serve.tokens import TokenStore
from corollary.warehouse.warehouse_catalog import WarehouseCatalog

NAME = "wire"
ABOUT = "8 clients through the PostgreSQL port: point queries, writes; 300,000 rows as text"
CLIENTS, SECONDS, ROWS, FETCHES = 8, 5.0, 300_000, 5
TICK = 0.01
"""The least processor time of another process that can be told."""
QUERY_BARS, WRITE_BARS, FETCH_BAR = (2000.0, 0.6), (400.0, 3.0), 2.0
"""How many a second at least, and milliseconds of the processor at most; × PostgreSQL's own."""
TABLE = "CREATE TABLE reading (id BIGINT PRIMARY KEY, team BIGINT NOT NULL, value BIGINT NOT NULL)"
POINT = "SELECT value FROM reading WHERE id = %s"
WRITE = "INSERT INTO reading VALUES (%s, 1, 2)"
FETCH = "SELECT id, team, value FROM reading WHERE id < {rows}"


class Wire(NamedTuple):
    """A server that clients connect to.

    Attributes:
        process: the number of its first process.
    """

    url: str
    process: int

    def connect(self) -> psycopg.Connection:
        """Return a client whose statements are transactions of their own."""
        return psycopg.connect(self.url, autocommit=True)

    def cost_of(self, action: Callable[[], object]) -> Cost:
        """Take the time of an action, and that of the processes which are there at its end."""
        began, before = time.perf_counter(), processor_seconds(self.process)
        action()
        after = processor_seconds(self.process)
        spent = sum(seconds - before.get(each, 0.0) for each, seconds in after.items())
        return Cost(spent, time.perf_counter() - began)


class Load(NamedTuple):
    """What clients did in some seconds."""

    done: int
    cost: Cost

    @property
    def rate(self) -> float:
        """How many a second."""
        return self.done / self.cost.wall

    @property
    def each(self) -> float:
        """Milliseconds of the server's processor for each."""
        return 1000 * self.cost.processor / max(1, self.done)

    def __str__(self) -> str:
        return f"{self.rate:,.0f} /s, {self.each:.2f} ms each"


class Outcome(NamedTuple):
    """What a server did."""

    queries: Load
    writes: Load
    fetch: Cost


def run(scale: float) -> Iterator[Figure]:
    """Yield the figures."""
    rows, seconds = round(scale * ROWS), SECONDS * min(1, max(0.1, scale))
    wrong: list[str] = []
    with _ours(rows) as wire:
        ours = _outcome(wire, rows, seconds, wrong)
    peer: Outcome | None = None
    try:
        with _postgresql(rows) as wire:
            peer = _outcome(wire, rows, seconds, wrong)
        said = f"PostgreSQL {peer.queries}", f"PostgreSQL {peer.writes}", f"PostgreSQL {peer.fetch}"
    except MissingError as missing:
        said = (f"without a peer: {missing}",) * 3
    for name, load, bars, about in (
        ("point queries", ours.queries, QUERY_BARS, said[0]),
        ("writes", ours.writes, WRITE_BARS, said[1]),
    ):
        least, most = bars if scale == 1 else (None, None)
        yield Figure(name, load.rate, "/s", least, about, True, tuple(wrong))
        yield Figure(f"{name}, each", load.each, "ms", most, "processor time of the server")
    if peer is None:
        yield Figure("rows as text", ours.fetch.processor, "s", None, f"{ours.fetch}; {said[2]}")
    else:
        ratio = ours.fetch.processor / max(TICK, peer.fetch.processor)
        bar = FETCH_BAR if scale == 1 else None
        yield Figure("rows as text", ratio, "×", bar, f"{ours.fetch}; {said[2]}")


@contextmanager
def _ours(rows: int) -> Iterator[Wire]:
    """Serve a warehouse with a table."""
    byte_compile()
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory) / "warehouse"
        with corollary.open(place, engine="local") as database:
            database.sql(f"{TABLE};")
            with database.transaction() as transaction:
                transaction.insert("reading", _readings(rows))
        with closing(WarehouseCatalog.open(place, create=False)) as opened:
            secret = TokenStore(opened.catalog).add("bench", AccessRole.WRITE)
        command = [sys.executable, "-m", "corollary", "serve", str(place), "--engine", "local"]
        command += ["--port", "0", "--pg-port", "0", "--format", "json", "--log", "errors"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            try:
                port = json.loads(server.stdout.readline())["pg_port"]
                yield Wire(f"postgresql://bench:{secret}@127.0.0.1:{port}/wh", server.pid)
            finally:
                server.terminate()
                server.wait(30)


@contextmanager
def _postgresql(rows: int) -> Iterator[Wire]:
    """Start PostgreSQL with the same table.

    Raises:
        MissingError: it cannot be had.
    """
    with postgresql() as server:
        wire = Wire(server.url("postgres"), server.process)
        with wire.connect() as connection, connection.cursor() as cursor:
            cursor.execute(TABLE)
            copy_rows(connection, "reading", _readings(rows))
            cursor.execute("ANALYZE reading")
        yield wire


def _outcome(wire: Wire, rows: int, seconds: float, wrong: list[str]) -> Outcome:
    """Let clients query, write, and fetch all rows; say what is wrong about the answers."""
    expected = _readings(rows)["value"].to_numpy()

    def query(connection: psycopg.Connection, number: int) -> None:
        at = number * 7919 % rows
        found = connection.execute(POINT, (at,)).fetchall()
        if found != [(expected[at],)]:
            wrong.append(f"{wire.url}: {found} for {at}")

    def write(connection: psycopg.Connection, number: int) -> None:
        connection.execute(WRITE, (rows + number,))

    queries = _load(wire, query, seconds)
    writes = _load(wire, write, seconds)
    with wire.connect() as connection:
        text = FETCH.format(rows=rows).encode()
        sizes: list[int] = []
        fetch = wire.cost_of(
            lambda: sizes.extend(connection.pgconn.exec_(text).ntuples for _ in range(FETCHES))
        )
        if set(sizes) != {rows}:
            wrong.append(f"{wire.url}: {sizes} for {rows:,} rows")
        ((stored,),) = connection.execute("SELECT count(*) FROM reading").fetchall()
        if stored != rows + writes.done:
            wrong.append(f"{wire.url}: {stored - rows:,} of {writes.done:,} writes are there")
    return Outcome(queries, writes, fetch)


def _load(wire: Wire, action: Callable[[psycopg.Connection, int], None], seconds: float) -> Load:
    """Let clients act for some seconds, each on its connection and with numbers of its own."""
    counts = [0] * CLIENTS
    with ExitStack() as stack:
        clients = [stack.enter_context(wire.connect()) for _ in range(CLIENTS)]
        end = time.perf_counter() + seconds

        def act(client: int) -> None:
            while time.perf_counter() < end:
                action(clients[client], counts[client] * CLIENTS + client)
                counts[client] += 1

        def all_act() -> None:
            with ThreadPoolExecutor(CLIENTS) as pool:
                list(pool.map(act, range(CLIENTS)))

        cost = wire.cost_of(all_act)
    return Load(sum(counts), cost)


def _readings(rows: int) -> pa.Table:
    ids = np.arange(rows)
    return pa.table({"id": ids, "team": ids // 100, "value": ids * 31 % 1_000_003})
