"""ON CONFLICT and RETURNING of clients: in both protocols, alone, in transactions and pipelines."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

import psycopg
import pytest
from psycopg import errors

from support.serve.pg_endpoint import Endpoint

Connection = psycopg.Connection[Any]


@pytest.fixture
def owner(connection: Connection) -> Iterator[Connection]:
    """A connection with a table, which goes again."""
    connection.execute(
        "CREATE TABLE stock (id BIGINT PRIMARY KEY, n BIGINT, day DATE, s TEXT DEFAULT 'd')"
    )
    connection.execute("INSERT INTO stock (id, n) VALUES (1, 10), (2, 20)")
    yield connection
    connection.execute("ROLLBACK")
    connection.execute("DELETE FROM stock")
    connection.execute("DROP TABLE stock")


@pytest.mark.parametrize("is_binary", [False, True])
def test_rows_come_with_their_types(owner: Connection, is_binary: bool) -> None:
    cursor = owner.cursor(binary=is_binary)
    values = (3, date(2026, 2, 3))
    query = "INSERT INTO stock (id, day) VALUES (%s, %s) RETURNING *"
    assert cursor.execute(query, values).fetchall() == [(3, None, date(2026, 2, 3), "d")]
    assert cursor.statusmessage == "INSERT 0 1"
    query = "UPDATE stock SET n = n + %s WHERE id < 3 RETURNING id, n AS amount"
    assert sorted(cursor.execute(query, (1,)).fetchall()) == [(1, 11), (2, 21)]
    assert cursor.description is not None
    assert [(each.name, each.type_code) for each in cursor.description] == [
        ("id", 20),
        ("amount", 20),
    ]
    cursor.execute("DELETE FROM stock WHERE id = 9 RETURNING s")
    assert (cursor.fetchall(), cursor.statusmessage) == ([], "DELETE 0")


def test_conflicts(owner: Connection) -> None:
    query = (
        "INSERT INTO stock (id, n) VALUES (%s, %s) ON CONFLICT (id) DO UPDATE"
        " SET n = stock.n + excluded.n + %s, day = '2026-01-05' WHERE stock.n < 100 RETURNING *"
    )
    assert owner.execute(query, (1, 5, 100)).fetchall() == [(1, 115, date(2026, 1, 5), "d")]
    assert owner.execute(query, (1, 5, 100)).fetchall() == []
    ignored = owner.execute("INSERT INTO stock (id) VALUES (1), (4) ON CONFLICT DO NOTHING")
    assert ignored.statusmessage == "INSERT 0 1"


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("(n) DO NOTHING", errors.InvalidColumnReference),
        ("(id) DO UPDATE SET n = n", errors.AmbiguousColumn),
        ("(id) DO UPDATE SET n = excluded.n", errors.CardinalityViolation),
        ("ON CONSTRAINT stock_pkey DO NOTHING", errors.FeatureNotSupported),
    ],
)
def test_refusals(owner: Connection, query: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        owner.execute(f"INSERT INTO stock (id, n) VALUES (1, 1), (1, 2) ON CONFLICT {query}")


def test_in_a_transaction(owner: Connection) -> None:
    with owner.transaction():
        owner.execute("INSERT INTO stock (id, n) VALUES (5, 1)")
        query = "UPDATE stock SET n = n * 10 WHERE id >= 5 RETURNING n"
        assert owner.execute(query).fetchall() == [(10,)]
        upsert = (
            "INSERT INTO stock (id, n) VALUES (5, 7), (6, 7) ON CONFLICT (id) DO UPDATE"
            " SET n = stock.n + 1"
        )
        assert owner.execute(f"{upsert} RETURNING id, n").fetchall() == [(5, 11), (6, 7)]
        assert owner.execute(upsert).statusmessage == "INSERT 0 2"
    rows = owner.execute("SELECT id, n FROM stock WHERE id >= 5 ORDER BY id").fetchall()
    assert rows == [(5, 12), (6, 8)]


def test_what_was_returned_holds_or_the_transaction_fails(
    endpoint: Endpoint, owner: Connection
) -> None:
    query = "UPDATE stock SET n = n + 1 WHERE id = 1 RETURNING n"
    with psycopg.connect(**endpoint.arguments("writer"), autocommit=True) as other:
        owner.execute("BEGIN")
        assert owner.execute(query).fetchall() == [(11,)]
        assert other.execute(query).fetchall() == [(11,)]
    with pytest.raises(errors.SerializationFailure, match="C1385"):
        owner.execute("COMMIT")
    assert owner.execute(query).fetchall() == [(12,)]


def test_in_a_pipeline(owner: Connection) -> None:
    query = "UPDATE stock SET n = n + 1 WHERE id = 1 RETURNING n"
    with owner.pipeline():
        first, second = owner.execute(query), owner.execute(query)
    assert (first.fetchall(), second.fetchall()) == ([(11,)], [(12,)])
    cursor = owner.cursor()
    query = "INSERT INTO stock (id) VALUES (%s) RETURNING id"
    cursor.executemany(query, [(7,), (8,)], returning=True)
    found = [cursor.fetchone()]
    while cursor.nextset():
        found.append(cursor.fetchone())
    assert found == [(7,), (8,)]


def test_readers_write_nothing(endpoint: Endpoint) -> None:
    with psycopg.connect(**endpoint.arguments("reader"), autocommit=True) as reader:
        with pytest.raises(errors.InsufficientPrivilege):
            reader.execute("INSERT INTO person VALUES (7, 'Eve', NULL) RETURNING *")
        with pytest.raises(errors.InsufficientPrivilege):
            reader.execute("INSERT INTO person VALUES (1, 'x', NULL) ON CONFLICT DO NOTHING")
