"""Copies of a catalog, row by row: from SQLite or PostgreSQL into either.

The rows are read in one transaction, so that a copy is one state even while others commit.
"""

from collections.abc import Iterator
from typing import Any

from corollary.warehouse.catalog import credentials, group_keys, key_digests, query_log, schema
from corollary.warehouse.catalog.catalog import Catalog

COPY_BATCH_ROWS = 500
NOT_COPIED = ("corollary_intents", "corollary_published")
"""Running writers and published tables belong to the original only."""


def copy_rows(source: Catalog, target: Catalog) -> None:
    """Copy all rows of a catalog into one that has the tables without rows.

    Tables that not every catalog has are created there if the source has them.
    """
    with source.read_transaction() as reading, target.write_transaction() as writing:
        tables = [each for each in schema.TABLES if each not in NOT_COPIED]
        there = reading.tables()
        for optional in (query_log, credentials, group_keys, key_digests):
            if optional.TABLE in there:
                writing.execute(optional.CREATE)
                tables.append(optional.TABLE)
        for table in tables:
            query = f"SELECT * FROM {table}"  # noqa: S608 - a name of ours
            for batch in reading.batches(query, COPY_BATCH_ROWS):
                writing.insert(table, [_copied(table, row._asdict()) for row in batch])


def _copied(table: str, row: dict[str, Any]) -> dict[str, Any]:
    match table:
        case "corollary_changes":  # SQLite has 0 and 1
            return {**row, "is_full": bool(row["is_full"])}
        case "corollary_outbox":  # claims are made on alerts of the original
            return {**row, "claim": None, "claimed": None}
        case _:
            return row


def referenced_files(catalog: Catalog) -> Iterator[tuple[str, str]]:
    """Yield the files that a catalog references, each with its checksum."""
    for query in (
        "SELECT path, checksum FROM corollary_changes WHERE path IS NOT NULL",
        "SELECT path, checksum FROM corollary_snapshots",
        "SELECT path, checksum FROM corollary_indexes",
    ):
        with catalog.read_transaction() as connection:
            rows = connection.rows(query)
        yield from rows
