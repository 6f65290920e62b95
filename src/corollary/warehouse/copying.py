"""Copies of a catalog, row by row: from SQLite or PostgreSQL into either.

The rows are read in one transaction, so that a copy is one state while others go on committing.
"""

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from corollary.warehouse import query_log, schema
from corollary.warehouse.catalog import Catalog

BATCH = 500
"""So many rows are copied at once."""
LEFT_OUT = (schema.intents, schema.published)
"""Writers under way stay where they are, and so do published tables."""

UNSET: dict[sa.Table, dict[str, Any]] = {schema.outbox: {"claim": None, "claimed": None}}
"""Who delivers an alert does so for the original."""


def copy_rows(source: Catalog, target: Catalog) -> None:
    """Copy all rows of a catalog into one that has the tables, and nothing in them.

    The table of the query log is made there if the source has one.
    """
    with source.reading() as reading, target.writing() as writing:
        tables = [each for each in schema.metadata.sorted_tables if each not in LEFT_OUT]
        if sa.inspect(reading).has_table(query_log.queries.name):
            query_log.metadata.create_all(writing)
            tables.append(query_log.queries)
        for table in tables:
            rows = reading.execution_options(yield_per=BATCH).execute(sa.select(table))
            for batch in rows.mappings().partitions():
                writing.execute(table.insert(), [{**row, **UNSET.get(table, {})} for row in batch])


def named_files(catalog: Catalog) -> Iterator[tuple[str, str]]:
    """Yield the files that a catalog speaks of, each with its checksum."""
    for table in (schema.changes, schema.snapshots, schema.indexes):
        query = sa.select(table.c.path, table.c.checksum).where(table.c.path.is_not(None))
        with catalog.reading() as connection:
            rows = connection.execute(query).all()
        for row in rows:
            yield row.path, row.checksum
