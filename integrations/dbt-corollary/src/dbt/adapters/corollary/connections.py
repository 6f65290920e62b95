"""Connections: those of PostgreSQL, in which each statement is a transaction by itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg2
from dbt.adapters.postgres.connections import PostgresConnectionManager, PostgresCredentials
from psycopg2.extensions import TRANSACTION_STATUS_IDLE


@dataclass
class CorollaryCredentials(PostgresCredentials):
    """How a server is reached; the password is a token of the role `admin`."""

    autocommit: bool | None = True

    @property
    def type(self) -> str:
        """The type of the adapter in profiles.yml."""
        return "corollary"


class CorollaryConnectionManager(PostgresConnectionManager):
    """Connections; a transaction that a macro has begun ends with an error in it."""

    TYPE = "corollary"

    @contextmanager
    def exception_handler(self, sql: str) -> Iterator[None]:
        """Roll back what a macro has begun if a statement fails."""
        with super().exception_handler(sql):
            try:
                yield
            except psycopg2.Error:
                handle = self.get_thread_connection().handle
                status = handle.get_transaction_status()
                if not handle.closed and status != TRANSACTION_STATUS_IDLE:
                    with handle.cursor() as cursor:
                        cursor.execute("ROLLBACK")
                raise
