"""Queries of the catalog."""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from corollary.errors import WarehouseError, display_location
from corollary.warehouse.catalog import catalog_rows, schema
from corollary.warehouse.catalog.connections import Connections


class CatalogReader(Connections):
    """Reads the catalog of one warehouse."""

    def meta(self, name: str) -> str:
        """Return a property of the warehouse: `format`, `id` or `oldest`."""
        with self.read_transaction() as connection:
            return self._meta(connection, name)

    @staticmethod
    def _meta(connection: sa.Connection, name: str) -> str:
        query = sa.select(schema.meta.c.value).where(schema.meta.c.name == name)
        return str(connection.execute(query).scalar_one())

    def latest_commit(self) -> catalog_rows.Commit | None:
        """Return the last commit, if any."""
        table = schema.commits
        return self._commit(sa.select(table).order_by(table.c.number.desc()).limit(1))

    def find_commit(self, number: int) -> catalog_rows.Commit | None:
        """Return a commit by its number."""
        table = schema.commits
        return self._commit(sa.select(table).where(table.c.number == number))

    def find_commit_by_key(self, idempotency: str) -> catalog_rows.Commit | None:
        """Return the commit that was made under an idempotency key."""
        table = schema.commits
        return self._commit(sa.select(table).where(table.c.idempotency == idempotency))

    def _commit(self, query: sa.Select[Any]) -> catalog_rows.Commit | None:
        with self.read_transaction() as connection:
            row = connection.execute(query).first()
        return None if row is None else _commit(row)

    def commits(self, after: int = 0, limit: int | None = None) -> list[catalog_rows.Commit]:
        """Return the commits after a number, newest first."""
        table = schema.commits
        query = sa.select(table).where(table.c.number > after).order_by(table.c.number.desc())
        with self.read_transaction() as connection:
            return [_commit(row) for row in connection.execute(query.limit(limit))]

    def changes(
        self, after: int, upto: int, relation: str | None = None
    ) -> list[tuple[int, catalog_rows.StoredChange]]:
        """Return the changes of the commits after one and up to another, oldest first."""
        table = schema.changes
        query = sa.select(table).where(table.c.commit_number > after, table.c.commit_number <= upto)
        if relation is not None:
            query = query.where(table.c.relation == relation)
        with self.read_transaction() as connection:
            rows = connection.execute(query.order_by(table.c.commit_number, table.c.relation))
            return [(row.commit_number, _change(row)) for row in rows]

    def change_counts(self, after: int, upto: int) -> list[tuple[int, str, int, int]]:
        """Return the sizes of the changes of the commits after one and up to another.

        A row is the number of a commit, a relation, the count of added and of removed tuples.
        """
        table = schema.changes
        query = sa.select(table.c.commit_number, table.c.relation, table.c.added, table.c.removed)
        query = query.where(
            table.c.commit_number > after,
            table.c.commit_number <= upto,
            table.c.added + table.c.removed > 0,
        )
        with self.read_transaction() as connection:
            rows = connection.execute(query.order_by(table.c.commit_number, table.c.relation))
            return [(number, name, added, removed) for number, name, added, removed in rows]

    def latest_snapshots(self, upto: int) -> dict[str, catalog_rows.StoredSnapshot]:
        """Return for each relation its latest snapshot not after a commit."""
        table = schema.snapshots
        query = sa.select(table).where(table.c.commit_number <= upto)
        found: dict[str, catalog_rows.StoredSnapshot] = {}
        with self.read_transaction() as connection:
            for row in connection.execute(query.order_by(table.c.commit_number)):
                found[row.relation] = stored_snapshot(row)
        return found

    def latest_full_changes(self, upto: int) -> dict[str, int]:
        """Return for relations the latest commit, not after one, whose change is full."""
        table = schema.changes
        newest = sa.func.max(table.c.commit_number).label("newest")
        query = sa.select(table.c.relation, newest).where(
            table.c.commit_number <= upto, table.c.is_full
        )
        with self.read_transaction() as connection:
            rows = connection.execute(query.group_by(table.c.relation))
            return {row.relation: row.newest for row in rows}

    def relations_to_fold(self, relations: Iterable[str], upto: int) -> list[str]:
        """Return the relations that have changed since their latest snapshot, or have none."""
        table = schema.changes
        newest = sa.func.max(table.c.commit_number).label("newest")
        query = sa.select(table.c.relation, newest).where(table.c.commit_number <= upto)
        with self.read_transaction() as connection:
            rows = connection.execute(query.group_by(table.c.relation))
            changed = {row.relation: row.newest for row in rows}
        snapshots = self.latest_snapshots(upto)
        return [
            name
            for name in relations
            if name not in snapshots or snapshots[name].commit < changed.get(name, 0)
        ]

    def latest_index(self, upto: int) -> tuple[int, list[catalog_rows.StoredIndex]] | None:
        """Return the latest index not after a commit: its commit and its files."""
        table = schema.indexes
        with self.read_transaction() as connection:
            newest = connection.execute(
                sa.select(sa.func.max(table.c.commit_number)).where(table.c.commit_number <= upto)
            ).scalar()
            if newest is None:
                return None
            query = sa.select(table).where(table.c.commit_number == newest)
            rows = connection.execute(query.order_by(table.c.path))
            return int(newest), [catalog_rows.StoredIndex(row.path, row.checksum) for row in rows]

    def folded_files(self) -> frozenset[str]:
        """Return the files of all snapshots and indexes."""
        tables = schema.snapshots, schema.indexes
        query = sa.union_all(*(sa.select(table.c.path) for table in tables))
        with self.read_transaction() as connection:
            return frozenset(connection.execute(query).scalars())

    def program(self, id_: int) -> catalog_rows.StoredProgram:
        """Return a program.

        Raises:
            WarehouseError: it is missing or damaged.
        """
        table = schema.programs
        with self.read_transaction() as connection:
            row = connection.execute(sa.select(table).where(table.c.id == id_)).first()
        if row is None or row.checksum != program_checksum(row.text, row.places):
            raise WarehouseError.damaged(f"program {id_} in {display_location(self.url)}")
        return catalog_rows.StoredProgram(row.id, row.text, json.loads(row.places))

    def source_positions(self) -> dict[str, tuple[str, Any]]:
        """Return the position of each source: (relation, position) by name."""
        with self.read_transaction() as connection:
            rows = connection.execute(sa.select(schema.sources))
            return {row.source: (row.relation, json.loads(row.position)) for row in rows}

    def published_versions(self) -> dict[str, tuple[int, int]]:
        """Return the commit that each published table shows, and the version that shows it."""
        with self.read_transaction() as connection:
            rows = connection.execute(sa.select(schema.published))
            return {row.relation: (row.commit_number, row.version) for row in rows}

    def count_changing_commits(self, relation: str, after: int) -> int:
        """Return how many commits after a number have changed a relation."""
        table = schema.changes
        query = sa.select(sa.func.count()).where(
            table.c.relation == relation, table.c.commit_number > after
        )
        with self.read_transaction() as connection:
            return int(connection.execute(query).scalar_one())


def _commit(row: Any) -> catalog_rows.Commit:
    try:
        payload, stats = json.loads(row.payload), json.loads(row.stats)
    except (TypeError, ValueError) as error:
        raise WarehouseError.damaged(f"commit {row.number} in the catalog") from error
    return catalog_rows.Commit(
        row.number, row.created, row.program, frozenset(payload), stats, row.idempotency
    )


def _change(row: Any) -> catalog_rows.StoredChange:
    counts = row.relation, row.added, row.removed
    return catalog_rows.StoredChange(*counts, row.is_full, row.checksum, row.inline, row.path)


def stored_snapshot(row: Any) -> catalog_rows.StoredSnapshot:
    """Return a row of the table `snapshots`."""
    return catalog_rows.StoredSnapshot(
        row.relation, row.commit_number, row.rows, row.path, row.checksum
    )


def program_checksum(text: str, places: str) -> str:
    """Return the checksum of a program as the catalog stores it."""
    return hashlib.blake2b(f"{text}\0{places}".encode(), digest_size=16).hexdigest()
