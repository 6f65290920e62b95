"""Replaces rows of the catalog whose data is damaged, and deletes rows of derived data."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from corollary.warehouse.catalog import schema
from corollary.warehouse.catalog.catalog import Catalog
from corollary.warehouse.files import durable_files
from corollary.warehouse.files.parquet_encoding import to_parquet
from corollary.warehouse.warehouse import DATA_DIRECTORY, Warehouse


def delete_index(catalog: Catalog, number: int) -> None:
    """Delete the index of a commit; its files become orphans."""
    table = schema.indexes
    with catalog.write_transaction() as connection:
        connection.execute(table.delete().where(table.c.commit_number == number))


def delete_payload(catalog: Catalog, payload: str, owner: str, number: int) -> bool:
    """Mark payload as invalid from a commit on, up to the next commit that records all of it.

    Returns whether there is such a commit.
    """
    commits, changes = schema.commits, schema.changes
    with catalog.write_transaction() as connection:
        whole = connection.execute(
            sa.select(sa.func.min(changes.c.commit_number)).where(
                changes.c.relation == payload,
                changes.c.commit_number > number,
                changes.c.is_full,
            )
        ).scalar()
        affected = sa.select(commits.c.number, commits.c.payload).where(commits.c.number >= number)
        if whole is not None:
            affected = affected.where(commits.c.number < whole)
        for row in connection.execute(affected).all():
            valid = sorted(set(json.loads(row.payload)) - {owner})
            connection.execute(
                commits.update()
                .where(commits.c.number == row.number)
                .values(payload=json.dumps(valid))
            )
        connection.execute(
            changes.delete().where(changes.c.relation == payload, changes.c.commit_number == number)
        )
    return whole is not None


@dataclass(frozen=True, slots=True)
class RecomputedTuples:
    """All tuples that a relation had at a commit, recomputed."""

    commit: int
    relation: str
    tuples: pa.Table


def replace_contents(
    warehouse: Warehouse, changes: Sequence[RecomputedTuples], snapshots: Sequence[RecomputedTuples]
) -> None:
    """Replace changes by full ones, and snapshots, in one transaction after their files."""
    catalog = warehouse.catalog
    intent = catalog.insert_intent()
    beat = catalog.heartbeat(intent)
    written: list[tuple[sa.Table, RecomputedTuples, dict[str, Any]]] = []
    try:
        for table, kind, made in (
            (schema.changes, "change", changes),
            (schema.snapshots, "snapshot", snapshots),
        ):
            for at, each in enumerate(made):
                path = f"{DATA_DIRECTORY}/{intent}/{kind}-{at}.parquet"
                written.append((table, each, _written(warehouse, each, path)))
                beat()
        with catalog.write_transaction() as connection:
            catalog.consume_intent(connection, intent)
            for table, each, values in written:
                counts = {"rows": each.tuples.num_rows}
                if table is schema.changes:
                    counts = {"added": each.tuples.num_rows, "removed": 0}
                    values |= {"is_full": True, "inline": None}
                connection.execute(
                    table.update()
                    .where(table.c.commit_number == each.commit, table.c.relation == each.relation)
                    .values(**counts, **values)
                )
    except BaseException:
        warehouse.abandon(intent)
        raise


def _written(warehouse: Warehouse, each: RecomputedTuples, path: str) -> dict[str, Any]:
    checksum = durable_files.write(warehouse.root, path, to_parquet(each.tuples))
    return {"path": path, "checksum": checksum}
