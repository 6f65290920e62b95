"""Copies of a catalog, row by row: from SQLite or PostgreSQL into either.

The rows are read in one transaction, so that a copy is one state even while others commit.
"""

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from corollary.warehouse.catalog import query_log, schema
from corollary.warehouse.catalog.catalog import Catalog

COPY_BATCH_ROWS = 500
NOT_COPIED = (schema.intents, schema.published)
"""Running writers and published tables belong to the original only."""

RESET: dict[sa.Table, dict[str, Any]] = {schema.outbox: {"claim": None, "claimed": None}}
"""Columns that a copy does not take over: claims are made on alerts of the original."""


def copy_rows(source: Catalog, target: Catalog) -> None:
    """Copy all rows of a catalog into one that has the tables without rows.

    The table of the query log is created there if the source has one.
    """
    with source.read_transaction() as reading, target.write_transaction() as writing:
        tables = [each for each in schema.metadata.sorted_tables if each not in NOT_COPIED]
        if sa.inspect(reading).has_table(query_log.queries.name):
            query_log.metadata.create_all(writing)
            tables.append(query_log.queries)
        for table in tables:
            rows = reading.execution_options(yield_per=COPY_BATCH_ROWS).execute(sa.select(table))
            for batch in rows.mappings().partitions():
                writing.execute(table.insert(), [{**row, **RESET.get(table, {})} for row in batch])


def referenced_files(catalog: Catalog) -> Iterator[tuple[str, str]]:
    """Yield the files that a catalog references, each with its checksum."""
    for table in (schema.changes, schema.snapshots, schema.indexes):
        query = sa.select(table.c.path, table.c.checksum).where(table.c.path.is_not(None))
        with catalog.read_transaction() as connection:
            rows = connection.execute(query).all()
        for row in rows:
            yield row.path, row.checksum
