"""Rows of the catalog that are replaced because what they name is damaged."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from corollary.warehouse import files, schema
from corollary.warehouse.catalog import Catalog
from corollary.warehouse.heartbeat import heartbeat
from corollary.warehouse.warehouse import DATA, Warehouse


def forget_index(catalog: Catalog, number: int) -> None:
    """Let a commit have no index; its files belong to nobody then."""
    table = schema.indexes
    with catalog.writing() as connection:
        connection.execute(table.delete().where(table.c.commit_number == number))


def forget_payload(catalog: Catalog, payload: str, owner: str, number: int) -> bool:
    """Let payload be invalid from a commit on, until it was recorded as a whole again.

    Returns whether that has happened.
    """
    commits, changes = schema.commits, schema.changes
    with catalog.writing() as connection:
        whole = connection.execute(
            sa.select(sa.func.min(changes.c.commit_number)).where(
                changes.c.relation == payload,
                changes.c.commit_number > number,
                changes.c.is_full,
            )
        ).scalar()
        concerned = sa.select(commits.c.number, commits.c.payload).where(commits.c.number >= number)
        if whole is not None:
            concerned = concerned.where(commits.c.number < whole)
        for row in connection.execute(concerned).all():
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
class Made:
    """All tuples that a relation had at a commit, made anew."""

    commit: int
    relation: str
    tuples: pa.Table


def put(warehouse: Warehouse, changes: Sequence[Made], snapshots: Sequence[Made]) -> None:
    """Let changes say all that relations held then, and snapshots say it again."""
    catalog = warehouse.catalog
    intent = catalog.intend()
    beat = heartbeat(catalog, intent)
    written: list[tuple[sa.Table, Made, dict[str, Any]]] = []
    try:
        for table, kind, made in (
            (schema.changes, "change", changes),
            (schema.snapshots, "snapshot", snapshots),
        ):
            for at, each in enumerate(made):
                path = f"{DATA}/{intent}/{kind}-{at}.parquet"
                written.append((table, each, _written(warehouse, each, path)))
                beat()
        with catalog.writing() as connection:
            catalog.end(connection, intent)
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


def _written(warehouse: Warehouse, each: Made, path: str) -> dict[str, Any]:
    checksum = files.write(warehouse.root, path, files.parquet_bytes(each.tuples))
    return {"path": path, "checksum": checksum}
