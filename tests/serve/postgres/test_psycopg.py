"""psycopg as a client: both protocols, both formats, transactions, errors, pipelines, COPY."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from psycopg import errors

from support.serve.pg_endpoint import Endpoint

Connection = psycopg.Connection[Any]
MOMENT = datetime(2026, 11, 16, 17, 20, 24, 250_000, tzinfo=UTC)


@pytest.fixture(scope="module")
def cleaner(endpoint: Endpoint) -> Iterator[Connection]:
    """A connection that stays open."""
    with psycopg.connect(**endpoint.arguments(), autocommit=True) as cleaning:
        yield cleaning


@pytest.fixture
def scratch(cleaner: Connection) -> Iterator[Connection]:
    """The relation that tests write to, which they leave empty, and who looks at it."""
    yield cleaner
    cleaner.execute("DELETE FROM scratch")


# --- values -------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_binary", [False, True])
def test_every_type_comes_as_it_is(connection: Connection, is_binary: bool) -> None:
    cursor = connection.cursor(binary=is_binary)
    rows = cursor.execute("SELECT n, m, f, b, s, d, t, u FROM sample ORDER BY n").fetchall()
    assert rows == [
        (-2, Decimal("-0.01"), float("inf"), False, 'a\t"b",\\', date(1969, 7, 20), MOMENT, 0),
        (1, Decimal("2.50"), 1.5, True, "it's", date(2020, 2, 29), MOMENT, 2**64 - 1),
        (3, None, None, None, None, None, MOMENT, None),
        (4, Decimal("9999999999.99"), 0.1, True, "", date(9999, 12, 31), MOMENT, 1),
    ]
    assert cursor.description is not None
    assert [each.type_code for each in cursor.description] == [
        *(20, 1700, 701, 16, 25, 1082, 1184, 1700)
    ]
    assert (cursor.description[1].precision, cursor.description[1].scale) == (12, 2)


def test_values_that_consist_of_others(connection: Connection) -> None:
    connection.execute("CREATE TABLE nest (id BIGINT PRIMARY KEY, xs BIGINT[], ss TEXT[])")
    try:
        connection.execute("INSERT INTO nest VALUES (1, ARRAY[1, 2], ARRAY['a', 'b,c'])")
        for is_binary in (False, True):
            found = connection.execute("SELECT * FROM nest WHERE id = %s", (1,), binary=is_binary)
            assert found.fetchall() == [(1, [1, 2], ["a", "b,c"])]
    finally:
        connection.execute("DELETE FROM nest")
        connection.execute("DROP TABLE nest")


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ("n = %s", 1),
        ("n = %b", 1),
        ("n = %t", 1),
        ("m = %s", Decimal("2.50")),
        ("m = %b", Decimal("2.5")),
        ("f = %b", 1.5),
        ("s = %s", "it's"),
        ("d = %s", date(2020, 2, 29)),
        ("d = %b", date(2020, 2, 29)),
        ("d = %s", "2020-02-29"),
        ("b = %s AND n < 3", True),
        ("t = %s AND n = 1", MOMENT),
        ("t = %b AND n = 1", MOMENT),
        ("n = ANY(%s)", [1, 7]),
        ("s = ANY(%s)", ["it's", "x,y"]),
        ("n = %s + 0", 1),
        ("n BETWEEN 1 AND %s", 2),
        ("n IN (%s, 5)", 1),
    ],
)
def test_parameters(connection: Connection, condition: str, value: object) -> None:
    query = f"SELECT n FROM sample WHERE {condition}"
    assert connection.execute(query, [value]).fetchall() == [(1,)]


@pytest.mark.smoke
def test_a_statement_is_prepared_and_used_again(connection: Connection) -> None:
    for name, expected in (("a", 2), ("b", 1), ("c", 0)):
        found = connection.execute(
            "SELECT count(*) FROM path WHERE x = %s LIMIT %s", (name, 1), prepare=True
        )
        assert found.fetchone() == (expected,)


@pytest.mark.parametrize(
    ("values", "source", "expected"),
    [
        ("7 / 2, -7 / 2, 7.0 / 2", "", (3, -3, 3.5)),
        ("7 / 2, -7 / 2", "FROM sample WHERE n = 1", (3, -3)),
        (
            "extract(dow FROM date '1969-07-20'), extract(isodow FROM date '1969-07-20')",
            "",
            (0, 7),
        ),
        ("extract(dow FROM d), date_part('isodow', d)", "FROM sample WHERE n = -2", (0, 7)),
        ("extract(dow FROM d)", "FROM sample WHERE n = 1", (6,)),
        ("now() > '2026-01-01', now() = current_timestamp", "", (True, True)),
    ],
)
def test_expressions_mean_what_they_mean_in_postgresql(
    connection: Connection, values: str, source: str, expected: tuple[object, ...]
) -> None:
    assert connection.execute(f"SELECT {values} {source}").fetchone() == expected


def test_nulls_are_last_also_where_each_value_comes_once(connection: Connection) -> None:
    query = "SELECT DISTINCT ON (born) born, id FROM person ORDER BY born, id"
    ann, bob = (date(1980, 5, 1), 1), (None, 2)
    assert connection.execute(query).fetchall() == [ann, bob]
    assert connection.execute(f"{query} LIMIT 1 OFFSET 1").fetchall() == [bob]
    query = "SELECT DISTINCT ON (born) born, id FROM person ORDER BY born DESC, id"
    assert connection.execute(query).fetchall() == [bob, ann]


def test_stored_views_are_materialized(connection: Connection) -> None:
    query = "SELECT matviewname, ispopulated FROM pg_matviews ORDER BY 1"
    assert ("path", True) in connection.execute(query).fetchall()
    assert connection.execute("SELECT viewname FROM pg_views").fetchall() == [("adult",)]
    for name in ("path", "adult"):
        query = f"SELECT pg_get_viewdef('{name}'::regclass, true)"
        (definition,) = connection.execute(query).fetchone() or ("",)
        assert name in definition


@pytest.mark.parametrize("argument", ["oid", "pg_constraint.oid", "c.oid"])
def test_arguments_are_columns_of_the_query(connection: Connection, argument: str) -> None:
    """Whatever the function looks them up in."""
    alias = " c" if argument.startswith("c.") else ""
    query = f"SELECT pg_get_constraintdef({argument}), conrelid::regclass FROM pg_constraint{alias}"
    assert connection.execute(query).fetchall() == [("PRIMARY KEY (id)", "person")]


def test_time_zone_of_the_session(connection: Connection) -> None:
    connection.execute("SET TIME ZONE 'Asia/Kolkata'")
    text = connection.execute("SELECT t FROM sample WHERE n = 1").fetchone()
    assert text == (MOMENT,)
    raw = connection.pgconn.exec_(b"SELECT t FROM sample WHERE n = 1").get_value(0, 0)
    assert raw == b"2026-11-16 22:50:24.25+05:30"


def test_relation_without_columns(connection: Connection) -> None:
    assert connection.execute("SELECT count(*) FROM raised").fetchone() == (1,)


# --- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("SELEC 1", errors.SyntaxError),
        ("SELECT * FROM path WHERE", errors.SyntaxError),
        ("SELECT * FROM nowhere", errors.UndefinedTable),
        ("SELECT z FROM path", errors.UndefinedColumn),
        ("SELECT no_such(x) FROM path", errors.UndefinedFunction),
        ("SELECT * FROM elsewhere.path", errors.InvalidSchemaName),
        ("INSERT INTO path VALUES ('a', 'b')", errors.WrongObjectType),
        ("INSERT INTO nowhere VALUES (1)", errors.UndefinedTable),
        ("INSERT INTO person VALUES (1, 'Eve', NULL)", errors.UniqueViolation),
        ("INSERT INTO scratch VALUES (-1)", errors.CheckViolation),
        ("INSERT INTO scratch VALUES (NULL)", errors.NotNullViolation),
        ("INSERT INTO scratch VALUES (1) RETURNING n + 1", errors.FeatureNotSupported),
        ("INSERT INTO scratch VALUES (1) RETURNING m", errors.UndefinedColumn),
        ("CREATE INDEX i ON scratch (n)", errors.FeatureNotSupported),
        ("COPY scratch FROM STDIN BINARY", errors.FeatureNotSupported),
        ("COPY (SELECT 1) FROM STDIN", errors.SyntaxError),
        ("COPY scratch FROM '/etc/passwd'", errors.InsufficientPrivilege),
        ("SET client_encoding = 'LATIN1'", errors.FeatureNotSupported),
        ("SET no_such = 1", errors.UndefinedObject),
        ("SELECT * FROM pg_catalog.no_such", errors.UndefinedTable),
        ("SELECT read_text('/etc/passwd') FROM pg_class", errors.UndefinedFunction),
        ("SELECT * FROM path, pg_class", errors.FeatureNotSupported),
    ],
)
def test_sqlstates(connection: Connection, query: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        connection.execute(query)
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_error_says_what_to_do(connection: Connection) -> None:
    with pytest.raises(errors.UniqueViolation) as caught:
        connection.execute("INSERT INTO person VALUES (1, 'Eve', NULL)")
    diagnostic = caught.value.diag
    assert diagnostic.message_primary is not None
    assert "two tuples with the key (id)" in diagnostic.message_primary
    assert diagnostic.message_hint is not None
    assert "delete one of them" in diagnostic.message_hint


# --- who may see what ---------------------------------------------------------------------------


def test_reader_sees_its_grants_only(endpoint: Endpoint) -> None:
    with psycopg.connect(**endpoint.arguments("reader"), autocommit=True) as connection:
        assert connection.execute("SELECT count(*) FROM path").fetchone() == (3,)
        for hidden in ("SELECT * FROM edge", "SELECT * FROM no_such"):
            with pytest.raises(errors.InsufficientPrivilege):
                connection.execute(hidden)
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute("INSERT INTO person VALUES (9, 'X', NULL)")
        names = "SELECT relname FROM pg_class WHERE relkind IN ('r', 'v', 'm') ORDER BY 1"
        assert connection.execute(names).fetchall() == [("path",), ("person",)]


def test_wrong_passwords_and_unknown_users(endpoint: Endpoint) -> None:
    messages = []
    for user in ("alice", "nobody"):
        arguments = {**endpoint.arguments(), "user": user, "password": "wrong"}
        with pytest.raises(psycopg.OperationalError) as caught:
            psycopg.connect(**arguments)
        messages.append(str(caught.value).replace(user, "NAME"))
    assert messages[0] == messages[1]


def test_revoked_token_ends_its_connections(endpoint: Endpoint) -> None:
    from corollary.serve.postgres import connection as module

    with psycopg.connect(**endpoint.arguments("passing"), autocommit=True) as connection:
        connection.execute("SELECT 1")
        endpoint.store.revoke("passing")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "TOKEN_CHECK_SECONDS", 0.0)
            with pytest.raises(errors.AdminShutdown):
                connection.execute("SELECT 1")


# --- transactions -------------------------------------------------------------------------------


def test_writes_are_one_transaction(endpoint: Endpoint, scratch: Connection) -> None:
    with psycopg.connect(**endpoint.arguments("writer")) as writing:
        inserted = writing.execute("INSERT INTO scratch VALUES (1), (2)")
        assert inserted.rowcount == 2
        writing.execute("INSERT INTO scratch (n) VALUES (%s)", [3])
        assert scratch.execute("SELECT count(*) FROM scratch").fetchone() == (0,)
        writing.commit()
        assert writing.execute("SELECT count(*) FROM scratch").fetchone() == (3,)
        deleted = writing.execute("DELETE FROM scratch WHERE n < %s", [3])
        assert deleted.rowcount == 2
        writing.rollback()
    assert scratch.execute("SELECT count(*) FROM scratch").fetchone() == (3,)


def test_own_writes_are_seen_by_nobody_else(endpoint: Endpoint, scratch: Connection) -> None:
    with psycopg.connect(**endpoint.arguments()) as writing:
        writing.execute("INSERT INTO scratch VALUES (1)")
        assert writing.execute("SELECT * FROM scratch").fetchall() == [(1,)]
        assert scratch.execute("SELECT * FROM scratch").fetchall() == []
        writing.rollback()
        assert writing.execute("SELECT * FROM scratch").fetchall() == []


def test_constraint_fails_at_the_commit(endpoint: Endpoint, scratch: Connection) -> None:
    with psycopg.connect(**endpoint.arguments()) as writing:
        writing.execute("INSERT INTO scratch VALUES (5)")
        writing.execute("INSERT INTO scratch VALUES (-5)")
        with pytest.raises(errors.CheckViolation):
            writing.commit()
        assert writing.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
    assert scratch.execute("SELECT * FROM scratch").fetchall() == []


def _write_and_fail(writing: Connection) -> None:
    with writing.transaction():
        writing.execute("INSERT INTO scratch VALUES (2)")
        writing.execute("INSERT INTO nowhere VALUES (2)")


def _pipeline_that_fails(connection: Connection) -> None:
    with connection.pipeline():
        connection.execute("INSERT INTO scratch VALUES (1)")
        connection.execute("INSERT INTO nowhere VALUES (1)")
        connection.execute("INSERT INTO scratch VALUES (2)")


def test_savepoints(endpoint: Endpoint, scratch: Connection) -> None:
    with psycopg.connect(**endpoint.arguments()) as writing:
        writing.execute("INSERT INTO scratch VALUES (1)")
        with pytest.raises(errors.UndefinedTable):
            _write_and_fail(writing)
        with writing.transaction():
            writing.execute("INSERT INTO scratch VALUES (3)")
        writing.commit()
    found = scratch.execute("SELECT n FROM scratch ORDER BY n").fetchall()
    assert found == [(1,), (3,)]


def test_snapshot_of_a_transaction(endpoint: Endpoint, scratch: Connection) -> None:
    with psycopg.connect(**endpoint.arguments()) as reading:
        reading.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        assert reading.execute("SELECT count(*) FROM scratch").fetchone() == (0,)
        scratch.execute("INSERT INTO scratch VALUES (1)")
        assert reading.execute("SELECT count(*) FROM scratch").fetchone() == (0,)
        with pytest.raises(errors.FeatureNotSupported):
            reading.execute("INSERT INTO scratch VALUES (2)")
        reading.rollback()
        assert reading.execute("SELECT count(*) FROM scratch").fetchone() == (1,)


def test_read_only_transaction(endpoint: Endpoint, scratch: Connection) -> None:
    with psycopg.connect(**endpoint.arguments()) as reading:
        reading.read_only = True
        with pytest.raises(errors.ReadOnlySqlTransaction):
            reading.execute("INSERT INTO scratch VALUES (1)")


def test_several_statements_at_once(connection: Connection, scratch: Connection) -> None:
    cursor = connection.execute(
        "INSERT INTO scratch VALUES (1); INSERT INTO scratch VALUES (2); SELECT n FROM scratch;"
    )
    tags = []
    while True:
        tags.append(cursor.statusmessage)
        if not cursor.nextset():
            break
    assert tags == ["INSERT 0 1", "INSERT 0 1", "SELECT 2"]
    with pytest.raises(errors.CheckViolation):
        connection.execute("INSERT INTO scratch VALUES (7); INSERT INTO scratch VALUES (-7)")
    assert connection.execute("SELECT count(*) FROM scratch").fetchone() == (2,)


def test_updates(connection: Connection) -> None:
    connection.execute("INSERT INTO person VALUES (3, 'Cid', '2000-01-01')")
    updated = connection.execute("UPDATE person SET born = %s WHERE id = 3", [date(1999, 1, 1)])
    assert updated.rowcount == 1
    found = connection.execute("SELECT born FROM person WHERE id = 3").fetchone()
    assert found == (date(1999, 1, 1),)
    assert connection.execute("DELETE FROM person WHERE id = 3").rowcount == 1


# --- pipelines, cursors, cancelling -------------------------------------------------------------


def test_pipeline(connection: Connection, scratch: Connection) -> None:
    with connection.pipeline() as pipeline:
        first = connection.execute("SELECT x FROM path WHERE y = %s ORDER BY x", ["c"])
        connection.execute("INSERT INTO scratch VALUES (1)")
        connection.execute("INSERT INTO scratch VALUES (2)")
        pipeline.sync()
        second = connection.execute("SELECT count(*) FROM scratch")
    assert first.fetchall() == [("a",), ("b",)]
    assert second.fetchone() == (2,)


def test_pipeline_that_fails_changes_nothing(connection: Connection) -> None:
    with pytest.raises(errors.UndefinedTable):
        _pipeline_that_fails(connection)
    assert connection.execute("SELECT count(*) FROM scratch").fetchone() == (0,)


def test_many_rows_at_once(endpoint: Endpoint, scratch: Connection) -> None:
    with psycopg.connect(**endpoint.arguments()) as writing:
        writing.cursor().executemany(
            "INSERT INTO scratch VALUES (%s)", [(each,) for each in range(50)]
        )
        writing.commit()
    assert scratch.execute("SELECT count(*), max(n) FROM scratch").fetchone() == (50, 49)


def test_cursor_of_the_server(endpoint: Endpoint) -> None:
    with (
        psycopg.connect(**endpoint.arguments()) as reading,
        reading.cursor(name="some") as cursor,
    ):
        cursor.execute("SELECT x, y FROM path ORDER BY x, y")
        assert cursor.fetchmany(2) == [("a", "b"), ("a", "c")]
        assert cursor.fetchall() == [("b", "c")]


def test_cancel(endpoint: Endpoint) -> None:
    async def cancel_soon() -> str:
        arguments = {**endpoint.arguments(), "autocommit": True}
        async with await psycopg.AsyncConnection.connect(**arguments) as connection:
            # Whoever is cancelled before it runs is not cancelled at all; so it is asked again.
            many = " ".join(f"JOIN sample t{at} ON true" for at in range(12))
            asked = asyncio.create_task(connection.execute(f"SELECT count(*) FROM sample t {many}"))
            while not asked.done():
                await connection.cancel_safe()
                await asyncio.sleep(0.01)
            try:
                await asked
            except errors.QueryCanceled as error:
                found = str(error)
            assert await (await connection.execute("SELECT 1")).fetchone() == (1,)
            return found

    assert "cancelled" in asyncio.run(cancel_soon())


def test_statement_timeout(connection: Connection) -> None:
    connection.execute("SET statement_timeout = '1ms'")
    many = " ".join(f"JOIN sample t{at} ON true" for at in range(12))
    with pytest.raises(errors.QueryCanceled):
        connection.execute(f"SELECT count(*) FROM sample t {many}")


# --- COPY ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("COPY path TO STDOUT", b"a\tb\na\tc\nb\tc\n"),
        ("COPY (SELECT y FROM path WHERE x = 'b') TO STDOUT (FORMAT csv, HEADER)", b"y\nc\n"),
        (
            "COPY (SELECT s, m FROM sample ORDER BY n) TO STDOUT CSV",
            b'"a\t""b"",\\",-0.01\nit\'s,2.50\n,\n"",9999999999.99\n',
        ),
        (
            "COPY (SELECT s, b FROM sample WHERE n < 1) TO STDOUT",
            b'a\\t"b",\\\\\tf\n',
        ),
        ("COPY person (name, id) TO STDOUT WITH DELIMITER ';' NULL '?'", b"Ann;1\nBob;2\n"),
    ],
)
def test_copy(connection: Connection, statement: str, expected: bytes) -> None:
    with connection.cursor().copy(statement) as copy:
        assert b"".join(map(bytes, copy)) == expected


def test_copy_in_binary(connection: Connection) -> None:
    with connection.cursor().copy("COPY sample (n, m, f) TO STDOUT (FORMAT binary)") as copy:
        copy.set_types(["int8", "numeric", "float8"])
        rows = sorted(copy.rows())
    assert rows == [
        (-2, Decimal("-0.01"), float("inf")),
        (1, Decimal("2.50"), 1.5),
        (3, None, None),
        (4, Decimal("9999999999.99"), 0.1),
    ]


def test_eight_clients_count_together(endpoint: Endpoint, scratch: Connection) -> None:
    scratch.execute("INSERT INTO scratch VALUES (0)")

    async def count() -> int:
        async with await psycopg.AsyncConnection.connect(
            **endpoint.arguments(), autocommit=True
        ) as client:
            return sum(
                [(await client.execute("UPDATE scratch SET n = n + 1")).rowcount for _ in range(5)]
            )

    async def count_all() -> list[int]:
        return await asyncio.gather(*(count() for _ in range(8)))

    assert asyncio.run(count_all()) == [5] * 8
    assert scratch.execute("SELECT n FROM scratch").fetchall() == [(40,)]
