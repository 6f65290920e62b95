"""What can happen to a catalog on a server only: connections break, it is not there, it refuses."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

import corollary
from corollary.database import commit as commits
from corollary.errors import InputError, UnknownOutcomeError, WarehouseError
from corollary.warehouse import warehouse
from corollary.warehouse.catalog import catalog as catalog_module
from corollary.warehouse.catalog.connections import CatalogConnection
from support.command_line import OK, cli, put
from support.maintained_database import closure, delete, insert, opened, pairs, reopened
from support.postgresql_server import Server
from support.warehouse_scenarios import loose_files, store_of, stored

pytestmark = pytest.mark.integration


@pytest.fixture
def place(server: Server, tmp_path: Path) -> str:
    """A warehouse whose catalog is on the server."""
    return server.place(tmp_path / "warehouse")


def hang_up(server: Server, place: str) -> None:
    """Let the server end all connections to the database of a warehouse."""
    name = place.partition("?")[0].rpartition("/")[2]
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [name]
        )


@pytest.mark.smoke
def test_a_connection_breaks_between_transactions(server: Server, place: str) -> None:
    db = opened(closure(), place=place)
    for edge in ("ab", "bc"):
        hang_up(server, place)
        insert(db, "edge", pairs(edge))
    assert sorted(db.relation("reach").rows()) == pairs("ab ac bc")
    db.close()


def test_views_that_are_dropped_take_their_grants_along(place: str) -> None:
    db = opened(closure(), place=place)
    insert(db, "edge", pairs("ab"))
    db.grant("maria", "reach", "edge")
    db.load(text=closure().partition(".decl reach")[0])
    assert db.grants() == {"maria": ["edge"]}
    assert sorted(db.at(2).relation("reach").rows()) == pairs("ab")
    db.close()


def test_a_dry_run_makes_no_catalog(place: str, tmp_path: Path) -> None:
    program = put(str(tmp_path / "p.dl"), closure())
    result = cli("run", str(program), "--warehouse", place, "--dry-run")
    assert result.exit_code == OK, result.output
    assert not (tmp_path / "warehouse").exists()
    with pytest.raises(WarehouseError, match="C0930"):
        corollary.open(place, create=False)


class Loss:
    """Loses the connection at the COMMIT of a commit: before it, or its acknowledgement."""

    def __init__(self, server: Server, place: str, *, is_made: bool, is_gone: bool) -> None:
        self._hang_up = partial(hang_up, server, place)
        self._execute = CatalogConnection.execute
        self.is_made = is_made
        self.is_gone = is_gone
        self.is_armed = False
        self._is_over = False

    def arm(self, connection: CatalogConnection, table: str, rows: Any) -> None:
        """Be ready for the COMMIT of the transaction that inserts a commit."""
        self.is_armed |= table == "corollary_commits"
        self._insert(connection, table, rows)

    _insert = staticmethod(CatalogConnection.insert)

    def execute(self, connection: CatalogConnection, statement: str, *values: Any) -> int:
        """Execute a statement."""
        if statement != "COMMIT" or not self.is_armed:
            return self._execute(connection, statement, *values)
        self.is_armed = False
        if self.is_made:
            self._execute(connection, statement)
        self._hang_up()
        self._is_over = True
        return self._execute(connection, "SELECT 1")

    def connect(self, *arguments: Any, **options: Any) -> Any:
        """Connect, unless the server is not there any more."""
        if self._is_over and self.is_gone:
            raise psycopg.OperationalError("connection refused")
        return self._connect(*arguments, **options)

    _connect = staticmethod(psycopg.connect)


@pytest.mark.parametrize("is_gone", [False, True], ids=["back again", "gone"])
@pytest.mark.parametrize("is_made", [False, True], ids=["before the commit", "behind it"])
def test_the_outcome_of_a_commit_is_looked_up(
    server: Server, place: str, monkeypatch: pytest.MonkeyPatch, is_made: bool, is_gone: bool
) -> None:
    monkeypatch.setattr(catalog_module, "RECONNECT_SECONDS", (0.01,))
    db = opened(closure(), place=place)
    loss = Loss(server, place, is_made=is_made, is_gone=is_gone)
    with monkeypatch.context() as patch:
        patch.setattr(CatalogConnection, "execute", lambda *each: loss.execute(*each))  # noqa: PLW0108 - with the connection
        patch.setattr(CatalogConnection, "insert", lambda *each: loss.arm(*each))  # noqa: PLW0108
        patch.setattr(psycopg, "connect", loss.connect)
        if is_gone:
            with pytest.raises(UnknownOutcomeError, match="C0938") as caught:
                insert(db, "edge", pairs("ab"), idempotency="one")
            assert "`one`" in str(caught.value)
        elif is_made:
            assert insert(db, "edge", pairs("ab"), idempotency="one").commit_number == 2
        else:
            with pytest.raises(WarehouseError, match="nothing was changed"):
                insert(db, "edge", pairs("ab"), idempotency="one")
    assert insert(db, "edge", pairs("ab"), idempotency="one").commit_number == 2
    db.close()
    with reopened("", place=place) as db:
        assert db.relation("reach").rows() == pairs("ab")
        assert db.commits == 2


@pytest.mark.parametrize("is_late", [False, True], ids=["before the commit", "behind it"])
def test_a_connection_breaks_at_the_commit(
    server: Server, place: str, monkeypatch: pytest.MonkeyPatch, is_late: bool
) -> None:
    """Nobody can tell whether it was made; the same key again tells, and does no harm."""
    monkeypatch.setattr(warehouse, "INLINE_BYTES", 1)
    db = opened(closure(), place=place)
    catalog = store_of(db).warehouse.catalog
    record, commit = catalog._record, catalog.commit

    def broken(connection: Any, *arguments: Any) -> None:
        record(connection, *arguments)
        hang_up(server, place)

    def lost(*arguments: Any) -> int:
        commit(*arguments)
        hang_up(server, place)
        raise WarehouseError.catalog_failure(place, OSError("gone"))

    with monkeypatch.context() as patch:
        if is_late:
            patch.setattr(catalog, "commit", lost)
        else:
            patch.setattr(catalog, "_record", broken)
        with pytest.raises(WarehouseError, match="C0935"):
            insert(db, "edge", pairs("ab"), idempotency="one")
    assert db.commits == 1
    again = insert(db, "edge", pairs("ab"), idempotency="one")
    assert again.commit_number == 2
    delete(db, "edge", pairs("xy"))
    assert loose_files(db) == set()
    db.close()
    with reopened("", place=place) as db:
        assert db.relation("reach").rows() == pairs("ab")


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(WarehouseError, match="C0935") as caught:
        corollary.open(f"postgresql://me:secret@127.0.0.1:1/x?data={tmp_path}")
    assert "Connection refused" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_what_the_server_would_refuse(place: str) -> None:
    """The transaction fails with a message, and the next one works."""
    with opened(closure(), place=place) as db:
        before = stored(db)
        with pytest.raises(InputError, match="C0920"):
            insert(db, "edge", pairs("ab"), idempotency="\0")
        assert (stored(db), db.commits) == (before, 1)
        assert insert(db, "edge", pairs("ab"), idempotency="k").commit_number == 2


def test_a_database_of_somebody_else_is_shared(server: Server, place: str) -> None:
    """A catalog has tables of its own names, and leaves the others alone."""
    url = place.partition("?")[0]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("create table meta (x int)")
        connection.execute("insert into meta values (7)")
    with opened(closure(), place=place) as db:
        insert(db, "edge", pairs("ab"))
    with psycopg.connect(url) as connection:
        assert connection.execute("select x from meta").fetchall() == [(7,)]


def test_a_writer_that_hangs(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others wait for it, and then say so; once it is gone they go on."""
    monkeypatch.setattr("corollary.warehouse.catalog.connections.BUSY_SECONDS", 1)
    monkeypatch.setattr(commits, "MAX_TRIES", 1)
    one, other = opened(closure(), place=place), reopened("", place=place)
    with store_of(one).warehouse.catalog.write_transaction():
        with pytest.raises(WarehouseError, match="lock timeout"):
            insert(other, "edge", pairs("ab"))
        assert other.relation("reach").rows() == []  # who only reads does not wait
    insert(other, "edge", pairs("bc"))
    for db in (one, other):
        assert db.relation("reach").rows() == pairs("bc")
        db.close()
