"""Runs catalog queries on a DuckDB that holds nothing but the catalog, and reaches nothing else."""

from collections.abc import Mapping

import duckdb
import pyarrow as pa

from corollary.data_class import dataclass
from corollary.serve.postgres.catalog.contents import all_columns, catalog_rows
from corollary.serve.postgres.catalog.functions import MACROS
from corollary.serve.postgres.catalog.tables import (
    INFORMATION,
    INFORMATION_TABLES,
    SYSTEM,
    SYSTEM_TABLES,
    columns_of,
)
from corollary.serve.postgres.problems import PgError
from corollary.serve.postgres.relations import VisibleRelations

MEMORY_LIMIT = "256MB"
ANSWER_MAX_BYTES = 16 << 20
BATCH_ROWS = 10_000

_ARROW_TYPES = {
    "UINTEGER": pa.uint32(),
    "VARCHAR": pa.string(),
    "BOOLEAN": pa.bool_(),
    "SMALLINT": pa.int16(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "TIMESTAMP WITH TIME ZONE": pa.timestamp("us", "UTC"),
}


@dataclass(slots=True)
class CatalogDatabase:
    """The catalog of one user, for the relations that it sees at a time."""

    connection: duckdb.DuckDBPyConnection

    @classmethod
    def create(cls, relations: VisibleRelations, database: str, user: str) -> "CatalogDatabase":
        """Make the catalog of some relations."""
        connection = duckdb.connect(
            ":memory:",
            config={
                "enable_external_access": "false",
                "threads": "1",
                "memory_limit": MEMORY_LIMIT,
                "autoload_known_extensions": "false",
                "autoinstall_known_extensions": "false",
                "integer_division": "true",
                "default_null_order": "nulls_last_on_asc_first_on_desc",
            },
        )
        connection.execute(f"CREATE SCHEMA {SYSTEM}; CREATE SCHEMA {INFORMATION}")
        connection.execute(f"SET schema = '{SYSTEM}'")
        contents = catalog_rows(relations, database, user)
        described = {name: (SYSTEM, name, text) for name, text in SYSTEM_TABLES.items()}
        for name, text in INFORMATION_TABLES.items():
            described[f"information_schema.{name}"] = (INFORMATION, name, text)
        for key, (schema, name, text) in described.items():
            _fill(connection, schema, name, columns_of(text), contents.get(key, []))
        for name, forms in MACROS.items():
            connection.execute(f"CREATE MACRO {SYSTEM}.{name}{', '.join(forms)}")
        connection.execute("SET lock_configuration = true")
        return cls(connection)

    def run(self, sql: str) -> pa.Table:
        """Return the rows of a query of DuckDB.

        Raises:
            PgError: it cannot be run, was interrupted, or has too many rows.
        """
        batches, size = [], 0
        try:
            reader = self.connection.sql(sql).to_arrow_reader(BATCH_ROWS)
            for batch in reader:
                batches.append(batch)
                size += batch.nbytes
                if size > ANSWER_MAX_BYTES:
                    raise PgError("54000", f"An answer has at most {ANSWER_MAX_BYTES:,} bytes.")
        except (duckdb.Error, OSError) as problem:  # the latter from the reader
            raise _catalog_error(problem) from None
        return pa.Table.from_batches(batches, reader.schema)

    def interrupt(self) -> None:
        """End the query that runs."""
        self.connection.interrupt()


def _fill(
    connection: duckdb.DuckDBPyConnection,
    schema: str,
    name: str,
    columns: Mapping[str, str],
    rows: list[dict[str, object]],
) -> None:
    listed = ", ".join(f'"{column}" {type_}' for column, type_ in columns.items())
    connection.execute(f'CREATE TABLE {schema}."{name}" ({listed})')
    if not rows:
        return
    types = {column: _arrow_type(type_) for column, type_ in columns.items()}
    table = pa.Table.from_pylist(all_columns(rows, columns), pa.schema(types.items()))
    connection.register("given", table)
    connection.execute(f'INSERT INTO {schema}."{name}" SELECT * FROM given')  # noqa: S608 - our names
    connection.unregister("given")


def _arrow_type(type_: str) -> pa.DataType:
    element = type_.removesuffix("[]")
    found = _ARROW_TYPES[element]
    return found if element == type_ else pa.list_(found)


_STATES = {
    "INTERRUPT": "57014",
    "Parser": "42601",
    "Catalog": "42P01",
    "Binder": "42703",
    "Conversion": "22P02",
    "Out of Memory": "53200",
}
"""The SQLSTATEs of DuckDB's errors, by the first words of their messages."""


def _catalog_error(problem: Exception) -> PgError:
    """Return the error of a catalog query, without what DuckDB says of its own inside."""
    first = str(problem).splitlines()[0]
    kind, _, sentence = first.partition(" Error: ")
    message = f"A query of the catalog failed: {(sentence or first).rstrip('.')}."
    return PgError(_STATES.get(kind, "0A000"), message)
