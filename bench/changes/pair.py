"""The same tables in a database of ours and in DuckDB: one maintains a view, one computes it anew.

Both change in turns, so that a busy machine is as busy for both. Changing DuckDB's tables is not
timed, only its query.
"""

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

import duckdb
import pyarrow as pa

import corollary
from bench.contenders import THREADS
from bench.data import Relations
from bench.measure import difference, in_order
from corollary.database.database import Database

INSERT, DELETE, UPDATE = "insert", "delete", "update"
FEW = 100
"""So many rows are handed in as tuples, more of them as an Arrow table."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of the processor, of all threads, and on the clock."""

    processor: float
    wall: float

    @classmethod
    def of(cls, action: Callable[[], object]) -> Self:
        """Take the time of an action, garbage of earlier ones collected before."""
        gc.collect()
        wall, processor = time.perf_counter(), time.process_time()
        action()
        return cls(time.process_time() - processor, time.perf_counter() - wall)

    @classmethod
    def middle(cls, costs: Sequence[Self]) -> Self:
        """Return the medians."""
        return cls(
            statistics.median(each.processor for each in costs),
            statistics.median(each.wall for each in costs),
        )

    def __str__(self) -> str:
        return f"{1000 * self.processor:.2f} ms ({1000 * self.wall:.2f})"


class Edit(NamedTuple):
    """A change of a table whose first column is its key.

    Attributes:
        kind: `insert`, `delete` or `update`; the rows of an update replace those of their keys.
        old: the rows that an update replaces.
    """

    kind: str
    table: str
    rows: pa.Table
    old: pa.Table | None = None


class Pair:
    """A database and DuckDB with the same tables."""

    def __init__(self, database: Database, connection: duckdb.DuckDBPyConnection) -> None:
        self.database = database
        self._connection = connection

    @classmethod
    @contextmanager
    def open(cls, statements: str, tables: Relations, place: Path | None = None) -> Iterator[Self]:
        """Make the tables, ours in memory or in a warehouse, and fill them."""
        with (
            corollary.open(place, engine="local") as database,
            duckdb.connect(config={"threads": THREADS}) as connection,
        ):
            database.sql(statements)
            pair = cls(database, connection)
            for name, rows in tables.items():
                connection.register("given", rows)
                connection.execute(f"CREATE TABLE {name} AS FROM given")
                pair.commit(Edit(INSERT, name, rows))
            gc.collect()
            gc.freeze()  # what is loaded stays, so that collecting garbage before a step is quick
            try:
                yield pair
            finally:
                gc.unfreeze()

    def commit(self, edit: Edit) -> None:
        """Make a change of our tables."""
        with self.database.transaction() as transaction:
            if edit.old is not None:
                transaction.delete(edit.table, _handed(edit.old))
            verb = transaction.delete if edit.kind == DELETE else transaction.insert
            verb(edit.table, _handed(edit.rows))

    def change(self, edit: Edit) -> Cost:
        """Time a change of our tables, and change DuckDB's."""
        cost = Cost.of(lambda: self.commit(edit))
        self._connection.register("given", edit.rows)
        if edit.kind != INSERT:
            key = edit.rows.column_names[0]
            self._connection.execute(
                f"DELETE FROM {edit.table} t USING given WHERE t.{key} = given.{key}"
            )
        if edit.kind != DELETE:
            self._connection.execute(f"INSERT INTO {edit.table} FROM given")
        return cost

    def recompute(self, query: str) -> Cost:
        """Time DuckDB's query, whose answer it keeps as a table."""
        self._connection.execute("DROP TABLE IF EXISTS answer")
        return Cost.of(lambda: self._connection.execute(f"CREATE TABLE answer AS {query}"))

    def differences(self, view: str, query: str, *answers: tuple[str, pa.Table]) -> tuple[str, ...]:
        """Say how a view, and answers of others, differ from DuckDB's query; nothing if none do."""
        expected = self._connection.sql(query).to_arrow_table()
        found = (("corollary", self.database.relation(view).arrow()), *answers)
        return tuple(
            each
            for name, rows in found
            for each in difference(name, in_order(rows), "duckdb", expected)
        )


def create(view: str, query: str) -> str:
    """Return the statement that makes a view."""
    return f"CREATE MATERIALIZED VIEW {view} AS {query};"


def _handed(rows: pa.Table) -> object:
    """Return rows as a user would hand them in."""
    return rows if rows.num_rows > FEW else [tuple(row.values()) for row in rows.to_pylist()]
