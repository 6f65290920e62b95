"""Tables and views that are created, altered and dropped by PostgreSQL clients."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import errors

import corollary
from corollary.database.access.principals import AccessRole
from support.serve.pg_endpoint import Endpoint, running_endpoint

SALES = """
CREATE TABLE customer (id integer PRIMARY KEY, name text NOT NULL, city varchar(40) DEFAULT 'Bonn');
CREATE TABLE sale (
    customer integer REFERENCES customer(id), at timestamptz, amount numeric(10, 2),
    CHECK (amount > 0));
CREATE MATERIALIZED VIEW turnover AS
    SELECT c.city, sum(s.amount) AS total, count(*)
    FROM public.sale s JOIN customer c ON c.id = s.customer GROUP BY c.city WITH DATA;
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """A warehouse whose program has a relation of its own."""
    place = tmp_path_factory.mktemp("pg") / "wh"
    with corollary.open(place, engine="local") as db:
        db.load(text=".decl day(number: number)")
    with running_endpoint(place, {"alice": AccessRole.ADMIN, "writer": AccessRole.WRITE}) as made:
        yield made


@pytest.fixture
def connection(server: Endpoint) -> Iterator[psycopg.Connection[Any]]:
    """A connection that commits each statement; what it has made is gone afterwards."""
    with psycopg.connect(**server.arguments(), autocommit=True) as connection:
        yield connection
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE tablename <> 'day'")
        names = [name for (name,) in tables.fetchall()]
        for name in names:
            connection.execute(f'DROP TABLE "{name}" CASCADE')


def _rows(connection: psycopg.Connection[Any], text: Any, *values: Any) -> list[Any]:
    return connection.execute(text, values or None).fetchall()


def test_tables_and_views_are_made_and_maintained(connection: psycopg.Connection[Any]) -> None:
    assert connection.execute(SALES).statusmessage == "CREATE TABLE"
    connection.execute("INSERT INTO customer (id, name) VALUES (1, 'Ann'), (2, 'Bob')")
    sale = "INSERT INTO sale VALUES (%s, now(), %s)"
    connection.execute(sale, (1, 10))
    connection.execute(sale, (2, 2.5))
    assert [(city, str(total), n) for city, total, n in _rows(connection, "TABLE turnover")] == [
        ("Bonn", "12.50", 2)
    ]
    with pytest.raises(errors.CheckViolation):
        connection.execute(sale, (1, -1))
    with pytest.raises(errors.CheckViolation):
        connection.execute(sale, (3, 1))
    plan = [line for (line,) in _rows(connection, "EXPLAIN SELECT total FROM turnover")]
    assert any("turnover" in line for line in plan)
    assert connection.execute("REFRESH MATERIALIZED VIEW turnover").statusmessage == (
        "REFRESH MATERIALIZED VIEW"
    )


def test_tables_are_altered_and_emptied(connection: psycopg.Connection[Any]) -> None:
    connection.execute("CREATE TABLE t (a int); INSERT INTO t VALUES (1), (2)")
    for text, tag in (
        ("ALTER TABLE t ADD COLUMN b text DEFAULT 'x'", "ALTER TABLE"),
        ("ALTER TABLE t RENAME COLUMN a TO n", "ALTER TABLE"),
        ("ALTER TABLE t RENAME TO u", "ALTER TABLE"),
        ("COMMENT ON TABLE u IS 'numbers'", "COMMENT"),
        ("CREATE TABLE copied AS SELECT n, b FROM u WHERE n > 1", "CREATE TABLE"),
    ):
        assert connection.execute(text).statusmessage == tag
    assert sorted(_rows(connection, "SELECT n, b FROM u")) == [(1, "x"), (2, "x")]
    assert _rows(connection, "SELECT * FROM copied") == [(2, "x")]
    connection.execute("TRUNCATE u, copied")
    assert _rows(connection, "SELECT count(*) FROM u") == [(0,)]


def test_what_is_read_is_dropped_last(connection: psycopg.Connection[Any]) -> None:
    connection.execute(SALES)
    connection.execute("CREATE VIEW cities AS SELECT city FROM turnover")
    with pytest.raises(psycopg.DatabaseError, match="`cities` reads it"):
        connection.execute("DROP MATERIALIZED VIEW turnover")
    connection.execute("DROP MATERIALIZED VIEW turnover CASCADE")
    assert _rows(connection, "SELECT viewname FROM pg_views WHERE viewname = 'cities'") == []
    with pytest.raises(psycopg.DatabaseError, match="`sale` refers to it"):
        connection.execute("DROP TABLE customer")
    connection.execute("DROP TABLE IF EXISTS nothing, sale, customer")
    assert _rows(connection, "SELECT tablename FROM pg_tables WHERE tablename = 'sale'") == []


def test_a_table_is_dropped_with_its_rows(server: Endpoint) -> None:
    notices: list[str | None] = []
    with psycopg.connect(**server.arguments()) as connection:
        connection.add_notice_handler(lambda each: notices.append(each.message_primary))
        connection.execute("CREATE TABLE t (a int)")
        connection.execute("INSERT INTO t VALUES (1), (1), (2)")
        connection.commit()
        connection.execute("INSERT INTO t VALUES (3)")
        connection.execute("DROP TABLE t")
        with pytest.raises(errors.UndefinedTable):
            connection.execute("TABLE t")
        connection.rollback()
        assert sorted(_rows(connection, "TABLE t")) == [(1,), (1,), (2,)]
        connection.execute("INSERT INTO t VALUES (3)")
        connection.execute("DROP TABLE t")
        connection.execute("CREATE TABLE t (a text)")
        connection.execute("INSERT INTO t VALUES ('new')")
        assert _rows(connection, "TABLE t") == [("new",)]
        assert notices == []
        connection.commit()
        assert _rows(connection, "TABLE t") == [("new",)]
        connection.execute("SET client_min_messages = warning")
        connection.execute("DROP TABLE t")
        connection.commit()
    assert notices == ["3 rows have gone with `t`; earlier commits keep them."]


def test_a_table_is_emptied_and_filled_in_a_transaction(server: Endpoint) -> None:
    with psycopg.connect(**server.arguments()) as connection:
        connection.execute("CREATE TABLE t (a int); INSERT INTO t VALUES (1)")
        connection.commit()
        connection.execute("TRUNCATE t")
        connection.execute("INSERT INTO t VALUES (2)")
        connection.execute("CREATE TABLE u AS SELECT a + 1 AS b FROM t")
        connection.commit()
        assert _rows(connection, "SELECT * FROM t, u") == [(2, 3)]
        connection.execute("DROP TABLE t, u")
        connection.commit()


def test_times_and_days_mean_what_they_mean_in_postgresql(
    connection: psycopg.Connection[Any],
) -> None:
    connection.execute("CREATE TABLE t (d date, e date, at timestamptz, c time)")
    connection.execute(
        "INSERT INTO t VALUES ('2024-03-01', '2024-02-28', '2024-03-01 00:00:10.5+00', %s), "
        "(NULL, NULL, NULL, NULL)",
        (time(10, 11),),
    )
    connection.execute("CREATE VIEW v AS SELECT d - e AS n, extract(epoch FROM at) AS s FROM t")
    assert _rows(connection, "SELECT n, s::text FROM v WHERE n > 0") == [(2, "1709251210.500000")]
    text = "SELECT sum(d - date '2024-01-01'), extract(epoch FROM max(d)) FROM t WHERE d - e = 2"
    assert _rows(connection, text) == [(60, 1709251200)]
    found = _rows(
        connection, "SELECT at - %s AS x FROM t ORDER BY x", datetime(2024, 3, 1, tzinfo=UTC)
    )
    assert found == [(timedelta(seconds=10, microseconds=500_000),), (None,)]
    text = "SELECT c, extract(epoch FROM at - timestamptz '2024-03-01')::float8 FROM t WHERE c > %s"
    assert _rows(connection, text, time(10, 0)) == [(time(10, 11), 10.5)]


def test_the_isolation_of_a_session_holds(connection: psycopg.Connection[Any]) -> None:
    connection.execute("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    with connection.transaction():
        assert _rows(connection, "SHOW transaction_isolation") == [("repeatable read",)]
    connection.execute("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED")


def test_definitions_of_a_transaction_are_made_together(server: Endpoint) -> None:
    with psycopg.connect(**server.arguments()) as connection:
        connection.execute("CREATE TABLE t (a int)")
        connection.execute("SAVEPOINT s")
        with pytest.raises(errors.UndefinedColumn):  # at once, and not at COMMIT
            connection.execute("CREATE VIEW wrong AS SELECT b FROM t")
        connection.execute("ROLLBACK TO s")
        connection.execute("CREATE VIEW w AS SELECT a + 1 AS b FROM t")
        connection.rollback()
        with pytest.raises(errors.UndefinedTable):
            connection.execute("INSERT INTO t VALUES (1)")
        connection.rollback()
        with pytest.raises(errors.FeatureNotSupported, match="not possible in a transaction"):
            connection.execute("ALTER TABLE day RENAME TO night")
        connection.rollback()


def test_a_transaction_reads_what_it_has_written_and_defined(server: Endpoint) -> None:
    with psycopg.connect(**server.arguments()) as connection:
        connection.execute("CREATE TABLE t (a int PRIMARY KEY, b text)")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT b, count(*) FROM t GROUP BY b")
        insert = "INSERT INTO t VALUES (%s, %s)"
        connection.execute(insert, (1, "x"))
        connection.cursor().executemany(insert, [(2, "x"), (3, "y")])
        assert sorted(_rows(connection, "TABLE v")) == [("x", 2), ("y", 1)]
        assert connection.execute("UPDATE t SET b = 'z' WHERE a > 1").rowcount == 2
        connection.execute("SAVEPOINT s")
        assert connection.execute("DELETE FROM t WHERE b = 'z'").rowcount == 2
        assert _rows(connection, "SELECT b FROM t WHERE a = %s OR b = %s", 1, "z") == [("x",)]
        connection.execute("ROLLBACK TO s")
        connection.execute("INSERT INTO t SELECT a + 10, b FROM t")
        assert sorted(_rows(connection, "TABLE v")) == [("x", 2), ("z", 4)]
        with psycopg.connect(**server.arguments()) as other, pytest.raises(errors.UndefinedTable):
            other.execute("TABLE v")
        connection.commit()
        assert sorted(_rows(connection, "TABLE v")) == [("x", 2), ("z", 4)]
        connection.execute("DELETE FROM t")
        assert _rows(connection, "TABLE v") == []
        connection.rollback()
        assert sorted(_rows(connection, "TABLE v")) == [("x", 2), ("z", 4)]
        connection.execute("INSERT INTO t VALUES (1, 'twice')")
        with pytest.raises(errors.UniqueViolation):
            connection.commit()
        connection.rollback()
        connection.execute("DELETE FROM t")
        connection.execute("INSERT INTO t VALUES (1, 'new')")
        connection.execute("UPDATE t SET b = 'newer' WHERE a = 1")
        connection.commit()
        assert _rows(connection, "TABLE t") == [(1, "newer")]
        connection.execute("DELETE FROM t")
        connection.commit()
        connection.execute("DROP TABLE t CASCADE")


@pytest.mark.parametrize(
    ("text", "error", "word"),
    [
        ("CREATE TABLE t (a serial)", errors.FeatureNotSupported, "do not count"),
        (
            "CREATE TABLE t (a int GENERATED ALWAYS AS IDENTITY)",
            errors.FeatureNotSupported,
            "do not count",
        ),
        ("CREATE INDEX i ON t (a)", errors.FeatureNotSupported, "CREATE INDEX"),
        ("CREATE SCHEMA s", errors.InvalidSchemaName, "`s`"),
        ("CREATE TABLE s.t (a int)", errors.InvalidSchemaName, "`s`"),
        ("CREATE TABLE t (", errors.SyntaxError, "cannot be read"),
        ("DROP TABLE t", psycopg.DatabaseError, "There is no table `t`"),
        ("GRANT SELECT ON t TO ann", errors.FeatureNotSupported, "GRANT"),
    ],
)
def test_what_is_refused(
    connection: psycopg.Connection[Any], text: str, error: type[Exception], word: str
) -> None:
    with pytest.raises(error, match=word):
        connection.execute(text)


def test_only_an_admin_defines_anything(server: Endpoint) -> None:
    with (
        psycopg.connect(**server.arguments("writer"), autocommit=True) as connection,
        pytest.raises(errors.InsufficientPrivilege, match="role `write`"),
    ):
        connection.execute("CREATE TABLE t (a int)")
    with psycopg.connect(**server.arguments(), autocommit=True) as connection:
        connection.execute("SET default_transaction_read_only = on")
        with pytest.raises(errors.ReadOnlySqlTransaction):
            connection.execute("CREATE TABLE t (a int)")


def test_sqlalchemy_creates_and_drops(server: Endpoint) -> None:
    url = sa.URL.create(
        "postgresql+psycopg",
        username="alice",
        password=server.tokens["alice"],
        host="127.0.0.1",
        port=server.port,
        database="wh",
    )
    engine = sa.create_engine(url)
    metadata = sa.MetaData()
    team = sa.Table(
        "team",
        metadata,
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", sa.String(30), nullable=False),
        sa.Column("since", sa.Date),
    )
    sa.Table(
        "player",
        metadata,
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("team", sa.ForeignKey("team.id")),
    )
    metadata.create_all(engine)
    metadata.create_all(engine)  # they are there
    reflected = sa.MetaData()
    reflected.reflect(engine)
    assert {*reflected.tables} == {"day", "team", "player"}
    assert [each.name for each in reflected.tables["team"].primary_key] == ["id"]
    with engine.begin() as connection:
        connection.execute(sa.insert(team), [{"id": 1, "name": "red"}, {"id": 2, "name": "blue"}])
    with engine.begin() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(team)) == 2
    with engine.begin() as connection:
        connection.execute(sa.delete(team))
    metadata.drop_all(engine)
    assert sa.inspect(engine).get_table_names() == ["day"]
    engine.dispose()


def test_views_mean_what_questions_mean(connection: psycopg.Connection[Any]) -> None:
    """Integers are divided as integers, and a text beside a date is a date."""
    connection.execute("CREATE TABLE n (x integer, day date)")
    connection.execute("INSERT INTO n VALUES (7, '2026-01-05'), (1, '2026-02-01')")
    query = "SELECT x / 2 AS half FROM n WHERE day < '2026-01-31'"
    connection.execute(f"CREATE VIEW halves AS {query}")
    connection.execute(f"CREATE MATERIALIZED VIEW kept AS {query}")
    connection.execute(f"CREATE TABLE copied AS {query}")
    assert _rows(connection, query) == [(3,)]
    for name in ("halves", "kept", "copied"):
        assert _rows(connection, f"TABLE {name}") == [(3,)], name
    connection.execute("DROP VIEW halves, kept")
    connection.execute("BEGIN")
    connection.execute("CREATE VIEW halves AS SELECT x / 2 AS half FROM n")
    connection.execute("CREATE VIEW quarters AS SELECT half / 2 AS quarter FROM halves")
    connection.execute("COMMIT")
    assert _rows(connection, "SELECT * FROM quarters ORDER BY quarter") == [(0,), (1,)]
    connection.execute("DROP VIEW quarters, halves")
