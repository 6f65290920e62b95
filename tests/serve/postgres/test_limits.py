"""What one client asks for has an end, and others do not wait for it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import psycopg
import pytest
from psycopg import errors

from corollary.serve.postgres.catalog import process
from corollary.serve.postgres.catalog.process import REQUESTS_MAX, CatalogProcess
from corollary.serve.postgres.server import CONNECTIONS_MAX
from corollary.serve.processes.channel import encode_frame
from support.serve.pg_endpoint import Endpoint

ENDLESS = "SELECT count(*) FROM generate_series(1, 100000000000)"
PATIENCE = 60.0
Connection = psycopg.Connection[Any]


@pytest.fixture
def reader(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    """A connection of somebody else, whose queries of the catalog may take long by themselves."""
    monkeypatch.setattr(process, "QUERY_SECONDS", 2 * PATIENCE)
    with psycopg.connect(**endpoint.arguments("reader"), autocommit=True) as connection:
        connection.execute("SELECT 1")  # the process for the catalog runs
        yield connection


def catalogs_of(endpoint: Endpoint) -> CatalogProcess:
    assert endpoint.server is not None
    return endpoint.server._context.shared.catalogs


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("SELECT length(repeat('x', 2000000000))", "53200"),
        ("SELECT * FROM generate_series(1, 100000000000)", "54000"),
        ("SELECT array_agg(x) FROM generate_series(1, 1000000000) t(x)", "53200"),
        (f"SELECT 1 WHERE 1 IN ({'1,' * 60_000} 1)", "54001"),
        (f"SELECT '{'x' * (1 << 20)}'", "54000"),
        (f"SELECT {'ARRAY[' * 30}1{']' * 30}", "54001"),
        (f"SELECT {'(' * 1000}1{')' * 1000}", "54001"),
    ],
    ids=["text", "rows", "list", "values", "bytes", "arrays", "parentheses"],
)
def test_too_much(reader: Connection, sql: str, sqlstate: str) -> None:
    with pytest.raises(psycopg.Error) as caught:
        reader.execute(sql)
    assert caught.value.sqlstate == sqlstate
    assert reader.execute("SELECT 1").fetchone() == (1,)


def test_long_lists_of_parameters(connection: Connection) -> None:
    with pytest.raises(psycopg.Error) as caught:
        connection.execute("SELECT n FROM sample WHERE n = ANY(%s)", (list(range(200_000)),))
    assert caught.value.sqlstate == "54001"


def test_catalog_queries_are_under_the_timeout(reader: Connection) -> None:
    reader.execute("SET statement_timeout = '200ms'")
    with pytest.raises(errors.QueryCanceled, match="timeout"):
        reader.execute(ENDLESS)


def test_reading_a_statement_is_under_the_timeout(reader: Connection) -> None:
    """The time is counted from the arrival of the message."""
    reader.execute("SET statement_timeout = '1ms'")
    with pytest.raises(errors.QueryCanceled):
        reader.execute(f"SELECT n FROM path WHERE n IN ({'1,' * 5_000} 1)")


def test_a_client_that_goes_takes_its_query_with_it(endpoint: Endpoint, reader: Connection) -> None:
    catalogs = catalogs_of(endpoint)
    reader.pgconn.send_query(ENDLESS.encode())
    wait_until(lambda: catalogs.requests_of("reader") == 1)
    reader.close()
    wait_until(lambda: not catalogs.requests_of("reader"))


def test_a_process_that_does_not_stop_is_killed(endpoint: Endpoint, reader: Connection) -> None:
    pid = catalogs_of(endpoint).pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    reader.execute("SET statement_timeout = '100ms'")
    with pytest.raises(errors.QueryCanceled):
        reader.execute("SELECT 2")
    reader.execute("SET statement_timeout = 0")
    assert reader.execute("SELECT 3").fetchone() == (3,)
    assert catalogs_of(endpoint).pid not in (None, pid)


def test_many_endless_queries_of_one_client(endpoint: Endpoint, reader: Connection) -> None:
    """Others sign in and ask meanwhile; what is too much for one client is refused."""
    catalogs = catalogs_of(endpoint)
    with ExitStack() as stack:
        for number in range(1, REQUESTS_MAX + 1):
            arguments = endpoint.arguments("reader")
            asking = stack.enter_context(closing(psycopg.connect(**arguments, autocommit=True)))
            asking.pgconn.send_query(ENDLESS.encode())
            wait_until(lambda n=number: catalogs.requests_of("reader") == n)
        for _ in range(3):
            with psycopg.connect(**endpoint.arguments("alice")) as connection:
                assert connection.execute("SELECT count(*) FROM path").fetchone() == (3,)
                assert connection.execute("SELECT version()").fetchone() is not None
        assert catalogs.requests_of("reader") == REQUESTS_MAX
        with pytest.raises(errors.TooManyConnections, match="16 requests under way already"):
            reader.execute(ENDLESS)
    wait_until(lambda: not catalogs.requests_of("reader"))


def test_connections_that_do_not_sign_in_keep_nobody_out(endpoint: Endpoint) -> None:
    assert endpoint.server is not None
    with ExitStack() as stack:
        for _ in range(CONNECTIONS_MAX + 5):
            made = socket.create_connection(("127.0.0.1", endpoint.port))
            stack.enter_context(closing(made))
        wait_until(lambda: endpoint.server.connections == CONNECTIONS_MAX)
        with psycopg.connect(**endpoint.arguments("reader"), connect_timeout=20) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize(
    ("sent", "status", "reported"),
    [(b"", 0, ""), (encode_frame({"id": 1}), 1, "KeyError: 'type'")],
    ids=["end", "failure"],
)
def test_a_process_that_fails_says_why(sent: bytes, status: int, reported: str) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = [sys.executable, "-m", process.MODULE, str(theirs.fileno())]
        with subprocess.Popen(
            command, pass_fds=[theirs.fileno()], stderr=subprocess.PIPE, text=True
        ) as worker:
            theirs.close()
            ours.sendall(sent)
            ours.shutdown(socket.SHUT_WR)
            _, said = worker.communicate(timeout=PATIENCE)
    assert (worker.returncode, said.strip().rpartition("\n")[2]) == (status, reported)
