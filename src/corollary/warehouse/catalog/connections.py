"""Connections to the database of a catalog: SQLite in a file, or PostgreSQL.

Statements are the same text for both: the SQL that both know, with `?` for each value. Connections
are in autocommit mode, so that transactions begin and end where this module says.
"""

import hashlib
import os
import shutil
import sqlite3
import tempfile
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar
from urllib.parse import quote

from corollary.errors import UnknownOutcomeError, WarehouseError, is_disk_full

BUSY_SECONDS = 30
"""The maximum time that a writer waits for another one's catalog transaction."""
IN_MEMORY = ":memory:"
"""The location of a catalog that is not in a file."""
POSTGRESQL_SCHEME = "postgresql://"
_LOCK = int.from_bytes(b"corollar")
"""The advisory lock of PostgreSQL that serializes the writers of a warehouse."""


class DuplicateRowError(Exception):
    """A row of this key exists, or one that it refers to does not."""


class CatalogConnection:
    """A connection that statements are executed on; rows have the columns as attributes."""

    def __init__(self, connection: Any, driver: "_Sqlite | _Postgresql") -> None:
        self._connection = connection
        self._driver = driver

    def execute(self, statement: str, *values: Any) -> int:
        """Execute a statement; return how many rows it has changed."""
        return int(self._cursor(statement, values).rowcount)

    def execute_many(self, statement: str, rows: Iterable[Sequence[Any]]) -> int:
        """Execute a statement for each row of values; return how many rows were changed in all."""
        rows = list(rows)
        if not rows:  # the drivers differ in what they count then
            return 0
        cursor = self._connection.cursor()
        cursor.executemany(self._driver.statement(statement), rows)
        return int(cursor.rowcount)

    def insert(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows that have the same columns."""
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            # Tables and columns are names of ours.
            statement = f"INSERT INTO {table} ({', '.join(rows[0])}) VALUES ({marks})"  # noqa: S608
            self.execute_many(statement, [tuple(row.values()) for row in rows])

    def rows(self, query: str, *values: Any) -> list[Any]:
        """Return all rows of a query."""
        return list(self._cursor(query, values).fetchall())

    def batches(self, query: str, size: int) -> Iterator[list[Any]]:
        """Yield the rows of a query, some at a time."""
        cursor = self._cursor(query, ())
        while batch := cursor.fetchmany(size):
            yield batch

    def first(self, query: str, *values: Any) -> Any:
        """Return the first row of a query; None if there is none."""
        return self._cursor(query, values).fetchone()

    def scalar(self, query: str, *values: Any) -> Any:
        """Return the first column of the first row of a query; None if there is none."""
        row = self.first(query, *values)
        return None if row is None else row[0]

    def column(self, query: str, *values: Any) -> list[Any]:
        """Return the first column of a query."""
        return [row[0] for row in self._cursor(query, values)]

    @property
    def is_lost(self) -> bool:
        """Whether the server cannot be heard any more."""
        return self._driver.is_lost(self._connection)

    def tables(self) -> frozenset[str]:
        """Return the names of all tables."""
        return frozenset(self.column(self._driver.TABLES))

    def _cursor(self, statement: str, values: Sequence[Any]) -> Any:
        return self._connection.execute(self._driver.statement(statement), values)


class Connections:
    """The connections to one database.

    Attributes:
        location: the path of the file, or the URL of the server's database.
    """

    def __init__(self, location: str) -> None:
        self.location = location
        is_server = location.startswith(POSTGRESQL_SCHEME)
        self._driver = _Postgresql(location) if is_server else _Sqlite(location)
        self._idle: list[Any] = []

    @property
    def is_file(self) -> bool:
        """Whether it is an SQLite file, not a database of a server."""
        return isinstance(self._driver, _Sqlite)

    def is_read_only(self) -> bool:
        """Whether it is a file that cannot be written now."""
        with self.read_transaction():
            return self._driver.is_read_only

    def close(self) -> None:
        """Close all connections that are not in use."""
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def read_transaction(self) -> Iterator[CatalogConnection]:
        """Give a connection in a transaction that sees one state of the catalog."""
        with self._errors(), self._transaction(self._driver.BEGIN_READING) as connection:
            yield connection

    @contextmanager
    def write_transaction(self) -> Iterator[CatalogConnection]:
        """Give a connection in a write transaction, of which there is one at a time.

        Raises:
            DuplicateRowError: a row that is inserted exists already.
        """
        with self._errors(), self._transaction(self._driver.begin_writing()) as connection:
            yield connection

    @contextmanager
    def outside_transactions(self) -> Iterator[CatalogConnection]:
        """Give a connection for statements that cannot be part of a transaction."""
        with self._errors(), self._connection() as connection:
            yield connection

    @contextmanager
    def advisory_lock(self, name: str) -> Iterator[None]:
        """Hold a lock of a server's database, for which others wait.

        It is released when the connection ends, also by the death of the process.
        """
        digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
        key = int.from_bytes(digest, signed=True)
        # Only statements can fail here: what happens under the lock has errors of its own.
        with self._errors():
            connection = self._driver.connect()
        try:
            with self._errors():
                connection.execute("SELECT pg_advisory_lock(%s)", [key])
            yield
        finally:
            connection.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        driver = self._driver.module
        try:
            yield
        except driver.IntegrityError as error:
            raise DuplicateRowError from error
        except (driver.Error, UnicodeDecodeError) as error:
            raise WarehouseError.catalog_failure(self.location, error) from error

    @contextmanager
    def _transaction(self, begin: Sequence[str]) -> Iterator[CatalogConnection]:
        with self._connection() as connection:
            for statement in begin:
                connection.execute(statement)
            yield connection
            try:
                connection.execute("COMMIT")
            except self._driver.module.Error as error:
                if connection.is_lost:
                    raise UnknownOutcomeError.at_commit(self.location, error) from error
                raise

    @contextmanager
    def _connection(self) -> Iterator[CatalogConnection]:
        """Give an idle connection, or a new one; afterwards it is idle, and in no transaction."""
        connection = None
        while connection is None:
            try:
                idle = self._idle.pop()
            except IndexError:  # another thread may have taken the last one
                break
            connection = self._driver.checked(idle)
        if connection is None:
            connection = self._driver.connect()
        try:
            yield CatalogConnection(connection, self._driver)
        except BaseException:
            try:
                connection.rollback()
            except self._driver.module.Error:  # the connection is lost, and its transaction too
                connection.close()
            else:
                self._idle.append(connection)
            raise
        self._idle.append(connection)


class _Sqlite:
    """SQLite: a file, with a write-ahead log; each commit is forced to the disk."""

    module: ModuleType = sqlite3
    TABLES: ClassVar = (
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
    )
    BEGIN_READING: ClassVar = ("BEGIN",)
    SETTINGS: ClassVar = ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON")

    def __init__(self, location: str) -> None:
        self._location = location
        self.is_read_only = False

    def connect(self) -> sqlite3.Connection:
        try:
            opened = self._open(self._location, *self.SETTINGS)
        except sqlite3.OperationalError:
            path = Path(self._location)
            is_writable = _has_access(path, os.W_OK) and _has_access(path.parent, os.W_OK)
            if not _has_access(path, os.R_OK) or (is_writable and not is_disk_full(path.parent)):
                raise
            opened, self.is_read_only = self._open_to_read(), True
        else:
            self.is_read_only = False
        return opened

    def _open(self, location: str, *settings: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            location,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            uri=location.startswith("file:"),
        )
        connection.row_factory = _named_row
        try:
            for setting in settings:
                connection.execute(f"PRAGMA {setting}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _open_to_read(self) -> sqlite3.Connection:
        """Open a file that cannot be written, nor anything beside it."""
        place = f"file:{quote(str(Path(self._location).absolute()))}?mode=ro"
        with suppress(sqlite3.OperationalError):  # SQLite needs the files of a writer beside it
            return self._open(place, "schema_version")
        log = Path(f"{self._location}-wal")
        if not log.exists() or not log.stat().st_size:
            return self._open(f"{place}&immutable=1", "schema_version")
        # Somebody was writing when it became read-only: what is in the log belongs to it.
        with tempfile.TemporaryDirectory(prefix="corollary-catalog-") as directory:
            copy = Path(directory) / "catalog.sqlite"
            shutil.copyfile(self._location, copy)
            shutil.copyfile(log, f"{copy}-wal")
            memory = self._open(IN_MEMORY)
            with closing(sqlite3.connect(copy)) as source:
                source.backup(memory)
        memory.execute("PRAGMA query_only = ON")
        return memory

    def begin_writing(self) -> Sequence[str]:
        # Taking the write lock at once avoids the upgrade from reader to writer, which fails with
        # SQLITE_BUSY without waiting if another writer committed in between.
        return ("BEGIN IMMEDIATE",)

    def checked(self, connection: sqlite3.Connection) -> sqlite3.Connection | None:
        if self.is_read_only:  # it may have been opened as a file that nobody changes
            connection.close()
            return None
        return connection

    def is_lost(self, connection: sqlite3.Connection) -> bool:  # noqa: ARG002 - it is a file
        return False

    def statement(self, text: str) -> str:
        return text


class _Postgresql:
    """PostgreSQL: a database of a server."""

    TABLES: ClassVar = (
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND pg_table_is_visible(oid)"
    )
    BEGIN_READING: ClassVar = ("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",)
    is_read_only = False

    def __init__(self, location: str) -> None:
        try:
            import psycopg
        except ImportError as error:
            raise WarehouseError.of(
                "C0935",
                "A catalog on PostgreSQL needs the package `psycopg`, which is not installed.",
                None,
                "install `corollary[postgresql]`",
            ) from error
        self.module: ModuleType = psycopg
        self._location = location

    def connect(self) -> Any:
        from psycopg.rows import namedtuple_row

        return self.module.connect(self._location, autocommit=True, row_factory=namedtuple_row)

    def begin_writing(self) -> Sequence[str]:
        return (
            # A snapshot from before the lock was granted would miss what the last writer committed.
            "BEGIN ISOLATION LEVEL READ COMMITTED",
            f"SET LOCAL lock_timeout = '{BUSY_SECONDS}s'",
            f"SELECT pg_advisory_xact_lock({_LOCK})",
        )

    def checked(self, connection: Any) -> Any:
        """Return a connection that has been idle; None if the server has closed it meanwhile."""
        try:
            connection.execute("SELECT 1")
        except self.module.Error:
            connection.close()
            return None
        return connection

    def is_lost(self, connection: Any) -> bool:
        return bool(connection.closed)

    def statement(self, text: str) -> str:
        return text.replace("?", "%s")


def _has_access(path: Path, mode: int) -> bool:
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def _named_row(cursor: sqlite3.Cursor, values: tuple[Any, ...]) -> Any:
    return _row_type(tuple(column[0] for column in cursor.description))(*values)


@cache
def _row_type(columns: tuple[str, ...]) -> Callable[..., Any]:
    return namedtuple("Row", columns, rename=True)  # noqa: PYI024 - columns are not known before
