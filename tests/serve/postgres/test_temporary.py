"""Temporary tables: what one connection makes, and nobody else sees."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from psycopg import errors

from support.serve.pg_endpoint import Endpoint

Rows = list[tuple[Any, ...]]


@pytest.fixture
def reader(endpoint: Endpoint) -> Iterator[psycopg.Connection[Any]]:
    """A connection of who may only read, and commits each statement."""
    with psycopg.connect(**endpoint.arguments("reader"), autocommit=True) as connection:
        yield connection


def _rows(connection: psycopg.Connection[Any], text: Any, *values: Any) -> Rows:
    return connection.execute(text, values or None).fetchall()


def test_a_tool_fills_a_table_and_joins_it(reader: psycopg.Connection[Any]) -> None:
    made = reader.execute(
        'CREATE LOCAL TEMPORARY TABLE "#Tool_1" (id int NOT NULL, "a b" text) '
        "ON COMMIT PRESERVE ROWS"
    )
    assert made.statusmessage == "CREATE TABLE"
    insert = 'INSERT INTO "#Tool_1" VALUES (%s, %s)'
    assert reader.execute(insert, (1, "x")).statusmessage == "INSERT 0 1"
    reader.cursor().executemany(insert, [(2, None), (2, None), (3, "it's")])
    assert sorted(_rows(reader, 'SELECT id FROM "#Tool_1"')) == [(1,), (2,), (2,), (3,)]
    joined = """
        SELECT p.name, t."a b", count(*) AS n FROM person p JOIN "#Tool_1" t ON p.id = t.id
        GROUP BY p.name, t."a b" ORDER BY p.name
    """
    assert _rows(reader, joined) == [("Ann", "x", 1), ("Bob", None, 2)]
    updated = reader.execute("""UPDATE "#Tool_1" SET "a b" = 'y' WHERE id > 1 RETURNING id""")
    assert sorted(updated.fetchall()) == [(2,), (2,), (3,)]
    assert reader.execute('DELETE FROM "#Tool_1" WHERE id = 3').rowcount == 1
    found = _rows(reader, 'SELECT id, "a b" FROM "#Tool_1" WHERE id >= %s ORDER BY id', 1)
    assert found == [(1, "x"), (2, "y"), (2, "y")]
    assert reader.execute('TRUNCATE "#Tool_1"').statusmessage == "TRUNCATE TABLE"
    assert _rows(reader, 'SELECT * FROM "#Tool_1"') == []
    assert reader.execute('DROP TABLE "#Tool_1"').statusmessage == "DROP TABLE"
    with pytest.raises(errors.InsufficientPrivilege):
        reader.execute('SELECT * FROM "#Tool_1"')


def test_a_table_of_a_query_hides_one_of_the_warehouse(
    endpoint: Endpoint, reader: psycopg.Connection[Any]
) -> None:
    text = "CREATE TEMP TABLE person AS SELECT name, 1.50 AS price FROM person WHERE id = 1"
    assert reader.execute(text).statusmessage == "SELECT 1"
    assert _rows(reader, "SELECT * FROM person") == [("Ann", Decimal("1.50"))]
    assert _rows(reader, "SELECT person.price FROM pg_temp.person") == [(Decimal("1.50"),)]
    assert _rows(reader, "SELECT count(*) FROM public.person") == [(2,)]
    with psycopg.connect(**endpoint.arguments("reader")) as other:
        assert _rows(other, "SELECT count(*) FROM person") == [(2,)]
    reader.execute("DROP TABLE person")
    assert _rows(reader, "SELECT count(*) FROM person") == [(2,)]
    reader.execute("CREATE TEMP TABLE empty (a, b) AS SELECT 1, 'x' WITH NO DATA")
    with reader.cursor().copy("COPY empty (b) FROM STDIN") as copy:
        copy.write_row(["x\ty"])
    assert _rows(reader, "SELECT a, b FROM empty") == [(None, "x\ty")]


def test_rows_go_from_a_temporary_table_to_the_warehouse(
    connection: psycopg.Connection[Any],
) -> None:
    before = _rows(connection, "SELECT count(*) FROM edge")
    with connection.transaction(force_rollback=True):
        connection.execute("CREATE TEMP TABLE stage (src text, dst text) ON COMMIT DROP")
        connection.execute("INSERT INTO stage VALUES ('m', 'n'), ('n', 'o')")
        inserted = connection.execute("INSERT INTO edge SELECT src, dst FROM stage")
        assert inserted.statusmessage == "INSERT 0 2"
        assert _rows(connection, "SELECT y FROM path WHERE x = 'm' ORDER BY y") == [("n",), ("o",)]
        joined = "SELECT count(*) FROM stage s JOIN path p ON p.x = s.src"
        assert _rows(connection, joined) == [(3,)]
        with pytest.raises(errors.FeatureNotSupported), connection.transaction():
            connection.execute("DELETE FROM edge WHERE x IN (SELECT src FROM stage)")
    assert _rows(connection, "SELECT count(*) FROM edge") == before
    with pytest.raises(errors.UndefinedTable):
        connection.execute("TABLE stage")


def test_transactions_and_savepoints_take_rows_back(endpoint: Endpoint) -> None:
    with psycopg.connect(**endpoint.arguments("reader")) as connection:
        connection.execute("CREATE TEMP TABLE kept (a int PRIMARY KEY)")
        connection.execute("CREATE TEMP TABLE cleared (a int) ON COMMIT DELETE ROWS")
        connection.execute("INSERT INTO kept VALUES (1)")
        connection.execute("INSERT INTO cleared VALUES (1)")
        assert _rows(connection, "SELECT * FROM kept, cleared") == [(1, 1)]
        connection.commit()
        assert _rows(connection, "TABLE cleared") == []
        connection.execute("INSERT INTO kept VALUES (2)")
        with pytest.raises(errors.UniqueViolation), connection.transaction():
            connection.execute("INSERT INTO kept VALUES (2)")
        with pytest.raises(errors.NotNullViolation), connection.transaction():
            connection.execute("INSERT INTO kept VALUES (NULL)")
        assert sorted(_rows(connection, "TABLE kept")) == [(1,), (2,)]
        connection.execute("DROP TABLE kept")
        connection.rollback()
        assert _rows(connection, "TABLE kept") == [(1,)]
        connection.execute("DISCARD TEMP")
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute("TABLE kept")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("CREATE TEMP TABLE t (a int DEFAULT 1)", errors.FeatureNotSupported),
        ("CREATE TEMP VIEW v AS SELECT 1 AS a", errors.FeatureNotSupported),
        ("CREATE TEMP TABLE public.t (a int)", errors.InvalidTableDefinition),
        ("CREATE TEMP TABLE known (a int)", errors.DuplicateTable),
        ("INSERT INTO known (b) VALUES (1)", errors.UndefinedColumn),
        ("UPDATE known SET b = 1", errors.UndefinedColumn),
        ("CREATE VIEW v AS SELECT a FROM known", errors.FeatureNotSupported),
        ("DROP TABLE known, person", errors.FeatureNotSupported),
        ("SUBSCRIBE known", errors.FeatureNotSupported),
        ("INSERT INTO known VALUES ('x')", psycopg.DatabaseError),
    ],
)
def test_what_is_refused(
    connection: psycopg.Connection[Any], text: str, error: type[Exception]
) -> None:
    connection.execute("CREATE TEMP TABLE known (a int)")
    with pytest.raises(error):
        connection.execute(text)
    assert _rows(connection, "TABLE known") == []


def test_a_table_that_is_not_there_is_passed_over(reader: psycopg.Connection[Any]) -> None:
    said: list[str | None] = []
    reader.add_notice_handler(lambda each: said.append(each.message_primary))
    reader.execute("DROP TABLE IF EXISTS nothing")
    assert said == ["There is no table `nothing`; skipped."]
