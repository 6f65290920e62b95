"""Runs catalog queries on a DuckDB that holds nothing but the catalog, and reaches nothing else."""

import duckdb
import pyarrow as pa

from corollary.data_class import dataclass
from corollary.serve.postgres.catalog.contents import given_tables
from corollary.serve.postgres.catalog.functions import MACROS, SYSTEM, catalog_script
from corollary.serve.postgres.problems import PgError
from corollary.serve.postgres.relations import VisibleRelations

MEMORY_LIMIT = "256MB"
ANSWER_MAX_BYTES = 16 << 20
BATCH_ROWS = 10_000


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
        connection.execute("CREATE SCHEMA given; CREATE SCHEMA pg; CREATE SCHEMA information")
        for name, table in given_tables(relations, database, user).items():
            connection.register("handed", table)
            connection.execute(f"CREATE TABLE given.{name} AS FROM handed")
            connection.unregister("handed")
        connection.execute(f"SET schema = '{SYSTEM}'")
        connection.execute(catalog_script())
        connection.execute("DROP SCHEMA given CASCADE")
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
