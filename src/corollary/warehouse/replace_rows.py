"""Replaces rows of the catalog whose data is damaged, and deletes rows of derived data."""

import json
from collections.abc import Callable, Sequence

import pyarrow as pa

from corollary.data_class import dataclass
from corollary.warehouse.catalog.catalog import Catalog
from corollary.warehouse.files import durable_files
from corollary.warehouse.files.parquet_encoding import to_parquet
from corollary.warehouse.warehouse import Warehouse
from corollary.warehouse.warehouse_catalog import DATA_DIRECTORY


def delete_index(catalog: Catalog, number: int) -> None:
    """Delete the index of a commit; its files become orphans."""
    with catalog.write_transaction() as connection:
        connection.execute("DELETE FROM corollary_indexes WHERE commit_number = ?", number)


def delete_payload(catalog: Catalog, payload: str, owner: str, number: int) -> bool:
    """Mark payload as invalid from a commit on, up to the next commit that records all of it.

    Returns whether there is such a commit.
    """
    with catalog.write_transaction() as connection:
        whole = connection.scalar(
            "SELECT min(commit_number) FROM corollary_changes"
            " WHERE relation = ? AND commit_number > ? AND is_full",
            payload,
            number,
        )
        for row in connection.rows(
            "SELECT number, payload FROM corollary_commits WHERE number >= ?", number
        ):
            if whole is None or row.number < whole:
                valid = sorted(set(json.loads(row.payload)) - {owner})
                connection.execute(
                    "UPDATE corollary_commits SET payload = ? WHERE number = ?",
                    json.dumps(valid),
                    row.number,
                )
        connection.execute(
            "DELETE FROM corollary_changes WHERE relation = ? AND commit_number = ?",
            payload,
            number,
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
    try:
        new_changes = _write_all(warehouse, changes, f"{DATA_DIRECTORY}/{intent}/change", beat)
        new_snapshots = _write_all(
            warehouse, snapshots, f"{DATA_DIRECTORY}/{intent}/snapshot", beat
        )
        with catalog.write_transaction() as connection:
            catalog.consume_intent(connection, intent)
            connection.execute_many(
                "UPDATE corollary_changes SET added = ?, path = ?, checksum = ?, removed = 0,"
                " is_full = TRUE, inline = NULL WHERE commit_number = ? AND relation = ?",
                new_changes,
            )
            connection.execute_many(
                "UPDATE corollary_snapshots SET rows = ?, path = ?, checksum = ?"
                " WHERE commit_number = ? AND relation = ?",
                new_snapshots,
            )
    except BaseException:
        warehouse.abandon(intent)
        raise


def _write_all(
    warehouse: Warehouse,
    contents: Sequence[RecomputedTuples],
    prefix: str,
    beat: Callable[[], None],
) -> list[tuple[int, str, str, int, str]]:
    """Write a file for each; return the values of the rows: count, path, checksum, and the key."""
    written = []
    for at, each in enumerate(contents):
        path = f"{prefix}-{at}.parquet"
        checksum = durable_files.write(warehouse.root, path, to_parquet(each.tuples))
        written.append((each.tuples.num_rows, path, checksum, each.commit, each.relation))
        beat()
    return written
