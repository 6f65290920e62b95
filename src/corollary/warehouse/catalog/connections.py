"""Connections to the database of a catalog: SQLite in a file, or PostgreSQL."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from corollary.errors import WarehouseError

BUSY_SECONDS = 30
"""The maximum time that a writer waits for another one's catalog transaction."""
_WRITING: dict[str, dict[str, Any]] = {
    "sqlite": {"is_writing": True},
    # A snapshot from before the lock was granted would miss what the previous writer committed.
    "postgresql": {"is_writing": True, "isolation_level": "READ COMMITTED"},
}
_LOCK = int.from_bytes(b"corollar")
"""The advisory lock of PostgreSQL that serializes the writers of a warehouse."""


class Connections:
    """The connections to one database.

    Attributes:
        url: where it is.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._engine = _engine(url)

    @property
    def is_file(self) -> bool:
        """Whether it is an SQLite file, not a database of a server."""
        return self._engine.dialect.name == "sqlite"

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @contextmanager
    def read_transaction(self) -> Iterator[sa.Connection]:
        """Give a connection in a transaction that sees one state of the catalog."""
        try:
            with self._engine.connect() as connection:
                yield connection
        except (OperationalError, DBAPIError, UnicodeDecodeError) as error:
            raise WarehouseError.catalog_failure(self.url, error) from error

    @contextmanager
    def raw_cursor(self) -> Iterator[Any]:
        """Give a cursor of the database driver, outside of any transaction."""
        connection = None
        try:
            connection = self._engine.raw_connection()
            if not self.is_file:
                connection.driver_connection.autocommit = True  # type: ignore[union-attr]
            cursor = connection.cursor()
            yield cursor
            cursor.close()
        except self._engine.dialect.loaded_dbapi.Error as error:
            raise WarehouseError.catalog_failure(self.url, error) from error
        finally:
            if connection is not None:
                connection.detach()  # its autocommit mode must not get back into the pool
                connection.close()

    @contextmanager
    def write_transaction(self) -> Iterator[sa.Connection]:
        """Give a connection in a write transaction, of which there is one at a time."""
        try:
            with self._engine.connect() as connection:
                connection = connection.execution_options(**_WRITING[self._engine.dialect.name])
                with connection.begin():
                    yield connection
        except IntegrityError:  # a DBAPIError too, but callers turn it into a conflict
            raise
        except (OperationalError, DBAPIError, UnicodeDecodeError) as error:
            raise WarehouseError.catalog_failure(self.url, error) from error


def _engine(url: str) -> sa.Engine:
    return _sqlite_engine(url) if url.startswith("sqlite") else _postgresql_engine(url)


def _postgresql_engine(url: str) -> sa.Engine:
    engine = sa.create_engine(url, isolation_level="REPEATABLE READ", pool_pre_ping=True)

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        if connection.get_execution_options().get("is_writing"):
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{BUSY_SECONDS}s'")
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")

    return engine


def _sqlite_engine(url: str) -> sa.Engine:
    engine = sa.create_engine(url, connect_args={"timeout": BUSY_SECONDS})

    @sa.event.listens_for(engine, "connect")
    def settings(connection: Any, _: Any) -> None:
        # Python's driver would begin transactions lazily, and as readers; `begin` below does it.
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        is_writing = connection.get_execution_options().get("is_writing")
        # Taking the write lock at once avoids the upgrade from reader to writer, which fails with
        # SQLITE_BUSY without waiting if another writer committed in between.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if is_writing else "BEGIN")

    return engine
