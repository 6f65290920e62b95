"""The catalog: the database that says what a warehouse holds. Its transactions are the commits.

SQLite by default (write-ahead log, every commit forced to the disk), PostgreSQL by URL. A commit
states its parent, which no other commit may have: of two writers that began from the same state one
gets a conflict, and does its work again on the new state. Before a transaction writes files it
inserts an *intent*; the commit deletes that row or fails. This fences writers that `gc` has taken
for dead, removing their intents and files: they cannot commit any more.

A change of the format adds its step to `STEPS` here, and a warehouse of the format before it to
`tests/warehouse/formats`. A step may change tables and rows. Data files stay as they are: what an
engine cannot read any more and can compute again (payload, indexes) is forgotten, by its rows.
"""

import json
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from corollary import fault
from corollary.errors import ConflictError, UnknownOutcomeError, WarehouseError, redact_password
from corollary.warehouse.catalog import catalog_rows, idempotency_keys, outbox, schema
from corollary.warehouse.catalog.catalog_reader import CatalogReader, program_checksum
from corollary.warehouse.catalog.connections import CatalogConnection, DuplicateRowError

BEAT_SECONDS = 60.0
"""The least time between two heartbeats of a writer."""


RECONNECT_SECONDS = (0.1, 0.5, 2.0, 5.0)
"""How long to wait before a lost connection is made again, time after time."""

_LATEST_NUMBER = "SELECT max(number) FROM corollary_commits"


class Catalog(CatalogReader):
    """The catalog of one warehouse."""

    # --- life ----------------------------------------------------------------------------------

    def create(self, *, is_empty: bool = False, warehouse_id: str | None = None) -> None:
        """Create the tables, if they do not exist yet.

        Args:
            is_empty: whether to leave the table `meta` empty too, for a copy that will fill it.
            warehouse_id: the id that a new warehouse gets; a random one if it is not given.

        Raises:
            WarehouseError: it is the database of another program, or cannot be written.
        """
        with self.write_transaction() as connection:
            self._refuse_foreign(connection)
            for statement in schema.CREATE:
                connection.execute(statement)
            if is_empty or self._has_format(connection):
                return
            id_ = warehouse_id or secrets.token_hex(8)
            properties = {"format": schema.FORMAT, "id": id_, "oldest": 0}
            rows = [{"name": name, "value": str(each)} for name, each in properties.items()]
            connection.insert(schema.META_TABLE, rows)

    def check_format(self) -> None:
        """Refuse a warehouse of another format.

        Raises:
            WarehouseError: it has a format that this version does not know, or tables with other
                columns.
        """
        with self.read_transaction() as connection:
            self._refuse_other_format(connection)
            definitions = connection.rows(schema.DEFINITIONS) if self.is_file else []
        for table, definition in definitions:
            if table in schema.TABLES and not schema.defines(table, definition):
                raise WarehouseError.altered_table(redact_password(self.location), table)

    def _refuse_other_format(self, connection: CatalogConnection) -> None:
        found = self.find_meta(connection, "format")
        if found != str(schema.FORMAT):
            raise WarehouseError.other_format(str(found), schema.OLDEST_FORMAT, schema.FORMAT)

    def _refuse_foreign(self, connection: CatalogConnection) -> None:
        """Refuse the SQLite file of another program; a server's database may be shared."""
        if not self.is_file:
            return
        tables = connection.tables()
        if tables and schema.META_TABLE not in tables:
            raise WarehouseError.foreign_database(self.location, tables)

    def exists(self) -> bool:
        """Return whether it is the catalog of a warehouse.

        Raises:
            WarehouseError: it is the database of another program, or damaged.
        """
        with self.read_transaction() as connection:
            self._refuse_foreign(connection)
            return schema.META_TABLE in connection.tables() and self._has_format(connection)

    def _has_format(self, connection: CatalogConnection) -> bool:
        if self.find_meta(connection, "format") is not None:
            return True
        if connection.first("SELECT name FROM corollary_meta") is not None:
            raise WarehouseError.damaged(redact_password(self.location))
        return False

    # --- writing -------------------------------------------------------------------------------

    def insert_intent(self, prefix: str = "") -> str:
        """Insert an intent to write files; return its id, which is the directory of the files.

        Args:
            prefix: the prefix of the id, for intents of other kinds.
        """
        fault.hit("before_intent")
        intent = prefix + secrets.token_hex(8)
        writer = f"{os.uname().nodename}:{os.getpid()}"
        with self.write_transaction() as connection:
            row = {"id": intent, "writer": writer, "heartbeat": time.time()}
            connection.insert("corollary_intents", [row])
        fault.hit("after_intent")
        return intent

    def heartbeat(self, intent: str) -> Callable[[], None]:
        """Return a function that renews an intent, to be called after each file, say.

        Without it `gc` takes a slow writer for dead and removes its files. An intent that is gone
        stays gone: its writer learns that when it tries to commit.
        """
        last = time.monotonic()

        def beat() -> None:
            nonlocal last
            if time.monotonic() - last >= BEAT_SECONDS:
                statement = "UPDATE corollary_intents SET heartbeat = ? WHERE id = ?"
                with self.write_transaction() as connection:
                    connection.execute(statement, time.time(), intent)
                last = time.monotonic()

        return beat

    def delete_intent(self, intent: str) -> bool:
        """Delete an intent; return whether it existed, which means that its files are orphans."""
        with self.write_transaction() as connection:
            return connection.execute("DELETE FROM corollary_intents WHERE id = ?", intent) == 1

    def commit(self, new: catalog_rows.NewCommit, intent: str | None) -> int:
        """Record a commit in one transaction, the commit point; return its number.

        Raises:
            ConflictError: another commit came first, or the intent is gone.
        """
        fault.hit("before_commit")
        number = new.parent + 1
        commit = {
            "number": number,
            "parent": new.parent,
            "created": datetime.now(UTC).timestamp(),  # no more than the microseconds of the log
            "idempotency": new.idempotency,
            "payload": json.dumps(sorted(new.payload | catalog_rows.exact_marks(new.exact))),
            "stats": json.dumps(new.stats),
        }
        try:
            with self.write_transaction() as connection:
                if intent is not None:
                    # First: a fenced writer must not get further.
                    self.consume_intent(connection, intent)
                self._refuse_other_format(connection)  # it may have been upgraded meanwhile
                # Not only by the number: `gc` may have dropped the commits that have it.
                if int(connection.scalar(_LATEST_NUMBER) or 0) != new.parent:
                    raise ConflictError.commit_taken(number)
                program = self._program_for(connection, new)
                connection.insert("corollary_commits", [{**commit, "program": program}])
                self._record(connection, number, new)
        except DuplicateRowError as error:  # the number, the parent or the idempotency key exists
            raise ConflictError.commit_taken(number) from error
        except UnknownOutcomeError as error:
            self._look_up(commit, error)
        fault.hit("after_commit")
        return number

    def _look_up(self, commit: Mapping[str, Any], lost: UnknownOutcomeError) -> None:
        """Find out whether a commit was made whose acknowledgement was lost.

        Its time, with what it says of itself, is its own: of all writers only this one has it.

        Raises:
            WarehouseError: it was not made.
            UnknownOutcomeError: the catalog cannot be reached.
        """
        number, key = commit["number"], idempotency_keys.given_key(commit["idempotency"])
        pauses = iter(RECONNECT_SECONDS)
        while True:
            try:
                # A write transaction: it waits until the server has ended the lost one.
                with self.write_transaction() as connection:
                    columns = ", ".join(commit)
                    query = f"SELECT {columns} FROM corollary_commits WHERE number = ?"  # noqa: S608
                    row = connection.first(query, number)
            except WarehouseError:
                pause = next(pauses, None)
                if pause is None:
                    raise UnknownOutcomeError.of_commit(self.location, number, key) from lost
                time.sleep(pause)
                continue
            if row is not None and tuple(row) == tuple(commit.values()):
                return
            raise WarehouseError.catalog_failure(
                self.location, ConnectionError("the connection was lost before the commit")
            ) from lost

    @staticmethod
    def consume_intent(connection: CatalogConnection, intent: str) -> None:
        """Delete an intent in the transaction that references its files.

        Raises:
            ConflictError: `gc` has removed it.
        """
        if connection.execute("DELETE FROM corollary_intents WHERE id = ?", intent) != 1:
            raise ConflictError.fenced()

    @staticmethod
    def _program_for(connection: CatalogConnection, new: catalog_rows.NewCommit) -> int:
        if new.program is None:
            query = "SELECT program FROM corollary_commits WHERE number = ?"
            return int(connection.scalar(query, new.parent))
        id_ = int(connection.scalar("SELECT max(id) FROM corollary_programs") or 0) + 1
        text, places = new.program[0], json.dumps(new.program[1])
        checksum = program_checksum(text, places)
        row = {"id": id_, "text": text, "places": places, "checksum": checksum}
        connection.insert("corollary_programs", [row])
        return id_

    @staticmethod
    def _record(connection: CatalogConnection, number: int, new: catalog_rows.NewCommit) -> None:
        connection.insert("corollary_changes", [_row(number, each) for each in new.changes])
        idempotency_keys.record_keys(connection, number, new.keys)
        idempotency_keys.record_digests(connection, new.digests)
        Catalog._replace_snapshots(connection, new.snapshots)
        Catalog._move(connection, new.sources, number)
        statement = "DELETE FROM corollary_grants WHERE relation = ?"
        connection.execute_many(statement, [(name,) for name in sorted(new.dropped)])
        if new.alerts or new.delivers is not None:
            warehouse = Catalog.find_meta(connection, "id")
            assert warehouse is not None
            outbox.record_alerts(connection, number, new, warehouse)

    def record_source_positions(self, sources: Mapping[str, tuple[str, Any]], number: int) -> None:
        """Record the positions of sources whose reading has changed no tuple."""
        with self.write_transaction() as connection:
            self._move(connection, sources, number)

    @staticmethod
    def _move(
        connection: CatalogConnection, sources: Mapping[str, tuple[str, Any]], number: int
    ) -> None:
        now = time.time()
        for source in sources:
            connection.execute("DELETE FROM corollary_sources WHERE source = ?", source)
        rows = [
            {
                "source": source,
                "relation": relation,
                "position": json.dumps(position),
                "commit_number": number,
                "read": now,
            }
            for source, (relation, position) in sources.items()
            if position is not None
        ]
        connection.insert("corollary_sources", rows)

    def record_fold(
        self,
        number: int,
        snapshots: Sequence[catalog_rows.StoredSnapshot],
        index: Sequence[catalog_rows.StoredIndex],
        intent: str,
    ) -> bool:
        """Record the snapshots and the index of a commit in place of earlier ones of that commit.

        Returns False, and records nothing, if the commit is no longer kept, or a file that it
        shares with an earlier index: that index is gone, and `gc` may have removed the file.
        """
        with self.write_transaction() as connection:
            self.consume_intent(connection, intent)
            self._refuse_other_format(connection)
            if number < int(self.find_meta(connection, "oldest") or 0):
                return False
            shared = {each.path for each in index if f"/{intent}/" not in each.path}
            known = connection.column("SELECT path FROM corollary_indexes") if shared else ()
            if not shared <= {*known}:
                return False
            connection.execute("DELETE FROM corollary_indexes WHERE commit_number = ?", number)
            connection.insert("corollary_indexes", [_row(number, each) for each in index])
            self._replace_snapshots(connection, snapshots)
        return True

    @staticmethod
    def _replace_snapshots(
        connection: CatalogConnection, snapshots: Sequence[catalog_rows.StoredSnapshot]
    ) -> None:
        connection.execute_many(
            "DELETE FROM corollary_snapshots WHERE relation = ? AND commit_number = ?",
            [(each.relation, each.commit) for each in snapshots],
        )
        rows = [
            {
                "relation": each.relation,
                "commit_number": each.commit,
                "rows": each.rows,
                "path": each.path,
                "checksum": each.checksum,
            }
            for each in snapshots
        ]
        connection.insert("corollary_snapshots", rows)

    @staticmethod
    def replace_meta(connection: CatalogConnection, name: str, value: str | None) -> None:
        """Give a property of the warehouse a value, or remove it."""
        connection.execute("DELETE FROM corollary_meta WHERE name = ?", name)
        if value is not None:
            connection.insert(schema.META_TABLE, [{"name": name, "value": value}])

    # --- published tables ----------------------------------------------------------------------

    def record_published(self, relation: str, commit: int, version: int) -> None:
        """Record that a version of a relation's Delta table, which is synced, shows a commit."""
        with self.write_transaction() as connection:
            connection.execute("DELETE FROM corollary_published WHERE relation = ?", relation)
            row = {"relation": relation, "commit_number": commit, "version": version}
            connection.insert("corollary_published", [row])

    def delete_published(self, relation: str) -> None:
        """Record that a relation no longer has a Delta table."""
        with self.write_transaction() as connection:
            connection.execute("DELETE FROM corollary_published WHERE relation = ?", relation)


def _row(
    number: int, stored: catalog_rows.StoredChange | catalog_rows.StoredIndex
) -> dict[str, Any]:
    """Return the row of something that a commit has stored."""
    values = {each.name: getattr(stored, each.name) for each in fields(stored)}
    return {"commit_number": number, **values}


Step = Callable[[CatalogConnection], None]


def _keep(_: CatalogConnection) -> None:
    """Change nothing: relations that rewriting makes in another way now are computed anew."""


STEPS: dict[int, Step] = {5: _keep}
"""What makes format n + 1 of format n, by n; there is one for each from 5 on."""


def upgrade(
    catalog: Catalog, steps: Mapping[int, Step] = STEPS, latest: int = schema.FORMAT
) -> tuple[int, int]:
    """Bring a catalog to the latest format; return the format it had, and the one it has.

    Raises:
        WarehouseError: `C0931`, it has a format that no step begins from.
    """
    with catalog.write_transaction() as connection:
        found = str(catalog.find_meta(connection, "format"))
        known = {str(number): number for number in (*steps, latest)}
        if found not in known:
            raise WarehouseError.other_format(found, schema.OLDEST_FORMAT, latest)
        for number in range(known[found], latest):
            steps[number](connection)
        if known[found] != latest:
            catalog.replace_meta(connection, "format", str(latest))
    return known[found], latest
