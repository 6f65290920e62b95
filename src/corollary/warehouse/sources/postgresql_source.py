"""A table or view of PostgreSQL as a source, without Spark: its change is a difference.

All rows are read by COPY in one snapshot, and compared with those that were read last. With
`order="column"`, and a key, only rows are read whose value in that column is not less than the
greatest one so far: what is deleted there is not noticed then.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from corollary.core.arrow_buffers import bool_array
from corollary.core.types import Type
from corollary.errors import InputError
from corollary.warehouse.connections import connection_url
from corollary.warehouse.formats.typed_values import Failures, from_texts
from corollary.warehouse.sources.parquet_file import convert_records
from corollary.warehouse.sources.schema_drift import ExpectedColumns, FileRecords, missing_column
from corollary.warehouse.sources.source import EarlierRows, Position, SourceChange
from corollary.warehouse.sources.source_spec import InputSource, RunCollector, SourceSpec

if TYPE_CHECKING:
    from psycopg import Connection, sql

CONNECT_SECONDS = 10
_TIME = 'YYYY-MM-DD"T"HH24:MI:SS.US'


class PostgresqlSource(InputSource):
    """Reads a table or view."""

    def __init__(self, spec: SourceSpec) -> None:
        super().__init__(spec, "postgresql")

    def is_unchanged(self, before: Position | None) -> bool:
        """Return that it may have changed: PostgreSQL does not say when a table was written."""
        del before
        return False

    def _change(
        self, before: Position | None, earlier: EarlierRows, collector: RunCollector
    ) -> SourceChange:
        since = (before or {}).get("last")
        with self._connected() as connection:
            records, last = self._read(connection, collector.expected, since)
        rows_before = 0 if before is None else before["rows"]
        if since is None:
            change, count = self._replacement(records, rows_before, earlier, collector)
            position = {"rows": count, "last": last}
            return collector.to_source_change(change, position, None, good_records=count)
        rows = collector.add_file(self._spec.location.name, records)
        collector.raise_if_malformed()
        added, removed = self._spec.extension(earlier, rows)
        count = len(earlier) + added.num_rows - removed.num_rows
        position = {"rows": count, "last": last or since}
        return collector.to_source_change((added, removed), position, frozenset())

    def _read(
        self, connection: "Connection[Any]", expected: ExpectedColumns, since: str | None
    ) -> tuple[FileRecords, str | None]:
        """Return the rows, those from a value on if there is one, and the greatest value."""
        from psycopg import sql

        relation, shown = self._spec.relation, self._spec.location.name
        table = sql.Identifier(*self._spec.directive.parameter("table", relation.name).split("."))
        found = connection.execute(sql.SQL("SELECT * FROM {} LIMIT 0").format(table))
        names = [each.name for each in found.description or ()]
        for name in relation.columns:
            if name not in names:
                raise missing_column(expected, shown, name, names)
        items = [
            _as_text(name, type_)
            for name, type_ in zip(relation.columns, relation.types, strict=True)
        ]
        query = sql.SQL("SELECT {} FROM {}").format(sql.SQL(", ").join(items), table)
        order = self._spec.key.order
        last = None
        if order:
            column = sql.Identifier(order)
            if since is not None:
                query += sql.SQL(" WHERE {} >= {}").format(column, sql.Literal(since))
            greatest = sql.SQL("SELECT max({})::text FROM {}").format(column, table)
            (last,) = connection.execute(greatest).fetchone() or (None,)
        texts = _copied(connection, query, relation.columns)
        progress = self._spec.console.progress(f"reading {shown}")
        progress.advance(rows=texts.num_rows)
        rows, malformed = convert_records(
            texts.columns, shown, expected, convert=_converted, has_order=False
        )
        return FileRecords(rows, malformed, tuple(names)), last

    @contextmanager
    def _connected(self) -> "Iterator[Connection[Any]]":
        """Give a connection in one snapshot, whose times are in UTC.

        Raises:
            InputError: `C1740`, the server does not answer, or refuses the query.
            WarehouseError: `C0978`, there is no such connection.
        """
        span, name = self._spec.directive.span, self._spec.directive.parameter("connection")
        url = connection_url(name)
        try:
            import psycopg
        except ImportError:
            raise InputError.of(
                "C1741",
                "Tables of PostgreSQL are read with a package that is not installed.",
                span,
                'install it: `pip install "corollary[postgresql]"`',
            ) from None
        try:
            with psycopg.connect(url, connect_timeout=CONNECT_SECONDS) as connection:
                connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                connection.read_only = True
                connection.execute("SET TimeZone = 'UTC'")
                connection.execute("SET DateStyle = 'ISO'")
                yield connection
        except psycopg.Error as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise InputError.of(
                "C1740",
                f"`{self._spec.location.name}` cannot be read: {reason}.",
                span,
                f"correct the connection `{name}`, or the name of the table; nothing was changed",
            ) from None


def _as_text(name: str, type_: Type) -> "sql.Composable":
    """Return a column as the text that a value of a type is read from."""
    from psycopg import sql

    column = sql.Identifier(name)
    if type_.logical_kind.value.startswith("timestamp"):
        zone = "Z" if str(type_.with_null(False)) == "timestamp" else ""
        moment = sql.SQL("{} AT TIME ZONE 'UTC'" if zone else "{}").format(column)
        form = sql.Literal(_TIME + f'"{zone}"' if zone else _TIME)
        return sql.SQL("to_char({}, {})").format(moment, form)
    return sql.SQL("{}::text").format(column)


def _copied(
    connection: "Connection[Any]", query: "sql.Composable", columns: tuple[str, ...]
) -> pa.Table:
    """Return the result of a query as texts; null is not the empty text."""
    from psycopg import sql

    command = sql.SQL("COPY ({}) TO STDOUT (FORMAT csv, FORCE_QUOTE *)").format(query)
    data = BytesIO()
    with connection.cursor() as cursor, cursor.copy(command) as copy:
        for part in copy:
            data.write(part)
    if not data.tell():
        return pa.table({name: pa.nulls(0, pa.string()) for name in columns})
    data.seek(0)
    return csv.read_csv(
        data,
        read_options=csv.ReadOptions(column_names=list(columns)),
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=csv.ConvertOptions(
            column_types=dict.fromkeys(columns, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _converted(column: pa.ChunkedArray, type_: Type) -> tuple[pa.ChunkedArray, Failures]:
    """Return texts as a column of a type; null where a value is none of it."""
    if not column.null_count:
        return (column, {}) if type_.is_symbol else from_texts(column, type_)
    present = np.asarray(column.is_valid().to_numpy(), bool)
    rows = np.flatnonzero(present)
    found, failures = from_texts(column.filter(bool_array(present)), type_)
    numbers = np.full(len(column), -1, np.int64)
    numbers[rows] = np.arange(len(rows))
    taken = found.take(pa.array(numbers, mask=~present))
    failed = {int(rows[at]): reason for at, reason in failures.items()}
    if not type_.nullable:
        failed |= dict.fromkeys(np.flatnonzero(~present).tolist(), "a value is missing")
    return taken, failed
