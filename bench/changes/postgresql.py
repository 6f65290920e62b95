"""PostgreSQL as a peer: the same tables on a server of our own, a view that it computes anew."""

import io
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

import psycopg
import pyarrow as pa
import pyarrow.csv

from bench.changes.pair import DELETE, INSERT, Cost, Edit
from bench.data import Relations
from bench.process import processor_seconds

sys.path.append(str(Path(__file__).parents[2] / "tests"))  # it stands beside `bench`

from support.postgresql_server import MissingError, postgresql

__all__ = ["MissingError", "PostgresqlPeer", "copy_rows", "postgresql"]

VIEW = "anew"


class PostgresqlPeer:
    """A server with tables and one materialized view."""

    def __init__(self, connection: psycopg.Connection, process: int) -> None:
        self._connection = connection
        self._process = process
        self._spent, self._calls = Cost(0.0, 0.0), 0

    @classmethod
    @contextmanager
    def open(cls, statements: str, tables: Relations, query: str) -> Iterator[Self | str]:
        """Start a server and fill it; where there is none, yield why."""
        with ExitStack() as stack:
            try:
                server = stack.enter_context(postgresql())
            except MissingError as missing:
                yield f"without PostgreSQL: {missing}"
                return
            connect = psycopg.connect(server.url("postgres"), autocommit=True)
            connection = stack.enter_context(connect)
            connection.execute(statements)
            for name, rows in tables.items():
                copy_rows(connection, name, rows)
            connection.execute(f"CREATE MATERIALIZED VIEW {VIEW} AS {query}")
            yield cls(connection, server.process)

    def change(self, edit: Edit) -> None:
        """Make a change, and compute the view anew."""
        key = edit.rows.column_names[0]
        keys = edit.rows[key].to_pylist()
        if edit.kind != INSERT:
            self._connection.execute(f"DELETE FROM {edit.table} WHERE {key} = ANY(%s)", (keys,))
        if edit.kind != DELETE:
            copy_rows(self._connection, edit.table, edit.rows)
        before = sum(processor_seconds(self._process).values())
        cost = Cost.of(lambda: self._connection.execute(f"REFRESH MATERIALIZED VIEW {VIEW}"))
        spent = sum(processor_seconds(self._process).values()) - before
        self._spent = Cost(self._spent.processor + spent, self._spent.wall + cost.wall)
        self._calls += 1

    def __str__(self) -> str:
        calls = max(1, self._calls)  # a mean: a process tells its time in hundredths of a second
        return f"PostgreSQL anew {Cost(self._spent.processor / calls, self._spent.wall / calls)}"


def copy_rows(connection: psycopg.Connection, table: str, rows: pa.Table) -> None:
    """Append rows to a table."""
    text = io.BytesIO()
    pa.csv.write_csv(rows, text, pa.csv.WriteOptions(include_header=False))
    with connection.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN (FORMAT csv)") as to:
        to.write(text.getvalue())
