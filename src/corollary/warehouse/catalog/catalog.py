"""The catalog: the database that says what a warehouse holds. Its transactions are the commits.

SQLite by default (write-ahead log, every commit forced to the disk), PostgreSQL by URL. A commit
states its parent, which no other commit may have: of two writers that began from the same state one
gets a conflict, and does its work again on the new state. Before a transaction writes files it
inserts an *intent*; the commit deletes that row or fails. This fences writers that `gc` has taken
for dead, removing their intents and files: they cannot commit any more.
"""

import json
import os
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from corollary import fault
from corollary.errors import ConflictError, WarehouseError, display_location
from corollary.warehouse.catalog import outbox, schema
from corollary.warehouse.catalog.catalog_reader import CatalogReader, program_checksum
from corollary.warehouse.catalog.catalog_rows import NewCommit, StoredIndex, StoredSnapshot

BEAT_SECONDS = 60.0
"""The least time between two heartbeats of a writer."""

_FORMAT = sa.select(schema.meta.c.value).where(schema.meta.c.name == "format")


class Catalog(CatalogReader):
    """The catalog of one warehouse."""

    # --- life ----------------------------------------------------------------------------------

    @classmethod
    def from_file(cls, path: Path) -> "Catalog":
        """Return the catalog in a file."""
        url = sa.URL.create("sqlite", database=str(path))  # escapes `?`, `%` and so on
        return cls(url.render_as_string(hide_password=False))

    def create(self, *, is_empty: bool = False) -> None:
        """Create the tables, if they do not exist yet.

        Args:
            is_empty: whether to leave the table `meta` empty too, for a copy that will fill it.

        Raises:
            WarehouseError: it is the database of another program, or cannot be written.
        """
        with self.write_transaction() as connection:
            self._refuse_foreign(connection)
            schema.metadata.create_all(connection)
            known = connection.execute(_FORMAT).scalar()
            if known is None and not is_empty:
                if connection.execute(sa.select(schema.meta.c.name)).first() is not None:
                    raise WarehouseError.damaged(display_location(self.url))
                for name, value in (
                    ("format", str(schema.FORMAT)),
                    ("id", secrets.token_hex(8)),
                    ("oldest", "0"),
                ):
                    connection.execute(schema.meta.insert().values(name=name, value=value))

    def check_not_lost(self, data_directory: Path) -> None:
        """Refuse an empty catalog beside data files: the real one has been lost.

        Raises:
            WarehouseError: it has no tables.
        """
        with self.read_transaction() as connection:
            if not sa.inspect(connection).has_table(schema.meta.name):
                raise WarehouseError.lost_catalog(display_location(self.url), data_directory)

    def check_format(self) -> None:
        """Refuse a warehouse of another format.

        Raises:
            WarehouseError: it is not a warehouse, or has a format that this version does not know.
        """
        with self.read_transaction() as connection:
            self._refuse_foreign(connection)
            if not sa.inspect(connection).has_table(schema.meta.name):
                raise WarehouseError.missing(display_location(self.url))
            found = connection.execute(_FORMAT).scalar()
        if found != str(schema.FORMAT):
            raise WarehouseError.of(
                "C0931",
                f"The warehouse has format {found}; this version of corollary knows "
                f"{schema.FORMAT}.",
                note="use a version of corollary that knows it",
            )

    def _refuse_foreign(self, connection: sa.Connection) -> None:
        """Refuse the SQLite file of another program; a server's database may be shared."""
        if not self.is_file:
            return
        tables = sa.inspect(connection).get_table_names()
        if tables and schema.meta.name not in tables:
            raise WarehouseError.foreign_database(display_location(self.url), tables)

    def exists(self) -> bool:
        """Return whether it is the catalog of a warehouse."""
        with self.read_transaction() as connection:
            has_table = sa.inspect(connection).has_table(schema.meta.name)
            return bool(has_table and connection.execute(_FORMAT).scalar())

    # --- writing -------------------------------------------------------------------------------

    def insert_intent(self, prefix: str = "") -> str:
        """Insert an intent to write files; return its id, which is the directory of the files.

        Args:
            prefix: the prefix of the id, for intents of other kinds.
        """
        fault.hit("before_intent")
        intent = prefix + secrets.token_hex(8)
        writer = f"{socket.gethostname()}:{os.getpid()}"
        with self.write_transaction() as connection:
            connection.execute(
                schema.intents.insert().values(id=intent, writer=writer, heartbeat=time.time())
            )
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
                table = schema.intents
                with self.write_transaction() as connection:
                    connection.execute(
                        table.update().where(table.c.id == intent).values(heartbeat=time.time())
                    )
                last = time.monotonic()

        return beat

    def delete_intent(self, intent: str) -> bool:
        """Delete an intent; return whether it existed, which means that its files are orphans."""
        with self.write_transaction() as connection:
            done = connection.execute(schema.intents.delete().where(schema.intents.c.id == intent))
        return done.rowcount == 1

    def commit(self, new: NewCommit, intent: str | None) -> int:
        """Record a commit in one transaction, the commit point; return its number.

        Raises:
            ConflictError: another commit came first, or the intent is gone.
        """
        fault.hit("before_commit")
        number = new.parent + 1
        try:
            with self.write_transaction() as connection:
                if intent is not None:
                    self.consume_intent(
                        connection, intent
                    )  # first: a fenced writer must not get further
                program = self._program_for(connection, new)
                connection.execute(
                    schema.commits.insert().values(
                        number=number,
                        parent=new.parent,
                        created=time.time(),
                        program=program,
                        idempotency=new.idempotency,
                        payload=json.dumps(sorted(new.payload)),
                        stats=json.dumps(new.stats),
                    )
                )
                self._record(connection, number, new)
        except IntegrityError as error:  # the number, the parent or the idempotency key exists
            raise ConflictError.commit_taken(number) from error
        fault.hit("after_commit")
        return number

    @staticmethod
    def consume_intent(connection: sa.Connection, intent: str) -> None:
        """Delete an intent in the transaction that references its files.

        Raises:
            ConflictError: `gc` has removed it.
        """
        done = connection.execute(schema.intents.delete().where(schema.intents.c.id == intent))
        if done.rowcount != 1:
            raise ConflictError.fenced()

    @staticmethod
    def _program_for(connection: sa.Connection, new: NewCommit) -> int:
        table = schema.programs
        if new.program is None:
            query = sa.select(schema.commits.c.program).where(schema.commits.c.number == new.parent)
            return int(connection.execute(query).scalar_one())
        newest = connection.execute(sa.select(sa.func.max(table.c.id))).scalar()
        id_ = int(newest or 0) + 1
        text, places = new.program[0], json.dumps(new.program[1])
        checksum = program_checksum(text, places)
        connection.execute(
            table.insert().values(id=id_, text=text, places=places, checksum=checksum)
        )
        return id_

    @staticmethod
    def _record(connection: sa.Connection, number: int, new: NewCommit) -> None:
        if new.changes:
            connection.execute(
                schema.changes.insert(),
                [{"commit_number": number, **asdict(each)} for each in new.changes],
            )
        for each in new.snapshots:
            Catalog._replace_snapshot(connection, each)
        Catalog._move(connection, new.sources, number)
        if new.alerts or new.delivers is not None:
            outbox.record_alerts(connection, number, new, Catalog._meta(connection, "id"))

    def record_source_positions(self, sources: Mapping[str, tuple[str, Any]], number: int) -> None:
        """Record the positions of sources whose reading has changed no tuple."""
        with self.write_transaction() as connection:
            self._move(connection, sources, number)

    @staticmethod
    def _move(
        connection: sa.Connection, sources: Mapping[str, tuple[str, Any]], number: int
    ) -> None:
        table = schema.sources
        for source, (relation, position) in sources.items():
            connection.execute(table.delete().where(table.c.source == source))
            if position is None:
                continue
            connection.execute(
                table.insert().values(
                    source=source,
                    relation=relation,
                    position=json.dumps(position),
                    commit_number=number,
                    read=time.time(),
                )
            )

    def record_fold(
        self,
        number: int,
        snapshots: Sequence[StoredSnapshot],
        index: Sequence[StoredIndex],
        intent: str,
    ) -> bool:
        """Record the snapshots and the index of a commit in place of earlier ones of that commit.

        Returns False, and records nothing, if the commit is no longer kept.
        """
        with self.write_transaction() as connection:
            self.consume_intent(connection, intent)
            if number < int(self._meta(connection, "oldest")):
                return False
            table = schema.indexes
            connection.execute(table.delete().where(table.c.commit_number == number))
            for each in snapshots:
                self._replace_snapshot(connection, each)
            for file in index:
                connection.execute(table.insert().values(commit_number=number, **asdict(file)))
        return True

    @staticmethod
    def _replace_snapshot(connection: sa.Connection, new: StoredSnapshot) -> None:
        table = schema.snapshots
        connection.execute(
            table.delete().where(
                table.c.relation == new.relation, table.c.commit_number == new.commit
            )
        )
        connection.execute(
            table.insert().values(
                relation=new.relation,
                commit_number=new.commit,
                rows=new.rows,
                path=new.path,
                checksum=new.checksum,
            )
        )

    # --- published tables ----------------------------------------------------------------------

    def record_published(self, relation: str, commit: int, version: int) -> None:
        """Record that a version of a relation's Delta table, which is synced, shows a commit."""
        table = schema.published
        with self.write_transaction() as connection:
            connection.execute(table.delete().where(table.c.relation == relation))
            connection.execute(
                table.insert().values(relation=relation, commit_number=commit, version=version)
            )

    def delete_published(self, relation: str) -> None:
        """Record that a relation no longer has a Delta table."""
        table = schema.published
        with self.write_transaction() as connection:
            connection.execute(table.delete().where(table.c.relation == relation))
