"""Queries of the catalog."""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from corollary.errors import WarehouseError, redact_password
from corollary.warehouse.catalog import catalog_rows, idempotency_keys
from corollary.warehouse.catalog.connections import CatalogConnection, Connections

MAX_ROWS = 2**62
"""A limit that is none."""


class CatalogReader(Connections):
    """Reads the catalog of one warehouse."""

    def meta(self, name: str) -> str:
        """Return a property of the warehouse: `format`, `id` or `oldest`."""
        with self.read_transaction() as connection:
            found = self.find_meta(connection, name)
        assert found is not None, f"a catalog has the property {name}"
        return found

    @staticmethod
    def find_meta(connection: CatalogConnection, name: str) -> str | None:
        """Return a property of the warehouse, if it has it."""
        found = connection.scalar("SELECT value FROM corollary_meta WHERE name = ?", name)
        return None if found is None else str(found)

    def latest_commit(self) -> catalog_rows.Commit | None:
        """Return the last commit, if any."""
        return self._commit("SELECT * FROM corollary_commits ORDER BY number DESC LIMIT 1")

    def latest_number(self) -> int:
        """Return the number of the last commit, 0 if there is none."""
        with self.read_transaction() as connection:
            return int(connection.scalar("SELECT max(number) FROM corollary_commits") or 0)

    def find_commit(self, number: int) -> catalog_rows.Commit | None:
        """Return a commit by its number."""
        return self._commit("SELECT * FROM corollary_commits WHERE number = ?", number)

    def latest_commit_before(self, end: float) -> catalog_rows.Commit | None:
        """Return the last commit that was made before a point in time, in seconds since 1970."""
        query = "SELECT * FROM corollary_commits WHERE created < ? ORDER BY number DESC LIMIT 1"
        return self._commit(query, end)

    def find_commit_by_key(self, idempotency: str) -> catalog_rows.Commit | None:
        """Return the commit that was made under an idempotency key."""
        found = self._commit("SELECT * FROM corollary_commits WHERE idempotency = ?", idempotency)
        if found is not None:
            return found
        with self.read_transaction() as connection:
            number = idempotency_keys.find_by_key(connection, idempotency)
        return None if number is None else self.find_commit(number)

    def find_key_digest(self, idempotency: str) -> str | None:
        """Return the digest of the change that was made under an idempotency key, if known."""
        with self.read_transaction() as connection:
            return idempotency_keys.find_digest(connection, idempotency)

    def _commit(self, query: str, *values: Any) -> catalog_rows.Commit | None:
        with self.read_transaction() as connection:
            row = connection.first(query, *values)
        return None if row is None else _commit(row)

    def commits(
        self, after: int = 0, limit: int | None = None, upto: int | None = None
    ) -> list[catalog_rows.Commit]:
        """Return the commits after a number and up to another, newest first."""
        query = (
            "SELECT * FROM corollary_commits WHERE number > ? AND number <= ?"
            " ORDER BY number DESC LIMIT ?"
        )
        last = MAX_ROWS if upto is None else upto
        with self.read_transaction() as connection:
            rows = connection.rows(query, after, last, MAX_ROWS if limit is None else limit)
        return [_commit(row) for row in rows]

    def program_ids(self, after: int = 0) -> list[int]:
        """Return the programs of the commits after a number, the last one first."""
        query = (
            "SELECT program, max(number) FROM corollary_commits WHERE number > ?"
            " GROUP BY program ORDER BY max(number) DESC"
        )
        with self.read_transaction() as connection:
            return [int(each) for each in connection.column(query, after)]

    def changes(
        self, after: int, upto: int, relation: str | None = None
    ) -> list[tuple[int, catalog_rows.StoredChange]]:
        """Return the changes of the commits after one and up to another, oldest first."""
        query = (
            "SELECT * FROM corollary_changes WHERE commit_number > ? AND commit_number <= ?"
            " AND coalesce(relation = ?, TRUE) ORDER BY commit_number, relation"
        )
        with self.read_transaction() as connection:
            rows = connection.rows(query, after, upto, relation)
        return [(row.commit_number, _change(row)) for row in rows]

    def change_counts(self, after: int, upto: int) -> list[tuple[int, str, int, int]]:
        """Return the sizes of the changes of the commits after one and up to another.

        A row is the number of a commit, a relation, the count of added and of removed tuples.
        """
        with self.read_transaction() as connection:
            return connection.rows(
                "SELECT commit_number, relation, added, removed FROM corollary_changes"
                " WHERE commit_number > ? AND commit_number <= ? AND added + removed > 0"
                " ORDER BY commit_number, relation",
                after,
                upto,
            )

    def latest_snapshots(self, upto: int) -> dict[str, catalog_rows.StoredSnapshot]:
        """Return for each relation its latest snapshot not after a commit."""
        query = "SELECT * FROM corollary_snapshots WHERE commit_number <= ? ORDER BY commit_number"
        with self.read_transaction() as connection:
            return {row.relation: stored_snapshot(row) for row in connection.rows(query, upto)}

    def latest_full_changes(self, upto: int) -> dict[str, int]:
        """Return for relations the latest commit, not after one, whose change is full."""
        query = (
            "SELECT relation, max(commit_number) FROM corollary_changes"
            " WHERE commit_number <= ? AND is_full GROUP BY relation"
        )
        with self.read_transaction() as connection:
            return dict(connection.rows(query, upto))

    def relations_to_fold(self, relations: Iterable[str], upto: int) -> list[str]:
        """Return the relations that have changed since their latest snapshot, or have none."""
        query = (
            "SELECT relation, max(commit_number) FROM corollary_changes"
            " WHERE commit_number <= ? GROUP BY relation"
        )
        with self.read_transaction() as connection:
            changed: dict[str, int] = dict(connection.rows(query, upto))
        snapshots = self.latest_snapshots(upto)
        return [
            name
            for name in relations
            if name not in snapshots or snapshots[name].commit < changed.get(name, 0)
        ]

    def changed_tuples(self, upto: int) -> dict[str, int]:
        """Return for each relation with a snapshot how many tuples have changed since."""
        query = (
            "SELECT changes.relation, sum(changes.added + changes.removed)"
            " FROM corollary_changes AS changes JOIN"
            " (SELECT relation, max(commit_number) AS last FROM corollary_snapshots"
            " WHERE commit_number <= ? GROUP BY relation) AS snapshots"
            " ON changes.relation = snapshots.relation"
            " WHERE changes.commit_number > snapshots.last AND changes.commit_number <= ?"
            " GROUP BY changes.relation"
        )
        with self.read_transaction() as connection:
            return {name: int(count) for name, count in connection.rows(query, upto, upto)}

    def latest_index(self, upto: int) -> tuple[int, list[catalog_rows.StoredIndex]] | None:
        """Return the latest index not after a commit: its commit and its files."""
        with self.read_transaction() as connection:
            newest = connection.scalar(
                "SELECT max(commit_number) FROM corollary_indexes WHERE commit_number <= ?", upto
            )
            if newest is None:
                return None
            rows = connection.rows(
                "SELECT path, checksum FROM corollary_indexes WHERE commit_number = ?"
                " ORDER BY path",
                newest,
            )
        return int(newest), [catalog_rows.StoredIndex(*row) for row in rows]

    def folded_files(self) -> frozenset[str]:
        """Return the files of all snapshots and indexes."""
        query = "SELECT path FROM corollary_snapshots UNION ALL SELECT path FROM corollary_indexes"
        with self.read_transaction() as connection:
            return frozenset(connection.column(query))

    def program(self, id_: int) -> catalog_rows.StoredProgram:
        """Return a program.

        Raises:
            WarehouseError: it is missing or damaged.
        """
        with self.read_transaction() as connection:
            row = connection.first("SELECT * FROM corollary_programs WHERE id = ?", id_)
        if row is None or row.checksum != program_checksum(row.text, row.places):
            raise WarehouseError.damaged(f"program {id_} in {redact_password(self.location)}")
        return catalog_rows.StoredProgram(row.id, row.text, json.loads(row.places))

    def source_positions(self) -> dict[str, tuple[str, Any]]:
        """Return the position of each source: (relation, position) by name."""
        with self.read_transaction() as connection:
            rows = connection.rows("SELECT * FROM corollary_sources")
        return {row.source: (row.relation, json.loads(row.position)) for row in rows}

    def published_versions(self) -> dict[str, tuple[int, int]]:
        """Return the commit that each published table shows, and the version that shows it."""
        with self.read_transaction() as connection:
            rows = connection.rows("SELECT * FROM corollary_published")
        return {row.relation: (row.commit_number, row.version) for row in rows}

    def count_changing_commits(self, relation: str, after: int) -> int:
        """Return how many commits after a number have changed a relation."""
        query = "SELECT count(*) FROM corollary_changes WHERE relation = ? AND commit_number > ?"
        with self.read_transaction() as connection:
            return int(connection.scalar(query, relation, after))

    def next_change(self, relation: str, after: int) -> float | None:
        """Return when the first commit after a number was made that has changed a relation."""
        query = (
            "SELECT min(created) FROM corollary_commits WHERE number = (SELECT min(commit_number) "
            "FROM corollary_changes WHERE relation = ? AND commit_number > ?)"
        )
        with self.read_transaction() as connection:
            found: float | None = connection.scalar(query, relation, after)
            return found


def _commit(row: Any) -> catalog_rows.Commit:
    try:
        payload, stats = frozenset(json.loads(row.payload)), json.loads(row.stats)
    except (TypeError, ValueError) as error:
        raise WarehouseError.damaged(f"commit {row.number} in the catalog") from error
    valid = frozenset(each for each in payload if not each.endswith(catalog_rows.EXACT_MARK))
    exact = frozenset(each for each in valid if f"{each}{catalog_rows.EXACT_MARK}" in payload)
    return catalog_rows.Commit(
        row.number, row.created, row.program, valid, stats, row.idempotency, exact
    )


def _change(row: Any) -> catalog_rows.StoredChange:
    counts = row.relation, row.added, row.removed
    return catalog_rows.StoredChange(*counts, bool(row.is_full), row.checksum, row.inline, row.path)


def stored_snapshot(row: Any) -> catalog_rows.StoredSnapshot:
    """Return a row of the table `snapshots`."""
    return catalog_rows.StoredSnapshot(
        row.relation, row.commit_number, row.rows, row.path, row.checksum
    )


def program_checksum(text: str, places: str) -> str:
    """Return the checksum of a program as the catalog stores it."""
    return hashlib.blake2b(f"{text}\0{places}".encode(), digest_size=16).hexdigest()
