"""Replicas that are tables of PostgreSQL.

The table and its position are changed by one transaction, so that the table shows one commit at any
time, whichever process or server is killed.

| relation | change |
|---|---|
| with a key | rows of which only the key stays are updated; others are deleted, inserted |
| without | as many copies of a row are deleted as go |

Rows that go have to be as they were left, and a key that comes may not be there: else somebody else
has written to the table, and nothing is changed. Rows come by `COPY` into a temporary table.

| type | column |
|---|---|
| symbol, number (by its bits), float, bool, date | text, smallint to bigint, double precision, … |
| unsigned, decimal(p,s) | numeric(20,0), numeric(p,s) |
| timestamp | timestamp with time zone; without zone, as the type says |
| duration, months, time_of_day | bigint, integer, bigint: microseconds, months |
| binary; arrays, structs, maps | bytea; jsonb |
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from corollary.analysis.replicas import ReplicaSpec
from corollary.core.arrow import single_array
from corollary.core.program import Relation
from corollary.core.types import Type
from corollary.errors import WarehouseError
from corollary.warehouse.connections import connection_url
from corollary.warehouse.formats.json_documents import JsonForm, value_texts
from corollary.warehouse.publishing.delta_schema import published_rows, published_schema
from corollary.warehouse.publishing.replica import (
    ReplicaPosition,
    foreign_replica,
    unreachable_replica,
)
from corollary.warehouse.warehouse import RelationDelta

POSITIONS = "corollary_positions"
"""The table of ours with the position of each replica, in the schema of the replica."""
CONNECT_SECONDS = 5
ANALYZE_MIN_ROWS = 1000
"""The planner is told about temporary tables with more rows than this."""
INDEX_MAX_COLUMNS = 32
_CHANGE, _CONTENT, _SIGN = "corollary_change", "corollary_content", "corollary_sign"
_LOCK = int.from_bytes(b"replicas")
_TYPES = {
    pa.int8(): "smallint",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.float64(): "double precision",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.binary(): "bytea",
    pa.timestamp("us", "UTC"): "timestamp with time zone",
    pa.timestamp("us"): "timestamp",
}
_CREATE_POSITIONS = """
    CREATE TABLE IF NOT EXISTS {} (
        replica text PRIMARY KEY,
        warehouse text NOT NULL,
        commit bigint NOT NULL,
        created text NOT NULL,
        columns text NOT NULL,
        rows bigint NOT NULL)"""


class PostgresqlReplica:
    """A table of PostgreSQL that a relation is replicated to.

    Args:
        relation: the relation.
        spec: the connection, and the name of the table, perhaps with its schema.
    """

    def __init__(self, relation: Relation, spec: ReplicaSpec) -> None:
        self._relation = relation
        self._spec = spec

    @contextmanager
    def open(self) -> "Iterator[PostgresqlSession]":
        """Open the replica, in a transaction.

        Raises:
            WarehouseError: `C0949`, it cannot be reached; `C0935`, the client is not installed.
        """
        try:
            import psycopg
        except ImportError as error:
            raise WarehouseError.of(
                "C0935",
                "Tables on PostgreSQL need the package `psycopg`, which is not installed.",
                None,
                "install `corollary[postgresql]`",
            ) from error
        url = connection_url(self._spec.location)
        try:
            with psycopg.connect(url, connect_timeout=CONNECT_SECONDS) as connection:
                yield PostgresqlSession(connection, self._relation, self._spec)
        except psycopg.errors.UniqueViolation as error:
            raise foreign_replica(str(self._spec), "has rows that others have written") from error
        except psycopg.Error as error:
            raise unreachable_replica(str(self._spec), error) from error


class PostgresqlSession:
    """A transaction on the table of a relation."""

    def __init__(self, connection: Any, relation: Relation, spec: ReplicaSpec) -> None:
        from psycopg import sql

        self._sql, self._connection, self._relation = sql, connection, relation
        self._name = str(spec)
        path = spec.name.split(".")
        self._table = sql.Identifier(*path)
        self._positions = sql.Identifier(*path[:-1], POSITIONS)
        self._replica = path[-1]
        self._schema = published_schema(relation)
        names = self._schema.names
        is_key = spec.key and not any(self._schema.field(at).nullable for at in spec.key)
        self._key = [names[at] for at in spec.key] if is_key else []

    # --- position ------------------------------------------------------------------------------

    def position(self, recorded: ReplicaPosition | None) -> ReplicaPosition | None:  # noqa: ARG002
        """Return the position; None if there is no table yet.

        Raises:
            WarehouseError: `C0979`, there is a table of somebody else.
        """
        self._connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        self._execute(_CREATE_POSITIONS, self._positions)
        held = self._execute(
            "SELECT warehouse, commit, created, columns, rows FROM {} WHERE replica = {}",
            self._positions,
            self._sql.Literal(self._replica),
        ).fetchone()
        if not self._has_table():
            return None
        if held is None:
            if self._execute("SELECT 1 FROM {} LIMIT 1", self._table).fetchone() is not None:
                raise foreign_replica(self._name, "is a table that has rows already")
            return None
        return ReplicaPosition(*held)

    def _has_table(self) -> bool:
        name = self._table.as_string(self._connection)
        found = self._connection.execute("SELECT to_regclass(%s)", [name]).fetchone()
        return found[0] is not None

    def _move(self, position: ReplicaPosition) -> None:
        fields = {"replica": self._replica, **position.fields}
        self._execute(
            "DELETE FROM {} WHERE replica = {}", self._positions, self._sql.Literal(self._replica)
        )
        self._execute(
            "INSERT INTO {} ({}) VALUES ({})",
            self._positions,
            self._names(fields),
            self._sql.SQL(", ").join(map(self._sql.Literal, fields.values())),
        )

    # --- changing ------------------------------------------------------------------------------

    def apply(self, change: RelationDelta, position: ReplicaPosition) -> None:
        """Apply a change, and move to a position.

        Raises:
            WarehouseError: `C0979`, the rows are not as they were left.
        """
        self._make_temporary(_CHANGE)
        for rows, sign in ((change.removed, -1), (change.added, 1)):
            self._copy(rows, _CHANGE, sign)
        self._analyze(_CHANGE, change.rows)
        if self._apply_change() != change.removed.num_rows:
            raise foreign_replica(self._name, "lacks rows, or has others than it was given")
        self._move(position)

    def refresh(self, rows: pa.Table, position: ReplicaPosition) -> tuple[int, int]:
        """Hold just these rows; return how many came and went."""
        held = self.position(None)
        if self._has_table() and (held is None or held.columns == position.columns):
            found = self._change_to(rows)
        else:
            self._execute("DROP TABLE IF EXISTS {}", self._table)
            self._create()
            self._copy(rows)
            self._create_index()
            found = rows.num_rows, 0
        self._move(position)
        return found

    def _create(self) -> None:
        columns = [
            self._sql.SQL("{} {}{}").format(
                self._sql.Identifier(field.name),
                self._sql.SQL(_column_type(field.type)),
                self._sql.SQL("" if field.nullable else " NOT NULL"),
            )
            for field in self._schema
        ]
        self._execute("CREATE TABLE {} ({})", self._table, self._sql.SQL(", ").join(columns))

    def _create_index(self) -> None:
        """Create the key, or what finds the rows that go."""
        if self._key:
            self._execute(
                "ALTER TABLE {} ADD PRIMARY KEY ({})", self._table, self._names(self._key)
            )
            return
        plain = [each.name for each in self._schema if _column_type(each.type) != "jsonb"]
        if plain:
            names = self._names(plain[:INDEX_MAX_COLUMNS])
            self._execute("CREATE INDEX ON {} ({})", self._table, names)

    def _change_to(self, rows: pa.Table) -> tuple[int, int]:
        """Change the table to hold just these rows, by the difference."""
        self._make_temporary(_CHANGE)
        self._make_temporary(_CONTENT)
        self._copy(rows, _CONTENT, 0)
        names, content = self._names(self._schema.names), self._sql.Identifier(_CONTENT)
        counts = []
        for sign, one, other in ((1, content, self._table), (-1, self._table, content)):
            cursor = self._execute(
                "INSERT INTO {} SELECT *, {} FROM "
                "(SELECT {} FROM {} EXCEPT ALL SELECT {} FROM {}) AS found",
                *(self._sql.Identifier(_CHANGE), self._sql.Literal(sign)),
                *(names, one, names, other),
            )
            counts.append(cursor.rowcount)
        self._analyze(_CHANGE, sum(counts))
        self._apply_change()
        return counts[0], counts[1]

    def _apply_change(self) -> int:
        """Do what the temporary table says; return how many rows went or were updated."""
        return self._apply_by_key() if self._key else self._apply_by_rows()

    def _apply_by_key(self) -> int:
        key, every = self._match("old", "new", self._key), self._schema.names
        rest = [name for name in every if name not in self._key]
        change = self._sql.Identifier(_CHANGE)
        same = self._match("held", "old", every)
        gone: int = 0
        if rest:
            assigned = self._sql.SQL(", ").join(
                self._sql.SQL("{0} = new.{0}").format(self._sql.Identifier(name)) for name in rest
            )
            gone = self._execute(
                "UPDATE {} AS held SET {} FROM {} AS old JOIN {} AS new ON {} "
                "WHERE old.corollary_sign < 0 AND new.corollary_sign > 0 AND {}",
                *(self._table, assigned, change, change, key, same),
            ).rowcount
        gone += self._execute(
            "DELETE FROM {} AS held USING {} AS old WHERE old.corollary_sign < 0 AND {} AND "
            "NOT EXISTS (SELECT 1 FROM {} AS new WHERE new.corollary_sign > 0 AND {})",
            *(self._table, change, same, change, key),
        ).rowcount
        self._execute(
            "INSERT INTO {} ({}) SELECT {} FROM {} AS new WHERE new.corollary_sign > 0 AND "
            "NOT EXISTS (SELECT 1 FROM {} AS old WHERE old.corollary_sign < 0 AND {})",
            *(self._table, self._names(every), self._names(every, "new"), change, change, key),
        )
        return int(gone)

    def _apply_by_rows(self) -> int:
        every = self._schema.names
        change, names = self._sql.Identifier(_CHANGE), self._names(every)
        gone: int = self._execute(
            "DELETE FROM {0} AS held USING ("
            "SELECT held.ctid AS row, gone.copies, "
            "row_number() OVER (PARTITION BY {1}) AS number FROM {0} AS held JOIN ("
            "SELECT {2}, count(*) AS copies FROM {3} WHERE corollary_sign < 0 GROUP BY {2}"
            ") AS gone ON {4}) AS found WHERE held.ctid = found.row AND number <= copies",
            *(self._table, self._names(every, "gone"), names, change),
            self._match("held", "gone", every),
        ).rowcount
        self._execute(
            "INSERT INTO {} ({}) SELECT {} FROM {} WHERE corollary_sign > 0",
            *(self._table, names, names, change),
        )
        return gone

    # --- statements ----------------------------------------------------------------------------

    def _execute(self, text: str, *parts: Any) -> Any:
        return self._connection.execute(self._sql.SQL(text).format(*parts))

    def _names(self, names: Iterable[str], owner: str = "") -> Any:
        path = [owner] if owner else []
        return self._sql.SQL(", ").join(self._sql.Identifier(*path, each) for each in names)

    def _match(self, one: str, other: str, names: Iterable[str]) -> Any:
        """Return that two rows agree in some columns; null is equal to null."""
        conditions = [
            self._sql.SQL(
                "{} IS NOT DISTINCT FROM {}" if self._is_nullable(name) else "{} = {}"
            ).format(self._sql.Identifier(one, name), self._sql.Identifier(other, name))
            for name in names
        ]
        return self._sql.SQL(" AND ").join(conditions)

    def _is_nullable(self, name: str) -> bool:
        return bool(self._schema.field(name).nullable)

    def _make_temporary(self, name: str) -> None:
        self._execute(
            "CREATE TEMPORARY TABLE {} ON COMMIT DROP AS "
            "SELECT {}, 0::smallint AS {} FROM {} WITH NO DATA",
            *(self._sql.Identifier(name), self._names(self._schema.names)),
            *(self._sql.Identifier(_SIGN), self._table),
        )

    def _analyze(self, name: str, rows: int) -> None:
        if rows >= ANALYZE_MIN_ROWS:
            self._execute("ANALYZE {}", self._sql.Identifier(name))

    def _copy(self, rows: pa.Table, into: str = "", sign: int | None = None) -> None:
        """Append rows to the table, or to a temporary one, where they get a sign."""
        if not rows.num_rows:
            return
        texts = _text_columns(rows, self._relation)
        names = self._schema.names
        if sign is not None:
            names = [*names, _SIGN]
            texts.append(pa.repeat(pa.scalar(str(sign), pa.string()), rows.num_rows))
        options = pa_csv.WriteOptions(include_header=False, quoting_style="all_valid")
        statement = self._sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(
            self._sql.Identifier(into) if into else self._table, self._names(names)
        )
        with self._connection.cursor() as cursor, cursor.copy(statement) as stream:
            for batch in pa.table(texts, names).to_batches(max_chunksize=1 << 16):
                buffer = pa.BufferOutputStream()
                pa_csv.write_csv(pa.Table.from_batches([batch]), buffer, options)
                stream.write(memoryview(buffer.getvalue()))


def _column_type(type_: pa.DataType) -> str:
    if pa.types.is_decimal(type_):
        return f"numeric({type_.precision},{type_.scale})"
    if pa.types.is_nested(type_):
        return "jsonb"
    return _TYPES.get(type_, "text")


def _text_columns(rows: pa.Table, relation: Relation) -> list[pa.Array]:
    """Return the values of rows as PostgreSQL reads them."""
    shown = published_rows(rows, relation)
    form = JsonForm(relation.columns)
    return [
        _texts(single_array(column), values, type_, form)
        for column, values, type_ in zip(
            shown.columns, rows.columns or shown.columns, relation.types or (None,), strict=True
        )
    ]


def _texts(
    shown: pa.Array, values: pa.ChunkedArray, type_: Type | None, form: JsonForm
) -> pa.Array:
    if pa.types.is_binary(shown.type):
        return pc.binary_join_element_wise("\\x", hexadecimal_texts(shown), "")
    if type_ is None or not pa.types.is_nested(shown.type):
        return shown.cast(pa.string())
    texts = value_texts(single_array(values), type_, form)
    return pc.if_else(shown.is_valid(), texts, pa.scalar(None, pa.string()))


def hexadecimal_texts(values: pa.Array) -> pa.Array:
    r"""Return the digits of bytes, two for each.

    >>> hexadecimal_texts(pa.array([b"\x00\xff", None])).to_pylist()
    ['00ff', None]
    """
    whole = pa.concat_arrays([values])  # without an offset
    _, offsets, data = whole.buffers()
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    found = np.frombuffer(data or b"", np.uint8)
    texts = np.stack([digits[found >> 4], digits[found & 15]], axis=1).tobytes()
    starts = np.frombuffer(offsets, np.int32)[: len(whole) + 1].astype(np.int64) * 2
    made = pa.LargeStringArray.from_buffers(
        len(whole), pa.py_buffer(starts.tobytes()), pa.py_buffer(texts)
    ).cast(pa.string())
    return pc.if_else(whole.is_valid(), made, pa.scalar(None, pa.string()))
