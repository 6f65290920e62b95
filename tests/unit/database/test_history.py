"""The history of a warehouse from Python: commits, feeds, the past, keys."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest

import corollary
from corollary.core.arrow import nullary_table, to_python
from corollary.database.database import Database, store_of, warehouse_of
from corollary.errors import AccessError, InputError, WarehouseError
from corollary.warehouse.warehouse import Warehouse
from support.command_line import cli

CLOSURE = """\
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.decl pair(x: number, y: number) virtual
pair(x, y) :- path(y, x).
.decl flag()
"""


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with corollary.open(tmp_path / "warehouse") as found:
        found.load(text=CLOSURE)
        with found.transaction() as tx:
            tx.insert("edge", [(at, at + 1) for at in range(5)])
        yield found


def test_the_log_counts_without_reading(db: Database) -> None:
    with db.transaction(idempotency="k") as tx:
        tx.delete("edge", [(4, 5)])
        tx.add_rule("path(x, x) :- edge(x, _).")
    newest, second, first = db.log()
    assert (newest.number, newest.idempotency, newest.has_new_program) == (3, "k", True)
    assert newest.changes == {"edge": (0, 1), "path": (4, 5)}
    assert (second.changes, second.has_new_program) == ({"edge": (5, 0), "path": (15, 0)}, False)
    assert (first.changes, first.has_new_program) == ({}, True)
    assert first.at <= second.at <= newest.at <= datetime.now(UTC)
    assert [each.number for each in db.log(2)] == [3, 2]


def test_a_feed_is_a_table(db: Database) -> None:
    with db.transaction() as tx:
        tx.delete("edge", [(0, 1)])
        tx.insert("edge", [(9, 9)])
        tx.insert("flag", [()])
    (feed,) = db.feed("edge", since=2)
    relation, table = feed.relation, feed.arrow()
    assert repr(feed) == "<Feed of edge: commits 3 to 3>"
    told = ("x", "y", "_change_type", "_commit_version", "_commit_timestamp")
    assert relation.columns == tuple(table.column_names) == told
    assert table.schema.field("_commit_timestamp").type == pa.timestamp("us", tz="UTC")
    at = db.log()[0].at
    assert [tuple(each.values()) for each in table.to_pylist()] == [
        (0, 1, "delete", 3, at),
        (9, 9, "insert", 3, at),
    ]
    assert [each.relation.name for each in db.feed(upto=2)] == ["edge", "path"]
    (flags,) = db.feed("flag")
    assert flags.arrow().column_names == list(told[2:])
    assert list(db.feed("edge", since=3)) == []
    for wrong in ({"since": 7}, {"upto": 7}):
        with pytest.raises(WarehouseError, match="C0936"):
            db.feed(**wrong)
    with pytest.raises(InputError, match="C0975"):
        db.feed("pair")
    with pytest.raises(InputError, match="C0916"):
        db.feed("egde")
    with pytest.raises(InputError, match="C0918"):
        corollary.open().feed()


def test_a_look_at_the_past_leaves_the_present_alone(db: Database) -> None:
    with db.transaction(algorithm="epf") as tx:  # which keeps no ranks
        tx.delete("edge", [(4, 5)])
    with db.transaction() as tx:
        tx.add_rule("path(x, x) :- edge(x, _).")
    assert db._store is not None
    before = {name: value for name, value in vars(db._store).items() if name != "warehouse"}
    past = db.at(2)
    assert len(past.relation("path")) == 15
    assert vars(db._store).items() >= before.items()
    with past.transaction() as tx:
        tx.insert("edge", [(7, 8)])
    assert len(past.relation("path")) == 16
    assert db.commits == 4
    assert len(db.relation("path")) == 14


@pytest.mark.parametrize("engine", ["local", "sequential"])
def test_the_past_reads_what_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    read: list[str] = []
    with corollary.open(tmp_path / "warehouse", engine=engine) as db:
        db.load(text=CLOSURE)
        for at in range(3):
            with db.transaction() as tx:
                tx.insert("edge", [(at, at + 1)])
        whole = Warehouse.read_change
        monkeypatch.setattr(
            Warehouse,
            "read_change",
            lambda self, each: read.append(each.relation) or whole(self, each),
        )
        past = db.at(3)
        assert type(past._state.engine) is type(db._state.engine)
        assert (len(past.relation("edge")), len(past.relation("path")), read) == (2, 3, [])
        assert sorted(past.relation("edge").rows()) == [(0, 1), (1, 2)]
        assert set(read) == {"edge"}
        assert "path" in past.explain("pair(2, y)")
        assert sorted(to_python(past.query("pair(2, y)"))) == [(0,), (1,)]
        with past.transaction() as tx:
            tx.delete("edge", [(0, 1)])
        assert sorted(past.relation("path").rows()) == [(1, 2)]
        assert len(db.relation("path")) == 6
    assert past.relation("edge").rows() == [(1, 2)]


def test_what_a_commit_has_not_changed_may_be_asked_for(db: Database) -> None:
    db.grant("alice", "path")
    for changes in (db.changes(2), db.reader("alice").changes(2)):
        assert "flag" not in list(changes)
        assert changes["path"].counts == (15, 0)
    assert db.changes(2)["flag"].counts == (0, 0)
    with pytest.raises(AccessError):
        db.reader("alice").changes(2)["flag"]


def test_a_transaction_of_a_known_key_does_nothing(db: Database, tmp_path: Path) -> None:
    def change(database: Database) -> corollary.database.transaction.Transaction:
        with database.transaction(idempotency="once") as tx:
            tx.delete("edge", [(4, 5)])
            tx.remove_rule("path(x, z) :- path(x, y), edge(y, z).")
        return tx

    first = change(db)
    with corollary.open(tmp_path / "warehouse") as other:
        second = change(other)
    assert (first.is_repeated, second.is_repeated) == (False, True)
    assert first.as_json() == second.as_json()
    assert db.log()[0].number == 3
    with db.transaction(idempotency="once", is_dry=True) as tx:
        tx.insert("edge", [("not", "checked")])
    assert (tx.is_repeated, tx.commit_number) == (True, 3)


def test_tables_without_columns_are_counted(db: Database) -> None:
    for operation, expected in (("insert", [()]), ("delete", [])):
        with db.transaction() as tx:
            getattr(tx, operation)("flag", nullary_table(1))
        assert db.relation("flag").rows() == expected


# --- points in history ----------------------------------------------------------------------------

TIMES = {
    1: datetime(2026, 11, 14, 23, 59, 59, 999_999, tzinfo=UTC),
    2: datetime(2026, 11, 15, 8, tzinfo=UTC),
    3: datetime(2026, 11, 15, 8, 0, 0, 1, tzinfo=UTC),
    4: datetime(2026, 11, 17, tzinfo=UTC),
}


@pytest.fixture
def dated(db: Database) -> Database:
    """A database of four commits, each with one edge more, made at the times above."""
    for at in (5, 6):
        with db.transaction() as tx:
            tx.insert("edge", [(at, at + 1)])
    catalog = warehouse_of(db)
    assert catalog is not None
    with catalog.catalog.write_transaction() as connection:
        for number, time in TIMES.items():
            connection.execute(
                "UPDATE corollary_commits SET created = ? WHERE number = ?",
                time.timestamp(),
                number,
            )
    return db


@pytest.mark.parametrize(
    ("point", "commit"),
    [
        (3, 3),
        ("3", 3),
        (" 2 ", 2),
        ("2026-11-14", 1),
        ("2026-11-15", 3),
        ("2026-11-16", 3),
        ("2026-11-17", 4),
        (date(2026, 11, 15), 3),
        (date(9999, 12, 31), 4),
        ("9999-12-31T23:59:59.999999Z", 4),
        ("2026-11-15T08:00:00Z", 2),
        ("2026-11-15 09:00:00+01:00", 2),
        ("2026-11-15T08:00:00", 2),
        ("2026-11-15T07:59:59.999999Z", 1),
        ("2026-11-15T08:00:00.000001Z", 3),
        (datetime(2026, 11, 15, 8), 2),  # noqa: DTZ001 - one without a zone is UTC
        (datetime(2026, 11, 15, 9, tzinfo=timezone(timedelta(hours=1))), 2),
    ],
)
def test_points_in_history(dated: Database, point: int | str | date, commit: int) -> None:
    assert len(dated.at(point).relation("edge")) == [0, 5, 6, 7][commit - 1]
    dated.grant("alice", "edge")
    assert len(dated.reader("alice").at(point).relation("edge")) == [0, 5, 6, 7][commit - 1]


@pytest.mark.parametrize("point", ["yesterday", "", "2026-13-01", "-1", "1.5", 1.5, None, True, []])
def test_what_is_no_point_in_history(dated: Database, point: object) -> None:
    with pytest.raises(InputError, match="C0907"):
        dated.at(point)  # type: ignore[arg-type]


def test_before_the_first_commit(dated: Database, tmp_path: Path) -> None:
    said = (
        r"at or before the end of 2026-11-13 does not exist(.|\n)*commit 1 of 2026-11-14T23:59:59"
    )
    with pytest.raises(WarehouseError, match=said):
        dated.at("2026-11-13")
    with corollary.open(tmp_path / "empty") as empty:
        store_of(empty).grants.remove("alice", ())  # a write that is no commit
        with pytest.raises(WarehouseError, match="there is no commit yet"):
            empty.at("2026-11-13")


def test_a_time_of_the_log_is_that_commit(db: Database) -> None:
    for commit in db.log():
        assert db.at(commit.at).commits == commit.number


# --- virtual views --------------------------------------------------------------------------------

WATCHED = """\
.decl edge(x: number, y: number)
.decl link(x: number, y: number) virtual
link(x, y) :- edge(x, y).
link(x, z) :- link(x, y), edge(y, z).
"""


def test_the_changes_of_a_watched_virtual_view_are_history(tmp_path: Path) -> None:
    """A commit in which nobody watched is marked; one in which nothing changed has no row."""
    place = tmp_path / "w"
    with corollary.open(place, engine="local") as db:
        db.load(text=WATCHED)
        db.grant("alice", "link")
        for watched, edges in ((False, [(1, 2)]), (True, [(2, 3)]), (True, [(1, 3)])):
            if watched:
                db.watch("link")
            with db.transaction() as tx:
                tx.insert("edge", edges)
    with corollary.open(place, engine="local") as db:
        with db.transaction() as tx:
            tx.delete("edge", [(2, 3)])
        told = [
            (row["_commit_version"], row["_change_type"], row["x"], row["y"])
            for each in db.feed("link")
            for row in each.arrow().to_pylist()
        ]
        assert told == [
            (1, "unwatched", None, None),
            (2, "unwatched", None, None),
            (3, "insert", 1, 3),
            (3, "insert", 2, 3),
            (5, "unwatched", None, None),
        ]
        (only,) = db.feed("link", since=4, upto=5)
        assert only.arrow().column("_change_type").to_pylist() == ["unwatched"]
        assert [fed.relation.name for fed in db.feed()] == ["edge", "link"]
        assert [fed.relation.name for fed in db.reader("alice").feed()] == ["link"]
        assert sorted(db.relation("link").rows()) == [(1, 2), (1, 3)]
        assert "link" in db.changes(3)
    said = cli("changes", str(place), "link", "--commit", "5").output
    assert said.splitlines()[1].split("\t")[:4] == ["", "", "unwatched", "5"]
    assert cli("verify", str(place)).exit_code == 0


@pytest.mark.slow
def test_readers_follow_a_virtual_view_that_another_process_changes(tmp_path: Path) -> None:
    place = tmp_path / "w"
    with corollary.open(place, engine="local") as owner:
        owner.load(text=WATCHED)
        owner.grant("alice", "link")
        with corollary.open(place, engine="local", reader="alice") as alice:
            follower = alice.follow("link")
            assert follower.poll() == []
            assert follower.wait(0) == []
            watching = (
                "import sys, corollary\n"
                "with corollary.open(sys.argv[1], engine='local') as db:\n"
                "    db.watch('link')\n"
                "    for operation in ('insert', 'delete'):\n"
                "        with db.transaction() as tx:\n"
                "            getattr(tx, operation)('edge', [(1, 2), (2, 3)])\n"
            )
            subprocess.run([sys.executable, "-c", watching, str(place)], check=True)
            told = [
                (each.commit, to_python(each.added), to_python(each.removed), each.is_known)
                for each in follower.wait(5)
            ]
            every = [(1, 2), (1, 3), (2, 3)]
            assert told == [(2, every, [], True), (3, [], every, True)]
            with corollary.open(place, engine="local") as other, other.transaction() as tx:
                tx.insert("edge", [(5, 6)])
            (unknown,) = follower.poll()
            assert (unknown.commit, unknown.is_known) == (4, False)
            assert follower.commit == 4
            again = alice.follow("link", since=2)
            assert [(each.commit, each.is_known) for each in again.poll()] == [
                (3, True),
                (4, False),
            ]
            assert repr(again) == "<Follower of link: commit 4>"
            with pytest.raises(AccessError):
                alice.follow("edge")
            owner.revoke("alice", "link")
            with owner.transaction() as tx:
                tx.insert("edge", [(7, 8)])
            with pytest.raises(AccessError):
                follower.poll()
        edges = owner.follow("edge", since=0)
        assert [each.commit for each in edges.poll()] == [2, 3, 4, 5]
        with pytest.raises(WarehouseError, match="C0936"):
            owner.follow("edge", since=99)
        with pytest.raises(InputError, match="C0918"):
            corollary.open(None, engine="local").follow("edge")


def test_readers_subscribe_to_what_a_virtual_view_gains_and_loses() -> None:
    db = corollary.open(None, engine="local")
    db.load(text=WATCHED)
    db.grant("alice", "link")
    alice = db.reader("alice")
    told: list[tuple[str, list[tuple[int, int]]]] = []
    for event in ("+link", "-link"):
        alice.on(event)(lambda rows: told.append((rows[0].event, sorted(map(tuple, rows)))))
    with db.transaction() as tx:
        tx.insert("edge", [(1, 2), (2, 3)])
    with db.transaction() as tx:
        tx.delete("edge", [(2, 3)])
    assert told == [("+link", [(1, 2), (1, 3), (2, 3)]), ("-link", [(1, 3), (2, 3)])]
    with pytest.raises(AccessError, match="C1040"):
        alice.on("-edge")
    with pytest.raises(InputError, match="C1013"):
        db.on("-lnk")
