"""SUBSCRIBE: each commit comes in its order, exactly once, to cursors, COPY and streams."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import errors

from corollary.serve.postgres import subscription
from corollary.serve.postgres.problems import PgError
from corollary.serve.postgres.statements import SubscribeStatement, read_statements
from support.selection import sampled, seed_of_run
from support.serve.pg_endpoint import Endpoint

Connection = psycopg.Connection[Any]
ALL = "WITH (timeout = '2s')"


@pytest.fixture
def writer(endpoint: Endpoint) -> Iterator[Connection]:
    """A connection that writes to what another one follows."""
    with psycopg.connect(**endpoint.arguments(), autocommit=True) as connection:
        connection.execute("CREATE TABLE tank (id BIGINT PRIMARY KEY, n BIGINT)")
        connection.execute("CREATE TABLE sack (x BIGINT)")
        connection.execute("INSERT INTO tank VALUES (1, 10), (2, 20)")
        yield connection
        connection.execute("DELETE FROM tank")
        connection.execute("DELETE FROM sack")
        connection.execute("DROP TABLE tank")
        connection.execute("DROP TABLE sack")


@pytest.fixture
def reader(connection: Connection, writer: Connection) -> Iterator[Connection]:
    """A connection in a transaction, where cursors are."""
    del writer
    connection.execute("BEGIN")
    yield connection
    connection.execute("ROLLBACK")


def _fetch(reader: Connection, cursor: str, count: int) -> list[tuple[Any, ...]]:
    """Return the next changes, without their commits."""
    found: list[tuple[Any, ...]] = []
    for _ in range(20):
        found += reader.execute(f"FETCH ALL {cursor} WITH (timeout = '500ms')").fetchall()
        if len(found) >= count:
            break
    assert [row[0] for row in found] == sorted(row[0] for row in found)
    return [row[1:] for row in found]


def test_a_relation(reader: Connection, writer: Connection) -> None:
    reader.execute("DECLARE c CURSOR FOR SUBSCRIBE tank")
    assert _fetch(reader, "c", 2) == [(1, 1, 10), (1, 2, 20)]
    writer.execute("UPDATE tank SET n = n + 1 WHERE id = 1")
    writer.execute("INSERT INTO tank VALUES (3, NULL)")
    assert _fetch(reader, "c", 3) == [(-1, 1, 10), (1, 1, 11), (1, 3, None)]
    assert reader.execute("FETCH 5 c WITH (timeout = '0s')").fetchall() == []
    reader.execute("CLOSE c")
    with pytest.raises(errors.InvalidCursorName):
        reader.execute("FETCH c")


def test_columns(reader: Connection) -> None:
    reader.execute("DECLARE c CURSOR FOR SUBSCRIBE tank WITH (PROGRESS, SNAPSHOT = false)")
    cursor = reader.execute("FETCH 2 c")
    assert cursor.description is not None
    names = ["mz_timestamp", "mz_progressed", "mz_diff", "id", "n"]
    assert [each.name for each in cursor.description] == names
    assert [each.type_code for each in cursor.description] == [1700, 16, 20, 20, 20]
    first, second = cursor.fetchall()
    assert second[0] == first[0] + 1
    assert first[1:] == second[1:] == (True, None, None, None)


@pytest.mark.parametrize("seed", sampled(range(12), 2))
def test_the_changes_make_up_the_rows(reader: Connection, writer: Connection, seed: int) -> None:
    dice = random.Random(f"{seed_of_run()} {seed}")
    queries = (
        "tank",
        "sack",
        "(SELECT n % 3 AS m, count(*) FROM tank GROUP BY n % 3)",
        "(SELECT tank.n FROM tank JOIN sack ON sack.x = tank.id)",
        "(SELECT n AS m FROM tank WHERE id = 3)",
        "(SELECT * FROM sack WHERE x = 2)",
        "(SELECT count(*), sum(n) FROM tank JOIN sack ON x = id WHERE tank.id = 2)",
        "(SELECT a.id FROM tank a LEFT JOIN sack b ON b.x = a.id WHERE b.x = 4)",
        "(SELECT id FROM tank WHERE id = 1 AND n > 1)",
    )
    for at, query in enumerate(queries):
        reader.execute(f"DECLARE c{at} CURSOR FOR SUBSCRIBE {query}")
    for _ in range(6):
        number = dice.randint(1, 6)
        upsert = f"INSERT INTO tank VALUES ({number}, {number}) ON CONFLICT (id) DO UPDATE"
        writer.execute(
            dice.choice(
                (
                    f"{upsert} SET n = tank.n + 1",
                    f"DELETE FROM tank WHERE id = {number}",
                    f"INSERT INTO sack VALUES ({number}), ({number})",
                    f"DELETE FROM sack WHERE x < {number}",
                )
            )
        )
    for at, query in enumerate(queries):
        text = query.strip("()") if at < 2 else query[1:-1]
        text = f"SELECT * FROM {text}" if at < 2 else text
        expected = Counter(writer.execute(text).fetchall())
        counts: Counter[tuple[Any, ...]] = Counter()
        for row in reader.execute(f"FETCH ALL c{at} {ALL}").fetchall():
            counts[row[2:]] += row[1]
        assert counts == expected | Counter(dict.fromkeys(counts, 0)), query


def test_history(reader: Connection, writer: Connection) -> None:
    cursor = reader.execute("DECLARE c CURSOR FOR SUBSCRIBE tank")
    (first, *_), *_ = reader.execute("FETCH 1 c").fetchall()
    writer.execute("DELETE FROM tank WHERE id = 2")
    writer.execute("DELETE FROM tank WHERE id = 1")
    reader.execute(f"DECLARE d CURSOR FOR SUBSCRIBE tank WITH (SNAPSHOT false) AS OF {first}")
    assert _fetch(reader, "d", 2) == [(-1, 2, 20), (-1, 1, 10)]
    reader.execute(f"DECLARE e CURSOR FOR SUBSCRIBE (SELECT n FROM tank) AS OF {first}")
    assert _fetch(reader, "e", 4) == [(1, 10), (1, 20), (-1, 20), (-1, 10)]
    del cursor


def test_large_commits(
    reader: Connection, writer: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader.execute("DECLARE c CURSOR FOR SUBSCRIBE sack")
    writer.execute("INSERT INTO sack SELECT 1 FROM tank")
    with writer.cursor().copy("COPY sack FROM STDIN") as copy:
        copy.write("".join(f"{number}\n" for number in range(12_000)))
    found = _fetch(reader, "c", 12_001)
    assert found[0] == (2, 1)
    assert len(found) == 12_001
    monkeypatch.setattr(subscription, "QUERY_MAX_ROWS", 100)
    with pytest.raises(errors.ProgramLimitExceeded):
        reader.execute("DECLARE d CURSOR FOR SUBSCRIBE (SELECT x + 1 FROM sack)")


@pytest.mark.parametrize(
    "query", ["SUBSCRIBE tank", "COPY (SUBSCRIBE (SELECT * FROM tank)) TO STDOUT"]
)
def test_streams_end_when_they_are_cancelled(
    connection: Connection, writer: Connection, query: str
) -> None:
    found: list[Any] = []
    seen = threading.Semaphore(0)

    def follow() -> None:
        cursor = connection.cursor()
        try:
            if query.startswith("COPY"):
                with cursor.copy(query) as copy:
                    for line in copy:
                        found.append(bytes(line).decode().split("\t")[1:])
                        seen.release()
            else:
                for row in cursor.stream(query):
                    found.append([str(each) for each in row[1:]])
                    seen.release()
        except errors.QueryCanceled:
            found.append("cancelled")

    thread = threading.Thread(target=follow)
    thread.start()
    for _ in range(2):
        assert seen.acquire(timeout=20)
    for _ in range(3):  # while another one writes, and is not kept waiting
        writer.execute("UPDATE tank SET n = n + 1 WHERE id = 2")
    for _ in range(6):
        assert seen.acquire(timeout=20)
    connection.cancel_safe(timeout=10)
    thread.join(20)
    rows = [[each.strip() for each in row] for row in found[:-1]]
    assert found[-1] == "cancelled"
    assert rows[2:] == [
        [sign, "2", str(n + (sign == "1"))] for n in (20, 21, 22) for sign in ("-1", "1")
    ]
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_client_that_leaves_ends_its_subscriptions(
    endpoint: Endpoint, writer: Connection
) -> None:
    server = endpoint.server
    assert server is not None
    metrics = server._context.shared.service.metrics
    with psycopg.connect(**endpoint.arguments()) as leaving:
        leaving.execute("DECLARE c CURSOR FOR SUBSCRIBE tank")
        leaving.execute("FETCH ALL c")
        assert metrics.subscribers >= 1
    for _ in range(50):
        if not metrics.subscribers:
            break
        writer.execute("SELECT 1")
    assert metrics.subscribers == 0


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("SUBSCRIBE nowhere", errors.UndefinedTable),
        ("SUBSCRIBE (SELECT z FROM tank)", errors.UndefinedColumn),
        ("SUBSCRIBE (SELECT 1)", errors.FeatureNotSupported),
        ("SUBSCRIBE tank AS OF 99999", errors.InvalidParameterValue),
        ("SUBSCRIBE tank ENVELOPE UPSERT (KEY (id))", errors.FeatureNotSupported),
        ("SUBSCRIBE tank UP TO 99", errors.FeatureNotSupported),
        ("SUBSCRIBE tank WITH (NOTHING)", errors.FeatureNotSupported),
        ("SUBSCRIBE", errors.SyntaxError),
        ("COPY (SUBSCRIBE tank) TO STDOUT (FORMAT binary)", errors.FeatureNotSupported),
    ],
)
def test_refusals(
    connection: Connection, writer: Connection, query: str, error: type[Exception]
) -> None:
    del writer
    with pytest.raises(error):
        connection.execute(f"{query};")


def test_own_writes_are_not_followed(reader: Connection) -> None:
    reader.execute("INSERT INTO tank VALUES (9, 9)")
    with pytest.raises(errors.ActiveSqlTransaction):
        reader.execute("DECLARE c CURSOR FOR SUBSCRIBE tank")


def test_grants_hold(endpoint: Endpoint, writer: Connection) -> None:
    del writer
    with psycopg.connect(**endpoint.arguments("reader"), autocommit=True) as limited:
        for query in (
            "tank",
            "(SELECT * FROM edge)",
            "(SELECT p.x FROM path p JOIN edge e ON e.x = p.x)",
        ):
            with pytest.raises((errors.InsufficientPrivilege, errors.UndefinedTable)):
                limited.execute(f"SUBSCRIBE {query}")
        with limited.transaction():
            limited.execute("DECLARE c CURSOR FOR SUBSCRIBE path")
            assert len(limited.execute("FETCH ALL c").fetchall()) == 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SUBSCRIBE t", (True, False, None)),
        ("SUBSCRIBE TO t WITH (SNAPSHOT = FALSE, PROGRESS)", (False, True, None)),
        ("SUBSCRIBE (SELECT 1) WITH (PROGRESS true) AS OF AT LEAST 7", (True, True, 7)),
    ],
)
def test_statements(text: str, expected: tuple[object, ...]) -> None:
    (found,) = read_statements(text)
    assert isinstance(found, SubscribeStatement)
    assert (found.has_snapshot, found.has_progress, found.since) == expected


@pytest.mark.parametrize(
    ("text", "seconds"), [("1s", 1), ("500ms", 0.5), ("2 minutes", 120), ("1 second", 1), ("3", 3)]
)
def test_timeouts(text: str, seconds: float) -> None:
    (found,) = read_statements(f"FETCH ALL c WITH (timeout = '{text}')")
    assert getattr(found, "seconds", None) == seconds
    with pytest.raises(PgError):
        read_statements("FETCH c WITH (timeout = 'soon')")
